//! `joust serve --reports`: the history as a site, asked over its own port: every page, what is not there, what is
//! refused, and a run that is added while it is served.

use std::path::Path;
use std::process::Command;

use crate::history::{made_up, put_run};
use crate::planted::installed;
use crate::{Server, output, said};

/// A folder of results with a history of three runs; the third is slower.
fn results() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, seed, factor) in [("first", 1, 1.0), ("second", 2, 1.0), ("third", 3, 0.8)] {
        add(dir.path(), name, seed, factor);
    }
    dir
}

fn add(dir: &Path, name: &str, seed: u64, factor: f64) {
    let folder = put_run(dir, name, &made_up(seed, factor));
    let database = dir.join("history.sqlite");
    let args = ["history", "add", folder.to_str().unwrap(), "--db", database.to_str().unwrap()];
    let done = output(&args);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
}

/// Status, head and body of an answer.
fn ask(args: &[&str]) -> (u16, String, String) {
    let done = Command::new("curl").args(["-s", "-i"]).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (
        status.unwrap_or_else(|| panic!("no answer to {args:?}: {text}")),
        head.to_owned(),
        body.to_owned(),
    )
}

#[test]
fn every_page_of_the_history_is_served_and_nothing_is_taken() {
    if installed("curl").is_none() {
        return skips::note("curl is not installed");
    }
    let dir = results();
    let server = Server::start(&["--reports", dir.path().to_str().unwrap()]);
    let at = |path: &str| format!("{}{path}", server.url.trim_end_matches('/'));
    let pages = [
        ("/", "href=\"/run/3\""),
        ("/run/1", "How far to trust it"),
        ("/run/1.json", "\"joust-run/3\""),
        ("/compare?base=1&candidate=3", "regression: joust one"),
        ("/compare?base=1&candidate=2", "no regression"),
        ("/trend?study=quick&contender=joust%20one", "Throughput"),
    ];
    for (path, part) in pages {
        let (status, head, body) = ask(&[&at(path)]);
        assert_eq!(status, 200, "{path}: {head}");
        assert!(body.contains(part), "{path}: `{part}` is not in {body}");
        assert!(head.to_ascii_lowercase().contains("x-content-type-options: nosniff"), "{head}");
        let (status, _, empty) = ask(&["--head", &at(path)]);
        assert_eq!((status, empty.as_str()), (200, ""), "{path}");
    }
    let wrong = [
        ("/run/9", 404),
        ("/run/one", 404),
        ("/run/../history.sqlite", 404),
        ("/history.sqlite", 404),
        ("/run/%2e%2e%2fhistory.sqlite", 400),
        ("/nothing", 404),
        ("/compare?base=1", 400),
        ("/compare?base=1&candidate=9", 404),
        ("/trend", 400),
        ("/trend?study=quick&contender=<b>", 404),
    ];
    for (path, expected) in wrong {
        let (status, _, body) = ask(&["--path-as-is", "-g", &at(path)]);
        assert_eq!(status, expected, "{path}: {body}");
        assert!(!body.contains("<b>") && !body.contains("SQLite format"), "{path}: {body}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        let (status, ..) = ask(&["-X", method, "--data", "", &at("/")]);
        assert_eq!(status, 405, "{method}");
    }
    let (status, ..) = ask(&["-H", "Host: attacker.example", &at("/run/1")]);
    assert_eq!(status, 421, "a name that somebody else's name server leads here");
    let (status, ..) = ask(&["-X", "PUT", "--data", "a run", &at("/run/1")]);
    assert!([405, 413].contains(&status), "{status}: an upload is refused");
    add(dir.path(), "fourth", 4, 1.0);
    let (_, _, body) = ask(&[&at("/")]);
    assert!(body.contains("href=\"/run/4\""), "a new run is there at once");
    assert_eq!(server.drain(), Some(0));
}

#[test]
fn a_folder_without_a_history_is_refused_with_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    for folder in [dir.path().to_str().unwrap(), "/nowhere"] {
        let done = output(&["serve", "--reports", folder]);
        assert_eq!(done.status.code(), Some(2));
        let text = said(&done);
        assert!(text.contains("--reports must be a folder with a history"), "{text}");
        assert!(text.contains("joust history add"), "{text}");
    }
    let done = output(&["serve", "site", "--reports", "x"]);
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
}

#[test]
fn a_reader_walks_through_the_site_in_a_browser() {
    const CHROMIUM: &str = "/usr/bin/chromium";
    let home = std::env::var("HOME").unwrap_or_default();
    let modules = std::env::var("JOUST_TEST_MODULES")
        .unwrap_or_else(|_| format!("{home}/.cache/joust-tests/node_modules"));
    let is_there = |path: &str| Path::new(path).exists();
    if installed("node").is_none()
        || !is_there(CHROMIUM)
        || !is_there(&format!("{modules}/playwright-core"))
    {
        return skips::note("node, chromium or playwright-core is not installed");
    }
    let dir = results();
    let server = Server::start(&["--reports", dir.path().to_str().unwrap()]);
    let url = format!("{}/", server.url.trim_end_matches('/'));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/binary/site.cjs");
    let done = Command::new("node").arg(script).args([&modules, CHROMIUM, &url]).output().unwrap();
    assert!(done.status.success(), "{}{}", crate::stdout(&done), said(&done));
    assert_eq!(server.drain(), Some(0));
}
