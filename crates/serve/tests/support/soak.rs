//! Many requests to a server with several faults at once, and what the server holds before and after. Owns the load and
//! the counting. Start reading at [`soak`].

use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::support::{FIXED, GET, Server, Setup, children_of, eventually, memory_of};
use sys::process::Pid;

/// All that ends connections, answers and processes, and holds short enough for a soak.
const FAULTS: &[&str] = &[
    "status=503:5%",
    "length=wrong:1%",
    "keepalive=50",
    "churn=2000",
    "empty-first",
    "encoding=gzip",
    "stall=0.1%,2ms,phase=body",
    "slots=64",
    "batch=500us",
];

const CLIENTS: usize = 8;

const LOOKS_PER_HALF: usize = 5;

/// The memory of a process may grow by this much: buffers that are allocated late, arenas of the allocator. A leak of
/// 100 bytes a request is 1.5 times that between the halves of 30,000.
const GROWTH_BYTES_MAX: u64 = 1024 * 1024;

/// What a server holds at rest, at most.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Open files of the process that has most.
    files_per_process: usize,
    processes: usize,
    /// Of the process that leads.
    threads: usize,
    /// Private memory of the process that has most.
    memory_bytes: u64,
}

impl Held {
    fn most(self, other: Self) -> Self {
        Self {
            files_per_process: self.files_per_process.max(other.files_per_process),
            processes: self.processes.max(other.processes),
            threads: self.threads.max(other.threads),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
        }
    }
}

/// The result of a soak.
#[derive(Debug)]
pub(crate) struct Soaked {
    answered: usize,
    took: Duration,
    /// The most that was seen in the looks of a half. One look against one would not do: a child that has just started
    /// holds less than one whose every thread has answered. What grows with the requests is in every look of the second
    /// half.
    halves: [Held; 2],
}

impl Soaked {
    /// Says what has grown, if anything has.
    pub(crate) fn grown(&self) -> Result<(), String> {
        let [before, after] = self.halves;
        let bound = before.memory_bytes + GROWTH_BYTES_MAX;
        match () {
            () if after.files_per_process > before.files_per_process => {
                Err(format!("it holds more files: {before:?}, then {after:?}"))
            }
            () if after.processes > before.processes.max(PROCESSES_MAX) => {
                Err(format!("it has more processes: {before:?}, then {after:?}"))
            }
            () if after.memory_bytes > bound => {
                Err(format!("it has more memory: {before:?}, then {after:?}"))
            }
            () => Ok(()),
        }
    }

    /// Answers, wrong ones included.
    pub(crate) fn answered(&self) -> usize {
        self.answered
    }
}

impl fmt::Display for Soaked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answered, took, halves: [_, after] } = self;
        let rate = *answered as f64 / took.as_secs_f64();
        write!(
            f,
            "{answered:>8} answers, {rate:>7.0}/s; at rest at most {} processes, {} files and {} KiB each; {} \
             threads in the first",
            after.processes,
            after.files_per_process,
            after.memory_bytes / 1024,
            after.threads
        )
    }
}

/// Children that the spare rules of prefork, worker and event may leave, as set here.
const PROCESSES_MAX: usize = 1 + 40;

/// Sends `requests` requests to a server of that model, for at most `time`.
pub(crate) fn soak(model: &str, requests: usize, time: Duration) -> Soaked {
    let settings: &[&str] = match model {
        "prefork" => &["StartServers=12", "MinSpareServers=12", "MaxSpareServers=24"],
        "worker" | "event" => &["StartServers=4", "MaxSpareThreads=250"],
        _ => &[],
    };
    let server = Server::start(model, Setup { faults: FAULTS, settings, ..FIXED });
    // iterative serves one connection at a time: a second client would wait for the first to be done.
    let clients = if super::support::two_at_once(model).is_none() { 1 } else { CLIENTS };
    let began = Instant::now();
    let part = requests.div_ceil(2 * LOOKS_PER_HALF);
    let mut answered = 0;
    let halves = [1, 2].map(|half| {
        let until = began + time * half / 2;
        let one = |_| {
            answered += load(&server, clients, part, until);
            at_rest(&server)
        };
        (0..LOOKS_PER_HALF).map(one).fold(Held::default(), Held::most)
    });
    Soaked { answered, took: began.elapsed(), halves }
}

fn load(server: &Server, clients: usize, requests: usize, until: Instant) -> usize {
    let (left, answered) = (AtomicUsize::new(requests), AtomicUsize::new(0));
    let takes_one = || left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    let client = || {
        let mut conn = server.connect();
        while Instant::now() < until && takes_one() {
            let mut answer = conn.ask_whatever(GET);
            while answer.is_none() {
                conn = server.connect();
                answer = conn.ask_whatever(GET);
            }
            answered.fetch_add(1, Relaxed);
        }
    };
    std::thread::scope(|scope| (0..clients).for_each(|_| _ = scope.spawn(client)));
    answered.into_inner()
}

/// Waits until no connection is left, and looks.
fn at_rest(server: &Server) -> Held {
    let leader = server.pid();
    eventually("no connection is left", || {
        processes(leader).into_iter().all(|pid| connections(pid) == 0)
    });
    let all = processes(leader);
    let files = all.iter().map(|pid| descriptors(*pid)).max().unwrap_or(0);
    Held {
        files_per_process: files,
        processes: all.len(),
        threads: server.threads().len(),
        memory_bytes: all.iter().filter_map(|pid| memory_of(*pid)).max().unwrap_or(0),
    }
}

fn processes(leader: Pid) -> Vec<Pid> {
    std::iter::once(leader).chain(children_of(leader)).collect()
}

fn descriptors(pid: Pid) -> usize {
    fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).map_or(0, Iterator::count)
}

/// Sockets of the process that do not listen: established ones, by their inode in /proc/net/tcp.
fn connections(pid: Pid) -> usize {
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    // Local address, peer, state (0A: LISTEN) ... inode.
    let is_conn = |fields: &Vec<&str>| fields.get(3).is_some_and(|state| *state != "0A");
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let inodes: std::collections::HashSet<String> = rows
        .filter(is_conn)
        .filter_map(|fields| fields.get(9).map(|inode| format!("socket:[{inode}]")))
        .collect();
    let Ok(files) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else { return 0 };
    let target = |file: fs::DirEntry| fs::read_link(file.path()).ok();
    let open = files.filter_map(|file| target(file.ok()?)?.into_os_string().into_string().ok());
    open.filter(|target| inodes.contains(target)).count()
}
