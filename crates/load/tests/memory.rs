//! What a load keeps stays small however long it lasts: counted by the allocator itself, over the
//! simulated driver. Owns the counting; must not share its process with other tests, which would
//! allocate too. Start reading at the test.

use std::sync::atomic::AtomicBool;

use joust_load::sim::{self, Script};
use joust_load::{Control, LoadOptions};
use sys::allocations::{Counting, bytes_held};
use units::Nanos;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn two_minutes_of_intervals_are_kept_in_a_few_megabytes() {
    let mut options = LoadOptions::new("http://127.0.0.1:1/");
    options.duration = Some(Nanos::from_secs(120));
    options.raw_max = 0;
    let plan = options.plan().unwrap();
    let script = Script::new(Nanos::from_millis(10));
    let interrupt = AtomicBool::new(false);
    let before = bytes_held();
    let record = sim::run(&plan, &Control::new(&interrupt), &script).unwrap();
    let held = bytes_held() - before;
    assert!(record.intervals.len() >= 600, "{}", record.intervals.len());
    // Each with two open histograms, it was 650 MB.
    assert!(held < 20_000_000, "{held} bytes");
}
