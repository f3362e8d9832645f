//! A whole experiment, as it lies in its file.

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::finding::Finding;
use crate::json::ReadError;
use crate::plan::{CpuLayout, Plan};
use crate::verdict::PairVerdict;
use crate::visit::Visit;

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
    /// Body's SHA-256 in hex, as fetched alone before the run; empty where it never answered.
    pub body_sha256: String,
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
    pub const FORMAT: &'static str = "joust-run/2";

    /// As JSON, one object, ending in a newline.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }

    /// Reads what [`RunRecord::to_json`] wrote.
    ///
    /// # Errors
    /// [`ReadError`]: not JSON, of another shape, of a version that this joust does not know, or with
    /// an index of a contender that is not there; below this, indices are not checked again.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let run: Self =
            crate::json::read(text, Self::FORMAT, &[("joust-run/1", crate::upgrade::run_1)])?;
        match run.misfit() {
            None => Ok(run),
            Some(part) => Err(ReadError::Contenders { part, planned: run.plan.contenders.len() }),
        }
    }

    /// The part whose contenders are not those of the plan.
    fn misfit(&self) -> Option<&'static str> {
        let planned = self.plan.contenders.len();
        let is_unknown = |index: usize| index >= planned;
        let mut visits = self.visits.iter().map(|visit| visit.contender);
        let mut verdicts = self.verdicts.iter().flat_map(|pair| [pair.a, pair.b]);
        let mut findings =
            self.findings.iter().flat_map(|finding| finding.contenders.iter().copied());
        let parts = [
            ("the facts", self.contenders.len() != planned),
            ("a visit", visits.any(is_unknown)),
            ("a verdict", verdicts.any(is_unknown)),
            ("a finding", findings.any(is_unknown)),
        ];
        parts.into_iter().find_map(|(part, does_not_fit)| does_not_fit.then_some(part))
    }

    /// Visits of a contender that can be used.
    pub fn measured(&self, contender: usize) -> impl Iterator<Item = &Visit> {
        self.visits.iter().filter(move |visit| {
            visit.contender == contender && visit.state == crate::VisitState::Measured
        })
    }
}
