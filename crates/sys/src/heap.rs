//! What the allocator keeps of memory that was freed. Start reading at [`trim`].

/// Gives free pages back to the kernel: those between what is in use too, which freeing alone never does
/// (malloc_trim(3)). Looks at all that is free: some milliseconds for some 10 MiB, so it is for who has freed
/// much at once.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
