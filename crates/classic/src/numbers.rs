//! Owns the parsing of quantities from words. A number has a comma or a point before its decimals, and optional marks
//! between groups of three digits. If two readings are possible, both are returned. Must not know labels or reports.
//! Start reading at [`figure`].

use units::{Bytes, Nanos};

/// A number, and the unit of the last digit that was printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) step: f64,
}

impl Figure {
    fn times(self, scale: f64) -> Self {
        Self { value: self.value * scale, step: self.step * scale }
    }
}

/// The possible meanings of a numeric word.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reading {
    /// Only one.
    Sure(Figure),
    /// Two: "1,234" is 1.234 if the comma separates decimals, and 1234 if it groups digits.
    Either { decimal: Figure, grouped: Figure },
}

/// The role of the comma in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comma {
    Unknown,
    BeforeDecimals,
    BetweenGroups,
}

impl Reading {
    /// The meaning, given the role of the comma in the text.
    pub(crate) fn settle(self, comma: Comma) -> Option<Figure> {
        match (self, comma) {
            (Self::Sure(figure), _) => Some(figure),
            (Self::Either { decimal, .. }, Comma::BeforeDecimals) => Some(decimal),
            (Self::Either { grouped, .. }, Comma::BetweenGroups) => Some(grouped),
            (Self::Either { .. }, Comma::Unknown) => None,
        }
    }
}

/// The word without the characters that surround a number in print.
pub(crate) fn bare(word: &str) -> &str {
    word.trim_start_matches(['(', '[', '"']).trim_end_matches([',', ';', ')', ']', '"'])
}

/// A count, without surrounding characters. It has no decimals: marks in it group digits.
pub(crate) fn count(word: &str) -> Option<u64> {
    let word = bare(word);
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        return word.parse().ok();
    }
    let mark = word.chars().find(|c| !c.is_ascii_digit()).filter(|c| ",.'_".contains(*c))?;
    ungrouped(word, mark)?.parse().ok()
}

/// A finite, non-negative number, without surrounding characters. NaN, which some tools print for nothing, is rejected.
pub(crate) fn figure(word: &str) -> Option<Reading> {
    let word = bare(word);
    word.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    if let Some((mantissa, exponent)) = word.split_once(['e', 'E']) {
        let exponent: i32 = exponent.parse().ok()?;
        // A mantissa has one digit before its decimals, and no groups.
        let mantissa = figure(mantissa)?.settle(Comma::BeforeDecimals)?;
        return sure(mantissa.times(10_f64.powi(exponent)));
    }
    let points = word.matches('.').count();
    let commas = word.matches(',').count();
    let quotes = word.matches(['\'', '_']).count();
    match (points, commas, quotes) {
        (0 | 1, 0, 0) => sure(plain(word)?),
        (0, 1, 0) => {
            let decimal = plain(&word.replace(',', "."))?;
            match ungrouped(word, ',') {
                Some(grouped) => Some(Reading::Either { decimal, grouped: plain(&grouped)? }),
                None => sure(decimal),
            }
        }
        (_, 0, 0) => sure(plain(&ungrouped(word, '.')?)?),
        (0, _, 0) => sure(plain(&ungrouped(word, ',')?)?),
        (1, _, 0) if word.rfind('.') > word.rfind(',') => sure(with_groups(word, ',', '.')?),
        (_, 1, 0) => sure(with_groups(word, '.', ',')?),
        (0 | 1, 0, _) => {
            let mark = if word.contains('\'') { '\'' } else { '_' };
            sure(with_groups(word, mark, '.')?)
        }
        (0, 1, _) => sure(with_groups(word, '\'', ',')?),
        _ => None,
    }
}

fn sure(figure: Figure) -> Option<Reading> {
    figure.value.is_finite().then_some(Reading::Sure(figure))
}

/// Digits, with an optional decimal point and more digits.
fn plain(word: &str) -> Option<Figure> {
    let known = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = known.then(|| word.parse().ok())??;
    let decimals = word.split_once('.').map_or(0, |(_, decimals)| decimals.len().min(30));
    Some(Figure { value, step: 0.1_f64.powi(decimals as i32) })
}

fn with_groups(word: &str, mark: char, point: char) -> Option<Figure> {
    let Some((whole, decimals)) = word.split_once(point) else {
        return plain(&ungrouped(word, mark)?);
    };
    plain(&format!("{}.{decimals}", ungrouped(whole, mark)?))
}

/// A number without the marks between its groups of three digits; `None` if the groups are different.
fn ungrouped(word: &str, mark: char) -> Option<String> {
    let mut groups = word.split(mark);
    let first = groups.next()?;
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let begins = (1..=3).contains(&first.len()) && digits(first) && !first.starts_with('0');
    let mut rest = groups.clone();
    (begins && rest.next().is_some() && groups.all(|group| group.len() == 3 && digits(group)))
        .then(|| word.replace(mark, ""))
}

/// A number and the unit after it.
pub(crate) fn with_unit(word: &str) -> Option<(Reading, &str)> {
    let word = bare(word);
    let end = word.find(|c: char| !c.is_ascii_digit() && !".,'".contains(c)).unwrap_or(word.len());
    Some((figure(&word[..end])?, &word[end..]))
}

/// The role of the comma in a number, if only one is possible.
pub(crate) fn comma(word: &str) -> Comma {
    let Some((Reading::Sure(_), unit)) = with_unit(word) else { return Comma::Unknown };
    let number = bare(word).strip_suffix(unit).unwrap_or(word);
    match number.rfind(',') {
        None => Comma::Unknown,
        Some(at) if number.matches(',').count() > 1 || number.rfind('.') > Some(at) => {
            Comma::BetweenGroups
        }
        Some(_) => Comma::BeforeDecimals,
    }
}

