//! Owns the course of an experiment: discovery, blocks in random order, which contenders are dropped, when to end.
//! Must not know servers, clocks or files: the world is a [`Stage`], so that a simulated one takes
//! the same course. Start reading at [`play`].

use std::sync::atomic::{AtomicBool, Ordering};

use record::{
    ContenderFacts, CpuLayout, Disturbance, Ending, Finding, PairSoFar, Plan, Progress, Skipped,
    UserSkip, Visit, VisitState,
};
use units::Nanos;

use crate::budget::{Costs, UnknownCost};
use crate::error::LabError;
use crate::schedule::Schedule;
use crate::verdict::{narrow_enough, pairs_so_far};

/// How often a visit is repeated because the machine was disturbed. On an always disturbed machine the run would
/// never end, so the last visit is used, and records its disturbance.
const REPEATS_MAX: u32 = 2;
/// One visit may be repeated for every this many that are used. So a run on an always busy machine takes a quarter
/// longer, not three times as long. A visit in which no request was finished is exempt.
const USED_A_REPEAT: usize = 4;
/// A contender is not visited again if its first visits fail this many times in a row.
const FIRST_FAILURES_MAX: u32 = 2;

/// The world as an experiment sees it: the machine, or a simulation.
pub trait Stage {
    /// Now, since the start of the run.
    fn now(&mut self) -> Nanos;

    /// Starts a contender once, before anything is measured, and reads what it really is.
    ///
    /// # Errors
    /// The outer error comes from the harness; the inner one means that the contender does not answer.
    fn discover(&mut self, contender: usize) -> Result<Result<ContenderFacts, Failure>, LabError>;

    /// Makes one visit. A failed visit is a visit too; `None` if it was interrupted.
    ///
    /// # Errors
    /// Of the harness only.
    fn visit(&mut self, planned: PlannedVisit) -> Result<Option<Visit>, LabError>;

    /// What the user should know about the visits and starts since the last call.
    fn take_notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Keeps a visit as it will appear in the record, so that a killed run can be resumed.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&mut self, visit: &Visit) -> Result<(), LabError> {
        let _ = visit;
        Ok(())
    }

    /// Keeps what the user had skipped, like a visit.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep_skip(&mut self, skip: UserSkip) -> Result<(), LabError> {
        let _ = skip;
        Ok(())
    }

    /// What the doctor finds in the visits so far; gives the visits back. A stage without a doctor finds nothing.
    fn examine(
        &mut self,
        contenders: &[ContenderFacts],
        visits: Vec<Visit>,
    ) -> (Vec<Visit>, Vec<Finding>) {
        let _ = contenders;
        (visits, Vec::new())
    }
}

/// Which visit of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedVisit {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the contender.
    pub contender: usize,
    /// Block, from 0.
    pub block: u32,
    /// Place in the order of its cell in the block, from 0.
    pub position: u32,
    /// Number of earlier attempts at this visit that were not used.
    pub attempt: u32,
}

impl PlannedVisit {
    /// The plan of this visit.
    fn of(visit: &Visit) -> Self {
        let &Visit { cell, contender, block, position, attempt, .. } = visit;
        Self { cell, contender, block, position, attempt }
    }
}

/// Why a contender does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed, on what.
    pub reason: String,
    /// Last lines of its log.
    pub log_tail: String,
    /// Whether it did answer, but with something that cannot be compared.
    pub answered: bool,
}

/// What the user asks of a run while it goes on. It takes effect between two visits: no visit is cut short by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// End the run with its verdicts when the block is complete.
    StopAfterBlock,
    /// Take [`Command::StopAfterBlock`] back.
    GoOn,
    /// Visit this contender no more.
    Skip {
        /// Its index in the plan.
        contender: usize,
    },
}

