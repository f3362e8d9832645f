//! Owns the check that the figures of one distribution can be those of one distribution. Start reading at
//! [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::figure::Figure;
use crate::printed::row::{Phase, Printed, Row};
use crate::printed::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "impossible_order",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    title: "no latencies have these statistics",
    meaning: "figures were mixed up, edited, or are of different runs",
    detection: "min <= median <= max and min <= mean <= max; percentiles rise; |mean - median| <= sd; \
                sd^2 <= (max - mean)(mean - min); mean >= (1 - q) x quantile and <= q x quantile + (1 - q) x max; \
                each within the rounding of what is printed, from 20 requests on",
    remedy: "ask for the raw output of the tool",
    example: "median 5 ms, mean 1 ms: half of the requests alone make a mean of 2.5 ms",
    source: "Mallows, American Statistician 45(3), 1991 (mean and median); Bhatia and Davis, American Mathematical \
             Monthly 107(4), 2000 (standard deviation); Markov's inequality",
    touches: &[(Conclusion::Latency, Effect::Void), (Conclusion::Rate, Effect::InDoubt)],
    look,
};

/// Tools estimate the deviation from n - 1, and their medians may be one sample off: below this many requests
/// that matters.
const REQUESTS_MIN: f64 = 20.0;
/// How far a quantile of a histogram may be off: HDR histograms keep two to three digits.
const BUCKET_SHARE: f64 = 0.01;

fn look(printed: &Printed) -> Vec<Seen> {
    printed.indexed().filter_map(|(at, row)| look_at(at, row)).collect()
}

fn look_at(at: usize, row: &Row) -> Option<Seen> {
    let requests = row.complete.map_or(f64::INFINITY, |complete| complete.value);
    if requests < REQUESTS_MIN {
        return None;
    }
    // One way of rounding keeps the order, except where a median is the middle of a step.
    let keeps_order = row.tool().is_some_and(|tool| tool != "httperf");
    let order = Order { keeps_order, requests };
    let of_phases = row.phases.iter().flat_map(|phase| order.of_phase(phase));
    let broken: Vec<String> = of_phases.chain(order.of_percentiles(row)).collect();
    let first = broken.first()?;
    let more = match broken.len() {
        1 => String::new(),
        n => format!(", and {}", crate::words::count(n as u64 - 1, "more contradiction")),
    };
    let evidence = format!("{}: {first}{more}", row.name);
    Some(Seen { certainty: Certainty::Confirmed, rows: vec![at], share: None, evidence })
}

