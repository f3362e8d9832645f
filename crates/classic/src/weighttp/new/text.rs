//! What weighttp 0.5 prints: its report in JSON, its warnings, its CSV. Owns labels and widths. Start
//! reading at [`report`].

use super::figures::{Figures, PERCENTS, Row};

/// The report; `extended`: with all percentiles, not the median alone.
pub(super) fn report(figures: &Figures, extended: bool) -> String {
    let counts = &figures.counts;
    if counts.done == 0 {
        return String::new();
    }
    let micros = figures.elapsed;
    let per_s = u128::from(counts.done) * 1_000_000 / u128::from(micros);
    let kbytes = u128::from(counts.bytes / 1024) * 1_000_000 / u128::from(micros);
    let (secs, rest) = (micros / 1_000_000, micros % 1_000_000);
    let bodies = counts.bodies + counts.failed_bodies;
    let [c2, c3, c4, c5] = counts.classes;
    format!(
        "{{\n  \"reqs_per_sec\": {per_s},\n  \"kBps_per_sec\": {kbytes},\n  \
         \"secs_elapsed\": {secs}.{rest:06},\n  \
         \"request_counts\": {{\n    \"started\":    {},\n    \"retired\":    {},\n    \
         \"keep-alive\": {}\n  }},\n  \
         \"response_counts\": {{\n    \"pass\": {},\n    \"fail\": {},\n    \"errs\": {}\n  }},\n  \
         \"status_codes\": {{\n    \"2xx\":  {c2},\n    \"3xx\":  {c3},\n    \"4xx\":  {c4},\n    \
         \"5xx\":  {c5}\n  }},\n  \
         \"traffic\": {{\n    \"bytes_total\":   {:>12},\n    \"bytes_headers\": {:>12},\n    \
         \"bytes_body\":    {bodies:>12}\n  }},\n{},\n{},\n{},\n{}\n}}\n",
        counts.started,
        counts.done,
        figures.kept_alive,
        counts.succeeded,
        counts.failed,
        counts.errored,
        counts.bytes,
        counts.bytes - bodies,
        row("connect_times", &figures.connect, extended),
        row("time_to_first_byte", &figures.first_byte, extended),
        row("response_times", &figures.response, extended),
        row("total_times", &figures.total, extended),
    )
}

fn row(name: &str, row: &Row, extended: bool) -> String {
    let Row { n, mean, sd, min, percentiles, max } = row;
    let line = |(percent, span): (&u64, &u64)| format!("     \"{percent}%\": {span:>9},\n");
    let shown = if extended { PERCENTS.len() } else { 1 };
    let lines: String = PERCENTS.iter().zip(percentiles).take(shown).map(line).collect();
    format!(
        "  \"{name}\": {{\n     \"num\": {n:>9},\n     \"avg\": {mean:>9},\n     \
         \"stddev\": {sd:>6.0},\n     \"unit\": \"us\",\n      \"0%\": {min:>9},\n{lines}    \
         \"100%\": {max:>9}\n  }}"
    )
}

/// Its message about each distribution whose median is far from its mean. The words are ab's.
pub(super) fn warnings(figures: &Figures) -> String {
    let rows = [
        ("connect times", &figures.connect),
        ("time to first byte", &figures.first_byte),
        ("response times", &figures.response),
        ("total times", &figures.total),
    ];
    let warning = |(name, row): (&str, &Row)| {
        let apart = row.mean.abs_diff(row.percentiles[0]) as f64;
        if apart > 2.0 * row.sd {
            return format!(
                "ERROR: The median and mean for the {name} are more than twice the standard\n       \
                 deviation apart. These results are NOT reliable.\n"
            );
        }
        if apart > row.sd {
            return format!(
                "WARNING: The median and mean for the {name} are not within a normal deviation\n        \
                 These results are probably not that reliable.\n"
            );
        }
        String::new()
    };
    rows.into_iter().map(warning).collect()
}

/// Percentiles of response times from 0 to 100 (-e).
pub(super) fn csv(sorted: &[u64]) -> String {
    let at = |percent: usize| {
        let last = sorted.len().saturating_sub(1);
        sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or(0)
    };
    let rows: String = (0..=100).map(|percent| format!("{percent},{}\n", at(percent))).collect();
    format!("Percentage served,Time in us\n{rows}")
}
