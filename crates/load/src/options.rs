//! From what was typed to a complete [`LoadPlan`]. Owns the defaults and the refusals; must not know
//! argv or how a plan is carried out. Start reading at [`LoadOptions::plan`].

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use record::{
    Column, Engine, Goal, HttpVersion, LoadPlan, LoadStop, Origin, Pacing, Pick, Place,
    RequestPlan, Stamps, TlsPlan, Verify,
};
use stats::SPAN_MAX;
use units::Nanos;

use crate::connect_to::{ConnectTo, ConnectToError};
use crate::pacing::{self, PacingError};
use crate::prepared::{PrepareError, Prepared};
use crate::proxy::{self, ProxyError};
use crate::source::{self, Asked};
use crate::url::{self, Target, UrlError};

/// Most connections of one load: the index of a slot and the descriptors of a process fit well.
pub const CONNECTIONS_MAX: u32 = 1_000_000;

/// Most threads: the CPUs that the kernel's affinity call knows.
pub const THREADS_MAX: u32 = 1024;

/// Most requests that may be out on one connection at once.
pub const PIPELINE_MAX: u32 = 1000;

/// Most requests that may wait for a connection: eight bytes each.
pub const QUEUE_MAX: u64 = 100_000_000;

/// Most redirects that are followed within a request: what curl follows unless told otherwise, and more
/// than the 20 of browsers.
pub const FOLLOW_MAX: u32 = 50;

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
    /// `http://host:port/path?query`, or https; it may hold placeholders.
    pub url: String,
    /// GET.
    pub method: String,
    /// Further header fields of every request, each as it is typed: `Name: value`.
    pub headers: Vec<String>,
    /// Request body; none.
    pub body: Vec<u8>,
    /// Requests of a file, instead of `url`, `method` and `body`; `url` then names the file.
    pub asked: Vec<Asked>,
    /// Which of several requests is next; in order.
    pub pick: Pick,
    /// Columns for the placeholders `{csv:FILE:COLUMN}`.
    pub columns: Vec<Column>,
    /// 1.1.
    pub version: HttpVersion,
    /// `user:password` for basic authentication; that of the URL.
    pub user: Option<String>,
    /// Redirects that are followed within a request, at most; 0: none.
    pub follow: u32,
    /// `http://[user:password@]host:port` of a proxy; none.
    pub proxy: Option<String>,
    /// `HOST:PORT:ADDR:PORT`: where to connect instead.
    pub connect_to: Vec<String>,
    /// Unix socket to connect to, whatever the URL's host.
    pub unix: Option<PathBuf>,
    /// Local addresses; the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// Certificates and versions.
    pub tls: TlsPlan,
    /// io_uring where the kernel allows it.
    pub engine: Engine,
    /// Whose clock says when bytes arrived; the wake-up's.
    pub stamps: Stamps,
    /// Concurrent connections over all threads; 10.
    pub connections: u32,
    /// Threads; 1. One thread makes some 10^5 requests a second, and a second thread that shares a
    /// CPU with the server takes from the server what it measures.
    pub threads: u32,
    /// CPUs to pin the threads to, in turn; empty: wherever the kernel likes.
    pub cpus: Vec<u32>,
    /// Whether connections are used again; true.
    pub keep_alive: bool,
    /// Whether a request that met the close of a kept connection is sent once more; true.
    pub retry: bool,
    /// Requests after which the client closes a connection; never.
    pub requests_per_connection: Option<u64>,
    /// Requests that may be out on one connection at once; 1.
    pub pipeline: u32,
    /// Whether a body waits for `100 Continue`; false.
    pub expect_continue: bool,
    /// Whether connections send back the cookies that were set on them; false.
    pub cookies: bool,
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
    /// Most requests that are due and wait for a connection; 1 000 000.
    pub queue_max: u64,
    /// Which replies count as ok; status 200 to 399, any length.
    pub verify: Verify,
    /// What the load is to keep; nothing.
    pub goals: Vec<Goal>,
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
    #[error("{which}: {source}")]
    Request { which: String, source: PrepareError },
    #[error("CONNECT asks for a tunnel, and a load has no use for one: choose another method (-X)")]
    Tunnel,
    #[error("status {0} to {1} is no range: it goes from 100 to 999, the lower one first")]
    Status(u16, u16),
    #[error("a share of {0} is none: it goes from 0 to 1")]
    Part(f64),
    #[error("a pipeline of {0} is none: it goes from 1 (none) to {PIPELINE_MAX} (--pipeline)")]
    Pipeline(u32),
    #[error("--pipeline asks for several requests on one connection, and {0}")]
    PipelineWith(&'static str),
    #[error("--follow must be at most {FOLLOW_MAX}, got {0}")]
    Follow(u32),
    #[error("--follow cannot be used with {0}: leave one of them out")]
    FollowWith(&'static str),
    #[error("--proxy finds the address of each host itself: leave out {0}")]
    ProxyWith(&'static str),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("0 requests on a connection make no load (--requests-per-connection)")]
    NoRequestsPerConnection,
    #[error("a queue of {0} requests is none: it goes from 1 to {QUEUE_MAX} (--queue)")]
    Queue(u64),
    #[error("{0} has no request in it")]
    NothingAsked(String),
    #[error(transparent)]
    Pacing(#[from] PacingError),
    #[error(transparent)]
    ConnectTo(#[from] ConnectToError),
    #[error(
        "{user}: basic authentication is written USER:PASSWORD, without control characters (-u)"
    )]
    User { user: String },
    #[error("the local address {0} and the server's {1} are not of one family (--source)")]
    Family(IpAddr, SocketAddr),
}

impl LoadOptions {
    /// The defaults, for that URL. When to end is still to be said.
    pub fn new(url: impl Into<String>) -> Self {
        let plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        Self {
            url: url.into(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            asked: Vec::new(),
            pick: plan.pick,
            columns: Vec::new(),
            version: plan.version,
            user: None,
            follow: 0,
            proxy: None,
            connect_to: Vec::new(),
            unix: None,
            sources: Vec::new(),
            tls: plan.tls,
            engine: plan.engine,
            stamps: plan.stamps,
            connections: plan.connections,
            threads: plan.threads,
            cpus: Vec::new(),
            keep_alive: plan.keep_alive,
            retry: true,
            requests_per_connection: None,
            pipeline: plan.pipeline,
            expect_continue: false,
            cookies: false,
            busy_poll: false,
            requests: None,
            duration: None,
            timeout: plan.timeout,
            drain: plan.drain,
            pacing: plan.pacing,
            queue_max: plan.queue_max,
            verify: plan.verify,
            goals: Vec::new(),
            interval: plan.interval,
            raw_max: plan.raw_max,
            seed: plan.seed,
        }
    }

    /// The complete plan. Resolves names of hosts.
    ///
    /// # Errors
    /// What was typed makes no load; see [`PlanError`].
    pub fn plan(&self) -> Result<LoadPlan, PlanError> {
        self.check_numbers()?;
        pacing::check(&self.pacing)?;
        self.check_together()?;
        let proxy = self.proxy.as_deref().map(|typed| proxy::parse(typed, &self.sources));
        let proxy = proxy.transpose()?;
        let (origins, requests) = self.requests(proxy.as_ref())?;
        self.check_pipeline(&origins)?;
        let plan = LoadPlan {
            url: url::shown(&self.url),
            n_requests: requests.len() as u64,
            origins,
            requests,
            pick: self.pick,
            columns: self.columns.clone(),
            version: self.version,
            engine: self.engine,
            stamps: self.stamps,
            connections: self.connections,
            threads: self.threads,
            cpus: self.cpus.clone(),
            keep_alive: self.keep_alive,
            requests_per_connection: self.requests_per_connection,
            pipeline: self.pipeline,
            expect_continue: self.expect_continue,
            cookies: self.cookies,
            follow: self.follow,
            connect_to: if self.follow > 0 { self.connect_to.clone() } else { Vec::new() },
            proxy,
            sources: self.sources.clone(),
            tls: self.tls.clone(),
            busy_poll: self.busy_poll,
            stop: LoadStop { requests: self.requests, duration: self.duration },
            timeout: self.timeout,
            drain: self.drain,
            retry: self.retry,
            lost_max: None,
            first_alone: false,
            pacing: self.pacing.clone(),
            queue_max: self.queue_max,
            verify: self.verify.clone(),
            goals: self.goals.clone(),
            interval: self.interval,
            raw_max: self.raw_max,
            seed: self.seed,
            share: record::Share { index: 0, of: 1 },
        };
        for (index, request) in plan.requests.iter().enumerate() {
            let which = || format!("{}, request {}", plan.url, index + 1);
            Prepared::new(&plan, request)
                .map_err(|source| PlanError::Request { which: which(), source })?;
        }
        Ok(plan)
    }

    /// Where requests go, and the requests.
    fn requests(
        &self,
        proxy: Option<&record::Proxy>,
    ) -> Result<(Vec<Origin>, Vec<RequestPlan>), PlanError> {
        let typed = Asked {
            method: self.method.clone(),
            body: self.body.clone(),
            templated: true,
            ..Asked::get(&self.url)
        };
        let asked = if self.asked.is_empty() { std::slice::from_ref(&typed) } else { &self.asked };
        let further: Vec<(String, String)> =
            self.headers.iter().map(|line| field(line)).collect::<Result<_, _>>()?;
        let mut origins = Origins::new(self, proxy.map(|proxy| proxy.addr))?;
        let mut requests = Vec::with_capacity(asked.len());
        for one in asked {
            let target = url::parse(&one.url)?;
            let mut headers = one.headers.clone();
            headers.extend(further.iter().cloned());
            let is_said =
                headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
            // Two such fields are none that a server understands: what was written out holds.
            if !is_said && let Some(user) = self.user.as_ref().or(target.user.as_ref()) {
                headers.push(("Authorization".to_owned(), authorization(user)?));
            }
            requests.push(RequestPlan {
                origin: origins.of(&target)?,
                method: one.method.clone(),
                target: target.target,
                headers,
                body: one.body.clone(),
                weight: one.weight.max(1),
                templated: one.templated,
                expected: None,
                verbatim: None,
            });
        }
        if requests.iter().any(|request| request.method == "CONNECT") {
            return Err(PlanError::Tunnel);
        }
        Ok((origins.origins, requests))
    }

    fn check_numbers(&self) -> Result<(), PlanError> {
        let Self { connections, threads, pipeline, queue_max, .. } = *self;
        let (low, high) = (self.verify.status_min, self.verify.status_max);
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let hashed = match self.verify.bodies {
            record::Bodies::Hash(share) => share,
            _ => 0.0,
        };
        let ends = self.requests.is_some()
            || self.duration.is_some()
            || matches!(self.pacing, Pacing::Replay { .. });
        let refusals = [
            (connections == 0, PlanError::NoConnections),
            (connections > CONNECTIONS_MAX, PlanError::TooManyConnections(connections)),
            (threads == 0, PlanError::NoThreads),
            (threads > THREADS_MAX, PlanError::TooManyThreads(threads)),
            (threads > connections, PlanError::IdleThreads { threads, connections }),
            (!ends, PlanError::Endless),
            (self.requests == Some(0), PlanError::NoRequests),
            (self.duration == Some(Nanos::ZERO), PlanError::NoDuration),
            (self.timeout == Nanos::ZERO, PlanError::NoTimeout),
            (self.timeout > TIMEOUT_MAX, PlanError::LongTimeout(self.timeout)),
            (self.interval < INTERVAL_MIN, PlanError::ShortInterval(self.interval)),
            (self.raw_max > RAW_MAX, PlanError::LongLog(self.raw_max)),
            (!(100..=high).contains(&low) || high > 999, PlanError::Status(low, high)),
            (!is_share(self.tls.resume), PlanError::Part(self.tls.resume)),
            (!is_share(hashed), PlanError::Part(hashed)),
            (!(1..=PIPELINE_MAX).contains(&pipeline), PlanError::Pipeline(pipeline)),
            (self.requests_per_connection == Some(0), PlanError::NoRequestsPerConnection),
            (!(1..=QUEUE_MAX).contains(&queue_max), PlanError::Queue(queue_max)),
        ];
        refusals.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, error)| Err(error))
    }

    /// What cannot be together.
    fn check_together(&self) -> Result<(), PlanError> {
        let follows = self.follow > 0;
        let refusals = [
            (self.follow > FOLLOW_MAX, PlanError::Follow(self.follow)),
            (
                follows && self.pipeline > 1,
                PlanError::FollowWith("--pipeline, which does not wait for replies"),
            ),
            (follows && self.expect_continue, PlanError::FollowWith("--expect-continue")),
            (
                self.proxy.is_some() && !self.connect_to.is_empty(),
                PlanError::ProxyWith("--connect-to"),
            ),
            (self.proxy.is_some() && self.unix.is_some(), PlanError::ProxyWith("--unix")),
        ];
        refusals.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, error)| Err(error))
    }

    fn check_pipeline(&self, origins: &[Origin]) -> Result<(), PlanError> {
        let obstacles = [
            (!self.keep_alive, "there are no requests after the first without keep-alive"),
            (self.version == HttpVersion::Http10, "HTTP/1.0 has no pipelining"),
            (self.expect_continue, "a body that waits for 100 Continue blocks those behind it"),
            (origins.len() > 1, "the URLs lead to different servers"),
        ];
        let obstacle = obstacles.into_iter().find(|(applies, _)| *applies && self.pipeline > 1);
        obstacle.map_or(Ok(()), |(_, why)| Err(PlanError::PipelineWith(why)))
    }
}

