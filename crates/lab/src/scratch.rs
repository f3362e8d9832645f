//! Owns the working folder of a run: servers' own folders and the site they serve. Every
//! account can enter it, and it is removed even after a run that was killed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use units::{Bytes, Nanos};

use crate::cgroup;
use crate::left::{self, EndedRemains};

/// A folder for the folders of servers and their site; removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    ended: EndedRemains,
    // Locked as long as we live, so that another process's `sweep` leaves the folder alone. The kernel releases the
    // lock however we end.
    _lock: File,
}

impl Scratch {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What was ended of a killed joust when this folder was made.
    pub fn ended(&self) -> EndedRemains {
        self.ended
    }
}

/// Where scratch folders are made: a folder that every account may enter.
const SCRATCH_ROOT: &str = "/tmp";
/// The beginning of their names.
const SCRATCH_PREFIX: &str = "joust-scratch-";
/// A file in each of them, locked by the process that owns the folder.
const SCRATCH_LOCK: &str = "lock";

/// A new folder below /tmp that a server's own account can enter, unlike a usual temporary
/// folder. The remains of a killed joust are removed first: its servers are ended,
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
    // Locked before it gets its name: otherwise the sweep of another joust could mistake it for a leftover.
    let unnamed = tempfile::NamedTempFile::new_in(dir.path())?;
    unnamed.as_file().try_lock()?;
    let lock = unnamed.persist(dir.path().join(SCRATCH_LOCK))?;
    Ok(Scratch { dir, ended, _lock: lock })
}

/// Ends the servers and removes the scratch folders of ended jousts, whose locks are free. A folder that is being
/// made has no lock file yet; it is left alone unless it is old.
fn sweep() -> EndedRemains {
    use std::os::unix::fs::MetadataExt as _;
    let me = rustix::process::geteuid().as_raw();
    let Ok(entries) = fs::read_dir(SCRATCH_ROOT) else { return EndedRemains::default() };
    let mut ended = EndedRemains { cgroups: cgroup::sweep(), ..EndedRemains::default() };
    for path in entries.flatten().map(|entry| entry.path()) {
        let named = path.file_name().and_then(|name| name.to_str());
        let is_scratch = named.is_some_and(|name| name.starts_with(SCRATCH_PREFIX));
        // Not through a symbolic link, and not a folder of another account.
        let ours = path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == me);
        if is_scratch && ours {
            let lock = File::options().write(true).open(path.join(SCRATCH_LOCK));
            if lock.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
                && is_old(&path)
            {
                // Nothing was started in it: a start comes after the lock.
                let _ = fs::remove_dir_all(&path);
            }
            // Locked until the folder is gone: of two runs that begin at once, only one removes it.
            if let Ok(lock) = lock
                && lock.try_lock().is_ok()
            {
                let here = left::end_noted(&path);
                ended.processes += here.processes;
                ended.cgroups += here.cgroups;
                // The next run tries again.
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
    ended
}

/// Whether a folder was last changed so long ago that its joust must have been killed.
fn is_old(path: &Path) -> bool {
    const OLD: Duration = Duration::from_secs(600);
    let changed = fs::symlink_metadata(path).and_then(|found| found.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|since| since > OLD))
}

/// Makes a site in `dir`: an `index.html` of exactly the first size, and a `page-SIZE.html` for each other size
/// ([`record::Plan::target`]), the same on every machine. Returns the document root.
///
/// # Errors
/// `dir` is full or may not be written to.
pub fn site(dir: &Path, pages: &[Bytes]) -> io::Result<PathBuf> {
    let wanted = pages.iter().fold(0_u64, |sum, page| sum.saturating_add(page.0));
    let there = rustix::fs::statvfs(dir)?;
    if wanted > there.f_bavail.saturating_mul(there.f_frsize) {
        // Checked first, before the disk is full for every program.
        return Err(io::ErrorKind::StorageFull.into());
    }
    let root = dir.join("site");
    fs::create_dir(&root)?;
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755))?;
    for (index, &page) in pages.iter().enumerate() {
        let name =
            if index == 0 { "index.html".to_owned() } else { format!("page-{}.html", page.0) };
        let file = root.join(name);
        write_page(&file, page)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
    }
    Ok(root)
}

