//! Owns the check that connections were kept where that was asked. Must not know who closed them.
//! Start reading at [`look`].
//!
//! A server that ends a connection after 100 requests (Apache's and Tomcat's default) or 1,000
//! (nginx) makes its client connect again: two more round trips, a new socket on both ends, and
//! TIME_WAIT. Beside one without a limit that is other work, and no report of requests/s shows it.
//! Without keep-alive every request has a connection by plan, so there is nothing to look for.

use record::{Certainty, Severity};

use super::Check;
use crate::{Evidence, Seen, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "keep_alive_not_honoured",
    severity: Severity::Void,
    title: "connections were closed that should have been kept",
    meaning: "connecting again is work that the others did not have to do",
    remedy: "lift the limit for all alike (Apache and joust: MaxKeepAliveRequests 0; nginx: \
             keepalive_requests 4294967295; lighttpd: server.max-keep-alive-requests = 65535, its \
             most), or compare without keep-alive ([workload] keep_alive = false)",
    needs: &[],
    look,
};

/// Connections made over connections asked for, above which they were not kept: a few in a hundred
/// may be lost to a worker that ends.
const CONNECTS_MAX: f64 = 1.05;
/// Requests for each reconnect from which on it is of no interest: a connect costs about as much as
/// a few requests, so one in 10,000 does not reach a thousandth of the rate. lighttpd can keep a
/// connection for 65,535 requests at most, which a long visit uses up.
const REQUESTS_PER_RECONNECT_MAX: u64 = 10_000;

fn look(evidence: &Evidence) -> Vec<Seen> {
    if !evidence.run.plan.cells[0].workload.keep_alive {
        return Vec::new();
    }
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Seen> {
    let (mut asked, mut made, mut requests) = (0, 0, 0);
    for (_, load) in evidence.loads(contender) {
        asked += u64::from(load.connections);
        made += load.connects;
        requests += load.requests.done;
    }
    let again = made.saturating_sub(asked);
    let few = made as f64 <= CONNECTS_MAX * asked as f64;
    if few || again.saturating_mul(REQUESTS_PER_RECONNECT_MAX) < requests {
        return None;
    }
    let evidence = format!(
        "{}: {} for {} that should have been kept, one for every {}",
        evidence.name(contender),
        words::count(made, "connection"),
        words::grouped(asked),
        words::count((requests as f64 / made as f64).round() as u64, "request"),
    );
    Some(Seen { certainty: Certainty::Confirmed, contenders: vec![contender], evidence })
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// Contender 1 closes each connection after so many requests.
    fn limited_to(requests: u64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            load.connects = load.requests.done / requests;
        }
        run
    }

    #[test]
    fn connections_that_are_kept_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
    }

    #[test]
    fn a_limit_of_a_hundred_requests_fires_and_is_named() {
        let seen = look(&Evidence::of(&limited_to(100)));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].contenders.as_slice(), seen[0].certainty),
            (&[1][..], Certainty::Confirmed)
        );
        assert!(seen[0].evidence.ends_with("one for every 100 requests"), "{}", seen[0].evidence);
    }

    #[test]
    fn one_connection_lost_in_a_visit_is_silent() {
        let mut run = testdata::run(&["a", "b"], 8);
        run.visits[1].load.as_mut().unwrap().connects += 1;
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn the_most_that_lighttpd_can_keep_is_enough() {
        let mut run = testdata::run(&["a", "b"], 8);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.requests.done = 65_535 * 64 * 2;
            load.connects = 128;
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn without_keep_alive_there_is_nothing_to_honour() {
        let mut run = limited_to(1);
        run.plan.cells[0].workload.keep_alive = false;
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
