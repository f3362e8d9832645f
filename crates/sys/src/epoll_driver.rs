//! The generator's [`Driver`] on epoll. Owns the turning of readiness into completions, the receive
//! buffer, and the bytes a socket did not take; must not know HTTP or policy.
//! Start reading at [`EpollDriver`], then its `next`.
//!
//! # Cost
//!
//! | what | system calls |
//! |---|---|
//! | a reply and the next request on a kept-alive connection | 1 recv + 1 send |
//! | a round, shared by all replies that are there | 1 epoll_pwait2 |
//! | a connection | socket, TCP_NODELAY, connect, epoll_ctl, close |
//!
//! A bare loop makes the same calls. Four things keep it so:
//! - A socket is registered once, edge-triggered, for reading and writing: epoll_ctl is never called
//!   again. (wrk calls it twice a request, to arm and disarm writing.)
//! - A send is tried at once. Only what the kernel did not take is kept and sent on the next edge of
//!   EPOLLOUT, which is certain to come: a short send sets SOCK_NOSPACE.
//! - After a recv that did not fill the buffer there is no second one to see EAGAIN: on a stream a
//!   short read means that the queue was empty (epoll(7), "Questions and answers", 9), and whatever
//!   arrives later is a new edge. The end of the stream needs no recv either: EPOLLRDHUP came with
//!   the event, so the FIN was there before the recv, and the short read had all that preceded it.
//! - A connection that was made needs no SO_ERROR: EPOLLOUT without EPOLLERR says that it stands.
//!
//! Memory: one buffer of 64 KiB for all connections, since a reply is consumed before the next recv;
//! about 100 bytes a slot.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use units::Nanos;

use crate::clock;
use crate::driver::{Completion, Driver, Failure, Leave, Route, Slot, What};
use crate::epoll::{EVENTS_MAX, Epoll, EventFlags, Ready};
use crate::socket;

/// Bytes taken by one recv. Replies of 1 MB over loopback, 16 connections, CPU time a reply: 210 us
/// with 16 KiB, 145 us with 64 KiB, 147 us with 256 KiB; at 3 KB there is no difference.
const RECV_BYTES: usize = 64 * 1024;

/// Full buffers taken from one connection before the others have their turn again. Without a bound
/// one endless reply would keep the caller from ever looking at its clock; 16 make 1 MiB, so the
/// additional epoll_pwait2 is not to be seen.
const FULL_RECVS_MAX: u8 = 16;

/// epoll, edge-triggered, for the slots 0 to `slots` - 1.
pub struct EpollDriver {
    epoll: Epoll,
    origin: Nanos,
    conns: Vec<Conn>,
    /// Events of the last wait; those from `ready_next` on are not looked at yet.
    ready: Vec<Ready>,
    ready_next: usize,
    /// What is left of the event that [`Driver::next`] is in the middle of.
    rest: Option<Rest>,
    /// Connections that had their [`FULL_RECVS_MAX`] and may have more, each at most once: slot and
    /// generation. The first `unfinished_due` of them have their turn in this round.
    unfinished: VecDeque<(Slot, u32)>,
    unfinished_due: usize,
    /// Failures that were known at once, in a connect or a send: slot and generation.
    failures: VecDeque<(Slot, u32, Failure)>,
    /// Whether waiting is asking again and again; and the CPU time that went into it.
    busy_poll: bool,
    spun: Nanos,
    /// Its first `received` bytes are those of the last completion.
    buf: Box<[u8]>,
    received: usize,
}

/// A slot.
#[derive(Default)]
struct Conn {
    socket: Option<OwnedFd>,
    /// Raised by each close, so that an event of an earlier use is known for what it is.
    generation: u32,
    phase: Phase,
    /// Bytes that the kernel has not taken yet, from `unsent_from` on. Keeps its memory.
    unsent: Vec<u8>,
    unsent_from: usize,
    /// Flags to be acted on when this slot's turn in `unfinished` comes; `None` if it is not there.
    unfinished: Option<EventFlags>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Connecting,
    Open,
    /// A failure is or was reported; the socket waits for its close.
    Failed,
}

