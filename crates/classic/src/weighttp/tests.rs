//! Writing weighttp's reports and parsing them back, and their layout with fixed figures.

use std::sync::Arc;

use proptest::prelude::*;
use record::{Answer, Asking, LoadPlan, LoadRecord, Outcome, Sample, Scenario as _, Seats};
use units::{Bytes, Nanos};

use super::flags::{self, BANNER, Flags};
use super::printer::Weighttp;
use super::workers::tests::sample;
use super::workers::{Counts, Rules, Shared, Workers};
use super::{read, text};
use crate::command::Chosen;
use crate::command::testing::{World, args};
use crate::command::{Call, Closing, Finished, Printer as _, Progress, Stream};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n";

fn flags(line: &str) -> Flags {
    let (args, world) = (args(line), World::default());
    flags::parse(&Call { program: "weighttp", args: &args, own: &Chosen::default(), world: &world })
        .expect("a command line")
}

/// The shared state after each thread has received its samples.
fn heard(flags: &Flags, samples: &[&[Sample]]) -> Arc<Shared> {
    let rules = Rules::Old { keep_alive: flags.keep_alive };
    let workers = Workers::new(b"GET".to_vec(), flags.requests, flags.threads, rules);
    for (thread, samples) in (0..).zip(samples) {
        let mut users = workers.users(Seats { thread, first: thread, n: 1 });
        for sample in *samples {
            users.ask(thread, &mut Asking::new(1));
            users.request_ended(&Answer { sample, head: HEAD, body: b"" });
        }
    }
    workers.shared()
}

fn record(seconds: f64) -> LoadRecord {
    let plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/x");
    LoadRecord { seconds, ..LoadRecord::empty(plan) }
}

fn closing(weighttp: &mut Weighttp, record: &LoadRecord) -> Closing {
    let local_time = |_| unreachable!("nothing is dated");
    weighttp.closing(&Finished { record, began: Nanos::ZERO, local_time: &local_time })
}

#[test]
fn a_run_is_printed_as_weighttp_prints_it() {
    let flags = flags("-n 7 -c 2 -t 2 -k h");
    let ok = sample(200, Outcome::Ok);
    let late = Sample { done: Nanos::from_millis(900), ..ok };
    let refused = sample(0, Outcome::ConnectRefused);
    let shared = heard(&flags, &[&[ok, ok, sample(404, Outcome::Ok), refused], &[ok, ok, late]]);
    let mut weighttp = Weighttp::new(flags, shared);
    let opening = "starting benchmark...\n\
        spawning thread #1: 1 concurrent requests, 4 total requests\n\
        spawning thread #2: 1 concurrent requests, 3 total requests\n";
    assert_eq!(weighttp.opening().on(Stream::Out), format!("{BANNER}{opening}"));
    let so_far = weighttp.progress(&Progress { started: 7, done: 7, elapsed: Nanos::ZERO });
    let progress =
        "progress:  25% done\nprogress:  50% done\nprogress:  75% done\nprogress: 100% done\n";
    assert_eq!(so_far.on(Stream::Out), progress);
    assert_eq!(so_far.on(Stream::Err), "error: connect() failed: Connection refused (111)\n");
    let closing = closing(&mut weighttp, &record(1.234_567));
    let expected = "\nfinished in 1 sec, 234 millisec and 567 microsec, 5 req/s, 0 kbyte/s\n\
        requests: 7 total, 7 started, 7 done, 5 succeeded, 2 failed, 0 errored\n\
        status codes: 5 2xx, 0 3xx, 1 4xx, 0 5xx\n\
        traffic: 900 bytes total, 650 bytes http, 250 bytes data\n";
    assert_eq!((closing.texts.on(Stream::Out).as_str(), closing.code), (expected, 0));
    let notes = closing.footnotes.join("\n");
    for part in [
        "always prints 0 errored requests: 1 of the failed",
        "bytes http include 50 bytes of bodies of failed replies",
        "they were 5.67 req/s and 0.71 kbyte/s",
        "progress shows thread 1 only",
        "one thread was done after 0.000 s and its connections were idle then; the last was done after 0.900 s",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

/// The signal ends weighttp.
#[test]
fn an_interrupted_run_has_no_report() {
    let flags = flags("-n 7 h");
    let shared = heard(&flags, &[&[sample(200, Outcome::Ok)]]);
    let mut weighttp = Weighttp::new(flags, shared);
    let closing = closing(&mut weighttp, &LoadRecord { interrupted: true, ..record(1.0) });
    assert_eq!(
        (closing.texts.on(Stream::Out).as_str(), closing.code),
        ("progress:  14% done\n", 130)
    );
    assert!(closing.footnotes[0].contains("1 requests were done"));
}

fn counts() -> impl Strategy<Value = Counts> {
    let counts = prop::array::uniform8(0..1_000_000u64);
    (counts, 0..1u64 << 40, 0..1u64 << 40).prop_map(|(counts, bodies, heads)| {
        let [started, done, succeeded, failed, c2, c3, c4, c5] = counts;
        let classes = [c2, c3, c4, c5];
        let bytes = bodies + heads;
        Counts { started, done, succeeded, failed, classes, bytes, bodies, ..Counts::default() }
    })
}

proptest! {
    #[test]
    fn what_0_4_writes_is_read_back(
        counts in counts(),
        requests in 255..u64::from(u32::MAX),
        clients in 1..=255u32,
        threads in 1..=255u32,
        micros in 1..1_000_000_000_000u64,
    ) {
        let threads = threads.min(clients);
        let written = BANNER.to_owned()
            + &text::opening(requests, clients, threads)
            + &text::progress(0, requests, requests)
            + &text::report(requests, &counts, micros);
        let mut reports = read::read_reports(&written).unwrap();
        prop_assert_eq!(reports.len(), 1);
        let report = reports.remove(0);
        prop_assert!(report.is_complete(), "{:?}", report.missing);
        prop_assert_eq!(report.version.as_deref(), Some("0.4"));
        prop_assert_eq!(report.threads, Some(threads.into()));
        prop_assert_eq!(report.concurrency, Some(clients.into()));
        prop_assert_eq!(report.duration, Some(Nanos::from_micros(micros)));
        let read = &report.requests;
        prop_assert_eq!((read.started, read.complete), (Some(counts.started), Some(counts.done)));
        prop_assert_eq!((read.succeeded, read.failed), (Some(counts.succeeded), Some(counts.failed)));
        prop_assert_eq!(report.errors.get("errored"), Some(&0));
        let classes = (2..=5u8).zip(counts.classes).collect();
        prop_assert_eq!(&read.by_class, &classes);
        let traffic = &report.traffic;
        prop_assert_eq!(traffic.received, Some(Bytes(counts.bytes)));
        prop_assert_eq!(traffic.bodies, Some(Bytes(counts.bodies)));
        prop_assert_eq!(traffic.heads, Some(Bytes(counts.bytes - counts.bodies)));
        let per_s = (counts.done as f64 / (micros as f64 / 1e6)) as u64;
        prop_assert_eq!(report.rate.map(|rate| rate.0 as u64), Some(per_s));
    }
}
