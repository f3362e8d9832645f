//! An interval of a load: what happened in it, in a form that merges exactly.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::Histogram;
use units::Nanos;

use crate::sample::ErrorCounts;

/// Counts and histograms of one interval. A request belongs to the interval in which it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Start, since the start of the load.
    pub start: Nanos,
    /// Length; the same for all intervals of a load except the last.
    pub length: Nanos,
    /// Requests begun in it.
    pub started: u64,
    /// Requests that ended with outcome `ok` in it.
    pub ok: u64,
    /// Requests that failed in it, by kind.
    pub errors: ErrorCounts,
    /// Complete replies that ended in it, by status; empty in older files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub status: BTreeMap<u16, u64>,
    /// Bytes read in it, heads included.
    pub bytes_read: u64,
    /// CPU time that the generator's threads used in it.
    pub client_cpu: Nanos,
    /// Requests that ended with outcome `ok` in it, by thread; empty if there is only one thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ok_by_thread: Vec<u64>,
    /// Service times of the `ok` requests.
    #[serde(with = "crate::stored")]
    pub service: Histogram,
    /// Response times of the `ok` requests.
    #[serde(with = "crate::stored")]
    pub response: Histogram,
}

impl Interval {
    /// An empty interval, ready to record.
    pub fn new(start: Nanos, length: Nanos) -> Self {
        let (service, response) = (Histogram::new(), Histogram::new());
        Self { service, response, ..Self::packed(start, length) }
    }

    /// An empty interval that others are merged into, or that is read: it takes no memory before.
    pub fn packed(start: Nanos, length: Nanos) -> Self {
        Self {
            start,
            length,
            started: 0,
            ok: 0,
            errors: ErrorCounts::default(),
            status: BTreeMap::new(),
            bytes_read: 0,
            client_cpu: Nanos::ZERO,
            ok_by_thread: Vec::new(),
            service: Histogram::default(),
            response: Histogram::default(),
        }
    }

    /// Adds what happened in `other`; start and length stay. Intervals of different threads are the same span; a caller
    /// that joins neighbours sets the length itself.
    pub fn merge(&mut self, other: &Self) {
        self.merge_counts(other);
        self.service.merge(&other.service);
        self.response.merge(&other.response);
    }

    /// The same without latencies, for a caller that adds those in another way.
    pub fn merge_counts(&mut self, other: &Self) {
        self.started += other.started;
        self.ok += other.ok;
        self.errors.merge(&other.errors);
        for (status, count) in &other.status {
            *self.status.entry(*status).or_default() += count;
        }
        self.bytes_read += other.bytes_read;
        self.client_cpu += other.client_cpu;
        let n_threads = self.ok_by_thread.len().max(other.ok_by_thread.len());
        self.ok_by_thread.resize(n_threads, 0);
        for (sum, more) in self.ok_by_thread.iter_mut().zip(&other.ok_by_thread) {
            *sum += more;
        }
    }

    /// Assigns all of it to one of several threads.
    pub fn assign(&mut self, thread: usize, n_threads: usize) {
        self.ok_by_thread = vec![0; n_threads];
        self.ok_by_thread[thread] = self.ok;
    }

    /// End, since the start of the load.
    pub fn end(&self) -> Nanos {
        self.start + self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_did_is_kept_apart_when_intervals_are_merged() {
        let interval = |ok, thread: Option<usize>| {
            let mut interval = Interval { ok, ..Interval::new(Nanos::ZERO, Nanos(1)) };
            if let Some(thread) = thread {
                interval.assign(thread, 3);
            }
            interval
        };
        let mut sum = interval(0, None);
        sum.merge(&interval(5, Some(2)));
        sum.merge(&interval(4, Some(0)));
        sum.merge(&interval(2, Some(2)));
        assert_eq!((sum.ok, sum.ok_by_thread.as_slice()), (11, &[4, 0, 7][..]));
        let mut alone = interval(1, None);
        alone.merge(&interval(2, None));
        assert!(alone.ok_by_thread.is_empty());
    }
}
