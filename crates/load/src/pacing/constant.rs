//! A constant rate: request g is due at g / rate. Start reading at [`Constant`].
//!
//! Each instant is computed from the number of its request. Adding up a period would multiply its rounding error by
//! the number of requests: 0.3 s after a day at 3000/s if periods are whole nanoseconds. Exact to the nanosecond for
//! 13 days if an instant is a whole number of them.

use units::{Nanos, PerSecond};

use super::{Law, instant, nanos_for};

/// Requests at equal distances, the first at zero.
pub(crate) struct Constant {
    rate: PerSecond,
    /// Number of the next request.
    number: u64,
}

impl Constant {
    /// `rate` is above zero.
    pub(crate) fn new(rate: PerSecond) -> Self {
        Self { rate, number: 0 }
    }
}

impl Law for Constant {
    fn next(&mut self) -> Option<Nanos> {
        let at = self.span(self.number);
        self.number += 1;
        at
    }

    fn span(&self, n: u64) -> Option<Nanos> {
        instant(nanos_for(n as f64, self.rate))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Request `number` at `rate`, in the law and in whole numbers.
    fn both(number: u64, rate: u64) -> (u64, u64) {
        let at = Constant { rate: PerSecond(rate as f64), number }.next().unwrap();
        let (nanos, rate) = (u128::from(number) * 1_000_000_000, u128::from(rate));
        (at.0, ((nanos + rate / 2) / rate) as u64)
    }

    #[test]
    fn there_is_no_drift_after_a_thousand_million_requests() {
        for rate in [1000, 3000, 7777, 999_983, 1_000_000, 33_333_333] {
            for number in [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001] {
                let (ours, exact) = both(number, rate);
                assert_eq!(ours, exact, "request {number} at {rate}/s");
            }
        }
    }

    #[test]
    fn rates_below_one_have_their_instants_and_an_end() {
        let mut law = Constant::new(PerSecond(0.1));
        assert_eq!([law.next(), law.next()], [Some(Nanos::ZERO), Some(Nanos::from_secs(10))]);
        assert_eq!(Constant { rate: PerSecond(1e-9), number: 19 }.next(), None, "600 years");
    }

    proptest! {
        #[test]
        fn instants_are_right_to_a_nanosecond(number in 0u64..1_000_000_000_000, rate in 1u64..100_000_000) {
            // 13 days.
            prop_assume!(number / rate < 1_123_200);
            let (ours, exact) = both(number, rate);
            prop_assert!(ours.abs_diff(exact) <= 1);
            if u128::from(number) * 1_000_000_000 % u128::from(rate) == 0 {
                prop_assert_eq!(ours, exact);
            }
        }
    }
}
