//! Comparisons of made-up runs: what is called a regression, and what is not. Start reading at any test.

use record::{Certainty, Finding, Severity};

use super::*;
use crate::testdata::{Noise, run, run_of};

const NAMES: [&str; 4] = ["nginx", "joust one", "joust two", "apache"];

fn question(reference: Reference) -> Question {
    Question { margin: Share(0.02), metrics: Vec::new(), reference }
}

fn compared(base: &RunRecord, candidate: &RunRecord, reference: Reference) -> Comparison {
    compare(("base", base), ("candidate", candidate), &question(reference)).unwrap()
}

/// How many of 100 comparisons report a regression.
fn alarms(drift_sd: f64, change: f64, reference: &Reference, blocks: u32) -> usize {
    let mut noise = Noise::new(99);
    let mut slower = |change: f64| {
        let day = (drift_sd * noise.normal()).exp();
        [day, day * change, day, day]
    };
    (0..100u64)
        .filter(|&n| {
            let base = run_of(&NAMES, blocks, 1 + 2 * n, &slower(1.0));
            let candidate = run_of(&NAMES, blocks, 2 + 2 * n, &slower(change));
            compared(&base, &candidate, reference.clone()).regressions().next().is_some()
        })
        .count()
}

#[test]
fn two_runs_of_the_same_regress_in_at_most_5_of_100() {
    for reference in [Reference::Found, Reference::None] {
        let alarms = alarms(0.0, 1.0, &reference, 12);
        assert!(alarms <= 5, "{reference:?}: {alarms} of 100");
    }
}

#[test]
fn a_slow_day_is_no_regression_over_a_reference_and_would_be_one_without() {
    let over = alarms(0.05, 1.0, &Reference::Found, 12);
    assert!(over <= 5, "{over} of 100");
    // The canary: a drifting machine does produce false alarms in the plain ratio.
    let plain = alarms(0.05, 1.0, &Reference::None, 12);
    assert!(plain >= 20, "{plain} of 100");
}

#[test]
fn a_planted_regression_of_5_percent_is_found_on_slow_days_too() {
    let found = alarms(0.05, 0.95, &Reference::Found, 40);
    assert!(found >= 80, "{found} of 100");
}

#[test]
fn the_planted_contender_is_named_and_no_other() {
    let base = run_of(&NAMES, 30, 1, &[1.0; 4]);
    let candidate = run_of(&NAMES, 30, 2, &[0.97, 0.97 * 0.9, 0.97, 0.97]);
    let seen = compared(&base, &candidate, Reference::Found);
    let regressed: Vec<_> = seen.regressions().map(|one| (&*one.contender, one.metric)).collect();
    assert_eq!(
        regressed,
        [("joust one", Metric::Throughput), ("joust one", Metric::ServerCpu)],
        "{seen:#?}"
    );
    assert!(seen.method.contains("nginx") && seen.cautions.is_empty(), "{seen:#?}");
    // The reference itself shows the drift of the machine, and is not judged.
    assert_eq!(seen.drift.len(), 2);
    let drift = seen.drift[0].estimate.unwrap();
    assert!(drift.low < 0.97 && 0.97 < drift.high, "{drift:?}");
    let estimate = seen.changes[0].estimate.unwrap();
    assert!(estimate.low < 0.9 && 0.9 < estimate.high, "{estimate:?}");
    assert_eq!((estimate.blocks_base, estimate.blocks_candidate), (30, 30));
}

#[test]
fn the_other_way_round_it_is_an_improvement() {
    let base = run_of(&NAMES, 30, 1, &[1.0, 0.9, 1.0, 1.0]);
    let candidate = run_of(&NAMES, 30, 2, &[1.0; 4]);
    let seen = compared(&base, &candidate, Reference::Found);
    assert_eq!(seen.regressions().count(), 0);
    assert_eq!(seen.changes[0].judgement, ChangeJudgement::Improvement);
}

#[test]
fn what_is_sure_but_within_the_margin_is_no_regression() {
    let base = run_of(&NAMES, 200, 1, &[1.0; 4]);
    let candidate = run_of(&NAMES, 200, 2, &[1.0, 0.97, 1.0, 1.0]);
    let wide = Question { margin: Share(0.1), ..question(Reference::Found) };
    let seen = compare(("a", &base), ("b", &candidate), &wide).unwrap();
    assert_eq!(seen.regressions().count(), 0, "{:#?}", seen.changes[0]);
    assert_eq!(seen.changes[0].verdict, Verdict::NoDifference { margin: Share(0.1) });
}

