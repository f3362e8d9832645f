//! Owns the check that it makes no difference when in its block, or after whom, a contender is visited. Start
//! reading at [`look`].
//!
//! What a visit leaves behind (sockets in TIME_WAIT, dirty pages, a cold page cache, a hot CPU) may slow the next
//! one. The order of a block is drawn, so the mean over blocks is right, but the effect widens intervals, and over
//! few blocks one contender may always have followed the same other.
//!
//! The residual of a visit is the log of its value less the median of its contender and the mean of its block. Its
//! mean by position, or by the contender before, is compared with what orders that were drawn anew
//! give (a permutation test, exact because the order was drawn). An effect needs p < 1 % over both questions and
//! all metrics, 8 blocks and 2 %. The second witness is a cause that follows the same order: sockets in
//! TIME_WAIT before the visit, or pages that had to be read from a disk.
//!
//! Measured on 600 runs without any effect (2 to 5 contenders, 8 to 30 blocks, noise of 5 % by Student's t5): one
//! alarm.

use record::{Certainty, Metric, Question, Severity, Visit};
use stats::Better;

use super::Check;
use crate::deviations::{Deviation, complete_blocks, deviations, level_metrics};
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "order_effects",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "the place of a visit in its block, or who was visited before, changes its figures",
    meaning: "a visit is slowed by what the one before left behind, so part of a difference is the order's",
    remedy: "give the machine time between visits, let the server close connections or wait for TIME_WAIT, read files \
             before each visit; and measure more blocks ([blocks] max)",
    detection: "Visits are compared by their position in the block and by the contender before them: a permutation \
             test at 1 % over at least 8 blocks, and an effect above 2 %. It is confirmed where sockets in \
             TIME_WAIT or pages read from a disk follow the same order",
    example: "a study without keep-alive whose first visit leaves 20,000 sockets in TIME_WAIT to the second",
    source: "Mytkowicz et al., Producing Wrong Data Without Doing Anything Obviously Wrong, 2009",
    needs: &[],
    look,
};

/// Least blocks in which all contenders were measured.
const BLOCKS_MIN: usize = 8;
/// p over both questions and all metrics.
const P_MAX: f64 = 0.01;
/// Least effect, as a ratio minus one: less makes no difference of interest.
const EFFECT_MIN: f64 = 0.02;
/// Orders that are drawn.
const ORDERS: u32 = 3999;
/// Visits that a group needs to have a mean.
const GROUP_MIN: usize = 4;
/// Sockets in TIME_WAIT more than elsewhere, or pages read from a disk, from which they may slow a visit.
const TIME_WAIT_MORE_MIN: f64 = 500.0;
/// See [`TIME_WAIT_MORE_MIN`].
const FAULTS_MORE_MIN: f64 = 10.0;
/// Seed of the drawn orders: a verdict must not change with the day.
const SEED: u64 = 1;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let metrics = level_metrics(*evidence);
    if evidence.contenders().len() < 2 {
        return Vec::new();
    }
    let tests = (GROUPINGS.len() * metrics.len()) as f64;
    let mut largest: Option<Seen> = None;
    for &metric in &metrics {
        let blocks = residuals(*evidence, |visit| visit.value(metric));
        if blocks.len() < BLOCKS_MIN {
            continue;
        }
        let better = metric.info().better;
        for grouping in &GROUPINGS {
            let Some(effect) = Effect::of(&fitted(&blocks, grouping), better) else { continue };
            let is_larger = largest.as_ref().is_none_or(|one| one.effect.size_ln < effect.size_ln);
            let is_of_interest = is_larger && effect.size_ln.exp_m1() > EFFECT_MIN;
            // The test is dear, so it is asked last.
            if is_of_interest && p(&blocks, grouping, better) * tests < P_MAX {
                largest = Some(Seen { effect, metric, grouping, blocks: blocks.len() });
            }
        }
    }
    largest.map(|seen| said(evidence, &seen)).into_iter().collect()
}

/// An effect that chance does not explain.
struct Seen {
    effect: Effect,
    metric: Metric,
    grouping: &'static Grouping,
    blocks: usize,
}

