//! Owns the question whether values fall in two clusters: two normal laws against one. Must not know what the values
//! are, nor when two clusters matter. Start reading at [`TwoGaussians::fit`].
//!
//! Both laws of the pair have the same standard deviation. With two, the likelihood has no bound (a cluster of two
//! close values), and samples of 10 to 40 produce such pairs by chance. Within a mode visits differ because of the
//! machine, which is the same for both.

use std::f64::consts::TAU;

use crate::moments::mean;

/// Fewest values that are judged: with fewer, two clusters and one wide one look the same.
pub const REPLICATES_MIN: usize = 10;
/// Rounds of expectation and maximisation; few samples need more than 50.
const ROUNDS_MAX: usize = 500;
/// Gain of the log likelihood at which the fit has converged.
const SETTLED: f64 = 1e-9;

/// One of two clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mode {
    /// Its mean.
    pub centre: f64,
    /// Its share of the values, 0 to 1.
    pub share: f64,
}

/// The best two normal laws of one standard deviation, and how much better they are than one law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoGaussians {
    /// The cluster with the lower centre.
    pub low: Mode,
    /// The cluster with the higher centre.
    pub high: Mode,
    /// Standard deviation within a cluster.
    pub sd: f64,
    /// Bayesian information criterion of one law minus that of two: above 10 is "very strong" evidence for two (Kass
    /// and Raftery 1995).
    pub delta_bic: f64,
}

impl TwoGaussians {
    /// Fits by expectation maximisation, from the best split of the sorted values in two. `None` with fewer than
    /// [`REPLICATES_MIN`] values, or if they do not vary. No value may be NaN.
    pub fn fit(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len();
        if n < REPLICATES_MIN || sorted[0] == sorted[n - 1] {
            return None;
        }
        let variance = squares(&sorted) / n as f64;
        let mut fit = Mixture::split(&sorted, variance);
        let mut likelihood = f64::NEG_INFINITY;
        for _ in 0..ROUNDS_MAX {
            let (next, reached) = fit.round(&sorted, variance);
            if reached - likelihood < SETTLED {
                break;
            }
            (fit, likelihood) = (next, reached);
        }
        // -2 ln L of one law, which has two parameters fewer.
        let one = n as f64 * ((TAU * variance).ln() + 1.0);
        let delta_bic = one + 2.0 * likelihood - 2.0 * (n as f64).ln();
        Some(Self { low: fit.low, high: fit.high, sd: fit.variance.sqrt(), delta_bic })
    }

    /// How far the centres are apart.
    pub fn apart(&self) -> f64 {
        self.high.centre - self.low.centre
    }

    /// How far the centres are apart in standard deviations (Ashman's D). A mixture of equal shares has two peaks from
    /// a D of 2.
    pub fn separation(&self) -> f64 {
        self.apart() / self.sd
    }
}

/// Two normal laws of one variance, during the fit.
#[derive(Clone, Copy)]
struct Mixture {
    low: Mode,
    high: Mode,
    variance: f64,
}

impl Mixture {
    /// The split of sorted values with the least sum of squares within its parts.
    fn split(sorted: &[f64], variance: f64) -> Self {
        let within = |at: &usize| squares(&sorted[..*at]) + squares(&sorted[*at..]);
        let at = (1..sorted.len()).min_by(|a, b| within(a).total_cmp(&within(b)));
        let at = at.expect("there are two values or more");
        let n = sorted.len() as f64;
        let mode = |part: &[f64]| Mode { centre: mean(part), share: part.len() as f64 / n };
        let (low, high) = sorted.split_at(at);
        let spread = (within(&at) / n).max(variance_min(variance));
        Self { low: mode(low), high: mode(high), variance: spread }
    }

    /// One round: the next mixture, and the log likelihood of this one.
    fn round(&self, values: &[f64], variance: f64) -> (Self, f64) {
        let density = |mode: Mode, value: f64| {
            let distance = (value - mode.centre).powi(2) / (2.0 * self.variance);
            mode.share.ln() - distance
        };
        let mut likelihood = -0.5 * values.len() as f64 * (TAU * self.variance).ln();
        let (mut count, mut sum_low, mut sum_high) = (0.0, 0.0, 0.0);
        let mut of_high = Vec::with_capacity(values.len());
        for &value in values {
            let (low, high) = (density(self.low, value), density(self.high, value));
            let both = low.max(high) + (-(low - high).abs()).exp().ln_1p();
            likelihood += both;
            let belongs = (high - both).exp();
            of_high.push(belongs);
            count += belongs;
            sum_high += belongs * value;
            sum_low += (1.0 - belongs) * value;
        }
        let n = values.len() as f64;
        let low = Mode { centre: sum_low / (n - count), share: 1.0 - count / n };
        let high = Mode { centre: sum_high / count, share: count / n };
        let squares: f64 = values
            .iter()
            .zip(&of_high)
            .map(|(value, p)| {
                p * (value - high.centre).powi(2) + (1.0 - p) * (value - low.centre).powi(2)
            })
            .sum();
        let next = Self { low, high, variance: (squares / n).max(variance_min(variance)) };
        (next, likelihood)
    }
}

/// Two clusters of equal values have zero variance, for which there is no likelihood.
fn variance_min(variance: f64) -> f64 {
    variance * 1e-12
}

/// Sum of squares about the mean.
fn squares(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|value| (value - centre).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clear_clusters_are_found_where_they_are() {
        let values: Vec<f64> =
            (0..12).map(|n| if n % 3 == 0 { 10.0 } else { 20.0 } + f64::from(n) * 0.01).collect();
        let fit = TwoGaussians::fit(&values).unwrap();
        assert!((fit.low.centre - 10.045).abs() < 1e-3, "{fit:?}");
        assert!((fit.low.share - 1.0 / 3.0).abs() < 1e-9, "{fit:?}");
        assert!(fit.delta_bic > 50.0 && fit.separation() > 100.0, "{fit:?}");
    }

    #[test]
    fn two_values_alone_are_two_clusters() {
        let values: Vec<f64> = (0..10).map(|n| f64::from(n % 2)).collect();
        let fit = TwoGaussians::fit(&values).unwrap();
        assert_eq!((fit.low.centre, fit.high.centre), (0.0, 1.0));
        assert!(fit.delta_bic.is_finite() && fit.delta_bic > 100.0);
    }

    #[test]
    fn too_few_or_equal_values_are_not_judged() {
        assert_eq!(TwoGaussians::fit(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]), None);
        assert_eq!(TwoGaussians::fit(&[1.0; 20]), None);
    }
}
