//! What is known of a run while it goes on. It is shown and then forgotten: no file has it.

use units::Nanos;

/// The progress of a run, and what the time left is made of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the start of the run.
    pub elapsed: Nanos,
    /// Estimate of the time that is left, at most; narrow intervals may end the run sooner.
    pub left: Nanos,
    /// The part of it that this block takes.
    pub left_of_block: Nanos,
    /// Blocks after this one that fit the budget and the plan.
    pub blocks_left: u32,
    /// How long each of them takes.
    pub block_time: Nanos,
    /// Visits that the estimate is based on; before the first it rests on the plan.
    pub visits_seen: u64,
}

/// What is known so far of a pair of contenders, on the primary metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSoFar {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the numerator.
    pub a: usize,
    /// Index of the denominator.
    pub b: usize,
    /// Blocks with a visit of both.
    pub blocks: u32,
    /// a over b.
    pub ratio: f64,
    /// Its 95 % interval; `None` with fewer than three blocks.
    pub interval: Option<(f64, f64)>,
}

impl PairSoFar {
    /// How far the farther end of the interval is from the ratio, as a share of it. The plan's `half_width` limits it.
    pub fn half_width(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        Some((high / self.ratio).max(self.ratio / low) - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farther_end_of_an_interval_is_its_half_width() {
        let pair =
            PairSoFar { cell: 0, a: 0, b: 1, blocks: 3, ratio: 2.0, interval: Some((1.6, 2.2)) };
        assert!((pair.half_width().unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(PairSoFar { interval: None, ..pair }.half_width(), None);
    }
}
