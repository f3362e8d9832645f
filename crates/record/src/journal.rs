//! A run in progress: a line with the plan, then a line for each visit. It is what a killed run leaves, and the run can
//! resume from it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::json::ReadError;
use crate::plan::{CpuLayout, Plan};
use crate::run::{RunRecord, Skipped};
use crate::user_skip::UserSkip;
use crate::visit::Visit;

/// The first line of a journal, and the state from which a run resumes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// [`Journal::FORMAT`].
    pub format: String,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// The plan, for the contenders that are installed.
    pub plan: Plan,
    /// The machine.
    pub facts: Facts,
    /// Requested, but not installed.
    pub skipped: Vec<Skipped>,
    /// The setup of the visits; unknown for a file that does not record it.
    #[serde(default)]
    pub setup: Setup,
    /// Visits so far, in the order they were made; each has a line of its own in the file.
    #[serde(skip)]
    pub visits: Vec<Visit>,
    /// Contenders that the user had skipped; each has a line of its own in the file.
    #[serde(skip)]
    pub skips: Vec<UserSkip>,
}

/// The line of a skip: no visit has its key.
#[derive(Serialize, Deserialize)]
struct SkipLine {
    skipped: UserSkip,
}

/// How such a line begins.
const SKIP_LINE: &str = "{\"skipped\":";

/// The setup of visits, besides the machine: visits made with another setup cannot be judged together with them. Empty
/// means unknown.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Version of joust, which is also that of its generator.
    pub joust: String,
    /// Version of each contender's server, in the plan's order.
    pub versions: Vec<String>,
    /// The CPUs of the server and of the generator.
    pub layout: CpuLayout,
}

impl Journal {
    /// Name and version of this format.
    pub const FORMAT: &'static str = "joust-journal/1";

    /// The first line, with its newline.
    pub fn head(&self) -> String {
        crate::json::write(self)
    }

    /// The line of a visit, with its newline.
    pub fn line(visit: &Visit) -> String {
        crate::json::write(visit)
    }

    /// The line of a skip, with its newline.
    pub fn skip_line(skipped: UserSkip) -> String {
        crate::json::write(&SkipLine { skipped })
    }

    /// Reads a journal. A last line without a newline was being written when the run was killed, and is left out.
    ///
    /// # Errors
    /// [`ReadError`]: as for [`RunRecord::from_json`].
    pub fn read(text: &str) -> Result<Self, ReadError> {
        let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
        let mut lines = whole.lines();
        let mut journal: Self =
            crate::json::read(lines.next().unwrap_or_default(), Self::FORMAT, &[])?;
        for (number, line) in (2..).zip(lines) {
            let bad = |cause| ReadError::Line { line: number, cause };
            if line.starts_with(SKIP_LINE) {
                let SkipLine { skipped } = serde_json::from_str(line).map_err(bad)?;
                journal.skips.push(skipped);
            } else {
                journal.visits.push(serde_json::from_str(line).map_err(bad)?);
            }
        }
        let mut seen = BTreeSet::new();
        let is_new =
            |visit: &Visit| seen.insert((visit.cell, visit.contender, visit.block, visit.attempt));
        if !journal.visits.iter().all(is_new) {
            return Err(ReadError::Twice);
        }
        let fits = |visit: &Visit| {
            visit.cell < journal.plan.cells.len()
                && visit.contender < journal.plan.contenders.len()
                && visit.block < Visit::BLOCKS_MAX
        };
        let is_planned = |skip: &UserSkip| skip.contender < journal.plan.contenders.len();
        match (journal.visits.iter().all(fits), journal.skips.iter().all(is_planned)) {
            (true, true) => Ok(journal),
            (false, _) => Err(ReadError::Misfit { part: "a visit" }),
            (_, false) => Err(ReadError::Misfit { part: "a skip" }),
        }
    }

    /// The journal that a finished or interrupted run would have left.
    pub fn of(run: &RunRecord) -> Self {
        Self {
            format: Self::FORMAT.to_owned(),
            started: run.started.clone(),
            plan: run.plan.clone(),
            facts: run.facts.clone(),
            skipped: run.skipped.clone(),
            setup: Setup {
                joust: run.joust.clone(),
                versions: run.contenders.iter().map(|facts| facts.version.clone()).collect(),
                layout: run.layout.clone(),
            },
            visits: run.visits.clone(),
            skips: run.user_skips().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Cell, Contender, Workload};

    fn journal() -> Journal {
        let plan = Plan {
            contenders: vec![Contender::default()],
            cells: vec![Cell::only(Workload::default())],
            ..Plan::default()
        };
        Journal {
            format: Journal::FORMAT.to_owned(),
            started: "2026-11-22T12:00:00Z".to_owned(),
            plan,
            facts: Facts::default(),
            skipped: Vec::new(),
            setup: Setup::default(),
            visits: (0..3).map(|block| Visit { block, ..Visit::default() }).collect(),
            skips: Vec::new(),
        }
    }

    fn text(journal: &Journal) -> String {
        journal.visits.iter().fold(journal.head(), |text, visit| text + &Journal::line(visit))
    }

    #[test]
    fn what_was_written_is_read_back() {
        assert_eq!(Journal::read(&text(&journal())).unwrap(), journal());
    }

    #[test]
    fn a_skip_is_a_line_among_the_visits() {
        let skip = UserSkip { contender: 0, block: 1 };
        let mut lines: Vec<String> = journal().visits.iter().map(Journal::line).collect();
        lines.insert(2, Journal::skip_line(skip));
        let read = Journal::read(&(journal().head() + &lines.concat())).unwrap();
        assert_eq!(read, Journal { skips: vec![skip], ..journal() });
        let beyond = Journal::skip_line(UserSkip { contender: 7, block: 1 });
        assert!(Journal::read(&(journal().head() + &beyond)).is_err());
    }

    #[test]
    fn a_journal_cut_anywhere_loses_the_line_that_was_being_written_and_no_other() {
        let whole = text(&journal());
        let head = journal().head().len();
        for end in head..whole.len() {
            let cut = Journal::read(&whole[..end]).unwrap();
            let lines = whole[..end].matches('\n').count() - 1;
            assert_eq!(cut.visits, journal().visits[..lines], "cut at {end}");
        }
        assert!(Journal::read(&whole[..head - 1]).is_err(), "nothing is known without the plan");
    }

    #[test]
    fn a_line_that_is_damaged_is_named_and_a_visit_that_is_there_twice_refused() {
        let whole = text(&journal());
        let mut lines: Vec<&str> = whole.lines().collect();
        lines[2] = "{\"cell\":0,";
        let damaged = Journal::read(&(lines.join("\n") + "\n")).unwrap_err().to_string();
        assert!(damaged.starts_with("line 3 is damaged"), "{damaged}");
        lines[2] = lines[1];
        let twice = Journal::read(&(lines.join("\n") + "\n"));
        assert!(matches!(twice, Err(ReadError::Twice)));
    }

    #[test]
    fn a_visit_of_a_contender_that_is_not_planned_is_refused() {
        let mut wrong = journal();
        wrong.visits[1].contender = 1;
        assert!(matches!(Journal::read(&text(&wrong)), Err(ReadError::Misfit { .. })));
    }

    #[test]
    fn a_block_that_no_run_reaches_is_refused() {
        let mut wrong = journal();
        wrong.visits[1].block = u32::MAX;
        assert!(matches!(Journal::read(&text(&wrong)), Err(ReadError::Misfit { .. })));
    }
}
