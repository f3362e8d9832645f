//! Compares estimators of a paired log ratio over simulated sessions with a known truth: the tables of METHODOLOGY.md,
//! "The estimate, chosen by simulation". `cargo run --release -p joust-stats --example estimators`; the same seed gives
//! the same tables on every machine. To simulate another number of sessions, give it after `--`.
//!
//! Start reading at [`ESTIMATORS`] and [`NOISES`]: to try another estimator or noise, add a function and its line.

#![allow(clippy::print_stdout, reason = "an example is a program")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use joust_stats as stats;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use serde_json::Value;
use statrs::distribution::{Binomial, ContinuousCDF as _, DiscreteCDF as _, StudentsT};

/// What an estimator says about the blocks of a session, on the log scale.
#[derive(Debug, Clone, Copy)]
struct Said {
    centre: f64,
    low: f64,
    high: f64,
    /// p of "the centre is 0".
    p: f64,
}

impl Said {
    fn holds(&self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }

    fn is_narrow(&self) -> bool {
        (self.high - self.centre).max(self.centre - self.low) <= NARROW
    }

    /// The rule of a verdict, for a single pair.
    fn differs(&self) -> bool {
        self.p < ALPHA && !self.holds(0.0)
    }
}

type Estimator = fn(&[f64]) -> Said;

static ESTIMATORS: [(&str, Estimator); 10] = [
    ("mean, t", mean_t),
    ("mean, t or bootstrap", mean_t_or_bootstrap),
    ("median, signs", median_signs),
    ("Hodges-Lehmann, ranks", ranks),
    ("trimmed 20 %, t", trimmed),
    ("winsorised 20 %, t", winsorised),
    ("Huber 1.5, t", huber),
    ("3.5 MAD dropped, t", dropped),
    ("biweight of Kafadar", kafadar),
    ("**biweight of joust**", ours),
];

/// Noise of one block: ln(a / b) minus the true value. Blocks count from 0.
type Noise = fn(&mut Draw, usize) -> f64;

static NOISES: [(&str, Noise); 12] = [
    ("normal", |draw, _| draw.pair()),
    ("recorded visits", |draw, _| draw.recorded() - draw.recorded()),
    ("1 % of visits wild, of either", |draw, _| draw.pair() + draw.wild(0.01) - draw.wild(0.01)),
    ("3 % of visits wild, of either", |draw, _| draw.pair() + draw.wild(0.03) - draw.wild(0.03)),
    ("10 % of visits wild, of either", |draw, _| draw.pair() + draw.wild(0.10) - draw.wild(0.10)),
    ("1 % of visits wild, of one", |draw, _| draw.pair() + draw.wild(0.01)),
    ("3 % of visits wild, of one", |draw, _| draw.pair() + draw.wild(0.03)),
    ("10 % of visits wild, of one", |draw, _| draw.pair() + draw.wild(0.10)),
    ("drifting machine", |draw, block| draw.pair() + draw.drift(block)),
    ("skewed (lognormal)", |draw, _| draw.skewed() - draw.skewed()),
    ("two speeds, both servers", |draw, _| draw.pair() + draw.slow_start() - draw.slow_start()),
    ("two speeds, one server", |draw, _| draw.pair() + draw.slow_start() + SLOW_START / 2.0),
];

/// Level of a verdict.
const ALPHA: f64 = 0.02;
/// The session stops when the interval reaches at most this far from the centre.
const NARROW: f64 = 0.02;
const PLANTED: f64 = 1.05;
const BLOCKS: [usize; 4] = [4, 8, 16, 30];
const SESSIONS: usize = 2000;
const SEED: u64 = 20_26;
/// Standard deviation of a visit; two visits differ by 4.2 %.
const VISIT: f64 = 0.03;
/// How much slower the slow starts of a server with two speeds are, in log units.
const SLOW_START: f64 = 0.2;

fn mean_t(values: &[f64]) -> Said {
    by_t(mean(values), sd(values) / (values.len() as f64).sqrt(), values.len() as f64 - 1.0)
}

fn mean_t_or_bootstrap(values: &[f64]) -> Said {
    let t = mean_t(values);
    match stats::studentised_bootstrap(values, SEED) {
        Some(other) => Said { low: t.low.min(other.low), high: t.high.max(other.high), ..t },
        None => t,
    }
}

