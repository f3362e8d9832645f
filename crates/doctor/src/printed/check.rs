//! Owns what a check of printed results is, and what it tells. Start reading at [`PrintedCheck`].

use record::{Certainty, Question, Severity};

use super::row::Printed;

/// One fault of printed results, and how it is detected. Its texts make the manual and the findings.
#[derive(Debug)]
pub struct PrintedCheck {
    /// Name of the fault, and of the file ("littles_law").
    pub name: &'static str,
    /// What it does to the conclusions that it touches, once confirmed.
    pub severity: Severity,
    /// The question about a benchmark that it answers.
    pub question: Question,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// Why it misleads, in a sentence.
    pub meaning: &'static str,
    /// How it is detected: identity and tolerance, in a few sentences.
    pub detection: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    /// How one meets it: a command or a row, and what is seen.
    pub example: &'static str,
    /// Where more is to be read; several are separated by "; ".
    pub source: &'static str,
    /// What becomes of the conclusions.
    pub touches: &'static [(Conclusion, Effect)],
    /// Looks for it; usually one entry for all rows that it is seen in.
    pub look: fn(&Printed) -> Vec<Seen>,
}

/// What a check saw.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Seen {
    /// Confirmed: no true numbers could have been printed so, or it is counted. Suspected: a pattern.
    pub certainty: Certainty,
    /// Index of each row it touches.
    pub rows: Vec<usize>,
    /// How much of what was measured it touches, 0 to 1, where `evidence` says so.
    pub share: Option<f64>,
    /// One sentence with its figures.
    pub evidence: String,
}

/// What one wants to conclude from printed results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conclusion {
    /// How many requests a second the server answers.
    Rate,
    /// How long a request takes.
    Latency,
    /// Which server is faster.
    Ranking,
}

/// What becomes of a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It may be wrong by little.
    InDoubt,
    /// The true value is the printed one or more.
    AtLeast,
    /// The true value is the printed one or less.
    AtMost,
    /// It does not stand.
    Void,
}