/// The places that URLs lead to, each once.
struct Origins<'a> {
    options: &'a LoadOptions,
    connect_to: Vec<ConnectTo>,
    proxy: Option<SocketAddr>,
    resolved: HashMap<(String, u16), SocketAddr>,
    origins: Vec<Origin>,
}

impl<'a> Origins<'a> {
    fn new(options: &'a LoadOptions, proxy: Option<SocketAddr>) -> Result<Self, PlanError> {
        let connect_to = options.connect_to.iter().map(|typed| typed.parse());
        Ok(Self {
            options,
            connect_to: connect_to.collect::<Result<_, _>>()?,
            proxy,
            resolved: HashMap::new(),
            origins: Vec::new(),
        })
    }

    /// Index of the origin of that URL.
    fn of(&mut self, target: &Target) -> Result<u32, PlanError> {
        let origin = Origin {
            place: self.place(target)?,
            host: target.host.clone(),
            tls_name: target.is_tls.then(|| target.name.clone()),
        };
        let known = self.origins.iter().position(|known| *known == origin);
        Ok(known.unwrap_or_else(|| {
            self.origins.push(origin);
            self.origins.len() - 1
        }) as u32)
    }

    fn place(&mut self, target: &Target) -> Result<Place, PlanError> {
        if let Some(path) = &self.options.unix {
            return Ok(Place::Unix(path.clone()));
        }
        if let Some(addr) = self.proxy {
            return Ok(Place::Inet(addr));
        }
        let redirected = self.connect_to.iter().find_map(|rule| rule.apply(target));
        let (name, port) = redirected.unwrap_or_else(|| (target.name.clone(), target.port));
        let addr = match self.resolved.get(&(name.clone(), port)) {
            Some(addr) => *addr,
            None => {
                let addr = url::resolve(&name, port, self.options.sources.first())?;
                self.resolved.insert((name, port), addr);
                addr
            }
        };
        let stranger = self.options.sources.iter().find(|from| from.is_ipv4() != addr.is_ipv4());
        stranger.map_or(Ok(Place::Inet(addr)), |from| Err(PlanError::Family(*from, addr)))
    }
}

