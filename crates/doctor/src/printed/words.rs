//! Owns how rows and their figures are put into the sentences of findings. Start reading at [`subject`].

use units::{Nanos, PerSecond};

use super::row::Printed;
use crate::words;

/// Names in one sentence; the others are counted.
const NAMES_MAX: usize = 4;

/// Who a sentence is about: the one row by its name and a colon, or "31 of 52 rows".
pub(super) fn subject(printed: &Printed, rows: &[usize], judged: usize) -> String {
    match rows {
        [only] if judged <= 1 => format!("{}:", printed.rows[*only].name),
        [only] => format!("{}, 1 of {judged} rows:", printed.rows[*only].name),
        many if many.len() == judged => format!("all {judged} rows:"),
        many => format!("{} of {judged} rows:", many.len()),
    }
}

/// Examples, each with its figure, of more than one: " (most: a 12 %, b 30 % and 27 more)".
pub(super) fn examples(told: &[String]) -> String {
    match told.len() {
        0 | 1 => String::new(),
        n if n <= NAMES_MAX => format!(" ({})", told.join(", ")),
        n => format!(" ({} and {} more)", told[..NAMES_MAX].join(", "), n - NAMES_MAX),
    }
}

/// Names of rows: "a, b and 27 more".
pub(super) fn names(printed: &Printed, rows: &[usize]) -> String {
    let all: Vec<&str> = rows.iter().map(|&row| printed.rows[row].name.as_str()).collect();
    match all.len() {
        n if n <= NAMES_MAX + 1 => words::list(&all),
        n => format!("{} and {} more", all[..NAMES_MAX].join(", "), n - NAMES_MAX),
    }
}

/// "12 %", or "1 % to 89 %".
pub(super) fn percent_range(shares: &[f64]) -> String {
    let low = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shares.iter().copied().fold(0.0, f64::max);
    let text = |share: f64| match share {
        share if share >= 1.0 => format!("{:.0} %", share * 100.0),
        share => words::percent(share),
    };
    let (low, high) = (text(low), text(high));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Seconds, as a reader likes them.
pub(super) fn time(secs: f64) -> String {
    Nanos::from_secs_f64(secs).to_string()
}

/// Requests a second, as a reader likes them.
pub(super) fn rate(rate: f64) -> String {
    PerSecond(rate).to_string()
}
