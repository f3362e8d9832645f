//! A thin layer over epoll: a set of files, each with a token, and which of them are ready.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

pub use rustix::event::epoll::EventFlags;
use rustix::event::epoll::{self, CreateFlags, Event, EventData};
use rustix::time::Timespec;
use units::Nanos;

/// Most events taken by one wait; further ones stay in the kernel for the next.
pub const EVENTS_MAX: usize = 256;

/// A set of files to watch.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
}

/// A file that became ready.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    /// As given to [`Epoll::add`].
    pub token: u64,
    /// For what.
    pub flags: EventFlags,
}

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Watches `file`, reporting `token`.
    ///
    /// # Errors
    /// EEXIST, ENOMEM, ENOSPC (max_user_watches), EPERM (a regular file).
    pub fn add(&self, file: impl AsFd, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.fd, file, EventData::new_u64(token), flags)?)
    }

    /// Changes what `file` is watched for.
    ///
    /// # Errors
    /// ENOENT where it is not in the set.
    pub fn modify(&self, file: impl AsFd, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.fd, file, EventData::new_u64(token), flags)?)
    }

    /// Stops watching `file`. Closing its last descriptor does the same.
    ///
    /// # Errors
    /// ENOENT where it is not in the set.
    pub fn remove(&self, file: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, file)?)
    }

    /// Fills `ready` with the ready files, waiting for at most `timeout` (`None`: for ever). The kernel takes
    /// nanoseconds (epoll_pwait2), so nothing is rounded; after a signal `ready` is empty.
    ///
    /// # Errors
    /// None in practice but those of a broken kernel.
    pub fn wait(&self, ready: &mut Vec<Ready>, timeout: Option<Nanos>) -> io::Result<()> {
        ready.clear();
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS_MAX];
        let timeout = timeout.map(|nanos| Timespec {
            tv_sec: (nanos.0 / 1_000_000_000) as i64,
            tv_nsec: (nanos.0 % 1_000_000_000) as _,
        });
        match epoll::wait(&self.fd, &mut events[..], timeout.as_ref()) {
            Ok((filled, _)) => {
                ready.extend(filled.iter().map(|e| Ready { token: e.data.u64(), flags: e.flags }));
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn reports_the_token_of_what_is_ready() {
        let (mut left, right) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&right, 42, EventFlags::IN).unwrap();
        let mut ready = Vec::new();
        epoll.wait(&mut ready, Some(Nanos::ZERO)).unwrap();
        assert!(ready.is_empty());
        left.write_all(b"x").unwrap();
        epoll.wait(&mut ready, None).unwrap();
        assert_eq!(ready.iter().map(|r| r.token).collect::<Vec<_>>(), [42]);
    }

    #[test]
    fn a_timeout_is_never_cut_short() {
        let before = crate::clock::monotonic();
        let mut ready = Vec::new();
        Epoll::new().unwrap().wait(&mut ready, Some(Nanos::from_micros(700))).unwrap();
        assert!(crate::clock::monotonic() - before >= Nanos::from_micros(700));
    }
}
