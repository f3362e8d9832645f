//! `joust report`: a run file, shown again in any format.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use miette::miette;
use report::{
    Detail, FigureFile, OUTPUTS, Options, Output, Render, figure_files, load_figure_files,
};

use crate::output::{self, Destination};
use crate::run_file::{self, RecordFile};
use crate::terminal::report_options;
use crate::trouble::{Ended, Trouble};

/// Show a finished run again: on the terminal, as a page or a picture, or in a format that other programs read
#[derive(clap::Args)]
pub struct Args {
    /// A run file (run.json), the folder it lies in, or what `joust load --json` wrote
    file: PathBuf,
    /// Format of the report, by its name or its extension; docs/reports.md says when to use which
    #[arg(short, long, default_value = "text", value_parser = output_named)]
    format: &'static Output,
    /// Print every table of every cell in the text format; the other formats always have them
    #[arg(long)]
    full: bool,
    /// File to write; - is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    out: Destination,
    /// Write every figure of the run or load into this folder instead, each as an SVG and as a PNG file
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "full", "out"])]
    figures: Option<PathBuf>,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let detail = if args.full { Detail::Full } else { Detail::Short };
    let options = Options { detail, ..report_options() };
    let shown = match (run_file::read(&args.file)?, &args.figures) {
        (RecordFile::Run(run), Some(folder)) => return figures(&figure_files(&run), folder),
        (RecordFile::Run(run), None) => {
            let render = args.format.run.as_ref().ok_or_else(|| loads_only(args))?;
            render.bytes(&run, &options)
        }
        (RecordFile::Load(load), Some(folder)) => {
            return figures(&load_figure_files(&load), folder);
        }
        (RecordFile::Load(load), None) => {
            let render = args.format.load.as_ref().ok_or_else(|| runs_only(args))?;
            render.bytes(&load, &options)
        }
    };
    if matches!(args.out, Destination::Stdout)
        && is_binary(args.format)
        && std::io::stdout().is_terminal()
    {
        return Err(for_a_file(args.format));
    }
    output::write(&args.out, &shown)?;
    Ok(Ended::Well)
}

/// Whether a terminal cannot show it.
fn is_binary(format: &Output) -> bool {
    matches!(format.run, Some(Render::Bytes(_))) || matches!(format.load, Some(Render::Bytes(_)))
}

fn for_a_file(format: &Output) -> Trouble {
    Trouble::usage(miette!(
        help = format!(
            "write it to a file, as in `--out report.{}`, or pipe it into a program",
            format.extension
        ),
        "--format {} is binary and must not go to a terminal",
        format.name
    ))
}

fn runs_only(args: &Args) -> Trouble {
    let formats = report::load_outputs().collect::<Vec<_>>().join(", ");
    Trouble::usage(miette!(
        help = "leave --format out, or name the run.json of a `joust run`",
        "--format must be one of {formats} for the record of a single load, {}, got {}",
        args.file.display(),
        args.format.name
    ))
}

fn loads_only(args: &Args) -> Trouble {
    let formats = report::run_outputs().collect::<Vec<_>>().join(", ");
    Trouble::usage(miette!(
        help = "a file of that format is of one server, and a run has several contenders: name what \
                `joust load --json` wrote, or use hlog or json, which have every contender",
        "--format must be one of {formats} for a run, {}, got {}",
        args.file.display(),
        args.format.name
    ))
}

/// Every figure as a file; prints their names. SVG files come first, because they need nothing from this machine.
fn figures(files: &[FigureFile], folder: &Path) -> Result<Ended, Trouble> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Trouble::failed(output::cannot_write(folder, &error)))?;
    let put = |name: String, bytes: &[u8]| {
        let path = folder.join(name);
        output::write(&Destination::File(path.clone()), bytes)?;
        output::stdout(format!("{}\n", path.display()).as_bytes())
    };
    for FigureFile { name, svg } in files {
        put(format!("{name}.svg"), svg.as_bytes())?;
    }
    #[cfg(feature = "png")]
    for (name, png) in pngs(files)? {
        put(format!("{name}.png"), &png)?;
    }
    Ok(Ended::Well)
}

/// The figures as PNG, with their names.
#[cfg(feature = "png")]
fn pngs(files: &[FigureFile]) -> Result<Vec<(&str, Vec<u8>)>, Trouble> {
    let no_font = |report::NoFonts| {
        Trouble::failed(miette!(
            help = "install one: `apt-get install fonts-dejavu-core` (Debian, Ubuntu), `dnf install \
                    dejavu-sans-fonts` (Fedora), `apk add font-dejavu` (Alpine). The SVG files are written",
            "the PNG files would have no text: no font is installed on this machine"
        ))
    };
    let fonts = report::Fonts::installed().map_err(no_font)?;
    let drawn = files.iter().map(|FigureFile { name, svg }| {
        let png = fonts.png(svg).ok_or_else(|| {
            Trouble::failed(miette!("{name} cannot be drawn as PNG; its SVG file is written"))
        })?;
        Ok((name.as_str(), png))
    });
    drawn.collect()
}

fn output_named(name: &str) -> Result<&'static Output, String> {
    let names = || OUTPUTS.iter().map(|output| output.name).collect::<Vec<_>>().join(", ");
    report::output(name).ok_or_else(|| format!("the formats are {}", names()))
}
