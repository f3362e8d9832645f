//! Laws as they are typed: rates, ramps, stages, pauses. Owns their forms and bounds; must not know
//! flags. Start reading at [`parse_stages`].

use record::{Spread, Stage};
use units::{Nanos, ParseError, PerSecond};

/// Highest rate that can be asked for: one request in 10 ns, beyond any generator.
pub const RATE_MAX: PerSecond = PerSecond(100e6);

/// Longest time that a law may name, a leap year.
pub const LENGTH_MAX: Nanos = Nanos::from_secs(366 * 24 * 3600);

/// Most stages.
pub const STAGES_MAX: usize = 1000;

/// Why a law that was typed is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PacingError {
    /// It has other parts than it should have.
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
    #[error("{typed} is too fast: no machine can make more than {RATE_MAX}")]
    TooFast {
        /// The rate.
        typed: String,
    },
    /// A time above the longest.
    #[error("`{typed}` is too long: a law ends within {hours} hours", hours = LENGTH_MAX.0 / 3_600_000_000_000)]
    TooLong {
        /// The time, or all of them.
        typed: String,
    },
    /// Nothing would ever be due.
    #[error("at `{typed}` no request would ever be due: {remedy}")]
    Never {
        /// What was typed.
        typed: String,
        /// How to ask for some.
        remedy: &'static str,
    },
    /// A time that must be above zero is not.
    #[error("`{typed}` takes no time: {remedy}")]
    NoTime {
        /// What was typed.
        typed: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// More stages than the bound.
    #[error("{n} stages are too many: at most {STAGES_MAX}")]
    TooManyStages {
        /// How many there are.
        n: usize,
    },
}

/// A constant, Poisson or jittered rate: above zero ("1k/s").
///
/// # Errors
/// It is no rate, zero, or above [`RATE_MAX`].
pub fn parse_rate(typed: &str) -> Result<PerSecond, PacingError> {
    match bounded_rate(typed)? {
        PerSecond(0.0) => Err(PacingError::Never {
            typed: typed.trim().to_owned(),
            remedy: "write a rate above zero, as in 500/s",
        }),
        rate => Ok(rate),
    }
}

/// A ramp: from, to, and the time from one to the other where it is typed ("100/s:5k/s",
/// "100/s:5k/s:30s"). One of the rates may be zero.
///
/// # Errors
/// It has not two or three parts, one of them cannot be read or is out of bounds, or both rates are
/// zero.
pub fn parse_ramp(typed: &str) -> Result<(PerSecond, PerSecond, Option<Nanos>), PacingError> {
    let parts: Vec<&str> = typed.split(':').collect();
    let (from, to, over) = match parts[..] {
        [from, to] => (from, to, None),
        [from, to, over] => (from, to, Some(over)),
        _ => return Err(form(typed, "a ramp: write it as in 100/s:5k/s or 100/s:5k/s:30s")),
    };
    let (from, to) = (bounded_rate(from)?, bounded_rate(to)?);
    if from.0 + to.0 == 0.0 {
        let remedy = "one of the two rates must be above zero, as in 0/s:5k/s";
        return Err(PacingError::Never { typed: typed.to_owned(), remedy });
    }
    let remedy = "a jump from one rate to another is --stages, as in 100/s:10s,5k/s:30s";
    Ok((from, to, over.map(|over| bounded_length(over, remedy)).transpose()?))
}

/// Stages: rates and for how long ("1k/s:10s,5k/s:30s"). A rate of zero is a pause.
///
/// # Errors
/// One of them cannot be read or is out of bounds, there are none or too many, or all are pauses.
pub fn parse_stages(typed: &str) -> Result<Vec<Stage>, PacingError> {
    const WANTED: &str = "a stage: write rate and length of each, as in 1k/s:10s,5k/s:30s";
    let n = typed.split(',').count();
    if n > STAGES_MAX {
        return Err(PacingError::TooManyStages { n });
    }
    let stage = |typed: &str| {
        let (rate, length) = typed.split_once(':').ok_or_else(|| form(typed, WANTED))?;
        let length = bounded_length(length, "leave the stage out, or give it a length as in 10s")?;
        Ok(Stage { rate: bounded_rate(rate)?, length })
    };
    let stages: Vec<Stage> = typed.split(',').map(stage).collect::<Result<_, PacingError>>()?;
    if stages.iter().all(|stage| stage.rate.0 == 0.0) {
        let remedy = "one stage must have a rate above zero";
        return Err(PacingError::Never { typed: typed.to_owned(), remedy });
    }
    // Each is bounded, and so is their number: the sum fits.
    let total: u128 = stages.iter().map(|stage| u128::from(stage.length.0)).sum();
    if total > u128::from(LENGTH_MAX.0) {
        return Err(PacingError::TooLong { typed: typed.to_owned() });
    }
    Ok(stages)
}

/// Time to think between a reply and the next request: all the same ("50ms"), or exponential with
/// that mean ("exp:50ms").
///
/// # Errors
/// It is no time, zero, or above [`LENGTH_MAX`].
pub fn parse_think(typed: &str) -> Result<(Nanos, Spread), PacingError> {
    let (spread, pause) = match typed.split_once(':') {
        None => (Spread::Constant, typed),
        Some((spread, pause)) if spread.trim() == "exp" => (Spread::Exponential, pause),
        Some(_) => return Err(form(typed, "a time to think: write it as in 50ms or exp:50ms")),
    };
    Ok((bounded_length(pause, "a closed loop without pauses is the default")?, spread))
}

