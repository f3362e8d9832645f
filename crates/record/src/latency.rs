//! Owns the latencies of a load: the distributions, and the figures that summarise one.

use serde::{Deserialize, Serialize};
use stats::Histogram;
use units::Nanos;

/// Quantiles that a summary of latency holds.
pub const LATENCY_QUANTILES: [f64; 4] = [0.50, 0.90, 0.99, 0.999];

/// A distribution in milliseconds; a figure is `None` (null) if the sample is too small for it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the definitions")]
pub struct LatencyMillis {
    pub mean: Option<f64>,
    pub sd: Option<f64>,
    pub min: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

impl From<&Histogram> for LatencyMillis {
    fn from(histogram: &Histogram) -> Self {
        let millis = |span: Option<Nanos>| span.map(Nanos::as_millis_f64);
        let [p50, p90, p99, p999] = LATENCY_QUANTILES.map(|q| millis(histogram.quantile(q)));
        Self {
            mean: millis(histogram.mean()),
            sd: millis(histogram.sd()),
            min: millis(histogram.min()),
            p50,
            p90,
            p99,
            p999,
            max: millis(histogram.max()),
        }
    }
}

/// The distributions of a load.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Time to connect, each established connection.
    #[serde(with = "crate::stored")]
    pub connect: Histogram,
    /// Sent to first byte, `ok` requests.
    #[serde(with = "crate::stored")]
    pub first_byte: Histogram,
    /// Sent to done, `ok` requests.
    #[serde(with = "crate::stored")]
    pub service: Histogram,
    /// Due to done, `ok` requests.
    #[serde(with = "crate::stored")]
    pub response: Histogram,
    /// Sent to done, requests that failed after they were sent.
    #[serde(with = "crate::stored")]
    pub failed: Histogram,
    /// Due to sent, `ok` requests.
    #[serde(with = "crate::stored", default)]
    pub queue: Histogram,
    /// Open loop: the generator's own delay. From due, or from a free connection if that was later,
    /// to sent.
    #[serde(with = "crate::stored", default)]
    pub late: Histogram,
    /// Full TLS handshakes.
    #[serde(with = "crate::stored", default)]
    pub handshake_full: Histogram,
    /// Resumed TLS handshakes.
    #[serde(with = "crate::stored", default)]
    pub handshake_resumed: Histogram,
}

impl Latencies {
    /// Adds the spans of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.each_mut().into_iter().zip(other.each()).for_each(|(sum, more)| sum.merge(more));
    }

    /// Every distribution, in the order of the fields.
    pub fn each_mut(&mut self) -> [&mut Histogram; 9] {
        let Self { connect, first_byte, service, response, failed, .. } = self;
        let Self { queue, late, handshake_full, handshake_resumed, .. } = self;
        [
            connect,
            first_byte,
            service,
            response,
            failed,
            queue,
            late,
            handshake_full,
            handshake_resumed,
        ]
    }

    fn each(&self) -> [&Histogram; 9] {
        [
            &self.connect,
            &self.first_byte,
            &self.service,
            &self.response,
            &self.failed,
            &self.queue,
            &self.late,
            &self.handshake_full,
            &self.handshake_resumed,
        ]
    }
}
