//! What a verdict promises, over simulated sessions with the noise of real visits: a drift of the
//! machine and the place in a block do not shift an estimate, and the blocks of the power table find what
//! they are said to find. Each has a canary: a way to measure or to judge that must fail.

mod simulate;

use std::sync::atomic::AtomicBool;

use joust_lab::LabError;
use joust_lab::session::{EarlierVisits, Failure, PlannedVisit, Stage, play};
use joust_lab::verdict::verdicts;
use record::{ContenderFacts, Estimate, Metric, PairVerdict, Plan, Verdict, Visit};
use simulate::{Noise, Simulated, plan};
use units::{Nanos, Share};

/// Level at which a verdict calls a difference.
const ALPHA: f64 = 0.02;
/// True ratio of the two servers where there is a difference.
const TRUTH: f64 = 1.03;

/// What a machine does to its visits, whoever is visited.
#[derive(Debug, Clone, Copy)]
struct Effects {
    /// ln of what each visit loses against the one before: the machine gets slower.
    drift: f64,
    /// ln of what a visit loses by each place further back in its block.
    position: f64,
}

const NONE: Effects = Effects { drift: 0.0, position: 0.0 };

/// A simulated machine with effects.
struct Affected<'a> {
    machine: Simulated<'a>,
    effects: Effects,
    visits: u32,
}

impl Stage for Affected<'_> {
    fn now(&mut self) -> Nanos {
        self.machine.now()
    }

    fn discover(&mut self, contender: usize) -> Result<Result<ContenderFacts, Failure>, LabError> {
        self.machine.discover(contender)
    }

    fn visit(&mut self, planned: PlannedVisit) -> Result<Option<Visit>, LabError> {
        let lost = self.effects.drift * f64::from(self.visits)
            + self.effects.position * f64::from(planned.position);
        self.visits += 1;
        let mut visit = self.machine.visit(planned)?;
        if let Some(rate) = visit.as_mut().and_then(|visit| visit.rate_per_s.as_mut()) {
            *rate *= (-lost).exp();
        }
        Ok(visit)
    }
}

fn study(blocks: u32) -> Plan {
    let mut study = Plan { metrics: vec![Metric::Throughput], ..plan(&["a", "b"]) };
    (study.blocks.min, study.blocks.max, study.blocks.half_width) = (blocks, blocks, Share(1e-9));
    study.budget = Nanos::from_secs(100_000);
    study
}

/// The verdict of one session, through the course that a real run takes.
fn session(study: &Plan, noise: &Noise, effects: Effects, ratio: f64, seed: u64) -> PairVerdict {
    let machine = Simulated::new(noise, seed, &[10e3 * ratio, 10e3]);
    let mut stage = Affected { machine, effects, visits: 0 };
    let study = Plan { seed, ..study.clone() };
    let played =
        play(&study, EarlierVisits::default(), &mut stage, &mut (), &AtomicBool::new(false))
            .unwrap();
    verdicts(&study, &played.visits, &[]).remove(0)
}

fn estimates(effects: Effects, blocks: u32, sessions: u64) -> Vec<Estimate> {
    let (study, noise) = (study(blocks), Noise::recorded());
    let of = |seed| session(&study, &noise, effects, TRUTH, 9_000 + seed).estimate.unwrap();
    (0..sessions).map(of).collect()
}

/// How far the mean of ln(ratio) is from the truth, and its standard error.
fn shift(logs: &[f64]) -> (f64, f64) {
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    (mean - TRUTH.ln(), (squares / (n - 1.0) / n).sqrt())
}

fn logs(estimates: &[Estimate]) -> Vec<f64> {
    estimates.iter().map(|estimate| estimate.ratio.ln()).collect()
}

fn coverage(estimates: &[Estimate], width: f64) -> f64 {
    let holds = |estimate: &&Estimate| {
        let (centre, truth) = (estimate.ratio.ln(), TRUTH.ln());
        let low = centre - width * (centre - estimate.low.ln());
        let high = centre + width * (estimate.high.ln() - centre);
        low <= truth && truth <= high
    };
    estimates.iter().filter(holds).count() as f64 / estimates.len() as f64
}

/// Visits in an order of one's own, on the same machine: ln of the ratio of the mean logs.
fn by_hand(effects: Effects, order: &[(usize, u32)], blocks: u32, seed: u64) -> f64 {
    let noise = Noise::recorded();
    let machine = Simulated::new(&noise, seed, &[10e3 * TRUTH, 10e3]);
    let mut stage = Affected { machine, effects, visits: 0 };
    let mut sums = [0.0; 2];
    for &(contender, position) in order {
        let planned = PlannedVisit { cell: 0, contender, block: 0, position, attempt: 0 };
        let visit = stage.visit(planned).unwrap().unwrap();
        sums[contender] += visit.rate_per_s.unwrap().ln();
    }
    (sums[0] - sums[1]) / f64::from(blocks)
}