fn said(evidence: &Evidence, seen: &Seen) -> Observation {
    let Seen { effect, metric, grouping, blocks } = seen;
    let cause =
        causes().into_iter().find_map(|cause| cause.follows(*evidence, grouping, effect.worst));
    let text = format!(
        "{}: {} is {} worse for visits {} than {} ({blocks} blocks){}",
        evidence.names(&evidence.contenders().collect::<Vec<_>>()),
        metric.info().quantity,
        words::percent(effect.size_ln.exp_m1()),
        (grouping.said)(evidence, effect.worst),
        (grouping.said)(evidence, effect.best),
        cause.as_ref().map_or_else(String::new, |cause| format!("; so are {cause}")),
    );
    Observation {
        share: Some(effect.size_ln.exp_m1()),
        certainty: if cause.is_some() { Certainty::Confirmed } else { Certainty::Suspected },
        contenders: Vec::new(),
        evidence: text,
    }
}

/// A visit, as far as orders are concerned.
#[derive(Clone, Copy)]
struct Residual {
    contender: usize,
    log: f64,
}

/// Complete blocks of residuals.
fn residuals(evidence: Evidence<'_>, value: impl Fn(&Visit) -> Option<f64>) -> Vec<Vec<Residual>> {
    let all = deviations(evidence, value);
    let block = |block: Vec<Deviation>| {
        let mean = block.iter().map(|one| one.log).sum::<f64>() / block.len() as f64;
        let residual =
            |one: &Deviation| Residual { contender: one.visit.contender, log: one.log - mean };
        block.iter().map(residual).collect()
    };
    complete_blocks(evidence, &all).into_iter().map(block).collect()
}

/// What visits are grouped by.
struct Grouping {
    /// The group of a visit: its position, and the visit before it, if there is one.
    group: fn(usize, Option<&Residual>) -> Option<usize>,
    /// A group in a sentence: visits "at position 2 of their block".
    said: fn(&Evidence, usize) -> String,
}

static GROUPINGS: [Grouping; 2] = [
    Grouping {
        group: |position, _| Some(position),
        said: |_, group| format!("at position {} of their block", group + 1),
    },
    Grouping {
        group: |_, before| before.map(|one| one.contender),
        said: |evidence, group| format!("after {}", evidence.name(group)),
    },
];

/// How far apart groups are.
struct Effect {
    size_ln: f64,
    worst: usize,
    best: usize,
}

impl Effect {
    /// Of the means of groups; `None` with fewer than two.
    fn of(groups: &[(usize, f64)], better: Better) -> Option<Self> {
        let by = |one: &&(usize, f64), other: &&(usize, f64)| one.1.total_cmp(&other.1);
        let (low, high) = (groups.iter().min_by(by)?, groups.iter().max_by(by)?);
        let (worst, best) = match better {
            Better::Higher => (low.0, high.0),
            Better::Lower => (high.0, low.0),
        };
        (groups.len() > 1).then_some(Self { size_ln: high.1 - low.1, worst, best })
    }
}

/// Rounds in which what contenders, blocks and groups explain is taken apart; few change anything beyond ten.
const ROUNDS: usize = 20;

/// The effect of each group by least squares, beside those of contenders and blocks: a contender that
/// came second more often than first looks slower than it is, and its residuals hide a part of the effect.
fn fitted(blocks: &[Vec<Residual>], grouping: &Grouping) -> Vec<(usize, f64)> {
    let mut left = blocks.to_vec();
    let mut sums: Vec<(usize, f64)> =
        means(blocks, grouping).into_iter().map(|(group, _)| (group, 0.0)).collect();
    for _ in 0..ROUNDS {
        centre(&mut left);
        let found = means(&left, grouping);
        for ((_, sum), (_, more)) in sums.iter_mut().zip(&found) {
            *sum += more;
        }
        let mut before: Option<Residual> = None;
        for block in &mut left {
            for (position, one) in block.iter_mut().enumerate() {
                let group = (grouping.group)(position, before.as_ref());
                let of = found.iter().find(|(known, _)| Some(*known) == group);
                one.log -= of.map_or(0.0, |(_, mean)| *mean);
                before = Some(*one);
            }
        }
    }
    sums
}

