//! Owns the check that no timeout cut the longest latencies off. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Printed, Row};
use crate::printed::words as rows_words;
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "tail_cut_by_timeout",
    severity: Severity::Bound,
    question: Question::DidItError,
    title: "a timeout cut the longest latencies off",
    meaning: "the slowest requests are in no latency, so mean, maximum and percentiles are too small",
    detection: "The tool counts timeouts. Or its maximum lies within 1 % below wrk's timeout of 2 s: wrk records no \
                latency above it",
    remedy: "repeat with a longer timeout (wrk --timeout 30s), and read the maximum again",
    example: "wrk: Max 2.00s, Socket errors: connect 0, read 0, write 0, timeout 113",
    source: "wg/wrk, src/wrk.c (stats_record refuses what is above cfg.timeout)",
    touches: &[(Conclusion::Latency, Effect::AtLeast)],
    look,
};

/// wrk's timeout, unless it is told another.
const WRK_SECONDS: f64 = 2.0;
/// How near below its limit a histogram that was cut ends.
const NEAR_SHARE: f64 = 0.01;

fn look(printed: &Printed) -> Vec<Seen> {
    printed.indexed().filter_map(|(at, row)| look_at(at, row)).collect()
}

fn look_at(at: usize, row: &Row) -> Option<Seen> {
    let seen = |certainty, share, evidence| Seen { certainty, rows: vec![at], share, evidence };
    if let Some(count) = row.timeouts.filter(|count| *count > 0) {
        let all = row.complete.map_or(0.0, |all| all.value) + count as f64;
        let evidence = format!(
            "{}: {}, whose latencies are missing{}",
            row.name,
            words::count(count, "timeout"),
            row.total().max.map_or(String::new(), |max| {
                format!("; the longest that is printed is {}", rows_words::time(max.value))
            }),
        );
        return Some(seen(Certainty::Confirmed, Some(count as f64 / all), evidence));
    }
    let max = row.total().max.filter(|_| row.tool() == Some("wrk"))?;
    let is_near = max.high >= WRK_SECONDS * (1.0 - NEAR_SHARE) && max.low <= WRK_SECONDS;
    let evidence = format!(
        "{}: the longest latency is {}, just below wrk's timeout of 2s",
        row.name,
        rows_words::time(max.value)
    );
    is_near.then(|| seen(Certainty::Suspected, None, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, evidence, printed, with};

    #[test]
    fn loads_without_timeouts_are_silent() {
        for text in [AB, WRK] {
            assert_eq!(look(&printed(text)), []);
        }
    }

    #[test]
    fn timeouts_and_a_histogram_that_ends_at_its_limit_are_seen() {
        let errors = "  Socket errors: connect 0, read 0, write 0, timeout 113\nRequests/sec:";
        let seen = look(&printed(&with(WRK, "Requests/sec:", errors)));
        let told = "paste (wrk): 113 timeouts, whose latencies are missing; the longest that is printed is 2.41ms";
        assert_eq!(evidence(&seen), [told]);
        let seen = look(&printed(&with(WRK, "2.41ms", "1.99s")));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Suspected));
    }
}
