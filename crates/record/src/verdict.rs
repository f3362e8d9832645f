//! What may be said of a pair of contenders.

use serde::{Deserialize, Serialize};
use units::Share;

use crate::metric::Metric;

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
    /// The estimate behind the verdict; `None` where fewer than three blocks have a visit of both.
    pub estimate: Option<Estimate>,
    /// What may be said.
    pub verdict: Verdict,
    /// What is short; `None` where the pair has as many blocks as the study asks for before it is sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_of: Option<ShortOf>,
}

/// Fewer blocks than the study asks for: what is said is preliminary.
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
    /// exp of the centre of the log ratio over blocks, which one wild block does not move; in
    /// older files of its mean.
    pub ratio: f64,
    /// Lower end of the 95 % interval, by t of that centre; not adjusted for other pairs, as `p_holm` is.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Blocks with a visit of both.
    pub blocks: u32,
    /// Standard deviation of the log ratio over blocks, as far as it moves the centre.
    pub sd_ln: f64,
    /// Two-sided p of "no difference", after Holm over the pairs of the metric in all cells that are tested.
    /// Of a withheld pair, which is not tested, it is what one more test would make it.
    pub p_holm: f64,
}

/// The six things that may be said; no others.
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
        /// Why it is no more than a bound.
        #[serde(default)]
        cause: BoundCause,
    },
    /// `at most 0.02x`: a over b is this or less.
    AtMost {
        /// The bound: the near end of the interval.
        ratio: f64,
        /// Why it is no more than a bound.
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
        /// Blocks still needed, with 80 % power, for the difference that was seen: to tell it apart, or to
        /// show that it lies within the margin, whichever is nearer. `None` where there is no number that
        /// could be planned for.
        more_blocks: Option<u32>,
        /// The equivalence margin.
        margin: Share,
    },
    /// `withheld: REASON`
    Withheld {
        /// Which finding, on whom.
        reason: String,
    },
}

/// Why a ratio is no more than a bound.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundCause {
    /// One side was at a ceiling that was not its own.
    #[default]
    Ceiling,
    /// That there is a difference is sure, but its interval is too wide to give its size.
    WideInterval,
}

/// An interval whose upper end is more than so many times its lower end gives no size: only its near end
/// is said.
const INTERVAL_SPAN_MAX: f64 = 2.0;

impl Verdict {
    /// A difference that is sure, with the interval of its ratio, which excludes 1.
    pub fn of_difference(ratio: f64, (low, high): (f64, f64)) -> Self {
        let cause = BoundCause::WideInterval;
        match high / low > INTERVAL_SPAN_MAX {
            false => Self::Ratio { ratio, low, high },
            true if low > 1.0 => Self::AtLeast { ratio: low, cause },
            true => Self::AtMost { ratio: high, cause },
        }
    }

    /// Whether it puts one side ahead of the other.
    pub fn tells_apart(&self) -> bool {
        matches!(self, Self::Ratio { .. } | Self::AtLeast { .. } | Self::AtMost { .. })
    }

    /// The same, said of b over a.
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
