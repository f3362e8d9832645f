//! Owns how findings are grouped: what several cells have in common is said once, below the question about a
//! benchmark that it answers. The most misleading findings come first, and nothing is left out. Must not know layout.
//! Start reading at [`sections`].

use record::{Certainty, Finding, LoadRecord, Question, RunRecord, Severity};

use crate::figures::listed;
use crate::line::{Line, Tone};
use crate::wording::{name_of, plain};
use crate::{Detail, cell_names};

/// Findings that answer one question.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Section {
    /// The question as it is asked; "Other" for findings of older files.
    pub(crate) question: &'static str,
    pub(crate) groups: Vec<Group>,
}

/// Findings of one check with the same weight and meaning.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Group {
    #[serde(skip)]
    question: Option<Question>,
    pub(crate) check: String,
    /// The command that says more of the check.
    pub(crate) explain: String,
    /// For its colour: "void", "bound" or "note-finding".
    pub(crate) class: &'static str,
    /// "withholds verdicts".
    pub(crate) weight: &'static str,
    pub(crate) entries: Vec<Entry>,
    pub(crate) meaning: String,
    pub(crate) remedy: String,
}

/// The same contenders, with all cells in which the check found something about them.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Entry {
    /// Contenders and cells ("nginx at connections=10|100").
    pub(crate) whom: String,
    pub(crate) seen: Vec<CellEvidence>,
}

/// What was seen in one cell.
#[derive(Debug, serde::Serialize)]
pub(crate) struct CellEvidence {
    /// Empty if the run has one cell, or if it concerns all cells.
    pub(crate) cell: String,
    pub(crate) evidence: String,
    /// The same without the contender's name at the beginning.
    pub(crate) bare: String,
}

impl Group {
    /// "; nginx at connections=10", to follow the weight if there is nothing more to say.
    pub(crate) fn whom(&self) -> String {
        match self.entries.as_slice() {
            [only] if !only.whom.is_empty() => format!("; {}", only.whom),
            _ => String::new(),
        }
    }
}

impl Entry {
    /// What was seen: in the short form, the first cell and the number of further ones; otherwise every cell.
    /// `is_only`: whether the group has no other entry, so that its heading names the contenders.
    pub(crate) fn lines(&self, is_only: bool, detail: Detail) -> Vec<String> {
        let shown = if detail == Detail::Short { 1 } else { self.seen.len() };
        let more = match self.seen.len() - shown {
            0 => String::new(),
            1 => " (and in 1 more cell: `joust doctor` shows it)".to_owned(),
            n => format!(" (and in {n} more cells: `joust doctor` shows each)"),
        };
        let line = |(at, CellEvidence { cell, evidence, bare }): (usize, &CellEvidence)| {
            let place = if self.seen.len() > 1 { format!(" at {cell}") } else { String::new() };
            let evidence = format!("{evidence}{more}");
            let bare = format!("{bare}{more}");
            match (is_only, at) {
                (true, _) => format!("Evidence{place}: {evidence}"),
                _ if self.whom.is_empty() => format!("Evidence: {evidence}"),
                (false, 0) if place.is_empty() => format!("{}: {bare}", self.whom),
                (false, 0) => format!("{}; seen{place}: {bare}", self.whom),
                (false, _) => format!("seen{place}: {bare}"),
            }
        };
        self.seen.iter().take(shown).enumerate().map(line).collect()
    }
}

/// Every finding of a run, grouped by its question.
pub(crate) fn sections(record: &RunRecord) -> Vec<Section> {
    by_question(grouped(record))
}

/// Every finding of a load, grouped by its question. All of them concern its one server.
pub(crate) fn sections_of_load(record: &LoadRecord) -> Vec<Section> {
    let groups = Finding::grouped(&record.findings);
    by_question(groups.iter().map(|findings| group(None, findings)).collect())
}

/// The question of the most misleading group comes first. Findings of older files have none and come last.
fn by_question(groups: Vec<Group>) -> Vec<Section> {
    let mut order: Vec<Option<Question>> = Vec::new();
    for group in &groups {
        if !order.contains(&group.question) {
            order.push(group.question);
        }
    }
    order.sort_by_key(Option::is_none);
    let mut sections: Vec<Section> = order
        .iter()
        .map(|question| Section {
            question: question.map_or("Other", Question::text),
            groups: Vec::new(),
        })
        .collect();
    for group in groups {
        let at = order.iter().position(|question| *question == group.question);
        sections[at.expect("each question is in the order")].groups.push(group);
    }
    sections
}

/// Every finding of a run, in groups.
pub(crate) fn grouped(record: &RunRecord) -> Vec<Group> {
    let groups = Finding::grouped(&record.findings);
    groups.iter().map(|findings| group(Some(record), findings)).collect()
}

