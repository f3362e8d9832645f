//! Turns what was typed into a complete [`LoadPlan`]. Owns the refusals; the defaults are those of [`LoadPlan::get`].
//! Start reading at [`LoadOptions::plan`].

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use record::{HttpVersion, LoadPlan, LoadStop, Origin, Pacing, RequestPlan, ServerAddress};
use stats::SPAN_MAX;
use units::Nanos;

use crate::connect_to::{ConnectTo, ConnectToError};
use crate::pacing::{self, PacingError};
use crate::prepared::{PrepareError, Prepared};
use crate::proxy::{self, ProxyError};
use crate::source::{self, ListedRequest};
use crate::url::{self, UrlError, UrlTarget};

/// Most connections of one load: the index of a slot and the descriptors of a process fit well.
pub const CONNECTIONS_MAX: u32 = 1_000_000;

/// Most threads: the CPUs that the kernel's affinity call knows.
pub const THREADS_MAX: u32 = 1024;

/// Most requests that may be in flight on one connection at once.
pub const PIPELINE_MAX: u32 = 1000;

/// Most requests that may wait for a connection: eight bytes each.
pub const QUEUE_MAX: u64 = 100_000_000;

/// Most redirects that are followed within a request: what curl follows unless told otherwise, and more
/// than the 20 of browsers.
pub const FOLLOW_MAX: u32 = 50;

/// Most requests kept in the raw log (about 80 bytes each in memory).
pub const RAW_MAX: u32 = 10_000_000;

/// Shortest interval. Each costs about 10 us, and finer detail is seldom needed.
pub const INTERVAL_MIN: Nanos = Nanos::from_millis(10);

/// Longest timeout. A request has three phases (connecting, first byte, rest), each with its own timeout. All three
/// must fit into the hour that a histogram holds; otherwise the longest requests would be cut off unseen.
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
    pub asked: Vec<ListedRequest>,
    /// `user:password` for basic authentication; that of the URL.
    pub user: Option<String>,
    /// `http://[user:password@]host:port` of a proxy; none.
    pub proxy: Option<String>,
    /// Unix socket to connect to instead of the URL's host.
    pub unix: Option<PathBuf>,
    /// Everything else, as the plan has it. [`LoadOptions::plan`] checks it and fills in what the fields above ask
    /// for: URL, origins, requests and proxy. It must say when the load ends.
    pub draft: LoadPlan,
}

