//! Owns the check that a visit of a closed loop is long against a request: that requests ended on its
//! connections many times over. Must not know how a server shares itself out. Start reading at [`look`].
//!
//! A server that is fair to 1000 connections has sent each of them a thousandth of what it had time
//! for; one that takes 256 at a time has finished those, and let the others wait. Where the time is
//! short of one request on each connection, the first has finished nothing and the second a quarter,
//! and both have worked as much: what is counted is whom they served first. (lighttpd beside Apache,
//! 3 MB on 1000 connections in half a second: 1 request and 400.)
//!
//! What a fair server has under way at the end is up to one request a connection, which in four
//! rounds is a fifth of all its work; from there on it is said.

use record::{Certainty, Severity, Visit};

use super::Check;
use crate::{Evidence, Seen, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "visits_too_short",
    severity: Severity::Void,
    title: "visits ended before each connection had its requests answered",
    meaning: "what is counted is whom a server served first, not how much it served",
    remedy: "measure for longer ([visit] measure), or ask with fewer connections or a smaller page",
    needs: &[],
    look,
};

/// Requests on each connection below which a visit is too short, and from which it is long enough.
const ROUNDS_MIN: u64 = 1;
const ROUNDS_ENOUGH: u64 = 4;

fn look(evidence: &Evidence) -> Vec<Seen> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

/// Requests that ended in a visit, and the connections they ended on.
#[derive(Clone, Copy)]
struct Ended {
    requests: u64,
    connections: u64,
}

impl Ended {
    /// Whether the requests are fewer than so many on each connection.
    fn below(self, rounds: u64) -> bool {
        self.requests < rounds * self.connections
    }
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Seen> {
    let all: Vec<Ended> =
        evidence.run.measured(contender).filter_map(|visit| ended(evidence, visit)).collect();
    let short = all.iter().filter(|ended| ended.below(ROUNDS_ENOUGH));
    let number = short.clone().count();
    let least = short.min_by_key(|ended| ended.requests)?;
    let is_most = |rounds| 2 * all.iter().filter(|ended| ended.below(rounds)).count() >= all.len();
    if !is_most(ROUNDS_ENOUGH) {
        return None;
    }
    let evidence = format!(
        "{}: in {number} of {} fewer than {ROUNDS_ENOUGH} requests ended for each connection: as few \
         as {} on {}",
        evidence.name(contender),
        words::count(all.len() as u64, "visit"),
        words::grouped(least.requests),
        words::count(least.connections, "connection"),
    );
    let certainty = if is_most(ROUNDS_MIN) { Certainty::Confirmed } else { Certainty::Suspected };
    Some(Seen { certainty, contenders: vec![contender], evidence })
}

/// `None` in an open loop, whose requests do not wait for each other, and where nobody counted.
fn ended(evidence: &Evidence, visit: &Visit) -> Option<Ended> {
    let work = evidence.run.plan.work(visit.cell, visit.contender);
    if work.rate.is_some() {
        return None;
    }
    let claimed = || visit.tool.as_ref()?.claimed.requests_done;
    let requests = visit.service_after_cut().map(|service| service.count()).or_else(claimed)?;
    Some(Ended { requests, connections: u64::from(work.connections) })
}

#[cfg(test)]
mod tests {
    use record::{RunRecord, ToolRun};
    use units::{Nanos, PerSecond};

    use super::*;
    use crate::testdata;

    /// Eight visits of a and b, of 64 connections each; so many of a's ended so many requests.
    fn with(visits: usize, requests: u64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        let of_a = run.visits.iter_mut().filter(|visit| visit.contender == 0);
        for visit in of_a.take(visits) {
            let intervals = &mut visit.load.as_mut().unwrap().intervals;
            intervals.iter_mut().for_each(|interval| interval.service.clear());
            let service = &mut intervals.last_mut().unwrap().service;
            (0..requests).for_each(|n| service.record(Nanos::from_millis(500 + n)));
        }
        run
    }

    fn seen(run: &RunRecord) -> Vec<Seen> {
        look(&Evidence::of(run))
    }

    #[test]
    fn visits_in_which_each_connection_had_its_requests_are_silent() {
        assert_eq!(seen(&testdata::run(&["a", "b"], 8)), []);
        assert_eq!(seen(&with(8, 4 * 64)), []);
    }

    #[test]
    fn fewer_requests_than_connections_are_confirmed() {
        let seen = seen(&with(8, 63));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].certainty, seen[0].contenders.as_slice()),
            (Certainty::Confirmed, &[0][..])
        );
        let text = "a: in 8 of 8 visits fewer than 4 requests ended for each connection: as few as 63 \
                    on 64 connections";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn a_visit_in_which_nothing_ended_is_the_shortest_of_all() {
        assert_eq!(seen(&with(8, 0))[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn a_few_requests_for_each_connection_are_suspected() {
        for (visits, requests) in [(8, 64), (8, 4 * 64 - 1), (4, 64)] {
            let seen = seen(&with(visits, requests));
            assert_eq!(seen.len(), 1, "{visits} visits of {requests}");
            assert_eq!(seen[0].certainty, Certainty::Suspected);
        }
    }

    #[test]
    fn one_visit_in_eight_that_stood_still_is_not_its_length() {
        assert_eq!(seen(&with(1, 10)), []);
    }

    #[test]
    fn an_open_loop_is_as_long_as_its_rate_says() {
        let mut run = with(8, 10);
        run.plan.cells[0].workload.rate = Some(PerSecond(10.0));
        assert_eq!(seen(&run), []);
    }

    #[test]
    fn another_tool_s_own_count_is_looked_at() {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.load = None;
            let mut tool = ToolRun::default();
            tool.claimed.requests_done = Some(1);
            visit.tool = Some(tool);
        }
        let seen = seen(&run);
        assert_eq!((seen[0].certainty, seen[0].contenders[0]), (Certainty::Confirmed, 1));
    }
}
