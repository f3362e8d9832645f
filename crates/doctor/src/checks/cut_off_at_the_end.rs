//! Owns the check that a load did not end in the middle of its requests. Start reading at [`look`].
//!
//! What is in flight when the time is over has cost the server work and is in no rate. In a closed loop that began
//! with idle connections, it is as many requests as there are connections: with 20 requests on each, one in 20 is
//! missing. A reply that came while the load drained still has its latency; one that never came has none, and it
//! is slower than all others (it is censored). So the share of those is the share of the slowest requests that no
//! quantile shows.
//!
//! Behind a cut as many requests were in flight at the start as at the end, so that the rate is right.

use record::{Certainty, LoadRecord, Question, Severity};
use units::Nanos;

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "cut_off_at_the_end",
    severity: Severity::Bound,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "the end of the load cut off requests",
    meaning: "what was in flight at the end is in no rate, and what was never answered is in no latency, so \
              the rate is a lower bound and the slowest replies are missing",
    remedy: "measure for longer (-d, [visit] measure), or allow replies more time to come (--drain), or use \
             fewer connections",
    detection: "More than 1 % of the requests had no reply when the load had drained, or, where the start of \
                the load was not cut, more than 5 % were in flight when its time was over",
    example: "`joust serve --fixed 3361 --fault delay=1s` and `joust load -c 64 -d 3s`",
    source: "Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, 1958",
    needs: &[],
    look,
};

/// Share of requests without a reply from which p99 is unknown.
const UNANSWERED_MAX: f64 = 0.01;
/// Share of requests in flight at the end from which a rate has an error of as much: as for a pair of servers
/// whose difference matters. A closed loop with 20 requests on each connection has it.
const IN_FLIGHT_MAX: f64 = 0.05;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

/// Requests of all loads of a contender that the end met.
#[derive(Debug, Default, Clone, Copy)]
struct Ends {
    /// Ended in time.
    done: u64,
    /// Answered while the load drained, where that is missing in a rate.
    drained: u64,
    /// Never answered.
    unanswered: u64,
    /// How long those were waited for, at least.
    drain: Nanos,
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let mut ends = Ends { drain: Nanos::MAX, ..Ends::default() };
    let loads = evidence.loads(contender).filter(|(_, load)| ends_by_time(load));
    for (visit, load) in loads {
        ends.done += load.requests.done - load.requests.drained;
        ends.unanswered += load.requests.unanswered;
        ends.drain = ends.drain.min(load.plan.drain);
        if visit.cut == Nanos::ZERO {
            ends.drained += load.requests.drained;
        }
    }
    let in_flight = ends.drained + ends.unanswered;
    let started = (ends.done + in_flight).max(1) as f64;
    let (lost, open) = (ends.unanswered as f64 / started, in_flight as f64 / started);
    if lost <= UNANSWERED_MAX && open <= IN_FLIGHT_MAX {
        return None;
    }
    let lost = (ends.unanswered > 0).then(|| {
        format!(
            "; {} had no reply {} later, so the slowest {} have no latency",
            words::grouped(ends.unanswered),
            ends.drain,
            words::percent(lost),
        )
    });
    let evidence = format!(
        "{}: {} of {} ({}) were in flight when the time was over{}",
        evidence.name(contender),
        words::grouped(in_flight),
        words::count(ends.done + in_flight, "request"),
        words::percent(open),
        lost.unwrap_or_default(),
    );
    Some(Observation {
        share: Some(open),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

/// Where a number of requests ends a load, it waits for all of them.
fn ends_by_time(load: &LoadRecord) -> bool {
    load.plan.stop.duration.is_some() && load.plan.stop.requests.is_none()
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// Eight visits of a and b, cut or not, where a given number of b's requests were drained or never answered.
    fn with(cut: Nanos, done: u64, drained: u64, unanswered: u64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.cut = cut;
            let load = visit.load.as_mut().unwrap();
            let requests = &mut load.requests;
            (requests.done, requests.drained, requests.unanswered) =
                (done + drained, drained, unanswered);
            requests.started = requests.done + unanswered;
        }
        run
    }

    fn share(run: &RunRecord) -> Option<f64> {
        let seen = look(&Evidence::of(run));
        assert!(seen.iter().all(|one| one.contenders == [1]), "{seen:?}");
        seen.first().and_then(|one| one.share)
    }

    #[test]
    fn a_load_of_many_requests_on_each_connection_is_silent() {
        assert_eq!(share(&with(Nanos::ZERO, 64 * 100, 64, 0)), None);
        assert_eq!(share(&with(Nanos::from_millis(100), 64, 64, 0)), None, "cut at both ends");
    }

    #[test]
    fn what_was_in_flight_counts_by_its_share() {
        let at = |rounds: u64| share(&with(Nanos::ZERO, 64 * rounds, 64, 0)).unwrap();
        assert!((at(2) - 1.0 / 3.0).abs() < 1e-9);
        // Half as many connections for the same requests.
        let half = share(&with(Nanos::ZERO, 64 * 9, 32, 0)).unwrap();
        let full = share(&with(Nanos::ZERO, 64 * 9 - 32, 64, 0)).unwrap();
        assert!((half / full - 0.5).abs() < 1e-9);
    }

    #[test]
    fn replies_that_never_came_are_told_with_the_quantile_that_they_hide() {
        let run = with(Nanos::from_millis(100), 970, 0, 30);
        let seen = look(&Evidence::of(&run));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
        let text = "b: 240 of 8,000 requests (3 %) were in flight when the time was over; 240 had no reply \
                    500ms later, so the slowest 3 % have no latency";
        assert_eq!(seen[0].evidence, text);
        assert_eq!(share(&with(Nanos::from_millis(100), 995, 0, 5)), None);
    }

    #[test]
    fn a_number_of_requests_is_waited_for() {
        let mut run = with(Nanos::ZERO, 64, 64, 0);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.plan.stop.requests = Some(128);
        }
        assert_eq!(share(&run), None);
    }
}
