//! Owns the checks for artifacts that mislead people who benchmark web servers: one file for each. Must not
//! know /proc, sockets or processes: facts arrive as text in the record, and a check parses them.
//! Start reading at [`examine`], then at any file of `checks`.
//!
//! | severity | what a confirmed finding does |
//! |---|---|
//! | void | the verdict of each pair that it touches is withheld |
//! | bound | the throughput of those it touches is a bound |
//! | note | nothing; the reader should know |
//!
//! ```
//! // Every check says what it looks for.
//! assert!(joust_doctor::CHECKS.iter().all(|check| !check.title.is_empty()));
//! ```

mod attribution;
mod busy;
mod ceiling;
mod checks;
pub mod counters;
mod cpus;
mod deviations;
pub mod disturbance;
mod evidence;
mod first_part;
pub mod machine;
pub mod manual;
mod modes;
pub mod parity;
pub mod printed;
mod single;
mod timeline;
mod timers;
mod transport;
mod waiting;
mod window;
mod words;

#[cfg(test)]
#[path = "../../stats/tests/noise/mod.rs"]
mod noise;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod testdata;

pub use attribution::attribute;
pub use checks::{CHECKS, Check, ON_THE_GENERATOR, RATE_NOT_REACHED, SILENT_AT_END, spares};
pub use evidence::Evidence;
pub use single::examine_load;

use checks::OVER_CELLS;
use counters::CounterSource;
use record::{Certainty, Finding, RunRecord};
use units::Share;

/// The findings of every check in a run, cell by cell; the most severe first. A finding with the same
/// contenders and words in every cell becomes one finding of all cells.
pub fn examine(run: &RunRecord) -> Vec<Finding> {
    let cells = run.plan.cells.len();
    if cells == 1 {
        return examine_cell(&Evidence::of(run));
    }
    let mut findings: Vec<Finding> = Vec::new();
    for cell in 0..cells {
        let whole: Vec<usize> = run.plan.in_cell(cell).collect();
        let part = run.at(cell);
        for mut finding in examine_cell(&Evidence::of(&part)) {
            assert!(
                finding.contenders.iter().all(|&index| index < whole.len()),
                "{} names a contender of its cell",
                finding.check
            );
            finding.cell = Some(cell);
            finding.contenders.iter_mut().for_each(|index| *index = whole[*index]);
            findings.push(finding);
        }
    }
    join_cells(&mut findings, cells);
    findings.extend(OVER_CELLS.iter().flat_map(|check| check.findings(&Evidence::of(run))));
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.certainty)));
    findings
}

/// Joins findings that differ only in their cell and occur in every cell.
fn join_cells(findings: &mut Vec<Finding>, cells: usize) {
    let anywhere = |finding: &Finding| Finding { cell: None, ..finding.clone() };
    let mut joined: Vec<Finding> = Vec::new();
    for finding in findings.iter() {
        let whole = anywhere(finding);
        let everywhere = findings.iter().filter(|other| anywhere(other) == whole).count() == cells;
        match everywhere {
            true if joined.contains(&whole) => {}
            true => joined.push(whole),
            false => joined.push(finding.clone()),
        }
    }
    *findings = joined;
}

/// The findings of every check in a run of one cell, in the order of [`CHECKS`]; the most severe first.
fn examine_cell(evidence: &Evidence) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        CHECKS.iter().flat_map(|check| check.findings(evidence)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.certainty)));
    findings
}

/// What every measurement records, whatever the checks need: what tells a calm machine from a disturbed one.
const ALWAYS: &[&CounterSource] = &[&counters::STAT, &counters::QUOTA];

/// Counters that are read before, during and after each load: all that checks need, each once.
pub fn needs() -> Vec<&'static CounterSource> {
    let mut needed: Vec<&CounterSource> = Vec::new();
    let all = ALWAYS.iter().chain(CHECKS.iter().chain(OVER_CELLS).flat_map(|check| check.needs));
    for &source in all {
        if !needed.iter().any(|known| std::ptr::eq(*known, source)) {
            needed.push(source);
        }
    }
    needed
}

/// What a check saw; its name, severity and advice are the check's.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Observation {
    /// How sure it is.
    pub certainty: Certainty,
    /// How much of what was measured it touches, 0 to 1, where that is a number: of the requests, the time or
    /// the rate, as `evidence` says.
    pub share: Option<f64>,
    /// Index of each contender it touches; empty: all of them.
    pub contenders: Vec<usize>,
    /// One sentence with its figures.
    pub evidence: String,
}

