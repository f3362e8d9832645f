//! A stretch of a load: what happened in it, in a form that merges exactly.

use serde::{Deserialize, Serialize};
use stats::Histogram;
use units::Nanos;

use crate::sample::ErrorCounts;

/// Counts and histograms of one stretch of time. A request belongs to the stretch in which it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Start, since the start of the load.
    pub start: Nanos,
    /// Length; all intervals of a load but the last have the same.
    pub length: Nanos,
    /// Requests begun in it.
    pub started: u64,
    /// Requests that ended with outcome `ok` in it.
    pub ok: u64,
    /// Requests that failed in it, by kind.
    pub errors: ErrorCounts,
    /// Bytes read in it, heads included.
    pub bytes_read: u64,
    /// CPU time that the generator's threads used in it.
    pub client_cpu: Nanos,
    /// Service times of the `ok` requests.
    #[serde(with = "crate::stored")]
    pub service: Histogram,
    /// Response times of the `ok` requests.
    #[serde(with = "crate::stored")]
    pub response: Histogram,
}

impl Interval {
    /// An empty stretch.
    pub fn new(start: Nanos, length: Nanos) -> Self {
        Self {
            start,
            length,
            started: 0,
            ok: 0,
            errors: ErrorCounts::default(),
            bytes_read: 0,
            client_cpu: Nanos::ZERO,
            service: Histogram::new(),
            response: Histogram::new(),
        }
    }

    /// Adds what happened in `other`; start and length stay. Over threads the stretches are the
    /// same; to join neighbours, set the length by hand.
    pub fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.ok += other.ok;
        self.errors.merge(&other.errors);
        self.bytes_read += other.bytes_read;
        self.client_cpu += other.client_cpu;
        self.service.merge(&other.service);
        self.response.merge(&other.response);
    }

    /// End, since the start of the load.
    pub fn end(&self) -> Nanos {
        self.start + self.length
    }
}
