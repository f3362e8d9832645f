//! The smallest difference that a machine can detect.

use serde::{Deserialize, Serialize};
use units::Share;

use crate::metric::Metric;
use crate::verdict::Estimate;

/// How much two visits of the same contender differ, and so the smallest difference between two contenders that these
/// blocks can detect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Index of the cell.
    pub cell: usize,
    /// The metric.
    pub metric: Metric,
    /// Where the noise was seen.
    pub source: NoiseSource,
    /// Blocks it rests on.
    pub blocks: u32,
    /// Standard deviation of the log ratio of two equal visits in a block.
    pub sd_ln: f64,
    /// A true difference of this size is detected in 80 of 100 runs with as many blocks; smaller ones are usually
    /// missed.
    pub smallest: Share,
}

/// Where noise was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum NoiseSource {
    /// Two contenders that differ only in their names (A/A).
    Copies {
        /// Index of one.
        a: usize,
        /// Index of the other.
        b: usize,
        /// Their ratio, which should hold 1: if it does not, the lab itself makes a difference.
        estimate: Estimate,
    },
    /// Visits of every contender, minus its own mean and the mean of each block.
    Visits,
}
