//! Owns the check that the visits of one contender are one population. Start reading at [`look`].
//!
//! Chance at the start (a hash seed, which CPU, how connections fell on workers) may put a server on one of two
//! levels. It then has no single speed: it never runs at the mean of the two,
//! and the interval describes a coin, not the server. Fewer than ten visits cannot tell.
//!
//! Judged on the logs of the primary metric, not the ratios: the artifact is the contender's own. What
//! slowed the machine in a block slowed the others too, so the median of their deviations in that
//! block is subtracted first; with fewer than two others nothing is subtracted.
//! The finding needs all of these. It is confirmed if no visit lies in the middle third between
//! the modes, so that the visits of each can be counted:
//! - two normal laws are better than one by more than 14 in BIC, or by more than 10 if
//!   Hartigan's dip test says so too (p < 1 %);
//! - each mode has 20 % of the visits (one odd visit is no mode);
//! - the modes are 3 % apart (less is of no interest) and 6 standard deviations.
//!
//! Measured, 20 000 sessions each of n = 10, 12, 15, 20, 30, 40 visits. Alarms in 10 000 sessions of one
//! mode: normal logs (lognormal rates) 5, 3, 3, 2, 0, 0; Student's t5 3, 4, 0, 1, 0, 0; the most
//! two-faced of unimodal laws, exponential and uniform, at most 84 (n = 20). Seen of modes 10 standard
//! deviations apart: 74 % at n = 10, 90 % at 12, 98 % at 15, all from 20 on. A limit of 10 in BIC
//! alone would give 25 alarms in 10 000 of normal logs at n = 10, and 440 of exponential ones at 40.

use record::{Certainty, Metric, Question, Severity};
use stats::TwoGaussians;

use super::Check;
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "two_clusters",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "visits fall into two clusters",
    meaning: "something that differs between starts decides the speed, so the server never runs at \
              the mean",
    remedy: "compare the visits of both modes in the run file (processes, threads, CPU, position in \
             the block), fix or randomise what differs, and measure more blocks ([blocks] max)",
    detection: "Two normal laws explain the logs of the visits better than one (BIC by more than 14, or 10 \
             with Hartigan's dip test), each with 20 % of the visits, 3 % and 6 standard deviations apart. \
             It is confirmed where none lies between",
    example: "`joust serve --fixed 3361 --fault mode=pid,cost:200us`: every start with an odd process \
             number is slower",
    source: "Hartigan and Hartigan, The Dip Test of Unimodality, 1985; Curtsinger and Berger, Stabilizer, \
             2013",
    needs: &[],
    look,
};

/// Difference in BIC from which two laws need no dip test.
const DELTA_BIC_ALONE: f64 = 14.0;
/// The same where the dip test agrees.
const DELTA_BIC_WITH_DIP: f64 = 10.0;
/// p of the dip test from which it agrees.
const DIP_P_MAX: f64 = 0.01;
/// Minimum share of the visits in a mode.
const MODE_SHARE_MIN: f64 = 0.2;
/// Minimum distance of the modes, as a ratio minus one.
const APART_MIN: f64 = 0.03;
/// Minimum distance of the modes in standard deviations.
const SEPARATION_MIN: f64 = 6.0;

/// Seed of the simulation behind the dip's p: a verdict must not change with the day.
const DIP_SEED: u64 = 1;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let Some(&metric) = evidence.run.plan.metrics.first() else { return Vec::new() };
    evidence.contenders().filter_map(|contender| look_at(evidence, contender, metric)).collect()
}

