//! Owns finding and ending what a killed joust left running: each server's folder names the processes that were
//! started in it, so that the next run finds them.
//!
//! A server ends with its joust, unless the guardian of [`sys::child`] is killed with it or before it. Only our own
//! processes are ended. A process is ours if its number and start tick match the note, if it descends from that
//! process, or if it is in the cgroup that joust made and named for it. Init, this process and its ancestors are
//! never ours. A number may be reused between a look and a signal, so signals go through descriptors that were opened
//! before the look (pidfd_open(2)).
//! Start reading at [`note`] and [`end_noted`].

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{cgroup, proc_stat, tree};

/// Identifies one boot of the machine, since which ticks are counted.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// File in the folder of a server: the boot of the machine, the server's number, the tick it started at, and its
/// cgroup if it has one.
const NOTE: &str = ".joust-started";
/// Maximum length of a note: two of the longest paths.
const NOTE_MAX: u64 = 2 * 4096;
/// Time between two looks at killed processes, and the number of looks: 5 s in all.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS_MAX: u32 = 500;
const PID: PidfdFlags = PidfdFlags::empty();

/// What was ended of a killed joust.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EndedRemains {
    /// Processes.
    pub processes: u32,
    /// Cgroups.
    pub cgroups: u32,
}

/// A started process, as noted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Note {
    pid: u32,
    started: u64,
    cgroup: Option<PathBuf>,
}

/// Notes a process that was just started in `dir`.
///
/// # Errors
/// The disk is full; the process has ended.
pub(crate) fn note(dir: &Path, pid: u32, cgroup: Option<&Path>) -> io::Result<()> {
    let gone = || io::Error::new(io::ErrorKind::NotFound, "the process has ended");
    let started = proc_stat::stat(pid).ok_or_else(gone)?.started;
    let cgroup = cgroup.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    // In one write: a partial line could name another process.
    let path = dir.join(NOTE);
    let unfinished = path.with_extension("new");
    let boot = boot();
    // The folder may belong to the server's account, which could have replaced the file by a link.
    let mut file = File::options().write(true).create_new(true).open(&unfinished)?;
    file.write_all(format!("{boot} {pid} {started} {cgroup}\n").as_bytes())?;
    fs::rename(unfinished, path)
}

/// Ends the processes noted in the folders below `scratch`, whose joust is gone.
pub(crate) fn end_noted(scratch: &Path) -> EndedRemains {
    let mut ended = EndedRemains::default();
    for dir in fs::read_dir(scratch).into_iter().flatten().flatten() {
        let text = written_by_us(&dir.path().join(NOTE)).unwrap_or_default();
        if let Some(note) = read(&text, &boot()) {
            end(&note, &mut ended);
        }
    }
    ended
}

/// The text of a note; `None` if another account wrote it, which a server's account could do in its folder.
fn written_by_us(path: &Path) -> Option<String> {
    // Opened before it is checked, and never through a link, so that the checked file is the one that is read.
    // Opening a pipe would block.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let found = file.metadata().ok()?;
    let is_ours = found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    let mut text = String::new();
    file.take(NOTE_MAX).read_to_string(&mut text).ok().filter(|_| is_ours)?;
    Some(text)
}

fn boot() -> String {
    fs::read_to_string(BOOT).unwrap_or_default().trim().to_owned()
}

/// `None` if it was not written to its end, or was written before the last boot.
fn read(text: &str, boot: &str) -> Option<Note> {
    let mut words = text.strip_suffix('\n')?.splitn(4, ' ');
    if words.next()? != boot {
        return None;
    }
    let (pid, started) = (words.next()?.parse::<u32>().ok()?, words.next()?.parse().ok()?);
    if pid <= 1 {
        // Every process descends from init.
        return None;
    }
    let cgroup = words.next().filter(|path| cgroup::is_ours(Path::new(path))).map(PathBuf::from);
    Some(Note { pid, started, cgroup })
}

fn end(note: &Note, ended: &mut EndedRemains) {
    let never = ourselves();
    let mut seen = BTreeSet::new();
    for _ in 0..LOOKS_MAX {
        // Only the second look counts. A process in it is the one that was opened before, or that one has ended and
        // the signal reaches no process.
        let opened: Vec<(u32, OwnedFd)> = family(note, &never)
            .into_iter()
            .filter_map(|pid| Some((pid, pidfd_open(Pid::from_raw(pid as i32)?, PID).ok()?)))
            .collect();
        let left = family(note, &never);
        if left.is_empty() {
            break;
        }
        for (pid, process) in opened.into_iter().filter(|(pid, _)| left.contains(pid)) {
            // A process that has ended meanwhile is fine. If we may not end one, the next run tries again.
            if pidfd_send_signal(&process, Signal::KILL).is_ok() {
                seen.insert(pid);
            }
        }
        std::thread::sleep(LOOK);
    }
    ended.processes += seen.len() as u32;
    if let Some(dir) = &note.cgroup {
        ended.cgroups += u32::from(fs::remove_dir(dir).is_ok());
    }
}

