//! Counts the system calls of other processes with ptrace. Owns tracing. Start reading at [`counted`].
//!
//! A traced call stops its thread twice, some 10 us each. Use it to see what a server does, never to measure how fast
//! it is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Sleep time when no thread has stopped.
const REST: Duration = Duration::from_micros(20);
/// Most scans for new threads; scanning ends when there is no new one.
const ROUNDS_MAX: u32 = 16;

/// Number of begun calls by name.
pub type Calls = BTreeMap<&'static str, u64>;

/// Counts the system calls of the threads of these processes, and of those that they start, while `work` runs. They are
/// detached before it returns; if this thread panics, the kernel detaches them.
///
/// # Errors
/// None of them could be traced: another tracer has them, `kernel.yama.ptrace_scope` or a container forbids it, or they
/// are gone.
pub fn counted<T>(processes: &[u32], work: impl FnOnce() -> T) -> io::Result<(Calls, T)> {
    let (is_over, is_traced) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // Tracing belongs to a thread, and `work` has to run in the caller's thread, which may have its own network
        // namespace.
        let tracer = std::thread::Builder::new()
            .name("joust tracer".to_owned())
            .spawn_scoped(scope, || trace(processes, &is_traced, &is_over))?;
        // The calls of threads that are not traced yet would be missed.
        while !is_traced.load(SeqCst) && !tracer.is_finished() {
            std::thread::sleep(REST);
        }
        let done = is_traced.load(SeqCst).then(work);
        is_over.store(true, SeqCst);
        let calls = tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((calls, done.expect("a tracer without an error has traced")))
    })
}

