//! Owns the content of a report, in one shape for all tools. Start reading at [`Report`].

use std::collections::BTreeMap;
use std::ops::Range;

use record::ToolClaims;
use units::{Bytes, Nanos, PerSecond, Share};

/// A report of a load tool. `None` is what the tool does not print: never the same as 0.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Report {
    /// Name of the tool.
    pub tool: &'static str,
    /// Its version, if the text contains it (ab, siege, weighttp).
    pub version: Option<String>,
    /// Its position in the text, in bytes: from the first to the last line that was read.
    pub place: Range<usize>,
    /// Lines that every complete report of this tool has and that are missing or unreadable here, by their beginning;
    /// `#` represents a number. Empty: nothing is cut off.
    pub missing: Vec<&'static str>,
    /// The requested URL.
    pub url: Option<String>,
    /// The server's name for itself.
    pub server_software: Option<String>,
    /// Length of the requested document.
    pub document_length: Option<DocumentLength>,
    /// Concurrent connections: as requested, or for httperf and http_load as reached.
    pub concurrency: Option<u64>,
    /// Mean number of requests in flight (siege: the sum of all times divided by the elapsed time).
    pub concurrency_mean: Option<f64>,
    /// Threads of the tool.
    pub threads: Option<u64>,
    /// How long the load took.
    pub duration: Option<Nanos>,
    /// What the command line before the report asked for.
    pub ordered: Ordered,
    /// Requests by outcome.
    pub requests: Requests,
    /// Requests per second.
    pub rate: Option<PerSecond>,
    /// Bytes.
    pub traffic: Traffic,
    /// Times of requests by phase.
    pub times: Times,
    /// Percentiles of [`Times::total`], each (percent, time), ascending.
    pub percentiles: Vec<(f64, Nanos)>,
    /// Histogram of [`Times::total`] (hey, oha, wrk2), by ascending time.
    pub histogram: Vec<Bin>,
    /// Requests per second of each thread (wrk, wrk2: sampled) or of each connection (h2load).
    pub rates: Rates,
    /// Users that a script plays, and their iterations (k6).
    pub users: Users,
    /// ab's "Time per request (mean)": concurrency x duration / complete. Not a mean of measured
    /// times, which is [`Times::total`].
    pub time_per_request: Option<Nanos>,
    /// Errors by the tool's name for their kind.
    pub errors: BTreeMap<String, u64>,
    /// Share of requests that succeeded (siege, oha; k6: of those that did not fail).
    pub availability: Option<Share>,
    /// CPU time that the tool reports for itself (httperf).
    pub own_cpu: Option<Nanos>,
    /// Whether the tool gave up before its end.
    pub aborted: bool,
    /// The precision of the printed figures.
    pub steps: Steps,
}

/// The unit of the last printed digit of a figure. The figure is off by up to half of it, or by all of it if the tool
/// truncates; `None` if the figure is not printed.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Steps {
    /// Of [`Report::duration`].
    pub duration: Option<Nanos>,
    /// Of [`Report::rate`].
    pub rate: Option<PerSecond>,
    /// Of [`Traffic::rate`].
    pub traffic_rate: Option<PerSecond>,
    /// Of the bytes: [`Traffic::received`] and [`Traffic::bodies`].
    pub bytes: Option<Bytes>,
    /// Of the mean of [`Times::total`].
    pub time: Option<Nanos>,
    /// Of [`Report::time_per_request`].
    pub time_per_request: Option<Nanos>,
    /// Of [`Report::concurrency_mean`].
    pub concurrency_mean: Option<f64>,
}

/// What a command line asked for, as far as it says. The report itself has what the tool printed about it.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Ordered {
    /// The command line.
    pub command: Option<String>,
    /// Requests in all.
    pub requests: Option<u64>,
    /// Concurrent connections, or users.
    pub concurrency: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Duration of the load.
    pub duration: Option<Nanos>,
    /// Requests per second in all (wrk2, oha, http_load).
    pub rate: Option<PerSecond>,
    /// Whether connections are kept alive.
    pub keep_alive: Option<bool>,
    /// The requested URL.
    pub url: Option<String>,
}

/// A bin of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// The printed time of the bin: its upper end (hey, wrk2, oha of 0.5 and later).
    pub at: Nanos,
    /// Requests in it.
    pub count: u64,
}

/// Rates of threads or connections.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Arithmetic mean.
    pub mean: Option<PerSecond>,
    /// Standard deviation.
    pub sd: Option<PerSecond>,
    /// Smallest (h2load).
    pub min: Option<PerSecond>,
    /// Largest.
    pub max: Option<PerSecond>,
    /// Share within one standard deviation of the mean.
    pub within_sd: Option<Share>,
}

/// Users that a script plays.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Users {
    /// Fewest at once.
    pub min: Option<u64>,
    /// Most at once.
    pub max: Option<u64>,
    /// Initialised users: the most that the load may have.
    pub allocated: Option<u64>,
    /// Completed iterations of the script.
    pub iterations: Option<u64>,
    /// Iterations that the end of the load cut off.
    pub interrupted: Option<u64>,
    /// Iterations per second.
    pub rate: Option<PerSecond>,
    /// Duration of an iteration, including its waiting.
    pub times: Summary,
}

/// Length of the requested document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentLength {
    /// Every reply must have this length.
    Fixed(Bytes),
    /// Replies may differ (ab -l).
    Variable,
}

