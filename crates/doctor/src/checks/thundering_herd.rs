//! Owns the check for connections that wake every worker. Start reading at [`look`].
//!
//! Workers that all wait for the same listener may all be woken by one connection; one gets it, the others go
//! back to sleep. Each wakes and sleeps once more for each connection, so that context switches over connections
//! grow with the number of workers. A server that wakes one needs two or three switches for a connection:
//! to accept, to wait for the request, to wait for the end.
//!
//! With kept connections accepting is rare, so the check looks only where each request has its own. The slope over
//! several numbers of workers would prove it; at one number it stays suspected.

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "thundering_herd",
    severity: Severity::Note,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "each connection seems to wake most workers of the server",
    meaning: "CPU time goes into waking workers that find nothing to do, and grows with their number",
    remedy: "let one worker wait at a time (Apache: Mutex for accept; nginx: accept_mutex on), or let the \
             kernel wake one (EPOLLEXCLUSIVE, SO_REUSEPORT); measure with half of the workers to see the slope",
    detection: "Without keep-alive: voluntary context switches of the server over accepted connections, more \
             than half of its workers, of which there are 16 or more. One number of workers shows no slope, so \
             it is suspected",
    example: "64 processes in epoll_wait on one listener without EPOLLEXCLUSIVE",
    source: "epoll_ctl(2), EPOLLEXCLUSIVE; \
             https://nginx.org/en/docs/ngx_core_module.html#accept_mutex",
    needs: &[],
    look,
};

/// With fewer workers, half of them is what a connection costs in any case.
const WORKERS_MIN: u64 = 16;
const SWITCHES_PER_WORKER_MIN: f64 = 0.5;
const CONNECTIONS_MIN: u64 = 100;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (mut switches, mut accepted, mut workers) = (0, 0, u64::MAX);
    for (visit, load) in evidence.loads(contender) {
        if evidence.run.plan.work(visit.cell, contender).keep_alive {
            return None;
        }
        let (server, around) = (visit.server?, visit.surroundings.as_ref()?);
        switches += around.processes?.switches_voluntary;
        accepted += load.connects;
        workers = workers.min(u64::from(server.processes.max(server.threads)));
    }
    if accepted < CONNECTIONS_MIN || workers < WORKERS_MIN {
        return None;
    }
    let each = switches as f64 / accepted as f64;
    if each <= SWITCHES_PER_WORKER_MIN * workers as f64 {
        return None;
    }
    let evidence = format!(
        "{}: its {} workers went to sleep {each:.0} times for each of {}",
        evidence.name(contender),
        words::grouped(workers),
        words::count(accepted, "connection"),
    );
    Some(Observation {
        certainty: Certainty::Suspected,
        share: None,
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use record::{ProcessesUse, RunRecord, Surroundings};

    use super::*;
    use crate::testdata;

    /// Visits of a without keep-alive: 45,000 connections each, a given number of workers, and switches for each.
    fn with(workers: u32, switches: u64) -> RunRecord {
        let mut run = testdata::run(&["a"], 8);
        run.plan.cells[0].workload.keep_alive = false;
        for visit in &mut run.visits {
            let load = visit.load.as_mut().unwrap();
            load.connects = load.requests.done;
            visit.server.as_mut().unwrap().processes = workers;
            let switches_voluntary = switches * load.connects;
            let processes = Some(ProcessesUse { switches_voluntary, ..ProcessesUse::default() });
            visit.surroundings =
                Some(Box::new(Surroundings { processes, ..Surroundings::default() }));
        }
        run
    }

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    #[test]
    fn workers_that_are_all_woken_are_suspected() {
        let seen = seen(&with(64, 60));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Suspected));
        let text = "a: its 64 workers went to sleep 60 times for each of 360,000 connections";
        assert_eq!(seen[0].evidence, text);
    }

    #[test]
    fn a_few_switches_few_workers_and_kept_connections_are_silent() {
        assert_eq!(seen(&with(64, 3)), []);
        assert_eq!(seen(&with(4, 4)), []);
        let mut kept = with(64, 60);
        kept.plan.cells[0].workload.keep_alive = true;
        assert_eq!(seen(&kept), []);
        let mut unknown = with(64, 60);
        unknown.visits[0].surroundings = None;
        assert_eq!(seen(&unknown), []);
    }
}
