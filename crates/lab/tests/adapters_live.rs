//! Real servers, started and ended: each installed one answers with the right bytes, and leaves no
//! process, port or file. What is not installed is skipped, with the reason, and counted.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use joust_lab::adapters::{self, Adapter, Found, Search};
use joust_lab::oracle;
use joust_lab::server::{self, Running, Start};
use record::{SettingValue, Settings};
use units::{Bytes, Nanos};

/// Generous: the machine may be busy with other things.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// Each server with each way to run it that differs in its processes.
const WAYS: &[(&str, &[(&str, &str)])] = &[
    ("apache", &[("mpm", "prefork")]),
    ("apache", &[("mpm", "worker")]),
    ("apache", &[("mpm", "event")]),
    ("nginx", &[]),
    ("nginx", &[("worker_processes", "4"), ("reuseport", "on")]),
    ("lighttpd", &[]),
    ("lighttpd", &[("server.max-worker", "4")]),
    ("joust", &[("model", "reactor")]),
    ("joust", &[("model", "prefork")]),
    ("joust", &[("model", "worker")]),
    ("joust", &[("model", "pool")]),
];

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let text = |value: &str| SettingValue::Text(value.to_owned());
    pairs.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}

/// Says it even where the test passes: the harness holds back only what the print macros write.
fn say(line: std::fmt::Arguments<'_>) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Our own binary, where `cargo test --workspace` has put it: beside the folder of this test.
fn joust() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("joust")
}

/// The program, or a line that says why the case is skipped.
fn found(adapter: &Adapter) -> Option<Found> {
    let found = (adapter.find)(&Search::new(joust()));
    if found.is_none() {
        say(format_args!("skipped: {} is not installed ({})", adapter.name, adapter.remedy()));
    }
    found
}

struct Bench {
    scratch: server::Scratch,
    docroot: PathBuf,
}

impl Bench {
    fn new(page: u64) -> Self {
        let scratch = server::scratch().unwrap();
        let docroot = server::site(scratch.path(), &[Bytes(page)]).unwrap();
        Self { scratch, docroot }
    }

    fn start<'a>(
        &'a self,
        adapter: &'static Adapter,
        found: &'a Found,
        settings: &'a Settings,
    ) -> Start<'a> {
        Start {
            adapter,
            found,
            settings,
            docroot: &self.docroot,
            cpus: &[],
            connections: 16,
            scratch: self.scratch.path(),
            target: "/index.html",
            timeout: PATIENCE,
        }
    }

    /// Names in the scratch folder beside the site.
    fn left_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.scratch.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "site" && name != "lock").collect()
    }
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn each_server_answers_with_the_same_bytes_and_leaves_nothing() {
    let bench = Bench::new(3361);
    let (mut ran, mut skipped) = (0, 0);
    let mut references = Vec::new();
    for &(name, pairs) in WAYS {
        let adapter = adapters::named(name).unwrap();
        let Some(found) = found(adapter) else {
            skipped += 1;
            continue;
        };
        let settings = settings(pairs);
        for round in 0..3 {
            let running = Running::start(&bench.start(adapter, &found, &settings)).unwrap();
            let addr = running.addr();
            let pids = running.tree().pids();
            assert!(pids.contains(&running.pid()), "{name} {pairs:?}");
            assert!(server::running().contains(&running.pid()));
            if round == 0 {
                let reference = oracle::ask(addr, "/index.html", PATIENCE).unwrap();
                assert_eq!(reference.bytes, 3361, "{name}");
                for field in ["last-modified:", "etag:"] {
                    let head = reference.head.to_ascii_lowercase();
                    assert!(head.contains(field), "{name} sends no {field} {head}");
                }
                references.push((name, reference));
            }
            let log = running.log_tail();
            let stopped = running.stop().unwrap();
            assert!(!stopped.forced, "{name} {pairs:?} had to be killed; it started with\n{log}");
            assert_eq!(pids.iter().find(|&&pid| exists(pid)), None, "{name} {pairs:?}");
            assert!(TcpListener::bind(addr).is_ok(), "{name} {pairs:?}: {addr} is not free");
            assert_eq!(bench.left_files(), [""; 0], "{name} {pairs:?}");
        }
        ran += 1;
    }
    let references: Vec<_> =
        references.iter().map(|(name, reference)| (*name, reference)).collect();
    assert_eq!(oracle::differing(&references), None);
    say(format_args!("{ran} ways to run a server, {skipped} skipped"));
}

