//! The signals of a server: SIGTERM asks it to drain, SIGINT to stop. In the leading process they arrive as data on a
//! file, so that it can wait for them together with sockets; in a forked child they interrupt the blocking call. Owns
//! masks and handlers. Start reading at [`Signals`]; for children at [`in_child`], for a server with one thread at
//! [`alone`], for the supervisor at [`Mail`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask,
};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Nanos;

/// How a server was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// SIGTERM: answer the requests received so far, accept nothing more.
    Drain,
    /// SIGINT: at once.
    AtOnce,
}

/// SIGTERM and SIGINT as a file; while it exists they have no other effect on this process.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
    mask_before: SigSet,
}

impl Signals {
    /// Blocks the two signals in the calling thread, and so in the threads and children that it starts. SIGPIPE is
    /// ignored from here on.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub fn new() -> io::Result<Self> {
        handle(Signal::SIGPIPE, SigHandler::SigIgn)?;
        let mut mask_before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&ends()), Some(&mut mask_before))?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self { fd: SignalFd::with_flags(&ends(), flags)?, mask_before })
    }

    /// A signal that has arrived, without waiting; if both have, SIGINT. From then on [`asked_to_end`] reports SIGINT.
    ///
    /// # Errors
    /// None in practice.
    pub fn take(&self) -> io::Result<Option<Stop>> {
        let mut stop = None;
        while let Some(info) = self.fd.read_signal()? {
            if info.ssi_signo == Signal::SIGINT as u32 {
                stop = Some(Stop::AtOnce);
                ASKED_TO_END.fetch_max(AT_ONCE, Ordering::Relaxed);
            } else {
                stop = stop.or(Some(Stop::Drain));
            }
        }
        Ok(stop)
    }

    /// Waits for a signal, for at most `timeout`.
    ///
    /// # Errors
    /// None in practice.
    pub fn wait(&self, timeout: Nanos) -> io::Result<Option<Stop>> {
        wait_readable(&self.fd, timeout)?;
        self.take()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask_before), None);
    }
}

/// What a supervisor is asked to do, or learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorEvent {
    /// SIGTERM or SIGINT.
    End(Stop),
    /// SIGHUP: reload the configuration.
    Reload,
    /// SIGUSR1: reopen the logs.
    Reopen,
    /// SIGCHLD: at least one child has ended.
    ChildEnded,
}

/// All signals of a supervisor as a file; while it exists they have no other effect on this process.
#[derive(Debug)]
pub struct Mail {
    fd: SignalFd,
    mask_before: SigSet,
}

impl Mail {
    /// Blocks SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGCHLD in the calling thread, and so in the children that it
    /// starts: see [`in_generation`]. SIGPIPE is ignored from here on.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub fn new() -> io::Result<Self> {
        handle(Signal::SIGPIPE, SigHandler::SigIgn)?;
        let mut set = ends();
        set.extend([Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGCHLD]);
        let mut mask_before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), Some(&mut mask_before))?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self { fd: SignalFd::with_flags(&set, flags)?, mask_before })
    }

    /// Waits for the next one, for at most `timeout`.
    ///
    /// # Errors
    /// None in practice.
    pub fn next(&self, timeout: Nanos) -> io::Result<Option<SupervisorEvent>> {
        if let Some(asked) = self.take()? {
            return Ok(Some(asked));
        }
        wait_readable(&self.fd, timeout)?;
        self.take()
    }

    fn take(&self) -> io::Result<Option<SupervisorEvent>> {
        const TERM: u32 = Signal::SIGTERM as u32;
        const INT: u32 = Signal::SIGINT as u32;
        const HUP: u32 = Signal::SIGHUP as u32;
        const USR1: u32 = Signal::SIGUSR1 as u32;
        Ok(self.fd.read_signal()?.map(|info| match info.ssi_signo {
            TERM => SupervisorEvent::End(Stop::Drain),
            INT => SupervisorEvent::End(Stop::AtOnce),
            HUP => SupervisorEvent::Reload,
            USR1 => SupervisorEvent::Reopen,
            _ => SupervisorEvent::ChildEnded,
        }))
    }
}

impl Drop for Mail {
    fn drop(&mut self) {
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.mask_before), None);
    }
}

/// For a process that a holder of [`Mail`] has forked: unblocks the signals, except SIGTERM and SIGINT, which wait for
/// [`Signals`]. Signals for the supervisor that were sent to the whole group (`systemctl kill`, a closed terminal) have
/// no effect here.
///
/// # Errors
/// None in practice.
pub fn in_generation() -> io::Result<()> {
    handle(Signal::SIGHUP, SigHandler::SigIgn)?;
    handle(Signal::SIGUSR1, SigHandler::Handler(only_interrupt))?;
    Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&ends()), None)?)
}

