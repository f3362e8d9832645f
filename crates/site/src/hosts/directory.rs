//! The files beneath a directory. Owns the way from a path to what lies there, who may see it, and which of
//! its codings a client gets. Start reading at [`Directory::find`].

use std::borrow::Cow;
use std::ffi::CString;
use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use sys::file::{Facts, FileKind, Opened, Root};

use super::cache::{Bounds, Cache};
use super::hide::Hide;
use super::representation::{ACCEPT_ENCODING, About, Representation, Stored};
use super::{ClockReading, Found, listing, media};
use crate::coding::{Coding, ContentPreferences};
use crate::config::{Compression, HostConfig, Limits, Presentation};

/// The files beneath a directory.
#[derive(Debug)]
pub(super) struct Directory {
    root: Root,
    index: Vec<CString>,
    /// Whether a directory without an index is listed.
    listing: bool,
    hide: Hide,
    presentation: Presentation,
    limits: Limits,
    /// Files in memory.
    cache: Cache,
    /// Files that are kept open, because they are too large for memory.
    open: Cache,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    path: &'a [u8],
    /// `path` without its first slash.
    relative: &'a [u8],
    wants: ContentPreferences,
    /// Its key in the caches.
    key: &'a [u8],
    time: ClockReading,
}

/// The form of a file that is sent.
struct Chosen {
    opened: Opened,
    about: About,
    /// The coding in which it is to be encoded first.
    encode: Option<Coding>,
}

impl Directory {
    pub(super) fn new(root: Root, host: &HostConfig, limits: &Limits) -> Result<Self, String> {
        Ok(Self {
            root,
            index: host.index.iter().filter_map(|n| CString::new(n.as_str()).ok()).collect(),
            listing: host.listing,
            hide: Hide::new(&host.presentation)?,
            presentation: host.presentation.clone(),
            limits: *limits,
            cache: Cache::new(Bounds {
                entries_max: limits.cache_entries_max as usize,
                bytes_max: limits.cache_bytes_max,
                fresh_for: limits.file_cache,
            }),
            open: Cache::new(Bounds {
                entries_max: limits.open_files_max as usize,
                bytes_max: 0,
                fresh_for: limits.file_cache,
            }),
        })
    }

    /// What lies at `path`, in the form that is wanted.
    pub(super) fn find(&self, path: &[u8], wants: ContentPreferences, time: ClockReading) -> Found {
        let relative = path.strip_prefix(b"/").unwrap_or(path);
        if self.hide.hides_path(relative) {
            return Found::NotFound;
        }
        let key = key(path, wants);
        let kept = self.cache.get(&key, time.now).or_else(|| self.open.get(&key, time.now));
        if let Some((representation, until)) = kept {
            return Found::Here(representation, until);
        }
        let wanted = Wanted { path, relative, wants, key: &key, time };
        let mut looked = self.look(wanted);
        let is_busy = |error: &io::Error| matches!(outcome(error), Found::Busy);
        if looked.as_ref().is_err_and(is_busy) && self.open.clear() {
            looked = self.look(wanted);
        }
        looked.unwrap_or_else(|error| {
            self.cache.forget(&key);
            self.open.forget(&key);
            outcome(&error)
        })
    }

    /// The name of the index file of the directory at `path`, if it has one.
    pub(super) fn index_name(&self, path: &[u8]) -> Option<&[u8]> {
        let relative = path.strip_prefix(b"/").unwrap_or(path);
        if self.hide.hides_path(relative) {
            return None;
        }
        self.index_of(relative).ok().flatten().map(|(_, name)| name)
    }

    /// Files that had to leave memory, or were not kept, for lack of room.
    pub(super) fn evicted(&self) -> u64 {
        self.cache.evicted()
    }

    /// Closes what is kept open. Returns whether there was anything.
    pub(super) fn release_descriptors(&self) -> bool {
        self.open.clear()
    }