/// Fewer than six values have no 95 % interval from signs or ranks, so the mean's interval is used.
fn median_signs(values: &[f64]) -> Said {
    let (n, sorted) = (values.len(), sorted(values));
    if n < 6 {
        return mean_t(values);
    }
    let signs = Binomial::new(0.5, n as u64).expect("a half is a chance");
    let outside = (0..n / 2).take_while(|k| signs.cdf(*k as u64) <= 0.025).count();
    let above = values.iter().filter(|value| **value > 0.0).count();
    let fewer = above.min(n - above) as u64;
    let p = (2.0 * signs.cdf(fewer)).min(1.0);
    Said { centre: middle(&sorted), low: sorted[outside - 1], high: sorted[n - outside], p }
}

fn ranks(values: &[f64]) -> Said {
    let n = values.len();
    let estimate = stats::hodges_lehmann(values).expect("there are values");
    let Some(interval) = estimate.interval else { return mean_t(values) };
    let mut by_size = values.to_vec();
    by_size.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let positive = |(_, value): &(usize, &f64)| **value > 0.0;
    let sum: usize = by_size.iter().enumerate().filter(positive).map(|(at, _)| at + 1).sum();
    let least = sum.min(n * (n + 1) / 2 - sum);
    let p = RANK_SUMS.with(|sums| {
        let mut sums = sums.borrow_mut();
        let chances = sums.entry(n).or_insert_with(|| rank_sums(n));
        (2.0 * chances[..=least].iter().sum::<f64>()).min(1.0)
    });
    Said { centre: estimate.centre, low: interval.low, high: interval.high, p }
}

/// Probability of each sum of a random subset of 1..=n.
fn rank_sums(n: usize) -> Vec<f64> {
    let mut chances = vec![0.0; n * (n + 1) / 2 + 1];
    chances[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = f64::midpoint(chances[sum], with);
        }
    }
    chances
}

/// Tukey and McLaughlin 1963: a fifth of the values is cut off at each end.
fn trimmed(values: &[f64]) -> Said {
    let (sorted, cut) = (sorted(values), values.len() / 5);
    by_winsorised(mean(&sorted[cut..values.len() - cut]), &sorted, cut)
}

fn winsorised(values: &[f64]) -> Said {
    let (sorted, cut) = (sorted(values), values.len() / 5);
    by_winsorised(mean(&moved_in(&sorted, cut)), &sorted, cut)
}

fn moved_in(sorted: &[f64], cut: usize) -> Vec<f64> {
    (0..sorted.len()).map(|at| sorted[at.clamp(cut, sorted.len() - 1 - cut)]).collect()
}

fn by_winsorised(centre: f64, sorted: &[f64], cut: usize) -> Said {
    let (n, left) = (sorted.len() as f64, (sorted.len() - 2 * cut) as f64);
    let squares = sd(&moved_in(sorted, cut)).powi(2) * (n - 1.0);
    by_t(centre, (squares / (left * (left - 1.0))).sqrt(), left - 1.0)
}

fn huber(values: &[f64]) -> Said {
    let mut centre = middle(&sorted(values));
    let bound = 1.5 * 1.4826 * median_distance(values, centre);
    if bound == 0.0 {
        return mean_t(values);
    }
    let moved = |centre: f64| values.iter().map(move |value| (value - centre).clamp(-bound, bound));
    for _ in 0..50 {
        centre += moved(centre).sum::<f64>() / values.len() as f64;
    }
    let squares: f64 = moved(centre).map(|value| value * value).sum();
    let inside = values.iter().filter(|value| (*value - centre).abs() < bound).count();
    let inside = inside.max(2) as f64;
    by_t(centre, (squares / (inside * (inside - 1.0))).sqrt(), inside - 1.0)
}

/// What people often do by hand: values beyond 3.5 MAD are dropped.
fn dropped(values: &[f64]) -> Said {
    let centre = middle(&sorted(values));
    let bound = 3.5 * 1.4826 * median_distance(values, centre);
    let kept: Vec<f64> =
        values.iter().copied().filter(|value| (value - centre).abs() <= bound).collect();
    if kept.len() < 3 { mean_t(values) } else { mean_t(&kept) }
}

