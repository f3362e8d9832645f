//! Owns the check that as many requests were in flight as the load has connections. Start reading at [`look`].
//!
//! Little's law: the mean number in flight is the rate times the mean response time. In a closed loop each
//! connection has a request in flight at any time, so the product is the number of connections. It is less where
//! some are never made, are waited for after a failure, or never answered: the load was then lighter than what its
//! figures stand for.

use record::{Certainty, LoadRecord, Question, Severity, Visit};

use super::Check;
use crate::{Evidence, Observation, window, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "concurrency_not_reached",
    severity: Severity::Note,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "fewer requests were in flight than there are connections",
    meaning: "the load was lighter than requested, so rate and latencies are those of fewer connections",
    remedy: "find out why connections were idle: refused or lost ones, `ulimit -n` of both sides, the backlog, or \
             replies that never came; or ask for as many as there were (-c)",
    detection: "Rate times mean response time (Little's law) is more than 3 % below the number of connections, \
                in a closed loop of 100 requests or more on each, half of the loads. It is confirmed where \
                connections were missing or requests had no reply",
    example: "`ulimit -n 64` before `joust load -c 100`",
    source: "Little, A Proof for the Queuing Formula L = λW, 1961",
    needs: &[],
    look,
};

/// How far the product may be below the number of connections.
const MISSING_MAX: f64 = 0.03;
/// Requests on each connection below which the ends of the load may be more than a third of that.
const ROUNDS_MIN: u64 = 100;
/// Share of the missing that must be seen otherwise too, before it is confirmed.
const EXPLAINED_MIN: f64 = 0.5;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let all: Vec<Busy> =
        evidence.loads(contender).filter_map(|(visit, load)| busy(visit, load)).collect();
    let share = stats::median(&all.iter().map(Busy::missing).collect::<Vec<_>>())?;
    if share <= MISSING_MAX {
        return None;
    }
    let seen: Vec<f64> = all.iter().map(|one| one.idle_as_seen / one.slots).collect();
    let explained = stats::median(&seen)? >= EXPLAINED_MIN * share;
    let in_flight: Vec<f64> = all.iter().map(|one| one.in_flight).collect();
    let evidence = format!(
        "{}: by Little's law {:.1} requests were in flight where {} could be, {} fewer{}",
        evidence.name(contender),
        stats::median(&in_flight)?,
        all[0].slots,
        words::percent(share),
        if explained { "; as many connections were missing or had no reply" } else { "" },
    );
    let certainty = if explained { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Observation { share: Some(share), certainty, contenders: vec![contender], evidence })
}

/// What Little's law says of one load.
#[derive(Debug, Clone, Copy)]
struct Busy {
    in_flight: f64,
    /// What was planned.
    slots: f64,
    /// Connections that were never open, and requests without a reply.
    idle_as_seen: f64,
}

impl Busy {
    fn missing(&self) -> f64 {
        1.0 - self.in_flight / self.slots
    }
}

/// `None` where connections rest by plan, or the load is too short. A reconnect is time in which a request waits,
/// and counts; a failure has no response time, so that only a few may be there.
fn busy(visit: &Visit, load: &LoadRecord) -> Option<Busy> {
    const FAILED_MAX: f64 = 0.001;
    let slots = window::slots(load);
    let sum = window::sum(visit, load)?;
    let rests = !window::is_closed_loop(load)
        || !load.raw_names.is_empty()
        || load.redirects.followed > 0
        || load.plan.expect_continue;
    if rests || sum.ok < ROUNDS_MIN * slots || sum.response.is_empty() {
        return None;
    }
    let failed = sum.errors.total() as f64;
    let unreachable =
        load.errors.connect_refused + load.errors.fd_exhausted + load.errors.port_exhausted;
    if failed > FAILED_MAX * sum.ok as f64 && unreachable == 0 {
        return None;
    }
    let response = sum.response.mean()?.as_secs_f64();
    let never_open = load.connections.saturating_sub(load.client.connections_open_max);
    Some(Busy {
        in_flight: sum.ok as f64 / sum.length.as_secs_f64() * response,
        slots: slots as f64,
        idle_as_seen: f64::from(never_open) + load.requests.unanswered as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    /// Of 64 connections of b `idle` were idle, and `never_open` of those were never open.
    fn seen(idle: u32, never_open: u32) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            load.client.connections_open_max -= never_open;
            for interval in &mut load.intervals {
                interval.ok = interval.ok * u64::from(64 - idle) / 64;
            }
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn connections_that_are_all_busy_are_silent() {
        assert_eq!(seen(0, 0), []);
        assert_eq!(seen(1, 1), []);
    }

    #[test]
    fn idle_connections_fire_by_their_share_and_are_confirmed_if_they_are_missed() {
        let (full, half) = (seen(32, 32), seen(16, 16));
        assert_eq!((full.len(), full[0].certainty), (1, Certainty::Confirmed));
        let ratio = half[0].share.unwrap() / full[0].share.unwrap();
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
        assert_eq!(seen(32, 0)[0].certainty, Certainty::Suspected);
        let text = "b: by Little's law 32.0 requests were in flight where 64 could be, 50 % fewer; as many";
        assert!(full[0].evidence.starts_with(text), "{}", full[0].evidence);
    }

    #[test]
    fn where_connections_rest_by_plan_nothing_is_said() {
        let mut run = testdata::run(&["a"], 8);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.intervals.iter_mut().for_each(|interval| interval.ok /= 2);
            load.plan.pacing = record::Pacing::Think {
                pause: units::Nanos::from_millis(1),
                spread: record::Spread::Constant,
            };
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
