//! Owns the check that a closed loop had as many connections open as it was asked for. Start reading at [`look`].
//!
//! A closed loop loads a server by its connections: each has one request at a time. Where some could never be
//! opened (a full backlog, a limit of files, fewer requests than connections), the server had less to do at
//! once than the report's heading says. An open loop opens no more connections than it needs.

use record::{Certainty, LoadRecord, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "fewer_connections",
    severity: Severity::Note,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "fewer connections were open at once than asked for",
    meaning: "the load was smaller than its plan says, so the figures are those of fewer clients",
    remedy: "raise what refuses them (the server's backlog and slots, `ulimit -n`), or ask for as many \
             requests as connections (-n at least -c)",
    detection: "The most connections that the generator had open at once, over all visits, is below what was \
             asked for. Closed loops only",
    example: "`joust load -c 100 -n 50 URL` opens 50 connections",
    source: "Schroeder et al., Open Versus Closed: A Cautionary Tale, NSDI 2006",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let is_closed = |load: &&LoadRecord| load.open_loop.is_none() && load.requests.started > 0;
    let loads = evidence.loads(contender).map(|(_, load)| load).filter(is_closed);
    // The visit that came nearest: one that was cut short says nothing about the others.
    let most = loads.max_by_key(|load| load.client.connections_open_max)?;
    let (open, asked) = (most.client.connections_open_max, most.connections);
    (open < asked).then(|| Observation {
        share: Some(1.0 - f64::from(open) / f64::from(asked)),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence: format!(
            "{}: at most {} of {} were open at once",
            evidence.name(contender),
            words::grouped(open.into()),
            words::count(asked.into(), "connection"),
        ),
    })
}

#[cfg(test)]
mod tests {
    use record::{OpenLoop, RunRecord};

    use super::*;
    use crate::testdata;

    fn with(open: u32) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 2);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.load.as_mut().unwrap().client.connections_open_max = open;
        }
        run
    }

    #[test]
    fn connections_that_were_never_open_are_counted_and_a_whole_load_is_silent() {
        assert_eq!(look(&Evidence::of(&with(64))), []);
        let seen = look(&Evidence::of(&with(8)));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[1][..]));
        assert_eq!(seen[0].evidence, "b: at most 8 of 64 connections were open at once");
        assert_eq!(seen[0].share, Some(0.875));
    }

    #[test]
    fn one_visit_with_all_of_them_is_enough_and_an_open_loop_needs_fewer() {
        let mut run = with(8);
        let visit = run.visits.iter_mut().rfind(|visit| visit.contender == 1).unwrap();
        visit.load.as_mut().unwrap().client.connections_open_max = 64;
        assert_eq!(look(&Evidence::of(&run)), []);
        let mut run = with(8);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.open_loop = Some(OpenLoop::default());
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }
}
