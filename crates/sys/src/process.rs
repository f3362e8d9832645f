//! Processes of a server that forks: starting one, learning of its end, sharing counters with it. Owns the rules of
//! fork. Start reading at [`fork`].

use std::ffi::CString;
use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use nix::unistd::ForkResult;
pub use rustix::process::{Pid, Signal};
use rustix::process::{WaitId, WaitIdOptions, WaitOptions, WaitStatus};

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this status.
    Exited(u8),
    /// This signal killed it.
    Killed(i32),
}

/// The exit status of a child whose closure panicked.
pub const PANICKED: u8 = 101;

/// Starts a child that runs `child` and exits with the status that it returns; `name` (at most 15 bytes) is what ps and
/// top show. The child is killed when this process ends for any reason.
///
/// # Errors
/// EAGAIN, ENOMEM; and `Other` if this process has more than one thread: the child would have a copy of their locks and
/// nobody to release them.
pub fn fork(name: &str, child: impl FnOnce() -> u8) -> io::Result<Pid> {
    let threads = threads()?;
    if threads != 1 {
        let why = format!("fork needs a process with one thread, and this one has {threads}");
        return Err(io::Error::other(why));
    }
    let parent = rustix::process::getpid();
    // SAFETY: this process has one thread, so no other thread holds a lock and the child may do everything that the
    // parent may.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(pid_of(child.as_raw())),
        ForkResult::Child => {
            let status = catch_unwind(AssertUnwindSafe(|| {
                let _ = die_with_parent();
                // The parent may have ended between fork and the line above; then the signal never fires.
                if rustix::process::getppid() != Some(parent) {
                    return PANICKED;
                }
                set_name(name);
                child()
            }));
            // SAFETY: _exit takes any status and does not return. The parent's exit handlers and
            // buffers, of which the child has copies, must not run twice.
            unsafe { libc::_exit(i32::from(status.unwrap_or(PANICKED))) }
        }
    }
}

/// A child that has ended and was not reported before; does not wait.
///
/// # Errors
/// None in practice; without children the result is `None`.
pub fn reap() -> io::Result<Option<(Pid, Ended)>> {
    match rustix::process::wait(WaitOptions::NOHANG) {
        Ok(found) => Ok(found.map(told)),
        Err(rustix::io::Errno::CHILD | rustix::io::Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Waits for the next child that ends.
///
/// # Errors
/// ECHILD where there is no child.
pub fn reap_waiting() -> io::Result<(Pid, Ended)> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some(found)) => return Ok(told(found)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for the end of one child; returns at once if it was reaped.
pub fn reap_this(pid: Pid) {
    let wait = || rustix::process::waitpid(Some(pid), WaitOptions::empty());
    while matches!(wait(), Err(rustix::io::Errno::INTR)) {}
}

/// Whether a child that was not reaped yet has ended; does not reap it.
pub fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None))
}

fn told((pid, status): (Pid, WaitStatus)) -> (Pid, Ended) {
    let exited = || Ended::Exited(status.exit_status().unwrap_or_default() as u8);
    (pid, status.terminating_signal().map_or_else(exited, Ended::Killed))
}

/// Sends a signal to a child that was not reaped yet, so that the pid cannot belong to another process. Returns whether
/// the child could receive it.
pub fn signal(pid: Pid, signal: Signal) -> bool {
    rustix::process::kill_process(pid, signal).is_ok()
}

/// Makes the kernel kill this process when the thread that started it ends.
///
/// # Errors
/// None in practice.
pub fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Undoes [`die_with_parent`], and returns a file that becomes readable when the parent has ended, so that the process
/// can clean up first.
///
/// # Errors
/// EMFILE; ESRCH where the parent has ended.
pub fn outlive_parent() -> io::Result<OwnedFd> {
    let parent = rustix::process::getppid().ok_or(rustix::io::Errno::SRCH)?;
    let ended = rustix::process::pidfd_open(parent, rustix::process::PidfdFlags::empty())?;
    // Until this call the kernel kills it with its parent, so the number was really that of its parent.
    rustix::process::set_parent_process_death_signal(None)?;
    Ok(ended)
}

/// What ps, top and /proc/PID/comm show for the calling thread; the kernel keeps 15 bytes.
pub fn set_name(name: &str) {
    let kept: Vec<u8> = name.bytes().filter(|&byte| byte != 0).take(15).collect();
    // Failure is ignored: the name is only cosmetic.
    let _ = rustix::thread::set_name(&CString::new(kept).unwrap_or_default());
}

/// The number of the calling thread, as the kernel counts threads and ps -L shows them.
pub fn thread_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// How many threads this process has.
///
/// # Errors
/// Where /proc is not mounted.
pub fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Counters that this process and the children it forks share: an anonymous shared mapping of zeroes, read as a slice.
/// Memory is allocated page by page on first write.
#[derive(Debug)]
pub struct SharedCells<C: Cell = AtomicU32> {
    start: NonNull<C>,
    len: usize,
}

/// Types that may be shared so: atomics, for which zero bytes are a valid value.
pub trait Cell: sealed::Zeroable + Sync {}

impl Cell for AtomicU32 {}
impl Cell for AtomicU64 {}