/// `record`: the run's record; `None` for a load, which has one server and no cells.
fn group(record: Option<&RunRecord>, findings: &[&Finding]) -> Group {
    let first = findings[0];
    let mut entries: Vec<Vec<&Finding>> = Vec::new();
    for &finding in findings {
        let whom = |one: &Finding| (one.contenders.clone(), one.cell.is_none());
        // Two findings in one cell are different things; the short form may only leave out the same thing in other
        // cells.
        let is_of = |known: &&mut Vec<&Finding>| {
            whom(known[0]) == whom(finding) && known.iter().all(|one| one.cell != finding.cell)
        };
        match entries.iter_mut().find(is_of) {
            Some(known) => known.push(finding),
            None => entries.push(vec![finding]),
        }
    }
    Group {
        question: first.question,
        check: plain(&first.check),
        explain: format!("joust doctor --explain {}", plain(&first.check)),
        class: match (first.severity, first.certainty) {
            (Severity::Void, Certainty::Confirmed) => "void",
            (Severity::Bound, Certainty::Confirmed) => "bound",
            _ => "note-finding",
        },
        weight: weight(first.severity, first.certainty),
        entries: entries.iter().map(|findings| entry(record, findings)).collect(),
        meaning: plain(&first.meaning),
        remedy: plain(&first.remedy),
    }
}

fn entry(record: Option<&RunRecord>, findings: &[&Finding]) -> Entry {
    let Some(record) = record else {
        let seen = |finding: &&Finding| {
            let evidence = plain(&finding.evidence);
            CellEvidence { cell: String::new(), bare: evidence.clone(), evidence }
        };
        return Entry { whom: String::new(), seen: findings.iter().map(seen).collect() };
    };
    let has_cells = record.plan.cells.len() > 1;
    let mut cells: Vec<usize> = findings.iter().filter_map(|finding| finding.cell).collect();
    cells.sort_unstable();
    cells.dedup();
    let at = match cells.as_slice() {
        [] => String::new(),
        _ if !has_cells => String::new(),
        cells => format!(" at {}", cell_names::named(&record.plan, cells)),
    };
    let whom = contenders(record, findings[0]);
    let seen = |finding: &&Finding| {
        let cell = finding.cell.filter(|_| has_cells).and_then(|cell| record.plan.cells.get(cell));
        let cell = cell.map_or_else(String::new, |cell| plain(&cell.name));
        let evidence = plain(&finding.evidence);
        let rest = evidence.strip_prefix(&whom).and_then(|rest| rest.strip_prefix(": "));
        CellEvidence { cell, bare: rest.unwrap_or(&evidence).to_owned(), evidence }
    };
    let seen = findings.iter().map(seen).collect();
    Entry { whom: format!("{whom}{at}"), seen }
}

/// Names of the contenders that a finding touches.
fn contenders(record: &RunRecord, finding: &Finding) -> String {
    let all = &record.plan.contenders;
    if finding.contenders.is_empty() || finding.contenders.len() == all.len() {
        return "all contenders".to_owned();
    }
    let names: Vec<String> = finding.contenders.iter().map(|&index| name_of(all, index)).collect();
    listed(&names)
}

/// A word for how much a finding weighs, for a reader who does not know the severities.
pub(crate) fn weight(severity: Severity, certainty: Certainty) -> &'static str {
    match (severity, certainty) {
        (Severity::Void, Certainty::Confirmed) => "withholds verdicts",
        (Severity::Bound, Certainty::Confirmed) => "makes throughput a bound",
        (Severity::Note, Certainty::Confirmed) => "note",
        (_, Certainty::Suspected) => "suspected",
    }
}

