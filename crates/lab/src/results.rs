//! Owns the folder of a run's results: its name, and files that appear in it whole or not at all. Start reading
//! at [`ResultsFolder`].

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// Most results of one study on one day: more means that something runs in a loop.
const SAME_DAY_MAX: u32 = 10_000;

/// A folder for files of results. It is made before the first visit, so that a missing permission is known before an
/// hour is spent. It is removed again if nothing was written into it.
#[derive(Debug)]
pub struct ResultsFolder {
    path: PathBuf,
    /// Whether this run made it; a folder that was there before stays.
    made: bool,
    /// Its parent folder, if this run made that too.
    parent: Option<PathBuf>,
    /// Held while we write. Of two runs in one folder, such as `--resume` twice at once, one would replace the
    /// other's files. `None` on a file system without locks.
    _lock: Option<File>,
}

impl ResultsFolder {
    /// The folder that the user named for a new run; it is made, with its parents, if it is missing.
    ///
    /// # Errors
    /// [`LabError::Taken`]: it has files of another run, or files with the same names. Others as in [`Self::named`].
    pub fn fresh(path: &Path) -> Result<Self, LabError> {
        // Checked under its lock: of two runs that begin at once, one has no results yet.
        let folder = Self::named(path)?;
        let entries = fs::read_dir(path).map_err(failed(path))?.flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        let is_result = |name: &std::ffi::OsString| {
            let name = name.to_string_lossy();
            name == "run.json" || name == crate::journal::NAME || name.starts_with("report.")
        };
        match names.into_iter().find(is_result) {
            Some(file) => Err(LabError::Taken { path: path.to_owned(), file: file.into() }),
            None => Ok(folder),
        }
    }

    /// The folder of a resumed run; it is made, with its parents, if it is missing. Files of the run in it are
    /// replaced.
    ///
    /// # Errors
    /// [`LabError::Write`]: it cannot be made, nothing can be written into it, or another run writes
    /// into it.
    pub fn named(path: &Path) -> Result<Self, LabError> {
        let made = !path.exists();
        fs::create_dir_all(path).map_err(failed(path))?;
        let lock = lock(path).map_err(failed(path))?;
        let folder = Self { path: path.to_owned(), made, parent: None, _lock: lock };
        folder.beside().map_err(failed(path))?;
        Ok(folder)
    }

    /// `parent/DATE-STUDY`, or with -2, -3 … if that is taken.
    ///
    /// # Errors
    /// [`LabError::Write`]: it cannot be made.
    pub fn dated(parent: &Path, date: jiff::civil::Date, study: &str) -> Result<Self, LabError> {
        let made = (!parent.exists()).then(|| parent.to_owned());
        fs::create_dir_all(parent).map_err(failed(parent))?;
        let first = format!("{date}-{study}");
        let mut path = parent.join(&first);
        for n in 2..=SAME_DAY_MAX {
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = lock(&path).map_err(failed(&path))?;
                    return Ok(Self { path, made: true, parent: made, _lock: lock });
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                    path = parent.join(format!("{first}-{n}"));
                }
                Err(cause) => return Err(LabError::Write { path, cause }),
            }
        }
        Err(LabError::Write { path, cause: io::ErrorKind::AlreadyExists.into() })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a whole file: under another name, then synced, then renamed to `name`. On an error the old file is
    /// untouched and nothing else is left.
    ///
    /// # Errors
    /// [`LabError::Write`]: no space, no permission.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, LabError> {
        let path = self.path.join(name);
        self.replace(&path, bytes).map_err(failed(&path))?;
        Ok(path)
    }

    /// As [`Self::write`], for a file that must not exist yet.
    ///
    /// # Errors
    /// [`LabError::Taken`]: it exists.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, LabError> {
        if self.path.join(name).exists() {
            return Err(LabError::Taken { path: self.path.clone(), file: name.into() });
        }
        self.write(name, bytes)
    }

    /// Removes a file that is no longer needed, if it is there.
    pub fn remove(&self, name: &str) {
        // A file that stays does no harm.
        let _ = fs::remove_file(self.path.join(name));
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.beside()?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        // The rename is on disk only after the folder is synced.
        File::open(&self.path)?.sync_all()
    }

    /// A temporary file in the folder that is still to be renamed; removed when dropped.
    fn beside(&self) -> io::Result<tempfile::NamedTempFile> {
        // Other users should be able to read reports; the umask removes what it must.
        let readable = fs::Permissions::from_mode(0o666);
        tempfile::Builder::new().prefix(".joust-").permissions(readable).tempfile_in(&self.path)
    }
}

