//! A mark that a program passes on to everything it starts. By this mark its descendants can be found and killed,
//! whatever group, session or parent they have chosen. Owns the mark and the search. Start reading at [`Marks`] and
//! [`kill_marked`].
//!
//! The mark is a process limit that the kernel stores and passes on by fork and exec, but otherwise ignores:
//! RLIMIT_LOCKS, without effect since Linux 2.6 (getrlimit(2)). A daemon keeps it through setsid(2), two forks, closed
//! files and an exec. The alternatives: a cgroup for each program needs a hierarchy that was delegated to the server; a
//! subreaper is not told whose orphans it receives; a supervising process for each program costs one more fork. The
//! mark costs the new process one system call. A program that sets this limit itself escapes, but one of the same user
//! could kill the server as well.
//!
//! A search asks each process of the machine for its limit (prlimit(2), 0.3 us each). So use it after ending a program,
//! and not for requests that went well.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::process::SharedCells;

/// Set in every mark, so that no limit that somebody has set looks like a mark: 4.6 * 10^18 locks.
const IS_MARK: u64 = 1 << 62;

/// Random bits that distinguish the marks of one server from those of others.
const FAMILY_BITS: u32 = 30;

/// Most searches in a row: each one kills what earlier victims have started meanwhile.
const ROUNDS_MAX: usize = 100;

/// The mark of one program and its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

/// The marks of one server, which no other server uses. Forked processes draw from the same sequence.
#[derive(Debug)]
pub struct Marks {
    family: u64,
    /// One cell with the number of marks drawn. It wraps after 4 * 10^9 programs.
    drawn: SharedCells,
}

impl Mark {
    pub(crate) fn as_limit(self) -> u64 {
        self.0
    }

    /// The mark of a process; `None`: it has none, is gone, or belongs to another user.
    fn of(pid: Pid) -> Option<Self> {
        let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
        let (pid, nothing) = (pid.as_raw_nonzero().get(), std::ptr::null());
        // SAFETY: the kernel writes the current limit to valid memory, and sets no limit because it is given none.
        let asked = unsafe { libc::prlimit64(pid, libc::RLIMIT_LOCKS, nothing, &raw mut limit) };
        let is_one = asked == 0 && limit.rlim_max & !(IS_MARK - 1) == IS_MARK;
        is_one.then_some(Self(limit.rlim_max))
    }
}

impl Marks {
    /// A new sequence.
    ///
    /// # Errors
    /// ENOMEM; or the kernel provides no random number.
    pub fn new() -> io::Result<Self> {
        let mut random = [0; 4];
        let count = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        if count < random.len() {
            return Err(Errno::AGAIN.into());
        }
        let family = u64::from(u32::from_ne_bytes(random)) & ((1 << FAMILY_BITS) - 1);
        Ok(Self { family: IS_MARK | family << 32, drawn: SharedCells::new(1)? })
    }

    /// The next mark.
    pub fn next(&self) -> Mark {
        Mark(self.family | u64::from(self.drawn[0].fetch_add(1, Relaxed)))
    }

    /// Kills every process with any of these marks; does nothing if none was drawn.
    ///
    /// # Errors
    /// As [`kill_marked`].
    pub fn kill_all(&self) -> io::Result<usize> {
        match self.drawn[0].load(Relaxed) {
            0 => Ok(0),
            _ => kill_marked(|mark| mark.0 >> 32 == self.family >> 32),
        }
    }
}

/// Kills the processes whose mark matches, and what they start meanwhile; returns how many there were, zombies
/// included. Processes without such a mark are never hit: a process is held by a descriptor (pidfd) before it is asked
/// for its mark.
///
/// # Errors
/// Where /proc is not mounted.
pub fn kill_marked(is_one: impl Fn(Mark) -> bool) -> io::Result<usize> {
    let mut killed = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let before = killed.len();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(pid) = number.and_then(Pid::from_raw) else { continue };
            let bears_it = || Mark::of(pid).is_some_and(&is_one);
            if bears_it() && !killed.contains(&pid) {
                let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
                if bears_it() && pidfd_send_signal(&held, Signal::KILL).is_ok() {
                    killed.push(pid);
                }
            }
        }
        // A killed process starts nothing any more, not even in the middle of a fork.
        if killed.len() == before {
            break;
        }
    }
    Ok(killed.len())
}
