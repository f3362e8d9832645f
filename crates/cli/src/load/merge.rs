//! `joust load --merge`: combines the records of several loads from files. Start reading at [`main`].

use std::path::Path;

use load::MergeInput;
use miette::miette;
use record::LoadRecord;

use super::args::Args;
use super::{ended, write_outputs};
use crate::output;
use crate::trouble::{Ended, Trouble};

/// Reads the files, and reports their combined content.
pub fn main(args: &Args) -> Result<Ended, Trouble> {
    if let Some(place) = &args.output.json {
        output::can_write(place)?;
    }
    let inputs: Result<Vec<MergeInput>, Trouble> =
        args.output.merge.iter().map(|file| read(file)).collect();
    if let [only] = &args.output.merge[..] {
        let only = only.display();
        crate::terminal::say(&format!(
            "note: --merge got one file, so this is the report of {only} alone"
        ));
    }
    let mut record = load::merge(inputs?).map_err(super::plan::usage)?;
    if !args.checks.slo.is_empty() {
        record.plan.goals.clone_from(&args.checks.slo);
    }
    record.findings = doctor::examine_load(&record);
    write_outputs(&record, args)?;
    ended(&record, args.checks.strict)
}

fn read(file: &Path) -> Result<MergeInput, Trouble> {
    let name = file.display().to_string();
    let help = if name.contains("://") {
        "--merge combines files and sends no requests: leave the URL out"
    } else {
        "--merge reads what `joust load --json FILE` wrote"
    };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Trouble::usage(miette!(help = help, "cannot read {name}: {error}")))?;
    let record = LoadRecord::from_json(&text).map_err(|error| {
        Trouble::usage(miette!(
            help = "--merge reads what `joust load --json FILE` wrote, whole files only",
            "{name}: {error}"
        ))
    })?;
    let findings = doctor::examine_load(&record).iter().map(|one| one.seen().to_owned()).collect();
    // Where it ran is not known.
    Ok(MergeInput { name, record, findings, acting: Vec::new() })
}
