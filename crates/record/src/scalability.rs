//! How throughput grows with connections.

use serde::{Deserialize, Serialize};

use crate::shift::Band;

/// The Universal Scalability Law of a contender over the cells of a study that differ in their
/// connections: X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scalability {
    /// Index of the contender.
    pub contender: usize,
    /// Indices of the cells, by rising connections; three or more.
    pub cells: Vec<usize>,
    /// Their connections.
    pub connections: Vec<u32>,
    /// Requests/s of a single connection.
    pub lambda: Coefficient,
    /// Contention: the share of the work that is serialised.
    pub sigma: Coefficient,
    /// Coherency: the cost between each pair of connections.
    pub kappa: Coefficient,
    /// Connections of the highest throughput; `None` if it never falls.
    pub peak: Option<f64>,
    /// Largest distance of a level from the law, in ln: above 0.1 the law does not describe it.
    pub misfit_ln: f64,
}

/// A coefficient of the law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// Best fit.
    pub value: f64,
    /// 95 % interval over blocks; `None` with too few blocks.
    pub interval: Option<Band>,
}
