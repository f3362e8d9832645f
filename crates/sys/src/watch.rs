//! One interface for waiting for many files: epoll(7), poll(2) and select(2) behind the same calls, so that an event
//! loop is written once. Owns which file is watched for what. Start reading at [`Watch`].
//!
//! The loop is generic over it, so a call costs the same as without the trait. The difference is in the cost of a wait:
//! epoll's grows with the number of ready files, poll's and select's with the number of watched files (C. Gammo et al.,
//! "Comparing and Evaluating epoll, select, and poll Event Mechanisms", Ottawa Linux Symposium 2004).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use units::Nanos;

use crate::epoll::{Epoll, EventFlags, Ready};

/// Files with higher numbers do not fit into an `fd_set` (select(2)).
pub const SELECT_FILES_MAX: usize = libc::FD_SETSIZE;

/// What a file is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data to read, or the end of the stream.
    Read,
    /// Room to write.
    Write,
    /// Either of them.
    Either,
    /// Nothing for now.
    Nothing,
}

/// A set of files to wait for.
pub trait Watch: Sized {
    /// Whether it reports changes only (edge-triggered), and each file is registered once. Otherwise it reports the
    /// current state as long as it is of interest, and files must be removed before they are closed.
    const TELLS_ONCE: bool;

    /// An empty set.
    ///
    /// # Errors
    /// EMFILE and the like.
    fn new() -> io::Result<Self>;

    /// Watches `file` for data to read, and reports it as long as there is some.
    ///
    /// # Errors
    /// As those of [`Watch::add`].
    fn add_source(&mut self, file: impl AsFd, token: u64) -> io::Result<()>;

    /// As [`Watch::add_source`], if several sets watch the same file and only one of them should be woken
    /// (EPOLLEXCLUSIVE). Sets without this feature are all woken.
    ///
    /// # Errors
    /// As those of [`Watch::add`].
    fn add_shared(&mut self, file: impl AsFd, token: u64) -> io::Result<()>;

    /// Watches `file` for `interest`; for a file that is already watched, changes the interest. An edge-triggered set
    /// may report more than that, and need not repeat what it has reported; see [`Watch::change`].
    ///
    /// # Errors
    /// No resources are left to watch it, or its number is too high.
    fn add(&mut self, file: impl AsFd, token: u64, interest: Interest) -> io::Result<()>;

    /// Changes the interest in a file of [`Watch::add`].
    fn change(&mut self, file: impl AsFd, interest: Interest);

    /// Stops watching `file`. Call it before a file is closed.
    fn remove(&mut self, file: impl AsFd);

    /// As [`Watch::remove`], for a file that is about to be closed.
    fn forget(&mut self, file: impl AsFd);

    /// Fills `ready` with the ready files, waiting for at most `timeout` (`None`: for ever). After a signal it is
    /// empty.
    ///
    /// # Errors
    /// None in practice.
    fn wait(&mut self, ready: &mut Vec<Ready>, timeout: Option<Nanos>) -> io::Result<()>;
}

/// Edge-triggered: a file is registered with the kernel once, for everything.
impl Watch for Epoll {
    const TELLS_ONCE: bool = true;

    fn new() -> io::Result<Self> {
        Self::new()
    }

    fn add_source(&mut self, file: impl AsFd, token: u64) -> io::Result<()> {
        Self::add(self, file, token, EventFlags::IN)
    }

    fn add_shared(&mut self, file: impl AsFd, token: u64) -> io::Result<()> {
        Self::add(self, file, token, EventFlags::IN | EventFlags::EXCLUSIVE)
    }

