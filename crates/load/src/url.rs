//! `http://host:port/path?query`, parsed and resolved. Owns what of a URL a load needs; must not know
//! the rest of a plan. Start reading at [`parse`].

use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs as _};

/// Where a URL leads, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Host as a resolver takes it, without brackets ("localhost", "::1").
    pub name: String,
    /// Port; 80 where none is given.
    pub port: u16,
    /// Value of the Host field: as typed, without a port of 80 (`localhost:8080`, `[::1]:8080`).
    pub host: String,
    /// Path and query, at least "/"; never a fragment.
    pub target: String,
}

/// Why a URL was refused; each text says how to write it.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// https.
    #[error("`{0}`: https is not supported yet (it is planned): use the server's http port")]
    Https(String),
    /// Another scheme.
    #[error("`{0}` begins with `{1}://`: joust speaks http; write http://host:port/path")]
    Scheme(String, String),
    /// No host.
    #[error("`{0}` names no host: write http://host:port/path, as in http://127.0.0.1:8080/")]
    NoHost(String),
    /// Name and password.
    #[error(
        "`{0}` has a name or password before `@`: leave it out and give the field, as in \
         -H 'Authorization: Basic ...'"
    )]
    UserInfo(String),
    /// A port that is none.
    #[error("`{0}`: `{1}` is no port: it is a number from 1 to 65535")]
    Port(String, String),
    /// An IPv6 address that is none.
    #[error("`{0}`: `{1}` is no IPv6 address: write it in brackets, as in http://[::1]:8080/")]
    Ipv6(String, String),
    /// A host name with a character that no host name has.
    #[error("`{0}`: `{1}` cannot be a host name: it has letters, digits, `-`, `.` and `_`")]
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

/// Takes a URL apart. A missing scheme is taken for http, since that is what people type.
///
/// # Errors
/// It is not an http URL; see [`UrlError`].
pub fn parse(url: &str) -> Result<Target, UrlError> {
    let typed = url.trim();
    let owned = || typed.to_owned();
    let rest = match typed.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
            return Err(UrlError::Https(owned()));
        }
        Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => {
            return Err(UrlError::Scheme(owned(), scheme.to_owned()));
        }
        _ => typed,
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return Err(UrlError::UserInfo(owned()));
    }
    let (name, port) = authority_parts(typed, authority)?;
    let path = path.split('#').next().unwrap_or_default();
    if let Some(wrong) = path.chars().find(|c| !c.is_ascii_graphic()) {
        return Err(UrlError::Character(owned(), wrong.escape_default().to_string()));
    }
    let target = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let bracketed = if name.contains(':') { format!("[{name}]") } else { name.clone() };
    let host = if port == 80 { bracketed } else { format!("{bracketed}:{port}") };
    Ok(Target { name, port, host, target })
}

/// Host, without brackets, and port.
fn authority_parts(typed: &str, authority: &str) -> Result<(String, u16), UrlError> {
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
        "" => 80,
        port => port
            .parse::<u16>()
            .ok()
            .filter(|&number| number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| UrlError::Port(owned(), port.to_owned()))?,
    };
    Ok((name.to_owned(), port))
}

impl Target {
    /// The address to connect to. Where a name has several, the first of IPv4 is taken: "localhost"
    /// is `[::1]` as well, and a server under test mostly listens on 127.0.0.1 alone.
    ///
    /// # Errors
    /// The resolver knows no address.
    pub fn resolve(&self) -> Result<SocketAddr, UrlError> {
        let found = (self.name.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|source| UrlError::Resolve { name: self.name.clone(), source })?;
        let addrs: Vec<SocketAddr> = found.collect();
        let ipv4_first = addrs.iter().find(|addr| addr.is_ipv4()).or(addrs.first());
        ipv4_first.copied().ok_or_else(|| UrlError::NoAddress(self.name.clone()))
    }
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
            ("https://localhost/", "not supported yet"),
            ("ftp://localhost/", "joust speaks http"),
            ("http:///path", "names no host"),
            ("", "names no host"),
            ("http://me:secret@localhost/", "Authorization"),
            ("http://localhost:0/", "1 to 65535"),
            ("http://localhost:65536/", "1 to 65535"),
            ("http://localhost:+80/", "1 to 65535"),
            ("http://::1:80/", "in brackets"),
            ("http://[::1", "in brackets"),
            ("http://[127.0.0.1]/", "in brackets"),
            ("http://[::1]x/", "in brackets"),
            ("http://local host/", "cannot be a host name"),
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
    fn addresses_resolve_to_themselves() {
        for (url, addr) in
            [("http://127.0.0.1:81", "127.0.0.1:81"), ("http://[::1]:82", "[::1]:82")]
        {
            assert_eq!(parse(url).unwrap().resolve().unwrap(), addr.parse().unwrap());
        }
    }
}
