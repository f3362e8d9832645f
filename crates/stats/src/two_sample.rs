//! Owns the ratio of two samples that share nothing: log means, Welch's t and a bootstrap of each side.
//! Must not know what was sampled, nor when. Start reading at [`TwoSample::of_logs`].
//!
//! Blocks pair what a block shares; two runs made on different days share no block. To pair them by
//! number would hold an accident (which block came third) against another, and widen the interval.
//! Variances are not pooled: a server that changed may well vary otherwise than before, and Welch's
//! interval keeps its promise then at next to no cost where they are alike (Welch 1947; Ruxton 2006).

use crate::bootstrap::{BOOTSTRAP_MIN, interval_of_statistics};
use crate::decision::{Decision, Standard};
use crate::equivalence::{Tost, within};
use crate::holm::Held;
use crate::missing::{Spread, missing};
use crate::moments::{mean, sd};
use crate::paired::{BLOCKS_FOR_INTERVAL, ConfidenceInterval, PairedError};
use crate::resample::Draws;
use crate::student::{t_quantile, two_sided_p};

/// The log ratio of a over b, of which each was sampled by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSample {
    /// Values of a, at least 1.
    pub n_a: usize,
    /// Values of b, at least 1.
    pub n_b: usize,
    /// Mean of ln a less mean of ln b.
    pub mean_ln: f64,
    /// exp of that: the ratio of the geometric means.
    pub ratio: f64,
    /// How sure that is; `None` where either has fewer than [`BLOCKS_FOR_INTERVAL`] values.
    pub interval: Option<TwoSampleInterval>,
}

/// How sure a ratio of two samples is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSampleInterval {
    /// Lower end of the 95 % interval of the ratio: at either end the wider of `welch` and `bootstrap`.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard deviation of ln a over its values.
    pub sd_ln_a: f64,
    /// Of ln b.
    pub sd_ln_b: f64,
    /// Standard error of the log ratio.
    pub error_ln: f64,
    /// Welch's degrees of freedom; of the smaller sample where neither varies.
    pub df: f64,
    /// 95 % interval of the ratio by Welch's t; of no length where neither varies.
    pub welch: ConfidenceInterval,
    /// 95 % interval of the ratio by the studentised bootstrap, each side drawn by itself; `None` where
    /// a side has too few values for one, or neither varies.
    pub bootstrap: Option<ConfidenceInterval>,
    /// Two-sided p of "the ratio is 1", by Welch's t; not yet adjusted for many.
    pub p: f64,
}

impl TwoSampleInterval {
    /// How much one value of each varies together: what ln(a / b) would vary by over pairs of them.
    pub(crate) fn sd_ln(&self) -> f64 {
        self.sd_ln_a.hypot(self.sd_ln_b)
    }
}

impl TwoSample {
    /// From the logarithms of both; each finite. `seed` is that of the bootstrap.
    ///
    /// # Errors
    /// A side is empty, or has a value that is not finite.
    pub fn of_logs(a: &[f64], b: &[f64], seed: u64) -> Result<Self, PairedError> {
        if a.is_empty() || b.is_empty() {
            return Err(PairedError::Empty);
        }
        for side in [a, b] {
            if let Some(block) = side.iter().position(|log| !log.is_finite()) {
                return Err(PairedError::NotPositive { block, value: side[block] });
            }
        }
        let mean_ln = mean(a) - mean(b);
        let is_enough = a.len().min(b.len()) >= BLOCKS_FOR_INTERVAL;
        Ok(Self {
            n_a: a.len(),
            n_b: b.len(),
            mean_ln,
            ratio: mean_ln.exp(),
            interval: is_enough.then(|| interval(a, b, seed)),
        })
    }

    /// Tests whether the ratio lies between 1 / (1 + margin) and 1 + margin, as [`crate::tost`] does.
    /// `None` where there is no interval.
    pub fn tost(&self, margin: f64) -> Option<Tost> {
        let TwoSampleInterval { error_ln, df, .. } = self.interval?;
        Some(within(self.mean_ln, error_ln, df, margin))
    }

    /// Which of three things may be said, for a p that was adjusted for the others of its family; by the rules of
    /// [`crate::decide`]. The blocks that are missing are missing on both sides.
    pub fn decide(&self, held: impl Into<Held>, standard: Standard) -> Decision {
        let held: Held = held.into();
        let n = self.n_a.min(self.n_b);
        let (Some(interval), Some(tost)) = (self.interval, self.tost(standard.margin)) else {
            return Decision::Undecided { more: Some((BLOCKS_FOR_INTERVAL - n) as u32) };
        };
        if tost.equivalent {
            Decision::NoDifference
        } else if held.p < standard.alpha && (interval.low > 1.0 || interval.high < 1.0) {
            Decision::Ratio
        } else {
            let seen = Spread { n, centre_ln: self.mean_ln, sd_ln: interval.sd_ln() };
            Decision::Undecided { more: missing(seen, held, standard.margin, standard.alpha) }
        }
    }
}

