//! JUnit XML, as Jenkins and GitLab read it: each verdict, goal and finding is a test case. A verdict that was reached
//! passes, one that is open or withheld is skipped with its words, for it is no answer; a confirmed finding that
//! withholds verdicts and a missed goal fail; failed visits and an incomplete run are errors. Start reading at
//! [`OUTPUT`].

use std::fmt::Write as _;

use record::{Finding, LoadRecord, PairVerdict, RunRecord, Severity, Verdict};

use crate::cells::cells;
use crate::headline::incomplete;
use crate::integrity::changed;
use crate::json_load::goals;
use crate::measured::{cell_name, whose};
use crate::standing::Standing;
use crate::svg;
use crate::wording::{Reading, name_of, plain, verdict};
use crate::{Options, Output, Render, Written};

/// TEST-joust.xml.
pub(crate) static OUTPUT: Output = Output {
    name: "junit",
    extension: "junit.xml",
    about: "verdicts, goals and findings as test cases, for Jenkins or GitLab",
    written: Written::OnRequest,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(render_load)),
};

/// Test cases of one kind.
struct Suite {
    name: &'static str,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    end: End,
    /// What is shown beside the result.
    said: String,
}

/// The result of a case, with its message.
enum End {
    Passed,
    Skipped(String),
    Failed(String),
    /// Not what was tested, but the test itself.
    Error(String),
}

fn render(record: &RunRecord, _: &Options) -> String {
    let name = format!("joust run {}", plain(&record.plan.name));
    let finding = |finding: &Finding| {
        let cell = finding.cell.map_or_else(String::new, |cell| cell_name(record, cell));
        let who = finding.contenders.iter().map(|&one| name_of(&record.plan.contenders, one));
        case_of_finding(finding, &whose(&cell, &who.collect::<Vec<_>>().join(", ")))
    };
    let suites = [
        Suite { name: "run", cases: run_itself(record) },
        Suite { name: "visits", cases: visits(record) },
        Suite {
            name: "verdicts",
            cases: record.verdicts.iter().map(|one| pair(record, one)).collect(),
        },
        Suite { name: "findings", cases: record.findings.iter().map(finding).collect() },
    ];
    xml(&name, record.seconds, &suites)
}

fn render_load(record: &LoadRecord, _: &Options) -> String {
    let goal = |goal: crate::json_load::GoalFacts| Case {
        end: match goal.met {
            Some(true) => End::Passed,
            Some(false) => End::Failed(goal.text.clone()),
            None => End::Skipped(goal.text.clone()),
        },
        name: goal.goal,
        said: goal.text,
    };
    let interrupted = "the load was interrupted: its figures cover the part that was made";
    let itself = Case {
        name: "the load is complete".to_owned(),
        end: if record.interrupted { End::Error(interrupted.to_owned()) } else { End::Passed },
        said: String::new(),
    };
    let suites = [
        Suite { name: "load", cases: vec![itself] },
        Suite { name: "goals", cases: goals(record).into_iter().map(goal).collect() },
        Suite {
            name: "findings",
            cases: record.findings.iter().map(|one| case_of_finding(one, "")).collect(),
        },
    ];
    xml(&format!("joust load {}", plain(&record.plan.url)), record.seconds, &suites)
}

/// Whether the run is whole, and its file as it was written.
fn run_itself(record: &RunRecord) -> Vec<Case> {
    let ended = Case {
        name: "the run is complete".to_owned(),
        end: incomplete(record).map_or(End::Passed, End::Error),
        said: String::new(),
    };
    let unchanged = Case {
        name: "the run file is unchanged".to_owned(),
        end: match (record.integrity, changed(record)) {
            (record::Integrity::Unknown, _) => End::Skipped("it has no digest".to_owned()),
            (_, Some(text)) => End::Error(text.to_owned()),
            (_, None) => End::Passed,
        },
        said: String::new(),
    };
    vec![ended, unchanged]
}

