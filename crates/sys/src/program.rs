//! Programs that a server starts for a request: with three files, a directory and an environment, in a process group of
//! their own, and with no other descriptor of ours. Owns how one is started, killed and reaped. Start reading at
//! [`start`].
//!
//! Cost: the new process shares the memory of the caller until the exec (CLONE_VM and CLONE_VFORK). So a start costs
//! the same in a process with 400 threads and some GiB as in a small one; fork would copy page tables. posix_spawn does
//! the same, but it queries or sets each of 64 signals, maps and unmaps a stack, and needs a further call for the
//! process descriptor: 10 us of the 80 us that a start costs the caller. Most of the time is the exec itself, 300 us
//! and more.
//!
//! A program is identified by a descriptor (pidfd), so that waiting for it is waiting for a file: no SIGCHLD, and no
//! race with other code that reaps children in this process. Its number is not reused until it is reaped, which only
//! [`Program::reap`] does, so a signal to its group never hits another process.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::OnceLock;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::mark::{self, Mark};
use crate::process::Ended;

/// Bytes of the stack on which a new process runs up to its exec.
const STACK_BYTES: usize = 32 * 1024;

/// The program to start.
#[derive(Debug)]
pub struct Spec<'a> {
    /// Path of the program; a relative one is relative to `directory`.
    pub path: &'a CStr,
    /// Its arguments; the first is its name.
    pub arguments: &'a [&'a CStr],
    /// All of its environment, as `NAME=VALUE`.
    pub environment: &'a [&'a CStr],
    /// Its working directory; `None`: ours.
    pub directory: Option<BorrowedFd<'a>>,
    /// Its standard input, output and error. None of them may be among the first three descriptors.
    pub files: [BorrowedFd<'a>; 3],
    /// Whether the kernel kills it when the thread that started it ends for any reason.
    pub dies_with_caller: bool,
    /// The mark of the program and of everything it starts.
    pub mark: Option<Mark>,
}

/// A program that was started and not yet reaped.
#[derive(Debug)]
pub struct Program {
    pid: Pid,
    pidfd: OwnedFd,
    mark: Option<Mark>,
}