    /// Looks it up in the file system.
    fn look(&self, wanted: Wanted<'_>) -> io::Result<Found> {
        let Wanted { path, relative, wants, .. } = wanted;
        let here = if relative.is_empty() { &b"."[..] } else { relative };
        let opened = self.root.open_beneath(&c_string(&[here])?)?;
        let (opened, file) = match opened.facts.kind {
            FileKind::File => (opened, Cow::Borrowed(relative)),
            FileKind::Other => return Ok(Found::Forbidden),
            FileKind::Directory if !path.ends_with(b"/") => return Ok(Found::NeedsSlash),
            FileKind::Directory => match self.index_of(relative)? {
                Some((index, name)) => (index, Cow::Owned([relative, name].concat())),
                None if self.listing => return self.list(&opened, wanted),
                None => return Ok(Found::Forbidden),
            },
        };
        match self.choose(opened, &file, wants)? {
            Some(chosen) => self.sent(chosen, wanted),
            None => Ok(Found::NotAcceptable),
        }
    }

    /// Chooses the coding of a file for a client: the one that it prefers. Of two that it ranks alike, one that lies
    /// ready comes first, then the first of the configuration. `None`: the client accepts none of them.
    fn choose(
        &self,
        opened: Opened,
        file: &[u8],
        wants: ContentPreferences,
    ) -> io::Result<Option<Chosen>> {
        let content_type = media::content_type(file, &self.presentation);
        let about = About { content_type, coding: None, vary: "" };
        let plain = Chosen { opened, about, encode: None };
        let Some(compression) = &self.presentation.compression else { return Ok(Some(plain)) };
        let siblings = self.siblings(&plain.opened.facts, file, compression)?;
        let is_worth = compression.is_worth(&plain.about.content_type, plain.opened.facts.size)
            && !compression.codings.is_empty();
        // If there is nothing to choose from, everybody gets the same.
        if siblings.is_empty() && !is_worth {
            return Ok(Some(plain));
        }
        let about = |coding| About { coding, vary: ACCEPT_ENCODING, ..plain.about.clone() };
        let mut best = (wants.rank(None), Chosen { about: about(None), ..plain });
        // In reverse order of preference: of equal ranks, the one that is looked at last wins.
        let on_the_fly = if is_worth && !(wants.is_ranged && wants.rank(None) > 0) {
            &compression.codings[..]
        } else {
            &[]
        };
        for &coding in on_the_fly.iter().rev() {
            let rank = wants.rank(Some(coding));
            if rank > 0 && rank >= best.0 {
                best =
                    (rank, Chosen { about: about(Some(coding)), encode: Some(coding), ..best.1 });
            }
        }
        for (coding, opened) in siblings.into_iter().rev() {
            let rank = wants.rank(Some(coding));
            if rank > 0 && rank >= best.0 {
                best = (rank, Chosen { about: about(Some(coding)), opened, encode: None });
            }
        }
        Ok(Some(best.1).filter(|_| best.0 > 0))
    }

    /// Files beside a plain one that hold it in a coding, and are not older.
    fn siblings(
        &self,
        plain: &Facts,
        file: &[u8],
        compression: &Compression,
    ) -> io::Result<Vec<(Coding, Opened)>> {
        let age = |facts: &Facts| (facts.modified_s, facts.modified_ns);
        let name = file.rsplit(|&byte| byte == b'/').next().unwrap_or(file);
        let mut siblings = Vec::new();
        for &coding in &compression.precompressed {
            let suffix = coding.suffix().as_bytes();
            if self.hide.hides(&[name, suffix].concat()) {
                continue;
            }
            match self.root.open_beneath(&c_string(&[file, suffix])?) {
                Ok(opened)
                    if opened.facts.kind == FileKind::File && age(&opened.facts) >= age(plain) =>
                {
                    siblings.push((coding, opened));
                }
                Ok(_) => {}
                Err(error) if matches!(outcome(&error), Found::Busy) => return Err(error),
                // It is missing, or does not fit the plain file, which is sent instead.
                Err(_) => {}
            }
        }
        Ok(siblings)
    }

