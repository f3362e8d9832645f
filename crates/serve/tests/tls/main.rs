//! TLS under every model, against our own client, OpenSSL and curl. Start reading at the first test.

#[path = "../cases/mod.rs"]
mod cases;
mod client;
#[path = "../support/mod.rs"]
mod support;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use client::{End, Secure, anybody, certificate, config, options, run};
use support::{FIXED, GET, GET_CLOSE, LONG, Server, Setup, eventually, models};
use wire::tls::{Handshake, Versions};

/// A server with a certificate for localhost.
fn start(model: &str, setup: Setup<'_>) -> Server {
    start_with("", model, setup)
}

/// The same with lines of the table `[tls]`. Its files are removed once it runs: it does not need them again.
fn start_with(tls: &str, model: &str, setup: Setup<'_>) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let config = config(tls, &[certificate(folder.path(), "it", &["localhost"])]);
    Server::start(model, Setup { config: &config, ..setup })
}

/// 3 MB in which no part repeats.
fn large() -> Vec<u8> {
    (0..750_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

/// A site with a large file.
fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("large"), large()).unwrap();
    std::fs::write(folder.path().join("small"), "small\n").unwrap();
    folder
}

fn get(name: &str) -> String {
    GET.replace("GET /", &format!("GET /{name}"))
}

#[test]
fn every_model_sends_a_file_of_3_mb_byte_for_byte_and_then_goes_on() {
    let (site, large) = (site(), large());
    let content = site.path().to_str().unwrap();
    for model in models() {
        let server = start(model, Setup { content, ..FIXED });
        let mut conn = Secure::to(server.addr, &anybody(), "localhost");
        assert_eq!(conn.tls.alpn(), Some(&b"http/1.1"[..]), "{model}");
        for _ in 0..2 {
            let (head, body) = conn.ask(&get("large"));
            assert!(head.starts_with("HTTP/1.1 200 ") && body == large, "{model}: {head}");
        }
        // All of one record, and of several, answered in order.
        let requests = [get("small"), get("large"), get("small")].concat().repeat(3);
        assert!(conn.send(requests.as_bytes()));
        for at in 0..9 {
            let expected = if at % 3 == 1 { &large[..] } else { b"small\n" };
            assert!(conn.response().1 == expected, "{model}: answer {at}");
        }
        let range = get("large").replace("\r\n\r\n", "\r\nRange: bytes=1000000-2999998\r\n\r\n");
        assert!(conn.ask(&range).1 == large[1_000_000..2_999_999], "{model}");
        conn.send(GET_CLOSE.replace("GET /", "GET /small").as_bytes());
        let (last, end) = conn.rest();
        assert!(last.ends_with(b"\r\n\r\nsmall\n"), "{model}");
        assert_eq!(end, End::Notified, "{model}");
    }
}

