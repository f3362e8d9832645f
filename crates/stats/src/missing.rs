//! Owns how many more blocks a pair needs for the observed difference. Must not know what is compared. Start reading at
//! [`missing`].

use crate::holm::Held;
use crate::paired::BLOCKS_FOR_INTERVAL;
use crate::power::{POWER, for_difference};
use crate::student::{t_quantile, upper_p};

/// More than anyone plans for; beyond it the digits of the count mean nothing.
pub const BLOCKS_MISSING_MAX: u32 = 999;
/// Level of each of the two one-sided tests.
const ALPHA_EQUIVALENCE: f64 = 0.05;

/// A log ratio over blocks, and how much it varies between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) n: usize,
    pub(crate) centre_ln: f64,
    pub(crate) sd_ln: f64,
}

/// Blocks to add for an 80 % chance of the nearer of two answers: the observed difference is told apart at the level of
/// its test, or is shown to lie within the margin. At least 1; `None` beyond [`BLOCKS_MISSING_MAX`].
///
/// Planning for the margin instead, whatever was observed, would ask for hundreds of blocks where a tenfold difference
/// needs only one more.
pub(crate) fn missing(seen: Spread, held: Held, margin: f64, alpha: f64) -> Option<u32> {
    let have = u32::try_from(seen.n).unwrap_or(u32::MAX);
    let level = alpha / held.tests as f64;
    let least = BLOCKS_FOR_INTERVAL as u32;
    let apart = for_difference(seen.sd_ln, seen.centre_ln.abs(), level).max(least);
    let within = for_equivalence(seen, margin.ln_1p(), have.saturating_add(BLOCKS_MISSING_MAX));
    let needed = within.map_or(apart, |within| within.min(apart));
    Some(needed.saturating_sub(have).max(1)).filter(|more| *more <= BLOCKS_MISSING_MAX)
}

/// Smallest number of blocks, up to `most`, at which both one-sided tests hold with a probability of 80 %. `None` if
/// the ratio is outside the margin, or needs more blocks.
fn for_equivalence(seen: Spread, inside: f64, most: u32) -> Option<u32> {
    let centre = seen.centre_ln.abs();
    if centre >= inside {
        return None;
    }
    let holds = |blocks: u32| {
        let n = f64::from(blocks);
        let (df, error) = (n - 1.0, seen.sd_ln / n.sqrt());
        let bound = t_quantile(1.0 - ALPHA_EQUIVALENCE, df);
        let fails = |room: f64| upper_p(room / error - bound, df);
        error == 0.0 || fails(inside - centre) + fails(inside + centre) <= 1.0 - POWER
    };
    let (mut short, mut enough) = (BLOCKS_FOR_INTERVAL as u32 - 1, most);
    if !holds(enough) {
        return None;
    }
    while enough - short > 1 {
        let middle = u32::midpoint(short, enough);
        if holds(middle) { enough = middle } else { short = middle }
    }
    Some(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample sizes of a crossover with limits of 80 and 125 % (Diletti, Hauschke and Steinijans 1991): even numbers,
    /// and one degree of freedom less than pairs have.
    #[test]
    fn blocks_for_equivalence_are_those_of_the_published_tables() {
        for (cv, ratio, needed) in
            [(0.2, 0.95, 20), (0.3, 0.95, 40), (0.25, 0.95, 28), (0.3, 1.0, 32)]
        {
            let sd_ln = 2f64.sqrt() * f64::ln_1p(cv * cv).sqrt();
            let seen = Spread { n: 3, centre_ln: f64::ln(ratio), sd_ln };
            let blocks = for_equivalence(seen, 1.25f64.ln(), 1000).unwrap();
            assert!((needed - 2..=needed).contains(&blocks), "CV {cv}: {blocks}, not {needed}");
        }
    }

    #[test]
    fn the_nearer_answer_sets_the_count() {
        let more = |ratio: f64, sd_ln, tests| {
            let seen = Spread { n: 7, centre_ln: ratio.ln(), sd_ln };
            missing(seen, Held { p: 1.0, tests }, 0.02, 0.02)
        };
        // Seven blocks are more than enough to tell a tenfold difference apart.
        assert_eq!(more(0.102, 0.25, 1), Some(1));
        assert!(more(1.1, 0.1, 36) > more(1.1, 0.1, 1), "many pairs need more");
        let (equal, halfway) = (more(1.0, 0.03, 1).unwrap(), more(1.01, 0.03, 1).unwrap());
        assert!(equal < halfway && halfway < 100, "{equal} {halfway}");
        assert_eq!(more(1.02, 2.0, 1), None, "no number that anybody would plan for");
    }
}
