//! Files that many threads and processes append to: opened so that each write lands whole at the end, and
//! exchanged for another under the same number, which is how a log is rotated. Owns the flags of these
//! calls. Start reading at [`open`].

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, CWD, OFlags};
use rustix::io::Errno;

/// Bytes that a pipe or a terminal takes in one piece (PIPE_BUF of pipe(7)).
pub const PIPE_WRITE_MAX: usize = 4096;

/// Opens a file for appending (O_APPEND: the kernel holds the inode's lock from finding the end to the
/// last byte of one write), and makes it where there is none.
///
/// Never waits: not for the reader of a named pipe either, which may never come (fifo(7)).
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
    // What is written waits for room again.
    rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Makes the file where there is none, for a user of that number or for this process' own. One that is
/// there is nobody else's business: it stays as it is, and so does what a symbolic link leads to.
///
/// # Errors
/// As [`open`]; EPERM where this process may not give files away.
pub fn make(path: &Path, owner: Option<u32>) -> io::Result<()> {
    match File::options().append(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => fchown(made?, owner, None),
    }
}

/// How long a line without a newline has to stay the last before it counts as torn: far longer than a
/// write to a file takes.
const TORN_FOR: Duration = Duration::from_millis(20);

/// Whether the last line of the file that lies there has no newline: a write was cut, by a full disk or
/// the end of whoever wrote. What is no file on a disk, or cannot be read, has none.
///
/// Somebody else may be in the midst of a write, whose end is not there yet: such a file is looked at again
/// after 20 ms.
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
    // Asked first: opening a pipe would wait for its other side.
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

/// Whether [`open`] would do, without making the file or waiting for the reader of a pipe.
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

/// Whether a write is taken in pieces of [`PIPE_WRITE_MAX`] bytes: a pipe, a terminal, a socket.
///
/// # Errors
/// None in practice.
pub fn takes_pieces(file: &File) -> io::Result<bool> {
    let kind = file.metadata()?.file_type();
    Ok(kind.is_fifo() || kind.is_char_device() || kind.is_socket())
}

/// Whether a write of one piece would be taken without waiting. A file on a disk always says so.
pub fn takes_now(file: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&file, PollFlags::OUT)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Has the descriptor of `file` mean what `by` was opened as, in this process. A write that is under
/// way in another thread ends where it began; the next one goes to the new file (dup3(2)).
///
/// # Errors
/// None in practice.
pub fn replace(file: &File, by: File) -> io::Result<()> {
    // SAFETY: both descriptors are open while their files are borrowed and held. The number of `file`
    // stays open and stays owned by `file`, so nobody else's descriptor is closed.
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
