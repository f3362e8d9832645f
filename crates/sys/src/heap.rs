//! Memory that was freed but is kept by the allocator. Start reading at [`trim`].

/// Returns free pages to the kernel, even those between pages in use, which freeing alone never does (malloc_trim(3)).
/// It scans all free memory, some milliseconds for some 10 MiB, so call it after freeing much at once.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