#[test]
fn a_changed_server_is_no_reference() {
    let (base, mut candidate) = (run(&["nginx", "joust"], 12, 1), run(&["nginx", "joust"], 12, 2));
    assert!(compared(&base, &candidate, Reference::Found).method.contains("over nginx"));
    candidate.contenders[0].version = "nginx/1.1".to_owned();
    let seen = compared(&base, &candidate, Reference::Found);
    // Our own server is rebuilt under the same version, so it is not chosen as the reference.
    assert!(seen.changes.iter().all(|one| one.basis == Basis::Figures), "{seen:#?}");
    assert!(seen.drift.is_empty() && seen.method.contains("there is no other server"));
    assert_eq!(seen.changes[0].differs, ["version: nginx/1.0 to nginx/1.1"]);
    let named = |name: &str| question(Reference::Named(name.to_owned()));
    let refused = compare(("a", &base), ("b", &candidate), &named("nginx")).unwrap_err();
    assert!(matches!(refused, CompareError::Changed { .. }), "{refused}");
    let refused = compare(("a", &base), ("b", &candidate), &named("h2o")).unwrap_err();
    assert!(refused.to_string().contains("nginx, joust"), "{refused}");
    // The user may name it as the reference, if they know that it is the same program.
    let seen = compare(("a", &base), ("b", &candidate), &named("joust")).unwrap();
    assert!(seen.method.contains("over joust"), "{}", seen.method);
}

fn finding(severity: Severity, contender: usize) -> Finding {
    Finding {
        check: "two_clusters".to_owned(),
        severity,
        certainty: Certainty::Confirmed,
        cell: None,
        contenders: vec![contender],
        alike: false,
        among: false,
        evidence: String::new(),
        meaning: String::new(),
        remedy: String::new(),
        ..Finding::default()
    }
}

#[test]
fn what_is_void_in_either_run_is_withheld() {
    let base = run(&NAMES, 12, 1);
    let mut candidate = run_of(&NAMES, 12, 2, &[1.0, 0.5, 1.0, 1.0]);
    candidate.findings = vec![finding(Severity::Void, 1)];
    let seen = compared(&base, &candidate, Reference::Found);
    let Verdict::Withheld { reason } = &seen.changes[0].verdict else { panic!("{seen:#?}") };
    assert_eq!(reason, "in the candidate run, two_clusters on joust one");
    assert_eq!(seen.regressions().count(), 0);
    // A void reference is not used; the others are compared without one.
    candidate.findings = vec![finding(Severity::Void, 0)];
    let seen = compared(&base, &candidate, Reference::Found);
    assert!(seen.changes.iter().all(|one| one.basis == Basis::Figures), "{seen:#?}");
    assert_eq!(seen.regressions().count(), 2);
}

#[test]
fn memory_of_runs_that_took_it_in_different_ways_is_withheld() {
    let (base, mut candidate) = (run(&NAMES, 12, 1), run(&NAMES, 12, 2));
    let asked = |base: &RunRecord, candidate: &RunRecord| {
        let question = Question { metrics: vec![Metric::Memory], ..question(Reference::None) };
        compare(("base", base), ("candidate", candidate), &question).unwrap()
    };
    let cautioned = |seen: &Comparison| seen.cautions.iter().any(|one| one.contains("PSS"));
    // Both runs are from an older joust: they are comparable, with a caution.
    let seen = asked(&base, &candidate);
    assert!(!matches!(seen.changes[0].verdict, Verdict::Withheld { .. }), "{seen:#?}");
    assert!(cautioned(&seen));
    for visit in &mut candidate.visits {
        visit.server.as_mut().unwrap().memory_account.method = MemoryMethod::PagesOnce;
    }
    let seen = asked(&base, &candidate);
    let Verdict::Withheld { reason } = &seen.changes[0].verdict else { panic!("{seen:#?}") };
    assert!(reason.contains("PSS for the base run, each page once for the candidate"), "{reason}");
    assert!(!cautioned(&asked(&candidate, &candidate)));
}