/// Kafadar 1982: values count up to 9 MAD from the centre; t with 0.7 (n - 1) degrees of freedom.
fn kafadar(values: &[f64]) -> Said {
    let mut centre = middle(&sorted(values));
    let reach = 9.0 * median_distance(values, centre);
    if reach == 0.0 {
        return mean_t(values);
    }
    let shares = |centre: f64| {
        let share = move |value: &f64| ((value - centre) / reach).powi(2);
        values.iter().map(move |value| (value - centre, share(value))).filter(|one| one.1 < 1.0)
    };
    for _ in 0..30 {
        let weights: f64 = shares(centre).map(|(_, share)| (1.0 - share).powi(2)).sum();
        let moved: f64 = shares(centre).map(|(off, share)| (1.0 - share).powi(2) * off).sum();
        centre += moved / weights;
    }
    let squares: f64 = shares(centre).map(|(off, share)| off * off * (1.0 - share).powi(4)).sum();
    let slope: f64 = shares(centre).map(|(_, share)| (1.0 - share) * (1.0 - 5.0 * share)).sum();
    let error = (squares / (slope.max(1.0) * (slope - 1.0).max(1.0))).sqrt();
    by_t(centre, error, (0.7 * (values.len() as f64 - 1.0)).max(1.0))
}

fn ours(values: &[f64]) -> Said {
    let paired = stats::Paired::of_logs(values).expect("simulated logs are finite");
    let interval = paired.interval.expect("there are enough blocks");
    let (low, high) = (interval.low.ln(), interval.high.ln());
    Said { centre: paired.centre_ln, low, high, p: interval.p }
}

thread_local! {
    static QUANTILES: RefCell<BTreeMap<u64, f64>> = const { RefCell::new(BTreeMap::new()) };
    static RANK_SUMS: RefCell<BTreeMap<usize, Vec<f64>>> = const { RefCell::new(BTreeMap::new()) };
}

