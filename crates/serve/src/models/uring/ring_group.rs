//! What the rings of one server share: how a drain or a stop reaches all of them, what is left to
//! accept in a drain, and who is still there. Owns the bells and counts; must not know connections.
//! Start reading at [`RingGroup`].

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};

use sys::signals::Signals;
use sys::wake::Wake;

/// Which of the rings this is.
#[derive(Debug, Clone, Copy)]
pub(super) enum RingRole<'a> {
    /// The one on the first thread: it takes the signals, and is the last to end.
    Leads(&'a Signals),
    /// One of the others.
    Follows,
}

/// Shared by all rings.
pub(super) struct RingGroup {
    /// How many there are.
    pub(super) n_rings: usize,
    /// A drain was asked for: what is received from now on is the last request of its connection. Rings
    /// hear the bell a little later, and bytes that came after it may overtake it.
    is_ending: AtomicBool,
    /// Rung once, by who leads: the server drains.
    pub(super) drain: Wake,
    /// Rung once, by who leads: the server ends now.
    pub(super) stop: Wake,
    /// Rung by each of the others at its end.
    pub(super) gone: Wake,
    /// In a drain: connections that waited when it began and that nobody has gone to accept yet.
    tickets: AtomicU32,
    /// Those, and the ones that somebody is accepting just now. Who brings it to zero closes the port.
    unserved: AtomicU32,
    /// Of the others, those that have not ended.
    n_others: AtomicUsize,
    failure: Mutex<Option<io::Error>>,
    /// How many rings are not made yet, and what tells those that wait for them.
    start: Mutex<Start>,
    start_changed: Condvar,
}

/// How far the start of all rings is.
struct Start {
    n_unmade: usize,
    /// One could not be made: the others are not to wait for it.
    has_failed: bool,
}

impl RingGroup {
    /// For so many rings.
    pub(super) fn new(n_rings: usize) -> io::Result<Self> {
        Ok(Self {
            n_rings,
            is_ending: AtomicBool::new(false),
            drain: Wake::new()?,
            stop: Wake::new()?,
            gone: Wake::new()?,
            tickets: AtomicU32::new(0),
            unserved: AtomicU32::new(0),
            n_others: AtomicUsize::new(0),
            failure: Mutex::default(),
            start: Mutex::new(Start { n_unmade: n_rings, has_failed: false }),
            start_changed: Condvar::new(),
        })
    }

    /// A ring is about to be made. Each is made by the thread that it belongs to, and none serves
    /// before all are there: connections that wait could take the descriptors that the others need.
    pub(super) fn starting(&self) -> Starting<'_> {
        Starting { group: self, is_made: false }
    }

    fn lock_start(&self) -> std::sync::MutexGuard<'_, Start> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of the others is to be started.
    pub(super) fn join(&self) -> Member<'_> {
        self.n_others.fetch_add(1, SeqCst);
        Member { group: self, result: Err(io::Error::other("the thread of a ring panicked")) }
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

/// That a ring is being made. Dropped before it is, all know that it never will be.
pub(super) struct Starting<'a> {
    group: &'a RingGroup,
    is_made: bool,
}

impl Starting<'_> {
    /// It is made. Waits for all others; false: one of them could not be made.
    pub(super) fn made(mut self) -> bool {
        self.is_made = true;
        let RingGroup { start_changed, .. } = self.group;
        let mut start = self.group.lock_start();
        start.n_unmade -= 1;
        start_changed.notify_all();
        let is_open = |start: &mut Start| start.n_unmade > 0 && !start.has_failed;
        start = start_changed.wait_while(start, is_open).unwrap_or_else(PoisonError::into_inner);
        !start.has_failed
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        if !self.is_made {
            self.group.lock_start().has_failed = true;
            self.group.start_changed.notify_all();
        }
    }
}

/// That one of the others has not ended; it ends in every case, and all know of it.
pub(super) struct Member<'a> {
    group: &'a RingGroup,
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
        let Self { group, result } = self;
        if let Err(error) = std::mem::replace(result, Ok(())) {
            group.lock_failure().get_or_insert(error);
        }
        group.n_others.fetch_sub(1, SeqCst);
        group.gone.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_accepts_the_last_that_waits_is_told_and_nobody_else() {
        let group = RingGroup::new(2).unwrap();
        assert!(!group.hand_out(2));
        assert!(group.take_ticket() && group.take_ticket() && !group.take_ticket());
        // One is still accepting: the port must stay open for it.
        assert!(!group.use_ticket());
        assert!(group.use_ticket());
    }

    #[test]
    fn no_ring_serves_before_all_are_made_and_none_waits_for_one_that_failed() {
        for is_last_made in [true, false] {
            let group = RingGroup::new(3).unwrap();
            let serves = AtomicU32::new(0);
            std::thread::scope(|scope| {
                let waiting = [(); 2].map(|()| {
                    scope.spawn(|| {
                        let all = group.starting().made();
                        serves.fetch_add(u32::from(all), SeqCst);
                        all
                    })
                });
                while group.lock_start().n_unmade > 1 {
                    std::thread::yield_now();
                }
                assert_eq!(serves.load(SeqCst), 0);
                let last = group.starting();
                if is_last_made {
                    assert!(last.made())
                } else {
                    drop(last)
                }
                for thread in waiting {
                    assert_eq!(thread.join().unwrap(), is_last_made);
                }
            });
        }
    }

    #[test]
    fn tickets_for_what_does_not_wait_any_longer_keep_nobody() {
        let group = RingGroup::new(2).unwrap();
        group.hand_out(5);
        assert!(group.take_ticket() && group.take_ticket());
        assert!(!group.void_tickets());
        assert!(!group.take_ticket());
        assert!(group.use_ticket());
        assert!(RingGroup::new(1).unwrap().hand_out(0));
    }
}
