//! `joust report`: a run file, shown again in any form.

use std::path::{Path, PathBuf};

use miette::miette;
use record::{LoadRecord, ReadError, RunRecord};
use report::{Detail, OUTPUTS, Options, Output};

use crate::output::{self, Place};
use crate::trouble::{Ended, Trouble};

/// Show a finished run again: on the terminal, as HTML, Markdown or a picture
#[derive(clap::Args)]
pub struct Args {
    /// A run file (run.json), the folder it lies in, or what `joust load --json` wrote
    file: PathBuf,
    /// The form
    #[arg(short, long, default_value = "text", value_parser = output_named)]
    format: &'static Output,
    /// Every table as text too, cell by cell; the other forms always have all
    #[arg(long)]
    full: bool,
    /// Where to write it; - is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: Place,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let detail = if args.full { Detail::Full } else { Detail::Short };
    let shown = match read(&args.file)? {
        Read::Run(run) => (args.format.render)(&run, &Options { detail, ..options() }),
        Read::Load(load) if args.format.name == "text" => report::load_text(&load, &options()),
        Read::Load(load) if args.format.name == "markdown" => {
            report::load_markdown(&load, &options())
        }
        Read::Load(_) => {
            return Err(Trouble::usage(miette!(
                help = "leave --format away, take markdown, or give the run.json of `joust run`",
                "{} is the record of one load; it has the forms `text` and `markdown`",
                args.file.display()
            )));
        }
    };
    output::write(&args.out, shown.as_bytes())?;
    Ok(Ended::Well)
}

/// What a file turned out to be.
pub enum Read {
    Run(Box<RunRecord>),
    Load(Box<LoadRecord>),
}

/// Reads a run file, or the one in a folder. What it concludes is made anew from its visits.
pub fn read(path: &Path) -> Result<Read, Trouble> {
    let file = if path.is_dir() { path.join("run.json") } else { path.to_owned() };
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let folder = file.parent().unwrap_or(Path::new("."));
        if folder.join(lab::journal::NAME).is_file() && !file.exists() {
            return Trouble::usage(miette!(
                help = format!("`{}` goes on with it, and makes the report", crate::run::resume(folder)),
                "{} holds a run that was broken off before its end: its visits are kept, and there is no \
                 report yet",
                folder.display()
            ));
        }
        Trouble::usage(miette!(
            help = "name a run.json, or a folder below joust-results/",
            "cannot read {}: {error}",
            file.display()
        ))
    })?;
    if let Ok(load) = LoadRecord::from_json(&text) {
        return Ok(Read::Load(Box::new(load)));
    }
    let mut run = RunRecord::from_json(&text).map_err(|error| no_run(&file, &error))?;
    lab::runner::conclude(&mut run);
    Ok(Read::Run(Box::new(run)))
}

/// A file that is not read, with the way out where its own words do not name one.
fn no_run(file: &Path, error: &ReadError) -> Trouble {
    let file = file.display();
    Trouble::usage(match error {
        ReadError::Shape(cause) if cause.is_eof() => miette!(
            help = "it ends too early, as after a full disk or a copy that was broken off",
            "{file}: {error}"
        ),
        ReadError::Shape(_) => miette!(
            help = "`joust run` writes run.json, `joust load --json FILE` the record of one load",
            "{file}: {error}"
        ),
        ReadError::Version { .. }
        | ReadError::Misfit { .. }
        | ReadError::Line { .. }
        | ReadError::Twice => miette!("{file}: {error}"),
    })
}

/// How reports look on this terminal.
pub fn options() -> Options {
    Options { width: output::columns(), colour: output::colour(), ..Options::default() }
}

fn output_named(name: &str) -> Result<&'static Output, String> {
    let names = || OUTPUTS.iter().map(|output| output.name).collect::<Vec<_>>().join(", ");
    report::output(name).ok_or_else(|| format!("the forms are {}", names()))
}