#[test]
fn a_ceiling_in_one_run_bounds_and_in_both_withholds() {
    let base = run(&NAMES, 20, 1);
    let mut slow = run_of(&NAMES, 20, 2, &[1.0, 0.5, 1.0, 1.0]);
    let first = |base: &RunRecord, candidate: &RunRecord| {
        let seen = compared(base, candidate, Reference::None);
        let one = seen.changes.iter().find(|one| one.contender == "joust one").unwrap();
        (one.verdict.clone(), one.direction, one.judgement)
    };
    // The generator limited the base run, so the regression is at least this large.
    let mut limited = base.clone();
    limited.findings = vec![finding(Severity::Bound, 1)];
    let (verdict, direction, judgement) = first(&limited, &slow);
    let Verdict::AtLeast { ratio, .. } = verdict else { panic!("{verdict:?}") };
    assert!((1.8..2.0).contains(&ratio), "{ratio}");
    assert_eq!((direction, judgement), (Direction::BaseOverCandidate, ChangeJudgement::Regression));
    // The generator limited the candidate run, so no regression can be shown.
    slow.findings = vec![finding(Severity::Bound, 1)];
    let (verdict, _, judgement) = first(&base, &slow);
    assert!(matches!(verdict, Verdict::Withheld { .. }), "{verdict:?}");
    assert_eq!(judgement, ChangeJudgement::Neither);
    let (verdict, ..) = first(&limited, &slow);
    assert!(matches!(verdict, Verdict::Withheld { reason } if reason.contains("both runs")));
    // If the candidate is ahead despite the limit, it is an improvement.
    let mut fast = run_of(&NAMES, 20, 2, &[1.0, 2.0, 1.0, 1.0]);
    fast.findings = vec![finding(Severity::Bound, 1)];
    let (verdict, direction, judgement) = first(&base, &fast);
    assert!(matches!(verdict, Verdict::AtLeast { ratio, .. } if ratio > 1.8), "{verdict:?}");
    assert_eq!(
        (direction, judgement),
        (Direction::CandidateOverBase, ChangeJudgement::Improvement)
    );
}

#[test]
fn what_was_asked_otherwise_is_not_compared_and_named() {
    let base = run(&["nginx", "apache", "gone"], 12, 1);
    let mut candidate = run(&["nginx", "apache", "new"], 12, 2);
    let seen = compared(&base, &candidate, Reference::None);
    assert_eq!(seen.unmatched, ["gone: only in the base run", "new: only in the candidate run"]);
    candidate.plan.cells[0].workload.connections += 1;
    let seen = compared(&base, &candidate, Reference::Found);
    assert!(seen.changes.is_empty() && !seen.says_something());
    assert!(seen.unmatched.contains(&"nginx: was asked otherwise".to_owned()), "{seen:#?}");
}

#[test]
fn other_machines_and_the_same_run_are_said() {
    let (base, mut candidate) = (run(&NAMES, 12, 1), run(&NAMES, 12, 2));
    candidate.facts.named.insert("kernel".to_owned(), "6.13".to_owned());
    candidate.ending = Ending::Incomplete { reason: "interrupted".to_owned() };
    let said = compared(&base, &candidate, Reference::Found).cautions.join("\n");
    assert!(said.contains("kernel 6.12 in the base run, 6.13 in the candidate"), "{said}");
    assert!(said.contains("the candidate run is incomplete: interrupted"), "{said}");
    assert!(compared(&base, &base, Reference::Found).cautions[0].contains("the same run"));
    let mut copy = base.clone();
    copy.visits[0].rate_per_s = Some(1.0);
    let said = |copy: &RunRecord| compared(&base, copy, Reference::Found).cautions[0].clone();
    assert!(said(&copy).starts_with("one run repeats or continues the other"), "{}", said(&copy));
    copy.integrity = Integrity::Changed;
    assert!(said(&copy).contains("a copy of the other whose file was changed"), "{}", said(&copy));
}

#[test]
fn too_few_blocks_are_undecided_however_clear_they_look() {
    let base = run(&NAMES, 2, 1);
    let candidate = run_of(&NAMES, 2, 2, &[1.0, 0.2, 1.0, 1.0]);
    let seen = compared(&base, &candidate, Reference::Found);
    assert!(matches!(seen.changes[0].verdict, Verdict::Undecided { more_blocks: Some(1..), .. }));
    assert_eq!(seen.regressions().count(), 0);
}

