//! Processes of a bench: pinned to a CPU, ended with it, with their CPU time and memory as the kernel counts them.
//! Start reading at [`pinned`].

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Outcome;

/// How long a server may take to end.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A command on that CPU that the kernel kills when we end for any reason.
pub fn pinned(cpu: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "taskset", "-c", cpu]).arg(program);
    // Servers are in sbin, which is not on the PATH of an ordinary user.
    command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
    // Apache ends by a signal to its process group, which must not be ours.
    command.stdin(Stdio::null()).process_group(0);
    command
}

/// Ends a server as a user would: SIGTERM first, because a master process has to end its workers.
pub fn end(child: &mut Child) {
    // This fails if the process has already ended, which is fine.
    let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Fields of `/proc/PID/stat`, see proc_pid_stat(5).
struct Stat {
    pid: u32,
    parent: u32,
    /// The same for its children that ended and were waited for.
    ended_ticks: u64,
}

impl Stat {
    fn of(pid: u32) -> Outcome<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may contain anything, even parentheses.
        let (_, rest) = text.rsplit_once(") ").ok_or("no name in /proc/PID/stat")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        // The third field of the file is the first of these.
        let field = |number: usize| fields.get(number - 3).ok_or("/proc/PID/stat is cut off");
        let ticks = |number| Ok::<u64, Box<dyn std::error::Error>>(field(number)?.parse()?);
        Ok(Self { pid, parent: field(4)?.parse()?, ended_ticks: ticks(16)? + ticks(17)? })
    }
}

/// A process and all its descendants.
fn family(first: u32) -> Outcome<Vec<Stat>> {
    let mut others: Vec<Stat> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        // Any process may end meanwhile.
        .filter_map(|pid| Stat::of(pid).ok())
        .collect();
    let at = others.iter().position(|stat| stat.pid == first).ok_or("the server has ended")?;
    let mut family = vec![others.swap_remove(at)];
    let mut next = 0;
    while next < family.len() {
        let parent = family[next].pid;
        let (children, rest) = others.into_iter().partition(|stat| stat.parent == parent);
        others = rest;
        family.extend::<Vec<Stat>>(children);
        next += 1;
    }
    Ok(family)
}

/// CPU time of a process and all its descendants, including ended ones, in seconds. Children that were never waited for
/// are not counted.
pub fn cpu_seconds(first: u32) -> Outcome<f64> {
    let family = family(first)?;
    let ended: u64 = family.iter().map(|stat| stat.ended_ticks).sum();
    let own_ns: u64 = family.iter().map(|stat| own_cpu_ns(stat.pid)).sum();
    let per_s = rustix::param::clock_ticks_per_second() as f64;
    Ok(ended as f64 / per_s + own_ns as f64 / 1e9)
}

/// CPU time of all threads of a process, in nanoseconds (Documentation/scheduler/sched-stats.rst). `stat` is unsuitable
/// because it truncates each process to ticks of 10 ms: a hundred children that share a second would count as zero.
/// Threads may end meanwhile.
fn own_cpu_ns(pid: u32) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let of = |task: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    tasks.filter_map(|task| of(task.ok()?)).sum()
}

/// Memory of a process and all its descendants, with shared pages counted once (PSS), in bytes.
pub fn memory_bytes(first: u32) -> Outcome<u64> {
    let mut sum = 0;
    for stat in family(first)? {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", stat.pid))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        sum += 1024 * kib.ok_or("no Pss in smaps_rollup")?.parse::<u64>()?;
    }
    Ok(sum)
}
