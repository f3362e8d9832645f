//! Owns the equivalence test: two one-sided t tests on the log scale, of the robust centre. Must not know how its
//! result is reported. Start reading at [`tost`].

use crate::confidence::ConfidenceInterval;
use crate::paired::{Paired, PairedInterval};
use crate::student::{t_quantile, upper_p};

/// The result of the two one-sided tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tost {
    /// 90 % interval of the ratio, from the same t as the 95 % interval and the p of a pair.
    pub interval: ConfidenceInterval,
    /// p of "the ratio is outside the margin": the larger of the two.
    pub p: f64,
    /// Whether the 90 % interval lies inside the margin, which is the same as p < 5 %.
    pub equivalent: bool,
}

/// Tests whether the ratio lies between 1 / (1 + margin) and 1 + margin (Schuirmann 1987); `margin` above 0. `None` if
/// there is no interval.
///
/// The margin is symmetrical on the log scale, so that a over b and b over a get the same answer.
pub fn tost(paired: &Paired, margin: f64) -> Option<Tost> {
    let PairedInterval { error_ln, df, .. } = paired.interval?;
    Some(within(paired.centre_ln, error_ln, df, margin))
}

/// The two tests, for a log ratio with its standard error and degrees of freedom.
pub(crate) fn within(centre_ln: f64, error: f64, df: f64, margin: f64) -> Tost {
    let inside = margin.ln_1p();
    let reach = t_quantile(0.95, df) * error;
    let room = inside - centre_ln.abs();
    // The side nearer to the centre has the larger p, so it alone decides.
    let p = match error == 0.0 {
        true if room > 0.0 => 0.0,
        true => 1.0,
        false => upper_p(room / error, df),
    };
    let interval = ConfidenceInterval { low: centre_ln - reach, high: centre_ln + reach };
    Tost { interval: interval.exp(), p, equivalent: p < 0.05 }
}
