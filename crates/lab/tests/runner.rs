//! The course of an experiment on a simulated machine: when it ends, who is dropped, what is kept.

mod simulate;

use std::sync::atomic::AtomicBool;

use joust_lab::LabError;
use joust_lab::session::{Command, EarlierVisits, PlannedVisit, Played, Stage as _, Watch, play};
use joust_lab::verdict::{verdicts, verdicts_after_skips};
use record::{Blocks, Ending, PairSoFar, Progress, UserSkip, Verdict, Visit, VisitState};
use simulate::{Noise, Simulated, plan};
use units::{Nanos, Share};

/// Remembers all it was told.
#[derive(Debug, Default)]
struct Notes {
    begun: Vec<PlannedVisit>,
    ended: usize,
    left: Vec<Nanos>,
    messages: Vec<String>,
}

impl Watch for Notes {
    fn visit_begins(&mut self, planned: PlannedVisit, progress: Progress) {
        self.begun.push(planned);
        self.left.push(progress.left);
    }
    fn visit_ends(&mut self, _: &Visit, _: Progress) {
        self.ended += 1;
    }
    fn message(&mut self, text: &str) {
        self.messages.push(text.to_owned());
    }
}

fn played(plan: &record::Plan, stage: &mut Simulated<'_>) -> (Played, Notes) {
    let mut notes = Notes::default();
    let played =
        play(plan, EarlierVisits::default(), stage, &mut notes, &AtomicBool::new(false)).unwrap();
    (played, notes)
}

#[test]
fn narrow_intervals_end_the_run_after_the_least_number_of_blocks() {
    let noise = Noise::none();
    let (played, notes) = played(&plan(&["a", "b"]), &mut Simulated::new(&noise, 1, &[1e4, 2e4]));
    assert_eq!(played.ending, Ending::Narrow);
    assert_eq!(played.visits.len(), 8 * 2);
    assert_eq!((notes.begun.len(), notes.ended), (16, 16));
}

#[test]
fn wide_intervals_go_on_to_the_largest_number_of_blocks() {
    let noise = Noise::recorded();
    let mut wide = plan(&["a", "b"]);
    wide.blocks.half_width = Share(1e-6);
    let (played, _) = played(&wide, &mut Simulated::new(&noise, 1, &[1e4, 1e4]));
    assert_eq!(played.ending, Ending::Blocks);
    assert_eq!(played.visits.len(), 16 * 2);
}

