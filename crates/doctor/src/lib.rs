//! Owns the checks for what fools people who benchmark web servers: one file an artifact. Must not
//! know /proc, sockets or processes: facts arrive as text in the record, and a check parses them.
//! Start reading at [`examine`], then at any file of `checks`.
//!
//! | severity | what a confirmed finding does |
//! |---|---|
//! | void | the verdict of each pair that it touches is withheld |
//! | bound | the throughput of those it touches is a bound |
//! | note | nothing; the reader should know |

mod checks;
mod evidence;
mod words;

#[cfg(test)]
#[path = "../../stats/tests/noise/mod.rs"]
mod noise;
#[cfg(test)]
mod testdata;

pub use checks::{CHECKS, Check};
pub use evidence::Evidence;

use std::collections::BTreeSet;

use record::{Certainty, Finding};

/// What every check sees, in the order of [`CHECKS`]; the most severe first.
pub fn examine(evidence: &Evidence) -> Vec<Finding> {
    let mut findings: Vec<Finding> = CHECKS
        .iter()
        .flat_map(|check| (check.look)(evidence).into_iter().map(|seen| check.finding(seen)))
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.certainty)));
    findings
}

/// Paths of all facts that checks ask for; whoever measures snapshots them before and after each
/// visit.
pub fn needs() -> Vec<&'static str> {
    let paths: BTreeSet<&str> = CHECKS.iter().flat_map(|check| check.needs).copied().collect();
    paths.into_iter().collect()
}

/// What a check saw; its name, severity and advice are the check's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// How sure it is.
    pub certainty: Certainty,
    /// Index of each contender it touches; empty: all of them.
    pub contenders: Vec<usize>,
    /// One sentence with its figures.
    pub evidence: String,
}

impl Check {
    fn finding(&self, seen: Seen) -> Finding {
        Finding {
            check: self.name.to_owned(),
            severity: self.severity,
            certainty: seen.certainty,
            contenders: seen.contenders,
            evidence: seen.evidence,
            meaning: self.meaning.to_owned(),
            remedy: self.remedy.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use record::Severity;

    use super::*;

    #[test]
    fn a_clean_run_has_no_finding() {
        let run = testdata::run(&["a", "b"], 12);
        assert_eq!(examine(&Evidence::of(&run)), Vec::new());
    }

    #[test]
    fn an_empty_run_has_no_finding() {
        let run = testdata::run(&["a", "b"], 0);
        assert_eq!(examine(&Evidence::of(&run)), Vec::new());
    }

    #[test]
    fn every_check_says_what_it_means_and_what_to_do() {
        for check in CHECKS {
            let is_name = check.name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(is_name && !check.name.is_empty(), "{}", check.name);
            for text in [check.title, check.meaning, check.remedy] {
                assert!(text.len() > 10 && !text.ends_with('.'), "{}: {text}", check.name);
            }
        }
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len(), "names are unique");
    }

    #[test]
    fn the_most_severe_comes_first() {
        let mut run = testdata::run(&["a", "b"], 12);
        testdata::limit(&mut run, 0, 0.97, 0.4);
        run.contenders[1].body_sha256 = "ff".repeat(32);
        let severities: Vec<Severity> =
            examine(&Evidence::of(&run)).iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Void, Severity::Bound]);
    }
}
