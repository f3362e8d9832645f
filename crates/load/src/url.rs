//! `http://host:port/path?query` and https, parsed and resolved. Owns what of a URL a load needs. Start
//! reading at [`parse`].

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

/// Where a URL leads, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTarget {
    /// Host as a resolver takes it, without brackets ("localhost", "::1").
    pub name: String,
    /// Port; by default 80, or 443 for https.
    pub port: u16,
    /// Value of the Host field: as typed, without the scheme's own port (`localhost:8080`,
    /// `[::1]:8080`).
    pub host: String,
    /// Whether it is https.
    pub is_tls: bool,
    /// `user:password` before the host, percent-decoded.
    pub user: Option<String>,
    /// Path and query, at least "/"; never a fragment.
    pub target: String,
}

/// Why a URL was refused; each text says how to write it.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// Another scheme.
    #[error("`{0}` begins with `{1}://`: joust speaks http and https; write http://host:port/path")]
    Scheme(String, String),
    /// No host.
    #[error("`{0}` names no host: write http://host:port/path, as in http://127.0.0.1:8080/")]
    NoHost(String),
    /// Name and password with an invalid escape.
    #[error(
        "`{0}`: the name and password before `@` have a `%` without two hexadecimal digits after \
         it: write a percent sign as %25, or give them with -u"
    )]
    UserInfo(String),
    /// An invalid port.
    #[error("`{0}`: `{1}` is not a port: a port is a number from 1 to 65535")]
    Port(String, String),
    /// An invalid IPv6 address.
    #[error("`{0}`: `{1}` is not an IPv6 address: write it in brackets, as in http://[::1]:8080/")]
    Ipv6(String, String),
    /// A host name with an invalid character.
    #[error("`{0}`: `{1}` is not a host name: use letters, digits, `-`, `.` and `_`")]
    Host(String, String),
    /// Space, control character or a byte outside ASCII.
    #[error("`{0}` has `{1}` in its path: percent-encode it (a space is %20)")]
    Character(String, String),
    /// The resolver knows no address.
    #[error("cannot find the address of `{name}`: {source}; check the name, or write the address")]
    Resolve {
        /// Name of the host.
        name: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The resolver knows the name, but no address.
    #[error("`{0}` has no address: check the name, or write the address")]
    NoAddress(String),
}

/// Parses a URL. A missing scheme means http, since that is what people type.
///
/// # Errors
/// It is not an http URL; see [`UrlError`].
pub fn parse(url: &str) -> Result<UrlTarget, UrlError> {
    let typed = url.trim();
    let owned = || typed.to_owned();
    let (is_tls, rest) = match typed.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
        Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => {
            return Err(UrlError::Scheme(owned(), scheme.to_owned()));
        }
        _ => (false, typed),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, authority) = match authority.rsplit_once('@') {
        None => (None, authority),
        Some((user, authority)) => {
            let decoded = decoded(user).ok_or_else(|| UrlError::UserInfo(hidden(typed, user)))?;
            (Some(decoded), authority)
        }
    };
    let own_port = if is_tls { 443 } else { 80 };
    let (name, port) = authority_parts(typed, authority, own_port)?;
    let path = path.split('#').next().unwrap_or_default();
    if let Some(wrong) = path.chars().find(|c| !c.is_ascii_graphic()) {
        return Err(UrlError::Character(owned(), wrong.escape_default().to_string()));
    }
    let target = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let bracketed = if name.contains(':') { format!("[{name}]") } else { name.clone() };
    let host = if port == own_port { bracketed } else { format!("{bracketed}:{port}") };
    Ok(UrlTarget { name, port, host, is_tls, user, target })
}

/// The text without its percent escapes; `None` if one is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

/// The URL without its password.
fn hidden(url: &str, user: &str) -> String {
    url.replacen(user, "(hidden)", 1)
}

/// The URL as it may be shown: a password in it is replaced.
pub fn shown(url: &str) -> String {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
    match authority[..end].rsplit_once('@') {
        Some((user, _)) if user.contains(':') => hidden(url, user),
        _ => url.to_owned(),
    }
}

