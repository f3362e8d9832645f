//! io_uring for a server: connections, bytes and readiness of many sockets through one ring. Owns the
//! operations that are under way and the memory that the kernel writes to. Start reading at
//! [`ServerRing::enter`].
//!
//! # Cost
//!
//! One io_uring_enter a round, which hands over all that is to be done and waits for what comes of
//! it. A receive is armed once a connection (multishot) and takes its buffers from a ring that all
//! share; a send that succeeds has no completion (CQE_SKIP_SUCCESS); the end of the wait is one timer
//! that is moved when it has to be, not one that is set for each wait.
//!
//! # What the kernel holds, and for how long
//!
//! - An operation borrows its file and its bytes until [`ServerRing::enter`] returns. By then the
//!   kernel has taken every entry: it holds the file by its own reference, and is done with the
//!   bytes of a send, because MSG_DONTWAIT lets none wait. With MSG_WAITALL such a send is all or an
//!   error with the number of bytes that were taken: see [`ServerRing::cut`]. So nothing that is sent
//!   is copied or counted, and nothing has to outlive the call.
//! - Receives write to the ring's own buffers, which live until all receives have ended.
//! - Accepts and polls name no memory.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;
use std::thread;

use io_uring::types::{CancelBuilder, Fd, TimeoutFlags, Timespec};
use io_uring::{cqueue, opcode, squeue};
use rustix::event::PollFlags;
use units::Nanos;

use crate::clock;
use crate::uring::buffers::{Buffers, Filled, GROUP, Shape};
use crate::uring::ring::{self, Ring, SQ_ENTRIES};

/// Bytes of a receive buffer: most requests fit, and a body comes in pieces of so many.
const BUFFER_BYTES: u16 = 4096;

/// What a send is to the kernel: see the header.
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;

/// How large a ring is to be.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Operations that may be under way at once without the kernel having to keep their ends in a list.
    pub operations: u32,
    /// Receive buffers of 4 KiB; rounded up to a power of two, 32,768 at most. Where all are filled in
    /// one round, a receive ends (see [`is_starved`]) and is to be armed again.
    pub buffers: u16,
}

/// The caller's name for what an operation is about: below 2^56, given back with its events.
pub type Id = u64;

/// What is to be done. A file's operations are told apart by kind: of each there may be one under way
/// for an [`Id`], but sends, which are over when [`ServerRing::enter`] returns.
#[derive(Debug, Clone, Copy)]
pub enum Op<'a> {
    /// Accepts connections, non-blocking and close-on-exec.
    Accept {
        /// From here.
        listener: BorrowedFd<'a>,
        /// One, or one after the other.
        many: bool,
    },
    /// Receives again and again, until the end of the stream.
    Receive(BorrowedFd<'a>),
    /// Sends both, one of which may be empty.
    Send {
        /// Here.
        socket: BorrowedFd<'a>,
        /// First.
        head: &'a [u8],
        /// Then.
        body: &'a [u8],
    },
    /// Says once when the file is ready for one of these; errors and hang-ups are always told, and that
    /// the peer has ended its side (RDHUP), which the kernel adds to every poll of a ring.
    Poll(BorrowedFd<'a>, PollFlags),
    /// As [`Op::Poll`], and again each time that it becomes so (multishot): for who would be told the
    /// same at once otherwise. Of the same kind.
    Edges(BorrowedFd<'a>, PollFlags),
    /// Ends the operation of this kind with the same [`Id`], if it is under way: it comes to its end
    /// with ECANCELED, unless something else ended it first.
    Cancel(Kind),
}

/// What has a beginning and an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Op::Accept`].
    Accept = 1,
    /// [`Op::Receive`].
    Receive = 2,
    /// [`Op::Poll`].
    Poll = 3,
}

/// Tokens that are no [`Kind`] with its own end.
const SEND: u64 = 4;
const ALARM: u64 = 5;
const CANCEL: u64 = 6;

/// Something that happened.
#[derive(Debug)]
pub struct Event {
    /// As given with the operation.
    pub id: Id,
    /// What.
    pub what: What,
    /// The operation is over; nothing more comes of it.
    pub ended: bool,
}

/// What happened.
#[derive(Debug)]
pub enum What {
    /// A connection; EMFILE and the like, as of accept(2).
    Accepted(io::Result<OwnedFd>),
    /// Bytes, which [`ServerRing::received`] has until the next event is asked for: none at the end
    /// of the stream. ECONNRESET and the like; see [`is_starved`].
    Received(io::Result<()>),
    /// For what the file is ready.
    Ready(io::Result<PollFlags>),
}

/// A send of the last [`ServerRing::enter`] that was not taken as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// As given with it.
    pub id: Id,
    /// Bytes that were taken: the socket has no room for the rest now. `None`: the connection is lost.
    pub sent: Option<usize>,
}

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until something happened or this instant of the monotonic clock; [`Nanos::MAX`]: for ever.
    Until(Nanos),
}

