//! Owns which of three things may be said of a pair whose estimate nothing has spoilt. Must not know
//! the words it is said in, nor of ceilings and artifacts. Start reading at [`decide`].

use crate::equivalence::tost;
use crate::paired::{BLOCKS_FOR_INTERVAL, Paired};
use crate::power::{for_difference, more_blocks};

/// What may be said of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// There is a difference, and the interval says how large.
    Ratio,
    /// There is none of the margin or more.
    NoDifference,
    /// Neither is sure.
    Undecided {
        /// Blocks beyond those there, for an 80 % chance to be sure; at least 1.
        more: u32,
    },
}

/// What is asked of a pair before anything is said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standard {
    /// The equivalence margin, a share above 0.
    pub margin: f64,
    /// Level at which a difference counts as seen, after Holm.
    pub alpha: f64,
}

/// Decides, for a ratio whose p was adjusted to `p_holm`.
///
/// Equivalence comes first. With many blocks a difference of a thousandth is as certain as can be,
/// and the study has said beforehand that it is of no interest; to report it as a ratio would reward
/// the size of the study. A difference needs both the adjusted p and the interval, because Holm
/// guards against many pairs and the bootstrap against noise that is not normal; each can only take
/// differences away, so the false ones stay within the level.
pub fn decide(paired: &Paired, p_holm: f64, standard: Standard) -> Decision {
    let (Some(interval), Some(tost)) = (paired.interval, tost(paired, standard.margin)) else {
        return Decision::Undecided { more: (BLOCKS_FOR_INTERVAL - paired.n) as u32 };
    };
    if tost.equivalent {
        Decision::NoDifference
    } else if p_holm < standard.alpha && (interval.low > 1.0 || interval.high < 1.0) {
        Decision::Ratio
    } else {
        let seen = (paired.n, paired.mean_ln, interval.sd_ln);
        Decision::Undecided { more: more(seen, interval.p, p_holm, standard) }
    }
}

/// Blocks that are missing beyond the `n` that gave a mean log ratio and its standard deviation over
/// blocks. Where there are already enough to see the margin, the truth lies near the middle between no
/// difference and the margin; then the nearer of the two answers sets the count.
pub(crate) fn more(
    (n, mean_ln, sd_ln): (usize, f64, f64),
    p: f64,
    p_holm: f64,
    standard: Standard,
) -> u32 {
    let have = u32::try_from(n).unwrap_or(u32::MAX);
    // What Holm multiplied this p by, the level must be divided by: many pairs need more blocks.
    let holm = if p > 0.0 { (p_holm / p).max(1.0) } else { 1.0 };
    let alpha = standard.alpha / holm;
    let seen = mean_ln.abs();
    let nearer = seen.max(standard.margin.ln_1p() - seen);
    let for_nearer = for_difference(sd_ln, nearer, alpha).saturating_sub(have);
    match more_blocks(have, sd_ln, standard.margin, alpha) {
        1 => for_nearer.max(1),
        more => more,
    }
}
