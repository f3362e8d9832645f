//! Owns the accounting of a server's whole process tree: its processes, their CPU time (ended ones included), their
//! memory, their number.
//!
//! CPU time comes from a cgroup if one can be made: it is exact to a microsecond, and no process escapes it by a fork
//! or by ending. Otherwise it is summed from `/proc/PID/task/*/schedstat` (nanoseconds, live threads) and the ticks
//! of ended children in `/proc/PID/stat` (10 ms each, and only of children that were waited for). `/proc/PID/stat`
//! alone would be too coarse: 10 ms a process on a visit of 700 ms. The result says which way was used.
//!
//! Start reading at [`Tree::observe`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use record::{MemoryAccount, MemoryMethod, ServerUse};
use sys::child::{self, Signal};
use sys::{affinity, clock};
use units::{Bytes, Nanos};

use crate::cgroup::{Cgroup, Version};
use crate::memory::{self, Footprint, Sight};
use crate::proc_stat::{Stat, stat};

/// A server's processes: the one that was started and all its descendants. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tree {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: u32,
    cgroup: Option<Cgroup>,
}

/// How CPU time was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuMethod {
    /// `cpu.stat` of a cgroup of its own, to the microsecond.
    CgroupTwo,
    /// `cpuacct.usage` of a cgroup of its own, to the nanosecond.
    CgroupOne,
    /// Live threads to the nanosecond, ended ones by the tick (10 ms).
    Schedstat,
}

impl fmt::Display for CpuMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CgroupTwo => "cgroup v2 (cpu.stat)",
            Self::CgroupOne => "cgroup v1 (cpuacct.usage)",
            Self::Schedstat => "schedstat of live threads, ticks of ended ones",
        })
    }
}

/// How CPU time of servers is counted on this machine.
pub fn method_here() -> CpuMethod {
    let cgroup = Cgroup::create();
    let method = method(cgroup.as_ref());
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
    method
}

fn method(cgroup: Option<&Cgroup>) -> CpuMethod {
    match cgroup.map(Cgroup::version) {
        Some(Version::Two) => CpuMethod::CgroupTwo,
        Some(Version::One) => CpuMethod::CgroupOne,
        None => CpuMethod::Schedstat,
    }
}

/// The process that accepts connections to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// None.
    Nobody,
    /// A process of the tree.
    Ours,
    /// A process outside the tree.
    Another,
}

/// A window in which a tree is watched. Instants are those of [`sys::clock::monotonic`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observe {
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
    /// CPUs of the watching thread: the generator's, so that it costs the server none.
    pub cpus: Vec<u32>,
}

/// A thread that watches a tree.
#[derive(Debug)]
pub struct Observer {
    end_now: Sender<()>,
    thread: JoinHandle<io::Result<Observed>>,
}

/// What a tree used in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// When the first reading was made.
    pub from: Nanos,
    /// When the last reading was made.
    pub until: Nanos,
    /// CPU time between them.
    pub cpu: Nanos,
    /// Peak of the tree's memory, of all readings.
    pub memory: Bytes,
    /// How memory was counted.
    pub memory_account: MemoryAccount,
    /// Processes at the end.
    pub processes: u32,
    /// Threads at the end.
    pub threads: u32,
    /// Processes that did not exist at the start, as seen at the readings. Short-lived ones between two readings are
    /// missed.
    pub born: u32,
    /// CPUs that the tree may run on.
    pub cpus: u32,
    /// How CPU time was counted.
    pub method: CpuMethod,
}

impl Observed {
    /// As a run file stores it, with the requests that the generator counted between `from` and `until`.
    pub fn server_use(&self, requests: u64) -> ServerUse {
        ServerUse {
            cpu: self.cpu,
            wall: self.until.saturating_sub(self.from),
            requests,
            memory: self.memory,
            memory_account: self.memory_account,
            processes: self.processes,
            threads: self.threads,
            born: self.born,
            cpus: self.cpus,
        }
    }
}

/// Why a tree could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A counter could not be read.
    #[error("the CPU time of the server's processes could not be read: {0}; did the server end?")]
    Counter(#[from] io::Error),
    /// The watching thread panicked.
    #[error("the thread that watched the server's processes panicked: this is a fault of joust")]
    Panicked,
}

impl Observer {
    /// Ends the window, unless it has ended by itself, and returns the readings. If the load ended early, the window
    /// reaches up to now.
    ///
    /// # Errors
    /// A counter could not be read.
    pub fn finish(self) -> Result<Observed, TreeError> {
        // If the window ended by itself, the thread is gone and the message has no receiver.
        let _ = self.end_now.send(());
        Ok(self.thread.join().map_err(|_| TreeError::Panicked)??)
    }
}

