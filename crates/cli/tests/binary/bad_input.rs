//! The mistakes that people make first: each gets its exit code and a message that names what, why
//! and the way out; no panic, no backtrace, no half-written file.

use std::net::TcpListener;

use crate::{joust, output, said};

/// Arguments, exit code, and words that the message must have.
const MISTAKES: &[(&[&str], i32, &[&str])] = &[
    (&[], 2, &["Usage"]),
    (&["lod"], 2, &["lod"]),
    (&["load"], 2, &["URL"]),
    (&["load", "http://127.0.0.1:1/"], 1, &["nobody", "127.0.0.1:1", "ss -ltn"]),
    (&["load", "https://127.0.0.1/"], 2, &["https", "http"]),
    (&["load", "http://"], 2, &["http://"]),
    (&["load", "http://127.0.0.1:99999/"], 2, &["99999"]),
    (&["load", "http://127.0.0.1:1/", "-c", "0"], 2, &["connections", "at least 1"]),
    (&["load", "http://127.0.0.1:1/", "-t", "9", "-c", "2"], 2, &["threads", "raise -c"]),
    (&["load", "http://127.0.0.1:1/", "-d", "10"], 2, &["10s"]),
    (&["load", "http://127.0.0.1:1/", "-H", "no colon"], 2, &["colon"]),
    (&["load", "http://127.0.0.1:1/", "--body", "@/no/file"], 2, &["/no/file", "--body"]),
    (&["serve", "/no/such/dir"], 2, &["/no/such/dir", "--fixed"]),
    (&["serve", "/etc/hostname"], 2, &["not a directory"]),
    (&["serve", "--fixed", "10", "--model", "pre-fork"], 2, &["pre-fork", "prefork"]),
    (&["serve", "--fixed", "10", "--set", "MaxKeepAlive=1"], 2, &["MaxKeepAliveRequests"]),
    (&["serve", "--fixed", "10", "--set", "KeepAlive"], 2, &["KEY=VALUE"]),
    (&["serve"], 2, &["--fixed"]),
    (&["serve", "--fixed", "10", "--listen", "192.0.2.1:80"], 1, &["192.0.2.1"]),
    (&["serve", "--config", "/no/file", "--fixed", "1"], 2, &["/no/file"]),
    (&["serve", "--fixed", "1000000GB"], 2, &["--fixed", "serve a directory"]),
    (&["serve", "--fixed", "1", "--cpus", "99999"], 2, &["no CPU 99999", "it has"]),
    (&["run", "/no/study.toml"], 2, &["/no/study.toml"]),
    (&["run", "--only", "nothing"], 2, &["nothing", "lighttpd"]),
    (&["run", "--out", "/proc/nowhere"], 1, &["/proc/nowhere"]),
    (&["run", "--out", "/etc/hostname"], 1, &["/etc/hostname", "name another one"]),
    (&["run", "--budget", "1s"], 2, &["budget of 1s", "two visits"]),
    (&["report", "/no/run.json"], 2, &["/no/run.json", "run.json"]),
    (&["report", "/etc/hostname"], 2, &["/etc/hostname"]),
    (&["report", "/etc/hostname", "--format", "pdf"], 2, &["html"]),
    (&["doctor"], 2, &["run.json"]),
    (&["doctor", "/no/run.json"], 2, &["/no/run.json"]),
    (&["models", "forking"], 2, &["prefork"]),
];

#[test]
fn each_mistake_names_the_way_out() {
    for (args, code, words) in MISTAKES {
        let output = output(args);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(*code), "{args:?} said: {said}");
        for word in *words {
            assert!(said.contains(word), "{args:?}: no `{word}` in: {said}");
        }
        assert!(!said.contains("panicked") && !said.contains("backtrace"), "{args:?}: {said}");
    }
}

#[test]
fn a_study_with_an_unknown_key_points_to_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    std::fs::write(&file, "name = \"mine\"\nquestion = \"?\"\nbudgett = \"1m\"\n").unwrap();
    let output = output(&["run", file.to_str().unwrap()]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("mine.toml:3"), "{said}");
    assert!(said.contains("`budget`"), "the nearest key is missing: {said}");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let output = output(&["serve", "--fixed", "10", "--listen", &addr]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains(&addr), "{}", said(&output));
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let server = crate::Server::start(&["--fixed", "10"]);
    let output = output(&["load", &server.url, "-n", "10", "--json", "/dev/full/x.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("/dev/full/x.json"), "{}", said(&output));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = joust(&["load", &server.url, "-n", "10", "--json", "-"]);
    let status = command.stdout(full).stderr(std::process::Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1), "what could not be written is not passed over");
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let mut child = joust(&["models"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut child = joust(&["doctor"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2), "the code says what nobody reads");
}
