//! Owns the comparison of two whole distributions, quantile by quantile: the shift function (Doksum
//! 1974; Wilcox) with a band that holds all quantiles at once. Must not know whose latencies they are.
//! Start reading at [`Profile::of`], then [`shift`].
//!
//! Requests within a visit depend on each other, so whole blocks are drawn, with the histogram of every visit in them;
//! the quantile is that of the merged counts, never a mean of quantiles. All contenders share the draws, so a
//! contender's part is computed only once, and not for each pair.
//!
//! Cost of a profile: 999 merges of the blocks' buckets, 10 to 60 ms.

use crate::bootstrap::BOOTSTRAP_MIN;
use crate::confidence::ConfidenceInterval;
use crate::harrell_davis::Weights;
use crate::histogram::{Histogram, samples_needed};
use crate::moments::sd;
use crate::quantile::quantile;
use crate::resample::Draws;
use crate::student::{t_quantile, z_quantile};

/// The quantiles that are compared, as far as there are enough samples.
pub const SHIFT_QUANTILES: [f64; 11] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999];

const RESAMPLES: usize = 999;

/// The quantiles of one side: of all blocks, and of every resample of the blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    blocks: usize,
    seed: u64,
    /// A quantile, its value in ns, and its values in the resamples.
    quantiles: Vec<(f64, f64, Vec<f64>)>,
}

impl Profile {
    /// From one histogram per block. `None` with fewer than [`BOOTSTRAP_MIN`] blocks, or with too few spans for any of
    /// [`SHIFT_QUANTILES`]. Profiles with the same seed and blocks share their draws.
    pub fn of(visits: &[&Histogram], seed: u64) -> Option<Self> {
        let total: u64 = visits.iter().map(|visit| visit.count()).sum();
        let bears = |q: &f64| total >= samples_needed(*q);
        let weights: Vec<(f64, Weights)> = SHIFT_QUANTILES
            .into_iter()
            .filter(bears)
            .filter_map(|q| Some((q, Weights::new(total, q)?)))
            .collect();
        if visits.len() < BOOTSTRAP_MIN || weights.is_empty() {
            return None;
        }
        let grid = Grid::of(visits);
        let all: Vec<usize> = (0..visits.len()).collect();
        let cumulative = grid.cumulative(&all);
        let mut quantiles: Vec<(f64, f64, Vec<f64>)> = weights
            .iter()
            .map(|(q, weights)| (*q, weights.quantile(&grid.spans, &cumulative), Vec::new()))
            .collect();
        let mut draws = Draws::new(seed);
        let mut chosen = all;
        for _ in 0..RESAMPLES {
            draws.fill(&mut chosen);
            let cumulative = grid.cumulative(&chosen);
            // A resample without any request has no quantile; it keeps the value of all blocks.
            let is_empty = cumulative.last() == Some(&0.0);
            for ((_, seen, resampled), (_, weights)) in quantiles.iter_mut().zip(&weights) {
                let value = match is_empty {
                    true => *seen,
                    false => weights.quantile(&grid.spans, &cumulative),
                };
                resampled.push(value);
            }
        }
        Some(Self { blocks: visits.len(), seed, quantiles })
    }
}

/// Counts of every visit on common spans, so that merging a resample means adding rows.
struct Grid {
    /// In ns, rising.
    spans: Vec<f64>,
    /// One row per visit: index of the span, count.
    rows: Vec<Vec<(usize, f64)>>,
}

impl Grid {
    fn of(visits: &[&Histogram]) -> Self {
        let mut spans: Vec<u64> =
            visits.iter().flat_map(|visit| visit.buckets().map(|(span, _)| span.0)).collect();
        spans.sort_unstable();
        spans.dedup();
        let place = |span: u64| spans.binary_search(&span).expect("every span is in the grid");
        let row = |visit: &&Histogram| {
            visit.buckets().map(|(span, count)| (place(span.0), count as f64)).collect()
        };
        let rows = visits.iter().map(row).collect();
        Self { spans: spans.into_iter().map(|span| span as f64).collect(), rows }
    }

    fn cumulative(&self, chosen: &[usize]) -> Vec<f64> {
        let mut counts = vec![0.0; self.spans.len()];
        for visit in chosen {
            self.rows[*visit].iter().for_each(|(place, count)| counts[*place] += count);
        }
        let mut sum = 0.0;
        for count in &mut counts {
            sum += *count;
            *count = sum;
        }
        counts
    }
}

/// A quantile of both sides and how far they are apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShiftPoint {
    /// Which quantile, 0 to 1.
    pub q: f64,
    /// That of a, ns.
    pub a_ns: f64,
    /// That of b, ns.
    pub b_ns: f64,
    /// a minus b, ns: the ends of the band.
    pub difference_ns: ConfidenceInterval,
    /// a over b: the ends of the band.
    pub ratio: ConfidenceInterval,
}

/// The shift function of two profiles of the same blocks and seed, over the quantiles that both have. Each of its two
/// bands holds its whole function, all quantiles at once, in 95 % of sessions.
///
/// The width is the spread over the resamples, times the 95 % quantile of its largest excess at any quantile, times
/// sqrt(n/(n-1)) t/z for n blocks: as for BCa, draws of few blocks vary too little.
///
/// # Panics
/// If the profiles differ in seed or number of blocks: they would not draw the same blocks, and what blocks share would
/// not cancel.
pub fn shift(a: &Profile, b: &Profile) -> Vec<ShiftPoint> {
    assert_eq!((a.blocks, a.seed), (b.blocks, b.seed), "profiles share their blocks and draws");
    let n = a.blocks as f64;
    let few = t_quantile(0.975, n - 1.0) / z_quantile(0.975) * (n / (n - 1.0)).sqrt();
    let both: Vec<_> = a.quantiles.iter().zip(&b.quantiles).collect();
    let band = |distance: fn(f64, f64) -> f64| {
        let apart: Vec<(f64, Vec<f64>)> = both
            .iter()
            .map(|((_, a, of_a), (_, b, of_b))| {
                let resampled = of_a.iter().zip(of_b).map(|(a, b)| distance(*a, *b)).collect();
                (distance(*a, *b), resampled)
            })
            .collect();
        simultaneous(&apart, few)
    };
    let differences = band(|a, b| a - b);
    let ratios = band(|a, b| (a / b).ln());
    both.iter()
        .zip(differences.into_iter().zip(ratios))
        .map(|(((q, a, _), (_, b, _)), (difference_ns, ratio))| ShiftPoint {
            q: *q,
            a_ns: *a,
            b_ns: *b,
            difference_ns,
            ratio: ratio.exp(),
        })
        .collect()
}

/// The band around each value that holds all of them at once, from their values in the resamples.
fn simultaneous(apart: &[(f64, Vec<f64>)], few: f64) -> Vec<ConfidenceInterval> {
    let spreads: Vec<f64> = apart.iter().map(|(_, resampled)| sd(resampled)).collect();
    let excess = |resample: usize| {
        let of = |((seen, resampled), spread): (&(f64, Vec<f64>), &f64)| match *spread > 0.0 {
            true => (resampled[resample] - seen).abs() / spread,
            false => 0.0,
        };
        apart.iter().zip(&spreads).map(of).fold(0.0, f64::max)
    };
    let excesses: Vec<f64> = (0..RESAMPLES).map(excess).collect();
    let reach = few * quantile(&excesses, 0.95).expect("there are resamples");
    apart
        .iter()
        .zip(spreads)
        .map(|((seen, _), spread)| ConfidenceInterval {
            low: seen - reach * spread,
            high: seen + reach * spread,
        })
        .collect()
}
