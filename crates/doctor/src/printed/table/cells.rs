//! Owns what a cell of a table says: a number with its unit and its rounding. Start reading at [`Cell::read`].

use crate::printed::figure::Figure;

/// A number in a cell, in its own unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    number: f64,
    step: f64,
    /// Whether it is whole and ends in zeros, so that it may have been rounded further.
    zeros: u32,
    /// What stands behind it, in lower case ("ms", "mb/s", "%", "").
    unit: String,
}

impl Cell {
    /// The number that a cell begins with; what marks it up is left away.
    pub(super) fn read(text: &str) -> Option<Self> {
        let bare = text.trim().trim_matches(['*', '_', '`', '"', '\'']).trim();
        let bare = bare.trim_start_matches(['~', '≈', '$']).trim_start();
        let end = bare
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '\u{a0}' | '\u{202f}')))
            .unwrap_or(bare.len());
        let (digits, rest) = bare.split_at(end);
        let digits = digits.trim_end_matches(['.', ',', '\u{a0}', '\u{202f}']);
        let plain = plain(digits)?;
        let number: f64 = plain.parse().ok().filter(|number: &f64| number.is_finite())?;
        let decimals = plain.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i32);
        let whole = plain.trim_end_matches('0');
        let zeros = if decimals > 0 { 0 } else { (plain.len() - whole.len()) as u32 };
        let unit = unit(rest);
        Some(Self { number, step: 10f64.powi(-decimals), zeros, unit })
    }

    /// A plain number; "12.3k" is 12,300.
    pub(super) fn plain(&self) -> Option<Figure> {
        let unit = self.unit.split(['/', ' ']).next().unwrap_or("");
        let scale = match unit {
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "" | "req" | "reqs" | "requests" | "rps" | "hits" | "trans" | "r" | "s" => 1.0,
            _ => return None,
        };
        // A whole number is taken for a count; what is rounded is a rate, which is read as one.
        let is_count = scale == 1.0 && self.step == 1.0;
        Some(if is_count { Figure::exact(self.number) } else { self.figure(scale) })
    }

    /// A rate. One that ends in zeros may have been rounded by whoever wrote it down.
    pub(super) fn rate(&self) -> Option<Figure> {
        let plain = self.plain()?;
        let step = match self.zeros {
            _ if plain.low < plain.high => return Some(plain),
            0..=ZEROS_BY_CHANCE => 1.0,
            zeros => 10f64.powi(zeros as i32).min(plain.value * ROUNDED_SHARE_MAX),
        };
        Some(Figure::rounded_or_cut(plain.value, step))
    }

    /// Seconds; without a unit of its own, in that of the column.
    pub(super) fn seconds(&self, column: Option<f64>) -> Option<Figure> {
        let scale = match self.unit.as_str() {
            "" => column?,
            unit => time_unit(unit)?,
        };
        Some(self.figure(scale))
    }

    /// Bytes, or bytes a second, which are powers of 1000 or of 1024: both are thought possible.
    pub(super) fn bytes(&self, column: Option<f64>) -> Option<Figure> {
        let unit = self.unit.trim_end_matches("/s").trim_end_matches("/sec").trim_end_matches("ps");
        let power = match unit {
            "" => return Some(self.figure(column?)),
            unit => byte_power(unit)?,
        };
        let low = self.figure(1000f64.powi(power));
        let high = self.figure(1024f64.powi(power));
        Some(Figure { low: low.low, value: low.value, high: high.high })
    }

    /// A share in percent, as a number of hundreds.
    pub(super) fn percent(&self) -> Option<Figure> {
        matches!(self.unit.as_str(), "%" | "").then(|| self.figure(0.01))
    }

    fn figure(&self, scale: f64) -> Figure {
        Figure::rounded_or_cut(self.number * scale, self.step * scale)
    }
}

/// Zeros at the end of a whole number that are no sign of rounding.
const ZEROS_BY_CHANCE: u32 = 2;
/// A rate that ends in zeros is taken to be rounded, but never to less than this share of it.
const ROUNDED_SHARE_MAX: f64 = 0.05;

/// Digits without marks between thousands, and with a point before decimals.
fn plain(digits: &str) -> Option<String> {
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let digits = digits.replace(['\u{a0}', '\u{202f}'], "");
    let groups: Vec<&str> = digits.split(',').collect();
    let are_thousands = groups[0].len() <= 3
        && groups[1..].iter().all(|group| group.split('.').next().unwrap_or("").len() == 3);
    match groups.len() {
        1 => Some(digits),
        _ if are_thousands => Some(groups.concat()),
        // A decimal comma.
        2 if !digits.contains('.') => Some(groups.join(".")),
        _ => None,
    }
}

/// The unit behind a number; a remark in brackets and a spread after it are left away.
fn unit(rest: &str) -> String {
    let end = rest.find(['(', '[', '±', '|', '*', '`']).unwrap_or(rest.len());
    let unit = rest[..end].trim().trim_end_matches('"').to_lowercase();
    unit.split_once("+/-").map_or(unit.as_str(), |(unit, _)| unit).trim().replace(['µ', 'μ'], "u")
}

/// A unit of time in seconds.
pub(super) fn time_unit(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1e-9),
        "us" | "usec" | "usecs" | "microseconds" => Some(1e-6),
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => Some(1e-3),
        "s" | "sec" | "secs" | "seconds" => Some(1.0),
        "m" | "min" => Some(60.0),
        _ => None,
    }
}

/// Powers of a thousand in a unit of bytes.
fn byte_power(unit: &str) -> Option<i32> {
    match unit {
        "b" | "bytes" => Some(0),
        "k" | "kb" | "kib" | "kbyte" | "kbytes" => Some(1),
        "m" | "mb" | "mib" | "mbyte" | "mbytes" => Some(2),
        "g" | "gb" | "gib" => Some(3),
        "t" | "tb" | "tib" => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        Some(Cell::read(text)?.plain()?.value)
    }

    fn seconds(text: &str) -> Option<f64> {
        Some(Cell::read(text)?.seconds(None)?.value)
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, number) in [
            ("1,234,567", 1_234_567.0),
            ("**12,345.5** req/s", 12_345.5),
            ("12.3k", 12_300.0),
            ("1,5", 1.5),
            ("~ 80", 80.0),
            ("`7`", 7.0),
            ("12\u{202f}345", 12_345.0),
        ] {
            assert_eq!(value(text), Some(number), "{text}");
        }
        for text in ["—", "n/a", "", "-1", "nginx", "1.2.3"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn times_and_bytes_carry_their_units() {
        let close = |text: &str, wanted: f64| {
            let found = seconds(text).unwrap();
            assert!((found - wanted).abs() < wanted * 1e-9, "{text}: {found}");
        };
        close("1.23ms", 1.23e-3);
        close("850us", 850e-6);
        close("850 µs", 850e-6);
        close("1.2s", 1.2);
        close("2.00 ms (± 0.1)", 2e-3);
        assert_eq!(seconds("5"), None, "no unit is said");
        let bytes = Cell::read("1.79GB/s").unwrap().bytes(None).unwrap();
        assert!(bytes.low < 1.79e9 && bytes.high > 1.79 * 1024f64.powi(3), "{bytes:?}");
    }

    #[test]
    fn a_round_rate_may_have_been_rounded() {
        let rate = Cell::read("32000").unwrap().rate().unwrap();
        assert!(rate.low <= 31_500.0 && rate.high >= 32_500.0, "{rate:?}");
        let rate = Cell::read("32123").unwrap().rate().unwrap();
        assert!(rate.high < 32_125.0, "{rate:?}");
    }
}