impl Drop for ResultsFolder {
    fn drop(&mut self) {
        if self.made {
            // Succeeds only on an empty folder, as intended.
            let removed = fs::remove_dir(&self.path);
            if let (Ok(()), Some(parent)) = (removed, &self.parent) {
                let _ = fs::remove_dir(parent);
            }
        }
    }
}

/// Locks a folder until the file is dropped, for whatever reason.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let folder = File::open(path)?;
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => Err(io::Error::other(
            "another joust is writing into it: wait until that has ended, or name another folder",
        )),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> LabError {
    let path = path.to_owned();
    move |cause| LabError::Write { path, cause }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        let parent = tempfile::tempdir().unwrap();
        let day = date(2026, 11, 21);
        let kept: Vec<ResultsFolder> =
            (0..3).map(|_| ResultsFolder::dated(parent.path(), day, "quick").unwrap()).collect();
        assert_eq!(
            names(parent.path()),
            ["2026-11-21-quick", "2026-11-21-quick-2", "2026-11-21-quick-3"]
        );
        drop(kept);
    }

    #[test]
    fn a_folder_into_which_nothing_was_written_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let day = date(2026, 11, 21);
        drop(ResultsFolder::dated(parent.path(), day, "quick").unwrap());
        assert!(names(parent.path()).is_empty());
        let folder = ResultsFolder::dated(parent.path(), day, "quick").unwrap();
        folder.write("run.json", b"{}\n").unwrap();
        drop(folder);
        assert_eq!(names(parent.path()), ["2026-11-21-quick"]);
    }

    #[test]
    fn a_new_run_takes_no_place_of_results_but_that_of_other_files() {
        let parent = tempfile::tempdir().unwrap();
        for (name, is_result) in [
            ("run.json", true),
            ("journal.jsonl", true),
            ("report.txt", true),
            ("notes.txt", false),
        ] {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join(name), "kept").unwrap();
            match ResultsFolder::fresh(&path) {
                Err(error) => {
                    assert!(is_result && error.to_string().contains(name), "{error}");
                    assert_eq!(names(&path), [name]);
                }
                Ok(_) => assert!(!is_result, "{name}"),
            }
        }
        ResultsFolder::fresh(&parent.path().join("new")).unwrap();
    }

    #[test]
    fn a_folder_that_a_run_writes_into_is_refused_to_another() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("out");
        let first = ResultsFolder::named(&path).unwrap();
        let error = ResultsFolder::named(&path).unwrap_err().to_string();
        assert!(error.contains("another joust"), "{error}");
        first.write("run.json", b"{}\n").unwrap();
        drop(first);
        ResultsFolder::named(&path).unwrap();
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = ResultsFolder::named(parent.path()).unwrap();
        for text in ["old and longer", "new"] {
            let path = folder.write("run.json", text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), text);
        }
        assert_eq!(names(parent.path()), ["run.json"]);
    }

    #[test]
    fn a_failed_write_names_the_file_and_leaves_nothing_half_written() {
        let parent = tempfile::tempdir().unwrap();
        let folder = ResultsFolder::named(parent.path()).unwrap();
        fs::create_dir(parent.path().join("run.json")).unwrap();
        let error = folder.write("run.json", b"{}").unwrap_err().to_string();
        assert!(error.contains("run.json"), "{error}");
        assert_eq!(names(parent.path()), ["run.json"]);
    }

    #[test]
    fn a_full_disk_is_named_with_the_way_out() {
        let cause = io::ErrorKind::StorageFull.into();
        let error = LabError::Write { path: "out/run.json".into(), cause }.to_string();
        assert!(error.contains("out/run.json") && error.contains("--out"), "{error}");
    }

    #[test]
    fn a_path_through_a_file_is_refused_before_anything_is_measured() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("file"), "").unwrap();
        let error = ResultsFolder::named(&parent.path().join("file/out")).unwrap_err().to_string();
        assert!(error.contains("file/out"), "{error}");
    }
}
