//! The file of a log: whole lines are appended to it, and a new file takes its place when it was moved away. Owns the
//! path and the descriptor. Start reading at [`LogFile::append`] and [`LogFile::keep_up`].
//!
//! A rotation (`logrotate`) moves the file and sends SIGUSR1. The supervising process, which has given up no rights,
//! then opens the files ([`Reopen::reopen_used`]). A counter that all processes of the server share says how often that
//! happened. A process that finds it changed takes a copy of the new descriptor before its next write. So serving
//! processes need no right to open any file for writing. The number of a descriptor stays the same, so no thread needs
//! a lock.
//!
//! A full disk accepts only a part of a line. The next writer, in whatever process, ends that line first. A flag that
//! all processes and generations share tells it to; while it is not set, it costs a load.

use std::fs::File;
use std::io::{self, IoSlice, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::append;
use sys::handout::Handout;
use sys::process::SharedCells;

/// The files of the logs, and how often reopening was requested since the server started: the same in all processes
/// that are forked from the one that made it.
#[derive(Debug, Clone)]
pub struct Reopen(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    asked: SharedCells,
    /// Each path once.
    files: Mutex<Vec<Arc<SharedLogFile>>>,
}

/// The path of a log.
#[derive(Debug)]
struct SharedLogFile {
    path: PathBuf,
    /// The file that was opened there at the last reopening.
    opened: Handout,
    torn: Torn,
}

/// One cell: 1 if the last line in the file has no end, so that the next write must begin with one.
#[derive(Debug, Clone)]
struct Torn(Arc<SharedCells>);

impl Torn {
    fn new(is_torn: bool) -> io::Result<Self> {
        let torn = Self(Arc::new(SharedCells::new(1)?));
        torn.set(is_torn);
        Ok(torn)
    }

    fn set(&self, is_torn: bool) {
        self.0[0].store(is_torn.into(), Relaxed);
    }

    /// Whether it is torn. Clears that, since the caller ends the line.
    fn take(&self) -> bool {
        self.0[0].load(Relaxed) != 0 && self.0[0].swap(0, Relaxed) != 0
    }
}

impl Reopen {
    /// No reopening was requested yet.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> io::Result<Self> {
        let (asked, files) = (SharedCells::new(1)?, Mutex::default());
        Ok(Self(Arc::new(Inner { asked, files })))
    }

    /// Opens the files that are still `used` anew, with the rights of this process, and forgets the others. Every
    /// process of the server takes them from then on. A file that has to be made gets `owner`. Returns the files that
    /// could not be opened, and why: the old ones stay in use.
    pub fn reopen_used(
        &self,
        used: impl Fn(&Path) -> bool,
        owner: Option<u32>,
    ) -> Vec<(PathBuf, io::Error)> {
        let mut files = self.files();
        files.retain(|place| used(&place.path));
        let failed = files.iter().filter_map(|place| {
            let opened = append::make(&place.path, owner).and_then(|()| append::open(&place.path));
            let is_torn = append::ends_torn(&place.path);
            let put = opened.and_then(|file| place.opened.put(file));
            match put {
                Ok(()) => {
                    place.torn.set(is_torn);
                    None
                }
                Err(error) => Some((place.path.clone(), error)),
            }
        });
        let failed = failed.collect();
        self.0.asked[0].fetch_add(1, Relaxed);
        failed
    }

    /// For a serving process: from now on it takes what others open, and cannot open anything for them.
    pub fn only_take(&self) {
        self.files().iter().for_each(|place| place.opened.only_take());
    }

    fn asked(&self) -> u32 {
        self.0.asked[0].load(Relaxed)
    }

    fn place(&self, path: &Path) -> io::Result<Arc<SharedLogFile>> {
        let mut files = self.files();
        if let Some(place) = files.iter().find(|place| place.path == path) {
            return Ok(Arc::clone(place));
        }
        let torn = Torn::new(append::ends_torn(path))?;
        let place =
            Arc::new(SharedLogFile { path: path.to_owned(), opened: Handout::new()?, torn });
        files.push(Arc::clone(&place));
        Ok(place)
    }

    fn files(&self) -> MutexGuard<'_, Vec<Arc<SharedLogFile>>> {
        self.0.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that lines are appended to.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    torn: Torn,
    /// What replaces it after SIGUSR1; `None`: it was given open, and stays.
    reopens: Option<(Arc<SharedLogFile>, Reopen)>,
    /// The count of `reopens` at which `file` was opened.
    opened_at: AtomicU32,
    /// See [`append::takes_pieces`].
    pub(crate) in_pieces: bool,
}

/// Lines that were not written.
#[derive(Debug)]
pub(crate) struct Unwritten {
    /// How many.
    pub(crate) lines: u32,
    pub(crate) error: io::Error,
}

/// How often a line is written again from its beginning after a write ended within it.
const TEARS_MAX: u32 = 1;

impl LogFile {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// As [`append::open`].
    pub(crate) fn open(path: &Path, reopen: &Reopen) -> io::Result<Self> {
        // Read first: a request that comes in between is then served twice, and not missed.
        let opened_at = AtomicU32::new(reopen.asked());
        let file = append::open(path)?;
        let in_pieces = append::takes_pieces(&file)?;
        let place = reopen.place(path)?;
        let torn = place.torn.clone();
        Ok(Self { file, torn, reopens: Some((place, reopen.clone())), opened_at, in_pieces })
    }