#[test]
fn each_block_visits_all_in_an_order_that_the_seed_repeats() {
    let noise = Noise::none();
    let design = |seed| {
        let mut plan = plan(&["a", "b", "c", "d", "e"]);
        plan.seed = seed;
        played(&plan, &mut Simulated::new(&noise, 1, &[1e4; 5])).1.begun
    };
    let first = design(1);
    assert_eq!(first, design(1));
    assert_ne!(first, design(2));
    for block in first.chunks(5) {
        assert!(block.iter().all(|planned| planned.block == block[0].block));
        let mut contenders: Vec<usize> = block.iter().map(|planned| planned.contender).collect();
        contenders.sort_unstable();
        assert_eq!(contenders, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn a_block_that_does_not_fit_the_budget_is_not_begun() {
    let noise = Noise::recorded();
    let mut short = plan(&["a", "b"]);
    short.blocks.half_width = Share(1e-6);
    short.budget = Nanos::from_secs(21);
    let mut stage = Simulated::new(&noise, 1, &[1e4, 1e4]);
    let (played, notes) = played(&short, &mut stage);
    assert_eq!(played.ending, Ending::Budget);
    assert_eq!(played.visits.len(), 20, "ten blocks of 2 s fit 21 s, the eleventh does not");
    // The estimate of the time left counts whole blocks, so it ends with the budget's last block.
    assert_eq!(notes.left[4], Nanos::from_secs(16));
    assert_eq!(notes.left[19], Nanos::from_secs(1));
}

#[test]
fn what_was_measured_before_an_interrupt_is_kept_and_called_incomplete() {
    let noise = Noise::none();
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
    stage.interrupted_in = Some(5);
    let (played, _) = played(&plan(&["a", "b"]), &mut stage);
    assert_eq!(played.visits.len(), 5);
    assert!(matches!(played.ending, Ending::Incomplete { .. }), "{:?}", played.ending);
}

#[test]
fn an_interrupt_before_the_first_visit_leaves_an_incomplete_run() {
    let noise = Noise::none();
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
    let played = play(
        &plan(&["a", "b"]),
        EarlierVisits::default(),
        &mut stage,
        &mut (),
        &AtomicBool::new(true),
    )
    .unwrap();
    assert!(played.visits.is_empty());
    assert!(matches!(played.ending, Ending::Incomplete { .. }));
}

#[test]
fn a_contender_that_never_starts_is_given_up_after_the_first_try() {
    let noise = Noise::none();
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4, 3e4]);
    stage.dead.insert(1);
    stage.dead_takes = Nanos::from_secs(20);
    let mut plan = plan(&["a", "b", "c"]);
    plan.budget = Nanos::from_secs(38);
    let (played, notes) = played(&plan, &mut stage);
    assert_eq!(notes.begun.iter().filter(|planned| planned.contender == 1).count(), 0);
    assert_eq!(played.ending, Ending::Narrow, "the others have the time that it does not take");
    assert!(notes.messages.iter().any(|text| text == "b is left out of the rest of the run"));
    let of = |n| played.visits.iter().filter(move |visit| visit.contender == n).count();
    assert_eq!((of(0), of(1), of(2)), (8, 1, 8), "one visit says why");
    let verdicts = joust_lab::verdict::verdicts(&plan, &played.visits, &[]);
    let reason = "b never answered: it did not start (given up after the first try)".to_owned();
    for pair in &verdicts {
        match (pair.a, pair.b) {
            (0, 2) => assert!(!matches!(pair.verdict, Verdict::Withheld { .. }), "{pair:?}"),
            _ => assert_eq!(pair.verdict, Verdict::Withheld { reason: reason.clone() }),
        }
    }
}

#[test]
fn a_contender_that_answered_and_fails_later_is_not_given_up_at_its_first_failure() {
    let noise = Noise::none();
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4, 3e4]);
    stage.fails_in.insert(1, vec![0]);
    let (played, _) = played(&plan(&["a", "b", "c"]), &mut stage);
    let measured = |visit: &&Visit| visit.contender == 1 && visit.state == VisitState::Measured;
    assert_eq!(played.visits.iter().filter(measured).count(), 8);
}

/// A machine on which visits take longer than their load, in a way of its own.
struct Slow {
    budget_s: u64,
    contenders: usize,
    visit_ms: u64,
    start_ms: u64,
    slows_by_ms: u64,
    disturbed: bool,
}

#[test]
fn a_run_takes_at_most_five_percent_more_than_its_budget() {
    let noise = Noise::recorded();
    let usual = Slow {
        budget_s: 70,
        contenders: 4,
        visit_ms: 1600,
        start_ms: 850,
        slows_by_ms: 0,
        disturbed: false,
    };
    let machines = [
        Slow { ..usual },
        // The first block, of which the load alone would fit.
        Slow { budget_s: 20, contenders: 10, ..usual },
        Slow { budget_s: 30, contenders: 10, ..usual },
        Slow { disturbed: true, ..usual },
        Slow { budget_s: 28, contenders: 10, disturbed: true, ..usual },
        Slow { slows_by_ms: 40, ..usual },
        Slow { slows_by_ms: 150, contenders: 10, ..usual },
        Slow { visit_ms: 900, start_ms: 100, budget_s: 10, ..usual },
    ];
    for (n, machine) in machines.into_iter().enumerate() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let mut plan = plan(&names[..machine.contenders]);
        plan.blocks = Blocks { min: 8, max: 1000, half_width: Share(1e-6) };
        plan.budget = Nanos::from_secs(machine.budget_s);
        let mut stage = Simulated::new(&noise, 1, &vec![1e4; machine.contenders]);
        stage.visit_takes = Nanos::from_millis(machine.visit_ms);
        stage.start_takes = Nanos::from_millis(machine.start_ms);
        stage.slows_by = Nanos::from_millis(machine.slows_by_ms);
        stage.disturbed_in = (0..1000).filter(|_| machine.disturbed).collect();
        let played =
            play(&plan, EarlierVisits::default(), &mut stage, &mut (), &AtomicBool::new(false));
        let took = stage.now();
        assert!(took.0 <= plan.budget.0 / 20 * 21, "{n}: {took} of {}", plan.budget);
        match played {
            Ok(played) => {
                assert_eq!(played.ending, Ending::Budget, "{n}");
                // What is left over would not hold another block.
                let block = machine.visit_ms * machine.contenders as u64 * 2;
                let left = plan.budget.saturating_sub(took);
                assert!(left < Nanos::from_millis(block), "{n}: {left} left");
            }
            Err(error) => assert!(matches!(error, LabError::NoBlock { .. }), "{n}: {error}"),
        }
    }
}

