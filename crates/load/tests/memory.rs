//! What a load keeps stays small, however long it lasts and however many connections it has: counted by
//! the allocator itself, over the simulated driver. Owns the counting; must not share its process
//! with other tests, which would allocate too. Start reading at the test.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use joust_load::sim::{self, Script, SimDriver};
use joust_load::{Control, LoadOptions, run_on};
use record::{Interval, LoadPlan, Pacing};
use sys::allocations::{Counting, bytes_held};
use sys::driver::{Completion, Driver, Leave, Route, Slot};
use units::{Nanos, PerSecond};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The facts, one after the other: side by side they would count one another.
#[test]
fn memory_stays_small() {
    two_minutes_of_intervals_are_kept_in_a_few_megabytes();
    ten_thousand_connections_take_less_than_4_kilobytes_each();
    ten_times_the_duration_takes_no_more_memory();
}

fn two_minutes_of_intervals_are_kept_in_a_few_megabytes() {
    let mut options = LoadOptions::new("http://127.0.0.1:1/");
    options.draft.stop.duration = Some(Nanos::from_secs(120));
    options.draft.raw_max = 0;
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

/// A simulation that can say what it holds itself.
struct Weighed {
    driver: SimDriver,
    /// Most bytes of the whole process, and of the driver alone, as it was when it was made.
    held_max: &'static AtomicU64,
    own: u64,
}

static HELD_MAX: AtomicU64 = AtomicU64::new(0);

impl Weighed {
    fn new(script: &Script, n_slots: u32) -> Self {
        let before = bytes_held();
        let driver = SimDriver::new(script, 0, n_slots);
        let own = bytes_held() - before;
        Self { driver, held_max: &HELD_MAX, own }
    }
}

impl Driver for Weighed {
    fn name(&self) -> &'static str {
        self.driver.name()
    }

    fn begin(&mut self, origin: Nanos) {
        self.driver.begin(origin);
    }

    fn now(&mut self) -> Nanos {
        self.driver.now()
    }

    fn cpu(&mut self) -> Nanos {
        self.driver.cpu()
    }

    fn connect(&mut self, slot: Slot, route: &Route) {
        self.driver.connect(slot, route);
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) {
        self.driver.send(slot, bytes);
    }

    fn discard(&mut self, slot: Slot, n_bytes: u64) {
        self.driver.discard(slot, n_bytes);
    }

    fn close(&mut self, slot: Slot, how: Leave) {
        self.driver.close(slot, how);
    }

    fn wait(&mut self, until: Nanos) -> io::Result<()> {
        self.held_max.fetch_max(bytes_held() - self.own, Ordering::Relaxed);
        self.driver.wait(until)
    }

    fn poll(&mut self, until: Nanos) -> io::Result<()> {
        self.driver.poll(until)
    }

    fn next(&mut self) -> Option<Completion> {
        self.driver.next()
    }

    fn received(&self) -> &[u8] {
        self.driver.received()
    }
}

/// Most bytes that a load held at once, without the simulation of what is outside of it.
fn held_at_most(plan: &LoadPlan, watch: &dyn Fn(&Interval)) -> u64 {
    let script = Script::new(Nanos::from_millis(10));
    let interrupt = AtomicBool::new(false);
    let before = bytes_held();
    HELD_MAX.store(0, Ordering::Relaxed);
    let control = Control::new(&interrupt).watching(watch);
    let record = run_on(plan, &control, |_, n_slots| Ok(Weighed::new(&script, n_slots))).unwrap();
    assert_eq!(record.client.connections_open_max, record.connections);
    HELD_MAX.load(Ordering::Relaxed) - before
}

fn ten_thousand_connections_take_less_than_4_kilobytes_each() {
    let held = |connections, pipeline| {
        let mut options = LoadOptions::new("http://127.0.0.1:1/");
        (options.draft.connections, options.draft.pipeline, options.draft.cookies) =
            (connections, pipeline, true);
        options.draft.stop.requests = Some(10 * u64::from(connections) * u64::from(pipeline));
        options.draft.interval = Nanos::from_secs(1000);
        options.draft.raw_max = 0;
        held_at_most(&options.plan().unwrap(), &|_| ())
    };
    for pipeline in [1, 16] {
        let (few, many) = (held(10, pipeline), held(10_010, pipeline));
        let each = many.saturating_sub(few) / 10_000;
        assert!(each < 4096, "{each} bytes a connection, pipeline {pipeline}");
        // A canary: a connection does take something.
        assert!(each > 100, "{each} bytes a connection");
    }
}

fn ten_times_the_duration_takes_no_more_memory() {
    // Of every interval that is over: what was held then. Those that wait to be merged come and go,
    // so the least of a stretch is compared, not the most.
    let held = |seconds| {
        let mut options = LoadOptions::new("http://127.0.0.1:1/");
        options.draft.connections = 100;
        options.draft.pacing = Pacing::Constant { rate: PerSecond(12_000.0) };
        options.draft.stop.duration = Some(Nanos::from_secs(seconds));
        options.draft.queue_max = 1000;
        options.draft.raw_max = 1000;
        options.draft.interval = Nanos::from_millis(10);
        let all = Mutex::new(Vec::new());
        held_at_most(&options.plan().unwrap(), &|_| all.lock().unwrap().push(bytes_held()));
        let all = all.into_inner().unwrap();
        all[all.len() / 2..].iter().min().copied().unwrap()
    };
    // 1200 intervals fill what is kept of them; from then on neighbours are joined.
    let (short, long) = (held(12), held(120));
    assert!(long < short + short / 4, "{short} bytes, then {long}");
}
