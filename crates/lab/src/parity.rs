//! Owns what can be observed of a running server from outside, in the same way for all: whether it keeps connections
//! and for how many requests, its version of HTTP, what it compresses, the length of its heads, its backlog. A
//! printed configuration says what the server understood; this says what it does. Start reading at [`probe`].
//!
//! Cost: a few fetches of the page and `REQUESTS_FEW` HEAD requests; then `REQUESTS` more, for at most `LONGEST`; the
//! same up to ten times more, if there is a limit to find. All of this happens before anything is measured.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use doctor::parity::is_unknown;
use record::LoadStop;
use units::Nanos;

use crate::calls::{self, Calls};
use crate::probe::Address;

/// Requests on one connection: two more than the most common limits (100 of Apache and Tomcat, 1000 of nginx and
/// lighttpd), so that these limits show. One request may be lost on a connection that was closed silently, and the
/// next opens another. The first `REQUESTS_FEW` are always made, even if the server is slow (a cold JVM), so that
/// their result does not depend on its speed.
const REQUESTS_FEW: u64 = 102;
const REQUESTS: u64 = 1002;
/// Requests that show whether a connection is kept at all.
const GETS: u64 = 4;
/// How long `REQUESTS` may take.
const LONGEST: Nanos = Nanos::from_secs(1);
/// How long all others may take.
const LONGEST_FEW: Nanos = Nanos::from_secs(30);
/// How long a reply may take.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// What was observed; `None` if it could not be.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ObservedSwitches {
    /// Its name (the Server field).
    pub server: Option<String>,
    /// Version of HTTP in its status line ("1.1").
    pub http_version: Option<String>,
    /// The Connection field of a reply on a connection that may be kept; "none" if there is none.
    pub connection_field: Option<String>,
    /// Bytes of the head of its reply, line ends included.
    pub header_bytes: Option<u64>,
    /// Whether the head has an ETag.
    pub etag: Option<bool>,
    /// Coding of the body for a client that takes gzip, brotli and zstd.
    pub coding: Option<String>,
    /// Requests that it answered on one connection, and whether it closed that connection.
    pub kept: Option<Kept>,
    /// The backlog of the listening sockets, from the kernel, and how many sockets there are.
    pub listening: Option<(u32, usize)>,
    /// System calls per request, or why they could not be traced.
    pub calls: Option<Result<Calls, String>>,
}

/// How long a connection was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Requests answered on one connection; 1 if each had its own.
    pub requests: u64,
    /// Whether the server closed it; otherwise no further request was made.
    pub closed: bool,
}

/// Asks a running server for `target` in several ways. Its sockets are read in its network: see
/// [`listening`].
pub fn probe(address: &Address, target: &str) -> ObservedSwitches {
    let mut seen = ObservedSwitches { kept: kept(address, target), ..ObservedSwitches::default() };
    // As a load with keep-alive asks, not as the last request of a connection.
    let mut plain = address.plan(target, 1, PATIENCE);
    plain.keep_alive = true;
    if let Ok(reply) = load::fetch(&plain) {
        seen.read_head(&reply.head);
    }
    let codings = ("Accept-Encoding".to_owned(), "gzip, br, zstd".to_owned());
    plain.requests[0].headers.push(codings);
    if let Ok(reply) = load::fetch(&plain) {
        let coding = field(&reply.head, "content-encoding");
        seen.coding = Some(coding.unwrap_or("off").to_owned());
    }
    seen
}

impl ObservedSwitches {
    fn read_head(&mut self, head: &str) {
        let status = head.lines().next().unwrap_or_default();
        let version = status.split(' ').next().and_then(|word| word.strip_prefix("HTTP/"));
        self.http_version = version.map(str::to_owned);
        self.server = field(head, "server").map(str::to_owned);
        let connection = field(head, "connection").unwrap_or("none");
        self.connection_field = Some(connection.to_ascii_lowercase());
        self.etag = Some(field(head, "etag").is_some());
        // Lines end in LF here but in CR LF on the wire, and so does the empty line after them.
        let lines = head.lines().filter(|line| !line.is_empty());
        self.header_bytes = Some(lines.map(|line| line.len() as u64 + 2).sum::<u64>() + 2);
    }
}

