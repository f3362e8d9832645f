//! A place for a connection of a ring: what it is at, and what the kernel has under way for it. Owns
//! that state, and how many places keep their memory while they are free; must not know the ring.
//! Start reading at [`Conn`], then [`ConnSlots`].

use std::ops::{Index, IndexMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use sys::heap;
use units::Nanos;

use crate::models::shared::run_queue::RunMark;
use site::exchange::{Close, Exchange};

/// A place; its buffers serve one connection after the other. It is used again only when the kernel has
/// ended all that was under way, so that no event is ever of an earlier connection.
pub(super) struct Conn<'s> {
    pub(super) exchange: Exchange<'s>,
    /// `None` where the place is free.
    pub(super) socket: Option<OwnedFd>,
    pub(super) state: RingConnState,
    pub(super) receiving: OpState,
    /// The wait for room in the send buffer.
    pub(super) room: OpState,
    /// The last send was not taken as a whole, and no news of room has come since.
    pub(super) is_blocked: bool,
    /// The client has ended its side, which every wait for room is told of: one that ends with its first
    /// news would end at once.
    pub(super) is_half_closed: bool,
    /// The wait for the file of a gateway, and which and for what that is.
    pub(super) watching: OpState,
    pub(super) watched: (u64, PollFlags),
    /// Bytes that came while an answer was being sent; at most some [`PENDING_INPUT_MAX`].
    pub(super) pending_input: Vec<u8>,
    pub(super) stream: Stream,
    /// What it wants to send is handed over with the next call.
    pub(super) is_sending: bool,
    /// A send was not taken as a whole: what was, if the connection is not lost.
    pub(super) cut: Option<Option<usize>>,
    /// For the turns that it has without an event.
    pub(super) mark: RunMark,
}

/// Bytes of a client that does not wait for its answers are taken up to here; then it is received from
/// no longer until it has had them.
pub(super) const PENDING_INPUT_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RingConnState {
    Free,
    Open,
    /// Closed on our side; what still comes is dropped, up to so many bytes and until then.
    Lingering {
        left: usize,
        until: Nanos,
    },
    /// To be closed so when nothing is under way any longer.
    Leaving(Close),
}

/// Places of past connections that keep their memory for the next ones: connections that come and go
/// allocate nothing, and thousands that came once leave nothing behind.
const KEPT_FREE_MAX: usize = 64;

/// Where there were as many, and three of four are gone, free memory is given back to the kernel: freed
/// places alone would stay with the allocator (9 MiB of 5,000 connections), between others in use.
const TRIMMED_FROM: usize = 1024;

/// The places of a ring by their numbers, which operations name. A place that was given up has no memory
/// but its number, which is used again.
#[derive(Default)]
pub(super) struct ConnSlots<'s> {
    all: Vec<Option<Box<Conn<'s>>>>,
    /// Free ones that kept their memory; at most [`KEPT_FREE_MAX`].
    kept: Vec<u32>,
    /// Numbers of those that were given up.
    given_up: Vec<u32>,
    /// The most that were taken since memory was given back last.
    peak: usize,
}

impl<'s> ConnSlots<'s> {
    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.all.len() - self.kept.len() - self.given_up.len()
    }

    /// Takes a free place; `again` prepares one that kept its memory, `new` makes one.
    pub(super) fn take(
        &mut self,
        again: impl FnOnce(&mut Exchange<'s>),
        new: impl FnOnce() -> Exchange<'s>,
    ) -> u32 {
        self.peak = self.peak.max(self.taken() + 1);
        if let Some(number) = self.kept.pop() {
            again(&mut self[number].exchange);
            return number;
        }
        let number = self.given_up.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() as u32 - 1
        });
        self.all[number as usize] = Some(Box::new(Conn::new(new())));
        number
    }

    /// A place is free again.
    pub(super) fn free(&mut self, number: u32) {
        if self.kept.len() < KEPT_FREE_MAX {
            self.kept.push(number);
        } else {
            self.all[number as usize] = None;
            self.given_up.push(number);
        }
        if self.peak >= TRIMMED_FROM && self.taken() <= self.peak / 4 {
            self.peak = self.taken();
            heap::trim();
        }
    }

    /// That place; `None`: it was given up.
    pub(super) fn get(&self, number: u32) -> Option<&Conn<'s>> {
        self.all.get(number as usize)?.as_deref()
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Conn<'s>> {
        self.all.get_mut(number as usize)?.as_deref_mut()
    }

    /// Numbers of all that there ever were.
    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.all.len() as u32
    }
}

impl<'s> Index<u32> for ConnSlots<'s> {
    type Output = Conn<'s>;

    fn index(&self, number: u32) -> &Conn<'s> {
        self.get(number).expect("a place with a connection was not given up")
    }
}

impl IndexMut<u32> for ConnSlots<'_> {
    fn index_mut(&mut self, number: u32) -> &mut Self::Output {
        self.get_mut(number).expect("a place with a connection was not given up")
    }
}

/// Whether an operation is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpState {
    None,
    Pending,
    /// It was cancelled, and its end has not come yet.
    Cancelling,
}

/// What is known of the peer's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Open,
    /// It has ended; the exchange hears of it after the bytes before it.
    Ended,
    /// And it has heard of it.
    Told,
}

impl<'s> Conn<'s> {
    /// A free place.
    pub(super) fn new(exchange: Exchange<'s>) -> Self {
        Self {
            exchange,
            socket: None,
            state: RingConnState::Free,
            receiving: OpState::None,
            room: OpState::None,
            is_blocked: false,
            is_half_closed: false,
            watching: OpState::None,
            watched: (0, PollFlags::empty()),
            pending_input: Vec::new(),
            stream: Stream::Open,
            is_sending: false,
            cut: None,
            mark: RunMark::default(),
        }
    }

    /// The place is taken, by a connection that its exchange knows.
    pub(super) fn take(&mut self, socket: OwnedFd) {
        self.socket = Some(socket);
        self.state = RingConnState::Open;
        self.stream = Stream::Open;
    }

    /// The place is free.
    pub(super) fn clear(&mut self) {
        self.state = RingConnState::Free;
        self.pending_input = Vec::new();
        self.is_sending = false;
        self.is_blocked = false;
        self.is_half_closed = false;
        self.cut = None;
    }

    /// Its socket; there is one in every phase but [`RingConnState::Free`].
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("a place that is taken has a socket").as_fd()
    }

    /// Whether the kernel has something under way for it.
    pub(super) fn has_pending_ops(&self) -> bool {
        [self.receiving, self.room, self.watching].iter().any(|under| *under != OpState::None)
    }

    /// Has the exchange take what it can of the bytes that came late; returns whether it took any.
    pub(super) fn feed_pending(&mut self, ending: bool, now: Nanos) -> bool {
        let used = feed(&mut self.exchange, &self.pending_input, ending, now);
        self.pending_input.drain(..used);
        if self.pending_input.is_empty() {
            // It is rarely needed, and as large as what a client sends in advance.
            self.pending_input = Vec::new();
        }
        used > 0
    }
}

/// Has the exchange take what it can of `bytes`; returns how many. `ending`: they are the last request.
pub(super) fn feed(exchange: &mut Exchange<'_>, bytes: &[u8], ending: bool, now: Nanos) -> usize {
    let mut used = 0;
    while used < bytes.len() {
        if ending {
            exchange.finish_next();
        }
        match exchange.receive_from(&bytes[used..], now) {
            0 => break,
            n_bytes => used += n_bytes,
        }
    }
    used
}
