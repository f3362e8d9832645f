//! Owns the check that a visit of a closed loop is long enough for a large reply: several requests must end on
//! each connection. Start reading at [`look`].
//!
//! A server that serves 1000 connections in turn has sent each a thousandth of what it had time
//! for; one that takes 256 at a time has finished those and lets the others wait. If the time does not suffice
//! for one request on each connection, the first server has finished nothing and the second a quarter,
//! although both worked equally: the count depends on whom they served first. (lighttpd and Apache,
//! 3 MB on 1000 connections in half a second: 1 request and 400.)
//!
//! At the end a server that serves in turn has up to one unfinished request on each connection. In four
//! rounds that is a fifth of all its work, and no longer a finding. A page that a socket takes at once is
//! never half sent, whatever the number of connections. If a program sleeps, the rate is not a count (Little's law).
//!
//! Where the start was not cut (a load alone), it is in the rate: all connections ask at once, and the first replies
//! come one response time later. In a load of 20 mean response times that is 5 % of it.

use record::{Certainty, Interval, LoadRecord, Question, Severity, Visit};
use units::{Bytes, Nanos};

use super::Check;
use crate::{Evidence, Observation, window, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "visits_too_short",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "visits ended before enough requests on each connection were answered",
    meaning: "the count depends on whom a server served first, not on how much it served",
    remedy: "measure for longer (`measure` in [visit], for --short in [short]), or use fewer connections \
             or a smaller page",
    detection: "Fewer than one request ended on each connection (confirmed), or fewer than four \
             (suspected), in half of the visits. Where the start was not cut: the load was shorter than 20 \
             mean response times or had one request on each connection (confirmed), or fewer than 30 (suspected)",
    example: "3 MB on 1,000 connections in half a second",
    source: "Little, A Proof for the Queuing Formula L = λW, 1961",
    needs: &[],
    look,
};

/// Requests on each connection below which a visit is too short, and from which it is long enough.
const ROUNDS_MIN: u64 = 1;
const ROUNDS_ENOUGH: u64 = 4;
/// Mean response times of a load of which the first has 5 %.
const RESPONSES_MIN: f64 = 20.0;
/// Requests on each connection of a load that holds its start, below which it may be more than a thirtieth.
const ROUNDS_WITH_START: u64 = 30;
/// Longest page that is sent in one go: the most that TCP hands to a device at a time.
const PAGE_AT_ONCE: Bytes = Bytes(65_536);

fn look(evidence: &Evidence) -> Vec<Observation> {
    let look_at =
        |contender| with_its_start(evidence, contender).or_else(|| look_at(evidence, contender));
    evidence.contenders().filter_map(look_at).collect()
}

/// Loads that were measured from their first request on, so that the start is a part of the rate.
fn with_its_start(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let loads: Vec<&LoadRecord> = evidence
        .loads(contender)
        .filter(|(visit, load)| visit.cut == Nanos::ZERO && load.requests.ok > 0)
        .map(|(_, load)| load)
        .collect();
    let starts: Vec<(Certainty, f64)> = loads.iter().filter_map(|load| start(load)).collect();
    if starts.is_empty() || 2 * starts.len() < loads.len() {
        return None;
    }
    let certainty = starts.iter().map(|(certainty, _)| *certainty).max()?;
    let share = stats::median(&starts.iter().map(|(_, share)| *share).collect::<Vec<_>>())?;
    let shortest = loads.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let evidence = format!(
        "{}: {} in {} on {}, of a mean response time of {}: the first of them is {} of the measured time",
        evidence.name(contender),
        words::count(shortest.requests.done, "request"),
        Nanos::from_secs_f64(shortest.seconds),
        words::count(u64::from(shortest.connections), "connection"),
        Nanos::from_secs_f64(mean_response(shortest)),
        words::percent(share.min(1.0)),
    );
    Some(Observation {
        share: Some(share.min(1.0)),
        certainty,
        contenders: vec![contender],
        evidence,
    })
}

/// The share that one response time has of a load, if that is too much.
fn start(load: &LoadRecord) -> Option<(Certainty, f64)> {
    let response = mean_response(load);
    let share = response / load.seconds.max(1e-9);
    let is_short = share * RESPONSES_MIN > 1.0;
    let slots = window::slots(load);
    // With one request on each connection all of it is the start, however long that takes.
    let is_one_each = load.requests.done <= slots && slots > 1;
    let is_few = load.requests.done < ROUNDS_WITH_START * slots;
    match window::is_closed_loop(load) {
        true if is_short || is_one_each => Some((Certainty::Confirmed, share)),
        true if is_few => Some((Certainty::Suspected, share)),
        false if load.open_loop.is_some() && is_short => Some((Certainty::Confirmed, share)),
        _ => None,
    }
}

