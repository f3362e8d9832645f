//! Owns where a series changes its level or its spread, and how it is classified: flat, warming up, slowing down, or
//! never steady. Must not know what was counted. Start reading at [`steadiness`].
//!
//! Change points by PELT (Killick, Fearnhead and Eckley 2012): the segments that minimise minus twice the log
//! likelihood of normal laws with a mean and a variance each, plus a penalty per change. The four classes are those of
//! Barrett et al. (2017, Virtual Machine Warmup Blows Hot and Cold).

use crate::best::Better;
use crate::moments::{mean, sd};

/// Shortest segment: the spread of fewer values cannot be estimated.
pub const SEGMENT_MIN: usize = 5;
/// Penalty of a change in units of ln n. A change costs three parameters (place, mean, variance), so BIC takes 3. But
/// stretches of a load depend on each other: 3 ln n splits every fourth series of 60 values with a lag-1 correlation of
/// 0.3. With 6 it splits one in 300 of those, and finds a step of two standard deviations in seven of ten. (Barrett et
/// al. take 15, for thousands of values.)
const PENALTY: f64 = 6.0;
/// Smallest variance of a segment, as a share of that of the whole series: equal counts have zero variance, for which
/// there is no likelihood.
const VARIANCE_MIN: f64 = 1e-4;
/// The last level must hold for this share of the series to be called steady.
const STEADY_SHARE: f64 = 0.25;

/// What a series does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steadiness {
    /// One level throughout.
    Flat,
    /// It ends on its best level.
    WarmUp {
        /// Values before its final level begins.
        settled: usize,
    },
    /// It ends on a level that is not its best.
    Slowdown {
        /// Values before its final level begins.
        settled: usize,
    },
    /// It changes up to its end.
    NoSteadyState,
}

/// Classifies a series. Levels count as one if they are within `tolerance` (a share, 0 or more) of the last level, or
/// within its standard deviation. A series of fewer than 20 values, or of equal ones, is flat. No value may be NaN.
pub fn steadiness(series: &[f64], better: Better, tolerance: f64) -> Steadiness {
    let mut edges = change_points(series);
    edges.insert(0, 0);
    edges.push(series.len());
    let segments: Vec<&[f64]> = edges.windows(2).map(|edge| &series[edge[0]..edge[1]]).collect();
    let levels: Vec<f64> = segments.iter().map(|segment| mean(segment)).collect();
    let (Some(&last), Some(end)) = (levels.last(), segments.last()) else { unreachable!() };
    if segments.len() == 1 {
        return Steadiness::Flat;
    }
    let near = (tolerance * last.abs()).max(sd(end));
    let is_last = |level: &f64| (level - last).abs() <= near;
    let first = levels.len() - levels.iter().rev().take_while(|level| is_last(level)).count();
    let settled = edges[first];
    if ((series.len() - settled) as f64) < STEADY_SHARE * series.len() as f64 {
        return Steadiness::NoSteadyState;
    }
    let beats_last = |level: &f64| match better {
        Better::Higher => *level > last + near,
        Better::Lower => *level < last - near,
    };
    match settled {
        0 => Steadiness::Flat,
        _ if levels.iter().any(beats_last) => Steadiness::Slowdown { settled },
        _ => Steadiness::WarmUp { settled },
    }
}

/// The starts of all segments but the first, rising; empty for fewer than 20 values. No value may be NaN.
///
/// Exact: the result of trying every division into segments of at least [`SEGMENT_MIN`] values.
pub fn change_points(series: &[f64]) -> Vec<usize> {
    let n = series.len();
    if n < 4 * SEGMENT_MIN {
        return Vec::new();
    }
    let penalty = PENALTY * (n as f64).ln();
    let Some(cost) = Cost::of(series) else { return Vec::new() };
    // Lowest cost of the values before each place, and where the last segment of that division begins.
    let mut least = vec![f64::INFINITY; n + 1];
    let mut begins = vec![0; n + 1];
    least[0] = -penalty;
    // Places where the last segment may begin, each with the end from which it can no longer be the best.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for end in SEGMENT_MIN..=n {
        open.push((end - SEGMENT_MIN, usize::MAX));
        open.retain(|(_, until)| end < *until);
        for &(begin, _) in &open {
            let total = least[begin] + cost.segment(begin, end) + penalty;
            if total < least[end] {
                (least[end], begins[end]) = (total, begin);
            }
        }
        for (begin, until) in &mut open {
            // A change at `end` is no worse than one at `begin`, as soon as the segment from `end` on is long enough.
            if least[*begin] + cost.segment(*begin, end) >= least[end] {
                *until = (*until).min(end + SEGMENT_MIN);
            }
        }
    }
    let mut found = Vec::new();
    let mut at = begins[n];
    while at > 0 {
        found.push(at);
        at = begins[at];
    }
    found.reverse();
    found
}

/// Minus twice the log likelihood of segments, without the constant that all divisions share.
struct Cost {
    sums: Vec<f64>,
    squares: Vec<f64>,
    variance_min: f64,
}

impl Cost {
    /// `None` if the series does not vary.
    fn of(series: &[f64]) -> Option<Self> {
        let (centre, spread) = (mean(series), sd(series));
        if spread == 0.0 {
            return None;
        }
        let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
        for (index, value) in series.iter().enumerate() {
            // Standardised, so that differences of sums stay accurate enough.
            let scaled = (value - centre) / spread;
            sums.push(sums[index] + scaled);
            squares.push(squares[index] + scaled * scaled);
        }
        Some(Self { sums, squares, variance_min: VARIANCE_MIN })
    }

    /// At the most likely variance, but at least `variance_min`. So splitting a segment in two never costs more than
    /// the whole, which PELT's pruning relies on.
    fn segment(&self, begin: usize, end: usize) -> f64 {
        let n = (end - begin) as f64;
        let sum = self.sums[end] - self.sums[begin];
        let variance = ((self.squares[end] - self.squares[begin] - sum * sum / n) / n).max(0.0);
        let likely = variance.max(self.variance_min);
        n * (likely.ln() + variance / likely)
    }
}
