//! Owns Student's t and the normal distribution, as far as intervals and tests need them.
//! Must not know what is estimated. Start reading at [`t_quantile`].

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The `p`-quantile of Student's t with `df` degrees of freedom; `p` in (0, 1), `df` > 0.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    t(df).inverse_cdf(p)
}

/// Chance that Student's t with `df` degrees of freedom lies further than `t` from zero, on either
/// side. An infinite `t` has chance 0.
pub(crate) fn two_sided_p(statistic: f64, df: f64) -> f64 {
    (2.0 * t(df).sf(statistic.abs())).min(1.0)
}

/// Chance that Student's t with `df` degrees of freedom is at least `t`.
pub(crate) fn upper_p(statistic: f64, df: f64) -> f64 {
    t(df).sf(statistic)
}

/// The `p`-quantile of the standard normal distribution; `p` in (0, 1).
pub(crate) fn z_quantile(p: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("constant parameters are valid").inverse_cdf(p)
}

/// Chance that a standard normal value is at most `z`.
pub(crate) fn z_cdf(z: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("constant parameters are valid").cdf(z)
}

fn t(df: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are positive")
}