/// One case for each contender of each cell.
fn visits(record: &RunRecord) -> Vec<Case> {
    let case = |cell: &str, one: &Standing| {
        let (measured, begun) = (one.visits_measured, one.visits_begun);
        let end = if begun == 0 {
            End::Skipped("no visit was made".to_owned())
        } else if measured < begun {
            End::Error(format!("{} of {begun} visits failed", begun - measured))
        } else {
            End::Passed
        };
        let said = format!("{measured} of {begun} visits measured");
        Case { name: whose(cell, &one.name), end, said }
    };
    let views = cells(record);
    views.iter().flat_map(|view| view.standings.iter().map(|one| case(&view.name, one))).collect()
}

fn pair(record: &RunRecord, pair: &PairVerdict) -> Case {
    let reading = Reading::new(pair);
    let cell = cell_name(record, pair.cell);
    let [this, that] =
        [reading.this, reading.that].map(|index| name_of(&record.plan.contenders, index));
    let words = verdict(&reading.verdict);
    let said = match reading.measured() {
        Some(measured) => format!("{words}; measured: {measured}"),
        None => words.clone(),
    };
    let end = match reading.verdict {
        Verdict::Undecided { .. } | Verdict::Withheld { .. } => End::Skipped(words),
        _ => End::Passed,
    };
    let title = pair.metric.info().title;
    Case { name: format!("{title}: {}", whose(&cell, &format!("{this} over {that}"))), end, said }
}

fn case_of_finding(finding: &Finding, whom: &str) -> Case {
    let [check, seen] = [&finding.check, finding.seen()].map(plain);
    let name = if whom.is_empty() { check } else { format!("{check}: {whom}") };
    let said = format!("{seen}\n{}\nRemedy: {}\n", plain(&finding.meaning), plain(&finding.remedy));
    let end = if finding.acts(Severity::Void) { End::Failed(seen) } else { End::Passed };
    Case { name, end, said }
}

fn xml(name: &str, seconds: f64, suites: &[Suite]) -> String {
    let mut page = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: Vec<&Case> = suites.iter().flat_map(|suite| &suite.cases).collect();
    let time = if seconds.is_finite() { format!(" time=\"{seconds:.3}\"") } else { String::new() };
    let name = escaped(name);
    let (tests, failures, errors, _) = counts(&all);
    let _ = writeln!(
        page,
        "<testsuites name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"{time}>"
    );
    for suite in suites {
        let cases: Vec<&Case> = suite.cases.iter().collect();
        let (tests, failures, errors, skipped) = counts(&cases);
        let _ = writeln!(
            page,
            "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
             skipped=\"{skipped}\">",
            suite.name
        );
        cases.iter().for_each(|case| put(&mut page, case, &format!("joust.{}", suite.name)));
        page.push_str("  </testsuite>\n");
    }
    page + "</testsuites>\n"
}

/// All, failures, errors, skipped.
fn counts(cases: &[&Case]) -> (usize, usize, usize, usize) {
    let count = |is: fn(&End) -> bool| cases.iter().filter(|case| is(&case.end)).count();
    (
        cases.len(),
        count(|end| matches!(end, End::Failed(_))),
        count(|end| matches!(end, End::Error(_))),
        count(|end| matches!(end, End::Skipped(_))),
    )
}

/// Some readers of XML know its named characters only.
fn escaped(text: &str) -> String {
    svg::escaped(text).replace("&#39;", "&apos;")
}

fn put(page: &mut String, case: &Case, class: &str) {
    let name = escaped(&case.name);
    let _ = writeln!(page, "    <testcase name=\"{name}\" classname=\"{class}\">");
    let ended = match &case.end {
        End::Passed => None,
        End::Skipped(why) => Some(("skipped", "no_answer", why)),
        End::Failed(why) => Some(("failure", "finding_or_goal", why)),
        End::Error(why) => Some(("error", "not_measured", why)),
    };
    if let Some((element, kind, why)) = ended {
        let why = escaped(why);
        let _ = writeln!(page, "      <{element} message=\"{why}\" type=\"{kind}\"/>");
    }
    if !case.said.is_empty() {
        let lines: Vec<String> = case.said.trim_end().lines().map(escaped).collect();
        let _ = writeln!(page, "      <system-out>{}</system-out>", lines.join("\n"));
    }
    page.push_str("    </testcase>\n");
}
