//! Owns the filter by which callers query a history.

use record::Metric;

/// Which runs or series are wanted; `None` matches everything.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Name of the study.
    pub study: Option<String>,
    /// Name of the contender.
    pub contender: Option<String>,
    /// Name of the cell.
    pub cell: Option<String>,
    /// The metric.
    pub metric: Option<Metric>,
}
