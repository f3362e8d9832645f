//! A slot of the driver: its operations in flight, and how its connection is closed. Owns that state and the tokens by
//! which completions find their slot. Start reading at [`Conn`].

use std::net::Shutdown;
use std::os::fd::OwnedFd;

use crate::driver::{Failure, Leave, Slot, What};
use crate::shared::{ConnPhase, Interest};
use crate::socket;

/// How a connection learns of arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Receiving {
    /// By a multishot receive into the shared buffers.
    Repeated,
    /// By a multishot poll.
    Polled,
}

/// A slot.
#[derive(Default)]
pub(super) struct Conn {
    pub(super) socket: Option<OwnedFd>,
    /// Incremented by each close, so that completions of an earlier use can be recognised.
    pub(super) generation: u32,
    pub(super) phase: ConnPhase,
    /// How arrivals are detected at the moment.
    pub(super) receiving: Option<Receiving>,
    /// Whether it is polled and read by recv(2) from now on: see `polled`.
    pub(super) polled: bool,
    /// Polled: the peer has ended the stream, or the connection is gone; the rest is read to the end.
    pub(super) drains: bool,
    /// Polled: whether its chain contains a `Readable`, and how many reads have filled their buffer since the last
    /// wait.
    pub(super) is_readable: bool,
    pub(super) n_full: u8,
    /// TCP: it can discard.
    pub(super) is_inet: bool,
    /// Whether the receive ended for lack of a buffer and is to be armed again.
    pub(super) starved: bool,
    pub(super) interest: Interest,
    /// The last batch with an entry that names the socket.
    pub(super) batch: u64,
    /// Bytes that the kernel has not taken: a send of them is in flight (`sending`), from `unsent_from` on; `queued`
    /// goes after them. Both keep their memory.
    pub(super) sending: bool,
    pub(super) unsent: Vec<u8>,
    pub(super) queued: Vec<u8>,
    /// A send failed. It is reported when the receive ends, after the bytes that the server sent before.
    pub(super) send_failure: Option<Failure>,
}

impl Conn {
    /// Notes that received bytes were reported.
    #[inline]
    pub(super) fn came(&mut self, n_bytes: u32) {
        if let Some(socket) = &self.socket {
            self.interest.came(socket, n_bytes.into());
        }
    }

    /// Nothing more can be received, because of a failure or the end of the stream.
    pub(super) fn ends(&mut self, failure: Option<Failure>) -> What {
        match self.send_failure.take().or(failure) {
            Some(failure) => {
                self.phase = ConnPhase::Failed;
                What::Failed(failure)
            }
            None => {
                self.phase = ConnPhase::Ended;
                What::Closed
            }
        }
    }

    /// The connection is closed: only its memory and a new generation remain.
    pub(super) fn reset(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.phase = ConnPhase::default();
        self.receiving = None;
        self.polled = false;
        self.drains = false;
        self.is_readable = false;
        self.n_full = 0;
        self.starved = false;
        self.interest = Interest::default();
        self.unsent.clear();
        self.queued.clear();
        self.send_failure = None;
    }
}

/// The kind of an operation, in the upper four bits of its token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Connect = 1,
    Receive = 2,
    /// A send of staged bytes: completes only if it fails.
    Send = 3,
    /// A send of bytes that the connection keeps.
    SendRest = 4,
    Cancel = 5,
    Poll = 6,
    /// Belongs to no slot.
    Alarm = 7,
}

/// Generations are compared modulo 2^28: no completion is that late.
const GENERATION_MASK: u32 = (1 << 28) - 1;

/// The token of an operation: kind, generation, slot.
pub(super) fn token(kind: Operation, generation: u32, slot: Slot) -> u64 {
    (kind as u64) << 60 | u64::from(generation & GENERATION_MASK) << 32 | u64::from(slot.0)
}

/// Kind and slot of a token; `None` if it belongs to no slot.
pub(super) fn parse(token: u64) -> Option<(Operation, Slot)> {
    let kind = match token >> 60 {
        1 => Operation::Connect,
        2 => Operation::Receive,
        3 => Operation::Send,
        4 => Operation::SendRest,
        6 => Operation::Poll,
        _ => return None,
    };
    Some((kind, Slot(token as u32)))
}

/// Ends a connection now. Operations in flight hold the socket, so close(2) alone would send nothing to the peer until
/// they have ended. shutdown(2) sends the FIN, and disconnecting the RST, whoever holds the socket; and both end the
/// operations.
pub(super) fn leave(socket: &OwnedFd, how: Leave, under_way: bool) {
    // Errors of both are harmless: the socket is no longer connected then.
    match how {
        Leave::Orderly if under_way => {
            socket::shutdown(socket, Shutdown::Both).ok();
        }
        Leave::Orderly => {}
        Leave::Abrupt => {
            socket::reset_on_close(socket).ok();
            if under_way && socket::disconnect(socket).is_err() {
                socket::shutdown(socket, Shutdown::Both).ok();
            }
        }
    }
}
