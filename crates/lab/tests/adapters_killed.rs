//! A joust that is killed without warning leaves no server: neither the process that it started nor
//! that process's workers.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use joust_lab::adapters::{self, Found, Search};
use joust_lab::server::{self, Running, Start};
use record::{SettingValue, Settings};
use units::Bytes;

/// Generous: the machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);
const ROLE: &str = "JOUST_TEST_HELPER_DIR";

/// Servers whose workers are processes of their own.
const WAYS: [(&str, &str, &str); 3] = [
    ("nginx", "worker_processes", "4"),
    ("apache", "mpm", "prefork"),
    ("lighttpd", "server.max-worker", "4"),
];

fn found(name: &str) -> Option<Found> {
    (adapters::named(name).unwrap().find)(&Search::new("/nonexistent/joust"))
}

/// Not a test of its own: what the next one starts as a process and kills.
#[test]
fn helper_that_starts_servers_and_waits() {
    let Some(dir) = std::env::var_os(ROLE) else { return };
    let dir = Path::new(&dir);
    let docroot = server::site(dir, &[Bytes(100)]).unwrap();
    let mut all = Vec::new();
    let mut lines = String::new();
    for (name, setting, value) in WAYS {
        let Some(found) = found(name) else { continue };
        let value = SettingValue::Text(value.to_owned());
        let settings: Settings = [(setting.to_owned(), value)].into();
        let running = Running::start(&Start {
            adapter: adapters::named(name).unwrap(),
            found: &found,
            settings: &settings,
            docroot: &docroot,
            cpus: &[],
            connections: 4,
            scratch: dir,
            target: "/index.html",
            timeout: PATIENCE.into(),
            interrupt: &joust_lab::server::UNINTERRUPTED,
        });
        let running = running.unwrap();
        let pids: Vec<String> = running.tree().unwrap().pids().iter().map(u32::to_string).collect();
        lines.push_str(&format!("{} {}\n", running.addr(), pids.join(" ")));
        all.push(running);
    }
    fs::write(dir.join("servers.new"), lines).unwrap();
    fs::rename(dir.join("servers.new"), dir.join("servers")).unwrap();
    std::thread::sleep(PATIENCE);
}

/// Gone, or a zombie that only init has yet to reap.
fn has_ended(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_joust_that_is_killed_leaves_no_server_and_no_port() {
    let installed = WAYS.iter().filter(|(name, ..)| found(name).is_some()).count();
    if installed == 0 {
        return skips::note("none of nginx, apache, lighttpd is installed (scripts/peers.sh)");
    }
    let dir = server::scratch().unwrap();
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_that_starts_servers_and_waits"])
        .env(ROLE, dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut early = None;
    until("the servers answer", || {
        early = helper.try_wait().unwrap();
        early.is_some() || dir.path().join("servers").exists()
    });
    assert_eq!(early, None, "the helper ended early");
    let servers = fs::read_to_string(dir.path().join("servers")).unwrap();
    helper.kill().unwrap();
    helper.wait().unwrap();
    assert_eq!(servers.lines().count(), installed);
    for server in servers.lines() {
        let (addr, pids) = server.split_once(' ').unwrap();
        let addr: SocketAddr = addr.parse().unwrap();
        let pids: Vec<&str> = pids.split(' ').collect();
        assert!(pids.len() > 1, "it has a worker: {server}");
        until("its processes have ended", || pids.iter().all(|pid| has_ended(pid)));
        until("its port is free", || TcpListener::bind(addr).is_ok());
    }
}
