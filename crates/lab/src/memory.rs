//! Owns the accounting of a process tree's memory: every page frame that any of its processes maps, counted once.
//!
//! Unlike PSS, which divides a page over all processes that map it, the count does not depend on processes outside
//! the tree. A page of a file counts while a process of the tree maps it, even if the page cache would hold it
//! anyway. Not counted: the kernel's zero page, its clock pages (`vvar`), page tables, socket buffers, and page cache
//! that nobody maps. Huge pages, including hugetlb pages, count as the frames that they span.
//!
//! Page frame numbers need CAP_SYS_ADMIN (admin-guide/mm/pagemap). Without them, a page of a file is identified by
//! its place in the file, and a page that only one process maps by its mark. Only for pages that a fork left shared
//! is it unknown which are the same. Their number is at least that of the process with the most of them.
//!
//! Cost: `/proc/PID/maps` (1 us a mapping), an ioctl a mapping, and 8 bytes for each present page (some 10 ns in the
//! kernel, under its lock for 2 MiB at a time, and as much here). Linux before 6.7 has no such ioctl: there
//! `/proc/PID/smaps` says which mappings have pages, and each of those is read whole. If they span more than
//! [`WHOLE_MAX`] bytes, the process is counted by its counters of resident memory. Start reading at [`footprint`].

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use record::MemoryMethod;
use sys::pagemap;

/// Memory of a tree at one time, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) method: MemoryMethod,
    pub(crate) bytes: u64,
    /// Upper bound.
    pub(crate) at_most: u64,
    /// Swapped out, in addition.
    pub(crate) swapped: u64,
    /// Processes whose pages could not be seen.
    pub(crate) unread: u32,
}

/// What may be seen of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The number of its frame.
    Frames,
    /// Whether it is present, whether it belongs to a file, whether only one process maps it.
    Marks,
}

impl Sight {
    /// What this process may see; the kernel decides when a pagemap is opened, by the rights of the opener.
    pub(crate) fn here() -> Self {
        let mut byte = 1_u8;
        let address = std::ptr::from_mut(std::hint::black_box(&mut byte)).addr() as u64;
        let mut entry = [0; ENTRY];
        let offset = address / page_bytes() * ENTRY as u64;
        let read =
            File::open("/proc/self/pagemap").and_then(|file| file.read_at(&mut entry, offset));
        match read.is_ok() && Entry(u64::from_ne_bytes(entry)).frame() != 0 {
            true => Self::Frames,
            false => Self::Marks,
        }
    }
}

/// How to find out where a process has pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occupancy {
    /// `PAGEMAP_SCAN`: the parts of each mapping.
    Scanned,
    /// Linux before 6.7: whole mappings.
    ByMapping,
}

/// The memory of some processes; those that end meanwhile count as zero.
pub(crate) fn footprint(pids: &[u32], sight: Sight) -> Footprint {
    footprint_by(pids, sight, Occupancy::Scanned)
}

fn footprint_by(pids: &[u32], sight: Sight, occupancy: Occupancy) -> Footprint {
    let mut tally = Tally::new(sight, occupancy);
    for &pid in pids {
        match tally.read(pid) {
            Ok(()) => {}
            Err(error) if has_ended(&error) => {}
            Err(_) => tally.denied.extend(Counters::of(pid)),
        }
    }
    tally.sum()
}

/// Bytes of an entry of a pagemap.
const ENTRY: usize = 8;
/// Entries that are read at once: 32 MiB of 4 KiB pages.
const ENTRIES_MAX: u64 = 8192;
/// Most bytes of addresses of a process that are read whole: 4 million entries, some 80 ms.
const WHOLE_MAX: u64 = 16 << 30;
/// Swap files that the kernel can have; higher numbers are other uses of a swap entry, such as a page that is being
/// moved.
const SWAP_FILES_MAX: u64 = 23;

