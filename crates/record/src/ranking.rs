//! Which contenders are best, and which cannot be told apart.

use serde::{Deserialize, Serialize};
use units::Share;

use crate::metric::Metric;

/// The contenders of a cell by a metric, best first. Two that share a letter were not told apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Index of the cell.
    pub cell: usize,
    /// The metric.
    pub metric: Metric,
    /// Blocks that all of them have.
    pub blocks: u32,
    /// Best first.
    pub places: Vec<RankedContender>,
    /// Whether groups overlap: a contender is not told apart from two who are. Then there are no places 1, 2, 3, only
    /// letters.
    pub overlapping: bool,
    /// Indices of contenders that are not ranked, because a pair with one of them is withheld.
    pub unranked: Vec<usize>,
}

/// One of those ranked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedContender {
    /// Index of the contender.
    pub contender: usize,
    /// Its value over the first one's, by the same robust centre over blocks as a verdict's ratio.
    pub to_first: f64,
    /// The letters of its groups ("ab").
    pub letters: String,
    /// Probability that it is the best, given these blocks. Older files: share of resamples of the blocks.
    pub best: Share,
}

impl Ranking {
    /// Indices of the contenders that share a letter with the first: none is certainly better than they are.
    pub fn top(&self) -> Vec<usize> {
        let Some(first) = self.places.first() else { return Vec::new() };
        let shares = |place: &&RankedContender| {
            place.letters.chars().any(|letter| first.letters.contains(letter))
        };
        self.places.iter().filter(shares).map(|place| place.contender).collect()
    }
}
