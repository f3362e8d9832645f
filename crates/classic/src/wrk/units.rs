//! wrk's units: how it parses `1k` and `2m`, and how it prints `1.06ms` and `269.46MB`. Start reading at [`Scale`].

/// A unit and those above it, each `times` the one before.
#[derive(Debug)]
pub(super) struct Scale {
    times: u32,
    base: &'static str,
    above: &'static [&'static str],
}

/// Microseconds up to seconds.
const MICROS: Scale = Scale { times: 1000, base: "us", above: &["ms", "s"] };
/// Seconds and above.
const SECONDS: Scale = Scale { times: 60, base: "s", above: &["m", "h"] };
const BINARY: Scale = Scale { times: 1024, base: "", above: &["K", "M", "G", "T", "P"] };
const METRIC: Scale = Scale { times: 1000, base: "", above: &["k", "M", "G", "T", "P"] };

impl Scale {
    /// In the first unit in which it is below 0.85 of the next. The last unit is never used: two hours are `120m`.
    fn format(&self, amount: f64, decimals: usize) -> String {
        let (mut amount, mut unit) = (amount, self.base);
        let next_at = f64::from(self.times) * 0.85;
        for above in &self.above[..self.above.len() - 1] {
            if amount < next_at {
                break;
            }
            amount /= f64::from(self.times);
            unit = above;
        }
        format!("{amount:.decimals$}{unit}")
    }

    /// Like scanf(3) with `%lu%2s`: a number, and the next two characters. The rest is ignored. An overflow wraps
    /// around, as in C.
    fn scan(&self, text: &str) -> Option<u64> {
        let text = text.trim_start_matches(is_space);
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, rest) = digits.split_at(end);
        if digits.is_empty() {
            return None;
        }
        // strtoul(3): an overflow gives the largest number.
        let number: u64 = digits.parse().unwrap_or(u64::MAX);
        let number = if is_negative { number.wrapping_neg() } else { number };
        let rest = rest.trim_start_matches(is_space);
        let unit: String = rest.chars().take_while(|c| !is_space(*c)).take(2).collect();
        if unit.is_empty() || (!self.base.is_empty() && unit.eq_ignore_ascii_case(self.base)) {
            return Some(number);
        }
        let mut scale = 1u64;
        for above in self.above {
            scale = scale.wrapping_mul(self.times.into());
            if unit.eq_ignore_ascii_case(above) {
                return Some(number.wrapping_mul(scale));
            }
        }
        None
    }
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// A number in the form of `-c` and `-t`.
pub(super) fn scan_metric(text: &str) -> Option<u64> {
    METRIC.scan(text)
}

/// A duration in the form of `-d` and `--timeout`, in seconds.
pub(super) fn scan_time(text: &str) -> Option<u64> {
    SECONDS.scan(text)
}

/// Bytes.
pub(super) fn format_binary(bytes: f64) -> String {
    BINARY.format(bytes, 2)
}

/// A number of things.
pub(super) fn format_metric(number: f64) -> String {
    METRIC.format(number, 2)
}

/// Microseconds.
pub(super) fn format_micros(micros: f64) -> String {
    if micros >= 1e6 { SECONDS.format(micros / 1e6, 2) } else { MICROS.format(micros, 2) }
}

/// Whole seconds.
pub(super) fn format_seconds(seconds: f64) -> String {
    SECONDS.format(seconds, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_begins_at_085_of_it() {
        let micros =
            [0.0, 844.95, 849.99, 850.0, 27_540.0, 849_999.0, 850_000.0, 1e6, 50.9e6, 51e6];
        let expected = [
            "0.00us", "844.95us", "849.99us", "0.85ms", "27.54ms", "850.00ms", "0.85s", "1.00s",
            "50.90s", "0.85m",
        ];
        // Microseconds are never printed in seconds: they end where the other scale begins.
        assert_eq!(micros.map(format_micros)[..6], expected[..6]);
        assert_eq!(format_micros(850_000.0), "850.00ms");
        assert_eq!(micros.map(format_micros)[7..], expected[7..]);
        let seconds = [1.0, 50.0, 51.0, 60.0, 90.0, 7200.0].map(format_seconds);
        assert_eq!(seconds, ["1s", "50s", "1m", "1m", "2m", "120m"]);
        assert_eq!([871.0, 96.54 * 1024.0].map(format_binary), ["0.85K", "96.54K"]);
        assert_eq!([6.0, 851.0, 29_040.0].map(format_metric), ["6.00", "0.85k", "29.04k"]);
    }

    #[test]
    fn numbers_are_read_as_wrk_reads_them() {
        let cases = [
            ("10", Some(10)),
            (" 1k", Some(1000)),
            ("1 K", Some(1000)),
            ("2M", Some(2_000_000)),
            ("1k0", None),
            ("1kxx", None),
            ("1.5", None),
            ("x", None),
            ("", None),
            ("-1", Some(u64::MAX)),
        ];
        for (text, number) in cases {
            assert_eq!(scan_metric(text), number, "{text}");
        }
        let times = ["1", "1S", "2m", "1h", "1x", "1s5", "3 m"].map(scan_time);
        assert_eq!(times, [Some(1), Some(1), Some(120), Some(3600), None, None, Some(180)]);
    }
}
