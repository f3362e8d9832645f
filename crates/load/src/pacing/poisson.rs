//! Poisson arrivals: independent users who do not know of one another. Owns the sum of exponential
//! distances. Start reading at [`Poisson`].
//!
//! The sum counts small parts of a nanosecond in whole numbers. In an f64 that grows for a day each
//! distance would be rounded to 0.02 ns; splitting off its whole part each time takes 32 ns a distance
//! instead of 23.

use rand_pcg::Pcg64Mcg;
use units::{Nanos, PerSecond};

use super::{Law, exponential, nanos_for};

/// Arrivals whose distances are exponential and independent; the first is one distance after zero.
pub(crate) struct Poisson {
    random: Pcg64Mcg,
    /// Mean distance, in parts.
    gap_mean: f64,
    /// The last arrival, in parts.
    last: u128,
    /// 2^this parts are a nanosecond, 0 to 32.
    shift: u32,
}

impl Poisson {
    /// `rate` is above zero.
    pub(crate) fn new(rate: PerSecond, random: Pcg64Mcg) -> Self {
        let gap_ns_mean = nanos_for(1.0, rate);
        // The longest distance, 36.7 means, must fit into 64 bits: it does for rates down to one in 15 years.
        let shift = (58.0 - gap_ns_mean.log2().ceil()).clamp(0.0, 32.0) as u32;
        Self { random, gap_mean: gap_ns_mean * (1u64 << shift) as f64, last: 0, shift }
    }
}

impl Law for Poisson {
    fn next(&mut self) -> Option<Nanos> {
        self.last += u128::from((exponential(&mut self.random) * self.gap_mean) as u64);
        u64::try_from(self.last >> self.shift).ok().map(Nanos)
    }
}

#[cfg(test)]
mod tests {
    use record::Pacing;

    use super::*;
    use crate::pacing::testing::{WHOLE, gaps_secs, instants};

    const RATE: f64 = 1000.0;

    fn arrivals(seed: u64, n: u32) -> Vec<Nanos> {
        instants(&Pacing::Poisson { rate: PerSecond(RATE) }, seed, WHOLE, n)
    }

    /// Dispersion test (Fisher 1950) on counts in windows of 10 ms, as a standard normal variate: the
    /// sum of squares over the mean is chi-square with one degree a window.
    fn dispersion_z(arrivals: &[Nanos]) -> f64 {
        let n_windows = arrivals.last().unwrap().0 / 10_000_000;
        let mut counts = vec![0.0; n_windows as usize];
        for at in arrivals {
            if let Some(count) = counts.get_mut((at.0 / 10_000_000) as usize) {
                *count += 1.0;
            }
        }
        // The mean is known, so no degree of freedom is lost.
        let mean = RATE * 0.01;
        let chi2: f64 = counts.iter().map(|count| (count - mean) * (count - mean) / mean).sum();
        (chi2 - n_windows as f64) / (2.0 * n_windows as f64).sqrt()
    }

    #[test]
    fn distances_pass_anderson_darling() {
        for seed in 0..20 {
            let gaps = gaps_secs(&arrivals(seed, 10_000));
            let test = stats::anderson_darling_exponential(&gaps, RATE).unwrap();
            assert!(test.p > 0.001, "seed {seed}: {test:?}");
        }
    }

    #[test]
    fn counts_are_as_scattered_as_their_mean() {
        for seed in 0..20 {
            let z = dispersion_z(&arrivals(seed, 20_000));
            assert!(z.abs() < 4.0, "seed {seed}: {z}");
        }
    }

    #[test]
    fn distances_do_not_depend_on_those_before() {
        let gaps = gaps_secs(&arrivals(1, 20_000));
        let r = stats::lag1_autocorrelation(&gaps).unwrap();
        assert!(r.abs() < 4.0 / (gaps.len() as f64).sqrt(), "{r}");
    }

    #[test]
    fn a_wrong_law_with_the_right_rate_fails_both_tests() {
        // Every second arrival at twice the rate: distances are gamma of shape 2, the mean is right.
        let doubled: Vec<Nanos> = arrivals(1, 20_000).into_iter().skip(1).step_by(2).collect();
        let arrivals: Vec<Nanos> = doubled.iter().map(|at| Nanos(at.0 / 2)).collect();
        let test = stats::anderson_darling_exponential(&gaps_secs(&arrivals), RATE).unwrap();
        assert!(test.p < 1e-6, "{test:?}");
        assert!(dispersion_z(&arrivals) < -6.0, "{}", dispersion_z(&arrivals));
    }

    #[test]
    fn the_rate_holds_in_the_long_run() {
        for rate in [1e-3, 3e3, 1e8] {
            let pacing = Pacing::Poisson { rate: PerSecond(rate) };
            let last = *instants(&pacing, 7, WHOLE, 100_000).last().unwrap();
            let achieved = 100_000.0 / last.as_secs_f64();
            // The relative standard deviation of the sum of n exponentials is 1/sqrt(n).
            assert!((achieved / rate - 1.0).abs() < 4.0 / 1e5f64.sqrt(), "{rate}: {achieved}");
        }
    }
}
