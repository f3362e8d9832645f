//! Simulated sessions with the noise of real visits, through the same course and verdicts as a real
//! run: equal servers are not called different, a planted difference is found, intervals cover.

mod simulate;

use std::sync::atomic::AtomicBool;

use joust_lab::session::{Before, play};
use joust_lab::verdict::verdicts;
use record::{PairVerdict, Plan, Verdict};
use simulate::{Noise, Simulated, plan};
use units::Share;

/// The primary verdict of one simulated session of two servers, b of rate 10 000/s.
fn session(plan: &Plan, noise: &Noise, seed: u64, ratio: f64) -> PairVerdict {
    let mut stage = Simulated::new(noise, seed, &[10e3 * ratio, 10e3]);
    let played =
        play(plan, Before::default(), &mut stage, &mut (), &AtomicBool::new(false)).unwrap();
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

/// 34 is the 0.999 quantile of the binomial of 400 and 5 % (R: `qbinom(0.999, 400, 0.05)`).
#[test]
fn over_many_sessions_the_false_alarms_stay_within_five_percent() {
    let called = called_different(400, 50_000);
    assert!(called <= 34, "{called} of 400 A/A sessions were called a difference");
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
            let played =
                play(&study, Before::default(), &mut stage, &mut (), &AtomicBool::new(false));
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
