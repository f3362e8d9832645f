//! Files that many threads and processes append to. They are opened so that each write goes to the end as a whole, and
//! can be replaced under the same descriptor, which is how a log is rotated. Owns the flags of these calls. Start
//! reading at [`open`].

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, CWD, OFlags};
use rustix::io::Errno;

/// Largest write that a pipe or a terminal takes atomically (PIPE_BUF of pipe(7)).
pub const PIPE_WRITE_MAX: usize = 4096;

/// Opens a file for appending, and creates it if it is missing. With O_APPEND the kernel holds the inode's lock from
/// finding the end to the last byte of one write.
///
/// Never waits, not even for the reader of a named pipe, which may never come (fifo(7)).
///
/// # Errors
/// ENOENT (its directory), EACCES, EISDIR, EROFS, ENOSPC; ENXIO (a pipe that nobody reads).
pub fn open(path: &Path) -> io::Result<File> {
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().append(true).create(true).custom_flags(nonblock).open(path);
    let file = file.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => {
            io::Error::new(error.kind(), "nobody reads this pipe: start its reader first")
        }
        _ => error,
    })?;
    // From here on writes wait for room again.
    rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Creates the file if it is missing, owned by the given user or by that of this process. An existing file is not ours
/// to change: it stays as it is, and so does the target of a symbolic link.
///
/// # Errors
/// As [`open`]; EPERM if this process may not change the owner of a file.
pub fn make(path: &Path, owner: Option<u32>) -> io::Result<()> {
    match File::options().append(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => fchown(made?, owner, None),
    }
}

/// How long a last line without a newline must stay unchanged before it counts as torn: far longer than a write to a
/// file takes.
const TORN_FOR: Duration = Duration::from_millis(20);

/// Whether the last line of the file at `path` has no newline: a full disk or the end of the writer cut off a write.
/// False for anything that is not a file on a disk, or cannot be read.
///
/// Another process may be in the middle of a write, so such a file is checked again after 20 ms.
pub fn ends_torn(path: &Path) -> bool {
    let length = || path.metadata().map_or(0, |facts| facts.len());
    let before = length();
    if !has_torn_end(path) {
        return false;
    }
    std::thread::sleep(TORN_FOR);
    length() == before && has_torn_end(path)
}

fn has_torn_end(path: &Path) -> bool {
    // Checked first: opening a pipe would wait for its other side.
    if !path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() > 0) {
        return false;
    }
    let mut last = [b'\n'];
    let read = File::open(path).and_then(|file| {
        let end = file.metadata()?.len();
        file.read_at(&mut last, end.saturating_sub(1))
    });
    read.is_ok() && last != [b'\n']
}

/// Whether [`open`] would succeed, without creating the file or waiting for the reader of a pipe.
///
/// # Errors
/// As [`open`].
pub fn check(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT.into());
    }
    let writable =
        |path: &Path| rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS);
    match writable(path) {
        Err(Errno::NOENT) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok(writable(parent.unwrap_or(Path::new(".")))?)
        }
        other => Ok(other?),
    }
}

/// Whether a write may be split after [`PIPE_WRITE_MAX`] bytes: a pipe, a terminal, a socket.
///
/// # Errors
/// None in practice.
pub fn takes_pieces(file: &File) -> io::Result<bool> {
    let kind = file.metadata()?.file_type();
    Ok(kind.is_fifo() || kind.is_char_device() || kind.is_socket())
}

/// Whether an atomic write would be taken without waiting. A file on a disk always says so.
pub fn takes_now(file: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&file, PollFlags::OUT)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Makes the descriptor of `file` refer to what `by` was opened as, in this process. A write in progress in another
/// thread ends in the old file; the next one goes to the new file (dup3(2)).
///
/// # Errors
/// None in practice.
pub fn replace(file: &File, by: File) -> io::Result<()> {
    // SAFETY: both descriptors are open while their files are borrowed and held. The number of `file` stays open and
    // owned by `file`, so no other descriptor is closed.
    let result = unsafe { libc::dup3(by.as_raw_fd(), file.as_raw_fd(), libc::O_CLOEXEC) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_replaced_file_takes_what_is_written_from_then_on() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        let mut file = open(&first).unwrap();
        file.write_all(b"one").unwrap();
        replace(&file, open(&second).unwrap()).unwrap();
        file.write_all(b"two").unwrap();
        assert_eq!(std::fs::read(&first).unwrap(), b"one");
        assert_eq!(std::fs::read(&second).unwrap(), b"two");
        let flags = rustix::io::fcntl_getfd(&file).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_named_pipe_is_opened_without_waiting_and_then_written_to_in_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let error = open(&path).unwrap_err();
        assert!(error.to_string().contains("nobody reads"), "{error}");
        assert!(check(&path).is_ok(), "its reader may come");
        let _reader = File::options().read(true).write(true).open(&path).unwrap();
        let writer = open(&path).unwrap();
        let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
        assert!(flags.contains(OFlags::APPEND) && !flags.contains(OFlags::NONBLOCK));
    }

    #[test]
    fn a_full_pipe_takes_nothing_now_and_an_empty_one_does() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        assert!(takes_pieces(&file).unwrap() && takes_now(&file));
        rustix::io::ioctl_fionbio(&file, true).unwrap();
        while (&file).write(&[0; PIPE_WRITE_MAX]).is_ok() {}
        assert!(!takes_now(&file));
    }
}