fn interval(a: &[f64], b: &[f64], seed: u64) -> TwoSampleInterval {
    let (side_a, side_b) = (Side::of(a), Side::of(b));
    let centre = side_a.mean - side_b.mean;
    let error = (side_a.share() + side_b.share()).sqrt();
    let df = degrees_of_freedom(&side_a, &side_b);
    let reach = t_quantile(0.975, df) * error;
    let welch = ConfidenceInterval { low: centre - reach, high: centre + reach };
    let bootstrap = bootstrap(a, b, error, seed);
    let wider = bootstrap.map_or(welch, |other| welch.hull(other)).exp();
    let p = match (centre == 0.0, error == 0.0) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => two_sided_p(centre / error, df),
    };
    TwoSampleInterval {
        low: wider.low,
        high: wider.high,
        sd_ln_a: side_a.sd,
        sd_ln_b: side_b.sd,
        error_ln: error,
        df,
        welch: welch.exp(),
        bootstrap: bootstrap.map(ConfidenceInterval::exp),
        p,
    }
}

/// What Welch's t needs of a sample.
struct Side {
    n: f64,
    mean: f64,
    sd: f64,
}

impl Side {
    fn of(values: &[f64]) -> Self {
        Self { n: values.len() as f64, mean: mean(values), sd: sd(values) }
    }

    /// What it adds to the variance of the difference of means.
    fn share(&self) -> f64 {
        self.sd * self.sd / self.n
    }
}

/// By Welch and Satterthwaite; between the smaller n - 1 and the sum of both.
fn degrees_of_freedom(a: &Side, b: &Side) -> f64 {
    let least = a.n.min(b.n) - 1.0;
    let (of_a, of_b) = (a.share(), b.share());
    let both = (of_a + of_b).powi(2);
    let df = both / (of_a * of_a / (a.n - 1.0) + of_b * of_b / (b.n - 1.0));
    if df.is_finite() { df.max(least) } else { least }
}

/// The studentised bootstrap of the difference of means; cost: 1999 resamples of both sides.
fn bootstrap(a: &[f64], b: &[f64], error: f64, seed: u64) -> Option<ConfidenceInterval> {
    if a.len().min(b.len()) < BOOTSTRAP_MIN || error == 0.0 {
        return None;
    }
    let centre = mean(a) - mean(b);
    let mut draws = Draws::new(seed);
    let (mut of_a, mut of_b) = (vec![0.0; a.len()], vec![0.0; b.len()]);
    interval_of_statistics(centre, error, 1, || {
        for (drawn, from) in [(&mut of_a, a), (&mut of_b, b)] {
            drawn.iter_mut().for_each(|value| *value = from[draws.one_of(from.len())]);
        }
        let (side_a, side_b) = (Side::of(&of_a), Side::of(&of_b));
        let shift = side_a.mean - side_b.mean - centre;
        let error = (side_a.share() + side_b.share()).sqrt();
        match error > 0.0 {
            true => shift / error,
            false if shift == 0.0 => 0.0,
            false => f64::INFINITY.copysign(shift),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: Standard = Standard { margin: 0.02, alpha: 0.02 };

    #[test]
    fn too_few_values_have_a_ratio_but_no_interval() {
        let seen = TwoSample::of_logs(&[0.1, 0.1], &[0.0, 0.0, 0.0], 1).unwrap();
        assert_eq!((seen.n_a, seen.n_b, seen.interval), (2, 3, None));
        assert_eq!(seen.decide(1.0, STANDARD), Decision::Undecided { more: Some(1) });
        assert_eq!(TwoSample::of_logs(&[], &[1.0], 1), Err(PairedError::Empty));
        let infinite = TwoSample::of_logs(&[1.0], &[0.0, f64::INFINITY], 1);
        assert!(matches!(infinite, Err(PairedError::NotPositive { block: 1, .. })));
    }

    #[test]
    fn values_without_spread_give_a_point_and_a_sure_answer() {
        let same = TwoSample::of_logs(&[0.3; 8], &[0.3; 9], 1).unwrap();
        assert_eq!(same.interval.unwrap().p, 1.0);
        assert_eq!(same.decide(1.0, STANDARD), Decision::NoDifference);
        let other = TwoSample::of_logs(&[0.4; 8], &[0.3; 9], 1).unwrap();
        let interval = other.interval.unwrap();
        assert_eq!((interval.p, interval.bootstrap), (0.0, None));
        assert!((interval.low - interval.high).abs() < 1e-12);
        assert_eq!(other.decide(0.0, STANDARD), Decision::Ratio);
    }

    #[test]
    fn a_side_without_spread_does_not_spoil_the_other() {
        let seen = TwoSample::of_logs(&[0.0; 9], &[0.01, -0.01, 0.02, -0.02, 0.0], 1).unwrap();
        let interval = seen.interval.unwrap();
        assert_eq!(interval.df, 4.0, "only one side says how sure it is");
        assert!(interval.low < 1.0 && interval.high > 1.0);
    }
}