/// What a pagemap says of a page (admin-guide/mm/pagemap).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    const fn bit(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }

    fn is_present(self) -> bool {
        self.bit(63)
    }

    /// A guard region (bit 58) has the mark of a swapped page, but is not one.
    fn is_swapped(self) -> bool {
        self.bit(62) && !self.is_present() && !self.bit(58)
    }

    /// Of a file, or of memory that was shared from the start.
    fn is_of_file(self) -> bool {
        self.bit(61)
    }

    fn is_of_one_process(self) -> bool {
        self.bit(56)
    }

    /// Number of the frame; of a swapped page, its place in the swap. 0 if it may not be seen.
    fn frame(self) -> u64 {
        self.0 & ((1 << 55) - 1)
    }
}

/// One line of `/proc/PID/maps` (proc_pid_maps(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    addresses: Range<u64>,
    /// Where it begins in its file.
    offset: u64,
    /// The file (device and inode), if a page can be identified by its place in it.
    file: Option<(String, u64)>,
}

impl Mapping {
    /// `None` for pages that the kernel lends to everybody, and for a line that is no mapping.
    fn parse(line: &str) -> Option<Self> {
        // The name may hold spaces.
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let addresses = hexadecimal(start)?..hexadecimal(end)?;
        let offset = hexadecimal(fields.nth(1)?)?;
        let (device, inode) = (fields.next()?, fields.next()?.parse().ok()?);
        let name = fields.next().unwrap_or_default().trim_start();
        if name.starts_with("[vvar") || name == "[vsyscall]" {
            return None;
        }
        // All anonymous inodes (io_uring rings) share one number, and what a device maps is its own memory.
        let is_device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
        let is_known = inode != 0
            && !name.starts_with("anon_inode:")
            && (!is_device || name.starts_with("/dev/zero"));
        let file = is_known.then(|| (device.to_owned(), inode));
        Some(Self { addresses, offset, file })
    }
}

/// A set of numbers that lie close together, as page frame numbers do: one bit each.
#[derive(Debug, Default)]
struct Pages {
    chunks: HashMap<u64, usize>,
    bits: Vec<[u64; 512]>,
    /// The chunk that was used last, and its place: consecutive numbers are mostly neighbours.
    last: Option<(u64, usize)>,
    len: u64,
}

impl Pages {
    fn insert(&mut self, number: u64) {
        let chunk = number >> 15;
        let at = match self.last {
            Some((last, at)) if last == chunk => at,
            _ => *self.chunks.entry(chunk).or_insert_with(|| {
                self.bits.push([0; 512]);
                self.bits.len() - 1
            }),
        };
        self.last = Some((chunk, at));
        let (word, bit) = (&mut self.bits[at][(number >> 6 & 511) as usize], 1 << (number & 63));
        self.len += u64::from(*word & bit == 0);
        *word |= bit;
    }
}

/// Pages of one process that no number distinguishes from those of another process.
#[derive(Debug, Default, Clone, Copy)]
struct Unnumbered {
    of_one_process: u64,
    shared: u64,
    of_files: u64,
}

/// Counters of resident memory, in bytes: `/proc/PID/status` may be read by everybody.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counters {
    anonymous: u64,
    of_files: u64,
    swapped: u64,
}

impl Counters {
    fn of(pid: u32) -> Option<Self> {
        Some(Self::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?))
    }

    fn parse(status: &str) -> Self {
        let bytes = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            let kib =
                value.and_then(|value| value.trim().trim_end_matches(" kB").parse::<u64>().ok());
            kib.unwrap_or(0) * 1024
        };
        Self {
            anonymous: bytes("RssAnon:"),
            of_files: bytes("RssFile:") + bytes("RssShmem:"),
            swapped: bytes("VmSwap:"),
        }
    }
}

