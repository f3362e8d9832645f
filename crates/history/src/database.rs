//! Owns the database: opening it in any state, adding runs, listing them. Must not know how a figure is computed. Start
//! reading at [`History::open`].
//!
//! Several processes may use it at once: a writer holds it for milliseconds, and everyone waits up to
//! [`LOCK_WAIT_MAX`]. The journal is SQLite's own rollback journal: results may lie on a network file system,
//! where a write-ahead log, which needs memory that all processes share, does not work.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use record::{HistoryMachine, HistoryRun, HistorySeries, Metric, RunRecord};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, Transaction, params};
use sha2::{Digest as _, Sha256};

use crate::configuration;
use crate::error::{HistoryError, LOCK_WAIT_MAX, named};
use crate::figures::{is_limited, level, places, withheld, work};
use crate::filter::Filter;
use crate::machine::{instant, machine, machine_of};
use crate::schema::{MIGRATIONS, Unusable, migrate};
use crate::series;

/// The store of past runs.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    /// Its folder, without symbolic links. Paths of run files below it are stored relative to it, so that results and
    /// history can be moved together.
    folder: PathBuf,
    connection: Connection,
}

/// The result of adding a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// It is new, with this number.
    New(i64),
    /// It was there already.
    Known(i64),
    /// The file held another run before and was rewritten: the new run takes the old one's number.
    Replaced(i64),
    /// It was stored under another path, which no longer exists: the new path is kept.
    Moved {
        /// Its number.
        id: i64,
        /// Its old path.
        from: PathBuf,
    },
}

impl History {
    /// Opens an existing history.
    ///
    /// # Errors
    /// It is absent, damaged, of another program or of a newer joust, or held by another process.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        if !path.exists() {
            return Err(HistoryError::Absent { path: path.to_owned() });
        }
        Self::connect(path)
    }

    /// Opens a history; creates it and its folder if there is none.
    ///
    /// # Errors
    /// As [`History::open`], except for absence; or it cannot be created.
    pub fn open_or_make(path: &Path) -> Result<Self, HistoryError> {
        let folder = folder_of(path);
        fs::create_dir_all(folder)
            .map_err(|cause| HistoryError::Folder { path: folder.to_owned(), cause })?;
        Self::connect(path)
    }

    fn connect(path: &Path) -> Result<Self, HistoryError> {
        let fault = |cause| named(path, cause);
        let folder = folder_of(path);
        let folder = folder
            .canonicalize()
            .map_err(|cause| HistoryError::Folder { path: folder.to_owned(), cause })?;
        // Without the flag for URIs: a file may be called "file:x?mode=ro".
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(fault)?;
        connection.busy_timeout(LOCK_WAIT_MAX).map_err(fault)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(fault)?;
        match migrate(&mut connection, MIGRATIONS).map_err(fault)? {
            Ok(()) => {}
            Err(Unusable::Foreign) => return Err(HistoryError::Foreign { path: path.to_owned() }),
            Err(Unusable::Newer { found }) => {
                let known = MIGRATIONS.len() as i64;
                return Err(HistoryError::Newer { path: path.to_owned(), found, known });
            }
        }
        // Takes milliseconds for thousands of figures. Without it, a damaged page would be found late, or, worse, would
        // affect only a part of the figures.
        let check = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
        let check: String = check.map_err(fault)?;
        if check != "ok" {
            return Err(HistoryError::Damaged { path: path.to_owned(), cause: check });
        }
        Ok(Self { path: path.to_owned(), folder, connection })
    }

    /// Adds a run once: a file is identified by its content, not by its path.
    ///
    /// # Errors
    /// The file cannot be read, or the database cannot be written.
    pub fn add(&mut self, file: &Path, run: &RunRecord) -> Result<Added, HistoryError> {
        let unread = |cause| HistoryError::RunFile { path: file.to_owned(), cause };
        let content = record::hex(&Sha256::digest(fs::read(file).map_err(unread)?));
        let place = file.canonicalize().map_err(unread)?;
        let place = place.strip_prefix(&self.folder).unwrap_or(&place).to_owned();
        let Self { path, folder, connection } = self;
        let fault = |cause| named(path, cause);
        let transaction = connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(fault)?;
        let added = put(&transaction, folder, &content, &place, run).map_err(fault)?;
        transaction.commit().map_err(fault)?;
        Ok(added)
    }

    /// The runs of a study that have a contender, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<HistoryRun>, HistoryError> {
        let list = || -> rusqlite::Result<Vec<HistoryRun>> {
            let mut statement = self.connection.prepare(
                "SELECT id, study, started, seconds, joust, cpu_model, cpus, kernel, path, cells, blocks
                 FROM run WHERE (?1 IS NULL OR study = ?1)
                 AND (?2 IS NULL OR EXISTS (SELECT 1 FROM contender WHERE run = id AND name = ?2))
                 ORDER BY instant, id",
            )?;
            let names = params![filter.study, filter.contender];
            let mut runs = statement
                .query_map(names, |row| self.run_of(row))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            for run in &mut runs {
                run.contenders = self.contenders(run.id)?;
            }
            Ok(runs)
        };
        list().map_err(|cause| named(&self.path, cause))
    }

    /// The file of the run with that number.
    ///
    /// # Errors
    /// There is no such run, or its file is no longer there.
    pub fn file_of(&self, id: i64) -> Result<PathBuf, HistoryError> {
        let query = "SELECT path FROM run WHERE id = ?1";
        let row = self.connection.query_row(query, [id], |row| row.get::<_, Vec<u8>>(0));
        let stored = row.optional().map_err(|cause| named(&self.path, cause))?;
        let stored = stored.ok_or_else(|| HistoryError::NoRun { path: self.path.clone(), id })?;
        let file = whole(&self.folder, &stored);
        if file.is_file() { Ok(file) } else { Err(HistoryError::Moved { id, file }) }
    }

    /// Every series that passes the filter, by time, and where its level changed. A series holds figures of the same
    /// study, contender, cell, work and metric on one machine.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn series(&self, filter: &Filter) -> Result<Vec<HistorySeries>, HistoryError> {
        series::read(&self.connection, filter).map_err(|cause| named(&self.path, cause))
    }

    fn run_of(&self, row: &Row<'_>) -> rusqlite::Result<HistoryRun> {
        let stored: Vec<u8> = row.get("path")?;
        let path = whole(&self.folder, &stored);
        Ok(HistoryRun {
            id: row.get("id")?,
            study: row.get("study")?,
            started: row.get("started")?,
            seconds: row.get("seconds")?,
            joust: row.get("joust")?,
            machine: machine_of(row)?,
            is_there: path.is_file(),
            path: path.display().to_string(),
            contenders: Vec::new(),
            cells: row.get("cells")?,
            blocks: row.get("blocks")?,
        })
    }

    fn contenders(&self, run: i64) -> rusqlite::Result<Vec<String>> {
        let query = "SELECT name FROM contender WHERE run = ?1 ORDER BY place";
        let mut statement = self.connection.prepare(query)?;
        statement.query_map([run], |row| row.get(0))?.collect()
    }
}

