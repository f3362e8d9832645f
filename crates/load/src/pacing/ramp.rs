//! A ramp: the rate changes linearly from one to another, then stays. Owns the inverse of its integral.
//! Start reading at [`Ramp`].
//!
//! By t, N(t) = a t + c t^2 / 2 requests are due, where a is the rate at the start and c its change. Request g is due
//! when N(t) = g. The form of the root without cancellation is t = 2 g / (a + sqrt(a^2 + 2 c g)). Cancellation
//! remains under the square root: at the foot of a ramp that falls to zero, where requests lie far apart, an instant
//! may be wrong by 1e-8 of itself.

use units::{Nanos, PerSecond};

use super::{Law, instant, nanos_for};

/// Request g when the integral of the rate reaches g. Ends when the rate falls to zero.
pub(crate) struct Ramp {
    from: PerSecond,
    to: PerSecond,
    over: Nanos,
    /// Change of the rate in a second, per second.
    change: f64,
    /// Integral of the rate over the ramp.
    n_ramp: f64,
    /// Number of the next request.
    number: u64,
}

impl Ramp {
    /// One of the rates may be zero; `over` is above it.
    pub(crate) fn new(from: PerSecond, to: PerSecond, over: Nanos) -> Self {
        let secs = over.as_secs_f64();
        let (change, n_ramp) = ((to.0 - from.0) / secs, (from.0 + to.0) / 2.0 * secs);
        Self { from, to, over, change, n_ramp, number: 0 }
    }

    /// When the integral of the rate reaches `n`; `None`: never.
    fn reaches(&self, n: f64) -> Option<Nanos> {
        if n >= self.n_ramp {
            let at = |n| instant(self.over.0 as f64 + nanos_for(n, self.to));
            return (self.to.0 > 0.0).then(|| at(n - self.n_ramp)).flatten();
        }
        if n == 0.0 {
            return Some(Nanos::ZERO);
        }
        // The rate at t, squared; rounding must not push it below zero at the foot of a ramp.
        let rate_squared = (self.from.0 * self.from.0 + 2.0 * self.change * n).max(0.0);
        instant(2e9 * n / (self.from.0 + rate_squared.sqrt()))
    }
}

impl Law for Ramp {
    fn next(&mut self) -> Option<Nanos> {
        let at = self.reaches(self.number as f64);
        self.number += 1;
        at
    }

    fn span(&self, n: u64) -> Option<Nanos> {
        // A ramp that falls to zero has its last request before it ends.
        Some(self.reaches(n as f64).unwrap_or(self.over))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::Pacing;

    use super::*;
    use crate::pacing::testing::{WHOLE, assert_counts_follow, instants};

    fn ramp(from: f64, to: f64, over: Nanos) -> Pacing {
        Pacing::Ramp { from: PerSecond(from), to: PerSecond(to), over }
    }

    /// Integral of the rate until `secs`, as areas of a rectangle and a triangle.
    fn due_by(from: f64, to: f64, over_secs: f64, secs: f64) -> f64 {
        let on_ramp = secs.min(over_secs);
        let rate = from + (to - from) * on_ramp / over_secs;
        on_ramp * from.min(rate) + on_ramp * (rate - from).abs() / 2.0 + (secs - on_ramp) * to
    }

    #[test]
    fn the_rate_grows_from_nothing_and_goes_on() {
        // N(t) = t^2 / 2 until 10 s, then 10/s.
        let drawn = instants(&ramp(0.0, 10.0, Nanos::from_secs(10)), 1, WHOLE, 101);
        let secs = |g: usize| drawn[g].as_secs_f64();
        assert_eq!((secs(0), secs(2), secs(8), secs(50)), (0.0, 2.0, 4.0, 10.0));
        assert_eq!((secs(51), secs(100)), (10.1, 15.0));
    }

    #[test]
    fn a_ramp_down_to_nothing_ends() {
        // N(t) = 10 t - t^2 / 2: 50 in 10 s.
        let drawn = instants(&ramp(10.0, 0.0, Nanos::from_secs(10)), 1, WHOLE, 1000);
        assert_eq!(drawn.len(), 50);
        assert!(*drawn.last().unwrap() < Nanos::from_secs(10));
    }

    #[test]
    fn a_ramp_between_equal_rates_is_constant() {
        let constant = Pacing::Constant { rate: PerSecond(300.0) };
        let flat = instants(&ramp(300.0, 300.0, Nanos::from_secs(1)), 1, WHOLE, 1000);
        assert_eq!(flat, instants(&constant, 1, WHOLE, 1000));
    }

    proptest! {
        #[test]
        fn counts_are_the_integral_of_the_rate(
            from in prop_oneof![Just(0.0), 0.01..1e6f64],
            to in prop_oneof![Just(0.0), 0.01..1e6f64],
            over_us in 1u64..60_000_000,
        ) {
            prop_assume!(from + to > 0.0);
            let over = Nanos::from_micros(over_us);
            let drawn = instants(&ramp(from, to, over), 1, WHOLE, 3000);
            assert_counts_follow(&drawn, from.max(to), |secs| {
                due_by(from, to, over.as_secs_f64(), secs)
            });
        }
    }
}
