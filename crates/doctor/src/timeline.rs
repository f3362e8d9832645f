//! Owns the views of when replies came that several checks share: counts in equal bins, silences between them,
//! how unevenly they come, and with what period. Start reading at [`Timeline::measured`].
//!
//! A timeline ends where the load does: bins behind the last reply are there, and empty.

use record::{LoadRecord, Visit};
use units::Nanos;

/// Most lags of which a correlation is computed: its cost is lags times bins. Of bins of 1 ms it is two seconds.
const LAGS_MAX: usize = 2048;
/// A period fits this often, or the pattern has not come often enough to be called one.
const PERIODS_MIN: usize = 4;
/// Shortest period in bins: of two bins, one full and one empty is what chance and rounding make.
const PERIOD_BINS_MIN: usize = 3;
/// Of the strongest correlation. At a multiple of the period it may be a little stronger than at the period.
const NEARLY_STRONGEST: f64 = 0.6;

/// Good replies over a stretch of a load, in equal bins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timeline {
    /// Start of the first bin, since the start of the load.
    pub(crate) from: Nanos,
    /// Length of a bin, above zero.
    pub(crate) bin: Nanos,
    /// Replies in each bin; at least one bin.
    pub(crate) counts: Vec<u32>,
}

/// A stretch in which no reply came, on any connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Silence {
    /// Its start, since the start of the load.
    pub(crate) from: Nanos,
    /// Its whole empty bins: it was longer than this by two bins at most.
    pub(crate) length: Nanos,
}

/// A pattern that repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Period {
    /// Time from one to the next.
    pub(crate) length: Nanos,
    /// How far the correlation at this distance is above the lowest one at a shorter distance: 0 none, 1 a
    /// pattern that repeats exactly.
    pub(crate) strength: f64,
}

impl Timeline {
    /// What was measured of a visit: from its cut to the end of its load. `None` where nothing was recorded.
    pub(crate) fn measured(visit: &Visit, load: &LoadRecord) -> Option<Self> {
        Self::between(load, visit.cut, end(load))
    }

    /// A stretch of a load, in whole bins. `None` where it has none, or nothing was recorded.
    pub(crate) fn between(load: &LoadRecord, from: Nanos, until: Nanos) -> Option<Self> {
        let bin = load.completions.bin;
        if bin == Nanos::ZERO {
            return None;
        }
        let (first, end) = (from.0.div_ceil(bin.0), until.0 / bin.0);
        let mut counts = load.completions.between(from, until).to_vec();
        counts.resize(end.saturating_sub(first) as usize, 0);
        let from = Nanos(first * bin.0);
        (!counts.is_empty()).then_some(Self { from, bin, counts })
    }

    /// From the start of the first bin to the end of the last.
    pub(crate) fn length(&self) -> Nanos {
        Nanos(self.bin.0 * self.counts.len() as u64)
    }

    /// Replies in all bins.
    pub(crate) fn replies(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Replies in each `bins` neighbouring bins (at least 1); what is left at the end is left out.
    pub(crate) fn joined(&self, bins: usize) -> Vec<f64> {
        let sum = |chunk: &[u32]| chunk.iter().map(|&count| f64::from(count)).sum();
        self.counts.chunks_exact(bins).map(sum).collect()
    }

    /// Share of the bins in which no reply came.
    pub(crate) fn empty_share(&self) -> f64 {
        let empty = self.counts.iter().filter(|count| **count == 0).count();
        empty as f64 / self.counts.len() as f64
    }

    /// Index of dispersion: variance of the counts over their mean. 1 where replies come by chance, each on its
    /// own; less where they come evenly; as many as come together where they come in bursts. 0 without replies.
    pub(crate) fn dispersion(&self) -> f64 {
        let mean = self.mean();
        if mean > 0.0 { self.covariance(0) / mean } else { 0.0 }
    }

    /// Every silence of at least that length, in order, those cut by the start and the end included.
    pub(crate) fn silences(&self, at_least: Nanos) -> Vec<Silence> {
        let mut found = Vec::new();
        let mut begun = None;
        for (at, count) in self.counts.iter().copied().chain([1]).enumerate() {
            match (begun, count) {
                (None, 0) => begun = Some(at),
                (Some(first), 1..) => {
                    let length = Nanos(self.bin.0 * (at - first) as u64);
                    let from = self.from + Nanos(self.bin.0 * first as u64);
                    found.push(Silence { from, length });
                    begun = None;
                }
                _ => {}
            }
        }
        found.retain(|silence| silence.length >= at_least);
        found
    }

    /// The same in bins that are this many times as long (at least 1); what is left at the end is left out.
    pub(crate) fn coarser(&self, times: usize) -> Self {
        let counts = self.counts.chunks_exact(times).map(|chunk| chunk.iter().sum()).collect();
        Self { from: self.from, bin: Nanos(self.bin.0 * times as u64), counts }
    }

    /// The strongest pattern that repeats; of a period and its multiples, the period. `None` where there are
    /// too few bins, or the counts do not vary.
    pub(crate) fn period(&self) -> Option<Period> {
        let lags = (self.counts.len() / PERIODS_MIN).min(LAGS_MAX);
        let variance = self.covariance(0);
        if variance <= 0.0 || lags < PERIOD_BINS_MIN {
            return None;
        }
        let correlation: Vec<f64> = (0..=lags).map(|lag| self.covariance(lag) / variance).collect();
        let mut lowest = f64::INFINITY;
        let above = correlation.iter().map(|&here| {
            lowest = lowest.min(here);
            here - lowest
        });
        let strengths: Vec<f64> = above.collect();
        let strongest = strengths[PERIOD_BINS_MIN..].iter().copied().fold(0.0, f64::max);
        if strongest <= 0.0 {
            return None;
        }
        let is_near = |lag: &usize| strengths[*lag] >= NEARLY_STRONGEST * strongest;
        let mut lag = (PERIOD_BINS_MIN..=lags).find(is_near)?;
        while lag < lags && correlation[lag + 1] > correlation[lag] {
            lag += 1;
        }
        Some(Period { length: Nanos(self.bin.0 * lag as u64), strength: strengths[lag] })
    }

    fn mean(&self) -> f64 {
        self.replies() as f64 / self.counts.len() as f64
    }

    /// Covariance of the counts with themselves a given number of bins later, over all bins.
    fn covariance(&self, lag: usize) -> f64 {
        let mean = self.mean();
        let off = |count: &u32| f64::from(*count) - mean;
        let pairs = self.counts.iter().zip(self.counts.iter().skip(lag));
        pairs.map(|(a, b)| off(a) * off(b)).sum::<f64>() / self.counts.len() as f64
    }
}

/// Where the measured part of a load ends: replies that came while it drained are in no rate.
pub(crate) fn end(load: &LoadRecord) -> Nanos {
    let window = Nanos::from_secs_f64(load.seconds);
    load.plan.stop.duration.map_or(window, |planned| planned.min(window))
}

#[cfg(test)]
mod tests {
    use record::Completions;

