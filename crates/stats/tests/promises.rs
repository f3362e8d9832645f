//! Checks what intervals and decisions promise, over thousands of simulated sessions. Every session is seeded, so a
//! test gives the same counts each time. Start reading at [`Session`].
//!
//! A session's blocks are ln(a / b), each the difference of two visits with noise of one law: a skewed law gives
//! symmetrical differences, as it does for real pairs.

mod noise;

use joust_stats as stats;
use noise::{Law, Noise};
use stats::{BlockVisits, Decision, Paired, PairedInterval};

/// Equivalence margin of the sessions.
const MARGIN: f64 = 0.02;
/// Level of the sessions: that of verdicts.
const ALPHA: f64 = 0.02;
/// The standard that they have to meet.
const STANDARD: stats::Standard = stats::Standard { margin: MARGIN, alpha: ALPHA };
/// Laws that come close to visits of real servers.
const LAWS: [Law; 3] = [Law::Normal, Law::StudentFive, Law::Skewed];

/// A simulated study of one pair.
struct Session {
    blocks: usize,
    /// Standard deviation of a visit's log rate.
    sd: f64,
    /// True ln(a / b).
    truth: f64,
}

impl Session {
    /// ln(a / b) of every block, for many sessions.
    fn logs(self, law: Law, sessions: u64) -> impl Iterator<Item = Vec<f64>> {
        let mut noise = Noise::new(20_26);
        let mut block = move || self.truth + self.sd * (noise.of(law) - noise.of(law));
        (0..sessions).map(move |_| (0..self.blocks).map(|_| block()).collect())
    }

    /// Share of sessions for which `holds` is true.
    fn share(self, law: Law, sessions: u64, holds: impl Fn(&Paired) -> bool) -> f64 {
        let held = self
            .logs(law, sessions)
            .filter(|logs| holds(&Paired::of_logs(logs).expect("simulated logs are finite")));
        held.count() as f64 / sessions as f64
    }
}

fn interval(paired: &Paired) -> PairedInterval {
    paired.interval.expect("enough blocks")
}

fn decide(paired: &Paired) -> Decision {
    stats::decide(paired, interval(paired).p, STANDARD)
}

fn holds(paired: &Paired, truth: f64) -> bool {
    let interval = interval(paired);
    (interval.low..=interval.high).contains(&truth.exp())
}

#[test]
fn the_interval_holds_the_truth_in_95_of_100_sessions() {
    for law in LAWS {
        let session = Session { blocks: 8, sd: 0.02, truth: 0.3 };
        let share = session.share(law, 3000, |paired| holds(paired, 0.3));
        assert!((0.94..=0.975).contains(&share), "{law:?}: {share}");
    }
}

#[test]
fn several_visits_a_block_hold_the_truth_too_and_half_an_interval_does_not() {
    const SESSIONS: usize = 1000;
    let mut noise = Noise::new(3);
    let (mut held, mut held_by_half) = (0, 0);
    for _ in 0..SESSIONS {
        let blocks: Vec<BlockVisits> = (0..8)
            .map(|_| {
                let block = 0.01 * noise.of(Law::Normal);
                let mut visits =
                    |level: f64| (0..3).map(|_| level + 0.03 * noise.of(Law::Skewed)).collect();
                BlockVisits { a: visits(0.05 + block), b: visits(-block) }
            })
            .collect();
        let paired = Paired::of_visits(&blocks).unwrap();
        held += usize::from(holds(&paired, 0.05));
        let reach = (interval(&paired).high.ln() - paired.centre_ln) / 2.0;
        held_by_half += usize::from((paired.centre_ln - 0.05).abs() <= reach);
    }
    assert!((930..=980).contains(&held), "{held}");
    assert!(held_by_half < 800, "the test sees too narrow an interval: {held_by_half}");
}

/// One real visit of 33 (eleven blocks of three contenders) had a p50 of 118 ms; the others had 2.3 ms.
const WILD: f64 = 3.94;

#[test]
fn one_wild_block_of_eleven_moves_neither_the_ratio_nor_the_answer() {
    for (truth, wild) in [(0.0, WILD), (0.0, -WILD), (1.05f64.ln(), WILD), (1.05f64.ln(), -WILD)] {
        let session = Session { blocks: 11, sd: 0.012, truth };
        let (mut moved, mut called) = (0.0f64, 0);
        for mut logs in session.logs(Law::Normal, 200) {
            let clean = Paired::of_logs(&logs).unwrap();
            logs[7] += wild;
            let paired = Paired::of_logs(&logs).unwrap();
            moved = moved.max((paired.centre_ln - clean.centre_ln).abs());
            called += usize::from(decide(&paired) == Decision::Ratio);
            assert_eq!(stats::outlying(&logs).iter().filter(|index| **index == 7).count(), 1);
        }
        // The mean moves by a factor of 1.43, and its interval is too wide to exclude anything.
        assert!(moved < 0.02, "moved by {moved}");
        let is_right = if truth == 0.0 { called <= 12 } else { called >= 190 };
        assert!(is_right, "{called} of 200 called a difference of {truth}");
    }
}