#[test]
fn a_budget_that_holds_no_block_is_told_before_the_first_visit() {
    let noise = Noise::none();
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
    stage.start_takes = Nanos::from_secs(2);
    let mut short = plan(&["a", "b"]);
    short.budget = Nanos::from_secs(8);
    let mut notes = Notes::default();
    let error =
        play(&short, EarlierVisits::default(), &mut stage, &mut notes, &AtomicBool::new(false))
            .unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("the budget of 8s does not hold one block: its 2 visits"), "{text}");
    assert!(text.contains("take 5.7s") && text.contains("4s passed"), "{text}");
    assert!(notes.begun.is_empty());
}

#[test]
fn a_first_block_that_may_but_need_not_fit_is_begun_and_ended_where_it_does_not() {
    let noise = Noise::none();
    let mut settling = plan(&["a", "b", "c"]);
    settling.visit.settle = Nanos::from_secs(60);
    settling.budget = Nanos::from_secs(100);
    for (visit_s, visits, ending) in [(11, 9, Ending::Budget), (60, 1, Ending::Budget)] {
        let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4, 3e4]);
        stage.visit_takes = Nanos::from_secs(visit_s);
        let (played, notes) = played(&settling, &mut stage);
        assert_eq!((played.visits.len(), &played.ending), (visits, &ending), "{visit_s} s");
        assert!(notes.messages[0].starts_with("a block may take up to"), "{notes:?}");
    }
}

#[test]
fn a_server_that_dies_in_the_middle_costs_that_visit_only() {
    let noise = Noise::none();
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
    stage.fails_in.insert(0, vec![3]);
    let (played, _) = played(&plan(&["a", "b"]), &mut stage);
    let failed: Vec<u32> = played
        .visits
        .iter()
        .filter(|visit| matches!(visit.state, VisitState::Failed { .. }))
        .map(|visit| visit.block)
        .collect();
    assert_eq!(failed, [3]);
    assert_eq!(played.visits.len(), 18, "one block more makes up for it");
}

#[test]
fn with_fewer_than_two_that_answer_there_is_no_run_and_the_logs_say_why() {
    let noise = Noise::none();
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
    stage.dead.insert(0);
    let error = play(
        &plan(&["a", "b"]),
        EarlierVisits::default(),
        &mut stage,
        &mut (),
        &AtomicBool::new(false),
    )
    .unwrap_err();
    assert!(matches!(error, LabError::NoneAnswers { .. }));
    let text = error.to_string();
    assert!(text.contains("a: it did not start") && text.contains("oops"), "{text}");
}

#[test]
fn a_visit_on_a_disturbed_machine_is_made_again_and_both_are_kept() {
    let noise = Noise::none();
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
    // The second visit once, the fifth whenever it is made.
    stage.disturbed_in = [1, 5, 6, 7].into();
    let (played, notes) = played(&plan(&["a", "b"]), &mut stage);
    let kept: Vec<(u32, u32, bool)> = played
        .visits
        .iter()
        .filter(|visit| visit.disturbance().is_some())
        .map(|visit| (visit.block, visit.attempt, visit.state == VisitState::Disturbed))
        .collect();
    assert_eq!(kept, [(0, 0, true), (2, 0, true), (2, 1, true), (2, 2, false)]);
    let used = played.visits.iter().filter(|visit| visit.state == VisitState::Measured).count();
    assert_eq!((used, played.visits.len()), (16, 19));
    assert_eq!(notes.messages.len(), 3, "{:?}", notes.messages);
}

