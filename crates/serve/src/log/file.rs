//! The file of a log: where it lies, and that it is opened again when it was moved away. Owns the
//! path and the descriptor; must not know what is written. Start reading at [`LogFile::keep_up`].
//!
//! A rotation (`logrotate`) moves the file and sends SIGUSR1. One counter that all processes of the
//! server share says how often that was; a process that finds it changed opens its files again before
//! its next write. The number of a descriptor stays the same, so no thread needs a lock.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use sys::append;
use sys::process::SharedCells;

/// How often the logs were to be opened again, since the server started: the same count in all
/// processes that come of the one that made it.
#[derive(Debug, Clone)]
pub struct Reopen(Arc<SharedCells>);

impl Reopen {
    /// Never yet.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(SharedCells::new(1)?)))
    }

    /// Every process of the server is to open its logs again.
    pub fn ask(&self) {
        self.0[0].fetch_add(1, Relaxed);
    }

    fn asked(&self) -> u32 {
        self.0[0].load(Relaxed)
    }
}

/// A file that lines are appended to.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    /// What SIGUSR1 opens again; `None`: it was given open, and stays.
    reopens: Option<(PathBuf, Reopen)>,
    /// The count of `reopens` at which `file` was opened.
    opened_at: AtomicU32,
    /// See [`append::takes_pieces`].
    pub(crate) in_pieces: bool,
}

impl LogFile {
    /// Opens the file that lies there, or makes it.
    ///
    /// # Errors
    /// As [`append::open`].
    pub(crate) fn open(path: &Path, reopen: &Reopen) -> io::Result<Self> {
        // Asked first: one that comes between is heeded once more, not missed.
        let opened_at = AtomicU32::new(reopen.asked());
        let mut opened = Self::given(append::open(path)?)?;
        opened.reopens = Some((path.to_owned(), reopen.clone()));
        opened.opened_at = opened_at;
        Ok(opened)
    }

    /// A file that is open already, as standard error is.
    ///
    /// # Errors
    /// None in practice.
    pub(crate) fn given(file: File) -> io::Result<Self> {
        let in_pieces = append::takes_pieces(&file)?;
        Ok(Self { file, reopens: None, opened_at: AtomicU32::new(0), in_pieces })
    }

    /// Where to write.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Opens the file again if that was asked for. Where it cannot be, the old one is written on: a
    /// line there is worth more than none.
    ///
    /// # Errors
    /// Why it cannot be, once for each time that it was asked for.
    pub(crate) fn keep_up(&self) -> io::Result<()> {
        let Some((path, reopen)) = &self.reopens else { return Ok(()) };
        let asked = reopen.asked();
        match self.opened_at.swap(asked, Relaxed) == asked {
            true => Ok(()),
            false => append::replace(&self.file, append::open(path)?),
        }
    }
}
