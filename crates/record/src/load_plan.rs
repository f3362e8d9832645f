//! The complete plan of a load, made once from what was typed; below that nothing is optional and nothing is checked
//! again. Start reading at [`LoadPlan`].

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::goal::Goal;
use crate::pacing::Pacing;
use crate::proxy::Proxy;

/// The complete plan of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// The URL as typed, or the file with the requests, for the report.
    pub url: String,
    /// The servers that requests go to, at least one.
    pub origins: Vec<Origin>,
    /// The requests, at least one.
    pub requests: Vec<RequestPlan>,
    /// Number of requests in the plan before a record shortened the list; otherwise the length of the list.
    pub n_requests: u64,
    /// How the next request is chosen.
    pub pick: Pick,
    /// Values for the placeholders `{csv:FILE:COLUMN}`.
    pub columns: Vec<Column>,
    /// Version of HTTP in each request.
    pub version: HttpVersion,
    /// Kernel interface for sockets.
    pub engine: Engine,
    /// Clock of arrival times.
    pub stamps: Stamps,
    /// Concurrent connections over all threads, at least 1.
    pub connections: u32,
    /// Threads, 1 to `connections`.
    pub threads: u32,
    /// CPUs to pin the threads to, in turn; empty: the kernel chooses.
    pub cpus: Vec<u32>,
    /// Whether a connection is used again. If not, each request has its own connection and says
    /// `Connection: close`, and the client closes it in any case.
    pub keep_alive: bool,
    /// The client closes a connection after this many requests.
    pub requests_per_connection: Option<u64>,
    /// Most requests in flight on one connection, at least 1.
    pub pipeline: u32,
    /// Whether a body waits for `100 Continue`, at most a second.
    pub expect_continue: bool,
    /// Whether a connection sends back the cookies that it received.
    pub cookies: bool,
    /// Most redirects that are followed within a request; 0: none, and a redirect is a reply like any other.
    #[serde(default)]
    pub follow: u32,
    /// Replaced connection targets, as typed (`HOST:PORT:ADDR:PORT`). The addresses of `origins` already use them;
    /// those of redirects do not yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect_to: Vec<String>,
    /// The proxy; it is the address of every origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Local addresses, given to connections in turn; empty: the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// For origins with TLS.
    pub tls: TlsPlan,
    /// Whether threads spin instead of sleeping while they wait, so that stamps are not delayed by a wake-up. No figure
    /// includes the CPU time of spinning.
    pub busy_poll: bool,
    /// When to end.
    pub stop: LoadStop,
    /// Longest wait, separately for connecting, for the first byte, and for the rest of the reply.
    pub timeout: Nanos,
    /// How long to wait for replies in flight when the load ends. They count as done (`drained`), but not in the rate;
    /// requests still in flight after that are unanswered.
    pub drain: Nanos,
    /// Whether an idempotent request is sent again on a new connection, if the server closed its reused connection
    /// before the first byte of the reply (RFC 9112, 9.3.1). `false` in older files, which did not have it.
    #[serde(default)]
    pub retry: bool,
    /// Ends the load after this many requests for which the server could not be reached or was lost
    /// ([`crate::Sample::is_lost`]); `None`: no limit.
    #[serde(default)]
    pub lost_max: Option<u64>,
    /// Whether the first request of each thread goes out alone. The thread's other connections begin when the head of
    /// the first reply has arrived, and the record keeps that head.
    #[serde(default)]
    pub first_alone: bool,
    /// When requests are due.
    pub pacing: Pacing,
    /// Most due requests that wait for a free connection, over all threads. Further ones are dropped and counted.
    pub queue_max: u64,
    /// Which replies count as `ok`.
    pub verify: Verify,
    /// Goals of the load; if one is broken, the load still ends as planned.
    #[serde(default)]
    pub goals: Vec<Goal>,
    /// Length of an interval. With more than 1200 intervals neighbours are joined and the length doubles, so that
    /// memory does not grow with time.
    pub interval: Nanos,
    /// Most samples kept in the raw log: every k-th request, k doubling when full.
    pub raw_max: u32,
    /// Seed of all random choices.
    pub seed: u64,
    /// This load's part of a larger load; 0 of 1 for a local run.
    pub share: Share,
}

