//! Whether a reply is the expected one, beyond its framing: header fields, a part of its body, its length and hash.
//! Start reading at [`Checks`], which apply to all replies, then [`BodyWatch`], for the reply that is being read.
//!
//! A body is looked at only if something asks for it; otherwise the kernel may throw its bytes away. Hashing costs
//! about 0.8 ns a byte and goes piece by piece, so that it delays no stamp by more than a receive buffer's worth.
//! `hashing` decides which replies are hashed.

use record::{Bodies, ExpectedBody, LoadPlan, Outcome, is_redirect};
use sha2::{Digest as _, Sha256};
use units::Nanos;
use wire::Fields;

use crate::hashing::{Different, HashCounts, HashTurns};

/// The checks for all replies of a load.
pub(crate) struct Checks {
    status_min: u16,
    status_max: u16,
    length: Option<u64>,
    headers: Vec<(String, Option<String>)>,
    contains: Option<Vec<u8>>,
    /// For each request of the plan.
    bodies: Vec<Option<Body>>,
    /// Whether redirects are followed; then the body of a redirect does not count.
    follows: bool,
}

struct Body {
    length: u64,
    sha256: [u8; 32],
}

impl Checks {
    pub(crate) fn new(plan: &LoadPlan) -> Self {
        let verify = &plan.verify;
        let body = |expected: &ExpectedBody| Body {
            length: expected.length.0,
            sha256: unhex(&expected.sha256),
        };
        let compared = verify.bodies != Bodies::None;
        let bodies = plan.requests.iter().map(|request| {
            let is_head = request.method == "HEAD";
            request.expected.as_ref().filter(|_| compared && !is_head).map(body)
        });
        Self {
            status_min: verify.status_min,
            status_max: verify.status_max,
            length: verify.length.map(|length| length.0),
            headers: verify.headers.clone(),
            contains: verify.contains.as_ref().map(|text| text.clone().into_bytes()),
            bodies: bodies.collect(),
            follows: plan.follow > 0,
        }
    }

    /// Whether the reply has the header fields that were asked for.
    #[inline]
    pub(crate) fn has_headers(&self, fields: Fields<'_>) -> bool {
        self.headers.iter().all(|(name, wanted)| match wanted {
            None => fields.get(name).is_some(),
            Some(wanted) => fields.all(name).any(|value| value == wanted.as_bytes()),
        })
    }

    /// The outcome of a complete reply. If its body was hashed, `counts` is updated.
    #[inline]
    pub(crate) fn judge(&self, reply: &Judged<'_>, counts: &mut HashCounts) -> Outcome {
        let Judged { request, status, body_bytes, is_head, has_headers, watch, .. } = *reply;
        let differs = |length: Option<u64>| length.is_some_and(|length| length != body_bytes);
        if !(self.status_min..=self.status_max).contains(&status) {
            return Outcome::UnexpectedStatus;
        }
        if !has_headers {
            return Outcome::WrongHeader;
        }
        if is_head || status == 304 {
            return Outcome::Ok;
        }
        let body = self.bodies.get(request as usize).and_then(Option::as_ref);
        if differs(self.length) || differs(body.map(|body| body.length)) {
            return Outcome::WrongLength;
        }
        let differs = watch.is_hashed
            && !(self.follows && is_redirect(status))
            && body.is_some_and(|body| watch.differs(body, reply, counts));
        let lacks = self.contains.is_some() && !watch.is_found;
        if differs || lacks { Outcome::WrongBody } else { Outcome::Ok }
    }
}

/// A complete reply, as far as checks need it.
#[derive(Clone, Copy)]
pub(crate) struct Judged<'a> {
    /// Index of its request.
    pub(crate) request: u32,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    /// Whether the request was HEAD.
    pub(crate) is_head: bool,
    pub(crate) has_headers: bool,
    /// When it was complete.
    pub(crate) at: Nanos,
    pub(crate) watch: &'a BodyWatch,
}

/// What was seen of the body that is being read on one connection.
#[derive(Default)]
pub(crate) struct BodyWatch {
    /// Reset for each reply that is hashed, and kept, so that nothing is allocated again.
    hash: Option<Box<Sha256>>,
    is_hashed: bool,
    /// Number of the last hashed reply among the replies of its thread.
    nth: u64,
    /// The end of what was seen: the text that is looked for may span two pieces.
    tail: Vec<u8>,
    is_found: bool,
}

impl BodyWatch {
    /// A reply begins, the `nth` of its thread.
    #[inline]
    pub(crate) fn begin(&mut self, checks: &Checks, turns: &mut HashTurns, request: u32, nth: u64) {
        self.is_found = false;
        self.is_hashed = false;
        if turns.is_due(nth)
            && let Some(Some(body)) = checks.bodies.get(request as usize)
        {
            turns.take(nth, body.length);
            (self.is_hashed, self.nth) = (true, nth);
            self.hash.get_or_insert_default().reset();
        }
        if checks.contains.is_some() {
            self.tail.clear();
        }
    }

    /// Whether any check needs the body.
    #[inline]
    pub(crate) fn wants_body(&self, checks: &Checks) -> bool {
        self.is_hashed || (checks.contains.is_some() && !self.is_found)
    }

    /// The next bytes of the body.
    #[inline]
    pub(crate) fn see(&mut self, checks: &Checks, bytes: &[u8]) {
        if self.is_hashed
            && let Some(hash) = &mut self.hash
        {
            hash.update(bytes);
        }
        if let Some(wanted) = &checks.contains
            && !self.is_found
        {
            self.search(wanted, bytes);
        }
    }

