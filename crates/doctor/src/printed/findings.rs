//! Owns the findings of printed results, and which conclusions survive them. Start reading at [`examine`].

use record::Certainty;

use super::check::{Conclusion, Effect, PrintedCheck, Seen};
use super::checks::CHECKS;
use super::row::Printed;

/// A fault, seen in printed results.
#[derive(Debug, Clone)]
pub struct PrintedFinding {
    /// Which check saw it.
    pub check: &'static PrintedCheck,
    /// What it saw.
    pub seen: Seen,
}

/// What becomes of each row in one conclusion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survival {
    /// The conclusion.
    pub conclusion: Conclusion,
    /// For each row: the strongest effect on it, and whether that is confirmed. `None`: nothing against it.
    pub rows: Vec<Option<(Certainty, Effect)>>,
}

/// The findings of every check, the most severe first.
pub fn examine(printed: &Printed) -> Vec<PrintedFinding> {
    let mut findings: Vec<PrintedFinding> = Vec::new();
    for check in CHECKS {
        for seen in (check.look)(printed) {
            assert!(!seen.evidence.is_empty(), "{} says what it saw", check.name);
            assert!(
                !seen.rows.is_empty() && seen.rows.iter().all(|&row| row < printed.rows.len()),
                "{} names the rows it touches",
                check.name
            );
            findings.push(PrintedFinding { check, seen });
        }
    }
    findings
        .sort_by_key(|finding| std::cmp::Reverse((finding.check.severity, finding.seen.certainty)));
    findings
}

/// What the findings leave of each conclusion. A ranking is concluded only where there are two servers.
pub fn survivals(printed: &Printed, findings: &[PrintedFinding]) -> Vec<Survival> {
    let mut all = Vec::new();
    for conclusion in [Conclusion::Rate, Conclusion::Latency, Conclusion::Ranking] {
        let is_asked = match conclusion {
            Conclusion::Rate => printed.rows.iter().any(|row| row.rate.is_some()),
            Conclusion::Latency => printed
                .rows
                .iter()
                .any(|row| row.total().mean.is_some() || !row.percentiles.is_empty()),
            Conclusion::Ranking => printed.servers() > 1,
        };
        if is_asked {
            all.push(survival(printed, findings, conclusion));
        }
    }
    all
}

fn survival(printed: &Printed, findings: &[PrintedFinding], conclusion: Conclusion) -> Survival {
    let mut rows: Vec<Option<(Certainty, Effect)>> = vec![None; printed.rows.len()];
    for finding in findings {
        let effects = finding.check.touches.iter().filter(|(of, _)| *of == conclusion);
        for (_, effect) in effects {
            for &row in &finding.seen.rows {
                rows[row] = rows[row].max(Some((finding.seen.certainty, *effect)));
            }
        }
    }
    Survival { conclusion, rows }
}