/// A figure with its name.
type Named = (&'static str, Option<Figure>);

/// How figures of one row are held against one another.
#[derive(Clone, Copy)]
struct Order {
    /// Whether all were rounded in one way, so that no printed figure overtakes another.
    keeps_order: bool,
    requests: f64,
}

impl Order {
    /// Whether the larger figure is surely the smaller one.
    fn is_turned(self, smaller: Figure, larger: Figure) -> bool {
        larger.is_below(smaller) || (self.keeps_order && larger.value < smaller.value)
    }

    fn of_phase(self, phase: &Phase) -> Vec<String> {
        let rising: [(Named, Named); 4] = [
            (("min", phase.min), ("median", phase.median)),
            (("median", phase.median), ("max", phase.max)),
            (("min", phase.min), ("mean", phase.mean)),
            (("mean", phase.mean), ("max", phase.max)),
        ];
        let mut broken: Vec<String> = Vec::new();
        for ((low, smaller), (high, larger)) in rising {
            let (Some(smaller), Some(larger)) = (smaller, larger) else { continue };
            if self.is_turned(smaller, larger) {
                let (smaller, larger) = (words::time(smaller.value), words::time(larger.value));
                broken
                    .push(format!("{} time: {low} {smaller} is above {high} {larger}", phase.name));
            }
        }
        broken.extend(deviation_against_median(phase, self.requests));
        broken.extend(deviation_against_range(phase));
        broken
    }

    fn of_percentiles(self, row: &Row) -> Vec<String> {
        let total = row.total();
        let mut broken: Vec<String> = Vec::new();
        for pair in row.percentiles.windows(2) {
            let ((low, smaller), (high, larger)) = (pair[0], pair[1]);
            if self.is_turned(smaller, larger) {
                let (smaller, larger) = (words::time(smaller.value), words::time(larger.value));
                broken.push(format!("{low} % within {smaller}, but {high} % within {larger}"));
            }
        }
        for &(percent, at) in &row.percentiles {
            // What is printed for 100 % is the maximum, by whatever clock.
            if percent >= 100.0 {
                continue;
            }
            if let Some(max) = total.max.filter(|max| max.high * (1.0 + BUCKET_SHARE) < at.low) {
                let (max, at) = (words::time(max.value), words::time(at.value));
                broken.push(format!("{percent} % within {at}, but the longest took {max}"));
            }
            broken.extend(against_mean(percent, at, &total, self.requests));
        }
        broken
    }
}

/// Of n - 1 in place of n, and with a median that is one sample off.
fn deviation_against_median(phase: &Phase, requests: f64) -> Option<String> {
    let (mean, median, sd) = (phase.mean?, phase.median?, phase.sd?);
    let apart = (mean.low - median.high).max(median.low - mean.high);
    (apart > sd.high * (1.0 + 2.0 / requests.sqrt().min(1e3))).then(|| {
        let (mean, median, sd) =
            (words::time(mean.value), words::time(median.value), words::time(sd.value));
        format!(
            "{} time: mean {mean} and median {median} are further apart than one standard deviation ({sd})",
            phase.name
        )
    })
}

fn deviation_against_range(phase: &Phase) -> Option<String> {
    let (mean, sd, max) = (phase.mean?, phase.sd?, phase.max?);
    let min = phase.min.unwrap_or(Figure::exact(0.0)).low;
    let most = |mean: f64| (max.high - mean).max(0.0) * (mean - min).max(0.0);
    // Largest in the middle of the range, where the mean may lie there.
    let middle = f64::midpoint(max.high, min).clamp(mean.low, mean.high);
    // n / (n - 1) for 20 requests.
    let largest = (most(middle) * 20.0 / 19.0).sqrt();
    (sd.low > largest).then(|| {
        let (mean, sd, max) =
            (words::time(mean.value), words::time(sd.value), words::time(max.value));
        format!(
            "{} time: a standard deviation of {sd} is impossible with mean {mean} and max {max}",
            phase.name
        )
    })
}

/// What is above a quantile alone makes a mean, and so does what is below it at most.
fn against_mean(percent: f64, at: Figure, total: &Phase, requests: f64) -> Option<String> {
    let mean = total.mean?;
    let above = 1.0 - percent / 100.0;
    // The rank of a quantile is one sample more or less, by its definition.
    let one = 1.0 / requests;
    let least = (above - one).max(0.0) * at.low * (1.0 - BUCKET_SHARE);
    if mean.high < least {
        let (mean, at) = (words::time(mean.value), words::time(at.value));
        return Some(format!("mean {mean} is too small for {percent} % within {at}"));
    }
    let max = total.max?;
    let most = (1.0 - above + one) * at.high * (1.0 + BUCKET_SHARE) + (above + one) * max.high;
    (mean.low > most).then(|| {
        let (mean, at, max) =
            (words::time(mean.value), words::time(at.value), words::time(max.value));
        format!("mean {mean} is too large for {percent} % within {at} and max {max}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed, with};

    #[test]
    fn sound_reports_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn each_contradiction_is_told() {
        for (old, new, told) in [
            (
                "Total:          1    6   2.1      6      33",
                "Total:          1    6   2.1     40      33",
                "total time: median 40ms is above max 33ms",
            ),
            (
                "Total:          1    6   2.1      6      33",
                "Total:          9    6   2.1      9      33",
                "total time: min 9ms is above mean 6ms",
            ),
            (
                "Connect:        0    1   0.6      1       9",
                "Connect:        0   31   0.6      1      90",
                "connect time: mean 31ms and median 1ms are further apart than one standard deviation",
            ),
            (
                "Waiting:        0    4   1.8      4      28",
                "Waiting:        0    4  30.8      4      28",
                "waiting time: a standard deviation of 30.8ms is impossible with mean 4ms and max 28ms",
            ),
            ("  95%     10", "  95%      8", "90 % within 9ms, but 95 % within 8ms"),
        ] {
            let seen = look(&printed(&with(AB, old, new)));
            assert_eq!(seen.len(), 1, "{told}");
            assert!(evidence(&seen)[0].contains(told), "{}", seen[0].evidence);
        }
    }

    #[test]
    fn a_mean_has_to_fit_the_quantiles() {
        for (old, new, told) in [
            (
                "     50%    1.21ms",
                "     50%    2.71ms",
                "50 % within 2.71ms, but 75 % within 1.4ms",
            ),
            (
                "     99%    2.20ms",
                "     99%    2.90ms",
                "99 % within 2.9ms, but the longest took 2.41ms",
            ),
        ] {
            let seen = look(&printed(&with(WRK, old, new)));
            assert!(evidence(&seen)[0].contains(told), "{}", seen[0].evidence);
        }
        let table =
            |mean: f64| format!("server,req/s,mean (ms),p50 (ms),max (ms)\na,100,{mean},5,60\n");
        assert_eq!(look(&printed(&table(3.0))), []);
        assert!(
            evidence(&look(&printed(&table(1.0))))[0]
                .contains("mean 1ms is too small for 50 % within 5ms")
        );
        assert!(evidence(&look(&printed(&table(50.0))))[0].contains("mean 50ms is too large"));
    }
}
