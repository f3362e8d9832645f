//! siege's log file. Start reading at [`files`].

use super::figures::Figures;
use super::settings::Settings;
use super::text::{NotifyLevel, notify};
use crate::command::{LocalTime, OutFile};

const HEADING: &str = "      Date & Time,  Trans,  Elap Time,  Data Trans,  Resp Time,  Trans Rate,  \
    Throughput,  Concurrent,    OKAY,   Failed\n";

/// The content: the mark, the row, and a note if siege gave up; the heading if the file is new.
pub(super) fn files(
    settings: &Settings,
    is_new: bool,
    figures: &Figures,
    now: LocalTime,
    gave_up: bool,
) -> Vec<OutFile> {
    let mut parts = Vec::new();
    if let Some(mark) = &settings.mark {
        parts.push(marked(mark));
    }
    if settings.logging {
        parts.push(row(figures, now));
        if gave_up {
            parts.push(marked("siege aborted due to excessive socket failure."));
        }
    }
    let mut heading = if is_new { HEADING } else { "" };
    let file = |part: String| OutFile {
        path: (&settings.log_file).into(),
        bytes: (std::mem::take(&mut heading).to_owned() + &part).into_bytes(),
        appends: true,
        complaint: complaint(&settings.log_file),
        code: 0,
    };
    parts.into_iter().map(file).collect()
}

fn complaint(path: &str) -> String {
    let line = notify(NotifyLevel::Error, &format!("unable to create log file: {path}"));
    line.trim_end().to_owned()
}

fn marked(text: &str) -> String {
    format!("**** {text} ****\n")
}

/// Data are whole megabytes here. Divisions by zero are not prevented, as in siege.
fn row(figures: &Figures, now: LocalTime) -> String {
    let Figures { hits, elapsed, time, succeeded, failed, .. } = figures;
    let data = figures.megabytes as u64;
    let by = |value: f64, by: f64| {
        let value = value / by;
        if value.is_nan() { "-nan".to_owned() } else { format!("{value:.2}") }
    };
    let response = by(*time, *hits as f64);
    let rate = by(*hits as f64, *elapsed);
    let throughput = by(data as f64, *elapsed);
    let concurrency = by(*time, *elapsed);
    format!(
        "{},{hits:>7},{elapsed:>11.2},{data:>12},{response:>11},{rate:>12},{throughput:>12},\
         {concurrency:>12},{succeeded:>8},{failed:>8}\n",
        stamp(now)
    )
}

/// `2026-11-22 08:55:23`.
pub(super) fn stamp(at: LocalTime) -> String {
    let LocalTime { year, month, day, hour, minute, second, .. } = at;
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}