    use super::*;
    use crate::testdata;

    fn of(counts: &[u32]) -> Timeline {
        Timeline { from: Nanos::ZERO, bin: Nanos::from_millis(1), counts: counts.to_vec() }
    }

    /// So many bins, of which every `every`th has `burst` replies.
    fn comb(bins: usize, every: usize, burst: u32) -> Timeline {
        let counts: Vec<u32> =
            (0..bins).map(|at| if at % every == 2 { burst } else { 0 }).collect();
        of(&counts)
    }

    #[test]
    fn only_what_was_measured_is_looked_at_up_to_the_end_of_the_load() {
        let mut load = testdata::load();
        load.completions = Completions { bin: Nanos::from_millis(1), counts: vec![2; 500] };
        let visit = Visit { cut: Nanos::from_micros(100_500), ..Visit::default() };
        let timeline = Timeline::measured(&visit, &load).unwrap();
        assert_eq!(
            (timeline.from, timeline.length()),
            (Nanos::from_millis(101), Nanos::from_millis(799))
        );
        assert_eq!(timeline.replies(), 2 * 399);
        let silent = Silence { from: Nanos::from_millis(500), length: Nanos::from_millis(400) };
        assert_eq!(timeline.silences(Nanos::from_millis(2)), [silent]);
        load.completions = Completions::default();
        assert_eq!(Timeline::measured(&visit, &load), None);
    }

    #[test]
    fn silences_are_found_wherever_they_lie() {
        let timeline = of(&[0, 0, 3, 0, 1, 0, 0, 0]);
        let found = timeline.silences(Nanos::from_millis(2));
        let spans: Vec<(u64, u64)> =
            found.iter().map(|one| (one.from.0 / 1_000_000, one.length.0 / 1_000_000)).collect();
        assert_eq!(spans, [(0, 2), (5, 3)]);
        assert_eq!(timeline.silences(Nanos::from_millis(1)).len(), 3);
        assert_eq!((timeline.empty_share(), timeline.joined(3)), (0.75, vec![3.0, 1.0]));
    }

    #[test]
    fn dispersion_is_the_size_of_bursts_and_none_of_even_replies() {
        assert_eq!(of(&[5; 40]).dispersion(), 0.0);
        assert_eq!(of(&[0; 40]).dispersion(), 0.0);
        // Of bursts of b in one of k bins it is b (1 - 1/k).
        assert!((comb(500, 50, 64).dispersion() - 64.0 * 0.98).abs() < 1e-9);
    }

    #[test]
    fn a_period_is_found_and_not_its_multiple() {
        for every in [3, 5, 10, 50, 100] {
            let period = comb(500, every, 64).period().unwrap();
            assert_eq!(period.length, Nanos::from_millis(every as u64));
            assert!(period.strength > 0.7, "{every}: {period:?}");
        }
        // Bursts each 7.3 ms fall into the seventh bin or the eighth.
        let mut counts = vec![0; 500];
        (0..68).for_each(|n| counts[(f64::from(n) * 7.3) as usize] = 64);
        let period = of(&counts).period().unwrap();
        assert_eq!(period.length, Nanos::from_millis(7));
        assert!(period.strength > 0.5, "{period:?}");
    }

    #[test]
    fn what_only_falls_or_does_not_vary_has_no_period() {
        assert_eq!(of(&[7; 100]).period(), None);
        assert_eq!(of(&[1, 0, 1]).period(), None);
        let mut step = vec![10; 50];
        step.extend([20; 50]);
        assert_eq!(of(&step).period(), None, "a step has no period");
    }
}
