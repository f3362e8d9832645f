//! Owns the check that the machine was the same from the first block to the last. Start reading at [`look`].
//!
//! A clock that was lowered, a neighbour that came: from some visit on everything takes longer. Blocks are
//! interleaved, so all contenders are slowed and ratios stand; absolute figures are a mean of two machines, and
//! intervals wider than needed. Where contenders were slowed unequally, see `uneven_drift`.
//!
//! Two series of all visits in the order in which they were made are asked for a change point: how long the
//! calibration workload took before each, and the values less the median of their contender. Both changing at
//! the same place, slower with slower, is confirmed. If only the values do, by 3 % and of each contender alike, it is
//! a suspicion. The calibration alone changed nothing, and is silent.

use record::{Certainty, Metric, Question, Severity};
use stats::Better;

use super::Check;
use crate::deviations::{Deviation, deviations, level_metrics};
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "drift",
    severity: Severity::Note,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "the machine changed its speed in the course of the run",
    meaning: "absolute figures are a mean of two states of the machine, and depend on how many blocks fell in each",
    remedy: "look for what began at that time (a job, a lower clock, another machine of the host), and repeat: joust \
             run --repeat-of RUN",
    detection: "Change points (PELT) in the values of all visits and in the time of the calibration workload before \
             each. It is confirmed where both change at the same visit, by 2 % or more",
    example: "a build that begins at half-time, on another CPU of the same socket",
    source: "Killick, Fearnhead and Eckley, Optimal Detection of Changepoints, 2012",
    needs: &[],
    look,
};

/// Least change of the values, as a ratio minus one.
const SHIFT_MIN: f64 = 0.02;
/// The same where no calibration tells of it.
const SHIFT_ALONE_MIN: f64 = 0.03;
/// Least change of the calibration's time.
const CALIBRATION_SHIFT_MIN: f64 = 0.01;

/// One for the cell, by the metric that changed most.
fn look(evidence: &Evidence) -> Vec<Observation> {
    let changes =
        level_metrics(*evidence).into_iter().filter_map(|metric| change(*evidence, metric));
    let seen = |change: &Change| {
        let is_alike = change.of_each.iter().all(|of| of * change.shift > 0.0);
        match change.calibration {
            Some(_) => true,
            None => {
                is_alike
                    && change.of_each.len() > 1
                    && change.shift.abs() >= SHIFT_ALONE_MIN.ln_1p()
            }
        }
    };
    let largest = changes.filter(seen).max_by(|a, b| a.shift.abs().total_cmp(&b.shift.abs()));
    largest.map(|change| said(evidence, &change)).into_iter().collect()
}

fn said(evidence: &Evidence, change: &Change) -> Observation {
    let calibration = change
        .calibration
        .map_or_else(String::new, |shift| format!("; the calibration workload took {}", by(shift)));
    let contenders: Vec<usize> = evidence.contenders().collect();
    Observation {
        share: Some(change.shift.abs().exp_m1()),
        certainty: change.calibration.map_or(Certainty::Suspected, |_| Certainty::Confirmed),
        contenders: Vec::new(),
        evidence: format!(
            "{}: from block {} on {} is {} of what it was before{calibration}",
            evidence.names(&contenders),
            change.block + 1,
            change.metric.info().quantity,
            words::percent(change.shift.exp()),
        ),
    }
}

/// "5 % longer", "5 % less long".
fn by(shift: f64) -> String {
    let word = if shift > 0.0 { "longer" } else { "less" };
    format!("{} {word}", words::percent(shift.exp().max((-shift).exp()) - 1.0))
}

/// Where a metric of all contenders changes.
#[derive(Debug)]
pub(crate) struct Change {
    pub metric: Metric,
    /// Block from which on it is otherwise.
    pub block: u32,
    /// ln of the level after over that before.
    pub shift: f64,
    /// The same of each contender.
    pub of_each: Vec<f64>,
    /// The same of the calibration workload's time, where that changes at the same place and in the same sense.
    pub calibration: Option<f64>,
}

