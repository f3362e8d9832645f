//! When replies came, finely enough to see bursts and silences. Start reading at [`Completions`].

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Good replies by the instant at which they were complete, in bins of equal length from the start of the load. In a
/// load longer than [`Completions::BINS_MAX`] bins the bin length doubles.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completions {
    /// Length of a bin; zero if nothing was recorded (older files).
    pub bin: Nanos,
    /// Replies in each bin. Bins after the last reply are left out.
    pub counts: Vec<u32>,
}

impl Completions {
    /// Length of a bin at first.
    pub const BIN: Nanos = Nanos::from_millis(1);
    /// Maximum number of bins: 16 s at first.
    pub const BINS_MAX: usize = 16_384;

    /// Empty, with room for all bins.
    pub fn new() -> Self {
        Self { bin: Self::BIN, counts: Vec::with_capacity(Self::BINS_MAX) }
    }

    /// Records a reply that was complete at `at`, since the start of the load. Does not allocate after
    /// [`Completions::new`].
    #[inline]
    pub fn record(&mut self, at: Nanos) {
        let mut index = (at.0 / self.bin.0) as usize;
        while index >= Self::BINS_MAX {
            self.halve();
            index = (at.0 / self.bin.0) as usize;
        }
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(1);
    }

    /// Adds the replies of another thread; the result has the longer bins of the two.
    pub fn merge(&mut self, other: &Self) {
        self.merge_at(Nanos::ZERO, other);
    }

    /// Adds the replies of another load that started at `start` on this time axis, rounded to whole bins; the result
    /// has the longer bins of the two.
    pub fn merge_at(&mut self, start: Nanos, other: &Self) {
        if other.bin == Nanos::ZERO {
            return;
        }
        if self.bin == Nanos::ZERO {
            self.bin = Self::BIN;
        }
        let mut other = other.clone();
        while self.bin < other.bin {
            self.halve();
        }
        while other.bin < self.bin {
            other.halve();
        }
        let first = |bin: Nanos| (start.0.saturating_add(bin.0 / 2) / bin.0) as usize;
        while first(self.bin) + other.counts.len() > Self::BINS_MAX {
            self.halve();
            other.halve();
        }
        let first = first(self.bin);
        let len = self.counts.len().max(first + other.counts.len());
        self.counts.resize(len, 0);
        for (sum, more) in self.counts[first..].iter_mut().zip(&other.counts) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// Replies in all bins.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// The bins that lie entirely between two instants since the start of the load.
    pub fn between(&self, from: Nanos, until: Nanos) -> &[u32] {
        if self.bin == Nanos::ZERO {
            return &[];
        }
        let first = (from.0.div_ceil(self.bin.0) as usize).min(self.counts.len());
        let end = ((until.0 / self.bin.0) as usize).clamp(first, self.counts.len());
        &self.counts[first..end]
    }

    /// Half as many bins, each twice as long.
    fn halve(&mut self) {
        for at in 0..self.counts.len().div_ceil(2) {
            let second = self.counts.get(2 * at + 1).copied().unwrap_or(0);
            self.counts[at] = self.counts[2 * at].saturating_add(second);
        }
        self.counts.truncate(self.counts.len().div_ceil(2));
        self.bin = Nanos(self.bin.0.saturating_mul(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_where_a_load_is_long_and_nothing_is_lost() {
        let mut all = Completions::new();
        let capacity = all.counts.capacity();
        for second in 0..40 {
            (0..3).for_each(|_| all.record(Nanos::from_secs(second)));
        }
        assert_eq!((all.bin, all.counts.iter().sum::<u32>()), (Nanos::from_millis(4), 120));
        assert_eq!(all.counts.capacity(), capacity, "no allocation while a load runs");
        let mut few = Completions::new();
        few.record(Nanos::from_millis(1001));
        few.merge(&all);
        assert_eq!((few.bin, few.counts[250], few.counts[0]), (Nanos::from_millis(4), 4, 3));
        all.merge(&Completions::default());
        assert_eq!(all.counts.iter().sum::<u32>(), 120);
    }

    #[test]
    fn loads_that_began_at_other_instants_lie_on_one_axis() {
        let of = |millis: &[u64]| {
            let mut one = Completions::new();
            millis.iter().for_each(|at| one.record(Nanos::from_millis(*at)));
            one
        };
        let mut sum = Completions::default();
        sum.merge_at(Nanos::ZERO, &of(&[0, 2]));
        sum.merge_at(Nanos::from_micros(1600), &of(&[0, 1]));
        assert_eq!((sum.bin, sum.counts.as_slice()), (Completions::BIN, &[1, 0, 2, 1][..]));
        sum.merge_at(Nanos::from_secs(60), &of(&[9]));
        assert_eq!((sum.bin, sum.total()), (Nanos::from_millis(4), 5));
        assert_eq!((sum.counts[0], sum.counts[15_002]), (4, 1));
    }

    #[test]
    fn only_whole_bins_lie_between_two_instants() {
        let mut all = Completions::new();
        for millis in 0..10 {
            (0..=millis).for_each(|_| all.record(Nanos::from_millis(millis)));
        }
        assert_eq!(all.between(Nanos::from_micros(1500), Nanos::from_micros(4900)), [3, 4]);
        assert!(all.between(Nanos::from_secs(1), Nanos::from_secs(2)).is_empty());
        assert!(Completions::default().between(Nanos::ZERO, Nanos::from_secs(2)).is_empty());
    }
}
