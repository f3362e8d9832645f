//! One content and what a head says of it. Owns its validators and media type. Start reading at
//! [`Representation`].
//!
//! The field lines that are the same in every answer are rendered once, when the file is read.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use sys::file::{Facts, Opened};

use crate::coding::Coding;

const WRITES: &str = "a String takes every write";

/// How often a file that changes while it is read is read again; after that it is sent from the file.
const READS_MAX: u32 = 3;

/// A content, at the time it was found.
#[derive(Debug)]
pub struct Representation {
    stored: Stored,
    size: u64,
    about: About,
    validators: Option<Validators>,
    /// `Last-Modified`, `ETag` and `Accept-Ranges`, each with its CRLF, none without validators; and
    /// `Vary`.
    fields: Box<[u8]>,
    /// `fields`, and `Content-Length`, `Content-Type` and `Content-Encoding` of the whole.
    fields_of_whole: Box<[u8]>,
    /// Metadata of the file; `None` if it comes from no file.
    facts: Option<Facts>,
    /// The latest [`Prepared`], for as long as a connection holds it.
    prepared: Mutex<Weak<Prepared>>,
}

/// What a head says of a content, besides its size and validators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    /// Media type.
    pub(crate) content_type: Cow<'static, str>,
    /// Its coding; `None`: it is not encoded.
    pub(crate) coding: Option<Coding>,
    /// The field of a request that could have selected another content; empty: none could.
    pub(crate) vary: &'static str,
}

/// `Vary` of content that exists in several codings.
pub(crate) const ACCEPT_ENCODING: &str = "Accept-Encoding";

/// An answer with the whole content, head and body in one piece, for one second. All connections that send it share it.
/// A waiting connection holds at most one, so it costs an idle connection no more than the buffer that it would have
/// been copied to.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Since 1970.
    second: u64,
    /// The rules that changed its head.
    edits: Box<[u16]>,
    bytes: Box<[u8]>,
}

impl Prepared {
    /// Whether it is for that second, since 1970, and was changed by those rules.
    pub(crate) fn is_of(&self, second: u64, edits: &[u16]) -> bool {
        // To compare two empty slices would be a call with pointers to no memory. The masked load with which that call
        // begins costs 150 ns there.
        let is_unchanged = self.edits.is_empty() && edits.is_empty();
        self.second == second && (is_unchanged || *self.edits == *edits)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Where the bytes are.
#[derive(Debug)]
pub enum Stored {
    /// All of them.
    Memory(Box<[u8]>),
    /// In an open file.
    File(OwnedFd),
}

/// What distinguishes one content of a path from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    /// Strong, with its quotes.
    pub etag: String,
    /// Seconds since 1970.
    pub modified_s: u64,
}

impl Representation {
    /// `size` bytes of text, for every path.
    pub(crate) fn fixed(size: u64, modified_s: u64) -> Self {
        const LINE: &[u8; 64] =
            b"joust serves these bytes from memory: the ceiling of a server..\n";
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let body: Vec<u8> = LINE.iter().copied().cycle().take(size).collect();
        let etag = format!("\"{size:x}-fixed\"");
        let validators = Some(Validators { etag, modified_s });
        let stored = Stored::Memory(body.into());
        Self::new(stored, size as u64, About::html(""), validators)
    }

    /// A generated page; it has no validators and no ranges.
    pub(crate) fn page(content: Vec<u8>, about: About) -> Self {
        let size = content.len() as u64;
        Self::new(Stored::Memory(content.into()), size, about, None)
    }

    /// A file that was opened; read into memory if it has at most `in_memory_max` bytes. A modification time after
    /// `now_s` is replaced by that (RFC 9110, 8.8.2.1).
    pub(crate) fn of_file(
        mut opened: Opened,
        about: About,
        in_memory_max: u64,
        now_s: u64,
    ) -> io::Result<Self> {
        let mut content = None;
        for _ in 0..READS_MAX {
            if opened.facts.size > in_memory_max {
                break;
            }
            let read = opened.read_all()?;
            let after = Facts::of(&opened)?;
            if after == opened.facts && read.len() as u64 == after.size {
                content = Some(read);
                break;
            }
            opened.facts = after;
        }
        let facts = opened.facts;
        let stored = match content {
            Some(content) => Stored::Memory(content.into()),
            None => Stored::File(opened.fd),
        };
        let etag = match about.coding {
            None => format!("\"{}\"", tag(&facts)),
            Some(coding) => format!("\"{}-{}\"", tag(&facts), coding.name()),
        };
        let validators = Validators { etag, modified_s: facts.modified_s.min(now_s) };
        Ok(Self { facts: Some(facts), ..Self::new(stored, facts.size, about, Some(validators)) })
    }

