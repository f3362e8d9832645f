//! A proxy of HTTP: how it is typed, what it is asked, and how it answers CONNECT. Owns the forms of RFC 9110, 9.3.6
//! and RFC 9112, 3.2.2. Start reading at [`parse`].
//!
//! Cost: one comparison per connection, and one more request and reply per tunnel. It costs nothing per request,
//! whose bytes are rendered once with the target in absolute form.

use std::io;
use std::net::{IpAddr, SocketAddr};

use record::{LoadPlan, Origin, Proxy};
use sys::driver::Failure;
use wire::{Event, ReplyParser, RequestKind, reason_phrase};

use crate::source;
use crate::url::{self, UrlError};

/// Why a proxy was refused; each text says how to write it.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// It is no URL of a host.
    #[error("--proxy: {0}")]
    Url(#[from] UrlError),
    /// It is https, socks5 or the like.
    #[error(
        "--proxy: `{0}` must begin with http://: joust speaks plain HTTP with a proxy; write \
         http://HOST:PORT"
    )]
    Scheme(String),
    /// A port is missing.
    #[error("--proxy: `{0}` names no port; write http://HOST:PORT, as in http://127.0.0.1:3128")]
    NoPort(String),
    /// There is more.
    #[error("--proxy: `{0}` has a path, which a proxy does not take; write http://HOST:PORT")]
    Path(String),
    /// User and password.
    #[error("--proxy: `{0}` must name user and password, as in http://USER:PASSWORD@HOST:PORT")]
    User(String),
    /// The address is of the wrong family.
    #[error("--source {0} and the proxy {1} must both be IPv4, or both IPv6 (--proxy)")]
    Family(IpAddr, SocketAddr),
}

/// `http://[user:password@]host:port`, resolved.
///
/// # Errors
/// It is no proxy that a load can use; see [`ProxyError`].
pub(crate) fn parse(typed: &str, sources: &[IpAddr]) -> Result<Proxy, ProxyError> {
    let shown = || url::shown(typed);
    let scheme = typed.trim().split_once("://").map_or("http", |(scheme, _)| scheme);
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(ProxyError::Scheme(shown()));
    }
    let target = url::parse(typed)?;
    let authority = typed.trim().split_once("://").map_or(typed.trim(), |(_, rest)| rest);
    if target.target != "/" {
        return Err(ProxyError::Path(shown()));
    }
    let after_host = authority.trim_end_matches('/').rsplit_once(':').map(|(_, port)| port);
    if after_host.is_none_or(|port| port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit())) {
        return Err(ProxyError::NoPort(shown()));
    }
    let authorization = match &target.user {
        None => None,
        Some(user) if user.contains(':') && !user.chars().any(char::is_control) => {
            Some(source::basic_auth(user))
        }
        Some(_) => return Err(ProxyError::User(shown())),
    };
    let addr = url::resolve(&target.name, target.port, sources.first())?;
    if let Some(from) = sources.iter().find(|from| from.is_ipv4() != addr.is_ipv4()) {
        return Err(ProxyError::Family(*from, addr));
    }
    let host = match target.name.contains(':') {
        true => format!("[{}]:{}", target.name, target.port),
        false => format!("{}:{}", target.name, target.port),
    };
    Ok(Proxy { addr, host, authorization })
}

/// The proxy to which a request without TLS sends its whole URL, if there is one.
pub(crate) fn of_plain<'a>(plan: &'a LoadPlan, origin: &Origin) -> Option<&'a Proxy> {
    plan.proxy.as_ref().filter(|_| origin.tls_name.is_none())
}

/// The request to the proxy before TLS begins; empty if there is no tunnel.
pub(crate) fn connect_request(plan: &LoadPlan, origin: &Origin) -> Vec<u8> {
    let Some(proxy) = plan.proxy.as_ref().filter(|_| origin.tls_name.is_some()) else {
        return Vec::new();
    };
    let to = authority(origin);
    let authorization = proxy.authorization.as_ref();
    let field =
        authorization.map_or_else(String::new, |value| format!("Proxy-Authorization: {value}\r\n"));
    format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{field}\r\n").into_bytes()
}

/// Host and port: CONNECT has no default port.
pub(crate) fn authority(origin: &Origin) -> String {
    let is_ipv6 = origin.host.ends_with(']');
    let has_port = !is_ipv6 && origin.host.contains(':');
    let port = if origin.tls_name.is_some() { 443 } else { 80 };
    if has_port { origin.host.clone() } else { format!("{}:{port}", origin.host) }
}

/// The result of a CONNECT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tunnel {
    /// Nothing yet.
    Awaited,
    /// What is sent now goes to the server.
    Open,
    /// No tunnel, and why.
    Refused(String),
}