/// The part of an event that is not yet reported.
#[derive(Clone, Copy)]
struct Rest {
    slot: Slot,
    generation: u32,
    /// Flags still to be acted on; `None`: only the end of the stream is still to be told.
    flags: Option<EventFlags>,
    /// Buffers that it may still fill before the others have their turn.
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
            origin: clock::monotonic(),
            conns: (0..slots).map(|_| Conn::default()).collect(),
            ready: Vec::with_capacity(EVENTS_MAX),
            ready_next: 0,
            rest: None,
            unfinished: VecDeque::with_capacity(slots as usize),
            unfinished_due: 0,
            failures: VecDeque::with_capacity(slots as usize),
            busy_poll: false,
            spun: Nanos::ZERO,
            buf: vec![0; RECV_BYTES].into_boxed_slice(),
            received: 0,
        })
    }

    /// Waits by asking again and again instead of sleeping, so that no reply is seen late by the
    /// wake-up of an idle CPU (some 50 us, in a virtual machine 100 and more). It takes a whole CPU;
    /// what goes into asking in vain is not in [`Driver::cpu`].
    #[must_use]
    pub fn busy_polling(self, busy_poll: bool) -> Self {
        Self { busy_poll, ..self }
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
        self.spun += clock::thread_cpu().saturating_sub(begun);
        Ok(())
    }

    fn conn(&mut self, slot: Slot) -> &mut Conn {
        &mut self.conns[slot.0 as usize]
    }

    fn fails(&mut self, slot: Slot, failure: Failure) {
        let conn = &mut self.conns[slot.0 as usize];
        conn.phase = Phase::Failed;
        self.failures.push_back((slot, conn.generation, failure));
    }

    /// What to act on next: the rest of the last event, the next event, a connection whose turn it is.
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

    /// Acts on an event as far as its first completion; what is left goes to `rest`.
    fn act(&mut self, event: Rest) -> Option<What> {
        let Rest { slot, generation, flags, .. } = event;
        let conn = &mut self.conns[slot.0 as usize];
        let socket = match (&conn.socket, conn.phase) {
            (Some(socket), Phase::Connecting | Phase::Open) if conn.generation == generation => {
                socket
            }
            _ => return None,
        };
        let Some(flags) = flags else { return Some(What::Closed) };
        if let Some(waiting) = &mut conn.unfinished {
            *waiting |= flags;
            return None;
        }
        let gone = EventFlags::ERR | EventFlags::HUP;
        if conn.phase == Phase::Connecting {
            if flags.intersects(gone) {
                conn.phase = Phase::Failed;
                let error = socket::pending_error(socket);
                return Some(What::Failed(error.as_ref().map_or(Failure::Reset, Failure::from)));
            }
            conn.phase = Phase::Open;
            let more = EventFlags::IN | EventFlags::RDHUP;
            self.rest = flags.intersects(more).then_some(event);
            return Some(What::Connected);
        }
        if flags.contains(EventFlags::OUT)
            && !conn.unsent.is_empty()
            && let Err(error) = conn.flush()
        {
            conn.forget_unsent();
            // A server may refuse a long request before it has all of it: what it said then lies in
            // the queue, and the reset behind it.
            if !flags.contains(EventFlags::IN) {
                conn.phase = Phase::Failed;
                return Some(What::Failed(Failure::from(&error)));
            }
        }
        if !flags.intersects(EventFlags::IN | EventFlags::RDHUP | gone) {
            return None;
        }
        self.receive(event, flags)
    }

    fn receive(&mut self, event: Rest, flags: EventFlags) -> Option<What> {
        let conn = &mut self.conns[event.slot.0 as usize];
        let socket = conn.socket.as_ref().expect("act looked");
        match socket::recv(socket, &mut self.buf) {
            Ok(Some(0)) => Some(What::Closed),
            Ok(Some(n_read)) => {
                self.received = n_read;
                let full = n_read == self.buf.len();
                let ended = flags.intersects(EventFlags::RDHUP);
                // After a reset the kernel still hands out what came before; then the error.
                let gone = flags.intersects(EventFlags::ERR | EventFlags::HUP);
                if full && !ended && !gone && event.full_recvs_left == 0 {
                    conn.unfinished = Some(flags);
                    self.unfinished.push_back((event.slot, event.generation));
                } else if full || gone {
                    let full_recvs_left = event.full_recvs_left.saturating_sub(1);
                    self.rest = Some(Rest { full_recvs_left, ..event });
                } else if ended {
                    self.rest = Some(Rest { flags: None, ..event });
                }
                Some(What::Received)
            }
            Ok(None) => None,
            Err(error) => {
                conn.phase = Phase::Failed;
                Some(What::Failed(Failure::from(&error)))
            }
        }
    }
}

