//! Wakes every event loop of a process at once, by a file that each of them watches. Owns the eventfd(2). Start reading
//! at [`Wake`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// A file that becomes readable when `ring` is called, and is never read by the loops. Watched edge-triggered, it wakes
/// each loop once for each ring, however many loops there are.
#[derive(Debug)]
pub struct Wake {
    fd: OwnedFd,
}

impl Wake {
    /// Not rung yet.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Wakes all watchers.
    pub fn ring(&self) {
        // It fails only after 2^64 rings, when everybody is awake.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Clears the rings, so that it is not readable before the next one.
    pub fn hush(&self) {
        // It fails only if there was no ring.
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;
    use crate::epoll::{Epoll, EventFlags};

    #[test]
    fn each_ring_wakes_every_loop_once() {
        let wake = Wake::new().unwrap();
        let loops = [Epoll::new().unwrap(), Epoll::new().unwrap()];
        let woken = || {
            let mut ready = Vec::new();
            loops.each_ref().map(|epoll| {
                epoll.wait(&mut ready, Some(Nanos::ZERO)).unwrap();
                ready.len()
            })
        };
        for epoll in &loops {
            epoll.add(&wake, 1, EventFlags::IN | EventFlags::ET).unwrap();
        }
        assert_eq!(woken(), [0, 0]);
        for _ in 0..2 {
            wake.ring();
            assert_eq!(woken(), [1, 1]);
            assert_eq!(woken(), [0, 0]);
        }
        wake.ring();
        wake.hush();
        assert_eq!(woken(), [0, 0]);
    }
}
