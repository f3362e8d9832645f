//! The requests of `joust load`: files of requests in every format, placeholders, bodies, fields,
//! cookies. A server in this process records them. Start reading at
//! [`every_format_is_asked_as_it_is_written`].

use std::collections::{BTreeSet, HashSet};

use crate::load::record;
use crate::planted::{Planted, Seen, reply};
use crate::{Server, output, said};

fn start() -> Planted {
    Planted::start(|_| reply("", "x"))
}

/// Runs a load over one connection, without requests before it.
fn ask(args: &[&str]) -> serde_json::Value {
    record(&[&["load"], args, &["-c", "1", "--verify", "none", "--json", "-"]].concat())
}

fn lines(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(Seen::line).collect()
}

/// Format, text with @ for the server's address, and the expected requests.
const FILES: [(&str, &str, &[&str]); 7] = [
    ("http_load", "http://@/a\nhttp://@/b?c=d\n", &["GET /a", "GET /b?c=d"]),
    (
        "siege",
        "HOST=@\n# a comment\nhttp://$(HOST)/a\nhttp://$(HOST)/login POST name=ann\n",
        &["GET /a", "POST /login"],
    ),
    (
        "vegeta",
        "GET http://@/a\nAccept: text/html\n\nPUT http://@/b\n@body.txt\n",
        &["GET /a", "PUT /b"],
    ),
    (
        "jsonl",
        "{\"url\": \"/a\"}\n{\"url\": \"http://@/b\", \"method\": \"DELETE\"}\n",
        &["GET /a", "DELETE /b"],
    ),
    (
        "access_log",
        "::1 - - [10/Oct/2026:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 12\n\
         ::1 - - [10/Oct/2026:13:55:37 +0000] \"HEAD /b HTTP/1.1\" 404 0 \"-\" \"curl/8\"\n",
        &["GET /a", "HEAD /b"],
    ),
    (
        "har",
        "{\"log\": {\"version\": \"1.2\", \"entries\": [\
         {\"startedDateTime\": \"2026-10-10T13:55:36Z\", \"request\": \
         {\"method\": \"GET\", \"url\": \"http://@/a\", \"headers\": []}},\
         {\"startedDateTime\": \"2026-10-10T13:55:36.1Z\", \"request\": \
         {\"method\": \"POST\", \"url\": \"http://@/b\", \"headers\": [], \
         \"postData\": {\"mimeType\": \"text/plain\", \"text\": \"hello\"}}}]}}\n",
        &["GET /a", "POST /b"],
    ),
    (
        "curl",
        "curl 'http://@/a' -H 'Accept: text/html'\ncurl http://@/b --data x=1\n",
        &["GET /a", "POST /b"],
    ),
];

#[test]
fn every_format_is_asked_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("body.txt"), "a body").unwrap();
    let formats = crate::stdout(&output(&["load", "--help"]));
    for (format, text, expected) in FILES {
        assert!(formats.contains(&format!("- {format}:")), "{format} is no format of the help");
        let server = start();
        let file = dir.path().join(format);
        let place = format!("//{}", server.addr());
        let text = text.replace("//@", &place).replace("=@", &format!("={}", server.addr()));
        std::fs::write(&file, &text).unwrap();
        let (file, url) = (file.to_str().unwrap(), server.url("/"));
        // Once recognised, once named.
        for named in [&[][..], &["--format", format]] {
            // Needed if the lines name no server.
            let base: &[&str] =
                if text.contains("/a HTTP") || format == "jsonl" { &[&url] } else { &[] };
            let record = ask(&[base, &["--from", file, "-n", "4"], named].concat());
            assert_eq!(record["requests"]["ok"], 4, "{format}: {}", record["errors"]);
            assert_eq!(lines(&server.take()), [expected, expected].concat(), "{format}");
        }
    }
}

