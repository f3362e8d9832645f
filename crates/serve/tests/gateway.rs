//! CGI under every model, by the rules of RFC 3875 and those that known vulnerabilities taught. Programs are scripts
//! made here; `gateway_peers` tests other people's programs. Start reading at [`Site`].

mod support;

use std::path::PathBuf;

use support::{FIXED, Server, Setup, children_of, eventually, models};
use sys::process::{Pid, Signal};

/// One of each kind: a thread blocks, a loop, threads behind a loop, many processes, completions.
const KINDS: [&str; 5] = ["thread", "reactor", "pool", "prefork", "uring"];

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

/// Everything received for one request, on a connection of its own.
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

fn get_of(server: &Server, host: &str, target: &str) -> String {
    ask(server, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

/// A gateway looks for its scripts in the site of the requested host, and one that names its hosts answers only there.
#[test]
fn a_gateway_is_of_its_hosts_and_has_their_roots() {
    let site = Site::new();
    for name in ["a", "b", "c"] {
        std::fs::create_dir_all(site.path(name).join("cgi-bin")).unwrap();
        std::fs::create_dir_all(site.path(name).join("own")).unwrap();
        for (place, script) in [
            ("cgi-bin/env", "echo 'Content-Type: text/plain'; echo; exec env"),
            ("cgi-bin/on", "echo 'Location: /cgi-bin/env?on'; echo"),
            ("cgi-bin/off", "echo 'Location: /own/env'; echo"),
            ("own/env", "echo 'Content-Type: text/plain'; echo; exec env"),
        ] {
            let from = site.path("site/cgi-bin/new");
            site.file("new", &format!("#!/bin/sh\n{script}\n"), 0o755);
            std::fs::rename(from, site.path(name).join(place)).unwrap();
        }
    }
    let dir = |name: &str| site.path(name).canonicalize().unwrap().display().to_string();
    let host = |name: &str| {
        format!(
            "[[host]]\nnames = [\"{name}.test\", \"*.{name}.test\"]\ndirectory = \"{}\"\n",
            dir(name)
        )
    };
    let more = format!(
        "{}{}{}[[host]]\nnames = [\"fixed.test\"]\nfixed = 5\n\
         [[gateway]]\npath = \"/own/\"\nhost = [\"a.test\", \"B.test.\"]\nenv = {{ WHICH = \"first\" }}\n\
         [[gateway]]\npath = \"/own/\"\nhost = \"*.c.test\"\nroot = \"{}/cgi-bin\"\nenv = {{ WHICH = \"second\" }}\n",
        host("a"),
        host("b"),
        host("c"),
        dir("a"),
    );
    for model in KINDS.into_iter().filter(|model| support::runs_here(model)) {
        let server = site.start(model, &[], &more);
        let told = |host: &str, target: &str| {
            let answer = get_of(&server, host, target);
            assert!(answer.starts_with("HTTP/1.1 200"), "{model}, {host}{target}: {answer}");
            let body = body(&answer);
            let of = |name| variable(&body, name).unwrap_or("none").to_owned();
            ["DOCUMENT_ROOT", "SCRIPT_FILENAME", "WHICH"].map(of)
        };
        let said = |root: &str, file: String, which: &str| [dir(root), file, which.to_owned()];
        // A gateway that names no host: everywhere, each host with its own programs.
        for name in ["a", "b", "c"] {
            let file = format!("{}/cgi-bin/env", dir(name));
            for host in [format!("{name}.test"), format!("x.{name}.test")] {
                assert_eq!(told(&host, "/cgi-bin/env"), said(name, file.clone(), "none"));
                assert_eq!(told(&host, "/cgi-bin/on"), said(name, file.clone(), "none"));
            }
        }
        assert_eq!(told("none.test", "/cgi-bin/env")[0], dir("site"));
        assert!(get_of(&server, "fixed.test", "/cgi-bin/env").ends_with("\r\n\r\njoust"));
        // Of those that name hosts, the first one for this host answers.
        for name in ["a", "b"] {
            let file = format!("{}/own/env", dir(name));
            assert_eq!(
                told(&format!("{name}.test"), "/own/env"),
                said(name, file.clone(), "first")
            );
            assert_eq!(told(&format!("{name}.test"), "/cgi-bin/off"), said(name, file, "first"));
        }
        let file = format!("{}/cgi-bin/env", dir("a"));
        assert_eq!(told("c.test", "/own/env"), said("c", file, "second"));
        assert!(get_of(&server, "none.test", "/own/env").starts_with("HTTP/1.1 404"), "{model}");
    }
}

/// RFC 9112, 3.2.2: the host of an absolute target is the one that is served, so a program is told that one.
#[test]
fn a_program_is_told_the_host_of_an_absolute_target() {
    let site = Site::new();
    let server = site.start("reactor", &[], "");
    for (target, name, uri) in [
        ("http://b.test:82/cgi-bin/env?q=http://c/", "b.test", "/cgi-bin/env?q=http://c/"),
        ("/cgi-bin/env?http://c/", "a.test", "/cgi-bin/env?http://c/"),
    ] {
        let answer = get(&server, target);
        let body = body(&answer);
        let host = format!("{name}:{}", if name == "b.test" { 82 } else { 81 });
        assert_eq!(variable(&body, "SERVER_NAME"), Some(name));
        assert_eq!(variable(&body, "HTTP_HOST"), Some(&*host));
        assert_eq!(variable(&body, "REQUEST_URI"), Some(uri));
        assert_eq!(variable(&body, "SCRIPT_NAME"), Some("/cgi-bin/env"));
    }
}

/// In answers to HEAD and to HTTP/1.0, everything may be sent before the program ends, and nothing is sent after that.
#[test]
fn an_answer_whose_end_comes_after_its_last_byte_has_its_line() {
    let site = Site::new();
    site.program("slow", "echo 'Content-Type: text/x'; echo; echo 123456789; sleep 0.2");
    site.program(
        "long",
        "echo 'Content-Type: text/x'; echo 'Content-Length: 99'; echo; echo 123456789; sleep 0.2",
    );
    for model in KINDS.into_iter().filter(|model| support::runs_here(model)) {
        let log = site.path(&format!("{model}.log"));
        let host = format!(
            "[[host]]\nnames = [\"a.test\"]\ndirectory = {:?}\n\
             access_log = {{ file = {log:?}, format = \"%r %>s %B %{{Content-Type}}o\" }}\n",
            site.path("site")
        );
        let server = site.start(model, &[], &host);
        let request = |line: &str, more: &str| format!("{line}\r\nHost: a.test\r\n{more}\r\n");
        ask(&server, &request("GET /cgi-bin/slow HTTP/1.0", ""));
        ask(&server, &request("HEAD /cgi-bin/slow HTTP/1.1", "Connection: close\r\n"));
        ask(&server, &request("GET /cgi-bin/long HTTP/1.1", ""));
        // Nothing follows on a connection that is kept.
        let mut kept = server.connect();
        kept.send(request("HEAD /cgi-bin/slow?kept HTTP/1.1", ""));
        kept.head();
        let lines = || std::fs::read_to_string(&log).unwrap_or_default();
        eventually("all lines are there", || lines().lines().count() == 4);
        let mut lines: Vec<_> = lines().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        let expected = [
            "GET /cgi-bin/long HTTP/1.1 200 10 text/x",
            "GET /cgi-bin/slow HTTP/1.0 200 10 text/x",
            "HEAD /cgi-bin/slow HTTP/1.1 200 0 text/x",
            "HEAD /cgi-bin/slow?kept HTTP/1.1 200 0 text/x",
        ];
        assert_eq!(lines, expected, "{model}");
    }
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

/// This user's processes that are zombies or whose command line contains `mark`.
fn left(mark: &str, server: &Server) -> Vec<String> {
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, after)) = stat.rsplit_once(") ") else { continue };
        let mut fields = after.split(' ');
        let (state, parent) = (fields.next().unwrap(), fields.next().unwrap());
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_ours = parent == server.pid().as_raw_nonzero().to_string();
        if (state == "Z" && is_ours) || (state != "Z" && line.contains(mark)) {
            left.push(format!("{state} {line}"));
        }
    }
    left
}