    fn add(&mut self, file: impl AsFd, token: u64, _: Interest) -> io::Result<()> {
        let all = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        match Self::add(self, file.as_fd(), token, all) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.modify(file, token, all)
            }
            added => added,
        }
    }

    #[inline(always)]
    fn change(&mut self, _: impl AsFd, _: Interest) {}

    fn remove(&mut self, file: impl AsFd) {
        // It is missing if its owner has removed it before.
        let _ = Self::remove(self, file);
    }

    #[inline(always)]
    fn forget(&mut self, _: impl AsFd) {}

    fn wait(&mut self, ready: &mut Vec<Ready>, timeout: Option<Nanos>) -> io::Result<()> {
        Self::wait(self, ready, timeout)
    }
}

/// The set of poll(2).
#[derive(Debug, Default)]
pub struct PollSet {
    /// The kernel's array; entries without interest have a negative number, which it skips.
    entries: Vec<libc::pollfd>,
    /// The token of each entry, and its file.
    owners: Vec<(u64, i32)>,
    /// The position in `entries` of each file, by its number; `ABSENT`: none.
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl PollSet {
    fn place(&self, file: &impl AsFd) -> Option<usize> {
        let place = *self.places.get(file.as_fd().as_raw_fd() as usize)?;
        (place != ABSENT).then_some(place as usize)
    }

    fn put(&mut self, file: &impl AsFd, token: u64, interest: Interest) {
        let fd = file.as_fd().as_raw_fd();
        if let Some(place) = self.place(file) {
            self.entries[place] = entry(fd, interest);
            self.owners[place] = (token, fd);
            return;
        }
        if self.places.len() <= fd as usize {
            self.places.resize(fd as usize + 1, ABSENT);
        }
        self.places[fd as usize] = self.entries.len() as u32;
        self.entries.push(entry(fd, interest));
        self.owners.push((token, fd));
    }
}

fn entry(fd: i32, interest: Interest) -> libc::pollfd {
    // Without interest not even the end of a connection should wake the loop repeatedly.
    let (fd, events) = match interest {
        Interest::Read => (fd, libc::POLLIN | libc::POLLRDHUP),
        Interest::Write => (fd, libc::POLLOUT),
        Interest::Either => (fd, libc::POLLIN | libc::POLLRDHUP | libc::POLLOUT),
        Interest::Nothing => (-1, 0),
    };
    libc::pollfd { fd, events, revents: 0 }
}

impl Watch for PollSet {
    const TELLS_ONCE: bool = false;

    fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    fn add_source(&mut self, file: impl AsFd, token: u64) -> io::Result<()> {
        self.add(file, token, Interest::Read)
    }

    fn add_shared(&mut self, file: impl AsFd, token: u64) -> io::Result<()> {
        self.add(file, token, Interest::Read)
    }

    fn add(&mut self, file: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.put(&file, token, interest);
        Ok(())
    }

    fn change(&mut self, file: impl AsFd, interest: Interest) {
        if let Some(place) = self.place(&file) {
            self.entries[place] = entry(self.owners[place].1, interest);
        }
    }

    fn remove(&mut self, file: impl AsFd) {
        let Some(place) = self.place(&file) else { return };
        let (_, fd) = self.owners.swap_remove(place);
        self.entries.swap_remove(place);
        self.places[fd as usize] = ABSENT;
        if let Some((_, moved)) = self.owners.get(place) {
            self.places[*moved as usize] = place as u32;
        }
    }

    fn forget(&mut self, file: impl AsFd) {
        self.remove(file);
    }