/// What was seen of the processes so far.
#[derive(Debug)]
struct Tally {
    sight: Sight,
    occupancy: Occupancy,
    page: u64,
    frames: Pages,
    files: HashMap<(String, u64), Pages>,
    unnumbered: Vec<Unnumbered>,
    /// Places in the swap; if they cannot be seen, only their number is counted.
    swap: BTreeSet<u64>,
    swapped_unnumbered: u64,
    denied: Vec<Counters>,
}

impl Tally {
    fn new(sight: Sight, occupancy: Occupancy) -> Self {
        Self {
            sight,
            occupancy,
            page: page_bytes(),
            frames: Pages::default(),
            files: HashMap::new(),
            unnumbered: Vec::new(),
            swap: BTreeSet::new(),
            swapped_unnumbered: 0,
            denied: Vec::new(),
        }
    }

    fn read(&mut self, pid: u32) -> io::Result<()> {
        let pagemap = File::open(format!("/proc/{pid}/pagemap"))?;
        let occupied = self.occupied(pid, &pagemap)?;
        self.unnumbered.push(Unnumbered::default());
        let mut bytes = vec![0; ENTRIES_MAX as usize * ENTRY];
        for (mapping, parts) in &occupied {
            for part in parts {
                self.read_part(&pagemap, mapping, part, &mut bytes)?;
            }
        }
        self.without_zeros(pid);
        Ok(())
    }

    /// The mappings of a process that have pages, with the parts that have them.
    fn occupied(
        &mut self,
        pid: u32,
        pagemap: &File,
    ) -> io::Result<Vec<(Mapping, Vec<Range<u64>>)>> {
        if self.occupancy == Occupancy::Scanned {
            match scanned(pid, pagemap) {
                // This kernel lacks the call; it is not tried again.
                Err(error) if has_no_such_call(&error) => self.occupancy = Occupancy::ByMapping,
                // This process is read the other way, because a filter of system calls may forbid the call.
                Err(error) if !has_ended(&error) => {}
                result => return result,
            }
        }
        let smaps = fs::read(format!("/proc/{pid}/smaps"))?;
        let used = used(&String::from_utf8_lossy(&smaps));
        let whole: u64 = used.iter().map(|at| at.addresses.end - at.addresses.start).sum();
        if whole > WHOLE_MAX {
            return Err(io::Error::other("more addresses than are worth reading"));
        }
        let all = |mapping: Mapping| {
            let part = mapping.addresses.clone();
            (mapping, vec![part])
        };
        Ok(used.into_iter().map(all).collect())
    }

