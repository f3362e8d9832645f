//! Owns the check for disturbed visits among those that are used. A disturbed visit is made
//! again; after too many tries, or if the study says `keep_disturbed`, the last one is used. Start
//! reading at [`look`].
//!
//! Blocks are interleaved, so a disturbance of all contenders shifts no estimate: it widens the interval, and
//! may leave too few blocks to see a difference. So it is a note, confirmed from half of the
//! visits on. Some disturbances are unequal: a quota of CPU time, or a hypervisor, stops the contender that
//! uses most. If the contenders' shares are far apart, the evidence lists each, and the finding is confirmed.

use std::collections::BTreeMap;

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "disturbed_machine",
    severity: Severity::Note,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "some of the used visits were made on a disturbed machine",
    meaning: "the figures include what else the machine did: intervals are wider than necessary, and if \
              contenders were disturbed unequally, part of their difference is the machine's",
    remedy: "stop other programs, or use a machine of its own; then: joust run --repeat-of RUN",
    detection: "Steal, CPU time of other processes, quotas, steps of the clock and a calibration workload \
             before each visit. It is confirmed from half of the visits on, or where contenders were \
             disturbed unequally",
    example: "a compiler that runs beside the measurement",
    source: "https://docs.kernel.org/filesystems/proc.html (steal); cgroups(7)",
    needs: &[],
    look,
};

/// One for all contenders: they shared the machine.
fn look(evidence: &Evidence) -> Vec<Observation> {
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut disturbed, mut all) = (0, 0);
    let mut contenders = Vec::new();
    let mut parts = Vec::new();
    for contender in evidence.contenders() {
        let (before, all_before) = (disturbed, all);
        for visit in evidence.run.measured(contender) {
            all += 1;
            if let Some(disturbance) = visit.disturbance() {
                disturbed += 1;
                *causes.entry(disturbance.cause()).or_default() += 1;
            }
        }
        if disturbed > before {
            contenders.push(contender);
        }
        parts.push((contender, disturbed - before, all - all_before));
    }
    let Some((most, _)) = causes.into_iter().max_by_key(|(_, number)| *number) else {
        return Vec::new();
    };
    let mut text =
        format!("{disturbed} of {} used, most often because {most}", words::count(all, "visit"),);
    let is_uneven = is_uneven(&parts);
    if is_uneven {
        let name = |contender: usize| &evidence.run.plan.contenders[contender].name;
        let each = parts.iter().map(|&(one, some, of)| format!("{}: {some} of {of}", name(one)));
        text.push_str(&format!("; unequally: {}", each.collect::<Vec<_>>().join(", ")));
    }
    let is_much = is_uneven || 2 * disturbed >= all;
    let certainty = if is_much { Certainty::Confirmed } else { Certainty::Suspected };
    vec![Observation { share: None, certainty, contenders, evidence: text }]
}

/// Whether the parts of the contenders, each with its disturbed visits and all that are used, lie so far
/// from each other that chance does not explain it: with six visits each, half of them apart is more than
/// two standard errors.
fn is_uneven(parts: &[(usize, u64, u64)]) -> bool {
    const VISITS_MIN: u64 = 6;
    const APART: f64 = 0.5;
    let enough = parts.iter().filter(|(_, _, all)| *all >= VISITS_MIN);
    let shares: Vec<f64> = enough.map(|&(_, some, all)| some as f64 / all as f64).collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    let least = shares.iter().copied().fold(1.0, f64::min);
    most - least >= APART
}

#[cfg(test)]
mod tests {
    use record::{Disturbance, RunRecord, Surroundings};
    use units::Share;

    use super::*;
    use crate::testdata;

    /// The first visits of contender 0 were disturbed.
    fn with_disturbed(number: usize) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in &mut run.visits {
            visit.surroundings = Some(Box::default());
        }
        let visits = run.visits.iter_mut().filter(|visit| visit.contender == 0);
        for (n, visit) in visits.take(number).enumerate() {
            let disturbance = match n {
                0 => Disturbance::Steal { share: Share(0.1) },
                _ => Disturbance::ForeignCpu { share_of_a_core: Share(0.3), most: None },
            };
            let around = Surroundings { disturbance: Some(disturbance), ..Surroundings::default() };
            visit.surroundings = Some(Box::new(around));
        }
        run
    }

    #[test]
    fn calm_visits_and_those_of_which_nothing_is_known_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        assert_eq!(look(&Evidence::of(&with_disturbed(0))), []);
    }

    #[test]
    fn disturbed_visits_fire_and_are_confirmed_when_they_are_half_of_all() {
        let seen = look(&Evidence::of(&with_disturbed(3)));
        assert_eq!(seen.len(), 1);
        let (certainty, contenders) = (seen[0].certainty, seen[0].contenders.as_slice());
        assert_eq!((certainty, contenders), (Certainty::Suspected, &[0][..]));
        let text = "3 of 16 visits used, most often because other processes used the CPUs";
        assert_eq!(seen[0].evidence, text);
        let seen = look(&Evidence::of(&with_disturbed(8)));
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
    }

    #[test]
    fn contenders_that_were_not_disturbed_alike_are_told_apart() {
        let seen = look(&Evidence::of(&with_disturbed(5)));
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        assert!(seen[0].evidence.ends_with("unequally: a: 5 of 8, b: 0 of 8"), "{seen:?}");
        let mut alike = with_disturbed(8);
        let around = alike.visits.iter().find(|visit| visit.contender == 0).unwrap();
        let around = around.surroundings.clone();
        alike.visits.iter_mut().for_each(|visit| visit.surroundings = around.clone());
        assert!(!look(&Evidence::of(&alike))[0].evidence.contains("unequally"));
    }
}
