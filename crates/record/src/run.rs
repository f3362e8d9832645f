//! A whole experiment, as its file holds it.

use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::facts::Facts;
use crate::finding::Finding;
use crate::json::ReadError;
use crate::plan::{Contender, CpuLayout, Plan, Published, PublishedFigure};
use crate::seal::{self, Integrity};
use crate::user_skip::UserSkip;
use crate::verdict::PairVerdict;
use crate::visit::Visit;

/// Formats that are still read.
const OLDER: &[(&str, crate::json::Upgrade)] =
    &[("joust-run/1", crate::upgrade::run_1), ("joust-run/2", crate::upgrade::run_2)];

/// Everything an experiment planned, saw and concluded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`RunRecord::FORMAT`].
    pub format: String,
    /// Version of joust.
    pub joust: String,
    /// Start, RFC 3339.
    pub started: String,
    /// How long it took, seconds.
    pub seconds: f64,
    /// How it ended.
    pub ending: Ending,
    /// What was planned, complete.
    pub plan: Plan,
    /// The machine.
    pub facts: Facts,
    /// The CPUs of the server and of the generator.
    pub layout: CpuLayout,
    /// One for each entry of `plan.contenders`, in the same order.
    pub contenders: Vec<ContenderFacts>,
    /// Requested, but not installed.
    pub skipped: Vec<Skipped>,
    /// Every visit, in order of time.
    pub visits: Vec<Visit>,
    /// The doctor's findings.
    pub findings: Vec<Finding>,
    /// The verdicts of each pair, metric by metric, the primary metric first.
    pub verdicts: Vec<PairVerdict>,
    /// Further results of the cells; empty in files of a joust that did not have them.
    #[serde(default)]
    pub analysis: Analysis,
    /// Whether its file is unchanged.
    #[serde(skip)]
    pub integrity: Integrity,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// Every interval is narrow enough.
    Narrow,
    /// The largest number of blocks was reached.
    Blocks,
    /// The budget was used.
    Budget,
    /// The user ended it after a whole block; older versions of joust had no such key.
    Stopped {
        /// Blocks that were made, at least 1.
        blocks: u32,
    },
    /// It was interrupted; the record holds what was measured.
    Incomplete {
        /// Why.
        reason: String,
    },
}

/// What actually ran under a contender's name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContenderFacts {
    /// The server's version as it prints it.
    pub version: String,
    /// The command line.
    pub command: String,
    /// Rendered configuration, file by file: name and content.
    pub files: Vec<(String, String)>,
    /// Settings that decide comparability, read back ("keep_alive_requests" to "unlimited").
    pub parity: std::collections::BTreeMap<String, String>,
    /// SHA-256 in hex of the body, as fetched alone before the run; empty if it never answered. This is for the first
    /// path that is requested; the others are in `bodies`.
    pub body_sha256: String,
    /// SHA-256 in hex for every path that the contender is asked for.
    #[serde(default)]
    pub bodies: std::collections::BTreeMap<String, String>,
    /// Head of that answer, as received.
    pub head: String,
    /// The block, from 0, in which the user had it skipped: it has no visit in any later one. Its visits are kept, and
    /// every verdict on it is withheld. `None`: it was not skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_in: Option<u32>,
}

/// A contender that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Name of the contender.
    pub name: String,
    /// Why ("nginx is not installed").
    pub reason: String,
    /// The command that installs it.
    pub remedy: String,
}

impl RunRecord {
    /// Name and version of this format.
    pub const FORMAT: &'static str = "joust-run/3";

    /// As JSON, one object, ending in a newline.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }

    /// As [`RunRecord::to_json`], with its digest as the last field. Only for the file that is written right after
    /// measuring: sealing a changed record would make it look unchanged.
    pub fn to_sealed_json(&self) -> String {
        seal::seal(&self.to_json())
    }

