//! `batch`: answers leave only at multiples of a time since the start of the server; all that are ready leave
//! together. Start reading at [`Batch`].
//!
//! If another fault holds an answer, it is ready when that hold is over. It begins to leave at the first multiple from
//! then on, and a long one then leaves without further stops. A pause is not cut short: what is due within a pause
//! leaves at its end.

use std::sync::Arc;

use units::Nanos;

use super::{Effect, FaultKind, HOLD_MAX, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "batch",
    forms: "batch=50ms (answers leave only at multiples of this time since the start)",
    is_unique: true,
    read: |spec| Ok(Arc::new(Batch { period: spec::time(spec.first("the time")?, HOLD_MAX)? })),
};

/// When answers may begin to leave.
#[derive(Debug)]
struct Batch {
    /// Above 0.
    period: Nanos,
}

impl Effect for Batch {
    fn align(&self, at: Nanos) -> Nanos {
        Nanos(at.0.div_ceil(self.period.0).saturating_mul(self.period.0))
    }
}
