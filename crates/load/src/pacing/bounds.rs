//! What a law may ask for: the bounds of rates and times, and the errors. Start reading at [`check`].

use record::{Pacing, Stage};
use units::{Nanos, ParseError, PerSecond};

/// Highest rate that can be asked for: one request in 10 ns, beyond any generator.
pub const RATE_MAX: PerSecond = PerSecond(100e6);

/// Longest time that a law may name, a leap year. A rate must give at least one request in it.
pub const LENGTH_MAX: Nanos = Nanos::from_secs(366 * 24 * 3600);

/// Most stages.
pub const STAGES_MAX: usize = 1000;

/// Most instants of a replay: 80 MB of them, three hours at 1000/s.
pub const INSTANTS_MAX: usize = 10_000_000;

/// Why a law is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PacingError {
    /// It was typed with the wrong parts.
    #[error("`{typed}` is not {wanted}")]
    Form {
        /// What was typed.
        typed: String,
        /// What it should have been, with an example.
        wanted: &'static str,
    },
    /// A rate or a time in it cannot be read.
    #[error("{0}")]
    Quantity(#[from] ParseError),
    /// A rate above the highest.
    #[error("the rate must be at most {RATE_MAX}, got {0}")]
    TooFast(PerSecond),
    /// A rate that is zero where it must not be, or that gives no request in a year.
    #[error("at {}/s no request would be due within a year: write a higher rate, as in 500/s", .0.0)]
    TooSlow(PerSecond),
    /// All its rates are zero.
    #[error("all rates are zero: at least one must be above zero")]
    Never,
    /// A pause of no length.
    #[error("--think must be longer than 0, as in 50ms; leave it out for no pause")]
    NoPause,
    /// A ramp that takes no time.
    #[error("the time of a ramp must be longer than 0; --stages 100/s:10s,5k/s:30s makes a jump")]
    NoRamp,
    /// A stage of no length.
    #[error("the length of a stage must be longer than 0, as in 1k/s:10s")]
    NoStage,
    /// A time above the longest, or a sum of such.
    #[error("the time must be at most {LENGTH_MAX}, got {0}")]
    TooLong(Nanos),
    /// More stages than the bound.
    #[error("--stages must have at most {STAGES_MAX} stages, got {0}")]
    TooManyStages(usize),
    /// A replay that is empty, too long, or out of order.
    #[error("a replay must have 1 to {INSTANTS_MAX} instants in rising order, within {LENGTH_MAX}")]
    Instants,
}

/// Whether every number of the law is within its bounds.
///
/// # Errors
/// The first one that is not.
pub fn check(pacing: &Pacing) -> Result<(), PacingError> {
    match pacing {
        Pacing::Closed => Ok(()),
        Pacing::Think { pause, .. } => check_length(*pause, PacingError::NoPause),
        Pacing::Ramp { from, to, over } => {
            check_rates([*from, *to])?;
            check_length(*over, PacingError::NoRamp)
        }
        Pacing::Stages { stages } => check_stages(stages),
        Pacing::Replay { instants } => {
            let is_within = instants.last().is_some_and(|last| *last <= LENGTH_MAX);
            let is_good = is_within && instants.len() <= INSTANTS_MAX && instants.is_sorted();
            is_good.then_some(()).ok_or(PacingError::Instants)
        }
        other => {
            let (_, rate) = other.rate_law().expect("every other law has one rate");
            check_rates([rate]).map_err(|error| match error {
                PacingError::Never => PacingError::TooSlow(rate),
                other => other,
            })
        }
    }
}

fn check_stages(stages: &[Stage]) -> Result<(), PacingError> {
    if stages.len() > STAGES_MAX {
        return Err(PacingError::TooManyStages(stages.len()));
    }
    check_rates(stages.iter().map(|stage| stage.rate))?;
    stages.iter().try_for_each(|stage| check_length(stage.length, PacingError::NoStage))?;
    // Each stage and their number are bounded, so the sum fits.
    let total = stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length);
    check_length(total, PacingError::NoStage)
}

/// Each rate is zero or within the bounds, and at least one is above zero.
fn check_rates(rates: impl IntoIterator<Item = PerSecond>) -> Result<(), PacingError> {
    // A rate of 1e-320 is above zero, but has no period.
    let rate_min = PerSecond(1.0 / LENGTH_MAX.as_secs_f64());
    let mut any = false;
    for rate in rates {
        // NaN is below any rate.
        match rate {
            PerSecond(0.0) => continue,
            _ if rate > RATE_MAX => return Err(PacingError::TooFast(rate)),
            _ if rate >= rate_min => any = true,
            _ => return Err(PacingError::TooSlow(rate)),
        }
    }
    any.then_some(()).ok_or(PacingError::Never)
}

/// Above zero, to [`LENGTH_MAX`].
fn check_length(length: Nanos, if_none: PacingError) -> Result<(), PacingError> {
    match length {
        Nanos::ZERO => Err(if_none),
        _ if length > LENGTH_MAX => Err(PacingError::TooLong(length)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use record::Spread;

    use super::*;

    #[test]
    fn bounds_are_within_and_what_is_beyond_is_refused() {
        let rate = |rate| Pacing::Poisson { rate: PerSecond(rate) };
        let think = |pause| Pacing::Think { pause, spread: Spread::Constant };
        let replay = |instants: &[Nanos]| Pacing::Replay { instants: instants.to_vec() };
        let second = Nanos::from_secs(1);
        for good in [
            Pacing::Closed,
            rate(RATE_MAX.0),
            rate(1e-6),
            think(LENGTH_MAX),
            replay(&[LENGTH_MAX]),
            Pacing::Ramp { from: PerSecond(0.0), to: PerSecond(1.0), over: Nanos(1) },
        ] {
            assert_eq!(check(&good), Ok(()));
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-320, 100_000_001.0] {
            assert!(check(&rate(bad)).is_err(), "{bad}");
        }
        assert_eq!(
            check(&think(LENGTH_MAX + second)),
            Err(PacingError::TooLong(LENGTH_MAX + second))
        );
        assert_eq!(check(&Pacing::Stages { stages: vec![] }), Err(PacingError::Never));
        for bad in [&[][..], &[second, Nanos::ZERO], &[LENGTH_MAX + second]] {
            assert_eq!(check(&replay(bad)), Err(PacingError::Instants), "{bad:?}");
        }
    }
}
