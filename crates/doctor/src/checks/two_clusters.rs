//! Owns the check that the visits of one contender are one population. Start reading at [`look`].
//!
//! Chance at the start (a hash seed, which CPU, how connections fell on workers) may put a server on one of two
//! levels. It then has no single speed: it never runs at the mean of the two,
//! and the interval describes a coin, not the server. Fewer than ten visits cannot tell.
//!
//! Judged on the logs of every metric of the study, not the ratios: the artifact is the contender's own, and
//! where a rate is given or the generator is the limit, only service time shows it. What
//! slowed the machine in a block slowed the others too, so the median of their deviations in that
//! block is subtracted first. With one other, nothing is subtracted, but the split is dropped if that
//! other moved with it. The finding needs all of these:
//! - two normal laws are better than one by more than 14 in BIC, or by more than 10 if
//!   Hartigan's dip test says so too (p < 1 %); with m metrics, 2 ln m more (a likelihood ratio m times as large);
//! - each mode has 20 % of the visits (one odd visit is no mode);
//! - the modes are 3 % apart (less is of no interest) and 6 standard deviations;
//! - of a quantile of service time: those beside it tell the same visits apart. A quantile that lies between two
//!   modes of the requests (hit and miss, a stall in 1 % of them) jumps whenever their shares change a little;
//! - of CPU time: the modes are three ticks of the kernel's clock (10 ms) apart, because some kernels count in these;
//! - of a capacity: three steps of the search apart, because searches end on a grid.
//!
//! It is confirmed if no visit lies in the middle third between the modes, so that the visits of each can be
//! counted, in a metric other than p99. Few requests decide p99, so that a neighbour that comes and goes
//! splits it: alone it is a suspicion. Memory is left out: it is quantised (pages, arenas of
//! megabytes, the number of workers at the last reading), so that two levels are how it usually looks.
//!
//! Measured, 20 000 sessions each of n = 10, 12, 15, 20, 30, 40 visits. Alarms in 10 000 sessions of one
//! mode: normal logs (lognormal rates) 5, 3, 3, 2, 0, 0; Student's t5 3, 4, 0, 1, 0, 0; the most
//! two-faced of unimodal laws, exponential and uniform, at most 84 (n = 20). Seen of modes 10 standard
//! deviations apart: 74 % at n = 10, 90 % at 12, 98 % at 15, all from 20 on. A limit of 10 in BIC
//! alone would give 25 alarms in 10 000 of normal logs at n = 10, and 440 of exponential ones at 40.
//!
//! With four metrics, 10 000 sessions each of n = 10, 12, 15, 20, 30, in which p50 and CPU time follow the rate:
//! without the correction 18, 9, 6, 4, 0 alarms, with it 9, 2, 5, 3, 0; if nothing follows it 17, 11, 8, 5, 0 and
//! 7, 3, 5, 2, 0; with Student's t5 and an exponential p99 44, 48, 69, 76, 14 and 14, 27, 32, 39, 14. It costs
//! power where visits are few: modes 10 standard deviations apart are seen in 56 % at n = 10, 76 % at 12, 93 %
//! at 15, all from 20 on.

use record::{Certainty, Metric, Question, Severity, Visit};
use stats::{Better, TwoGaussians};

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
    detection: "Two normal laws explain the logs of a metric of the visits better than one (BIC by more than 14, \
             or 10 with Hartigan's dip test, and more where there are several metrics), each with 20 % of the \
             visits, 3 % and 6 standard deviations apart. It is confirmed where none lies between. Every metric \
             but memory is looked at; p99 alone is a suspicion",
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
/// Minimum distance of two modes of CPU time in a visit: three ticks of 10 ms.
const CPU_APART_MIN_MS: f64 = 30.0;
/// Minimum distance of two modes of a capacity in steps of the search.
const STEPS_APART_MIN: f64 = 3.0;
/// Part of a distance that the quantiles beside, or the other contender, must show to be said to move too.
const MOVES_TOO: f64 = 0.5;

/// Seed of the simulation behind the dip's p: a verdict must not change with the day.
const DIP_SEED: u64 = 1;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

