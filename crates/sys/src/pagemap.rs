//! Owns the question where a process has pages (`PAGEMAP_SCAN`, Linux 6.7, admin-guide/mm/pagemap). A server may
//! reserve gigabytes of addresses and use only a few pages of them, while `/proc/PID/pagemap` has 8 bytes for each page
//! of addresses, used or not. Start reading at [`occupied`].
//!
//! Cost: one ioctl for each mapping, some 0.5 us plus 1 us for each 2 MiB that have pages. It holds the process's mmap
//! lock for reading meanwhile.

use std::fs::File;
use std::io;
use std::ops::Range;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// `struct page_region` of linux/fs.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// `struct pm_scan_arg` of linux/fs.h.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    n_regions: u64,
    pages_max: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
/// The zero page, which the kernel maps for memory that was read but never written.
const ZERO: u64 = 1 << 5;

const PAGEMAP_SCAN: Opcode = opcode::read_write::<Scan>(b'f', 16);
/// Regions of one call.
const REGIONS: usize = 256;

/// Adds the parts of `addresses` in which the process has pages, in memory or swapped out. The zero page does not
/// count. `pagemap` is a `/proc/PID/pagemap`.
///
/// # Errors
/// The kernel has no such call (`ENOTTY`, before 6.7), or the process has ended.
pub fn occupied(
    pagemap: &File,
    addresses: Range<u64>,
    found: &mut Vec<Range<u64>>,
) -> io::Result<()> {
    let mut from = addresses.start;
    while from < addresses.end {
        // Regions that the kernel does not fill in stay empty.
        let mut regions = [Region::default(); REGIONS];
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start: from,
            end: addresses.end,
            walk_end: 0,
            regions: regions.as_mut_ptr().expose_provenance() as u64,
            n_regions: REGIONS as u64,
            pages_max: 0,
            inverted: ZERO,
            all_of: ZERO,
            any_of: PRESENT | SWAPPED,
            returned: PRESENT | SWAPPED,
        };
        // SAFETY: for this ioctl number the kernel takes a `struct pm_scan_arg`, which `Scan` mirrors.
        let asked = unsafe { Updater::<PAGEMAP_SCAN, Scan>::new(&mut scan) };
        // SAFETY: the kernel writes `walk_end`, and at most `n_regions` regions from `regions` on: that
        // array is ours alone and lives until the call has returned.
        unsafe { ioctl(pagemap, asked) }?;
        let filled = regions.iter().take_while(|region| region.end > region.start);
        found.extend(filled.map(|region| region.start..region.end));
        if scan.walk_end <= from {
            break;
        }
        from = scan.walk_end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_touched_are_found() {
        let page = rustix::param::page_size();
        let mut bytes = vec![0_u8; 1024 * page];
        let first = (bytes.as_ptr().addr()).next_multiple_of(page);
        let at = |n: usize| (first + n * page) as u64;
        let offset = first - bytes.as_ptr().addr();
        let mut touch = |n: usize| bytes[offset + n * page] = 1;
        [3, 4, 900].into_iter().for_each(&mut touch);
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let mut found = Vec::new();
        match occupied(&pagemap, at(0)..at(1000), &mut found) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOTTY.raw_os_error()) => {
                return skips::note("PAGEMAP_SCAN needs Linux 6.7");
            }
            scanned => scanned.unwrap(),
        }
        for n in [3, 4, 900] {
            assert!(found.iter().any(|range| range.contains(&at(n))), "{n}: {found:?}");
        }
        std::hint::black_box(&bytes);
    }
}
