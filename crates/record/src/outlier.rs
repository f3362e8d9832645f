//! A visit that is far from the others.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// A visit whose value is far from the expectation: from its contender's other visits and from the other contenders in
/// its block. It stays in every estimate, with the weight that the estimate gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutlyingVisit {
    /// Index of the cell.
    pub cell: usize,
    /// The metric.
    pub metric: Metric,
    /// Index of the contender.
    pub contender: usize,
    /// The block.
    pub block: u32,
    /// What was measured, in the metric's own unit.
    pub value: f64,
    /// Median over the contender's visits.
    pub usual: f64,
    /// `value` over the expected value in that block, above 0.
    pub off: f64,
}
