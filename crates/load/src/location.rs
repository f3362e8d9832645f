//! Where a redirect leads, and what is requested there. Owns the resolution of Location (RFC 3986, 5) and which parts
//! of a request are sent again (RFC 9110, 15.4; where that leaves a choice, the Fetch standard, 4.4). Start reading
//! at [`resolve`].

use record::{Redirect, is_redirect};
use wire::Fields;

use crate::url::{self, UrlTarget};

/// Most bytes of a Location that a record keeps.
const LOCATION_MAX: usize = 200;

/// How the next request differs.
pub(crate) struct Hop<'a> {
    /// Status of the redirect.
    pub(crate) status: u16,
    /// The target as it stands in the request line.
    pub(crate) target: &'a str,
    /// The new Host, if the request goes to another origin.
    pub(crate) host: Option<&'a str>,
    /// Proxy-Authorization, if the request itself goes to a proxy.
    pub(crate) proxy_authorization: Option<&'a str>,
}

/// The URL that `location` means in the reply to a request to `base`; `None` if it is no http URL. Its fragment, name
/// and password are left out: a fragment is never sent, and a server must not choose credentials.
pub(crate) fn resolve(base: &UrlTarget, location: &[u8]) -> Option<UrlTarget> {
    let text = encoded(location);
    let reference = text.split('#').next().unwrap_or_default();
    let scheme = if base.is_tls { "https" } else { "http" };
    if let Some((name, _)) = reference.split_once(':').filter(|(name, _)| is_scheme(name)) {
        let is_http = ["http", "https"].iter().any(|known| name.eq_ignore_ascii_case(known));
        let rest = &reference[name.len() + 1..];
        return (is_http && rest.starts_with("//")).then(|| absolute(reference))?;
    }
    if reference.starts_with("//") {
        return absolute(&format!("{scheme}:{reference}"));
    }
    let (base_path, base_query) = path_and_query(&base.target);
    let (path, query) = path_and_query(reference);
    let (path, query) = match path {
        "" => (base_path.to_owned(), query.or(base_query)),
        _ if path.starts_with('/') => (without_dots(path), query),
        _ => {
            let folder = &base_path[..=base_path.rfind('/').unwrap_or(0)];
            (without_dots(&format!("{folder}{path}")), query)
        }
    };
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Some(UrlTarget { target: format!("{path}{query}"), user: None, ..base.clone() })
}

fn absolute(url: &str) -> Option<UrlTarget> {
    let target = url::parse(url).ok()?;
    let (path, query) = path_and_query(&target.target);
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Some(UrlTarget { target: without_dots(path) + &query, user: None, ..target })
}

/// RFC 3986, 3.1.
fn is_scheme(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn path_and_query(target: &str) -> (&str, Option<&str>) {
    target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)))
}

