//! `joust load --follow`: the requests for a redirect's target, what counts, and what is printed without following.
//! Both engines. Start reading at [`follow`].

use serde_json::Value;

use crate::load::record;
use crate::planted::{Planted, Seen, reply};
use crate::{output, said, stdout};

const ENGINES: [&str; 2] = ["uring", "epoll"];

/// A redirect.
fn redirect(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} x\r\nContent-Length: 3\r\nLocation: {location}\r\nSet-Cookie: at=1\r\n\r\nno\n")
        .into_bytes()
}

/// Answers as the target says: `/307/to//here` is answered by 307 with the Location `/here`.
fn start() -> Planted {
    Planted::start(|seen| {
        let target = seen.line().split(' ').nth(1).unwrap_or_default().to_owned();
        let status = target.get(1..4).and_then(|status| status.parse::<u16>().ok());
        match status.zip(target.split_once("/to/")) {
            Some((status, (_, to))) => redirect(status, to),
            None if target == "/loop" => redirect(302, "/loop"),
            None => reply("", "page"),
        }
    })
}

fn follow(url: &str, engine: &str, args: &[&str]) -> Value {
    let fixed = ["load", url, "--engine", engine, "--json", "-"];
    record(&[&fixed[..], args].concat())
}

fn lines(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(Seen::line).collect()
}

#[test]
fn a_chain_counts_as_one_request_with_the_time_of_all() {
    let server = start();
    for engine in ENGINES {
        for pace in [&["-c", "3"][..], &["-c", "3", "-r", "2k/s"], &["-c", "3", "--no-keepalive"]] {
            let args = [&["-n", "40", "--follow", "3", "--verify", "none"], pace].concat();
            let record = follow(&server.url("/302/to//308/to//page"), engine, &args);
            assert_eq!(server.take().len(), 120, "{engine} {pace:?}");
            let requests = &record["requests"];
            for count in ["started", "done", "ok"] {
                assert_eq!(requests[count], 40, "{engine} {pace:?} {count}");
            }
            assert_eq!(record["status"], serde_json::json!({"200": 40}), "{engine} {pace:?}");
            assert_eq!(record["redirects"]["followed"], 80, "{engine} {pace:?}");
            assert_eq!(record["bytes"]["body"], 40 * (3 + 3 + 4), "of all replies");
            assert_eq!(record["raw"].as_array().map(Vec::len), Some(40));
        }
    }
}

#[test]
fn a_loop_ends_at_its_limit_with_a_failure_of_its_own() {
    let server = start();
    for engine in ENGINES {
        let args = ["-n", "6", "-c", "2", "--follow", "4", "--engine", engine, "--json", "-"];
        let output = output(&[&["load", &server.url("/loop")], &args[..]].concat());
        let record: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(record["errors"]["too_many_redirects"], 6, "{}", record["errors"]);
        assert_eq!(record["requests"]["failed"], 6);
        assert!(said(&output).contains("more redirects than --follow allows"), "{}", said(&output));
        // Plus one request of the probe.
        assert_eq!(server.take().len(), 6 * 5 + 1);
    }
}

#[test]
fn a_redirect_that_leads_nowhere_has_a_failure_of_its_own() {
    let server = start();
    for to in ["ftp://127.0.0.1/", "http://", "http://nobody.invalid/", "http://127.0.0.1:0/"] {
        let url = server.url(&format!("/302/to/{to}"));
        let args = ["-n", "4", "-c", "1", "--follow", "4", "--verify", "none", "--json", "-"];
        let output = output(&[&["load", &url], &args[..]].concat());
        let record: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(record["errors"]["bad_redirect"], 4, "{to}: {}", record["errors"]);
        assert!(said(&output).contains("other than an http URL, or to an unknown host"));
    }
}

