//! The intervals of a whole load: those of all threads merged, at most [`INTERVALS_MAX`] of them. Start
//! reading at [`Series::add`].

use record::Interval;

/// Most intervals kept: two minutes at the default of 100 ms. Beyond that, neighbours are joined, so that memory does
/// not grow with time. Each is packed by `stats`: some 10 KB instead of 540 KB, which would be 650 MB for two
/// minutes.
pub(crate) const INTERVALS_MAX: usize = 1200;

/// Intervals in order, without gaps, all of the same length except the last.
#[derive(Default)]
pub(crate) struct Series {
    intervals: Vec<Interval>,
    /// Intervals added so far.
    n_added: usize,
    /// log2 of the number of added intervals that make one kept interval.
    joined_log2: u32,
}

impl Series {
    /// Adds the interval that follows the last one.
    pub(crate) fn add(&mut self, mut interval: Interval) {
        pack(&mut interval);
        let place = self.n_added >> self.joined_log2;
        self.n_added += 1;
        if let Some(open) = self.intervals.get_mut(place) {
            join(open, &interval);
        } else if place < INTERVALS_MAX {
            self.intervals.push(interval);
        } else {
            self.join_neighbours();
            self.intervals.push(interval);
        }
    }

    fn join_neighbours(&mut self) {
        // INTERVALS_MAX is even, so every interval has a neighbour.
        let mut pairs = std::mem::take(&mut self.intervals).into_iter();
        while let (Some(mut left), Some(right)) = (pairs.next(), pairs.next()) {
            join(&mut left, &right);
            self.intervals.push(left);
        }
        self.joined_log2 += 1;
    }

    /// All of them.
    pub(crate) fn into_intervals(self) -> Vec<Interval> {
        self.intervals
    }
}

fn join(left: &mut Interval, right: &Interval) {
    left.merge(right);
    left.length = right.end().saturating_sub(left.start);
    pack(left);
}

fn pack(interval: &mut Interval) {
    interval.service.pack();
    interval.response.pack();
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    fn series(n_intervals: u64) -> Vec<Interval> {
        let mut series = Series::default();
        for n in 0..n_intervals {
            let mut interval = Interval::new(Nanos(n * 10), Nanos(10));
            interval.ok = 1;
            interval.service.record(Nanos(n + 1));
            series.add(interval);
        }
        series.into_intervals()
    }

    #[test]
    fn a_long_load_has_a_bounded_number_of_intervals_without_gaps() {
        for n in [1, 1199, 1200, 1201, 2400, 2401, 5003] {
            let intervals = series(n);
            assert!(intervals.len() <= INTERVALS_MAX);
            assert!(n < 1200 || intervals.len() > INTERVALS_MAX / 2 - 1, "{n}");
            assert_eq!(intervals.iter().map(|interval| interval.ok).sum::<u64>(), n);
            assert_eq!(intervals.iter().map(|i| i.service.count()).sum::<u64>(), n);
            assert_eq!(intervals[0].start, Nanos::ZERO);
            assert_eq!(intervals.last().unwrap().end(), Nanos(n * 10));
            assert!(intervals.windows(2).all(|pair| pair[0].end() == pair[1].start), "{n}");
            let length = intervals[0].length;
            let all_but_last = &intervals[..intervals.len() - 1];
            assert!(all_but_last.iter().all(|interval| interval.length == length), "{n}");
        }
    }
}
