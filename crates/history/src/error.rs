//! What can go wrong with a history, and the remedy.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long we wait for a database that another process holds.
pub(crate) const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// Why a history could not be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no database yet.
    #[error(
        "there is no history at {}: `joust run` begins one in joust-results/, and `joust history add \
         RUN` adds runs that are there",
        path.display()
    )]
    Absent {
        /// The path that was tried.
        path: PathBuf,
    },
    /// The folder for it cannot be made.
    #[error("cannot make {}: {cause}; name another file with --db", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file is not a database, or it is damaged.
    #[error(
        "the history {} is damaged or no database ({cause}): it is an index only, so move it away and \
         make it again from the run files: joust history add joust-results/*/run.json",
        path.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        cause: String,
    },
    /// It belongs to another program.
    #[error(
        "{} is the database of another program: name another file with --db",
        path.display()
    )]
    Foreign {
        /// The database.
        path: PathBuf,
    },
    /// A newer joust wrote it.
    #[error(
        "the history {} has schema {found}, and this joust knows schemas up to {known}: use the joust \
         that wrote it or a newer one, or begin another history with --db",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// Another process held the database for too long.
    #[error(
        "the history {} is held by another process, and was for {seconds} s: try again when that has \
         ended (`fuser {}` names it)",
        path.display(),
        path.display()
    )]
    Busy {
        /// The database.
        path: PathBuf,
        /// How long we waited.
        seconds: u64,
    },
    /// A run file cannot be read.
    #[error("cannot read the run file {}: {cause}", path.display())]
    RunFile {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// There is no run of that number.
    #[error("the history {} has no run {id}: `joust history` lists those it has", path.display())]
    NoRun {
        /// The database.
        path: PathBuf,
        /// The number.
        id: i64,
    },
    /// The file of a run is not where it was.
    #[error(
        "run {id} was in {}, and is there no longer: if it was moved, `joust history add NEW-PLACE` \
         tells the history where it is",
        file.display()
    )]
    Moved {
        /// The run's number.
        id: i64,
        /// Where its file was.
        file: PathBuf,
    },
    /// Any other error of SQLite.
    #[error("the history {}: {cause}; a full disk, or a folder that may not be written to?", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        cause: rusqlite::Error,
    },
}

/// Turns an error of SQLite into the variant whose message helps.
pub(crate) fn named(path: &Path, cause: rusqlite::Error) -> HistoryError {
    let path = path.to_owned();
    match cause.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
            HistoryError::Damaged { path, cause: cause.to_string() }
        }
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            HistoryError::Busy { path, seconds: LOCK_WAIT_MAX.as_secs() }
        }
        _ => HistoryError::Sqlite { path, cause },
    }
}
