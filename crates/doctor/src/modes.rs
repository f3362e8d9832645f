//! Owns the search for a narrow mode in a distribution of times: requests that waited for a timer. Must not know
//! which timer, nor whose times they are. Start reading at [`far`] and [`in_band`].
//!
//! A timer holds a request for one fixed time, so that its requests stand close together, and apart from the
//! others. Queues, pauses and busy CPUs make tails and humps that are wide. So a band of the histogram is a mode
//! where all of these hold (bands and sides are measured in ln of the time: a factor of 1.04 is 4 steps):
//! - it holds five requests or more;
//! - it is at least five times as dense as either side, each side 49 % wide, with 4 % between them and the band;
//! - chance puts that many into it with p < 1e-6 where it is as dense as the denser side. That side's count is
//!   Poisson's itself, so the law is the negative binomial one, which asks for more than Poisson's.
//!
//! From its count is taken what a log-linear line between its sides predicts.
//!
//! Measured: 24,000 samples of 200 to 20,000 times, 4,000 each of lognormal (sigma 0.5 to 2), exponential, Pareto
//! (alpha 0.8 to 3), Weibull (shape 0.5), two humps by queueing (Erlang-8 beside exponential), and what pauses leave
//! (uniform beside exponential), with seed 37 (`alarms(4_000, 37)` of the tests): 1 alarm, of a pause. Planted in 0.1,
//! 0.5, 1 and 5 % of 20,000 requests with a lognormal tail, the share is right within 5 %.

use stats::Histogram;
use units::Nanos;

/// Length of a step, in ln of the time: 1 %. Histograms are exact to 0.1 %.
const STEP_LN: f64 = 0.01;
/// Widths of the bands that are tried, in steps: a timer alone, and one whose requests then queue for a CPU.
const WIDTHS: [usize; 2] = [4, 12];
/// Steps between a band and its sides: what waits behind a timer is late by some of them.
const GUARD: usize = 4;
/// Steps of a side: enough that an empty one says something.
const SIDE: usize = 40;
/// Minimum density of a mode over that of the denser side.
const DENSER_MIN: f64 = 5.0;
/// Minimum number of requests in a mode.
const COUNT_MIN: u64 = 5;
/// Highest p of a mode: some 500 bands are tried in a histogram, and 60 checks may look at it.
const P_MAX: f64 = 1e-6;
/// From this many requests on, five times the prediction is always below [`P_MAX`].
const COUNT_SURE: u64 = 200;
/// A mode is far from this many medians on. Modes nearer than that are a server's own (cache hit or miss).
const FAR: f64 = 4.0;
/// Maximum number of modes that are told apart.
const MODES_MAX: usize = 8;

/// Times that stand close together and apart from the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mode {
    /// Shortest time in it.
    pub(crate) from: Nanos,
    /// Longest time in it.
    pub(crate) until: Nanos,
    /// Where half of its requests lie below.
    pub(crate) middle: Nanos,
    /// Requests in it, less those that its sides predict.
    pub(crate) count: u64,
    /// The same over all requests.
    pub(crate) share: f64,
}

/// The narrow modes at four medians or more, the largest first.
pub(crate) fn far(histogram: &Histogram) -> Vec<Mode> {
    if histogram.count() < COUNT_MIN {
        return Vec::new();
    }
    let steps = Steps::of(histogram);
    let mut open = vec![(step(far_from(histogram)).max(steps.start), steps.end())];
    let mut found = Vec::new();
    while let Some((from, until)) = open.pop() {
        let bands = (from..until).flat_map(|at| WIDTHS.map(|width| (at, at + width)));
        let clear = bands.filter_map(|band| Some((band, steps.excess(band)?)));
        let best = clear.max_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some((band, _)) = best.filter(|_| found.len() < MODES_MAX) else { continue };
        found.extend(steps.mode((band.0.saturating_sub(GUARD), band.1 + GUARD), band));
        open.push((from, band.0.saturating_sub(GUARD + WIDTHS[1]).max(from)));
        open.push((band.1 + GUARD, until));
    }
    found.sort_by_key(|mode| std::cmp::Reverse(mode.count));
    found
}

/// What stands out in a band that is known before; `None`: nothing.
pub(crate) fn in_band(histogram: &Histogram, from: Nanos, until: Nanos) -> Option<Mode> {
    let steps = Steps::of(histogram);
    let band = (step(from), step(until).max(step(from) + 1));
    steps.excess(band)?;
    steps.mode(band, band)
}

