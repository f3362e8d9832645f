//! Owns the interval type that all estimates share.

/// An interval that holds the truth in 95 % of sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl ConfidenceInterval {
    /// From logs to ratios.
    pub(crate) fn exp(self) -> Self {
        Self { low: self.low.exp(), high: self.high.exp() }
    }
}