/// Seconds in a unit of time.
pub(crate) fn unit_secs(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

/// A duration with its units, in seconds: "1.06ms", "1m30s".
pub(crate) fn span(word: &str, comma: Comma) -> Option<Figure> {
    let mut rest = bare(word);
    let mut sum = Figure { value: 0.0, step: 0.0 };
    let mut last = f64::INFINITY;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && !".,".contains(c))?;
        let behind = &rest[digits..];
        let unit = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let scale = unit_secs(&behind[..unit]).filter(|scale| *scale < last)?;
        let part = figure(&rest[..digits])?.settle(comma)?.times(scale);
        sum = Figure { value: sum.value + part.value, step: part.step };
        (last, rest) = (scale, &behind[unit..]);
    }
    last.is_finite().then_some(sum)
}

/// Bytes in a unit of size: "KB" and "KiB" are powers of 1024, "kB" powers of 1000.
pub(crate) fn unit_bytes(unit: &str) -> Option<f64> {
    const K: f64 = 1024.0;
    Some(match unit.trim_end_matches("/s") {
        "B" => 1.0,
        "kB" => 1e3,
        "KB" | "KiB" => K,
        "MB" | "MiB" => K * K,
        "GB" | "GiB" => K * K * K,
        "TB" | "TiB" => K * K * K * K,
        _ => return None,
    })
}

/// A size with its unit, such as "1.5MB", in bytes.
pub(crate) fn size(word: &str, comma: Comma) -> Option<Figure> {
    let (reading, unit) = with_unit(word)?;
    Some(reading.settle(comma)?.times(unit_bytes(unit)?))
}

/// Bytes from a number that was printed rounded.
pub(crate) fn bytes(number: f64) -> Bytes {
    Bytes(number.round() as u64)
}

/// Milliseconds as they were printed.
pub(crate) fn millis(number: f64) -> Nanos {
    Nanos::from_secs_f64(number / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(word: &str) -> Option<f64> {
        figure(word)?.settle(Comma::Unknown).map(|figure| figure.value)
    }

    #[test]
    fn marks_are_read_where_they_can_mean_one_thing_only() {
        for (word, wanted) in [
            ("12.34", Some(12.34)),
            ("12,34", Some(12.34)),
            ("0,072", Some(0.072)),
            ("27813,700", Some(27813.7)),
            ("1,234", None),
            ("1,234,567", Some(1_234_567.0)),
            ("1,234.50", Some(1234.5)),
            ("1.234,50", Some(1234.5)),
            ("1'234.5", Some(1234.5)),
            ("1.36e+08", Some(1.36e8)),
            ("-nan", None),
            ("NaN", None),
            ("1.2.3", None),
            ("12,34,5", None),
        ] {
            assert_eq!(value(word), wanted, "{word}");
        }
        assert_eq!(figure("1,234").unwrap().settle(Comma::BeforeDecimals).unwrap().value, 1.234);
        assert_eq!(figure("1,234").unwrap().settle(Comma::BetweenGroups).unwrap().value, 1234.0);
    }

    #[test]
    fn a_count_has_no_decimals() {
        for (word, wanted) in [
            ("(283),", Some(283)),
            ("28.3", None),
            ("-1", None),
            ("", None),
            ("2,000", Some(2000)),
            ("2.000", Some(2000)),
            ("7'307'256", Some(7_307_256)),
            ("12,34", None),
            ("0,123", None),
        ] {
            assert_eq!(count(word), wanted, "{word}");
        }
    }

    #[test]
    fn units_of_each_tool_are_read() {
        let secs =
            |word| span(word, Comma::Unknown).map(|figure| Nanos::from_secs_f64(figure.value));
        assert_eq!(secs("1.06ms"), Some(Nanos(1_060_000)));
        assert_eq!(secs("17us,"), Some(Nanos(17_000)));
        assert_eq!(
            (secs("2.00m"), secs("1m30s")),
            (Some(Nanos::from_secs(120)), Some(Nanos::from_secs(90)))
        );
        assert_eq!(
            (secs("703.94µs"), secs("12"), secs("1s2m")),
            (Some(Nanos(703_940)), None, None)
        );
        let of = |word| size(word, Comma::Unknown).map(|figure| bytes(figure.value));
        assert_eq!((of("1.50KB"), of("269.46MB/s")), (Some(Bytes(1536)), Some(Bytes(282_549_289))));
        assert_eq!((of("7"), of("2kB")), (None, Some(Bytes(2000))));
    }

    #[test]
    fn a_comma_is_known_where_it_can_be_one_thing_only() {
        assert_eq!(
            (comma("12,5ms"), comma("(1,8).")),
            (Comma::BeforeDecimals, Comma::BeforeDecimals)
        );
        assert_eq!(
            (comma("1,234.5"), comma("1,000,000")),
            (Comma::BetweenGroups, Comma::BetweenGroups)
        );
        assert_eq!(
            (comma("1,234"), comma("12.5"), comma("a,b")),
            (Comma::Unknown, Comma::Unknown, Comma::Unknown)
        );
    }

    #[test]
    fn a_step_is_one_unit_of_the_last_digit() {
        let step = |word| figure(word).unwrap().settle(Comma::Unknown).unwrap().step;
        assert!((step("0.072") - 0.001).abs() < 1e-12 && step("2000") == 1.0);
        assert!((span("1.06ms", Comma::Unknown).unwrap().step - 1e-5).abs() < 1e-12);
    }
}
