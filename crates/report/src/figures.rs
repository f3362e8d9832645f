//! Owns how a number looks: three significant digits, thousands in groups, a dash where there is
//! none. Must not know what the number means. Every output prints through here, so that the same
//! figure reads the same in all of them. Start reading at [`significant`].

/// Printed if a figure cannot be given: not measured, or too few samples.
pub(crate) const NONE: &str = "-";

/// Below this, a figure is printed as a power of ten: no time in seconds or milliseconds is so short.
const PLAIN_MIN: f64 = 1e-6;

/// Three significant digits below 1000, whole numbers with grouped thousands above; a dash for what
/// is not finite.
pub(crate) fn significant(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if size >= 1e15 {
        return format!("{value:.2e}");
    }
    if size >= 999.5 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(size.round() as u64));
    }
    if size > 0.0 && size < PLAIN_MIN {
        return format!("{value:.2e}");
    }
    let decimals = match size {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.09995 => 3,
        v if v >= 0.009995 => 4,
        v if v >= 0.000_999_5 => 5,
        v if v >= 0.000_099_95 => 6,
        v if v >= 0.000_009_995 => 7,
        _ => 8,
    };
    format!("{value:.decimals$}")
}

/// A round number of an axis, without digits that say nothing: `0.5`, `2`, `10,000`.
pub(crate) fn round(value: f64) -> String {
    let text = significant(value);
    if text.contains('.') && !text.contains('e') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// [`significant`], or a dash for what is absent.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), significant)
}

/// For a program that computes with it: six significant digits, more than any of these measurements has, so that what
/// is cut off is the noise of binary fractions. `None` if it is not finite: no format has a number for that.
pub(crate) fn rounded(value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    format!("{value:.5e}").parse().ok()
}

/// A part of a whole in percent, three digits: `0.146 %`. Never `100 %` unless the part is the whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    if part < whole && percent >= 99.95 {
        return "more than 99.9 %".to_owned();
    }
    format!("{} %", significant(percent))
}

/// A whole number with its thousands in groups: `81,234`.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A ratio and its interval: `1.32x [1.28, 1.36]`. Two decimals, or as many as are needed to tell the ends apart and
/// to see on which side of 1 they lie.
pub(crate) fn ratio_with_interval(ratio: f64, low: f64, high: f64) -> String {
    let near_one = |end: f64| end != 1.0 && (end - 1.0).abs() < 0.005;
    let is_fine = (high - low).abs() < 0.02 || near_one(low) || near_one(high);
    let decimals = ratio_decimals(ratio, is_fine);
    format!("{ratio:.decimals$}x [{low:.decimals$}, {high:.decimals$}]")
}

/// A single ratio: `1.25x`.
pub(crate) fn ratio(value: f64) -> String {
    let decimals = ratio_decimals(value, value != 1.0 && (value - 1.0).abs() < 0.005);
    format!("{value:.decimals$}x")
}

/// A lower bound, rounded down.
pub(crate) fn ratio_down(value: f64) -> String {
    bound(value, f64::floor, 1e-9)
}

/// An upper bound, rounded up.
pub(crate) fn ratio_up(value: f64) -> String {
    bound(value, f64::ceil, -1e-9)
}

/// `slack` compensates for the error of binary fractions: 1.10 stays 1.10.
fn bound(value: f64, round: fn(f64) -> f64, slack: f64) -> String {
    let decimals = ratio_decimals(value, value != 1.0 && (value - 1.0).abs() < 0.005);
    let scale = 10f64.powi(decimals as i32);
    format!("{:.decimals$}x", round(value * scale + slack) / scale)
}

fn ratio_decimals(ratio: f64, is_fine: bool) -> usize {
    match ratio.abs() {
        r if r >= 100.0 => 0,
        r if r >= 10.0 => 1,
        r if r < 0.1 || is_fine => 3,
        _ => 2,
    }
}

/// A count with its noun: `1 visit`, `12 visits`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count))
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed<S: AsRef<str>>(items: &[S]) -> String {
    match items {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", most.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_never_printed_beyond_what_it_is() {
        for (bound, down, up) in [
            (1.0963, "1.09x", "1.10x"),
            (1.10, "1.10x", "1.10x"),
            (1.0019, "1.001x", "1.002x"),
            (0.0216, "0.021x", "0.022x"),
            (54.32, "54.3x", "54.4x"),
            (865.4, "865x", "866x"),
        ] {
            assert_eq!((ratio_down(bound).as_str(), ratio_up(bound).as_str()), (down, up));
        }
    }

    #[test]
    fn three_digits_and_grouped_thousands() {
        let cases = [
            (0.0, "0"),
            (0.01234, "0.0123"),
            (0.000_586, "0.000586"),
            (0.000_001_234, "0.00000123"),
            (-0.000_099_99, "-0.000100"),
            (1.0, "1.00"),
            (12.34, "12.3"),
            (999.4, "999"),
            (999.6, "1,000"),
            (1_234_567.0, "1,234,567"),
            (-81_234.0, "-81,234"),
            (1e18, "1.00e18"),
            (1e-9, "1.00e-9"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value), text, "{value}");
        }
    }

    #[test]
    fn a_program_gets_six_digits_and_nothing_that_is_not_finite() {
        let cases = [
            (84_213.193_847, Some(84_213.2)),
            (0.000_123_456_789, Some(0.000_123_457)),
            (1_234_567_890.0, Some(1_234_570_000.0)),
            (0.0, Some(0.0)),
            (-2.5, Some(-2.5)),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ];
        for (value, kept) in cases {
            assert_eq!(rounded(value), kept, "{value}");
        }
    }

    #[test]
    fn a_part_that_is_not_all_is_not_a_hundred_percent() {
        assert_eq!(percent(260, 177_522), "0.146 %");
        assert_eq!(percent(9_998, 10_000), "more than 99.9 %");
        assert_eq!((percent(7, 7), percent(0, 0)), ("100 %".to_owned(), "0 %".to_owned()));
    }

    #[test]
    fn an_interval_keeps_its_ends_apart() {
        assert_eq!(ratio_with_interval(1.32, 1.28, 1.36), "1.32x [1.28, 1.36]");
        assert_eq!(ratio_with_interval(1.004, 1.001, 1.007), "1.004x [1.001, 1.007]");
        assert_eq!(ratio_with_interval(1.02, 1.003, 1.04), "1.020x [1.003, 1.040]");
        assert_eq!(ratio_with_interval(123.4, 120.0, 130.0), "123x [120, 130]");
    }

    #[test]
    fn lists_read_as_a_person_writes_them() {
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(listed::<&str>(&[]), "");
        assert_eq!(counted(1, "visit"), "1 visit");
        assert_eq!(counted(1200, "visit"), "1,200 visits");
    }
}