    fn wait(&mut self, ready: &mut Vec<Ready>, timeout: Option<Nanos>) -> io::Result<()> {
        ready.clear();
        let timeout = timespec(timeout);
        let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let count = self.entries.len() as libc::nfds_t;
        // SAFETY: the kernel reads and writes `count` pollfds, which the vector has, and reads the
        // timespec, which lives on; no mask is changed.
        let n = unsafe { libc::ppoll(self.entries.as_mut_ptr(), count, pointer, std::ptr::null()) };
        if n < 0 {
            return nothing_if_interrupted();
        }
        let told = self.entries.iter().zip(&self.owners).filter(|(entry, _)| entry.revents != 0);
        // poll's bits are epoll's (include/uapi/linux/eventpoll.h).
        let flags = |revents: i16| EventFlags::from_bits_retain(u32::from(revents.cast_unsigned()));
        ready.extend(
            told.take(n as usize)
                .map(|(entry, (token, _))| Ready { token: *token, flags: flags(entry.revents) }),
        );
        Ok(())
    }
}

/// The set of select(2): files up to number [`SELECT_FILES_MAX`] - 1.
pub struct SelectSet {
    reads: libc::fd_set,
    writes: libc::fd_set,
    tokens: Box<[u64; SELECT_FILES_MAX]>,
    /// One more than the highest number that was ever watched.
    end: i32,
}

impl std::fmt::Debug for SelectSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SelectSet of files below {}", self.end)
    }
}

fn no_files() -> libc::fd_set {
    // SAFETY: an fd_set is an array of integers, and one of zeros is the empty set.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn is_set(fd: i32, set: &libc::fd_set) -> bool {
    // SAFETY: `fd` is below FD_SETSIZE, like every number in this module.
    unsafe { libc::FD_ISSET(fd, set) }
}

fn mark(fd: i32, set: &mut libc::fd_set, is_in: bool) {
    if is_in {
        // SAFETY: `fd` is below FD_SETSIZE: `add` refuses others.
        unsafe { libc::FD_SET(fd, set) }
    } else {
        // SAFETY: as above.
        unsafe { libc::FD_CLR(fd, set) }
    }
}

/// The number of a file, if it fits into a set.
fn fitting(file: BorrowedFd<'_>) -> Option<i32> {
    let fd = file.as_raw_fd();
    ((fd as usize) < SELECT_FILES_MAX).then_some(fd)
}

impl Watch for SelectSet {
    const TELLS_ONCE: bool = false;

    fn new() -> io::Result<Self> {
        let tokens = Box::new([0; SELECT_FILES_MAX]);
        Ok(Self { reads: no_files(), writes: no_files(), tokens, end: 0 })
    }

    fn add_source(&mut self, file: impl AsFd, token: u64) -> io::Result<()> {
        self.add(file, token, Interest::Read)
    }

    fn add_shared(&mut self, file: impl AsFd, token: u64) -> io::Result<()> {
        self.add(file, token, Interest::Read)
    }

    fn add(&mut self, file: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let Some(fd) = fitting(file.as_fd()) else {
            return Err(io::Error::other("select watches no file with a number above 1023"));
        };
        self.tokens[fd as usize] = token;
        self.end = self.end.max(fd + 1);
        self.change(file, interest);
        Ok(())
    }

    fn change(&mut self, file: impl AsFd, interest: Interest) {
        if let Some(fd) = fitting(file.as_fd()) {
            let either = interest == Interest::Either;
            mark(fd, &mut self.reads, either || interest == Interest::Read);
            mark(fd, &mut self.writes, either || interest == Interest::Write);
        }
    }

    fn remove(&mut self, file: impl AsFd) {
        self.change(file, Interest::Nothing);
    }

    fn forget(&mut self, file: impl AsFd) {
        self.remove(file);
    }

    fn wait(&mut self, ready: &mut Vec<Ready>, timeout: Option<Nanos>) -> io::Result<()> {
        ready.clear();
        let (mut reads, mut writes) = (self.reads, self.writes);
        let timeout = timespec(timeout);
        let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the kernel reads and writes the two sets up to `end`, which is at most FD_SETSIZE,
        // and reads the timespec; all of them live on.
        let n = unsafe {
            libc::pselect(
                self.end,
                &mut reads,
                &mut writes,
                std::ptr::null_mut(),
                pointer,
                std::ptr::null(),
            )
        };
        if n < 0 {
            return nothing_if_interrupted();
        }
        for fd in 0..if n == 0 { 0 } else { self.end } {
            let mut flags = EventFlags::empty();
            flags.set(EventFlags::IN, is_set(fd, &reads));
            flags.set(EventFlags::OUT, is_set(fd, &writes));
            if !flags.is_empty() {
                ready.push(Ready { token: self.tokens[fd as usize], flags });
            }
        }
        Ok(())
    }
}

