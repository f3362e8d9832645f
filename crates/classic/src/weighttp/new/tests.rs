//! Writing the report of 0.5 and parsing it back, and its layout with fixed figures.

use proptest::prelude::*;
use record::{Carrier, LoadPlan, LoadRecord, Outcome, RequestCounts, Sample};
use units::{Bytes, Nanos};

use super::super::read;
use super::super::workers::tests::sample;
use super::super::workers::{Rules, Workers};
use super::figures::Figures;
use super::flags::{self, BANNER, Flags};
use super::printer::Weighttp;
use super::text;
use crate::command::Chosen;
use crate::command::testing::{World, args};
use crate::command::{Call, Closing, Finished, Printer as _, Stream};

fn flags(line: &str) -> Flags {
    let (args, world) = (args(line), World::default());
    flags::parse(&Call { program: "weighttp", args: &args, own: &Chosen::default(), world: &world })
        .expect("a command line")
}

fn record(raw: Vec<Sample>, seconds: f64) -> LoadRecord {
    let plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/x");
    let requests = RequestCounts { started: raw.len() as u64, ..RequestCounts::default() };
    LoadRecord { raw, seconds, requests, ..LoadRecord::empty(plan) }
}

fn closing(line: &str, record: &LoadRecord) -> Closing {
    let flags = flags(line);
    let workers = Workers::new(Vec::new(), flags.requests, flags.threads, Rules::New);
    let mut weighttp = Weighttp::new(flags, workers.shared());
    let local_time = |_| unreachable!("nothing is dated");
    weighttp.closing(&Finished { record, began: Nanos::ZERO, local_time: &local_time })
}

/// Labels and widths are those of published reports of 0.5.
#[test]
fn a_run_is_printed_as_0_5_prints_it() {
    let reused = Sample { carrier: Carrier::Reused, ..sample(200, Outcome::Ok) };
    let raw = vec![sample(200, Outcome::Ok), reused, sample(404, Outcome::Ok)];
    let closing = closing("-q -k -n 3 -e p.csv h", &record(raw, 1.5));
    let row = |name: &str, n: u64, span: u64| {
        let mut text = format!(
            "  \"{name}\": {{\n     \"num\": {n:9},\n     \"avg\": {span:9},\n     \"stddev\":      0,\n     \
             \"unit\": \"us\",\n      \"0%\": {span:9},\n"
        );
        for percent in [50, 66, 75, 80, 90, 95, 98, 99] {
            text += &format!("     \"{percent}%\": {span:9},\n");
        }
        text + &format!("    \"100%\": {span:9}\n  }}")
    };
    let counts = "{\n  \"reqs_per_sec\": 2,\n  \"kBps_per_sec\": 0,\n  \"secs_elapsed\": 1.500000,\n  \
        \"request_counts\": {\n    \"started\":    3,\n    \"retired\":    3,\n    \"keep-alive\": 1\n  },\n  \
        \"response_counts\": {\n    \"pass\": 2,\n    \"fail\": 1,\n    \"errs\": 0\n  },\n  \
        \"status_codes\": {\n    \"2xx\":  2,\n    \"3xx\":  0,\n    \"4xx\":  1,\n    \"5xx\":  0\n  },\n  \
        \"traffic\": {\n    \"bytes_total\":            450,\n    \"bytes_headers\":          300,\n    \
        \"bytes_body\":             150\n  },\n";
    let out = closing.texts.on(Stream::Out);
    let rows = [row("connect_times", 2, 10), row("time_to_first_byte", 3, 20)].join(",\n");
    let begin =
        format!("{counts}{rows},\n{},\n  \"total_times\": {{\n", row("response_times", 3, 30));
    assert!(out.starts_with(&begin), "{out}");
    assert!(out.ends_with("    \"100%\":        40\n  }\n}\n"), "{out}");
    let csv = String::from_utf8(closing.files[0].bytes.clone()).unwrap();
    assert!(csv.starts_with("Percentage served,Time in us\n0,30\n") && csv.lines().count() == 102);
}

#[test]
fn a_median_far_from_the_mean_is_warned_of() {
    let spans = |micros: &[u64]| {
        let raw = micros.iter().map(|span| {
            let done = Nanos::from_micros(10 + span);
            Sample { first_byte: done, done, ..sample(200, Outcome::Ok) }
        });
        let line = format!("-n {} h", micros.len());
        closing(&line, &record(raw.collect(), 1.0)).texts.on(Stream::Err)
    };
    assert_eq!(spans(&[5, 5, 5]), "");
    // Mean 1, truncated; median 2, deviation 0.57.
    let told = spans(&[1, 1, 2, 2, 2, 2]);
    assert!(told.contains("WARNING: The median and mean for the response times"), "{told}");
    let quiet = closing("-S -n 2 h", &record(vec![sample(200, Outcome::Ok)], 1.0));
    assert_eq!(quiet.texts.on(Stream::Err), "");
}

