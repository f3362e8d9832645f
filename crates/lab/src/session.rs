//! Owns the course of an experiment: discovery, blocks in random order, who is dropped, when to end.
//! Must not know servers, clocks or files: the world is a [`Stage`], so that a simulated one takes
//! the same course. Start reading at [`play`].

use std::sync::atomic::{AtomicBool, Ordering};

use record::{ContenderFacts, Disturbance, Ending, Plan, Skipped, Visit, VisitState};
use units::Nanos;

use crate::error::LabError;
use crate::schedule::Schedule;
use crate::verdict::narrow_enough;

/// How often a visit is made again because the machine was disturbed. A machine that always is would
/// never be done; the last of them is used, and says by what it was disturbed.
const REPEATS_MAX: u32 = 2;
/// Of all visits that are used at most one in this many is paid for with one that is not, so that on
/// a machine that is always busy a run takes a quarter longer, and not three times as long.
const USED_A_REPEAT: usize = 4;
/// A contender whose first this many starts all failed is not visited again.
const FIRST_FAILURES_MAX: u32 = 2;

/// The world as an experiment sees it: the machine, or a simulation.
pub trait Stage {
    /// Now, since the start of the run.
    fn now(&mut self) -> Nanos;

    /// Starts a contender once, before anything is measured, and reads what it really is.
    ///
    /// # Errors
    /// The outer one is of the harness; the inner one is the contender's: it does not answer.
    fn discover(&mut self, contender: usize) -> Result<Result<ContenderFacts, Failure>, LabError>;

    /// Makes one visit. A visit that failed is a visit; `None` where it was interrupted.
    ///
    /// # Errors
    /// Of the harness only.
    fn visit(&mut self, place: Place) -> Result<Option<Visit>, LabError>;

    /// Keeps a visit as it will stand in the record, so that a run that is killed can go on.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&mut self, visit: &Visit) -> Result<(), LabError> {
        let _ = visit;
        Ok(())
    }
}

/// Which visit of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the contender.
    pub contender: usize,
    /// Block, from 0.
    pub block: u32,
    /// Place in the order of its cell in the block, from 0.
    pub position: u32,
    /// How often this visit was made before and not used.
    pub attempt: u32,
}

/// Why a contender does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed, on what.
    pub reason: String,
    /// Last lines of its log.
    pub log_tail: String,
}

/// Who is told how a run goes. Nothing that is measured depends on it.
pub trait Watch {
    /// The run begins: the plan with those that are installed, and those that are not.
    fn planned(&mut self, plan: &Plan, skipped: &[Skipped]) {
        let _ = (plan, skipped);
    }
    /// A contender is started for the first time, before the first block.
    fn discovery_begins(&mut self, contender: usize) {
        let _ = contender;
    }
    /// A visit begins.
    fn visit_begins(&mut self, place: Place, progress: Progress) {
        let _ = (place, progress);
    }
    /// A visit has ended, well or not.
    fn visit_ends(&mut self, visit: &Visit, progress: Progress) {
        let _ = (visit, progress);
    }
    /// Something that the reader should know now: a contender failed, one was dropped.
    fn message(&mut self, text: &str) {
        let _ = text;
    }
}

/// Nobody watches.
impl Watch for () {}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the start of the run.
    pub elapsed: Nanos,
    /// Estimate of the time to the end, at most; narrow intervals may end the run sooner.
    pub left: Nanos,
}

/// What a session brought.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// One a contender, in the plan's order.
    pub contenders: Vec<ContenderFacts>,
    /// In the order they were made.
    pub visits: Vec<Visit>,
    /// Why it ended.
    pub ending: Ending,
}

/// What there is of a run that goes on.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Before {
    /// Visits that need not be made again.
    pub visits: Vec<Visit>,
    /// Time they took, of the budget; the stage's clock begins there.
    pub elapsed: Nanos,
    /// First block to be made; a visit of it that is there already is left out.
    pub block: u32,
}

/// Carries out `plan` on `stage` until its intervals are narrow, its blocks or its budget are used,
/// or `interrupt` is set; what was measured until then is kept. `before` is what was measured already.
///
/// # Errors
/// [`LabError::NoneAnswers`] where fewer than two contenders can be started, and failures of the
/// harness before anything was measured.
pub fn play(
    plan: &Plan,
    before: Before,
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
        block_times: Vec::new(),
    };
    let ending = match session.discover() {
        Ok(None) => session.blocks(before.block),
        Ok(Some(ending)) => Ok(ending),
        Err(error) => Err(error),
    };
    let ending = match ending {
        Err(error) if !session.visits.is_empty() => {
            Ending::Incomplete { reason: error.to_string() }
        }
        ending => ending?,
    };
    Ok(Played { contenders: session.contenders, visits: session.visits, ending })
}