/// Watches the processes of a running server while it is asked for `target`.
pub fn watch(processes: &[u32], address: &Address, target: &str) -> Result<Calls, String> {
    // The first requests do extra work that later ones do not.
    in_a_row(address, target, "GET", GETS);
    let ask = || in_a_row(address, target, "GET", calls::REQUESTS).map(|(answered, _)| answered);
    calls::observe(processes, ask)
}

/// Replaces values from the configuration by observed ones.
pub fn lay_over(parity: &mut BTreeMap<String, String>, seen: ObservedSwitches) {
    let on_off = |on: bool| if on { "on" } else { "off" }.to_owned();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            parity.insert(name.to_owned(), value);
        }
    };
    put("http_version", seen.http_version);
    put("connection_field", seen.connection_field);
    put("header_bytes", seen.header_bytes.map(|bytes| bytes.to_string()));
    put("etag", seen.etag.map(on_off));
    put("compression", seen.coding);
    put("tls", Some("off".to_owned()));
    put("backlog", seen.listening.map(|(backlog, _)| backlog.to_string()));
    put("listening_sockets", seen.listening.map(|(_, sockets)| sockets.to_string()));
    match seen.calls {
        None => {}
        Some(Ok(calls)) => calls.rows().into_iter().for_each(|(name, said)| put(name, Some(said))),
        Some(Err(why)) => put("seen_calls", Some(format!("not available: {why}"))),
    }
    let Some(kept) = seen.kept else { return };
    put("keep_alive", Some(on_off(kept.requests > 1)));
    if kept.closed {
        put("keep_alive_requests", Some(kept.requests.to_string()));
    } else if parity.get("keep_alive_requests").is_none_or(|read| is_unknown(read)) {
        let least = format!("at least {}", kept.requests);
        parity.insert("keep_alive_requests".to_owned(), least);
    }
}

/// A field of a head, by its name in small letters.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The number of requests after which the server closes a connection. A few GETs, as a load makes them, show whether
/// it is kept at all; HEADs, which cost no body, show for how long.
fn kept(address: &Address, target: &str) -> Option<Kept> {
    let by_get = kept_by(address, target, "GET", GETS)?;
    if by_get.closed {
        return Some(by_get);
    }
    let mut seen = by_get;
    for requests in [REQUESTS_FEW, REQUESTS] {
        // A server may handle HEAD worse than GET, and the many requests may have had less time than
        // the few.
        match kept_by(address, target, "HEAD", requests) {
            Some(by_head) if by_head.closed && by_head.requests >= by_get.requests => {
                return Some(by_head);
            }
            Some(by_head) if by_head.requests >= seen.requests => seen = by_head,
            _ => {}
        }
    }
    Some(seen)
}

fn kept_by(address: &Address, target: &str, method: &str, requests: u64) -> Option<Kept> {
    let (answered, connects) = in_a_row(address, target, method, requests)?;
    if connects == 1 {
        return Some(Kept { requests: answered, closed: false });
    }
    // A server that closes after n requests needs about answered / n connections. That leaves a range for n, which
    // is halved until one number is left.
    let mut least = answered.div_ceil(connects);
    let mut most = answered / (connects - 1);
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        match in_a_row(address, target, method, middle)? {
            (answered, 1) if answered == middle => least = middle,
            _ => most = middle - 1,
        }
    }
    Some(Kept { requests: least, closed: true })
}

/// Makes requests one after the other, on one connection as long as the server keeps it. Returns how many were
/// answered, and on how many connections.
fn in_a_row(address: &Address, target: &str, method: &str, requests: u64) -> Option<(u64, u64)> {
    let mut plan = address.plan(target, requests, PATIENCE);
    plan.keep_alive = true;
    plan.requests[0].method = method.to_owned();
    let longest = if requests > REQUESTS_FEW { LONGEST } else { LONGEST_FEW };
    plan.stop = LoadStop { requests: Some(requests), duration: Some(longest) };
    plan.drain = PATIENCE;
    let interrupt = AtomicBool::new(false);
    let load = load::run(&plan, &load::Control::new(&interrupt)).ok()?;
    // A request on a silently closed connection has no status.
    let (answered, connects) = (load.status.values().sum::<u64>(), load.connects);
    (answered > 0 && connects > 0).then_some((answered, connects))
}