/// A server as a connection sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Where to connect.
    pub place: ServerAddress,
    /// Host field of each request ("localhost:8080").
    pub host: String,
    /// The name that the certificate must have, if the connection uses TLS.
    pub tls_name: Option<String>,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerAddress {
    /// TCP.
    Inet(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inet(addr) => addr.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// One request, as often as it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestPlan {
    /// Index of its origin.
    pub origin: u32,
    /// Method ("GET").
    pub method: String,
    /// Request target, origin form ("/index.html?x=1").
    pub target: String,
    /// Further header fields, name and value, in order. One named `Host` replaces the origin's.
    pub headers: Vec<(String, String)>,
    /// Body. Always empty in a record: it may hold a password, and be of any size.
    pub body: Vec<u8>,
    /// How often it is chosen, relative to the others, at least 1.
    pub weight: u32,
    /// Whether `{seq}`, `{rand}` and `{csv:FILE:COLUMN}` in target, header values and body are
    /// placeholders.
    pub templated: bool,
    /// The body of its reply, if it was fetched beforehand.
    pub expected: Option<ExpectedBody>,
    /// The whole request as sent, head and body, if its exact bytes matter. It replaces what would be made of the other
    /// fields, which then only describe it. Nothing is added to it or checked in it. Always `None` in a record: it may
    /// hold a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim: Option<Vec<u8>>,
}

impl RequestPlan {
    /// `GET target` of the first origin.
    pub fn get(target: impl Into<String>) -> Self {
        Self {
            origin: 0,
            method: "GET".to_owned(),
            target: target.into(),
            headers: Vec::new(),
            body: Vec::new(),
            weight: 1,
            templated: false,
            expected: None,
            verbatim: None,
        }
    }

    /// Whether sending it twice has the same effect as sending it once (RFC 9110, 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        is_idempotent(self.method.as_bytes())
    }

    /// Whether one of its fields asks for the connection to be closed after it.
    pub fn asks_to_close(&self) -> bool {
        let is_close = |option: &str| option.trim().eq_ignore_ascii_case("close");
        self.headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("connection") && value.split(',').any(is_close)
        })
    }
}

/// Whether a request of that method has the same effect when it is sent twice (RFC 9110, 9.2.2). Methods are
/// case-sensitive, and an unknown one may do anything.
pub fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
}

/// The body of a reply, as fetched before the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectedBody {
    /// Bytes, without chunk framing.
    pub length: Bytes,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// A column of a CSV file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// As in the placeholder.
    pub file: String,
    /// As in the placeholder.
    pub name: String,
    /// One for each row; at least one value.
    pub values: Vec<String>,
}

/// How the next of several requests is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// In the order of the list, repeatedly; each as often in a row as its weight.
    InOrder,
    /// At random, by weight.
    AtRandom,
}

/// Version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0; a header field asks for keep-alive.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http11,
}

/// Kernel interface for sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring if the kernel allows it, else epoll.
    Auto,
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
}

/// Clock of arrival times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stamps {
    /// The generator's clock, once for each wake-up.
    WakeUp,
    /// The kernel's clock, when it took each segment from the device (SO_TIMESTAMPNS).
    Kernel,
}

/// The TLS settings of a client. Files are named and not held, because keys must not be in a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TlsPlan {
    /// File of the trusted authorities (PEM); `None`: those of the machine.
    pub ca: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// Files of the client's certificate chain and its key (PEM).
    pub client: Option<(PathBuf, PathBuf)>,
    /// Versions that are offered.
    pub versions: TlsVersions,
    /// Share of handshakes that offer to resume a session, 0 to 1.
    pub resume: f64,
}

