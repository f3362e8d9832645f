//! The one queue of a server with a limited number of slots: when each slot is free. Start reading at
//! [`Queue::enter`].
//!
//! When a request is complete, it is known how long it will take. So no thread waits here: each request gets the
//! instant at which its turn begins, and its answer is held until its turn ends. Requests are served in the order of
//! arrival, over all processes, and equal arrivals give equal instants.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sys::process::SharedCells;
use units::Nanos;

/// The slots, shared by all processes.
#[derive(Debug)]
pub(super) struct Queue {
    /// When each slot is free again; it never falls.
    free_ns: SharedCells<AtomicU64>,
}

impl Queue {
    /// A queue with `slots` slots, all free.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn new(slots: u32) -> io::Result<Self> {
        Ok(Self { free_ns: SharedCells::new(slots as usize)? })
    }

    /// Takes the slot that is free first for `work`, and returns when that begins: at `at`, or when the slot is free.
    /// `None`: it would begin more than `wait_max` after `at`, and no slot is taken.
    pub(super) fn enter(&self, at: Nanos, work: Nanos, wait_max: Nanos) -> Option<Nanos> {
        loop {
            // Each failed exchange is another request that has got a slot, so this ends.
            let slots = self.free_ns.iter().map(|cell| (cell.load(Relaxed), cell));
            let (free, slot) = slots.min_by_key(|(free, _)| *free)?;
            let begin = at.max(Nanos(free));
            if begin.saturating_sub(at) > wait_max {
                return None;
            }
            let end = begin.saturating_add(work).0;
            if slot.compare_exchange(free, end, Relaxed, Relaxed).is_ok() {
                return Some(begin);
            }
        }
    }
}
