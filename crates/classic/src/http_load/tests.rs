//! Writing http_load's report and parsing it back, and its layout with fixed figures.

use proptest::prelude::*;
use record::{AtEnd, LoadPlan, LoadRecord, OpenLoop, Outcome, Sample};
use units::Nanos;

use super::checksum::Fetched;
use super::figures::{Figures, Spans};
use super::flags::{self, Flags};
use super::plan::{SLOTS, Subject};
use super::printer::HttpLoad;
use super::{read, text};
use crate::command::Chosen;
use crate::command::testing::{World, args, sample};
use crate::command::{Call, Closing, Finished, Printer as _, Progress, Stream};

const URLS: [&str; 2] = ["http://h/a", "http://h/b"];

fn flags(line: &str) -> Flags {
    let (args, world) = (args(line), World::default());
    flags::parse(&Call {
        program: "http_load",
        args: &args,
        own: &Chosen::default(),
        world: &world,
    })
    .expect("a command line")
}

fn subject(line: &str) -> Subject {
    let urls = URLS.map(str::to_owned).into();
    Subject { program: "http_load".to_owned(), flags: flags(line), urls, any_tls: false }
}

/// A request that failed with this outcome.
fn failed(at: u64, outcome: Outcome) -> Sample {
    let none = Nanos::ZERO;
    let failed = Sample { bytes_read: 0, bytes_body: 0, bytes_head: 0, ..sample(at, 0, 0, 1000) };
    let sent = if outcome == Outcome::ConnectRefused { none } else { failed.sent };
    Sample { outcome, sent, first_byte: none, status: 0, at_end: AtEnd::Lost, ..failed }
}

fn record(raw: Vec<Sample>, seconds: f64) -> LoadRecord {
    let plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/x");
    LoadRecord { raw, seconds, ..LoadRecord::empty(plan) }
}

fn closing(line: &str, record: &LoadRecord) -> Closing {
    let mut http_load = HttpLoad::new(subject(line), None);
    assert_eq!(http_load.opening().0, []);
    let local_time = |_| unreachable!("nothing is dated");
    http_load.closing(&Finished { record, began: Nanos::ZERO, local_time: &local_time })
}

#[test]
fn a_run_is_printed_as_http_load_prints_it() {
    let mut raw = vec![
        sample(0, 400, 1_600, 100),
        sample(0, 500, 2_000, 500),
        sample(2_100, 600, 9_400, 2_000),
        failed(3_000, Outcome::ConnectRefused),
        failed(4_000, Outcome::TimeoutWaiting),
    ];
    raw[1].status = 404;
    (raw[2].request, raw[2].bytes_read) = (1, 160);
    let closing = closing("-p 2 -f 5 urls", &record(raw, 0.0171));
    let expected = "5 fetches, 2 max parallel, 160 bytes, in 0.0171 seconds\n\
        32 mean bytes/connection\n\
        292.398 fetches/sec, 9356.72 bytes/sec\n\
        msecs/connect: 0.375 mean, 0.6 max, 0 min\n\
        msecs/first-response: 4.33333 mean, 9.4 max, 1.6 min\n\
        1 timeouts\n\
        2 bad byte counts\n\
        HTTP response codes:\n\
        \x20 code 200 -- 2\n\
        \x20 code 404 -- 1\n";
    assert_eq!(closing.texts.on(Stream::Out), expected);
    let said = "http://h/a: Connection refused\nhttp://h/a: byte count wrong\n\
        http://h/a: timed out\nhttp://h/a: byte count wrong\n";
    assert_eq!(closing.texts.on(Stream::Err), said);
    assert_eq!(closing.code, 0);
    let notes = closing.footnotes.join("\n");
    assert!(notes.contains("counts 2 fetches without a reply among the fetches"), "{notes}");
    assert!(notes.contains("of the fetches in the rate 1 had a status other than 2xx"), "{notes}");
}

