//! The generator's [`Driver`] on epoll. Owns the conversion of readiness into completions, the receive buffer, and the
//! bytes a socket did not take. Start reading at [`EpollDriver`], then its `next`.
//!
//! # Cost
//!
//! | what | system calls |
//! |---|---|
//! | a reply and the next request on a kept-alive connection | 1 recv + 1 send |
//! | a round, shared by all replies that are there | 1 epoll_pwait2 |
//! | a connection | socket, TCP_NODELAY, TCP_QUICKACK, connect, getpeername, epoll_ctl, close |
//! | a body that is discarded | 1 recv a piece (MSG_TRUNC: no copy) |
//! | one of 256 KiB or more | SO_RCVLOWAT, 3 times |
//!
//! A minimal loop makes the same calls. Four things keep it so:
//! - A socket is registered once, edge-triggered, for reading and writing: epoll_ctl is never called
//!   again. (wrk calls it twice per request, to arm and disarm writing.)
//! - A send is tried at once. Only what the kernel did not take is kept and sent on the next edge of
//!   EPOLLOUT, which is certain to come: a short send sets SOCK_NOSPACE.
//! - After a recv that did not fill the buffer there is no second one to see EAGAIN: on a stream a
//!   short read means that the queue was empty (epoll(7), "Questions and answers", 9), and whatever
//!   arrives later is a new edge. (A recv also stops at urgent data, tcp(7). HTTP has none; from a peer
//!   that sends it, later bytes are read late.) The end of the stream needs no recv either: EPOLLRDHUP came
//!   with the event, so the FIN was there before the recv, and the short read had all that preceded it.
//! - An established connection needs no SO_ERROR: EPOLLOUT without EPOLLERR says that it is established.
//!   One to this machine is established when connect(2) returns, which getpeername(2) tells. Its request is
//!   then sent while the socket is still in the CPU's cache: 7 % more connections per second than with a
//!   round in between.
//!
//! Memory: one buffer of 64 KiB for all connections, since a reply is consumed before the next recv; about 100 bytes
//! per slot.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use units::Nanos;

use crate::clock;
use crate::driver::{Completion, Driver, Failure, Leave, Peer, Route, Slot, What};
use crate::epoll::{EVENTS_MAX, Epoll, EventFlags, Ready};
use crate::shared::{self, ConnPhase, FULL_RECVS_MAX, Interest, Timing};
use crate::socket::{self, Handshake};
use crate::tcp_info::TcpInfo;

/// Bytes taken by one recv. Replies of 1 MB over loopback, 16 connections, CPU time a reply: 210 us
/// with 16 KiB, 145 us with 64 KiB, 147 us with 256 KiB; at 3 KB there is no difference.
const RECV_BYTES: usize = 64 * 1024;

/// epoll, edge-triggered, for the slots 0 to `slots` - 1.
pub struct EpollDriver {
    epoll: Epoll,
    timing: Timing,
    conns: Vec<Conn>,
    /// Events of the last wait; those from `ready_next` on have not been processed yet.
    ready: Vec<Ready>,
    ready_next: usize,
    /// The rest of the event that [`Driver::next`] is processing.
    rest: Option<Rest>,
    /// Connections that used up their [`FULL_RECVS_MAX`] and may have more, and those with a failed send, each at most
    /// once: slot and generation. The first `unfinished_due` of them have their turn in this round.
    unfinished: VecDeque<(Slot, u32)>,
    unfinished_due: usize,
    /// Connections that connect(2) established at once: slot, generation and the instant.
    standing: VecDeque<(Slot, u32, Nanos)>,
    /// Connects that failed at once: slot and generation.
    failures: VecDeque<(Slot, u32, Failure)>,
    /// Whether the kernel is asked for stamps.
    stamped: bool,
    /// When the last completion happened, if that is known.
    arrived: Option<Nanos>,
    handshake: Handshake,
    /// Its first `received` bytes are those of the last completion.
    buf: Box<[u8]>,
    received: usize,
}

/// A slot.
#[derive(Default)]
struct Conn {
    socket: Option<OwnedFd>,
    /// Incremented by each close, so that events of an earlier use can be recognised.
    generation: u32,
    phase: ConnPhase,
    /// Bytes that the kernel has not taken yet, from `unsent_from` on. Keeps its memory.
    unsent: Vec<u8>,
    unsent_from: usize,
    /// TCP: it can discard.
    is_inet: bool,
    interest: Interest,
    /// A send failed. It is reported after the bytes that the server sent before, which are in the queue.
    send_failure: Option<Failure>,
    /// Flags to process when this slot's turn in `unfinished` comes; `None` if it is not there.
    unfinished: Option<EventFlags>,
}

