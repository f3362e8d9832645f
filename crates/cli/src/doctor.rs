//! `joust doctor`: what would fool you in a run, in a load, in the output of other tools (see `printed`), and on this
//! machine. Start reading at [`main`].

mod machine;
mod manual;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use miette::miette;
use record::{Finding, LoadRecord, RunRecord};
use serde_json::json;

use crate::output;
use crate::printed;
use crate::run_file::{RecordFile, read};
use crate::terminal::prose_options;
use crate::trouble::{Ended, Trouble};
use machine::Form;

/// Look for what would fool you: in a run, a load, the figures of other tools, or on this machine
///
/// Without FILE, on a terminal, it looks at this machine. It measures nothing and changes nothing.
#[derive(clap::Args)]
pub struct Args {
    /// A run file (run.json), the folder it lies in, or the record of a load; or files with what ab, wrk, siege
    /// and other load tools printed, or with tables of results (CSV, Markdown, JSON); - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Look at this machine: limits, CPUs, clocks, memory, network, permissions, other load
    #[arg(long, conflicts_with = "files")]
    machine: bool,
    /// Print a shell script that changes what is worth changing on this machine; it is not run
    #[arg(long, conflicts_with_all = ["files", "json"])]
    fix: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// List the checks by the question that they answer
    #[arg(long, conflicts_with_all = ["files", "machine", "fix", "json"])]
    checks: bool,
    /// Explain one check, or one topic of this machine
    #[arg(long, value_name = "NAME", conflicts_with_all = ["files", "machine", "fix", "json", "checks"])]
    explain: Option<String>,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let text = match args.files.as_slice() {
        [] if args.checks => manual::list(),
        [] if args.fix => machine::look(Form::Script),
        [] if args.explain.is_some() => {
            manual::explain(args.explain.as_deref().unwrap_or_default())?
        }
        [] if args.machine || io::stdin().is_terminal() => {
            machine::look(if args.json { Form::Json } else { Form::Text })
        }
        [file] if printed::is_ours(file) => recorded(file, args.json)?,
        files => {
            if let Some(ours) = files.iter().find(|file| printed::is_ours(file)) {
                return Err(Trouble::usage(miette!(
                    help = "name it alone",
                    "{} was written by joust, which is examined one at a time",
                    ours.display()
                )));
            }
            let form = if args.json { printed::Form::Json } else { printed::Form::Text };
            printed::examine(files, form)?
        }
    };
    output::stdout(text.as_bytes())?;
    Ok(Ended::Well)
}

/// Examines joust's own records; reading a record applies today's checks.
fn recorded(file: &Path, json: bool) -> Result<String, Trouble> {
    Ok(match read(file)? {
        RecordFile::Run(run) if json => json_of(&run.findings),
        RecordFile::Run(run) => of_run(&run),
        RecordFile::Load(load) if json => json_of(&load.findings),
        RecordFile::Load(load) => of_load(&load),
    })
}

fn of_run(run: &RunRecord) -> String {
    let changed = report::changed(run).map(|said| format!("{said}\n\n")).unwrap_or_default();
    let visits = run.visits.len();
    let of = format!("{visits} visits of study {}", run.plan.name);
    let findings = report::findings_text(run, &prose_options());
    format!("{changed}{}{findings}", summary(&of, &run.findings))
}

fn of_load(load: &LoadRecord) -> String {
    let findings = report::load_findings_text(load, &prose_options());
    format!("{}{findings}", summary(&format!("a load of {}", load.plan.url), &load.findings))
}

/// "41 checks over 24 visits of study quick: 2 findings".
fn summary(of: &str, findings: &[Finding]) -> String {
    let found = match Finding::grouped(findings).len() {
        0 => "nothing found\n".to_owned(),
        1 => "1 finding\n\n".to_owned(),
        n => format!("{n} findings\n\n"),
    };
    format!("{} checks over {of}: {found}", doctor::CHECKS.len())
}

fn json_of(findings: &[Finding]) -> String {
    let value = json!({ "checks": doctor::CHECKS.len(), "findings": findings });
    let mut text = serde_json::to_string_pretty(&value).expect("findings are JSON");
    text.push('\n');
    text
}
