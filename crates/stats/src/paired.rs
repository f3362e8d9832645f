//! Owns the estimate behind a verdict: the paired log ratio over blocks, its interval and its p. Must not know what is
//! compared, nor how the result is worded. Start reading at [`Paired::of`].
//!
//! On the log scale a over b and b over a are the same distance from 1, multiplicative noise (a slow minute of the
//! machine) becomes additive, and what a block shares cancels out. The centre is a biweight (see `biweight.rs`): one
//! wild visit among many must not decide the answer.

use crate::biweight::Biweight;
use crate::moments::mean;

/// Fewest blocks that have an interval: two have a single degree of freedom, where t is 12.7 and the interval says
/// nothing.
pub const BLOCKS_FOR_INTERVAL: usize = 3;

/// The paired log ratio over blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// Blocks, at least 1.
    pub n: usize,
    /// Centre of ln(a / b) over blocks: their biweight, which equals the mean if there are no outliers.
    pub centre_ln: f64,
    /// exp of `centre_ln`.
    pub ratio: f64,
    /// How certain the ratio is; `None` with fewer than [`BLOCKS_FOR_INTERVAL`] blocks.
    pub interval: Option<PairedInterval>,
}

/// How certain a paired ratio is. The interval, p, equivalence ([`crate::tost`]) and the missing blocks
/// ([`crate::decide`]) all use the same t: `centre_ln / error_ln` with `df` degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedInterval {
    /// Lower end of the 95 % interval of the ratio; equal to the upper end if the blocks that count are equal.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard error of the centre.
    pub error_ln: f64,
    /// Degrees of freedom, at least 1: the blocks that count, minus one.
    pub df: f64,
    /// Standard deviation of ln(a / b) over blocks, as far as it affects the centre: `error_ln` times the root of n.
    pub sd_ln: f64,
    /// Two-sided p of "the ratio is 1", not adjusted for multiple pairs.
    pub p: f64,
}

/// Why values have no paired ratio.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum PairedError {
    /// There is no block.
    #[error("no block has a value of both")]
    Empty,
    /// A value has no logarithm.
    #[error("block {block} has {value}, which has no logarithm: leave out what was not measured")]
    NotPositive {
        /// Index of the block in the slice.
        block: usize,
        /// The value.
        value: f64,
    },
}

/// Logarithms of the visits of both sides in one block; each at least one, each finite.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockVisits {
    /// Visits of a.
    pub a: Vec<f64>,
    /// Visits of b.
    pub b: Vec<f64>,
}

impl BlockVisits {
    /// Mean of ln a minus mean of ln b.
    pub fn ln_ratio(&self) -> f64 {
        mean(&self.a) - mean(&self.b)
    }
}

impl Paired {
    /// From the values of a and b, block by block; each finite and above zero.
    pub fn of(blocks: &[(f64, f64)]) -> Result<Self, PairedError> {
        let has_log = |value: f64| value.is_finite() && value > 0.0;
        for (block, &(a, b)) in blocks.iter().enumerate() {
            if let Some(value) = [a, b].into_iter().find(|&value| !has_log(value)) {
                return Err(PairedError::NotPositive { block, value });
            }
        }
        let logs: Vec<f64> = blocks.iter().map(|(a, b)| (a / b).ln()).collect();
        Self::of_logs(&logs)
    }

    /// From the logarithms of all visits of a and b, block by block; each block has at least one of both. All blocks
    /// have the same weight, whatever their number of visits: the visits of a block are not independent.
    pub fn of_visits(blocks: &[BlockVisits]) -> Result<Self, PairedError> {
        let logs: Vec<f64> = blocks.iter().map(BlockVisits::ln_ratio).collect();
        Self::of_logs(&logs)
    }

    /// From ln(a / b), block by block; each finite.
    pub fn of_logs(logs: &[f64]) -> Result<Self, PairedError> {
        if logs.is_empty() {
            return Err(PairedError::Empty);
        }
        if let Some(block) = logs.iter().position(|log| !log.is_finite()) {
            return Err(PairedError::NotPositive { block, value: logs[block] });
        }
        let biweight = Biweight::of(logs);
        Ok(Self {
            n: logs.len(),
            centre_ln: biweight.centre,
            ratio: biweight.centre.exp(),
            interval: (logs.len() >= BLOCKS_FOR_INTERVAL)
                .then(|| interval(&biweight, logs.len() as f64)),
        })
    }
}

fn interval(biweight: &Biweight, n: f64) -> PairedInterval {
    let &Biweight { centre, error, df } = biweight;
    let reach = biweight.reach(0.95);
    PairedInterval {
        low: (centre - reach).exp(),
        high: (centre + reach).exp(),
        error_ln: error,
        df,
        sd_ln: error * n.sqrt(),
        p: biweight.p(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_blocks_have_a_ratio_but_no_interval() {
        for n in 1..BLOCKS_FOR_INTERVAL {
            let paired = Paired::of(&vec![(3.0, 2.0); n]).unwrap();
            assert_eq!((paired.n, paired.interval), (n, None));
            assert!((paired.ratio - 1.5).abs() < 1e-12);
        }
    }

    #[test]
    fn what_has_no_logarithm_is_refused_by_its_block() {
        assert_eq!(Paired::of(&[]), Err(PairedError::Empty));
        for value in [0.0, -1.0, f64::INFINITY] {
            let refused = Paired::of(&[(1.0, 1.0), (2.0, value)]);
            assert_eq!(refused, Err(PairedError::NotPositive { block: 1, value }));
        }
        let not_a_number = Paired::of(&[(f64::NAN, 1.0)]);
        assert!(matches!(not_a_number, Err(PairedError::NotPositive { block: 0, .. })));
    }

    #[test]
    fn blocks_without_spread_give_a_point_and_a_sure_answer() {
        let equal = Paired::of(&[(7.0, 7.0); 9]).unwrap().interval.unwrap();
        assert_eq!((equal.low, equal.high, equal.p), (1.0, 1.0, 1.0));
        let differing = Paired::of(&[(1.1, 1.0); 9]).unwrap();
        let interval = differing.interval.unwrap();
        assert_eq!((interval.sd_ln, interval.p), (0.0, 0.0));
        assert!((interval.low - 1.1).abs() < 1e-12 && (interval.high - 1.1).abs() < 1e-12);
    }

    #[test]
    fn where_most_blocks_are_equal_a_wild_one_is_left_out_and_a_near_one_counts() {
        let of = |last: f64| Paired::of(&[[(7.0, 7.0); 7].as_slice(), &[(last, 7.0)]].concat());
        let wild = of(350.0).unwrap();
        assert_eq!((wild.ratio, wild.interval.unwrap().p), (1.0, 1.0));
        let near = of(7.01).unwrap();
        assert!(near.centre_ln > 0.0 && near.interval.unwrap().high > near.ratio, "{near:?}");
    }

    #[test]
    fn swapping_the_sides_inverts_the_ratio_and_keeps_p() {
        let blocks = [(5.0, 4.0), (5.2, 4.1), (4.8, 4.3), (5.1, 3.9)];
        let swapped = blocks.map(|(a, b)| (b, a));
        let (one, other) = (Paired::of(&blocks).unwrap(), Paired::of(&swapped).unwrap());
        assert!((one.ratio * other.ratio - 1.0).abs() < 1e-12);
        let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
        assert!((one.low * other.high - 1.0).abs() < 1e-12);
        assert!((one.p - other.p).abs() < 1e-12);
    }
}
