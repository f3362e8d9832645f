//! Starts and ends every server of this machine over and over, and looks for what is left: shared by
//! a test, with a few rounds, and by an example, with many. Owns what "nothing is left" means.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use joust_lab::adapters::{self, Adapter, Search, Way};
use joust_lab::server::{self, Running, Start};
use record::{SettingValue, Settings};
use units::{Bytes, Nanos};

/// Generous: the machine may be busy with other things.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// A program of the tests that is started by its command line.
const A_PROGRAM: (&str, Way) =
    ("command", &[("command", "perl {stand-in} serve {docroot} --listen 127.0.0.1:{port}")]);

/// Each way to run a server that differs in its processes.
fn ways() -> Vec<(&'static str, Way)> {
    let of = |adapter: &&'static Adapter| adapter.ways.iter().map(|way| (adapter.name, *way));
    let mut all: Vec<_> = adapters::ALL.iter().flat_map(of).collect();
    all.push(A_PROGRAM);
    all
}

/// How a server did.
pub(crate) struct Row {
    /// Adapter and settings.
    pub(crate) name: String,
    /// From starting to the first answer, one a round, sorted; empty where it is not installed.
    pub(crate) ready: Vec<Nanos>,
    /// From asking it to end to its last process gone, one a round, sorted.
    pub(crate) ended: Vec<Nanos>,
    /// Rounds in which it had to be killed.
    pub(crate) forced: usize,
}

/// Starts and ends each server so many times.
///
/// # Panics
/// Where one does not start, or leaves a process, a port, a cgroup or a file behind.
pub(crate) fn all(rounds: usize, joust: PathBuf) -> Vec<Row> {
    let scratch = server::scratch().expect("/tmp may be written to");
    let docroot = server::site(scratch.path(), &[Bytes(3361)]).expect("/tmp has room");
    let search = Search::new(joust);
    let rows =
        ways().iter().map(|way| row(way, rounds, &search, scratch.path(), &docroot)).collect();
    let path = scratch.path().to_owned();
    drop(scratch);
    assert!(!path.exists(), "{} is left", path.display());
    rows
}

fn row(
    (name, pairs): &(&str, Way),
    rounds: usize,
    search: &Search,
    scratch: &Path,
    docroot: &Path,
) -> Row {
    let words: Vec<&str> = pairs.iter().map(|(_, value)| *value).collect();
    let title = if *name == "command" { "a program".to_owned() } else { words.join(" ") };
    let name_of = format!("{name} {title}").trim_end().to_owned();
    let mut row = Row { name: name_of, ready: Vec::new(), ended: Vec::new(), forced: 0 };
    let adapter = adapters::named(name).expect("the list has names of adapters");
    let Ok(found) = adapter.installed(search) else { return row };
    let settings = settings(pairs);
    for _ in 0..rounds {
        let start = Start {
            adapter,
            found: &found,
            settings: &settings,
            docroot,
            cpus: &[],
            connections: 16,
            scratch,
            target: "/index.html",
            timeout: PATIENCE,
            interrupt: &joust_lab::server::UNINTERRUPTED,
        };
        let running = Running::start(&start).unwrap_or_else(|error| panic!("{error}"));
        let (addr, pids) = (running.addr(), running.tree().expect("it was started").pids());
        assert!(!pids.is_empty(), "{name}");
        assert_eq!(own_cgroups().is_empty(), !in_cgroups(&running), "{name}");
        row.ready.push(running.ready_after());
        let stopped = running.stop().unwrap_or_else(|error| panic!("{error}"));
        row.ended.push(stopped.took);
        row.forced += usize::from(stopped.forced);
        let left = pids.iter().find(|pid| Path::new(&format!("/proc/{pid}")).exists());
        assert_eq!(left, None, "{name}: a process is left");
        assert!(TcpListener::bind(addr).is_ok(), "{name}: {addr} is not free");
        assert_eq!(children(), [""; 0], "{name}: a child is left");
        assert_eq!(own_cgroups(), [""; 0], "{name}: a cgroup is left");
        assert_eq!(files(scratch), ["lock", "site"], "{name}: a file is left");
    }
    row.ready.sort_unstable();
    row.ended.sort_unstable();
    row
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/planted_server.pl");
    let text = |value: &str| {
        let quoted = format!("'{}'", stand_in.display());
        SettingValue::Text(value.replace("{stand-in}", &quoted))
    };
    pairs.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
}

fn in_cgroups(running: &Running) -> bool {
    let tree = running.tree().expect("it was started");
    tree.method() != joust_lab::tree::CpuMethod::Schedstat
}

/// Processes whose parent is this one, zombies too, each with its name.
fn children() -> Vec<String> {
    let me = std::process::id().to_string();
    let stat = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("stat")).ok();
    let all = fs::read_dir("/proc").expect("/proc is there").flatten().filter_map(stat);
    let ours = |stat: &String| {
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        rest.split(' ').nth(1) == Some(me.as_str())
    };
    all.filter(ours).collect()
}

/// Cgroups that this process made and that are there now.
fn own_cgroups() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    let prefix = format!("joust-{}-", std::process::id());
    while let Some(folder) = folders.pop() {
        // One that goes while it is looked at is no concern of ours.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                found.extend(name.starts_with(&prefix).then_some(name));
                folders.push(entry.path());
            }
        }
    }
    found
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}
