//! Owns what a caller asks a history for.

use record::Metric;

/// Which runs or series are asked for; what is `None` is not asked for by.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Name of the study.
    pub study: Option<String>,
    /// Name of the contender.
    pub contender: Option<String>,
    /// Name of the cell.
    pub cell: Option<String>,
    /// Of what.
    pub metric: Option<Metric>,
}
