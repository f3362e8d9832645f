//! Owns the estimate behind a verdict: the paired log ratio over blocks, its interval and its p.
//! Must not know what is compared, nor what may be said of it. Start reading at [`Paired::of`].
//!
//! On the log scale a over b and b over a are the same distance from 1, noise that multiplies (a
//! slow minute of the machine) becomes noise that adds, and what a block shares cancels out.

use crate::bootstrap::studentised_bootstrap;
use crate::moments::{mean, sd};
use crate::student::{t_quantile, two_sided_p};
use crate::two_level::{BlockVisits, two_level_bootstrap};

/// Fewest blocks that have an interval: two have a single degree of freedom, where t is 12.7 and
/// the interval says nothing.
pub const BLOCKS_FOR_INTERVAL: usize = 3;

/// An interval that holds the truth in 95 % of sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl ConfidenceInterval {
    /// From logs to ratios.
    pub(crate) fn exp(self) -> Self {
        Self { low: self.low.exp(), high: self.high.exp() }
    }

    /// From the lower of both low ends to the higher of both high ends.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// The paired log ratio over blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// Blocks, at least 1.
    pub n: usize,
    /// Mean of ln(a / b) over blocks.
    pub mean_ln: f64,
    /// exp of that: the geometric mean of the ratios.
    pub ratio: f64,
    /// How sure that is; `None` with fewer than [`BLOCKS_FOR_INTERVAL`] blocks.
    pub interval: Option<PairedInterval>,
}

/// How sure a paired ratio is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedInterval {
    /// Lower end of the 95 % interval of the ratio: at either end the wider of `student` and
    /// `bootstrap`. Skewness moves the bootstrap to one side; to take one of the two whole would
    /// cover less than either does (measured: 93.4 % for noise of Student's t5 at n = 8).
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard deviation of ln(a / b) over blocks.
    pub sd_ln: f64,
    /// 95 % interval of the ratio by Student's t; of no length where the blocks do not vary.
    pub student: ConfidenceInterval,
    /// 95 % interval of the ratio by the studentised bootstrap over blocks; `None` where there are
    /// too few blocks for one, or they do not vary.
    pub bootstrap: Option<ConfidenceInterval>,
    /// Two-sided p of "the ratio is 1", by Student's t; not yet adjusted for many pairs.
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

impl Paired {
    /// From the values of a and b, block by block; each finite and above zero. `seed` is that of
    /// the bootstrap.
    pub fn of(blocks: &[(f64, f64)], seed: u64) -> Result<Self, PairedError> {
        let has_log = |value: f64| value.is_finite() && value > 0.0;
        for (block, &(a, b)) in blocks.iter().enumerate() {
            if let Some(value) = [a, b].into_iter().find(|&value| !has_log(value)) {
                return Err(PairedError::NotPositive { block, value });
            }
        }
        let logs: Vec<f64> = blocks.iter().map(|(a, b)| (a / b).ln()).collect();
        Self::of_logs(&logs, seed)
    }

    /// From ln(a / b), block by block; each finite.
    pub fn of_logs(logs: &[f64], seed: u64) -> Result<Self, PairedError> {
        if logs.is_empty() {
            return Err(PairedError::Empty);
        }
        if let Some(block) = logs.iter().position(|log| !log.is_finite()) {
            return Err(PairedError::NotPositive { block, value: logs[block] });
        }
        Ok(Self::with_bootstrap(logs, || studentised_bootstrap(logs, seed)))
    }

    /// From the logarithms of all visits of a and b, block by block; each block has at least one of
    /// both. Blocks weigh alike however many visits they have; the bootstrap draws on both levels.
    pub fn of_visits(blocks: &[BlockVisits], seed: u64) -> Result<Self, PairedError> {
        let logs: Vec<f64> = blocks.iter().map(BlockVisits::ln_ratio).collect();
        if logs.is_empty() {
            return Err(PairedError::Empty);
        }
        if let Some(block) = logs.iter().position(|log| !log.is_finite()) {
            return Err(PairedError::NotPositive { block, value: logs[block] });
        }
        Ok(Self::with_bootstrap(&logs, || two_level_bootstrap(blocks, seed)))
    }