fn authorization(user: &str) -> Result<String, PlanError> {
    if !user.contains(':') || user.chars().any(char::is_control) {
        let name = user.split(':').next().unwrap_or_default();
        return Err(PlanError::User { user: name.escape_debug().to_string() });
    }
    Ok(source::basic_auth(user))
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
        let cases: [(&str, Change); 32] = [
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
            ("--pipeline", |o| o.pipeline = 0),
            ("without keep-alive", |o| (o.pipeline, o.keep_alive) = (2, false)),
            ("no pipelining", |o| (o.pipeline, o.version) = (2, HttpVersion::Http10)),
            ("--queue", |o| o.queue_max = 0),
            ("USER:PASSWORD", |o| o.user = Some("me".to_owned())),
            ("higher rate", |o| o.pacing = Pacing::Constant { rate: units::PerSecond(0.0) }),
            ("one family", |o| o.sources = vec!["::1".parse().unwrap()]),
            ("at most 50, got 51", |o| o.follow = 51),
            ("with --pipeline, which does not wait", |o| (o.follow, o.pipeline) = (1, 2)),
            ("--expect-continue", |o| (o.follow, o.expect_continue) = (1, true)),
            ("leave out --connect-to", |o| {
                (o.proxy, o.connect_to) = (Some("x:1".to_owned()), vec!["::x:1".to_owned()]);
            }),
            ("leave out --unix", |o| {
                (o.proxy, o.unix) = (Some("x:1".to_owned()), Some("/x".into()));
            }),
            ("names no port", |o| o.proxy = Some("http://127.0.0.1".to_owned())),
            ("HOST:PORT:ADDR:PORT", |o| o.connect_to = vec!["x".to_owned()]),
        ];
        for (part, change) in cases {
            let text = refusal(change);
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    fn rendered(plan: &LoadPlan) -> String {
        let prepared = Prepared::new(plan, &plan.requests[0]).unwrap();
        String::from_utf8(prepared.bytes().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn urls_of_one_server_share_its_origin() {
        let mut options = LoadOptions::new("urls.txt");
        options.requests = Some(1);
        let urls = ["http://127.0.0.1:81/a", "http://127.0.0.1:82/", "http://127.0.0.1:81/b"];
        options.asked = urls.map(Asked::get).to_vec();
        let plan = options.plan().unwrap();
        assert_eq!(plan.origins.len(), 2);
        let origins: Vec<u32> = plan.requests.iter().map(|request| request.origin).collect();
        assert_eq!(origins, [0, 1, 0]);
        options.unix = Some("/run/x.sock".into());
        let places: Vec<Place> =
            options.plan().unwrap().origins.into_iter().map(|origin| origin.place).collect();
        assert_eq!(places, vec![Place::Unix("/run/x.sock".into()); 2]);
    }

    #[test]
    fn a_password_is_a_field_and_not_in_the_plans_url() {
        let mut options = LoadOptions::new("http://me:secret@127.0.0.1:81/");
        options.requests = Some(1);
        let plan = options.plan().unwrap();
        assert!(!plan.url.contains("secret"), "{}", plan.url);
        assert!(rendered(&plan).contains("\r\nAuthorization: Basic bWU6c2VjcmV0\r\n"));
        assert!(!format!("{:?}", plan.for_record()).contains("bWU6"));
    }

    #[test]
    fn an_authorization_that_was_written_out_is_the_only_one() {
        let mut options = LoadOptions::new("http://me:secret@127.0.0.1:81/");
        options.requests = Some(1);
        options.headers = vec!["authorization: Bearer x".to_owned()];
        let request = rendered(&options.plan().unwrap()).to_lowercase();
        assert_eq!(request.matches("authorization").count(), 1, "{request}");
        assert!(request.contains("bearer x"), "{request}");
    }

    #[test]
    fn a_plan_says_where_and_what() {
        let mut options = LoadOptions::new("http://127.0.0.1:81/x?y");
        options.duration = Some(Nanos::from_secs(3));
        options.headers = vec!["Accept:  text/html ".to_owned()];
        let plan = options.plan().unwrap();
        assert_eq!(plan.origin().place, Place::Inet("127.0.0.1:81".parse().unwrap()));
        assert_eq!((&*plan.origin().host, &*plan.requests[0].target), ("127.0.0.1:81", "/x?y"));
        let request = rendered(&plan);
        assert_eq!(request, "GET /x?y HTTP/1.1\r\nHost: 127.0.0.1:81\r\nAccept: text/html\r\n\r\n");
    }

    #[test]
    fn without_keep_alive_the_request_says_so() {
        let mut options = LoadOptions::new("http://127.0.0.1:81/");
        (options.requests, options.keep_alive) = (Some(1), false);
        let request = rendered(&options.plan().unwrap());
        assert!(request.contains("\r\nConnection: close\r\n"), "{request}");
    }
}
