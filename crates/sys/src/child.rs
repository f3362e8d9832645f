//! Processes that the lab starts: a child in its own process group, with its CPUs, its cgroup, default signals and only
//! the descriptors it was given; a guardian that ends it when this process is gone for any reason; and reaping. Owns
//! fork and what may be called after it.
//!
//! Two mechanisms end a child when this process dies without cleaning up (SIGKILL, the OOM killer):
//! 1 PR_SET_PDEATHSIG, for the child itself. It fires when the *thread* that forked ends, therefore
//!   all children are forked by one thread that lives as long as the process;
//! 2 the [`Guardian`], for the child's descendants: a forked process that waits on a pipe from us and
//!   kills the group (and the cgroup, which a descendant cannot leave) when the pipe closes.
//!
//! Start reading at [`spawn`].

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use nix::sys::signal;
pub use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use units::{Bytes, Nanos};

use crate::namespace::NetNamespace;

/// The process to start.
#[derive(Debug)]
pub struct Spec {
    /// Program (absolute) and arguments.
    pub argv: Vec<OsString>,
    /// Working directory.
    pub dir: PathBuf,
    /// Variables that are set besides PATH. Nothing else of our environment is passed on, so that a server behaves the
    /// same whoever runs the study.
    pub env: Vec<(String, String)>,
    /// Where its standard output goes.
    pub stdout: File,
    /// Where its standard error goes.
    pub stderr: File,
    /// CPUs it and all its descendants may run on; empty: those of the calling thread.
    pub cpus: Vec<u32>,
    /// `cgroup.procs` (v2) or `tasks` (v1) of the cgroups it joins before it runs.
    pub cgroups: Vec<File>,
    /// The network namespace that it is put in; `None`: that of the calling thread.
    pub network: Option<NetNamespace>,
}

/// A started process, the leader of the process group with its number. Dropping it does not end it.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
}

impl Child {
    /// Its process number, which is its group's too.
    pub fn pid(&self) -> u32 {
        self.inner.id()
    }

    /// The exit status, if it has ended; reaps it.
    ///
    /// # Errors
    /// None in practice.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.inner.try_wait()
    }

    /// The exit status and resource use, if it has ended; reaps it, so a second call is an error.
    ///
    /// # Errors
    /// ECHILD: it has been reaped already.
    pub fn try_wait_with_use(&mut self) -> io::Result<Option<Ended>> {
        let pid = raw(self.pid())?.as_raw();
        let mut status = 0;
        let mut used = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to live memory of the size that the call writes; the number is a
        // child's of ours, since only we reap it.
        let reaped = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, used.as_mut_ptr()) };
        match reaped {
            0 => return Ok(None),
            -1 => return Err(io::Error::last_os_error()),
            _ => {}
        }
        // SAFETY: a rusage is integers, of which all bytes were zeroed above and written by the call.
        let used = unsafe { used.assume_init() };
        let time = |time: libc::timeval| {
            Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000)
        };
        Ok(Some(Ended {
            status: ExitStatus::from_raw(status),
            cpu: time(used.ru_utime) + time(used.ru_stime),
            // getrusage(2): in kilobytes, of 1024.
            memory_max: Bytes(used.ru_maxrss as u64 * 1024),
        }))
    }
}

/// How a process ended and what it used, including the children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// CPU time, user and system; the kernel's count is exact to a microsecond.
    pub cpu: Nanos,
    /// Peak of resident memory of the largest of its processes.
    pub memory_max: Bytes,
}

/// Waits, without polling, until a child has ended; false if it has not after `longest`. The child is not reaped.
///
/// # Errors
/// It has been reaped already; a kernel before 5.3 (pidfd_open).
pub fn wait_until_ended(child: &Child, longest: Nanos) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    let pid = rustix::process::Pid::from_raw(raw(child.pid())?.as_raw());
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
    let until = crate::clock::monotonic().saturating_add(longest);
    loop {
        let left = std::time::Duration::from(until.saturating_sub(crate::clock::monotonic()));
        let left = rustix::event::Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// How a process ended, in words ("exit status 1", "killed by SIGSEGV").
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal().map(Signal::try_from)) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(Ok(signal))) => format!("killed by {signal}"),
        _ => status.to_string(),
    }
}

