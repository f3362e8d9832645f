//! Two distributions of service times, quantile by quantile, and what makes them differ.

use serde::{Deserialize, Serialize};
use units::{Nanos, Share};

/// Quantiles of service time of two contenders in a cell, each over all visits of its blocks merged.
/// A band holds the whole function, all quantiles at once, in 95 % of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the numerator.
    pub a: usize,
    /// Index of the denominator.
    pub b: usize,
    /// Blocks in which both have a measured visit.
    pub blocks: u32,
    /// Deciles, p99 and p99.9, as far as there are enough samples.
    pub points: Vec<ShiftPoint>,
}

/// One quantile of both.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShiftPoint {
    /// The quantile, 0 to 1.
    pub q: f64,
    /// That of a, ms.
    pub a_ms: f64,
    /// That of b, ms.
    pub b_ms: f64,
    /// a minus b, ms: the band.
    pub difference_ms: Band,
    /// a over b: the band.
    pub ratio: Band,
}

/// The ends of an interval or band.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the lower end and the upper")]
pub struct Band {
    pub low: f64,
    pub high: f64,
}

/// How much of the difference of two mean service times is stalls and how much is the rest: the two parts add up, in ms
/// and in logarithms. At a fixed number of connections throughput is connections over mean response time, so the parts
/// of ln(throughput) are those of `ln` with the opposite sign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the numerator.
    pub a: usize,
    /// Index of the denominator.
    pub b: usize,
    /// Blocks in which both have a measured visit.
    pub blocks: u32,
    /// The modes of a's service times.
    pub of_a: Modes,
    /// The modes of b's service times.
    pub of_b: Modes,
    /// What the main modes contribute to a minus b.
    pub service: CauseShare,
    /// What the stalls contribute.
    pub stalls: CauseShare,
    /// The stalls' part of the ratio of the means: 1 if they explain all of it, above 1 or below 0 if the two pull in
    /// opposite directions; `None` if the means are equal.
    pub stall_share: Option<f64>,
}

/// The modes of a distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Modes {
    /// Mean of all, ms.
    pub mean_ms: f64,
    /// Mean without the stalls, ms.
    pub main_ms: f64,
    /// Modes far beyond the main one, rising.
    pub stalls: Vec<StallMode>,
}

/// Requests that took far longer than the rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StallMode {
    /// Shortest span counted to it.
    pub from: Nanos,
    /// Its share of all requests.
    pub share: Share,
    /// Their mean, ms.
    pub mean_ms: f64,
}

/// The contribution of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CauseShare {
    /// To the difference of the means, ms.
    pub difference_ms: f64,
    /// To ln of the ratio of the means.
    pub ln: f64,
    /// 95 % interval of `ln`; `None` with too few blocks.
    pub interval: Option<Band>,
}
