//! Owns how many blocks a difference needs in order to be seen. Must not know how they are made.
//! Start reading at [`blocks_needed`].

use crate::student::{t_quantile, z_quantile};

/// Fewest blocks a plan should have: below that an interval rests on the normal law of the noise.
pub const BLOCKS_MIN: u32 = 8;
/// Where the count stops: more than anyone would wait for.
const BLOCKS_MAX: u32 = 1_000_000;
/// Chance to see a difference that is there.
const POWER: f64 = 0.8;

/// Blocks for an 80 % chance that a 95 % interval excludes 1 when the true ratio is 1 + `margin`
/// (above 0), where ln(a / b) varies by `sd_ln` over blocks. At least [`BLOCKS_MIN`].
pub fn blocks_needed(sd_ln: f64, margin: f64) -> u32 {
    for_difference(sd_ln, margin.ln_1p()).max(BLOCKS_MIN)
}

/// [`blocks_needed`] beyond those that are there; at least 1.
pub fn more_blocks(have: u32, sd_ln: f64, margin: f64) -> u32 {
    blocks_needed(sd_ln, margin).saturating_sub(have).max(1)
}

/// Smallest n with n >= ((t(0.975, n-1) + t(0.8, n-1)) sd / difference)^2.
///
/// The normal law gives ((1.96 + 0.84) sd / difference)^2, which is too few because sd is estimated
/// from the same blocks; the quantiles of t add about 2. From the noncentral t it differs by one
/// block at most (a test compares).
pub(crate) fn for_difference(sd_ln: f64, difference: f64) -> u32 {
    let blocks = |quantiles: f64| (quantiles * sd_ln / difference).powi(2);
    let by_normal = blocks(z_quantile(0.975) + z_quantile(POWER)).ceil();
    if by_normal >= f64::from(BLOCKS_MAX) {
        return BLOCKS_MAX;
    }
    let enough = |n: &u32| {
        let df = f64::from(*n) - 1.0;
        f64::from(*n) >= blocks(t_quantile(0.975, df) + t_quantile(POWER, df))
    };
    // t with one degree of freedom needs 9 times what the normal law does; with more, less.
    let first = (by_normal as u32).max(2);
    (first..=first * 10).find(enough).unwrap_or(BLOCKS_MAX)
}