/// Why a plan cannot be made of the options; each text says what to change.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts are the definitions")]
pub enum PlanError {
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("-c must be between 1 and {CONNECTIONS_MAX}, got {0}")]
    Connections(u32),
    #[error("-t must be between 1 and {THREADS_MAX}, got {0}")]
    Threads(u32),
    #[error(
        "-t must be at most -c, got {threads} threads for {connections} connections: raise -c or \
         lower -t"
    )]
    IdleThreads { threads: u32, connections: u32 },
    #[error("the load has no end: give a number of requests (-n) or a duration (-d)")]
    Endless,
    #[error("-n must be at least 1, got 0")]
    NoRequests,
    #[error("-d must be longer than 0, as in 10s")]
    NoDuration,
    #[error("--timeout must be longer than 0, as in 10s")]
    NoTimeout,
    #[error("--timeout must be at most {TIMEOUT_MAX}, got {0}")]
    LongTimeout(Nanos),
    #[error("the interval must be at least {INTERVAL_MIN}, got {0}")]
    ShortInterval(Nanos),
    #[error("--raw must be at most {RAW_MAX}, got {0}")]
    LongLog(u32),
    #[error("-H must be a field with a colon, as in 'Accept: text/html'; got `{0}`")]
    Header(String),
    #[error("{which}: {source}")]
    Request { which: String, source: PrepareError },
    #[error("-X must not be CONNECT, which asks for a tunnel: choose another method")]
    Tunnel,
    #[error("--expect-status must be between 100 and 999, the lower one first; got {0}-{1}")]
    Status(u16, u16),
    #[error("--tls-resume must be between 0 and 1, got {0}")]
    Resume(f64),
    #[error("the share of --verify must be between 0 and 1, got {0}")]
    Hashed(f64),
    #[error("--pipeline must be 1 (off) to {PIPELINE_MAX}, got {0}")]
    Pipeline(u32),
    #[error("--pipeline cannot be used here: {0}")]
    PipelineWith(&'static str),
    #[error("--follow must be at most {FOLLOW_MAX}, got {0}")]
    Follow(u32),
    #[error("--follow cannot be used with {0}: leave one of them out")]
    FollowWith(&'static str),
    #[error(
        "--proxy cannot be used with {0}, since the proxy finds each host itself: leave one of them out"
    )]
    ProxyWith(&'static str),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("--requests-per-connection must be at least 1, got 0")]
    NoRequestsPerConnection,
    #[error("--queue must be between 1 and {QUEUE_MAX}, got {0}")]
    Queue(u64),
    #[error("{0} has no request in it")]
    NothingAsked(String),
    #[error(transparent)]
    Pacing(#[from] PacingError),
    #[error(transparent)]
    ConnectTo(#[from] ConnectToError),
    #[error("-u must be USER:PASSWORD without control characters, got the user `{user}`")]
    User { user: String },
    #[error("--source {0} and the server's address {1} must both be IPv4, or both IPv6")]
    Family(IpAddr, SocketAddr),
}

impl LoadOptions {
    /// The defaults for that URL. The caller must still say when to end.
    pub fn new(url: impl Into<String>) -> Self {
        let mut draft = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        draft.stop = LoadStop { requests: None, duration: None };
        draft.retry = true;
        Self {
            url: url.into(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            asked: Vec::new(),
            user: None,
            proxy: None,
            unix: None,
            draft,
        }
    }

    /// The complete plan. Resolves names of hosts.
    ///
    /// # Errors
    /// What was typed makes no load; see [`PlanError`].
    pub fn plan(&self) -> Result<LoadPlan, PlanError> {
        self.check_numbers()?;
        pacing::check(&self.draft.pacing)?;
        self.check_together()?;
        let proxy = self.proxy.as_deref().map(|typed| proxy::parse(typed, &self.draft.sources));
        let proxy = proxy.transpose()?;
        let (origins, requests) = self.requests(proxy.as_ref())?;
        self.check_pipeline(&origins)?;
        let mut plan = LoadPlan {
            url: url::shown(&self.url),
            n_requests: requests.len() as u64,
            origins,
            requests,
            proxy,
            ..self.draft.clone()
        };
        if plan.follow == 0 {
            // The origins' addresses already follow from it, and no redirect leads to other origins.
            plan.connect_to.clear();
        }
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
        let typed = ListedRequest {
            method: self.method.clone(),
            body: self.body.clone(),
            templated: true,
            ..ListedRequest::get(&self.url)
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
            // No server understands two such fields, so the one that was written out wins.
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
        let LoadPlan { connections, threads, pipeline, queue_max, .. } = self.draft;
        let (low, high) = (self.draft.verify.status_min, self.draft.verify.status_max);
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let hashed = match self.draft.verify.bodies {
            record::Bodies::Hash(share) => share,
            _ => 0.0,
        };
        let ends = self.draft.stop.requests.is_some()
            || self.draft.stop.duration.is_some()
            || matches!(self.draft.pacing, Pacing::Replay { .. });
        let refusals = [
            (!(1..=CONNECTIONS_MAX).contains(&connections), PlanError::Connections(connections)),
            (!(1..=THREADS_MAX).contains(&threads), PlanError::Threads(threads)),
            (threads > connections, PlanError::IdleThreads { threads, connections }),
            (!ends, PlanError::Endless),
            (self.draft.stop.requests == Some(0), PlanError::NoRequests),
            (self.draft.stop.duration == Some(Nanos::ZERO), PlanError::NoDuration),
            (self.draft.timeout == Nanos::ZERO, PlanError::NoTimeout),
            (self.draft.timeout > TIMEOUT_MAX, PlanError::LongTimeout(self.draft.timeout)),
            (self.draft.interval < INTERVAL_MIN, PlanError::ShortInterval(self.draft.interval)),
            (self.draft.raw_max > RAW_MAX, PlanError::LongLog(self.draft.raw_max)),
            (!(100..=high).contains(&low) || high > 999, PlanError::Status(low, high)),
            (!is_share(self.draft.tls.resume), PlanError::Resume(self.draft.tls.resume)),
            (!is_share(hashed), PlanError::Hashed(hashed)),
            (!(1..=PIPELINE_MAX).contains(&pipeline), PlanError::Pipeline(pipeline)),
            (self.draft.requests_per_connection == Some(0), PlanError::NoRequestsPerConnection),
            (!(1..=QUEUE_MAX).contains(&queue_max), PlanError::Queue(queue_max)),
        ];
        refusals.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Refuses options that conflict.
    fn check_together(&self) -> Result<(), PlanError> {
        let follows = self.draft.follow > 0;
        let refusals = [
            (self.draft.follow > FOLLOW_MAX, PlanError::Follow(self.draft.follow)),
            (
                follows && self.draft.pipeline > 1,
                PlanError::FollowWith("--pipeline, which does not wait for replies"),
            ),
            (follows && self.draft.expect_continue, PlanError::FollowWith("--expect-continue")),
            (
                self.proxy.is_some() && !self.draft.connect_to.is_empty(),
                PlanError::ProxyWith("--connect-to"),
            ),
            (self.proxy.is_some() && self.unix.is_some(), PlanError::ProxyWith("--unix")),
        ];
        refusals.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, error)| Err(error))
    }

    fn check_pipeline(&self, origins: &[Origin]) -> Result<(), PlanError> {
        let obstacles = [
            (!self.draft.keep_alive, "without keep-alive a connection has one request"),
            (self.draft.version == HttpVersion::Http10, "HTTP/1.0 has no pipelining"),
            (
                self.draft.expect_continue,
                "a body that waits for 100 Continue blocks those behind it",
            ),
            (origins.len() > 1, "the URLs lead to different servers"),
        ];
        let obstacle =
            obstacles.into_iter().find(|(applies, _)| *applies && self.draft.pipeline > 1);
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
        let connect_to = options.draft.connect_to.iter().map(|typed| typed.parse());
        Ok(Self {
            options,
            connect_to: connect_to.collect::<Result<_, _>>()?,
            proxy,
            resolved: HashMap::new(),
            origins: Vec::new(),
        })
    }

    /// Index of the origin of that URL.
    fn of(&mut self, target: &UrlTarget) -> Result<u32, PlanError> {
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

    fn place(&mut self, target: &UrlTarget) -> Result<ServerAddress, PlanError> {
        if let Some(path) = &self.options.unix {
            return Ok(ServerAddress::Unix(path.clone()));
        }
        if let Some(addr) = self.proxy {
            return Ok(ServerAddress::Inet(addr));
        }
        let redirected = self.connect_to.iter().find_map(|rule| rule.apply(target));
        let (name, port) = redirected.unwrap_or_else(|| (target.name.clone(), target.port));
        let addr = match self.resolved.get(&(name.clone(), port)) {
            Some(addr) => *addr,
            None => {
                let addr = url::resolve(&name, port, self.options.draft.sources.first())?;
                self.resolved.insert((name, port), addr);
                addr
            }
        };
        let stranger =
            self.options.draft.sources.iter().find(|from| from.is_ipv4() != addr.is_ipv4());
        stranger.map_or(Ok(ServerAddress::Inet(addr)), |from| Err(PlanError::Family(*from, addr)))
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
        options.draft.stop.requests = Some(1);
        change(&mut options);
        options.plan().expect_err("refused").to_string()
    }

    #[test]
    fn what_makes_no_load_is_refused_with_the_way_out() {
        type Change = fn(&mut LoadOptions);
        let cases: [(&str, Change); 32] = [
            ("-c", |o| o.draft.connections = 0),
            ("1000000", |o| o.draft.connections = 1_000_001),
            ("-t", |o| o.draft.threads = 0),
            ("-t", |o| (o.draft.threads, o.draft.connections) = (2000, 3000)),
            ("raise -c", |o| (o.draft.connections, o.draft.threads) = (2, 3)),
            ("-d", |o| o.draft.stop.requests = None),
            ("-n", |o| o.draft.stop.requests = Some(0)),
            ("10s", |o| o.draft.stop.duration = Some(Nanos::ZERO)),
            ("--timeout", |o| o.draft.timeout = Nanos::ZERO),
            ("20m", |o| o.draft.timeout = Nanos::from_secs(1201)),
            ("10ms", |o| o.draft.interval = Nanos(1)),
            ("10000000", |o| o.draft.raw_max = 10_000_001),
            ("with a colon", |o| o.headers = vec!["Accept".to_owned()]),
            ("control character", |o| o.headers = vec!["A: b\r\nC: d".to_owned()]),
            ("not a token", |o| o.headers = vec![": b".to_owned()]),
            ("not a token", |o| o.method = "G T".to_owned()),
            ("CONNECT", |o| o.method = "CONNECT".to_owned()),
            ("lower one first", |o| {
                (o.draft.verify.status_min, o.draft.verify.status_max) = (300, 200)
            }),
            ("--pipeline", |o| o.draft.pipeline = 0),
            ("without keep-alive", |o| (o.draft.pipeline, o.draft.keep_alive) = (2, false)),
            ("no pipelining", |o| (o.draft.pipeline, o.draft.version) = (2, HttpVersion::Http10)),
            ("--queue", |o| o.draft.queue_max = 0),
            ("USER:PASSWORD", |o| o.user = Some("me".to_owned())),
            ("higher rate", |o| o.draft.pacing = Pacing::Constant { rate: units::PerSecond(0.0) }),
            ("both be IPv4", |o| o.draft.sources = vec!["::1".parse().unwrap()]),
            ("at most 50, got 51", |o| o.draft.follow = 51),
            ("with --pipeline, which does not wait", |o| {
                (o.draft.follow, o.draft.pipeline) = (1, 2)
            }),
            ("--expect-continue", |o| (o.draft.follow, o.draft.expect_continue) = (1, true)),
            ("with --connect-to", |o| {
                (o.proxy, o.draft.connect_to) = (Some("x:1".to_owned()), vec!["::x:1".to_owned()]);
            }),
            ("with --unix", |o| {
                (o.proxy, o.unix) = (Some("x:1".to_owned()), Some("/x".into()));
            }),
            ("names no port", |o| o.proxy = Some("http://127.0.0.1".to_owned())),
            ("HOST:PORT:ADDR:PORT", |o| o.draft.connect_to = vec!["x".to_owned()]),
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
        options.draft.stop.requests = Some(1);
        let urls = ["http://127.0.0.1:81/a", "http://127.0.0.1:82/", "http://127.0.0.1:81/b"];
        options.asked = urls.map(ListedRequest::get).to_vec();
        let plan = options.plan().unwrap();
        assert_eq!(plan.origins.len(), 2);
        let origins: Vec<u32> = plan.requests.iter().map(|request| request.origin).collect();
        assert_eq!(origins, [0, 1, 0]);
        options.unix = Some("/run/x.sock".into());
        let places: Vec<ServerAddress> =
            options.plan().unwrap().origins.into_iter().map(|origin| origin.place).collect();
        assert_eq!(places, vec![ServerAddress::Unix("/run/x.sock".into()); 2]);
    }

    #[test]
    fn a_password_is_a_field_and_not_in_the_plans_url() {
        let mut options = LoadOptions::new("http://me:secret@127.0.0.1:81/");
        options.draft.stop.requests = Some(1);
        let plan = options.plan().unwrap();
        assert!(!plan.url.contains("secret"), "{}", plan.url);
        assert!(rendered(&plan).contains("\r\nAuthorization: Basic bWU6c2VjcmV0\r\n"));
        assert!(!format!("{:?}", plan.for_record()).contains("bWU6"));
    }

    #[test]
    fn an_authorization_that_was_written_out_is_the_only_one() {
        let mut options = LoadOptions::new("http://me:secret@127.0.0.1:81/");
        options.draft.stop.requests = Some(1);
        options.headers = vec!["authorization: Bearer x".to_owned()];
        let request = rendered(&options.plan().unwrap()).to_lowercase();
        assert_eq!(request.matches("authorization").count(), 1, "{request}");
        assert!(request.contains("bearer x"), "{request}");
    }

    #[test]
    fn a_plan_says_where_and_what() {
        let mut options = LoadOptions::new("http://127.0.0.1:81/x?y");
        options.draft.stop.duration = Some(Nanos::from_secs(3));
        options.headers = vec!["Accept:  text/html ".to_owned()];
        let plan = options.plan().unwrap();
        assert_eq!(plan.origin().place, ServerAddress::Inet("127.0.0.1:81".parse().unwrap()));
        assert_eq!((&*plan.origin().host, &*plan.requests[0].target), ("127.0.0.1:81", "/x?y"));
        let request = rendered(&plan);
        assert_eq!(request, "GET /x?y HTTP/1.1\r\nHost: 127.0.0.1:81\r\nAccept: text/html\r\n\r\n");
    }

    #[test]
    fn without_keep_alive_the_request_says_so() {
        let mut options = LoadOptions::new("http://127.0.0.1:81/");
        (options.draft.stop.requests, options.draft.keep_alive) = (Some(1), false);
        let request = rendered(&options.plan().unwrap());
        assert!(request.contains("\r\nConnection: close\r\n"), "{request}");
    }
}
