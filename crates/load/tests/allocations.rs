//! After warm-up nothing is allocated for a request: counted by the allocator itself, over the
//! simulated driver. Owns the counting; must not share its process with other tests, which would
//! allocate too. Start reading at the test.

use std::sync::atomic::AtomicBool;

use joust_load::sim::{self, Act, Script};
use joust_load::{Control, LoadOptions};
use record::{Bodies, ExpectedBody, Pacing, Pick, Spread};
use sha2::{Digest as _, Sha256};
use sys::allocations::Counting;
use units::{Bytes, Nanos, PerSecond};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A kind of load, and the server that it meets.
struct Case {
    name: &'static str,
    options: fn(&mut LoadOptions),
    /// Lengths of the bodies that are asked for in turn.
    bodies: &'static [usize],
    acts: &'static [(Act, u32)],
}

const CALM: &[(Act, u32)] = &[(Act::Reply, 1)];

const ROUGH: &[(Act, u32)] = &[
    (Act::Reply, 20),
    (Act::Dribble { bytes: 60, gap: Nanos(100) }, 1),
    (Act::Pause { bytes: 9, gap: Nanos(100) }, 1),
    (Act::ReplySayingClose, 1),
    (Act::Chunked, 1),
    (Act::Interim, 1),
    (Act::Reset(20), 1),
    (Act::HalfClose(Nanos::ZERO), 1),
    (Act::Garbage, 1),
    (Act::Status(404), 1),
];

const CASES: &[Case] = &[
    Case { name: "closed", options: |_| {}, bodies: &[100], acts: CALM },
    Case {
        name: "no keep-alive",
        options: |o| o.draft.keep_alive = false,
        bodies: &[100],
        acts: CALM,
    },
    Case { name: "faults", options: |_| {}, bodies: &[100], acts: ROUGH },
    Case {
        name: "several requests at random, hashed",
        options: |o| (o.draft.pick, o.draft.verify.bodies) = (Pick::AtRandom, Bodies::Hash(0.5)),
        bodies: &[0, 10, 3000],
        acts: ROUGH,
    },
    Case { name: "discards", options: |_| {}, bodies: &[100_000, 20_000], acts: ROUGH },
    Case { name: "pipelining", options: |o| o.draft.pipeline = 8, bodies: &[1, 100], acts: ROUGH },
    Case {
        name: "thinking",
        options: |o| {
            let pause = Nanos::from_millis(3);
            o.draft.pacing = Pacing::Think { pause, spread: Spread::Exponential };
        },
        bodies: &[100],
        acts: ROUGH,
    },
    Case {
        name: "open loop",
        options: |o| o.draft.pacing = Pacing::Poisson { rate: PerSecond(5000.0) },
        bodies: &[100],
        acts: CALM,
    },
    Case {
        name: "open loop that the server does not keep up with",
        options: |o| {
            o.draft.pacing = Pacing::Constant { rate: PerSecond(40_000.0) };
            o.draft.queue_max = 1000;
        },
        bodies: &[100, 20_000],
        acts: ROUGH,
    },
    Case {
        name: "placeholders",
        options: |o| {
            (o.method, o.body) = ("POST".to_owned(), b"n={seq}&r={rand:1-9}".to_vec());
            o.headers.push("X-Number: {seq}".to_owned());
        },
        bodies: &[100],
        acts: ROUGH,
    },
];

/// Allocations of a whole load of `requests` requests, from making its threads to its record.
fn allocations(requests: u64, case: &Case) -> u64 {
    let mut options = LoadOptions::new("http://127.0.0.1:1/");
    options.draft.connections = 16;
    options.draft.stop.requests = Some(requests);
    options.draft.interval = Nanos::from_secs(100_000);
    options.draft.raw_max = 100;
    (case.options)(&mut options);
    let mut plan = options.plan().unwrap();
    let request = plan.requests[0].clone();
    let asked = case.bodies.iter().map(|n_bytes| {
        let mut request = request.clone();
        request.target = format!("/{n_bytes}");
        let digest = Sha256::digest(sim::body(*n_bytes));
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        request.expected = Some(ExpectedBody { length: Bytes(*n_bytes as u64), sha256 });
        request
    });
    plan.requests = asked.collect();
    let delay = Nanos::from_millis(1);
    let script = Script { acts: case.acts.to_vec(), segment_bytes: 16_384, ..Script::new(delay) };
    let interrupt = AtomicBool::new(false);
    let before = sys::allocations::count();
    let record = sim::run(&plan, &Control::new(&interrupt), &script).unwrap();
    let allocations = sys::allocations::count() - before;
    assert_eq!(record.requests.done, requests);
    assert!(record.requests.ok > requests / 3, "{}: {:?}", case.name, record.errors);
    allocations
}

#[test]
fn a_request_allocates_nothing_after_warm_up() {
    for case in CASES {
        let few = allocations(10_000, case);
        let many = allocations(60_000, case);
        // A canary for the counting itself: a load does allocate, at its start and its end. Between
        // the two sizes only what is rare may differ (a connection slot that meets its first large
        // head), by a handful.
        assert!(few > 16, "the allocator counts");
        let name = case.name;
        assert!(many.abs_diff(few) < 50, "{name}: {few}, then {many}: something is allocated");
    }
}