/// In seconds; 0 where none was measured.
fn mean_response(load: &LoadRecord) -> f64 {
    load.response_ms.mean.or(load.service_ms.mean).unwrap_or(0.0) / 1e3
}

/// Requests that ended in what was measured of a visit, and the connections they ended on.
#[derive(Clone, Copy)]
struct EndedRequests {
    requests: u64,
    connections: u64,
}

impl EndedRequests {
    /// Whether there are fewer requests than this number on each connection.
    fn below(self, rounds: u64) -> bool {
        self.requests < rounds * self.connections
    }
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let visits = evidence.run.measured(contender);
    let all: Vec<EndedRequests> = visits.filter_map(|visit| ended(evidence, visit)).collect();
    let below = |rounds| all.iter().filter(move |ended| ended.below(rounds));
    let (certainty, rounds) =
        [(Certainty::Confirmed, ROUNDS_MIN), (Certainty::Suspected, ROUNDS_ENOUGH)]
            .into_iter()
            .find(|(_, rounds)| !all.is_empty() && 2 * below(*rounds).count() >= all.len())?;
    let least = below(rounds).min_by_key(|ended| ended.requests)?;
    let for_each = match rounds {
        ROUNDS_MIN => "one request".to_owned(),
        _ => words::count(rounds, "request"),
    };
    let evidence = format!(
        "{}: in {} of {} fewer than {for_each} ended on each connection: as few as {} on {}",
        evidence.name(contender),
        below(rounds).count(),
        words::count(all.len() as u64, "visit"),
        words::grouped(least.requests),
        words::count(least.connections, "connection"),
    );
    Some(Observation { share: None, certainty, contenders: vec![contender], evidence })
}

/// `None` where it does not matter how many ended, and where nobody counted. In an open loop requests do
/// not wait for each other.
fn ended(evidence: &Evidence, visit: &Visit) -> Option<EndedRequests> {
    let work = evidence.run.plan.work(visit.cell, visit.contender);
    let is_sent_at_once = work.is_page() && work.page <= PAGE_AT_ONCE;
    if work.rate.is_some() || work.sleep.is_some() || is_sent_at_once {
        return None;
    }
    let claimed = || visit.tool.as_ref()?.claimed.requests_done;
    let counted = visit.load.as_ref().map(|load| ended_in(load, visit.cut));
    let requests = counted.or_else(claimed)?;
    Some(EndedRequests { requests, connections: u64::from(work.connections) })
}

/// Requests that ended from the cut to the end of the load, well or not. What came while it drained was
/// not measured.
fn ended_in(load: &LoadRecord, cut: Nanos) -> u64 {
    let until = load.plan.stop.duration.unwrap_or(Nanos::MAX);
    let is_inside = |interval: &&Interval| interval.start >= cut && interval.end() <= until;
    let inside = load.intervals.iter().filter(is_inside);
    inside.map(|interval| interval.ok + interval.errors.total()).sum()
}

#[cfg(test)]
mod tests {
    use record::{RunRecord, ToolRun};
    use units::PerSecond;

    use super::*;
    use crate::testdata;

    const PAGE: Bytes = Bytes(3_000_000);

    /// Eight visits of a and b, of 64 connections each, asking for a long page; a given number of a's ended
    /// `requests` requests in what was measured, and as many again before it and while they drained.
    fn with(visits: usize, requests: u64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        run.plan.cells[0].workload.page = PAGE;
        let of_a = run.visits.iter_mut().filter(|visit| visit.contender == 0);
        for visit in of_a.take(visits) {
            let load = visit.load.as_mut().unwrap();
            load.intervals.iter_mut().for_each(|interval| interval.ok = 0);
            load.intervals[0].ok = requests;
            load.intervals[1].ok = requests;
            let end = load.plan.stop.duration.unwrap();
            let mut drained = Interval::new(end, Nanos::from_millis(100));
            drained.ok = requests;
            load.intervals.push(drained);
        }
        run
    }