#[test]
fn clean_sessions_have_hardly_an_outlying_block_and_equal_blocks_none() {
    for law in [Law::Normal, Law::Uniform] {
        let sessions = Session { blocks: 16, sd: 0.05, truth: 0.0 }.logs(law, 500);
        let seen: usize = sessions.map(|logs| stats::outlying(&logs).len()).sum();
        assert!(seen <= 20, "{law:?}: {seen} of 8000 blocks");
    }
    let nearly_equal = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.004, 0.03];
    assert_eq!(stats::outlying(&nearly_equal), [0usize; 0], "3 % beside the others do no harm");
    assert_eq!(stats::outlying(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.06]), [5]);
    assert_eq!(stats::outlying(&[0.0, 0.0, 9.0]), [0usize; 0], "of three any is far off");
}

#[test]
fn the_same_server_twice_is_called_a_difference_in_about_2_of_100_studies() {
    for law in LAWS {
        // Noise far above the margin, so that no session is close enough to 1 to be called equivalent.
        let session = Session { blocks: 8, sd: 0.1, truth: 0.0 };
        let share = session.share(law, 2000, |paired| decide(paired) == Decision::Ratio);
        // The level plus three standard errors of 2000 sessions.
        assert!(share <= 0.03, "{law:?}: {share}");
    }
}

#[test]
fn holm_keeps_the_promise_over_all_pairs_of_equal_servers() {
    const SERVERS: usize = 5;
    const STUDIES: u64 = 400;
    let mut noise = Noise::new(5);
    let mut called = 0;
    for _ in 0..STUDIES {
        let visits: Vec<[f64; SERVERS]> =
            (0..8).map(|_| std::array::from_fn(|_| 0.03 * noise.of(Law::Normal))).collect();
        let pairs = (0..SERVERS).flat_map(|a| (a + 1..SERVERS).map(move |b| (a, b)));
        let paired: Vec<Paired> = pairs
            .map(|(a, b)| {
                let logs: Vec<f64> = visits.iter().map(|visit| visit[a] - visit[b]).collect();
                Paired::of_logs(&logs).expect("simulated logs are finite")
            })
            .collect();
        let p = stats::holm(&paired.iter().map(|pair| interval(pair).p).collect::<Vec<_>>());
        let differs =
            |(pair, p): (&Paired, &f64)| stats::decide(pair, *p, STANDARD) == Decision::Ratio;
        called += u64::from(paired.iter().zip(&p).any(differs));
    }
    assert!(called * 25 <= STUDIES, "{called} of {STUDIES}");
}

/// The run stops on the width of the interval, which is smallest where the spread was underestimated; this must cause
/// few false differences.
#[test]
fn stopping_on_width_keeps_false_differences_below_5_of_100() {
    const SESSIONS: u64 = 200;
    let session = Session { blocks: 24, sd: 0.02, truth: 0.0 };
    let called = session.logs(Law::Normal, SESSIONS).filter(|logs| {
        let after =
            |blocks: usize| Paired::of_logs(&logs[..blocks]).expect("simulated logs are finite");
        let narrow = |paired: &Paired| {
            let interval = interval(paired);
            (interval.high / paired.ratio).max(paired.ratio / interval.low) - 1.0 <= MARGIN
        };
        let stopped = (8..24).map(after).find(narrow).unwrap_or_else(|| after(24));
        decide(&stopped) == Decision::Ratio
    });
    let called = called.count();
    assert!(called as f64 <= 0.05 * SESSIONS as f64, "{called} of {SESSIONS}");
}

#[test]
fn a_difference_of_the_margin_is_called_none_in_at_most_5_of_100_studies() {
    for law in LAWS {
        let session = Session { blocks: 8, sd: 0.007, truth: MARGIN.ln_1p() };
        let share = session.share(law, 600, |paired| decide(paired) == Decision::NoDifference);
        // At exactly the margin the error rate is the full 5 %; plus two standard errors of 600 sessions.
        assert!(share <= 0.068, "{law:?}: {share}");
    }
}

#[test]
fn the_needed_blocks_see_the_difference_in_80_of_100_studies() {
    let sd_ln = 0.02;
    let blocks = stats::blocks_needed(sd_ln, MARGIN, ALPHA) as usize;
    let session = Session { blocks, sd: sd_ln / 2f64.sqrt(), truth: MARGIN.ln_1p() };
    let share = session.share(Law::Normal, 600, |paired| interval(paired).p < ALPHA);
    assert!((0.76..=0.86).contains(&share), "{share} with {blocks} blocks");
}

#[test]
fn a_certain_but_tiny_difference_is_none() {
    let logs: Vec<f64> = (0..30).map(|n| 0.004 + 0.0005 * f64::from(n % 3)).collect();
    let paired = Paired::of_logs(&logs).unwrap();
    assert!(interval(&paired).p < 1e-6 && interval(&paired).low > 1.0);
    assert_eq!(decide(&paired), Decision::NoDifference);
}

