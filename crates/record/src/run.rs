//! A whole experiment, as it lies in its file.

use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::facts::Facts;
use crate::finding::Finding;
use crate::json::ReadError;
use crate::plan::{Contender, CpuLayout, Plan, Published, PublishedFigure};
use crate::seal::{self, Integrity};
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
    /// Which CPUs were whose.
    pub layout: CpuLayout,
    /// One an entry of `plan.contenders`, in the same order.
    pub contenders: Vec<ContenderFacts>,
    /// Asked for, but not installed.
    pub skipped: Vec<Skipped>,
    /// Every visit, in the order they were made.
    pub visits: Vec<Visit>,
    /// What the doctor saw.
    pub findings: Vec<Finding>,
    /// What may be said of each pair, metric by metric, the primary metric first.
    pub verdicts: Vec<PairVerdict>,
    /// What else is said of the cells; empty in a file of a joust that did not say it.
    #[serde(default)]
    pub analysis: Analysis,
    /// Whether its file is as it was written.
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
    /// It was broken off; what was measured is here.
    Incomplete {
        /// Why.
        reason: String,
    },
}

/// What was really run under a contender's name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContenderFacts {
    /// The server's own word for its version.
    pub version: String,
    /// The command line.
    pub command: String,
    /// Rendered configuration, file by file: name and content.
    pub files: Vec<(String, String)>,
    /// Settings that decide comparability, read back ("keep_alive_requests" to "unlimited").
    pub parity: std::collections::BTreeMap<String, String>,
    /// Body's SHA-256 in hex, as fetched alone before the run; empty where it never answered. Of the
    /// first path that is asked for; the others stand in `bodies`.
    pub body_sha256: String,
    /// SHA-256 in hex of every path that the contender is asked for.
    #[serde(default)]
    pub bodies: std::collections::BTreeMap<String, String>,
    /// Head of that answer, as it came.
    pub head: String,
}

/// A contender that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Name of the contender.
    pub name: String,
    /// Why ("nginx is not installed").
    pub reason: String,
    /// The command that brings it.
    pub remedy: String,
}

impl RunRecord {
    /// Name and version of this format.
    pub const FORMAT: &'static str = "joust-run/3";

    /// As JSON, one object, ending in a newline.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }

    /// As [`RunRecord::to_json`], with a digest of it as the last field: for the file that is written when
    /// it was measured, and for no other, because what was changed would look as if it had not been.
    pub fn to_sealed_json(&self) -> String {
        seal::seal(&self.to_json())
    }

    /// Reads what [`RunRecord::to_json`] or [`RunRecord::to_sealed_json`] wrote.
    ///
    /// # Errors
    /// [`ReadError`]: not JSON, of another shape, of a version that this joust does not know, or with
    /// an index of a contender that is not there; below this, indices are not checked again.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let mut run: Self = crate::json::read(text, Self::FORMAT, OLDER)?;
        run.integrity = seal::check(text);
        match run.misfit() {
            None => Ok(run),
            Some(part) => Err(ReadError::Misfit { part }),
        }
    }

    /// The part whose contenders or cells are not those of the plan.
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

    /// The run as it was in one cell, as if it had been planned alone: its visits, verdicts and findings,
    /// and the contenders that take part, whose indices are anew from 0. For whoever judges or shows cells
    /// one by one.
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

    /// Facts of a contender, with the body of what it is asked for in that cell.
    fn facts_at(&self, cell: usize, contender: usize) -> ContenderFacts {
        let facts = self.contenders[contender].clone();
        let body = facts.bodies.get(&self.plan.target(cell, contender)).cloned();
        ContenderFacts { body_sha256: body.unwrap_or(facts.body_sha256), ..facts }
    }

    /// All that is not by cell.
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

    /// Visits of a contender that can be used.
    pub fn measured(&self, contender: usize) -> impl Iterator<Item = &Visit> {
        self.visits.iter().filter(move |visit| {
            visit.contender == contender && visit.state == crate::VisitState::Measured
        })
    }
}
