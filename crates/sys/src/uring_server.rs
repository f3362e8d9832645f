//! io_uring for a server: connections, bytes and readiness of many sockets through one ring. Owns the operations in
//! flight and the memory that the kernel writes to. Start reading at [`ServerRing::enter`].
//!
//! # Cost
//!
//! One io_uring_enter per round, which submits everything and waits for completions. A receive is armed once per
//! connection (multishot) and takes its buffers from a ring that all share; a send that succeeds has no completion
//! (CQE_SKIP_SUCCESS); the end of the wait is one timer that is moved when needed, and not set for each wait.
//!
//! # What the kernel holds, and for how long
//!
//! - An operation borrows its file and its bytes until [`ServerRing::enter`] returns. By then the
//!   kernel has taken every entry: it holds its own reference to the file, and is done with the
//!   bytes of a send, because MSG_DONTWAIT lets none wait. With MSG_WAITALL such a send is complete or
//!   an error with the number of bytes that were taken: see [`ServerRing::cut`]. So nothing that is sent
//!   is copied or counted, and nothing has to outlive the call.
//! - Receives write to the ring's own buffers, which live until all receives have ended.
//! - Accepts and polls name no memory.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;
use std::thread;

use io_uring::types::{CancelBuilder, Fd, Timespec};
use io_uring::{cqueue, opcode, squeue};
use rustix::event::PollFlags;
use units::Nanos;

use crate::clock;
use crate::uring::buffers::{Buffers, Filled, GROUP, Shape};
use crate::uring::ring::{self, Ring, SQ_ENTRIES};

/// Bytes of a receive buffer: most requests fit, and a body comes in pieces of this size.
const BUFFER_BYTES: u16 = 4096;

/// Flags of a send: see the header.
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;

/// The size of a ring.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Operations in flight at once before the kernel has to keep completions in an overflow list.
    pub operations: u32,
    /// Receive buffers of 4 KiB; rounded up to a power of two, 32,768 at most. If all are filled in one round, a
    /// receive ends (see [`is_starved`]) and has to be armed again.
    pub buffers: u16,
}

/// The caller's identifier of an operation: below 2^56, returned with its events.
pub type Id = u64;

/// An operation to start. For each [`Id`] there may be one of each kind in flight, except for sends, which are finished
/// when [`ServerRing::enter`] returns.
#[derive(Debug, Clone, Copy)]
pub enum Op<'a> {
    /// Accepts connections, non-blocking and close-on-exec.
    Accept {
        /// The listening socket.
        listener: BorrowedFd<'a>,
        /// Whether to accept repeatedly, or only once.
        many: bool,
    },
    /// Receives repeatedly (multishot), until the end of the stream.
    Receive(BorrowedFd<'a>),
    /// Sends both, one of which may be empty.
    Send {
        /// The socket.
        socket: BorrowedFd<'a>,
        /// The first part.
        head: &'a [u8],
        /// The second part.
        body: &'a [u8],
    },
    /// Reports once when the file is ready for one of these. Errors and hang-ups are always reported, and so is the end
    /// of the peer's side (RDHUP), which the kernel adds to every poll of a ring.
    Poll(BorrowedFd<'a>, PollFlags),
    /// As [`Op::Poll`], but reports each time that the file becomes ready (multishot): for files where a single poll
    /// would fire again at once. It has the same kind.
    Edges(BorrowedFd<'a>, PollFlags),
    /// Ends the operation of this kind with the same [`Id`], if it is in flight: it ends with ECANCELED, unless
    /// something else ended it first.
    Cancel(Kind),
}

/// Operations with a beginning and an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Op::Accept`].
    Accept = 1,
    /// [`Op::Receive`].
    Receive = 2,
    /// [`Op::Poll`].
    Poll = 3,
}

/// Tokens of operations that have no [`Kind`].
const SEND: u64 = 4;
const ALARM: u64 = 5;
const CANCEL: u64 = 6;

/// An event.
#[derive(Debug)]
pub struct Event {
    /// As given with the operation.
    pub id: Id,
    /// The result.
    pub what: What,
    /// The operation is over; nothing more comes of it.
    pub ended: bool,
}

/// The result of an operation.
#[derive(Debug)]
pub enum What {
    /// An accepted connection; EMFILE and other errors of accept(2).
    Accepted(io::Result<OwnedFd>),
    /// Bytes, which [`ServerRing::received`] has until the next event is requested: none at the end of the stream.
    /// ECONNRESET and the like; see [`is_starved`].
    Received(io::Result<()>),
    /// What the file is ready for.
    Ready(io::Result<PollFlags>),
}

/// A send of the last [`ServerRing::enter`] that was taken only in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// As given with the send.
    pub id: Id,
    /// Bytes that were taken: the socket has no room for the rest now. `None`: the connection is lost.
    pub sent: Option<usize>,
}

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until an event or this instant of the monotonic clock; [`Nanos::MAX`]: for ever.
    Until(Nanos),
}

