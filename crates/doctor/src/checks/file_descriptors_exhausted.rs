//! Owns the check that client and server could open as many files as they needed. Start reading at [`look`].
//!
//! Each connection is a file descriptor on either end. A client that may open no more makes fewer connections than it
//! was asked for (EMFILE). A server that may open no more does not accept: its clients wait in the queue of
//! connections, and nothing fails but a line in its log.

use record::{Certainty, Descriptors, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "file_descriptors_exhausted",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "client or server could open no more files",
    meaning: "fewer connections were served than the load was to have",
    remedy: "raise the limit on both ends (ulimit -n, LimitNOFILE, worker_rlimit_nofile), or use fewer connections",
    detection: "Requests that failed with EMFILE or ENFILE in the client, one in 1,000: it is confirmed. Of a server: \
             connections without a reply while one of its processes had as many files open as it may",
    example: "prlimit --nofile=64 `joust serve --fixed 3361`, and `joust load -c 100`",
    source: "getrlimit(2), RLIMIT_NOFILE; accept(2), EMFILE",
    needs: &[],
    look,
};

/// Share of the requests from which the load is another one.
const SHARE_MIN: f64 = 0.001;
/// Files that a server at its limit may still open: it may keep some back, and readings are some time apart.
const LEFT_MAX: u32 = 2;
/// Share of the connections that may be left without a reply by chance.
const UNSERVED_MIN: f64 = 0.05;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let found = |contender| client(evidence, contender).or_else(|| server(evidence, contender));
    evidence.contenders().filter_map(found).collect()
}

fn client(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (failed, started) =
        evidence.loads(contender).fold((0, 0), |(failed, started), (_, load)| {
            (failed + load.errors.fd_exhausted, started + load.requests.started)
        });
    let share = failed as f64 / started.max(1) as f64;
    let evidence = format!(
        "{}: {} of {} ({}) failed because the client may open no more files{}",
        evidence.name(contender),
        words::grouped(failed),
        words::count(started, "request"),
        words::percent(share),
        limit(evidence).map_or(String::new(), |limit| format!(" than {}", words::grouped(limit))),
    );
    (share >= SHARE_MIN).then_some(Observation {
        certainty: Certainty::Confirmed,
        share: Some(share),
        contenders: vec![contender],
        evidence,
    })
}

fn server(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (mut asked, mut unserved) = (0, 0);
    let mut nearest: Option<Descriptors> = None;
    for (visit, load) in evidence.loads(contender) {
        asked += u64::from(load.connections);
        unserved += load.requests.unanswered;
        let here = visit.surroundings.as_ref()?.processes?.descriptors;
        nearest = nearest.into_iter().chain(here).min_by_key(|one| one.left());
    }
    let files = nearest.filter(|files| files.left() <= LEFT_MAX)?;
    let share = unserved as f64 / asked.max(1) as f64;
    let evidence = format!(
        "{}: {} of {} ({}) were without a reply at the end, and a process of the server had {} of {} files open",
        evidence.name(contender),
        words::grouped(unserved),
        words::count(asked, "connection"),
        words::percent(share),
        words::grouped(u64::from(files.open)),
        words::grouped(u64::from(files.limit)),
    );
    (share >= UNSERVED_MIN).then_some(Observation {
        certainty: Certainty::Confirmed,
        share: Some(share),
        contenders: vec![contender],
        evidence,
    })
}

/// Files that a process of the run may open.
fn limit(evidence: &Evidence) -> Option<u64> {
    evidence.run.facts.named.get("fd_limit")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use record::{Descriptors, ProcessesUse, RunRecord};

    use super::*;
    use crate::testdata;

    fn clean() -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        run.facts.named.insert("fd_limit".to_owned(), "64".to_owned());
        run
    }

    /// The server b had a given number of 64 files open, and a given number of its connections got no reply.
    fn at(open: u32, unanswered: u64) -> RunRecord {
        let mut run = clean();
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            testdata::count(visit, &[]);
            let processes = ProcessesUse {
                descriptors: Some(Descriptors { open, limit: 64 }),
                ..ProcessesUse::default()
            };
            visit.surroundings.as_mut().unwrap().processes = Some(processes);
            visit.load.as_mut().unwrap().requests.unanswered = unanswered;
        }
        run
    }

    #[test]
    fn a_client_at_its_limit_is_confirmed_with_its_dose() {
        for failed in [450, 900] {
            let mut run = clean();
            for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
                visit.load.as_mut().unwrap().errors.fd_exhausted = failed;
            }
            let seen = look(&Evidence::of(&run));
            assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
            assert!((seen[0].share.unwrap() - failed as f64 / 45_000.0).abs() < 1e-9, "{seen:?}");
            assert!(seen[0].evidence.ends_with("may open no more files than 64"), "{seen:?}");
        }
    }

    #[test]
    fn a_server_at_its_limit_that_leaves_connections_waiting_is_confirmed() {
        let seen = look(&Evidence::of(&at(63, 8)));
        assert_eq!((seen.len(), &seen[0].contenders[..]), (1, &[1][..]));
        assert!(
            seen[0].evidence.contains("a process of the server had 63 of 64 files open"),
            "{seen:?}"
        );
    }

    #[test]
    fn one_witness_is_silent() {
        assert_eq!(look(&Evidence::of(&clean())), []);
        assert_eq!(look(&Evidence::of(&at(63, 0))), []);
        assert_eq!(look(&Evidence::of(&at(30, 8))), []);
        let mut unknown = at(63, 8);
        for visit in &mut unknown.visits {
            visit.surroundings = None;
        }
        assert_eq!(look(&Evidence::of(&unknown)), []);
    }
}
