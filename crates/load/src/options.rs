//! From what was typed to a complete [`LoadPlan`]. Owns the defaults and the refusals; must not know
//! argv or how a plan is carried out. Start reading at [`LoadOptions::plan`].

use record::{LoadPlan, LoadStop, Pacing, Share, Verify};
use stats::SPAN_MAX;
use units::Nanos;

use crate::request;
use crate::url::{self, UrlError};

/// Most connections of one load: the index of a slot and the descriptors of a process fit well.
pub const CONNECTIONS_MAX: u32 = 1_000_000;

/// Most threads: the CPUs that the kernel's affinity call knows.
pub const THREADS_MAX: u32 = 1024;

/// Most requests kept in the raw log (about 80 bytes each in memory).
pub const RAW_MAX: u32 = 10_000_000;

/// Shortest interval. Each costs about 10 us and is seldom looked at finer.
pub const INTERVAL_MIN: Nanos = Nanos::from_millis(10);

/// Longest timeout. A request has three phases (connecting, first byte, rest), each with its own, and
/// all three must fit into the hour that a histogram holds, or the longest would be cut off unseen.
pub const TIMEOUT_MAX: Nanos = Nanos(SPAN_MAX.0 / 3);

/// What a load is to do, as typed. `LoadOptions::new(url)` has the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadOptions {
    /// `http://host:port/path?query`.
    pub url: String,
    /// GET.
    pub method: String,
    /// Further header fields, each as it is typed: `Name: value`.
    pub headers: Vec<String>,
    /// Request body; none.
    pub body: Vec<u8>,
    /// Concurrent connections over all threads; 10.
    pub connections: u32,
    /// Threads; 1. One thread makes some 10^5 requests a second, and a second thread that shares a
    /// CPU with the server takes from the server what it measures.
    pub threads: u32,
    /// CPUs to pin the threads to, in turn; empty: wherever the kernel likes.
    pub cpus: Vec<u32>,
    /// Whether connections are used again; true.
    pub keep_alive: bool,
    /// Whether threads spin instead of sleeping while they wait; false.
    pub busy_poll: bool,
    /// End after this many requests.
    pub requests: Option<u64>,
    /// End after this time.
    pub duration: Option<Nanos>,
    /// Longest wait for connecting, for the first byte and for the rest, each; 10 s. Long enough that
    /// a stall of seconds is measured, not cut off (a kernel's retries of a lost SYN come at 1, 3 and
    /// 7 s), short enough that a dead server is told apart from a slow one.
    pub timeout: Nanos,
    /// How long replies that are out when the load ends may still take; 1 s.
    pub drain: Nanos,
    /// When requests are due; closed loop.
    pub pacing: Pacing,
    /// Which replies count as ok; status 200 to 399, any length.
    pub verify: Verify,
    /// Length of an interval; 100 ms.
    pub interval: Nanos,
    /// Most samples in the raw log; 10 000.
    pub raw_max: u32,
    /// Seed of whatever is random; 1.
    pub seed: u64,
}

/// Why a plan cannot be made of the options; each text says what to change.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts are the definitions")]
pub enum PlanError {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("0 connections make no load: give at least 1 (-c)")]
    NoConnections,
    #[error("{0} connections are more than {CONNECTIONS_MAX} (-c)")]
    TooManyConnections(u32),
    #[error("0 threads make no load: give at least 1 (-t)")]
    NoThreads,
    #[error("{0} threads are more than {THREADS_MAX} (-t)")]
    TooManyThreads(u32),
    #[error(
        "{threads} threads cannot share {connections} connections: each thread needs at least one \
         (raise -c or lower -t)"
    )]
    IdleThreads { threads: u32, connections: u32 },
    #[error("nothing says when the load ends: give a number of requests (-n) or a duration (-d)")]
    Endless,
    #[error("0 requests make no load: give at least 1 (-n)")]
    NoRequests,
    #[error("a duration of 0 makes no load: give one as in 10s (-d)")]
    NoDuration,
    #[error("a timeout of 0 fails every request: give one as in 10s (--timeout)")]
    NoTimeout,
    #[error("a timeout of {0} is longer than {TIMEOUT_MAX} (--timeout)")]
    LongTimeout(Nanos),
    #[error("an interval of {0} is shorter than {INTERVAL_MIN}")]
    ShortInterval(Nanos),
    #[error("a raw log of {0} requests is more than {RAW_MAX}")]
    LongLog(u32),
    #[error("`{0}` is no header field: write it with a colon, as in -H 'Accept: text/html'")]
    Header(String),
    #[error(transparent)]
    Request(#[from] wire::WriteError),
    #[error("CONNECT asks for a tunnel, and a load has no use for one: choose another method (-X)")]
    Tunnel,
    #[error("status {0} to {1} is no range: it goes from 100 to 999, the lower one first")]
    Status(u16, u16),
}