/// Starts a child. A thread that lives as long as this process forks it, see the module.
///
/// # Errors
/// The program does not exist or may not be run; no process or memory left; a CPU that does not exist.
pub fn spawn(mut spec: Spec) -> io::Result<Child> {
    if spec.cpus.is_empty() {
        spec.cpus = crate::affinity::allowed()?;
    }
    if spec.network.is_none() {
        spec.network = NetNamespace::current().ok();
    }
    let (answer, result) = channel();
    let job: Job = Box::new(move || {
        // The receiver waits for this answer below; it cannot be gone.
        let _ = answer.send(spawn_here(spec));
    });
    spawner()
        .send(job)
        .map_err(|_| io::Error::other("the thread that starts processes is gone"))?;
    result.recv().map_err(|_| io::Error::other("the thread that starts processes died"))?
}

type Job = Box<dyn FnOnce() + Send>;

fn spawner() -> &'static Sender<Job> {
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (jobs, inbox) = channel::<Job>();
        let run = move || inbox.into_iter().for_each(|job| job());
        std::thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(run)
            .expect("a thread can be started at the first start of a server");
        jobs
    })
}

fn spawn_here(spec: Spec) -> io::Result<Child> {
    let program = spec.argv.first().ok_or_else(|| io::Error::other("no program to start"))?;
    let mut cpus = nix::sched::CpuSet::new();
    for &cpu in &spec.cpus {
        cpus.set(cpu as usize)?;
    }
    let parent = Pid::this();
    // Only if it differs: entering even one's own namespace needs privilege.
    let network = spec.network.filter(|network| !network.is_current());
    let cgroups: Vec<RawFd> = spec.cgroups.iter().map(|file| file.as_raw_fd()).collect();
    let before_exec = move || -> io::Result<()> {
        signal_on_parents_death(parent)?;
        for &fd in &cgroups {
            write_raw(fd, b"0")?;
        }
        if let Some(network) = &network {
            network.enter()?;
        }
        nix::sched::sched_setaffinity(Pid::from_raw(0), &cpus)?;
        default_signals();
        close_on_exec_from(3)
    };
    let mut command = Command::new(program);
    command
        .args(&spec.argv[1..])
        .current_dir(&spec.dir)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(spec.stdout)
        .stderr(spec.stderr)
        .process_group(0);
    // SAFETY: the closure makes system calls only (prctl, getppid, write, setns, sched_setaffinity,
    // sigaction, close_range); it neither allocates nor locks, so it may run between fork and exec of
    // a process with many threads. What it captured lives until exec.
    unsafe { command.pre_exec(before_exec) };
    Ok(Child { inner: command.spawn()? })
}

