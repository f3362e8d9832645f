//! The file in which an agent keeps its messages until the controller says that it has them all. Owns its format.
//! Start reading at [`Spool`].
//!
//! A broker may lose what it has acknowledged (it writes to disk every other minute), so this file is what counts. Each
//! message has its length and its checksum before it; an end that a crash cut off is dropped, and said. A message
//! that cannot be written is kept nowhere else: the caller knows, and says it too.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

/// Length and checksum before each message.
const HEAD: usize = 8;

/// A spool that is open for writing.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// Where the last whole message ends.
    length: u64,
}

/// What a spool holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spooled {
    /// The messages, in the order in which they were written.
    pub messages: Vec<Vec<u8>>,
    /// Bytes at the end that are no whole message.
    pub dropped: u64,
}

impl Spool {
    /// A new spool.
    ///
    /// # Errors
    /// The file exists, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Self { file, length: 0 })
    }

    /// Appends one message, so that it outlives this process.
    ///
    /// # Errors
    /// The disk is full or failed. What is in the spool stays whole: the next message takes the place of a part.
    pub fn append(&mut self, message: &[u8]) -> io::Result<()> {
        let length = u32::try_from(message.len()).ok().filter(|length| *length > 0);
        let length = length.ok_or(io::ErrorKind::InvalidInput)?;
        let mut whole = Vec::with_capacity(HEAD + message.len());
        whole.extend_from_slice(&length.to_le_bytes());
        whole.extend_from_slice(&crc32fast::hash(message).to_le_bytes());
        whole.extend_from_slice(message);
        self.file.write_all(&whole).inspect_err(|_| {
            // A part may have been written. If it cannot be cut off, its checksum tells.
            self.file.set_len(self.length).ok();
            self.file.seek(io::SeekFrom::Start(self.length)).ok();
        })?;
        self.length += whole.len() as u64;
        Ok(())
    }

    /// Waits until all of it is on the disk.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Reads a spool, of this process or one that was killed.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> io::Result<Spooled> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let mut spooled = Spooled::default();
    let mut rest = bytes.as_slice();
    while let Some((message, after)) = first(rest) {
        spooled.messages.push(message.to_vec());
        rest = after;
    }
    spooled.dropped = rest.len() as u64;
    Ok(spooled)
}

fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    // The checksum of nothing is 0: zeros that a power failure left are no messages.
    if length == 0 {
        return None;
    }
    let (message, rest) = rest.split_at_checked(length)?;
    (crc32fast::hash(message) == u32::from_le_bytes(*checksum)).then_some((message, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_cut_end_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a-1");
        let mut spool = Spool::create(&path).unwrap();
        let messages = [&b"one"[..], b"two", &[7; 5_000]];
        messages.iter().for_each(|message| spool.append(message).unwrap());
        spool.sync().unwrap();
        let spooled = read(&path).unwrap();
        assert_eq!(
            (spooled.messages.as_slice(), spooled.dropped),
            (&messages.map(Vec::from)[..], 0)
        );
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..40 {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let spooled = read(&path).unwrap();
            assert_eq!(spooled.messages.len(), 2);
            assert_eq!(spooled.dropped as usize, HEAD + 5_000 - cut);
        }
        let zeros = [whole.as_slice(), &[0; 4_096]].concat();
        std::fs::write(&path, zeros).unwrap();
        let spooled = read(&path).unwrap();
        assert_eq!((spooled.messages.len(), spooled.dropped), (3, 4_096), "of a power failure");
        assert!(spool.append(b"").is_err());
        assert!(Spool::create(&path).is_err(), "never over another's");
    }

    #[test]
    fn a_full_disk_is_an_error_and_leaves_the_spool_whole() {
        // The kernel's own full disk.
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut spool = Spool { file, length: 0 };
        let error = spool.append(b"one").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(spool.length, 0);
    }
}