/// The part of an event that is not yet reported.
#[derive(Clone, Copy)]
struct Rest {
    slot: Slot,
    generation: u32,
    /// Flags still to process; `None`: only the end of the stream is still to be reported.
    flags: Option<EventFlags>,
    /// Buffers that it may still fill before the other connections have their turn.
    full_recvs_left: u8,
}

impl EpollDriver {
    /// A driver for `slots` connections.
    ///
    /// # Errors
    /// EMFILE and the like, from creating the epoll set.
    pub fn new(slots: u32) -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new()?,
            timing: Timing::new(),
            conns: (0..slots).map(|_| Conn::default()).collect(),
            ready: Vec::with_capacity(EVENTS_MAX),
            ready_next: 0,
            rest: None,
            unfinished: VecDeque::with_capacity(slots as usize),
            unfinished_due: 0,
            standing: VecDeque::with_capacity(slots as usize),
            failures: VecDeque::with_capacity(slots as usize),
            stamped: false,
            arrived: None,
            handshake: Handshake::AckWithRequest,
            buf: vec![0; RECV_BYTES].into_boxed_slice(),
            received: 0,
        })
    }

    /// Waits by polling instead of sleeping, so that the wake-up of an idle CPU (some 50 us, in a virtual machine 100
    /// and more) does not delay replies. It takes a whole CPU; [`Driver::cpu`] does not include polls that find
    /// nothing.
    #[must_use]
    pub fn busy_polling(mut self, busy_poll: bool) -> Self {
        self.timing.busy_poll = busy_poll;
        self
    }

    /// Whether the first request carries the ACK of the handshake ([`Handshake::AckWithRequest`]); on by default. Turn
    /// it off for connections that are opened in advance: the server would see them up to 200 ms late.
    #[must_use]
    pub fn ack_with_request(mut self, on: bool) -> Self {
        self.handshake = if on { Handshake::AckWithRequest } else { Handshake::AckAtOnce };
        self
    }

    /// Makes the kernel stamp what arrives, for [`Driver::arrived`]; if it cannot, that stays `None`. The control
    /// message costs each receive about 0.2 us.
    #[must_use]
    pub fn with_kernel_stamps(self, stamped: bool) -> Self {
        Self { stamped, ..self }
    }

    fn spin(&mut self, until: Nanos) -> io::Result<()> {
        self.epoll.wait(&mut self.ready, Some(Nanos::ZERO))?;
        if !self.ready.is_empty() {
            return Ok(());
        }
        let begun = clock::thread_cpu();
        while self.ready.is_empty() && self.now() < until {
            self.epoll.wait(&mut self.ready, Some(Nanos::ZERO))?;
        }
        self.timing.spun += clock::thread_cpu().saturating_sub(begun);
        Ok(())
    }

    fn conn(&mut self, slot: Slot) -> &mut Conn {
        &mut self.conns[slot.0 as usize]
    }

    fn fails(&mut self, slot: Slot, failure: Failure) {
        let conn = &mut self.conns[slot.0 as usize];
        conn.phase = ConnPhase::Failed;
        self.failures.push_back((slot, conn.generation, failure));
    }

    /// The next thing to process: the rest of the last event, the next event, a connection whose turn it is.
    #[inline]
    fn next_event(&mut self) -> Option<Rest> {
        if let Some(rest) = self.rest.take() {
            return Some(rest);
        }
        if let Some(ready) = self.ready.get(self.ready_next) {
            self.ready_next += 1;
            return Some(Rest::from(*ready));
        }
        while self.unfinished_due > 0 {
            self.unfinished_due -= 1;
            let (slot, generation) = self.unfinished.pop_front().expect("as many as are due");
            let conn = self.conn(slot);
            if conn.generation == generation {
                let flags = conn.unfinished.take();
                return Some(Rest { slot, generation, flags, full_recvs_left: FULL_RECVS_MAX });
            }
        }
        None
    }

    /// Processes an event up to its first completion; the remainder goes to `rest`.
    fn act(&mut self, event: Rest) -> Option<What> {
        let Rest { slot, generation, flags, .. } = event;
        let conn = &mut self.conns[slot.0 as usize];
        let socket = match (&conn.socket, conn.phase) {
            (Some(socket), phase)
                if phase != ConnPhase::Failed && conn.generation == generation =>
            {
                socket
            }
            _ => return None,
        };
        let Some(flags) = flags else { return Some(conn.ends(None)) };
        if let Some(waiting) = &mut conn.unfinished {
            *waiting |= flags;
            return None;
        }
        let gone = EventFlags::ERR | EventFlags::HUP;
        if conn.phase == ConnPhase::Connecting {
            if flags.intersects(gone) {
                conn.phase = ConnPhase::Failed;
                let error = socket::pending_error(socket);
                return Some(What::Failed(error.as_ref().map_or(Failure::Reset, Failure::from)));
            }
            conn.phase = ConnPhase::Open;
            let more = EventFlags::IN | EventFlags::RDHUP;
            self.rest = flags.intersects(more).then_some(event);
            return Some(What::Connected);
        }
        if flags.contains(EventFlags::OUT)
            && !conn.unsent.is_empty()
            && let Err(error) = conn.flush()
        {
            conn.send_fails(&error);
        }
        let has_more = flags.intersects(EventFlags::IN | EventFlags::RDHUP | gone);
        // After the end of the stream only a send can fail: each edge would report the end again.
        if conn.send_failure.is_none() && (conn.phase == ConnPhase::Ended || !has_more) {
            return None;
        }
        self.receive(event, flags)
    }

    fn receive(&mut self, event: Rest, flags: EventFlags) -> Option<What> {
        let conn = &mut self.conns[event.slot.0 as usize];
        let socket = conn.socket.as_ref().expect("act looked");
        let taken = match shared::take(socket, &mut conn.interest, &mut self.buf, self.stamped) {
            Ok(Some(taken)) if taken.n_bytes > 0 => taken,
            Ok(None) if conn.send_failure.is_none() => return None,
            Ok(_) => return Some(conn.ends(None)),
            Err(error) => return Some(conn.ends(Some(&error))),
        };
        let full = taken.is_full();
        let ended = flags.intersects(EventFlags::RDHUP);
        // After a reset the kernel still delivers what came before; then the error.
        let gone =
            flags.intersects(EventFlags::ERR | EventFlags::HUP) || conn.send_failure.is_some();
        if full && !ended && !gone && event.full_recvs_left == 0 {
            conn.unfinished = Some(flags);
            self.unfinished.push_back((event.slot, event.generation));
        } else if full || gone {
            let full_recvs_left = event.full_recvs_left.saturating_sub(1);
            self.rest = Some(Rest { full_recvs_left, ..event });
        } else if ended {
            self.rest = Some(Rest { flags: None, ..event });
        }
        self.arrived = taken.stamp.map(|stamp| self.timing.of_stamp(stamp));
        if taken.is_discarded {
            return Some(What::Discarded(taken.n_bytes as u64));
        }
        self.received = taken.n_bytes;
        Some(What::Received)
    }
}