fn form(typed: &str, wanted: &'static str) -> PacingError {
    PacingError::Form { typed: typed.trim().to_owned(), wanted }
}

/// From zero to [`RATE_MAX`].
fn bounded_rate(typed: &str) -> Result<PerSecond, PacingError> {
    let rate: PerSecond = typed.parse()?;
    // A rate of 1e-320 is above zero, but has no period.
    if rate.0 > 0.0 && rate.0 < 1.0 / LENGTH_MAX.as_secs_f64() {
        let remedy = "within a year; write a higher rate, as in 1/m";
        return Err(PacingError::Never { typed: typed.trim().to_owned(), remedy });
    }
    if rate > RATE_MAX {
        return Err(PacingError::TooFast { typed: typed.trim().to_owned() });
    }
    Ok(rate)
}

/// Above zero, to [`LENGTH_MAX`].
fn bounded_length(typed: &str, remedy: &'static str) -> Result<Nanos, PacingError> {
    let length: Nanos = typed.parse()?;
    match length {
        Nanos::ZERO => Err(PacingError::NoTime { typed: typed.trim().to_owned(), remedy }),
        _ if length > LENGTH_MAX => Err(PacingError::TooLong { typed: typed.trim().to_owned() }),
        _ => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stage(rate: f64, length: Nanos) -> Stage {
        Stage { rate: PerSecond(rate), length }
    }

    #[test]
    fn laws_are_read_as_people_write_them() {
        let secs = Nanos::from_secs;
        let (low, high) = (PerSecond(100.0), PerSecond(5000.0));
        assert_eq!(parse_rate("5k/s"), Ok(high));
        assert_eq!(parse_rate("100M/s"), Ok(RATE_MAX));
        assert_eq!(parse_ramp("100/s:5k/s"), Ok((low, high, None)));
        assert_eq!(parse_ramp("5k/s : 100 : 30s"), Ok((high, low, Some(secs(30)))));
        assert_eq!(parse_ramp("0:100/s"), Ok((PerSecond(0.0), low, None)));
        assert_eq!(
            parse_stages("1k/s:10s, 0:5s,5k/s:2m"),
            Ok(vec![stage(1000.0, secs(10)), stage(0.0, secs(5)), stage(5000.0, secs(120))])
        );
        assert_eq!(parse_think("50ms"), Ok((Nanos::from_millis(50), Spread::Constant)));
        assert_eq!(parse_think("exp:2s"), Ok((secs(2), Spread::Exponential)));
    }

    #[test]
    fn what_is_refused_is_named_with_a_form_that_works() {
        let error = |result: Result<(), PacingError>| result.expect_err("refused").to_string();
        let rate = |typed| error(parse_rate(typed).map(drop));
        let ramp = |typed| error(parse_ramp(typed).map(drop));
        let stages = |typed| error(parse_stages(typed).map(drop));
        let think = |typed| error(parse_think(typed).map(drop));
        let many = vec!["1/s:1s"; 1001].join(",");
        let cases = [
            (rate("fast"), "`fast`", "500/s"),
            (rate("0/s"), "0/s", "above zero"),
            (rate("0.00000001/s"), "0.00000001/s", "higher rate"),
            (rate("200M/s"), "200M/s", "100M/s"),
            (rate(&format!("{}/s", "9".repeat(400))), "999", "100M/s"),
            (ramp("100/s"), "`100/s`", "100/s:5k/s"),
            (ramp("1:2:3s:4"), "`1:2:3s:4`", "100/s:5k/s"),
            (ramp("1/s:x"), "`x`", "500/s"),
            (ramp("0:0"), "`0:0`", "above zero"),
            (ramp("1/s:2/s:30"), "`30`", "10s"),
            (ramp("1/s:2/s:0s"), "`0s`", "--stages"),
            (ramp("1/s:2/s:9000h"), "`9000h`", "8784 hours"),
            (stages(""), "``", "1k/s:10s"),
            (stages("1k/s"), "`1k/s`", "1k/s:10s"),
            (stages("1k/s:10s,"), "``", "1k/s:10s"),
            (stages("1k/s:0s"), "`0s`", "10s"),
            (stages("0:10s,0:20s"), "`0:10s,0:20s`", "above zero"),
            (stages("1/s:5000h,1/s:5000h"), "5000h,1/s", "8784 hours"),
            (stages(&many), "1001", "1000"),
            (think("soon"), "`soon`", "1.5ms"),
            (think("normal:50ms"), "`normal:50ms`", "exp:50ms"),
            (think("0"), "`0`", "default"),
        ];
        for (message, what, way_out) in cases {
            assert!(message.contains(what) && message.contains(way_out), "{message}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_has_a_law(typed in "[0-9.kM/sm:,exp]{0,24}") {
            use crate::pacing::{pace, testing::WHOLE};
            if let Ok(rate) = parse_rate(&typed) {
                pace(&record::Pacing::Constant { rate }, 1, WHOLE);
            }
            if let Ok((from, to, over)) = parse_ramp(&typed) {
                let over = over.unwrap_or(Nanos(1));
                pace(&record::Pacing::Ramp { from, to, over }, 1, WHOLE);
            }
            if let Ok(stages) = parse_stages(&typed) {
                pace(&record::Pacing::Stages { stages }, 1, WHOLE);
            }
            let _ = parse_think(&typed);
        }
    }
}
