//! Files beneath a directory. They are opened through its descriptor, so that neither `..` nor a symbolic link leads
//! out of it (openat2 with RESOLVE_BENEATH), and described by the opened descriptor, so that the file that was checked
//! is the file that is sent. Start reading at [`Root::open`].

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// How often a lookup is repeated after a race with a rename or mount (EAGAIN, openat2(2)).
const RACES_MAX: u32 = 8;

/// A directory, and everything beneath it.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
}

/// An opened file, with the facts of its descriptor.
#[derive(Debug)]
pub struct Opened {
    /// Open for reading; never blocks, close-on-exec.
    pub fd: OwnedFd,
    /// What fstat said right after opening.
    pub facts: Facts,
}

/// The facts that fstat reports about a file. If two are equal for one path, the content is the same, as far as the
/// file system's clock can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The type of file.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// Last modification, whole seconds since 1970 (0 if it is earlier).
    pub modified_s: u64,
    /// The fraction of that second, in nanoseconds.
    pub modified_ns: u32,
    /// Number of the inode.
    pub inode: u64,
    /// Device that holds it.
    pub device: u64,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe, socket or device: nothing to serve.
    Other,
}

impl Root {
    /// Opens the directory at `path`, which may itself be reached through symbolic links.
    ///
    /// # Errors
    /// ENOENT, ENOTDIR, EACCES; ENOSYS or EPERM if the kernel (before Linux 5.6) or its sandbox has no openat2: this is
    /// detected here, not at the first request.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Self { fd: fs::open(path, flags, Mode::empty())? };
        root.open_beneath(c".")?;
        Ok(root)
    }

    /// Opens `path`, relative and without a leading slash, for reading. A trailing slash requires a directory.
    ///
    /// # Errors
    /// EXDEV where the path or a symbolic link in it would leave the directory; ENOENT, ENOTDIR,
    /// EACCES, ELOOP, ENAMETOOLONG, EMFILE and the like.
    pub fn open_beneath(&self, path: &CStr) -> io::Result<Opened> {
        // Without NONBLOCK, opening a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.open_with(path, flags)
    }

    fn open_with(&self, path: &CStr, flags: OFlags) -> io::Result<Opened> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut races = 0;
        let fd = loop {
            match fs::openat2(&self.fd, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if races < RACES_MAX => races += 1,
                result => break result?,
            }
        };
        let facts = Facts::of(&fd)?;
        Ok(Opened { fd, facts })
    }
}

impl Root {
    /// As [`Root::open_beneath`], but only for looking up facts and further paths (O_PATH): it cannot be read.
    ///
    /// # Errors
    /// As there, except what reading needs.
    pub fn look_beneath(&self, path: &CStr) -> io::Result<Opened> {
        self.open_with(path, OFlags::PATH | OFlags::CLOEXEC)
    }
}

impl Opened {
    /// Whether anybody may run it as a program.
    pub fn is_executable(&self) -> bool {
        fs::fstat(&self.fd).is_ok_and(|stat| stat.st_mode & 0o111 != 0)
    }

    /// Reads the whole file, at most `facts.size` bytes, into memory; fewer if it has shrunk.
    ///
    /// # Errors
    /// EIO and the like.
    pub fn read_all(&self) -> io::Result<Vec<u8>> {
        let mut content = vec![0; usize::try_from(self.facts.size).unwrap_or(usize::MAX)];
        let mut filled = 0;
        while filled < content.len() {
            match rustix::io::pread(&self.fd, &mut content[filled..], filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        content.truncate(filled);
        Ok(content)
    }

    /// Calls `each` with name and facts of every entry of this directory except `.` and `..`, in the order of the file
    /// system, until it returns false. A symbolic link is described by its target if that is in the same directory
    /// tree, and is otherwise left out.
    ///
    /// # Errors
    /// ENOTDIR where it is none; EIO and the like.
    pub fn each_entry(&self, mut each: impl FnMut(&CStr, Facts) -> bool) -> io::Result<()> {
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            // An entry that has vanished meanwhile, or a dangling link, is left out.
            let Ok(facts) = self.entry_facts(name) else { continue };
            if !each(name, facts) {
                break;
            }
        }
        Ok(())
    }

    fn entry_facts(&self, name: &CStr) -> io::Result<Facts> {
        let stat = fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Ok(Facts::from_stat(&stat));
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        Facts::of(&fs::openat2(&self.fd, name, flags, Mode::empty(), resolve)?)
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Facts {
    /// The descriptor's current facts.
    ///
    /// # Errors
    /// None in practice but EIO.
    pub fn of(fd: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_stat(&fs::fstat(fd)?))
    }

    fn from_stat(stat: &Stat) -> Self {
        Self {
            kind: match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => FileKind::File,
                FileType::Directory => FileKind::Directory,
                _ => FileKind::Other,
            },
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified_s: u64::try_from(stat.st_mtime).unwrap_or(0),
            modified_ns: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
            inode: stat.st_ino,
            device: stat.st_dev,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn site() -> (tempfile::TempDir, Root) {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("site");
        std::fs::create_dir_all(inner.join("sub")).unwrap();
        std::fs::write(outer.path().join("secret"), "secret").unwrap();
        std::fs::write(inner.join("page"), "hello").unwrap();
        symlink("page", inner.join("inside")).unwrap();
        symlink("../secret", inner.join("outside")).unwrap();
        symlink("/etc/passwd", inner.join("absolute")).unwrap();
        let root = Root::open(&inner).unwrap();
        (outer, root)
    }

    #[test]
    fn what_leads_out_of_the_root_is_refused() {
        let (_outer, root) = site();
        for path in [c"../secret", c"outside", c"absolute", c"sub/../../secret", c"/etc/passwd"] {
            let error = root.open_beneath(path).expect_err(path.to_str().unwrap());
            assert_eq!(error.raw_os_error(), Some(Errno::XDEV.raw_os_error()), "{path:?}: {error}");
        }
    }

    #[test]
    fn what_lies_inside_is_opened_and_described() {
        let (_outer, root) = site();
        for path in [c"page", c"inside", c"sub/../page"] {
            let opened = root.open_beneath(path).unwrap();
            assert_eq!((opened.facts.kind, opened.facts.size), (FileKind::File, 5), "{path:?}");
            assert_eq!(opened.read_all().unwrap(), b"hello");
        }
        assert_eq!(root.open_beneath(c"sub").unwrap().facts.kind, FileKind::Directory);
        assert!(root.open_beneath(c"page/").is_err(), "a trailing slash demands a directory");
    }

    #[test]
    fn entries_that_lead_out_are_not_listed() {
        let (_outer, root) = site();
        let mut names = Vec::new();
        let directory = root.open_beneath(c".").unwrap();
        directory
            .each_entry(|name, facts| {
                names.push((name.to_str().unwrap().to_owned(), facts.kind));
                true
            })
            .unwrap();
        names.sort_by(|left, right| left.0.cmp(&right.0));
        let expected =
            [("inside", FileKind::File), ("page", FileKind::File), ("sub", FileKind::Directory)];
        assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }

    #[test]
    fn a_pipe_without_a_writer_does_not_block() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("pipe");
        fs::mknodat(fs::CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let opened = Root::open(outer.path()).unwrap().open_beneath(c"pipe").unwrap();
        assert_eq!(opened.facts.kind, FileKind::Other);
    }

    #[test]
    fn a_missing_directory_is_an_error_at_once() {
        assert!(Root::open(Path::new("/nonexistent/site")).is_err());
    }
}
