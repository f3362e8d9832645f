//! What a worker holds, grouped by what changes it.

use record::{LoadPlan, Sample};
use sys::driver::Slot;
use units::Nanos;

use crate::free::FreePlaces;
use crate::margin::Margin;
use crate::picker::{self, Picker};
use crate::prepared::Prepared;
use crate::shares::ThreadShare;

/// The requests of the plan, and which one is next.
pub(super) struct Requests {
    /// As they are sent.
    pub(super) prepared: Vec<Prepared>,
    pub(super) picker: Picker,
    /// Number of rendered requests, each counted once however often it is sent.
    pub(super) n_rendered: u64,
}

/// How many requests may be started, and how many are in flight.
pub(super) struct Budget {
    /// Requests that may still be started.
    pub(super) quota: u64,
    /// Requests that were started and have not ended.
    pub(super) n_out: u64,
}

/// Where the next request can go.
pub(super) struct Places {
    pub(super) free: FreePlaces,
    /// By slot: its places, while it waits for the end of a backoff.
    pub(super) parked: Vec<u32>,
}

/// When the thread wakes up, and which part of its CPU time is no work.
pub(super) struct Waiting {
    /// How long before an instant it must be awake.
    pub(super) margin: Margin,
    /// Time that was spent spinning.
    pub(super) spun: Nanos,
    /// Whether anything came or was sent since the last wake-up.
    pub(super) was_busy: bool,
    pub(super) cpu_began: Nanos,
}

/// What the current completions leave to be done.
pub(super) struct Batch {
    /// What the current completion ended.
    pub(super) ended: Vec<Sample>,
    /// A request that has begun and is not sent yet, because another on its connection may follow.
    pub(super) unsent: Option<Slot>,
    /// A slot whose next request has already begun, and is sent as soon as nothing more is known of the slot: see
    /// `take_completions`.
    pub(super) held_back: Option<Slot>,
}

/// Bytes on their way to the driver, or from it; kept so that nothing is allocated again.
pub(super) struct Buffers {
    /// Requests.
    pub(super) rendered: Vec<u8>,
    /// Records of TLS.
    pub(super) records: Vec<u8>,
    /// What TLS decrypted.
    pub(super) plain: Vec<u8>,
}

impl Requests {
    pub(super) fn new(plan: &LoadPlan, share: ThreadShare) -> Self {
        let prepared = |request| {
            Prepared::new(plan, request).expect("a plan's requests were rendered when it was made")
        };
        let turn = picker::ThreadIndex { index: share.thread.into(), of: share.threads.into() };
        Self {
            prepared: plan.requests.iter().map(prepared).collect(),
            picker: Picker::new(plan, turn),
            n_rendered: 0,
        }
    }
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self { margin: Margin::new(), spun: Nanos::ZERO, was_busy: false, cpu_began: Nanos::ZERO }
    }
}

impl Batch {
    pub(super) fn new(plan: &LoadPlan) -> Self {
        let ended = Vec::with_capacity(plan.pipeline as usize);
        Self { ended, unsent: None, held_back: None }
    }
}

impl Buffers {
    pub(super) fn new() -> Self {
        Self { rendered: Vec::with_capacity(4096), records: Vec::new(), plain: Vec::new() }
    }
}