impl Conn {
    /// Sends the remaining bytes, as far as the kernel takes them.
    fn flush(&mut self) -> io::Result<()> {
        let socket = self.socket.as_ref().expect("only an open connection has bytes left over");
        let sent = socket::send(socket, &self.unsent[self.unsent_from..])?;
        self.unsent_from += sent.unwrap_or(0);
        if self.unsent_from == self.unsent.len() {
            self.forget_unsent();
        }
        Ok(())
    }

    /// A server may refuse a long request before it has all of it. Its reply is then in the receive queue, and the
    /// failure is reported after it.
    fn send_fails(&mut self, error: &io::Error) {
        self.send_failure = Some(Failure::from(error));
        self.forget_unsent();
    }

    /// Nothing more can be received, because of an error or the end of the stream.
    fn ends(&mut self, error: Option<&io::Error>) -> What {
        match self.send_failure.take().or_else(|| error.map(Failure::from)) {
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

    fn forget_unsent(&mut self) {
        self.unsent.clear();
        self.unsent_from = 0;
    }
}

impl Driver for EpollDriver {
    fn name(&self) -> &'static str {
        "epoll"
    }

    fn begin(&mut self, origin: Nanos) {
        self.timing.begin(origin);
    }

    fn now(&mut self) -> Nanos {
        self.timing.now()
    }

    fn cpu(&mut self) -> Nanos {
        self.timing.cpu()
    }

    fn connect(&mut self, slot: Slot, route: &Route) {
        assert!(self.conn(slot).socket.is_none(), "a slot is closed before it connects again");
        let watched = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let token = u64::from(self.conn(slot).generation) << 32 | u64::from(slot.0);
        // Watched after connect(2), because an unconnected socket would report EPOLLHUP at once.
        let connecting = socket::connect(route, self.handshake).and_then(|socket| {
            if self.stamped {
                // Everything else works without stamps.
                socket::enable_stamps(&socket).ok();
            }
            self.epoll.add(&socket, token, watched)?;
            Ok(socket)
        });
        match connecting {
            Ok(socket) => {
                let is_connected = socket::is_connected(&socket);
                let conn = self.conn(slot);
                conn.socket = Some(socket);
                conn.phase = if is_connected { ConnPhase::Open } else { ConnPhase::Connecting };
                conn.is_inet = matches!(route.to, Peer::Inet(_));
                if is_connected {
                    let generation = conn.generation;
                    self.standing.push_back((slot, generation, self.timing.now()));
                }
            }
            Err(error) => self.fails(slot, Failure::from(&error)),
        }
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) {
        let conn = &mut self.conns[slot.0 as usize];
        let can_send = conn.phase.can_send() && conn.send_failure.is_none();
        let Some(socket) = conn.socket.as_ref().filter(|_| can_send) else { return };
        if !conn.unsent.is_empty() {
            conn.unsent.extend_from_slice(bytes);
            return;
        }
        match socket::send(socket, bytes) {
            Ok(sent) => conn.unsent.extend_from_slice(&bytes[sent.unwrap_or(0)..]),
            Err(error) => {
                conn.send_fails(&error);
                if conn.unfinished.is_none() {
                    conn.unfinished = Some(EventFlags::empty());
                    self.unfinished.push_back((slot, conn.generation));
                }
            }
        }
    }

    fn discard(&mut self, slot: Slot, n_bytes: u64) {
        let conn = self.conn(slot);
        if let Some(socket) = conn.socket.as_ref().filter(|_| conn.is_inet) {
            conn.interest.discard(socket, n_bytes);
        }
    }

    fn reply_complete(&mut self, slot: Slot) {
        let ends = EventFlags::RDHUP | EventFlags::ERR | EventFlags::HUP;
        // The end came with this event, and no other event reports it. Everything else that arrives is a new edge.
        let looks = |rest: &Rest| rest.flags.is_some_and(|flags| !flags.intersects(ends));
        let has_failed = self.conn(slot).send_failure.is_some();
        self.rest.take_if(|rest| rest.slot == slot && looks(rest) && !has_failed);
    }

    fn close(&mut self, slot: Slot, how: Leave) {
        let conn = self.conn(slot);
        if let Some(socket) = conn.socket.take()
            && how == Leave::Abrupt
        {
            // Cannot fail on a TCP socket; otherwise the close below would still be an orderly one.
            socket::reset_on_close(&socket).ok();
        }
        conn.generation = conn.generation.wrapping_add(1);
        conn.phase = ConnPhase::default();
        conn.forget_unsent();
        conn.send_failure = None;
        conn.unfinished = None;
        conn.interest = Interest::default();
    }

    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let conn = &self.conns[slot.0 as usize];
        conn.socket.as_ref().filter(|_| conn.is_inet).and_then(TcpInfo::of)
    }

