//! What a person sees while a load runs, on stderr. Owns the choice among nothing, a line and a
//! picture; must not know how a picture is drawn (`report::live`). Start reading at [`Screen`].

use std::sync::atomic::AtomicBool;

use record::{Interval, LoadPlan};

use crate::progress::LoadLine;

/// Watches a load for a person, until it is dropped.
pub struct Screen {
    line: LoadLine,
}

impl Screen {
    /// `interrupt` is the flag that ends the load early, in order.
    pub fn new(plan: &LoadPlan, wish: Wish, _interrupt: &'static AtomicBool) -> Self {
        Self { line: LoadLine::new(plan, wish.quiet) }
    }

    /// An interval is over.
    pub fn show(&mut self, interval: &Interval) {
        self.line.show(interval);
    }
}

/// What was asked for on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// Nothing at all.
    pub quiet: bool,
    /// A line even where a picture could be drawn.
    pub plain: bool,
}