fn by_t(centre: f64, error: f64, df: f64) -> Said {
    let law = StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are positive");
    let reach = QUANTILES.with(|quantiles| {
        *quantiles.borrow_mut().entry(df.to_bits()).or_insert_with(|| law.inverse_cdf(0.975))
    });
    let p = if error > 0.0 { 2.0 * law.sf((centre / error).abs()) } else { 1.0 };
    Said { centre, low: centre - reach * error, high: centre + reach * error, p }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn sd(values: &[f64]) -> f64 {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> f64 {
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

fn median_distance(values: &[f64], centre: f64) -> f64 {
    middle(&sorted(&values.iter().map(|value| (value - centre).abs()).collect::<Vec<_>>()))
}

/// Seeded draws.
struct Draw {
    random: Pcg64,
    residuals: Vec<f64>,
}

impl Draw {
    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        1.0 - self.random.random::<f64>()
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Two clean visits.
    fn pair(&mut self) -> f64 {
        VISIT * (self.normal() - self.normal())
    }

    /// The residual of a recorded visit, without the level of its server and of its block.
    fn recorded(&mut self) -> f64 {
        let at = self.random.random_range(0..self.residuals.len());
        self.residuals[at]
    }

    /// With this probability a visit that is 2 to 50 times slower, else 0.
    fn wild(&mut self, chance: f64) -> f64 {
        let is_wild = self.uniform() <= chance;
        let times = 2f64.ln() + self.uniform() * 25f64.ln();
        if is_wild { -times } else { 0.0 }
    }

    /// The machine loses 2 % from visit to visit, and more in later blocks. Which contender comes second in the block
    /// is random.
    fn drift(&mut self, block: usize) -> f64 {
        let lost = 0.02 + 0.001 * block as f64;
        if self.uniform() < 0.5 { lost } else { -lost }
    }

    /// Noise that only slows visits down.
    fn skewed(&mut self) -> f64 {
        -0.8 * VISIT * (0.8 * self.normal()).exp()
    }

    /// On average every second start is slow.
    fn slow_start(&mut self) -> f64 {
        if self.uniform() < 0.5 { -SLOW_START } else { 0.0 }
    }
}

/// Residuals of the visits that the lab's tests resample. Rows are servers, columns are blocks; the level of both is
/// subtracted.
fn residuals() -> Vec<f64> {
    let text = include_str!("../../lab/tests/fixtures/visit_noise.json");
    let fixture: Value = serde_json::from_str(text).expect("the fixture is JSON");
    let servers = fixture["rates_per_s"].as_object().expect("rates by server");
    let log = |rate: &Value| rate.as_f64().expect("a rate").ln();
    let rows: Vec<Vec<f64>> = servers
        .values()
        .map(|row| row.as_array().expect("a rate a block").iter().map(log).collect())
        .collect();
    let blocks = rows[0].len();
    let of_rows: Vec<f64> = rows.iter().map(|row| mean(row)).collect();
    let of_block = |block: usize| mean(&rows.iter().map(|row| row[block]).collect::<Vec<_>>());
    let freedom = ((rows.len() * blocks) as f64 / ((rows.len() - 1) * (blocks - 1)) as f64).sqrt();
    let residual = |block: usize, row: usize| {
        (rows[row][block] - of_rows[row] - of_block(block) + mean(&of_rows)) * freedom
    };
    let both = (0..blocks).flat_map(|block| (0..rows.len()).map(move |row| (block, row)));
    both.map(|(block, row)| residual(block, row)).collect()
}

/// The results of an estimator over all sessions of one noise and number of blocks.
#[derive(Default)]
struct Tally {
    covered: usize,
    widths: Vec<f64>,
    called: usize,
    called_when_narrow: usize,
    found: usize,
    squares: f64,
}

impl Tally {
    /// Adds a session; `logs` has twice as many blocks as a session starts with. Where the interval of t alone is too
    /// wide, no resamples are drawn (`is_resampled`): the wider of the two intervals is too wide, too.
    fn add(&mut self, estimate: Estimator, is_resampled: bool, logs: &[f64]) {
        let begun = logs.len() / 2;
        let said = estimate(&logs[..begun]);
        self.covered += usize::from(said.holds(0.0));
        self.widths.push(said.high - said.low);
        self.called += usize::from(said.differs());
        self.squares += said.centre * said.centre;
        let planted: Vec<f64> = logs[..begun].iter().map(|log| log + PLANTED.ln()).collect();
        let seen = estimate(&planted);
        self.found += usize::from(seen.differs() && seen.low > 0.0);
        let is_narrow = |blocks: &usize| {
            let logs = &logs[..*blocks];
            (!is_resampled || mean_t(logs).is_narrow()) && estimate(logs).is_narrow()
        };
        let stopped = (begun..logs.len()).find(is_narrow).unwrap_or(logs.len());
        self.called_when_narrow += usize::from(estimate(&logs[..stopped]).differs());
    }

    fn row(&mut self, name: &str) -> String {
        let sessions = self.widths.len();
        let share = |count: usize| 100.0 * count as f64 / sessions as f64;
        self.widths.sort_unstable_by(f64::total_cmp);
        let [covered, called, narrow, found] =
            [self.covered, self.called, self.called_when_narrow, self.found].map(share);
        let error = (self.squares / sessions as f64).sqrt();
        let width = 100.0 * middle(&self.widths);
        format!(
            "| {name} | {covered:.1} | {width:.1} | {called:.1} | {narrow:.1} | {found:.1} | {:.2} |",
            100.0 * error
        )
    }
}

fn table(noise: Noise, blocks: usize, sessions: usize) -> Vec<String> {
    let mut tallies: Vec<Tally> = ESTIMATORS.iter().map(|_| Tally::default()).collect();
    let mut draw = Draw { random: Pcg64::seed_from_u64(SEED), residuals: residuals() };
    for _ in 0..sessions {
        let logs: Vec<f64> = (0..2 * blocks).map(|block| noise(&mut draw, block)).collect();
        for ((name, estimate), tally) in ESTIMATORS.iter().zip(&mut tallies) {
            tally.add(*estimate, name.contains("bootstrap"), &logs);
        }
    }
    ESTIMATORS.iter().zip(&mut tallies).map(|((name, _), tally)| tally.row(name)).collect()
}

fn main() {
    let sessions = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(SESSIONS);
    println!("{sessions} sessions each, seed {SEED}");
    for (name, noise) in NOISES {
        for blocks in BLOCKS {
            println!("\n{name}, {blocks} blocks\n");
            println!(
                "| estimator | coverage % | width % | false % | false, stopped % | power % | error % |"
            );
            println!("|---|---|---|---|---|---|---|");
            table(noise, blocks, sessions).iter().for_each(|row| println!("{row}"));
        }
    }
}
