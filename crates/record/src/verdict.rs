//! What may be said of a pair of contenders.

use serde::{Deserialize, Serialize};
use units::Share;

use crate::plan::Metric;

/// The verdict of a pair on one metric. `a` and `b` are indices of contenders; the ratio is a over b.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairVerdict {
    /// Index of the cell.
    #[serde(default)]
    pub cell: usize,
    /// What is compared.
    pub metric: Metric,
    /// Index of the numerator.
    pub a: usize,
    /// Index of the denominator.
    pub b: usize,
    /// The estimate behind the verdict; `None` where no block has a visit of both.
    pub estimate: Option<Estimate>,
    /// What may be said.
    pub verdict: Verdict,
}

/// A paired log ratio over blocks, as a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// exp of the mean log ratio.
    pub ratio: f64,
    /// Lower end of the 95 % interval: the wider of Student's t and the block bootstrap.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Blocks with a visit of both.
    pub blocks: u32,
    /// Standard deviation of the log ratio over blocks.
    pub sd_ln: f64,
    /// Two-sided p of "no difference", after Holm over the pairs of the metric in all cells.
    pub p_holm: f64,
}

/// The five things that may be said; no others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "snake_case")]
pub enum Verdict {
    /// `1.32x [1.28, 1.36]`
    #[expect(missing_docs, reason = "as in Estimate")]
    Ratio { ratio: f64, low: f64, high: f64 },
    /// `no difference of 2 % or more`: the 90 % interval lies inside the margin (TOST).
    NoDifference {
        /// The equivalence margin.
        margin: Share,
    },
    /// `undecided: about 14 more blocks to see 2 %`
    Undecided {
        /// Blocks that 80 % power would still need.
        more_blocks: u32,
        /// The difference they would show.
        margin: Share,
    },
    /// `at least 1.25x`: one side was at a ceiling, so the ratio is a bound.
    AtLeast {
        /// The bound: the near end of the interval.
        ratio: f64,
    },
    /// `withheld: REASON`
    Withheld {
        /// Which finding, on whom.
        reason: String,
    },
}
