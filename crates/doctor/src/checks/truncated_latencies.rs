//! Owns the check that no timeout cut off the distribution of latencies. Start reading at [`look`].
//!
//! A request that takes longer than the timeout is a failure, and no latency. The longest latency is then the
//! timeout, whatever the server did, and each quantile is that of the requests that were quick enough.

use record::{Certainty, LoadRecord, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "truncated_latencies",
    severity: Severity::Note,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "a timeout cut off the slowest latencies",
    meaning: "requests that took longer are in no quantile, so the slowest part of the distribution is a lower \
              bound",
    remedy: "wait for longer than the slowest reply takes (--timeout, [workload] timeout), or read the timeouts \
             as replies that took at least that time",
    detection: "Requests timed out while they waited for a reply, and as many failed after 99 % of the timeout or \
                later",
    example: "`joust serve --fixed 3361 --fault stall=1%,600ms` and `joust load --timeout 500ms`",
    source: "Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, 1958",
    needs: &[],
    look,
};

/// A failure before this share of the timeout has another cause: a timer fires late, never early.
const TIMEOUT_NEAR: f64 = 0.99;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let loads = || evidence.loads(contender).map(|(_, load)| load);
    let timed_out: u64 = loads().map(timeouts).sum();
    let done: u64 = loads().map(|load| load.requests.done).sum();
    let cut = loads().filter(|load| timeouts(load) > 0).find(|load| is_cut(load))?;
    let evidence = format!(
        "{}: {} of {} ({}) took longer than the timeout of {} and are in no latency",
        evidence.name(contender),
        words::grouped(timed_out),
        words::count(done, "request"),
        words::percent(timed_out as f64 / done.max(1) as f64),
        cut.plan.timeout,
    );
    Some(Observation {
        share: Some(timed_out as f64 / done.max(1) as f64),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

/// Requests that were sent and not answered in time.
fn timeouts(load: &LoadRecord) -> u64 {
    load.errors.timeout_waiting + load.errors.timeout_reading
}

/// Whether as many failures took the timeout as are said to have timed out, histograms being a little rough.
fn is_cut(load: &LoadRecord) -> bool {
    let least = TIMEOUT_NEAR * load.plan.timeout.as_secs_f64();
    let took = load.latencies.failed.buckets().filter(|(span, _)| span.as_secs_f64() >= least);
    took.map(|(_, number)| number).sum::<u64>() >= timeouts(load)
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;
    use crate::testdata;

    /// A timeout of 500 ms, and some of 1,000 requests of b that failed after `took`.
    fn seen(timed_out: u64, took: Nanos) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 4);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            load.plan.timeout = Nanos::from_millis(500);
            (load.requests.done, load.errors.timeout_waiting) = (1_000, timed_out);
            (0..timed_out).for_each(|_| load.latencies.failed.record(took));
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn without_timeouts_nothing_is_cut() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 4))), []);
        assert_eq!(seen(0, Nanos::ZERO), []);
        assert_eq!(seen(10, Nanos::from_millis(300)), [], "they failed for another reason");
    }

    #[test]
    fn requests_that_took_the_timeout_are_counted_by_their_share() {
        let full = seen(10, Nanos::from_millis(501));
        assert_eq!((full.len(), full[0].contenders.as_slice()), (1, &[1][..]));
        assert_eq!(
            (full[0].share, seen(5, Nanos::from_millis(501))[0].share),
            (Some(0.01), Some(0.005))
        );
        let text = "b: 40 of 4,000 requests (1 %) took longer than the timeout of 500ms and are in no latency";
        assert_eq!(full[0].evidence, text);
    }
}
