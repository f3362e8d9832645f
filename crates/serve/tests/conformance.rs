//! One suite over all models: every case of the table over a real socket, judged, and byte for byte the same from each
//! model. A model that is added to the registry is included without further changes. Start reading at
//! [`every_model_answers_every_case_with_the_same_bytes`].

mod cases;
mod support;

use cases::Case;
use support::{Conn, FIXED, GET_CLOSE, Server, Setup, models};

/// How a request is divided into writes.
#[derive(Debug, Clone, Copy)]
enum Sent {
    Whole,
    /// In three, each a segment of its own.
    InThree,
}

fn answer(server: &Server, case: &Case, etag: &str, sent: Sent) -> Vec<u8> {
    let input = case.input(etag);
    let mut conn = server.connect();
    let size = match sent {
        Sent::Whole => input.len(),
        Sent::InThree => input.len().div_ceil(3),
    };
    for piece in input.chunks(size) {
        // A server may refuse after the first piece and close: what it said is what counts.
        if !conn.try_send(piece) {
            break;
        }
    }
    conn.rest()
}

/// The answer without what may differ: the time, the random part of a boundary, and the interim response that depends
/// on whether the body was there already (RFC 9110, 10.1.1).
fn comparable(answer: &[u8]) -> String {
    const BOUNDARY: &str = "joust-";
    const BOUNDARY_DIGITS: usize = 16;
    let text = answer.escape_ascii().to_string();
    let text = text.replace("HTTP/1.1 100 Continue\\r\\n\\r\\n", "");
    let text = mask(&text, "\\r\\nDate: ", |rest| rest.find("\\r\\n"));
    mask(&text, BOUNDARY, |rest| rest.len().checked_sub(BOUNDARY_DIGITS).map(|_| BOUNDARY_DIGITS))
}

/// Cuts, after each `mark`, as many bytes as `length` finds in what follows.
fn mask(text: &str, mark: &str, length: impl Fn(&str) -> Option<usize>) -> String {
    let mut parts = text.split(mark);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |masked, part| masked + mark + &part[length(part).unwrap_or(0)..])
}

fn etag_of_ten(server: &Server) -> String {
    let response = server.connect().ask(&GET_CLOSE.replace("GET /", "GET /ten.txt"));
    let etag = response.head.lines().find_map(|line| line.strip_prefix("ETag: "));
    etag.expect("a file has an ETag").to_owned()
}

#[test]
fn every_model_answers_every_case_with_the_same_bytes() {
    let outer = tempfile::tempdir().unwrap();
    cases::make_site(outer.path());
    let content = outer.path().join("site");
    let setup = Setup { content: content.to_str().unwrap(), ..FIXED };
    let servers: Vec<_> = models().map(|model| (model, Server::start(model, setup))).collect();
    let etag = etag_of_ten(&servers[0].1);
    let mut faults = Vec::new();
    for case in cases::all() {
        for sent in [Sent::Whole, Sent::InThree] {
            let answers: Vec<_> = servers
                .iter()
                .map(|(model, server)| (model, answer(server, case, &etag, sent)))
                .collect();
            for (model, answer) in &answers {
                if let Err(fault) = case.judge(answer) {
                    faults.push(format!("{model}, {sent:?}: {fault}"));
                }
                if comparable(answer) != comparable(&answers[0].1) {
                    let (ours, first) = (comparable(answer), comparable(&answers[0].1));
                    let name = case.name;
                    faults.push(format!(
                        "{model} differs, {name}, {sent:?}:\n{ours:.1000}\n{first:.1000}"
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n\n"));
}

#[test]
fn every_model_serves_a_fixed_body_and_reuses_connections_up_to_the_quota() {
    for model in models() {
        let settings = &["MaxKeepAliveRequests=3"];
        let server = Server::start(model, Setup { settings, ..FIXED });
        for _ in 0..2 {
            let mut conn: Conn = server.connect();
            let closes: Vec<bool> = (0..4)
                .map(|_| {
                    let response = conn.ask(support::GET);
                    assert_eq!((response.status(), response.body.len()), (200, 3361), "{model}");
                    response.closes()
                })
                .collect();
            assert_eq!(closes, [false, false, false, true], "{model}");
            assert_eq!(conn.rest(), b"", "{model}");
        }
    }
}

/// The file cache is a setting of all models: with it off each request finds what is there.
#[test]
fn every_model_does_without_a_file_cache_where_it_is_told_to() {
    let site = tempfile::tempdir().unwrap();
    let file = site.path().join("ten.txt");
    for model in models() {
        std::fs::write(&file, "before").unwrap();
        let content = site.path().to_str().unwrap();
        let server = Server::start(model, Setup { content, settings: &["FileCache=off"], ..FIXED });
        let mut conn = server.connect();
        let get = support::GET.replace("GET /", "GET /ten.txt");
        assert_eq!(conn.ask(&get).body, b"before", "{model}");
        std::fs::write(&file, "after").unwrap();
        assert_eq!(conn.ask(&get).body, b"after", "{model}");
    }
}

#[test]
fn models_refuse_settings_that_cannot_work_together_and_say_why() {
    let cases = [
        ("prefork", "MaxRequestWorkers", "300", "ServerLimit"),
        ("prefork", "MinSpareServers", "20", "MaxSpareServers"),
        ("worker", "MaxRequestWorkers", "401", "multiple"),
        ("worker", "MaxRequestWorkers", "500", "ServerLimit"),
        ("worker", "ThreadsPerChild", "100", "ThreadLimit"),
        ("worker", "MaxSpareThreads", "80", "MinSpareThreads"),
        ("reactor-pool", "server.max-connections", "3", "server.worker-threads"),
    ];
    for (model, name, value, reason) in cases {
        let model = joust_serve::models::by_name(model).unwrap();
        let mut settings = joust_serve::models::Settings::defaults(model.settings);
        assert!((model.prepare)(&settings).is_ok(), "the defaults of {}", model.name);
        settings.set(name, value).unwrap();
        let refusal = (model.prepare)(&settings).unwrap_err();
        assert!(refusal.contains(reason) && refusal.contains(value), "{refusal}");
    }
}
