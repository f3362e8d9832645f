//! The request of a load: rendered once, sent many times. Owns the mapping of a plan to its bytes;
//! must not know connections. Start reading at [`render`].

use record::LoadPlan;
use wire::{RequestHead, RequestKind, Version, WriteError};

use crate::conn::Expectation;

/// The bytes of the plan's request.
///
/// # Errors
/// A method, target or field that cannot be sent as it stands.
pub(crate) fn render(plan: &LoadPlan) -> Result<Vec<u8>, WriteError> {
    let head = RequestHead {
        version: Version::Http11,
        method: &plan.method,
        target: &plan.target,
        host: &plan.host,
        fields: &plan.headers,
        body: &plan.body,
        keep_alive: plan.keep_alive,
    };
    head.render()
}

/// As [`render`], for a plan that was made by [`crate::LoadOptions::plan`].
pub(crate) fn bytes(plan: &LoadPlan) -> Vec<u8> {
    render(plan).expect("a plan's request was rendered once when the plan was made")
}

/// What its replies are measured by.
pub(crate) fn expectation(plan: &LoadPlan) -> Expectation {
    Expectation {
        kind: RequestKind::of(&plan.method),
        keep_alive: plan.keep_alive,
        verify: plan.verify,
    }
}