/// Receives the progress of a run, and may ask for a few things. No measurement depends on it.
pub trait Watch {
    /// Which CPUs belong to the server and which to the generator: what is shown should keep off both.
    fn placed(&mut self, layout: &CpuLayout) {
        let _ = layout;
    }
    /// The run begins: the plan with the contenders that are installed, and those that are not.
    fn planned(&mut self, plan: &Plan, skipped: &[Skipped]) {
        let _ = (plan, skipped);
    }
    /// A contender is started for the first time, before the first block.
    fn discovery_begins(&mut self, contender: usize) {
        let _ = contender;
    }
    /// A visit begins.
    fn visit_begins(&mut self, planned: PlannedVisit, progress: Progress) {
        let _ = (planned, progress);
    }
    /// A visit has ended, successfully or not.
    fn visit_ends(&mut self, visit: &Visit, progress: Progress) {
        let _ = (visit, progress);
    }
    /// A message that the user should see now: a contender failed, or was dropped.
    fn message(&mut self, text: &str) {
        let _ = text;
    }
    /// Whether [`Watch::pairs`] and [`Watch::findings`] are shown. If not, nothing is computed for them.
    fn looks_closely(&self) -> bool {
        false
    }
    /// A block has ended: what is known of the pairs of the primary metric.
    fn pairs(&mut self, pairs: &[PairSoFar]) {
        let _ = pairs;
    }
    /// A block has ended: what the doctor finds so far. Findings may come and go until the run ends.
    fn findings(&mut self, findings: &[Finding]) {
        let _ = findings;
    }
    /// The user's wish to skip a contender has been granted.
    fn skipped(&mut self, skip: UserSkip) {
        let _ = skip;
    }
    /// What the user asks for, one at a time; asked between visits.
    fn take_command(&mut self) -> Option<Command> {
        None
    }
}

/// No progress is shown.
impl Watch for () {}

/// The result of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// One a contender, in the plan's order.
    pub contenders: Vec<ContenderFacts>,
    /// In the order they were made.
    pub visits: Vec<Visit>,
    /// Why it ended.
    pub ending: Ending,
}

/// What a resumed run already has.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct EarlierVisits {
    /// Visits that are not made again.
    pub visits: Vec<Visit>,
    /// Time of the budget that they took; the stage's clock starts there.
    pub elapsed: Nanos,
    /// First block to be made; its visits that exist already are left out.
    pub block: u32,
    /// Minimum number of blocks, existing ones included, before narrow intervals may end the run, if that is more
    /// than the plan's minimum.
    pub floor: u32,
    /// Contenders that the user had skipped.
    pub skips: Vec<UserSkip>,
}

/// Carries out `plan` on `stage` until its intervals are narrow, its blocks or its budget are used up, or `interrupt`
/// is set. Keeps what was measured until then. `before`: what was already measured.
///
/// # Errors
/// [`LabError::NoneAnswers`] if fewer than two contenders can be started, [`LabError::NoBlock`] if the budget does
/// not hold one block, and failures of the harness before anything was measured.
pub fn play(
    plan: &Plan,
    before: EarlierVisits,
    stage: &mut dyn Stage,
    watch: &mut dyn Watch,
    interrupt: &AtomicBool,
) -> Result<Played, LabError> {
    let mut session = Session {
        plan,
        stage,
        watch,
        interrupt,
        contenders: vec![ContenderFacts::default(); plan.contenders.len()],
        standing: vec![Standing::default(); plan.contenders.len()],
        visits: before.visits,
        floor: before.floor,
        costs: Costs::new(plan),
        stops_after_block: false,
        examined: Examined::default(),
    };
    session.check_budget()?;
    let discovered = session.discover();
    before.skips.iter().for_each(|&skip| session.leave_out(skip));
    let ending = match discovered {
        Ok(None) => session.blocks(before.block),
        Ok(Some(ending)) => Ok(ending),
        Err(error) => Err(error),
    };
    let ending = match ending {
        Err(error) if session.measured_any() => Ending::Incomplete { reason: error.to_string() },
        ending => ending?,
    };
    assert!(
        session.visits.iter().all(|visit| plan.contenders[visit.contender].takes_part(visit.cell)),
        "a contender is visited in its cells alone"
    );
    Ok(Played { contenders: session.contenders, visits: session.visits, ending })
}