impl Tree {
    pub(crate) fn new(root: u32, cgroup: Option<Cgroup>) -> Self {
        Self { inner: Arc::new(Inner { root, cgroup }) }
    }

    /// Watches the tree from a thread of its own.
    ///
    /// # Errors
    /// No thread left.
    pub fn observe(&self, plan: Observe) -> Result<Observer, TreeError> {
        let (end_now, ended) = channel();
        let tree = self.clone();
        let thread = std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || tree.watch(&plan, &ended))?;
        Ok(Observer { end_now, thread })
    }

    fn watch(&self, plan: &Observe, ended: &Receiver<()>) -> io::Result<Observed> {
        if !plan.cpus.is_empty() {
            // If that fails, the reading is still right, but may cost the server CPU time.
            let _ = affinity::pin(&plan.cpus);
        }
        let mut seen = TreeReadings::new(Sight::here());
        seen.look(self);
        let mut open = true;
        // Under load but before the window begins, so that this reading does not affect the measurement.
        let warm = seen.last_before(plan.from);
        if warm > clock::monotonic() {
            open = wait_until(warm, ended);
            if open {
                seen.look(self);
                seen.under_load = true;
            }
        }
        open = open && wait_until(plan.from, ended);
        seen.known = self.pids().into_iter().collect();
        seen.born.clear();
        let (from, cpu_before) = (clock::monotonic(), self.cpu()?);
        while open && let Some(due) = seen.due(clock::monotonic(), plan.until) {
            open = wait_until(due, ended);
            if open {
                seen.look(self);
                seen.under_load = true;
            }
        }
        if open {
            wait_until(plan.until, ended);
        }
        let (until, cpu_after) = (clock::monotonic(), self.cpu()?);
        seen.look(self);
        seen.account.cgroup = self.inner.cgroup.as_ref().and_then(Cgroup::memory_peak);
        Ok(Observed {
            from,
            until,
            cpu: cpu_after.saturating_sub(cpu_before),
            memory: seen.memory,
            memory_account: seen.account,
            processes: seen.processes,
            threads: seen.threads,
            born: seen.born.len() as u32,
            cpus: self.cpus(),
            method: self.method(),
        })
    }

    /// How its CPU time is counted.
    pub fn method(&self) -> CpuMethod {
        method(self.inner.cgroup.as_ref())
    }

    /// CPU time that the tree has used so far.
    ///
    /// # Errors
    /// Where the cgroup is gone.
    pub fn cpu(&self) -> io::Result<Nanos> {
        match &self.inner.cgroup {
            Some(cgroup) => cgroup.cpu(),
            None => Ok(Nanos(self.pids().into_iter().filter_map(process_cpu_ns).sum())),
        }
    }

    /// Its processes, zombies excluded, the first one first.
    pub fn pids(&self) -> Vec<u32> {
        let in_cgroup = self.inner.cgroup.as_ref().and_then(|cgroup| cgroup.pids().ok());
        in_cgroup.unwrap_or_else(|| descendants(self.inner.root))
    }

    /// Who listens there, in the calling thread's network; `None` if that cannot be seen.
    pub(crate) fn listener(&self, addr: SocketAddr) -> Option<Listener> {
        let inodes = listeners(addr)?;
        if inodes.is_empty() {
            return Some(Listener::Nobody);
        }
        let pids = self.pids();
        if pids.is_empty() {
            // It has ended, so the listener is another process.
            return Some(Listener::Another);
        }
        let files = |pid: u32| procfs::process::Process::new(pid as i32).ok()?.fd().ok();
        let mut readable = pids.into_iter().filter_map(files).peekable();
        readable.peek()?;
        let is_ours = readable.flatten().flatten().any(|file| match file.target {
            procfs::process::FDTarget::Socket(inode) => inodes.contains(&inode),
            _ => false,
        });
        Some(if is_ours { Listener::Ours } else { Listener::Another })
    }

    /// Kills every process of the tree. The next call finds processes that forked meanwhile; with cgroup v2 none can.
    pub(crate) fn kill(&self) {
        if self.inner.cgroup.as_ref().is_some_and(Cgroup::kill) {
            return;
        }
        // A process that cannot be signalled is reported as left over.
        let _ = child::send_group(self.inner.root, Signal::SIGKILL);
        for pid in self.pids() {
            let _ = child::send(pid, Signal::SIGKILL);
        }
    }

    /// Removes what the accounting itself left in the system.
    pub(crate) fn forget(&self) -> bool {
        self.inner.cgroup.as_ref().is_none_or(Cgroup::remove)
    }

    /// The process that was started.
    pub(crate) fn root(&self) -> u32 {
        self.inner.root
    }

    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.inner.cgroup.as_ref()
    }

    fn cpus(&self) -> u32 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.inner.root));
        let listed = status.ok().and_then(|status| {
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            Some(crate::cpus::parse_list(list.trim()).len() as u32)
        });
        listed.unwrap_or(0)
    }
}