#[test]
fn a_pasted_curl_line_is_asked_with_its_fields_and_body() {
    let server = start();
    let line = format!(
        "curl '{}' -H 'X-Mine: 1' -u ann:secret --data-raw '{{\"n\": 1}}'",
        server.url("/items")
    );
    assert_eq!(ask(&["--curl", &line, "-n", "2"])["requests"]["ok"], 2);
    for seen in server.seen() {
        assert_eq!((seen.line(), &*seen.body), ("POST /items", &b"{\"n\": 1}"[..]));
        assert_eq!(seen.field("X-Mine"), Some("1"));
        assert_eq!(seen.field("Authorization"), Some("Basic YW5uOnNlY3JldA=="));
    }
}

#[test]
fn requests_come_from_stdin_too() {
    let server = start();
    let args = ["load", "--from", "-", "-n", "2", "-c", "1", "--verify", "none", "-q"];
    let mut command = crate::joust(&args);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let text = format!("{}\n{}\n", server.url("/a"), server.url("/b"));
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(lines(&server.seen()), ["GET /a", "GET /b"]);
}

#[test]
fn at_random_each_is_chosen_by_its_weight() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("requests.jsonl");
    std::fs::write(&file, "{\"url\": \"/a\", \"weight\": 9}\n{\"url\": \"/b\"}\n").unwrap();
    let server = start();
    let file = file.to_str().unwrap();
    ask(&[&server.url("/"), "--from", file, "--shuffle", "-n", "400"]);
    let n_of_b = lines(&server.seen()).iter().filter(|line| **line == "GET /b").count();
    // Binomial(400, 0.1): 40, plus or minus 6 standard deviations.
    assert!((4..=76).contains(&n_of_b), "{n_of_b} of 400");
}

#[test]
fn urls_of_two_servers_reach_both() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (start(), start());
    let file = dir.path().join("urls.txt");
    std::fs::write(&file, format!("{}\n{}\n", one.url("/1"), other.url("/2"))).unwrap();
    let record = ask(&["--from", file.to_str().unwrap(), "-n", "40"]);
    assert_eq!(record["requests"]["ok"], 40);
    assert_eq!(record["plan"]["origins"].as_array().unwrap().len(), 2);
    assert_eq!((one.seen().len(), other.seen().len()), (20, 20));
}

#[test]
fn no_two_requests_have_the_same_number_in_the_servers_own_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let server = Server::start(&["--fixed", "10", "--access-log", log.to_str().unwrap()]);
    let url = format!("{}?n={{seq}}", server.url);
    let args = ["-n", "200", "-c", "8", "-t", "2", "--verify", "none", "--json", "-"];
    assert_eq!(record(&[&["load", &url], &args[..]].concat())["requests"]["ok"], 200);
    assert_eq!(server.drain(), Some(0));
    let log = std::fs::read_to_string(log).unwrap();
    let targets: HashSet<&str> = log.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(targets.len(), 200, "{log}");
}

#[test]
fn placeholders_are_filled_in_url_fields_and_body() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("users.csv"), "name,id\nann,17\nbob,42\n").unwrap();
    let csv = dir.path().join("users.csv");
    let url = |server: &Planted| server.url(&format!("/u/{{csv:{}:id}}", csv.display()));
    let server = start();
    let field = format!("X-Name: {{csv:{}:name}}", csv.display());
    let body = ["-X", "POST", "--body", "{rand:3-4} {seq}"];
    ask(&[&[&*url(&server), "-n", "60", "-H", &field], &body[..]].concat());
    let seen = server.seen();
    let pair = |seen: &Seen| (seen.line().to_owned(), seen.field("X-Name").unwrap().to_owned());
    let pairs: BTreeSet<_> = seen.iter().map(pair).collect();
    let expected = [("POST /u/17", "ann"), ("POST /u/42", "bob")];
    assert!(pairs.iter().map(|(line, name)| (&**line, &**name)).eq(expected), "{pairs:?}");
    let bodies: Vec<String> =
        seen.iter().map(|seen| String::from_utf8(seen.body.clone()).unwrap()).collect();
    let first: BTreeSet<&str> = bodies.iter().filter_map(|body| body.split(' ').next()).collect();
    assert!(first.iter().eq(["3", "4"].iter()), "{first:?}");
    let second: HashSet<&str> = bodies.iter().filter_map(|body| body.split(' ').nth(1)).collect();
    assert_eq!(second.len(), 60, "{bodies:?}");
}