    fn with_bootstrap(
        logs: &[f64],
        bootstrap: impl FnOnce() -> Option<ConfidenceInterval>,
    ) -> Self {
        let mean_ln = mean(logs);
        Self {
            n: logs.len(),
            mean_ln,
            ratio: mean_ln.exp(),
            interval: (logs.len() >= BLOCKS_FOR_INTERVAL)
                .then(|| interval(logs, mean_ln, bootstrap())),
        }
    }
}

fn interval(logs: &[f64], mean_ln: f64, bootstrap: Option<ConfidenceInterval>) -> PairedInterval {
    let n = logs.len() as f64;
    let sd_ln = sd(logs);
    let error = sd_ln / n.sqrt();
    let reach = t_quantile(0.975, n - 1.0) * error;
    let student = ConfidenceInterval { low: mean_ln - reach, high: mean_ln + reach };
    let wider = bootstrap.map_or(student, |other| student.hull(other)).exp();
    // Without any spread 0 / 0 would be NaN: equal is equal, and what differs always differs surely.
    let p = match (mean_ln == 0.0, error == 0.0) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => two_sided_p(mean_ln / error, n - 1.0),
    };
    PairedInterval {
        low: wider.low,
        high: wider.high,
        sd_ln,
        student: student.exp(),
        bootstrap: bootstrap.map(ConfidenceInterval::exp),
        p,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_blocks_have_a_ratio_but_no_interval() {
        for n in 1..BLOCKS_FOR_INTERVAL {
            let paired = Paired::of(&vec![(3.0, 2.0); n], 1).unwrap();
            assert_eq!((paired.n, paired.interval), (n, None));
            assert!((paired.ratio - 1.5).abs() < 1e-12);
        }
    }

    #[test]
    fn what_has_no_logarithm_is_refused_by_its_block() {
        assert_eq!(Paired::of(&[], 1), Err(PairedError::Empty));
        for value in [0.0, -1.0, f64::INFINITY] {
            let refused = Paired::of(&[(1.0, 1.0), (2.0, value)], 1);
            assert_eq!(refused, Err(PairedError::NotPositive { block: 1, value }));
        }
        let not_a_number = Paired::of(&[(f64::NAN, 1.0)], 1);
        assert!(matches!(not_a_number, Err(PairedError::NotPositive { block: 0, .. })));
    }

    #[test]
    fn blocks_without_spread_give_a_point_and_a_sure_answer() {
        let equal = Paired::of(&[(7.0, 7.0); 9], 1).unwrap().interval.unwrap();
        assert_eq!((equal.low, equal.high, equal.p), (1.0, 1.0, 1.0));
        let differing = Paired::of(&[(1.1, 1.0); 9], 1).unwrap();
        let interval = differing.interval.unwrap();
        assert_eq!((interval.sd_ln, interval.p, interval.bootstrap), (0.0, 0.0, None));
        assert!((interval.low - 1.1).abs() < 1e-12 && (interval.high - 1.1).abs() < 1e-12);
    }

    #[test]
    fn swapping_the_sides_inverts_the_ratio_and_keeps_p() {
        let blocks = [(5.0, 4.0), (5.2, 4.1), (4.8, 4.3), (5.1, 3.9)];
        let swapped = blocks.map(|(a, b)| (b, a));
        let (one, other) = (Paired::of(&blocks, 1).unwrap(), Paired::of(&swapped, 1).unwrap());
        assert!((one.ratio * other.ratio - 1.0).abs() < 1e-12);
        let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
        assert!((one.low * other.high - 1.0).abs() < 1e-12);
        assert!((one.p - other.p).abs() < 1e-12);
    }
}
