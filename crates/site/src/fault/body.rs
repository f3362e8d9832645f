//! `body`: from a given answer on, bodies are zeros of the right length. It stands for a server that fails
//! under load in a way that status and length do not show. Start reading at [`Body`].
//!
//! Each 200 that has a body is changed. A body of more than 8 MiB is sent as it is, and so are answers
//! to HEAD, ranges and what a gateway answers.

use std::sync::Arc;

use super::{AnsweredBefore, Draw, Effect, FaultKind, Flaws, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "body",
    forms: "body=zeros,after:3000 (bodies are zeros after 3000 answers, or from the start without `after`)",
    is_unique: true,
    read: |spec| match spec.first("`zeros`")? {
        "zeros" => {
            let after = spec.named("after").map(|typed| spec::count(typed, u32::MAX));
            Ok(Arc::new(Body { after: after.transpose()?.unwrap_or(0) }))
        }
        other => Err(format!("`{other}` is not zeros")),
    },
};

/// All answers of the server but the first `after`.
#[derive(Debug)]
struct Body {
    after: u32,
}

impl Effect for Body {
    fn flaw(&self, draw: Draw, _: AnsweredBefore, flaws: &mut Flaws) {
        flaws.is_zeroed |= draw.number >= u64::from(self.after);
    }
}