#[test]
fn a_visit_that_a_quota_stopped_is_used_as_it_is() {
    let noise = Noise::none();
    let plan = plan(&["a", "b"]);
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
    stage.disturbed_in = (0..4).collect();
    stage.disturbed_by =
        record::Disturbance::Throttled { periods: 3, stopped: units::Nanos::from_millis(40) };
    let (played, _) = played(&plan, &mut stage);
    assert!(played.visits.iter().all(|visit| visit.state == VisitState::Measured));
    assert_eq!(played.visits.iter().filter(|visit| visit.disturbance().is_some()).count(), 4);
}

#[test]
fn a_visit_without_a_request_on_a_disturbed_machine_is_made_again_and_withholds_nobody() {
    let noise = Noise::none();
    let mut plan = plan(&["a", "b"]);
    (plan.blocks.min, plan.blocks.max) = (20, 20);
    let withheld = |keep_disturbed: bool, silent: &[usize]| {
        let plan = record::Plan { keep_disturbed, ..plan.clone() };
        let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
        stage.disturbed_in = (0..1000).collect();
        stage.silent_in = silent.iter().copied().collect();
        let (played, _) = played(&plan, &mut stage);
        let silent: Vec<(VisitState, u32)> = played
            .visits
            .iter()
            .filter(|visit| visit.rate_per_s == Some(0.0))
            .map(|visit| (visit.state.clone(), visit.attempt))
            .collect();
        let verdicts = joust_lab::verdict::verdicts(&plan, &played.visits, &[]);
        (matches!(verdicts[0].verdict, Verdict::Withheld { .. }), silent)
    };
    // Where the repeats of a busy machine are used up, and where it is asked that none be made.
    let used_up = 11;
    assert_eq!(withheld(false, &[used_up]), (false, vec![(VisitState::Disturbed, 0)]));
    let twice = vec![(VisitState::Disturbed, 0), (VisitState::Disturbed, 1)];
    assert_eq!(withheld(true, &[5, 6]), (false, twice.clone()));
    // A server that never answers is told after as many tries as any visit has.
    let always = [twice, vec![(VisitState::Measured, 2)]].concat();
    assert_eq!(withheld(true, &[5, 6, 7]), (true, always));
}

#[test]
fn on_a_machine_that_is_always_disturbed_a_quarter_more_visits_are_made_or_none() {
    let noise = Noise::none();
    let mut plan = plan(&["a", "b"]);
    plan.blocks.min = 20;
    plan.blocks.max = 20;
    let disturbed = |plan: &record::Plan| {
        let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4]);
        stage.disturbed_in = (0..1000).collect();
        let (played, _) = played(plan, &mut stage);
        let used = played.visits.iter().filter(|visit| visit.state == VisitState::Measured);
        (used.count(), played.visits.len())
    };
    // Two repeats to begin with, and one more for each four visits that are used.
    assert_eq!(disturbed(&plan), (40, 40 + 2 + 9));
    plan.keep_disturbed = true;
    assert_eq!(disturbed(&plan), (40, 40));
}

#[test]
fn a_run_that_goes_on_makes_no_visit_twice_and_keeps_to_the_order() {
    let noise = Noise::recorded();
    let mut plan = celled(&["a", "b", "c"]);
    plan.blocks.half_width = Share(1e-6);
    plan.blocks.max = 9;
    let rates = [1e4, 2e4, 3e4];
    let (whole, notes) = played(&plan, &mut Simulated::new(&noise, 1, &rates));
    let cut = 25;
    let before = EarlierVisits {
        block: whole.visits[cut].block,
        visits: whole.visits[..cut].to_vec(),
        elapsed: Nanos::from_secs(25),
        floor: 0,
        skips: Vec::new(),
    };
    let mut rest = Notes::default();
    let mut stage = Simulated::new(&noise, 1, &rates);
    let on = play(&plan, before, &mut stage, &mut rest, &AtomicBool::new(false)).unwrap();
    assert_eq!(rest.begun, notes.begun[cut..], "what is left, in the order it would have had");
    assert_eq!((on.visits.len(), on.ending), (whole.visits.len(), Ending::Blocks));
}