    /// Reads what [`RunRecord::to_json`] or [`RunRecord::to_sealed_json`] wrote.
    ///
    /// # Errors
    /// [`ReadError`]: not JSON, of another shape, of a version that this joust does not know, or with the index of a
    /// contender that does not exist. Callers need not check indices again.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let mut run: Self = crate::json::read(text, Self::FORMAT, OLDER)?;
        run.integrity = seal::check(text);
        match run.misfit() {
            None => Ok(run),
            Some(part) => Err(ReadError::Misfit { part }),
        }
    }

    /// The part that refers to a contender or cell outside the plan.
    fn misfit(&self) -> Option<&'static str> {
        let Plan { contenders, cells, reference, published, .. } = &self.plan;
        let knows = |contender: usize| contender < contenders.len();
        let has = |cell: usize| cell < cells.len();
        let figures = || published.iter().flat_map(|published| &published.figures);
        let (analysed, analysed_contenders) = self.analysis.indices();
        let parts = [
            ("the facts", self.contenders.len() == contenders.len()),
            ("the plan without cells", !cells.is_empty()),
            ("the plan's reference", reference.is_none_or(knows)),
            ("a contender", contenders.iter().flat_map(|one| &one.cells).all(|&cell| has(cell))),
            ("a published figure", figures().all(|one| knows(one.contender) && has(one.cell))),
            ("a visit", self.visits.iter().all(|one| knows(one.contender) && has(one.cell))),
            ("a visit's block", self.visits.iter().all(|one| one.block < Visit::BLOCKS_MAX)),
            (
                "a verdict",
                self.verdicts.iter().all(|one| knows(one.a) && knows(one.b) && has(one.cell)),
            ),
            (
                "the analysis",
                analysed.into_iter().all(has) && analysed_contenders.into_iter().all(knows),
            ),
            (
                "a finding",
                self.findings.iter().all(|one| {
                    one.cell.is_none_or(has) && one.contenders.iter().all(|&one| knows(one))
                }),
            ),
        ];
        parts.into_iter().find_map(|(part, fits)| (!fits).then_some(part))
    }

    /// The run as it was in one cell, as if it had been planned alone: its visits, verdicts and findings, and the
    /// contenders that take part, re-indexed from 0. For code that judges or shows cells one by one.
    pub fn at(&self, cell: usize) -> Self {
        let part: Vec<usize> = self.plan.in_cell(cell).collect();
        let anew = |contender: usize| part.iter().position(|&one| one == contender);
        let figure = |one: &PublishedFigure| {
            Some(PublishedFigure { cell: 0, contender: anew(one.contender)?, ..one.clone() })
                .filter(|_| one.cell == cell)
        };
        let published = self.plan.published.as_ref().map(|published| Published {
            figures: published.figures.iter().filter_map(figure).collect(),
            over: published.over.and_then(anew),
            ..published.clone()
        });
        let contender =
            |&index: &usize| Contender { cells: Vec::new(), ..self.plan.contenders[index].clone() };
        let plan = Plan {
            contenders: part.iter().map(contender).collect(),
            cells: vec![self.plan.cells[cell].clone()],
            reference: self.plan.reference.and_then(anew),
            published,
            ..self.plan.clone()
        };
        let visit = |visit: &Visit| {
            Some(Visit { cell: 0, contender: anew(visit.contender)?, ..visit.clone() })
        };
        let verdict = |pair: &PairVerdict| {
            Some(PairVerdict { cell: 0, a: anew(pair.a)?, b: anew(pair.b)?, ..pair.clone() })
        };
        let visits = self.visits.iter().filter(|visit| visit.cell == cell);
        let verdicts = self.verdicts.iter().filter(|pair| pair.cell == cell);
        Self {
            plan,
            contenders: part.iter().map(|&index| self.facts_at(cell, index)).collect(),
            visits: visits.filter_map(visit).collect(),
            verdicts: verdicts.filter_map(verdict).collect(),
            analysis: self.analysis.at(cell, anew),
            findings: self.findings.iter().filter_map(|one| one.at(cell, &anew)).collect(),
            ..self.without_parts()
        }
    }

    /// Facts of a contender, with the body of its target in that cell.
    fn facts_at(&self, cell: usize, contender: usize) -> ContenderFacts {
        let facts = self.contenders[contender].clone();
        let body = facts.bodies.get(&self.plan.target(cell, contender)).cloned();
        ContenderFacts { body_sha256: body.unwrap_or(facts.body_sha256), ..facts }
    }

    /// Everything that does not depend on the cell.
    fn without_parts(&self) -> Self {
        Self {
            format: self.format.clone(),
            joust: self.joust.clone(),
            started: self.started.clone(),
            seconds: self.seconds,
            ending: self.ending.clone(),
            plan: Plan::default(),
            facts: self.facts.clone(),
            layout: self.layout.clone(),
            contenders: Vec::new(),
            skipped: self.skipped.clone(),
            visits: Vec::new(),
            findings: Vec::new(),
            verdicts: Vec::new(),
            analysis: Analysis::default(),
            integrity: self.integrity,
        }
    }

    /// The contenders that the user had skipped.
    pub fn user_skips(&self) -> impl Iterator<Item = UserSkip> {
        let skip = |(contender, facts): (usize, &ContenderFacts)| {
            Some(UserSkip { contender, block: facts.skipped_in? })
        };
        self.contenders.iter().enumerate().filter_map(skip)
    }

    /// Visits of a contender that can be used.
    pub fn measured(&self, contender: usize) -> impl Iterator<Item = &Visit> {
        self.visits.iter().filter(move |visit| {
            visit.contender == contender && visit.state == crate::VisitState::Measured
        })
    }
}
