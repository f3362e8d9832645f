//! Owns the check that a change of the machine in the course of a run left ratios alone. Start reading at [`look`].
//!
//! Blocks are interleaved, so what slows all contenders slows no ratio. If it slows one more than the others (one
//! needs the disk that a job began to use, one is bound to memory and one to the CPU), then the ratio is one number
//! before the change and another one after it, and their mean describes neither.
//!
//! The place is where visits change their level ([`super::drift`]), or where the contender's own distance to the
//! others does, from 20 blocks on. Before and after are compared by Welch's t at p < 0.5 % over all contenders and
//! metrics, and by 2 % or more. It is confirmed where the calibration workload changes at the same place.

use std::collections::BTreeMap;

use record::{Certainty, Metric, Question, Severity};
use stats::TwoSample;

use super::Check;
use super::drift::{Change, change};
use crate::deviations::{deviations, level_metrics};
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "uneven_drift",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "a change of the machine slowed one contender more than the others",
    meaning: "the ratio is the mean of two ratios, before and after the change, and depends on when it came",
    remedy: "look for what began at that time, and repeat on a quiet machine: joust run --repeat-of RUN",
    detection: "Where the level of the visits changes, the distance of a contender to the others changes too (Welch's \
             t at 0.5 %, 2 % or more). It is confirmed where the calibration workload changes at the same place",
    example: "a backup that begins at half-time, and one server of two that reads from the disk",
    source: "Killick, Fearnhead and Eckley, Optimal Detection of Changepoints, 2012; Welch, 1947",
    needs: &[],
    look,
};

/// Least change of a distance, as a ratio minus one.
const SHIFT_MIN: f64 = 0.02;
/// p over all contenders and metrics.
const P_MAX: f64 = 0.005;
/// Least blocks on either side.
const BLOCKS_MIN: usize = 4;

/// One for each contender that moved: the furthest first, then the others without it. Of two, one.
fn look(evidence: &Evidence) -> Vec<Observation> {
    let metrics = level_metrics(*evidence);
    let mut left: Vec<usize> = evidence.contenders().collect();
    let tests = (metrics.len() * left.len()) as f64;
    let mut found = Vec::new();
    while left.len() > 1 {
        let by = |contender: usize| {
            let others: Vec<usize> = left.iter().copied().filter(|one| *one != contender).collect();
            let by = |metric: &Metric| moved_by(*evidence, contender, &others, *metric, tests);
            metrics.iter().filter_map(by).max_by(further)
        };
        let Some(seen) = left.iter().filter_map(|&one| by(one)).max_by(further) else { break };
        left.retain(|one| !seen.contenders.contains(one));
        found.push(seen);
    }
    found
}

fn further(one: &Observation, other: &Observation) -> std::cmp::Ordering {
    one.share.unwrap_or(0.0).total_cmp(&other.share.unwrap_or(0.0))
}

fn moved_by(
    evidence: Evidence<'_>,
    contender: usize,
    others: &[usize],
    metric: Metric,
    tests: f64,
) -> Option<Observation> {
    let distances = distances(evidence, contender, others, metric);
    let logs: Vec<f64> = distances.iter().map(|(_, log)| *log).collect();
    let common = change(evidence, metric);
    let own = stats::change_points(&logs).first().map(|at| distances[*at].0);
    // The distance itself picked its own place, so that only the calibration's is a second witness.
    let witness = common.as_ref().filter(|change| change.calibration.is_some());
    let block = witness.map(|change: &Change| change.block).or(own)?;
    let (before, after): (Vec<&(u32, f64)>, Vec<_>) =
        distances.iter().partition(|(at, _)| *at < block);
    let logs = |part: &[&(u32, f64)]| part.iter().map(|(_, log)| *log).collect::<Vec<f64>>();
    let compared = TwoSample::of_logs(&logs(&after), &logs(&before)).ok()?;
    let is_moved = before.len().min(after.len()) >= BLOCKS_MIN
        && compared.centre_ln.abs() >= SHIFT_MIN.ln_1p()
        && compared.interval?.p * tests < P_MAX;
    let calibration = witness.and_then(|change| change.calibration);
    let evidence = format!(
        "{}: from block {} on {} against {} is {:.3}x what it was before{}",
        evidence.name(contender),
        block + 1,
        metric.info().quantity,
        evidence.names(others),
        compared.ratio,
        calibration.map_or_else(String::new, |shift| format!(
            "; the calibration workload changed by {} at that place",
            words::percent(shift.abs().exp_m1())
        )),
    );
    is_moved.then(|| Observation {
        share: Some(compared.centre_ln.abs().exp_m1()),
        certainty: calibration.map_or(Certainty::Suspected, |_| Certainty::Confirmed),
        contenders: vec![contender],
        evidence,
    })
}

/// Log of a contender's value less the median of the others', block by block.
fn distances(
    evidence: Evidence<'_>,
    contender: usize,
    others: &[usize],
    metric: Metric,
) -> Vec<(u32, f64)> {
    let mut blocks: BTreeMap<u32, (Option<f64>, Vec<f64>)> = BTreeMap::new();
    for one in deviations(evidence, |visit| visit.value(metric)) {
        let block = blocks.entry(one.visit.block).or_default();
        match one.visit.contender == contender {
            true => block.0 = Some(one.log),
            false if others.contains(&one.visit.contender) => block.1.push(one.log),
            false => {}
        }
    }
    let distance = |(block, (own, others)): (u32, (Option<f64>, Vec<f64>))| {
        Some((block, own? - stats::median(&others)?))
    };
    blocks.into_iter().filter_map(distance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::drift::tests::run;

    #[test]
    fn a_change_that_slows_one_of_two_more_fires_and_withholds() {
        let seen = look(&Evidence::of(&run(14, &[0.85, 0.97], 1.1, 1)));
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!((seen[0].certainty, seen[0].contenders.len()), (Certainty::Confirmed, 1));
        let text = &seen[0].evidence;
        assert!(text.contains(": from block 8 on requests/s against "), "{text}");
        let share = seen[0].share.unwrap();
        assert!((share - 0.14).abs() < 0.02, "{share}");
    }

    #[test]
    fn of_three_the_one_that_moved_is_named() {
        let seen = look(&Evidence::of(&run(14, &[0.97, 0.97, 0.8], 1.1, 1)));
        assert_eq!(seen.iter().map(|one| one.contenders.clone()).collect::<Vec<_>>(), [[2]]);
    }

    #[test]
    fn a_change_that_slows_all_alike_leaves_ratios_alone() {
        let alarms =
            (0..60).filter(|&seed| !look(&Evidence::of(&run(14, &[0.9; 3], 1.1, seed))).is_empty());
        assert!(alarms.count() <= 1);
    }

    #[test]
    fn steady_runs_are_silent() {
        let alarms =
            (0..60).filter(|&seed| !look(&Evidence::of(&run(24, &[1.0; 2], 1.0, seed))).is_empty());
        assert!(alarms.count() <= 1);
        assert_eq!(look(&Evidence::of(&run(14, &[1.0], 1.0, 1))), []);
    }

    #[test]
    fn one_that_changes_alone_is_a_suspicion_from_twenty_blocks_on() {
        let seen = look(&Evidence::of(&run(24, &[0.9, 1.0], 1.0, 1)));
        assert_eq!(
            seen.iter().map(|one| one.certainty).collect::<Vec<_>>(),
            [Certainty::Suspected]
        );
    }
}
