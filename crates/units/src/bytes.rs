//! A number of bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ParseError, real, split_number, three_digits, whole_part};

const WANTED: &str = "a number of bytes: write it as in 3361, 36.9KB (1000) or 64KiB (1024)";

/// Bytes. KB, MB and GB are powers of 1000; KiB, MiB and GiB powers of 1024.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new(text, WANTED);
        let (number, unit) = split_number(text).ok_or_else(refused)?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kb" => 1e3,
            "m" | "mb" => 1e6,
            "g" | "gb" => 1e9,
            "kib" => 1024.0,
            "mib" => 1024.0 * 1024.0,
            "gib" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(refused()),
        };
        let bytes = number * scale;
        let whole = bytes.round();
        // A fraction of a byte is a typing error, and past 2^53 an f64 rounds silently. The tolerance is for sizes such
        // as 1.001 KB: 1.001 has no exact f64, and 1000 times it is 1000.9999999999999.
        if (bytes - whole).abs() > bytes * 1e-12 || whole >= 9_007_199_254_740_992.0 {
            return Err(refused());
        }
        Ok(Self(whole_part(whole)))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = real(self.0);
        let text = match self.0 {
            0..10_000 => format!("{} B", self.0),
            10_000..999_500 => format!("{} KB", three_digits(n / 1e3)),
            999_500..999_500_000 => format!("{} MB", three_digits(n / 1e6)),
            _ => format!("{} GB", three_digits(n / 1e9)),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_decimal_and_binary_units() {
        let cases =
            [("3361", 3361), ("3KB", 3000), ("64KiB", 65_536), ("1.5MB", 1_500_000), ("0", 0)];
        for (typed, bytes) in cases {
            assert_eq!(typed.parse(), Ok(Bytes(bytes)), "{typed}");
        }
    }

    #[test]
    fn decimal_fractions_that_make_whole_bytes_are_sizes() {
        for thousandths in 0..100_000u64 {
            let typed = format!("{}.{:03}KB", thousandths / 1000, thousandths % 1000);
            assert_eq!(typed.parse(), Ok(Bytes(thousandths)), "{typed}");
        }
    }

    #[test]
    fn refuses_fractions_of_a_byte_and_unknown_units() {
        for typed in ["0.5", "1.0005KB", "3 bits", "-1", "", "KB", "1e99GB"] {
            assert!(typed.parse::<Bytes>().is_err(), "{typed}");
        }
    }

    #[test]
    fn prints_three_digits() {
        let shown: Vec<String> =
            [3361, 36_907, 3_000_000, 2_500_000_000].map(|n| Bytes(n).to_string()).into();
        assert_eq!(shown, ["3361 B", "36.9 KB", "3 MB", "2.5 GB"]);
    }
}