#[test]
fn a_server_that_is_dropped_in_a_panic_is_ended() {
    let nginx = adapters::named("nginx").unwrap();
    let Some(found) = found(nginx) else { return };
    let bench = Bench::new(100);
    let (pid_out, pid_in) = std::sync::mpsc::channel();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let none = Settings::new();
        let running = Running::start(&bench.start(nginx, &found, &none)).unwrap();
        pid_out.send((running.tree().pids(), running.addr())).unwrap();
        panic!("planted");
    }));
    assert!(unwound.is_err());
    let (pids, addr) = pid_in.recv().unwrap();
    assert_eq!(pids.iter().find(|&&pid| exists(pid)), None);
    assert!(TcpListener::bind(addr).is_ok());
    assert_eq!(bench.left_files(), [""; 0]);
}

#[test]
fn a_server_that_will_not_start_shows_the_end_of_its_log() {
    let bench = Bench::new(100);
    for (name, pairs, word) in [
        ("nginx", ("worker_connections", "1"), "worker_connections"),
        ("lighttpd", ("server.max-fds", "1"), "Too many open files"),
    ] {
        let adapter = adapters::named(name).unwrap();
        let Some(found) = found(adapter) else { continue };
        let settings = settings(&[pairs]);
        let start =
            Start { timeout: Nanos::from_secs(5), ..bench.start(adapter, &found, &settings) };
        let error = Running::start(&start).unwrap_err();
        assert!(error.log_tail().contains(word), "{error}");
        assert!(error.to_string().starts_with(name), "{error}");
        assert_eq!(bench.left_files(), [""; 0]);
    }
}

#[test]
fn a_program_that_is_not_there_and_a_missing_site_are_named() {
    let nginx = adapters::named("nginx").unwrap();
    let bench = Bench::new(100);
    let none = Settings::new();
    let gone = Found { binary: "/nonexistent/nginx".into(), version: String::new() };
    let error = Running::start(&bench.start(nginx, &gone, &none)).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/nginx"), "{error}");
    let missing = Path::new("/nonexistent/site");
    let start = Start { docroot: missing, ..bench.start(nginx, &gone, &none) };
    let error = Running::start(&start).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/site"), "{error}");
    assert_eq!(bench.left_files(), [""; 0]);
}

#[test]
fn what_a_server_says_of_its_configuration_is_what_was_rendered() {
    let bench = Bench::new(100);
    for &(name, pairs) in WAYS {
        let adapter = adapters::named(name).unwrap();
        let Some(found) = found(adapter) else { continue };
        let settings = settings(pairs);
        let running = Running::start(&bench.start(adapter, &found, &settings)).unwrap();
        assert_eq!(running.printed_configuration().is_some(), name != "joust", "{name}");
        let facts = running.facts();
        let request = adapters::Request {
            found: &found,
            dir: Path::new("/d"),
            addr: running.addr(),
            docroot: &bench.docroot,
            cpus: &[],
            connections: 16,
            account: None,
            settings: &settings,
        };
        let rendered = adapter.render(&request).unwrap();
        let mut planned = (adapter.parity)(&rendered, "");
        let mut read_back = facts.parity;
        // Whom it drops to depends on who runs the test.
        planned.remove("user");
        read_back.remove("user");
        assert_eq!(planned, read_back, "{name} {pairs:?}");
        let unknown: BTreeMap<_, _> =
            read_back.into_iter().filter(|(_, value)| value.contains("not set")).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        running.stop().unwrap();
    }
}
