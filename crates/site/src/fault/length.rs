//! `length`: a share of the answers is one byte shorter than its Content-Length says, and the connection is
//! closed after it. Start reading at [`Length`].
//!
//! Answers without a body (HEAD, 304) are left right, since nobody could see the fault. So are those of gateways.

use std::sync::Arc;

use super::{AnsweredBefore, Draw, Effect, FaultKind, Flaws, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "length",
    forms: "length=wrong:1% (this share of the answers is a byte short of its length), with ,seed=N",
    is_unique: true,
    read: |spec| {
        let seed = spec.seed()?;
        let typed = spec.first("wrong:SHARE")?;
        let share = typed.strip_prefix("wrong:").ok_or("it needs wrong:SHARE")?;
        Ok(Arc::new(Length { share: spec::share(share.trim())?, seed }))
    },
};

/// Each answer has this probability, independent of earlier ones.
#[derive(Debug)]
struct Length {
    /// Above 0 and at most 1.
    share: f64,
    seed: u64,
}

impl Effect for Length {
    fn flaw(&self, draw: Draw, _: AnsweredBefore, flaws: &mut Flaws) {
        flaws.is_short |= draw.unit(self.seed) <= self.share;
    }
}
