//! The files that ab writes with -e and -g. Owns their formats. Start reading at [`csv`] and
//! [`gnuplot`].

use units::Nanos;

use super::figures::{Times, round_ms, sorted_totals};
use crate::command::Finished;

/// Percentiles of the total time from 0 to 100, in milliseconds with decimals (-e).
pub(super) fn csv(times: &[Times]) -> String {
    let totals = sorted_totals(times);
    let n = totals.len();
    let row = |percent: usize| {
        let at = match percent {
            0 => 0,
            100 => n - 1,
            _ => ((0.5 + n as f64 * percent as f64 / 100.0) as usize).min(n - 1),
        };
        format!("{percent},{:.3}\n", totals[at] as f64 / 1000.0)
    };
    let rows: String = (0..=100).map(row).collect();
    format!("Percentage served,Time in ms\n{rows}")
}

/// A row for each request, sorted by total time and not by start (-g).
pub(super) fn gnuplot(times: &[Times], finished: &Finished<'_>) -> String {
    let mut times = times.to_vec();
    times.sort_by_key(|times| times.total);
    let mut text = "starttime\tseconds\tctime\tdtime\tttime\twait\n".to_owned();
    for Times { start, connect, total, wait } in times {
        let start = finished.began.saturating_add(Nanos::from_micros(start));
        let clock = (finished.local_time)(start).ctime();
        let seconds = start.0 / 1_000_000_000;
        let [connect, processing, total, wait] =
            [connect, total - connect, total, wait].map(round_ms);
        text += &format!("{clock}\t{seconds}\t{connect}\t{processing}\t{total}\t{wait}\n");
    }
    text
}