/// How a contender has done so far.
#[derive(Debug, Default, Clone, Copy)]
struct Standing {
    answered: bool,
    /// Failures before it first answered; at most [`FIRST_FAILURES_MAX`].
    first_failures: u32,
}

impl Standing {
    fn is_dropped(self) -> bool {
        self.first_failures >= FIRST_FAILURES_MAX
    }
}

struct Session<'a> {
    plan: &'a Plan,
    stage: &'a mut dyn Stage,
    watch: &'a mut dyn Watch,
    interrupt: &'a AtomicBool,
    contenders: Vec<ContenderFacts>,
    standing: Vec<Standing>,
    visits: Vec<Visit>,
    /// How long a visit of each finished block took, in the mean.
    block_times: Vec<Nanos>,
}

impl Session<'_> {
    /// Starts everyone once. `Some` ending: it was interrupted.
    fn discover(&mut self) -> Result<Option<Ending>, LabError> {
        let mut failures = Vec::new();
        for contender in 0..self.plan.contenders.len() {
            if self.interrupted() {
                return Ok(Some(broken_off()));
            }
            self.watch.discovery_begins(contender);
            match self.stage.discover(contender)? {
                Ok(facts) => self.contenders[contender] = facts,
                Err(failure) => {
                    let name = &self.plan.contenders[contender].name;
                    self.watch.message(&format!("{name}: {}", failure.reason));
                    failures.push(format!("{name}: {}\n{}", failure.reason, failure.log_tail));
                    self.standing[contender].first_failures += 1;
                }
            }
        }
        if self.plan.contenders.len() - failures.len() < 2 && !self.interrupted() {
            return Err(LabError::NoneAnswers { failures });
        }
        Ok(None)
    }

    /// From `first` on: those before it were made in an earlier part of the run.
    fn blocks(&mut self, first: u32) -> Result<Ending, LabError> {
        let cells = (0..self.plan.cells.len()).map(|cell| self.plan.in_cell(cell).collect());
        let mut schedule = Schedule::new(self.plan.seed, cells.collect());
        for block in 0..self.plan.blocks.max {
            let order = schedule.next_block();
            if block < first {
                continue;
            }
            if self.left_in().len() < 2 {
                let reason = "fewer than two contenders are left".to_owned();
                return Ok(Ending::Incomplete { reason });
            }
            let open = self.open_cells(block);
            if open.is_empty() {
                return Ok(Ending::Narrow);
            }
            let begun = self.stage.now();
            if begun + self.block_time(&open) > self.plan.budget {
                return Ok(Ending::Budget);
            }
            if !self.block(block, &order, &open)? {
                return Ok(broken_off());
            }
            let took = self.stage.now() - begun;
            self.block_times.push(Nanos(took.0 / self.visits_in(&open).max(1)));
        }
        Ok(Ending::Blocks)
    }

    /// The cells whose intervals are not yet narrow: each ends for itself, and leaves its time to the
    /// others.
    fn open_cells(&self, block: u32) -> Vec<usize> {
        let is_open = |&cell: &usize| {
            block < self.plan.blocks.min
                || !narrow_enough(self.plan, cell, &self.visits, &self.left_in())
        };
        (0..self.plan.cells.len()).filter(is_open).collect()
    }

    /// Visits everyone of the open cells in turn; false where it was interrupted.
    fn block(
        &mut self,
        block: u32,
        order: &[(usize, Vec<usize>)],
        open: &[usize],
    ) -> Result<bool, LabError> {
        let mut left = self.visits_in(open);
        for (cell, contenders) in order.iter().filter(|(cell, _)| open.contains(cell)) {
            for (position, &contender) in contenders.iter().enumerate() {
                if self.interrupted() {
                    return Ok(false);
                }
                if self.standing[contender].is_dropped() {
                    continue;
                }
                let position = position as u32;
                let place = Place { cell: *cell, contender, block, position, attempt: 0 };
                if !self.is_made(place) && !self.visit(place, left, open)? {
                    return Ok(false);
                }
                left = left.saturating_sub(1);
            }
        }
        Ok(true)
    }

    /// Whether an earlier part of the run made this visit.
    fn is_made(&self, place: Place) -> bool {
        self.visits.iter().rev().any(|visit| {
            let at = (visit.block, visit.cell, visit.contender);
            at == (place.block, place.cell, place.contender) && visit.state != VisitState::Disturbed
        })
    }

    /// Makes one visit, again where the machine was disturbed; false where it was interrupted.
    fn visit(&mut self, place: Place, left: u64, open: &[usize]) -> Result<bool, LabError> {
        for attempt in 0..=REPEATS_MAX {
            let place = Place { attempt, ..place };
            let progress = self.progress(place.block, left, open);
            self.watch.visit_begins(place, progress);
            let Some(mut visit) = self.stage.visit(place)? else { return Ok(false) };
            let again = attempt < self.repeats_left()
                && visit.state == VisitState::Measured
                && visit.disturbance().is_some_and(Disturbance::is_from_outside);
            if again {
                visit.state = VisitState::Disturbed;
            }
            self.note(&visit);
            let progress = self.progress(place.block, left - u64::from(!again), open);
            self.watch.visit_ends(&visit, progress);
            self.visits.push(visit);
            self.stage.keep(self.visits.last().expect("one was pushed"))?;
            if !again {
                break;
            }
        }
        Ok(true)
    }

    /// How often one visit may be made again now.
    fn repeats_left(&self) -> u32 {
        if self.plan.keep_disturbed {
            return 0;
        }
        let is_unused = |visit: &&Visit| visit.state == VisitState::Disturbed;
        let unused = self.visits.iter().filter(is_unused).count();
        let allowed = REPEATS_MAX as usize + (self.visits.len() - unused) / USED_A_REPEAT;
        if unused < allowed { REPEATS_MAX } else { 0 }
    }

    fn note(&mut self, visit: &Visit) {
        let standing = &mut self.standing[visit.contender];
        let name = &self.plan.contenders[visit.contender].name;
        match &visit.state {
            VisitState::Measured => standing.answered = true,
            VisitState::Disturbed => {
                let reason = visit.disturbance().map(ToString::to_string).unwrap_or_default();
                self.watch.message(&format!("{name}: visited again, {reason}"));
            }
            VisitState::Failed { reason, .. } => {
                self.watch.message(&format!("{name}: {reason}"));
                if !standing.answered {
                    standing.first_failures += 1;
                }
                if standing.is_dropped() && !standing.answered {
                    self.watch.message(&format!("{name} is left out from here on"));
                }
            }
        }
    }

    fn left_in(&self) -> Vec<usize> {
        (0..self.standing.len()).filter(|&n| !self.standing[n].is_dropped()).collect()
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Visits of a block of these cells by those that are left in.
    fn visits_in(&self, cells: &[usize]) -> u64 {
        let is_left = |n: &usize| !self.standing[*n].is_dropped();
        cells.iter().map(|&cell| self.plan.in_cell(cell).filter(is_left).count() as u64).sum()
    }

    /// How long a visit of a block takes: the mean over the blocks so far or over the last one,
    /// whichever is longer, because a machine that slows down goes on doing so; before the first, what
    /// is planned.
    fn visit_time(&self) -> Nanos {
        let Some(&last) = self.block_times.last() else {
            return self.plan.visit.load();
        };
        let sum: u64 = self.block_times.iter().map(|time| time.0).sum();
        last.max(Nanos(sum / self.block_times.len() as u64))
    }

    fn block_time(&self, open: &[usize]) -> Nanos {
        Nanos(self.visit_time().0 * self.visits_in(open))
    }

    /// `left`: visits of this block that are still to be made.
    fn progress(&mut self, block: u32, left: u64, open: &[usize]) -> Progress {
        let elapsed = self.stage.now();
        let block_time = self.block_time(open);
        let this_block = self.visit_time().0 * left;
        let remaining = self.plan.budget.saturating_sub(elapsed + Nanos(this_block));
        let blocks =
            (remaining.0 / block_time.0.max(1)).min(u64::from(self.plan.blocks.max - block - 1));
        Progress { elapsed, left: Nanos(this_block + blocks * block_time.0) }
    }
}

fn broken_off() -> Ending {
    Ending::Incomplete { reason: "it was interrupted".to_owned() }
}
