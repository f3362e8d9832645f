//! `delay`: every response leaves a fixed or an exponentially distributed time after its request was
//! complete. Start reading at [`Delay`].

use std::sync::Arc;

use units::Nanos;

use super::{Draw, Effect, FaultKind, HOLD_MAX, Hold, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "delay",
    forms: "delay=5ms or delay=exp:2ms (exponentially distributed with this mean), with ,seed=N",
    is_unique: false,
    read: |spec| {
        let seed = spec.seed()?;
        let typed = spec.first("the time")?;
        Ok(Arc::new(match typed.strip_prefix("exp:") {
            Some(mean) => {
                let mean = spec::time(mean.trim(), MEAN_MAX)?;
                Delay::Exponential { mean, seed }
            }
            None => Delay::Constant(spec::time(typed, HOLD_MAX)?),
        }))
    },
};

/// Beyond this mean more than one hold in 500 million would be cut to [`HOLD_MAX`].
const MEAN_MAX: Nanos = Nanos(HOLD_MAX.0 / 20);

/// How long a response is held.
#[derive(Debug)]
enum Delay {
    Constant(Nanos),
    Exponential { mean: Nanos, seed: u64 },
}

impl Effect for Delay {
    fn hold(&self, draw: Draw) -> Hold {
        let head = match *self {
            Self::Constant(time) => time,
            // The inverse of the distribution function.
            Self::Exponential { mean, seed } => {
                Nanos((mean.0 as f64 * -draw.unit(seed).ln()) as u64)
            }
        };
        Hold { head, body: Nanos::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_holds_have_the_quantiles_of_theory() {
        const N: usize = 100_000;
        let mean = Nanos::from_millis(2);
        let delay = Delay::Exponential { mean, seed: 7 };
        let mut holds: Vec<f64> = (0..N as u64)
            .map(|number| delay.hold(Draw { number, place: 0 }).head.0 as f64 / mean.0 as f64)
            .collect();
        holds.sort_unstable_by(f64::total_cmp);
        // Kolmogorov's distance to 1 - exp(-x); 1.95 / sqrt(n) is exceeded once in 1,000 seeds.
        let distance = holds.iter().enumerate().map(|(rank, hold)| {
            let theory = 1.0 - (-hold).exp();
            (theory - rank as f64 / N as f64)
                .abs()
                .max((theory - (rank + 1) as f64 / N as f64).abs())
        });
        assert!(distance.fold(0.0, f64::max) < 1.95 / (N as f64).sqrt());
    }
}