/// Minimum time between two readings of memory inside a window.
const PAUSE_MIN: Nanos = Nanos::from_millis(250);
/// The pause after a reading is this multiple of its CPU time: readings take at most 1 % of a CPU.
const PAUSE_OVER_COST: u64 = 100;
/// How long before the begin or end of a window a reading begins, in addition to twice its cost: after the end,
/// connections close and release their memory.
const LEAD: Nanos = Nanos::from_millis(5);

/// What several readings add up to.
#[derive(Debug)]
struct TreeReadings {
    sight: Sight,
    known: BTreeSet<u32>,
    born: BTreeSet<u32>,
    memory: Bytes,
    account: MemoryAccount,
    /// CPU time of the last reading.
    cost: Nanos,
    /// Whether there was a reading while the server was loaded.
    under_load: bool,
    processes: u32,
    threads: u32,
}

impl TreeReadings {
    fn new(sight: Sight) -> Self {
        // The first reading sets it.
        let account = MemoryAccount { method: MemoryMethod::PagesOnce, ..MemoryAccount::default() };
        let (known, born) = (BTreeSet::new(), BTreeSet::new());
        let (memory, cost) = (Bytes(0), Nanos::ZERO);
        let (under_load, processes, threads) = (false, 0, 0);
        Self { sight, known, born, memory, account, cost, under_load, processes, threads }
    }

    /// When a reading must begin in order to end by `instant`.
    fn last_before(&self, instant: Nanos) -> Nanos {
        instant.saturating_sub(Nanos(2 * self.cost.0) + LEAD)
    }

    /// When the next reading inside a window begins, evenly spread up to its end; `None` if too little time is left
    /// for a reading. The first one under load is made whatever it costs.
    fn due(&self, now: Nanos, until: Nanos) -> Option<Nanos> {
        let left = self.last_before(until).saturating_sub(now);
        let over_cost = if self.under_load { PAUSE_OVER_COST * self.cost.0 } else { 0 };
        let pause = PAUSE_MIN.max(Nanos(over_cost));
        match left.0 / pause.0 {
            0 => None,
            n => Some(now + Nanos(left.0 / n)),
        }
    }

    fn look(&mut self, tree: &Tree) {
        let begun = clock::thread_cpu();
        let pids = tree.pids();
        self.born.extend(pids.iter().filter(|pid| !self.known.contains(pid)));
        self.processes = pids.len() as u32;
        self.threads = pids.iter().filter_map(|&pid| stat(pid)).map(|stat| stat.threads).sum();
        self.note(memory::footprint(&pids, self.sight));
        self.cost = clock::thread_cpu() - begun;
        self.account.cost += self.cost;
    }

    fn note(&mut self, seen: Footprint) {
        let account = &mut self.account;
        account.method = account.method.max(seen.method);
        account.at_most = account.at_most.max(Bytes(seen.at_most));
        account.swapped = account.swapped.max(Bytes(seen.swapped));
        account.unread = account.unread.max(seen.unread);
        account.readings += 1;
        self.memory = self.memory.max(Bytes(seen.bytes));
    }
}