/// Requests by outcome, as the tool counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Requests {
    /// Started.
    pub started: Option<u64>,
    /// Ended; tools differ in which failed ones they include.
    pub complete: Option<u64>,
    /// Successful.
    pub succeeded: Option<u64>,
    /// Failed.
    pub failed: Option<u64>,
    /// Cut off by the end of the load, and in no other count here (oha, whose rate includes them).
    pub unfinished: Option<u64>,
    /// Replies with a bad status: ab, http_load, weighttp, h2load, hey, httperf: not 2xx; wrk: 400
    /// and above.
    pub non_2xx: Option<u64>,
    /// Sent on a connection that had carried a request before.
    pub kept_alive: Option<u64>,
    /// Replies by status, if the tool prints each.
    pub by_status: BTreeMap<u16, u64>,
    /// Replies by the first digit of their status.
    pub by_class: BTreeMap<u8, u64>,
}

impl Requests {
    /// Stores a tool's counts by class of status, and derives the number that is not 2xx.
    pub(crate) fn set_classes(&mut self, classes: impl IntoIterator<Item = (u8, u64)>) {
        self.by_class = classes.into_iter().collect();
        let bad = self.by_class.iter().filter(|(class, _)| **class != 2).map(|(_, count)| *count);
        self.non_2xx = Some(bad.fold(0, u64::saturating_add));
    }

    /// Stores a tool's counts by status, and derives the counts by class.
    pub(crate) fn set_statuses(&mut self, statuses: BTreeMap<u16, u64>) {
        let mut classes = BTreeMap::<u8, u64>::new();
        for (status, count) in &statuses {
            let class = classes.entry((status / 100).min(9) as u8).or_default();
            *class = class.saturating_add(*count);
        }
        self.set_classes(classes);
        self.by_status = statuses;
    }
}

/// Bytes, as the tool counts them.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Traffic {
    /// Received: heads and bodies.
    pub received: Option<Bytes>,
    /// Heads received.
    pub heads: Option<Bytes>,
    /// Bodies received.
    pub bodies: Option<Bytes>,
    /// Sent (ab: only if it sends bodies).
    pub sent: Option<Bytes>,
    /// Bytes received per second.
    pub rate: Option<PerSecond>,
    /// Bytes in the tool's unit, if it prints the rate in one: 1000 or 1024.
    pub rate_unit: Option<Bytes>,
}

impl Traffic {
    /// Bytes of heads: as printed, or the received bytes minus the bodies.
    pub fn heads_or_rest(&self) -> Option<Bytes> {
        let rest = || Some(Bytes(self.received?.0.checked_sub(self.bodies?.0)?));
        self.heads.or_else(rest)
    }
}

/// Times of requests by phase.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Times {
    /// Looking up the host's name (hey, oha).
    pub lookup: Summary,
    /// Waiting for a free connection (k6).
    pub blocked: Summary,
    /// Until the connection is established.
    pub connect: Summary,
    /// Handshake of TLS (k6).
    pub tls: Summary,
    /// Sending the request (hey, k6).
    pub sending: Summary,
    /// From the first byte of the reply to its last (hey, k6; httperf: its mean).
    pub receiving: Summary,
    /// Until the first byte of the reply: from the request (ab, http_load, hey, httperf, k6, oha,
    /// weighttp), or from the start of the connection (h2load).
    pub waiting: Summary,
    /// From the connection to the end of the reply (ab).
    pub processing: Summary,
    /// The whole request, including connecting if the tool counts it.
    pub total: Summary,
    /// Lifetime of a connection with all its requests (httperf).
    pub connection: Summary,
}

/// A tool's summary of a distribution.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: Option<Nanos>,
    /// Standard deviation.
    pub sd: Option<Nanos>,
    /// Median; ab's is one sample off for even and odd counts alike.
    pub median: Option<Nanos>,
    /// Smallest.
    pub min: Option<Nanos>,
    /// Largest.
    pub max: Option<Nanos>,
    /// Share within one standard deviation of the mean (wrk, h2load).
    pub within_sd: Option<Share>,
}

impl Report {
    /// Whether the report is complete.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Adds the connections of a thread, by its index. If an earlier thread is missing, the sum is unknown.
    pub(crate) fn add_thread(&mut self, index: u64, connections: u64) {
        let told = if index == 0 {
            Some(0)
        } else {
            self.concurrency.filter(|_| self.threads == Some(index))
        };
        self.threads = told.map(|_| index.saturating_add(1));
        self.concurrency = told.map(|sum| sum.saturating_add(connections));
    }

    /// Number of requests behind [`Report::rate`], over [`Report::duration`]: each tool counts differently.
    pub fn rate_of(&self) -> Option<u64> {
        let requests = &self.requests;
        let complete = requests.complete;
        match self.tool {
            // Includes errors.
            "hey" => complete?.checked_add(requests.failed?),
            // Also includes those that the end cut off.
            "oha" => complete?.checked_add(requests.failed?)?.checked_add(requests.unfinished?),
            // Counts sent requests.
            "httperf" => requests.started,
            // Versions differ in whether broken requests count as done.
            "h2load" => complete.filter(|_| self.errors.get("errored") == Some(&0)),
            _ => complete,
        }
    }

    /// The time of one percentile, if the tool printed it.
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        let at = self.percentiles.iter().find(|(printed, _)| *printed == percent)?;
        Some(at.1)
    }

    /// Its figures in the form of a run file.
    pub fn claims(&self) -> ToolClaims {
        let total = &self.times.total;
        ToolClaims {
            duration: self.duration,
            requests_done: self.requests.complete,
            requests_failed: self.requests.failed,
            requests_non_2xx: self.requests.non_2xx,
            rate: self.rate,
            bytes: self.traffic.received.or(self.traffic.bodies),
            latency_mean: total.mean,
            latency_sd: total.sd,
            latency_min: total.min,
            latency_max: total.max,
            percentiles: self.percentiles.clone(),
            errors: self.errors.clone(),
        }
    }
}