/// One for all metrics: they are different views of the same visits.
fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let metrics: Vec<Metric> =
        evidence.run.plan.metrics.iter().copied().filter(|&one| one != Metric::Memory).collect();
    let found: Vec<(Metric, Split)> = metrics
        .iter()
        .filter_map(|&metric| Some((metric, look_by(evidence, contender, metric, metrics.len())?)))
        .collect();
    let confirms = |(metric, split): &&(Metric, Split)| {
        split.nothing_between && metric.service_quantile().is_none_or(|q| q <= Q_CONFIRMS_MAX)
    };
    let confirmed = found.iter().find(confirms);
    let (metric, split) = confirmed.or(found.first())?;
    let TwoGaussians { low, high, .. } = split.modes;
    let others: Vec<&str> =
        found.iter().filter(|(one, _)| one != metric).map(|(one, _)| one.info().quantity).collect();
    let evidence = format!(
        "{}: {} of {} near {} and {} near {}, {} apart{}{}",
        evidence.name(contender),
        metric.info().quantity,
        words::count(split.below, "visit"),
        metric.info().unit.text(low.centre.exp()),
        split.above,
        metric.info().unit.text(high.centre.exp()),
        words::percent(split.modes.apart().exp_m1()),
        if split.nothing_between { ", none between" } else { "" },
        if others.is_empty() {
            String::new()
        } else {
            format!("; likewise in {}", words::list(&others))
        },
    );
    let worse = match metric.info().better {
        Better::Higher => split.below,
        Better::Lower => split.above,
    };
    Some(Observation {
        share: Some(worse as f64 / (split.below + split.above) as f64),
        certainty: confirmed.map_or(Certainty::Suspected, |_| Certainty::Confirmed),
        contenders: vec![contender],
        evidence,
    })
}

/// Highest quantile of service time that can confirm.
const Q_CONFIRMS_MAX: f64 = 0.9;

/// How a contender's visits fall in two by one of `metrics` metrics that are looked at.
fn look_by(evidence: &Evidence, contender: usize, metric: Metric, metrics: usize) -> Option<Split> {
    let blocks = logs_by_block(evidence, contender, metric);
    let others: Vec<Vec<(u32, f64)>> = (evidence.contenders())
        .filter(|&other| other != contender)
        .map(|other| deviations(logs_by_block(evidence, other, metric)))
        .collect();
    let logs: Vec<f64> =
        blocks.iter().map(|&(block, log)| log - block_effect(&others, block)).collect();
    let split = split(&logs, metrics)?;
    let high: Vec<u32> = blocks
        .iter()
        .zip(&logs)
        .filter(|(_, log)| **log > split.middle())
        .map(|((block, _), _)| *block)
        .collect();
    let moves_too = |values: &[(u32, f64)]| {
        let side = |is_high| {
            let of = values.iter().filter(|(block, _)| high.contains(block) == is_high);
            stats::median(&of.map(|(_, log)| *log).collect::<Vec<_>>())
        };
        let (Some(above), Some(below)) = (side(true), side(false)) else { return false };
        above - below >= MOVES_TOO * split.modes.apart()
    };
    let is_machine = matches!(others.as_slice(), [other] if moves_too(other));
    let is_between = |beside: f64| !moves_too(&quantiles_by_block(evidence, contender, beside));
    let is_jump = metric.service_quantile().is_some_and(|q| beside(q).into_iter().any(is_between));
    let is_coarse = split.modes.apart() < apart_min(evidence, contender, metric, &high);
    (!is_machine && !is_jump && !is_coarse).then_some(split)
}

/// Quantiles on either side of one: 0.4 and 0.6 of the median, 0.98 and 0.995 of p99.
fn beside(q: f64) -> [f64; 2] {
    let tail = 1.0 - q;
    if q > 0.5 { [1.0 - 2.0 * tail, 1.0 - tail / 2.0] } else { [q - 0.1, q + 0.1] }
}

/// The distance, in logs, that modes of a metric must have because its values are coarse. `high`: the blocks of the
/// higher mode; a step of a counter is more of what the lower one counts.
fn apart_min(evidence: &Evidence, contender: usize, metric: Metric, high: &[u32]) -> f64 {
    match metric {
        Metric::ServerCpu => {
            let cpu = |visit: &Visit| Some(visit.server?.cpu.as_millis_f64());
            let low = evidence.run.measured(contender).filter(|visit| !high.contains(&visit.block));
            let used: Vec<f64> = low.filter_map(cpu).collect();
            let usual = stats::median(&used).unwrap_or(0.0);
            (CPU_APART_MIN_MS / usual.max(f64::MIN_POSITIVE)).ln_1p()
        }
        Metric::Capacity => {
            let step = evidence.run.plan.search.as_ref().map_or(0.0, |search| search.precision.0);
            STEPS_APART_MIN * step.ln_1p()
        }
        _ => APART_MIN.ln_1p(),
    }
}

