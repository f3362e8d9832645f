//! Parses what `--explain` of the classic tools prints with the parser of `joust load` itself: its first request must
//! equal the tool's. Start reading at [`what_explain_prints_asks_for_what_the_tool_asks_for`].

use clap::Parser as _;
use classic::command::{self, Run};
use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use record::{Asking, LoadPlan, Seats};

use super::{Args, plan};
use crate::classic::testing::{asked, line, random};

const CASES: u64 = 150;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// The parts of a message that are compared: request line, sorted fields, body.
type Message = (String, Vec<(String, String)>, Vec<u8>);

/// Words of a line for a shell: plain ones, and those in single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut is_quoted, mut chars) = (false, line.chars());
    while let Some(c) = chars.next() {
        match c {
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => words.last_mut().unwrap().extend(chars.next()),
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

/// The plan that `joust load` makes of a line.
fn typed(line: &str) -> LoadPlan {
    let words = words(line);
    assert_eq!(words[..2], ["joust", "load"], "{line}");
    let parsed = Line::try_parse_from(&words[1..]).unwrap_or_else(|e| panic!("{line}\n{e}"));
    plan::plan(&parsed.args, &|_| ()).unwrap_or_else(|why| panic!("{line}\n{:?}", why.report))
}

/// The first request of a classic tool's replacement.
fn sent(run: &Run) -> Vec<u8> {
    let Some(scenario) = &run.scenario else {
        return load::first_request(&run.plan).unwrap().expect("it is always the same");
    };
    let mut users = scenario.users(Seats { thread: 0, first: 0, n: 1 });
    users.first(0);
    let mut asking = Asking::new(run.plan.origins.len() as u32);
    users.ask(0, &mut asking);
    asking.bytes()[asking.requests()[0].bytes.clone()].to_vec()
}

/// The content of a request. Whether its connection is kept alive is compared by the effect of its fields, and a length
/// of 0 equals no length.
fn said(bytes: &[u8]) -> Message {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("the end of a head");
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let (first, rest) = head.split_once("\r\n").unwrap_or((head, ""));
    let is_old = first.ends_with("HTTP/1.0");
    let mut keeps = !is_old;
    let mut fields = Vec::new();
    for (name, value) in rest.split("\r\n").filter_map(|line| line.split_once(':')) {
        let (name, value) = (name.trim().to_lowercase(), value.trim().to_owned());
        match name.as_str() {
            "connection" => keeps = !value.eq_ignore_ascii_case("close"),
            "content-length" if value == "0" => {}
            _ => fields.push((name, value)),
        }
    }
    fields.push(("(keeps the connection)".to_owned(), keeps.to_string()));
    fields.sort();
    (normalised(first), fields, bytes[end + 4..].to_vec())
}

/// The path of an empty URL is "/", and its port is 80 (RFC 9110, 4.2.3).
fn normalised(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    if let Some(rest) = words[1].strip_prefix("http://") {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.strip_suffix(":80").unwrap_or(authority);
        words[1] = format!("http://{host}/{path}");
    }
    words.join(" ")
}

const FIELDS: &[&[&str]] = &[
    &["-H", "X-One: it's \"1\""],
    &["-H", "Accept: text/html"],
    &["-H", "-dash: y"],
    &["-H", "User-Agent: me"],
];

fn lines(random: &mut Pcg64Mcg) -> Vec<Vec<String>> {
    let c = random.random_range(1..5);
    let n = random.random_range(9..99);
    let ab: &[&[&str]] = &[
        &["-k"],
        &["-i"],
        &["-m", "DELETE"],
        &["-C", "a=b"],
        &["-A", "u:p"],
        &["-t", "3"],
        &["-s", "7200"],
        &["-B", "127.0.0.1"],
        &["-X", "127.0.0.1:3128"],
        &["-P", "u:p"],
    ];
    let ab_body: &[&[&str]] = &[&["-k"], &["-p", "body"], &["-T", "a/b"], &["-H", "Host: other"]];
    let new: &[&[&str]] = &[
        &["-k"],
        &["-K", "3"],
        &["-i"],
        &["-m", "PATCH"],
        &["-p", "body"],
        &["-u", "body"],
        &["-T", "a/b"],
        &["-C", "a=b"],
        &["-A", "u:p"],
        &["-a", "9"],
        &["-X", "/run/socket"],
        &["-X", "127.0.0.1:3128"],
    ];
    let siege: &[&[&str]] =
        &[&["-b"], &["-T", "a/b"], &["-A", "agent"], &["-d", "1"], &["-R", "proxyrc"]];
    let wrk: &[&[&str]] = &[&["-s", "post.lua"], &["--latency"], &["-t", "1"]];
    let url = [
        "http://127.0.0.1:81/p?q=1&r=2",
        "http://127.0.0.1/",
        "http://127.0.0.1:80/a%20b",
        "http://127.0.0.1:81",
    ];
    let url = url[random.random_range(0..url.len())];
    let path =
        if url.ends_with('/') || url.contains("/p") || url.contains("/a") { "" } else { "/" };
    let posted = format!("{url}{path} POST d=4");
    let mut lines = vec![
        line(random, &format!("ab -n {n} -c {c}"), &[ab, FIELDS].concat(), &format!("{url}{path}")),
        line(random, &format!("ab -n {n} -c {c}"), ab_body, &format!("{url}{path}")),
        line(random, &format!("weighttp -n {n} -c {c}"), &[&[&["-k"][..]], FIELDS].concat(), url),
        line(
            random,
            &format!("weighttp --version-style 0.5 -n {n} -c {c}"),
            &[new, FIELDS].concat(),
            url,
        ),
        line(random, &format!("siege -c {c} -r 3"), &[siege, FIELDS].concat(), url),
        line(random, &format!("siege -c {c} -r 3"), siege, ""),
        line(random, &format!("wrk -c {c} -d 2"), &[wrk, FIELDS].concat(), url),
        line(
            random,
            &format!("http_load -parallel {c} -fetches {n}"),
            &[&["-checksum"], &["-proxy", "127.0.0.1:3128"]],
            "one_url",
        ),
        line(random, &format!("http_load -rate {n} -seconds 2"), &[&["-jitter"]], "one_url"),
    ];
    lines[5].push(posted);
    lines
}

#[test]
fn what_explain_prints_asks_for_what_the_tool_asks_for() {
    let (mut n_compared, mut n_proxied) = (0, 0);
    for seed in 0..CASES {
        for words in lines(&mut random(seed)) {
            let Some(run) = asked(&words) else { continue };
            n_compared += 1;
            let explained = command::explain(&run.plan);
            let (line, notes) = explained.split_once('\n').unwrap_or((&explained, ""));
            assert_eq!(notes, "", "seed {seed}: {words:?}");
            let plan = typed(line);
            n_proxied += u64::from(plan.proxy.is_some());
            let ours = load::first_request(&plan).unwrap().expect("no placeholder was typed");
            assert_eq!(said(&ours), said(&sent(&run)), "seed {seed}: {words:?}\n{line}");
            assert_eq!(plan.connections, run.plan.connections, "seed {seed}: {words:?}");
            assert_eq!(plan.origin().place, run.plan.origin().place, "seed {seed}: {words:?}");
        }
    }
    assert!(n_compared > 7 * CASES, "{n_compared} lines made a load");
    assert!(n_proxied > CASES, "{n_proxied} lines named a proxy");
}

/// The canary: an additional field, another method or another body is detected.
#[test]
fn requests_that_differ_are_told_apart() {
    let one = b"GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\n\r\n";
    let same = b"GET / HTTP/1.1\r\na: 1\r\nhost: h\r\n\r\n";
    assert_eq!(said(one), said(same));
    let others: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nA: 1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\n\r\nx",
        b"GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nConnection: close\r\n\r\n",
    ];
    assert!(others.iter().all(|other| said(other) != said(one)));
}