const BLOCKS: u32 = 12;

#[test]
fn a_drift_over_the_session_does_not_shift_the_estimate() {
    // Over 24 visits the machine loses 38 % of its speed.
    let drift = Effects { drift: 0.02, ..NONE };
    let seen = estimates(drift, BLOCKS, 600);
    let (off, error) = shift(&logs(&seen));
    assert!(off.abs() < 3.0 * error, "shifted by {off}, standard error {error}");
    assert!(error < 0.003, "an error that could hide the drift: {error}");
    let share = coverage(&seen, 1.0);
    assert!((0.93..=0.98).contains(&share), "coverage {share}");
    // All visits of a, then all of b, as people do: b meets the slower machine.
    let order: Vec<(usize, u32)> = (0..2 * BLOCKS).map(|n| ((n / BLOCKS) as usize, 0)).collect();
    let unpaired: Vec<f64> = (0..60).map(|seed| by_hand(drift, &order, BLOCKS, seed)).collect();
    let (off, _) = shift(&unpaired);
    assert!(off > 0.15, "the canary: unpaired the drift of 0.24 must show, and is {off}");
}

#[test]
fn the_place_in_a_block_does_not_shift_the_estimate() {
    let second_loses = Effects { position: 0.05, ..NONE };
    let seen = estimates(second_loses, BLOCKS, 600);
    let (off, error) = shift(&logs(&seen));
    assert!(off.abs() < 3.0 * error, "shifted by {off}, standard error {error}");
    assert!(error < 0.004, "an error that could hide the effect: {error}");
    let share = coverage(&seen, 1.0);
    assert!((0.93..=0.98).contains(&share), "coverage {share}");
    // a first in every block.
    let order: Vec<(usize, u32)> = (0..2 * BLOCKS).map(|n| ((n % 2) as usize, n % 2)).collect();
    let fixed: Vec<f64> =
        (0..200).map(|seed| by_hand(second_loses, &order, BLOCKS, seed)).collect();
    let (off, error) = shift(&fixed);
    assert!(off > 5.0 * error && off > 0.03, "the canary: a fixed order must show, and is {off}");
}

/// With 1 000 sessions the standard error of the coverage is 0.7 %.
#[test]
fn intervals_cover_the_truth_and_half_of_one_does_not() {
    let seen = estimates(NONE, BLOCKS, 1_000);
    let share = coverage(&seen, 1.0);
    assert!((0.93..=0.97).contains(&share), "coverage {share}");
    let half = coverage(&seen, 0.5);
    assert!(half < 0.85, "the canary: half an interval covers {half}");
}

/// Share of sessions that find the planted difference.
fn found(blocks: u32, sessions: u64) -> f64 {
    let (study, noise) = (study(blocks), Noise::recorded());
    let finds = |seed: &u64| {
        let pair = session(&study, &noise, NONE, TRUTH, 70_000 + seed);
        matches!(pair.verdict, Verdict::Ratio { low, .. } if low > 1.0)
    };
    (0..sessions).filter(finds).count() as f64 / sessions as f64
}

#[test]
fn a_planted_3_percent_is_found_with_the_blocks_of_the_power_table() {
    let sd_ln = Noise::recorded().sd() * 2f64.sqrt();
    let blocks = stats::blocks_needed(sd_ln, TRUTH - 1.0, ALPHA);
    let share = found(blocks, 300);
    // Three standard errors of 300 sessions about 80 %.
    assert!((0.73..=0.87).contains(&share), "{share} with {blocks} blocks, noise {sd_ln:.3}");
    let third = found(blocks / 3, 150);
    assert!(third < 0.5, "the canary: a third of the blocks finds {third}");
}

#[test]
fn equal_servers_are_called_different_in_at_most_5_of_100_and_more_by_a_lax_judge() {
    const SESSIONS: u64 = 400;
    let (study, noise) = (study(BLOCKS), Noise::recorded());
    let all: Vec<PairVerdict> =
        (0..SESSIONS).map(|seed| session(&study, &noise, NONE, 1.0, 40_000 + seed)).collect();
    let called = all.iter().filter(|pair| matches!(pair.verdict, Verdict::Ratio { .. })).count();
    assert!(called <= 20, "{called} of {SESSIONS}");
    // Who believes 80 % intervals is fooled five times as often.
    let lax = all.iter().filter(|pair| pair.estimate.unwrap().p_holm < 0.2).count();
    assert!(lax > 40, "the canary: {lax} of {SESSIONS}");
}
