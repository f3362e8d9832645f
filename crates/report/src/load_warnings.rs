//! Owns what a reader of one load must know before he reads a number: each a sentence with its
//! figures. Must not know layout. Start reading at [`warnings`].

use record::LoadRecord;

use crate::figures::{counted, grouped, listed, percent, significant};
use crate::load_text::{failures, outcome_words};

/// From this share of its time on the CPU a thread of the generator counts as the limit: what is
/// left is less than the jitter of a scheduler tick (specs: client saturated, 85 %).
pub(crate) const GENERATOR_BUSY: f64 = 0.85;

/// Connections made over connections asked for above which they were not kept, and requests for each
/// reconnect from which on it is of no interest; as the doctor has them for a run.
const CONNECTS_MAX: f64 = 1.05;
const REQUESTS_PER_RECONNECT_MAX: u64 = 10_000;

/// What spoils the figures of a load, worst first.
pub(crate) fn warnings(record: &LoadRecord) -> Vec<String> {
    let looks = [interrupted, failed, silent, unanswered, reconnected, limited, smaller];
    looks.iter().filter_map(|look| look(record)).collect()
}

fn interrupted(record: &LoadRecord) -> Option<String> {
    record.interrupted.then(|| "incomplete: the load was interrupted".to_owned())
}

fn failed(record: &LoadRecord) -> Option<String> {
    let requests = record.requests;
    if requests.ok == 0 {
        return Some(format!(
            "no request succeeded, of {} begun: there is nothing to measure",
            grouped(requests.started)
        ));
    }
    let kinds: Vec<String> = failures(record)
        .map(|(outcome, count)| format!("{} {}", grouped(count), outcome_words(outcome)))
        .collect();
    (requests.failed > 0).then(|| {
        format!(
            "{} failed ({}): {}; they count in no rate and no latency below",
            counted(requests.failed, "request"),
            percent(requests.failed, requests.done),
            listed(&kinds)
        )
    })
}

fn silent(record: &LoadRecord) -> Option<String> {
    record.silence_at_end().map(|silence| {
        format!(
            "no request succeeded in the last {silence} of {} s: the server was gone or hung, and \
             the rate is over both times",
            significant(record.seconds)
        )
    })
}

/// They are the slowest of all, and missing in every quantile.
fn unanswered(record: &LoadRecord) -> Option<String> {
    let requests = record.requests;
    (requests.unanswered > 0 && requests.ok > 0).then(|| {
        let were = if requests.unanswered == 1 { "was" } else { "were" };
        format!(
            "{} {were} still without a reply {} after the end: as slow as can be, and in no latency \
             below",
            counted(requests.unanswered, "request"),
            record.plan.drain,
        )
    })
}

/// A connection that was lost with its request is told among the failures.
fn reconnected(record: &LoadRecord) -> Option<String> {
    let asked = u64::from(record.connections);
    let kept = record.connects.saturating_sub(record.requests.failed);
    let again = kept.saturating_sub(asked);
    let few = kept as f64 <= CONNECTS_MAX * asked as f64
        || again.saturating_mul(REQUESTS_PER_RECONNECT_MAX) < record.requests.done;
    (record.plan.keep_alive && !few).then(|| {
        format!(
            "the server did not keep connections: {} were made for {} asked for, and connecting \
             again is in the rate and the response times",
            grouped(record.connects),
            grouped(asked),
        )
    })
}

fn limited(record: &LoadRecord) -> Option<String> {
    is_generator_limit(record).then(|| {
        format!(
            "the generator was the limit: its busiest thread used {} % of its CPU, so the rate is a \
             lower bound; give it more threads (-t) or CPUs (--cpus)",
            significant(100.0 * record.client.busiest())
        )
    })
}

/// Whether the rate is only a lower bound.
pub(crate) fn is_generator_limit(record: &LoadRecord) -> bool {
    record.client.busiest() >= GENERATOR_BUSY
}

fn smaller(record: &LoadRecord) -> Option<String> {
    let (open, asked) = (record.client.connections_open_max, record.connections);
    (open < asked && record.requests.started > 0).then(|| {
        format!(
            "at most {open} of {asked} connections were open at once: the load was smaller than asked"
        )
    })
}

#[cfg(test)]
mod tests {
    use record::Interval;

    use units::Nanos;

    use super::*;
    use crate::testdata;

    #[test]
    fn a_clean_load_has_no_warning() {
        assert_eq!(warnings(&testdata::load()), Vec::<String>::new());
    }

    /// Three seconds of load, in which the server was dead after so many intervals of 100 ms.
    fn dead_after(n_intervals: u64) -> LoadRecord {
        let mut load = testdata::load();
        load.seconds = 3.0;
        let interval = |n: u64| {
            let start = Nanos::from_millis(100 * n);
            let mut interval = Interval::new(start, Nanos::from_millis(100));
            interval.ok = if n < n_intervals { 5000 } else { 0 };
            interval
        };
        load.intervals = (0..30).map(interval).collect();
        (load.requests.failed, load.errors.connect_refused) = (40, 40);
        load.requests.done += 40;
        load
    }

    #[test]
    fn a_server_that_died_is_told_by_its_silence_not_by_the_share_of_failures() {
        let text = warnings(&dead_after(10)).join("\n");
        assert!(text.contains("no request succeeded in the last 2s of 3.00 s"), "{text}");
        for n_intervals in [29, 30] {
            assert_eq!(silent(&dead_after(n_intervals)), None);
        }
    }

    #[test]
    fn slow_replies_without_a_failure_are_no_silence() {
        let mut load = dead_after(10);
        (load.requests.failed, load.errors.connect_refused) = (0, 0);
        assert_eq!(silent(&load), None);
    }

    #[test]
    fn what_was_never_answered_is_said_before_any_latency() {
        let mut load = testdata::load();
        load.requests.unanswered = 54;
        load.requests.started += 54;
        let text = warnings(&load).join("\n");
        assert!(text.contains("54 requests were still without a reply"), "{text}");
    }

    #[test]
    fn connections_that_were_not_kept_are_told_unless_that_was_the_plan() {
        let mut load = testdata::load();
        load.connects = load.requests.done;
        assert!(warnings(&load)[0].contains("did not keep connections"));
        load.plan.keep_alive = false;
        assert_eq!(warnings(&load), Vec::<String>::new());
    }
}