/// Puts a CGI program into a site: it sleeps and then answers with a line ([`slept`]). Returns its path in URLs, as
/// in [`record::Plan::target`].
///
/// # Errors
/// The site is full or may not be written to.
pub fn sleeper(docroot: &Path, sleep: Nanos) -> io::Result<String> {
    let open = fs::Permissions::from_mode(0o755);
    let dir = docroot.join("cgi-bin");
    fs::create_dir_all(&dir)?;
    fs::set_permissions(&dir, open.clone())?;
    let file = dir.join(format!("sleep-{sleep}"));
    let seconds = sleep.as_secs_f64();
    let text = format!(
        "#!/bin/sh\nsleep {seconds}\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nprintf '%s\\n' '{}'\n",
        slept(sleep).trim_end()
    );
    fs::write(&file, text)?;
    fs::set_permissions(&file, open)?;
    Ok(format!("/cgi-bin/sleep-{sleep}"))
}

/// The answer of a program that slept this long. A server that does not run the program sends its source instead.
pub fn slept(sleep: Nanos) -> String {
    format!("slept {} s\n", sleep.as_secs_f64())
}

/// HTML if there is room for it; a repeated line, so that it compresses like text. Written in pieces, because a page
/// may be larger than the memory.
fn write_page(path: &Path, size: Bytes) -> io::Result<()> {
    const HEAD: &[u8] = b"<!doctype html><title>joust</title>\n";
    const LINE: &[u8] = b"<p>The quick brown fox jumps over the lazy dog, 0123456789.</p>\n";
    const LINES: usize = 1024;
    let (mut file, lines) = (File::create(path)?, LINE.repeat(LINES));
    let mut left = size.0;
    for piece in std::iter::once(HEAD).chain(std::iter::repeat(lines.as_slice())) {
        let part = left.min(piece.len() as u64);
        file.write_all(&piece[..part as usize])?;
        left -= part;
        if left == 0 {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_the_manual_makes_the_same_page() {
        let manual = include_str!("../../../docs/adding-a-server.md");
        let command = manual.split("```sh\n").find(|part| part.starts_with("{ echo")).unwrap();
        let command = command.split("```").next().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut shell = std::process::Command::new("sh");
        let ended = shell.arg("-c").arg(command).current_dir(&dir).status().unwrap();
        assert!(ended.success());
        let root = site(dir.path(), &[Bytes(3361)]).unwrap();
        let made = fs::read(dir.path().join("index.html")).unwrap();
        assert_eq!(made, fs::read(root.join("index.html")).unwrap());
    }

    #[test]
    fn a_site_that_the_disk_cannot_hold_is_refused_before_it_is_filled() {
        let dir = tempfile::tempdir().unwrap();
        let error = site(dir.path(), &[Bytes(10), Bytes(u64::MAX / 2)]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }

    #[test]
    fn a_page_has_exactly_the_bytes_that_were_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("page");
        for size in [0, 1, 36, 37, 3361, 100_000, 65_573] {
            write_page(&page, Bytes(size)).unwrap();
            assert_eq!(fs::metadata(&page).unwrap().len(), size);
        }
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.starts_with("<!doctype html>") && text.ends_with("</p>\n<"), "{text}");
    }

    #[test]
    fn a_program_lies_where_the_plan_asks_for_it_and_prints_its_line() {
        use record::{Cell, Contender, Plan, Workload};
        let sleep = Nanos::from_millis(1);
        let work = Workload { sleep: Some(sleep), ..Workload::default() };
        let plan = Plan {
            contenders: vec![Contender::default()],
            cells: vec![Cell::only(work)],
            ..Plan::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let target = sleeper(dir.path(), sleep).unwrap();
        assert_eq!((target.as_str(), plan.sleeps()), (plan.target(0, 0).as_str(), vec![sleep]));
        let file = format!("{}{target}", dir.path().display());
        let printed = std::process::Command::new(file).output().unwrap().stdout;
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(printed, format!("Content-Type: text/plain\r\n\r\n{}", slept(sleep)));
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
    fn a_folder_that_was_never_locked_is_swept_when_it_is_old() {
        let made = |changed: std::time::SystemTime| {
            let dir = tempfile::Builder::new().prefix(SCRATCH_PREFIX).tempdir_in(SCRATCH_ROOT);
            let dir = dir.unwrap();
            File::open(dir.path()).unwrap().set_modified(changed).unwrap();
            dir
        };
        let now = std::time::SystemTime::now();
        let (young, old) = (made(now), made(now - Duration::from_secs(3600)));
        sweep();
        assert!(young.path().exists() && !old.path().exists());
    }

    #[test]
    fn a_scratch_folder_is_swept_only_when_its_process_is_gone() {
        let kept = scratch().unwrap();
        let left = scratch().unwrap();
        let abandoned = left.path().to_owned();
        fs::create_dir(abandoned.join("nginx-x")).unwrap();
        // The state that a killed process leaves: the folder stays, the lock does not.
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