    /// What was chosen, from memory if it is unchanged.
    fn sent(&self, chosen: Chosen, wanted: Wanted<'_>) -> io::Result<Found> {
        let ClockReading { now, now_s } = wanted.time;
        let until = now.saturating_add(self.limits.file_cache);
        let is_it = |kept: &Representation| {
            // If encoding did not make it smaller, the plain content was kept.
            let is_plain = chosen.encode.is_some()
                && *kept.about() == About { coding: None, ..chosen.about.clone() };
            kept.facts() == Some(&chosen.opened.facts)
                && (*kept.about() == chosen.about || is_plain)
        };
        let of_coding =
            chosen.encode.map(|coding| [wanted.path, b"\0", coding.name().as_bytes()].concat());
        let keys = [Some(wanted.key), of_coding.as_deref()];
        let shelves = [&self.cache, &self.open];
        let mut kept = keys.into_iter().flatten().flat_map(|key| {
            shelves.into_iter().filter_map(move |shelf| shelf.renew(key, is_it, now))
        });
        if let Some(kept) = kept.next() {
            return Ok(Found::Here(kept, until));
        }
        drop(kept);
        let made = Arc::new(self.made(chosen, now_s)?);
        let (shelf, other) = match made.stored() {
            Stored::Memory(_) => (&self.cache, &self.open),
            Stored::File(_) => (&self.open, &self.cache),
        };
        for key in keys.into_iter().flatten() {
            other.forget(key);
            shelf.keep(key, Arc::clone(&made), now);
        }
        Ok(Found::Here(made, until))
    }

    fn made(&self, chosen: Chosen, now_s: u64) -> io::Result<Representation> {
        let Chosen { opened, about, encode } = chosen;
        let in_memory_max = u64::from(self.limits.cached_file_bytes_max);
        let (Some(coding), Some(compression)) = (encode, &self.presentation.compression) else {
            return Representation::of_file(opened, about, in_memory_max, now_s);
        };
        let in_memory_max = in_memory_max.max(compression.bytes_max);
        let about = About { coding: None, ..about };
        let plain = Representation::of_file(opened, about, in_memory_max, now_s)?;
        let Stored::Memory(content) = plain.stored() else { return Ok(plain) };
        let encoded = coding.encode(content, compression)?;
        if encoded.len() >= content.len() {
            return Ok(plain);
        }
        Ok(Representation::encoded(&plain, coding, coding.level(compression), encoded))
    }

    /// The first index file of a directory, and its name.
    fn index_of(&self, relative: &[u8]) -> io::Result<Option<(Opened, &[u8])>> {
        for name in self.index.iter().filter(|name| !self.hide.hides(name.as_bytes())) {
            match self.root.open_beneath(&c_string(&[relative, name.as_bytes()])?) {
                Ok(opened) if opened.facts.kind == FileKind::File => {
                    return Ok(Some((opened, name.as_bytes())));
                }
                Ok(_) => {}
                Err(error) if matches!(outcome(&error), Found::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn list(&self, opened: &Opened, wanted: Wanted<'_>) -> io::Result<Found> {
        let entries_max = self.limits.listing_entries_max as usize;
        let listed = listing::Listing::of(opened, &self.hide, entries_max)?;
        let page = match wanted.wants.json {
            true => listed.json(wanted.path),
            false => listed.html(wanted.path),
        };
        Ok(Found::Here(Arc::new(page), wanted.time.now))
    }
}

/// The key by which a content is kept: no path holds a NUL.
fn key(path: &[u8], wants: ContentPreferences) -> Cow<'_, [u8]> {
    // Listings, the only content that may be JSON, are not kept.
    let wants = wants.of_files();
    if wants == ContentPreferences::default() {
        return Cow::Borrowed(path);
    }
    Cow::Owned([path, b"\0", &wants.key()].concat())
}

/// What the client gets for an error of the file system.
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
