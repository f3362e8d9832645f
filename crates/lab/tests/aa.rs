//! Simulated sessions with the noise of real visits, through the same course and verdicts as a real
//! run: equal servers are not called different, a planted difference is found, intervals cover.

mod simulate;

use std::sync::atomic::AtomicBool;

use joust_lab::LabError;
use joust_lab::session::{EarlierVisits, Failure, PlannedVisit, Stage, play};
use joust_lab::verdict::verdicts;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use record::{ContenderFacts, PairVerdict, Plan, Verdict, Visit};
use simulate::{Noise, Simulated, plan};
use units::{Nanos, Share};

/// The primary verdict of one simulated session of two servers, b of rate 10 000/s.
fn session(plan: &Plan, noise: &Noise, seed: u64, ratio: f64) -> PairVerdict {
    let mut stage = Simulated::new(noise, seed, &[10e3 * ratio, 10e3]);
    let played =
        play(plan, EarlierVisits::default(), &mut stage, &mut (), &AtomicBool::new(false)).unwrap();
    verdicts(plan, &played.visits, &[]).remove(0)
}

fn study() -> Plan {
    Plan { metrics: vec![record::Metric::Throughput], ..plan(&["a", "b"]) }
}

fn called_different(sessions: u64, first_seed: u64) -> usize {
    let (noise, study) = (Noise::recorded(), study());
    (0..sessions)
        .map(|n| session(&study, &noise, first_seed + n, 1.0))
        .filter(|pair| pair.verdict.tells_apart())
        .count()
}

#[test]
fn a_server_against_itself_is_not_called_a_difference() {
    let called = called_different(40, 1_000);
    assert!(called <= 3, "{called} of 40 A/A sessions were called a difference");
}

/// What changes the rate of one visit beyond the noise of the machine, as a logarithm. It depends on the
/// contender and on how many visits came before.
type Trouble = fn(&mut Random, usize, u32) -> f64;

/// Kinds of noise that visits have; the second: whether the noise of recorded visits is beneath it.
static TROUBLES: [(&str, bool, Trouble); 8] = [
    ("recorded visits", true, |_, _, _| 0.0),
    ("normal", false, |random, _, _| random.normal()),
    ("1 % wild", false, |random, _, _| random.normal() + random.wild(0.01)),
    ("10 % wild", false, |random, _, _| random.normal() + random.wild(0.10)),
    ("recorded, 3 % wild", true, |random, _, _| random.wild(0.03)),
    ("drift", false, |random, _, before| random.normal() - 0.02 * f64::from(before)),
    ("skewed", false, |random, _, _| -0.8 * (27.0 * random.normal()).exp() * 0.03),
    ("two speeds", false, |random, _, _| {
        random.normal() - if random.chance(0.5) { 0.2 } else { 0.0 }
    }),
];

struct Random(Pcg64);

impl Random {
    fn chance(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    /// Visits vary by 3 %.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.0.random::<f64>()).ln()).sqrt();
        0.03 * radius * (std::f64::consts::TAU * self.0.random::<f64>()).cos()
    }

    /// With a chance 2 to 50 times slower.
    fn wild(&mut self, share: f64) -> f64 {
        let times = 2f64.ln() + self.0.random::<f64>() * 25f64.ln();
        if self.chance(share) { -times } else { 0.0 }
    }
}

/// A simulated machine whose visits have trouble of a kind.
struct Troubled<'a> {
    machine: Simulated<'a>,
    trouble: Trouble,
    random: Random,
    visits: u32,
}

impl Stage for Troubled<'_> {
    fn now(&mut self) -> Nanos {
        self.machine.now()
    }

    fn discover(&mut self, contender: usize) -> Result<Result<ContenderFacts, Failure>, LabError> {
        self.machine.discover(contender)
    }

    fn visit(&mut self, planned: PlannedVisit) -> Result<Option<Visit>, LabError> {
        let mut visit = self.machine.visit(planned)?;
        let trouble = (self.trouble)(&mut self.random, planned.contender, self.visits);
        self.visits += 1;
        if let Some(rate) = visit.as_mut().and_then(|visit| visit.rate_per_s.as_mut()) {
            *rate *= trouble.exp();
        }
        Ok(visit)
    }
}