fn put(
    transaction: &Transaction<'_>,
    folder: &Path,
    content: &str,
    place: &Path,
    run: &RunRecord,
) -> rusqlite::Result<Added> {
    let known = "SELECT id, path FROM run WHERE content_sha256 = ?1";
    let known = transaction
        .query_row(known, [content], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)));
    let place = place.as_os_str().as_bytes();
    if let Some((id, stored)) = known.optional()? {
        let from = whole(folder, &stored);
        if stored == place || from.is_file() {
            return Ok(Added::Known(id));
        }
        transaction.execute("UPDATE run SET path = ?1 WHERE id = ?2", params![place, id])?;
        return Ok(Added::Moved { id, from });
    }
    // A resumed run overwrites the file of its first part.
    let before = transaction
        .query_row("SELECT id FROM run WHERE path = ?1", [place], |row| row.get::<_, i64>(0))
        .optional()?;
    transaction.execute("DELETE FROM run WHERE id = ?1", [before])?;
    let HistoryMachine { cpu_model, cpus, kernel } = machine(run);
    let blocks = run.visits.iter().map(|visit| visit.block + 1).max().unwrap_or(0);
    let cells = run.plan.cells.len() as u32;
    transaction.execute(
        "INSERT INTO run (id, content_sha256, path, study, started, instant, seconds, joust, cpu_model,
         cpus, kernel, cells, blocks)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            before, content, place, run.plan.name, run.started, instant(run), run.seconds, run.joust,
            cpu_model, cpus, kernel, cells, blocks
        ],
    )?;
    let id = transaction.last_insert_rowid();
    put_contenders(transaction, id, run)?;
    put_figures(transaction, id, run)?;
    Ok(before.map_or(Added::New(id), Added::Replaced))
}

fn put_contenders(transaction: &Transaction<'_>, id: i64, run: &RunRecord) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare("INSERT INTO contender VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (place, contender) in run.plan.contenders.iter().enumerate() {
        let version = &run.contenders[place].version;
        let configuration = configuration::hash(run, place);
        statement.execute(params![id, place as i64, contender.name, version, configuration])?;
    }
    Ok(())
}

fn put_figures(transaction: &Transaction<'_>, id: i64, run: &RunRecord) -> rusqlite::Result<()> {
    let mut statement = transaction
        .prepare("INSERT INTO figure VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    for place in places(run) {
        for metric in Metric::all() {
            let Some(level) = level(run, place, metric) else { continue };
            let (low, high) = level.interval.unzip();
            let is_bound = metric.is_rate() && is_limited(run, place);
            let withheld = withheld(run, place, metric).or_else(|| {
                is_bound.then(|| "the generator was the limit: a lower bound".to_owned())
            });
            let cell = &run.plan.cells[place.cell].name;
            statement.execute(params![
                id,
                place.contender as i64,
                cell,
                work(run, place),
                metric.info().name,
                level.mean,
                low,
                high,
                level.n,
                withheld
            ])?;
        }
    }
    Ok(())
}

/// A stored path made absolute, so that it can be opened.
fn whole(folder: &Path, stored: &[u8]) -> PathBuf {
    folder.join(OsStr::from_bytes(stored))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
