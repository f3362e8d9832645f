//! The closed loop: a connection asks again when its reply is complete, at once or after a pause. Owns the
//! lengths of pauses. Start reading at [`Pauses`].
//!
//! The server sets the rate: while it stalls, no request is sent. A pause is a user's think time. With n connections,
//! pauses of mean Z and responses of mean R the rate is n / (R + Z), which is Little's law for the interactive
//! system.

use rand_pcg::Pcg64Mcg;
use record::Spread;
use units::Nanos;

use super::exponential;

/// The pause of a connection between a reply and its next request. All connections of a thread share one sequence;
/// their pauses are still independent of one another.
pub(crate) struct Pauses {
    lengths: Lengths,
}

enum Lengths {
    Constant(Nanos),
    Exponential { mean_ns: f64, random: Box<Pcg64Mcg> },
}

impl Pauses {
    /// No pauses.
    pub(crate) fn none() -> Self {
        Self { lengths: Lengths::Constant(Nanos::ZERO) }
    }

    /// Pauses of that mean and spread.
    pub(crate) fn new(mean: Nanos, spread: Spread, random: Pcg64Mcg) -> Self {
        let lengths = match spread {
            Spread::Constant => Lengths::Constant(mean),
            Spread::Exponential => {
                Lengths::Exponential { mean_ns: mean.0 as f64, random: Box::new(random) }
            }
        };
        Self { lengths }
    }

    /// Length of the next pause.
    #[inline]
    pub(crate) fn next(&mut self) -> Nanos {
        match &mut self.lengths {
            Lengths::Constant(length) => *length,
            Lengths::Exponential { mean_ns, random } => {
                Nanos((exponential(random) * *mean_ns).round() as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use record::Pacing;

    use super::*;
    use crate::pacing::testing::WHOLE;
    use crate::pacing::{Pace, pace};

    fn pauses(pacing: &Pacing, seed: u64) -> Vec<Nanos> {
        let Pace::Closed(mut rest) = pace(pacing, seed, WHOLE) else { panic!("a closed loop") };
        (0..10_000).map(|_| rest.next()).collect()
    }

    #[test]
    fn without_a_pause_there_is_none() {
        assert!(pauses(&Pacing::Closed, 1).iter().all(|pause| *pause == Nanos::ZERO));
    }

    #[test]
    fn constant_pauses_are_all_the_same() {
        let pause = Nanos::from_millis(50);
        let pacing = Pacing::Think { pause, spread: Spread::Constant };
        assert!(pauses(&pacing, 1).iter().all(|drawn| *drawn == pause));
    }

    #[test]
    fn exponential_pauses_pass_anderson_darling() {
        let pacing = Pacing::Think { pause: Nanos::from_millis(50), spread: Spread::Exponential };
        for seed in 0..10 {
            let secs: Vec<f64> = pauses(&pacing, seed).iter().map(|p| p.as_secs_f64()).collect();
            let test = stats::anderson_darling_exponential(&secs, 20.0).unwrap();
            assert!(test.p > 0.001, "seed {seed}: {test:?}");
        }
    }
}
