//! `joust doctor` on the output of other tools: reads files or stdin, and prints as text or JSON what was read, what
//! was found and what can still be concluded. Start reading at [`examine`].

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use doctor::printed::{
    self, Conclusion, Origin, Part, Printed, PrintedFinding, Source, Standing, Survival,
};
use miette::miette;
use record::{Certainty, Question, Severity};
use serde_json::json;

use crate::trouble::Trouble;

/// The name of pasted input.
const STDIN: &str = "standard input";

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
}

/// Reads the sources, examines them and returns the findings. Without files, or for "-", it reads standard input.
pub fn examine(files: &[PathBuf], form: Form) -> Result<String, Trouble> {
    let sources: Vec<Source> = match files {
        [] => vec![pasted()?],
        files => files.iter().map(|file| source(file)).collect::<Result<_, _>>()?,
    };
    let printed = printed::read(sources).map_err(|error| {
        Trouble::usage(miette!(help = error.help, "{}: {}", error.source, error.reason))
    })?;
    let findings = printed::examine(&printed);
    let survivals = printed::survivals(&printed, &findings);
    Ok(match form {
        Form::Text => text(&printed, &findings, &survivals),
        Form::Json => as_json(&printed, &findings, &survivals),
    })
}

/// Whether joust wrote the file, which is then examined as a record.
pub fn is_ours(file: &Path) -> bool {
    // The format is at the beginning of each.
    let begins = |text: &str| {
        let head: String = text.chars().take(200).filter(|c| !c.is_whitespace()).collect();
        head.starts_with("{\"format\":\"joust-")
    };
    file.is_dir() || std::fs::read_to_string(file).is_ok_and(|text| begins(&text))
}

