//! `churn`: the process that serves ends after a number of answers, as under Apache with a low
//! MaxConnectionsPerChild. Start reading at [`Churn`].
//!
//! Each process counts what it answers. The connection that gets the last of them is closed after it,
//! unannounced. Under prefork, worker and event the child then leaves as when its parent asks it to:
//! worker and event answer what their other connections have asked, and close those that are idle; a
//! listener that was just about to block leaves with the next thing that happens to it. It is replaced
//! by the model's own rule, so no sooner than Apache would. Under fork a child has one connection and
//! ends with it. All other models are one process, which would take the server along: only the
//! connection is closed.

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
