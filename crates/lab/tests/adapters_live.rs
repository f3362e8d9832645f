//! Real servers, started and ended: each installed one answers with the right bytes, and leaves no
//! process, port or file. What is not installed is skipped, with the reason, and counted.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use joust_lab::adapters::{self, Adapter, Found, Search, Way};
use joust_lab::oracle;
use joust_lab::server::{self, Running, Start};
use record::{SettingValue, Settings};
use units::{Bytes, Nanos};

/// Generous: the machine may be busy with other things.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// Each server with each way to run it that differs in its processes.
fn ways() -> impl Iterator<Item = (&'static Adapter, Way)> {
    adapters::ALL.iter().flat_map(|adapter| adapter.ways.iter().map(move |way| (*adapter, *way)))
}

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
        skips::note(format_args!("{} is not installed ({})", adapter.name, adapter.remedy()));
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
            interrupt: &joust_lab::server::UNINTERRUPTED,
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
    for (adapter, pairs) in ways() {
        let name = adapter.name;
        let Some(found) = found(adapter) else {
            skipped += 1;
            continue;
        };
        let settings = settings(pairs);
        for round in 0..3 {
            let running = Running::start(&bench.start(adapter, &found, &settings)).unwrap();
            let addr = running.addr();
            let pids = running.tree().unwrap().pids();
            let first = running.pid().unwrap();
            assert!(
                pids.contains(&first) && server::running().contains(&first),
                "{name} {pairs:?}"
            );
            if round == 0 {
                let reference = oracle::ask(addr, "/index.html", PATIENCE).unwrap();
                assert_eq!(reference.bytes, 3361, "{name}");
                let head = reference.head.to_ascii_lowercase();
                assert!(head.contains("last-modified:"), "{name}: {head}");
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
    let usual = &references[0].1.sha256;
    let odd = references.iter().find(|(_, reference)| reference.sha256 != *usual);
    assert_eq!(odd.map(|(name, _)| *name), None, "all send the same page");
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
        pid_out.send((running.tree().unwrap().pids(), running.addr())).unwrap();
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

/// Servers whose own check prints the configuration as they understood it.
const PRINT: [&str; 4] = ["apache", "nginx", "lighttpd", "caddy"];

/// What the running server does and prints is what its rendered files say.
#[test]
fn what_a_server_does_and_says_of_its_configuration_is_what_was_rendered() {
    let bench = Bench::new(3361);
    for (adapter, pairs) in ways() {
        let name = adapter.name;
        let Some(found) = found(adapter) else { continue };
        let settings = settings(pairs);
        let running = Running::start(&bench.start(adapter, &found, &settings)).unwrap();
        assert_eq!(running.printed_configuration().is_some(), PRINT.contains(&name), "{name}");
        let facts = running.facts();
        let rendered = adapter.render(&request(&found, &bench, &settings, running.addr())).unwrap();
        let mut planned = (adapter.parity)(&rendered, "").into_table();
        let read_back = facts.parity;
        // Whom it drops to depends on who runs the test; a coding has a name of its own.
        planned.remove("user");
        // Only the running server tells it.
        planned.remove("header_bytes");
        let compresses = planned.remove("compression").unwrap() == "on";
        assert_eq!(read_back["compression"] != "off", compresses, "{name} {read_back:?}");
        for (switch, value) in &planned {
            assert_eq!(&read_back[switch], value, "{name} {pairs:?}: {switch}");
        }
        for switch in doctor::parity::Switch::ALL.iter().map(|switch| switch.name()) {
            let value = read_back.get(switch).map_or("absent", String::as_str);
            let is_known =
                !["absent", "not set"].contains(&value) && !doctor::parity::is_unknown(value);
            assert!(is_known, "{name}: {switch} is {value}");
        }
        running.stop().unwrap();
    }
}

#[test]
fn settings_of_keep_alive_and_backlog_are_seen_at_the_running_server() {
    let ways: &[(&str, Way)] = &[
        ("apache", &[("MaxKeepAliveRequests", "100"), ("ListenBacklog", "77")]),
        ("nginx", &[("keepalive_requests", "100"), ("backlog", "77")]),
        ("lighttpd", &[("server.max-keep-alive-requests", "100"), ("server.listen-backlog", "77")]),
        ("tomcat", &[("maxKeepAliveRequests", "100"), ("acceptCount", "77")]),
        ("joust", &[("MaxKeepAliveRequests", "100"), ("ListenBacklog", "77")]),
    ];
    let bench = Bench::new(100);
    for &(name, pairs) in ways {
        let adapter = adapters::named(name).unwrap();
        let Some(found) = found(adapter) else { continue };
        let settings = settings(pairs);
        let running = Running::start(&bench.start(adapter, &found, &settings)).unwrap();
        let seen = joust_lab::parity::probe(running.address(), "/index.html");
        let kept = seen.kept.unwrap();
        // lighttpd counts from the second request on.
        assert!(kept.closed && (100..=101).contains(&kept.requests), "{name}: {kept:?}");
        let (backlog, _) = joust_lab::parity::listening(running.address()).unwrap();
        assert_eq!(backlog, 77, "{name}");
        running.stop().unwrap();
    }
}

#[test]
fn a_program_of_the_site_is_run_where_cgi_is_on_and_only_there() {
    let bench = Bench::new(100);
    let sleep = Nanos::from_millis(1);
    let target = server::sleeper(&bench.docroot, sleep).unwrap();
    let ways: &[(&str, Way)] = &[
        ("apache", &[("mpm", "prefork")]),
        ("apache", &[("mpm", "worker")]),
        ("apache", &[("mpm", "event")]),
        ("lighttpd", &[]),
        ("lighttpd", &[("server.max-worker", "4")]),
        ("mini-httpd", &[]),
        ("joust", &[("model", "reactor")]),
        ("joust", &[("model", "reactor-pool")]),
    ];
    for &(name, pairs) in ways {
        let adapter = adapters::named(name).unwrap();
        let Some(found) = found(adapter) else { continue };
        for cgi in ["on", "off"] {
            let settings = settings(&[pairs, &[("cgi", cgi)]].concat());
            let running = Running::start(&bench.start(adapter, &found, &settings)).unwrap();
            let asked = oracle::ask(running.addr(), &target, PATIENCE);
            let checked = asked.and_then(|reply| reply.expect(&target, &server::slept(sleep)));
            let ran = checked.is_ok();
            assert_eq!(ran, cgi == "on", "{name} {pairs:?}: {}", running.log_tail());
            assert!(!running.stop().unwrap().forced, "{name} {pairs:?}");
        }
    }
    assert_eq!(bench.left_files(), [""; 0]);
}

fn request<'a>(
    found: &'a Found,
    bench: &'a Bench,
    settings: &'a Settings,
    addr: std::net::SocketAddr,
) -> adapters::Request<'a> {
    adapters::Request {
        found,
        dir: Path::new("/d"),
        addr,
        docroot: &bench.docroot,
        cpus: &[],
        connections: 16,
        account: None,
        settings,
    }
}