#[test]
fn what_is_not_sure_asks_for_more_blocks() {
    let wide = Paired::of_logs(&[0.09, -0.07, 0.03, -0.11, 0.06, -0.02, 0.1, -0.05]).unwrap();
    let Decision::Undecided { more } = decide(&wide) else { panic!("{wide:?}") };
    assert!(more.is_some_and(|more| more > 50), "{more:?}");
    let few = Paired::of_logs(&[0.5, 0.6]).unwrap();
    assert_eq!(stats::decide(&few, 1.0, STANDARD), Decision::Undecided { more: Some(1) });
}

#[test]
fn the_interval_of_a_quantile_holds_it_in_95_of_100_samples() {
    let mut noise = Noise::new(11);
    let held = (0..1000).filter(|_| {
        let values: Vec<f64> = (0..400).map(|_| noise.of(Law::Uniform)).collect();
        let interval = stats::quantile_interval(&values, 0.9, 400.0).unwrap();
        // The 90 % quantile of the uniform law with standard deviation 1.
        let truth = 0.4 * 12f64.sqrt();
        (interval.low..=interval.high).contains(&truth)
    });
    let held = held.count();
    assert!((930..=985).contains(&held), "{held}");
}

#[test]
fn a_series_that_depends_on_itself_is_worth_fewer_values() {
    let mut noise = Noise::new(13);
    let mut last = 0.0;
    let series: Vec<f64> = (0..20_000)
        .map(|_| {
            last = 0.5 * last + noise.of(Law::Normal);
            last
        })
        .collect();
    let lag1 = stats::lag1_autocorrelation(&series).unwrap();
    assert!((lag1 - 0.5).abs() < 0.02, "{lag1}");
    let worth = stats::effective_samples(series.len(), lag1);
    assert!((worth / 20_000.0 - 1.0 / 3.0).abs() < 0.02, "{worth}");
    assert_eq!(stats::effective_samples(100, -0.4), 100.0);
}

#[test]
fn a_uniform_sample_has_a_dip_below_5_percent_in_5_of_100() {
    let mut noise = Noise::new(17);
    let dips = (0..60).map(|_| {
        let values: Vec<f64> = (0..20).map(|_| noise.of(Law::Uniform)).collect();
        stats::dip_p(stats::dip(&values).unwrap(), 20, 1)
    });
    let small = dips.filter(|p| *p < 0.05).count();
    assert!(small <= 8, "{small} of 60");
}

/// Of equal contenders a probability is above 0.975 or below 0.025 in five sessions of a hundred, even with few blocks.
/// Shares of resamples were so in 25 of a hundred at three blocks.
#[test]
fn the_chance_of_being_best_is_no_surer_than_it_may_be_at_three_to_eight_blocks() {
    const SESSIONS: u64 = 500;
    for law in LAWS {
        for blocks in 3..=8 {
            let mut noise = Noise::new(20_26 + blocks as u64);
            let sure = (0..SESSIONS).filter(|&seed| {
                let row = |noise: &mut Noise| (0..blocks).map(|_| 0.05 * noise.of(law)).collect();
                let rows = [row(&mut noise), row(&mut noise)];
                let chances = stats::best_chances(&rows, stats::Better::Higher, seed).unwrap();
                chances[0].max(chances[1]) > 0.975
            });
            let share = sure.count() as f64 / SESSIONS as f64;
            // Three standard errors of the share.
            assert!(share < 0.05 + 0.03, "{law:?}, {blocks} blocks: {share}");
        }
    }
}

/// Four contenders with different levels; one has a wild visit now and then. A contender that is called best with some
/// probability must be the best at least that often, on average.
#[test]
fn who_is_called_best_is_so_as_often_as_is_said() {
    const SESSIONS: u64 = 300;
    for blocks in [3, 5, 8] {
        let mut noise = Noise::new(blocks as u64);
        let (mut said, mut right) = (0.0, 0.0);
        for seed in 0..SESSIONS {
            let levels: Vec<f64> = (0..4).map(|_| 0.05 * noise.of(Law::Normal)).collect();
            let mut row = |level: &f64| -> Vec<f64> {
                (0..blocks).map(|_| level + 0.03 * noise.of(Law::Normal)).collect()
            };
            let mut rows: Vec<Vec<f64>> = levels.iter().map(&mut row).collect();
            if seed % 10 == 0 {
                rows[0][0] -= 3.0;
            }
            let chances = stats::best_chances(&rows, stats::Better::Higher, seed).unwrap();
            let highest = |of: &[f64]| {
                (0..4).max_by(|&a, &b| of[a].total_cmp(&of[b])).expect("there are four")
            };
            let first = highest(&chances);
            said += chances[first];
            right += f64::from(u8::from(first == highest(&levels)));
        }
        let [said, right] = [said, right].map(|sum| sum / SESSIONS as f64);
        // Two standard errors of the share of correct calls.
        assert!(right > said - 0.05, "{blocks} blocks: {right} right, {said} said");
    }
}
