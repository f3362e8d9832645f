//! How a command ends, and how it says what went wrong: what, on what, why, and the way out. Never a
//! backtrace.

use miette::Report;

/// Exit codes; the help text lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Done.
    Well = 0,
    /// The thing itself failed.
    Failed = 1,
    /// What was typed, or a study, is wrong.
    Usage = 2,
    /// A run that was broken off, or in which every pair is withheld.
    Incomplete = 3,
    /// Measured, but by a generator that was itself the limit, or below the rate that was asked for.
    Unbelievable = 4,
    /// Measured, and a goal that was set is broken, or a regression was found.
    GoalBroken = 99,
}

/// Something that ends the command.
#[derive(Debug)]
pub struct Trouble {
    /// With which code.
    pub ended: Ended,
    /// And what is said on stderr.
    pub report: Report,
}

impl Trouble {
    /// What was typed is wrong.
    pub fn usage(report: Report) -> Self {
        Self { ended: Ended::Usage, report }
    }

    /// What was asked for could not be done.
    pub fn failed(report: Report) -> Self {
        Self { ended: Ended::Failed, report }
    }

    /// Says it on stderr, and returns the exit code.
    pub fn show(self) -> Ended {
        // Debug is how miette renders a report for people.
        crate::output::say(&format!("{:?}", self.report));
        self.ended
    }
}