/// Host, without brackets, and port.
fn authority_parts(typed: &str, authority: &str, own_port: u16) -> Result<(String, u16), UrlError> {
    let owned = || typed.to_owned();
    let (name, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let ipv6 = || UrlError::Ipv6(owned(), authority.to_owned());
            let (name, after) = bracketed.split_once(']').ok_or_else(ipv6)?;
            name.parse::<Ipv6Addr>().map_err(|_| ipv6())?;
            match after.strip_prefix(':') {
                Some(port) => (name, port),
                None if after.is_empty() => (name, ""),
                None => return Err(ipv6()),
            }
        }
        None if authority.matches(':').count() > 1 => {
            return Err(UrlError::Ipv6(owned(), authority.to_owned()));
        }
        None => {
            let (name, port) = authority.split_once(':').unwrap_or((authority, ""));
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if !name.chars().all(is_allowed) {
                return Err(UrlError::Host(owned(), name.to_owned()));
            }
            (name, port)
        }
    };
    if name.is_empty() {
        return Err(UrlError::NoHost(owned()));
    }
    let port = match port {
        "" => own_port,
        port => port
            .parse::<u16>()
            .ok()
            .filter(|&number| number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| UrlError::Port(owned(), port.to_owned()))?,
    };
    Ok((name.to_owned(), port))
}

/// The address to connect to. If a name has several, takes the first of the family of `from`, or else the first IPv4
/// address: "localhost" is also `[::1]`, and a server under test mostly listens only on 127.0.0.1.
///
/// # Errors
/// The resolver knows no address.
pub fn resolve(name: &str, port: u16, from: Option<&IpAddr>) -> Result<SocketAddr, UrlError> {
    let found = (name, port)
        .to_socket_addrs()
        .map_err(|source| UrlError::Resolve { name: name.to_owned(), source })?;
    let addrs: Vec<SocketAddr> = found.collect();
    let wants_ipv4 = from.is_none_or(IpAddr::is_ipv4);
    let preferred = addrs.iter().find(|addr| addr.is_ipv4() == wants_ipv4).or(addrs.first());
    preferred.copied().ok_or_else(|| UrlError::NoAddress(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_urls_apart_as_people_type_them() {
        let cases = [
            ("http://localhost:8080/a?b=c#d", "localhost", 8080, "localhost:8080", "/a?b=c"),
            ("http://127.0.0.1", "127.0.0.1", 80, "127.0.0.1", "/"),
            ("HTTP://127.0.0.1:80/", "127.0.0.1", 80, "127.0.0.1", "/"),
            ("http://[::1]:81/x", "::1", 81, "[::1]:81", "/x"),
            ("http://[::1]", "::1", 80, "[::1]", "/"),
            ("localhost:3000?q=1", "localhost", 3000, "localhost:3000", "/?q=1"),
            ("127.0.0.1/a?to=http://x/", "127.0.0.1", 80, "127.0.0.1", "/a?to=http://x/"),
            (" http://a_b.example:/%20 ", "a_b.example", 80, "a_b.example", "/%20"),
        ];
        for (url, name, port, host, target) in cases {
            let parsed = parse(url).unwrap();
            let got = (&*parsed.name, parsed.port, &*parsed.host, &*parsed.target);
            assert_eq!(got, (name, port, host, target), "{url}");
        }
    }

    #[test]
    fn refuses_with_the_way_out() {
        let cases = [
            ("ftp://localhost/", "joust speaks http"),
            ("http:///path", "names no host"),
            ("", "names no host"),
            ("http://me:secret%2@localhost/", "%25"),
            ("http://localhost:0/", "1 to 65535"),
            ("http://localhost:65536/", "1 to 65535"),
            ("http://localhost:+80/", "1 to 65535"),
            ("http://::1:80/", "in brackets"),
            ("http://[::1", "in brackets"),
            ("http://[127.0.0.1]/", "in brackets"),
            ("http://[::1]x/", "in brackets"),
            ("http://local host/", "is not a host name"),
            ("http://localhost/a b", "%20"),
            ("http://localhost/\u{e4}", "percent-encode"),
            ("http://localhost/a\r\nX: y", "percent-encode"),
        ];
        for (url, part) in cases {
            let error = parse(url).expect_err(url).to_string();
            assert!(error.contains(part), "{url:?}: {error}");
        }
    }

    #[test]
    fn https_has_its_own_port_and_a_password_may_stand_before_the_host() {
        let parsed = parse("https://me:p%40ss@localhost/x").unwrap();
        assert_eq!((parsed.port, parsed.is_tls, &*parsed.host), (443, true, "localhost"));
        assert_eq!(parsed.user.as_deref(), Some("me:p@ss"));
        assert_eq!(parse("https://localhost:8443").unwrap().host, "localhost:8443");
        assert_eq!(shown("http://me:secret@localhost/a@b"), "http://(hidden)@localhost/a@b");
        assert_eq!(shown("http://localhost/a:b@c"), "http://localhost/a:b@c");
    }

    #[test]
    fn addresses_resolve_to_themselves() {
        for (url, addr) in
            [("http://127.0.0.1:81", "127.0.0.1:81"), ("http://[::1]:82", "[::1]:82")]
        {
            let target = parse(url).unwrap();
            let found = resolve(&target.name, target.port, None).unwrap();
            assert_eq!(found, addr.parse().unwrap());
        }
    }
}
