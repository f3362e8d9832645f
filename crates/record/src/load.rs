//! What one load measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::bodies::BodiesVerified;
use crate::by_request::RequestFigures;
use crate::completions::Completions;
use crate::finding::{Finding, Severity};
use crate::fleet::FleetUse;
use crate::interval::Interval;
use crate::json::ReadError;
use crate::latency::{Latencies, LatencyMillis};
use crate::load_plan::LoadPlan;
use crate::machine::MachineSeries;
use crate::redirects::{Redirects, is_redirect};
use crate::sample::{ErrorCounts, Sample};
use crate::tcp::{ConnectionEnds, TcpUse};

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
    /// Requests by outcome.
    pub requests: RequestCounts,
    /// Failed requests by kind.
    pub errors: ErrorCounts,
    /// Complete replies by status.
    pub status: BTreeMap<u16, u64>,
    /// Replies that broke off after their head, by status: they count as failed. Empty in older files.
    #[serde(default)]
    pub broken_status: BTreeMap<u16, u64>,
    /// Bytes of all replies.
    pub bytes: ByteCounts,
    /// Goodput: requests with outcome `ok` in the window, divided by [`LoadRecord::rate_seconds`].
    pub rate_per_s: f64,
    /// CPU time of the generator's threads per done request; `None` if none is done.
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
    /// Due to sent, `ok` requests: waiting for a connection, connecting, the generator's own delay.
    #[serde(default)]
    pub queue_ms: LatencyMillis,
    /// Full TLS handshakes, from the established connection on.
    #[serde(default)]
    pub handshake_full_ms: LatencyMillis,
    /// Resumed TLS handshakes.
    #[serde(default)]
    pub handshake_resumed_ms: LatencyMillis,
    /// Open loop: what was requested, and what could not be started on time.
    #[serde(default)]
    pub open_loop: Option<OpenLoop>,
    /// TLS handshakes and the parameters they agreed on.
    #[serde(default)]
    pub tls: Option<TlsUse>,
    /// Redirects that were received, and those that were followed.
    #[serde(default)]
    pub redirects: Redirects,
    /// Why the first connection failed that failed at the proxy.
    #[serde(default)]
    pub proxy_failure: Option<String>,
    /// Requests that were sent before the load to check the answer; no other figure includes them.
    #[serde(default)]
    pub probes: u64,
    /// The head of the first reply as received, if the plan's first request went out alone; bytes that are not UTF-8
    /// are replaced. If the reply is not HTTP, everything up to its first empty line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_head: Option<String>,
    /// Replies whose heads end lines in LF without CR: read as HTTP (RFC 9112, 2.2), which a strict
    /// client or proxy need not do.
    #[serde(default)]
    pub bare_lf_replies: u64,
    /// Bodies whose hash was compared with that of the body before the load.
    #[serde(default)]
    pub bodies_verified: BodiesVerified,
    /// Whether the load ended because it was interrupted.
    pub interrupted: bool,
    /// What the generator itself used, and whether it kept up.
    pub client: ClientUse,
    /// The plan of the load.
    pub plan: LoadPlan,
    /// The distributions behind the figures.
    pub latencies: Latencies,
    /// Every interval of the load, in order, without gaps.
    pub intervals: Vec<Interval>,
    /// Every k-th request; `raw_stride` is k.
    pub raw: Vec<Sample>,
    /// See `raw`.
    pub raw_stride: u64,
    /// The names of the requests in `raw`, by [`Sample::request`]; empty if the plan has only one request, and in older
    /// files.
    #[serde(default)]
    pub raw_names: BTreeMap<u32, String>,
    /// The same figures for each request; empty if the plan has only one, and in older files.
    #[serde(default)]
    pub by_request: Vec<RequestFigures>,
    /// When it began, in milliseconds since 1970 by the clock of its machine; `None` in older files.
    #[serde(default)]
    pub began_unix_ms: Option<u64>,
    /// The loads that this record was merged from; empty if it was not merged.
    #[serde(default)]
    pub parts: Vec<LoadPart>,
    /// Good replies by the instant at which they were complete; empty in older files.
    #[serde(default)]
    pub completions: Completions,
    /// What the kernel knew of the generator's connections; empty in older files.
    #[serde(default)]
    pub tcp: TcpUse,
    /// How connections ended; empty in older files.
    #[serde(default)]
    pub connection_ends: ConnectionEnds,
    /// Counters of this machine while the load ran, if the load was not part of a run (a visit has them in its
    /// surroundings).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Box<MachineSeries>>,
    /// What is known of a load that agents made; `None` if no fleet made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Box<FleetUse>>,
    /// What the doctor found, if the load was not part of a run.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// One of the loads that a record was merged from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPart {
    /// Its file.
    pub name: String,
    /// When it began, in milliseconds since 1970, if its record says so.
    pub began_unix_ms: Option<u64>,
    /// Its position in the merged record: its start, since the start of the first load.
    pub start: Nanos,
    /// The time that its rate is computed over.
    pub seconds: f64,
    /// Requests that it started.
    pub started: u64,
    /// Of them: successful.
    pub ok: u64,
    /// Its goodput.
    pub rate_per_s: f64,
    /// Problems of its own figures, in sentences.
    pub findings: Vec<String>,
    /// Of them, what the counters of its own machine confirm, and what voids or bounds its figures; empty in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acting: Vec<PartFinding>,
}

/// What voids or bounds the figures of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFinding {
    /// Name of the check.
    pub check: String,
    /// What it does to the part.
    pub severity: Severity,
    /// What was seen.
    pub evidence: String,
}

impl LoadRecord {
    /// Name and version of this format.
    pub const FORMAT: &'static str = crate::json::LOAD_FORMAT;