/// Versions of TLS that are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersions {
    /// Both.
    #[serde(rename = "1.2 and 1.3")]
    Both,
    /// 1.2 only.
    #[serde(rename = "1.2")]
    Only12,
    /// 1.3 only.
    #[serde(rename = "1.3")]
    Only13,
}

/// One agent's part of a load, fixed before the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// 0 to `of` - 1.
    pub index: u32,
    /// Number of agents.
    pub of: u32,
}

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Its part of a whole number that is divided among all: parts differ by at most 1, the larger ones first.
    pub fn part(self, whole: u64) -> u64 {
        let (of, index) = (u64::from(self.of.max(1)), u64::from(self.index));
        whole / of + u64::from(index < whole % of)
    }
}

/// When a load ends: at the first limit that is reached; at least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStop {
    /// After this many started requests.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Nanos>,
}

/// Which complete replies count as `ok`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verify {
    /// Lowest expected status.
    pub status_min: u16,
    /// Highest expected status.
    pub status_max: u16,
    /// Length of every body, if it is known beforehand.
    pub length: Option<Bytes>,
    /// Header fields that every reply must have: name, and value if that matters.
    #[serde(default)]
    pub headers: Vec<(String, Option<String>)>,
    /// What every body must contain.
    #[serde(default)]
    pub contains: Option<String>,
    /// How far bodies are compared with those that were fetched before the load.
    #[serde(default)]
    pub bodies: Bodies,
}

/// How far the bodies of replies are compared with [`RequestPlan::expected`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bodies {
    /// Not at all, and nothing is fetched before the load.
    #[default]
    None,
    /// Their length.
    Length,
    /// Their length, and the hash of this share of them, 0 to 1.
    Hash(f64),
    /// Their length, and the hash of as many bodies as cost the generator less than 1 % of its CPU time: the longer the
    /// bodies, the fewer.
    Sample,
}

impl Bodies {
    /// Whether at least one body is hashed.
    pub fn are_hashed(self) -> bool {
        match self {
            Self::None | Self::Length => false,
            Self::Hash(share) => share > 0.0,
            Self::Sample => true,
        }
    }
}

impl Default for Verify {
    fn default() -> Self {
        Self {
            status_min: 200,
            status_max: 399,
            length: None,
            headers: Vec::new(),
            contains: None,
            bodies: Bodies::None,
        }
    }
}

impl Default for TlsPlan {
    fn default() -> Self {
        Self { ca: None, insecure: false, client: None, versions: TlsVersions::Both, resume: 1.0 }
    }
}

/// Most requests of a plan that a record keeps.
const REQUESTS_KEPT: usize = 100;

/// Parts of the names of fields whose values are secrets, in lower case: `Proxy-Authorization`,
/// `X-Auth-Token`, `X-Api-Key`, `Cookie`.
const SECRETS: [&str; 6] = ["auth", "token", "secret", "password", "api-key", "cookie"];

impl LoadPlan {
    /// Whether the plan never closes a connection that is still needed.
    pub fn keeps_connections(&self) -> bool {
        self.keep_alive
            && self.requests_per_connection.is_none()
            && !self.requests.iter().any(RequestPlan::asks_to_close)
    }

    /// `GET target` of the server at `addr`, closed loop, 10 connections, one thread, for 10 seconds; everything else
    /// has its default.
    pub fn get(addr: SocketAddr, target: &str) -> Self {
        let host = addr.to_string();
        Self {
            url: format!("http://{host}{target}"),
            origins: vec![Origin { place: ServerAddress::Inet(addr), host, tls_name: None }],
            requests: vec![RequestPlan::get(target)],
            n_requests: 1,
            pick: Pick::InOrder,
            columns: Vec::new(),
            version: HttpVersion::Http11,
            engine: Engine::Auto,
            stamps: Stamps::WakeUp,
            connections: 10,
            threads: 1,
            cpus: Vec::new(),
            keep_alive: true,
            requests_per_connection: None,
            pipeline: 1,
            expect_continue: false,
            cookies: false,
            follow: 0,
            connect_to: Vec::new(),
            proxy: None,
            sources: Vec::new(),
            tls: TlsPlan::default(),
            busy_poll: false,
            stop: LoadStop { requests: None, duration: Some(Nanos::from_secs(10)) },
            timeout: Nanos::from_secs(10),
            drain: Nanos::from_secs(1),
            retry: false,
            lost_max: None,
            first_alone: false,
            pacing: Pacing::Closed,
            queue_max: 1_000_000,
            verify: Verify::default(),
            goals: Vec::new(),
            interval: Nanos::from_millis(100),
            raw_max: 10_000,
            seed: 1,
            share: Share::WHOLE,
        }
    }

