//! CGI under every model, by the rules of RFC 3875 and those that its history taught. Programs are
//! scripts made here; other people's programs are judged in `gateway_peers`.
//! Start reading at [`Site`].

mod support;

use std::path::PathBuf;

use support::{FIXED, Server, Setup, models};

/// A directory with programs, and the server's configuration for them.
struct Site {
    outer: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self { outer: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(site.path("site/cgi-bin")).unwrap();
        site.program("env", "echo 'Content-Type: text/plain'; echo; echo \"argc=$#\"; exec env");
        site.program("echo", "echo Content-Type: application/octet-stream; echo; exec cat");
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join(name)
    }

    /// A shell script in `cgi-bin`.
    fn program(&self, name: &str, script: &str) {
        self.file(name, &format!("#!/bin/sh\n{script}\n"), 0o755);
    }

    fn file(&self, name: &str, content: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path("site/cgi-bin").join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn start(&self, model: &str, settings: &[&str], gateway: &str) -> Server {
        let log = self.path("error.log");
        let config = format!(
            "[error_log]\nfile = \"{}\"\n[[gateway]]\npath = \"/cgi-bin/\"\n{gateway}",
            log.display()
        );
        let content = self.path("site");
        let content = content.to_str().unwrap();
        Server::start(model, Setup { content, config: &config, settings, ..FIXED })
    }
}

/// Everything that comes of one request on a connection of its own.
fn ask(server: &Server, request: &str) -> String {
    let mut conn = server.connect();
    conn.send(request);
    String::from_utf8_lossy(&conn.rest()).into_owned()
}

fn get(server: &Server, target: &str) -> String {
    ask(server, &format!("GET {target} HTTP/1.1\r\nHost: a.test:81\r\nConnection: close\r\n\r\n"))
}

/// The body of an answer whose chunks, if any, are taken off.
fn body(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").expect(answer);
    if !head.contains("Transfer-Encoding: chunked") {
        return rest.to_owned();
    }
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").expect(answer);
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            assert_eq!(after, "\r\n");
            return body;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
}

fn variable<'a>(body: &'a str, name: &str) -> Option<&'a str> {
    body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

#[test]
fn every_model_tells_a_program_what_rfc_3875_says_and_nothing_that_it_must_not() {
    let site = Site::new();
    for model in models() {
        let server = site.start(model, &[], "env = { GREETING = 'hello' }");
        let port = server.addr.port().to_string();
        let answer = ask(
            &server,
            "POST /cgi-bin/env/more%20path?a=b+-c&d HTTP/1.1\r\nHost: a.test:81\r\n\
             Connection: close\r\nProxy: evil\r\nX_Forwarded: evil\r\nX-Two: 1\r\nX-Two: 2\r\n\
             Cookie: a\r\nCookie: b\r\nAuthorization: Basic eDp5\r\nContent-Type: text/x\r\n\
             Content-Length: 3\r\n\r\nabc",
        );
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{model}: {answer}");
        let body = body(&answer);
        let root = site.path("site").canonicalize().unwrap();
        let root = root.to_str().unwrap();
        let program = format!("{root}/cgi-bin/env");
        let translated = format!("{root}/more path");
        let expected = [
            ("argc", "0"),
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("SERVER_SOFTWARE", "joust"),
            ("SERVER_NAME", "a.test"),
            ("SERVER_ADDR", "127.0.0.1"),
            ("SERVER_PORT", &port),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("REQUEST_METHOD", "POST"),
            ("REQUEST_SCHEME", "http"),
            ("REQUEST_URI", "/cgi-bin/env/more%20path?a=b+-c&d"),
            ("QUERY_STRING", "a=b+-c&d"),
            ("SCRIPT_NAME", "/cgi-bin/env"),
            ("SCRIPT_FILENAME", &program),
            ("PATH_INFO", "/more path"),
            ("PATH_TRANSLATED", &translated),
            ("DOCUMENT_ROOT", root),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("CONTENT_LENGTH", "3"),
            ("CONTENT_TYPE", "text/x"),
            ("HTTP_HOST", "a.test:81"),
            ("HTTP_X_TWO", "1, 2"),
            ("HTTP_COOKIE", "a; b"),
            ("GREETING", "hello"),
        ];
        for (name, value) in expected {
            assert_eq!(variable(&body, name), Some(value), "{model}: {name} in {body}");
        }
        assert!(variable(&body, "REMOTE_PORT").unwrap().parse::<u16>().is_ok());
        for name in ["HTTP_PROXY", "HTTP_X_FORWARDED", "HTTP_AUTHORIZATION", "HOME", "HTTPS"] {
            assert_eq!(variable(&body, name), None, "{model}: {name}");
        }
    }
}

#[test]
fn a_query_is_never_an_argument() {
    let site = Site::new();
    let server = site.start("reactor", &[], "");
    for query in ["-s", "-d+allow_url_include=1", "one+two", "%ADd+x"] {
        let body = body(&get(&server, &format!("/cgi-bin/env?{query}")));
        assert_eq!(variable(&body, "argc"), Some("0"));
        assert_eq!(variable(&body, "QUERY_STRING"), Some(query));
    }
}

#[test]
fn bodies_of_any_framing_and_size_come_back_whole_under_every_model() {
    const MIB: usize = 1024 * 1024;
    let site = Site::new();
    let large: Vec<u8> = (0..10 * MIB).map(|n| (n % 251) as u8).collect();
    for model in models() {
        let server = site.start(model, &[], "");
        for content in [&large[..10], &large[..100_000], &large] {
            for chunked in [false, true] {
                let mut conn = server.connect();
                conn.send("POST /cgi-bin/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
                if chunked {
                    conn.send("Transfer-Encoding: chunked\r\n\r\n");
                    for piece in content.chunks(70_001) {
                        conn.send(format!("{:x}\r\n", piece.len()));
                        conn.send(piece);
                        conn.send("\r\n");
                    }
                    conn.send("0\r\n\r\n");
                } else {
                    conn.send(format!("Content-Length: {}\r\n\r\n", content.len()));
                    conn.send(content);
                }
                let answer = conn.rest();
                let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
                let head = String::from_utf8_lossy(&answer[..end]).into_owned();
                let got = dechunked(&head, &answer[end..]);
                assert!(got == content, "{model}, {}, {chunked}: {head}", content.len());
            }
        }
    }
}

fn dechunked(head: &str, mut rest: &[u8]) -> Vec<u8> {
    if !head.contains("chunked") {
        return rest.to_owned();
    }
    let mut body = Vec::new();
    loop {
        let line = rest.iter().position(|&byte| byte == b'\r').unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
}
