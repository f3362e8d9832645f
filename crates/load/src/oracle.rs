//! What is answered, before a load: each request is made alone three times, and its body is what
//! every later one is compared with. Owns the comparison of the three; must not know the load.
//! Start reading at [`look_up_bodies`].

use record::{Bodies, ExpectedBody, LoadPlan, RequestPlan, is_redirect};
use units::Bytes;

use crate::check::hex_sha256;
use crate::fetch::{FetchError, fetch_one};

/// Most requests of a plan that are looked up; of more, the first so many.
pub const ORACLE_REQUESTS_MAX: usize = 100;

/// How often each is made: two that agree could do so by chance of a cache that was cold.
const LOOKS: u64 = 3;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oracle {
    /// Requests that were made for it.
    pub probes: u64,
    /// Requests whose bodies differ from one time to the next, each in words: they are not compared.
    pub changing: Vec<String>,
    /// Requests that were not looked up, since their bodies cannot be known or asking changes things:
    /// other methods than GET, and those with placeholders.
    pub skipped: u64,
}

/// Finds out what the plan's requests are answered with, where its [`record::Verify`] compares
/// bodies, and writes it into the plan.
///
/// # Errors
/// A request had no complete reply, one of an unexpected status included in `FetchError::Status`.
pub fn look_up_bodies(plan: &mut LoadPlan) -> Result<Oracle, FetchError> {
    let mut oracle = Oracle::default();
    if plan.verify.bodies == Bodies::None {
        return Ok(oracle);
    }
    for index in 0..plan.requests.len() {
        let request = &plan.requests[index];
        if index >= ORACLE_REQUESTS_MAX || !can_be_known(plan, request) {
            oracle.skipped += 1;
            continue;
        }
        let first = fetch_one(plan, index)?;
        oracle.probes += 1;
        let expected = plan.verify.status_min..=plan.verify.status_max;
        if !expected.contains(&first.status) {
            // The load will say so of every reply; there is no body to compare.
            continue;
        }
        if plan.follow > 0 && is_redirect(first.status) {
            // The body that counts is that of where it leads.
            continue;
        }
        let mut sha256 = Some(hex_sha256(&first.body));
        for _ in 1..LOOKS {
            let again = fetch_one(plan, index)?;
            oracle.probes += 1;
            if again.body != first.body {
                let target = &plan.requests[index].target;
                let (one, other) = (Bytes(first.body.len() as u64), Bytes(again.body.len() as u64));
                oracle.changing.push(format!("{target}: {one}, then {other}"));
                sha256 = None;
                break;
            }
        }
        let length = Bytes(first.body.len() as u64);
        plan.requests[index].expected = sha256.map(|sha256| ExpectedBody { length, sha256 });
    }
    Ok(oracle)
}

fn can_be_known(plan: &LoadPlan, request: &RequestPlan) -> bool {
    let is_fixed =
        !request.templated || crate::columns_needed(request).is_ok_and(|needed| needed.is_empty());
    request.method == "GET" && is_fixed && !has_holes(plan, request)
}

fn has_holes(plan: &LoadPlan, request: &RequestPlan) -> bool {
    crate::prepared::Prepared::new(plan, request).is_ok_and(|prepared| prepared.bytes().is_none())
}