/// How a contender has done so far.
#[derive(Debug, Default, Clone, Copy)]
struct Standing {
    /// A visit of it was measured.
    answered: bool,
    /// Visits that failed before one was measured; at most [`FIRST_FAILURES_MAX`].
    first_failures: u32,
    /// It failed when it was started alone, before the first block.
    given_up: bool,
    /// The user had it skipped.
    skipped: bool,
}

impl Standing {
    fn is_dropped(self) -> bool {
        self.given_up || self.skipped || self.first_failures >= FIRST_FAILURES_MAX
    }
}

/// When the doctor examined the visits so far, and how long that took.
#[derive(Debug, Default, Clone, Copy)]
struct Examined {
    ended: Nanos,
    took: Nanos,
}

/// A look at the visits so far waits for this many times as long as the last one took: it grows with the visits, and
/// must not take a noticeable part of the budget.
const EXAMINATION_PAUSE: u64 = 50;

struct Session<'a> {
    plan: &'a Plan,
    stage: &'a mut dyn Stage,
    watch: &'a mut dyn Watch,
    interrupt: &'a AtomicBool,
    contenders: Vec<ContenderFacts>,
    standing: Vec<Standing>,
    visits: Vec<Visit>,
    /// [`EarlierVisits::floor`].
    floor: u32,
    costs: Costs<'a>,
    /// The user wants the run to end with its block.
    stops_after_block: bool,
    examined: Examined,
}

