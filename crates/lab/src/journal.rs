//! Owns the file in which a run's visits are kept while it goes on, and how a run goes on from one.
//! Must not know how visits are made. Start reading at [`go_on`].

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use record::{Ending, Facts, Journal, RunRecord, Visit};
use units::Nanos;

use crate::error::LabError;
use crate::session::Before;

/// Name of the file in a folder of results. It is gone when the run is saved.
pub const NAME: &str = "journal.jsonl";
/// Facts that must be the same for visits to be compared.
const SAME: [&str; 4] = ["cpu_model", "cpus", "kernel", "memory"];

/// A journal that is being written: a line a visit, so that a run that is killed loses one visit.
#[derive(Debug)]
pub(crate) struct Keeping {
    path: PathBuf,
    file: File,
}

impl Keeping {
    /// Begins it in `folder`, with the visits that there are.
    pub(crate) fn begin(folder: &Path, journal: &Journal) -> Result<Self, LabError> {
        let path = folder.join(NAME);
        let text =
            journal.visits.iter().fold(journal.head(), |text, visit| text + &Journal::line(visit));
        // Beside, then renamed: the journal that a run goes on from is whole or untouched.
        let beside = folder.join(format!(".{NAME}.new"));
        let file = File::create(&beside).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            fs::rename(&beside, &path)?;
            Ok(file)
        });
        let file = file.map_err(|cause| {
            let _ = fs::remove_file(&beside);
            LabError::Write { path: path.clone(), cause }
        })?;
        Ok(Self { path, file })
    }

    /// Adds a visit. Not synced to the disk: it is there for a killed process, not for a power cut, and
    /// the disk would be busy in the next visit.
    pub(crate) fn keep(&mut self, visit: &Visit) -> Result<(), LabError> {
        let line = Journal::line(visit);
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|cause| LabError::Write { path: self.path.clone(), cause })
    }
}

/// An earlier run of which this one is the rest, or more of the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// What it planned and measured. Its plan is the one to carry out.
    pub journal: Journal,
    /// Where to go on.
    pub before: Before,
}

/// What is left to do of a run that was killed or interrupted; `folder` is that of its results.
///
/// # Errors
/// [`LabError::Earlier`]: there is none, it cannot be read, or it came to its end.
pub fn go_on(folder: &Path) -> Result<Earlier, LabError> {
    let refused = |reason: String| LabError::Earlier { path: folder.to_owned(), reason };
    let journal = match fs::read_to_string(folder.join(NAME)) {
        Ok(text) => Journal::read(&text).map_err(|error| refused(error.to_string()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let run = read_run(folder)?;
            if !matches!(run.ending, Ending::Incomplete { .. }) {
                return Err(refused(
                    "it came to its end; --repeat-of measures more of it".to_owned(),
                ));
            }
            Journal::of(&run)
        }
        Err(error) => return Err(refused(error.to_string())),
    };
    let block = journal.visits.iter().map(|visit| visit.block).max().unwrap_or(0);
    let before = Before { visits: journal.visits.clone(), elapsed: elapsed(&journal), block };
    Ok(Earlier { journal, before })
}

/// The same plan as that run's once more: as many blocks again, whose visits are judged with those
/// that there are. `folder` is that of its results, or its run file.
///
/// # Errors
/// [`LabError::Earlier`]: there is none, or it cannot be read.
pub fn repeat(folder: &Path) -> Result<Earlier, LabError> {
    let mut journal = Journal::of(&read_run(folder)?);
    let block = journal.visits.iter().map(|visit| visit.block + 1).max().unwrap_or(0);
    let elapsed = elapsed(&journal);
    journal.plan.blocks.min = journal.plan.blocks.min.saturating_add(block);
    journal.plan.blocks.max = journal.plan.blocks.max.saturating_add(block);
    journal.plan.budget = journal.plan.budget.saturating_add(elapsed);
    let before = Before { visits: journal.visits.clone(), elapsed, block };
    Ok(Earlier { journal, before })
}

fn read_run(path: &Path) -> Result<RunRecord, LabError> {
    let file = if path.is_dir() { path.join("run.json") } else { path.to_owned() };
    let refused = |reason: String| LabError::Earlier { path: file.clone(), reason };
    let text = fs::read_to_string(&file).map_err(|error| refused(error.to_string()))?;
    RunRecord::from_json(&text).map_err(|error| refused(error.to_string()))
}

/// Time that the visits took, about: to the end of the last one.
fn elapsed(journal: &Journal) -> Nanos {
    let last = journal.visits.iter().map(|visit| visit.started).max();
    last.map_or(Nanos::ZERO, |last| last + journal.plan.visit.warm_up + journal.plan.visit.measure)
}

/// Refuses to go on with a run of another machine, or of this one with another kernel.
///
/// # Errors
/// [`LabError::Earlier`], which names what differs.
pub(crate) fn check_machine(earlier: &Journal, now: &Facts) -> Result<(), LabError> {
    let fact = |facts: &Facts, name: &str| facts.named.get(name).cloned().unwrap_or_default();
    let differing = SAME.into_iter().find(|name| fact(&earlier.facts, name) != fact(now, name));
    let Some(name) = differing else { return Ok(()) };
    let (then, now) = (fact(&earlier.facts, name), fact(now, name));
    let reason = format!(
        "its {name} was `{then}`, this machine's is `{now}`: visits of two machines cannot be compared; \
         start a run of its own"
    );
    Err(LabError::Earlier { path: PathBuf::from(&earlier.plan.name), reason })
}