mod sealed {
    /// Sealed: no other code may declare a type shareable, because the mapping's soundness depends on it.
    pub trait Zeroable {}
    impl Zeroable for super::AtomicU32 {}
    impl Zeroable for super::AtomicU64 {}
}

// SAFETY: the mapping belongs to the value, not to a thread, and is only accessed through atomics.
unsafe impl<C: Cell> Send for SharedCells<C> {}
// SAFETY: as above; a `&C` may be used by any number of threads, for `Cell` needs `Sync`.
unsafe impl<C: Cell> Sync for SharedCells<C> {}

impl<C: Cell> SharedCells<C> {
    /// `len` counters, all zero.
    ///
    /// # Errors
    /// ENOMEM; EINVAL where `len` is 0.
    pub fn new(len: usize) -> io::Result<Self> {
        // SAFETY: with a null address the kernel chooses a free range, so nothing that exists is
        // touched; the mapping is of no file.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len * size_of::<C>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("mmap without MAP_FIXED never returns 0");
        Ok(Self { start, len })
    }
}

impl<C: Cell> Deref for SharedCells<C> {
    type Target = [C];

    fn deref(&self) -> &[C] {
        // SAFETY: the mapping has `len` cells, is aligned to a page, zero is a valid cell, and it
        // lives until `drop`, which needs that no borrow is left.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<C: Cell> Drop for SharedCells<C> {
    fn drop(&mut self) {
        // SAFETY: the range is the one that mmap returned, and no borrow of it is left. The mappings
        // of other processes stay.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len * size_of::<C>()) };
    }
}

fn pid_of(raw: i32) -> Pid {
    Pid::from_raw(raw).expect("fork gives the parent a pid above 0")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    /// Runs `test` in a copy of this process that has only the test's thread.
    pub(crate) fn alone(test: impl FnOnce()) {
        // SAFETY: none of the harness's threads is in the child, which only uses the allocator (glibc makes it usable
        // after fork) and system calls, and ends by _exit.
        match unsafe { nix::unistd::fork() }.unwrap() {
            ForkResult::Parent { child } => {
                let ended =
                    rustix::process::waitpid(Some(pid_of(child.as_raw())), WaitOptions::empty());
                assert_eq!(ended.unwrap().unwrap().1.exit_status(), Some(0));
            }
            ForkResult::Child => {
                let failed = catch_unwind(AssertUnwindSafe(test)).is_err();
                // SAFETY: _exit takes any status and does not return.
                unsafe { libc::_exit(i32::from(failed)) }
            }
        }
    }

    #[test]
    fn a_child_runs_its_closure_and_shares_the_cells() {
        alone(|| {
            let cells = SharedCells::<AtomicU32>::new(1).unwrap();
            let child = fork("some child", || {
                cells[0].store(5, Ordering::Relaxed);
                let name = std::fs::read_to_string("/proc/self/comm").unwrap();
                if name == "some child\n" { 42 } else { 1 }
            });
            assert_eq!(reap_waiting().unwrap(), (child.unwrap(), Ended::Exited(42)));
            assert_eq!(cells[0].load(Ordering::Relaxed), 5);
            assert_eq!(reap().unwrap(), None);
        });
    }

    #[test]
    fn a_panic_and_a_signal_end_a_child_and_not_its_parent() {
        alone(|| {
            let child = fork("panics", || panic!("a planted panic")).unwrap();
            assert_eq!(reap_waiting().unwrap(), (child, Ended::Exited(PANICKED)));
            let child = fork("sleeps", || {
                loop {
                    std::thread::park();
                }
            });
            assert_eq!(reap().unwrap(), None);
            assert!(!has_ended(child.as_ref().copied().unwrap()));
            assert!(signal(child.as_ref().copied().unwrap(), Signal::KILL));
            while !has_ended(child.as_ref().copied().unwrap()) {
                std::thread::yield_now();
            }
            assert_eq!(reap_waiting().unwrap(), (child.unwrap(), Ended::Killed(libc::SIGKILL)));
        });
    }

    #[test]
    fn a_child_dies_with_its_parent() {
        alone(|| {
            let (ended, alive) = std::io::pipe().unwrap();
            let parent = fork("parent", || {
                let _ = fork("grandchild", || {
                    loop {
                        std::thread::park();
                    }
                });
                0
            });
            reap_waiting().unwrap();
            parent.unwrap();
            drop(alive);
            // The end of the pipe comes when the last writer is gone, which is the grandchild.
            assert_eq!(std::io::Read::read(&mut { ended }, &mut [0]).unwrap(), 0);
        });
    }

    #[test]
    fn a_process_with_threads_may_not_fork() {
        let error = fork("child", || 0).unwrap_err();
        assert!(error.to_string().contains("one thread"), "{error}");
    }

    #[test]
    fn shared_cells_start_at_zero_and_none_is_refused() {
        let cells = SharedCells::<AtomicU32>::new(3).unwrap();
        assert_eq!(cells.iter().map(|cell| cell.load(Ordering::Relaxed)).sum::<u32>(), 0);
        cells[2].store(7, Ordering::Relaxed);
        assert_eq!(cells[2].load(Ordering::Relaxed), 7);
        assert!(SharedCells::<AtomicU64>::new(0).is_err());
    }
}