fn timespec(timeout: Option<Nanos>) -> Option<libc::timespec> {
    timeout.map(|nanos| libc::timespec {
        tv_sec: (nanos.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanos.0 % 1_000_000_000) as libc::c_long,
    })
}

fn nothing_if_interrupted() -> io::Result<()> {
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// The ready files, without waiting: token, and whether to read or to write.
    fn told(set: &mut impl Watch) -> Vec<(u64, bool, bool)> {
        let mut ready = Vec::new();
        set.wait(&mut ready, Some(Nanos::ZERO)).unwrap();
        let told = |event: &Ready| {
            let reads = EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP;
            (event.token, event.flags.intersects(reads), event.flags.contains(EventFlags::OUT))
        };
        ready.iter().map(told).collect()
    }

    fn tells_what_is_ready_and_forgets<W: Watch>() {
        let mut set = W::new().unwrap();
        let (mut left, mut right) = UnixStream::pair().unwrap();
        let (other, _its_peer) = UnixStream::pair().unwrap();
        set.add_source(&other, 5).unwrap();
        set.add_source(&right, 7).unwrap();
        assert_eq!(told(&mut set), []);
        left.write_all(b"x").unwrap();
        assert_eq!(told(&mut set), [(7, true, false)]);
        // It is reported as long as it was not read.
        assert_eq!(told(&mut set), [(7, true, false)]);
        right.read_exact(&mut [0]).unwrap();
        assert_eq!(told(&mut set), []);
        set.remove(&other);
        left.write_all(b"x").unwrap();
        assert_eq!(told(&mut set), [(7, true, false)]);
        set.remove(&right);
        assert_eq!(told(&mut set), []);
        set.add_source(&right, 8).unwrap();
        assert_eq!(told(&mut set), [(8, true, false)]);
    }

    #[test]
    fn every_set_tells_what_is_ready_and_forgets_what_is_removed() {
        tells_what_is_ready_and_forgets::<Epoll>();
        tells_what_is_ready_and_forgets::<PollSet>();
        tells_what_is_ready_and_forgets::<SelectSet>();
    }

    fn tells_only_what_is_of_interest<W: Watch>() {
        let mut set = W::new().unwrap();
        let (left, right) = UnixStream::pair().unwrap();
        set.add(&right, 7, Interest::Read).unwrap();
        assert_eq!(told(&mut set), []);
        for interest in [Interest::Write, Interest::Either] {
            set.change(&right, interest);
            assert_eq!(told(&mut set), [(7, false, true)]);
        }
        set.add(&right, 8, Interest::Write).unwrap();
        assert_eq!(told(&mut set), [(8, false, true)], "watched once, however often it is added");
        set.change(&right, Interest::Nothing);
        drop(left);
        assert_eq!(told(&mut set), [], "not even its end");
        set.change(&right, Interest::Read);
        assert_eq!(told(&mut set).len(), 1);
    }

    #[test]
    fn poll_and_select_tell_only_what_is_of_interest() {
        tells_only_what_is_of_interest::<PollSet>();
        tells_only_what_is_of_interest::<SelectSet>();
    }

    #[test]
    fn a_wait_is_never_cut_short() {
        fn wait<W: Watch>() -> Nanos {
            let before = crate::clock::monotonic();
            let timeout = Some(Nanos::from_micros(700));
            W::new().unwrap().wait(&mut Vec::new(), timeout).unwrap();
            crate::clock::monotonic() - before
        }
        assert!(wait::<PollSet>() >= Nanos::from_micros(700));
        assert!(wait::<SelectSet>() >= Nanos::from_micros(700));
    }
}