impl Conn {
    /// Sends what was left over, as far as the kernel takes it.
    fn flush(&mut self) -> io::Result<()> {
        let socket = self.socket.as_ref().expect("only an open connection has bytes left over");
        let sent = socket::send(socket, &self.unsent[self.unsent_from..])?;
        self.unsent_from += sent.unwrap_or(0);
        if self.unsent_from == self.unsent.len() {
            self.forget_unsent();
        }
        Ok(())
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
        self.origin = origin;
    }

    fn now(&mut self) -> Nanos {
        clock::monotonic().saturating_sub(self.origin)
    }

    fn cpu(&mut self) -> Nanos {
        clock::thread_cpu().saturating_sub(self.spun)
    }

    fn connect(&mut self, slot: Slot, route: &Route) {
        assert!(self.conn(slot).socket.is_none(), "a slot is closed before it connects again");
        let watched = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let token = u64::from(self.conn(slot).generation) << 32 | u64::from(slot.0);
        // Watched after connect(2), since an unconnected socket would report EPOLLHUP at once.
        let connecting = socket::connect(route).and_then(|socket| {
            self.epoll.add(&socket, token, watched)?;
            Ok(socket)
        });
        match connecting {
            Ok(socket) => {
                let conn = self.conn(slot);
                conn.socket = Some(socket);
                conn.phase = Phase::Connecting;
            }
            Err(error) => self.fails(slot, Failure::from(&error)),
        }
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) {
        let conn = &mut self.conns[slot.0 as usize];
        let Some(socket) = conn.socket.as_ref().filter(|_| conn.phase == Phase::Open) else {
            return;
        };
        if !conn.unsent.is_empty() {
            conn.unsent.extend_from_slice(bytes);
            return;
        }
        match socket::send(socket, bytes) {
            Ok(sent) => conn.unsent.extend_from_slice(&bytes[sent.unwrap_or(0)..]),
            Err(error) => self.fails(slot, Failure::from(&error)),
        }
    }

    fn discard(&mut self, _slot: Slot, _n_bytes: u64) {}

    fn close(&mut self, slot: Slot, how: Leave) {
        let conn = self.conn(slot);
        if let Some(socket) = conn.socket.take()
            && how == Leave::Abrupt
        {
            // Cannot fail on a TCP socket; if it did, the close below would still be a close.
            socket::reset_on_close(&socket).ok();
        }
        conn.generation = conn.generation.wrapping_add(1);
        conn.phase = Phase::default();
        conn.forget_unsent();
        conn.unfinished = None;
    }

    fn wait(&mut self, until: Nanos) -> io::Result<()> {
        let some_left = self.rest.is_some() || self.ready_next < self.ready.len();
        if some_left || self.unfinished_due > 0 || !self.failures.is_empty() {
            return Ok(());
        }
        self.ready_next = 0;
        self.unfinished_due = self.unfinished.len();
        let timeout = match until {
            _ if self.unfinished_due > 0 => Some(Nanos::ZERO),
            Nanos::MAX => None,
            until => Some(until.saturating_sub(self.now())),
        };
        if self.busy_poll && timeout != Some(Nanos::ZERO) {
            return self.spin(until);
        }
        self.epoll.wait(&mut self.ready, timeout)
    }

