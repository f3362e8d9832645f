//! `nodelay`: TCP_NODELAY is off, and an answer leaves in two sends, its head and then the rest. The second
//! send waits for the acknowledgement of the first (RFC 896). The client's kernel delays that by 40 ms once
//! the connection is no longer new. What a gateway answers leaves as it comes. Start reading at [`Nagle`].

use std::sync::Arc;

use super::{AnsweredBefore, Draw, Effect, FaultKind, Flaws};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "nodelay",
    forms: "nodelay=off (head and body in two sends, without TCP_NODELAY)",
    is_unique: true,
    read: |spec| match spec.first("`off`")? {
        "off" => Ok(Arc::new(Nagle)),
        other => Err(format!("`{other}` is not off")),
    },
};

/// Two sends for an answer, without TCP_NODELAY.
#[derive(Debug)]
struct Nagle;

impl Effect for Nagle {
    fn flaw(&self, _: Draw, _: AnsweredBefore, flaws: &mut Flaws) {
        flaws.is_split = true;
    }

    fn is_nodelay_off(&self) -> bool {
        true
    }
}
