//! http_load's report as text. Owns its labels, the figures that it leaves out and its floats. Start
//! reading at [`report`].

use super::figures::{Figures, Spans};

/// The whole report. Quotients are computed with C floats, as in http_load.
pub(super) fn report(figures: &Figures, checksum: bool) -> String {
    let (completed, bytes) = (figures.completed, figures.bytes as f32);
    let elapsed = (figures.elapsed as f64 / 1e6) as f32;
    let mut text = format!(
        "{completed} fetches, {} max parallel, {} bytes, in {} seconds\n",
        figures.parallel_max,
        general(bytes.into()),
        general(elapsed.into())
    );
    if completed > 0 {
        let mean = bytes / completed as f32;
        text += &format!("{} mean bytes/connection\n", general(mean.into()));
    }
    if f64::from(elapsed) > 0.01 {
        let (fetches, bytes) = (completed as f32 / elapsed, bytes / elapsed);
        text += &format!(
            "{} fetches/sec, {} bytes/sec\n",
            general(fetches.into()),
            general(bytes.into())
        );
    }
    text += &spans("connect", &figures.connects);
    text += &spans("first-response", &figures.responses);
    if figures.timeouts > 0 {
        text += &format!("{} timeouts\n", figures.timeouts);
    }
    if figures.bad > 0 {
        let what = if checksum { "checksums" } else { "byte counts" };
        text += &format!("{} bad {what}\n", figures.bad);
    }
    text += "HTTP response codes:\n";
    for (code, n) in &figures.codes {
        text += &format!("  code {code:03} -- {n}\n");
    }
    text
}

fn spans(name: &str, spans: &Spans) -> String {
    if spans.n == 0 {
        return String::new();
    }
    let mean = f64::from(spans.total as f32 / spans.n as f32) / 1000.0;
    let millis = |micros: u64| general(f64::from(micros as f32) / 1000.0);
    let (max, min) = (millis(spans.max), millis(spans.min));
    format!("msecs/{name}: {} mean, {max} max, {min} min\n", general(mean))
}

/// printf(3)'s `%g`: 6 significant digits without trailing zeros, with an exponent if it is below -4 or above 5.
pub(super) fn general(number: f64) -> String {
    const DIGITS: i32 = 6;
    if number == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("that is how it is written");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if !(-4..DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (DIGITS - 1 - exponent) as usize;
    trimmed(&format!("{number:.decimals$}")).to_owned()
}

fn trimmed(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the GNU C library's printf prints them.
    #[test]
    fn numbers_have_six_digits() {
        let cases = [
            (0.0, "0"),
            (5.0, "5"),
            (5.000_16, "5.00016"),
            (0.1, "0.1"),
            (123_456.0, "123456"),
            (1_234_565.0, "1.23456e+06"),
            (999_999.5, "1e+06"),
            (0.000_123_456_7, "0.000123457"),
            (0.000_012_345_67, "1.23457e-05"),
            (1e10, "1e+10"),
            (1.5e100, "1.5e+100"),
            (100.0, "100"),
        ];
        for (number, text) in cases {
            assert_eq!(general(number), text);
        }
    }
}