    #[inline]
    fn next(&mut self) -> Option<Completion> {
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    /// A driver and what its slots are connected to.
    struct World {
        driver: EpollDriver,
        listener: TcpListener,
    }

    impl World {
        fn new(n_slots: u32) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            Self { driver: EpollDriver::new(n_slots).unwrap(), listener }
        }

        fn connect(&mut self, slot: u32) -> TcpStream {
            self.driver.connect(Slot(slot), &self.listener.local_addr().unwrap().into());
            let (peer, _) = self.listener.accept().unwrap();
            assert_eq!(self.next(), (slot, What::Connected));
            peer
        }

        /// The next completion, however long it takes.
        fn next(&mut self) -> (u32, What) {
            loop {
                if let Some(Completion { slot, what }) = self.driver.next() {
                    return (slot.0, what);
                }
                self.driver.wait(Nanos::MAX).unwrap();
            }
        }

        /// Bytes that come on a slot until `n_bytes` are there.
        fn read(&mut self, slot: u32, n_bytes: usize) -> Vec<u8> {
            let mut bytes = Vec::new();
            while bytes.len() < n_bytes {
                assert_eq!(self.next(), (slot, What::Received));
                bytes.extend_from_slice(self.driver.received());
            }
            bytes
        }

        /// Everything that is known now, without waiting.
        fn now(&mut self) -> Vec<(u32, What)> {
            self.driver.wait(Nanos::ZERO).unwrap();
            let known = std::iter::from_fn(|| self.driver.next());
            known.map(|completion| (completion.slot.0, completion.what)).collect()
        }
    }

    #[test]
    fn spinning_waits_to_the_end_and_is_no_cpu_time_of_the_driver() {
        let mut driver = EpollDriver::new(1).unwrap().busy_polling(true);
        let (before, thread_before) = (driver.cpu(), clock::thread_cpu());
        let until = driver.now() + Nanos::from_millis(50);
        driver.wait(until).unwrap();
        assert!(driver.now() >= until);
        let (counted, used) = (driver.cpu() - before, clock::thread_cpu() - thread_before);
        assert!(counted.0 * 2 < used.0, "{counted} of {used} counted");
    }

    #[test]
    fn a_conversation_is_a_row_of_completions() {
        let mut world = World::new(1);
        let mut peer = world.connect(0);
        for n in 0..3u8 {
            world.driver.send(Slot(0), &[n; 100]);
            let mut bytes = [0; 100];
            peer.read_exact(&mut bytes).unwrap();
            assert_eq!(bytes, [n; 100]);
            peer.write_all(&[n; 50]).unwrap();
            assert_eq!(world.read(0, 50), [n; 50]);
        }
        assert!(world.now().is_empty());
        drop(peer);
        assert_eq!(world.next(), (0, What::Closed));
    }

    #[test]
    fn bytes_and_the_close_behind_them_come_one_after_the_other() {
        let mut world = World::new(2);
        let (mut peer, mut other) = (world.connect(0), world.connect(1));
        peer.write_all(b"last words").unwrap();
        drop(peer);
        other.write_all(b"x").unwrap();
        let mut seen = Vec::new();
        while seen.len() < 3 {
            seen.push(world.next());
        }
        let at = seen.iter().position(|(slot, _)| *slot == 0).unwrap();
        assert_eq!(seen[at..at + 2], [(0, What::Received), (0, What::Closed)]);
    }

