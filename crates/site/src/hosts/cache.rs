//! Small files kept in memory, and large ones kept open. Owns what is kept and for how long it is trusted. Start
//! reading at [`Cache::get`].
//!
//! An open file still shows what was renamed or deleted. So it is trusted for a time only (`FileCache`, a second unless
//! set), as are the bytes in memory; then its path is looked up again. If that time is zero, nothing is kept.
//!
//! Shared by the threads of a process, so that a model with many threads does not keep many copies. Few requests take
//! the lock: a connection remembers the last file that it sent (see `exchange`), and comes here once a second, or for
//! another file.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use units::Nanos;

use super::Representation;

/// How many entries are compared to choose the one to drop when there is no room. The oldest of a few costs less than a
/// list in the order of use, and is nearly as good (Redis does the same).
const EVICTION_SAMPLE: usize = 8;

/// Files, by normalised path.
#[derive(Debug)]
pub(super) struct Cache {
    bounds: Bounds,
    kept: RwLock<Kept>,
    evicted: AtomicU64,
}

/// What a cache may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) entries_max: usize,
    /// Of contents in memory.
    pub(super) bytes_max: u64,
    /// How long an entry is trusted once the file system has confirmed it; zero: none is kept.
    pub(super) fresh_for: Nanos,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<Box<[u8]>, Entry>,
    /// Bytes of all contents; at most `bytes_max`.
    bytes: u64,
}

#[derive(Debug)]
struct Entry {
    representation: Arc<Representation>,
    /// When the file system last confirmed it, in nanoseconds; never moves back.
    confirmed: AtomicU64,
}

impl Cache {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, kept: RwLock::default(), evicted: AtomicU64::new(0) }
    }

    /// What is kept for `path` and was confirmed within [`Bounds::fresh_for`], and until when it is fresh.
    pub(super) fn get(&self, path: &[u8], now: Nanos) -> Option<(Arc<Representation>, Nanos)> {
        let kept = self.read();
        let entry = kept.entries.get(path)?;
        let until =
            Nanos(entry.confirmed.load(Ordering::Relaxed)).saturating_add(self.bounds.fresh_for);
        (now < until).then(|| (Arc::clone(&entry.representation), until))
    }

    /// The entry for `path`, if `is_it` says that it is still right; then it is fresh again.
    pub(super) fn renew(
        &self,
        path: &[u8],
        is_it: impl FnOnce(&Representation) -> bool,
        now: Nanos,
    ) -> Option<Arc<Representation>> {
        let kept = self.read();
        let entry = kept.entries.get(path)?;
        if !is_it(&entry.representation) {
            return None;
        }
        entry.confirmed.fetch_max(now.0, Ordering::Relaxed);
        Some(Arc::clone(&entry.representation))
    }

    /// Keeps a file, in place of the entry for its path, if there is room or room can be made.
    pub(super) fn keep(&self, path: &[u8], representation: Arc<Representation>, now: Nanos) {
        let Bounds { entries_max, bytes_max, fresh_for } = self.bounds;
        if fresh_for == Nanos::ZERO {
            return;
        }
        let size = representation.memory_bytes();
        let mut kept = self.write();
        kept.remove(path);
        if size > bytes_max {
            self.evicted.fetch_add(1, Ordering::Relaxed);
            return;
        }
        while kept.entries.len() >= entries_max || kept.bytes + size > bytes_max {
            self.evicted.fetch_add(1, Ordering::Relaxed);
            if !kept.evict_an_old_one() {
                return;
            }
        }
        kept.bytes += size;
        kept.entries.insert(path.into(), Entry { representation, confirmed: now.0.into() });
    }

    /// Drops the entry for `path`.
    pub(super) fn forget(&self, path: &[u8]) {
        // Mostly there is none, and then nobody has to wait for a write lock.
        if self.read().entries.contains_key(path) {
            self.write().remove(path);
        }
    }

    /// Drops all entries. Returns whether there were any.
    pub(super) fn clear(&self) -> bool {
        let kept = std::mem::take(&mut *self.write());
        !kept.entries.is_empty()
    }

    /// Files that were dropped, or not kept, for lack of room.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    fn read(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, path: &[u8]) {
        if let Some(entry) = self.entries.remove(path) {
            self.bytes -= entry.representation.memory_bytes();
        }
    }

    /// Of a few entries, drops the one that was confirmed, and so requested, longest ago. Returns false if there is
    /// none.
    fn evict_an_old_one(&mut self) -> bool {
        let sample = self.entries.iter().take(EVICTION_SAMPLE);
        let oldest = sample.min_by_key(|(_, entry)| entry.confirmed.load(Ordering::Relaxed));
        let Some(path) = oldest.map(|(path, _)| path.clone()) else { return false };
        self.remove(&path);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH_FOR: Nanos = Nanos::from_secs(1);

    fn cache(entries_max: usize, bytes_max: u64) -> Cache {
        Cache::new(Bounds { entries_max, bytes_max, fresh_for: FRESH_FOR })
    }

    fn bytes(size: u64) -> Arc<Representation> {
        Arc::new(Representation::fixed(size, 0))
    }

    #[test]
    fn nothing_is_kept_where_it_would_be_fresh_for_no_time() {
        let cache = Cache::new(Bounds { entries_max: 10, bytes_max: 100, fresh_for: Nanos::ZERO });
        cache.keep(b"/a", bytes(10), Nanos(5));
        cache.keep(b"/large", bytes(1000), Nanos(5));
        assert!(cache.get(b"/a", Nanos(5)).is_none());
        assert!(cache.renew(b"/a", |_| true, Nanos(5)).is_none());
        assert_eq!(cache.evicted(), 0, "nothing wanted for room");
    }

    #[test]
    fn what_is_kept_is_believed_for_less_than_a_second() {
        let cache = cache(10, 1000);
        cache.keep(b"/a", bytes(10), Nanos(5));
        assert!(cache.get(b"/a", Nanos(5 + FRESH_FOR.0 - 1)).is_some());
        assert!(cache.get(b"/a", Nanos(5 + FRESH_FOR.0)).is_none());
        assert!(cache.get(b"/b", Nanos(5)).is_none());
    }

    #[test]
    fn neither_entries_nor_bytes_pass_their_bounds_and_what_left_is_counted() {
        let cache = cache(3, 1000);
        for name in 0..10u8 {
            cache.keep(&[name], bytes(100), Nanos(u64::from(name)));
        }
        assert_eq!((cache.read().entries.len(), cache.evicted()), (3, 7));
        cache.keep(b"large", bytes(900), Nanos(20));
        assert!(cache.read().bytes <= 1000);
        cache.keep(b"too large", bytes(1001), Nanos(21));
        assert!(cache.get(b"too large", Nanos(21)).is_none());
        assert_eq!(
            cache.read().bytes,
            cache.read().entries.values().map(|e| e.representation.size()).sum::<u64>()
        );
    }

    #[test]
    fn keeping_a_path_again_replaces_it() {
        let cache = cache(3, 1000);
        cache.keep(b"/a", bytes(100), Nanos(0));
        cache.keep(b"/a", bytes(200), Nanos(0));
        assert_eq!((cache.read().bytes, cache.evicted()), (200, 0));
        cache.forget(b"/a");
        assert_eq!(cache.read().bytes, 0);
    }
}