/// As without TLS: in a loop, and where a thread waits.
#[test]
fn every_case_of_the_conformance_suite_holds_over_tls() {
    let outer = tempfile::tempdir().unwrap();
    cases::make_site(outer.path());
    let content = outer.path().join("site");
    let content = content.to_str().unwrap();
    let mut faults = Vec::new();
    for model in ["reactor", "prefork"] {
        let server = start(model, Setup { content, ..FIXED });
        let client = anybody();
        let mut first = Secure::to(server.addr, &client, "localhost");
        let (head, _) = first.ask(&get("ten.txt"));
        let etag = head.lines().find_map(|line| line.strip_prefix("ETag: ")).unwrap();
        for case in cases::all() {
            let input = case.input(etag);
            for size in [input.len(), input.len().div_ceil(3)] {
                let mut conn = Secure::to(server.addr, &client, "localhost");
                // A server may refuse after the first piece and close: what it said is what counts.
                let _ = input.chunks(size.max(1)).all(|piece| conn.send(piece));
                let (answer, _) = conn.rest();
                if let Err(fault) = case.judge(&answer) {
                    faults.push(format!("{model}, pieces of {size}: {fault}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n\n"));
}

#[test]
fn a_session_is_resumed_at_any_child_by_a_ticket() {
    for versions in [Versions::Only12, Versions::Only13] {
        let client = options(|options| options.tls_versions = versions);
        for model in models() {
            // Every child of prefork serves one connection and leaves: no two meet the same.
            let settings: &[&str] =
                if model == "prefork" { &["MaxConnectionsPerChild=1"] } else { &[] };
            let server = start(model, Setup { settings, ..FIXED });
            let client = client.with_own_sessions(16);
            for wanted in [Handshake::Full, Handshake::Resumed, Handshake::Resumed] {
                let mut conn = Secure::to(server.addr, &client, "localhost");
                conn.ask(GET);
                assert_eq!(conn.tls.handshake(), Some(wanted), "{model}, {versions:?}");
            }
        }
    }
}

#[test]
fn without_tickets_a_process_remembers_sessions_unless_it_may_keep_none() {
    let cases = [(256, Handshake::Resumed), (0, Handshake::Full)];
    for (kept, second) in cases {
        let tls = format!("session_tickets = false\nsession_cache = {kept}");
        let server = start_with(&tls, "reactor", FIXED);
        let client = anybody();
        for wanted in [Handshake::Full, second] {
            let mut conn = Secure::to(server.addr, &client, "localhost");
            conn.ask(GET);
            assert_eq!(conn.tls.handshake(), Some(wanted), "{kept}");
        }
    }
}

#[test]
fn the_certificate_is_that_of_the_name_asked_for_exact_before_wildcard() {
    let folder = tempfile::tempdir().unwrap();
    let all = [("first", "a.test"), ("wild", "*.b.test"), ("exact", "x.b.test")];
    let files = all.map(|(file, name)| certificate(folder.path(), file, &[name]));
    let config = config("", &files);
    let server = Server::start("reactor", Setup { config: &config, ..FIXED });
    let cases = [
        ("a.test", "first"),
        ("A.Test", "first"),
        ("y.b.test", "wild"),
        ("x.b.test", "exact"),
        // A star stands for exactly one label.
        ("z.y.b.test", "first"),
        ("b.test", "first"),
        ("elsewhere.test", "first"),
        ("127.0.0.1", "first"),
    ];
    for (name, file) in cases {
        let shown = |file: &str| {
            let pem = std::fs::read(folder.path().join(format!("{file}.crt"))).unwrap();
            // A client that trusts only one certificate learns in the handshake whether it was that one.
            let client = options(|options| {
                options.insecure = false;
                options.ca_pem = Some(pem.clone());
            });
            match Secure::try_to(server.addr, &client, name) {
                Ok(_) => true,
                Err(error) => error.contains("not for"),
            }
        };
        let found: Vec<&str> = all.map(|(file, _)| file).into_iter().filter(|f| shown(f)).collect();
        assert_eq!(found, [file], "{name}");
    }
}

#[test]
fn versions_and_protocols_that_are_not_spoken_are_refused_by_an_alert() {
    let server = start_with("min_version = \"1.3\"", "reactor", FIXED);
    let old = options(|options| options.tls_versions = Versions::Only12);
    let error = Secure::try_to(server.addr, &old, "localhost").err().unwrap();
    assert!(error.contains("protocol_version"), "{error}");
    let other = options(|options| options.alpn = vec!["h2".to_owned()]);
    let error = Secure::try_to(server.addr, &other, "localhost").err().unwrap();
    assert!(error.contains("no_application_protocol"), "{error}");
    let without = options(|options| options.alpn.clear());
    Secure::to(server.addr, &without, "localhost").ask(GET);
}

/// Waits until a client with that trust is accepted, or no longer is.
fn eventually_shows(server: &Server, chain: &std::path::Path, shows: bool) {
    let client = options(|options| {
        options.insecure = false;
        options.ca_pem = Some(std::fs::read(chain).unwrap());
    });
    eventually("the other certificate is shown", || {
        Secure::try_to(server.addr, &client, "localhost").is_ok() == shows
    });
}

#[test]
fn changed_certificates_are_shown_without_a_restart_and_broken_ones_are_not() {
    for model in ["reactor", "prefork"] {
        let folder = tempfile::tempdir().unwrap();
        let (chain, key) = certificate(folder.path(), "it", &["localhost"]);
        let errors = folder.path().join("errors.log");
        let tail = format!("[error_log]\nfile = {errors:?}\n");
        let text = config("", &[(chain.clone(), key.clone())]) + &tail;
        let server = Server::start(model, Setup { config: &text, ..FIXED });
        eventually_shows(&server, &chain, true);

        let (next_chain, next_key) = certificate(folder.path(), "next", &["localhost"]);
        std::fs::copy(&next_chain, &chain).unwrap();
        // The key is still the old one.
        let mut conn = Secure::to(server.addr, &anybody(), "localhost");
        conn.ask(GET);
        eventually("the error log names it", || {
            Secure::to(server.addr, &anybody(), "localhost").ask(GET);
            std::fs::read_to_string(&errors).unwrap().contains("does not match")
        });
        eventually_shows(&server, &next_chain, false);
        std::fs::copy(&next_key, &key).unwrap();
        eventually_shows(&server, &next_chain, true);
        // A connection from before stays open.
        conn.ask(GET);
    }
}

#[test]
fn plain_http_is_told_to_use_https_under_every_model() {
    for model in models() {
        let server = start(model, FIXED);
        let answer = String::from_utf8({
            let mut conn = server.connect();
            conn.send(GET);
            conn.rest()
        });
        let answer = answer.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https://"), "{answer}");
        // Other clients are not affected.
        Secure::to(server.addr, &anybody(), "localhost").ask(GET);
    }
}

#[test]
fn garbage_silence_and_cut_handshakes_cost_their_own_connection_only() {
    const ALERT: u8 = 21;
    for model in models() {
        let settings = ["limits.handshake_timeout=500ms"];
        let server = start(model, Setup { settings: &settings, ..FIXED });
        let open = || {
            let stream = TcpStream::connect(server.addr).unwrap();
            stream.set_read_timeout(Some(LONG)).unwrap();
            stream
        };
        let mut rest = Vec::new();
        for garbage in [&b"\x16\x03\x01\x00\x05hello"[..], b"\x80\x2e\x01\x00\x02", &[0; 3000]] {
            let mut stream = open();
            stream.write_all(garbage).unwrap();
            rest.clear();
            // A reset is an end too.
            let _ = stream.read_to_end(&mut rest);
            assert!(rest.is_empty() || rest[0] == ALERT, "{model}: {rest:?}");
        }
        // Nothing at all, and a hello that stops: closed at the deadline, which is the handshake's.
        for begun in [&b""[..], b"\x16\x03\x01\x02\x00\x01\x00"] {
            let mut stream = open();
            stream.write_all(begun).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let stream = open();
        stream.shutdown(Shutdown::Write).unwrap();
        drop(stream);
        // A client that shakes hands properly is served; on a busy enough machine the deadline may hit it too.
        let served = || Secure::try_to(server.addr, &anybody(), "localhost").ok()?.asked(GET);
        assert!((0..20).any(|_| served().is_some_and(|(_, body)| body.len() == 3361)), "{model}");
    }
}

#[test]
fn a_client_that_ends_without_close_notify_is_answered_all_the_same() {
    for model in models() {
        let server = start(model, FIXED);
        let mut conn = Secure::to(server.addr, &anybody(), "localhost");
        assert!(conn.send(GET.as_bytes()));
        conn.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(conn.response().1.len(), 3361, "{model}");
        assert_eq!(conn.rest(), (vec![], End::Notified), "{model}");
        // And one that says so, at once after its request.
        let mut conn = Secure::to(server.addr, &anybody(), "localhost");
        conn.tls.send(GET.as_bytes()).unwrap();
        conn.tls.close();
        conn.send(b"");
        let mut out = Vec::new();
        conn.tls.take_output(&mut out);
        conn.stream.write_all(&out).unwrap();
        assert_eq!(conn.response().1.len(), 3361, "{model}");
    }
}

#[test]
fn a_client_that_takes_none_of_an_answer_is_cut_and_one_that_is_slow_is_not() {
    let (site, large) = (site(), large());
    let content = site.path().to_str().unwrap();
    for model in ["reactor", "prefork"] {
        let settings = ["TimeOut=2s"];
        let server = start(model, Setup { content, settings: &settings, ..FIXED });
        let mut stalled = Secure::to(server.addr, &anybody(), "localhost");
        for _ in 0..8 {
            stalled.send(get("large").as_bytes());
        }
        let mut slow = Secure::to(server.addr, &anybody(), "localhost");
        slow.send(get("large").as_bytes());
        let mut got = Vec::new();
        let head = slow.take(1000);
        let start = head.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        got.extend_from_slice(&head[start..]);
        while got.len() < large.len() {
            std::thread::sleep(std::time::Duration::from_millis(5));
            got.extend(slow.take(100_000.min(large.len() - got.len())));
        }
        assert!(got == large, "{model}");
        eventually("it is reset", || stalled.stream.take_error().unwrap().is_some());
        let (taken, end) = stalled.rest();
        assert!(taken.len() < 8 * large.len() && end == End::Cut, "{model}: {}", taken.len());
    }
}

#[test]
fn openssl_and_curl_agree() {
    let site = site();
    let server = start("reactor", Setup { content: site.path().to_str().unwrap(), ..FIXED });
    let addr = server.addr.to_string();
    let request = GET_CLOSE.replace("GET /", "GET /small");
    for version in ["-tls1_2", "-tls1_3"] {
        let args = ["s_client", "-connect", &addr, "-servername", "localhost", "-alpn"];
        let args = [&args[..], &["h2,http/1.1", version, "-ign_eof"]].concat();
        let Some(said) = run("openssl", &args, request.as_bytes()) else { return };
        assert!(said.contains("ALPN protocol: http/1.1"), "{said}");
        assert!(said.contains("small\n") && said.contains("CN = rcgen"), "{said}");
    }
    // R asks for a renegotiation, which TLS 1.2 can do and we do not (CVE-2009-3555).
    let args = ["s_client", "-connect", &addr, "-tls1_2"];
    let Some(said) = run("openssl", &args, b"R\n") else { return };
    assert!(said.contains("no renegotiation"), "{said}");
    let url = format!("https://{addr}/large");
    let out = site.path().join("got");
    let args = ["-sSk", "--http1.1", "-o", out.to_str().unwrap(), &url];
    let Some(said) = run("curl", &args, b"") else { return };
    assert!(said.is_empty() && std::fs::read(&out).unwrap() == large(), "{said}");
}
