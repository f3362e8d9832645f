//! Owns how many blocks are needed to detect a difference. Must not know how blocks are made. Start reading at
//! [`blocks_needed`].

use crate::biweight::df_of;
use crate::paired::BLOCKS_FOR_INTERVAL;
use crate::student::{t_quantile, z_quantile};

/// Fewest blocks a plan should have: with fewer, an interval depends on the noise being normal.
pub const BLOCKS_MIN: u32 = 8;
/// Upper limit of the count: more than anyone would wait for.
const BLOCKS_MAX: u32 = 1_000_000;
/// Probability of detecting a true difference.
pub(crate) const POWER: f64 = 0.8;

/// Blocks for an 80 % chance to detect, at level `alpha`, that the true ratio is 1 + `margin` (above 0), if ln(a / b)
/// varies by `sd_ln` over blocks. At 0.05 "detected" means that the 95 % interval excludes 1. At least [`BLOCKS_MIN`].
pub fn blocks_needed(sd_ln: f64, margin: f64, alpha: f64) -> u32 {
    for_difference(sd_ln, margin.ln_1p(), alpha).max(BLOCKS_MIN)
}

/// The smallest difference, as a share, that `blocks` blocks detect with 80 % chance at level `alpha`: the inverse of
/// [`blocks_needed`]. `None` with fewer than [`BLOCKS_FOR_INTERVAL`].
pub fn smallest_difference(sd_ln: f64, blocks: u32, alpha: f64) -> Option<f64> {
    let n = f64::from(blocks);
    (blocks as usize >= BLOCKS_FOR_INTERVAL).then(|| (reach(n, alpha) * sd_ln / n.sqrt()).exp_m1())
}

/// How many standard errors a difference must have: the bound of the level, plus enough to exceed that bound with the
/// chance [`POWER`].
fn reach(n: f64, alpha: f64) -> f64 {
    let df = df_of(n);
    t_quantile(1.0 - alpha / 2.0, df) + t_quantile(POWER, df)
}

/// Smallest n with n >= ((t(1 - alpha/2) + t(0.8)) sd / difference)^2, t with the degrees of freedom that a
/// robust centre of n blocks has.
///
/// The normal law gives ((1.96 + 0.84) sd / difference)^2 at 5 %, which is too few because sd is estimated from the
/// same blocks; the quantiles of t add about 2. The noncentral t of a mean, with n - 1 degrees of freedom, needs up to
/// two blocks fewer (a test compares): the cost of the robust centre.
pub(crate) fn for_difference(sd_ln: f64, difference: f64, alpha: f64) -> u32 {
    let blocks = |quantiles: f64| (quantiles * sd_ln / difference).powi(2);
    let by_normal = blocks(z_quantile(1.0 - alpha / 2.0) + z_quantile(POWER)).ceil();
    if by_normal >= f64::from(BLOCKS_MAX) {
        return BLOCKS_MAX;
    }
    let enough = |n: &u32| f64::from(*n) >= blocks(reach(f64::from(*n), alpha));
    // With one degree of freedom t needs a multiple of the normal law's blocks: 10^4 times at a level of one in a
    // thousand. With three degrees it is less than 10 times.
    let first = (by_normal as u32).max(2);
    (first..=first.saturating_mul(10).saturating_add(20)).find(enough).unwrap_or(BLOCKS_MAX)
}
