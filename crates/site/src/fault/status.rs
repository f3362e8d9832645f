//! `status`: a share of the requests is answered with an error, and sooner than the others. Start reading at
//! [`Status`].
//!
//! The page is the one that the site has for that status, and no work is done for it: `delay` and `stall` do not hold
//! it, and it needs none of the `slots`. The connection stays open. A request that cannot be read is refused as without
//! the fault.

use std::sync::Arc;

use super::{AnsweredBefore, Draw, Effect, FaultKind, Flaws, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "status",
    forms: "status=503:5% (this share of the requests gets this error at once), with ,seed=N",
    is_unique: false,
    read: |spec| {
        let seed = spec.seed()?;
        let typed = spec.first("CODE:SHARE")?;
        let (code, share) = typed.split_once(':').ok_or("the share is missing behind the code")?;
        let status = code.trim().parse().ok().filter(|status| (400..=599).contains(status));
        let status =
            status.ok_or_else(|| format!("the status must be 400 to 599, got `{code}`"))?;
        Ok(Arc::new(Status { status, share: spec::share(share.trim())?, seed }))
    },
};

/// Each request has this probability, independent of earlier ones.
#[derive(Debug)]
struct Status {
    /// 400 to 599.
    status: u16,
    /// Above 0 and at most 1.
    share: f64,
    seed: u64,
}

impl Effect for Status {
    fn flaw(&self, draw: Draw, _: AnsweredBefore, flaws: &mut Flaws) {
        if draw.unit(self.seed) <= self.share {
            flaws.status = flaws.status.or(Some(self.status));
        }
    }
}
