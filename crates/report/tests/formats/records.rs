//! Owns the records that are shown in every format: made-up ones, failed and empty ones, ones with hostile names, and
//! files of every earlier version. Start reading at [`runs`].

use record::{
    AtEnd, Carrier, Ending, LoadRecord, Outcome, RunRecord, Sample, Severity, VisitState,
    parse_goals,
};
use serde_json::{Value, json};
use units::Nanos;

use crate::testdata;

const RUN_1: &str = include_str!("../../../record/tests/fixtures/run_1.json");
const LOAD_1: &str = include_str!("../../../record/tests/fixtures/load_1.json");

/// What a format could stumble over, in one name.
pub(crate) const HOSTILE: &str =
    "<a href=\"x\">'`$(id)` \\ # , ; = { } é 😀\u{1b}[2J\n\r\t]]>&|../..";

pub(crate) fn runs() -> Vec<(&'static str, RunRecord)> {
    let mut nobody = testdata::all_failed();
    (nobody.plan.contenders, nobody.contenders, nobody.visits) = (vec![], vec![], vec![]);
    vec![
        ("two contenders", testdata::run_with(2)),
        ("three cells", testdata::celled()),
        ("with samples", sampled(testdata::run_with(3))),
        ("all visits failed", testdata::all_failed()),
        ("no contender at all", nobody),
        ("hostile names", hostile()),
        ("not finite", not_finite()),
        ("file of version 1", RunRecord::from_json(RUN_1).expect("it is still read")),
        ("file of version 2", RunRecord::from_json(&version_2()).expect("it is still read")),
    ]
}

pub(crate) fn loads() -> Vec<(&'static str, LoadRecord)> {
    let mut named = load();
    named.plan.url = format!("http://{HOSTILE}/");
    named.raw_names.insert(0, HOSTILE.to_owned());
    named.findings = testdata::run().findings;
    named.findings[0].check = HOSTILE.to_owned();
    named.findings[0].evidence = HOSTILE.to_owned();
    let mut not_finite = load();
    (not_finite.seconds, not_finite.rate_per_s) = (f64::NAN, f64::INFINITY);
    not_finite.response_ms.p99 = Some(f64::NAN);
    vec![
        ("a load", load()),
        ("nothing was asked", LoadRecord::empty(testdata::load().plan)),
        ("hostile names", named),
        ("not finite", not_finite),
        ("file of version 1", LoadRecord::from_json(LOAD_1).expect("it is still read")),
    ]
}

/// A load with goals, failures, samples and a known start.
pub(crate) fn load() -> LoadRecord {
    let mut load = testdata::load();
    load.plan.goals = parse_goals("p99<1h,p50<1ns,errors<1%").expect("goals");
    load.began_unix_ms = Some(1_795_000_000_123);
    load.raw = samples();
    (load.requests.failed, load.requests.ok) = (2, load.requests.ok - 2);
    *load.errors.of(Outcome::TimeoutWaiting).expect("it is a failure") = 2;
    load.latencies.first_byte = load.latencies.service.clone();
    load
}

fn sampled(mut run: RunRecord) -> RunRecord {
    for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
        load.raw = samples();
    }
    run
}

/// One that was answered, and one that never was.
fn samples() -> Vec<Sample> {
    let answered = Sample {
        due: Nanos(1_000_000),
        sent: Nanos(1_500_000),
        first_byte: Nanos(2_000_000),
        done: Nanos(2_250_000),
        bytes_read: 3_600,
        bytes_head: 239,
        bytes_body: 3_361,
        status: 200,
        outcome: Outcome::Ok,
        conn: 7,
        carrier: Carrier::Reused,
        at_end: AtEnd::Kept,
        request: 0,
    };
    let timed_out = Sample {
        first_byte: Nanos::ZERO,
        done: Nanos::from_secs(5),
        bytes_read: 0,
        bytes_head: 0,
        bytes_body: 0,
        status: 0,
        outcome: Outcome::TimeoutWaiting,
        at_end: AtEnd::Lost,
        ..answered
    };
    vec![answered, timed_out]
}

fn hostile() -> RunRecord {
    let mut run = sampled(testdata::celled());
    run.plan.name = HOSTILE.to_owned();
    run.plan.question = HOSTILE.to_owned();
    (run.joust, run.started) = (HOSTILE.to_owned(), HOSTILE.to_owned());
    for (index, contender) in run.plan.contenders.iter_mut().enumerate() {
        contender.name = format!("{HOSTILE}{index}");
    }
    for (index, cell) in run.plan.cells.iter_mut().enumerate() {
        cell.name = format!("{HOSTILE}{index}");
    }
    for finding in &mut run.findings {
        finding.check = HOSTILE.to_owned();
        finding.evidence = HOSTILE.to_owned();
        (finding.meaning, finding.remedy) = (HOSTILE.to_owned(), HOSTILE.to_owned());
        finding.severity = Severity::Void;
        finding.certainty = record::Certainty::Confirmed;
    }
    let reason = HOSTILE.to_owned();
    run.visits[0].state = VisitState::Failed { reason, log_tail: HOSTILE.to_owned() };
    run.verdicts[0].verdict = record::Verdict::Withheld { reason: HOSTILE.to_owned() };
    run.ending = Ending::Incomplete { reason: HOSTILE.to_owned() };
    run
}

fn not_finite() -> RunRecord {
    let mut run = testdata::run_with(3);
    run.seconds = f64::NAN;
    for (index, visit) in run.visits.iter_mut().enumerate() {
        visit.rate_per_s = Some([f64::NAN, f64::INFINITY, 0.0][index % 3]);
    }
    for pair in &mut run.verdicts {
        let bad = f64::NAN;
        pair.verdict = record::Verdict::Ratio { ratio: bad, low: 0.0, high: f64::INFINITY };
    }
    run
}

/// A run as version 2 wrote it: its plan has one workload instead of cells.
fn version_2() -> String {
    let mut run: Value =
        serde_json::from_str(&testdata::run_with(2).to_json()).expect("it is JSON");
    let plan = run["plan"].as_object_mut().expect("a plan is an object");
    let cells = plan.remove("cells").unwrap_or(json!([{}]));
    plan.insert("workload".to_owned(), cells[0]["workload"].clone());
    run["format"] = "joust-run/2".into();
    run.to_string()
}