impl LoadOptions {
    /// The defaults, for that URL. When to end is still to be said.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            connections: 10,
            threads: 1,
            cpus: Vec::new(),
            keep_alive: true,
            busy_poll: false,
            requests: None,
            duration: None,
            timeout: Nanos::from_secs(10),
            drain: Nanos::from_secs(1),
            pacing: Pacing::Closed,
            verify: Verify::default(),
            interval: Nanos::from_millis(100),
            raw_max: 10_000,
            seed: 1,
        }
    }

    /// The complete plan. Resolves the host's name.
    ///
    /// # Errors
    /// What was typed makes no load; see [`PlanError`].
    pub fn plan(&self) -> Result<LoadPlan, PlanError> {
        self.check_numbers()?;
        let target = url::parse(&self.url)?;
        let plan = LoadPlan {
            url: self.url.clone(),
            addr: target.resolve()?,
            host: target.host,
            target: target.target,
            method: self.method.clone(),
            headers: self.headers.iter().map(|line| field(line)).collect::<Result<_, _>>()?,
            body: self.body.clone(),
            connections: self.connections,
            threads: self.threads,
            cpus: self.cpus.clone(),
            keep_alive: self.keep_alive,
            busy_poll: self.busy_poll,
            stop: LoadStop { requests: self.requests, duration: self.duration },
            timeout: self.timeout,
            drain: self.drain,
            pacing: self.pacing,
            verify: self.verify,
            interval: self.interval,
            raw_max: self.raw_max,
            seed: self.seed,
            share: Share { index: 0, of: 1 },
        };
        request::render(&plan)?;
        Ok(plan)
    }

    fn check_numbers(&self) -> Result<(), PlanError> {
        let Self { connections, threads, verify, .. } = *self;
        let refusals = [
            (connections == 0, PlanError::NoConnections),
            (connections > CONNECTIONS_MAX, PlanError::TooManyConnections(connections)),
            (threads == 0, PlanError::NoThreads),
            (threads > THREADS_MAX, PlanError::TooManyThreads(threads)),
            (threads > connections, PlanError::IdleThreads { threads, connections }),
            (self.requests.is_none() && self.duration.is_none(), PlanError::Endless),
            (self.requests == Some(0), PlanError::NoRequests),
            (self.duration == Some(Nanos::ZERO), PlanError::NoDuration),
            (self.timeout == Nanos::ZERO, PlanError::NoTimeout),
            (self.timeout > TIMEOUT_MAX, PlanError::LongTimeout(self.timeout)),
            (self.interval < INTERVAL_MIN, PlanError::ShortInterval(self.interval)),
            (self.raw_max > RAW_MAX, PlanError::LongLog(self.raw_max)),
            (self.method == "CONNECT", PlanError::Tunnel),
            (
                !(100..=verify.status_max).contains(&verify.status_min) || verify.status_max > 999,
                PlanError::Status(verify.status_min, verify.status_max),
            ),
        ];
        refusals.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// `Name: value`, taken apart. What is in the parts is checked when the request is rendered.
fn field(line: &str) -> Result<(String, String), PlanError> {
    let refused = || PlanError::Header(line.escape_debug().to_string());
    let (name, value) = line.split_once(':').ok_or_else(refused)?;
    Ok((name.trim().to_owned(), value.trim_matches([' ', '\t']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut LoadOptions)) -> String {
        let mut options = LoadOptions::new("http://127.0.0.1:81/");
        options.requests = Some(1);
        change(&mut options);
        options.plan().expect_err("refused").to_string()
    }

    #[test]
    fn what_makes_no_load_is_refused_with_the_way_out() {
        type Change = fn(&mut LoadOptions);
        let cases: [(&str, Change); 19] = [
            ("-c", |o| o.connections = 0),
            ("1000000", |o| o.connections = 1_000_001),
            ("-t", |o| o.threads = 0),
            ("-t", |o| (o.threads, o.connections) = (2000, 3000)),
            ("raise -c", |o| (o.connections, o.threads) = (2, 3)),
            ("-d", |o| o.requests = None),
            ("-n", |o| o.requests = Some(0)),
            ("10s", |o| o.duration = Some(Nanos::ZERO)),
            ("--timeout", |o| o.timeout = Nanos::ZERO),
            ("20m", |o| o.timeout = Nanos::from_secs(1201)),
            ("10ms", |o| o.interval = Nanos(1)),
            ("10000000", |o| o.raw_max = 10_000_001),
            ("with a colon", |o| o.headers = vec!["Accept".to_owned()]),
            ("control character", |o| o.headers = vec!["A: b\r\nC: d".to_owned()]),
            ("not a token", |o| o.headers = vec![": b".to_owned()]),
            ("not a token", |o| o.method = "G T".to_owned()),
            ("tunnel", |o| o.method = "CONNECT".to_owned()),
            ("lower one first", |o| (o.verify.status_min, o.verify.status_max) = (300, 200)),
            ("https", |o| o.url = "https://127.0.0.1/".to_owned()),
        ];
        for (part, change) in cases {
            let text = refusal(change);
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_plan_says_where_and_what() {
        let mut options = LoadOptions::new("http://127.0.0.1:81/x?y");
        options.duration = Some(Nanos::from_secs(3));
        options.headers = vec!["Accept:  text/html ".to_owned()];
        let plan = options.plan().unwrap();
        assert_eq!(plan.addr, "127.0.0.1:81".parse().unwrap());
        assert_eq!((&*plan.host, &*plan.target), ("127.0.0.1:81", "/x?y"));
        assert_eq!(plan.headers, [("Accept".to_owned(), "text/html".to_owned())]);
        let request = String::from_utf8(request::bytes(&plan)).unwrap();
        assert_eq!(request, "GET /x?y HTTP/1.1\r\nHost: 127.0.0.1:81\r\nAccept: text/html\r\n\r\n");
    }

    #[test]
    fn without_keep_alive_the_request_says_so() {
        let mut options = LoadOptions::new("http://127.0.0.1:81/");
        (options.requests, options.keep_alive) = (Some(1), false);
        let request = String::from_utf8(request::bytes(&options.plan().unwrap())).unwrap();
        assert!(request.contains("\r\nConnection: close\r\n"), "{request}");
    }
}