/// Asks for SIGKILL when the forking thread ends; a parent that is gone already counts.
fn signal_on_parents_death(parent: Pid) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    if nix::unistd::getppid() == parent {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// Resets every signal to its default: an ignored one would survive exec (SIGINT under nohup, SIGPIPE of Rust). The
/// standard library clears the mask.
fn default_signals() {
    for number in 1..=64 {
        // SAFETY: SIG_DFL is a valid disposition; the call is async-signal-safe. The kernel refuses SIGKILL and
        // SIGSTOP, and the C library the two that it reserves, as intended.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}

/// Marks every descriptor from `first` on to be closed by exec, whoever opened it.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: the call takes numbers only and closes nothing before exec.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn write_raw(fd: RawFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and length are those of a live slice; the kernel checks the descriptor.
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    if written == bytes.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes this process the parent of orphans among its descendants, in place of init, so that it sees and can reap them.
/// Applies to the whole process and is not undone.
///
/// # Errors
/// None in practice.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// Sends a signal to a process; a process that has ended is not an error.
///
/// # Errors
/// EPERM: the process has changed its user and we are not root.
pub fn send(pid: u32, signal: Signal) -> io::Result<()> {
    ignore_gone(signal::kill(raw(pid)?, signal))
}

/// Sends a signal to every process of a group; an empty group is not an error.
///
/// # Errors
/// EPERM if none of them may be signalled.
pub fn send_group(group: u32, signal: Signal) -> io::Result<()> {
    ignore_gone(signal::killpg(raw(group)?, signal))
}

/// Reaps an orphan that [`adopt_orphans`] gave us. True if it is gone: just reaped, or not a child of ours.
pub fn reap(pid: u32) -> bool {
    let Ok(pid) = raw(pid) else { return true };
    !matches!(waitpid(pid, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive))
}

/// Reaps the orphans of a process group that have ended and are our children by now.
pub fn reap_group(group: u32) {
    let Ok(group) = raw(group) else { return };
    let any = Pid::from_raw(-group.as_raw());
    // Bounded by the number of children: each iteration removes one.
    while let Ok(status) = waitpid(any, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            break;
        }
    }
}

fn ignore_gone(result: nix::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Rejects process numbers with another meaning: 0 is a group, 1 is init, and above i32 they are negative.
fn raw(pid: u32) -> io::Result<Pid> {
    match i32::try_from(pid) {
        Ok(pid) if pid > 1 => Ok(Pid::from_raw(pid)),
        _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

/// A process that outlives us just long enough to end a child's group. While it is held the group may live; if it is
/// dropped after the group has ended, it exits without doing anything.
#[derive(Debug)]
pub struct Guardian {
    pid: Pid,
    // A byte through it dismisses the guardian; if it closes, because we died, the guardian kills the group.
    pipe: OwnedFd,
}

/// What a guardian ends.
#[derive(Debug, Default, Clone)]
pub struct Ward {
    /// The process group.
    pub group: u32,
    /// `cgroup.kill` of a cgroup v2; its folder is removed afterwards.
    pub cgroup: Option<PathBuf>,
}

/// Starts a guardian for a group.
///
/// # Errors
/// No process or descriptor left.
pub fn guard(ward: &Ward) -> io::Result<Guardian> {
    let group = raw(ward.group)?;
    let cgroup = ward.cgroup.as_deref().map(GuardedCgroup::new).transpose()?;
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    // SAFETY: the child calls async-signal-safe functions only and never returns (see `stand_guard`);
    // it touches nothing that a thread of ours may hold locked.
    match unsafe { nix::unistd::fork() }? {
        nix::unistd::ForkResult::Parent { child } => Ok(Guardian { pid: child, pipe: write }),
        nix::unistd::ForkResult::Child => stand_guard(read.as_raw_fd(), group, cgroup.as_ref()),
    }
}

/// Paths of a cgroup for the guardian, made before the fork because it cannot allocate.
struct GuardedCgroup {
    kill: CString,
    dir: CString,
}

impl GuardedCgroup {
    fn new(dir: &Path) -> io::Result<Self> {
        let c_string = |path: &Path| CString::new(path.as_os_str().as_bytes());
        Ok(Self { kill: c_string(&dir.join("cgroup.kill"))?, dir: c_string(dir)? })
    }
}

/// The guardian's whole life. It has its own process group, because a terminal's Ctrl-C must reach us and not it.
fn stand_guard(pipe: RawFd, group: Pid, cgroup: Option<&GuardedCgroup>) -> ! {
    // SAFETY: takes numbers only.
    unsafe { libc::setpgid(0, 0) };
    // An inherited copy of another's pipe or socket would keep it open. So all descriptors are closed except our own
    // pipe, which becomes standard input.
    // SAFETY: takes numbers only; the pipe is open.
    unsafe { libc::dup2(pipe, 0) };
    // SAFETY: takes numbers only; nothing here uses a descriptor but 0.
    unsafe { libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0) };
    for number in 1..=64 {
        // SAFETY: SIG_IGN is a valid disposition. Only SIGKILL and the pipe end a guardian.
        unsafe { libc::signal(number, libc::SIG_IGN) };
    }
    let dismissed = loop {
        let mut byte = 0_u8;
        // SAFETY: one byte of our stack is writable.
        match unsafe { libc::read(0, (&raw mut byte).cast(), 1) } {
            0 => break false,
            1 => break true,
            _ if nix::errno::Errno::last() == nix::errno::Errno::EINTR => {}
            _ => break false,
        }
    };
    if !dismissed {
        end_ward(group, cgroup);
    }
    // SAFETY: ends the process without running any exit handlers of its parent.
    unsafe { libc::_exit(0) }
}

fn end_ward(group: Pid, cgroup: Option<&GuardedCgroup>) {
    // SAFETY: takes numbers only; `raw` made sure that the group is neither 0 nor 1.
    unsafe { libc::kill(-group.as_raw(), libc::SIGKILL) };
    let Some(cgroup) = cgroup else { return };
    // SAFETY: the path is a C string that was made before the fork.
    let fd = unsafe { libc::open(cgroup.kill.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    if fd >= 0 {
        let _ = write_raw(fd, b"1");
    }
    // The folder can be removed once its last process is gone: 100 tries, 10 ms apart.
    for _ in 0..100 {
        // SAFETY: the path is a C string that was made before the fork.
        if unsafe { libc::rmdir(cgroup.dir.as_ptr()) } == 0 {
            return;
        }
        // SAFETY: no file is watched, so no pointer is read.
        unsafe { libc::poll(std::ptr::null_mut(), 0, 10) };
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // EPIPE: something killed the guardian, so there is nothing to dismiss.
        let _ = nix::unistd::write(&self.pipe, b"x");
        let _ = waitpid(self.pid, None);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::BufRead as _;
    use std::time::{Duration, Instant};

    use super::*;

    /// Generous, because the machine may be busy with other things.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Whether a group still has a process, zombies included.
    fn group_exists(group: u32) -> bool {
        raw(group).is_ok_and(|group| signal::killpg(group, None) != Err(nix::Error::ESRCH))
    }

    fn shell(script: &str, dir: &Path) -> Spec {
        let output = File::create(dir.join("out")).unwrap();
        Spec {
            argv: ["/bin/sh", "-c", script].map(OsString::from).into(),
            dir: dir.to_owned(),
            env: vec![("GREETING".to_owned(), "hello".to_owned())],
            stderr: output.try_clone().unwrap(),
            stdout: output,
            cpus: Vec::new(),
            cgroups: Vec::new(),
            network: None,
        }
    }

    fn until(what: &str, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn output_of(script: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut child = spawn(shell(script, dir.path())).unwrap();
        until("the script ended", || child.try_wait().unwrap().is_some());
        fs::read_to_string(dir.path().join("out")).unwrap()
    }

    /// Gone, or a zombie that only init has yet to reap.
    fn has_ended(pid: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    }

    #[test]
    fn a_child_gets_what_it_was_given_and_nothing_else() {
        let inherited = File::open("/dev/null").unwrap();
        // An open descriptor without the close-on-exec flag, such as a careless library leaves.
        let inherited = nix::unistd::dup(&inherited).unwrap();
        nix::fcntl::fcntl(&inherited, nix::fcntl::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
        let text = output_of(
            "echo $GREETING $HOME $PWD; ps_group=$(cut -d' ' -f5 /proc/self/stat); \
             [ $ps_group = $$ ] && echo own group; ls /proc/$$/fd | tr '\\n' ' '; echo; \
             grep -E 'SigIgn|SigBlk' /proc/$$/status | tr -d '\\t' | tr '\\n' ' '",
        );
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("hello /"), "HOME is not handed on: {text}");
        assert_eq!(lines[1], "own group", "{text}");
        let fds: Vec<u32> = lines[2].split(' ').filter_map(|fd| fd.parse().ok()).collect();
        // The shell itself may hold its script or terminal at 10 and above.
        assert!(!fds.iter().any(|fd| (3..10).contains(fd)), "{text}");
        let (blocked, ignored) = lines[3].trim().split_once(' ').unwrap();
        assert_eq!(blocked, "SigBlk:0000000000000000");
        let ignored = u64::from_str_radix(ignored.trim_start_matches("SigIgn:"), 16).unwrap();
        // Signals 32 and 33 belong to the C library, which refuses to change them.
        assert_eq!(ignored & !(0b11 << 31), 0, "{text}");
    }

    #[test]
    fn a_child_runs_on_its_cpus_only() {
        let cpu = *crate::affinity::allowed().unwrap().last().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let spec = shell("grep Cpus_allowed_list /proc/self/status", dir.path());
        let mut child = spawn(Spec { cpus: vec![cpu], ..spec }).unwrap();
        until("grep ended", || child.try_wait().unwrap().is_some());
        let text = fs::read_to_string(dir.path().join("out")).unwrap();
        assert_eq!(text.split_whitespace().last().unwrap(), cpu.to_string());
        let spec = shell("true", dir.path());
        assert!(spawn(Spec { cpus: vec![1023], ..spec }).is_err(), "there is no CPU 1023");
    }

    #[test]
    fn a_child_is_put_in_the_namespace_it_was_given_and_keeps_it_alive() {
        let Some(network) = crate::namespace::tests::namespace() else { return };
        let link = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).unwrap();
        let inside = network.run(|| link("thread-self")).unwrap();
        assert_ne!(link("self"), inside);
        let dir = tempfile::tempdir().unwrap();
        let spec = || shell("exec sleep 600", dir.path());
        // The namespace that was given, and by default that of the calling thread.
        let given = spawn(Spec { network: Some(network.try_clone().unwrap()), ..spec() }).unwrap();
        let as_ours = network.run(|| spawn(spec()).unwrap()).unwrap();
        drop(network);
        for mut child in [given, as_ours] {
            assert_eq!(link(&child.pid().to_string()), inside);
            send(child.pid(), Signal::SIGKILL).unwrap();
            until("it was reaped", || child.try_wait().unwrap().is_some());
        }
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let spec = shell("exec sleep 600", dir.path());
        let mut child = std::thread::spawn(|| spawn(spec).unwrap()).join().unwrap();
        // The death signal comes when the forking thread ends; the next spawn would be after it.
        assert_eq!(output_of("echo $GREETING"), "hello\n");
        assert_eq!(child.try_wait().unwrap(), None);
        send_group(child.pid(), Signal::SIGKILL).unwrap();
        until("it was reaped", || child.try_wait().unwrap().is_some());
        assert!(!group_exists(child.pid()));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_and_ends_are_described() {
        let dir = tempfile::tempdir().unwrap();
        let spec = Spec { argv: vec!["/nonexistent".into()], ..shell("", dir.path()) };
        assert_eq!(spawn(spec).unwrap_err().kind(), io::ErrorKind::NotFound);
        for (script, words) in [("exit 3", "exit status 3"), ("kill -9 $$", "killed by SIGKILL")] {
            let mut child = spawn(shell(script, dir.path())).unwrap();
            let mut status = None;
            until("it ended", || {
                status = child.try_wait().unwrap();
                status.is_some()
            });
            assert_eq!(describe(status.unwrap()), words);
        }
    }

    #[test]
    fn an_end_is_waited_for_and_comes_with_what_was_used() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = spawn(shell("exec sleep 600", dir.path())).unwrap();
        assert!(!wait_until_ended(&child, Nanos::from_millis(1)).unwrap());
        assert_eq!(child.try_wait_with_use().unwrap(), None);
        send_group(child.pid(), Signal::SIGKILL).unwrap();
        assert!(wait_until_ended(&child, Nanos::from_secs(60)).unwrap());
        let ended = child.try_wait_with_use().unwrap().unwrap();
        assert_eq!(describe(ended.status), "killed by SIGKILL");
        assert!(ended.memory_max > Bytes(4096), "a page at least: {ended:?}");
        assert!(wait_until_ended(&child, Nanos::ZERO).is_err(), "it was reaped");
        assert_eq!(child.try_wait_with_use().unwrap_err().raw_os_error(), Some(libc::ECHILD));
        // Runs until its own CPU clock says that it has used 0.2 s.
        let script = "while [ $(( $(awk '{print $14+$15}' /proc/$$/stat) )) -lt 20 ]; do \
                      n=0; while [ $n -lt 10000 ]; do n=$((n+1)); done; done; exit 3";
        let mut child = spawn(shell(script, dir.path())).unwrap();
        assert!(wait_until_ended(&child, Nanos::from_secs(60)).unwrap());
        let ended = child.try_wait_with_use().unwrap().unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(ended.cpu >= Nanos::from_millis(190), "{ended:?}");
    }

    #[test]
    fn nobody_is_signalled_by_a_number_that_means_many() {
        for pid in [0, 1, u32::MAX] {
            assert!(send(pid, Signal::SIGKILL).is_err());
            assert!(send_group(pid, Signal::SIGKILL).is_err());
            assert!(guard(&Ward { group: pid, cgroup: None }).is_err());
        }
    }

    #[test]
    fn a_dismissed_guardian_kills_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = spawn(shell("exec sleep 600", dir.path())).unwrap();
        drop(guard(&Ward { group: child.pid(), cgroup: None }).unwrap());
        assert_eq!(child.try_wait().unwrap(), None);
        send(child.pid(), Signal::SIGKILL).unwrap();
        until("it was reaped", || child.try_wait().unwrap().is_some());
    }

    const ROLE: &str = "JOUST_TEST_HELPER_DIR";

    /// Not a test of its own: the next test starts it as a process and kills it.
    #[test]
    fn helper_that_starts_a_family_and_waits() {
        let Some(dir) = std::env::var_os(ROLE) else { return };
        // A grandchild ignores the signals that would end it gracefully, like a stuck worker.
        let script = "trap '' TERM HUP INT; (sleep 600; true) & echo $$ $! > pids; wait";
        let child = spawn(shell(script, Path::new(&dir))).unwrap();
        let _guardian = guard(&Ward { group: child.pid(), cgroup: None }).unwrap();
        fs::write(Path::new(&dir).join("guarded"), "").unwrap();
        std::thread::sleep(PATIENCE);
    }

    #[test]
    fn nothing_outlives_a_process_that_is_killed_without_warning() {
        let dir = tempfile::tempdir().unwrap();
        let mut helper = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::tests::helper_that_starts_a_family_and_waits"])
            .env(ROLE, dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pids = dir.path().join("pids");
        let complete = |path: &Path| fs::read(path).is_ok_and(|text| text.lines().count() == 1);
        until("the family stands", || complete(&pids) && dir.path().join("guarded").exists());
        let family = fs::read_to_string(&pids).unwrap();
        let family: Vec<u32> = family.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(family.len(), 2);
        assert!(!family.iter().any(|&pid| has_ended(pid)));
        helper.kill().unwrap();
        helper.wait().unwrap();
        until("the family has ended", || family.iter().all(|&pid| has_ended(pid)));
    }
}