fn look_at(evidence: &Evidence, contender: usize, metric: Metric) -> Option<Observation> {
    let blocks = logs_by_block(evidence, contender, metric);
    let others: Vec<Vec<(u32, f64)>> = (evidence.contenders())
        .filter(|&other| other != contender)
        .map(|other| deviations(logs_by_block(evidence, other, metric)))
        .collect();
    let logs: Vec<f64> =
        blocks.iter().map(|&(block, log)| log - block_effect(&others, block)).collect();
    let split = split(&logs)?;
    let TwoGaussians { low, high, .. } = split.modes;
    let evidence = format!(
        "{}: {} near {} and {} near {}, {} apart{}",
        evidence.name(contender),
        words::count(split.below, "visit"),
        metric.info().unit.text(low.centre.exp()),
        logs.len() as u64 - split.below,
        metric.info().unit.text(high.centre.exp()),
        words::percent(split.modes.apart().exp_m1()),
        if split.nothing_between { ", none between" } else { "" },
    );
    let certainty = match split.nothing_between {
        true => Certainty::Confirmed,
        false => Certainty::Suspected,
    };
    Some(Observation { share: None, certainty, contenders: vec![contender], evidence })
}

/// Logs of a contender's values, each with its block.
fn logs_by_block(evidence: &Evidence, contender: usize, metric: Metric) -> Vec<(u32, f64)> {
    let visits = evidence.run.measured(contender);
    let values = visits.filter_map(|visit| Some((visit.block, visit.value(metric)?)));
    values.filter(|(_, value)| *value > 0.0).map(|(block, value)| (block, value.ln())).collect()
}

/// The same as distances from their median.
fn deviations(mut logs: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
    let middle = stats::median(&logs.iter().map(|(_, log)| *log).collect::<Vec<_>>());
    logs.iter_mut().for_each(|(_, log)| *log -= middle.unwrap_or(0.0));
    logs
}

/// What slowed the others in a block: the median of their deviations, 0 with fewer than two.
fn block_effect(others: &[Vec<(u32, f64)>], block: u32) -> f64 {
    let in_block = others.iter().flatten().filter(|(of, _)| *of == block);
    let found: Vec<f64> = in_block.map(|(_, deviation)| *deviation).collect();
    if found.len() < 2 { 0.0 } else { stats::median(&found).unwrap_or(0.0) }
}

/// A sample that falls in two.
pub(crate) struct Split {
    pub(crate) modes: TwoGaussians,
    /// Values below the middle between the modes.
    pub(crate) below: u64,
    /// Whether no value lies in the middle third between the modes.
    pub(crate) nothing_between: bool,
}

/// The two modes of values on a logarithmic scale, if they are two.
pub(crate) fn split(logs: &[f64]) -> Option<Split> {
    let modes = TwoGaussians::fit(logs)?;
    let smaller = modes.low.share.min(modes.high.share);
    let clear = modes.delta_bic > DELTA_BIC_WITH_DIP
        && smaller >= MODE_SHARE_MIN
        && modes.apart() >= APART_MIN.ln_1p()
        && modes.separation() >= SEPARATION_MIN;
    // The dip's p is simulated, so it is asked last.
    if !clear || (modes.delta_bic <= DELTA_BIC_ALONE && !dips(logs)) {
        return None;
    }
    let middle = f64::midpoint(modes.low.centre, modes.high.centre);
    Some(Split {
        modes,
        below: logs.iter().filter(|&&log| log < middle).count() as u64,
        nothing_between: logs.iter().all(|log| (log - middle).abs() > modes.apart() / 6.0),
    })
}

