//! Owns the check that a load ran to its planned end. Start reading at [`look`].
//!
//! What was measured until the interruption stands, but it is shorter than planned: fewer requests for the
//! high percentiles, and perhaps none of what the load would have met later. A visit of a run that is
//! interrupted is not kept, so this is seen in loads alone.

use record::{Certainty, LoadRecord, Question, Severity};
use units::Nanos;

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "interrupted_load",
    severity: Severity::Note,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "the load was interrupted",
    meaning: "the figures are of the time until then, not of the planned load",
    remedy: "let it run to its end, or plan a shorter one (-d, -n)",
    detection: "The generator records that it was asked to end before its plan was done",
    example: "Ctrl-C during `joust load -d 60 URL`",
    source: "signal(7)",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (_, load) = evidence.loads(contender).find(|(_, load)| load.interrupted)?;
    let evidence = format!(
        "{}: the load was interrupted after {}{}",
        evidence.name(contender),
        Nanos::from_secs_f64(load.seconds),
        planned(load),
    );
    Some(Observation {
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
        ..Observation::default()
    })
}

/// How much was planned, as behind "after 2s".
fn planned(load: &LoadRecord) -> String {
    let stop = &load.plan.stop;
    match (stop.duration, stop.requests) {
        (Some(duration), _) => format!(" of {duration}"),
        (None, Some(requests)) => format!(
            " and {} of {}",
            words::grouped(load.requests.done),
            words::count(requests, "request")
        ),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn an_interruption_is_told_with_what_was_planned_and_a_whole_load_is_silent() {
        let mut run = testdata::run(&["a"], 2);
        assert_eq!(look(&Evidence::of(&run)), []);
        let load = run.visits[1].load.as_mut().unwrap();
        (load.interrupted, load.seconds) = (true, 2.0);
        load.plan.stop.duration = Some(Nanos::from_secs(60));
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen[0].evidence, "a: the load was interrupted after 2s of 60s");
        let load = run.visits[1].load.as_mut().unwrap();
        load.plan.stop = record::LoadStop { requests: Some(90_000), duration: None };
        let seen = look(&Evidence::of(&run));
        let text = "a: the load was interrupted after 2s and 45,000 of 90,000 requests";
        assert_eq!(seen[0].evidence, text);
    }
}
