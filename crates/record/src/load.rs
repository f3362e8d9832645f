//! One load on one server: its plan, complete and with nothing optional left open, and its record.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use stats::Histogram;
use units::{Bytes, Nanos};

use crate::interval::Interval;
use crate::json::ReadError;
use crate::sample::{ErrorCounts, Sample};

/// What a load is to do. Made once from what was typed; below that nothing is checked again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// The URL as typed, for the report.
    pub url: String,
    /// Where to connect.
    pub addr: SocketAddr,
    /// Host field of each request ("localhost:8080").
    pub host: String,
    /// Request target, origin form ("/index.html?x=1").
    pub target: String,
    /// Request method ("GET").
    pub method: String,
    /// Further header fields, name and value, in order. One named `Host` replaces [`LoadPlan::host`].
    pub headers: Vec<(String, String)>,
    /// Request body.
    pub body: Vec<u8>,
    /// Concurrent connections over all threads, at least 1.
    pub connections: u32,
    /// Threads, 1 to `connections`.
    pub threads: u32,
    /// CPUs to pin the threads to, in turn; empty: wherever the kernel likes.
    pub cpus: Vec<u32>,
    /// Whether a connection is used again. If not, each request has a connection of its own and
    /// says `Connection: close`, and the client closes whatever the server does.
    pub keep_alive: bool,
    /// Whether threads spin instead of sleeping while they wait: stamps are not late by a wake-up. The
    /// CPU time of spinning is in no figure.
    #[serde(default)]
    pub busy_poll: bool,
    /// When to end.
    pub stop: LoadStop,
    /// Longest wait for connecting, for the first byte, and for the rest of the reply, each.
    pub timeout: Nanos,
    /// How long replies that are out when the load ends may still take. They count as done
    /// (`drained`), not in the rate; what is out after that is unanswered.
    pub drain: Nanos,
    /// When requests are due.
    pub pacing: Pacing,
    /// Which replies count as `ok`.
    pub verify: Verify,
    /// Length of an interval. When there would be more than 1200 of them, neighbours are joined and
    /// the length doubles: memory does not grow with time.
    pub interval: Nanos,
    /// Most samples kept in the raw log: every k-th request, k doubling when full.
    pub raw_max: u32,
    /// Seed of whatever is random.
    pub seed: u64,
    /// Which part of a larger load this is; a local run is 0 of 1.
    pub share: Share,
}

/// One agent's part of a load, fixed before the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// 0 to `of` - 1.
    pub index: u32,
    /// Number of agents.
    pub of: u32,
}

/// When a load ends: whichever comes first; at least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStop {
    /// After this many requests were started.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Nanos>,
}

/// The law by which requests are due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "snake_case")]
pub enum Pacing {
    /// Each connection asks again as soon as its reply is complete.
    Closed,
}

/// Which complete replies count as `ok`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// Lowest status that is expected.
    pub status_min: u16,
    /// Highest status that is expected.
    pub status_max: u16,
    /// Length of the body, where it is known beforehand.
    pub length: Option<Bytes>,
}

impl Default for Verify {
    fn default() -> Self {
        Self { status_min: 200, status_max: 399, length: None }
    }
}

/// What one load measured. `started = done + unanswered`, `done = ok + failed`, and `failed` is the
/// sum of `errors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// [`LoadRecord::FORMAT`].
    pub format: String,
    /// The engine that made it ("epoll", "sim").
    pub engine: String,
    /// As planned.
    pub connections: u32,
    /// As planned.
    pub threads: u32,
    /// Length of the window in which requests were started and replies counted in the rate.
    pub seconds: f64,
    /// Requests by what came of them.
    pub requests: RequestCounts,
    /// Failed requests by kind.
    pub errors: ErrorCounts,
    /// Complete replies by status.
    pub status: BTreeMap<u16, u64>,
    /// Bytes of all replies.
    pub bytes: ByteCounts,
    /// Goodput: requests with outcome `ok` in the window, by second.
    pub rate_per_s: f64,
    /// CPU time of the generator's threads over requests done; `None` with none done.
    pub cpu_us_per_request: Option<f64>,
    /// Connections that were established, reconnects included.
    pub connects: u64,
    /// Time to connect, each established connection.
    pub connect_ms: LatencyMillis,
    /// Sent to first byte, `ok` requests.
    pub first_byte_ms: LatencyMillis,
    /// Sent to done, `ok` requests.
    pub service_ms: LatencyMillis,
    /// Due to done, `ok` requests.
    pub response_ms: LatencyMillis,
    /// Sent to done, requests that failed after they were sent.
    pub failed_ms: LatencyMillis,
    /// Whether the load ended because it was interrupted.
    pub interrupted: bool,
    /// What the generator itself used, and whether it kept up.
    pub client: ClientUse,
    /// What was asked.
    pub plan: LoadPlan,
    /// The distributions behind the figures.
    pub latencies: Latencies,
    /// Every stretch of the load, in order, without gaps.
    pub intervals: Vec<Interval>,
    /// Every k-th request; `raw_stride` is k.
    pub raw: Vec<Sample>,
    /// See `raw`.
    pub raw_stride: u64,
}