/// Requests whose time is at least `from` and less than `until`.
pub(crate) fn count_between(histogram: &Histogram, from: Nanos, until: Nanos) -> u64 {
    let within = histogram.buckets().filter(|(span, _)| (from..until).contains(span));
    within.map(|(_, count)| count).sum()
}

/// Half of the requests whose time is at least `from` and less than `until` took this or less; `None`: there are
/// none.
pub(crate) fn middle_between(histogram: &Histogram, from: Nanos, until: Nanos) -> Option<Nanos> {
    let within = || histogram.buckets().filter(|(span, _)| (from..until).contains(span));
    let half = within().map(|(_, count)| count).sum::<u64>().div_ceil(2);
    let mut below = 0;
    within().find_map(|(span, count)| {
        below += count;
        (below >= half).then_some(span)
    })
}

/// The share of requests that waited, read from the mean and from the standard deviation: where some wait for
/// one fixed time T and the others do not, the mean grows by p T and the variance by p (1 - p) T squared. They
/// agree only where the mode explains the whole of what is far out. `None` without requests that are not.
pub(crate) fn shares_by_moments(histogram: &Histogram, mode: &Mode) -> Option<(f64, f64)> {
    let near = far_from(histogram);
    let main = Moments::of(histogram, |span| span < near)?;
    let all = Moments::of(histogram, |_| true)?;
    let waited = mode.middle.0 as f64 - main.mean;
    let by_mean = (all.mean - main.mean) / waited;
    let product = (all.variance - main.variance).max(0.0) / (waited * waited);
    let by_sd = (1.0 - (1.0 - 4.0 * product).max(0.0).sqrt()) / 2.0;
    Some((by_mean, by_sd))
}

/// From where on a time is far from the main mode.
fn far_from(histogram: &Histogram) -> Nanos {
    Nanos((histogram.quantile_unchecked(0.5).0 as f64 * FAR) as u64)
}

struct Moments {
    mean: f64,
    variance: f64,
}

impl Moments {
    fn of(histogram: &Histogram, is_in: impl Fn(Nanos) -> bool) -> Option<Self> {
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (span, count) in histogram.buckets().filter(|(span, _)| is_in(*span)) {
            let (span, count) = (span.0 as f64, count as f64);
            n += count;
            sum += count * span;
            squares += count * span * span;
        }
        let mean = sum / n;
        (n > 0.0).then(|| Self { mean, variance: (squares / n - mean * mean).max(0.0) })
    }
}

fn step(span: Nanos) -> usize {
    ((span.0.max(1) as f64).ln() / STEP_LN) as usize
}

/// A histogram by steps.
struct Steps {
    buckets: Vec<(Nanos, u64)>,
    /// The step of its shortest time.
    start: usize,
    /// Requests below each step from `start` on, and below the end of the last one.
    below: Vec<u64>,
}

impl Steps {
    fn of(histogram: &Histogram) -> Self {
        let buckets: Vec<(Nanos, u64)> = histogram.buckets().collect();
        let start = buckets.first().map_or(0, |(first, _)| step(*first));
        let end = buckets.last().map_or(0, |(last, _)| step(*last) + 1);
        let mut below = vec![0; end - start + 1];
        buckets.iter().for_each(|(span, count)| below[step(*span) - start + 1] += count);
        (1..below.len()).for_each(|at| below[at] += below[at - 1]);
        Self { buckets, start, below }
    }

    /// The step behind its longest time.
    fn end(&self) -> usize {
        self.start + self.below.len() - 1
    }

    fn below(&self, step: usize) -> u64 {
        self.below[step.saturating_sub(self.start).min(self.below.len() - 1)]
    }

    fn count(&self, from: usize, until: usize) -> u64 {
        self.below(until) - self.below(from)
    }

    /// Requests of the band beyond what its sides predict; `None` where it is no mode.
    fn excess(&self, (from, until): (usize, usize)) -> Option<f64> {
        let count = self.count(from, until);
        if count < COUNT_MIN {
            return None;
        }
        let left = self.count(from.saturating_sub(GUARD + SIDE), from.saturating_sub(GUARD));
        let right = self.count(until + GUARD, until + GUARD + SIDE);
        let width = (until - from) as f64;
        let denser = left.max(right) as f64 / SIDE as f64;
        let is_dense = count as f64 >= DENSER_MIN * denser * width;
        let sides = Sides { left: left as f64, right: right as f64 };
        let is_sure = count >= COUNT_SURE || sides.p_of(count, width) < P_MAX;
        (is_dense && is_sure).then(|| count as f64 - sides.predict(width))
    }

