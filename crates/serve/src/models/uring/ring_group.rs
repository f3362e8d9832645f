//! What the rings of one server share: the files that announce a drain or a stop, the connections
//! that a drain still accepts, and how many rings are left. Start reading at [`RingGroup`].

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};

use sys::signals::Signals;
use sys::wake::Wake;

/// Which of the rings this is.
#[derive(Debug, Clone, Copy)]
pub(super) enum RingRole<'a> {
    /// The ring of the first thread. It takes the signals and ends last.
    Leads(&'a Signals),
    /// Any other ring.
    Follows,
}

/// Shared by all rings.
pub(super) struct RingGroup {
    /// How many rings there are.
    pub(super) n_rings: usize,
    /// A drain has begun: what is received from now on is the last request of its connection. Rings
    /// see `drain` only later, and bytes that arrived after it may be handled first.
    is_ending: AtomicBool,
    /// Rung once, by the leading ring: the server drains.
    pub(super) drain: Wake,
    /// Rung once, by the leading ring: the server stops.
    pub(super) stop: Wake,
    /// Rung by every other ring at its end.
    pub(super) gone: Wake,
    /// In a drain: waiting connections that no ring has claimed.
    tickets: AtomicU32,
    /// Those, and the ones that a ring is accepting. The ring that brings it to zero closes the
    /// port.
    unserved: AtomicU32,
    /// Other rings that have not ended.
    n_others: AtomicUsize,
    failure: Mutex<Option<io::Error>>,
    /// How many rings are still to be made, and what wakes the threads that wait for them.
    start: Mutex<Start>,
    start_changed: Condvar,
}

/// Progress of the start.
struct Start {
    n_unmade: usize,
    /// A ring could not be made, so the others must not wait for it.
    has_failed: bool,
}

impl RingGroup {
    /// For `n_rings` rings.
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

    /// To be called before a ring is made, in its own thread. No ring serves before all are made:
    /// connections could take the descriptors that other rings need.
    pub(super) fn starting(&self) -> Starting<'_> {
        Starting { group: self, is_made: false }
    }

    fn lock_start(&self) -> std::sync::MutexGuard<'_, Start> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called before another ring is started.
    pub(super) fn join(&self) -> Member<'_> {
        self.n_others.fetch_add(1, SeqCst);
        Member { group: self, result: Err(io::Error::other("the thread of a ring panicked")) }
    }

    /// Whether only the leading ring is left.
    pub(super) fn is_alone(&self) -> bool {
        self.n_others.load(SeqCst) == 0
    }

    /// Whether one of the other rings has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.lock_failure().is_some()
    }

    /// The error of the first ring that failed.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.lock_failure().take()
    }

    fn lock_failure(&self) -> std::sync::MutexGuard<'_, Option<io::Error>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a drain was asked for.
    pub(super) fn end(&self) {
        self.is_ending.store(true, SeqCst);
    }

    /// Whether a drain was asked for.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Relaxed)
    }

    /// Begins the drain with this many waiting connections. Returns whether there are none.
    pub(super) fn hand_out(&self, waiting: u32) -> bool {
        self.unserved.store(waiting, SeqCst);
        self.tickets.store(waiting, SeqCst);
        self.drain.ring();
        waiting == 0
    }

    /// Takes the right to accept one waiting connection. Returns false if none is left.
    pub(super) fn take_ticket(&self) -> bool {
        self.tickets.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    /// Returns a right that cannot be used now.
    pub(super) fn give_ticket_back(&self) {
        self.tickets.fetch_add(1, SeqCst);
    }

    /// Notes that a right was used. Returns whether it was the last.
    pub(super) fn use_ticket(&self) -> bool {
        self.unserved.fetch_sub(1, SeqCst) == 1
    }

    /// Drops all rights, because a ring that had taken one found no connection. Returns whether no
    /// other ring is accepting.
    pub(super) fn void_tickets(&self) -> bool {
        let void = self.tickets.swap(0, SeqCst) + 1;
        self.unserved.fetch_sub(void, SeqCst) == void
    }
}

/// A ring that is being made. If this is dropped before `made`, the other rings learn that it
/// failed.
pub(super) struct Starting<'a> {
    group: &'a RingGroup,
    is_made: bool,
}

impl Starting<'_> {
    /// The ring is made. Waits for all others. Returns false if one of them could not be made.
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

/// Another ring that has not ended. When this is dropped, also in a panic, all learn of its end.
pub(super) struct Member<'a> {
    group: &'a RingGroup,
    result: io::Result<()>,
}

impl Member<'_> {
    /// Stores how the ring ended.
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
    fn only_the_ring_that_accepts_the_last_waiting_connection_is_told() {
        let group = RingGroup::new(2).unwrap();
        assert!(!group.hand_out(2));
        assert!(group.take_ticket() && group.take_ticket() && !group.take_ticket());
        // One connection is still being accepted, so the port must stay open.
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
    fn tickets_without_connections_delay_no_ring() {
        let group = RingGroup::new(2).unwrap();
        group.hand_out(5);
        assert!(group.take_ticket() && group.take_ticket());
        assert!(!group.void_tickets());
        assert!(!group.take_ticket());
        assert!(group.use_ticket());
        assert!(RingGroup::new(1).unwrap().hand_out(0));
    }
}