impl LoadRecord {
    /// Name and version of this format.
    pub const FORMAT: &'static str = "joust-load/1";

    /// How long no request had succeeded when the window ended, where that is too long for chance: a
    /// server that dies or hangs fails few requests, since in a closed loop each connection has one
    /// at a time and waits before it tries again. The share of failures hides it, the silence does
    /// not.
    pub fn silence_at_end(&self) -> Option<Nanos> {
        let last = self.intervals.iter().rfind(|interval| interval.ok > 0)?;
        let slowest = self.latencies.service.max().unwrap_or_default();
        let silence = Nanos::from_secs_f64(self.seconds).saturating_sub(last.end());
        // Replies that take long may be further apart than intervals are long.
        let is_long = silence.as_secs_f64() > SILENT_MIN * self.seconds
            && silence > last.length.max(slowest.saturating_add(slowest));
        (is_long && self.requests.failed + self.requests.unanswered > 0).then_some(silence)
    }

    /// As JSON, one object, ending in a newline.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }

    /// Reads what [`LoadRecord::to_json`] wrote.
    ///
    /// # Errors
    /// [`ReadError`]: not JSON, of another shape, or of a version that this joust does not know.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        crate::json::read(text, Self::FORMAT)
    }
}

/// Share of the window without a good reply at its end from which the server counts as gone.
const SILENT_MIN: f64 = 0.05;

/// Requests by what came of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Begun (a connection was asked for, or the request was sent on one).
    pub started: u64,
    /// Ended, well or not.
    pub done: u64,
    /// Ended well.
    pub ok: u64,
    /// Ended badly.
    pub failed: u64,
    /// Still out when the load ended.
    pub unanswered: u64,
    /// Of `done`: those that ended after the window, while draining.
    pub drained: u64,
}

/// Bytes of all replies, and of requests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteCounts {
    /// Read, heads and chunk framing included.
    pub read: u64,
    /// Bodies only.
    pub body: u64,
    /// Of requests that were handed to the driver, whole: where a connection was lost before the
    /// kernel had taken all of a long one, what was left is counted too.
    pub written: u64,
}

/// Quantiles that a summary of latency holds.
pub const LATENCY_QUANTILES: [f64; 4] = [0.50, 0.90, 0.99, 0.999];

/// A distribution in milliseconds; `None` (null) where the sample is too small for the figure.
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
}

impl Latencies {
    /// Adds the spans of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        self.first_byte.merge(&other.first_byte);
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.failed.merge(&other.failed);
    }
}

/// What the generator itself used.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientUse {
    /// Each thread.
    pub threads: Vec<ThreadUse>,
    /// From a wake-up to the last reply of its batch being stamped: how late a stamp can be.
    pub lag_max: Nanos,
    /// Connections that were open at once, at most; fewer than asked means some never were.
    pub connections_open_max: u32,
}

impl ClientUse {
    /// CPU time over wall time of the busiest thread, 0 to 1.
    pub fn busiest(&self) -> f64 {
        self.threads.iter().map(ThreadUse::busy).fold(0.0, f64::max)
    }
}

/// What one thread of the generator used in the window.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// CPU time, user and system.
    pub cpu: Nanos,
    /// Time that passed.
    pub wall: Nanos,
    /// CPU it was pinned to.
    pub pinned_to: Option<u32>,
}

impl ThreadUse {
    /// CPU time over wall time, 0 to 1.
    pub fn busy(&self) -> f64 {
        if self.wall == Nanos::ZERO { 0.0 } else { self.cpu.0 as f64 / self.wall.0 as f64 }
    }
}