    /// The mode with what lies in `whole`; `band` is what was tested.
    fn mode(&self, whole: (usize, usize), band: (usize, usize)) -> Option<Mode> {
        let left =
            self.count(band.0.saturating_sub(GUARD + SIDE), band.0.saturating_sub(GUARD)) as f64;
        let right = self.count(band.1 + GUARD, band.1 + GUARD + SIDE) as f64;
        let predicted = Sides { left, right }.predict((whole.1 - whole.0) as f64);
        let count = self.count(whole.0, whole.1);
        let mut within =
            (self.buckets.iter()).filter(|(span, _)| (whole.0..whole.1).contains(&step(*span)));
        let mut half = count.div_ceil(2);
        let middle = within.clone().find(|(_, here)| {
            let is_it = *here >= half;
            half = half.saturating_sub(*here);
            is_it
        });
        let all = *self.below.last()?;
        let excess = (count as f64 - predicted).round().max(0.0);
        Some(Mode {
            from: within.clone().next()?.0,
            until: within.next_back()?.0,
            middle: middle?.0,
            count: excess as u64,
            share: excess / all.max(1) as f64,
        })
    }
}

/// Requests on either side of a band.
struct Sides {
    left: f64,
    right: f64,
}

impl Sides {
    /// Requests on both sides of a line through them whose logarithm is linear: twice the geometric mean.
    fn level(&self) -> f64 {
        2.0 * ((self.left + 0.5) * (self.right + 0.5)).sqrt()
    }

    /// Requests that a band of that many steps would have; none where the sides are as good as empty.
    fn predict(&self, width: f64) -> f64 {
        (self.level() - 1.0).max(0.0) * width / (2 * SIDE) as f64
    }

    /// The chance of `count` requests or more where the band is as dense as its sides, or as the denser of them
    /// alone: a tail may end at the other.
    fn p_of(&self, count: u64, width: f64) -> f64 {
        let denser = self.left.max(self.right);
        let of_both = chance(count, self.left + self.right, width / (2 * SIDE) as f64);
        match denser > 0.0 {
            true => of_both.max(chance(count, denser, width / SIDE as f64)),
            false => of_both,
        }
    }
}

