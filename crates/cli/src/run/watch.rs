//! What a person sees while a run goes on: a picture on a terminal that can draw one, otherwise the bar or the lines of
//! [`crate::progress`]. Start reading at [`RunScreen::new`].

use std::sync::atomic::AtomicBool;

use ::report::live::{RunView, VisitPlace};
use lab::session::{Command, PlannedVisit, Watch};
use record::{CpuLayout, Finding, PairSoFar, Plan, Progress, Skipped, UserSkip, Visit};

use crate::progress;
use crate::screen::{RunPicture, Wish, can_draw};
use crate::terminal::speaks_unicode;

/// Shows a run until it is dropped.
pub struct RunScreen {
    shown: Shown,
    /// Whether a picture is to be tried when the plan is known.
    draws: bool,
    layout: CpuLayout,
    interrupt: &'static AtomicBool,
}

enum Shown {
    Picture(Box<RunPicture>),
    Lines(progress::Screen),
}

impl RunScreen {
    /// `interrupt` is the flag that ends the run early and in order; a key sets it as SIGINT does.
    pub fn new(wish: Wish, interrupt: &'static AtomicBool) -> Self {
        let draws = !wish.quiet && !wish.plain && can_draw();
        let shown = Shown::Lines(progress::Screen::new(wish.quiet));
        Self { shown, draws, layout: CpuLayout::default(), interrupt }
    }

    fn picture(&self) -> Option<&RunPicture> {
        match &self.shown {
            Shown::Picture(picture) => Some(picture),
            Shown::Lines(_) => None,
        }
    }
}

impl Watch for RunScreen {
    fn placed(&mut self, layout: &CpuLayout) {
        self.layout = layout.clone();
    }

    fn planned(&mut self, plan: &Plan, skipped: &[Skipped]) {
        if self.draws {
            let view = RunView {
                colour: console::colors_enabled_stderr(),
                unicode: speaks_unicode(),
                ..RunView::default()
            };
            if let Ok(picture) = RunPicture::begin(plan, &self.layout, view, self.interrupt) {
                // They are said again when the picture goes, and stay on the terminal.
                let said = progress::planned_lines(plan, skipped);
                said.iter().for_each(|line| picture.message(line));
                self.shown = Shown::Picture(Box::new(picture));
                return;
            }
        }
        // A terminal that cannot be drawn on still shows the bar.
        if let Shown::Lines(lines) = &mut self.shown {
            lines.planned(plan, skipped);
        }
    }

    fn discovery_begins(&mut self, contender: usize) {
        match &mut self.shown {
            Shown::Picture(picture) => picture.tell(|live| live.discovery_begins(contender)),
            Shown::Lines(lines) => lines.discovery_begins(contender),
        }
    }

    fn visit_begins(&mut self, planned: PlannedVisit, progress: Progress) {
        match &mut self.shown {
            Shown::Picture(picture) => {
                let PlannedVisit { cell, contender, block, attempt, .. } = planned;
                let place = VisitPlace { cell, contender, block, attempt };
                picture.tell(|live| live.visit_begins(place, progress));
            }
            Shown::Lines(lines) => lines.visit_begins(planned, progress),
        }
    }

    fn visit_ends(&mut self, visit: &Visit, progress: Progress) {
        match &mut self.shown {
            Shown::Picture(picture) => picture.tell(|live| live.visit_ends(visit, progress)),
            Shown::Lines(lines) => lines.visit_ends(visit, progress),
        }
    }

    fn message(&mut self, text: &str) {
        match &mut self.shown {
            Shown::Picture(picture) => picture.message(text),
            Shown::Lines(lines) => lines.message(text),
        }
    }

    fn looks_closely(&self) -> bool {
        self.picture().is_some()
    }

    fn pairs(&mut self, pairs: &[PairSoFar]) {
        self.picture().into_iter().for_each(|picture| picture.tell(|live| live.set_pairs(pairs)));
    }

    fn findings(&mut self, findings: &[Finding]) {
        let picture = self.picture().into_iter();
        picture.for_each(|picture| picture.tell(|live| live.set_findings(findings)));
    }

    fn skipped(&mut self, skip: UserSkip) {
        self.picture().into_iter().for_each(|picture| picture.tell(|live| live.skipped(skip)));
    }

    fn take_command(&mut self) -> Option<Command> {
        self.picture()?.take_command()
    }
}