#[test]
fn what_worked_and_crashes_now_is_broken_and_no_figure_of_others_hides_it() {
    let (base, mut candidate) = (run(&NAMES, 12, 1), run(&NAMES, 12, 2));
    let crashes = |run: &mut RunRecord| {
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let (reason, log_tail) = ("it crashed".to_owned(), String::new());
            visit.state = record::VisitState::Failed { reason, log_tail };
        }
    };
    crashes(&mut candidate);
    let seen = compared(&base, &candidate, Reference::Found);
    let broken = |one: &&RunChange| one.judgement == ChangeJudgement::Broken;
    let names: Vec<&str> = seen.regressions().map(|one| &*one.contender).collect();
    assert_eq!(names, ["joust one", "joust one"], "of each metric: {seen:#?}");
    assert!(seen.regressions().all(|one| broken(&one)));
    // A contender that already crashed in the base run is not judged.
    let mut base = base;
    crashes(&mut base);
    assert_eq!(compared(&base, &candidate, Reference::Found).regressions().count(), 0);
}

#[test]
fn another_body_is_broken_and_a_warm_up_that_goes_on_is_not() {
    let base = run(&NAMES, 12, 1);
    for (check, broken) in [("different_bodies", 2), ("no_steady_state", 0)] {
        let mut candidate = run(&NAMES, 12, 2);
        candidate.findings =
            vec![Finding { check: check.to_owned(), ..finding(Severity::Void, 1) }];
        let seen = compared(&base, &candidate, Reference::Found);
        assert_eq!(seen.regressions().count(), broken, "{check}");
    }
}

/// A run in which one contender sent a different body, and a finding reports it.
fn with_body(mut run: RunRecord, contender: usize, body: &str) -> RunRecord {
    for (index, facts) in run.contenders.iter_mut().enumerate() {
        facts.body_sha256 = if index == contender { body } else { "11" }.to_owned();
    }
    let check = "different_bodies".to_owned();
    let odd = Finding { check, alike: true, ..finding(Severity::Void, contender) };
    run.findings = if body == "11" { Vec::new() } else { vec![odd] };
    run
}

#[test]
fn a_contender_is_held_against_its_own_body_not_against_that_of_others() {
    let [base, candidate] = [1, 2].map(|seed| run(&NAMES, 12, seed));
    let odd = |run: &RunRecord, body| with_body(run.clone(), 1, body);
    let seen = compared(&odd(&base, "22"), &odd(&candidate, "22"), Reference::Found);
    for change in &seen.changes {
        assert!(
            !matches!(change.verdict, Verdict::Withheld { .. }),
            "the same in both: {change:?}"
        );
    }
    for (was, is, judgement) in [
        ("11", "22", ChangeJudgement::Broken),
        ("22", "11", ChangeJudgement::Neither),
        ("22", "33", ChangeJudgement::Neither),
    ] {
        let seen = compared(&odd(&base, was), &odd(&candidate, is), Reference::Found);
        let withheld = |one: &&record::RunChange| matches!(one.verdict, Verdict::Withheld { .. });
        let touched: Vec<&record::RunChange> = seen.changes.iter().filter(withheld).collect();
        assert!(!touched.is_empty(), "{was} to {is}");
        for one in touched {
            assert_eq!((&*one.contender, one.judgement), ("joust one", judgement), "{was} to {is}");
            let Verdict::Withheld { reason } = &one.verdict else { unreachable!() };
            assert!(
                reason.contains("joust one sent another body in the candidate run"),
                "{reason}"
            );
        }
    }
}

#[test]
fn who_answered_nothing_is_withheld_and_costs_the_others_nothing() {
    let base = run(&NAMES, 12, 1);
    let mut candidate = run_of(&NAMES, 12, 2, &[1.0, 0.9, 1.0, 1.0]);
    let of = |seen: &Comparison, name: &str| {
        let is =
            |one: &&record::RunChange| one.contender == name && one.metric == Metric::Throughput;
        seen.changes.iter().find(is).unwrap().clone()
    };
    let all = of(&compared(&base, &candidate, Reference::Found), NAMES[1]);
    let last = NAMES.len() - 1;
    let mut silent = candidate.visits.iter_mut().filter(|visit| visit.contender == last);
    silent.next().unwrap().rate_per_s = Some(0.0);
    let seen = compared(&base, &candidate, Reference::Found);
    let Verdict::Withheld { reason } = of(&seen, NAMES[last]).verdict else { panic!("{seen:#?}") };
    assert!(
        reason.contains("1 of 12 visits of") && reason.contains("finished no request"),
        "{reason}"
    );
    let fewer = of(&seen, NAMES[1]);
    let [all, fewer] = [all, fewer].map(|one| one.estimate.unwrap().p_holm);
    assert!(fewer < all, "a family of one less: {fewer} beside {all}");
}