impl Session<'_> {
    /// Refuses a budget that the load of one block alone would exceed, before any contender is started.
    fn check_budget(&mut self) -> Result<(), LabError> {
        let places = self.places(&(0..self.plan.cells.len()).collect::<Vec<_>>());
        let (now, block) = (self.stage.now(), self.costs.block(&places, UnknownCost::Least));
        match self.measured_any() || now + block <= self.plan.budget {
            true => Ok(()),
            false => Err(self.no_block(now, block, places.len())),
        }
    }

    fn no_block(&self, gone: Nanos, block: Nanos, visits: usize) -> LabError {
        LabError::NoBlock { budget: self.plan.budget, gone, block, visits }
    }

    /// Starts every contender once, and gives up those that fail. Returns an ending if it was interrupted.
    fn discover(&mut self) -> Result<Option<Ending>, LabError> {
        let (mut failures, mut given_up) = (Vec::new(), Vec::new());
        for contender in 0..self.plan.contenders.len() {
            if self.interrupted() {
                return Ok(Some(broken_off()));
            }
            self.watch.discovery_begins(contender);
            let begun = self.stage.now();
            let found = self.stage.discover(contender)?;
            self.tell_notes();
            match found {
                Ok(facts) => self.contenders[contender] = facts,
                Err(_) if self.interrupted() => return Ok(Some(broken_off())),
                Err(failure) => {
                    let name = &self.plan.contenders[contender].name;
                    self.watch.message(&format!("{name}: {}", failure.reason));
                    failures.push(format!("{name}: {}\n{}", failure.reason, failure.log_tail));
                    given_up.push((contender, failure));
                }
            }
            self.costs.started(contender, self.stage.now() - begun);
        }
        if self.plan.contenders.len() - failures.len() < 2 && !self.interrupted() {
            return Err(LabError::NoneAnswers { failures });
        }
        for (contender, failure) in given_up {
            self.give_up(contender, failure)?;
        }
        Ok(None)
    }

    /// Leaves out a contender that cannot be started, so that it takes no time from the others. Each of its
    /// cells gets one failed visit, which says why.
    fn give_up(&mut self, contender: usize, failure: Failure) -> Result<(), LabError> {
        let one = &self.plan.contenders[contender];
        let how = if failure.answered { "cannot be compared" } else { "never answered" };
        let reason =
            format!("{} {how}: {} (given up after the first try)", one.name, failure.reason);
        self.standing[contender].given_up = true;
        self.watch.message(&format!("{} is left out of the rest of the run", one.name));
        let started = self.stage.now();
        for cell in (0..self.plan.cells.len()).filter(|&cell| one.takes_part(cell)) {
            // A resumed run already has this visit.
            let is_known = |visit: &Visit| (visit.cell, visit.contender) == (cell, contender);
            if self.visits.iter().any(is_known) {
                continue;
            }
            let log_tail = failure.log_tail.clone();
            let state = VisitState::Failed { reason: reason.clone(), log_tail };
            self.visits.push(Visit { cell, contender, started, state, ..Visit::default() });
            self.stage.keep(self.visits.last().expect("one was pushed"))?;
        }
        Ok(())
    }

    /// Makes the blocks from `first` on; an earlier part of the run made those before it.
    fn blocks(&mut self, first: u32) -> Result<Ending, LabError> {
        let cells = (0..self.plan.cells.len()).map(|cell| self.plan.in_cell(cell).collect());
        let mut schedule = Schedule::new(self.plan.seed, cells.collect());
        let mut block_ended = None;
        for block in 0..self.plan.blocks.max {
            let order = schedule.next_block();
            if block < first {
                continue;
            }
            self.obey(block)?;
            if self.left_in().len() < 2 {
                let reason = "fewer than two contenders are left".to_owned();
                return Ok(Ending::Incomplete { reason });
            }
            let open = self.open_cells(block);
            if open.is_empty() {
                return Ok(Ending::Narrow);
            }
            if self.stops_after_block && block_ended.is_some() {
                return Ok(Ending::Stopped { blocks: block });
            }
            let now = self.stage.now();
            self.costs.paused(block_ended.map_or(Nanos::ZERO, |ended| now.saturating_sub(ended)));
            if !self.fits(&open, now)? {
                return Ok(Ending::Budget);
            }
            if let Some(ending) = self.block(block, &order, &open)? {
                return Ok(ending);
            }
            block_ended = Some(self.stage.now());
            self.tell_so_far();
        }
        Ok(Ending::Blocks)
    }

    /// Whether a block of these cells can be started now. The first block can be if it fits at its shortest, even if
    /// it might take longer than the remaining time.
    fn fits(&mut self, open: &[usize], now: Nanos) -> Result<bool, LabError> {
        let places = self.places(open);
        let block = self.costs.block(&places, UnknownCost::Most);
        if now + block <= self.plan.budget {
            return Ok(true);
        }
        if self.measured_any() || self.costs.made() > 0 {
            return Ok(false);
        }
        let least = self.costs.block(&places, UnknownCost::Least);
        if now + least > self.plan.budget {
            return Err(self.no_block(now, block, places.len()));
        }
        self.watch.message(&format!(
            "a block may take up to {block}, and {} are left of the budget of {}: the run ends when the \
             budget is used",
            self.plan.budget.saturating_sub(now),
            self.plan.budget
        ));
        Ok(true)
    }

    fn measured_any(&self) -> bool {
        self.visits.iter().any(|visit| visit.state == VisitState::Measured)
    }

    /// The cells whose intervals are not yet narrow: each cell ends separately and leaves its time to the
    /// others.
    fn open_cells(&self, block: u32) -> Vec<usize> {
        let is_open = |&cell: &usize| {
            block < self.plan.blocks.min.max(self.floor)
                || !narrow_enough(self.plan, cell, &self.visits, &self.left_in())
        };
        (0..self.plan.cells.len()).filter(is_open).collect()
    }

    /// Visits every contender of the open cells in turn; returns an ending if the run ends within the block.
    fn block(
        &mut self,
        block: u32,
        order: &[(usize, Vec<usize>)],
        open: &[usize],
    ) -> Result<Option<Ending>, LabError> {
        let mut left = self.places(open);
        for (cell, contenders) in order.iter().filter(|(cell, _)| open.contains(cell)) {
            for (position, &contender) in contenders.iter().enumerate() {
                if self.interrupted() {
                    return Ok(Some(broken_off()));
                }
                self.obey(block)?;
                left.retain(|&(_, who)| !self.standing[who].is_dropped());
                if self.standing[contender].is_dropped() {
                    continue;
                }
                let position = position as u32;
                let planned = PlannedVisit { cell: *cell, contender, block, position, attempt: 0 };
                left.retain(|&other| other != (*cell, contender));
                if self.is_made(planned) {
                    continue;
                }
                let end = self.stage.now() + self.costs.visit(*cell, contender, UnknownCost::Least);
                // Visits took longer than in any earlier block.
                if self.costs.is_too_late(end) {
                    return Ok(Some(Ending::Budget));
                }
                if !self.visit(planned, &left, open)? {
                    return Ok(Some(broken_off()));
                }
            }
        }
        Ok(None)
    }

    /// Whether an earlier part of the run made this visit.
    fn is_made(&self, planned: PlannedVisit) -> bool {
        self.visits.iter().rev().any(|visit| {
            let at = (visit.block, visit.cell, visit.contender);
            at == (planned.block, planned.cell, planned.contender)
                && visit.state != VisitState::Disturbed
        })
    }

    /// Makes one visit, and repeats it if the machine was disturbed and there is time; false if it was interrupted.
    /// `left`: the visits that follow it in the block.
    fn visit(
        &mut self,
        planned: PlannedVisit,
        left: &[(usize, usize)],
        open: &[usize],
    ) -> Result<bool, LabError> {
        let with_this = [&[(planned.cell, planned.contender)], left].concat();
        for attempt in 0..=REPEATS_MAX {
            let planned = PlannedVisit { attempt, ..planned };
            let progress = self.progress(planned.block, &with_this, open);
            self.watch.visit_begins(planned, progress);
            let begun = self.stage.now();
            let visit = self.stage.visit(planned)?;
            // Before the return, so that the notes of an interrupted visit are shown too.
            self.tell_notes();
            let Some(mut visit) = visit else { return Ok(false) };
            assert_eq!(
                PlannedVisit::of(&visit),
                planned,
                "a stage makes the visit that was asked for"
            );
            let again = attempt < self.repeats_left(&visit, &with_this)
                && visit.state == VisitState::Measured
                && visit.disturbance().is_some_and(Disturbance::is_from_outside);
            if again {
                visit.state = VisitState::Disturbed;
            }
            self.note(&visit);
            let took = self.stage.now() - begun;
            self.costs.visited(planned.cell, planned.contender, took, again);
            let ahead = if again { &with_this } else { left };
            let progress = self.progress(planned.block, ahead, open);
            self.watch.visit_ends(&visit, progress);
            self.visits.push(visit);
            self.stage.keep(self.visits.last().expect("one was pushed"))?;
            if !again {
                break;
            }
        }
        Ok(true)
    }

    /// How often this visit may be repeated now, if it and the rest of its block are to fit into the budget. A visit
    /// in which no request was finished withholds every rate of its contender. So it is repeated whatever other
    /// repeats have cost, and even if disturbed visits are kept.
    fn repeats_left(&mut self, visit: &Visit, with_this: &[(usize, usize)]) -> u32 {
        let end = self.stage.now() + self.costs.visits(with_this, UnknownCost::Most);
        if end > self.plan.budget {
            return 0;
        }
        if visit.answered_nothing() {
            return REPEATS_MAX;
        }
        if self.plan.keep_disturbed {
            return 0;
        }
        // Repeats of visits without a reply do not count towards this bound, so they cost the others nothing.
        let is_silent = |visit: &Visit| visit.rate_per_s.is_some_and(|rate| rate <= 0.0);
        let is_unused = |visit: &&Visit| visit.state == VisitState::Disturbed && !is_silent(visit);
        let unused = self.visits.iter().filter(is_unused).count();
        let allowed = REPEATS_MAX as usize + (self.visits.len() - unused) / USED_A_REPEAT;
        if unused < allowed { REPEATS_MAX } else { 0 }
    }

    fn tell_notes(&mut self) {
        self.stage.take_notes().iter().for_each(|note| self.watch.message(note));
    }

    fn note(&mut self, visit: &Visit) {
        let standing = &mut self.standing[visit.contender];
        let name = &self.plan.contenders[visit.contender].name;
        match &visit.state {
            VisitState::Measured => standing.answered = true,
            VisitState::Disturbed => {
                let reason = visit.disturbance().map(ToString::to_string).unwrap_or_default();
                self.watch.message(&format!("{name}: the visit is made again: {reason}"));
            }
            VisitState::Failed { reason, .. } => {
                self.watch.message(&format!("{name}: {reason}"));
                if !standing.answered {
                    standing.first_failures += 1;
                }
                if standing.is_dropped() && !standing.answered {
                    self.watch.message(&format!("{name} is left out of the rest of the run"));
                }
            }
        }
    }

    /// Does what the user has asked for since the last visit.
    fn obey(&mut self, block: u32) -> Result<(), LabError> {
        while let Some(command) = self.watch.take_command() {
            match command {
                Command::StopAfterBlock => self.stops_after_block = true,
                Command::GoOn => self.stops_after_block = false,
                Command::Skip { contender } => self.skip(UserSkip { contender, block })?,
            }
        }
        Ok(())
    }

    fn skip(&mut self, skip: UserSkip) -> Result<(), LabError> {
        let is_left = self.standing.get(skip.contender).is_some_and(|one| !one.is_dropped());
        if !is_left {
            return Ok(());
        }
        let name = &self.plan.contenders[skip.contender].name;
        if self.left_in().len() <= 2 {
            let text = format!("{name} is not skipped: a comparison needs at least 2 contenders");
            self.watch.message(&text);
            return Ok(());
        }
        let block = skip.block + 1;
        self.watch.message(&format!("{name} is skipped by the user from block {block} on"));
        self.leave_out(skip);
        self.stage.keep_skip(skip)
    }

    fn leave_out(&mut self, skip: UserSkip) {
        self.standing[skip.contender].skipped = true;
        self.contenders[skip.contender].skipped_in = Some(skip.block);
        self.watch.skipped(skip);
    }

    /// Shows what the visits say so far. It happens between blocks, when nothing is measured.
    fn tell_so_far(&mut self) {
        if !self.watch.looks_closely() {
            return;
        }
        self.watch.pairs(&pairs_so_far(self.plan, &self.visits, &self.left_in()));
        let begun = self.stage.now();
        let Examined { ended, took } = self.examined;
        if begun.saturating_sub(ended) < Nanos(took.0.saturating_mul(EXAMINATION_PAUSE)) {
            return;
        }
        let visits = std::mem::take(&mut self.visits);
        let (visits, findings) = self.stage.examine(&self.contenders, visits);
        self.visits = visits;
        self.watch.findings(&findings);
        let ended = self.stage.now();
        self.examined = Examined { ended, took: ended.saturating_sub(begun) };
    }

    fn left_in(&self) -> Vec<usize> {
        (0..self.standing.len()).filter(|&n| !self.standing[n].is_dropped()).collect()
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Visits of a block of these cells by the remaining contenders: cell and contender.
    fn places(&self, cells: &[usize]) -> Vec<(usize, usize)> {
        let is_left = |n: &usize| !self.standing[*n].is_dropped();
        let of = |&cell: &usize| self.plan.in_cell(cell).filter(is_left).map(move |n| (cell, n));
        cells.iter().flat_map(of).collect()
    }

    /// `left`: visits of this block that are still to be made.
    fn progress(&mut self, block: u32, left: &[(usize, usize)], open: &[usize]) -> Progress {
        let elapsed = self.stage.now();
        let block_time = self.costs.block(&self.places(open), UnknownCost::Most);
        let left_of_block = self.costs.visits(left, UnknownCost::Most);
        let remaining = self.plan.budget.saturating_sub(elapsed + left_of_block);
        let blocks =
            (remaining.0 / block_time.0.max(1)).min(u64::from(self.plan.blocks.max - block - 1));
        let blocks_left = if self.stops_after_block { 0 } else { blocks as u32 };
        let left = Nanos(left_of_block.0 + u64::from(blocks_left) * block_time.0);
        let visits_seen = self.costs.made();
        Progress { elapsed, left, left_of_block, blocks_left, block_time, visits_seen }
    }
}

fn broken_off() -> Ending {
    Ending::Incomplete { reason: "it was interrupted".to_owned() }
}