/// Reads the proxy's answer to the CONNECT that `parser` expects.
pub(crate) fn read_tunnel(parser: &mut ReplyParser, bytes: &[u8]) -> Tunnel {
    let mut left = bytes;
    loop {
        let step = match parser.feed(left) {
            Ok(step) => step,
            Err(error) => {
                return Tunnel::Refused(format!(
                    "answered CONNECT with bytes that are not HTTP: {error}"
                ));
            }
        };
        left = &left[step.used..];
        match step.event {
            Event::NeedMore => return Tunnel::Awaited,
            Event::Head { head, .. } if head.status / 100 == 2 && left.is_empty() => {
                return Tunnel::Open;
            }
            Event::Head { head, .. } if head.status / 100 == 2 => {
                return Tunnel::Refused("sent bytes before the client used the tunnel".to_owned());
            }
            Event::Head { head, .. } => {
                let reason = reason_phrase(head.status);
                let text = format!("answered CONNECT with {} {reason}", head.status);
                return Tunnel::Refused(text.trim_end().to_owned());
            }
            Event::Interim { .. } | Event::Body(_) | Event::Done(_) => {}
        }
    }
}

/// What happened to a connection to the proxy that was lost before it could be used.
pub(crate) fn lost(failure: Failure) -> String {
    match failure {
        Failure::Refused => "refused the connection".to_owned(),
        Failure::Reset => "reset the connection".to_owned(),
        Failure::TimedOut => "did not answer".to_owned(),
        Failure::FdExhausted | Failure::PortExhausted => {
            "could not be reached: no file descriptor or local port was left".to_owned()
        }
        Failure::Other(errno) => {
            format!("could not be reached: {}", io::Error::from_raw_os_error(errno))
        }
    }
}

/// A parser ready for the answer to CONNECT.
pub(crate) fn expect_tunnel(parser: &mut ReplyParser) {
    parser.reset();
    parser.expect(RequestKind::Connect);
}

#[cfg(test)]
mod tests {
    use record::ServerAddress;
    use wire::ReplyLimits;

    use super::*;

    #[test]
    fn a_proxy_is_read_with_its_user_and_refused_with_the_way_out() {
        let proxy = parse("http://me:p%40ss@127.0.0.1:3128/", &[]).unwrap();
        assert_eq!((&*proxy.host, proxy.addr.port()), ("127.0.0.1:3128", 3128));
        assert_eq!(proxy.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
        assert_eq!(parse("[::1]:3128", &[]).unwrap().host, "[::1]:3128");
        let cases = [
            ("https://127.0.0.1:3128", "must begin with http://"),
            ("socks5://127.0.0.1:1080", "must begin with http://"),
            ("http://127.0.0.1", "names no port"),
            ("http://[::1]", "names no port"),
            ("http://127.0.0.1:3128/x", "has a path"),
            ("http://me@127.0.0.1:3128", "USER:PASSWORD"),
        ];
        for (typed, part) in cases {
            let error = parse(typed, &[]).expect_err(typed).to_string();
            assert!(error.contains("--proxy") && error.contains(part), "{typed}: {error}");
        }
        let error = parse("http://127.0.0.1:1", &["::1".parse().unwrap()]).expect_err("family");
        assert!(error.to_string().contains("both be IPv4"), "{error}");
    }

    #[test]
    fn a_tunnel_is_asked_for_by_host_and_port() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 81).into(), "/");
        plan.proxy = Some(parse("http://me:x@127.0.0.1:3128", &[]).unwrap());
        let place = ServerAddress::Inet(([127, 0, 0, 1], 3128).into());
        let origin = |host: &str, name: Option<&str>| Origin {
            place: place.clone(),
            host: host.to_owned(),
            tls_name: name.map(str::to_owned),
        };
        assert!(connect_request(&plan, &origin("a", None)).is_empty());
        for (host, to) in [("a", "a:443"), ("a:8443", "a:8443"), ("[::1]", "[::1]:443")] {
            let bytes =
                String::from_utf8(connect_request(&plan, &origin(host, Some("a")))).unwrap();
            let expected = format!(
                "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nProxy-Authorization: Basic bWU6eA==\r\n\r\n"
            );
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn what_the_proxy_answers_decides() {
        let cases = [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Tunnel::Open),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Tunnel::Open),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Tunnel::Open),
            ("HTTP/1.1 200 OK\r\n", Tunnel::Awaited),
        ];
        let read = |text: &str| {
            let mut parser = ReplyParser::new(ReplyLimits::DEFAULT);
            expect_tunnel(&mut parser);
            read_tunnel(&mut parser, text.as_bytes())
        };
        for (text, expected) in cases {
            assert_eq!(read(text), expected, "{text}");
        }
        let refusals = [
            ("HTTP/1.1 407 No\r\nContent-Length: 3\r\n\r\nno\n", "407 Proxy Auth"),
            ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "502 Bad Gateway"),
            ("SSH-2.0-x\r\n\r\n", "not HTTP"),
            ("HTTP/1.1 200 OK\r\n\r\nearly", "before the client"),
        ];
        for (text, part) in refusals {
            let Tunnel::Refused(why) = read(text) else { panic!("{text}") };
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
