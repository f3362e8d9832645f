//! Frames of the live screen of a run, drawn into memory.

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use record::{Finding, PairSoFar, Plan, Progress, RunRecord, UserSkip, VisitState};
use units::Nanos;

use super::*;
use crate::testdata;

/// The run as it is seen when `n_visits` of its visits have ended.
fn after(run: &RunRecord, n_visits: usize) -> RunLive {
    let mut live = RunLive::new(&run.plan);
    live.discovery_begins(0);
    let progress = |n: usize| Progress {
        elapsed: Nanos::from_millis(1_500 + 1_200 * n as u64),
        left: Nanos::from_secs(42),
        left_of_block: Nanos::from_millis(2_400),
        blocks_left: 5,
        block_time: Nanos::from_millis(8_100),
        visits_seen: n as u64,
    };
    for (n, visit) in run.visits.iter().take(n_visits).enumerate() {
        let (cell, contender, block) = (visit.cell, visit.contender, visit.block);
        let place = VisitPlace { cell, contender, block, attempt: 0 };
        live.visit_begins(place, progress(n));
        live.visit_ends(visit, progress(n + 1));
    }
    if let Some(next) = run.visits.get(n_visits) {
        let (cell, contender, block) = (next.cell, next.contender, next.block);
        let place = VisitPlace { cell, contender, block, attempt: 0 };
        live.visit_begins(place, progress(n_visits));
    }
    live.set_pairs(&pairs(run));
    live.set_findings(&run.findings);
    live
}

/// What the verdicts of the primary metric rest on.
fn pairs(run: &RunRecord) -> Vec<PairSoFar> {
    let metric = run.plan.metrics[0];
    let of = run.verdicts.iter().filter(|pair| pair.metric == metric);
    of.filter_map(|pair| {
        let estimate = pair.estimate?;
        Some(PairSoFar {
            cell: pair.cell,
            a: pair.a,
            b: pair.b,
            blocks: estimate.blocks,
            ratio: estimate.ratio,
            interval: Some((estimate.low, estimate.high)),
        })
    })
    .collect()
}

fn frame(live: &RunLive, view: &RunView, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw_run(live, view, frame)).unwrap();
    terminal.backend().to_string()
}

fn view() -> RunView {
    RunView { since: Nanos::from_millis(800), ..RunView::default() }
}

#[test]
fn a_run_on_a_usual_terminal() {
    insta::assert_snapshot!(frame(&after(&testdata::run_with(3), 7), &view(), (80, 24)));
}

#[test]
fn a_run_on_a_large_terminal() {
    insta::assert_snapshot!(frame(&after(&testdata::run(), 21), &view(), (120, 50)));
}

#[test]
fn a_run_on_a_small_terminal() {
    let mut live = after(&testdata::run_with(3), 7);
    live.message("nginx: the visit is made again: other processes used 12 % of a core");
    insta::assert_snapshot!(frame(&live, &view(), (40, 15)));
}

#[test]
fn a_run_without_unicode_or_colour() {
    let plain = RunView { unicode: false, colour: false, ..view() };
    let text = frame(&after(&testdata::celled(), 5), &plain, (80, 24));
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_wish_is_shown_until_it_is_granted_or_refused() {
    let run = testdata::run_with(3);
    let mut live = after(&run, 4);
    let shown = |live: &RunLive| frame(live, &view(), (100, 24));
    assert!(live.ask_to_skip(1) && !live.ask_to_skip(1) && !live.ask_to_skip(99));
    assert!(live.ask_to_stop());
    let text = shown(&live);
    assert!(text.contains("to be skipped") && text.contains("STOPS after this block"), "{text}");
    assert!(text.contains("then it ends"), "{text}");
    live.skipped(UserSkip { contender: 1, block: 1 });
    live.ask_to_skip(2);
    live.visit_begins(VisitPlace { block: 2, ..VisitPlace::default() }, Progress::default());
    let text = shown(&live);
    assert!(text.contains("skipped from block 2 on") && !text.contains("to be skipped"), "{text}");
    assert!(!live.ask_to_stop() && !shown(&live).contains("STOPS"));
}

#[test]
fn the_question_lists_who_is_left_with_numbers() {
    let mut live = after(&testdata::run_with(3), 4);
    live.skipped(UserSkip { contender: 0, block: 0 });
    let asking = RunView { asking: Some("2".to_owned()), ..view() };
    let text = frame(&live, &asking, (80, 24));
    let name = &testdata::run_with(3).plan.contenders[1].name;
    assert!(text.contains(&format!("  2  {name}")) && text.contains("number: 2_"), "{text}");
    assert!(!text.contains("  1  joust"), "it is skipped already: {text}");
    let help = RunView { help: true, ..view() };
    assert!(frame(&live, &help, (80, 24)).contains("verdicts are withheld"));
}

#[test]
fn findings_failures_and_other_load_are_seen() {
    let mut run = testdata::run_with(3);
    let failed = VisitState::Failed { reason: "it hung".to_owned(), log_tail: String::new() };
    run.visits[0].state = failed;
    let mut around = record::Surroundings::default();
    around.calm.wall = Nanos::from_secs(1);
    around.calm.foreign = Some(record::Foreign {
        cpu: Nanos::from_millis(120),
        most: Some(("rsync\u{1b}".to_owned(), Nanos::from_millis(100))),
    });
    run.visits[1].surroundings = Some(Box::new(around));
    run.findings = vec![Finding {
        check: "generator_limit".to_owned(),
        contenders: vec![0],
        ..Finding::default()
    }];
    let text = frame(&after(&run, 4), &view(), (120, 30));
    let name = &run.plan.contenders[0].name;
    for part in [
        "1 FAILED",
        "other processes 12 % of a core, most of it rsync\u{fffd}",
        &format!("Findings so far: generator_limit (suspected; {name})"),
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn messages_are_bounded_and_what_was_dropped_is_counted() {
    let mut live = RunLive::new(&testdata::run_with(2).plan);
    (0..1_000).for_each(|n| live.message(&format!("message {n}")));
    let kept: Vec<String> = live.messages().collect();
    assert_eq!((kept.len(), kept[0].as_str()), (201, "(800 earlier messages not kept)"));
    assert_eq!(kept[200], "message 999");
}

proptest! {
    #[test]
    fn no_size_and_no_run_makes_a_frame_panic(
        size in (1u16..=200, 1u16..=80),
        n_visits in 0usize..40,
        (help, unicode) in any::<(bool, bool)>(),
        asking in prop::option::of("[0-9]{0,4}"),
        names in prop::collection::vec(".{0,30}", 3),
    ) {
        let mut run = testdata::run_with(3);
        for (contender, name) in run.plan.contenders.iter_mut().zip(names) {
            contender.name = name;
        }
        let view = RunView { help, unicode, colour: unicode, asking, since: Nanos::from_secs(3) };
        frame(&after(&run, n_visits), &view, size);
        frame(&RunLive::new(&Plan { cells: run.plan.cells.clone(), ..Plan::default() }), &view, size);
    }
}
