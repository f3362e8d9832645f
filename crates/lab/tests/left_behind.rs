//! What a joust leaves that was killed together with the guardian of its servers is ended by the next
//! one: processes, cgroup, namespaces, folders; and nothing else is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use joust_lab::adapters::{self, Found, Search};
use joust_lab::netns::Net;
use joust_lab::server::{self, Conditions, Running, Start};
use record::{SettingValue, Settings};
use units::Bytes;

/// Generous: the machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);
const ROLE: &str = "JOUST_TEST_HELPER_FILE";

fn nginx() -> Option<Found> {
    (adapters::named("nginx").unwrap().find)(&Search::new("/nonexistent/joust"))
}

/// Not a test of its own: what the next one starts as a process and kills.
#[test]
fn helper_that_runs_a_server_and_waits() {
    let Some(file) = std::env::var_os(ROLE) else { return };
    let scratch = server::scratch().unwrap();
    let docroot = server::site(scratch.path(), &[Bytes(100)]).unwrap();
    // Workers are processes of their own, and outlive a master that is killed.
    let workers = SettingValue::Number(2);
    let settings: Settings = [("worker_processes".to_owned(), workers)].into();
    let start = Start {
        adapter: adapters::named("nginx").unwrap(),
        found: &nginx().unwrap(),
        settings: &settings,
        docroot: &docroot,
        cpus: &[],
        connections: 4,
        scratch: scratch.path(),
        target: "/index.html",
        timeout: PATIENCE.into(),
        interrupt: &joust_lab::server::UNINTERRUPTED,
    };
    let conditions = Conditions::over(Net::fresh());
    let running = Running::start_under(&start, &conditions).unwrap();
    let pids: Vec<String> = running.tree().unwrap().pids().iter().map(u32::to_string).collect();
    let file = PathBuf::from(file);
    let unfinished = file.with_extension("new");
    fs::write(&unfinished, format!("{}\n{}", scratch.path().display(), pids.join(" "))).unwrap();
    fs::rename(unfinished, file).unwrap();
    std::thread::sleep(PATIENCE);
}

fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Gone, or a zombie that only init has yet to reap.
fn has_ended(pid: u32) -> bool {
    stat(pid).is_none_or(|(state, _)| state == 'Z')
}

fn children(parent: u32) -> Vec<u32> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(number);
    all.filter(|&pid| stat(pid).is_some_and(|(_, found)| found == parent)).collect()
}

fn kill(pid: u32) {
    let kill = Command::new("/bin/sh").args(["-c", &format!("kill -9 {pid}")]).status();
    assert!(kill.unwrap().success());
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn helper(file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_that_runs_a_server_and_waits"])
        .env(ROLE, file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_next_run_ends_what_one_that_was_killed_with_its_guardian_left() {
    if nginx().is_none() {
        return skips::note("nginx is not installed (scripts/peers.sh brings it)");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server");
    let mut helper = helper(&file);
    until("the server answers", || {
        assert_eq!(helper.try_wait().unwrap(), None, "the helper ended early");
        file.exists()
    });
    let text = fs::read_to_string(&file).unwrap();
    let (scratch, pids) = text.split_once('\n').unwrap();
    let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() > 1, "it has a worker: {text}");
    // While its joust is there nobody touches it.
    drop(server::scratch().unwrap());
    assert!(pids.iter().all(|&pid| !has_ended(pid)));
    let guardians: Vec<u32> =
        children(helper.id()).into_iter().filter(|pid| !pids.contains(pid)).collect();
    assert_eq!(guardians.len(), 1, "{guardians:?}");
    guardians.iter().for_each(|&pid| kill(pid));
    helper.kill().unwrap();
    helper.wait().unwrap();
    // The master goes with its joust, by the kernel's hand; its workers stay.
    until("the master has ended", || has_ended(pids[0]));
    let left = pids.iter().filter(|&&pid| !has_ended(pid)).count();
    assert!(left > 0, "without anything left behind there is nothing to see");
    let next = server::scratch().unwrap();
    assert!(pids.iter().all(|&pid| has_ended(pid)), "{pids:?}");
    assert!(!Path::new(scratch).exists());
    assert!(next.ended().processes as usize >= left, "{:?}", next.ended());
    assert!(Path::new(next.path()).exists());
}