    fn search(&mut self, wanted: &[u8], bytes: &[u8]) {
        let across = wanted.len().saturating_sub(1);
        let from = self.tail.len();
        self.tail.extend_from_slice(&bytes[..bytes.len().min(across)]);
        self.is_found = contains(&self.tail, wanted) || contains(bytes, wanted);
        if bytes.len() > across {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - across..]);
        } else {
            // The whole piece is in the tail already; only the front of the tail is no longer needed.
            let surplus = (from + bytes.len()).saturating_sub(across);
            self.tail.drain(..surplus);
        }
    }

    /// Whether the hashed body differs from the expected one; the result is counted.
    #[cold]
    fn differs(&self, body: &Body, reply: &Judged<'_>, counts: &mut HashCounts) -> bool {
        let hash = self.hash.as_deref().expect("a body that is hashed has a hash");
        let sha256: [u8; 32] = hash.clone().finalize().into();
        let Judged { request, at, .. } = *reply;
        let different = || Different { at, request, nth: self.nth, sha256 };
        let is_other = sha256 != body.sha256;
        counts.add(is_other.then(different));
        is_other
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || memchr::memmem::find(bytes, wanted).is_some()
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hex_sha256(bytes: &[u8]) -> String {
    record::hex(&Sha256::digest(bytes))
}

/// A digest back from its digits; invalid digits match no body.
fn unhex(digits: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        let pair = digits.get(2 * index..2 * index + 2);
        *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or_default();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::{BodiesVerified, RequestPlan};
    use units::Bytes;

    use super::*;

    fn plan(bodies: Bodies, contains: Option<&str>, body: &[u8]) -> LoadPlan {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        plan.verify.bodies = bodies;
        plan.verify.contains = contains.map(str::to_owned);
        let expected = ExpectedBody { length: Bytes(body.len() as u64), sha256: hex_sha256(body) };
        plan.requests = vec![RequestPlan { expected: Some(expected), ..RequestPlan::get("/") }];
        plan
    }

    fn judge(plan: &LoadPlan, pieces: &[&[u8]]) -> Outcome {
        judge_counted(plan, pieces).0
    }

    /// The same with what was counted.
    fn judge_counted(plan: &LoadPlan, pieces: &[&[u8]]) -> (Outcome, BodiesVerified) {
        let checks = Checks::new(plan);
        let (mut watch, mut counts) = (BodyWatch::default(), HashCounts::default());
        watch.begin(&checks, &mut HashTurns::new(plan, 0), 0, 0);
        pieces.iter().for_each(|piece| watch.see(&checks, piece));
        let reply = Judged {
            request: 0,
            status: 200,
            body_bytes: pieces.iter().map(|piece| piece.len() as u64).sum(),
            is_head: false,
            has_headers: true,
            at: Nanos(7),
            watch: &watch,
        };
        let outcome = checks.judge(&reply, &mut counts);
        (outcome, counts.for_record(plan))
    }

    #[test]
    fn a_hash_tells_a_body_of_the_right_length_and_the_wrong_bytes() {
        let plan = plan(Bodies::Hash(1.0), None, b"hello world");
        assert_eq!(judge(&plan, &[b"hello ", b"world"]), Outcome::Ok);
        assert_eq!(judge(&plan, &[b"hello", b" w0rld"]), Outcome::WrongBody);
        let (outcome, counted) = judge_counted(&plan, &[b"hello"]);
        assert_eq!((outcome, counted.verified), (Outcome::WrongLength, 0));
        assert_eq!(judge_counted(&plan, &[b"hello world"]).1.verified, 1);
        let counted = judge_counted(&plan, &[b"hello w0rld"]).1;
        assert_eq!((counted.verified, counted.differ), (1, 1));
        let first = counted.first.unwrap();
        assert_eq!((first.at, first.request.as_str()), (Nanos(7), "GET /"));
        assert_eq!(first.expected, hex_sha256(b"hello world"));
        assert_eq!(first.got, hex_sha256(b"hello w0rld"));
    }

    #[test]
    fn the_length_alone_does_not_look_at_bytes() {
        let plan = plan(Bodies::Length, None, b"hello");
        let checks = Checks::new(&plan);
        let mut watch = BodyWatch::default();
        watch.begin(&checks, &mut HashTurns::new(&plan, 0), 0, 0);
        assert!(!watch.wants_body(&checks));
        assert_eq!(judge(&plan, &[b"jello"]), Outcome::Ok);
        assert_eq!(judge(&plan, &[b"jelly!"]), Outcome::WrongLength);
    }

    proptest! {
        /// The oracle is a search in the whole.
        #[test]
        fn a_part_is_found_however_the_body_is_divided(
            body in prop::collection::vec(0u8..3, 0..40),
            wanted in prop::collection::vec(0u8..3, 1..5),
            cuts in prop::collection::vec(0usize..40, 0..6),
        ) {
            let wanted = String::from_utf8(wanted).unwrap();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
            let mut plan = plan(Bodies::None, Some(&wanted), &body);
            plan.requests[0].expected = None;
            let is_there = body.windows(wanted.len()).any(|part| part == wanted.as_bytes());
            let expected = if is_there { Outcome::Ok } else { Outcome::WrongBody };
            prop_assert_eq!(judge(&plan, &pieces), expected);
        }
    }
}