fn source(file: &Path) -> Result<Source, Trouble> {
    if file.as_os_str() == "-" {
        return pasted();
    }
    let bytes = std::fs::read(file).map_err(|error| {
        Trouble::usage(miette!(
            help =
                "name a run of joust, or files with what load tools printed; - is standard input",
            "cannot read {}: {error}",
            file.display()
        ))
    })?;
    Ok(Source {
        name: file.display().to_string(),
        text: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

fn pasted() -> Result<Source, Trouble> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| Trouble::failed(miette!("cannot read standard input: {error}")))?;
    Ok(Source { name: STDIN.to_owned(), text: String::from_utf8_lossy(&bytes).into_owned() })
}

const IN_MEMORY: &str = "writing to memory does not fail";

fn text(printed: &Printed, findings: &[PrintedFinding], survivals: &[Survival]) -> String {
    let mut text = String::new();
    for (index, source) in printed.sources.iter().enumerate() {
        writeln!(text, "{}: {}", source.name, contents(printed, index)).expect(IN_MEMORY);
    }
    let groups = grouped(findings);
    let found = match groups.len() {
        0 => "nothing found".to_owned(),
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    };
    writeln!(text, "{} checks: {found}", printed::CHECKS.len()).expect(IN_MEMORY);
    for question in Question::ALL {
        let of: Vec<&Vec<&PrintedFinding>> =
            groups.iter().filter(|group| group[0].check.question == question).collect();
        if !of.is_empty() {
            writeln!(text, "\n{}", question.text()).expect(IN_MEMORY);
        }
        of.iter().for_each(|group| describe(&mut text, group));
    }
    writeln!(text, "\nWhat can be concluded").expect(IN_MEMORY);
    for survival in survivals {
        let name = name(survival.conclusion);
        writeln!(text, "  {name}: {}", parts(survival)).expect(IN_MEMORY);
    }
    let asks = printed::asks(survivals);
    if !asks.is_empty() {
        writeln!(text, "  To conclude more, ask for: {}", asks.join("; ")).expect(IN_MEMORY);
    }
    text
}

/// "ab 2.3: 2 reports", "a table of 12 rows".
fn contents(printed: &Printed, source: usize) -> String {
    let rows: Vec<_> = printed.rows.iter().filter(|row| row.source == source).collect();
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for row in &rows {
        let kind = match row.origin {
            Origin::Report(tool) => {
                let version = row.report.as_ref().and_then(|report| report.version.as_deref());
                version.map_or(tool.to_owned(), |version| format!("{tool} {version}"))
            }
            Origin::Table => "table".to_owned(),
            Origin::League => "HttpArena board".to_owned(),
        };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let noun = match rows.first().map(|row| row.origin) {
        Some(Origin::Report(_)) => "report",
        _ => "row",
    };
    let told = kinds.iter().map(|(kind, count)| match count {
        1 => format!("{kind}, 1 {noun}"),
        n => format!("{kind}, {n} {noun}s"),
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Groups findings with the same check and certainty.
fn grouped(findings: &[PrintedFinding]) -> Vec<Vec<&PrintedFinding>> {
    let mut groups: Vec<Vec<&PrintedFinding>> = Vec::new();
    for finding in findings {
        let is_alike = |group: &&mut Vec<&PrintedFinding>| {
            group[0].check.name == finding.check.name
                && group[0].seen.certainty == finding.seen.certainty
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// Most findings of one check that are listed individually.
const SHOWN_MAX: usize = 8;

fn describe(text: &mut String, group: &[&PrintedFinding]) {
    let check = group[0].check;
    let does = match check.severity {
        Severity::Note => "note",
        Severity::Bound => "makes figures a bound",
        Severity::Void => "voids conclusions",
    };
    writeln!(text, "\n  {} ({}, {does})", check.name, certainty(group[0].seen.certainty))
        .expect(IN_MEMORY);
    writeln!(text, "    {}", check.title).expect(IN_MEMORY);
    for finding in &group[..group.len().min(SHOWN_MAX)] {
        writeln!(text, "    Evidence: {}", finding.seen.evidence).expect(IN_MEMORY);
    }
    if group.len() > SHOWN_MAX {
        let more = group.len() - SHOWN_MAX;
        writeln!(text, "    and {more} more of this kind (--json has all)").expect(IN_MEMORY);
    }
    writeln!(text, "    Why it misleads: {}", check.meaning).expect(IN_MEMORY);
    writeln!(text, "    Remedy: {}", check.remedy).expect(IN_MEMORY);
    writeln!(text, "    More: joust doctor --explain {}", check.name).expect(IN_MEMORY);
}

fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Suspected => "suspected",
        Certainty::Confirmed => "confirmed",
    }
}

fn name(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Rate => "Rate",
        Conclusion::Latency => "Latency",
        Conclusion::Ranking => "Ranking",
    }
}

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Stands => "believable, as far as these figures can tell",
        Standing::AtLeast => "a lower bound: at least what is printed",
        Standing::AtMost => "an upper bound: at most what is printed",
        Standing::InDoubt => "in doubt",
        Standing::Fails => "not believable",
    }
}

/// "believable ..." for all rows, or for how many.
fn parts(survival: &Survival) -> String {
    let part = |part: &Part| {
        let of_all = part.rows == survival.rows;
        let rows = if of_all {
            String::new()
        } else {
            format!("{} of {} rows ", part.rows, survival.rows)
        };
        let because = match part.because.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        format!("{rows}{}{because}", standing(part.standing))
    };
    survival.parts.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// Names in JSON are those of the text, in lower case.
fn as_json(printed: &Printed, findings: &[PrintedFinding], survivals: &[Survival]) -> String {
    let row_name = |row: &usize| printed.rows[*row].name.as_str();
    let sources: Vec<_> = printed
        .sources
        .iter()
        .enumerate()
        .map(|(index, source)| {
            json!({ "name": source.name, "holds": contents(printed, index),
                    "rows": printed.rows.iter().filter(|row| row.source == index).count() })
        })
        .collect();
    let findings: Vec<_> = findings
        .iter()
        .map(|PrintedFinding { check, seen }| {
            json!({
                "check": check.name, "severity": check.severity, "certainty": seen.certainty,
                "question": check.question, "title": check.title, "share": seen.share,
                "rows": seen.rows.iter().map(row_name).collect::<Vec<_>>(),
                "evidence": seen.evidence, "meaning": check.meaning, "remedy": check.remedy,
            })
        })
        .collect();
    let conclusions: Vec<_> = survivals
        .iter()
        .map(|survival| {
            let parts: Vec<_> = survival
                .parts
                .iter()
                .map(|part| {
                    json!({ "standing": standing_word(part.standing), "rows": part.rows,
                            "because": part.because })
                })
                .collect();
            json!({ "conclusion": name(survival.conclusion).to_lowercase(), "rows": survival.rows,
                    "parts": parts })
        })
        .collect();
    let whole = json!({ "sources": sources, "findings": findings, "conclusions": conclusions,
                        "ask_for": printed::asks(survivals) });
    format!("{}\n", serde_json::to_string_pretty(&whole).expect("plain data serialises"))
}

fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Stands => "believable",
        Standing::AtLeast => "lower_bound",
        Standing::AtMost => "upper_bound",
        Standing::InDoubt => "in_doubt",
        Standing::Fails => "not_believable",
    }
}
