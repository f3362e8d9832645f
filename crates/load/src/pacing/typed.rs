//! Laws as they are typed: rates, ramps, stages, pauses; a bare time is seconds.
//! Start reading at [`parse_stages`].

use record::{Pacing, Spread, Stage};
use units::{Nanos, PerSecond};

use super::bounds::{PacingError, check};

/// A constant, Poisson or jittered rate ("1k/s").
///
/// # Errors
/// It is no rate, zero, or out of bounds.
pub fn parse_rate(typed: &str) -> Result<PerSecond, PacingError> {
    let rate = typed.parse()?;
    check(&Pacing::Constant { rate })?;
    Ok(rate)
}

/// A ramp: from, to, and the time from one to the other if it is typed ("100/s:5k/s",
/// "100/s:5k/s:30s"). One of the rates may be zero.
///
/// # Errors
/// It has not two or three parts, one of them cannot be read or is out of bounds, or both rates are
/// zero.
pub fn parse_ramp(typed: &str) -> Result<(PerSecond, PerSecond, Option<Nanos>), PacingError> {
    let parts: Vec<&str> = typed.split(':').collect();
    let (from, to, over) = match parts[..] {
        [from, to] => (from, to, None),
        [from, to, over] => (from, to, Some(Nanos::from_flag(over)?)),
        _ => return Err(form(typed, "a ramp: write it as in 100/s:5k/s or 100/s:5k/s:30s")),
    };
    let (from, to) = (from.parse()?, to.parse()?);
    // The rates are checked even if the time will come from elsewhere.
    check(&Pacing::Ramp { from, to, over: over.unwrap_or(Nanos::from_secs(1)) })?;
    Ok((from, to, over))
}

/// Stages: rates and for how long ("1k/s:10s,5k/s:30s"). A rate of zero is a pause.
///
/// # Errors
/// One of them cannot be read or is out of bounds, there are too many, or all are pauses.
pub fn parse_stages(typed: &str) -> Result<Vec<Stage>, PacingError> {
    const WANTED: &str = "a stage: write rate and length of each, as in 1k/s:10s,5k/s:30s";
    let stage = |typed: &str| {
        let (rate, length) = typed.split_once(':').ok_or_else(|| form(typed, WANTED))?;
        Ok(Stage { rate: rate.parse()?, length: Nanos::from_flag(length)? })
    };
    let stages: Vec<Stage> = typed.split(',').map(stage).collect::<Result<_, PacingError>>()?;
    let pacing = Pacing::Stages { stages };
    check(&pacing)?;
    let Pacing::Stages { stages } = pacing else { unreachable!("made above") };
    Ok(stages)
}

/// Think time between a reply and the next request: always the same ("50ms"), or exponential with that mean
/// ("exp:50ms").
///
/// # Errors
/// It is no time, zero, or out of bounds.
pub fn parse_think(typed: &str) -> Result<(Nanos, Spread), PacingError> {
    let (spread, pause) = match typed.split_once(':') {
        None => (Spread::Constant, typed),
        Some((spread, pause)) if spread.trim() == "exp" => (Spread::Exponential, pause),
        Some(_) => return Err(form(typed, "a time to think: write it as in 50ms or exp:50ms")),
    };
    let pause = Nanos::from_flag(pause)?;
    check(&Pacing::Think { pause, spread })?;
    Ok((pause, spread))
}

fn form(typed: &str, wanted: &'static str) -> PacingError {
    PacingError::Form { typed: typed.trim().to_owned(), wanted }
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
        assert_eq!(parse_rate("100M/s"), Ok(PerSecond(100e6)));
        assert_eq!(parse_ramp("100/s:5k/s"), Ok((low, high, None)));
        assert_eq!(parse_ramp("5k/s : 100 : 30s"), Ok((high, low, Some(secs(30)))));
        assert_eq!(parse_ramp("0:100/s"), Ok((PerSecond(0.0), low, None)));
        assert_eq!(
            parse_stages("1k/s:10s, 0:5s,5k/s:2m"),
            Ok(vec![stage(1000.0, secs(10)), stage(0.0, secs(5)), stage(5000.0, secs(120))])
        );
        assert_eq!(parse_ramp("5k/s:100:30"), Ok((high, low, Some(secs(30)))));
        assert_eq!(parse_stages("1k/s:10"), Ok(vec![stage(1000.0, secs(10))]));
        assert_eq!(parse_think("exp:2"), Ok((secs(2), Spread::Exponential)));
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
            (rate("0/s"), "0/s", "500/s"),
            (rate("0.00000001/s"), "0.00000001/s", "higher rate"),
            (rate("200M/s"), "200M/s", "100M/s"),
            (rate(&format!("{}/s", "9".repeat(400))), "inf", "100M/s"),
            (ramp("100/s"), "`100/s`", "100/s:5k/s"),
            (ramp("1:2:3s:4"), "`1:2:3s:4`", "100/s:5k/s"),
            (ramp("1/s:x"), "`x`", "500/s"),
            (ramp("0:0"), "rates are zero", "above zero"),
            (ramp("1/s:2/s:soon"), "`soon`", "2m"),
            (ramp("1/s:2/s:0s"), "time of a ramp", "stages"),
            (ramp("1/s:2/s:9000h"), "9000h", "8784h"),
            (stages(""), "``", "1k/s:10s"),
            (stages("1k/s"), "`1k/s`", "1k/s:10s"),
            (stages("1k/s:10s,"), "``", "1k/s:10s"),
            (stages("1k/s:0s"), "length of a stage", "10s"),
            (stages("0:10s,0:20s"), "rates are zero", "above zero"),
            (stages("1/s:5000h,1/s:5000h"), "10000h", "8784h"),
            (stages(&many), "1001", "1000"),
            (think("soon"), "`soon`", "10s"),
            (think("normal:50ms"), "`normal:50ms`", "exp:50ms"),
            (think("0"), "longer than 0", "50ms"),
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