/// Nothing was fetched, in no time: http_load leaves out what it cannot divide.
#[test]
fn lines_without_figures_are_left_out() {
    let closing = closing("-p 2 -f 5 urls", &record(Vec::new(), 0.005));
    let expected = "0 fetches, 0 max parallel, 0 bytes, in 0.005 seconds\nHTTP response codes:\n";
    assert_eq!(closing.texts.on(Stream::Out), expected);
}

/// A quirk: numbers are floats of 24 bits, printed with 6 digits.
#[test]
fn many_bytes_are_rounded_twice() {
    let mut raw = vec![sample(0, 1, 1, 1)];
    raw[0].bytes_read = 123_456_789 + 100;
    let closing = closing("-p 1 -f 1 urls", &record(raw, 3.0));
    let out = closing.texts.on(Stream::Out);
    assert!(
        out.starts_with("1 fetches, 1 max parallel, 1.23457e+08 bytes, in 3 seconds\n"),
        "{out}"
    );
    assert!(closing.footnotes.join("\n").contains("the exact number is 123456789 bytes"));
}

#[test]
fn checksums_are_compared_in_place_of_lengths() {
    let raw = vec![sample(0, 1, 1, 1), sample(9, 1, 1, 1), sample(20, 1, 1, 1)];
    let raw: Vec<Sample> =
        raw.into_iter().zip(0..).map(|(sample, request)| Sample { request, ..sample }).collect();
    let fetched = |url, checksum| Fetched { url, checksum };
    let all = [fetched(1, 7), fetched(0, 9), fetched(1, 8)];
    let figures = Figures::new(&subject("-c -p 1 -f 3 urls"), Some(&all), &record(raw, 1.0));
    assert_eq!(
        (figures.bad, figures.complaints),
        (1, vec!["http://h/b: checksum wrong".to_owned()])
    );
    let figures = Figures { complaints: Vec::new(), bad: 1, completed: 1, ..Figures::default() };
    assert!(text::report(&figures, true).contains("\n1 bad checksums\n"));
}

/// A quirk: if -rate finds all connections in use, http_load reports and exits.
#[test]
fn a_rate_that_overflows_ends_the_run_there() {
    // Each takes 2 s, and one begins each millisecond.
    let raw = |n| (0..n).map(|at| sample(at * 1000, 0, 1_000_000, 1_000_000)).collect();
    let figures = |line: &str, n| Figures::new(&subject(line), None, &record(raw(n), 4.0));
    let n = u64::from(SLOTS);
    let full = figures("-rate 1000 -f 3000 urls", n + 1);
    assert!(full.overflows);
    assert_eq!((full.elapsed, full.completed, full.parallel_max), (n * 1000, 0, n));
    assert_eq!(full.complaints, ["http_load: ran out of connection slots"]);
    let fits = figures("-rate 1000 -f 3000 urls", n);
    assert_eq!((fits.overflows, fits.completed, fits.parallel_max), (false, n, n));
    // A fetch that never got a place has no sample.
    let waiting = OpenLoop { left: 7, ..OpenLoop::default() };
    let starved = LoadRecord { open_loop: Some(waiting), ..record(raw(n), 4.0) };
    let starved = Figures::new(&subject("-rate 1000 -s 4 urls"), None, &starved);
    assert_eq!((starved.overflows, starved.elapsed, starved.completed), (true, n * 1000, 0));
    let parallel = figures("-p 1021 -f 3000 urls", n + 1);
    assert_eq!((parallel.overflows, parallel.parallel_max), (false, n + 1));
}

#[test]
fn a_rate_that_is_another_is_said() {
    let notes = |line: &str| closing(line, &record(Vec::new(), 1.0)).footnotes.join("\n");
    let told = notes("-rate 600 -f 1 urls");
    assert!(told.contains("-rate 600 is a period of 1 ms, so 1000.0 fetches a second"), "{told}");
    let told = notes("-rate 1000 -j -f 1 urls");
    assert!(told.contains("intervals between 0 and 1 ms, so 2000.0 fetches a second"), "{told}");
    assert_eq!(notes("-rate 500 -f 1 urls"), "");
}

