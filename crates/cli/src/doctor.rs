//! `joust doctor`: what would fool you in a finished run, or in what other tools printed (see `printed`).

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use miette::miette;
use record::{Certainty, Finding, RunRecord, Severity};

use crate::output;
use crate::printed::{self, Form};
use crate::run_file::{RecordFile, read};
use crate::trouble::{Ended, Trouble};

/// Look for what would fool you in a finished run, or in the figures that load tools printed
#[derive(clap::Args)]
pub struct Args {
    /// A run file (run.json) or the folder it lies in; or files with what ab, wrk, siege and other load tools
    /// printed, or with tables of results (CSV, Markdown, JSON); - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// List the checks; examine nothing
    #[arg(long, conflicts_with = "files")]
    checks: bool,
    /// Write findings on what other tools printed as JSON
    #[arg(long, conflicts_with = "checks")]
    json: bool,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let text = match args.files.as_slice() {
        [] if args.checks => checks(),
        [] if std::io::stdin().is_terminal() => {
            return Err(Trouble::usage(miette!(
                help = "joust doctor joust-results/FOLDER, joust doctor FILE... with what load tools printed, or \
                        joust doctor --checks",
                "the doctor examines a finished run, or what load tools printed: name a file"
            )));
        }
        [file] if printed::is_ours(file) => recorded(file, args)?,
        files => {
            if let Some(ours) = files.iter().find(|file| printed::is_ours(file)) {
                return Err(Trouble::usage(miette!(
                    help = "name it alone",
                    "{} was written by joust, which is examined one at a time",
                    ours.display()
                )));
            }
            printed::examine(files, if args.json { Form::Json } else { Form::Text })?
        }
    };
    output::stdout(text.as_bytes())?;
    Ok(Ended::Well)
}

/// What joust recorded itself.
fn recorded(file: &Path, args: &Args) -> Result<String, Trouble> {
    if args.json {
        return Err(Trouble::usage(miette!(
            help = "the findings of a run lie in its run.json, under \"findings\"",
            "--json is for what other tools printed; {} is joust's own",
            file.display()
        )));
    }
    match read(file)? {
        RecordFile::Run(run) => Ok(examine(&run)),
        RecordFile::Load(_) => Err(Trouble::usage(miette!(
            help = "the report of a load has its own warnings: joust report FILE",
            "{} is the record of a single load; the doctor compares the visits of a run",
            file.display()
        ))),
    }
}

fn examine(run: &RunRecord) -> String {
    let findings = doctor::examine(run);
    let mut text = report::changed(run).map(|said| format!("{said}\n\n")).unwrap_or_default();
    let groups = Finding::grouped(&findings);
    writeln!(
        text,
        "{} checks over {} visits of study {}: {}",
        doctor::CHECKS.len(),
        run.visits.len(),
        run.plan.name,
        match groups.len() {
            0 => "nothing found".to_owned(),
            1 => "1 finding".to_owned(),
            n => format!("{n} findings"),
        }
    )
    .expect(IN_MEMORY);
    groups.iter().for_each(|group| describe(&mut text, group, run));
    text
}

/// One check with all that it saw, contender by contender and cell by cell.
fn describe(text: &mut String, group: &[&Finding], run: &RunRecord) {
    let Finding { check, meaning, remedy, severity, certainty, .. } = group[0];
    let mut touched: Vec<usize> = group.iter().flat_map(|one| one.contenders.clone()).collect();
    touched.sort_unstable();
    touched.dedup();
    let names: Vec<&str> =
        touched.iter().map(|&index| run.plan.contenders[index].name.as_str()).collect();
    let is_of_all = group.iter().any(|one| one.contenders.is_empty());
    let touched = if is_of_all { "all".to_owned() } else { names.join(", ") };
    let sure = match certainty {
        Certainty::Suspected => "suspected",
        Certainty::Confirmed => "confirmed",
    };
    let does = match severity {
        Severity::Note => "note",
        Severity::Bound => "bounds the verdict",
        Severity::Void => "voids the verdict",
    };
    writeln!(text, "\n{check} ({sure}, {does}): {touched}").expect(IN_MEMORY);
    for finding in group {
        let cell = finding.cell.and_then(|cell| run.plan.cells.get(cell));
        let place = cell.map_or(String::new(), |cell| format!("at {}: ", cell.name));
        writeln!(text, "  saw:   {place}{}", finding.evidence).expect(IN_MEMORY);
    }
    writeln!(text, "  means: {meaning}\n  do:    {remedy}").expect(IN_MEMORY);
}

const IN_MEMORY: &str = "writing to memory does not fail";

fn checks() -> String {
    let line = |name: &str, title: &str| format!("{name:<26} {title}\n");
    let own = doctor::CHECKS.iter().map(|check| line(check.name, check.title));
    let printed = doctor::printed::CHECKS.iter().map(|check| line(check.name, check.title));
    let heading = "\nOf what other tools printed\n".to_owned();
    own.chain(std::iter::once(heading)).chain(printed).collect()
}