/// The largest change of a metric; `None` where it has none of interest.
pub(crate) fn change(evidence: Evidence<'_>, metric: Metric) -> Option<Change> {
    let all = deviations(evidence, |visit| visit.value(metric));
    let logs: Vec<f64> = all.iter().map(|one| one.log).collect();
    let sizes = stats::change_points(&logs).into_iter().map(|at| (at, shift(&logs, at)));
    let (at, size) = sizes.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    if size.abs() < SHIFT_MIN.ln_1p() {
        return None;
    }
    let of = |contender: usize| {
        let own = |one: &&Deviation| one.visit.contender == contender;
        let before = median(all[..at].iter().filter(own).map(|one| one.log))?;
        Some(median(all[at..].iter().filter(own).map(|one| one.log))? - before)
    };
    let is_slower = match metric.info().better {
        Better::Higher => size < 0.0,
        Better::Lower => size > 0.0,
    };
    Some(Change {
        metric,
        block: all[at].visit.block,
        shift: size,
        of_each: evidence.contenders().filter_map(of).collect(),
        calibration: calibration(&all, at, evidence.contenders().len(), is_slower),
    })
}

/// What the calibration's time changes by, if it changes within a block of `at` and gets longer where visits get
/// slower.
fn calibration(all: &[Deviation], at: usize, block: usize, is_slower: bool) -> Option<f64> {
    let time = |one: &Deviation| {
        let took = one.visit.surroundings.as_ref()?.calm.calibration?;
        (took.0 > 0).then(|| (took.0 as f64).ln())
    };
    let logs: Option<Vec<f64>> = all.iter().map(time).collect();
    let logs = logs?;
    let near = stats::change_points(&logs).into_iter().filter(|other| other.abs_diff(at) <= block);
    let sizes = near.map(|at| shift(&logs, at));
    let is_it =
        |size: &f64| size.abs() >= CALIBRATION_SHIFT_MIN.ln_1p() && (*size > 0.0) == is_slower;
    sizes.filter(is_it).max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// Median from `at` on less that before.
fn shift(logs: &[f64], at: usize) -> f64 {
    let of = |part: &[f64]| stats::median(part).unwrap_or(0.0);
    of(&logs[at..]) - of(&logs[..at])
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    stats::median(&values.collect::<Vec<f64>>())
}

#[cfg(test)]
pub(crate) mod tests {
    use record::{RunRecord, Surroundings};
    use units::Nanos;

    use super::*;
    use crate::noise::{Law, Noise};
    use crate::testdata;

    /// From half-time on contenders run at these factors, and the calibration takes longer by a factor.
    pub(crate) fn run(blocks: u32, factors: &[f64], calibration: f64, seed: u64) -> RunRecord {
        let names = ["a", "b", "c", "d"];
        let mut run = testdata::light(&names[..factors.len()], blocks);
        let mut noise = Noise::new(seed);
        for visit in &mut run.visits {
            let is_late = visit.block >= blocks / 2;
            let factor = if is_late { factors[visit.contender] } else { 1.0 };
            let mut about = |level: f64, sd: f64| level * (sd * noise.of(Law::Normal)).exp();
            visit.rate_per_s = Some(about(20_000.0 * factor, 0.01));
            let took = about(20e6 * if is_late { calibration } else { 1.0 }, 0.003);
            let mut around = Surroundings::default();
            around.calm.calibration = Some(Nanos(took as u64));
            visit.surroundings = Some(Box::new(around));
        }
        run
    }

    #[test]
    fn a_machine_that_slows_down_at_half_time_fires_and_the_calibration_confirms_it() {
        let seen = look(&Evidence::of(&run(14, &[0.9, 0.9], 1.1, 1)));
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        let text = &seen[0].evidence;
        assert!(text.starts_with("a and b: from block 8 on requests/s is 9"), "{text}");
        assert!(
            text.contains("; the calibration workload took 1") && text.ends_with(" longer"),
            "{text}"
        );
        let share = seen[0].share.unwrap();
        assert!((share - 0.11).abs() < 0.02, "{share}");
    }

    #[test]
    fn visits_that_all_slow_down_without_the_calibration_are_a_suspicion() {
        let seen = look(&Evidence::of(&run(14, &[0.9, 0.9], 1.0, 1)));
        assert_eq!(
            seen.iter().map(|one| one.certainty).collect::<Vec<_>>(),
            [Certainty::Suspected]
        );
    }

    #[test]
    fn steady_runs_short_ones_and_a_calibration_that_changes_alone_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 14))), []);
        assert_eq!(look(&Evidence::of(&run(8, &[0.9, 0.9], 1.1, 1))), []);
        assert_eq!(look(&Evidence::of(&run(14, &[1.0, 1.0], 1.1, 1))), []);
        let alarms =
            (0..60).filter(|&seed| !look(&Evidence::of(&run(15, &[1.0; 3], 1.0, seed))).is_empty());
        assert_eq!(alarms.count(), 0);
    }
}
