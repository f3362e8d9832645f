//! `keepalive`: the connection is closed after a number of answers, none of which announced it. A client
//! learns it from the end of the stream where the next answer should be. Start reading at [`KeepAlive`].
//!
//! A lower limit that the server announces (MaxKeepAliveRequests, `server.max-keep-alive-requests`) takes effect first.

use std::sync::Arc;

use super::{AnsweredBefore, Draw, Effect, FaultKind, Flaws, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "keepalive",
    forms: "keepalive=10 (answers after which a connection is closed unannounced)",
    is_unique: true,
    read: |spec| {
        let answers = spec::count(spec.first("the number of answers")?, u32::MAX)?;
        Ok(Arc::new(KeepAlive { answers }))
    },
};

/// How long a connection lives.
#[derive(Debug)]
struct KeepAlive {
    /// At least 1.
    answers: u32,
}

impl Effect for KeepAlive {
    fn flaw(&self, _: Draw, answered: AnsweredBefore, flaws: &mut Flaws) {
        flaws.ends |= answered.on_connection + 1 >= self.answers;
    }
}
