//! `churn`: the process that serves ends after a number of answers, as under Apache with a low
//! MaxConnectionsPerChild. Start reading at [`Churn`].
//!
//! Each process counts its answers. The connection that gets the last of them is closed after it, unannounced. Under
//! prefork, worker and event the child then ends as if its parent had asked it to. Worker and event answer the requests
//! that their other connections have sent, and close idle ones; a listener that was just about to block ends at its
//! next event. The model replaces the child by its own rule, so no sooner than Apache would. Under fork a child has one
//! connection and ends with it. All other models are one process, whose end would be the server's: only the connection
//! is closed.

use std::sync::Arc;

use super::{Effect, FaultKind, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "churn",
    forms: "churn=100 (answers after which the serving process ends, or else the connection)",
    is_unique: true,
    read: |spec| {
        let answers = spec::count(spec.first("the number of answers")?, u32::MAX)?;
        Ok(Arc::new(Churn { answers }))
    },
};

/// How long a process lives.
#[derive(Debug)]
struct Churn {
    /// At least 1.
    answers: u32,
}

impl Effect for Churn {
    fn lifetime(&self) -> Option<u32> {
        Some(self.answers)
    }
}
