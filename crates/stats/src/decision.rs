//! Owns which of three things may be said of a pair whose estimate nothing has spoilt. Must not know
//! the words it is said in, nor of ceilings and artifacts. Start reading at [`decide`].

use crate::equivalence::tost;
use crate::holm::Held;
use crate::missing::{Spread, missing};
use crate::paired::{BLOCKS_FOR_INTERVAL, Paired};

/// What may be said of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// There is a difference, and the interval says how large.
    Ratio,
    /// There is none of the margin or more.
    NoDifference,
    /// Neither is sure.
    Undecided {
        /// Blocks beyond those there, for an 80 % chance to be sure of the difference that was seen; at
        /// least 1. `None` where it would take more than anyone plans for.
        more: Option<u32>,
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

/// Decides, for a ratio whose p was adjusted for the others of its family.
///
/// Equivalence comes first. With many blocks a difference of a thousandth is as certain as can be,
/// and the study has said beforehand that it is of no interest; to report it as a ratio would reward
/// the size of the study. A difference needs both the adjusted p and the interval that is shown, which is
/// not adjusted: nobody is to read a ratio whose interval holds 1. At a level below 5 % the p alone decides.
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