    fn seen(run: &RunRecord) -> Vec<Observation> {
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
        let text = "a: in 8 of 8 visits fewer than one request ended on each connection: as few as 63 on \
                    64 connections";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn a_visit_in_which_nothing_ended_is_the_shortest_of_all() {
        assert_eq!(seen(&with(8, 0))[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn what_failed_has_ended_too() {
        let mut run = with(8, 0);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            visit.load.as_mut().unwrap().intervals[1].errors.unexpected_status = 4 * 64;
        }
        assert_eq!(seen(&run), []);
    }

    #[test]
    fn a_few_requests_for_each_connection_are_suspected() {
        for (visits, requests) in [(8, 64), (8, 4 * 64 - 1), (4, 64)] {
            let seen = seen(&with(visits, requests));
            assert_eq!(seen.len(), 1, "{visits} visits of {requests}");
            assert_eq!(seen[0].certainty, Certainty::Suspected);
            assert!(seen[0].evidence.contains("fewer than 4 requests"), "{}", seen[0].evidence);
        }
    }

    #[test]
    fn half_of_the_visits_decide() {
        assert_eq!(seen(&with(4, 63))[0].certainty, Certainty::Confirmed);
        assert_eq!(seen(&with(3, 0)), []);
    }

    #[test]
    fn a_page_that_is_sent_in_one_go_is_never_under_way() {
        let mut run = with(8, 10);
        run.plan.cells[0].workload.page = PAGE_AT_ONCE;
        assert_eq!(seen(&run), []);
        run.plan.cells[0].workload.target = "/program".to_owned();
        assert_eq!(seen(&run).len(), 1, "nobody knows how long a program's answer takes");
    }

    #[test]
    fn where_a_program_sleeps_nothing_is_counted() {
        let mut run = with(8, 10);
        run.plan.cells[0].workload.sleep = Some(Nanos::from_secs(1));
        assert_eq!(seen(&run), []);
    }

    #[test]
    fn an_open_loop_is_as_long_as_its_rate_says() {
        let mut run = with(8, 10);
        run.plan.contenders[0].work.rate = Some(PerSecond(10.0));
        assert_eq!(seen(&run), []);
    }

    #[test]
    fn a_contender_that_is_asked_otherwise_is_judged_by_what_it_is_asked() {
        let mut run = with(8, 64);
        run.plan.contenders[0].work.connections = Some(65);
        assert_eq!(seen(&run)[0].certainty, Certainty::Confirmed);
        run.plan.contenders[0].work.connections = Some(16);
        assert_eq!(seen(&run), []);
    }

    #[test]
    fn another_tool_s_own_count_is_looked_at_where_it_has_one() {
        let by_tool = |requests_done| {
            let mut run = with(8, 4 * 64);
            for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
                visit.load = None;
                let mut tool = ToolRun::default();
                tool.claimed.requests_done = requests_done;
                visit.tool = Some(tool);
            }
            seen(&run)
        };
        let one = by_tool(Some(1));
        assert_eq!((one[0].certainty, one[0].contenders[0]), (Certainty::Confirmed, 1));
        assert_eq!(by_tool(None), []);
    }

    /// A load alone of one request after the other: the same number on each of 10 connections, 10 ms each.
    fn alone(rounds: u64) -> Vec<record::Finding> {
        let mut load = testdata::load();
        load.connections = 10;
        load.plan.connections = 10;
        load.seconds = 0.010 * rounds as f64;
        load.plan.stop.duration = None;
        load.plan.stop.requests = Some(10 * rounds);
        load.intervals.truncate(1);
        load.intervals[0].ok = 10 * rounds;
        (load.requests.done, load.requests.ok) = (10 * rounds, 10 * rounds);
        (load.response_ms.mean, load.service_ms.mean) = (Some(10.0), Some(10.0));
        let mut found = crate::examine_load(&load);
        found.retain(|one| one.check == ITEM.name);
        found
    }

    #[test]
    fn a_load_alone_is_too_short_with_its_start_in_it() {
        assert_eq!(alone(100), []);
        assert_eq!(alone(25)[0].certainty, Certainty::Suspected);
        assert_eq!(alone(10)[0].certainty, Certainty::Confirmed);
        let one = alone(1);
        assert_eq!(one[0].certainty, Certainty::Confirmed, "as many requests as connections");
        let text = "the server: 100 requests in 100ms on 10 connections, of a mean response time of 10ms: the first \
                    of them is 10 % of the measured time";
        assert_eq!(alone(10)[0].evidence, text);
        let share = |rounds| alone(rounds)[0].share.unwrap().0;
        assert!((share(10) / share(5) - 0.5).abs() < 1e-9, "twice as long, half the share");
    }
}
