//! After warm-up nothing is allocated for a request: counted by the allocator itself, over the
//! simulated driver. Owns the counting; must not share its process with other tests, which would
//! allocate too. Start reading at the test.

use std::sync::atomic::AtomicBool;

use joust_load::sim::{self, Act, Script};
use joust_load::{Control, LoadOptions};
use sys::allocations::Counting;
use units::Nanos;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of a whole load of `requests` requests, from making its threads to its record.
fn allocations(requests: u64, keep_alive: bool, acts: &[(Act, u32)]) -> u64 {
    let mut options = LoadOptions::new("http://127.0.0.1:1/");
    options.connections = 16;
    options.requests = Some(requests);
    options.keep_alive = keep_alive;
    options.interval = Nanos::from_secs(100_000);
    options.raw_max = 100;
    let plan = options.plan().unwrap();
    let script = Script { acts: acts.to_vec(), ..Script::new(Nanos::from_millis(1)) };
    let interrupt = AtomicBool::new(false);
    let before = sys::allocations::count();
    let record = sim::run(&plan, &Control::new(&interrupt), &script).unwrap();
    let allocations = sys::allocations::count() - before;
    assert_eq!(record.requests.done, requests);
    allocations
}

#[test]
fn a_request_allocates_nothing_after_warm_up() {
    let all = [
        (Act::Reply, 20),
        (Act::Dribble { bytes: 9, gap: Nanos(100) }, 1),
        (Act::ReplySayingClose, 1),
        (Act::Chunked, 1),
        (Act::Interim, 1),
        (Act::Reset(20), 1),
        (Act::Status(404), 1),
    ];
    for (keep_alive, acts) in [(true, &all[..1]), (false, &all[..1]), (true, &all[..])] {
        let few = allocations(20_000, keep_alive, acts);
        let many = allocations(200_000, keep_alive, acts);
        // A canary for the counting itself: a load does allocate, at its start and its end. Between
        // the two sizes only the length of what the end prepares may differ, by a handful.
        assert!(few > 16, "the allocator counts");
        assert!(many.abs_diff(few) < 50, "{few} then {many}: something is allocated per request");
    }
}