fn dips(logs: &[f64]) -> bool {
    stats::dip(logs).is_some_and(|dip| stats::dip_p(dip, logs.len(), DIP_SEED) < DIP_P_MAX)
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::noise::{Law, Noise};
    use crate::testdata;

    /// Rates of contender 0, block by block: a level, and noise of 1 %.
    fn levels(blocks: u32, level: fn(u32) -> f64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], blocks);
        let mut noise = Noise::new(3);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            visit.rate_per_s = Some(level(visit.block) * (0.01 * noise.of(Law::Normal)).exp());
        }
        run
    }

    #[test]
    fn a_path_that_every_third_start_takes_10_percent_slower_fires_and_is_counted() {
        let run = levels(18, |block| if block % 3 == 0 { 45_000.0 } else { 50_000.0 });
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].contenders.as_slice(), seen[0].certainty),
            (&[0][..], Certainty::Confirmed)
        );
        let text = &seen[0].evidence;
        assert!(text.starts_with("a: 6 visits near 4") && text.contains(" and 12 near "), "{text}");
        assert!(text.ends_with(" % apart, none between"), "{text}");
    }

    /// Blocks in which the machine was slow for everyone.
    fn disturbed(slow_for: fn(usize) -> bool) -> RunRecord {
        let mut run = testdata::run(&["a", "b", "c", "d"], 18);
        let mut noise = Noise::new(5);
        for visit in &mut run.visits {
            let slow = visit.block % 3 == 0 && slow_for(visit.contender);
            let level = if slow { 30_000.0 } else { 50_000.0 };
            visit.rate_per_s = Some(level * (0.01 * noise.of(Law::Normal)).exp());
        }
        run
    }

    #[test]
    fn a_machine_that_slows_everyone_down_in_some_blocks_is_no_mode_of_a_server() {
        assert_eq!(look(&Evidence::of(&disturbed(|_| true))), []);
    }

    #[test]
    fn a_mode_of_one_is_seen_beside_others_that_have_none() {
        let seen = look(&Evidence::of(&disturbed(|contender| contender == 2)));
        assert_eq!(seen.iter().map(|seen| seen.contenders.clone()).collect::<Vec<_>>(), [[2]]);
    }

    #[test]
    fn one_level_is_silent() {
        assert_eq!(look(&Evidence::of(&levels(18, |_| 50_000.0))), []);
    }

    #[test]
    fn one_slow_visit_is_no_mode() {
        let run = levels(18, |block| if block == 4 { 30_000.0 } else { 50_000.0 });
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn two_modes_two_percent_apart_are_of_no_interest() {
        let mut run = levels(18, |_| 50_000.0);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let level = if visit.block % 2 == 0 { 49_000.0 } else { 50_000.0 };
            visit.rate_per_s = Some(level + f64::from(visit.block));
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn nine_visits_cannot_tell() {
        let run = levels(9, |block| if block % 2 == 0 { 25_000.0 } else { 50_000.0 });
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn noise_of_one_mode_gives_fewer_alarms_than_one_in_a_thousand_sessions() {
        let (mut sessions, mut alarms) = (0, 0);
        for n in [10, 11, 12, 15, 20, 40] {
            // Normal logs are lognormal rates.
            for (law, sd) in [(Law::Normal, 0.02), (Law::Normal, 0.3), (Law::StudentFive, 0.05)] {
                let mut noise = Noise::new(n);
                for _ in 0..500 {
                    let logs: Vec<f64> = (0..n).map(|_| sd * noise.of(law)).collect();
                    sessions += 1;
                    alarms += u32::from(split(&logs).is_some());
                }
            }
        }
        assert!(alarms * 1000 < sessions, "{alarms} alarms in {sessions} sessions");
    }

    /// Laws that visits hardly have: each looks like two modes now and then.
    #[test]
    fn even_noise_that_looks_like_two_modes_rarely_alarms() {
        for law in [Law::Skewed, Law::Uniform] {
            let mut noise = Noise::new(29);
            let mut logs = || (0..20).map(|_| 0.05 * noise.of(law)).collect::<Vec<f64>>();
            let alarms = (0..800).filter(|_| split(&logs()).is_some()).count();
            assert!(alarms <= 16, "{law:?}: {alarms} of 800");
        }
    }

    #[test]
    fn modes_ten_deviations_apart_are_seen_in_most_sessions() {
        let mut noise = Noise::new(23);
        let seen = (0..200).filter(|_| {
            let level = |visit: u32| if visit.is_multiple_of(3) { 0.0 } else { 0.1 };
            let logs: Vec<f64> =
                (0..15).map(|visit| level(visit) + 0.01 * noise.of(Law::Normal)).collect();
            split(&logs).is_some()
        });
        let seen = seen.count();
        assert!(seen >= 180, "{seen} of 200");
    }
}
