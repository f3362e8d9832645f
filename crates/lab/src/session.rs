//! Owns the course of an experiment: discovery, blocks in random order, who is dropped, when to end.
//! Must not know servers, clocks or files: the world is a [`Stage`], so that a simulated one takes
//! the same course. Start reading at [`play`].

use std::sync::atomic::{AtomicBool, Ordering};

use record::{ContenderFacts, Ending, Plan, Skipped, Visit, VisitState};
use units::Nanos;

use crate::error::LabError;
use crate::schedule::Schedule;
use crate::verdict::narrow_enough;

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
}

/// Which visit of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the contender.
    pub contender: usize,
    /// Block, from 0.
    pub block: u32,
    /// Place in the block's order, from 0.
    pub position: u32,
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

/// Carries out `plan` on `stage` until its intervals are narrow, its blocks or its budget are used,
/// or `interrupt` is set; what was measured until then is kept.
///
/// # Errors
/// [`LabError::NoneAnswers`] where fewer than two contenders can be started, and failures of the
/// harness before anything was measured.
pub fn play(
    plan: &Plan,
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
        visits: Vec::new(),
        block_times: Vec::new(),
    };
    let ending = match session.discover() {
        Ok(None) => session.blocks(),
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
    /// How long each finished block took.
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

    fn blocks(&mut self) -> Result<Ending, LabError> {
        let mut schedule = Schedule::new(self.plan.seed, self.plan.contenders.len());
        for block in 0..self.plan.blocks.max {
            if self.left_in().len() < 2 {
                let reason = "fewer than two contenders are left".to_owned();
                return Ok(Ending::Incomplete { reason });
            }
            if block >= self.plan.blocks.min
                && narrow_enough(self.plan, &self.visits, &self.left_in())
            {
                return Ok(Ending::Narrow);
            }
            let begun = self.stage.now();
            if begun + self.block_time() > self.plan.budget {
                return Ok(Ending::Budget);
            }
            let order = schedule.next_block();
            if !self.block(block, &order)? {
                return Ok(broken_off());
            }
            let took = self.stage.now() - begun;
            self.block_times.push(took);
        }
        Ok(Ending::Blocks)
    }

    /// Visits everyone in turn; false where it was interrupted.
    fn block(&mut self, block: u32, order: &[usize]) -> Result<bool, LabError> {
        for (position, &contender) in order.iter().enumerate() {
            if self.interrupted() {
                return Ok(false);
            }
            if self.standing[contender].is_dropped() {
                continue;
            }
            let place = Place { contender, block, position: position as u32 };
            let progress = self.progress(place);
            self.watch.visit_begins(place, progress);
            let Some(visit) = self.stage.visit(place)? else { return Ok(false) };
            self.note(&visit);
            let progress = self.progress(Place { position: place.position + 1, ..place });
            self.watch.visit_ends(&visit, progress);
            self.visits.push(visit);
        }
        Ok(true)
    }

    fn note(&mut self, visit: &Visit) {
        let standing = &mut self.standing[visit.contender];
        let name = &self.plan.contenders[visit.contender].name;
        match &visit.state {
            VisitState::Measured => standing.answered = true,
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

    /// How long a block takes: the mean so far or the last one, whichever is longer, because a
    /// machine that slows down goes on doing so; before the first, what is planned.
    fn block_time(&self) -> Nanos {
        let Some(&last) = self.block_times.last() else {
            let visit = self.plan.visit.warm_up + self.plan.visit.measure;
            return Nanos(visit.0 * self.left_in().len() as u64);
        };
        let sum: u64 = self.block_times.iter().map(|time| time.0).sum();
        last.max(Nanos(sum / self.block_times.len() as u64))
    }

    fn progress(&mut self, next: Place) -> Progress {
        let elapsed = self.stage.now();
        let block_time = self.block_time();
        let visits = self.plan.contenders.len() as u64;
        let this_block = block_time.0 * (visits - u64::from(next.position).min(visits)) / visits;
        let remaining = self.plan.budget.saturating_sub(elapsed + Nanos(this_block));
        let blocks = (remaining.0 / block_time.0.max(1))
            .min(u64::from(self.plan.blocks.max - next.block - 1));
        Progress { elapsed, left: Nanos(this_block + blocks * block_time.0) }
    }
}

fn broken_off() -> Ending {
    Ending::Incomplete { reason: "it was interrupted".to_owned() }
}
