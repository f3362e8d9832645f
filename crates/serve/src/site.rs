//! What is served: the files beneath a directory, or one content for every path. Owns the way from a
//! path to what lies there, and who may see it; must not know methods, ranges or connections.
//! Start reading at [`Site::find`].

mod cache;
mod listing;
mod representation;

use std::ffi::CString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use sys::file::{Kind, Opened, Root};
use units::Nanos;

use crate::ServeError;
use crate::config::{Config, Content, Limits};
use cache::{Bounds, Cache};

pub(crate) use listing::escape_path;
pub(crate) use representation::Prepared;
pub use representation::{Representation, Stored, Validators};

/// How long what was found at a path is taken for what is there. As lighttpd's stat cache.
pub(crate) const FRESH_FOR: Nanos = Nanos::from_secs(1);

/// What is served. Shared by all threads of a process.
#[derive(Debug)]
pub struct Site {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Fixed(Arc<Representation>),
    Directory(Box<Directory>),
}

/// The files beneath a directory.
#[derive(Debug)]
struct Directory {
    root: Root,
    index: Vec<CString>,
    /// Whether a directory without an index is listed.
    listing: bool,
    limits: Limits,
    /// Files in memory.
    cache: Cache,
    /// Files that are open, because they are too large for that.
    open: Cache,
}

/// What lies at a path.
#[derive(Debug)]
pub enum Found {
    /// Something to send. It may be sent again, without asking, until the instant.
    Here(Arc<Representation>, Nanos),
    /// A directory, asked for without its slash.
    NeedsSlash,
    /// Nothing, or nothing that may be seen.
    NotFound,
    /// Something that may not be read, or leads out of the site.
    Forbidden,
    /// The path is longer than the file system allows.
    TooLong,
    /// The process or the machine has no more files (EMFILE, ENFILE) or memory.
    Busy,
    /// Reading failed.
    Failed,
}

/// Whether a name is hidden: the one rule for files, directories, listings and indexes.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".")
}

impl Site {
    /// Opens what the configuration names.
    ///
    /// # Errors
    /// A directory that is missing, none, or forbidden; a kernel without openat2.
    pub fn open(config: &Config) -> Result<Self, ServeError> {
        let source = match &config.content {
            Content::Fixed(bytes) => {
                let modified_s = sys::clock::wall_secs_coarse();
                Source::Fixed(Arc::new(Representation::fixed(bytes.0, modified_s)))
            }
            Content::Directory(path) => Source::Directory(Box::new(Directory {
                root: Root::open(path).map_err(|error| refused(path, error))?,
                index: config.index.iter().filter_map(|n| CString::new(n.as_str()).ok()).collect(),
                listing: config.listing,
                limits: config.limits,
                cache: Cache::new(Bounds {
                    entries_max: config.limits.cache_entries_max as usize,
                    bytes_max: config.limits.cache_bytes_max,
                }),
                open: Cache::new(Bounds {
                    entries_max: config.limits.open_files_max as usize,
                    bytes_max: 0,
                }),
            })),
        };
        Ok(Self { source })
    }

    /// What lies at `path`: normalised, decoded once, absolute, without `.` and `..` segments; an
    /// ending slash is kept. `now` is monotonic, `now_s` the time of day in whole seconds.
    pub fn find(&self, path: &[u8], now: Nanos, now_s: u64) -> Found {
        match &self.source {
            Source::Fixed(representation) => Found::Here(Arc::clone(representation), Nanos::MAX),
            Source::Directory(directory) => directory.find(path, now, now_s),
        }
    }

    /// Closes the files that are kept open, for a process that has no descriptor left. Says whether
    /// there were any.
    pub fn release_descriptors(&self) -> bool {
        match &self.source {
            Source::Fixed(_) => false,
            Source::Directory(directory) => directory.open.clear(),
        }
    }

    /// Files that had to leave memory, or found no room, because others were there.
    pub fn evicted(&self) -> u64 {
        match &self.source {
            Source::Fixed(_) => 0,
            Source::Directory(directory) => directory.cache.evicted(),
        }
    }
}