/// A ring; stays on the thread that made it.
pub struct ServerRing {
    /// Dropped first: the kernel lets go of the memory below.
    ring: Ring,
    buffers: Buffers,
    messages: Messages,
    /// What the last call brought, the next one at `taken`.
    came: Vec<cqueue::Entry>,
    taken: usize,
    /// The buffer of the event that was taken last.
    held: Option<Filled>,
    cut: Vec<Cut>,
    /// When the timer that is armed ends; `MAX`: none is.
    alarm: Nanos,
    /// The same for the kernel, which reads it as it takes the entry.
    instant: Timespec,
    /// Operations that name our buffers, or will have an event.
    n_in_flight: usize,
    /// Entries may name what nobody holds any longer: they must never be handed over.
    is_spoilt: bool,
    /// The ring belongs to this thread (SINGLE_ISSUER).
    _not_send: PhantomData<*const ()>,
}

/// Headers of the sends in two parts, one for each entry that may be pending. The kernel reads them as
/// it takes the entry.
struct Messages {
    headers: Box<[libc::msghdr]>,
    parts: Box<[[libc::iovec; 2]]>,
    n_used: usize,
}

/// Whether a server's ring can be used here; makes one, enters it once, since a sandbox may forbid that
/// alone, and lets it go. On its own thread: the kernel takes a ring apart later, and interrupts
/// whatever call the thread that used it blocks in by then (EINTR).
///
/// # Errors
/// As [`ServerRing::new`].
pub fn is_available() -> io::Result<()> {
    let size = Size { operations: 1, buffers: 1 };
    let made = thread::spawn(move || ServerRing::new(size)?.ring.look().map_err(ring::explained));
    made.join().expect("making a ring does not panic")
}

/// Whether a receive ended because no buffer was free. They are again once the events were processed.
pub fn is_starved(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Whether an operation ended because of [`Op::Cancel`].
pub fn is_cancelled(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ECANCELED)
}

impl ServerRing {
    /// A ring of that size, for the calling thread only.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the kernel has no io_uring, or one from before 6.1;
    /// [`io::ErrorKind::PermissionDenied`] where it is forbidden; both say by what.
    /// [`io::ErrorKind::OutOfMemory`] where the limit of locked memory is too low. EMFILE as it is.
    pub fn new(size: Size) -> io::Result<Self> {
        let ring = Ring::new(size.operations).map_err(ring::explained)?;
        let n_buffers = size.buffers.clamp(1, 1 << 15).next_power_of_two();
        let shape = Shape { n_buffers, n_bytes: BUFFER_BYTES };
        let buffers = Buffers::register(ring.uring(), shape).map_err(ring::explained)?;
        Ok(Self {
            ring,
            buffers,
            messages: Messages::new(),
            came: Vec::new(),
            taken: 0,
            held: None,
            cut: Vec::new(),
            alarm: Nanos::MAX,
            instant: Timespec::new(),
            n_in_flight: 0,
            is_spoilt: false,
            _not_send: PhantomData,
        })
    }

    /// Hands over `ops` in their order, with the caller's name for each, and waits. What came of it is
    /// in [`ServerRing::cut`] and [`ServerRing::next_event`]; events that were not taken before are lost. May
    /// return early, with nothing to tell: a signal came.
    ///
    /// # Errors
    /// Of the ring only, which is useless from then on.
    pub fn enter<'a>(
        &mut self,
        ops: impl IntoIterator<Item = (Id, Op<'a>)>,
        wait: Wait,
    ) -> io::Result<()> {
        while self.next_event().is_some() {}
        if std::mem::replace(&mut self.is_spoilt, true) {
            return Err(io::Error::other("an earlier call failed, and the ring with it"));
        }
        self.came.clear();
        self.taken = 0;
        self.cut.clear();
        self.buffers.publish();
        for (id, op) in ops {
            self.push_op(id, op)?;
        }
        match wait {
            Wait::No => self.ring.look()?,
            Wait::Until(until) => {
                self.set_alarm(until)?;
                self.ring.wait(None)?;
            }
        }
        self.messages.n_used = 0;
        self.collect();
        while self.ring.has_overflowed() {
            self.ring.look()?;
            self.collect();
        }
        // Every entry was taken: what they borrowed is the caller's again.
        self.is_spoilt = false;
        Ok(())
    }