    /// The first origin; most loads have only this one.
    ///
    /// # Panics
    /// If there is none: a plan has one.
    pub fn origin(&self) -> &Origin {
        self.origins.first().expect("a plan has at least one origin")
    }

    /// The origin whose connections carry requests to `origin`. Through a proxy, all requests without TLS share the
    /// same connections (RFC 9112, 3.2.2: each request names its server).
    pub fn carrier_of(&self, origin: u32) -> u32 {
        let is_plain = |origin: &Origin| origin.tls_name.is_none();
        let shares = self.proxy.is_some() && is_plain(&self.origins[origin as usize]);
        let first = self.origins.iter().position(is_plain).filter(|_| shares);
        first.map_or(origin, |index| index as u32)
    }

    /// The plan as a record keeps it: the first 100 requests, no secrets, bodies or values of columns.
    #[must_use]
    pub fn for_record(&self) -> Self {
        let mut kept = self.clone();
        kept.requests.truncate(REQUESTS_KEPT);
        for request in &mut kept.requests {
            request.body.clear();
            request.verbatim = None;
            for (name, value) in &mut request.headers {
                let name = name.to_lowercase();
                if SECRETS.iter().any(|part| name.contains(part)) {
                    "(not kept)".clone_into(value);
                }
            }
        }
        if let Some(authorization) =
            kept.proxy.as_mut().and_then(|proxy| proxy.authorization.as_mut())
        {
            "(not kept)".clone_into(authorization);
        }
        kept.columns.iter_mut().for_each(|column| column.values.clear());
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_asks_to_close_is_seen_however_it_is_written() {
        let cases = [
            ("Connection", "close", true),
            ("connection", "Upgrade, Close", true),
            ("Connection", "keep-alive", false),
            ("X-Connection", "close", false),
        ];
        for (name, value, asks) in cases {
            let headers = vec![(name.to_owned(), value.to_owned())];
            let request = RequestPlan { headers, ..RequestPlan::get("/") };
            assert_eq!(request.asks_to_close(), asks, "{name}: {value}");
        }
    }

    #[test]
    fn a_record_keeps_no_secret_of_its_plan() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        let fields = [
            ("Authorization", "hidden"),
            ("Proxy-Authorization", "hidden"),
            ("x-auth-token", "hidden"),
            ("X-API-Key", "hidden"),
            ("Cookie", "hidden"),
            ("Accept", "text/html"),
        ];
        let request = &mut plan.requests[0];
        request.headers = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        plan.proxy = Some(Proxy {
            addr: ([127, 0, 0, 1], 3128).into(),
            host: "proxy:3128".to_owned(),
            authorization: Some("hidden".to_owned()),
        });
        let request = &mut plan.requests[0];
        request.body = b"password=hidden".to_vec();
        request.verbatim = Some(b"GET / HTTP/1.0\r\nCookie: hidden\r\n\r\n".to_vec());
        let kept = plan.for_record();
        assert_eq!(kept.proxy.unwrap().authorization.as_deref(), Some("(not kept)"));
        let kept = &kept.requests[0];
        assert!(kept.headers.iter().all(|(_, value)| value != "hidden"), "{:?}", kept.headers);
        assert_eq!(kept.headers[5].1, "text/html");
        assert!(kept.body.is_empty() && kept.verbatim.is_none());
    }
}
