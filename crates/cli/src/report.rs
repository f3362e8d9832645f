//! `joust report`: a run file, shown again in any format.

use std::path::{Path, PathBuf};

use miette::miette;
use report::{Detail, OUTPUTS, Options, Output};

use crate::output::{self, Destination};
use crate::run_file::{self, RecordFile};
use crate::terminal::report_options;
use crate::trouble::{Ended, Trouble};

/// Show a finished run again: on the terminal, as HTML, Markdown or a picture
#[derive(clap::Args)]
pub struct Args {
    /// A run file (run.json), the folder it lies in, or what `joust load --json` wrote
    file: PathBuf,
    /// Format of the report
    #[arg(short, long, default_value = "text", value_parser = output_named)]
    format: &'static Output,
    /// Print every table of every cell in the text format; the other formats always have them
    #[arg(long)]
    full: bool,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: Destination,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let detail = if args.full { Detail::Full } else { Detail::Short };
    let shown = match run_file::read(&args.file)? {
        RecordFile::Run(run) => (args.format.render)(&run, &Options { detail, ..report_options() }),
        RecordFile::Load(load) => {
            let render =
                args.format.render_load.ok_or_else(|| runs_only(&args.file, args.format))?;
            render(&load, &report_options())
        }
    };
    output::write(&args.out, shown.as_bytes())?;
    Ok(Ended::Well)
}

fn runs_only(file: &Path, format: &Output) -> Trouble {
    let formats = report::load_outputs().collect::<Vec<_>>().join(", ");
    Trouble::usage(miette!(
        help = "leave --format out, or name the run.json of a `joust run`",
        "--format must be one of {formats} for the record of a single load, {}, got {}",
        file.display(),
        format.name
    ))
}

fn output_named(name: &str) -> Result<&'static Output, String> {
    let names = || OUTPUTS.iter().map(|output| output.name).collect::<Vec<_>>().join(", ");
    report::output(name).ok_or_else(|| format!("the formats are {}", names()))
}
