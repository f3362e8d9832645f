//! Buffers that the kernel picks from as bytes arrive (a provided-buffer ring). Owns their memory. Start
//! reading at [`Buffers::register`].
//!
//! Consecutive buffers are a few cache lines more than whole pages apart: if all began at the same offset in a page,
//! they would compete for the same lines of the L1 cache.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// The group that receives name; a ring has one.
pub(crate) const GROUP: u16 = 0;

/// Unused bytes between two buffers.
const APART: usize = 3 * 64;

/// The number of buffers, a power of two, and the size of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) n_buffers: u16,
    pub(crate) n_bytes: u16,
}

/// A buffer that the kernel filled, until it is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filled {
    pub(crate) id: u16,
    /// Offset of the received bytes; before them is the kernel's metadata.
    pub(crate) from: u16,
    pub(crate) n_bytes: u32,
}

/// The buffers, a power of two of them, and the ring in which the kernel finds the free ones.
pub(crate) struct Buffers {
    memory: Mapping,
    ring: Mapping,
    shape: Shape,
    /// Buffers ever put into the ring, as the kernel counts them: modulo 2^16.
    tail: u16,
    /// The value of `tail` that the kernel knows.
    published: u16,
}

impl Shape {
    /// Distance between the starts of two buffers.
    fn stride(self) -> usize {
        usize::from(self.n_bytes) + APART
    }
}

impl Buffers {
    /// Maps buffers of that shape and registers them with the ring as [`GROUP`]. The kernel may write to them until the
    /// ring is gone or all receives have ended, so they must be dropped after that.
    ///
    /// # Errors
    /// EINVAL on a kernel before 5.19; ENOMEM.
    pub(crate) fn register(uring: &IoUring, shape: Shape) -> io::Result<Self> {
        let n_buffers = shape.n_buffers;
        assert!(n_buffers.is_power_of_two());
        let ring = Mapping::new(usize::from(n_buffers) * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(usize::from(n_buffers) * shape.stride())?;
        let address = ring.start.as_ptr() as u64;
        let submitter = uring.submitter();
        // SAFETY: the kernel reads the ring and fills what it lists; both are mapped, page-aligned,
        // and live until `Buffers` is dropped, before which the driver has ended all receives.
        unsafe { submitter.register_buf_ring_with_flags(address, n_buffers, GROUP, 0) }?;
        let mut buffers = Self { memory, ring, shape, tail: 0, published: 0 };
        for id in 0..n_buffers {
            buffers.give_back(id);
        }
        buffers.publish();
        Ok(buffers)
    }

    /// The bytes of a filled buffer.
    #[inline]
    pub(crate) fn bytes(&self, filled: Filled) -> &[u8] {
        &self.whole(filled)[usize::from(filled.from)..]
    }

    /// The bytes with the metadata before them.
    pub(crate) fn whole(&self, filled: Filled) -> &[u8] {
        let n_bytes = usize::from(filled.from) + filled.n_bytes as usize;
        let shape = self.shape;
        assert!(filled.id < shape.n_buffers && n_bytes <= usize::from(shape.n_bytes));
        let at = usize::from(filled.id) * shape.stride();
        // SAFETY: inside the mapping, since the id is one of ours.
        let start = unsafe { self.memory.start.as_ptr().add(at) };
        // SAFETY: mapped memory is initialised (zeroed, or filled by the kernel), and the kernel does
        // not write to a buffer between its completion and the publishing of its return, for which
        // `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts(start, n_bytes) }
    }

    /// Puts a buffer back into the ring; the kernel sees it with the next [`Buffers::publish`].
    #[inline]
    pub(crate) fn give_back(&mut self, id: u16) {
        assert!(id < self.shape.n_buffers);
        let at = usize::from(id) * self.shape.stride();
        let address = self.memory.start.as_ptr() as u64 + at as u64;
        let place = usize::from(self.tail & (self.shape.n_buffers - 1));
        // SAFETY: inside the mapping by the mask.
        let entry = unsafe { self.ring.start.cast::<BufRingEntry>().add(place) };
        // SAFETY: aligned, initialised, and the kernel reads an entry only once the tail is past it.
        // Of the first entry only the three fields are written: its last two bytes are the tail.
        let entry = unsafe { &mut *entry.as_ptr() };
        entry.set_addr(address);
        entry.set_len(self.shape.n_bytes.into());
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
    }

    /// Leaves the memory mapped for ever, if the kernel has not released it.
    pub(crate) fn leak(&mut self) {
        self.memory.n_bytes = 0;
        self.ring.n_bytes = 0;
    }

    /// Shows the kernel the buffers that were given back.
    #[inline]
    pub(crate) fn publish(&mut self) {
        if self.published == self.tail {
            return;
        }
        let first = self.ring.start.cast::<BufRingEntry>().as_ptr();
        // SAFETY: the address of the first entry of a ring that is mapped.
        let tail = unsafe { BufRingEntry::tail(first) };
        // SAFETY: aligned to two bytes, mapped, and from here on accessed as an atomic by us and by
        // the kernel; no reference to the entry around it is alive.
        let tail = unsafe { AtomicU16::from_ptr(tail.cast_mut()) };
        tail.store(self.tail, Ordering::Release);
        self.published = self.tail;
    }
}

/// Anonymous memory, zeroed, aligned to pages.
struct Mapping {
    start: NonNull<u8>,
    /// 0: stays mapped.
    n_bytes: usize,
}

impl Mapping {
    fn new(n_bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel chooses does not touch existing memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), n_bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("mmap chooses no null address");
        Ok(Self { start, n_bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.n_bytes == 0 {
            return;
        }
        // SAFETY: mapped by `new`, and unmapped once; the owner has made sure that nobody uses it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.n_bytes) };
    }
}
