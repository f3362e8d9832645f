//! A span of time, or an instant as the span since a start that the context names.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{ParseError, real, split_number, three_digits, whole_part};

const WANTED: &str = "a duration: write it with a unit, as in 200us, 1.5ms, 10s or 2m";

const WANTED_OR_SECONDS: &str = "a duration: write seconds, or a unit, as in 10, 10s, 200us or 2m";

/// Nanoseconds. As an instant it counts from the start of the run. The range is 584 years.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A span of zero.
    pub const ZERO: Self = Self(0);
    /// Later than any instant of a run.
    pub const MAX: Self = Self(u64::MAX);

    /// From whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// From whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// From whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// From seconds with a fraction. Negative numbers and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(whole_part((secs * 1e9).round()))
    }

    /// Microseconds with a fraction.
    pub fn as_micros_f64(self) -> f64 {
        real(self.0) / 1e3
    }

    /// Milliseconds with a fraction.
    pub fn as_millis_f64(self) -> f64 {
        real(self.0) / 1e6
    }

    /// Seconds with a fraction.
    pub fn as_secs_f64(self) -> f64 {
        real(self.0) / 1e9
    }

    /// Parses what people type after a flag: a bare number is seconds, as in curl, wrk, hey and oha. In files a number
    /// has its unit ([`Nanos::from_str`]): there it may stand next to milliseconds and counts, and nobody would notice
    /// a wrong reading.
    ///
    /// # Errors
    /// The text is not a number with one of the units, or it is longer than 584 years.
    pub fn from_flag(typed: &str) -> Result<Self, ParseError> {
        match typed.trim().parse::<f64>() {
            Ok(seconds) if (0.0..real(u64::MAX) / 1e9).contains(&seconds) => {
                Ok(Self::from_secs_f64(seconds))
            }
            _ => typed.parse().map_err(|_| ParseError::new(typed, WANTED_OR_SECONDS)),
        }
    }

    /// `self - other`, or zero if `other` is later.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or [`Nanos::MAX`] if the sum does not fit.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl FromStr for Nanos {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new(text, WANTED);
        let (number, unit) = split_number(text).ok_or_else(refused)?;
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" | "sec" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            // A bare number could be seconds (wrk), milliseconds (siege) or a count; only 0 is the same in all.
            "" if number == 0.0 => 1.0,
            _ => return Err(refused()),
        };
        let nanos = number * scale;
        if nanos >= real(u64::MAX) {
            return Err(refused());
        }
        Ok(Self(whole_part(nanos.round())))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = real(self.0);
        let text = match self.0 {
            0 => "0s".to_owned(),
            1..1_000 => format!("{}ns", self.0),
            1_000..999_500 => format!("{}us", three_digits(n / 1e3)),
            999_500..999_500_000 => format!("{}ms", three_digits(n / 1e6)),
            999_500_000..120_000_000_000 => format!("{}s", three_digits(n / 1e9)),
            120_000_000_000..7_200_000_000_000 => format!("{}m", three_digits(n / 60e9)),
            _ => format!("{}h", three_digits(n / 3600e9)),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_people_type() {
        let cases = [
            ("10s", 10_000_000_000),
            ("1.5ms", 1_500_000),
            ("200us", 200_000),
            ("2m", 120_000_000_000),
            ("0", 0),
            (" 7 ns ", 7),
        ];
        for (typed, nanos) in cases {
            assert_eq!(typed.parse(), Ok(Nanos(nanos)), "{typed}");
        }
    }

    #[test]
    fn refuses_what_is_ambiguous_or_no_duration() {
        for typed in ["10", "", "s", "-1s", "1e400s", "ten seconds", "1.2.3s", "99999999999999h"] {
            let error = typed.parse::<Nanos>().expect_err(typed);
            assert!(error.to_string().contains("200us"), "{error}");
        }
    }

    #[test]
    fn after_a_flag_a_bare_number_is_seconds() {
        let cases = [
            ("10", 10_000_000_000),
            (" 0.5 ", 500_000_000),
            ("1.5ms", 1_500_000),
            ("2m", 120_000_000_000),
            ("0", 0),
        ];
        for (typed, nanos) in cases {
            assert_eq!(Nanos::from_flag(typed), Ok(Nanos(nanos)), "{typed}");
        }
        for typed in ["", "-1", "1e400", "NaN", "inf", "ten", "99999999999999"] {
            let error = Nanos::from_flag(typed).expect_err(typed);
            assert!(error.to_string().contains("write seconds, or a unit"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn printed_and_read_back_keeps_three_digits(nanos in 1u64..10_000_000_000_000) {
            let back: Nanos = Nanos(nanos).to_string().parse().unwrap();
            let error = (back.0 as f64 - nanos as f64).abs() / nanos as f64;
            prop_assert!(error < 0.006, "{} printed as {}", nanos, Nanos(nanos));
        }
    }
}
