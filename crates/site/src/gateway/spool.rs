//! The body of a request, collected before anything is started for it. Owns where it lies: in memory up to a
//! bound, then in a file without a name. Start reading at [`Spool::push`].

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

/// A body.
#[derive(Debug, Default)]
pub(super) struct Spool {
    /// All of it, while there is no file.
    memory: Vec<u8>,
    file: Option<File>,
    len: u64,
}

impl Spool {
    /// Bytes of it.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Adds bytes. Past `memory_max` all of it moves to a file in `directory`. The file has no name there, so it
    /// disappears with its last descriptor, whatever happens.
    ///
    /// # Errors
    /// Those of the file system, such as ENOSPC.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        memory_max: u64,
        directory: &Path,
    ) -> io::Result<()> {
        self.len += bytes.len() as u64;
        if self.file.is_none() && self.len > memory_max {
            let mut file = nameless(directory)?;
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => {
                self.memory.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// A file to read it from, from its beginning; `None` if it is empty.
    ///
    /// # Errors
    /// EMFILE and the like.
    pub(super) fn as_input(&mut self) -> io::Result<Option<OwnedFd>> {
        if self.len == 0 {
            return Ok(None);
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let mut file = in_memory()?;
                file.write_all(&std::mem::take(&mut self.memory))?;
                file
            }
        };
        file.rewind()?;
        Ok(Some(file.into()))
    }

    /// Bytes from `at` on, at most as many as there is room for; none at its end.
    ///
    /// # Errors
    /// EIO and the like.
    pub(super) fn read_at(&self, at: u64, room: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            Some(file) => Ok(rustix::io::pread(file.as_fd(), room, at)?),
            None => {
                let rest = &self.memory[usize::try_from(at).unwrap_or(usize::MAX)..];
                let count = rest.len().min(room.len());
                room[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }
}

fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(fd) => Ok(fd.into()),
        // The file system or the kernel has no unnamed files: take memory, which at least can be swapped out.
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => in_memory(),
        Err(error) => Err(error.into()),
    }
}

fn in_memory() -> io::Result<File> {
    Ok(rustix::fs::memfd_create(c"request body", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_body_is_the_same_from_memory_and_from_a_file_without_a_name() {
        let directory = tempfile::tempdir().unwrap();
        for memory_max in [0, 10, 1000] {
            let mut spool = Spool::default();
            for part in [&b"0123456"[..], b"", b"789abcdef"] {
                spool.push(part, memory_max, directory.path()).unwrap();
            }
            let mut room = [0; 5];
            assert_eq!(spool.read_at(9, &mut room).unwrap(), 5);
            assert_eq!(&room, b"9abcd");
            assert_eq!(spool.read_at(16, &mut room).unwrap(), 0);
            assert_eq!(spool.len(), 16);
            let mut text = String::new();
            let mut file = File::from(spool.as_input().unwrap().unwrap());
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "0123456789abcdef", "{memory_max}");
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
        assert!(Spool::default().as_input().unwrap().is_none());
    }
}