    /// Sends of the last call that were not taken as a whole.
    pub fn cut(&self) -> &[Cut] {
        &self.cut
    }

    /// The next event of the last call.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        if let Some(filled) = self.held.take() {
            self.buffers.give_back(filled.id);
        }
        let entry = self.came.get(self.taken)?;
        self.taken += 1;
        let (token, result, flags) = (entry.user_data(), entry.result(), entry.flags());
        let result =
            if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result) };
        let what = match token >> ID_BITS {
            kind if kind == Kind::Accept as u64 => What::Accepted(result.map(owned)),
            kind if kind == Kind::Receive as u64 => {
                self.held = cqueue::buffer_select(flags).map(|id| Filled {
                    id,
                    from: 0,
                    n_bytes: result.as_ref().map_or(0, |n_bytes| *n_bytes as u32),
                });
                What::Received(result.map(|_| ()))
            }
            _ => What::Ready(result.map(|flags| PollFlags::from_bits_retain(flags as u16))),
        };
        Some(Event { id: token & ID_MASK, what, ended: !cqueue::more(flags) })
    }

    /// The bytes of the event that was taken last.
    #[inline]
    pub fn received(&self) -> &[u8] {
        self.held.map_or(&[], |filled| self.buffers.bytes(filled))
    }

    fn push_op(&mut self, id: Id, op: Op<'_>) -> io::Result<()> {
        assert!(id <= ID_MASK, "a name has 56 bits");
        let (kind, entry) = match op {
            Op::Send { socket, head, body } => {
                let entry = self.send(Fd(socket.as_raw_fd()), head, body)?;
                return self.push(SEND, id, entry.flags(squeue::Flags::SKIP_SUCCESS));
            }
            Op::Cancel(kind) => {
                let entry = opcode::AsyncCancel::new(token(kind as u64, id)).build();
                return self.push(CANCEL, id, entry.flags(squeue::Flags::SKIP_SUCCESS));
            }
            Op::Accept { listener, many } => (Kind::Accept, accept(Fd(listener.as_raw_fd()), many)),
            Op::Receive(socket) => {
                let fd = Fd(socket.as_raw_fd());
                (Kind::Receive, opcode::RecvMulti::new(fd, GROUP).build())
            }
            Op::Poll(file, flags) => {
                let (fd, flags) = (Fd(file.as_raw_fd()), u32::from(flags.bits()));
                (Kind::Poll, opcode::PollAdd::new(fd, flags).build())
            }
            Op::Edges(file, flags) => {
                let (fd, flags) = (Fd(file.as_raw_fd()), u32::from(flags.bits()));
                (Kind::Poll, opcode::PollAdd::new(fd, flags).multi(true).build())
            }
        };
        self.n_in_flight += 1;
        self.push(kind as u64, id, entry)
    }

    fn send(&mut self, fd: Fd, head: &[u8], body: &[u8]) -> io::Result<squeue::Entry> {
        let only = match (head, body) {
            (only, []) | ([], only) => only,
            both => {
                if self.messages.n_used == self.messages.headers.len() {
                    self.ring.submit()?;
                    self.messages.n_used = 0;
                }
                let message = self.messages.of(both.0, both.1);
                return Ok(opcode::SendMsg::new(fd, message).flags(SEND_FLAGS as u32).build());
            }
        };
        let n_bytes = u32::try_from(only.len()).unwrap_or(u32::MAX);
        Ok(opcode::Send::new(fd, only.as_ptr(), n_bytes).flags(SEND_FLAGS).build())
    }

    fn push(&mut self, kind: u64, id: Id, entry: squeue::Entry) -> io::Result<()> {
        let entry = entry.user_data(token(kind, id));
        // SAFETY: what a send names is borrowed for the call of `enter` that pushes it, and nothing is
        // handed over after a call that failed (`is_spoilt`); the kernel is done with it when it has
        // taken the entry, since MSG_DONTWAIT lets no send wait. Message headers stay until then too.
        // A timer's instant is read as the entry is taken. All else names no memory but the buffers.
        unsafe { self.ring.push(&entry) }
    }

    /// Has the wait end at `until`. The timer stays where it ends before: then the wait ends early once.
    fn set_alarm(&mut self, until: Nanos) -> io::Result<()> {
        if until >= self.alarm {
            return Ok(());
        }
        let (secs, nanos) = (until.0 / 1_000_000_000, until.0 % 1_000_000_000);
        self.instant = Timespec::new().sec(secs).nsec(nanos as u32);
        let instant = &raw const self.instant;
        if std::mem::replace(&mut self.alarm, until) == Nanos::MAX {
            self.n_in_flight += 1;
            let entry = opcode::Timeout::new(instant).flags(TimeoutFlags::ABS).build();
            return self.push(ALARM, 0, entry);
        }
        // One that has ended meanwhile is not found: its event wakes this very wait.
        let moved = opcode::TimeoutUpdate::new(token(ALARM, 0), instant);
        let entry = moved.flags(TimeoutFlags::ABS).build();
        self.push(CANCEL, 0, entry.flags(squeue::Flags::SKIP_SUCCESS))
    }

    /// Takes what has come: the sends that were cut, and the rest for [`ServerRing::next_event`].
    fn collect(&mut self) {
        while let Some(entry) = self.ring.pop() {
            let ended = !cqueue::more(entry.flags());
            let (token, result) = (entry.user_data(), entry.result());
            match token >> ID_BITS {
                SEND => self.cut.push(Cut { id: token & ID_MASK, sent: taken(result) }),
                CANCEL => {}
                ALARM => {
                    self.alarm = Nanos::MAX;
                    self.n_in_flight -= 1;
                }
                _ => {
                    self.n_in_flight -= usize::from(ended);
                    self.came.push(entry);
                }
            }
        }
    }
}

