//! wrk's report as text. Owns its labels, widths and paddings. Start reading at [`report`].

use std::fmt::Write as _;

use super::figures::Figures;
use super::flags::Flags;
use super::stats::Stats;
use super::units::{format_binary, format_metric, format_micros, format_seconds};

const PERCENTS: [f64; 4] = [50.0, 75.0, 90.0, 99.0];

/// The text before the load.
pub(super) fn opening(flags: &Flags) -> String {
    let duration = format_seconds(flags.duration as f64);
    let Flags { threads, connections, url, .. } = flags;
    format!(
        "Running {duration} test @ {}\n  {threads} threads and {connections} connections\n",
        url.whole
    )
}

/// The text after the load.
pub(super) fn report(flags: &Flags, figures: &Figures) -> String {
    let mut text = "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n".to_owned();
    text += &row("Latency", &figures.latency, format_micros);
    text += &row("Req/Sec", &figures.rates, format_metric);
    if flags.latency {
        text.push_str("  Latency Distribution\n");
        for percent in PERCENTS {
            let value = padded(figures.latency.percentile(percent) as f64, format_micros, 10);
            writeln!(text, "{percent:>7.0}%{value}").expect(WRITES);
        }
    }
    counts(&mut text, figures).expect(WRITES);
    text
}

const WRITES: &str = "a string takes all that is written";

fn counts(text: &mut String, figures: &Figures) -> std::fmt::Result {
    let (runtime, bytes) =
        (format_micros(figures.runtime as f64), format_binary(figures.bytes as f64));
    writeln!(text, "  {} requests in {runtime}, {bytes}B read", figures.complete)?;
    let errors = &figures.errors;
    if errors.connect + errors.read + errors.write + errors.timeout > 0 {
        writeln!(
            text,
            "  Socket errors: connect {}, read {}, write {}, timeout {}",
            errors.connect, errors.read, errors.write, errors.timeout
        )?;
    }
    if errors.status > 0 {
        writeln!(text, "  Non-2xx or 3xx responses: {}", errors.status)?;
    }
    writeln!(text, "Requests/sec: {:>9.2}", figures.rate())?;
    writeln!(text, "Transfer/sec: {:>10}B", format_binary(figures.bytes_rate()))
}

fn row(name: &str, stats: &Stats, format: fn(f64) -> String) -> String {
    let mean = padded(stats.mean(), format, 8);
    let sd = padded(stats.sd(), format, 10);
    let max = padded(stats.max() as f64, format, 9);
    // C's output for 0 / 0.
    let within = stats.within_sd().map_or_else(|| "-nan".to_owned(), |share| format!("{share:.2}"));
    format!("    {name:<10}{mean}{sd}{max}{within:>8}%\n")
}

/// Right-aligned in `width` columns, so that digits align whether the unit has no letter, one or two. A text that is
/// too long is cut at its end, as in wrk.
fn padded(value: f64, format: fn(f64) -> String, width: usize) -> String {
    let shown = format(value);
    let n_letters = shown.bytes().rev().take(2).filter(u8::is_ascii_alphabetic).count();
    let pad = 2 - n_letters;
    let width = width - pad;
    format!("{shown:>width$.width$}{:pad$}", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_below_digits() {
        assert_eq!(padded(844.95, format_micros, 8), "844.95us");
        assert_eq!(padded(6.0, format_metric, 8), "  6.00  ");
        assert_eq!(padded(29_040.0, format_metric, 8), " 29.04k ");
        assert_eq!(padded(1_020_000.0, format_micros, 8), "  1.02s ");
    }
}