/// Checks whose findings are about contenders beside each other, and about none of them beside another.
const ABOUT_PAIRS: &[&str] = &["common_ceiling"];

impl Check {
    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        (self.look)(evidence).into_iter().map(|seen| self.finding(seen)).collect()
    }

    /// Whether it is sure enough to count among these findings.
    pub fn is_confirmed_in(&self, findings: &[Finding]) -> bool {
        let is_it = |one: &&Finding| one.check == self.name;
        findings.iter().filter(is_it).any(|one| one.certainty == Certainty::Confirmed)
    }

    fn finding(&self, seen: Observation) -> Finding {
        assert!(!seen.evidence.is_empty(), "{} says what it saw", self.name);
        assert!(
            !self.spares_like_pairs || !seen.contenders.is_empty(),
            "{} names who is alike: a finding on all would touch no pair",
            self.name
        );
        Finding {
            check: self.name.to_owned(),
            severity: self.severity,
            certainty: seen.certainty,
            question: Some(self.question),
            share: seen.share.map(Share),
            cell: None,
            contenders: seen.contenders,
            alike: self.spares_like_pairs,
            among: ABOUT_PAIRS.contains(&self.name),
            evidence: seen.evidence,
            meaning: self.meaning.to_owned(),
            remedy: self.remedy.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use record::Severity;

    use super::*;

    #[test]
    fn a_clean_run_has_no_finding() {
        let run = testdata::run(&["a", "b"], 12);
        assert_eq!(examine(&run), Vec::new());
    }

    #[test]
    fn an_empty_run_has_no_finding() {
        let run = testdata::run(&["a", "b"], 0);
        assert_eq!(examine(&run), Vec::new());
    }

    #[test]
    fn a_finding_names_its_cell_and_the_contenders_of_the_whole_run() {
        let mut run = testdata::run(&["a", "b", "c"], 12);
        let cell = |name: &str| record::Cell { name: name.into(), ..run.plan.cells[0].clone() };
        run.plan.cells = vec![cell("one"), cell("two")];
        // The first cell is without a: what is b there is the second of the whole run.
        run.plan.contenders[0].cells = vec![1];
        let mut second = run.visits.clone();
        second.iter_mut().for_each(|visit| visit.cell = 1);
        run.visits.retain(|visit| visit.contender != 0);
        run.visits.extend(second);
        assert_eq!(examine(&run), Vec::new());
        let mut in_first = run.clone();
        for visit in
            in_first.visits.iter_mut().filter(|visit| visit.cell == 0 && visit.contender == 2)
        {
            let last = visit.load.as_mut().unwrap().intervals.last_mut().unwrap();
            last.errors.unexpected_status = last.ok;
        }
        let found = examine(&in_first);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].cell, found[0].contenders.as_slice()), (Some(0), &[2][..]));
        // Of all contenders in both cells, another body is seen in both in the same words.
        run.plan.reference = Some(0);
        run.plan.contenders[0].cells.clear();
        run.contenders[1].body_sha256 = "ff".repeat(32);
        let found = examine(&run);
        assert_eq!(
            found.iter().map(|one| one.cell).collect::<Vec<_>>(),
            [None],
            "seen in both alike"
        );
    }

    #[test]
    fn every_check_says_what_it_means_and_what_to_do() {
        for check in CHECKS {
            let is_name = check.name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(is_name && !check.name.is_empty(), "{}", check.name);
            for text in [check.title, check.meaning, check.detection, check.remedy, check.example] {
                assert!(text.len() > 10 && !text.ends_with('.'), "{}: {text}", check.name);
            }
        }
        let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), CHECKS.len(), "names are unique");
        assert!(ON_THE_GENERATOR.iter().all(|name| names.contains(name)));
        assert!(ABOUT_PAIRS.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn the_most_severe_comes_first() {
        let mut run = testdata::run(&["a", "b"], 12);
        testdata::limit(&mut run, 0, 0.97, 0.4);
        run.plan.reference = Some(0);
        run.contenders[1].body_sha256 = "ff".repeat(32);
        let severities: Vec<Severity> =
            examine(&run).iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Void, Severity::Bound]);
    }
}
