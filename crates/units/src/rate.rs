//! Events a second.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ParseError, small, split_number, three_digits};

const WANTED: &str = "a rate: write it as in 500/s, 1.5k/s or 6000/m";

/// Events a second; finite and not negative.
#[derive(Debug, Default, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerSecond(pub f64);

impl FromStr for PerSecond {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new(text, WANTED);
        let (number, unit) = split_number(text).ok_or_else(refused)?;
        let (prefix, per) = unit.split_once('/').unwrap_or((unit, "s"));
        let scale = match prefix.trim() {
            "" => 1.0,
            "k" | "K" => 1e3,
            "M" => 1e6,
            _ => return Err(refused()),
        };
        let seconds = match per.trim() {
            "s" => 1.0,
            "m" | "min" => 60.0,
            _ => return Err(refused()),
        };
        Ok(Self(number * scale / seconds))
    }
}

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            // A rate above 0 is never printed as 0/s.
            n if n > 0.0 && n < 0.01 => format!("{}/s", small(n)),
            n if n < 9_999.5 => format!("{}/s", three_digits(n)),
            n if n < 999_500.0 => format!("{}k/s", three_digits(n / 1e3)),
            n => format!("{}M/s", three_digits(n / 1e6)),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_prefixes_and_minutes() {
        let cases =
            [("500/s", 500.0), ("1.5k/s", 1500.0), ("6000/m", 100.0), ("2M/s", 2e6), ("7", 7.0)];
        for (typed, rate) in cases {
            assert_eq!(typed.parse(), Ok(PerSecond(rate)), "{typed}");
        }
    }

    #[test]
    fn a_slow_rate_is_not_printed_as_none() {
        let cases =
            [(0.0, "0/s"), (0.001, "0.001/s"), (1.0 / 3600.0, "0.000278/s"), (0.05, "0.05/s")];
        for (rate, printed) in cases {
            assert_eq!(PerSecond(rate).to_string(), printed);
        }
    }

    #[test]
    fn refuses_other_units_and_names_the_way_out() {
        for typed in ["", "5/h", "5x/s", "-5/s"] {
            let error = typed.parse::<PerSecond>().expect_err(typed);
            assert!(error.to_string().contains("500/s"), "{error}");
        }
    }
}
