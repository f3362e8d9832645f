//! One io_uring: creation, pushing entries, submitting, waiting. Owns the calls and the set-up flags. Start reading at
//! [`Ring::new`].

use std::io;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, squeue};
use units::Nanos;

/// Submission entries. A batch never needs more, except when many receives are re-armed at once; a full queue is
/// submitted and filled again.
pub(crate) const SQ_ENTRIES: u32 = 256;

/// The kernel's own limit (IORING_MAX_CQ_ENTRIES); it keeps completions beyond it in a list.
const CQ_ENTRIES_MAX: u32 = 65_536;

/// IORING_ENTER_GETEVENTS: only with it the kernel does the work that it deferred.
const GETEVENTS: u32 = 1;

/// A ring that one thread fills and empties.
pub(crate) struct Ring {
    uring: IoUring,
}

impl Ring {
    /// A ring for this many completions at once. It belongs to the calling thread.
    ///
    /// - SINGLE_ISSUER, DEFER_TASKRUN: arrivals are processed when this thread waits, and do not interrupt it
    ///   at other times.
    /// - SUBMIT_ALL: a failing entry does not block those after it.
    ///
    /// # Errors
    /// Those that [`explained`] explains; EMFILE.
    pub(crate) fn new(n_completions: u32) -> io::Result<Self> {
        let n_completions = n_completions.next_power_of_two().clamp(SQ_ENTRIES * 2, CQ_ENTRIES_MAX);
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(n_completions)
            .build(SQ_ENTRIES)?;
        Ok(Self { uring })
    }

    /// The library's handle, for what is registered with the ring.
    pub(crate) fn uring(&self) -> &IoUring {
        &self.uring
    }

    /// Whether entries wait to be submitted.
    pub(crate) fn has_unsubmitted(&mut self) -> bool {
        !self.uring.submission().is_empty()
    }

    /// Whether completions found no room; the kernel keeps them until the next [`Ring::look`].
    pub(crate) fn has_overflowed(&mut self) -> bool {
        self.uring.submission().cq_overflow()
    }

    /// Appends an entry; submits the earlier ones first if there is no room.
    ///
    /// # Safety
    /// Memory that the entry names stays valid, and is not accessed if the kernel writes to it, until the kernel is
    /// done with it: for operations with a completion, until that completion.
    ///
    /// # Errors
    /// As [`Ring::submit`].
    pub(crate) unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        if self.uring.submission().is_full() {
            self.submit()?;
        }
        // SAFETY: the caller's promise is the one that `push` asks for.
        let pushed = unsafe { self.uring.submission().push(entry) };
        pushed.expect("room was made");
        Ok(())
    }

    /// Submits what was pushed. When this returns, the kernel has done everything that it can do at once.
    ///
    /// # Errors
    /// ENOMEM and the like; never an error of an entry.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        while self.has_unsubmitted() {
            not_yet(self.uring.submit())?;
        }
        Ok(())
    }

    /// Submits what was pushed and takes the completions that are there, without waiting.
    ///
    /// # Errors
    /// As [`Ring::submit`].
    pub(crate) fn look(&mut self) -> io::Result<()> {
        let n_entries = self.uring.submission().len() as u32;
        let submitter = self.uring.submitter();
        // SAFETY: the entries are valid by `push`; no argument is passed.
        let entered = unsafe { submitter.enter::<libc::sigset_t>(n_entries, 0, GETEVENTS, None) };
        not_yet(entered)?;
        self.submit()
    }

    /// Submits what was pushed and waits for a completion, or until `timeout` has passed (`None`: for ever). A signal
    /// ends the wait.
    ///
    /// # Errors
    /// As [`Ring::submit`].
    pub(crate) fn wait(&mut self, timeout: Option<Nanos>) -> io::Result<()> {
        let entered = match timeout {
            None => self.uring.submit_and_wait(1),
            Some(Nanos::ZERO) => return self.look(),
            Some(timeout) => {
                let (secs, nanos) = (timeout.0 / 1_000_000_000, timeout.0 % 1_000_000_000);
                let timespec = Timespec::new().sec(secs).nsec(nanos as u32);
                let args = SubmitArgs::new().timespec(&timespec);
                self.uring.submitter().submit_with_args(1, &args)
            }
        };
        not_yet(entered)?;
        self.submit()
    }

    /// The next completion.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<cqueue::Entry> {
        self.uring.completion().next()
    }
}

/// These are not failures of the ring: the time is up, a signal came, completions must be taken first, or memory is
/// short for a moment.
fn not_yet(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(error),
        },
    }
}

/// A refusal with its cause and the remedy.
pub(crate) fn explained(error: io::Error) -> io::Error {
    let (kind, why) = match error.raw_os_error() {
        Some(libc::ENOSYS) => (
            io::ErrorKind::Unsupported,
            "this kernel has no io_uring, or a sandbox (seccomp) hides it",
        ),
        Some(libc::EPERM | libc::EACCES) => (
            io::ErrorKind::PermissionDenied,
            "io_uring is forbidden: by the sysctl kernel.io_uring_disabled or by a sandbox (seccomp)",
        ),
        Some(libc::EINVAL) => {
            (io::ErrorKind::Unsupported, "the io_uring of this kernel is too old: 6.1 is needed")
        }
        // Rings count as locked memory for all users but root; a container may have a limit of 64 KB.
        Some(libc::ENOMEM) => (
            io::ErrorKind::OutOfMemory,
            "no memory for its rings, or more than this user may lock: raise `ulimit -l`",
        ),
        _ => return error,
    };
    io::Error::new(kind, format!("{why} ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_by_what_and_whether_to_do_without() {
        let cases = [
            (libc::ENOSYS, io::ErrorKind::Unsupported, "seccomp"),
            (libc::EPERM, io::ErrorKind::PermissionDenied, "kernel.io_uring_disabled"),
            (libc::EINVAL, io::ErrorKind::Unsupported, "6.1"),
            (libc::ENOMEM, io::ErrorKind::OutOfMemory, "ulimit -l"),
        ];
        for (errno, kind, word) in cases {
            let error = explained(io::Error::from_raw_os_error(errno));
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn a_wait_without_anything_under_way_ends_in_time() {
        let Ok(mut ring) = Ring::new(1) else { return };
        let before = crate::clock::monotonic();
        ring.wait(Some(Nanos::from_micros(700))).unwrap();
        assert!(crate::clock::monotonic() - before >= Nanos::from_micros(700));
        assert!(ring.pop().is_none());
    }
}
