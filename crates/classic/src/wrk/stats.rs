//! wrk's statistics: values with their frequencies, with wrk's correction, means and percentiles. Owns their
//! arithmetic, including quirks. Start reading at [`Stats`].

/// Values (microseconds, requests a second) in rising order, each with its count.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stats {
    seen: Vec<(u64, u64)>,
}

/// Most values that a correction looks at: beyond 16 s it does so in coarser steps than
/// microseconds, so that it needs 134 MB at most.
const CORRECTED_MAX: u64 = 1 << 24;

impl Stats {
    /// From values with their counts, in any order.
    pub(super) fn of(values: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut sorted: Vec<(u64, u64)> = values.into_iter().filter(|seen| seen.1 > 0).collect();
        sorted.sort_unstable();
        let mut seen: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
        for (value, count) in sorted {
            match seen.last_mut() {
                Some((last, sum)) if *last == value => *sum += count,
                _ => seen.push((value, count)),
            }
        }
        Self { seen }
    }

    /// wrk's correction for coordinated omission. If a value is at least twice the expected interval, a
    /// user who asks at even intervals would have waited too. So wrk adds a value at every expected
    /// interval below it, as long as that is above one interval. Returns the number of values added.
    pub(super) fn correct(&mut self, expected: u64) -> u64 {
        if expected == 0 || self.max() < expected.saturating_mul(2) {
            return 0;
        }
        let grain = self.max() / CORRECTED_MAX + 1;
        let step = (expected / grain).max(1) as usize;
        let mut long = vec![0u64; (self.max() / grain) as usize + 1];
        for (value, count) in self.seen.iter().filter(|(value, _)| *value >= expected * 2) {
            long[(value / grain) as usize] += count;
        }
        // From the top: what is added at one place is a source for the next one below.
        let mut added = Vec::new();
        let mut n_added = 0;
        for place in (step + 1..long.len().saturating_sub(step)).rev() {
            let count = long[place + step];
            if count > 0 {
                long[place] += count;
                added.push((place as u64 * grain, count));
                n_added += count;
            }
        }
        *self = Self::of(self.seen.iter().copied().chain(added));
        n_added
    }

    /// Number of values seen.
    pub(super) fn count(&self) -> u64 {
        self.seen.iter().map(|(_, count)| count).sum()
    }

    /// Without values it is the largest number, as in wrk.
    pub(super) fn min(&self) -> u64 {
        self.seen.first().map_or(u64::MAX, |(value, _)| *value)
    }

    /// 0 without values.
    pub(super) fn max(&self) -> u64 {
        self.seen.last().map_or(0, |(value, _)| *value)
    }

    /// 0 without values.
    pub(super) fn mean(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            n => {
                self.seen.iter().map(|(value, count)| value * count).sum::<u64>() as f64 / n as f64
            }
        }
    }

    /// Standard deviation of a sample (n - 1); 0 for fewer than two values.
    pub(super) fn sd(&self) -> f64 {
        let (n, mean) = (self.count(), self.mean());
        if n < 2 {
            return 0.0;
        }
        let squares = self.seen.iter().map(|(v, count)| (*v as f64 - mean).powi(2) * *count as f64);
        (squares.sum::<f64>() / (n - 1) as f64).sqrt()
    }

    /// Percent of values within one standard deviation of the mean; `None` without values.
    pub(super) fn within_sd(&self) -> Option<f64> {
        let (n, mean, sd) = (self.count(), self.mean(), self.sd());
        let is_within = |value: u64| (mean - sd..=mean + sd).contains(&(value as f64));
        let within: u64 = self.seen.iter().filter(|(v, _)| is_within(*v)).map(|seen| seen.1).sum();
        (n > 0).then(|| within as f64 / n as f64 * 100.0)
    }

    /// A percentile; 0 if the rank is too high.
    pub(super) fn percentile(&self, percent: f64) -> u64 {
        // Rounded as in C; a negative rank becomes the largest number, as when C converts it to unsigned.
        let rank = (percent / 100.0 * self.count() as f64 + 0.5).round();
        let rank = if rank < 0.0 { u64::MAX } else { rank as u64 };
        let mut total = 0;
        let found = self.seen.iter().find(|(_, count)| {
            total += count;
            total >= rank
        });
        found.map_or(0, |(value, _)| *value)
    }

    /// Number of different values.
    pub(super) fn n_values(&self) -> usize {
        self.seen.len()
    }

    /// The n-th value and its count; if there are fewer, 0 and their number, as in wrk.
    pub(super) fn nth(&self, index: usize) -> (u64, u64) {
        self.seen.get(index).copied().unwrap_or((0, self.seen.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_of_none_are_those_of_wrk() {
        let none = Stats::default();
        assert_eq!((none.min(), none.max(), none.mean(), none.sd()), (u64::MAX, 0, 0.0, 0.0));
        assert_eq!((none.within_sd(), none.percentile(50.0), none.nth(0)), (None, 0, (0, 0)));
        let one = Stats::of([(6, 1)]);
        assert_eq!((one.sd(), one.within_sd(), one.percentile(99.0)), (0.0, Some(100.0), 6));
    }

    /// The figures come from Debian's wrk: one stall among 41 replies, printed by its done().
    #[test]
    fn a_stall_is_filled_up_as_wrk_fills_it_up() {
        let mut stats = Stats::of([(13_000, 40), (507_980, 1)]);
        assert_eq!(stats.correct(25_038), 19);
        assert_eq!((stats.count(), stats.n_values(), stats.max()), (60, 21, 507_980));
        assert_eq!(
            (stats.nth(1), stats.nth(2), stats.nth(19)),
            ((32_258, 1), (57_296, 1), (482_942, 1))
        );
        assert_eq!((stats.percentile(50.0), stats.percentile(99.0)), (13_000, 507_980));
        assert_eq!([0.0, 100.0, 200.0, -5.0].map(|p| stats.percentile(p)), [13_000, 0, 0, 0]);
    }

    #[test]
    fn very_long_waits_are_filled_up_in_coarser_steps() {
        let mut stats = Stats::of([(1_000, 10), (600_000_000, 2)]);
        let n_added = stats.correct(1_000_000);
        assert!((1_190..=1_210).contains(&n_added), "{n_added}");
        assert_eq!(stats.max(), 600_000_000);
    }

    /// The algorithm of wrk's documentation, value by value.
    fn corrected(values: &[(u64, u64)], expected: u64) -> Stats {
        let mut all = values.to_vec();
        for (value, count) in values.iter().filter(|(value, _)| *value >= expected * 2) {
            let mut at = value - expected;
            while at > expected {
                all.push((at, *count));
                at -= expected;
            }
        }
        Stats::of(all)
    }

    proptest! {
        #[test]
        fn filling_up_at_once_is_filling_up_one_by_one(
            values in prop::collection::vec((1..5_000u64, 1..4u64), 0..40),
            expected in 1..900u64,
        ) {
            let mut stats = Stats::of(values.iter().copied());
            let before = stats.count();
            let n_added = stats.correct(expected);
            prop_assert_eq!(stats.count(), before + n_added);
            prop_assert_eq!(stats, corrected(&values, expected));
        }
    }
}
