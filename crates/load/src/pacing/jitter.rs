//! Uniform jitter: one request in each period of 1/rate, somewhere in it. Start reading at [`Jitter`].
//!
//! It lies between the constant rate, which can beat with a timer of the server, and Poisson, which also tests how
//! the server handles bursts: counts are as even as at the constant rate, and no two distances are alike.

use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use units::{Nanos, PerSecond};

use super::{Law, instant, nanos_for};

/// Request g at (g + u) / rate, u uniform from 0 to 1.
pub(crate) struct Jitter {
    random: Pcg64Mcg,
    rate: PerSecond,
    period_ns: f64,
    /// Number of the next request.
    number: u64,
}

impl Jitter {
    /// `rate` is above zero.
    pub(crate) fn new(rate: PerSecond, random: Pcg64Mcg) -> Self {
        Self { random, rate, period_ns: nanos_for(1.0, rate), number: 0 }
    }
}

impl Law for Jitter {
    fn next(&mut self) -> Option<Nanos> {
        let begin = nanos_for(self.number as f64, self.rate);
        self.number += 1;
        instant(begin + self.random.random::<f64>() * self.period_ns)
    }

    fn span(&self, n: u64) -> Option<Nanos> {
        instant(nanos_for(n as f64, self.rate))
    }
}

#[cfg(test)]
mod tests {
    use record::Pacing;

    use super::*;
    use crate::pacing::testing::{WHOLE, assert_counts_follow, instants};

    /// Places of 10 000 requests in their periods, 0 to 1.
    fn places(rate: f64, seed: u64) -> Vec<f64> {
        let drawn = instants(&Pacing::Jitter { rate: PerSecond(rate) }, seed, WHOLE, 10_000);
        drawn.iter().enumerate().map(|(g, at)| at.as_secs_f64() * rate - g as f64).collect()
    }

    #[test]
    fn places_in_their_periods_pass_anderson_darling() {
        for seed in 0..20 {
            let test = stats::anderson_darling_uniform(&places(1000.0, seed)).unwrap();
            assert!(test.p > 0.001, "seed {seed}: {test:?}");
        }
    }

    #[test]
    fn places_drawn_otherwise_fail() {
        let wrong: Vec<f64> = places(1000.0, 1).iter().map(|place| place * place).collect();
        assert!(stats::anderson_darling_uniform(&wrong).unwrap().p < 1e-6);
    }

    #[test]
    fn counts_are_as_even_as_at_a_constant_rate() {
        for rate in [0.3, 77.0, 1e6, 1e8] {
            let drawn = instants(&Pacing::Jitter { rate: PerSecond(rate) }, 5, WHOLE, 10_000);
            assert_counts_follow(&drawn, rate, |secs| secs * rate);
        }
    }
}