#[test]
fn equal_servers_are_called_different_in_at_most_5_of_100_whatever_the_noise() {
    const SESSIONS: u64 = 1000;
    let (recorded, none, study) = (Noise::recorded(), Noise::none(), study());
    for (name, is_recorded, trouble) in TROUBLES {
        let noise = if is_recorded { &recorded } else { &none };
        let pair = |seed| {
            let machine = Simulated::new(noise, seed, &[10e3, 10e3]);
            let random = Random(Pcg64::seed_from_u64(seed));
            let mut stage = Troubled { machine, trouble, random, visits: 0 };
            // Who is visited first in a block is drawn from the seed of the study.
            let study = Plan { seed, ..study.clone() };
            let stop = AtomicBool::new(false);
            let played =
                play(&study, EarlierVisits::default(), &mut stage, &mut (), &stop).unwrap();
            verdicts(&study, &played.visits, &[]).remove(0)
        };
        let all: Vec<PairVerdict> = (50_000..50_000 + SESSIONS).map(pair).collect();
        let is_called = |pair: &&PairVerdict| {
            let undecided = matches!(pair.verdict, Verdict::Undecided { .. });
            let none = matches!(pair.verdict, Verdict::NoDifference { .. });
            assert!(!matches!(pair.verdict, Verdict::Withheld { .. }), "{pair:?}");
            !undecided && !none
        };
        let called = all.iter().filter(is_called).count();
        assert!(
            called <= 50,
            "{name}: {called} of {SESSIONS} A/A sessions were called a difference"
        );
        let lax = all.iter().filter(|pair| pair.estimate.unwrap().p_holm < 0.2).count();
        assert!(lax > 80, "the canary: who believes a p of 0.2 calls {lax} ({name})");
    }
}

/// A session that its budget ends before the least number of blocks says what is sure: few blocks may vary
/// little by chance, and the level has to bear it. 20 is the 0.999 quantile of the binomial of 200 and 5 %
/// (R: `qbinom(0.999, 200, 0.05)`).
#[test]
fn few_blocks_call_no_more_equal_servers_different_than_many() {
    let (noise, study) = (Noise::recorded(), study());
    for blocks in [3, 4, 5, 7] {
        let differs = |seed: &u64| {
            let mut stage = Simulated::new(&noise, 30_000 + seed, &[10e3, 10e3]);
            let played = play(
                &study,
                EarlierVisits::default(),
                &mut stage,
                &mut (),
                &AtomicBool::new(false),
            );
            let mut visits = played.unwrap().visits;
            visits.retain(|visit| visit.block < blocks);
            let pair = verdicts(&study, &visits, &[]).remove(0);
            assert_eq!(pair.short_of.map(|short| short.blocks), Some(blocks));
            pair.verdict.tells_apart()
        };
        let called = (0..200).filter(differs).count();
        assert!(called <= 20, "{called} of 200 A/A sessions of {blocks} blocks");
    }
}

#[test]
fn a_planted_difference_of_ten_percent_is_found() {
    let (noise, mut study) = (Noise::recorded(), study());
    // Visits of a machine that was busy with other things vary by a tenth: it takes blocks.
    study.blocks.max = 60;
    let found = (0..40)
        .map(|n| session(&study, &noise, 2_000 + n, 1.1))
        .filter(|pair| matches!(pair.verdict, Verdict::Ratio { low, .. } if low > 1.0))
        .count();
    assert!(found >= 36, "{found} of 40 sessions found it; noise {:.3}", noise.sd());
}

/// With 2 000 sessions the standard error of the coverage is 0.5 %.
#[test]
fn intervals_of_95_percent_cover_the_truth_in_93_to_97_percent_of_sessions() {
    const SESSIONS: u64 = 2_000;
    let noise = Noise::recorded();
    let mut study = study();
    // A fixed number of blocks: what the stopping rule does to it is the next test's.
    study.blocks.half_width = Share(1e-9);
    study.blocks.max = 10;
    let share = coverage(&study, &noise, SESSIONS);
    assert!((0.93..=0.97).contains(&share), "coverage {share}");
}

#[test]
fn stopping_on_width_does_not_spoil_the_coverage() {
    let share = coverage(&study(), &Noise::recorded(), 1_000);
    assert!((0.92..=0.98).contains(&share), "coverage {share}");
}

fn coverage(study: &Plan, noise: &Noise, sessions: u64) -> f64 {
    const TRUTH: f64 = 1.07;
    let covered = (0..sessions)
        .filter_map(|n| session(study, noise, 100_000 + n, TRUTH).estimate)
        .filter(|estimate| estimate.low <= TRUTH && TRUTH <= estimate.high)
        .count();
    covered as f64 / sessions as f64
}