#[test]
fn each_cell_ends_for_itself_when_it_is_narrow() {
    let noise = Noise::none();
    let plan = celled(&["a", "b", "c"]);
    let mut stage = Simulated::new(&noise, 1, &[1e4, 2e4, 3e4]);
    // Noise in the second cell alone: its blocks go on when those of the first are done.
    stage.noisy_cell = Some((1, 0.3));
    let (played, _) = played(&plan, &mut stage);
    let blocks =
        |cell| played.visits.iter().filter(|v| v.cell == cell).map(|v| v.block + 1).max().unwrap();
    assert_eq!((blocks(0), blocks(1)), (8, 16));
    let of = |cell, contender| {
        played.visits.iter().filter(|v| (v.cell, v.contender) == (cell, contender)).count()
    };
    assert_eq!([of(0, 0), of(0, 1), of(0, 2)], [8; 3]);
    assert_eq!([of(1, 0), of(1, 1), of(1, 2)], [16, 0, 16], "b takes no part in the second cell");
}

/// A plan of two cells; the second contender is in the first alone.
fn celled(names: &[&str]) -> record::Plan {
    let mut plan = plan(names);
    let cell = |name: &str| record::Cell { name: name.into(), ..plan.cells[0].clone() };
    plan.cells = vec![cell("one"), cell("two")];
    plan.contenders[1].cells = vec![0];
    plan
}

/// A user at the screen: asks for something when a visit begins, and remembers what was told.
#[derive(Debug, Default)]
struct User {
    /// Block and position of a visit, and what is asked for while it goes on.
    asks: Vec<((u32, u32), Command)>,
    commands: Vec<Command>,
    begun: Vec<PlannedVisit>,
    messages: Vec<String>,
    /// Pairs after each block.
    pairs: Vec<Vec<PairSoFar>>,
    left: Vec<Progress>,
}

impl Watch for User {
    fn visit_begins(&mut self, planned: PlannedVisit, progress: Progress) {
        let at = (planned.block, planned.position);
        self.commands.extend(self.asks.iter().filter(|(when, _)| *when == at).map(|(_, ask)| *ask));
        self.begun.push(planned);
        self.left.push(progress);
    }
    fn message(&mut self, text: &str) {
        self.messages.push(text.to_owned());
    }
    fn looks_closely(&self) -> bool {
        true
    }
    fn pairs(&mut self, pairs: &[PairSoFar]) {
        self.pairs.push(pairs.to_vec());
    }
    fn take_command(&mut self) -> Option<Command> {
        (!self.commands.is_empty()).then(|| self.commands.remove(0))
    }
}

fn with_user(names: &[&str], asks: &[((u32, u32), Command)]) -> (record::Plan, Played, User) {
    let noise = Noise::recorded();
    let mut plan = plan(names);
    plan.blocks.half_width = Share(1e-6);
    let mut user = User { asks: asks.to_vec(), ..User::default() };
    let mut stage = Simulated::new(&noise, 1, &vec![1e4; names.len()]);
    let never = AtomicBool::new(false);
    let played = play(&plan, EarlierVisits::default(), &mut stage, &mut user, &never).unwrap();
    (plan, played, user)
}

