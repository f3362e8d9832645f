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
    /// A plan that was not made from a study file names an unknown server.
    #[error(transparent)]
    Adapter(#[from] crate::adapters::AdapterError),
    /// A plan that was not made from a study file names an unknown load tool.
    #[error(transparent)]
    Client(#[from] crate::clients::ClientError),
    /// A file cannot be read.
    #[error("cannot read {}: {cause}{}", path.display(), hint(cause))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file or folder of results cannot be written; nothing half-written is left.
    #[error("cannot write {}: {cause}{}", path.display(), hint_of_results(cause))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A new run would replace existing results.
    #[error("{} already holds {}: a new run would replace it", path.display(), file.display())]
    Taken {
        /// The folder.
        path: PathBuf,
        /// The first of its files that would be lost.
        file: PathBuf,
    },
    /// A run cannot be resumed.
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
        /// Names of the contenders that are installed.
        present: Vec<String>,
        /// The others, each with the command that installs it.
        skipped: Vec<Skipped>,
    },
    /// Fewer than two contenders answer.
    #[error("fewer than two contenders answer, so there is nothing to compare\n{}", failures.join("\n"))]
    NoneAnswers {
        /// What happened to the others, each with the last lines of its log.
        failures: Vec<String>,
    },
    /// Not one block fits into the budget.
    #[error(
        "the budget of {budget} does not hold one block: its {visits} visits take {block}{}",
        gone_already(*gone)
    )]
    NoBlock {
        /// The plan's budget.
        budget: Nanos,
        /// Time since the start of the run.
        gone: Nanos,
        /// The longest time that a block takes.
        block: Nanos,
        /// Number of visits in a block.
        visits: usize,
    },
    /// The load comes from other machines, and there was none.
    #[error("{0}")]
    Elsewhere(String),
    /// A contender listens where other machines cannot reach it.
    #[error("{contender} is reached at this machine's loopback only, and not from other machines")]
    OutOfReach {
        /// Its name.
        contender: String,
    },
    /// The generator cannot work.
    #[error(transparent)]
    Load(#[from] load::LoadError),
    /// A system facility that every visit needs failed (a clock, a folder, a thread).
    #[error("{what}: {cause}{}", hint(cause))]
    System {
        /// What was attempted, on what.
        what: String,
        /// What the system said.
        cause: io::Error,
    },
}

/// The part of a budget that is already used, if it is worth mentioning.
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

/// The same for a folder of results, which the user can replace by another.
fn hint_of_results(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull => ": free some space, or name another folder with --out",
        io::ErrorKind::QuotaExceeded => ": your quota is used; name another folder with --out",
        io::ErrorKind::ReadOnlyFilesystem => ": name a folder elsewhere with --out",
        _ => hint(cause),
    }
}

/// The way out of a system error, if there is a useful one.
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