/// Starts a program as the leader of its own process group, with every signal at its default and none blocked. It has
/// only the three descriptors: the exec closes all others of this process.
///
/// # Errors
/// Errors of the exec (ENOENT, EACCES, ENOEXEC, E2BIG, ETXTBSY) and of creating a process (EAGAIN, ENOMEM, EMFILE).
pub fn start(spec: &Spec<'_>) -> io::Result<Program> {
    // Our own descriptors all close on exec; some may have come from whoever started this process.
    static INHERITED: OnceLock<Result<(), i32>> = OnceLock::new();
    let closed = INHERITED.get_or_init(|| {
        crate::child::close_on_exec_from(3).map_err(|error| error.raw_os_error().unwrap_or(0))
    });
    (*closed).map_err(io::Error::from_raw_os_error)?;
    let (arguments, environment) = (pointers(spec.arguments), pointers(spec.environment));
    let mut launch = Launch {
        path: spec.path.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        directory: spec.directory.map(|directory| directory.as_raw_fd()),
        files: spec.files.map(|file| file.as_raw_fd()),
        changed: changed(),
        parent: spec.dies_with_caller.then(rustix::process::getpid),
        mark: spec.mark,
        failed: 0,
    };
    let mut pidfd = -1;
    // Signals stay blocked in the child, so that none of our handlers runs there.
    let pid = with_signals_blocked(|| clone(&mut launch, &mut pidfd))?;
    let pid = Pid::from_raw(pid).expect("a process that was started has a number");
    // SAFETY: the call that succeeded opened it for us.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let program = Program { pid, pidfd, mark: spec.mark };
    match launch.failed {
        0 => Ok(program),
        error => {
            // It has ended, or is about to. A signal must not leave it a zombie.
            let pidfd = || WaitId::PidFd(program.pidfd.as_fd());
            let end = || rustix::process::waitid(pidfd(), WaitIdOptions::EXITED);
            while matches!(end(), Err(rustix::io::Errno::INTR)) {}
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// Instructions for the new process, in memory that it shares with us until its exec.
struct Launch {
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    directory: Option<c_int>,
    files: [c_int; 3],
    changed: &'static [c_int],
    /// The parent whose end kills it, if any.
    parent: Option<Pid>,
    mark: Option<Mark>,
    /// Set by the new process: the error that prevented the exec.
    failed: c_int,
}

/// Starts a process. When this returns, the process has done what `launch` says, or has stored there why not. Returns
/// its number.
fn clone(launch: &mut Launch, pidfd: &mut c_int) -> io::Result<c_int> {
    thread_local! {
        /// This thread waits while the new process uses the stack, so one is enough.
        static STACK: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
    }
    STACK.with_borrow_mut(|stack| {
        stack.resize(STACK_BYTES / size_of::<u128>(), 0);
        let top = stack.as_mut_ptr_range().end.cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let launch: *mut Launch = launch;
        let pidfd: *mut c_int = pidfd;
        // SAFETY: the stack is this thread's alone, which waits until the new process has left it; `exec`
        // makes only calls that a child may make before its exec; all pointers are to live values.
        match unsafe { libc::clone(exec, top, flags, launch.cast(), pidfd) } {
            -1 => Err(io::Error::last_os_error()),
            pid => Ok(pid),
        }
    })
}

/// The new process, up to its exec. If that fails, the result is its exit status.
extern "C" fn exec(launch: *mut c_void) -> c_int {
    // SAFETY: it comes from `clone`, whose thread waits.
    let launch = unsafe { &mut *launch.cast::<Launch>() };
    let error = prepare(launch).err().unwrap_or_else(|| {
        // SAFETY: the strings and the lists of them outlive the call.
        unsafe { libc::execve(launch.path, launch.arguments, launch.environment) };
        io::Error::last_os_error()
    });
    launch.failed = error.raw_os_error().unwrap_or(libc::EINVAL);
    127
}

/// Nothing here allocates or locks: another thread may have been in the middle of either.
fn prepare(launch: &Launch) -> io::Result<()> {
    // SAFETY: a call with numbers alone. 0: a group with its own number.
    checked(unsafe { libc::setpgid(0, 0) })?;
    if let Some(mark) = launch.mark {
        let limit = libc::rlimit64 { rlim_cur: mark.as_limit(), rlim_max: mark.as_limit() };
        // If a lower limit was set for this server, it cannot be raised: then the process has no mark.
        // SAFETY: the kernel reads a limit that lives through the call.
        unsafe { libc::setrlimit64(libc::RLIMIT_LOCKS, &raw const limit) };
    }
    for (number, file) in (0..).zip(launch.files) {
        // SAFETY: a call with numbers alone.
        checked(unsafe { libc::dup2(file, number) })?;
    }
    if let Some(directory) = launch.directory {
        // SAFETY: a call with a number alone.
        checked(unsafe { libc::fchdir(directory) })?;
    }
    for &signal in launch.changed {
        // SAFETY: the default disposition is no pointer.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    if launch.parent.is_some() {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before that; then the signal never fires.
        if rustix::process::getppid() != launch.parent {
            return Err(rustix::io::Errno::SRCH.into());
        }
    }
    let none = signal_set(libc::sigemptyset);
    // SAFETY: the set was initialised.
    checked(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) })
}

fn checked(result: c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Signals that are not at their default here: an ignored one (SIGPIPE, which we ignore) would survive the exec, and a
/// handler of ours could still run before it. Queried once, at the first start: the servers have installed their
/// handlers by then.
fn changed() -> &'static [c_int] {
    static CHANGED: OnceLock<Vec<c_int>> = OnceLock::new();
    CHANGED.get_or_init(|| {
        let is_changed = |signal: &c_int| {
            let mut action = MaybeUninit::<libc::sigaction>::uninit();
            // SAFETY: nothing is set; the pointer is to memory for the current action.
            let asked = unsafe { libc::sigaction(*signal, std::ptr::null(), action.as_mut_ptr()) };
            // It fails for signals that the C library reserves.
            // SAFETY: a successful call filled it.
            asked == 0 && unsafe { action.assume_init_ref() }.sa_sigaction != libc::SIG_DFL
        };
        (1..=libc::SIGRTMAX()).filter(is_changed).collect()
    })
}

fn with_signals_blocked<T>(act: impl FnOnce() -> T) -> T {
    let all = signal_set(libc::sigfillset);
    let mut before = signal_set(libc::sigemptyset);
    // SAFETY: both sets were initialised. It cannot fail with these arguments.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before) };
    let done = act();
    // SAFETY: the set is what this thread had before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    done
}

impl Program {
    /// Its process number, which is also that of its group.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The mark of the program and of everything it has started.
    pub fn mark(&self) -> Option<Mark> {
        self.mark
    }

    /// Kills it, its group, and everything else that it has started. Queries every process of the machine.
    ///
    /// # Errors
    /// As [`mark::kill_marked`].
    pub fn kill_with_descendants(&self) -> io::Result<()> {
        self.kill();
        match self.mark {
            Some(own) => mark::kill_marked(|mark| mark == own).map(drop),
            None => Ok(()),
        }
    }

    /// Kills it and its whole group. Descendants that left the group are only found by their mark.
    pub fn kill(&self) {
        // Not reaped yet, so the number is still its own; a group of zombies is not an error.
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }

    /// Asks it and all of its group to end (SIGTERM).
    pub fn ask_to_end(&self) {
        // As above.
        let _ = rustix::process::kill_process_group(self.pid, Signal::TERM);
    }

    /// Whether it has ended. It is not reaped, so the number of its group is not reused.
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let id = WaitId::PidFd(self.pidfd.as_fd());
        !matches!(rustix::process::waitid(id, options), Ok(None))
    }

    /// How it ended, without waiting; `None`: it still runs. Reaps it, so the status is returned only once.
    ///
    /// # Errors
    /// ECHILD if it was reaped before.
    pub fn reap(&self) -> io::Result<Option<Ended>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), options)?;
        Ok(status.map(|status| match status.terminating_signal() {
            Some(signal) => Ended::Killed(signal),
            None => Ended::Exited(status.exit_status().unwrap_or_default() as u8),
        }))
    }
}