/// The kernel detaches all threads when this thread ends.
fn trace(processes: &[u32], is_traced: &AtomicBool, is_over: &AtomicBool) -> io::Result<Calls> {
    seize(processes)?;
    is_traced.store(true, SeqCst);
    let mut calls = Calls::new();
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD | WaitPidFlag::WNOHANG;
    loop {
        match waitpid(None, Some(flags)) {
            Ok(WaitStatus::StillAlive) if is_over.load(SeqCst) => return Ok(calls),
            Ok(WaitStatus::StillAlive) => std::thread::sleep(REST),
            Ok(status) => stopped(status, &mut calls),
            // All have ended; the caller finds out by itself.
            Err(Errno::ECHILD) if is_over.load(SeqCst) => return Ok(calls),
            Err(Errno::ECHILD) => std::thread::sleep(REST),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Attaches to every thread, including those that are started meanwhile.
fn seize(processes: &[u32]) -> io::Result<()> {
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK;
    let (mut seen, mut taken) = (BTreeSet::new(), 0);
    let mut refused = Errno::ESRCH;
    for _ in 0..ROUNDS_MAX {
        let new: Vec<i32> = processes.iter().flat_map(|pid| threads(*pid)).collect();
        let new: Vec<i32> = new.into_iter().filter(|tid| seen.insert(*tid)).collect();
        if new.is_empty() {
            break;
        }
        for tid in new.into_iter().map(Pid::from_raw) {
            match ptrace::seize(tid, options) {
                Ok(()) => {
                    taken += 1;
                    // It stops, and then runs from call to call.
                    let _ = ptrace::interrupt(tid);
                }
                // A traced thread started it, so it is already traced, or it has ended.
                Err(Errno::EPERM | Errno::ESRCH) if taken > 0 => {}
                Err(error) => refused = error,
            }
        }
    }
    if taken > 0 { Ok(()) } else { Err(refused.into()) }
}

fn threads(process: u32) -> Vec<i32> {
    let entries =
        std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Counts a call that begins, and resumes the thread. A thread that has been killed meanwhile is not an error.
fn stopped(status: WaitStatus, calls: &mut Calls) {
    let (thread, signal) = match status {
        WaitStatus::PtraceSyscall(thread) => {
            if let Some(name) = begun(thread) {
                *calls.entry(name).or_default() += 1;
            }
            (thread, None)
        }
        // Our own stop, the first stop of a new thread, or a stop of its whole process. The process then continues:
        // nobody stops a server that is being traced.
        WaitStatus::PtraceEvent(thread, ..) => (thread, None),
        WaitStatus::Stopped(thread, signal) => (thread, Some(signal)),
        _ => return,
    };
    let _ = ptrace::syscall(thread, signal);
}

/// Name of the call that a thread is about to make; `None` if it stopped at the end of a call.
fn begun(thread: Pid) -> Option<&'static str> {
    let info = ptrace::syscall_info(thread).ok()?;
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: the kernel fills the member that `op` names, which is that of an entry.
    let number = unsafe { info.u.entry.nr };
    Some(name(number.try_into().ok()?))
}

macro_rules! names {
    ($($name:ident)*) => {
        // Without the common prefix `SYS_`.
        &[$((stringify!($name).split_at(4).1, libc::$name)),*]
    };
}

/// The calls that servers make; all others count as "other".
#[rustfmt::skip]
const NAMES: &[(&str, libc::c_long)] = names! {
    SYS_accept SYS_accept4 SYS_brk SYS_clock_gettime SYS_clock_nanosleep SYS_clone SYS_clone3 SYS_close
    SYS_connect SYS_dup SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_execve SYS_exit
    SYS_fcntl SYS_fstat SYS_futex SYS_getdents64 SYS_getpeername SYS_getpid SYS_getrandom SYS_getsockname
    SYS_getsockopt SYS_gettimeofday SYS_io_getevents SYS_io_submit SYS_io_uring_enter SYS_ioctl SYS_kill
    SYS_lseek SYS_madvise SYS_mmap SYS_mprotect SYS_munmap SYS_nanosleep SYS_openat SYS_openat2 SYS_pipe2
    SYS_ppoll SYS_pread64 SYS_preadv SYS_pselect6 SYS_pwrite64 SYS_pwritev SYS_read SYS_readlinkat
    SYS_readv SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn
    SYS_sched_yield SYS_semop SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto
    SYS_setsockopt SYS_shutdown SYS_socket SYS_socketpair SYS_splice SYS_statx SYS_tee SYS_tgkill
    SYS_timerfd_settime SYS_vmsplice SYS_wait4 SYS_waitid SYS_write SYS_writev
};

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const NAMES_OLD: &[(&str, libc::c_long)] = names! {
    SYS_access SYS_epoll_wait SYS_fork SYS_lstat SYS_newfstatat SYS_open SYS_pipe SYS_poll SYS_readlink
    SYS_select SYS_stat SYS_time SYS_vfork
};
#[cfg(not(target_arch = "x86_64"))]
const NAMES_OLD: &[(&str, libc::c_long)] = &[];

fn name(number: libc::c_long) -> &'static str {
    let known = NAMES.iter().chain(NAMES_OLD).find(|(_, known)| *known == number);
    known.map_or("other", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    /// Whether this process may trace its children at all; a container may forbid it.
    fn is_refused(error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::EPERM)
    }

    #[test]
    fn calls_of_a_process_and_of_the_children_that_it_starts_are_counted_by_name() {
        let script = "while read -r line; do test -e /tmp; sh -c :; echo done; done";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut asks, mut says) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
        let counted = counted(&[shell.id()], || {
            for _ in 0..5 {
                asks.write_all(b"go\n").unwrap();
                says.read_exact(&mut [0; 5]).unwrap();
            }
        });
        drop(asks);
        assert!(
            shell.wait().unwrap().success(),
            "it goes on and ends as if it had not been traced"
        );
        match counted {
            Err(error) if is_refused(&error) => {
                skips::note(format_args!("no process may be traced here: {error}"));
            }
            Err(error) => panic!("{error}"),
            Ok((calls, ())) => {
                let of = |name| calls.get(name).copied().unwrap_or_default();
                assert_eq!((of("write"), of("execve")), (5, 5), "{calls:?}");
                assert!(of("read") >= 15, "{calls:?}");
            }
        }
    }

    #[test]
    fn who_is_not_there_cannot_be_traced_and_nothing_is_done() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(counted(&[child.id()], || panic!("not to be run")).is_err());
    }
}
