//! `slots`: at most N requests are in work at once in the whole server; the others wait, in the
//! order in which they are complete. Owns the number; the queue is `super::queue`'s. Start reading at
//! [`Slots`].
//!
//! In work is a request for as long as `delay` and `stall` together hold its answer, head and body: it is
//! N servers with that service time and one queue, so that without one of those nothing waits. What
//! `batch` and `pause` add is not work. A client that leaves gives its slot back no sooner. A request
//! that would have to wait for longer than a minute is answered with 503 at once.

use std::sync::Arc;

use super::{Effect, FaultKind, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "slots",
    forms: "slots=8 (requests in progress at once, each for as long as delay and stall say)",
    is_unique: true,
    read: |spec| {
        let slots = spec::count(spec.first("the number of slots")?, SLOTS_MAX)?;
        Ok(Arc::new(Slots { slots }))
    },
};

/// Each request looks at all of them.
const SLOTS_MAX: u32 = 4096;

/// How many there are.
#[derive(Debug)]
struct Slots {
    /// 1 to [`SLOTS_MAX`].
    slots: u32,
}

impl Effect for Slots {
    fn slots(&self) -> Option<u32> {
        Some(self.slots)
    }
}
