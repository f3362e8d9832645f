//! A connection of a ring: its state, and the operations that the kernel has pending for it. Also
//! owns the slots of connections and their memory. Start reading at [`Conn`], then [`ConnSlots`].

use std::ops::{Index, IndexMut};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use sys::heap;
use units::Nanos;

use crate::models::shared::run_queue::RunMark;
use site::exchange::{Close, Exchange};

/// A slot. Its buffers serve one connection after the other. It is reused only when the kernel has
/// no operation pending for it, so no event is ever about an earlier connection.
pub(super) struct Conn<'s> {
    pub(super) exchange: Exchange<'s>,
    /// `None` if the slot is free.
    pub(super) socket: Option<OwnedFd>,
    pub(super) state: RingConnState,
    pub(super) receiving: OpState,
    /// The poll for room in the send buffer.
    pub(super) room: OpState,
    /// The last send was partial, and no event has reported room since.
    pub(super) is_blocked: bool,
    /// The client has shut its side. Every poll for room reports that, so a one-shot poll would end
    /// at once.
    pub(super) is_half_closed: bool,
    /// The poll for the file of a gateway; below, its id and flags.
    pub(super) watching: OpState,
    pub(super) watched: (u64, PollFlags),
    /// Bytes that came while an answer was being sent; at most about [`PENDING_INPUT_MAX`].
    pub(super) pending_input: Vec<u8>,
    pub(super) stream: Stream,
    /// Its output is part of the next submission.
    pub(super) is_sending: bool,
    /// Set when a send was partial: how much was sent, or `None` if the connection is lost.
    pub(super) cut: Option<Option<usize>>,
    /// For turns without an event.
    pub(super) mark: RunMark,
}

/// If a client sends more than this without waiting for its answers, we stop receiving until the
/// exchange has taken it.
pub(super) const PENDING_INPUT_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RingConnState {
    Free,
    Open,
    /// Closed on our side. Until the instant we drop at most this many bytes of further input.
    Lingering {
        left: usize,
        until: Nanos,
    },
    /// To be closed in this way when no operation is pending.
    Leaving(Close),
}

/// Free slots that keep their memory. Connections that come and go then allocate nothing, and
/// thousands that came once leave nothing behind.
const KEPT_FREE_MAX: usize = 64;

/// After a peak of this many connections, when three of four are gone, we give free memory back to
/// the kernel. Otherwise the allocator would keep it between blocks in use (9 MiB after 5,000
/// connections).
const TRIMMED_FROM: usize = 1024;

/// The slots of a ring by number. Operations carry that number. A slot that was given up keeps no
/// memory; its number is reused.
#[derive(Default)]
pub(super) struct ConnSlots<'s> {
    all: Vec<Option<Box<Conn<'s>>>>,
    /// Free slots that kept their memory; at most [`KEPT_FREE_MAX`].
    kept: Vec<u32>,
    /// Numbers of slots that were given up.
    given_up: Vec<u32>,
    /// The most slots in use since memory was last given back.
    peak: usize,
}

impl<'s> ConnSlots<'s> {
    /// How many slots are in use.
    pub(super) fn taken(&self) -> usize {
        self.all.len() - self.kept.len() - self.given_up.len()
    }

    /// Takes a free slot. `again` resets an exchange that was kept, `new` makes one.
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

    /// Frees a slot.
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

    /// That slot; `None` if it was given up.
    pub(super) fn get(&self, number: u32) -> Option<&Conn<'s>> {
        self.all.get(number as usize)?.as_deref()
    }

    /// Like [`ConnSlots::get`], to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Conn<'s>> {
        self.all.get_mut(number as usize)?.as_deref_mut()
    }

    /// Numbers of all slots that ever existed.
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

/// Whether an operation is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpState {
    None,
    Pending,
    /// It was cancelled, and its last event has not come yet.
    Cancelling,
}

/// What we know of the client's side of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Open,
    /// It has ended. The exchange is told after the bytes before.
    Ended,
    /// The exchange was told of the end.
    Told,
}

impl<'s> Conn<'s> {
    /// A free slot.
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

    /// Takes the slot for a connection that the exchange already knows.
    pub(super) fn take(&mut self, socket: OwnedFd) {
        self.socket = Some(socket);
        self.state = RingConnState::Open;
        self.stream = Stream::Open;
    }

    /// Frees the slot.
    pub(super) fn clear(&mut self) {
        self.state = RingConnState::Free;
        self.pending_input = Vec::new();
        self.is_sending = false;
        self.is_blocked = false;
        self.is_half_closed = false;
        self.cut = None;
    }

    /// Its socket. There is one in every state but [`RingConnState::Free`].
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_ref().expect("a place that is taken has a socket").as_fd()
    }

    /// Whether the kernel has an operation pending for it.
    pub(super) fn has_pending_ops(&self) -> bool {
        [self.receiving, self.room, self.watching].iter().any(|under| *under != OpState::None)
    }

    /// Feeds bytes that came early to the exchange. Returns whether it took any.
    pub(super) fn feed_pending(&mut self, ending: bool, now: Nanos) -> bool {
        let used = feed(&mut self.exchange, &self.pending_input, ending, now);
        self.pending_input.drain(..used);
        if self.pending_input.is_empty() {
            // Rarely needed, and as large as what a client sends in advance.
            self.pending_input = Vec::new();
        }
        used > 0
    }
}

/// Feeds `bytes` to the exchange. Returns how many it took. `ending`: they hold the last request.
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
