//! Owns the bootstrap over blocks and, within a block, over visits. Must not know what the values
//! are. Start reading at [`two_level_bootstrap`].
//!
//! To draw on both levels and take percentiles counts the spread between visits twice: once in the
//! blocks' means, once more within (Davison and Hinkley 1997, Bootstrap Methods, 3.8; with two visits
//! and no spread between blocks the variance comes out half too large). The t statistic of a resample
//! has that spread above and below the line, so it cancels; hence studentised here too.

use crate::bootstrap::{BOOTSTRAP_MIN, interval_of_statistics, t_of_sums};
use crate::moments::{mean, sd};
use crate::paired::ConfidenceInterval;
use crate::resample::Draws;

/// Logarithms of the visits of both sides in one block; each at least one, each finite.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockVisits {
    /// Visits of a.
    pub a: Vec<f64>,
    /// Visits of b.
    pub b: Vec<f64>,
}

impl BlockVisits {
    /// Mean of ln a less mean of ln b.
    pub fn ln_ratio(&self) -> f64 {
        mean(&self.a) - mean(&self.b)
    }

    fn redrawn(&self, draws: &mut Draws) -> f64 {
        redrawn_mean(&self.a, draws) - redrawn_mean(&self.b, draws)
    }
}

/// The 95 % studentised bootstrap interval of the mean of ln(a / b) over blocks, of equal weight
/// however many visits each has: blocks are drawn, then visits within the block drawn.
///
/// `None` with fewer than [`BOOTSTRAP_MIN`] blocks, or where they do not vary. With one visit a block
/// this is [`crate::studentised_bootstrap`].
pub fn two_level_bootstrap(blocks: &[BlockVisits], seed: u64) -> Option<ConfidenceInterval> {
    let means: Vec<f64> = blocks.iter().map(BlockVisits::ln_ratio).collect();
    let spread = if means.len() < BOOTSTRAP_MIN { 0.0 } else { sd(&means) };
    if spread == 0.0 {
        return None;
    }
    let (n, centre) = (blocks.len(), mean(&means));
    let mut draws = Draws::new(seed);
    interval_of_statistics(centre, spread, n, || {
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let block = &blocks[draws.one_of(n)];
            let value = (block.redrawn(&mut draws) - centre) / spread;
            sum += value;
            squares += value * value;
        }
        t_of_sums(sum, squares, n as f64)
    })
}

fn redrawn_mean(visits: &[f64], draws: &mut Draws) -> f64 {
    match visits {
        // Nothing to draw; and so one visit a block takes the draws that one level takes.
        [only] => *only,
        _ => {
            let n = visits.len();
            (0..n).map(|_| visits[draws.one_of(n)]).sum::<f64>() / n as f64
        }
    }
}