    /// A file that is open already, such as standard error.
    ///
    /// # Errors
    /// None in practice.
    pub(crate) fn given(file: File) -> io::Result<Self> {
        let in_pieces = append::takes_pieces(&file)?;
        let (torn, opened_at) = (Torn::new(false)?, AtomicU32::new(0));
        Ok(Self { file, torn, reopens: None, opened_at, in_pieces })
    }

    /// The file that it writes to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Appends whole lines, each with its newline, in one write if all of it is accepted. If a write ends within a
    /// line, that line is ended, and written again.
    ///
    /// # Errors
    /// The lines that did not reach the file as a whole, and why.
    pub(crate) fn append(&self, lines: &[u8]) -> Result<(), Unwritten> {
        let (mut rest, mut tears) = (lines, 0);
        let unwritten = |rest: &[u8], error| {
            let lines = rest.iter().filter(|&&byte| byte == b'\n').count() as u32;
            Err(Unwritten { lines, error })
        };
        while !rest.is_empty() {
            match self.write(rest) {
                Ok(count) if count == rest.len() => break,
                // A line that is longer than a piece. The rest of it is written next.
                Ok(count) if self.in_pieces && count > 0 => rest = &rest[count..],
                Ok(count) => {
                    let begun = &rest[..count];
                    let whole =
                        begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
                    if whole < count {
                        self.torn.set(true);
                    }
                    rest = &rest[whole..];
                    tears += 1;
                    if tears > TEARS_MAX {
                        return unwritten(rest, io::ErrorKind::StorageFull.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return unwritten(rest, error),
            }
        }
        Ok(())
    }

    /// One write, which ends a torn line first; returns how many bytes of `lines` were taken.
    fn write(&self, lines: &[u8]) -> io::Result<usize> {
        let mut file = &self.file;
        if self.in_pieces || !self.torn.take() {
            return file.write(lines);
        }
        let written = file.write_vectored(&[IoSlice::new(b"\n"), IoSlice::new(lines)]);
        match written {
            Ok(count) if count > 0 => Ok(count - 1),
            nothing => {
                self.torn.set(true);
                nothing
            }
        }
    }

    /// Takes the new file if a reopening was requested. If there is none, the old one stays in use: a line there is
    /// worth more than none.
    ///
    /// # Errors
    /// EMFILE, once for each request.
    pub(crate) fn keep_up(&self) -> io::Result<()> {
        let Some((place, reopen)) = &self.reopens else { return Ok(()) };
        let asked = reopen.asked();
        let before = self.opened_at.swap(asked, Relaxed);
        if before == asked {
            return Ok(());
        }
        match place.opened.copy()? {
            Some(file) => append::replace(&self.file, file),
            // It is being replaced just now, or could not be opened, which was reported then.
            None => {
                self.opened_at.store(before, Relaxed);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_has_no_end_is_ended_first_whoever_began_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        // As left by a server that was killed, or whose disk was full when it ended.
        std::fs::write(&path, "whole\ntorn").unwrap();
        let reopen = Reopen::new().unwrap();
        let [first, second] = [(); 2].map(|()| LogFile::open(&path, &reopen).unwrap());
        let text = || std::fs::read_to_string(&path).unwrap();
        second.append(b"a\nb\n").unwrap();
        assert_eq!(text(), "whole\ntorn\na\nb\n");
        // As a write that ended within a line leaves it.
        std::fs::write(&path, "to").unwrap();
        first.torn.set(true);
        second.append(b"a\n").unwrap();
        first.append(b"b\n").unwrap();
        assert_eq!(text(), "to\na\nb\n");
    }

    #[test]
    fn a_line_stays_torn_while_nothing_can_be_written() {
        let file = append::open(Path::new("/dev/full")).unwrap();
        let mut full = LogFile::given(file).unwrap();
        // As a regular file on a full disk.
        full.in_pieces = false;
        full.torn.set(true);
        for _ in 0..2 {
            let unwritten = full.append(b"a\nb\n").unwrap_err();
            assert_eq!((unwritten.lines, unwritten.error.raw_os_error()), (2, Some(28)));
            assert!(full.torn.0[0].load(Relaxed) == 1);
        }
    }

    #[test]
    fn a_file_is_opened_again_by_the_one_who_asks_and_a_path_that_is_not_used_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let [kept, unused] = ["kept", "unused"].map(|name| dir.path().join(name));
        let reopen = Reopen::new().unwrap();
        let file = LogFile::open(&kept, &reopen).unwrap();
        let other = LogFile::open(&unused, &reopen).unwrap();
        for path in [&kept, &unused] {
            std::fs::rename(path, path.with_extension("1")).unwrap();
        }
        assert!(reopen.reopen_used(|path| path == kept, None).is_empty());
        for file in [&file, &other] {
            file.keep_up().unwrap();
            file.append(b"line\n").unwrap();
        }
        assert!(!unused.exists() && std::fs::read(&kept).unwrap() == b"line\n");
        std::fs::remove_dir_all(dir.path()).unwrap();
        let failed = reopen.reopen_used(|_| true, None);
        assert_eq!(failed.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&kept]);
        file.keep_up().unwrap();
        file.append(b"to the file of before\n").unwrap();
    }
}