#[test]
fn the_method_and_the_body_go_on_as_the_status_says() {
    let server = start();
    for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")]
    {
        let url = server.url(&format!("/{status}/to//next/a"));
        let args = [
            "--body",
            "hello",
            "-H",
            "Content-Type: text/x",
            "-n",
            "1",
            "-c",
            "1",
            "--follow",
            "1",
        ];
        follow(&url, "epoll", &[&args[..], &["--verify", "none"]].concat());
        let seen = server.take();
        assert_eq!(seen[1].line(), format!("{method} /next/a"), "{status}");
        let is_post = method == "POST";
        assert_eq!(seen[1].body, if is_post { &b"hello"[..] } else { b"" });
        for field in ["Content-Type", "Content-Length"] {
            assert_eq!(seen[1].field(field).is_some(), is_post, "{status} {field}");
        }
    }
}

#[test]
fn credentials_and_cookies_stay_at_their_origin() {
    let (here, elsewhere) = (start(), start());
    let args = ["-u", "ann:secret", "-H", "Cookie: own=1", "--cookies", "-n", "1", "-c", "1"];
    let args = [&args[..], &["--follow", "2", "--verify", "none"]].concat();
    follow(&here.url("/302/to//there"), "uring", &args);
    let seen = here.take();
    assert_eq!(lines(&seen), ["GET /302/to//there", "GET /there"]);
    assert_eq!(seen[0].field("Cookie"), Some("own=1"));
    assert_eq!(seen[1].field("Cookie"), Some("own=1; at=1"), "a login is remembered on the way");
    assert!(seen[1].field("Authorization").is_some());
    follow(&here.url(&format!("/302/to/{}", elsewhere.url("/x"))), "uring", &args);
    let seen = elsewhere.take();
    assert_eq!(lines(&seen), ["GET /x"]);
    assert_eq!((seen[0].field("Authorization"), seen[0].field("Cookie")), (None, None));
    assert_eq!(seen[0].field("Host"), Some(&*elsewhere.addr().to_string()));
}

#[test]
fn redirects_lead_to_other_hosts_and_to_tls() {
    let Some(dir) = crate::planted::with_certificate() else { return };
    let secure = dir.path().join("cert.pem");
    let key = dir.path().join("key.pem");
    let [secure, key] = [&secure, &key].map(|path| path.to_str().unwrap());
    let tls = crate::Server::start(&["--fixed", "10", "--tls-cert", secure, "--tls-key", key]);
    let port = tls.url.rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let plain = start();
    for engine in ENGINES {
        // The name is looked up once, and the certificate must be for it.
        let url = plain.url(&format!("/301/to/https://localhost:{port}/x"));
        let args = ["-n", "20", "-c", "2", "--follow", "1", "--cacert", secure, "--verify", "none"];
        let record = follow(&url, engine, &args);
        assert_eq!(record["requests"]["ok"], 20, "{engine}: {}", record["errors"]);
        assert_eq!(record["tls"]["version"], "TLS 1.3");
        assert_eq!(record["connects"], 40, "a connection leads to one server at a time");
    }
}

#[test]
fn where_nobody_follows_redirects_the_report_says_so() {
    let server = start();
    let url = server.url("/302/to//login?token=hidden");
    let output = output(&["load", &url, "-n", "30", "-c", "1", "--verify", "none"]);
    assert!(output.status.success());
    let text = crate::docs::spaced(&stdout(&output));
    let line = "30 of 30 replies were redirects (302 to /login)";
    assert!(text.contains(line) && text.contains("(--follow 5)"), "{text}");
    assert!(!text.split("requests/s over").nth(1).unwrap().contains("hidden"), "{text}");
    let followed = crate::output(&["load", &url, "-n", "30", "-c", "1", "--follow", "5"]);
    let text = crate::docs::spaced(&stdout(&followed));
    assert!(!text.contains("were redirects"), "{text}");
    assert!(text.contains("Redirects: 30 followed, 1.00 per request"), "{text}");
}
