//! What a load is to do, complete: made once from what was typed; below that nothing is optional and
//! nothing is checked again. Start reading at [`LoadPlan`].

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::goal::Goal;
use crate::pacing::Pacing;
use crate::redirects::Proxy;

/// What a load is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// The URL as typed, or the file with the requests, for the report.
    pub url: String,
    /// Where requests go, at least one place.
    pub origins: Vec<Origin>,
    /// What is asked for, at least one request.
    pub requests: Vec<RequestPlan>,
    /// Requests of the plan before a record shortened the list; the same as its length elsewhere.
    pub n_requests: u64,
    /// Which of them is next.
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
    /// Whether a connection sends back the cookies that were set on it.
    pub cookies: bool,
    /// Redirects that are followed within a request, at most; 0: none, each is a reply as any other.
    #[serde(default)]
    pub follow: u32,
    /// Where connections go instead, as typed (`HOST:PORT:ADDR:PORT`): the places of `origins` are
    /// found by it already, those that redirects lead to are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect_to: Vec<String>,
    /// The proxy; it is the place of every origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Local addresses, given to connections in turn; empty: the kernel's choice.
    pub sources: Vec<IpAddr>,
    /// For origins with TLS.
    pub tls: TlsPlan,
    /// Whether threads spin instead of sleeping while they wait: stamps are not late by a wake-up. The
    /// CPU time of spinning is in no figure.
    pub busy_poll: bool,
    /// When to end.
    pub stop: LoadStop,
    /// Longest wait for connecting, for the first byte, and for the rest of the reply, each.
    pub timeout: Nanos,
    /// How long replies that are in flight when the load ends may still take. They count as done
    /// (`drained`), not in the rate; what is in flight after that is unanswered.
    pub drain: Nanos,
    /// Whether an idempotent request is sent once more, on a new connection, where the server closed
    /// the one that it was on before a byte of its reply, and that connection had served before
    /// (RFC 9112, 9.3.1). `false` in older files, which had no such thing.
    #[serde(default)]
    pub retry: bool,
    /// Ends the load after this many requests for which the server could not be reached or was lost
    /// ([`crate::Sample::is_lost`]); none: it goes on as planned.
    #[serde(default)]
    pub lost_max: Option<u64>,
    /// Whether the first request of each thread goes out alone: its other connections begin when the
    /// head of the first reply has come, and the record keeps that head.
    #[serde(default)]
    pub first_alone: bool,
    /// When requests are due.
    pub pacing: Pacing,
    /// Most requests that are due and wait for a free connection, over all threads. Further ones are
    /// dropped and counted.
    pub queue_max: u64,
    /// Which replies count as `ok`.
    pub verify: Verify,
    /// Goals of the load; if one is broken, the load still ends as planned.
    #[serde(default)]
    pub goals: Vec<Goal>,
    /// Length of an interval. When there would be more than 1200 of them, neighbours are joined and
    /// the length doubles: memory does not grow with time.
    pub interval: Nanos,
    /// Most samples kept in the raw log: every k-th request, k doubling when full.
    pub raw_max: u32,
    /// Seed of all random choices.
    pub seed: u64,
    /// Which part of a larger load this is; a local run is 0 of 1.
    pub share: Share,
}

/// A server, as a connection knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Where to connect.
    pub place: ServerAddress,
    /// Host field of each request ("localhost:8080").
    pub host: String,
    /// The name that the certificate is to have, where the connection is TLS.
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
    /// The body of its reply, where it was fetched beforehand.
    pub expected: Option<ExpectedBody>,
    /// The whole request as it is sent, where its bytes matter: head and body, in place of what would
    /// be made of the other fields, which then only describe it. Nothing is added to it and nothing
    /// checked. Always `None` in a record: it may hold a password.
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

    /// Whether sending it twice does what sending it once does (RFC 9110, 9.2.2).
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

/// Whether a request of that method, sent twice, does what it does when it is sent once (RFC 9110,
/// 9.2.2). Methods are case-sensitive, and one that is not known may do anything.
pub fn is_idempotent(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE")
}

/// What the body of a reply was before the load.
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
    /// One for each row, at least one.
    pub values: Vec<String>,
}

/// Which of several requests is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// In the order of the list, over and over; each as often in a row as its weight says.
    InOrder,
    /// At random, by weight.
    AtRandom,
}

/// Version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0; keep-alive is asked for by a field.
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
    /// io_uring where the kernel allows it, else epoll.
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
    /// The generator's, once for each wake-up.
    WakeUp,
    /// The kernel's, when it took each segment from the device (SO_TIMESTAMPNS).
    Kernel,
}

/// TLS, as a client asks for it. Files are named, not held: a key has no place in a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TlsPlan {
    /// File of the authorities that are trusted (PEM); none: those of the machine.
    pub ca: Option<PathBuf>,
    /// Whether any certificate will do.
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

/// When a load ends: whichever comes first; at least one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStop {
    /// After this many requests were started.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Nanos>,
}

/// Which complete replies count as `ok`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verify {
    /// Lowest status that is expected.
    pub status_min: u16,
    /// Highest status that is expected.
    pub status_max: u16,
    /// Length of every body, where it is known beforehand.
    pub length: Option<Bytes>,
    /// Header fields that every reply must have: name, and value where that matters.
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
    /// Their length, and the hash of as many as cost the generator less than 1 % of its CPU time: fewer
    /// the longer they are.
    Sample,
}

impl Bodies {
    /// Whether the hash of at least one body is to be compared.
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

/// Requests that a record keeps of its plan.
const REQUESTS_KEPT: usize = 100;

/// Parts of the names of fields whose values are secrets, in lower case: `Proxy-Authorization`,
/// `X-Auth-Token`, `X-Api-Key`, `Cookie`.
const SECRETS: [&str; 6] = ["auth", "token", "secret", "password", "api-key", "cookie"];

impl LoadPlan {
    /// Whether nothing that was asked for closes a connection as long as it is needed.
    pub fn keeps_connections(&self) -> bool {
        self.keep_alive
            && self.requests_per_connection.is_none()
            && !self.requests.iter().any(RequestPlan::asks_to_close)
    }

    /// `GET target` of the server at `addr`, closed loop, 10 connections, one thread, for 10 seconds:
    /// the defaults of all the rest.
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
            share: Share { index: 0, of: 1 },
        }
    }

    /// The first origin, which most loads have alone.
    ///
    /// # Panics
    /// If there is none: a plan has one.
    pub fn origin(&self) -> &Origin {
        self.origins.first().expect("a plan has at least one origin")
    }

    /// Which origin's connections carry requests to `origin`: through a proxy, all that is not TLS goes
    /// over the same ones (RFC 9112, 3.2.2: each request says where it is for).
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
