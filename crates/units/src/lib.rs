//! Owns the quantities of the project: durations, byte counts, rates and shares. Each is a type, parsed from what
//! people type ("10s", "3KB", "5k/s", "2%") and printed in the same notation. Start reading at [`Nanos`].
//!
//! ```
//! use joust_units::{Bytes, Nanos, PerSecond};
//!
//! let limit: Nanos = "1500ms".parse().unwrap();
//! assert_eq!(limit, Nanos::from_millis(1500));
//! assert_eq!("3KB".parse(), Ok(Bytes(3000)));
//! assert_eq!("5k/s".parse(), Ok(PerSecond(5000.0)));
//! let error = "soon".parse::<Nanos>().unwrap_err();
//! assert!(error.to_string().contains("write it with a unit"));
//! ```

#![warn(clippy::cast_lossless)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)
)]

mod bytes;
mod nanos;
mod rate;
mod share;

pub use bytes::Bytes;
pub use nanos::Nanos;
pub use rate::PerSecond;
pub use share::Share;

use std::fmt;

/// Why a typed quantity was refused. Its text quotes what was typed and shows a form that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    typed: String,
    wanted: &'static str,
}

impl ParseError {
    fn new(typed: &str, wanted: &'static str) -> Self {
        Self { typed: typed.to_owned(), wanted }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.typed, self.wanted)
    }
}

impl std::error::Error for ParseError {}

/// Splits "12.5ms" into 12.5 and "ms". The number must be finite and not negative.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    Some((number, text[end..].trim()))
}

/// A count as an f64: exact up to 2^53, with a relative error below 2^-53 above that.
#[cfg_attr(not(test), expect(clippy::cast_precision_loss, reason = "the loss is what it says"))]
fn real(count: u64) -> f64 {
    count as f64
}

/// The whole part of a number: 0 for negative numbers and NaN, `u64::MAX` for numbers above it.
#[cfg_attr(
    not(test),
    expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and that is what it says"
    )
)]
fn whole_part(number: f64) -> u64 {
    number as u64
}

/// Prints `value`, which is above 0 and below 0.01, with three significant digits.
fn small(value: f64) -> String {
    let zeros = usize::try_from(whole_part((-value.log10()).ceil())).unwrap_or(usize::MAX);
    let decimals = 2 + zeros.min(12);
    format!("{value:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Prints `value` with three significant digits, without a trailing ".0".
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