#[test]
fn a_password_reaches_the_server_and_no_report() {
    let server = start();
    let args = ["-u", "ann:secret", "-n", "2", "-c", "1", "--json", "-"];
    let output = output(&[&["load", &server.url("/")], &args[..]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let text = crate::stdout(&output);
    assert!(!text.contains("secret") && !text.contains("YW5uOnNlY3JldA"), "{text}");
    for seen in server.seen() {
        assert_eq!(seen.field("Authorization"), Some("Basic YW5uOnNlY3JldA=="));
    }
}

#[test]
fn cookies_go_back_on_the_connection_that_they_were_set_on() {
    let server = Planted::start(|seen| reply(&format!("Set-Cookie: at={}\r\n", seen.conn), "x"));
    let args = ["-n", "40", "-c", "4", "--verify", "none", "--cookies", "-q"];
    assert!(output(&[&["load", &server.url("/")], &args[..]].concat()).status.success());
    let mut known = HashSet::new();
    for seen in server.seen() {
        let own = format!("at={}", seen.conn);
        let expected = (!known.insert(seen.conn)).then_some(&*own);
        assert_eq!(seen.field("Cookie"), expected, "connection {}", seen.conn);
    }
}

#[test]
fn a_body_waits_for_the_continue_that_it_asked_for() {
    let server = start();
    let args = ["-X", "POST", "--body", "hello", "--expect-continue", "-n", "4"];
    let record = ask(&[&[&*server.url("/")], &args[..]].concat());
    assert_eq!(record["requests"]["ok"], 4, "{}", record["errors"]);
    for seen in server.seen() {
        assert_eq!(seen.field("Expect"), Some("100-continue"));
        assert_eq!(seen.body, b"hello");
    }
}

#[test]
fn a_body_is_text_or_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("body.bin");
    std::fs::write(&file, [0, 255, 13, 10]).unwrap();
    let server = start();
    let at = format!("@{}", file.display());
    for (typed, bytes) in [("a=1", &b"a=1"[..]), (&at, &[0, 255, 13, 10])] {
        ask(&[&server.url("/"), "-X", "PUT", "--body", typed, "-n", "1"]);
        let seen = server.take();
        assert_eq!((seen[0].line(), &*seen[0].body), ("PUT /", bytes));
    }
}

#[test]
fn a_request_with_a_body_is_a_post_unless_a_method_is_named() {
    let server = start();
    let file = tempfile::NamedTempFile::new().unwrap();
    let at = format!("@{}", file.path().display());
    let cases: [(&[&str], &str); 5] = [
        (&[], "GET /"),
        (&["--body", "a=1"], "POST /"),
        (&["--body", &at], "POST /"),
        (&["--body", "a=1", "-X", "PATCH"], "PATCH /"),
        (&["--body", "a=1", "-X", "GET"], "GET /"),
    ];
    for (args, line) in cases {
        ask(&[&[&*server.url("/"), "-n", "1"], args].concat());
        assert_eq!(lines(&server.take()), [line], "{args:?}");
    }
}

#[test]
fn a_time_without_a_unit_is_seconds_after_every_flag_that_takes_one() {
    let server = start();
    let cases: [(&[&str], &str, &str); 5] = [
        (&["-d", "0.02"], "/plan/stop/duration", "20000000"),
        (&["-n", "1", "--timeout", "3"], "/plan/timeout", "3000000000"),
        (&["-n", "2", "--think", "exp:0.01"], "/plan/pacing/pause", "10000000"),
        (&["--ramp", "90/s:100/s:0.02", "-n", "1"], "/plan/pacing/over", "20000000"),
        (&["--stages", "100/s:0.02"], "/plan/pacing/stages/0/length", "20000000"),
    ];
    for (args, place, nanos) in cases {
        let record = ask(&[&[&*server.url("/")], args].concat());
        let got = record.pointer(place).map(ToString::to_string);
        assert_eq!(got.as_deref(), Some(nanos), "{args:?}: {}", record["plan"]);
    }
}
