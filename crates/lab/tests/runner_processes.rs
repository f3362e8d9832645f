//! Runs on this machine, with real processes and sockets: a stand-in for our own binary plays
//! servers that work, die, never start or serve another page.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use joust_lab::LabError;
use joust_lab::runner::{Outcome, RunOptions, outcome, run};
use joust_lab::server;
use joust_lab::session::{PlannedVisit, Watch};
use joust_lab::study::{self, Form};
use record::{Ending, Metric, Plan, Progress, RunRecord, Verdict, Visit, VisitState};

/// One run at a time: each test asks whether a server is left.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn plan(models: &[&str]) -> Plan {
    let head = r#"
        name = "planted"
        question = "Does it hold?"
        budget = "10m"
        keep_disturbed = true
        [workload]
        page = 3361
        connections = 4
        timeout = "30s"
        [blocks]
        min = 2
        max = 2
        [visit]
        warm_up = "50ms"
        measure = "100ms"
    "#;
    let contender = |model: &&str| {
        format!(
            "[[contender]]\nname = \"{model}\"\nserver = \"joust\"\nsettings.model = \"{model}\"\n"
        )
    };
    let contenders: String = models.iter().map(contender).collect();
    study::parse("planted.toml", &format!("{head}\n{contenders}"), Form::Full).unwrap()
}

fn options() -> RunOptions {
    let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/planted_server.pl");
    RunOptions { joust_binary: stand_in, joust_version: "test".into(), ..RunOptions::default() }
}

fn of(run: &RunRecord, contender: usize) -> Vec<&Visit> {
    run.visits.iter().filter(|visit| visit.contender == contender).collect()
}

fn assert_none_is_left() {
    let left = server::running();
    assert!(left.is_empty(), "still there: {left:?}");
}

/// Sets the flag when a visit begins.
struct Interrupter<'a> {
    at: PlannedVisit,
    flag: &'a AtomicBool,
}

impl Watch for Interrupter<'_> {
    fn visit_begins(&mut self, planned: PlannedVisit, _: Progress) {
        if (planned.block, planned.position) == (self.at.block, self.at.position) {
            self.flag.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn two_servers_that_work_are_measured_and_none_is_left() {
    let _alone = alone();
    let run = run(plan(&["left", "right"]), &options(), &mut (), &AtomicBool::new(false)).unwrap();
    assert_eq!(run.ending, Ending::Blocks);
    assert_eq!(run.visits.len(), 4);
    for visit in &run.visits {
        assert_eq!(visit.state, VisitState::Measured);
        assert!(visit.value(Metric::Throughput).unwrap() > 0.0);
        let used = visit.server.unwrap();
        assert!(used.cpu.0 > 0 && used.memory.0 > 0 && used.requests > 0, "{used:?}");
        assert!(visit.load.as_ref().unwrap().requests.failed == 0);
    }
    for facts in &run.contenders {
        assert_eq!(facts.version, "joust/0.0.0-planted");
        assert_eq!(facts.body_sha256, run.contenders[0].body_sha256);
        assert!(facts.head.starts_with("HTTP/1.1 200 OK"), "{}", facts.head);
    }
    assert_eq!(RunRecord::from_json(&run.to_json()).unwrap(), run);
    assert_none_is_left();
}

#[test]
fn a_server_that_dies_while_it_is_loaded_fails_that_visit_with_its_last_words() {
    let _alone = alone();
    let plan = plan(&["steady", "mortal", "other"]);
    let run = run(plan, &options(), &mut (), &AtomicBool::new(false)).unwrap();
    for visit in of(&run, 1) {
        let VisitState::Failed { reason, log_tail } = &visit.state else {
            panic!("not failed: {:?}", visit.rate_per_s)
        };
        assert!(reason.contains("ended while it was loaded"), "{reason}");
        assert!(log_tail.contains("planted: out of luck"), "{log_tail}");
    }
    assert!(of(&run, 0).iter().all(|visit| visit.state == VisitState::Measured));
    let pair = run.verdicts.iter().find(|pair| (pair.a, pair.b) == (0, 1)).unwrap();
    assert!(
        matches!(&pair.verdict, Verdict::Withheld { reason } if reason.contains("mortal failed")),
        "{:?}",
        pair.verdict
    );
    assert_none_is_left();
}

#[test]
fn a_server_that_never_starts_is_dropped_and_the_run_goes_on() {
    let _alone = alone();
    let plan = plan(&["steady", "stillborn", "other"]);
    let run = run(plan, &options(), &mut (), &AtomicBool::new(false)).unwrap();
    let tried = of(&run, 1);
    assert_eq!(tried.len(), 1, "once in discovery, once here");
    let VisitState::Failed { reason, log_tail } = &tried[0].state else { panic!("it started?") };
    assert!(reason.contains("ended before it answered"), "{reason}");
    assert!(log_tail.contains("planted: no such device"), "{log_tail}");
    assert_eq!((of(&run, 0).len(), of(&run, 2).len()), (2, 2));
    assert_none_is_left();
}

#[test]
fn with_one_server_that_starts_there_is_no_run_and_its_log_is_shown() {
    let _alone = alone();
    let plan = plan(&["steady", "stillborn"]);
    let error = run(plan, &options(), &mut (), &AtomicBool::new(false)).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LabError::NoneAnswers { .. }), "{text}");
    assert!(text.contains("stillborn") && text.contains("planted: no such device"), "{text}");
    assert_none_is_left();
}

#[test]
fn an_interrupt_inside_a_visit_keeps_those_before_it() {
    let _alone = alone();
    let mut long = plan(&["left", "right"]);
    long.visit.measure = units::Nanos::from_secs(600);
    long.budget = units::Nanos::from_secs(86_400);
    let flag = AtomicBool::new(false);
    let at = PlannedVisit { cell: 0, contender: 0, block: 0, position: 0, attempt: 0 };
    let run = run(long, &options(), &mut Interrupter { at, flag: &flag }, &flag).unwrap();
    assert!(run.visits.is_empty(), "a visit of ten minutes did not take planned");
    assert!(matches!(run.ending, Ending::Incomplete { .. }), "{:?}", run.ending);
    assert_eq!(outcome(&run), Outcome::Incomplete);
    assert_none_is_left();

    let flag = AtomicBool::new(false);
    let at = PlannedVisit { cell: 0, contender: 0, block: 1, position: 1, attempt: 0 };
    let mut watch = Interrupter { at, flag: &flag };
    let run = joust_lab::runner::run(plan(&["left", "right"]), &options(), &mut watch, &flag);
    assert_eq!(run.unwrap().visits.len(), 3);
    assert_none_is_left();
}

#[test]
fn what_is_not_installed_is_left_out_with_the_command_that_brings_it() {
    let _alone = alone();
    let missing = RunOptions { joust_binary: "/nonexistent/joust".into(), ..options() };
    let error = run(plan(&["left", "right"]), &missing, &mut (), &AtomicBool::new(false));
    let error = error.unwrap_err();
    assert!(matches!(&error, LabError::TooFew { present, skipped }
        if present.is_empty() && skipped.len() == 2));
    assert!(
        error.to_string().contains("none of the study's contenders can be run here"),
        "{error}"
    );
}
