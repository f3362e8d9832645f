//! Makes each request alone three times before the load: its body is what later ones are compared with.
//! Start reading at [`look_up_bodies`].

use std::io;

use record::{Bodies, ExpectedBody, LoadPlan, RequestPlan, is_redirect};
use sha2::{Digest as _, Sha256};
use units::Bytes;

use crate::check::hex_sha256;
use crate::fetch::{FetchError, Fetched, fetch_one};

/// Most requests of a plan that are looked up: the first ones.
pub const ORACLE_REQUESTS_MAX: usize = 100;

/// How often each request is made: two equal replies could both come from a cold cache.
const LOOKS: u64 = 3;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Oracle {
    /// Requests that were made for it.
    pub probes: u64,
    /// Requests of the plan whose bodies are not compared during the load.
    pub unverified: Vec<Unverified>,
}

/// A request whose body is not compared, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{request}: {why}")]
pub struct Unverified {
    /// The request ("GET /index.html").
    pub request: String,
    /// Why.
    pub why: WhyUnverified,
}

/// Why the body of a reply is not known before the load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhyUnverified {
    /// The request may change things, or the reply has no body.
    #[error("only GET requests are made before the load")]
    Method,
    /// Each sending differs.
    #[error("it has placeholders, so each request may get another body")]
    Placeholders,
    /// It comes after the first [`ORACLE_REQUESTS_MAX`] requests.
    #[error("only the first {ORACLE_REQUESTS_MAX} requests are made before the load")]
    TooMany,
    /// The load will count every such reply as failed.
    #[error("its reply has the status {0}, which --expect-status does not allow")]
    Status(u16),
    /// The body that counts is that of the redirect's target.
    #[error("its reply is a redirect ({0}), which --follow follows")]
    Redirect(u16),
    /// Two of the three bodies differ.
    #[error("its body is not the same each time ({first}, then {then})")]
    Changes {
        /// Length of the first body.
        first: Bytes,
        /// Length of one that differs.
        then: Bytes,
    },
}

impl WhyUnverified {
    /// Whether the plan alone decides this: no reply would change it.
    pub fn is_planned(&self) -> bool {
        matches!(self, Self::Method | Self::Placeholders | Self::TooMany)
    }
}

/// The requests of a plan whose bodies cannot be compared, whatever the replies are.
pub fn unverifiable(plan: &LoadPlan) -> Vec<Unverified> {
    let unverifiable = |index: usize| Some(unverified(plan, index, cannot_be_known(plan, index)?));
    (0..plan.requests.len()).filter_map(unverifiable).collect()
}

/// Finds out how the plan's requests are answered, if its [`record::Verify`] compares bodies, and writes it into the
/// plan.
///
/// # Errors
/// A request had no complete reply.
pub fn look_up_bodies(plan: &mut LoadPlan) -> Result<Oracle, FetchError> {
    let mut oracle = Oracle::default();
    if plan.verify.bodies == Bodies::None {
        return Ok(oracle);
    }
    for index in 0..plan.requests.len() {
        match look_up(plan, index, &mut oracle.probes)? {
            Ok(expected) => plan.requests[index].expected = Some(expected),
            Err(why) => oracle.unverified.push(unverified(plan, index, why)),
        }
    }
    Ok(oracle)
}

/// What one request is answered with, or why that is not known.
fn look_up(
    plan: &LoadPlan,
    index: usize,
    probes: &mut u64,
) -> Result<Result<ExpectedBody, WhyUnverified>, FetchError> {
    if let Some(why) = cannot_be_known(plan, index) {
        return Ok(Err(why));
    }
    let mut look = || -> Result<Fetched, FetchError> {
        let fetched = fetch_one(plan, index)?;
        *probes += 1;
        Ok(fetched)
    };
    let first = look()?;
    if !(plan.verify.status_min..=plan.verify.status_max).contains(&first.status) {
        return Ok(Err(WhyUnverified::Status(first.status)));
    }
    if plan.follow > 0 && is_redirect(first.status) {
        return Ok(Err(WhyUnverified::Redirect(first.status)));
    }
    for _ in 1..LOOKS {
        let again = look()?;
        if again.body != first.body {
            let [first, then] = [first, again].map(|fetched| Bytes(fetched.body.len() as u64));
            return Ok(Err(WhyUnverified::Changes { first, then }));
        }
    }
    Ok(Ok(ExpectedBody { length: Bytes(first.body.len() as u64), sha256: hex_sha256(&first.body) }))
}

/// The body that all bodies must equal, if they are compared with a local file.
///
/// # Errors
/// The file cannot be read.
pub fn expected_body(mut file: impl io::Read) -> io::Result<ExpectedBody> {
    let mut hash = Sha256::new();
    let length = Bytes(io::copy(&mut file, &mut hash)?);
    Ok(ExpectedBody { length, sha256: record::hex(&hash.finalize()) })
}

fn unverified(plan: &LoadPlan, index: usize, why: WhyUnverified) -> Unverified {
    Unverified { request: plan.name_of(&plan.requests[index]), why }
}

fn cannot_be_known(plan: &LoadPlan, index: usize) -> Option<WhyUnverified> {
    let request = &plan.requests[index];
    let is_fixed =
        !request.templated || crate::columns_needed(request).is_ok_and(|needed| needed.is_empty());
    if request.method != "GET" {
        Some(WhyUnverified::Method)
    } else if !is_fixed || has_holes(plan, request) {
        Some(WhyUnverified::Placeholders)
    } else {
        (index >= ORACLE_REQUESTS_MAX).then_some(WhyUnverified::TooMany)
    }
}

fn has_holes(plan: &LoadPlan, request: &RequestPlan) -> bool {
    crate::prepared::Prepared::new(plan, request).is_ok_and(|prepared| prepared.bytes().is_none())
}
