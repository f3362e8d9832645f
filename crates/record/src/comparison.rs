//! The comparison of two runs of the same contenders, made at different times.

use serde::{Deserialize, Serialize};
use units::Share;

use crate::metric::Metric;
use crate::verdict::{ShortOf, Verdict};

/// A candidate run compared with a base run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`Comparison::FORMAT`].
    pub format: String,
    /// The base run.
    pub base: RunName,
    /// The candidate run.
    pub candidate: RunName,
    /// Smaller regressions do not matter.
    pub margin: Share,
    /// What the ratios are ratios of, and why, in a sentence.
    pub method: String,
    /// What a reader must know before the figures: machines that differ, an interrupted run.
    pub cautions: Vec<String>,
    /// One for each contender, cell and metric that both runs have.
    pub changes: Vec<RunChange>,
    /// The references themselves, candidate over base: nothing of theirs changed, so the ratio shows the machine. They
    /// are not judged.
    pub drift: Vec<RunChange>,
    /// What only one of the runs has, or what differs in the work, in words.
    pub unmatched: Vec<String>,
}

/// Which run it is.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunName {
    /// Its file.
    pub path: String,
    /// Name of the study.
    pub study: String,
    /// Start, RFC 3339.
    pub started: String,
    /// Version of joust.
    pub joust: String,
}

/// How a contender changed from the base run to the candidate run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunChange {
    /// Name of the contender.
    pub contender: String,
    /// Name of the cell in the candidate run; empty if the run has only one.
    pub cell: String,
    /// The metric.
    pub metric: Metric,
    /// What changed in the contender: its version, its settings.
    pub differs: Vec<String>,
    /// What the ratio is a ratio of.
    pub basis: Basis,
    /// The estimate behind the verdict, candidate over base.
    pub estimate: Option<RunEstimate>,
    /// The verdict, in the direction of `direction`.
    pub verdict: Verdict,
    /// The run that lacks blocks, and how many; `None` if both have as many as their studies ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_of: Option<ShortOf>,
    /// The direction of the verdict.
    pub direction: Direction,
    /// Whether it is a regression.
    pub judgement: ChangeJudgement,
}

/// What a ratio between runs is a ratio of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Basis {
    /// The contender's own figures: they include what the machine did differently.
    Figures,
    /// The contender's figures over those of a reference in the same blocks: what the machine did differently to both
    /// cancels out.
    OverReference {
        /// Name of the contender that did not change.
        reference: String,
    },
}

/// A ratio of two runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunEstimate {
    /// Ratio of the levels, candidate over base; each is a robust centre over blocks.
    pub ratio: f64,
    /// Lower end of the 95 % interval, by Welch's t.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Blocks of the base run.
    pub blocks_base: u32,
    /// Blocks of the candidate run.
    pub blocks_candidate: u32,
    /// Two-sided p of "no difference", after Holm over all changes of the metric that are not withheld.
    pub p_holm: f64,
}

/// The direction of a verdict between runs. A bound can be stated in one direction only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Candidate over base.
    CandidateOverBase,
    /// Base over candidate: the base is at least so many times the candidate.
    BaseOverCandidate,
}

/// Whether a change is a regression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeJudgement {
    /// Worse: the whole interval lies beyond the margin, on the bad side.
    Regression,
    /// Better: the whole interval lies beyond the margin, on the good side.
    Improvement,
    /// It worked in the base run and does not in the candidate: visits failed, or its answers are errors or another
    /// body. This is worse than any figure, so there is none.
    Broken,
    /// Neither is certain, or the change is smaller than the margin.
    Neither,
}

impl Comparison {
    /// Name and version of this format.
    pub const FORMAT: &'static str = "joust-comparison/1";

    /// As JSON, one object, ending in a newline.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }

    /// The changes that are a regression, or broken.
    pub fn regressions(&self) -> impl Iterator<Item = &RunChange> {
        let is_worse =
            |judgement| matches!(judgement, ChangeJudgement::Regression | ChangeJudgement::Broken);
        self.changes.iter().filter(move |change| is_worse(change.judgement))
    }

    /// Whether there is any verdict.
    pub fn says_something(&self) -> bool {
        self.changes.iter().any(|change| !matches!(change.verdict, Verdict::Withheld { .. }))
    }
}
