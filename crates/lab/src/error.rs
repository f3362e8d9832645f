//! Owns the ways in which the harness itself can fail. A failure of a server is data, not an error.

use std::io;
use std::path::PathBuf;

use record::Skipped;
use units::Nanos;

use crate::study_error::StudyError;

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The study file is wrong.
    #[error("{}:{}:{}: {}", .0.file, .0.place().0, .0.place().1, .0.message)]
    Study(#[from] StudyError),
    /// A server itself refuses the settings of a contender.
    #[error("contender `{contender}`: {server} rejects its settings: {said}")]
    Refused {
        /// Name of the contender.
        contender: String,
        /// Name of the adapter.
        server: &'static str,
        /// What the server said.
        said: String,
    },
    /// A plan that was not made from a study file names no server that there is.
    #[error(transparent)]
    Adapter(#[from] crate::adapters::AdapterError),
    /// A plan that was not made from a study file names no load tool that there is.
    #[error(transparent)]
    Client(#[from] crate::clients::ClientError),
    /// A file cannot be read.
    #[error("cannot read {}: {cause}{}", path.display(), hint(cause))]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file or folder of results cannot be written; nothing half-written is left.
    #[error("cannot write {}: {cause}{}", path.display(), hint_of_results(cause))]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A new run would take the place of results.
    #[error("{} already holds {}: a new run would replace it", path.display(), file.display())]
    Taken {
        /// The folder.
        path: PathBuf,
        /// The first of its files that would be lost.
        file: PathBuf,
    },
    /// A run cannot be gone on with.
    #[error("cannot resume {}: {reason}", path.display())]
    Earlier {
        /// Its folder, or its name.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Fewer than two contenders are installed.
    #[error("{}", too_few(present, skipped))]
    TooFew {
        /// Names of those that are.
        present: Vec<String>,
        /// The others, each with the command that brings it.
        skipped: Vec<Skipped>,
    },
    /// Fewer than two contenders answer.
    #[error("fewer than two contenders answer, so there is nothing to compare\n{}", failures.join("\n"))]
    NoneAnswers {
        /// What became of the others, each with the last lines of its log.
        failures: Vec<String>,
    },
    /// Not one block fits into the budget.
    #[error(
        "the budget of {budget} does not hold one block: its {visits} visits take {block}{}",
        gone_already(*gone)
    )]
    NoBlock {
        /// That of the plan.
        budget: Nanos,
        /// Since the start of the run.
        gone: Nanos,
        /// What a block takes, at most.
        block: Nanos,
        /// Visits of a block.
        visits: usize,
    },
    /// The generator cannot work.
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// A facility of the system that every visit needs failed (a clock, a folder, a thread).
    #[error("{what}: {cause}{}", hint(cause))]
    System {
        /// What was attempted, on what.
        what: String,
        /// What the system said.
        cause: io::Error,
    },
}

/// Of a budget, where it is worth telling.
fn gone_already(gone: Nanos) -> String {
    match gone < Nanos::from_secs(1) {
        true => String::new(),
        false => format!(", and {gone} passed before the first"),
    }
}

fn too_few(present: &[String], skipped: &[Skipped]) -> String {
    let mut text = match present {
        [] => "none of the study's contenders can be run here".to_owned(),
        names => {
            format!("only {} can be run here: a study compares at least two", names.join(", "))
        }
    };
    for left_out in skipped {
        text.push_str(&format!("\n  {}: {}", left_out.reason, left_out.remedy));
    }
    text
}

/// The same where it is about a folder of results, which may be another.
fn hint_of_results(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull => ": free some space, or name another folder with --out",
        io::ErrorKind::QuotaExceeded => ": your quota is used; name another folder with --out",
        io::ErrorKind::ReadOnlyFilesystem => ": name a folder elsewhere with --out",
        _ => hint(cause),
    }
}

/// The way out of an error of the system, where there is one worth telling.
fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull => ": free some space there",
        io::ErrorKind::QuotaExceeded => ": your quota there is used",
        io::ErrorKind::PermissionDenied => ": this user lacks the permission",
        io::ErrorKind::NotADirectory => ": a part of the path is a file",
        io::ErrorKind::AlreadyExists => ": it is not a folder; name another one",
        _ => "",
    }
}