/// The chance of `count` requests or more, where `beside` were counted in a place that is wider by 1 / `ratio`: the sum
/// of the negative binomial law from there on.
fn chance(count: u64, beside: f64, ratio: f64) -> f64 {
    let (shape, of_band) = (beside + 1.0, ratio / (1.0 + ratio));
    let mut term = (1.0 - of_band).powf(shape);
    let mut fewer = 0.0;
    for n in 0..count {
        fewer += term;
        term *= (shape + n as f64) / (n as f64 + 1.0) * of_band;
    }
    (1.0 - fewer).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Law, Noise};

    /// Exponential with mean 1.
    fn exponential(noise: &mut Noise) -> f64 {
        1.0 - noise.of(Law::Skewed)
    }

    fn uniform(noise: &mut Noise) -> f64 {
        (-exponential(noise)).exp()
    }

    type Smooth = fn(&mut Noise, f64) -> f64;

    /// Laws of a time in milliseconds, with a parameter from 0 to 1.
    const SMOOTH: [(&str, Smooth); 6] = [
        ("lognormal", |noise, shape| ((0.5 + 1.5 * shape) * noise.of(Law::Normal)).exp()),
        ("exponential", |noise, _| exponential(noise)),
        ("Pareto", |noise, shape| (exponential(noise) / (0.8 + 2.2 * shape)).exp()),
        ("Weibull", |noise, _| exponential(noise).powi(2)),
        ("two humps by queueing", |noise, shape| match uniform(noise) < 0.02 + 0.3 * shape {
            true => 5.0 * (0..8).map(|_| exponential(noise)).sum::<f64>(),
            false => exponential(noise),
        }),
        // A pause meets requests at a random place: what is left of it is uniform.
        ("a pause", |noise, shape| match uniform(noise) < 0.05 {
            true => 100.0 * (0.2 + shape) * uniform(noise),
            false => exponential(noise),
        }),
    ];

    fn sample(noise: &mut Noise, n: usize, mut one: impl FnMut(&mut Noise) -> f64) -> Histogram {
        let mut histogram = Histogram::new();
        (0..n).for_each(|_| histogram.record(Nanos((1e6 * one(noise)) as u64)));
        histogram
    }

    fn alarms(samples_each: usize, seed: u64) -> Vec<(&'static str, usize)> {
        let mut noise = Noise::new(seed);
        let mut of = |law: Smooth| {
            let alarms = (0..samples_each).filter(|sampled| {
                let n = [200, 500, 2_000, 6_000, 20_000][sampled % 5];
                let shape = uniform(&mut noise);
                let histogram = sample(&mut noise, n, |noise| law(noise, shape));
                !far(&histogram).is_empty()
            });
            alarms.count()
        };
        SMOOTH.iter().map(|&(name, law)| (name, of(law))).collect()
    }

    #[test]
    fn smooth_tails_have_no_modes() {
        let found = alarms(100, 31);
        assert!(found.iter().all(|(_, alarms)| *alarms == 0), "{found:?}");
    }

    /// Times of about a millisecond with a heavy tail, of which a share waits for another `wait` ms.
    fn planted(noise: &mut Noise, n: usize, dose: f64, wait: f64) -> Histogram {
        let every = (1.0 / dose) as usize;
        let mut count = 0;
        sample(noise, n, |noise| {
            count += 1;
            let held = if count % every == 0 { wait } else { 0.0 };
            held + (0.7 * noise.of(Law::Normal)).exp()
        })
    }

    #[test]
    fn a_planted_mode_is_found_and_its_share_is_the_dose() {
        let mut noise = Noise::new(5);
        for wait in [40.0, 200.0, 1000.0] {
            for dose in [0.001, 0.005, 0.01, 0.05] {
                let histogram = planted(&mut noise, 20_000, dose, wait);
                let found = far(&histogram);
                assert_eq!(found.len(), 1, "{wait} ms at {dose}: {found:?}");
                let mode = found[0];
                assert!((mode.share / dose - 1.0).abs() < 0.05, "{wait} ms at {dose}: {mode:?}");
                let middle = mode.middle.as_millis_f64();
                assert!(
                    (middle / (wait + 1.0) - 1.0).abs() < 0.01,
                    "{wait} ms at {dose}: {mode:?}"
                );
                let (by_mean, by_sd) = shares_by_moments(&histogram, &mode).unwrap();
                // The tail's part of the mean is a tenth of a millisecond.
                let is_clear = dose * wait > 0.9;
                for share in [by_mean, by_sd].into_iter().filter(|_| is_clear) {
                    assert!((share / dose - 1.0).abs() < 0.2, "{by_mean} and {by_sd} at {dose}");
                }
            }
        }
    }

    #[test]
    fn two_timers_are_told_apart() {
        let mut noise = Noise::new(6);
        let mut histogram = planted(&mut noise, 20_000, 0.01, 200.0);
        histogram.merge(&planted(&mut noise, 20_000, 0.002, 600.0));
        let middles: Vec<u64> =
            far(&histogram).iter().map(|mode| mode.middle.0 / 10_000_000).collect();
        assert_eq!(middles, [20, 60]);
    }

    #[test]
    fn a_band_that_is_known_needs_no_median_below_it() {
        let mut noise = Noise::new(7);
        let all = sample(&mut noise, 2_000, |noise| 40.5 + 0.5 * exponential(noise));
        let band = |histogram| in_band(histogram, Nanos::from_millis(39), Nanos::from_millis(46));
        let mode = band(&all).unwrap();
        assert!(mode.share > 0.99 && far(&all).is_empty(), "{mode:?}");
        let smooth = sample(&mut noise, 20_000, |noise| 20.0 * exponential(noise));
        assert_eq!(band(&smooth), None);
        assert_eq!(band(&Histogram::new()), None);
    }

    #[test]
    fn five_requests_far_out_are_a_mode_and_four_are_none() {
        let mut noise = Noise::new(8);
        let mut histogram = sample(&mut noise, 5_000, exponential);
        (0..4).for_each(|n| histogram.record(Nanos::from_micros(200_000 + 100 * n)));
        assert_eq!(far(&histogram), []);
        histogram.record(Nanos::from_micros(200_500));
        assert_eq!(far(&histogram).len(), 1);
        assert_eq!(far(&histogram)[0].count, 5);
        assert_eq!(far(&Histogram::new()), []);
    }
}