    /// Replies that were redirects which nobody followed.
    pub fn redirected(&self) -> u64 {
        let each = self.status.iter().filter(|(status, _)| is_redirect(**status));
        each.map(|(_, count)| count).sum()
    }

    /// A load of that plan in which nothing happened.
    pub fn empty(plan: LoadPlan) -> Self {
        Self {
            format: Self::FORMAT.to_owned(),
            engine: String::new(),
            connections: plan.share.part(plan.connections.into()) as u32,
            threads: plan.threads,
            seconds: 0.0,
            requests: RequestCounts::default(),
            errors: ErrorCounts::default(),
            status: BTreeMap::new(),
            broken_status: BTreeMap::new(),
            bytes: ByteCounts::default(),
            rate_per_s: 0.0,
            cpu_us_per_request: None,
            connects: 0,
            connect_ms: LatencyMillis::default(),
            first_byte_ms: LatencyMillis::default(),
            service_ms: LatencyMillis::default(),
            response_ms: LatencyMillis::default(),
            failed_ms: LatencyMillis::default(),
            queue_ms: LatencyMillis::default(),
            handshake_full_ms: LatencyMillis::default(),
            handshake_resumed_ms: LatencyMillis::default(),
            open_loop: None,
            tls: None,
            redirects: Redirects::default(),
            proxy_failure: None,
            probes: 0,
            first_head: None,
            bare_lf_replies: 0,
            bodies_verified: BodiesVerified::default(),
            interrupted: false,
            client: ClientUse::default(),
            plan,
            latencies: Latencies::default(),
            intervals: Vec::new(),
            raw: Vec::new(),
            raw_stride: 1,
            raw_names: BTreeMap::new(),
            by_request: Vec::new(),
            began_unix_ms: None,
            parts: Vec::new(),
            completions: Completions::default(),
            tcp: TcpUse::default(),
            connection_ends: ConnectionEnds::default(),
            machine: None,
            fleet: None,
            findings: Vec::new(),
        }
    }

    /// The time that the rate is computed over: the window. If requests of an open loop ran out, it is the time that
    /// the law plans for that number, if that is longer.
    pub fn rate_seconds(&self) -> f64 {
        self.open_loop.map_or(self.seconds, |open| open.seconds.max(self.seconds))
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
        crate::json::read(text, Self::FORMAT, &[("joust-load/1", crate::upgrade::load_1)])
    }
}

/// The requested rate of an open loop, and how far it was reached.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests that were due in the window: `started + dropped + left`, except for a few that became due at its very
    /// end.
    pub due: u64,
    /// Of them: dropped because the queue was full.
    pub dropped: u64,
    /// Of them: still waiting for a connection when the window ended, and given up.
    pub left: u64,
    /// Of them: started at or after the end of the time that the law plans for the number given by `-n`. Not counted in
    /// a replay.
    #[serde(default)]
    pub overdue: u64,
    /// Longest queue, over all threads (an upper bound if there are several).
    pub queue_max: u64,
    /// Time that the law plans for the number of due requests. It is the window, or the time until the integral of the
    /// rate reaches that number: if that is longer, or if `-n` or the end of the law ended the load. Then it lasts
    /// until the next instant for random instants, and one mean gap longer in a replay. 0 in older files.
    #[serde(default)]
    pub seconds: f64,
    /// The requested rate: due requests over that time.
    pub asked_per_s: f64,
    /// The achieved rate: requests started in that time, over that time.
    pub begun_per_s: f64,
    /// How late requests were sent although a connection was free: the generator's own delay.
    pub late_ms: LatencyMillis,
}

impl OpenLoop {
    /// How many of the `started` requests were started before the next one was due.
    pub fn begun_on_time(&self, started: u64) -> u64 {
        started.min(self.due.saturating_sub(self.dropped + self.overdue))
    }
}

/// TLS as the connections used it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsUse {
    /// Full handshakes.
    pub full: u64,
    /// Resumed handshakes.
    pub resumed: u64,
    /// Version in the first handshake ("TLS 1.3").
    pub version: String,
    /// Its cipher suite.
    pub cipher_suite: String,
    /// Group of its key exchange ("X25519"), empty in older files.
    #[serde(default)]
    pub group: String,
    /// Size of the public key in the server's certificate, in bits, where that is known.
    #[serde(default)]
    pub certificate_bits: Option<u32>,
    /// The protocol that ALPN chose; empty for none.
    pub alpn: String,
    /// Why the first connection failed that failed because of TLS.
    #[serde(default)]
    pub failure: Option<String>,
}

/// Requests by outcome.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Started (a connection was requested, or the request was sent on one).
    pub started: u64,
    /// Ended, successfully or not.
    pub done: u64,
    /// Successful.
    pub ok: u64,
    /// Failed.
    pub failed: u64,
    /// Still in flight when the load ended.
    pub unanswered: u64,
    /// Of `done`: those that ended after the window, while draining.
    pub drained: u64,
    /// Of `started`: those that were sent again ([`LoadPlan::retry`]), whatever their outcome.
    #[serde(default)]
    pub retried: u64,
}

/// Bytes of all replies, and of requests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteCounts {
    /// Bytes read, heads and chunk framing included.
    pub read: u64,
    /// Bodies only.
    pub body: u64,
    /// Whole requests that were handed to the driver. If a connection is lost before the kernel has taken all of a long
    /// request, the rest is counted too.
    pub written: u64,
}

/// What the generator itself used.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientUse {
    /// Each thread.
    pub threads: Vec<ThreadUse>,
    /// Longest time from a wake-up until the last reply of its batch is stamped: how late a stamp can be.
    pub lag_max: Nanos,
    /// Most connections that were open at once; fewer than planned means that some never were.
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
