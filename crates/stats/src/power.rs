//! Owns how many blocks a difference needs in order to be seen. Must not know how they are made.
//! Start reading at [`blocks_needed`].

use crate::biweight::df_of;
use crate::paired::BLOCKS_FOR_INTERVAL;
use crate::student::{t_quantile, z_quantile};

/// Fewest blocks a plan should have: below that an interval rests on the normal law of the noise.
pub const BLOCKS_MIN: u32 = 8;
/// Where the count stops: more than anyone would wait for.
const BLOCKS_MAX: u32 = 1_000_000;
/// Chance to see a difference that is there.
pub(crate) const POWER: f64 = 0.8;

/// Blocks for an 80 % chance to see, at level `alpha` (0.05 is where a 95 % interval excludes 1), that
/// the true ratio is 1 + `margin` (above 0), where ln(a / b) varies by `sd_ln` over blocks. At least
/// [`BLOCKS_MIN`].
pub fn blocks_needed(sd_ln: f64, margin: f64, alpha: f64) -> u32 {
    for_difference(sd_ln, margin.ln_1p(), alpha).max(BLOCKS_MIN)
}

/// The smallest difference, as a share, that `blocks` blocks see with 80 % chance at level `alpha`:
/// the other way round through [`blocks_needed`]. `None` with fewer than [`BLOCKS_FOR_INTERVAL`].
pub fn smallest_difference(sd_ln: f64, blocks: u32, alpha: f64) -> Option<f64> {
    let n = f64::from(blocks);
    (blocks as usize >= BLOCKS_FOR_INTERVAL).then(|| (reach(n, alpha) * sd_ln / n.sqrt()).exp_m1())
}

/// How many standard errors a difference must have: so many that it is beyond the level's bound, and
/// then as many more as make that likely.
fn reach(n: f64, alpha: f64) -> f64 {
    let df = df_of(n);
    t_quantile(1.0 - alpha / 2.0, df) + t_quantile(POWER, df)
}

/// Smallest n with n >= ((t(1 - alpha/2) + t(0.8)) sd / difference)^2, t with the degrees of freedom that a
/// robust centre of n blocks has.
///
/// The normal law gives ((1.96 + 0.84) sd / difference)^2 at 5 %, which is too few because sd is
/// estimated from the same blocks; the quantiles of t add about 2. The noncentral t of a mean, which has
/// n - 1 degrees of freedom, needs up to two blocks fewer (a test compares): so much the robust centre costs.
pub(crate) fn for_difference(sd_ln: f64, difference: f64, alpha: f64) -> u32 {
    let blocks = |quantiles: f64| (quantiles * sd_ln / difference).powi(2);
    let by_normal = blocks(z_quantile(1.0 - alpha / 2.0) + z_quantile(POWER)).ceil();
    if by_normal >= f64::from(BLOCKS_MAX) {
        return BLOCKS_MAX;
    }
    let enough = |n: &u32| f64::from(*n) >= blocks(reach(f64::from(*n), alpha));
    // With one degree of freedom t needs a multiple of what the normal law does, which at a level of
    // one in a thousand is 10^4; with three, less than 10.
    let first = (by_normal as u32).max(2);
    (first..=first.saturating_mul(10).saturating_add(20)).find(enough).unwrap_or(BLOCKS_MAX)
}