#[test]
fn a_program_that_hangs_ends_with_504_and_its_grandchildren_with_it() {
    let site = Site::new();
    // A number that no other process sleeps for.
    site.program("hang", "sleep 31415926 & sleep 31415926");
    for model in models() {
        let server = site.start(model, &[], "timeout = \"300ms\"");
        let answer = get(&server, "/cgi-bin/hang");
        assert!(answer.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{model}: {answer}");
        eventually("nothing of it is left", || left("31415926", &server).is_empty());
    }
}

/// A shell function that starts a proper daemon: in a session of its own, with none of its starter's files, and a child
/// of init.
const DAEMON: &str =
    "daemon() { setsid sh -c \"(setsid sleep $1 &)\" </dev/null >/dev/null 2>&1; }";

/// Whether a process lives whose command line ends with `words`.
fn lives(words: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim_end().ends_with(words)
    })
}

/// What a program has started ends when its client leaves, when its time is over, or, if its answer was complete, when
/// the server ends.
fn daemons_end(model: &str, number: usize) {
    let site = Site::new();
    // Numbers that no other process sleeps for.
    let sleep = |what: usize| format!("sleep 6626{number:02}{what}");
    let [left, hung, gone] = [0, 1, 2].map(sleep);
    let head = "echo Content-Type: text/plain; echo; echo done";
    let daemon = |sleep: &str| format!("{DAEMON}\ndaemon {}", &sleep["sleep ".len()..]);
    site.program("leaves", &format!("{}; {head}", daemon(&left)));
    site.program("hangs", &format!("{}; exec {hung}", daemon(&hung)));
    site.program("waits", &format!("{}; {head}; exec {gone}", daemon(&gone)));
    let mut server = site.start(model, &[], "timeout = \"400ms\"");
    assert_eq!(body(&get(&server, "/cgi-bin/leaves")), "done\n", "{model}");
    eventually(&format!("a daemon runs: {model}"), || lives(&left));
    let answer = get(&server, "/cgi-bin/hangs");
    assert!(answer.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{model}: {answer}");
    eventually(&format!("nothing of what hung is left: {model}"), || !lives(&hung));
    let mut conn = server.connect();
    conn.send("GET /cgi-bin/waits HTTP/1.1\r\nHost: a\r\n\r\n");
    conn.head_end();
    drop(conn);
    eventually(&format!("nobody works for a client that has left: {model}"), || !lives(&gone));
    assert!(lives(&left), "{model}: what nobody ended lives");
    server.signal(Signal::INT);
    assert!(server.ended().success(), "{model}");
    eventually(&format!("it does not outlive the server: {model}"), || !lives(&left));
}

#[test]
fn what_a_program_started_ends_with_it_even_in_a_session_of_its_own() {
    std::thread::scope(|scope| {
        let run = |(number, model)| (model, scope.spawn(move || daemons_end(model, number)));
        let runs: Vec<_> = models().enumerate().map(run).collect();
        for (model, run) in runs {
            assert!(run.join().is_ok(), "{model}");
        }
    });
}

#[test]
fn what_a_spawned_application_started_ends_with_the_server() {
    for (number, model) in ["prefork", "reactor"].into_iter().enumerate() {
        let site = Site::new();
        let sleep = format!("sleep 66269{number}");
        let daemon =
            format!("{DAEMON}\ndaemon {}; exec sleep 66268{number}", &sleep["sleep ".len()..]);
        site.program("application", &daemon);
        let command = site.path("site/cgi-bin/application");
        let application = format!(
            "[[gateway]]\npath = \"/app/\"\nkind = \"fastcgi\"\n\
             spawn = {{ command = [{command:?}] }}\n"
        );
        let mut server = site.start(model, &[], &application);
        eventually(&format!("its daemon runs: {model}"), || lives(&sleep));
        server.signal(Signal::TERM);
        assert!(server.ended().success(), "{model}");
        eventually(&format!("nothing outlives the server: {model}"), || {
            !lives(&sleep) && !lives(&format!("sleep 66268{number}"))
        });
    }
}

#[test]
fn a_client_that_goes_away_ends_its_program_and_no_zombie_stays() {
    let site = Site::new();
    site.program("wait", "echo Content-Type: text/plain; echo; echo begun; sleep 27182818");
    site.program("quick", "echo Content-Type: text/plain; echo; echo done");
    for model in models() {
        let server = site.start(model, &[], "");
        let mut conn = server.connect();
        conn.send("GET /cgi-bin/wait HTTP/1.1\r\nHost: a\r\n\r\n");
        conn.head_end();
        drop(conn);
        eventually("its program is gone", || left("27182818", &server).is_empty());
        let mut conn = server.connect();
        for _ in 0..40 {
            let response = conn.ask_any("GET /cgi-bin/quick HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!((response.status(), &response.body[..]), (200, &b"done\n"[..]), "{model}");
        }
        drop(conn);
        eventually("no zombie stays", || left("no such process", &server).is_empty());
    }
}

#[test]
fn what_is_no_answer_is_502_and_said_in_the_error_log() {
    let site = Site::new();
    site.program("silent", "exit 3");
    // It is killed once its head was refused.
    site.program("split", "echo '\u{1b}[31m a line' >&2; printf 'Content-Type: a\\rX: b\\n\\n'");
    site.program("raw", "printf 'HTTP/1.1 200 OK\\r\\n\\r\\n'");
    site.program("short", "printf 'Content-Type: a/b\\nContent-Length: 9\\n\\nabc'");
    site.program("bare", "printf 'Content-Type: a/b\nContent-Length: 9\n\n'");
    site.program("loop", "echo Location: /cgi-bin/loop; echo");
    site.program("local", "echo Location: /cgi-bin/env/x?y=z; echo");
    let server = site.start("reactor", &[], "");
    // The head of the last one waits for its body, which never comes.
    for name in ["silent", "split", "raw", "bare"] {
        let answer = get(&server, &format!("/cgi-bin/{name}"));
        assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{name}: {answer}");
    }
    let answer = get(&server, "/cgi-bin/short");
    assert!(answer.contains("Content-Length: 9") && answer.ends_with("\r\n\r\nabc"), "{answer}");
    let answer = get(&server, "/cgi-bin/loop");
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    let body = body(&get(&server, "/cgi-bin/local"));
    assert_eq!(variable(&body, "PATH_INFO"), Some("/x"));
    assert_eq!(variable(&body, "QUERY_STRING"), Some("y=z"));
    eventually("all of it is in the log", || {
        let log = std::fs::read_to_string(site.path("error.log")).unwrap_or_default();
        assert!(!log.contains('\u{1b}'), "{log}");
        ["/cgi-bin/silent", "/cgi-bin/split", "NPH", "a line"].iter().all(|text| log.contains(text))
    });
}

#[test]
fn the_last_words_of_a_program_are_in_the_error_log_under_every_model() {
    for model in models() {
        let site = Site::new();
        site.program("says", "echo Content-Type: text/plain; echo; echo done; echo so-said >&2");
        // A separate child for each connection, if the model has children.
        let quota: &[&str] = match model {
            "prefork" | "worker" | "event" => &["MaxConnectionsPerChild=1"],
            _ => &[],
        };
        let server = site.start(model, quota, "");
        assert_eq!(body(&get(&server, "/cgi-bin/says")), "done\n", "{model}");
        eventually(&format!("its words are in the log: {model}"), || {
            let log = std::fs::read_to_string(site.path("error.log")).unwrap_or_default();
            log.contains("so-said")
        });
    }
}

#[test]
fn a_program_that_goes_on_after_its_answer_ends_with_the_server() {
    let site = Site::new();
    // A number that no other process sleeps for.
    site.program("on", "echo Content-Type: text/plain; echo; echo done; exec >&-; sleep 16180339");
    for model in models() {
        let mut server = site.start(model, &[], "");
        assert_eq!(body(&get(&server, "/cgi-bin/on")), "done\n", "{model}");
        server.signal(Signal::INT);
        assert!(server.ended().success(), "{model}");
        eventually(&format!("it has ended: {model}"), || left("16180339", &server).is_empty());
    }
}

#[test]
fn what_a_program_redirects_to_is_guarded_like_what_a_client_asks_for() {
    let site = Site::new();
    site.program("to-guarded", "echo Location: /guarded/x.txt; echo");
    site.program("to-open", "echo Location: /open.txt; echo");
    std::fs::create_dir(site.path("site/guarded")).unwrap();
    std::fs::write(site.path("site/guarded/x.txt"), "secret").unwrap();
    std::fs::write(site.path("site/open.txt"), "open").unwrap();
    let rules = "[[rule]]\nprefix = \"/guarded\"\ndeny = 403\n[[rule]]\nprefix = \"/open.txt\"\n\
                 set = { X-Rule = \"applied\" }\n";
    let server = site.start("reactor", &[], rules);
    // Twice on one connection: what was decided on the way must not be kept for the same head.
    let again = "GET /cgi-bin/to-guarded HTTP/1.1\r\nHost: a\r\n\r\n";
    let answers = ask(
        &server,
        &format!("{again}{again}GET /cgi-bin/env HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    );
    assert_eq!(answers.matches("HTTP/1.1 403 ").count(), 2, "{answers}");
    assert!(answers.contains("HTTP/1.1 200 OK") && !answers.contains("secret"), "{answers}");
    let open = get(&server, "/cgi-bin/to-open");
    assert!(open.contains("X-Rule: applied\r\n") && open.ends_with("open"), "{open}");
}

/// The kinds that this machine can run.
fn kinds() -> impl Iterator<Item = &'static str> {
    models().filter(|model| KINDS.contains(model))
}

/// All processes of a server, programs too.
fn processes(server: &Server) -> Vec<Pid> {
    let mut all = vec![server.pid()];
    let mut at = 0;
    while at < all.len() {
        all.extend(children_of(all[at]));
        at += 1;
    }
    all
}

/// Bytes that a process has written, and whether it waits.
fn written(pid: Pid) -> Option<(u64, bool)> {
    let of = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", pid.as_raw_nonzero()));
    let line = of("io").ok()?.lines().find_map(|line| Some(line.strip_prefix("wchar: ")?.parse()));
    let waits = of("stat").ok()?.rsplit_once(") ")?.1.starts_with('S');
    Some((line?.ok()?, waits))
}

#[test]
fn a_client_that_reads_slowly_slows_the_program_and_takes_no_memory() {
    const BYTES: u64 = 100_000_000;
    let site = Site::new();
    let name = "gateway-test-zeros";
    site.program(
        name,
        &format!("echo Content-Type: application/x; echo; exec head -c {BYTES} /dev/zero"),
    );
    for model in kinds() {
        let server = site.start(model, &[], "");
        let mut conn = server.connect();
        let target = format!("/cgi-bin/{name}");
        conn.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        conn.head_end();
        let program = |pid: &Pid| {
            let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
            line.is_ok_and(|line| line.starts_with(b"head\0"))
        };
        let mut found = None;
        eventually("the program runs", || {
            found = processes(&server).into_iter().find(program);
            found.is_some()
        });
        let mut before = None;
        eventually("the program waits for its reader", || {
            let now = found.and_then(written);
            let is_stuck = before == now && now.is_some_and(|(_, waits)| waits);
            before = now;
            is_stuck
        });
        let (bytes, _) = before.unwrap();
        assert!(bytes < BYTES / 2, "{model}: it wrote {bytes} although nobody read");
        let ours = processes(&server).into_iter().filter(|pid| Some(*pid) != found);
        let bytes: u64 = ours.map(memory_bytes).sum();
        assert!(bytes < 32 << 20, "{model}: {bytes} bytes of memory");
        let answer = conn.rest();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        assert_eq!(dechunked(&head, &answer[end..]).len() as u64, BYTES, "{model}");
    }
}

/// Private memory of a process.
fn memory_bytes(pid: Pid) -> u64 {
    let path = format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Private_Dirty:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024)
}

#[test]
fn a_thousand_programs_leave_neither_a_zombie_nor_a_descriptor() {
    let site = Site::new();
    site.program("quick", "echo Content-Type: text/plain; echo; echo done; echo said >&2");
    // Of the process that has most: how many processes there are depends on the model.
    let descriptors = |server: &Server| {
        let of = |pid: Pid| std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
        let all = processes(server);
        all.into_iter().map(|pid| of(pid).map_or(0, Iterator::count)).max().unwrap()
    };
    for model in kinds() {
        let server = site.start(model, &["MaxKeepAliveRequests=0"], "");
        let mut conn = server.connect();
        let mut run = |count: usize| {
            for _ in 0..count {
                let response = conn.ask_any("GET /cgi-bin/quick HTTP/1.1\r\nHost: a\r\n\r\n");
                assert_eq!((response.status(), &response.body[..]), (200, &b"done\n"[..]));
            }
            eventually("no zombie stays", || left("no such process", &server).is_empty());
        };
        run(1);
        // What the first one opened stays open: it belongs to the process.
        let mut least = usize::MAX;
        for _ in 0..10 {
            least = least.min(descriptors(&server));
        }
        run(1000);
        eventually("no descriptor stays", || descriptors(&server) <= least);
        drop(server);
    }
}

#[test]
fn who_has_proved_who_he_is_is_told_to_the_program_and_his_password_is_not() {
    let site = Site::new();
    // "secret", by htpasswd -nbBC 4.
    let hash = "$2y$04$8K69ZjhrDERgvrhS1xAGoel0H0hOdAGRZtLUBA7COzPsq8.Fd010q";
    std::fs::write(site.path("users"), format!("anna:{hash}\n")).unwrap();
    let guard = format!(
        "[[rule]]\nprefix = \"/cgi-bin/\"\nauth = {{ realm = \"r\", file = \"{}\" }}",
        site.path("users").display()
    );
    for model in kinds() {
        let server = site.start(model, &[], &guard);
        assert!(get(&server, "/cgi-bin/env").starts_with("HTTP/1.1 401 "), "{model}");
        let answer = ask(
            &server,
            "GET /cgi-bin/env HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
             Authorization: Basic YW5uYTpzZWNyZXQ=\r\n\r\n",
        );
        let body = body(&answer);
        assert_eq!(variable(&body, "REMOTE_USER"), Some("anna"), "{model}: {answer}");
        assert_eq!(variable(&body, "AUTH_TYPE"), Some("Basic"), "{model}");
        assert!(!body.contains("YW5uYTpzZWNyZXQ"), "{model}: {body}");
    }
}