    fn read_part(
        &mut self,
        pagemap: &File,
        mapping: &Mapping,
        part: &Range<u64>,
        bytes: &mut [u8],
    ) -> io::Result<()> {
        let (mut at, end) = (part.start / self.page, part.end / self.page);
        let in_file = mapping.offset / self.page;
        while at < end {
            let wanted = (end - at).min(ENTRIES_MAX) as usize * ENTRY;
            let read = pagemap.read_at(&mut bytes[..wanted], at * ENTRY as u64)?;
            let (entries, _) = bytes[..read].as_chunks::<ENTRY>();
            // Its memory is gone.
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                let place = in_file + (at - mapping.addresses.start / self.page);
                self.add(mapping, place, Entry(u64::from_ne_bytes(*entry)));
                at += 1;
            }
        }
        Ok(())
    }

    /// Counts a page of the process that is being read; `place` is its index in the mapping's file.
    fn add(&mut self, mapping: &Mapping, place: u64, entry: Entry) {
        if entry.is_swapped() {
            match self.sight {
                Sight::Frames if entry.frame() & 31 < SWAP_FILES_MAX => {
                    self.swap.insert(entry.frame());
                }
                Sight::Frames => {}
                Sight::Marks => self.swapped_unnumbered += 1,
            }
            return;
        }
        if !entry.is_present() {
            return;
        }
        if self.sight == Sight::Frames {
            return self.frames.insert(entry.frame());
        }
        let own =
            self.unnumbered.last_mut().expect("a process is begun before its pages are added");
        match &mapping.file {
            Some(file) if entry.is_of_file() => {
                own.of_files += 1;
                match self.files.get_mut(file) {
                    Some(pages) => pages.insert(place),
                    None => self.files.entry(file.clone()).or_default().insert(place),
                }
            }
            _ if entry.is_of_one_process() => own.of_one_process += 1,
            _ => own.shared += 1,
        }
    }

    /// Without frame numbers, a zero page looks like one that is shared with a relative, on kernels that do not leave
    /// it out. The kernel's own sum contains none of them.
    fn without_zeros(&mut self, pid: u32) {
        let Some(own) = self.unnumbered.last_mut().filter(|own| own.shared > 0) else { return };
        let Ok(sums) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { return };
        let kib = sums.lines().find_map(|line| line.strip_prefix("Rss:"));
        let Some(kib) = kib.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok())
        else {
            return;
        };
        let others = own.of_one_process + own.of_files;
        own.shared = own.shared.min((kib * 1024 / self.page).saturating_sub(others));
    }

    fn sum(&self) -> Footprint {
        let of_files: u64 = self.files.values().map(|pages| pages.len).sum();
        let of_one: u64 = self.unnumbered.iter().map(|own| own.of_one_process).sum();
        let shared = || self.unnumbered.iter().map(|own| own.shared);
        let known = (self.frames.len + of_files + of_one) * self.page;
        let (least, most) = (shared().max().unwrap_or(0), shared().sum::<u64>());
        let denied = |part: fn(&Counters) -> u64| self.denied.iter().map(part);
        let (unseen, unseen_files) =
            (denied(|of| of.anonymous).sum::<u64>(), denied(|of| of.of_files));
        let swapped = (self.swap.len() as u64 + self.swapped_unnumbered) * self.page;
        assert!(least <= most, "the largest set of shared pages is one of them");
        Footprint {
            method: match self.sight {
                _ if !self.denied.is_empty() => MemoryMethod::Resident,
                Sight::Frames => MemoryMethod::PagesOnce,
                Sight::Marks => MemoryMethod::Bound,
            },
            bytes: known + least * self.page + unseen + unseen_files.clone().max().unwrap_or(0),
            at_most: known + most * self.page + unseen + unseen_files.sum::<u64>(),
            swapped: swapped + denied(|of| of.swapped).sum::<u64>(),
            unread: self.denied.len() as u32,
        }
    }
}

/// The parts of each mapping that have pages, as the kernel finds them.
fn scanned(pid: u32, pagemap: &File) -> io::Result<Vec<(Mapping, Vec<Range<u64>>)>> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let with_parts = |mapping: Mapping| {
        let mut parts = Vec::new();
        pagemap::occupied(pagemap, mapping.addresses.clone(), &mut parts)?;
        Ok((mapping, parts))
    };
    String::from_utf8_lossy(&maps).lines().filter_map(Mapping::parse).map(with_parts).collect()
}

/// The mappings of a `/proc/PID/smaps` that have pages, in memory or swapped out.
fn used(smaps: &str) -> Vec<Mapping> {
    let mut used = Vec::new();
    let mut mapping = None;
    for line in smaps.lines() {
        // Fields of a mapping begin with their name in capitals, its first line with a number.
        let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_field(name)) else {
            mapping = Mapping::parse(line);
            continue;
        };
        let has_pages = !value.trim().starts_with("0 ");
        if matches!(name, "Rss" | "Swap" | "Shared_Hugetlb" | "Private_Hugetlb") && has_pages {
            used.extend(mapping.take());
        }
    }
    used
}

fn is_field(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.contains(' ')
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

fn has_no_such_call(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOTTY.raw_os_error())
}

fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::path::Path;
    use std::process::{Child, ChildStdout, Command, Stdio};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A perl that runs a script and exchanges lines with it; it ends when its input ends.
    struct Perl {
        child: Child,
        said: BufReader<ChildStdout>,
    }

    impl Perl {
        fn run(program: &Path, script: &str) -> Self {
            let mut child = Command::new(program)
                .args(["-e", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let said = BufReader::new(child.stdout.take().unwrap());
            Self { child, said }
        }

        fn says(&mut self) -> String {
            let mut line = String::new();
            self.said.read_line(&mut line).unwrap();
            line.trim().to_owned()
        }

        fn go_on(&mut self) {
            self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        }
    }

    impl Drop for Perl {
        fn drop(&mut self) {
            drop(self.child.stdin.take());
            // Its children end at the same end of input.
            let _ = self.child.wait();
        }
    }

    fn perl() -> Option<&'static Path> {
        let path = Path::new("/usr/bin/perl");
        if !path.exists() {
            skips::note("there is no /usr/bin/perl");
        }
        path.exists().then_some(path)
    }

    fn pss(pid: u32) -> u64 {
        let sums = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let kib = sums.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
        kib.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    #[test]
    fn processes_outside_the_tree_that_map_the_same_file_change_nothing() {
        let Some(perl) = perl() else { return };
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("perl");
        fs::copy(perl, &copy).unwrap();
        let idle = || {
            let mut one = Perl::run(&copy, "$| = 1; print qq(ready\n); <STDIN>");
            assert_eq!(one.says(), "ready");
            one
        };
        let server = idle();
        let pid = server.child.id();
        let seen = || [Sight::here(), Sight::Marks].map(|sight| footprint(&[pid], sight).bytes);
        let (alone, pss_alone) = (seen(), pss(pid));
        let strangers: Vec<Perl> = (0..6).map(|_| idle()).collect();
        let (beside, pss_beside) = (seen(), pss(pid));
        drop(strangers);
        let after = seen();
        // It sleeps and touches nothing, but the kernel may be taking pages from it or moving one.
        let tolerance = 16 * page_bytes();
        for other in [beside, after] {
            for (one, other) in alone.into_iter().zip(other) {
                assert!(one.abs_diff(other) <= tolerance, "{alone:?} {beside:?} {after:?}");
            }
        }
        let fell = pss_alone.saturating_sub(pss_beside);
        assert!(fell > 2 * tolerance, "PSS was to fall: {pss_alone}, {pss_beside}");
    }

    #[test]
    fn pages_that_a_fork_left_shared_are_counted_once() {
        let Some(perl) = perl() else { return };
        let (shared, own, children) = (32, 8, 4);
        let script = format!(
            "$| = 1; print qq(base\n); <STDIN>; vec($a, ({shared} << 20) - 1, 8) = 1;
             for (1..{children}) {{ next if fork; vec($b, ({own} << 20) - 1, 8) = 1;
                 print qq($$\n); <STDIN>; exit }}
             <STDIN>; wait for 1..{children}"
        );
        let mut server = Perl::run(perl, &script);
        assert_eq!(server.says(), "base");
        let sights = [Sight::here(), Sight::Marks];
        let base = sights.map(|sight| footprint(&[server.child.id()], sight).bytes);
        server.go_on();
        let mut pids = vec![server.child.id()];
        // Each prints its number once it has touched its own pages.
        pids.extend((0..children).map(|_| server.says().parse::<u32>().unwrap()));
        let expected = (shared + children * own) * MIB;
        // Allowance for what each child also writes: its stack and variables of the interpreter. The parent copies
        // its own part of those pages too.
        let slack = (children + 1) * MIB / 2;
        for (sight, base) in sights.into_iter().zip(base) {
            let seen = footprint(&pids, sight);
            let grown = seen.bytes - base;
            assert!((expected..=expected + slack).contains(&grown), "{sight:?} {base}: {seen:?}");
            let (method, most) = match sight {
                Sight::Frames => (MemoryMethod::PagesOnce, seen.bytes),
                Sight::Marks => (MemoryMethod::Bound, seen.bytes + children * shared * MIB),
            };
            assert_eq!(seen.method, method);
            assert!(seen.at_most >= most && seen.at_most < most + 4 * slack, "{seen:?}");
        }
    }

    const PRESENT: u64 = 1 << 63;
    const FILE: u64 = 1 << 61;
    const ALONE: u64 = 1 << 56;

    fn mapping(line: &str) -> Mapping {
        Mapping::parse(line).unwrap()
    }

    #[test]
    fn a_page_is_what_its_entry_says() {
        let heap = mapping("1000-9000 rw-p 00000000 00:00 0 [heap]");
        let text = mapping("1000-9000 r-xp 00002000 fe:00 77     /a file with spaces");
        assert_eq!((text.offset, text.file.clone()), (0x2000, Some(("fe:00".to_owned(), 77))));
        let two_processes = |sight, entries: &[(&Mapping, u64, u64)]| {
            let mut tally = Tally::new(sight, Occupancy::Scanned);
            for _ in 0..2 {
                tally.unnumbered.push(Unnumbered::default());
                entries.iter().for_each(|&(at, place, bits)| tally.add(at, place, Entry(bits)));
            }
            tally.sum()
        };
        let page = page_bytes();
        let swap = |kind: u64| 1 << 62 | 5 << 5 | kind;
        // With frames: 7, 8, and a place in the swap. A page that is being moved and a guard count as nothing.
        let entries = [
            (&heap, 0, PRESENT | 7),
            (&text, 0, PRESENT | FILE | 8),
            (&heap, 1, swap(0)),
            (&heap, 2, swap(31)),
            (&heap, 3, 1 << 58 | swap(0)),
            (&heap, 4, 0),
        ];
        let seen = two_processes(Sight::Frames, &entries);
        assert_eq!((seen.bytes, seen.at_most, seen.swapped), (2 * page, 2 * page, page));
        // Without: the file's page is one, the other's two, and those after a fork one or two.
        let entries = [
            (&heap, 0, PRESENT | ALONE),
            (&text, 0, PRESENT | FILE),
            (&heap, 1, PRESENT),
            (&heap, 2, 1 << 62),
        ];
        let seen = two_processes(Sight::Marks, &entries);
        assert_eq!((seen.bytes, seen.at_most, seen.swapped), (4 * page, 5 * page, 2 * page));
        assert_eq!((seen.method, seen.unread), (MemoryMethod::Bound, 0));
    }

    #[test]
    fn what_many_files_share_by_name_is_not_known_by_its_place() {
        for name in ["anon_inode:[io_uring]", "/dev/dri/card0"] {
            let line = format!("1000-2000 rw-s 00000000 00:0e 1060     {name}");
            assert_eq!(mapping(&line).file, None, "{name}");
        }
        for name in ["/dev/zero (deleted)", "/dev/shm/ring", "/memfd:x (deleted)", "/usr/bin/h2o"] {
            let line = format!("1000-2000 rw-s 00000000 00:01 1060     {name}");
            assert!(mapping(&line).file.is_some(), "{name}");
        }
        for line in ["7ff-800 r--p 00000000 00:00 0    [vvar]", "", "x", "1-2 r-xp"] {
            assert_eq!(Mapping::parse(line), None, "{line}");
        }
    }

    /// Numbers of mmap(2) and getrandom(2), and the flags of private anonymous memory that reserves no swap.
    const CALLS: Option<(u32, u32)> = match cfg!(target_arch = "x86_64") {
        true => Some((9, 318)),
        false if cfg!(target_arch = "aarch64") => Some((222, 278)),
        false => None,
    };

    #[test]
    fn without_the_scan_of_newer_kernels_reserved_addresses_cost_nothing() {
        let (Some(perl), Some((mmap, getrandom))) = (perl(), CALLS) else { return };
        // 256 GiB, of which one page is used after the first line.
        let script = format!(
            "$| = 1; $at = syscall({mmap}, 0, 256 << 30, 3, 0x4022, -1, 0); print qq($at\n); <STDIN>;
             print syscall({getrandom}, $at + (1 << 30), 8, 0), qq(\n); <STDIN>"
        );
        let mut server = Perl::run(perl, &script);
        assert!(server.says().parse::<i64>().is_ok_and(|at| at > 0), "256 GiB can be reserved");
        let pids = [server.child.id()];
        for sight in [Sight::here(), Sight::Marks] {
            let begun = std::time::Instant::now();
            let by_mapping = footprint_by(&pids, sight, Occupancy::ByMapping);
            // 256 GiB of pagemap take a quarter of a second and more.
            let took = begun.elapsed();
            let scanned = footprint(&pids, sight);
            assert!(by_mapping.bytes.abs_diff(scanned.bytes) <= 16 * page_bytes(), "{sight:?}");
            assert_eq!((by_mapping.method, by_mapping.unread), (scanned.method, 0));
            assert!(took < std::time::Duration::from_millis(200), "{took:?}");
        }
        server.go_on();
        assert_eq!(server.says(), "8");
        let seen = footprint_by(&pids, Sight::here(), Occupancy::ByMapping);
        assert_eq!((seen.method, seen.unread), (MemoryMethod::Resident, 1), "too much to read");
        assert_eq!(footprint(&pids, Sight::here()).unread, 0);
    }

    #[test]
    fn mappings_with_pages_are_those_whose_counters_say_so() {
        let smaps = "1000-2000 rw-p 00000000 00:00 0 \nSize: 4 kB\nRss:   4 kB\nSwap:  0 kB\n\
                     3000-4000 rw-p 00000000 00:00 0 [heap]\nRss:  0 kB\nSwap: 0 kB\nVmFlags: rd\n\
                     5000-6000 r--p 00000000 fe:00 7  /a:b C\nRss:  0 kB\nSwap:  8 kB\n\
                     7000-8000 r--p 00000000 00:00 0    [vvar]\nRss:  4 kB\nSwap: 0 kB\n\
                     200000-400000 rw-p 00000000 00:0f 9  /anon_hugepage (deleted)\nRss:  0 kB\n\
                     Shared_Hugetlb:  0 kB\nPrivate_Hugetlb:  2048 kB\nSwap: 0 kB\n";
        let starts: Vec<u64> = used(smaps).iter().map(|at| at.addresses.start).collect();
        assert_eq!(starts, [0x1000, 0x5000, 0x20_0000]);
    }

    #[test]
    fn a_process_that_may_not_be_read_is_counted_by_its_counters_and_said() {
        let status = "VmRSS:\t 70 kB\nRssAnon:\t    30 kB\nRssFile:\t   20 kB\nRssShmem:\t  20 kB\n\
                      VmSwap:\t  8 kB\n";
        let mut tally = Tally::new(Sight::Frames, Occupancy::Scanned);
        tally.frames.insert(9);
        tally.denied = vec![Counters::parse(status); 3];
        let page = page_bytes();
        let expected = Footprint {
            method: MemoryMethod::Resident,
            bytes: page + (3 * 30 + 40) * 1024,
            at_most: page + 3 * 70 * 1024,
            swapped: 3 * 8 * 1024,
            unread: 3,
        };
        assert_eq!(tally.sum(), expected);
    }

    #[test]
    fn a_number_is_in_a_set_once_wherever_it_lies() {
        let mut pages = Pages::default();
        for number in [0, 1, 63, 64, 1 << 15, 1 << 40, 1, 1 << 40, 0] {
            pages.insert(number);
        }
        assert_eq!((pages.len, pages.bits.len()), (6, 3));
    }
}