#[test]
fn a_user_who_stops_gets_the_whole_block_and_verdicts() {
    for (at, blocks) in [((0, 0), 1), ((4, 1), 5), ((4, 2), 5)] {
        let (plan, played, user) = with_user(&["a", "b", "c"], &[(at, Command::StopAfterBlock)]);
        assert_eq!(played.ending, Ending::Stopped { blocks });
        assert_eq!(played.visits.len(), 3 * blocks as usize, "the block is made to its end");
        assert_eq!(user.pairs.len(), blocks as usize);
        let all = verdicts(&plan, &played.visits, &[]);
        let short = all[0].short_of.map(|short| (short.blocks, short.of));
        assert_eq!(short, Some((blocks, plan.blocks.min)), "the verdicts say what is missing");
    }
    let (plan, played, user) =
        with_user(&["a", "b"], &[((1, 0), Command::StopAfterBlock), ((1, 1), Command::GoOn)]);
    assert_eq!(played.ending, Ending::Blocks, "it was taken back in time");
    assert_eq!(played.visits.len(), 2 * plan.blocks.max as usize);
    assert_eq!(user.left[3].blocks_left, 0, "while it stood, no further block was expected");
}

#[test]
fn the_last_block_or_narrow_intervals_end_a_run_by_themselves() {
    let last = (15, 0);
    let (_, played, _) = with_user(&["a", "b"], &[(last, Command::StopAfterBlock)]);
    assert_eq!(played.ending, Ending::Blocks);
}

#[test]
fn a_skipped_contender_keeps_its_visits_and_gets_no_verdict() {
    let skip = Command::Skip { contender: 1 };
    let (plan, played, user) = with_user(&["a", "b", "c"], &[((2, 2), skip), ((5, 0), skip)]);
    let of = |one| played.visits.iter().filter(move |visit| visit.contender == one);
    assert_eq!((of(0).count(), of(1).count(), of(2).count()), (16, 3, 16));
    let skipped: Vec<_> = played.contenders.iter().map(|facts| facts.skipped_in).collect();
    assert_eq!(skipped, [None, Some(3), None], "the third block was complete");
    assert_eq!(user.messages, ["b is skipped by the user from block 4 on"]);
    assert!(user.pairs[15].iter().all(|pair| (pair.a, pair.b) == (0, 2)));
    let skips = [UserSkip { contender: 1, block: 3 }];
    for pair in verdicts_after_skips(&plan, &played.visits, &[], &skips) {
        let reason = "b was skipped by the user in block 4".to_owned();
        let is_withheld = pair.verdict == Verdict::Withheld { reason };
        assert_eq!(is_withheld, pair.a == 1 || pair.b == 1, "{pair:?}");
        assert!(pair.estimate.is_some(), "the figures are shown beside it");
    }
}

#[test]
fn the_last_two_contenders_cannot_be_skipped() {
    let (_, played, user) = with_user(
        &["a", "b"],
        &[((0, 0), Command::Skip { contender: 0 }), ((0, 1), Command::Skip { contender: 9 })],
    );
    assert_eq!(user.messages, ["a is not skipped: a comparison needs at least 2 contenders"]);
    assert_eq!((played.visits.len(), played.ending), (32, Ending::Blocks));
}

#[test]
fn a_resumed_run_does_not_visit_whom_the_user_had_skipped() {
    let noise = Noise::none();
    let plan = plan(&["a", "b", "c"]);
    let skips = vec![UserSkip { contender: 2, block: 0 }];
    let before = EarlierVisits { skips, ..EarlierVisits::default() };
    let mut stage = Simulated::new(&noise, 1, &[1e4; 3]);
    let played = play(&plan, before, &mut stage, &mut (), &AtomicBool::new(false)).unwrap();
    assert!(played.visits.iter().all(|visit| visit.contender < 2));
    assert_eq!(played.contenders[2].skipped_in, Some(0));
}

#[test]
fn what_is_shown_of_pairs_is_what_their_verdict_will_say() {
    let (plan, played, user) = with_user(&["a", "b", "c"], &[((9, 0), Command::StopAfterBlock)]);
    let said = verdicts(&plan, &played.visits, &[]);
    let shown = user.pairs.last().unwrap();
    assert_eq!(shown.len(), 3);
    for pair in shown {
        let verdict = said.iter().find(|one| (one.a, one.b) == (pair.a, pair.b)).unwrap();
        let estimate = verdict.estimate.unwrap();
        assert_eq!(
            (pair.ratio, pair.interval),
            (estimate.ratio, Some((estimate.low, estimate.high)))
        );
    }
}
