//! Owns which of three things may be said of a pair whose estimate nothing has spoilt. Must not know
//! the words it is said in, nor of ceilings and artifacts. Start reading at [`decide`].

use crate::equivalence::tost;
use crate::paired::{BLOCKS_FOR_INTERVAL, Paired};
use crate::power::{for_difference, more_blocks};

/// Level at which a difference counts as seen, after Holm.
const ALPHA: f64 = 0.05;

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

/// Decides, for a ratio whose p was adjusted to `p_holm`, with equivalence margin `margin` (above 0).
///
/// Equivalence comes first. With many blocks a difference of a thousandth is as certain as can be,
/// and the study has said beforehand that it is of no interest; to report it as a ratio would reward
/// the size of the study. A difference needs both the adjusted p and the interval, because Holm
/// guards against many pairs and the bootstrap against noise that is not normal; each can only take
/// differences away, so the false ones stay within 5 % of studies.
pub fn decide(paired: &Paired, p_holm: f64, margin: f64) -> Decision {
    let (Some(interval), Some(tost)) = (paired.interval, tost(paired, margin)) else {
        return Decision::Undecided { more: (BLOCKS_FOR_INTERVAL - paired.n) as u32 };
    };
    if tost.equivalent {
        Decision::NoDifference
    } else if p_holm < ALPHA && (interval.low > 1.0 || interval.high < 1.0) {
        Decision::Ratio
    } else {
        Decision::Undecided { more: more(paired, interval.sd_ln, margin) }
    }
}

/// Blocks that are missing. Where there are already enough to see the margin, the truth lies near
/// the middle between no difference and the margin; then the nearer of the two answers sets the count.
fn more(paired: &Paired, sd_ln: f64, margin: f64) -> u32 {
    let have = u32::try_from(paired.n).unwrap_or(u32::MAX);
    let seen = paired.mean_ln.abs();
    let nearer = seen.max(margin.ln_1p() - seen);
    let for_nearer = for_difference(sd_ln, nearer).saturating_sub(have);
    match more_blocks(have, sd_ln, margin) {
        1 => for_nearer.max(1),
        more => more,
    }
}
