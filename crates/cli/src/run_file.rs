//! Where `joust run` saves results, and how other commands read a run file.

use std::path::{Path, PathBuf};

use miette::miette;
use record::{LoadRecord, ReadError, RunRecord};

use crate::trouble::Trouble;

/// The folder of runs, unless `--out` names another.
pub const RESULTS: &str = "joust-results";

/// The content of a file.
pub enum RecordFile {
    Run(Box<RunRecord>),
    Load(Box<LoadRecord>),
}

/// Reads a run file, or the one in a folder. Its verdicts and findings are recomputed from the measurements.
pub fn read(path: &Path) -> Result<RecordFile, Trouble> {
    let file = if path.is_dir() { path.join("run.json") } else { path.to_owned() };
    let text = std::fs::read_to_string(&file).map_err(|error| {
        let folder = file.parent().unwrap_or(Path::new("."));
        if folder.join(lab::journal::NAME).is_file() && !file.exists() {
            return Trouble::usage(miette!(
                help = format!("`{}` continues it and writes the report", resume_command(folder)),
                "{} holds an interrupted run: its visits are kept, but it has no report yet",
                folder.display()
            ));
        }
        Trouble::usage(miette!(
            help = "name a run.json, or a folder below joust-results/",
            "cannot read {}: {error}",
            file.display()
        ))
    })?;
    if let Ok(mut load) = LoadRecord::from_json(&text) {
        // Recomputed, like the verdicts of a run: an older file has none.
        load.findings = doctor::examine_load(&load);
        return Ok(RecordFile::Load(Box::new(load)));
    }
    let mut run = RunRecord::from_json(&text).map_err(|error| no_run(&file, &error))?;
    lab::runner::conclude(&mut run);
    Ok(RecordFile::Run(Box::new(run)))
}

/// Why a file cannot be read, with a remedy unless the error names one.
fn no_run(file: &Path, error: &ReadError) -> Trouble {
    let file = file.display();
    Trouble::usage(match error {
        ReadError::Shape(cause) if cause.is_eof() => miette!(
            help = "the file is cut short, as by a full disk or an interrupted copy",
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

/// The run in a file or folder, and its file.
pub fn read_run(path: &Path) -> Result<(PathBuf, RunRecord), Trouble> {
    let file = if path.is_dir() { path.join("run.json") } else { path.to_owned() };
    match read(&file)? {
        RecordFile::Run(run) => Ok((file, *run)),
        RecordFile::Load(_) => Err(Trouble::usage(miette!(
            help = "name the run.json of a `joust run`, or its folder",
            "{} is the record of a single load: it has no blocks to compare",
            file.display()
        ))),
    }
}

/// The command that continues the run in a folder.
pub fn resume_command(folder: &Path) -> String {
    format!("joust run --resume {}", quoted(&folder.display().to_string()))
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
