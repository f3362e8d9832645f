//! The verdict on a pair of contenders.

use serde::{Deserialize, Serialize};
use units::Share;

use crate::metric::Metric;

/// The verdict of a pair on one metric. `a` and `b` are indices of contenders; the ratio is a over b.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairVerdict {
    /// Index of the cell.
    #[serde(default)]
    pub cell: usize,
    /// The metric.
    pub metric: Metric,
    /// Index of the numerator.
    pub a: usize,
    /// Index of the denominator.
    pub b: usize,
    /// The estimate behind the verdict; `None` if fewer than three blocks have a visit of both.
    pub estimate: Option<Estimate>,
    /// The verdict.
    pub verdict: Verdict,
    /// The blocks that are missing; `None` if the pair has at least as many as the study asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_of: Option<ShortOf>,
}

/// Fewer blocks than the study asks for: the verdict is preliminary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortOf {
    /// Blocks that the pair has.
    pub blocks: u32,
    /// Blocks that it should have at least.
    pub of: u32,
}

/// A paired log ratio over blocks, as a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// exp of the centre of the log ratio over blocks, which a single outlying block does not move; in older files exp
    /// of its mean.
    pub ratio: f64,
    /// Lower end of the 95 % interval, from t of that centre; unlike `p_holm` not adjusted for other pairs.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Blocks with a visit of both.
    pub blocks: u32,
    /// Standard deviation of the log ratio over blocks, as far as it affects the centre.
    pub sd_ln: f64,
    /// Two-sided p of "no difference", after Holm over the tested pairs of the metric in all cells. A withheld pair is
    /// not tested; its p is what it would be as one more test.
    pub p_holm: f64,
}

/// The six possible verdicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "says", rename_all = "snake_case")]
pub enum Verdict {
    /// A difference and its size: `1.32x [1.28, 1.36]`
    #[expect(missing_docs, reason = "as in Estimate")]
    Ratio { ratio: f64, low: f64, high: f64 },
    /// `at least 54x`: a over b is this or more.
    AtLeast {
        /// The bound: the near end of the interval.
        ratio: f64,
        /// Why there is only a bound.
        #[serde(default)]
        cause: BoundCause,
    },
    /// `at most 0.02x`: a over b is this or less.
    AtMost {
        /// The bound: the near end of the interval.
        ratio: f64,
        /// Why there is only a bound.
        #[serde(default)]
        cause: BoundCause,
    },
    /// `no difference of 2 % or more`: the 90 % interval lies inside the margin (TOST).
    NoDifference {
        /// The equivalence margin.
        margin: Share,
    },
    /// `undecided: about 14 more blocks needed`
    Undecided {
        /// Blocks still needed, with 80 % power, for the nearer of two answers: the observed difference is told apart,
        /// or is shown to lie within the margin. `None` if that number is too large to plan for.
        more_blocks: Option<u32>,
        /// The equivalence margin.
        margin: Share,
    },
    /// `withheld: REASON`
    Withheld {
        /// The finding, and the contender.
        reason: String,
    },
}

/// Why there is only a bound.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundCause {
    /// One side was limited by a ceiling that was not its own.
    #[default]
    Ceiling,
    /// There certainly is a difference, but its interval is too wide to give its size.
    WideInterval,
}

/// If the upper end of an interval is more than this many times its lower end, it gives no size, and the verdict states
/// only its near end.
const INTERVAL_SPAN_MAX: f64 = 2.0;

impl Verdict {
    /// A certain difference, with the interval of its ratio, which excludes 1.
    pub fn of_difference(ratio: f64, (low, high): (f64, f64)) -> Self {
        let cause = BoundCause::WideInterval;
        match high / low > INTERVAL_SPAN_MAX {
            false => Self::Ratio { ratio, low, high },
            true if low > 1.0 => Self::AtLeast { ratio: low, cause },
            true => Self::AtMost { ratio: high, cause },
        }
    }

    /// Whether it says that one side is better.
    pub fn tells_apart(&self) -> bool {
        matches!(self, Self::Ratio { .. } | Self::AtLeast { .. } | Self::AtMost { .. })
    }

    /// The same verdict for b over a.
    pub fn turned(&self) -> Self {
        match *self {
            Self::Ratio { ratio, low, high } => {
                Self::Ratio { ratio: 1.0 / ratio, low: 1.0 / high, high: 1.0 / low }
            }
            Self::AtLeast { ratio, cause } => Self::AtMost { ratio: 1.0 / ratio, cause },
            Self::AtMost { ratio, cause } => Self::AtLeast { ratio: 1.0 / ratio, cause },
            _ => self.clone(),
        }
    }
}
