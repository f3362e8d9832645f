//! Owns the check that every connection was served. Start reading at [`look`].
//!
//! A server with fewer slots than connections (MaxRequestWorkers 8 and 32 connections, with
//! keep-alive) answers those that it accepted, and fast, since few compete; the others stay in its
//! backlog. Nothing fails: their requests are still waiting when the load ends, so they are in no rate,
//! no latency and no count of errors. The measured load is smaller than that of the other contenders.
//!
//! A closed loop has one request on each connection, so an unanswered request is a connection
//! that waited, at least for the time that the load drains (half a second in a study).
//! So slow a reply is too rare to reach the limit by itself.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "unserved_connections",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "connections were left without a reply",
    meaning: "the served connections had less competition, and those that waited are in no latency",
    remedy: "give the server a slot for each connection (MaxRequestWorkers, max-thread, \
             worker_connections), or use fewer connections ([workload] connections)",
    detection: "Requests that were still without a reply when the load had ended and drained, over connections:\
              above 5 % it is confirmed",
    example: "`joust serve --fixed 3361 --fault slots=8 --fault delay=1s` with 100 connections",
    source: "listen(2)",
    needs: &[],
    look,
};

/// Share of the connections that may wait at the end, over all visits: a few may always be lost to a
/// worker that ends, or wait for a second after a lost SYN.
const UNSERVED_MAX: f64 = 0.05;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (mut asked, mut unserved) = (0, 0);
    for (_, load) in evidence.loads(contender) {
        asked += u64::from(load.connections);
        unserved += load.requests.unanswered;
    }
    let share = unserved as f64 / asked.max(1) as f64;
    if share <= UNSERVED_MAX {
        return None;
    }
    let evidence = format!(
        "{}: {} of {} ({}) were still waiting for a reply when the load had ended and drained",
        evidence.name(contender),
        words::grouped(unserved),
        words::count(asked, "connection"),
        words::percent(share),
    );
    Some(Observation {
        share: Some(share),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    /// Eight visits of a and b, of 64 connections each, where a given number of b's in each visit waited.
    fn seen_with(unanswered: u64) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let requests = &mut visit.load.as_mut().unwrap().requests;
            requests.unanswered = unanswered;
            requests.started += unanswered;
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn fewer_slots_than_connections_fire_with_how_many_waited() {
        let seen = seen_with(56);
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].contenders.as_slice(), seen[0].certainty),
            (&[1][..], Certainty::Confirmed)
        );
        let text = "b: 448 of 512 connections (87.5 %) were still waiting";
        assert!(seen[0].evidence.starts_with(text), "{}", seen[0].evidence);
    }

    #[test]
    fn a_few_slow_replies_are_silent() {
        assert_eq!(seen_with(0), []);
        assert_eq!(seen_with(3), []);
    }
}
