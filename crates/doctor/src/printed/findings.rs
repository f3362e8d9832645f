//! Owns the findings of printed results, and which conclusions survive them. Start reading at [`examine`].

use record::Certainty;

use super::check::{Conclusion, Effect, PrintedCheck, Seen};
use super::checks::CHECKS;
use super::row::{Printed, Row};

/// A fault, seen in printed results.
#[derive(Debug, Clone)]
pub struct PrintedFinding {
    /// Which check saw it.
    pub check: &'static PrintedCheck,
    /// What it saw.
    pub seen: Seen,
}

/// What becomes of a conclusion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survival {
    /// The conclusion.
    pub conclusion: Conclusion,
    /// Rows on which it can be based at all.
    pub rows: usize,
    /// Parts of these rows, the best first; none is empty.
    pub parts: Vec<Part>,
}

/// Rows of which the same can be concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What can be concluded.
    pub standing: Standing,
    /// Number of rows.
    pub rows: usize,
    /// Names of the checks that say so.
    pub because: Vec<&'static str>,
}

/// What can be concluded from a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing is against it.
    Stands,
    /// The true value is the printed one or more.
    AtLeast,
    /// The true value is the printed one or less.
    AtMost,
    /// A pattern is against it, or it may be wrong by little.
    InDoubt,
    /// It is wrong.
    Fails,
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
    let conclusions = [Conclusion::Rate, Conclusion::Latency, Conclusion::Ranking];
    let asked = conclusions
        .into_iter()
        .filter(|conclusion| *conclusion != Conclusion::Ranking || printed.servers() > 1);
    let all = asked.map(|conclusion| survival(printed, findings, conclusion));
    all.filter(|survival| survival.rows > 0).collect()
}

fn survival(printed: &Printed, findings: &[PrintedFinding], conclusion: Conclusion) -> Survival {
    let mut parts: Vec<Part> = Vec::new();
    for (at, row) in printed.indexed() {
        if !says(row, conclusion) {
            continue;
        }
        let (standing, because) = standing(at, findings, conclusion);
        match parts.iter_mut().find(|part| part.standing == standing) {
            Some(part) => {
                part.rows += 1;
                part.because.extend(because);
            }
            None => parts.push(Part { standing, rows: 1, because }),
        }
    }
    for part in &mut parts {
        part.because.sort_unstable();
        part.because.dedup();
    }
    parts.sort_by_key(|part| part.standing);
    Survival { conclusion, rows: parts.iter().map(|part| part.rows).sum(), parts }
}

fn says(row: &Row, conclusion: Conclusion) -> bool {
    match conclusion {
        Conclusion::Rate => row.rate.is_some(),
        Conclusion::Latency => row.total().mean.is_some() || !row.percentiles.is_empty(),
        Conclusion::Ranking => row.rate.is_some() && row.server.is_some(),
    }
}

/// What the findings leave of one row, and the checks that say so.
fn standing(
    row: usize,
    findings: &[PrintedFinding],
    conclusion: Conclusion,
) -> (Standing, Vec<&'static str>) {
    let touching = findings.iter().filter(|finding| finding.seen.rows.contains(&row));
    let effects: Vec<(Standing, &'static str)> = touching
        .flat_map(|finding| {
            let of = finding.check.touches.iter().filter(|(of, _)| *of == conclusion);
            of.map(|(_, effect)| (of_effect(*effect, finding.seen.certainty), finding.check.name))
        })
        .collect();
    let has = |wanted: Standing| effects.iter().any(|(standing, _)| *standing == wanted);
    let strongest = effects.iter().map(|(standing, _)| *standing).max().unwrap_or(Standing::Stands);
    // Two bounds in two directions are no bound.
    let is_between = strongest == Standing::AtMost && has(Standing::AtLeast);
    let standing = if is_between { Standing::InDoubt } else { strongest };
    let is_cause = |of: Standing| of == strongest || (is_between && of == Standing::AtLeast);
    let because = effects.iter().filter(|(of, _)| is_cause(*of)).map(|(_, name)| *name).collect();
    (standing, because)
}

fn of_effect(effect: Effect, certainty: Certainty) -> Standing {
    match (certainty, effect) {
        (Certainty::Suspected, _) | (_, Effect::InDoubt) => Standing::InDoubt,
        (Certainty::Confirmed, Effect::AtLeast) => Standing::AtLeast,
        (Certainty::Confirmed, Effect::AtMost) => Standing::AtMost,
        (Certainty::Confirmed, Effect::Void) => Standing::Fails,
    }
}

/// What to ask of whoever printed it, so that more can be concluded.
pub fn asks(survivals: &[Survival]) -> Vec<&'static str> {
    let is_hurt =
        |survival: &&Survival| survival.parts.iter().any(|part| part.standing != Standing::Stands);
    let ask = |survival: &Survival| match survival.conclusion {
        Conclusion::Rate => "the whole output of the tool for every run, with its command line",
        Conclusion::Latency => {
            "percentiles from a histogram of all requests (wrk --latency, oha, k6), and what a latency covers"
        }
        Conclusion::Ranking => {
            "repetitions of every server in random order, and the server's CPU time a request"
        }
    };
    survivals.iter().filter(is_hurt).map(ask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, WRK, printed};

    #[test]
    fn sound_reports_have_no_finding_and_every_conclusion() {
        for text in [AB, WRK] {
            let printed = printed(text);
            let findings = examine(&printed);
            let names: Vec<&str> = findings.iter().map(|finding| finding.check.name).collect();
            assert_eq!(names, [""; 0]);
            let survivals = survivals(&printed, &findings);
            assert_eq!(survivals.len(), 2, "one server makes no ranking");
            assert!(survivals.iter().all(|one| one.parts[0].standing == Standing::Stands));
            assert_eq!(asks(&survivals), [""; 0]);
        }
    }

    #[test]
    fn conclusions_fail_row_by_row() {
        let table = "server,connections,req/s,mean (ms)\na,64,32013,2.00\nb,64,16007,4.00\nc,64,8009,7.99\n\
                     d,64,41011,9.00\n";
        let printed = printed(table);
        let findings = examine(&printed);
        let all = survivals(&printed, &findings);
        let latency = all.iter().find(|one| one.conclusion == Conclusion::Latency).unwrap();
        let failing = latency.parts.last().unwrap();
        assert_eq!((failing.standing, failing.rows), (Standing::Fails, 1));
        assert!(failing.because.contains(&"littles_law"), "{failing:?}");
    }

    #[test]
    fn texts_of_checks_are_complete() {
        let mut names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
        names.extend(crate::CHECKS.iter().map(|check| check.name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name is of one check");
        for check in CHECKS {
            for text in [check.title, check.meaning, check.detection, check.remedy, check.example] {
                assert!(text.len() > 10 && !text.ends_with('.'), "{}: {text}", check.name);
            }
            assert!(!check.touches.is_empty(), "{}", check.name);
        }
    }
}
