//! `pause`: the server stands still, as in a garbage collection: no byte leaves, on any connection. Start
//! reading at [`Pause`].
//!
//! What arrives is still received, so that a delay runs on in a pause, as a timer of a stopped
//! process would.

use std::sync::Arc;

use units::Nanos;

use super::{Effect, FaultKind, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "pause",
    forms: "pause=every:2s,for:100ms (2 s, 4 s, 6 s ... after the start) or pause=at:1s,for:1s (once)",
    is_unique: false,
    read: |spec| {
        let length = spec.time("for")?.ok_or("for:TIME is missing")?;
        let mut begin =
            |name| spec.named(name).map(|typed| spec::time(typed, BEGIN_MAX)).transpose();
        match (begin("every")?, begin("at")?) {
            (Some(every), None) if length >= every => {
                Err(format!("a pause of {length} every {every} never ends"))
            }
            (Some(every), None) => Ok(Arc::new(Pause::Every { every, length })),
            (None, Some(at)) => Ok(Arc::new(Pause::Once { at, length })),
            _ => Err("it needs one of every:TIME and at:TIME".to_owned()),
        }
    },
};

/// A later pause is most likely a mistyped unit.
const BEGIN_MAX: Nanos = Nanos::from_secs(7 * 86_400);

/// When no byte leaves, counted from the start of the server.
#[derive(Debug)]
enum Pause {
    /// From every multiple of `every` but 0, for `length`, which is shorter.
    Every { every: Nanos, length: Nanos },
    /// From `at` on.
    Once { at: Nanos, length: Nanos },
}

impl Effect for Pause {
    fn clear(&self, at: Nanos) -> Nanos {
        let (begin, length) = match *self {
            Self::Every { every, .. } if at < every => return at,
            Self::Every { every, length } => (Nanos(at.0 - at.0 % every.0), length),
            Self::Once { at: begin, length } => (begin, length),
        };
        let end = begin.saturating_add(length);
        if begin <= at && at < end { end } else { at }
    }

    fn recurs(&self) -> bool {
        matches!(self, Self::Every { .. })
    }
}
