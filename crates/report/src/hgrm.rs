//! The percentiles of a load as HdrHistogram prints them (.hgrm), for its plotters: response time in milliseconds, from
//! the instant at which a request was due. Five lines for each halving of what is beyond. Only for a load: a file has
//! one distribution; those of a run are in the log (`hlog`). Start reading at [`OUTPUT`].

use std::fmt::Write as _;

use record::LoadRecord;
use stats::{Histogram, SPAN_MAX};
use units::Nanos;

use crate::{Options, Output, Render, Written};

/// The text of HdrHistogram's `outputPercentileDistribution`.
pub(crate) static OUTPUT: Output = Output {
    name: "hgrm",
    extension: "hgrm",
    about: "response times of a load by percentile, for HdrHistogram's plotters",
    written: Written::OnRequest,
    run: None,
    load: Some(Render::Text(render)),
};

/// Lines for each halving of the share beyond.
const TICKS_PER_HALF: u32 = 5;

/// Buckets of a histogram of three digits.
const SUB_BUCKETS: u64 = 2048;

fn render(record: &LoadRecord, _: &Options) -> String {
    let spans = &record.latencies.response;
    let mut page = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for Line { value, percentile, count } in lines(spans) {
        let millis = value.as_millis_f64();
        let _ = write!(page, "{millis:12.3} {percentile:2.12} {count:10}");
        if percentile < 1.0 {
            let _ = write!(page, " {:14.2}", 1.0 / (1.0 - percentile));
        }
        page.push('\n');
    }
    let millis = |span: Option<Nanos>| span.unwrap_or_default().as_millis_f64();
    let (mean, sd, max) = (millis(spans.mean()), millis(spans.sd()), millis(spans.max()));
    let _ = writeln!(page, "#[Mean    = {mean:12.3}, StdDeviation   = {sd:12.3}]");
    let _ = writeln!(page, "#[Max     = {max:12.3}, Total count    = {:12}]", spans.count());
    let _ = writeln!(page, "#[Buckets = {:12}, SubBuckets     = {SUB_BUCKETS:12}]", buckets());
    page
}

/// A percentile (0 to 1), its value, and how many spans are at most that.
struct Line {
    value: Nanos,
    percentile: f64,
    count: u64,
}

fn lines(spans: &Histogram) -> Vec<Line> {
    let total = spans.count();
    let Some((max, _)) = spans.buckets().last() else { return Vec::new() };
    let mut percentiles = (0..).map(percentile).peekable();
    let (mut lines, mut count) = (Vec::new(), 0);
    for (value, here) in spans.buckets().filter(|(value, _)| *value < max) {
        count += here;
        // The slack keeps 450 of 1500 at 0.3.
        let reached = count as f64 / total as f64 + 1e-12;
        while let Some(percentile) = percentiles.next_if(|percentile| *percentile <= reached) {
            lines.push(Line { value, percentile, count });
        }
    }
    // From here on every percentile has the longest span; half a request beyond is where steps end.
    let is_seen = |percentile: &f64| 1.0 - percentile > 0.5 / total as f64;
    let rest = percentiles.take_while(is_seen).chain([1.0]);
    lines.extend(rest.map(|percentile| Line { value: max, percentile, count: total }));
    lines
}

/// The n-th percentile: what is beyond is halved in [`TICKS_PER_HALF`] equal steps.
fn percentile(n: u32) -> f64 {
    let beyond = (-f64::from(n / TICKS_PER_HALF)).exp2();
    let tick = f64::from(n % TICKS_PER_HALF) / f64::from(2 * TICKS_PER_HALF);
    1.0 - beyond + beyond * tick
}

/// Buckets that cover [`SPAN_MAX`], each twice as wide as the one before.
fn buckets() -> u32 {
    (SPAN_MAX.0 / SUB_BUCKETS).ilog2() + 2
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;

    use super::*;
    use crate::testdata;

    #[test]
    fn every_line_is_what_hdrhistogram_says_of_that_percentile() {
        let load = testdata::load();
        let encoded = load.latencies.response.encode();
        let theirs: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut &encoded[..]).unwrap();
        let text = render(&load, &Options::default());
        let mut rows = 0;
        for line in text.lines().skip(2).filter(|line| !line.starts_with('#')) {
            let words: Vec<f64> =
                line.split_whitespace().map(|word| word.parse().unwrap()).collect();
            // A line has the end of its bucket, as in the format of the Java library. 0.55 x 1500 is 825 and a rounding
            // error: without the slack they take the next request.
            let value = theirs.highest_equivalent(theirs.value_at_quantile(words[1] - 1e-9));
            assert!((value as f64 / 1e6 - words[0]).abs() <= 0.000_6, "{line}: {value}");
            assert_eq!(theirs.count_between(0, value), words[2] as u64, "{line}");
            rows += 1;
        }
        assert!(rows > 30, "{text}");
        let theirs_mean = format!("#[Mean    = {:12.3},", theirs.mean() / 1e6);
        assert!(text.contains(&theirs_mean), "{theirs_mean} is not in\n{text}");
    }

    #[test]
    fn a_load_without_replies_has_no_line() {
        let empty = LoadRecord::empty(testdata::load().plan);
        let text = render(&empty, &Options::default());
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 2, "{text}");
        assert!(!text.contains("NaN"), "{text}");
    }
}