/// Takes away the mean of each contender, then that of each block.
fn centre(blocks: &mut [Vec<Residual>]) {
    let contenders = blocks.first().map_or(0, Vec::len);
    let mut sums = vec![0.0; contenders];
    blocks.iter().flatten().for_each(|one| sums[one.contender] += one.log);
    for block in blocks.iter_mut() {
        let mean = block.iter().map(|one| one.log).sum::<f64>() / block.len() as f64;
        block.iter_mut().for_each(|one| one.log -= mean);
    }
    let mean: f64 = sums.iter().sum::<f64>() / contenders.max(1) as f64;
    let count = blocks.len().max(1) as f64;
    blocks.iter_mut().flatten().for_each(|one| one.log -= (sums[one.contender] - mean) / count);
}

/// The mean of each group that is large enough.
fn means(blocks: &[Vec<Residual>], grouping: &Grouping) -> Vec<(usize, f64)> {
    let most = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let mut sums = vec![(0usize, 0.0); most];
    let mut before: Option<&Residual> = None;
    for block in blocks {
        for (position, one) in block.iter().enumerate() {
            if let Some(group) = (grouping.group)(position, before) {
                sums[group].0 += 1;
                sums[group].1 += one.log;
            }
            before = Some(one);
        }
    }
    let groups = sums.into_iter().enumerate().filter(|(_, (count, _))| *count >= GROUP_MIN);
    groups.map(|(group, (count, sum))| (group, sum / count as f64)).collect()
}

/// Chance of an effect of at least this size if orders were drawn anew.
fn p(blocks: &[Vec<Residual>], grouping: &Grouping, better: Better) -> f64 {
    let size = |blocks: &[Vec<Residual>]| {
        Effect::of(&means(blocks, grouping), better).map_or(0.0, |effect| effect.size_ln)
    };
    // Orders that are the same but for rounding are as large.
    let seen = size(blocks) - 1e-12;
    chance(blocks, |drawn| size(drawn) >= seen)
}

fn chance(blocks: &[Vec<Residual>], holds: impl Fn(&[Vec<Residual>]) -> bool) -> f64 {
    let mut draws = stats::Shuffles::new(SEED);
    let mut drawn = blocks.to_vec();
    let mut count = 1;
    for _ in 0..ORDERS {
        drawn.iter_mut().for_each(|block| draws.shuffle(block));
        count += u32::from(holds(&drawn));
    }
    f64::from(count) / f64::from(ORDERS + 1)
}

/// Something that a visit meets, and that may slow it.
struct Cause {
    what: &'static str,
    value: fn(&Visit) -> Option<f64>,
    more_min: f64,
}

fn causes() -> [Cause; 2] {
    [
        Cause {
            what: "sockets in TIME_WAIT before them",
            value: |visit| Some(visit.surroundings.as_ref()?.prepared.time_wait? as f64),
            more_min: TIME_WAIT_MORE_MIN,
        },
        Cause {
            what: "pages read from a disk",
            value: |visit| Some(visit.surroundings.as_ref()?.processes?.faults_major as f64),
            more_min: FAULTS_MORE_MIN,
        },
    ]
}

impl Cause {
    /// What is more in the worst group than elsewhere, if it is much and orders drawn anew do not explain it.
    fn follows(&self, evidence: Evidence<'_>, grouping: &Grouping, worst: usize) -> Option<String> {
        // Counts as they are: one that is 0 has no logarithm.
        let all = deviations(evidence, |_| Some(1.0));
        let value = |one: &Deviation| {
            Some(Residual { contender: one.visit.contender, log: (self.value)(one.visit)? })
        };
        let blocks = complete_blocks(evidence, &all);
        let blocks: Option<Vec<Vec<Residual>>> =
            blocks.iter().map(|block| block.iter().map(value).collect()).collect();
        let blocks = blocks?;
        let more = |blocks: &[Vec<Residual>]| {
            let groups = means(blocks, grouping);
            let of = |is_worst: bool| {
                let some: Vec<f64> = groups
                    .iter()
                    .filter(|one| (one.0 == worst) == is_worst)
                    .map(|one| one.1)
                    .collect();
                (!some.is_empty()).then(|| some.iter().sum::<f64>() / some.len() as f64)
            };
            Some(of(true)? - of(false)?)
        };
        let seen = more(&blocks).filter(|seen| *seen >= self.more_min)?;
        let is_chance = chance(&blocks, |drawn| more(drawn).is_some_and(|drawn| drawn >= seen));
        (is_chance < P_MAX)
            .then(|| format!("{}: {} more", self.what, words::grouped(seen.round() as u64)))
    }
}