/// When a file reaches the size limit of this process (RLIMIT_FSIZE, `LimitFSIZE=`), the write fails instead of ending
/// the process (SIGXFSZ).
///
/// # Errors
/// None in practice.
pub fn let_files_end() -> io::Result<()> {
    handle(Signal::SIGXFSZ, SigHandler::SigIgn)
}

fn wait_readable(fd: impl AsFd, timeout: Nanos) -> io::Result<()> {
    let timeout = Timespec {
        tv_sec: (timeout.0 / 1_000_000_000) as i64,
        tv_nsec: (timeout.0 % 1_000_000_000) as _,
    };
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// How this child was asked to end: 0 not at all, else one of the two numbers. It only increases.
static ASKED_TO_END: AtomicU8 = AtomicU8::new(0);

const DRAIN: u8 = 1;
const AT_ONCE: u8 = 2;

extern "C" fn note_drain(_: i32) {
    ASKED_TO_END.fetch_max(DRAIN, Ordering::Relaxed);
}

extern "C" fn note_stop(_: i32) {
    ASKED_TO_END.fetch_max(AT_ONCE, Ordering::Relaxed);
}

extern "C" fn only_interrupt(_: i32) {}

extern "C" fn note_drain_again(_: i32) {
    ASKED_TO_END.fetch_max(DRAIN, Ordering::Relaxed);
    repeat();
}

extern "C" fn note_stop_again(_: i32) {
    ASKED_TO_END.fetch_max(AT_ONCE, Ordering::Relaxed);
    repeat();
}

/// Interval at which a process without a parent is interrupted again after a signal that asks it to end.
const REPEATED_US: libc::suseconds_t = 20_000;

/// Sends SIGALRM to this process periodically from now on.
fn repeat() {
    let period = libc::timeval { tv_sec: 0, tv_usec: REPEATED_US };
    let timer = libc::itimerval { it_interval: period, it_value: period };
    // SAFETY: setitimer reads the one structure and writes none if the last argument is null; it is a bare system call,
    // and so may be made in a handler.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
}

/// For a freshly forked child: SIGTERM and SIGINT interrupt the blocking call, and [`asked_to_end`] reports them;
/// [`interrupt`] interrupts one thread.
///
/// A signal that arrives between a check of that flag and a blocking call does not interrupt the call. So the sender
/// repeats it until the child reacts.
///
/// # Errors
/// None in practice.
pub fn in_child() -> io::Result<()> {
    // None has SA_RESTART, so a blocked accept, receive or send returns `Interrupted`.
    handle(Signal::SIGTERM, SigHandler::Handler(note_drain))?;
    handle(Signal::SIGINT, SigHandler::Handler(note_stop))?;
    let_interrupt()?;
    let mut taken = ends();
    taken.add(Signal::SIGCHLD);
    Ok(sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&taken), None)?)
}

/// As [`in_child`], for a process with one thread and no parent that would repeat a signal: after the first signal the
/// blocking call is interrupted every 20 ms. SIGPIPE is ignored from here on.
///
/// # Errors
/// None in practice.
pub fn alone() -> io::Result<()> {
    handle(Signal::SIGPIPE, SigHandler::SigIgn)?;
    handle(Signal::SIGALRM, SigHandler::Handler(only_interrupt))?;
    handle(Signal::SIGTERM, SigHandler::Handler(note_drain_again))?;
    handle(Signal::SIGINT, SigHandler::Handler(note_stop_again))?;
    // A supervisor that started the process may have blocked them.
    Ok(sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&ends()), None)?)
}

/// Makes [`interrupt`] only interrupt, without ending the process.
///
/// # Errors
/// None in practice.
pub fn let_interrupt() -> io::Result<()> {
    handle(INTERRUPTS, SigHandler::Handler(only_interrupt))
}

/// The signal that interrupts a thread. Nobody sends it from outside, and a process without a handler ignores it.
const INTERRUPTS: Signal = Signal::SIGURG;

/// A file that is readable when a child has ended; the reaping code is elsewhere. Blocks SIGCHLD in the calling thread
/// and everything it starts.
#[derive(Debug)]
pub struct ChildEnds(SignalFd);

