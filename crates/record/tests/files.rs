//! The format that a file names decides whether it is read.

use joust_record::{
    Blocks, Cell, Certainty, Contender, ContenderFacts, CpuLayout, Ending, Facts, Finding,
    LoadRecord, Metric, PairVerdict, Plan, ReadError, RunRecord, Severity, Verdict, VisitPlan,
    Workload,
};
use units::{Bytes, Nanos, Share};

#[test]
fn another_version_is_refused_by_name_whatever_its_shape() {
    let error = RunRecord::from_json(r#"{"format":"joust-run/99","new":true}"#).unwrap_err();
    assert!(matches!(error, ReadError::Version { .. }));
    assert!(error.to_string().contains("joust-run/99"), "{error}");
}

#[test]
fn what_is_no_record_is_refused_with_the_place() {
    for text in ["", "[]", "not json", "{}", r#"{"format":"joust-load/2"}"#] {
        let error = LoadRecord::from_json(text).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{text}: {error}");
    }
}

#[test]
fn an_index_of_a_contender_that_is_not_there_is_refused_by_its_part() {
    type Change = fn(&mut RunRecord);
    let mut run = run();
    assert_eq!(RunRecord::from_json(&run.to_json()).unwrap(), run);
    run.findings = vec![Finding {
        check: "made_up".to_owned(),
        severity: Severity::Note,
        certainty: Certainty::Suspected,
        cell: None,
        contenders: vec![0],
        alike: false,
        among: false,
        evidence: String::new(),
        meaning: String::new(),
        remedy: String::new(),
        ..Finding::default()
    }];
    run.verdicts = vec![PairVerdict {
        cell: 0,
        metric: Metric::Throughput,
        a: 0,
        b: 0,
        estimate: None,
        verdict: Verdict::Withheld { reason: String::new() },
        short_of: None,
    }];
    let cases: [(&str, Change); 7] = [
        ("the facts", |run| run.contenders.clear()),
        ("a verdict", |run| run.verdicts[0].b = 1),
        ("a finding", |run| run.findings[0].contenders.push(1)),
        ("a finding", |run| run.findings[0].cell = Some(1)),
        ("a verdict", |run| run.verdicts[0].cell = 1),
        ("the plan without cells", |run| run.plan.cells.clear()),
        ("the facts", |run| run.plan.contenders.clear()),
    ];
    for (part, change) in cases {
        let mut edited = run.clone();
        change(&mut edited);
        let error = RunRecord::from_json(&edited.to_json()).unwrap_err().to_string();
        assert!(error.starts_with(part), "{part}: {error}");
    }
}

/// A run of one contender that was never visited.
fn run() -> RunRecord {
    let contender =
        Contender { name: "a".to_owned(), server: "joust".to_owned(), ..Contender::default() };
    RunRecord {
        format: RunRecord::FORMAT.to_owned(),
        joust: "0.1.0".to_owned(),
        started: "2026-11-21T12:00:00Z".to_owned(),
        seconds: 1.0,
        ending: Ending::Blocks,
        plan: Plan {
            name: "made up".to_owned(),
            question: "?".to_owned(),
            contenders: vec![contender],
            cells: vec![Cell::only(Workload {
                page: Bytes(1),
                connections: 1,
                keep_alive: true,
                threads: 1,
                timeout: Nanos::from_secs(1),
                ..Workload::default()
            })],
            blocks: Blocks { min: 1, max: 1, half_width: Share(0.02) },
            visit: VisitPlan {
                warm_up: Nanos::ZERO,
                measure: Nanos::from_secs(1),
                ..VisitPlan::default()
            },
            metrics: vec![Metric::Throughput],
            margin: Share(0.02),
            budget: Nanos::from_secs(1),
            seed: 1,
            ..Plan::default()
        },
        facts: Facts::default(),
        layout: CpuLayout::default(),
        contenders: vec![ContenderFacts::default()],
        skipped: Vec::new(),
        visits: Vec::new(),
        findings: Vec::new(),
        verdicts: Vec::new(),
        analysis: Default::default(),
        integrity: joust_record::Integrity::default(),
    }
}