impl Directory {
    fn find(&self, path: &[u8], now: Nanos, now_s: u64) -> Found {
        let relative = path.strip_prefix(b"/").unwrap_or(path);
        if relative.split(|&byte| byte == b'/').any(is_hidden) {
            return Found::NotFound;
        }
        if let Some((representation, until)) =
            self.cache.get(path, now).or_else(|| self.open.get(path, now))
        {
            return Found::Here(representation, until);
        }
        let mut looked = self.look(path, relative, now, now_s);
        if looked.as_ref().is_err_and(|error| matches!(outcome(error), Found::Busy))
            && self.open.clear()
        {
            looked = self.look(path, relative, now, now_s);
        }
        looked.unwrap_or_else(|error| {
            self.cache.forget(path);
            self.open.forget(path);
            outcome(&error)
        })
    }

    /// Asks the file system.
    fn look(&self, path: &[u8], relative: &[u8], now: Nanos, now_s: u64) -> io::Result<Found> {
        let here = if relative.is_empty() { &b"."[..] } else { relative };
        let opened = self.root.open_beneath(&c_string(&[here])?)?;
        let (opened, name) = match opened.facts.kind {
            Kind::File => (opened, relative),
            Kind::Other => return Ok(Found::Forbidden),
            Kind::Directory if !path.ends_with(b"/") => return Ok(Found::NeedsSlash),
            Kind::Directory => match self.index_of(relative)? {
                Some((index, name)) => (index, name),
                None if self.listing => return self.list(&opened, path, now),
                None => return Ok(Found::Forbidden),
            },
        };
        let until = now.saturating_add(FRESH_FOR);
        let kept = self.cache.renew(path, &opened.facts, now);
        if let Some(kept) = kept.or_else(|| self.open.renew(path, &opened.facts, now)) {
            return Ok(Found::Here(kept, until));
        }
        let in_memory_max = u64::from(self.limits.cached_file_bytes_max);
        let file = Representation::of_file(opened, name, in_memory_max, now_s)?;
        let file = Arc::new(file);
        let (shelf, other) = match file.stored() {
            Stored::Memory(_) => (&self.cache, &self.open),
            Stored::File(_) => (&self.open, &self.cache),
        };
        other.forget(path);
        shelf.keep(path, Arc::clone(&file), now);
        Ok(Found::Here(file, until))
    }

    /// The first index file of a directory, and its name.
    fn index_of(&self, relative: &[u8]) -> io::Result<Option<(Opened, &[u8])>> {
        for name in self.index.iter().filter(|name| !is_hidden(name.as_bytes())) {
            match self.root.open_beneath(&c_string(&[relative, name.as_bytes()])?) {
                Ok(opened) if opened.facts.kind == Kind::File => {
                    return Ok(Some((opened, name.as_bytes())));
                }
                Ok(_) => {}
                Err(error) if matches!(outcome(&error), Found::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn list(&self, opened: &Opened, path: &[u8], now: Nanos) -> io::Result<Found> {
        let page = listing::page(opened, path, self.limits.listing_entries_max as usize)?;
        Ok(Found::Here(Arc::new(Representation::page(page)), now))
    }
}

/// What an error of the file system means for who asked.
fn outcome(error: &io::Error) -> Found {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::INVAL) => Found::NotFound,
        Some(Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP | Errno::NXIO) => {
            Found::Forbidden
        }
        Some(Errno::NAMETOOLONG) => Found::TooLong,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN) => Found::Busy,
        _ => Found::Failed,
    }
}

fn c_string(parts: &[&[u8]]) -> io::Result<CString> {
    CString::new(parts.concat()).map_err(|_| Errno::INVAL.into())
}

pub(crate) fn refused(path: &Path, source: io::Error) -> ServeError {
    let path = path.to_owned();
    match Errno::from_io_error(&source) {
        Some(Errno::NOENT) => ServeError::NoDirectory { path },
        Some(Errno::NOTDIR) => ServeError::NotADirectory { path },
        Some(Errno::ACCESS) => ServeError::DirectoryForbidden { path },
        Some(Errno::NOSYS | Errno::PERM) => ServeError::NoOpenBeneath,
        _ => ServeError::Directory { path, source },
    }
}