/// Logs of a contender's values, each with its block.
fn logs_by_block(evidence: &Evidence, contender: usize, metric: Metric) -> Vec<(u32, f64)> {
    logs(evidence, contender, |visit| visit.value(metric))
}

/// The same of a quantile of service time; empty where another tool made the load.
fn quantiles_by_block(evidence: &Evidence, contender: usize, q: f64) -> Vec<(u32, f64)> {
    let quantile = |visit: &Visit| Some(visit.service_after_cut()?.quantile(q)?.as_millis_f64());
    logs(evidence, contender, quantile)
}

fn logs(
    evidence: &Evidence,
    contender: usize,
    value: impl Fn(&Visit) -> Option<f64>,
) -> Vec<(u32, f64)> {
    let visits = evidence.run.measured(contender);
    let values = visits.filter_map(|visit| Some((visit.block, value(visit)?)));
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
    /// The others.
    pub(crate) above: u64,
    /// Whether no value lies in the middle third between the modes.
    pub(crate) nothing_between: bool,
}

impl Split {
    /// Between the modes.
    fn middle(&self) -> f64 {
        f64::midpoint(self.modes.low.centre, self.modes.high.centre)
    }
}

/// The two modes of values on a logarithmic scale, if they are two. `metrics`: of how many samples that are asked
/// alike this is one.
pub(crate) fn split(logs: &[f64], metrics: usize) -> Option<Split> {
    let modes = TwoGaussians::fit(logs)?;
    let smaller = modes.low.share.min(modes.high.share);
    let more = 2.0 * (metrics.max(1) as f64).ln();
    let clear = modes.delta_bic > DELTA_BIC_WITH_DIP + more
        && smaller >= MODE_SHARE_MIN
        && modes.apart() >= APART_MIN.ln_1p()
        && modes.separation() >= SEPARATION_MIN;
    // The dip's p is simulated, so it is asked last.
    if !clear || (modes.delta_bic <= DELTA_BIC_ALONE + more && !dips(logs)) {
        return None;
    }
    let middle = f64::midpoint(modes.low.centre, modes.high.centre);
    let below = logs.iter().filter(|&&log| log < middle).count();
    Some(Split {
        modes,
        below: below as u64,
        above: (logs.len() - below) as u64,
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
        assert!(
            text.starts_with("a: requests/s of 6 visits near 4") && text.contains(" and 12 near "),
            "{text}"
        );
        assert!(text.ends_with(" % apart, none between"), "{text}");
    }

    /// Visits of contender 0 take a given time, in microseconds: their fast requests, the share of slow ones, and
    /// these.
    fn timed(blocks: u32, times: fn(u32, &mut Noise) -> (f64, f64, f64)) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], blocks);
        let mut noise = Noise::new(7);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let (fast, slow_share, slow) = times(visit.block, &mut noise);
            let moved = (0.01 * noise.of(Law::Normal)).exp();
            for interval in &mut visit.load.as_mut().unwrap().intervals {
                interval.service = stats::Histogram::new();
                for n in 0..1000 {
                    let of = if f64::from(n) < 1000.0 * slow_share { slow } else { fast };
                    let micros = of * moved * (1.0 + f64::from(n % 10) * 0.01);
                    interval.service.record(units::Nanos((micros * 1000.0) as u64));
                }
            }
        }
        run
    }

    #[test]
    fn every_second_start_that_is_slow_in_p50_alone_is_found_at_a_given_rate() {
        let run = timed(
            12,
            |block, _| if block % 2 == 0 { (1000.0, 0.0, 0.0) } else { (1200.0, 0.0, 0.0) },
        );
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!((seen[0].certainty, seen[0].share), (Certainty::Confirmed, Some(0.5)));
        let text = &seen[0].evidence;
        assert!(text.starts_with("a: median service time of 6 visits near 1.0"), "{text}");
        assert!(text.ends_with("none between; likewise in p99 service time"), "{text}");
    }

    #[test]
    fn the_share_of_slow_starts_follows_the_dose() {
        let run = timed(
            16,
            |block, _| if block % 4 == 0 { (1200.0, 0.0, 0.0) } else { (1000.0, 0.0, 0.0) },
        );
        assert_eq!(look(&Evidence::of(&run))[0].share, Some(0.25));
    }

    /// Half of the requests are misses, in some visits a little more: the median jumps, the server is one.
    #[test]
    fn a_median_between_two_modes_of_requests_is_no_mode_of_starts() {
        let run = timed(16, |block, noise| {
            let share = if block % 2 == 0 { 0.49 } else { 0.51 };
            (500.0, share + 0.002 * noise.of(Law::Normal), 1500.0)
        });
        assert_eq!(look(&Evidence::of(&run)), []);
        let near_p99 =
            timed(16, |block, _| (500.0, if block % 2 == 0 { 0.008 } else { 0.013 }, 40_000.0));
        assert_eq!(look(&Evidence::of(&near_p99)), []);
    }

    #[test]
    fn modes_of_p99_alone_are_a_suspicion() {
        let run = timed(16, |block, _| (500.0, if block % 2 == 0 { 0.0 } else { 0.05 }, 2000.0));
        let seen = look(&Evidence::of(&run));
        assert_eq!(
            seen.iter().map(|one| one.certainty).collect::<Vec<_>>(),
            [Certainty::Suspected]
        );
        assert!(seen[0].evidence.starts_with("a: p99 service time of 8 visits"), "{seen:?}");
    }

    #[test]
    fn a_machine_that_slows_both_of_two_in_some_blocks_is_no_mode_of_either() {
        let mut run = testdata::run(&["a", "b"], 18);
        let mut noise = Noise::new(5);
        for visit in &mut run.visits {
            let level = if visit.block % 3 == 0 { 40_000.0 } else { 50_000.0 };
            visit.rate_per_s = Some(level * (0.01 * noise.of(Law::Normal)).exp());
        }
        assert_eq!(look(&Evidence::of(&run)), []);
    }

    #[test]
    fn cpu_time_in_ticks_of_the_kernel_has_no_modes() {
        let mut run = testdata::run(&["a", "b"], 16);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let ticks = if visit.block % 2 == 0 { 20 } else { 30 };
            visit.server.as_mut().unwrap().cpu = units::Nanos::from_millis(ticks);
        }
        assert_eq!(look(&Evidence::of(&run)), []);
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
                    alarms += u32::from(split(&logs, 1).is_some());
                }
            }
        }
        assert!(alarms * 1000 < sessions, "{alarms} alarms in {sessions} sessions");
    }

    /// Sessions of four metrics: a rate, what follows from it (p50, CPU time), and a p99 that is skewed.
    fn alarms(sessions: u32, n: usize, tied: f64, laws: [Law; 2], metrics: usize) -> usize {
        let mut noise = Noise::new(n as u64);
        let mut session = || {
            let rate: Vec<f64> = (0..n).map(|_| noise.of(laws[0])).collect();
            let mut tied_to = |law: Law, tied: f64| {
                let own = (1.0 - tied * tied).sqrt();
                rate.iter().map(|of| 0.05 * (tied * of + own * noise.of(law))).collect::<Vec<f64>>()
            };
            let all = [
                tied_to(laws[0], 1.0),
                tied_to(laws[0], tied),
                tied_to(laws[0], tied),
                tied_to(laws[1], 0.0),
            ];
            all.iter().any(|logs| split(logs, metrics).is_some())
        };
        (0..sessions).filter(|_| session()).count()
    }

    #[test]
    fn four_metrics_give_no_more_alarms_than_one() {
        for (tied, laws) in
            [(0.95, [Law::Normal, Law::Normal]), (0.0, [Law::Normal, Law::StudentFive])]
        {
            let sum: usize =
                [10, 12, 15, 20].into_iter().map(|n| alarms(1000, n, tied, laws, 4)).sum();
            assert!(sum <= 4, "{sum} alarms in 4000 sessions, {tied} {laws:?}");
        }
    }

    /// Laws that visits hardly have: each looks like two modes now and then.
    #[test]
    fn even_noise_that_looks_like_two_modes_rarely_alarms() {
        for law in [Law::Skewed, Law::Uniform] {
            let mut noise = Noise::new(29);
            let mut logs = || (0..20).map(|_| 0.05 * noise.of(law)).collect::<Vec<f64>>();
            let alarms = (0..800).filter(|_| split(&logs(), 1).is_some()).count();
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
            split(&logs, 1).is_some()
        });
        let seen = seen.count();
        assert!(seen >= 180, "{seen} of 200");
    }
}
