//! Bodies that are verified under load: how many, and what is said of one that differs. Owns the facts
//! about sampling on a running load; must not touch a socket. Start reading at the first test.

use joust_load::sim::{self, Act, Script};
use record::{Bodies, ExpectedBody, LoadPlan, LoadRecord};
use sha2::{Digest as _, Sha256};
use units::Bytes;

use crate::common::{MS, plan, run};

const REQUESTS: u64 = 20_000;

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A load that compares bodies of that length, which the simulated server sends.
fn verifying(bodies: Bodies, n_bytes: usize) -> (LoadPlan, Script) {
    let mut plan = plan(|o| {
        (o.draft.connections, o.draft.threads, o.draft.stop.requests) = (8, 2, Some(REQUESTS))
    });
    let sha256 = hex(&sim::body(n_bytes));
    plan.requests[0].expected = Some(ExpectedBody { length: Bytes(n_bytes as u64), sha256 });
    plan.verify.bodies = bodies;
    (plan, Script { body_bytes: n_bytes, segment_bytes: 16_384, ..Script::new(MS) })
}

fn verified(bodies: Bodies, n_bytes: usize, acts: &[(Act, u32)]) -> LoadRecord {
    let (plan, script) = verifying(bodies, n_bytes);
    run(&plan, &Script { acts: acts.to_vec(), ..script })
}

#[test]
fn bodies_are_verified_at_the_share_that_was_asked_for() {
    // The number of hashed ones has a standard deviation of 58 % of its root: five of those on
    // either side, and the first of each thread.
    let cases = [(Bodies::Hash(1.0), REQUESTS..=REQUESTS), (Bodies::Hash(0.01), 158..=244)];
    for (bodies, expected) in cases {
        for n_bytes in [100, 40_000] {
            for act in [Act::Reply, Act::Chunked, Act::ReplySayingClose] {
                let record = verified(bodies, n_bytes, &[(act, 1)]);
                let counted = &record.bodies_verified;
                assert_eq!((record.requests.ok, counted.differ), (REQUESTS, 0), "{act:?}");
                assert_eq!(counted.first, None);
                assert!(expected.contains(&counted.verified), "{act:?} {bodies:?}: {counted:?}");
            }
        }
    }
    for (bodies, n_bytes, expected) in [
        (Bodies::Sample, 100, 158..=244),
        (Bodies::Sample, 40_000, 10..=200),
        (Bodies::Length, 100, 0..=0),
    ] {
        let counted = verified(bodies, n_bytes, &[(Act::Reply, 1)]).bodies_verified;
        assert!(expected.contains(&counted.verified), "{bodies:?} {n_bytes}: {counted:?}");
    }
}

#[test]
fn a_body_of_the_right_length_and_other_bytes_is_found_and_the_first_is_told() {
    for n_bytes in [100, 40_000] {
        let acts = [(Act::Reply, 3), (Act::OtherBytes, 1)];
        let record = verified(Bodies::Hash(0.1), n_bytes, &acts);
        let counted = &record.bodies_verified;
        assert!(counted.verified > 1_500, "{counted:?}");
        let share = counted.differ as f64 / counted.verified as f64;
        assert!((0.15..0.35).contains(&share), "a quarter, by chance: {counted:?}");
        assert_eq!(counted.differ, record.errors.wrong_body, "no speed is made of what differs");
        let first = counted.first.as_ref().unwrap();
        assert_eq!(first.request, "GET /");
        assert_eq!(first.got, hex(&vec![b'y'; n_bytes]));
        assert_eq!(first.expected, hex(&sim::body(n_bytes)));
        assert!(first.at.as_secs_f64() <= record.seconds && first.at >= MS, "{first:?}");
    }
}

#[test]
fn which_bodies_are_verified_is_up_to_the_seed_alone() {
    let first = |seed| {
        let (mut plan, script) = verifying(Bodies::Hash(0.01), 100);
        plan.seed = seed;
        let acts = vec![(Act::Reply, 1), (Act::OtherBytes, 1)];
        run(&plan, &Script { acts, ..script }).bodies_verified
    };
    assert_eq!(first(1), first(1));
    assert!((2..6).any(|seed| first(seed) != first(1)));
}
