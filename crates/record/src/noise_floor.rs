//! The smallest difference that a machine can show.

use serde::{Deserialize, Serialize};
use units::Share;

use crate::metric::Metric;
use crate::verdict::Estimate;

/// What differs between two visits of the same contender, and so the smallest difference between two
/// contenders that these blocks can show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Index of the cell.
    pub cell: usize,
    /// Of what.
    pub metric: Metric,
    /// Where the noise was seen.
    pub source: NoiseSource,
    /// Blocks it rests on.
    pub blocks: u32,
    /// Standard deviation of the log ratio of two visits of a block between which nothing differs.
    pub sd_ln: f64,
    /// A true difference of this size is called one in 80 of 100 runs of as many blocks; a smaller
    /// one is not to be expected to show.
    pub smallest: Share,
}

/// Where noise was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum NoiseSource {
    /// Two contenders that differ in nothing but their names (A/A).
    Copies {
        /// Index of one.
        a: usize,
        /// Index of the other.
        b: usize,
        /// Their ratio, which should hold 1: where it does not, the lab itself makes a difference.
        estimate: Estimate,
    },
    /// Visits of every contender, less what its own mean and what its block's mean explain.
    Visits,
}