/// Bytes that a send which was not taken as a whole has moved, by its result.
fn taken(result: i32) -> Option<usize> {
    match result {
        0.. => Some(result as usize),
        _ if result == -libc::EAGAIN => Some(0),
        _ => None,
    }
}

const ID_BITS: u32 = 56;
const ID_MASK: u64 = (1 << ID_BITS) - 1;

fn token(kind: u64, id: Id) -> u64 {
    kind << ID_BITS | id
}

fn accept(listener: Fd, many: bool) -> squeue::Entry {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    if many {
        opcode::AcceptMulti::new(listener).flags(flags).build()
    } else {
        opcode::Accept::new(listener, ptr::null_mut(), ptr::null_mut()).flags(flags).build()
    }
}

fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the result of an accept that succeeded: a descriptor that nobody else knows, and each
    // completion is turned into an event once.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

impl Messages {
    fn new() -> Self {
        let part = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let header = || libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: ptr::null_mut(),
            msg_iovlen: 2,
            msg_control: ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        };
        Self {
            headers: (0..SQ_ENTRIES).map(|_| header()).collect(),
            parts: (0..SQ_ENTRIES).map(|_| [part; 2]).collect(),
            n_used: 0,
        }
    }

    /// A message of both; good until `n_used` is set back.
    fn of(&mut self, head: &[u8], body: &[u8]) -> *const libc::msghdr {
        let at = self.n_used;
        self.n_used += 1;
        self.parts[at] = [head, body].map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        });
        self.headers[at].msg_iov = self.parts[at].as_mut_ptr();
        &raw const self.headers[at]
    }
}

impl Drop for ServerRing {
    /// Ends what is under way before its memory goes. A kernel that does not confirm it (never seen)
    /// keeps the buffers: they are leaked. Connections that were accepted and not taken are closed.
    fn drop(&mut self) {
        while self.next_event().is_some() {}
        self.end_all();
        while self.next_event().is_some() {}
        if self.n_in_flight > 0 {
            self.buffers.leak();
        }
    }
}

impl ServerRing {
    fn end_all(&mut self) {
        let all = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        if self.is_spoilt || self.push(CANCEL, 0, all).is_err() {
            return;
        }
        let until = clock::monotonic() + Nanos::from_secs(1);
        while self.n_in_flight > 0 && clock::monotonic() < until {
            if self.ring.wait(Some(Nanos::from_millis(10))).is_err() {
                return;
            }
            self.collect();
        }
    }
}
