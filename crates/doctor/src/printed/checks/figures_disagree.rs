//! Owns the check that figures of one load that follow from one another do so. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::figure::Figure;
use crate::printed::row::{Printed, Row};

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "figures_disagree",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    title: "figures that follow from one another do not agree",
    meaning: "a figure was mistyped, edited, or copied from another run, so no figure of that row can be trusted",
    detection: "rate = requests / time, bytes a second = bytes / time (1000 or 1024), ab's time per request = \
                connections x time / requests, siege's concurrency = rate x response time, availability = \
                hits / (hits + failed); each as an interval of all numbers that are printed so",
    remedy: "ask for the raw output of the tool, and copy it whole",
    example: "2,000 requests in 0.072 seconds, but 37813.70 requests a second",
    source: "the formulas of each tool: httpd, support/ab.c; wg/wrk, src/wrk.c; JoeDog/siege, src/main.c",
    touches: &[(Conclusion::Rate, Effect::Void), (Conclusion::Latency, Effect::InDoubt)],
    look,
};

/// By how much an ordered duration may differ from the one that a rate was made with: wrk runs 2 % longer than
/// ordered, and boards print what was ordered.
const NOMINAL_DURATION_SHARE: f64 = 0.1;

fn look(printed: &Printed) -> Vec<Seen> {
    printed.indexed().flat_map(|(at, row)| look_at(at, row)).collect()
}

/// A figure and what it should be.
struct Identity {
    name: &'static str,
    printed: Figure,
    made_of: &'static str,
    expected: Figure,
}

fn look_at(at: usize, row: &Row) -> Vec<Seen> {
    let all =
        [rate(row), bytes_rate(row), time_per_request(row), in_flight(row), availability(row)];
    let broken = all.into_iter().flatten().filter(|one| !one.printed.may_equal(one.expected));
    let seen = broken.map(|one| Seen {
        certainty: Certainty::Confirmed,
        rows: vec![at],
        share: None,
        evidence: format!(
            "{}: {} is printed as {}, but {} make {}",
            row.name,
            one.name,
            short(one.printed.value),
            one.made_of,
            short(one.expected.value)
        ),
    });
    seen.collect()
}