/// Processes of a note that still exist.
fn family(note: &Note, never: &BTreeSet<u32>) -> BTreeSet<u32> {
    let in_cgroup = note.cgroup.as_ref().and_then(|dir| {
        let text = fs::read_to_string(dir.join("cgroup.procs")).ok()?;
        Some(text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>())
    });
    let is_it = proc_stat::stat(note.pid).is_some_and(|stat| stat.started == note.started);
    let descendants = if is_it { tree::descendants(note.pid) } else { Vec::new() };
    let all = in_cgroup.into_iter().flatten().chain(descendants);
    // A cgroup shows processes of another PID namespace as 0.
    all.filter(|pid| *pid > 1 && !never.contains(pid)).collect()
}

/// This process and its ancestors.
fn ourselves() -> BTreeSet<u32> {
    let mut chain = BTreeSet::new();
    let mut pid = std::process::id();
    while pid > 0 && chain.insert(pid) {
        pid = proc_stat::stat(pid).map_or(0, |stat| stat.parent);
    }
    chain
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process in a group of its own, as a server is.
    fn family_of_two() -> Child {
        use std::os::unix::process::CommandExt as _;
        let script = "trap '' TERM; sleep 600 & wait; sleep 600";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        while tree::descendants(child.id()).len() < 2 {
            std::thread::yield_now();
        }
        child
    }

    fn folder(scratch: &Path, line: &str) {
        let dir = tempfile::Builder::new().tempdir_in(scratch).unwrap().keep();
        fs::write(dir.join(NOTE), line).unwrap();
    }

    #[test]
    fn what_was_written_down_is_ended_with_its_children() {
        let scratch = tempfile::tempdir().unwrap();
        let mut child = family_of_two();
        let dir = scratch.path().join("nginx-x");
        fs::create_dir(&dir).unwrap();
        note(&dir, child.id(), None).unwrap();
        let ended = end_noted(scratch.path());
        assert!(ended.processes >= 2, "{ended:?}");
        assert!(!child.wait().unwrap().success());
        assert_eq!(
            end_noted(scratch.path()),
            EndedRemains::default(),
            "there is nothing left to end"
        );
    }

    #[test]
    fn a_stranger_is_never_ended() {
        let scratch = tempfile::tempdir().unwrap();
        let mut child = family_of_two();
        let (pid, started) = (child.id(), proc_stat::stat(child.id()).unwrap().started);
        let boot = boot();
        // Another tick, another boot, a truncated line, and a cgroup that is not ours.
        folder(scratch.path(), &format!("{boot} {pid} {} \n", started + 1));
        folder(scratch.path(), &format!("other-boot {pid} {started} \n"));
        folder(scratch.path(), &format!("{boot} {pid} {started}"));
        folder(scratch.path(), &format!("{boot} {pid} 0 /sys/fs/cgroup\n"));
        folder(scratch.path(), "");
        assert_eq!(end_noted(scratch.path()), EndedRemains::default());
        assert_eq!(child.try_wait().unwrap(), None);
        for pid in tree::descendants(pid) {
            sys::child::send(pid, sys::child::Signal::SIGKILL).unwrap();
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_note_that_another_wrote_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let (note, link) = (dir.path().join(NOTE), dir.path().join("link"));
        fs::write(&note, "boot 2 3 \n").unwrap();
        std::os::unix::fs::symlink(&note, &link).unwrap();
        assert_eq!(written_by_us(&note).as_deref(), Some("boot 2 3 \n"));
        assert_eq!(written_by_us(&link), None);
        assert_eq!(written_by_us(dir.path()), None);
        // If we may give it away, as root: to the account `nobody`.
        if std::os::unix::fs::chown(&note, Some(65_534), None).is_ok() {
            assert_eq!(written_by_us(&note), None);
        }
    }

    #[test]
    fn a_note_is_not_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("of-someone-else");
        fs::write(&target, "untouched").unwrap();
        let unfinished = dir.path().join(NOTE).with_extension("new");
        std::os::unix::fs::symlink(&target, unfinished).unwrap();
        assert!(note(dir.path(), std::process::id(), None).is_err());
        assert_eq!(fs::read_to_string(target).unwrap(), "untouched");
    }

    #[test]
    fn a_note_of_our_own_ancestor_ends_neither_it_nor_us() {
        let parent = proc_stat::stat(std::process::id()).unwrap().parent;
        let started = proc_stat::stat(parent).unwrap().started;
        let family = family(&Note { pid: parent, started, cgroup: None }, &ourselves());
        assert!(!family.contains(&parent) && !family.contains(&std::process::id()), "{family:?}");
    }

    #[test]
    fn a_number_that_means_many_is_no_note() {
        for text in ["boot 1 9 \n", "boot 0 0 \n", "boot -1 0 \n", "boot 4294967296 0 \n"] {
            assert_eq!(read(text, "boot"), None, "{text}");
        }
        let whole = Note { pid: 2, started: 3, cgroup: None };
        assert_eq!(read("boot 2 3 \n", "boot"), Some(whole));
    }
}
