//! A part of a whole.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ParseError, small, split_number, three_digits};

const WANTED: &str = "a share from 0 to 1: write it as in 2% or 0.02";

/// A part of a whole, 0 to 1; printed in percent.
#[derive(Debug, Default, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new(text, WANTED);
        let (number, unit) = split_number(text).ok_or_else(refused)?;
        let share = match unit {
            "%" => number / 100.0,
            "" => number,
            _ => return Err(refused()),
        };
        if (0.0..=1.0).contains(&share) { Ok(Self(share)) } else { Err(refused()) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        // A share above 0 is never printed as 0 %.
        let is_small = percent > 0.0 && percent < 0.01;
        let text = if is_small { small(percent) } else { three_digits(percent) };
        f.pad(&format!("{text} %"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percent_and_fraction() {
        assert_eq!("2%".parse(), Ok(Share(0.02)));
        assert_eq!("0.02".parse(), Ok(Share(0.02)));
        assert_eq!(Share(0.02).to_string(), "2 %");
        assert_eq!(Share(0.000_003).to_string(), "0.0003 %", "never 0 % of what is there");
        assert_eq!(Share(0.0).to_string(), "0 %");
    }

    #[test]
    fn refuses_more_than_the_whole() {
        for typed in ["101%", "1.5", "2 percent", "-1%"] {
            assert!(typed.parse::<Share>().is_err(), "{typed}");
        }
    }
}