/// Backlog and number of the sockets that listen there, in the calling thread's network. A server may have one for
/// each worker, all with the same backlog.
pub fn listening(address: &Address) -> Option<(u32, usize)> {
    let all = sys::sock_diag::listeners(address.socket.port()).ok()?;
    let serves = |at: std::net::IpAddr| at == address.socket.ip() || at.is_unspecified();
    let ours: Vec<_> = all.into_iter().filter(|socket| serves(socket.addr.ip())).collect();
    Some((ours.first()?.backlog, ours.len()))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that closes each connection after `requests` requests, and sends these fields.
    fn planted(requests: usize, fields: &'static str) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                for _ in 0..requests {
                    let (mut line, mut is_head, mut codings) = (String::new(), false, false);
                    while stream.read_line(&mut line).unwrap_or(0) > 2 {
                        is_head |= line.starts_with("HEAD ");
                        codings |= line.starts_with("Accept-Encoding");
                        line.clear();
                    }
                    let coding = if codings { "Content-Encoding: br\r\n" } else { "" };
                    let body = if is_head { "" } else { "hi" };
                    let reply = format!(
                        "HTTP/1.1 200 OK\r\nServer: planted\r\n{fields}{coding}Content-Length: 2\r\n\r\n{body}"
                    );
                    if stream.get_mut().write_all(reply.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        });
        addr.into()
    }

    #[test]
    fn a_limit_of_requests_on_a_connection_shows() {
        for limit in [2, 3, 100, 1000] {
            let seen = probe(&planted(limit, "Connection: Keep-Alive\r\n"), "/");
            assert_eq!(seen.kept, Some(Kept { requests: limit as u64, closed: true }));
            assert_eq!(seen.connection_field.as_deref(), Some("keep-alive"));
            assert_eq!(seen.server.as_deref(), Some("planted"));
        }
    }

    #[test]
    fn a_server_that_closes_each_connection_has_no_keep_alive() {
        let mut parity = BTreeMap::from([("keep_alive".to_owned(), "on".to_owned())]);
        let server = planted(1, "ETag: \"x\"\r\n");
        lay_over(
            &mut parity,
            ObservedSwitches { listening: listening(&server), ..probe(&server, "/") },
        );
        assert_eq!(
            (parity["keep_alive"].as_str(), parity["keep_alive_requests"].as_str()),
            ("off", "1")
        );
        assert_eq!((parity["etag"].as_str(), parity["compression"].as_str()), ("on", "br"));
        // The standard library's listen(2).
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let backlog = most.trim().parse::<u32>().unwrap().min(128).to_string();
        assert!(parity["backlog"] == backlog || parity["backlog"] == most.trim(), "{parity:?}");
        assert_eq!(parity["listening_sockets"], "1");
    }

    #[test]
    fn a_connection_that_stays_open_is_no_limit() {
        let mut parity =
            BTreeMap::from([("keep_alive_requests".to_owned(), "unknown: why".to_owned())]);
        let seen = probe(&planted(usize::MAX, ""), "/");
        assert_eq!(seen.kept.map(|kept| kept.closed), Some(false));
        assert_eq!(
            seen.header_bytes,
            Some("HTTP/1.1 200 OK\r\nServer: planted\r\nContent-Length: 2\r\n\r\n".len() as u64)
        );
        lay_over(&mut parity, seen);
        assert!(parity["keep_alive_requests"].starts_with("at least "), "{parity:?}");
        assert!(!parity.contains_key("backlog"), "that of another machine cannot be seen");
    }

    #[test]
    fn nobody_there_is_nothing_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr: Address = listener.local_addr().unwrap().into();
        drop(listener);
        assert_eq!(probe(&addr, "/"), ObservedSwitches::default());
    }
}