    fn wait(&mut self, until: Nanos) -> io::Result<()> {
        let some_left = self.rest.is_some() || self.ready_next < self.ready.len();
        let is_told = self.standing.is_empty() && self.failures.is_empty();
        if some_left || self.unfinished_due > 0 || !is_told {
            return Ok(());
        }
        self.ready_next = 0;
        self.timing.sleeps();
        self.unfinished_due = self.unfinished.len();
        let timeout = match until {
            _ if self.unfinished_due > 0 => Some(Nanos::ZERO),
            until => self.timing.timeout(until),
        };
        if self.timing.busy_poll && timeout != Some(Nanos::ZERO) {
            return self.spin(until);
        }
        self.epoll.wait(&mut self.ready, timeout)
    }

    #[inline]
    fn next(&mut self) -> Option<Completion> {
        self.arrived = None;
        // The rest of the current event for its slot goes first.
        while self.rest.is_none()
            && let Some((slot, generation, at)) = self.standing.pop_front()
        {
            if self.conn(slot).generation == generation {
                self.arrived = Some(at);
                return Some(Completion { slot, what: What::Connected });
            }
        }
        while let Some(event) = self.next_event() {
            if let Some(what) = self.act(event) {
                return Some(Completion { slot: event.slot, what });
            }
        }
        while let Some((slot, generation, failure)) = self.failures.pop_front() {
            if self.conn(slot).generation == generation {
                return Some(Completion { slot, what: What::Failed(failure) });
            }
        }
        None
    }

    fn received(&self) -> &[u8] {
        &self.buf[..self.received]
    }

    fn arrived(&self) -> Option<Nanos> {
        self.arrived
    }
}

impl From<Ready> for Rest {
    fn from(ready: Ready) -> Self {
        Self {
            slot: Slot(ready.token as u32),
            generation: (ready.token >> 32) as u32,
            flags: Some(ready.flags),
            full_recvs_left: FULL_RECVS_MAX,
        }
    }
}
