//! `joust doctor`: what would fool you in a finished run.

use std::fmt::Write as _;
use std::path::PathBuf;

use miette::miette;
use record::{Certainty, Finding, RunRecord, Severity};

use crate::output;
use crate::report::{Read, read};
use crate::trouble::{Ended, Trouble};

/// Look for what would fool you in a finished run
#[derive(clap::Args)]
pub struct Args {
    /// A run file (run.json), or the folder it lies in
    file: Option<PathBuf>,
    /// List the checks instead
    #[arg(long, conflicts_with = "file")]
    checks: bool,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let text = match &args.file {
        None if args.checks => checks(),
        None => {
            return Err(Trouble::usage(miette!(
                help = "joust doctor joust-results/FOLDER, or joust doctor --checks",
                "the doctor examines a finished run: name its run.json or its folder"
            )));
        }
        Some(file) => match read(file)? {
            Read::Run(run) => examine(&run),
            Read::Load(_) => {
                return Err(Trouble::usage(miette!(
                    help = "its self-doubt stands in its report: joust report FILE",
                    "{} is the record of one load; the doctor compares visits of a run",
                    file.display()
                )));
            }
        },
    };
    output::stdout(text.as_bytes())?;
    Ok(Ended::Well)
}

fn examine(run: &RunRecord) -> String {
    let findings = doctor::examine(run);
    let mut text = report::changed(run).map(|said| format!("{said}\n\n")).unwrap_or_default();
    writeln!(
        text,
        "{} checks over {} visits of study {}: {}",
        doctor::CHECKS.len(),
        run.visits.len(),
        run.plan.name,
        match findings.len() {
            0 => "nothing found".to_owned(),
            1 => "1 finding".to_owned(),
            n => format!("{n} findings"),
        }
    )
    .expect("writing to memory does not fail");
    findings.iter().for_each(|finding| describe(&mut text, finding, run));
    text
}

fn describe(text: &mut String, finding: &Finding, run: &RunRecord) {
    let names = |index: &usize| run.plan.contenders[*index].name.as_str();
    let touched: Vec<&str> = finding.contenders.iter().map(names).collect();
    let touched = if touched.is_empty() { "all".to_owned() } else { touched.join(", ") };
    let sure = match finding.certainty {
        Certainty::Suspected => "suspected",
        Certainty::Confirmed => "confirmed",
    };
    let does = match finding.severity {
        Severity::Note => "note",
        Severity::Bound => "bounds the verdict",
        Severity::Void => "voids the verdict",
    };
    let Finding { check, evidence, meaning, remedy, .. } = finding;
    writeln!(text, "\n{check} ({sure}, {does}): {touched}\n  saw:   {evidence}\n  means: {meaning}\n  do:    {remedy}")
        .expect("writing to memory does not fail");
}

fn checks() -> String {
    let line = |check: &&doctor::Check| format!("{:<24} {}\n", check.name, check.title);
    doctor::CHECKS.iter().map(line).collect()
}
