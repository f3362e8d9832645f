//! Owns the check that a server had warmed up before it was measured, where the study asks for that ([visit]
//! settle). Start reading at [`look`].
//!
//! A JVM compiles what is called often. Until it is done each second is faster than the one before,
//! and the mean over a visit describes no program that anybody runs (Barrett et al. 2017, Virtual
//! Machine Warmup Blows Hot and Cold). The finding is confirmed if half of the visits never became steady.

use record::{Certainty, Question, Settled, Severity};
use units::Nanos;

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "no_steady_state",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "visits were measured before the rate was steady",
    meaning: "the mean includes a warm-up, so it depends on the length of the measurement",
    remedy: "allow a longer warm-up ([visit] settle); if none is long enough, make the server more \
             constant (for a JVM: -Xmx, gc), or measure the warm-up itself",
    detection: "The rate at the end of the further warm-up still changes. It is confirmed where that holds \
             for half of the visits",
    example: "Tomcat in its first seconds",
    source: "Barrett et al., Virtual Machine Warmup Blows Hot and Cold, OOPSLA 2017",
    needs: &[],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let visits = evidence.run.measured(contender);
    let all: Vec<Settled> = visits.filter_map(|visit| visit.settled).collect();
    let unsteady = all.iter().filter(|settled| !settled.steady);
    let number = unsteady.clone().count();
    let longest: Nanos = unsteady.map(|settled| settled.took).max()?;
    let is_most = 2 * number >= all.len();
    let evidence = format!(
        "{}: in {} of {} the rate was still changing after a further warm-up of {longest}",
        evidence.name(contender),
        number,
        words::count(all.len() as u64, "visit"),
    );
    Some(Observation {
        share: None,
        certainty: if is_most { Certainty::Confirmed } else { Certainty::Suspected },
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::testdata;

    /// The first visits of contender 0 never became steady.
    fn with_unsteady(number: usize) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in &mut run.visits {
            visit.settled = Some(Settled { took: Nanos::from_secs(3), steady: true });
        }
        let visits = run.visits.iter_mut().filter(|visit| visit.contender == 0);
        for visit in visits.take(number) {
            visit.settled = Some(Settled { took: Nanos::from_secs(20), steady: false });
        }
        run
    }

    #[test]
    fn steady_visits_and_those_that_were_not_asked_to_settle_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        assert_eq!(look(&Evidence::of(&with_unsteady(0))), []);
    }

    #[test]
    fn unsteady_visits_fire_and_are_confirmed_when_they_are_half_of_all() {
        let seen = look(&Evidence::of(&with_unsteady(3)));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].certainty, seen[0].contenders.as_slice()),
            (Certainty::Suspected, &[0][..])
        );
        let text = "a: in 3 of 8 visits the rate was still changing after a further warm-up of 20s";
        assert_eq!(seen[0].evidence.replace("20 s", "20s"), text);
        let seen = look(&Evidence::of(&with_unsteady(4)));
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
    }
}
