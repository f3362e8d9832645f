//! `empty-first`: the first answer of each connection is a 200 with an empty body. A client that takes the
//! first answer as its reference then calls all others wrong. Start reading at [`EmptyFirst`].
//!
//! Only what would be a 200 is made empty; what a gateway answers is left.

use std::sync::Arc;

use super::{AnsweredBefore, Draw, Effect, FaultKind, Flaws};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "empty-first",
    forms: "empty-first (the first answer of each connection has an empty body)",
    is_unique: true,
    read: |_| Ok(Arc::new(EmptyFirst)),
};

/// The first of each connection.
#[derive(Debug)]
struct EmptyFirst;

impl Effect for EmptyFirst {
    fn flaw(&self, _: Draw, answered: AnsweredBefore, flaws: &mut Flaws) {
        flaws.is_empty |= answered.on_connection == 0;
    }
}
