//! Owns the decision between three answers for a pair whose estimate is sound. Must not know their wording, nor
//! ceilings and artifacts. Start reading at [`decide`].

use crate::equivalence::tost;
use crate::holm::Held;
use crate::missing::{Spread, missing};
use crate::paired::{BLOCKS_FOR_INTERVAL, Paired};

/// The answer for a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// There is a difference, and the interval says how large.
    Ratio,
    /// Any difference is smaller than the margin.
    NoDifference,
    /// Neither is certain.
    Undecided {
        /// Blocks to add for an 80 % chance that the observed difference becomes certain; at least 1. `None` if that
        /// takes more than anyone plans for.
        more: Option<u32>,
    },
}

/// The standard that a pair has to meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standard {
    /// The equivalence margin, a share above 0.
    pub margin: f64,
    /// Level of the adjusted p, after Holm, below which a difference counts.
    pub alpha: f64,
}

/// Decides for a ratio whose p was adjusted for the others of its family.
///
/// Equivalence comes first. With many blocks even a difference of a thousandth becomes certain, although the study said
/// beforehand that it does not matter; reporting it as a ratio would reward the size of the study. A difference needs
/// both the adjusted p and the displayed interval, which is not adjusted: nobody should read a ratio whose interval
/// holds 1. At a level below 5 % the p alone decides.
pub fn decide(paired: &Paired, held: impl Into<Held>, standard: Standard) -> Decision {
    let held: Held = held.into();
    let (Some(interval), Some(tost)) = (paired.interval, tost(paired, standard.margin)) else {
        return Decision::Undecided { more: Some((BLOCKS_FOR_INTERVAL - paired.n) as u32) };
    };
    if tost.equivalent {
        Decision::NoDifference
    } else if held.p < standard.alpha && (interval.low > 1.0 || interval.high < 1.0) {
        Decision::Ratio
    } else {
        let seen = Spread { n: paired.n, centre_ln: paired.centre_ln, sd_ln: interval.sd_ln };
        Decision::Undecided { more: missing(seen, held, standard.margin, standard.alpha) }
    }
}