#[test]
fn progress_is_told_once_a_minute() {
    let mut http_load = HttpLoad::new(subject("-v -p 2 -s 200 urls"), None);
    let mut told = |secs| {
        let elapsed = Nanos::from_secs(secs);
        http_load.progress(&Progress { started: 9, done: 7, elapsed }).on(Stream::Err)
    };
    assert_eq!(told(59), "");
    assert_eq!(told(60), "--- 60 secs, 9 fetches started, 7 completed, 2 current\n");
    assert_eq!((told(61), told(120).lines().count()), (String::new(), 1));
}

/// The signal ends http_load.
#[test]
fn an_interrupted_run_has_no_report() {
    let record = LoadRecord { interrupted: true, ..record(vec![sample(0, 1, 1, 1)], 1.0) };
    let closing = closing("-p 2 -s 200 urls", &record);
    assert_eq!((closing.texts.on(Stream::Out), closing.code), (String::new(), 130));
    assert!(closing.footnotes[0].contains("completed: 1 fetch"));
}

fn spans() -> impl Strategy<Value = Spans> {
    (0..50u64, 0..10_000_000u64, 0..10_000_000u64).prop_map(|(n, one, other)| match n {
        0 => Spans::default(),
        n => Spans { n, total: one.max(other) * n / 2, max: one.max(other), min: one.min(other) },
    })
}

/// The precision of a float with 6 digits.
fn is_near(read: f64, written: f64) -> bool {
    (read - written).abs() <= written.abs() * 1e-5
}

proptest! {
    /// To 6 digits.
    #[test]
    fn what_is_written_is_read_back(
        completed in 1..100_000u64,
        parallel_max in 1..2000u64,
        bytes in 0..1_000_000_000_000u64,
        elapsed in 10_001..100_000_000_000u64,
        connects in spans(),
        responses in spans(),
        timeouts in 0..3u64,
        bad in 0..3u64,
        codes in prop::collection::btree_map(100..999u16, 1..1000u64, 0..5),
        checksum in any::<bool>(),
    ) {
        let figures = Figures {
            completed, parallel_max, bytes, elapsed, connects, responses, timeouts, bad, codes,
            ..Figures::default()
        };
        let mut reports = read::read_reports(&text::report(&figures, checksum)).unwrap();
        prop_assert_eq!(reports.len(), 1);
        let report = reports.remove(0);
        prop_assert!(report.is_complete());
        prop_assert_eq!(report.requests.complete, Some(completed));
        prop_assert_eq!(report.concurrency, Some(parallel_max));
        prop_assert_eq!(&report.requests.by_status, &figures.codes);
        let seconds = elapsed as f64 / 1e6;
        prop_assert!(is_near(report.duration.unwrap().as_secs_f64(), seconds));
        prop_assert!(is_near(report.traffic.bodies.unwrap().0 as f64, bytes as f64));
        prop_assert!(is_near(report.rate.unwrap().0, completed as f64 / seconds));
        prop_assert!(is_near(report.traffic.rate.unwrap().0, bytes as f64 / seconds));
        for (read, written) in [(&report.times.connect, connects), (&report.times.waiting, responses)] {
            prop_assert_eq!(read.mean.is_some(), written.n > 0);
            let micros = |span: Option<Nanos>| span.map_or(0.0, |span| span.0 as f64 / 1e3);
            prop_assert!(is_near(micros(read.max), written.max as f64), "{:?} {:?}", read, written);
            prop_assert!(is_near(micros(read.min), written.min as f64), "{:?} {:?}", read, written);
        }
        let errors = |kind: &str| report.errors.get(kind).copied().unwrap_or(0);
        prop_assert_eq!(errors("timeouts"), timeouts);
        let (checksums, byte_counts) = (errors("bad checksums"), errors("bad byte counts"));
        prop_assert_eq!((checksums, byte_counts), if checksum { (bad, 0) } else { (0, bad) });
    }
}