impl AsFd for Program {
    /// Becomes readable when the program ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// A list of strings in the form that the kernel takes.
fn pointers(strings: &[&CStr]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

fn signal_set(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> libc::c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the pointer is to memory for one set, which either function fills; neither fails on it.
    unsafe { fill(set.as_mut_ptr()) };
    // SAFETY: it was filled.
    unsafe { set.assume_init() }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn run(script: &CStr, environment: &[&CStr], directory: Option<BorrowedFd<'_>>) -> String {
        let null = File::open("/dev/null").unwrap();
        let (mut read, write) = std::io::pipe().unwrap();
        let spec = Spec {
            path: c"/bin/sh",
            arguments: &[c"sh", c"-c", script],
            environment,
            directory,
            files: [null.as_fd(), write.as_fd(), write.as_fd()],
            dies_with_caller: false,
            mark: None,
        };
        let program = start(&spec).unwrap();
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        poll(&mut [PollFd::new(&program, PollFlags::IN)], None).unwrap();
        assert!(matches!(program.reap(), Ok(Some(Ended::Exited(0)))), "{text}");
        text
    }

    #[test]
    fn a_program_has_its_own_group_the_environment_given_and_three_files() {
        let _open = File::open("/dev/null").unwrap();
        let directory = File::open("/usr").unwrap();
        let script = c"echo $GREETING $PWD; ls /proc/self/fd | wc -l; ps -o pgid= -p $$ 2>/dev/null | grep -qw $$; exec cat /proc/self/environ";
        let text =
            run(script, &[c"GREETING=hello", c"PATH=/bin:/usr/bin"], Some(directory.as_fd()));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("hello /usr"));
        // Its three descriptors, and that of the directory that ls reads.
        assert_eq!(lines.next(), Some("4"));
        let environ = lines.next().unwrap_or_default();
        assert!(environ.contains("GREETING=hello") && !environ.contains("HOME="), "{environ}");
    }

    #[test]
    fn signals_are_at_their_default_although_ours_are_not() {
        let _signals = crate::signals::Signals::new().unwrap();
        let text =
            run(c"grep -E '^Sig(Blk|Ign)' /proc/self/status", &[c"PATH=/bin:/usr/bin"], None);
        // The C library reserves 32 and 33; they are as whoever started this process had them.
        for line in text.lines() {
            let set = line.split_whitespace().next_back().unwrap_or_default();
            assert_eq!(u64::from_str_radix(set, 16).unwrap() & !0x1_8000_0000, 0, "{text}");
        }
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_of_the_start() {
        let null = File::open("/dev/null").unwrap();
        let files = [null.as_fd(); 3];
        let spec = |path| Spec {
            path,
            arguments: &[],
            environment: &[],
            directory: None,
            files,
            dies_with_caller: false,
            mark: None,
        };
        let kind = |path| start(&spec(path)).unwrap_err().raw_os_error();
        assert_eq!(kind(c"/nonexistent"), Some(libc::ENOENT));
        assert_eq!(kind(c"/etc/passwd"), Some(libc::EACCES));
    }

    #[test]
    fn a_kill_reaches_the_grandchildren() {
        let null = File::open("/dev/null").unwrap();
        let (mut read, write) = std::io::pipe().unwrap();
        let program = start(&Spec {
            path: c"/bin/sh",
            arguments: &[c"sh", c"-c", c"sleep 1000 & sleep 1000"],
            environment: &[c"PATH=/bin:/usr/bin"],
            directory: None,
            files: [null.as_fd(), write.as_fd(), null.as_fd()],
            dies_with_caller: false,
            mark: None,
        })
        .unwrap();
        drop(write);
        assert!(program.reap().unwrap().is_none());
        program.kill();
        // The end of the pipe comes when the last writer is gone: the grandchildren have ended.
        assert_eq!(read.read(&mut [0]).unwrap(), 0);
        poll(&mut [PollFd::new(&program, PollFlags::IN)], None).unwrap();
        assert_eq!(program.reap().unwrap(), Some(Ended::Killed(libc::SIGKILL)));
    }

    #[test]
    fn all_that_a_program_started_is_found_by_its_mark_and_nobody_else_is_hit() {
        let null = File::open("/dev/null").unwrap();
        let marks = crate::mark::Marks::new().unwrap();
        let other_marks = crate::mark::Marks::new().unwrap();
        // A typical daemon: its own session, two forks, a child of init. It reports when it is ready.
        let daemon =
            c"setsid sh -c '(setsid sh -c \"echo; exec sleep 1000\" </dev/null >&3 3>&- &)' 3>&1 &
            sleep 1000 & exec sleep 1000";
        let started = |mark| {
            let (mut read, write) = std::io::pipe().unwrap();
            let program = start(&Spec {
                path: c"/bin/sh",
                arguments: &[c"sh", c"-c", daemon],
                environment: &[c"PATH=/bin:/usr/bin"],
                directory: None,
                files: [null.as_fd(), write.as_fd(), null.as_fd()],
                dies_with_caller: false,
                mark: Some(mark),
            });
            drop(write);
            assert_eq!(read.read(&mut [0]).unwrap(), 1);
            (program.unwrap(), read)
        };
        let (program, mut read) = started(marks.next());
        // Programs of another mark, and of another server.
        let others = [&marks, &other_marks].map(|marks| (marks, started(marks.next())));
        program.kill_with_descendants().unwrap();
        // The end of the pipe comes when the last writer is gone: the daemon has ended.
        assert_eq!(read.read(&mut [0]).unwrap(), 0);
        for (marks, (other, mut read)) in others {
            assert!(matches!(other.reap(), Ok(None)), "it was hit");
            assert!(marks.kill_all().unwrap() > 0);
            assert_eq!(read.read(&mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn a_program_that_dies_with_its_caller_does_so_where_that_is_killed() {
        crate::process::tests::alone(|| {
            let null = File::open("/dev/null").unwrap();
            let (mut read, write) = std::io::pipe().unwrap();
            let caller = crate::process::fork("caller", || {
                let _program = start(&Spec {
                    path: c"/bin/sh",
                    arguments: &[c"sh", c"-c", c"echo; exec sleep 1000"],
                    environment: &[c"PATH=/bin:/usr/bin"],
                    directory: None,
                    files: [null.as_fd(), write.as_fd(), null.as_fd()],
                    dies_with_caller: true,
                    mark: None,
                });
                loop {
                    std::thread::park();
                }
            });
            drop(write);
            assert_eq!(read.read(&mut [0]).unwrap(), 1);
            assert!(crate::process::signal(caller.unwrap(), Signal::KILL));
            crate::process::reap_waiting().unwrap();
            // The end of the pipe comes when the last writer is gone: it has ended.
            assert_eq!(read.read(&mut [0]).unwrap(), 0);
        });
    }
}