impl ChildEnds {
    /// Starts now.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub fn new() -> io::Result<Self> {
        let mut ended = SigSet::empty();
        ended.add(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&ended), None)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(&ended, flags)?))
    }

    /// Call it before children are reaped: it becomes readable again when another one ends.
    ///
    /// # Errors
    /// None in practice.
    pub fn clear(&self) -> io::Result<()> {
        while self.0.read_signal()?.is_some() {}
        Ok(())
    }
}

impl AsFd for ChildEnds {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// How this child was asked to end, if it was; after both signals, `AtOnce`. In a process that has [`Signals`] it only
/// reports a request to stop at once.
pub fn asked_to_end() -> Option<Stop> {
    match ASKED_TO_END.load(Ordering::Relaxed) {
        AT_ONCE => Some(Stop::AtOnce),
        DRAIN => Some(Stop::Drain),
        _ => None,
    }
}

/// Runs `start` with SIGTERM and SIGINT blocked, so that the calling thread receives them and the threads that `start`
/// creates do not.
///
/// # Errors
/// None in practice.
pub fn hidden_from<T>(start: impl FnOnce() -> T) -> io::Result<T> {
    let before = ends().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let started = start();
    before.thread_set_mask()?;
    Ok(started)
}

/// The kernel's number of a thread of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(i32);

/// The calling thread.
pub fn this_thread() -> ThreadId {
    ThreadId(rustix::thread::gettid().as_raw_nonzero().get())
}

/// Interrupts the blocking call of a thread of this process, if there is one. Needs [`in_child`] or [`let_interrupt`];
/// a thread that has ended is not an error.
pub fn interrupt(thread: ThreadId) {
    let process = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: tgkill reads three integers; it reaches only threads of this very process, where the
    // signal has a handler that does nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread.0, INTERRUPTS as i32) };
}

fn ends() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGINT);
    set
}

fn handle(signal: Signal, handler: SigHandler) -> io::Result<()> {
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: the handlers of this module only store to an atomic or do nothing, both of which are
    // async-signal-safe, and no other code relies on the action that is replaced.
    unsafe { sigaction(signal, &action) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    // Signals are sent only to the test's own thread, where they are blocked: they would kill the harness's other
    // threads.

    #[test]
    fn signals_are_data_while_they_are_held_and_the_sterner_counts() {
        let signals = Signals::new().unwrap();
        assert_eq!(signals.take().unwrap(), None);
        assert_eq!(signals.wait(Nanos::from_millis(1)).unwrap(), None);
        to_this_thread(libc::SIGTERM);
        assert_eq!(signals.wait(Nanos::from_secs(60)).unwrap(), Some(Stop::Drain));
        to_this_thread(libc::SIGTERM);
        to_this_thread(libc::SIGINT);
        assert_eq!(signals.take().unwrap(), Some(Stop::AtOnce));
        assert_eq!(signals.take().unwrap(), None);
    }

    #[test]
    fn a_supervisor_reads_what_it_is_asked_one_by_one() {
        let mail = Mail::new().unwrap();
        assert_eq!(mail.next(Nanos::from_millis(1)).unwrap(), None);
        let sent = [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGINT, libc::SIGCHLD];
        sent.into_iter().for_each(to_this_thread);
        // The kernel delivers them in the order of their numbers.
        let expected = [
            SupervisorEvent::Reload,
            SupervisorEvent::End(Stop::AtOnce),
            SupervisorEvent::Reopen,
            SupervisorEvent::End(Stop::Drain),
            SupervisorEvent::ChildEnded,
        ];
        for asked in expected {
            assert_eq!(mail.next(Nanos::from_secs(60)).unwrap(), Some(asked));
        }
        assert_eq!(mail.next(Nanos::from_millis(1)).unwrap(), None);
    }

    #[test]
    fn a_thread_is_interrupted_in_the_call_that_blocks() {
        let_interrupt().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let blocked = std::thread::spawn(move || {
            tell.send(this_thread()).unwrap();
            // `Read::read` passes EINTR on; read_exact and similar calls would hide it.
            reader.read(&mut [0]).unwrap_err().kind()
        });
        let thread = told.recv().unwrap();
        // A signal that comes before the read is lost.
        while !blocked.is_finished() {
            interrupt(thread);
            std::thread::yield_now();
        }
        assert_eq!(blocked.join().unwrap(), io::ErrorKind::Interrupted);
        drop(writer);
    }

    fn to_this_thread(signal: i32) {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: tgkill reads three integers; the signal is blocked in this thread.
        unsafe { libc::syscall(libc::SYS_tgkill, process, this_thread().0, signal) };
    }
}