/// Characters that no URL may contain are percent-encoded: servers send spaces and UTF-8 as they are, and clients
/// follow such redirects.
fn encoded(location: &[u8]) -> String {
    let mut text = String::with_capacity(location.len());
    for &byte in location.trim_ascii() {
        match byte {
            b'!'..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// RFC 3986, 5.2.4, of a path that begins with `/`.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Whether two URLs have the same origin, so that data meant for one may be sent to the other.
pub(crate) fn is_same_origin(one: &UrlTarget, other: &UrlTarget) -> bool {
    one.is_tls == other.is_tls
        && one.port == other.port
        && one.name.eq_ignore_ascii_case(&other.name)
}

/// Appends the request that follows `request` by `hop`.
pub(crate) fn next_request(request: &[u8], hop: &Hop<'_>, out: &mut Vec<u8>) {
    let head_len = memchr::memmem::find(request, b"\r\n\r\n").map_or(request.len(), |at| at + 4);
    let (head, body) = request.split_at(head_len);
    let mut lines = head.split_inclusive(|&byte| byte == b'\n');
    let mut first = lines.next().unwrap_or_default().splitn(3, |&byte| byte == b' ');
    let method = first.next().unwrap_or_default();
    let version = first.nth(1).unwrap_or(b"HTTP/1.1\r\n");
    let becomes_get = becomes_get(hop.status, method);
    out.extend_from_slice(if becomes_get { b"GET" } else { method });
    out.push(b' ');
    out.extend_from_slice(hop.target.as_bytes());
    out.push(b' ');
    out.extend_from_slice(version);
    for line in lines {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        if line == b"\r\n" {
            if let Some(value) = hop.proxy_authorization {
                out.extend_from_slice(format!("Proxy-Authorization: {value}\r\n").as_bytes());
            }
            out.extend_from_slice(line);
        } else if let Some(host) = hop.host.filter(|_| is("host")) {
            out.extend_from_slice(format!("Host: {host}\r\n").as_bytes());
        } else if !(is("proxy-authorization")
            || (becomes_get && is_of_body(name))
            || (hop.host.is_some() && (is("authorization") || is("cookie"))))
        {
            out.extend_from_slice(line);
        }
    }
    if !becomes_get {
        out.extend_from_slice(body);
    }
}

/// 303 requires it for all methods but HEAD; with 301 and 302 a POST changes, as in every browser.
fn becomes_get(status: u16, method: &[u8]) -> bool {
    match status {
        303 => method != b"GET" && method != b"HEAD",
        301 | 302 => method == b"POST",
        _ => false,
    }
}

/// Whether a field is about the body that is not sent again.
fn is_of_body(name: &[u8]) -> bool {
    let begins = |part: &[u8]| name.get(..part.len()).is_some_and(|n| n.eq_ignore_ascii_case(part));
    begins(b"content-") || begins(b"transfer-encoding") || begins(b"expect")
}

/// Appends `request` with a value joined to its field Cookie (RFC 6265, 5.4: never two).
pub(crate) fn with_cookies(request: &[u8], cookies: &[u8], out: &mut Vec<u8>) {
    let end = memchr::memmem::find(request, b"\r\n\r\n").unwrap_or(request.len());
    let is_cookie =
        |line: &[u8]| line.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case(b"cookie:"));
    let mut at = 0;
    for line in request[..end].split_inclusive(|&byte| byte == b'\n') {
        at += line.len();
        if is_cookie(line) {
            let value_end = if line.ends_with(b"\r\n") { at - 2 } else { at };
            out.extend_from_slice(&request[..value_end]);
            out.extend_from_slice(b"; ");
            out.extend_from_slice(cookies);
            out.extend_from_slice(&request[value_end..]);
            return;
        }
    }
    out.extend_from_slice(&request[..end]);
    out.extend_from_slice(b"\r\nCookie: ");
    out.extend_from_slice(cookies);
    out.extend_from_slice(&request[end..]);
}

/// A redirect, with as much of its Location as a report needs: a query may hold a secret.
#[cold]
pub(crate) fn redirect(status: u16, fields: Fields<'_>) -> Option<Redirect> {
    let location = fields.get("location").filter(|_| is_redirect(status))?;
    let end = location.iter().position(|byte| b"?#".contains(byte)).unwrap_or(location.len());
    let text = String::from_utf8_lossy(&location[..end.min(LOCATION_MAX)]).into_owned();
    Some(Redirect { status, location: url::shown(&text) })
}

/// The value of a field in a head, the first of that name.
pub(crate) fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    fields(head, name).next()
}

/// The values of all fields of that name.
pub(crate) fn fields<'a>(head: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    head.split(|&byte| byte == b'\n').skip(1).filter_map(move |line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let is_it = line[..colon].eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| line[colon + 1..].trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(target: &UrlTarget) -> String {
        let scheme = if target.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", target.host, target.target)
    }

    #[test]
    fn references_are_resolved_as_rfc_3986_has_it() {
        // The examples of 5.4.1 and 5.4.2, except those with other schemes and those that lose parts that an http
        // request does not have (fragments, parameters without a path).
        let base = url::parse("http://a/b/c/d;p?q").unwrap();
        let cases = [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("HTTPS://b.example:443/x/../y?z#f", "https://b.example/y?z"),
            ("http://me:secret@b.example:81", "http://b.example:81/"),
            ("/a b\u{e4}", "http://a/a%20b%C3%A4"),
        ];
        for (reference, expected) in cases {
            let resolved = resolve(&base, reference.as_bytes());
            assert_eq!(resolved.as_ref().map(shown).as_deref(), Some(expected), "{reference}");
            assert_eq!(resolved.unwrap().user, None);
        }
        for reference in ["ftp://a/", "mailto:x@y", "http:g", "http://", "//", "http://a:0/"] {
            assert_eq!(resolve(&base, reference.as_bytes()), None, "{reference}");
        }
    }

    fn next(request: &str, status: u16, host: Option<&str>) -> String {
        let hop = Hop { status, target: "/n", host, proxy_authorization: None };
        let mut out = Vec::new();
        next_request(request.as_bytes(), &hop, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_method_and_the_body_go_on_as_the_status_says() {
        let with = |method: &str| {
            format!("{method} /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nX: y\r\n\r\nb")
        };
        let same = |method: &str| {
            format!("{method} /n HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nX: y\r\n\r\nb")
        };
        let get = "GET /n HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
        for (status, method, becomes_get) in [
            (301, "POST", true),
            (302, "POST", true),
            (303, "POST", true),
            (307, "POST", false),
            (308, "POST", false),
            (301, "PUT", false),
            (302, "DELETE", false),
            (303, "PUT", true),
            (303, "HEAD", false),
            (301, "HEAD", false),
        ] {
            let expected = if becomes_get { get.to_owned() } else { same(method) };
            assert_eq!(next(&with(method), status, None), expected, "{status} {method}");
        }
    }

    #[test]
    fn what_is_secret_stays_at_its_origin() {
        let request =
            "GET /a HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\ncookie: y\r\nAccept: z\r\n\r\n";
        assert_eq!(next(request, 302, None), request.replace("/a", "/n"));
        assert_eq!(
            next(request, 302, Some("b:81")),
            "GET /n HTTP/1.1\r\nHost: b:81\r\nAccept: z\r\n\r\n"
        );
        let targets = |url: &str| url::parse(url).unwrap();
        let here = targets("http://a.example/");
        assert!(is_same_origin(&here, &targets("http://A.example:80/x")));
        for other in ["https://a.example/", "http://a.example:81/", "http://b.example/"] {
            assert!(!is_same_origin(&here, &targets(other)), "{other}");
        }
    }

    #[test]
    fn cookies_join_the_field_that_is_there() {
        let with = |request: &str| {
            let mut out = Vec::new();
            with_cookies(request.as_bytes(), b"b=2", &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            with("GET / HTTP/1.1\r\nA: b\r\n\r\nx"),
            "GET / HTTP/1.1\r\nA: b\r\nCookie: b=2\r\n\r\nx"
        );
        let own = "GET / HTTP/1.1\r\ncookie: a=1\r\nA: b\r\n\r\n";
        assert_eq!(with(own), own.replace("a=1", "a=1; b=2"));
        let last = "GET / HTTP/1.1\r\ncookie: a=1\r\n\r\n";
        assert_eq!(with(last), last.replace("a=1", "a=1; b=2"));
    }

    proptest! {
        #[test]
        fn whatever_a_server_says_is_a_target_or_refused(location in prop::collection::vec(any::<u8>(), 0..40)) {
            let base = url::parse("http://a/b/c?d").unwrap();
            if let Some(target) = resolve(&base, &location) {
                prop_assert!(target.target.starts_with('/'));
                prop_assert!(target.target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'));
            }
        }
    }
}