    #[test]
    fn what_the_kernel_does_not_take_at_once_is_sent_later_and_in_order() {
        const N_BYTES: usize = 20_000_000;
        let mut world = World::new(1);
        let mut peer = world.connect(0);
        let bytes: Vec<u8> = (0..N_BYTES).map(|n| (n / 1000) as u8).collect();
        let (first, second) = bytes.split_at(N_BYTES - 10);
        world.driver.send(Slot(0), first);
        world.driver.send(Slot(0), second);
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; N_BYTES];
            peer.read_exact(&mut got).unwrap();
            peer.write_all(b"k").unwrap();
            got
        });
        assert_eq!(world.read(0, 1), b"k");
        assert!(reader.join().unwrap() == bytes, "the bytes arrived in another order");
    }

    #[test]
    fn an_earlier_use_of_a_slot_is_never_heard_of_again() {
        let mut world = World::new(2);
        let (mut first, mut other) = (world.connect(0), world.connect(1));
        first.write_all(b"too late").unwrap();
        other.write_all(b"x").unwrap();
        // Both events are in the batch when slot 0 is closed and connected again.
        world.driver.wait(Nanos::MAX).unwrap();
        world.driver.close(Slot(0), Leave::Orderly);
        let _second = world.listener.local_addr().map(|addr| world.driver.connect(Slot(0), &addr.into()));
        let mut seen = vec![world.next(), world.next()];
        seen.sort_by_key(|(slot, _)| *slot);
        assert_eq!(seen, [(0, What::Connected), (1, What::Received)]);
        assert!(world.now().is_empty());
    }

    #[test]
    fn an_endless_reply_leaves_the_others_their_turn() {
        let mut world = World::new(2);
        let (mut endless, mut other) = (world.connect(0), world.connect(1));
        let writer = std::thread::spawn(move || while endless.write_all(&[0; 1 << 20]).is_ok() {});
        // However much comes on slot 0, a round ends, and the others are heard.
        for _ in 0..50 {
            world.driver.wait(Nanos::MAX).unwrap();
            let n_completions = std::iter::from_fn(|| world.driver.next()).count();
            assert!(n_completions <= 2 * usize::from(FULL_RECVS_MAX) + 2, "{n_completions}");
        }
        other.write_all(b"x").unwrap();
        while world.next() != (1, What::Received) {}
        world.driver.close(Slot(0), Leave::Abrupt);
        writer.join().unwrap();
    }

    #[test]
    fn a_refusal_and_a_reset_are_told_apart() {
        let mut world = World::new(2);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        world.driver.connect(Slot(1), &closed.into());
        assert_eq!(world.next(), (1, What::Failed(Failure::Refused)));
        world.driver.close(Slot(1), Leave::Orderly);

        let peer = world.connect(0);
        socket::reset_on_close(&peer).unwrap();
        drop(peer);
        assert_eq!(world.next(), (0, What::Failed(Failure::Reset)));
        world.driver.close(Slot(0), Leave::Orderly);
        world.connect(0);
    }

    #[test]
    fn a_send_to_a_peer_that_is_gone_fails_by_a_completion() {
        let mut world = World::new(1);
        let peer = world.connect(0);
        peer.shutdown(Shutdown::Both).unwrap();
        drop(peer);
        assert_eq!(world.next(), (0, What::Closed));
        // The first is answered by RST, after which sending fails.
        world.driver.send(Slot(0), b"x");
        let failed = loop {
            world.driver.send(Slot(0), b"x");
            if let Some(failed) = world.now().pop() {
                break failed;
            }
        };
        assert_eq!(failed, (0, What::Failed(Failure::Reset)));
    }

    #[test]
    fn leaving_abruptly_resets_the_peer() {
        for (how, is_reset) in [(Leave::Orderly, false), (Leave::Abrupt, true)] {
            let mut world = World::new(1);
            let mut peer = world.connect(0);
            world.driver.close(Slot(0), how);
            assert_eq!(peer.read(&mut [0; 1]).is_err(), is_reset, "{how:?}");
        }
    }

    #[test]
    fn a_wait_ends_at_its_instant_and_not_before() {
        let mut world = World::new(1);
        let until = world.driver.now() + Nanos::from_micros(1700);
        world.driver.wait(until).unwrap();
        assert!(world.driver.now() >= until);
    }
}