/// False if the end was requested before `instant`.
fn wait_until(instant: Nanos, ended: &Receiver<()>) -> bool {
    let wait = Duration::from(instant.saturating_sub(clock::monotonic()));
    matches!(ended.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
}

/// CPU time of a live process and of those children that it has waited for.
fn process_cpu_ns(pid: u32) -> Option<u64> {
    let stat = stat(pid)?;
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let live: u64 = tasks.flatten().filter_map(|task| schedstat_ns(&task.path())).sum();
    // The ticks of the process include its ended threads; the live threads do not. The rounding of utime and stime,
    // one tick each, must not look like an ended thread.
    let ticks = stat.own_ticks * tick_ns;
    let own = if ticks > live + 2 * tick_ns { ticks } else { live };
    Some(own + stat.reaped_ticks * tick_ns)
}

fn schedstat_ns(task: &Path) -> Option<u64> {
    fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse().ok()
}

/// Inodes of the sockets that take connections to an address: those that listen there, or at every address of the
/// machine. `None` if the kernel does not say.
fn listeners(addr: SocketAddr) -> Option<Vec<u64>> {
    let all = sys::sock_diag::listeners(addr.port()).ok()?;
    let takes = |at: std::net::IpAddr| at.to_canonical() == addr.ip() || at.is_unspecified();
    Some(all.iter().filter(|at| takes(at.addr.ip())).map(|socket| socket.inode).collect())
}

/// Processes of this machine that listen there, with their descendants; empty if the address belongs to another
/// machine.
pub(crate) fn listening(addr: SocketAddr) -> Vec<u32> {
    // An address that can be bound is one of ours.
    if std::net::UdpSocket::bind((addr.ip(), 0)).is_err() {
        return Vec::new();
    }
    let inodes = listeners(addr).unwrap_or_default();
    let Ok(processes) = procfs::process::all_processes() else { return Vec::new() };
    let listens = |process: &procfs::process::Process| {
        let files = process.fd().into_iter().flatten().flatten();
        files.map(|file| file.target).any(|target| match target {
            procfs::process::FDTarget::Socket(inode) => inodes.contains(&inode),
            _ => false,
        })
    };
    let pids = processes.flatten().filter(listens).map(|process| process.pid() as u32);
    pids.flat_map(descendants).collect()
}

/// Descendants of `root` by parentage, and members of its process group or session: these include orphans, whose
/// parent has ended.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let all: BTreeMap<u32, Stat> =
        processes.flatten().filter_map(number).filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let mut members: BTreeSet<u32> = all
        .iter()
        .filter(|(pid, stat)| **pid == root || stat.group == root || stat.session == root)
        .map(|(pid, _)| *pid)
        .collect();
    // Each pass adds a generation; there are no more generations than processes.
    loop {
        let before = members.len();
        let children = all.iter().filter(|(_, stat)| members.contains(&stat.parent));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        members.extend(children);
        if members.len() == before {
            break;
        }
    }
    members.retain(|pid| all.get(pid).is_some_and(|stat| !matches!(stat.state, b'Z' | b'X')));
    members.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use sys::child::Spec;

    use super::*;

    #[test]
    fn who_listens_on_this_machine_is_found_and_nobody_for_an_address_elsewhere() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        assert!(listening(addr).contains(&std::process::id()));
        // A documentation address: no machine has it.
        assert_eq!(
            listening((std::net::Ipv4Addr::new(192, 0, 2, 1), addr.port()).into()),
            [0_u32; 0]
        );
    }

    /// Uses some tenths of a second of CPU itself and as much in a child that ends. Then prints what it used by
    /// times(2), a kernel counter other than the tested ones, and sleeps.
    const BUSY: &str = "\
        work() { i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; }
        work; (work; true); times > times.new; mv times.new times; exec sleep 600";

    /// A shell that is killed at the end, with its cgroup if there is one.
    struct Shell {
        dir: tempfile::TempDir,
        child: child::Child,
        tree: Tree,
    }

    impl Shell {
        fn run(script: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let output = fs::File::create(dir.path().join("out")).unwrap();
            let cgroup = Cgroup::create();
            let child = child::spawn(Spec {
                argv: ["/bin/sh", "-c", script].map(Into::into).into(),
                dir: dir.path().to_owned(),
                env: Vec::new(),
                stderr: output.try_clone().unwrap(),
                stdout: output,
                cpus: Vec::new(),
                cgroups: cgroup.iter().flat_map(|cgroup| cgroup.joined().unwrap()).collect(),
                network: None,
            });
            let child = child.unwrap();
            let tree = Tree::new(child.pid(), cgroup);
            Self { dir, child, tree }
        }

        fn wait_for(&self, file: &str) -> String {
            let start = Instant::now();
            loop {
                if let Ok(text) = fs::read_to_string(self.dir.path().join(file)) {
                    return text;
                }
                assert!(start.elapsed() < Duration::from_secs(100), "{file} did not come");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            while matches!(self.child.try_wait(), Ok(None)) {
                self.tree.kill();
            }
            assert!(self.tree.forget(), "the cgroup is removed");
        }
    }

    /// Sum of what the builtin `times` prints: "0m0.310000s 0m0.020000s", the shell's own line and
    /// that of its ended children.
    fn seconds_by_times(text: &str) -> f64 {
        let seconds = |word: &str| {
            let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap();
            minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
        };
        text.split_whitespace().map(seconds).sum()
    }

    #[test]
    fn cpu_time_agrees_with_the_kernels_other_counter_ended_children_included() {
        let shell = Shell::run(BUSY);
        let times = seconds_by_times(&shell.wait_for("times"));
        let without_cgroup = Tree::new(shell.child.pid(), None);
        for tree in [&shell.tree, &without_cgroup] {
            let cpu = tree.cpu().unwrap().as_secs_f64();
            // times(2) rounds each of its four figures down to 10 ms; the shell used a little CPU time after it.
            let beyond = cpu - times;
            let method = tree.method();
            assert!((-0.025..0.07).contains(&beyond), "{method}: {cpu} s, times(2): {times} s");
        }
        assert!(times > 0.02, "the shell was busy: {times} s");
    }

    #[test]
    fn a_window_holds_what_was_used_in_it_and_who_was_born_in_it() {
        // Born: the sleep after `go`. Not born: the existing one.
        let script = "sleep 600 & : > ready; until [ -e go ]; do read x < /dev/null; done
                      sleep 600 & : > gone; wait";
        let shell = Shell::run(script);
        shell.wait_for("ready");
        let now = clock::monotonic();
        let observe = Observe { from: now, until: now + Nanos::from_secs(3600), cpus: Vec::new() };
        let before = shell.tree.cpu().unwrap();
        let observer = shell.tree.observe(observe).unwrap();
        // The shell is busy until `go`: its clock tells when the window has surely begun.
        while shell.tree.cpu().unwrap() - before < Nanos::from_millis(50) {
            std::thread::sleep(Duration::from_millis(1));
        }
        fs::write(shell.dir.path().join("go"), "").unwrap();
        shell.wait_for("gone");
        let observed = observer.finish().unwrap();
        assert_eq!((observed.processes, observed.threads, observed.born), (3, 3, 1));
        assert!(observed.cpu > Nanos::ZERO && observed.memory.0 > 100_000, "{observed:?}");
        assert!(observed.until < now + Nanos::from_secs(3600), "it was ended early");
        let used = observed.server_use(1000);
        assert_eq!((used.cpu, used.requests), (observed.cpu, 1000));
        assert_eq!(used.cpus as usize, affinity::allowed().unwrap().len());
        assert_eq!(used.wall, observed.until - observed.from);
    }

    #[test]
    fn descendants_are_found_without_a_cgroup_too() {
        let shell = Shell::run("(sleep 600; true) & sleep 600 & : > ready; wait");
        shell.wait_for("ready");
        let (with, without) = (&shell.tree, Tree::new(shell.child.pid(), None));
        let start = Instant::now();
        let sorted = |tree: &Tree| {
            let mut pids = tree.pids();
            pids.sort_unstable();
            pids
        };
        // A fork may happen between the two readings.
        while sorted(with).len() != 4 || sorted(with) != sorted(&without) {
            let pids = (sorted(with), sorted(&without));
            assert!(start.elapsed() < Duration::from_secs(60), "{pids:?}");
        }
    }

    #[test]
    fn readings_in_a_window_take_a_hundredth_of_a_cpu_at_most() {
        let ms = Nanos::from_millis;
        // Cost of a reading, length of the window, when readings are due in it.
        let cases: [(Nanos, Nanos, &[u64]); 4] = [
            (ms(0), ms(1005), &[250, 500, 750, 1000]),
            (ms(0), ms(205), &[]),
            (ms(5), ms(2015), &[500, 1000, 1500, 2000]),
            (ms(20), ms(745), &[]),
        ];
        for (cost, until, expected) in cases {
            let seen = TreeReadings { cost, under_load: true, ..TreeReadings::new(Sight::Marks) };
            let due =
                std::iter::successors(seen.due(Nanos::ZERO, until), |at| seen.due(*at, until));
            assert_eq!(
                due.collect::<Vec<_>>(),
                expected.iter().map(|&at| ms(at)).collect::<Vec<_>>()
            );
        }
        // A tool's load has no warm-up of ours, so its first reading is always made, and sets the pause.
        let seen = TreeReadings { cost: ms(40), ..TreeReadings::new(Sight::Marks) };
        assert!(seen.due(Nanos::ZERO, ms(2085)).is_some_and(|at| at < ms(300)));
    }

    #[test]
    fn we_are_in_our_own_tree_and_use_time_and_memory() {
        let me = std::process::id();
        assert!(descendants(me).contains(&me));
        assert!(memory::footprint(&[me], Sight::here()).bytes > 100_000);
        let before = process_cpu_ns(me).unwrap();
        let start = clock::thread_cpu();
        while clock::thread_cpu() - start < Nanos::from_millis(30) {
            std::hint::black_box((0..1000u64).sum::<u64>());
        }
        assert!(process_cpu_ns(me).unwrap() > before);
    }
}
