//! What may be said of two runs, made at different times, of the same contenders.

use serde::{Deserialize, Serialize};
use units::Share;

use crate::metric::Metric;
use crate::verdict::{ShortOf, Verdict};

/// A candidate run held against a base run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`Comparison::FORMAT`].
    pub format: String,
    /// What is compared with.
    pub base: RunName,
    /// What is compared.
    pub candidate: RunName,
    /// A regression smaller than this is of no interest.
    pub margin: Share,
    /// What the ratios are of, and why, in a sentence.
    pub method: String,
    /// What a reader must know before the figures: machines that differ, a run that was broken off.
    pub cautions: Vec<String>,
    /// A contender, cell and metric that both runs have: one each.
    pub changes: Vec<RunChange>,
    /// The references themselves, candidate over base: as nothing of theirs changed, this is the
    /// machine. They are not judged.
    pub drift: Vec<RunChange>,
    /// What only one of both runs has, or was asked otherwise, in words.
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

/// How a contender does in the candidate run beside the base run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunChange {
    /// Name of the contender.
    pub contender: String,
    /// Name of the cell in the candidate run; empty where it has one.
    pub cell: String,
    /// Of what.
    pub metric: Metric,
    /// What of the contender is not as it was: its version, its settings.
    pub differs: Vec<String>,
    /// What the ratio is of.
    pub basis: Basis,
    /// The estimate behind the verdict, candidate over base.
    pub estimate: Option<RunEstimate>,
    /// What may be said, in the direction of `direction`.
    pub verdict: Verdict,
    /// The run that lacks blocks, and how many; `None` where both have as many as their studies ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_of: Option<ShortOf>,
    /// Which way round the verdict is.
    pub direction: Direction,
    /// Whether it is a regression.
    pub judgement: ChangeJudgement,
}

/// What a ratio between runs is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Basis {
    /// The contender's own figures: what the machine did differently is in it.
    Figures,
    /// The contender's over those of a reference in the same blocks: what the machine did
    /// differently to both cancels out.
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
    /// Two-sided p of "no difference", after Holm over all of the metric that is not withheld.
    pub p_holm: f64,
}

/// Which way round a verdict between runs is. A bound can be stated one way only.
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
    /// Better, as surely.
    Improvement,
    /// It worked in the base run and does not in the candidate: visits failed, or its answers are errors
    /// or another body. Worse than any figure, so that there is none.
    Broken,
    /// Neither is sure, or the change is smaller than the margin.
    Neither,
}

impl Comparison {
    /// Name and version of this format.
    pub const FORMAT: &'static str = "joust-comparison/1";

    /// As JSON, one object, ending in a newline.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }

    /// What is a regression, or broken altogether.
    pub fn regressions(&self) -> impl Iterator<Item = &RunChange> {
        let is_worse =
            |judgement| matches!(judgement, ChangeJudgement::Regression | ChangeJudgement::Broken);
        self.changes.iter().filter(move |change| is_worse(change.judgement))
    }

    /// Whether anything may be said at all.
    pub fn says_something(&self) -> bool {
        self.changes.iter().any(|change| !matches!(change.verdict, Verdict::Withheld { .. }))
    }
}