#[test]
fn an_interrupted_run_has_a_report_and_tells_hung_from_aborted() {
    let out = |seconds| Sample {
        outcome: Outcome::Unanswered,
        done: Nanos::from_secs(seconds),
        ..sample(0, Outcome::Ok)
    };
    let mut record = record(vec![sample(200, Outcome::Ok), out(3), out(9), out(9)], 9.0);
    (record.interrupted, record.requests.unanswered) = (true, 3);
    let closing = closing("-q -n 100 -c 4 h", &record);
    let report = closing.texts.on(Stream::Out);
    assert!(report.contains("\"started\":    4,\n    \"retired\":    1,"), "{report}");
    assert_eq!(closing.code, 0);
    let notes = closing.footnotes.join("\n");
    let expected = "2 requests had waited for 4s or longer (-s: hung), 1 for less (aborted)";
    assert!(notes.contains(expected), "{notes}");
}

#[test]
fn without_extended_percentiles_there_is_the_median() {
    let report = closing("-q -d -n 1 h", &record(vec![sample(200, Outcome::Ok)], 1.0));
    let report = report.texts.on(Stream::Out);
    assert!(report.contains("\"50%\":") && !report.contains("\"66%\":"), "{report}");
}

#[test]
fn refused_connections_are_not_kept_alive_and_a_file_that_cannot_be_written_is_no_failure() {
    let refused = Sample { sent: Nanos::ZERO, ..sample(0, Outcome::ConnectRefused) };
    let closing = closing("-q -n 5 -e /no/such h", &record(vec![refused; 5], 1.0));
    let report = closing.texts.on(Stream::Out);
    assert!(report.contains("\"keep-alive\": 0\n"), "{report}");
    assert_eq!((closing.code, closing.files[0].code), (0, 0));
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let one = (0..5_000_000u64, 1..5_000_000u64, 0..5_000_000u64, any::<bool>(), 0..3u8);
    let one = one.prop_map(|(connect, wait, rest, is_reused, kind)| {
        let micros = Nanos::from_micros;
        let (status, outcome) = match kind {
            0 => (503, Outcome::Ok),
            1 => (0, Outcome::ResetBeforeFirstByte),
            _ => (200, Outcome::Ok),
        };
        let carrier = if is_reused { Carrier::Reused } else { Carrier::Fresh };
        let sent = micros(connect + 1);
        let (first_byte, done) = (micros(connect + 1 + wait), micros(connect + 1 + wait + rest));
        Sample { sent, first_byte, done, carrier, ..sample(status, outcome) }
    });
    prop::collection::vec(one, 1..60)
}

proptest! {
    #[test]
    fn what_0_5_writes_is_read_back(raw in samples(), micros in 1..10_000_000_000u64) {
        let flags = flags("-n 60 -c 3 -t 2 -k h");
        let figures = Figures::new(&record(raw, micros as f64 / 1e6));
        let workers = Workers::new(Vec::new(), flags.requests, flags.threads, Rules::New);
        let opening = Weighttp::new(flags, workers.shared()).opening().on(Stream::Out);
        prop_assert!(opening.starts_with(BANNER));
        let mut reports = read::read_reports(&(opening + &text::report(&figures, true))).unwrap();
        prop_assert_eq!(reports.len(), 1);
        let report = reports.remove(0);
        prop_assert!(report.is_complete(), "{:?}", report.missing);
        prop_assert_eq!(report.version.as_deref(), Some("0.5"));
        prop_assert_eq!((report.threads, report.concurrency), (Some(2), Some(3)));
        prop_assert_eq!(report.duration, Some(Nanos::from_micros(figures.elapsed)));
        let (counts, read) = (&figures.counts, &report.requests);
        prop_assert_eq!((read.started, read.complete), (Some(counts.started), Some(counts.done)));
        prop_assert_eq!((read.succeeded, read.failed), (Some(counts.succeeded), Some(counts.failed)));
        prop_assert_eq!(read.kept_alive, Some(figures.kept_alive));
        prop_assert_eq!(report.errors.get("errs"), Some(&counts.errored));
        let classes = (2..=5u8).zip(counts.classes).collect();
        prop_assert_eq!(&read.by_class, &classes);
        let bodies = counts.bodies + counts.failed_bodies;
        let traffic = &report.traffic;
        prop_assert_eq!((traffic.received, traffic.bodies), (Some(Bytes(counts.bytes)), Some(Bytes(bodies))));
        let micros = |span: u64| Some(Nanos::from_micros(span));
        let (times, row) = (&report.times.total, figures.response);
        prop_assert_eq!((times.mean, times.min, times.max), (micros(row.mean), micros(row.min), micros(row.max)));
        prop_assert_eq!(times.median, micros(row.percentiles[0]));
        prop_assert_eq!(report.percentiles.len(), 10);
        prop_assert_eq!(report.times.waiting.mean, micros(figures.first_byte.mean));
    }
}
