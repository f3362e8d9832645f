//! Redirects a plain request that should have used TLS: to the same host and target, and never to another one. Owns
//! that URL. Start reading at [`to_https`].

use wire::Request;
use wire::target::SafePath;

use super::Verdict;
use crate::names;

/// The port of HTTPS, unless the URL names another.
const HTTPS_PORT: u16 = 443;

/// Redirects to the URL of the request with `https` and that port, otherwise byte for byte. The status is 301, which
/// every client knows, or 308 if a client could change the method after a 301 (RFC 9110, 15.4.2). Without a valid host,
/// or without a path (`OPTIONS *`), there is no such URL: 400.
pub(super) fn to_https(request: &Request<'_>, port: u16) -> Verdict {
    let host = request.host.map(names::host_name).filter(|host| names::check(host).is_ok());
    let Some(host) = host.filter(|_| request.path_and_query.starts_with('/')) else {
        return Verdict::Deny(400);
    };
    let status = if matches!(request.method, "GET" | "HEAD") { 301 } else { 308 };
    let port = match port {
        HTTPS_PORT => String::new(),
        port => format!(":{port}"),
    };
    let target = request.path_and_query;
    Verdict::Tell(status, format!("Location: https://{host}{port}{target}\r\n"))
}

/// Whether a request is for something that is served without TLS, by the path that would be opened.
pub(super) fn is_excepted(request: &Request<'_>, except: &[String]) -> bool {
    let Ok(path) = SafePath::new(request.path_and_query) else { return false };
    except.iter().any(|prefix| path.path().starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use wire::{RequestLimits, RequestParser};

    use super::*;

    #[test]
    fn what_is_excepted_is_told_by_the_path_that_would_be_opened() {
        let except = ["/.well-known/acme-challenge/".to_owned(), "/a/".to_owned()];
        let cases = [
            ("/.well-known/acme-challenge/x", true),
            ("/./.well-known//acme-challenge/x?q", true),
            ("/%2ewell-known/acme%2dchallenge/x", true),
            ("/a/../.well-known/acme-challenge/x", true),
            ("/.well-known/acme-challenge/../x", false),
            ("/.well-known/acme-challenge/%2e%2e/x", false),
            ("/.well-known/acme-challenge", false),
            ("/.Well-Known/acme-challenge/x", false),
            ("/ab/", false),
            ("/b?/a/", false),
        ];
        for (target, expected) in cases {
            let mut parser = RequestParser::new(RequestLimits::DEFAULT);
            let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            let request = parser.parse(head.as_bytes()).unwrap().unwrap();
            assert_eq!(is_excepted(&request, &except), expected, "{target}");
        }
    }

    #[test]
    fn the_url_is_that_of_the_request_and_leads_nowhere_else() {
        let told = |head: &str, port| {
            let mut parser = RequestParser::new(RequestLimits::DEFAULT);
            let request = parser.parse(head.as_bytes()).unwrap().unwrap();
            match to_https(&request, port) {
                Verdict::Tell(status, fields) => {
                    let place = fields.strip_prefix("Location: ").unwrap();
                    format!("{status} {}", place.strip_suffix("\r\n").unwrap())
                }
                Verdict::Deny(status) => status.to_string(),
                other => panic!("{other:?}"),
            }
        };
        let head = |line: &str, host: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let cases = [
            (head("GET /a%20b?c=//d", "Example.org"), 443, "301 https://example.org/a%20b?c=//d"),
            (head("HEAD /", "example.org:8080"), 8443, "301 https://example.org:8443/"),
            (head("POST /form", "example.org"), 443, "308 https://example.org/form"),
            (
                head("GET //evil.example/x", "example.org"),
                443,
                "301 https://example.org//evil.example/x",
            ),
            (head("GET /", "[::1]:80"), 8443, "301 https://[::1]:8443/"),
            (head("GET http://example.org/x", "example.org"), 443, "301 https://example.org/x"),
            (head("OPTIONS *", "example.org"), 443, "400"),
            ("GET / HTTP/1.0\r\n\r\n".to_owned(), 443, "400"),
        ];
        for (head, port, expected) in cases {
            assert_eq!(told(&head, port), expected, "{head}");
        }
    }
}
