//! What the rings of one server share: how a drain or a stop reaches all of them, what is left to
//! accept in a drain, and who is still there. Owns the bells and counts; must not know connections.
//! Start reading at [`Together`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use sys::signals::Signals;

/// Which of the rings this is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    /// The one on the first thread: it takes the signals, and is the last to end.
    Leads(&'a Signals),
    /// One of the others.
    Follows,
}

/// Shared by all rings.
pub(super) struct Together {
    /// How many there are.
    pub(super) n_rings: usize,
    /// A drain was asked for: what is received from now on is the last request of its connection. Rings
    /// hear the bell a little later, and bytes that came after it may overtake it.
    is_ending: AtomicBool,
    /// Rung once, by who leads: the server drains.
    pub(super) drain: Bell,
    /// Rung once, by who leads: the server ends now.
    pub(super) stop: Bell,
    /// Rung by each of the others at its end.
    pub(super) gone: Bell,
    /// In a drain: connections that waited when it began and that nobody has gone to accept yet.
    tickets: AtomicU32,
    /// Those, and the ones that somebody is accepting just now. Who brings it to zero closes the port.
    unserved: AtomicU32,
    /// Of the others, those that have not ended.
    n_others: AtomicUsize,
    failure: Mutex<Option<io::Error>>,
}

impl Together {
    /// For so many rings.
    pub(super) fn new(n_rings: usize) -> io::Result<Self> {
        Ok(Self {
            n_rings,
            is_ending: AtomicBool::new(false),
            drain: Bell::new()?,
            stop: Bell::new()?,
            gone: Bell::new()?,
            tickets: AtomicU32::new(0),
            unserved: AtomicU32::new(0),
            n_others: AtomicUsize::new(0),
            failure: Mutex::default(),
        })
    }

    /// One of the others is to be started.
    pub(super) fn join(&self) -> Member<'_> {
        self.n_others.fetch_add(1, SeqCst);
        Member { together: self, result: Err(io::Error::other("the thread of a ring panicked")) }
    }

    /// Whether only the ring that leads is left.
    pub(super) fn is_alone(&self) -> bool {
        self.n_others.load(SeqCst) == 0
    }

    /// Whether one of the others has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.lock_failure().is_some()
    }

    /// Why one of the others has failed, if one has.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.lock_failure().take()
    }

    fn lock_failure(&self) -> std::sync::MutexGuard<'_, Option<io::Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A drain was asked for.
    pub(super) fn end(&self) {
        self.is_ending.store(true, SeqCst);
    }

    /// Whether one was.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Relaxed)
    }

    /// The drain begins with so many connections waiting; returns whether there are none.
    pub(super) fn hand_out(&self, waiting: u32) -> bool {
        self.unserved.store(waiting, SeqCst);
        self.tickets.store(waiting, SeqCst);
        self.drain.ring();
        waiting == 0
    }

    /// The right to accept one of those that wait; false: there are no more.
    pub(super) fn take_ticket(&self) -> bool {
        self.tickets.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    /// A ticket that was taken cannot be used now.
    pub(super) fn give_ticket_back(&self) {
        self.tickets.fetch_add(1, SeqCst);
    }

    /// A ticket that was taken was used; returns whether it was the last of all.
    pub(super) fn use_ticket(&self) -> bool {
        self.unserved.fetch_sub(1, SeqCst) == 1
    }

    /// Nothing waits any longer, found out by one who had taken a ticket; returns whether nobody else
    /// is accepting.
    pub(super) fn void_tickets(&self) -> bool {
        let void = self.tickets.swap(0, SeqCst) + 1;
        self.unserved.fetch_sub(void, SeqCst) == void
    }
}

/// That one of the others has not ended; it ends in every case, and all know of it.
pub(super) struct Member<'a> {
    together: &'a Together,
    result: io::Result<()>,
}

impl Member<'_> {
    /// It has ended so.
    pub(super) fn ended(mut self, result: io::Result<()>) {
        self.result = result;
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let Self { together, result } = self;
        if let Err(error) = std::mem::replace(result, Ok(())) {
            together.lock_failure().get_or_insert(error);
        }
        together.n_others.fetch_sub(1, SeqCst);
        together.gone.ring();
    }
}

/// Heard by every ring that waits for it, for as long as it lives.
pub(super) struct Bell(OwnedFd);

impl Bell {
    fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Rings until it is silenced.
    pub(super) fn ring(&self) {
        // It fails only where it has rung 2^64 times.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// So that it can be heard again.
    pub(super) fn silence(&self) {
        // It fails only where it is silent.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_accepts_the_last_that_waits_is_told_and_nobody_else() {
        let together = Together::new(2).unwrap();
        assert!(!together.hand_out(2));
        assert!(together.take_ticket() && together.take_ticket() && !together.take_ticket());
        // One is still accepting: the port must stay open for it.
        assert!(!together.use_ticket());
        assert!(together.use_ticket());
    }

    #[test]
    fn tickets_for_what_does_not_wait_any_longer_keep_nobody() {
        let together = Together::new(2).unwrap();
        together.hand_out(5);
        assert!(together.take_ticket() && together.take_ticket());
        assert!(!together.void_tickets());
        assert!(!together.take_ticket());
        assert!(together.use_ticket());
        assert!(Together::new(1).unwrap().hand_out(0));
    }
}