/// A number with four digits or its whole part.
fn short(value: f64) -> String {
    match value {
        v if v >= 1000.0 => crate::words::grouped(v.round() as u64),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

fn widened(figure: Figure, share: f64) -> Figure {
    Figure { low: figure.low * (1.0 - share), high: figure.high * (1.0 + share), ..figure }
}

fn rate(row: &Row) -> Option<Identity> {
    let (printed, duration, complete) = (row.rate?, row.duration?, row.complete?);
    // What had no time to speak of has no rate: siege prints 0.
    if duration.value <= 0.0 || printed.value <= 0.0 {
        return None;
    }
    let counted = match &row.report {
        Some(report) => {
            let n = Figure::exact(report.rate_of()? as f64);
            match report.tool {
                // Replies at least; and with -z some of what the rate is of may be in no other count.
                "hey" | "oha" => Figure { low: complete.low, high: n.high * 1.01, ..n },
                _ => n,
            }
        }
        None => any_of(row, complete),
    };
    let slack = if row.is_duration_nominal { NOMINAL_DURATION_SHARE } else { 0.0 };
    let expected = widened(counted.over(duration)?, slack);
    Some(Identity { name: "the rate", printed, made_of: "requests and time", expected })
}

/// What the rate of a table may be of: which of the failed are in it, it does not say.
fn any_of(row: &Row, complete: Figure) -> Figure {
    let failed = row.failed.unwrap_or(0) as f64;
    let bad = row.bad_status.unwrap_or(0) as f64;
    let low = (complete.low - bad - failed).max(0.0);
    Figure { low, value: complete.value, high: complete.high + failed }
}

fn bytes_rate(row: &Row) -> Option<Identity> {
    let (printed, duration, bytes) = (row.bytes_rate?, row.duration?, row.bytes?);
    if duration.value <= 0.0 || printed.value <= 0.0 {
        return None;
    }
    let slack = if row.is_duration_nominal { NOMINAL_DURATION_SHARE } else { 0.0 };
    let expected = widened(bytes.over(duration)?, slack);
    Some(Identity {
        name: "the number of bytes a second",
        printed,
        made_of: "bytes and time",
        expected,
    })
}

/// ab's, in milliseconds.
fn time_per_request(row: &Row) -> Option<Identity> {
    let report = row.report.as_ref()?;
    let step = report.steps.time_per_request?.as_secs_f64();
    let printed = Figure::rounded_or_cut(report.time_per_request?.as_secs_f64(), step).scaled(1e3);
    let expected = row.connections?.times(row.duration?).over(row.complete?)?.scaled(1e3);
    let made_of = "connections, time and requests";
    Some(Identity { name: "the time per request (ms)", printed, made_of, expected })
}

/// siege's.
fn in_flight(row: &Row) -> Option<Identity> {
    let (printed, rate, mean) = (row.in_flight?, row.rate?, row.total().mean?);
    if row.tool() != Some("siege") || row.duration.is_none_or(|time| time.value <= 0.0) {
        return None;
    }
    let expected = rate.times(mean);
    Some(Identity { name: "the concurrency", printed, made_of: "rate and response time", expected })
}

/// siege's, in percent.
fn availability(row: &Row) -> Option<Identity> {
    let report = row.report.as_ref()?;
    let printed = Figure::rounded(report.availability?.0 * 100.0, 0.01);
    let (hits, failed) = (report.requests.complete?, report.requests.failed?);
    if row.tool() != Some("siege") || hits.saturating_add(failed) == 0 {
        return None;
    }
    let share = Figure::exact(100.0 * hits as f64 / hits.saturating_add(failed) as f64);
    // Some versions cut it off.
    let expected = Figure { low: share.low - 0.01, high: share.high + 0.01, ..share };
    Some(Identity { name: "the availability (%)", printed, made_of: "hits and failures", expected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed, with};

    #[test]
    fn reports_that_agree_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn a_mistyped_figure_is_named_with_what_it_should_be() {
        let text = with(AB, "Requests per second:    10000.00", "Requests per second:    10010.00");
        let seen = look(&printed(&text));
        let told = "paste (ab): the rate is printed as 10,010, but requests and time make 10,000";
        assert_eq!(evidence(&seen), [told]);
        for (old, new) in [
            ("Transfer rate:          35136.72", "Transfer rate:          36500.00"),
            (
                "Time per request:       6.400 [ms] (mean)",
                "Time per request:       6.600 [ms] (mean)",
            ),
        ] {
            assert_eq!(look(&printed(&with(AB, old, new))).len(), 1, "{new}");
        }
        let text = with(WRK, "Requests/sec:  50000.00", "Requests/sec:  50100.00");
        assert_eq!(look(&printed(&text)).len(), 1);
        // What 10.00s may stand for.
        let text = with(WRK, "Requests/sec:  50000.00", "Requests/sec:  50020.00");
        assert_eq!(look(&printed(&text)), []);
    }

    #[test]
    fn units_of_1000_and_1024_are_both_accepted_in_tables() {
        let table = |rate: &str| {
            format!("server,req/s,bytes,duration,bandwidth\na,1000,360 MB,10s,{rate}\n")
        };
        for rate in ["36 MB/s", "34.4 MB/s", "37.7 MB/s"] {
            assert_eq!(look(&printed(&table(rate))), [], "{rate}");
        }
        assert_eq!(look(&printed(&table("72 MB/s"))).len(), 1);
    }

    const SIEGE: &str = "\
Transactions:                  10000 hits
Availability:                 100.00 %
Elapsed time:                  10.00 secs
Data transferred:              32.05 MB
Response time:                  0.02 secs
Transaction rate:            1000.00 trans/sec
Throughput:                     3.21 MB/sec
Concurrency:                   24.31
Successful transactions:       10000
Failed transactions:               0
Longest transaction:            0.31
Shortest transaction:           0.00
";

    #[test]
    fn siege_prints_its_concurrency_from_rate_and_time() {
        assert_eq!(look(&printed(SIEGE)), []);
        let text = with(SIEGE, "24.31", "26.31");
        assert_eq!(look(&printed(&text)).len(), 1);
        let text = with(SIEGE, "100.00 %", "97.00 %");
        assert_eq!(look(&printed(&text)).len(), 1);
    }
}
