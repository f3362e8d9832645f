//! Counts heap allocations, so that a test can prove that a hot path does not allocate, and that long-lived data stays
//! small. Owns the counter. Start reading at [`Counting`].
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: sys::allocations::Counting = sys::allocations::Counting;
//! # use joust_sys as sys;
//! let before = sys::allocations::count();
//! drop(std::hint::black_box(Box::new(1)));
//! assert_eq!(sys::allocations::count() - before, 1);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES_HELD: AtomicU64 = AtomicU64::new(0);

/// The system's allocator with counters. For tests: install it with `#[global_allocator]`.
pub struct Counting;

/// Allocations and reallocations of all threads since the process began.
pub fn count() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Bytes that are allocated and not freed, by all threads.
pub fn bytes_held() -> u64 {
    BYTES_HELD.load(Ordering::Relaxed)
}

/// Counts one allocation of `size` bytes.
fn took(size: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    BYTES_HELD.fetch_add(size as u64, Ordering::Relaxed);
}

fn gave_back(size: usize) {
    BYTES_HELD.fetch_sub(size as u64, Ordering::Relaxed);
}

// SAFETY: every call goes unchanged to the system's allocator, which keeps the trait's promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller promises a layout of nonzero size; it is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        gave_back(layout.size());
        // SAFETY: the caller promises that `at` came from this allocator, which is the system's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: as in alloc.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        gave_back(layout.size());
        took(new_size);
        // SAFETY: as in dealloc; the caller promises a nonzero new size.
        unsafe { System.realloc(at, layout, new_size) }
    }
}