    /// The content of `plain`, a file, in a coding at that level. Its tag is a strong one: it contains all that the
    /// bytes depend on.
    pub(crate) fn encoded(plain: &Self, coding: Coding, level: u8, content: Vec<u8>) -> Self {
        let about = About { coding: Some(coding), ..plain.about.clone() };
        let size = content.len() as u64;
        let tag = plain.facts.as_ref().map(tag).unwrap_or_default();
        let validators = plain.validators.as_ref().map(|validators| Validators {
            etag: format!("\"{tag}-{}{level}-{size:x}\"", coding.name()),
            ..*validators
        });
        let stored = Stored::Memory(content.into());
        Self { facts: plain.facts, ..Self::new(stored, size, about, validators) }
    }

    fn new(stored: Stored, size: u64, about: About, validators: Option<Validators>) -> Self {
        let mut fields = String::new();
        if let Some(Validators { etag, modified_s }) = &validators {
            let modified =
                httpdate::HttpDate::from(SystemTime::UNIX_EPOCH + Duration::from_secs(*modified_s));
            write!(fields, "Last-Modified: {modified}\r\nETag: {etag}\r\nAccept-Ranges: bytes\r\n")
                .expect(WRITES);
        }
        if !about.vary.is_empty() {
            write!(fields, "Vary: {}\r\n", about.vary).expect(WRITES);
        }
        let media = &about.content_type;
        let mut whole = format!("{fields}Content-Length: {size}\r\nContent-Type: {media}\r\n");
        if let Some(coding) = about.coding {
            write!(whole, "Content-Encoding: {}\r\n", coding.name()).expect(WRITES);
        }
        Self {
            stored,
            size,
            about,
            validators,
            fields: fields.into_bytes().into(),
            fields_of_whole: whole.into_bytes().into(),
            facts: None,
            prepared: Mutex::default(),
        }
    }

    /// Where the bytes are.
    pub fn stored(&self) -> &Stored {
        &self.stored
    }

    /// Bytes of the whole.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of the content that lie in memory: all of it, or none.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match &self.stored {
            Stored::Memory(content) => content.len() as u64,
            Stored::File(_) => 0,
        }
    }

    /// Media type, as in `Content-Type`.
    pub fn content_type(&self) -> &str {
        &self.about.content_type
    }

    /// What a head says of it, besides size and validators.
    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    /// Its coding; `None`: it is not encoded.
    pub(crate) fn coding(&self) -> Option<Coding> {
        self.about.coding
    }

    /// What conditions are checked against; `None`: there are no validators.
    pub fn validators(&self) -> Option<&Validators> {
        self.validators.as_ref()
    }

    /// `Last-Modified`, `ETag`, `Accept-Ranges` and `Vary`, each with its CRLF.
    pub(crate) fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// `fields`, and `Content-Length`, `Content-Type` and `Content-Encoding` of the whole.
    pub(crate) fn fields_of_whole(&self) -> &[u8] {
        &self.fields_of_whole
    }

    /// The answer that was prepared for that second, if one was and is held by a connection.
    pub(crate) fn prepared(&self, second: u64, edits: &[u16]) -> Option<Arc<Prepared>> {
        self.latest().upgrade().filter(|prepared| prepared.is_of(second, edits))
    }

    /// Makes an answer of that second ready for all connections. `answer` is one to GET, as it was made for a
    /// connection that stays open and without fields about the connection.
    pub(crate) fn prepare(&self, second: u64, edits: &[u16], answer: &[u8]) -> Arc<Prepared> {
        let prepared = Arc::new(Prepared { second, edits: edits.into(), bytes: answer.into() });
        *self.latest() = Arc::downgrade(&prepared);
        prepared
    }

    fn latest(&self) -> MutexGuard<'_, Weak<Prepared>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Metadata of its file.
    pub(crate) fn facts(&self) -> Option<&Facts> {
        self.facts.as_ref()
    }
}

impl About {
    /// For a page of our own.
    pub(crate) fn html(vary: &'static str) -> Self {
        Self { content_type: Cow::Borrowed("text/html; charset=utf-8"), coding: None, vary }
    }
}

/// Size, modification to the nanosecond and inode, in hexadecimal: a file that is written in place,
/// replaced or restored by `cp -p` gets another one.
fn tag(facts: &Facts) -> String {
    let modified = u128::from(facts.modified_s) * 1_000_000_000 + u128::from(facts.modified_ns);
    format!("{:x}-{modified:x}-{:x}", facts.size, facts.inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_body_has_the_size_that_was_asked_for() {
        for size in [0, 1, 3361, 100_000] {
            let Stored::Memory(body) = Representation::fixed(size, 0).stored else {
                panic!("a fixed body lies in memory")
            };
            assert_eq!(body.len() as u64, size);
        }
    }

    #[test]
    fn a_file_from_the_future_was_modified_now() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let ahead = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        file.as_file().set_modified(ahead).unwrap();
        let facts = Facts::of(file.as_file()).unwrap();
        let opened = Opened { fd: file.reopen().unwrap().into(), facts };
        let found = Representation::of_file(opened, About::html(""), 100, 1_000_000_000).unwrap();
        assert_eq!(found.validators().unwrap().modified_s, 1_000_000_000);
    }
}
