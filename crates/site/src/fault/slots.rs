//! `slots`: at most N requests are in progress at once in the whole server; the others wait, in the order in which they
//! become complete. Owns the number; `super::queue` owns the queue. Start reading at [`Slots`].
//!
//! A request is in progress for as long as `delay` and `stall` together hold its answer, head and body. That models N
//! servers with this service time and one queue, so without `delay` or `stall` nothing waits. Time that `batch` and
//! `pause` add does not occupy a slot. A client that leaves does not free its slot earlier. A request that would have
//! to wait for longer than a minute is answered with 503 at once.

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

/// Bounded, since each request looks at all slots.
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