/// How the doctor limits the answers of a run of several cells, before any of them: which checks withhold verdicts or
/// make bounds, and in how many cells. `None` if no check does.
pub(crate) fn verdict_of_the_doctor(record: &RunRecord) -> Option<Line> {
    let all = record.plan.cells.len();
    let acting = |severity: Severity, (one, several): (&str, &str)| {
        let of = || record.findings.iter().filter(move |finding| finding.acts(severity));
        let mut checks: Vec<String> = of().map(|finding| plain(&finding.check)).collect();
        checks.sort();
        checks.dedup();
        let touched =
            |cell: &usize| of().any(|finding| finding.cell.is_none_or(|seen| seen == *cell));
        let cells = (0..all).filter(touched).count();
        let does = if checks.len() == 1 { one } else { several };
        (cells > 0).then(|| format!("{} {does} in {cells} of {all} cells", listed(&checks)))
    };
    let parts = [
        acting(Severity::Void, ("withholds verdicts", "withhold verdicts")),
        acting(Severity::Bound, ("makes throughput a bound", "make throughput a bound")),
    ];
    let tone = if parts[0].is_some() { Tone::Alarm } else { Tone::Caution };
    let said: Vec<String> = parts.into_iter().flatten().collect();
    let text = format!("The doctor: {}", said.join("; "));
    (!said.is_empty()).then_some(Line { tone, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn finding(check: &str, cell: Option<usize>, contender: usize, evidence: &str) -> Finding {
        Finding {
            check: check.to_owned(),
            severity: Severity::Void,
            certainty: Certainty::Confirmed,
            cell,
            contenders: vec![contender],
            alike: false,
            among: false,
            evidence: evidence.to_owned(),
            meaning: "it misleads".to_owned(),
            remedy: "mend it".to_owned(),
            ..Finding::default()
        }
    }

    #[test]
    fn one_entry_a_check_and_contender_names_its_cells() {
        let mut run = testdata::celled();
        run.findings = vec![
            Finding { severity: Severity::Note, ..finding("small", Some(0), 0, "few") },
            finding("lost", Some(0), 0, "five"),
            finding("lost", Some(0), 1, "six"),
            finding("lost", Some(1), 0, "seven"),
            finding("lost", None, 1, "eight"),
        ];
        let groups = grouped(&run);
        let checks: Vec<&str> = groups.iter().map(|group| group.check.as_str()).collect();
        assert_eq!(checks, ["lost", "small"], "the strongest first");
        let whom: Vec<&str> = groups[0].entries.iter().map(|one| one.whom.as_str()).collect();
        assert_eq!(
            whom,
            [
                "joust reactor at connections=1|10",
                "joust prefork at connections=1",
                "joust prefork"
            ]
        );
        let seen: Vec<&str> =
            groups[0].entries[0].seen.iter().map(|seen| seen.evidence.as_str()).collect();
        assert_eq!(seen, ["five", "seven"]);
        let said = verdict_of_the_doctor(&run).unwrap().text;
        assert_eq!(said, "The doctor: lost withholds verdicts in 3 of 3 cells");
    }

    #[test]
    fn two_things_that_were_seen_of_the_same_contender_are_both_told() {
        let mut run = testdata::celled();
        run.findings = vec![
            finding("differs", None, 0, "backlog"),
            finding("differs", None, 0, "sendfile"),
            finding("lost", Some(0), 1, "five"),
            finding("lost", Some(0), 1, "six"),
            finding("lost", Some(1), 1, "seven"),
        ];
        let entries: Vec<Vec<String>> = grouped(&run)
            .iter()
            .flat_map(|group| group.entries.iter().map(|one| one.lines(false, Detail::Short)))
            .collect();
        let one_more = "five (and in 1 more cell: `joust doctor` shows it)";
        for told in ["backlog", "sendfile", one_more, "six"] {
            assert!(entries.iter().any(|lines| lines[0].ends_with(told)), "{told}: {entries:?}");
        }
    }

    #[test]
    fn findings_stand_below_questions_and_what_misleads_most_comes_first() {
        let mut run = testdata::run_with(2);
        let of = |check: &str, question, share: Option<f64>, severity| Finding {
            question,
            share: share.map(units::Share),
            severity,
            ..finding(check, None, 0, "seen")
        };
        let (matters, errors) = (Some(Question::DoesItMatter), Some(Question::DidItError));
        run.findings = vec![
            of("old", None, None, Severity::Void),
            of("double", Some(Question::WhyNotDouble), Some(0.9), Severity::Bound),
            of("no_share", matters, None, Severity::Void),
            of("small", errors, Some(0.1), Severity::Void),
            of("large", matters, Some(0.5), Severity::Void),
        ];
        let sections = sections(&run);
        let told: Vec<(&str, Vec<&str>)> = sections
            .iter()
            .map(|one| {
                (one.question, one.groups.iter().map(|group| group.check.as_str()).collect())
            })
            .collect();
        let expected = [
            ("Does it matter?", vec!["large", "no_share"]),
            ("Did it error?", vec!["small"]),
            ("Why not double?", vec!["double"]),
            ("Other", vec!["old"]),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn findings_of_a_load_name_nobody() {
        let mut load = testdata::load();
        let seen = |evidence: &str| Finding {
            contenders: Vec::new(),
            ..finding("lost", None, 0, evidence)
        };
        load.findings = vec![seen("the server: five"), seen("the server: six")];
        let sections = sections_of_load(&load);
        let group = &sections[0].groups[0];
        assert_eq!(group.whom(), "");
        let lines: Vec<String> =
            group.entries.iter().flat_map(|entry| entry.lines(false, Detail::Full)).collect();
        assert_eq!(lines, ["Evidence: the server: five", "Evidence: the server: six"]);
    }

    #[test]
    fn a_suspicion_comes_after_what_acts_and_before_notes() {
        let mut run = testdata::run_with(2);
        let certainty = Certainty::Suspected;
        run.findings = vec![
            Finding { severity: Severity::Note, ..finding("note", None, 0, "") },
            Finding { certainty, ..finding("suspicion", None, 0, "") },
            Finding { severity: Severity::Bound, ..finding("bound", None, 0, "") },
            finding("void", None, 0, ""),
        ];
        let checks: Vec<String> = grouped(&run).into_iter().map(|group| group.check).collect();
        assert_eq!(checks, ["void", "bound", "suspicion", "note"]);
    }

    #[test]
    fn other_words_are_another_group() {
        let mut run = testdata::run_with(2);
        let remedy = "mend it otherwise".to_owned();
        run.findings = vec![
            finding("lost", None, 0, "a"),
            Finding { remedy, ..finding("lost", None, 1, "b") },
        ];
        assert_eq!(grouped(&run).len(), 2);
        assert!(verdict_of_the_doctor(&testdata::all_failed()).is_none());
    }
}
