//! What a check of the doctor found.

use serde::{Deserialize, Serialize};
use units::Share;

/// An artifact, seen in a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the check ("errors_as_speed").
    pub check: String,
    /// Its effect on a verdict.
    pub severity: Severity,
    /// How certain it is.
    pub certainty: Certainty,
    /// Which question about a benchmark it answers; `None` in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// Share of the measurement that it touches, 0 to 1: of the requests, the time or the rate, as `evidence` says.
    /// `None` if there is no such number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Index of the cell in which it was seen; `None`: it touches all of them.
    #[serde(default)]
    pub cell: Option<usize>,
    /// Index of each contender it touches; empty: all of them.
    pub contenders: Vec<usize>,
    /// Whether the contenders it touches are alike in what was seen, and unlike all others: a pair of two of them is
    /// then not touched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alike: bool,
    /// Whether it is about the contenders it touches relative to each other: a pair of one of them and another
    /// contender is then not touched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub among: bool,
    /// What was seen, in one sentence with its figures.
    pub evidence: String,
    /// Why it misleads, in one sentence.
    pub meaning: String,
    /// What to do about it: a command, a flag, a setting.
    pub remedy: String,
}

/// The effect of a confirmed finding on the verdicts of pairs it touches.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// None; the reader should know.
    #[default]
    Note,
    /// The throughput of the contenders it touches is a bound, not an estimate.
    Bound,
    /// The verdict is withheld.
    Void,
}

/// How certain a finding is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// A pattern in the numbers alone.
    #[default]
    Suspected,
    /// A pattern and a counter that explains it, or a direct count.
    Confirmed,
}

/// The questions to ask of every benchmark, after Brendan Gregg ("Evaluating the Evaluation: A Benchmarking
/// Checklist", 2018), in his order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Why not double? What was the limit: the server, or something else?
    WhyNotDouble,
    /// Did it break a limit of the link, the protocol, or arithmetic?
    DidItBreakALimit,
    /// Did it error?
    DidItError,
    /// Does it reproduce?
    DoesItReproduce,
    /// Does it matter: is it the work that one wants to compare?
    DoesItMatter,
    /// Did it even happen?
    DidItEvenHappen,
}

impl Question {
    /// All, in the order in which they are asked.
    pub const ALL: [Self; 6] = [
        Self::WhyNotDouble,
        Self::DidItBreakALimit,
        Self::DidItError,
        Self::DoesItReproduce,
        Self::DoesItMatter,
        Self::DidItEvenHappen,
    ];

    /// The question as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::WhyNotDouble => "Why not double?",
            Self::DidItBreakALimit => "Did it break a limit?",
            Self::DidItError => "Did it error?",
            Self::DoesItReproduce => "Does it reproduce?",
            Self::DoesItMatter => "Does it matter?",
            Self::DidItEvenHappen => "Did it even happen?",
        }
    }
}

impl Finding {
    /// The name of the server in findings of a load that was not part of a run.
    pub const SERVER: &str = "the server";

    /// The evidence, without the name before it if that is [`Finding::SERVER`].
    pub fn seen(&self) -> &str {
        let rest =
            self.evidence.strip_prefix(Self::SERVER).and_then(|rest| rest.strip_prefix(": "));
        rest.unwrap_or(&self.evidence)
    }

    /// The same finding in one cell, or `None` if it does not apply there. `anew` gives a contender's index in the
    /// cell.
    pub(crate) fn at(&self, cell: usize, anew: &dyn Fn(usize) -> Option<usize>) -> Option<Self> {
        let contenders: Vec<usize> = self.contenders.iter().filter_map(|&one| anew(one)).collect();
        let is_here = self.cell.is_none_or(|seen| seen == cell)
            && (self.contenders.is_empty() || !contenders.is_empty());
        is_here.then(|| Self { cell: self.cell.map(|_| 0), contenders, ..self.clone() })
    }

    /// Whether it touches the contender.
    pub fn touches(&self, contender: usize) -> bool {
        self.contenders.is_empty() || self.contenders.contains(&contender)
    }

    /// Whether it touches the comparison of the two.
    pub fn touches_pair(&self, a: usize, b: usize) -> bool {
        match (self.touches(a), self.touches(b)) {
            (true, true) => !self.alike,
            (one, other) => (one || other) && !self.among,
        }
    }

    /// Whether it acts with `severity` on the contender in the cell.
    pub fn acts_on(&self, severity: Severity, cell: usize, contender: usize) -> bool {
        self.acts(severity) && self.touches(contender) && self.cell.is_none_or(|seen| seen == cell)
    }

    /// Findings in groups with the same check, weight and meaning. Groups that act on verdicts come first, and then
    /// those with the largest share. A reader counts groups.
    pub fn grouped(findings: &[Self]) -> Vec<Vec<&Self>> {
        let mut order: Vec<&Self> = findings.iter().collect();
        order.sort_by(|a, b| b.strength().cmp(&a.strength()).then(b.size().total_cmp(&a.size())));
        let mut groups: Vec<Vec<&Self>> = Vec::new();
        for finding in order {
            match groups.iter_mut().find(|known| known[0].says_the_same(finding)) {
                Some(known) => known.push(finding),
                None => groups.push(vec![finding]),
            }
        }
        groups
    }

    /// Findings that act on verdicts come before those that may act, and a void before a bound.
    fn strength(&self) -> (bool, Severity, Certainty) {
        let acts = self.certainty == Certainty::Confirmed && self.severity != Severity::Note;
        (acts, self.severity, self.certainty)
    }

    /// Its share, to compare it with others; without a share it is smaller than any.
    fn size(&self) -> f64 {
        self.share.map_or(-1.0, |share| share.0)
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let weight = |one: &Self| (one.severity, one.certainty);
        let words = |one: &Self| [&one.check, &one.meaning, &one.remedy].map(Clone::clone);
        weight(self) == weight(other) && words(self) == words(other)
    }

    /// Whether it is certain enough to act on verdicts with `severity`.
    pub fn acts(&self, severity: Severity) -> bool {
        self.certainty == Certainty::Confirmed && self.severity == severity
    }
}