#[cfg(test)]
mod tests {
    use record::{RunRecord, Surroundings};

    use super::*;
    use crate::noise::{Law, Noise};
    use crate::testdata;

    /// Visits in orders that were drawn; `log` is what a visit at that position, after that contender, gains.
    fn run(
        contenders: usize,
        blocks: u32,
        (law, sd, seed): (Law, f64, u64),
        log: impl Fn(usize, Option<usize>) -> f64,
    ) -> RunRecord {
        let names = ["a", "b", "c", "d", "e"];
        let mut run = testdata::light(&names[..contenders], blocks);
        let (mut noise, mut orders) = (Noise::new(seed), stats::Shuffles::new(seed));
        let mut before = None;
        for block in run.visits.chunks_exact_mut(contenders) {
            orders.shuffle(block);
            for (position, visit) in block.iter_mut().enumerate() {
                visit.position = position as u32;
                let gain = log(position, before) + sd * noise.of(law);
                visit.rate_per_s = Some((10_000.0 * (1.0 + visit.contender as f64)) * gain.exp());
                before = Some(visit.contender);
            }
        }
        run
    }

    const QUIET: (Law, f64, u64) = (Law::Normal, 0.01, 3);

    #[test]
    fn a_first_visit_that_slows_the_second_fires_with_its_size() {
        let run = run(2, 16, QUIET, |position, _| if position == 1 { -0.06 } else { 0.0 });
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!(seen[0].certainty, Certainty::Suspected);
        let share = seen[0].share.unwrap();
        assert!((share - 0.06).abs() < 0.012, "{share}");
        let text = &seen[0].evidence;
        assert!(text.starts_with("a and b: requests/s is 5.8"), "{text}");
        assert!(
            text.contains("for visits at position 2 of their block than at position 1"),
            "{text}"
        );
    }

    #[test]
    fn a_contender_that_slows_whoever_comes_next_fires_with_its_name() {
        let run = run(4, 16, QUIET, |_, before| if before == Some(2) { -0.08 } else { 0.0 });
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert!(seen[0].evidence.contains("worse for visits after c than after"), "{seen:?}");
    }

    #[test]
    fn sockets_in_time_wait_in_the_same_order_confirm_it() {
        let mut run = run(2, 16, QUIET, |position, _| if position == 1 { -0.06 } else { 0.0 });
        for visit in &mut run.visits {
            let mut around = Surroundings::default();
            around.prepared.time_wait = Some(if visit.position == 1 { 20_000 } else { 100 });
            visit.surroundings = Some(Box::new(around));
        }
        let seen = look(&Evidence::of(&run));
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        assert!(
            seen[0].evidence.ends_with("so are sockets in TIME_WAIT before them: 19,900 more"),
            "{seen:?}"
        );
        run.visits.iter_mut().for_each(|visit| {
            visit.surroundings.as_mut().unwrap().prepared.time_wait = Some(20_000);
        });
        assert_eq!(look(&Evidence::of(&run))[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn small_effects_few_blocks_and_one_contender_are_silent() {
        let slow = |position, _| if position == 1 { -0.06 } else { 0.0 };
        assert_eq!(look(&Evidence::of(&run(2, 7, QUIET, slow))), []);
        assert_eq!(look(&Evidence::of(&run(1, 20, QUIET, slow))), []);
        let little = |position, _| if position == 1 { -0.01 } else { 0.0 };
        assert_eq!(look(&Evidence::of(&run(2, 20, (Law::Normal, 0.001, 3), little))), []);
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 12))), []);
    }

    #[test]
    fn noise_without_an_effect_gives_fewer_than_one_alarm_in_a_hundred_runs() {
        let mut alarms = 0;
        for seed in 0..60u64 {
            let (contenders, blocks) =
                (2 + seed as usize % 4, [8, 12, 20, 30][seed as usize / 4 % 4]);
            let run = run(contenders, blocks, (Law::StudentFive, 0.05, seed), |_, _| 0.0);
            alarms += look(&Evidence::of(&run)).len();
        }
        assert!(alarms <= 1, "{alarms} in 60 runs");
    }
}
