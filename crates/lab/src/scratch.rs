//! Owns the folder that a run works in: servers' own folders and the site they serve. It lies where
//! every account may enter, and is removed even after a run that was killed. Must not know servers.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use units::{Bytes, Nanos};

use crate::cgroup;
use crate::left::{self, Ended};

/// A folder for the folders of servers and their site; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    ended: Ended,
    // Held as long as we live, so that `sweep` of another process leaves the folder alone. The
    // kernel lets go of it however we end.
    _lock: File,
}

impl Scratch {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What was ended, when it was made, of a joust that was killed.
    pub fn ended(&self) -> Ended {
        self.ended
    }
}

/// Where scratch folders are made: a folder that every account may enter.
const SCRATCH_ROOT: &str = "/tmp";
/// How their names begin.
const SCRATCH_PREFIX: &str = "joust-scratch-";
/// A file in each, locked by the process that it belongs to.
const SCRATCH_LOCK: &str = "lock";

/// A new folder below /tmp: one that a server's own account may enter, which a usual temporary
/// folder may not be. What a killed joust left behind is cleared away first: its servers are ended,
/// its folder is removed.
///
/// # Errors
/// /tmp is full or may not be written to.
pub fn scratch() -> io::Result<Scratch> {
    let ended = sweep();
    let open = fs::Permissions::from_mode(0o755);
    let dir = tempfile::Builder::new()
        .prefix(SCRATCH_PREFIX)
        .permissions(open)
        .tempdir_in(SCRATCH_ROOT)?;
    // Locked before it has its name: in between, the sweep of another joust would take the folder for
    // one that was left behind.
    let unnamed = tempfile::NamedTempFile::new_in(dir.path())?;
    unnamed.as_file().try_lock()?;
    let lock = unnamed.persist(dir.path().join(SCRATCH_LOCK))?;
    Ok(Scratch { dir, ended, _lock: lock })
}

/// Ends the servers and removes the scratch folders of a joust of ours that is gone: its lock can be
/// had. A folder that is being made has no lock file yet and is left alone.
fn sweep() -> Ended {
    use std::os::unix::fs::MetadataExt as _;
    let me = rustix::process::geteuid().as_raw();
    let Ok(entries) = fs::read_dir(SCRATCH_ROOT) else { return Ended::default() };
    let mut ended = Ended { cgroups: cgroup::sweep(), ..Ended::default() };
    for path in entries.flatten().map(|entry| entry.path()) {
        let named = path.file_name().and_then(|name| name.to_str());
        let is_scratch = named.is_some_and(|name| name.starts_with(SCRATCH_PREFIX));
        // Not through a symbolic link, and not what belongs to someone else.
        let ours = path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == me);
        if is_scratch && ours {
            let lock = File::options().write(true).open(path.join(SCRATCH_LOCK));
            // Held until the folder is gone: of two runs that begin at once one clears it away.
            if let Ok(lock) = lock
                && lock.try_lock().is_ok()
            {
                let here = left::end_noted(&path);
                ended.processes += here.processes;
                ended.cgroups += here.cgroups;
                // What cannot be removed is tried again by the next run.
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
    ended
}

/// Makes a site in `dir`: an `index.html` of exactly as many bytes as the first size says, and a
/// `page-SIZE.html` for each other one ([`record::Plan::target`]), the same on every machine. Returns the
/// document root.
///
/// # Errors
/// `dir` is full or may not be written to.
pub fn site(dir: &Path, pages: &[Bytes]) -> io::Result<PathBuf> {
    let root = dir.join("site");
    fs::create_dir(&root)?;
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755))?;
    for (index, &page) in pages.iter().enumerate() {
        let name =
            if index == 0 { "index.html".to_owned() } else { format!("page-{}.html", page.0) };
        let file = root.join(name);
        fs::write(&file, page_of(page))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
    }
    Ok(root)
}

/// Puts a CGI program into a site: it sleeps, and answers with a line of text. Returns its path in
/// URLs.
///
/// # Errors
/// The site is full or may not be written to.
pub fn sleeper(docroot: &Path, sleep: Nanos) -> io::Result<String> {
    let open = fs::Permissions::from_mode(0o755);
    let dir = docroot.join("cgi-bin");
    fs::create_dir_all(&dir)?;
    fs::set_permissions(&dir, open.clone())?;
    let file = dir.join("sleep");
    let seconds = sleep.as_secs_f64();
    let text = format!(
        "#!/bin/sh\nsleep {seconds}\nprintf 'Content-Type: text/plain\\r\\n\\r\\nslept {seconds} s\\n'\n"
    );
    fs::write(&file, text)?;
    fs::set_permissions(&file, open)?;
    Ok("/cgi-bin/sleep".to_owned())
}

/// HTML where there is room for it; a repeated line, so that it compresses as text does.
fn page_of(size: Bytes) -> Vec<u8> {
    const HEAD: &[u8] = b"<!doctype html><title>joust</title>\n";
    const LINE: &[u8] = b"<p>The quick brown fox jumps over the lazy dog, 0123456789.</p>\n";
    HEAD.iter().chain(LINE.iter().cycle()).copied().take(size.0 as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_exactly_the_bytes_that_were_asked_for() {
        for size in [0, 1, 36, 37, 3361, 100_000] {
            assert_eq!(page_of(Bytes(size)).len() as u64, size);
        }
        assert!(page_of(Bytes(3361)).starts_with(b"<!doctype html>"));
    }

    #[test]
    fn runs_that_begin_at_once_leave_each_others_folders_alone() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let made = scratch().unwrap();
                        assert!(made.path().join(SCRATCH_LOCK).exists());
                    }
                });
            }
        });
    }

    #[test]
    fn a_scratch_folder_is_swept_only_when_its_process_is_gone() {
        let kept = scratch().unwrap();
        let left = scratch().unwrap();
        let abandoned = left.path().to_owned();
        fs::create_dir(abandoned.join("nginx-x")).unwrap();
        // As a killed process leaves it: the folder stays, the lock does not.
        drop(left._lock);
        let _ = left.dir.keep();
        assert!(abandoned.exists());
        sweep();
        assert!(!abandoned.exists() && kept.path().exists());
        let path = kept.path().to_owned();
        drop(kept);
        assert!(!path.exists());
    }
}