/// A ring; stays on the thread that made it.
pub struct ServerRing {
    /// Dropped first, so that the kernel releases the memory below.
    ring: Ring,
    buffers: Buffers,
    messages: Messages,
    /// The events of the last call; the next one is at `taken`.
    came: Vec<cqueue::Entry>,
    taken: usize,
    /// The buffer of the last event.
    held: Option<Filled>,
    cut: Vec<Cut>,
    /// When the armed timer ends; `MAX`: none is armed.
    alarm: Nanos,
    /// The same for the kernel, which reads it when it takes the entry.
    instant: Timespec,
    /// Operations in flight that name our buffers, or will have an event.
    n_in_flight: usize,
    /// Entries may name memory or files that are gone: they must never be submitted.
    is_spoilt: bool,
    /// The ring belongs to this thread (SINGLE_ISSUER).
    _not_send: PhantomData<*const ()>,
}

/// Headers of the sends in two parts, one for each entry that may be pending. The kernel reads them when it takes the
/// entry.
struct Messages {
    headers: Box<[libc::msghdr]>,
    parts: Box<[[libc::iovec; 2]]>,
    n_used: usize,
}

/// Whether a server's ring can be used here. Makes one, enters it once (a sandbox may forbid only that), and closes it.
/// On its own thread: the kernel tears a ring down later, and then interrupts whatever call the thread that used it
/// blocks in (EINTR).
///
/// # Errors
/// As [`ServerRing::new`].
pub fn is_available() -> io::Result<()> {
    let size = Size { operations: 1, buffers: 1 };
    let made = thread::spawn(move || ServerRing::new(size)?.ring.look().map_err(ring::explained));
    made.join().expect("making a ring does not panic")
}

/// Whether a receive ended because no buffer was free. Buffers are free again after the events were processed.
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
    /// [`io::ErrorKind::Unsupported`] if the kernel has no io_uring, or one from before 6.1;
    /// [`io::ErrorKind::PermissionDenied`] if it is forbidden; both name the cause. [`io::ErrorKind::OutOfMemory`] if
    /// the limit of locked memory is too low. EMFILE as it is.
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

    /// Submits `ops` in their order, with the caller's identifier of each, and waits. The results are in
    /// [`ServerRing::cut`] and [`ServerRing::next_event`]; earlier events that were not taken are lost. May return
    /// early without events after a signal.
    ///
    /// # Errors
    /// Only errors of the ring, which is unusable from then on.
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
        // Every entry was taken: what they borrowed belongs to the caller again.
        self.is_spoilt = false;
        Ok(())
    }

    /// Sends of the last call that were taken only in part.
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

    /// The bytes of the last event.
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
        // SAFETY: what a send names is borrowed for the call of `enter` that pushes it, and nothing is submitted after
        // a call that failed (`is_spoilt`). The kernel is done with it when it has taken the entry, because
        // MSG_DONTWAIT lets no send wait. Message headers stay until then too. A timer's instant is read when the entry
        // is taken. Everything else names no memory but the buffers.
        unsafe { self.ring.push(&entry) }
    }

    /// Makes the wait end at `until`. A timer that ends earlier stays: then the wait ends early once.
    fn set_alarm(&mut self, until: Nanos) -> io::Result<()> {
        if until >= self.alarm {
            return Ok(());
        }
        // How long from now: the ring takes an instant as one of the machine's clock, which is another than this
        // process's in a time namespace.
        let left = until.saturating_sub(clock::monotonic());
        let (secs, nanos) = (left.0 / 1_000_000_000, left.0 % 1_000_000_000);
        self.instant = Timespec::new().sec(secs).nsec(nanos as u32);
        let instant = &raw const self.instant;
        if std::mem::replace(&mut self.alarm, until) == Nanos::MAX {
            self.n_in_flight += 1;
            return self.push(ALARM, 0, opcode::Timeout::new(instant).build());
        }
        // A timer that has ended meanwhile is not found: its event wakes this wait.
        let entry = opcode::TimeoutUpdate::new(token(ALARM, 0), instant).build();
        self.push(CANCEL, 0, entry.flags(squeue::Flags::SKIP_SUCCESS))
    }

    /// Collects the completions: partial sends, and the rest for [`ServerRing::next_event`].
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

/// Number of bytes that a partial send has moved, by its result.
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
    // SAFETY: the result of a successful accept: a descriptor that nobody else knows, and each completion is turned
    // into an event once.
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

    /// A message of both parts; valid until `n_used` is reset.
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
    /// Ends operations in flight before their memory is freed. If the kernel does not confirm it (never seen), the
    /// buffers are leaked. Accepted connections that were not taken are closed.
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
