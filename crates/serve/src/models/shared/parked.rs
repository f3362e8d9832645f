//! Parked connections: those that no thread of the process works on. epoll watches them until the
//! client or a deadline unparks them. `event` and `poller` decide who waits for what. Start reading
//! at [`ParkedConns::park`] and [`turn`].
//!
//! Cost of parking a connection again: a lock and one epoll_ctl. A connection is registered for one
//! event at a time (EPOLLONESHOT), so only one thread ever has it. It keeps its slot and its token
//! through all turns. A later connection reuses its buffers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use sys::clock;
use sys::epoll::{Epoll, EventFlags, Ready};
use sys::poll;
use sys::signals::Stop;
use units::Nanos;

use super::socket_io::{self, AfterCall, InputState, Step};
use super::timers::Timers;
use crate::service::Service;
use site::exchange::{Close, Exchange, Want};

/// The token of a connection is its slot. These tokens are above every slot.
pub(crate) const LISTENER: u64 = u64::MAX;
pub(crate) const SIGNALS: u64 = u64::MAX - 1;
const WAKE: u64 = u64::MAX - 2;

/// How often an idle process flushes its logs.
const LOGS_KEPT_UP: Nanos = Nanos::from_secs(1);

/// A connection. Whoever works on it owns it.
pub(crate) struct Conn<'s> {
    pub(crate) exchange: Exchange<'s>,
    socket: Socket,
    slot: u32,
    /// Whether the epoll set has it.
    watched: bool,
    /// When it is unparked if its client does nothing.
    until: Nanos,
    /// Why it is parked.
    reason: ParkReason,
}

enum Socket {
    None,
    Open(OwnedFd),
    /// Closed on our side. We drop at most this many bytes of further input.
    Lingering(OwnedFd, usize),
}

/// Why no thread works on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParkReason {
    /// It waits for a request and has received nothing of it.
    Idle,
    /// It waits for the rest of a request.
    Reading,
    /// It waits until the client takes more of the answer.
    Writing,
    /// We closed it and read until the client has closed too.
    Lingering,
}

/// The parked connections of a process, and the epoll set that watches them.
pub(crate) struct ParkedConns<'s> {
    service: &'s Service,
    pub(crate) epoll: Epoll,
    /// Readable when the watcher is to check its deadlines or flags.
    wake: OwnedFd,
    inner: Mutex<Inner<'s>>,
    /// Connections that have not ended, parked or not, and how many of them linger.
    open: AtomicUsize,
    lingering: AtomicUsize,
}

struct Inner<'s> {
    /// By slot; `None` while a thread has the connection.
    slots: Vec<Option<Box<Conn<'s>>>>,
    /// Ended connections, to be reused. Each keeps its slot.
    #[expect(clippy::vec_box, reason = "they go back and forth as boxes, and are large")]
    spare: Vec<Box<Conn<'s>>>,
    timers: Timers,
    /// How many are parked with [`ParkReason::Idle`].
    idle: usize,
    /// When the watcher's sleep ends.
    sleeps_until: Nanos,
}

impl<'s> ParkedConns<'s> {
    /// With no connection yet.
    pub(crate) fn new(service: &'s Service) -> io::Result<Self> {
        let parked = Self {
            service,
            epoll: Epoll::new()?,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            inner: Mutex::new(Inner {
                slots: Vec::new(),
                spare: Vec::new(),
                timers: Timers::new(clock::monotonic()),
                idle: 0,
                sleeps_until: Nanos::MAX,
            }),
            open: AtomicUsize::new(0),
            lingering: AtomicUsize::new(0),
        };
        parked.epoll.add(&parked.wake, WAKE, EventFlags::IN)?;
        Ok(parked)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<'s>> {
        // Under the lock nothing panics but an assertion of a broken count.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections that have not ended.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Of those, how many are closed on our side.
    pub(crate) fn lingering(&self) -> usize {
        self.lingering.load(Relaxed)
    }

    /// How many are parked between two requests.
    pub(crate) fn idle(&self) -> usize {
        self.lock().idle
    }

    /// Makes a connection of a socket that was just accepted.
    pub(crate) fn admit(&self, socket: OwnedFd, peer: SocketAddr) -> Box<Conn<'s>> {
        self.open.fetch_add(1, Relaxed);
        let now = clock::monotonic();
        let mut inner = self.lock();
        let mut conn = match inner.spare.pop() {
            Some(mut conn) => {
                conn.exchange.reset_for(peer, now);
                conn
            }
            None => {
                let slot = inner.slots.len() as u32;
                inner.slots.push(None);
                let exchange = Exchange::new(self.service, peer, now);
                let (until, reason) = (Nanos::MAX, ParkReason::Idle);
                let socket = Socket::None;
                Box::new(Conn { exchange, socket, slot, watched: false, until, reason })
            }
        };
        conn.socket = Socket::Open(socket);
        conn.watched = false;
        conn
    }

    /// Parks a connection that was just accepted until its first request comes.
    pub(crate) fn park_fresh(&self, mut conn: Box<Conn<'s>>) {
        conn.until = conn.exchange.deadline();
        self.park(conn, ParkReason::Idle);
    }

    /// Parks a connection until the client ends the reason for it, or its deadline comes.
    pub(crate) fn park(&self, mut conn: Box<Conn<'s>>, reason: ParkReason) {
        // We do not ask about RDHUP while we wait for room: once the client has shut its side, each
        // wait would report it again.
        let wanted = match reason {
            ParkReason::Writing => EventFlags::OUT,
            _ => EventFlags::IN | EventFlags::RDHUP,
        };
        let flags = wanted | EventFlags::ONESHOT;
        conn.reason = reason;
        let (slot, until, token) = (conn.slot, conn.until, u64::from(conn.slot));
        let mut inner = self.lock();
        let (Socket::Open(socket) | Socket::Lingering(socket, _)) = &conn.socket else {
            panic!("a connection that has ended is laid down");
        };
        // Under the lock, because the watcher must find the connection when the event comes.
        let watching = match conn.watched {
            true => self.epoll.modify(socket, token, flags),
            false => self.epoll.add(socket, token, flags),
        };
        if watching.is_err() {
            // ENOMEM or ENOSPC (fs.epoll.max_user_watches): no event would ever come for it.
            drop(inner);
            return self.end(conn);
        }
        conn.watched = true;
        inner.idle += usize::from(reason == ParkReason::Idle);
        inner.timers.arm(slot, until);
        inner.slots[slot as usize] = Some(conn);
        if until < inner.sleeps_until {
            inner.sleeps_until = until;
            drop(inner);
            self.wake();
        }
    }

    /// Wakes the watcher.
    pub(crate) fn wake(&self) {
        // This only fails if the counter is full, and then the file is readable anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Unparks the connection of an event, if it is still parked.
    pub(crate) fn unpark(&self, token: u64) -> Option<Box<Conn<'s>>> {
        if token == WAKE {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
            return None;
        }
        self.lock().unpark(token as usize)
    }

    /// Unparks one connection whose deadline has come.
    pub(crate) fn unpark_expired(&self, now: Nanos) -> Option<Box<Conn<'s>>> {
        let mut inner = self.lock();
        while let Some(slot) = inner.timers.expired(now) {
            match &inner.slots[slot as usize] {
                Some(conn) if conn.until <= now => return inner.unpark(slot as usize),
                Some(conn) => {
                    let until = conn.until;
                    inner.timers.arm(slot, until);
                }
                // It was parked again with another deadline, or has ended.
                None => {}
            }
        }
        None
    }

    /// Unparks all connections with this reason, or all.
    #[expect(clippy::vec_box, reason = "they go back and forth as boxes, and are large")]
    pub(crate) fn unpark_all(&self, reason: Option<ParkReason>) -> Vec<Box<Conn<'s>>> {
        let mut inner = self.lock();
        let wanted = |conn: &Conn<'s>| reason.is_none_or(|reason| conn.reason == reason);
        let slots: Vec<usize> = (0..inner.slots.len())
            .filter(|&slot| inner.slots[slot].as_deref().is_some_and(wanted))
            .collect();
        slots.into_iter().filter_map(|slot| inner.unpark(slot)).collect()
    }

    /// In a drain: ends idle connections here, because every thread may be waiting for a client.
    /// Returns those that have received a request, which a thread is to answer.
    pub(crate) fn finish_idle(&self) -> impl Iterator<Item = Box<Conn<'s>>> {
        let mut asking = Vec::new();
        for mut conn in self.unpark_all(Some(ParkReason::Idle)) {
            let Socket::Open(socket) = &conn.socket else { continue };
            if socket_io::wait(socket.as_fd(), PollFlags::IN, Nanos::ZERO) {
                asking.push(conn);
                continue;
            }
            conn.exchange.finish();
            let close = match conn.exchange.want(clock::monotonic) {
                Want::Close(how) => Some(how),
                Want::Read(_) => None,
                _ => {
                    asking.push(conn);
                    continue;
                }
            };
            match close {
                Some(how) => {
                    conn.exchange.ended();
                    self.close(conn, how);
                }
                None => self.park(conn, ParkReason::Idle),
            }
        }
        asking.into_iter()
    }

    /// Waits for events, a deadline, [`ParkedConns::wake`] or `end`.
    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, end: Nanos) -> io::Result<()> {
        let until = {
            let mut inner = self.lock();
            let until = inner.timers.next().unwrap_or(Nanos::MAX).min(end);
            inner.sleeps_until = until;
            until
        };
        let most = (until != Nanos::MAX).then(|| until.saturating_sub(clock::monotonic()));
        self.epoll.wait(ready, Some(most.unwrap_or(LOGS_KEPT_UP).min(LOGS_KEPT_UP)))?;
        self.lock().sleeps_until = Nanos::ZERO;
        if ready.is_empty() {
            self.service.keep_logs_up();
        }
        Ok(())
    }

    /// Carries out the end of a turn.
    pub(crate) fn settle(&self, turned: TurnEnd<'s>) {
        match turned {
            TurnEnd::Parks(conn, reason) => self.park(conn, reason),
            TurnEnd::Closes(conn, how) => self.close(conn, how),
            TurnEnd::Lingers(conn) => self.linger(conn, clock::monotonic()),
        }
    }

    /// Closes a connection, or parks it if it lingers.
    pub(crate) fn close(&self, mut conn: Box<Conn<'s>>, how: Close) {
        conn.exchange.ended();
        let open = match std::mem::replace(&mut conn.socket, Socket::None) {
            Socket::Open(socket) => socket_io::close(socket, how),
            Socket::None | Socket::Lingering(..) => None,
        };
        let was_lingering = conn.reason == ParkReason::Lingering;
        match open {
            Some(socket) if !was_lingering => {
                conn.socket = Socket::Lingering(socket, socket_io::LINGER_BYTES_MAX);
                conn.until = clock::monotonic().saturating_add(socket_io::LINGER_MAX);
                self.lingering.fetch_add(1, Relaxed);
                self.park(conn, ParkReason::Lingering);
            }
            _ => self.end(conn),
        }
    }

    /// Drops the input of a lingering connection, and closes it when it is done.
    pub(crate) fn linger(&self, mut conn: Box<Conn<'s>>, now: Nanos) {
        let Socket::Lingering(socket, left) = &mut conn.socket else { return self.end(conn) };
        if conn.until <= now || socket_io::drop_input(socket.as_fd(), left) {
            self.end(conn);
        } else {
            self.park(conn, ParkReason::Lingering);
        }
    }

    /// Ends a connection. A later one reuses its buffers and its slot.
    fn end(&self, mut conn: Box<Conn<'s>>) {
        conn.socket = Socket::None;
        if conn.reason == ParkReason::Lingering {
            self.lingering.fetch_sub(1, Relaxed);
        }
        conn.reason = ParkReason::Idle;
        self.lock().spare.push(conn);
        self.open.fetch_sub(1, Relaxed);
    }

    /// Cuts all parked connections.
    pub(crate) fn cut(&self) {
        for mut conn in self.unpark_all(None) {
            if conn.reason != ParkReason::Lingering {
                conn.exchange.lost(clock::monotonic());
            }
            self.end(conn);
        }
    }
}

impl<'s> Inner<'s> {
    fn unpark(&mut self, slot: usize) -> Option<Box<Conn<'s>>> {
        let conn = self.slots.get_mut(slot)?.take()?;
        self.idle -= usize::from(conn.reason == ParkReason::Idle);
        Some(conn)
    }
}

impl Conn<'_> {
    /// Why it was parked.
    pub(crate) fn reason(&self) -> ParkReason {
        self.reason
    }
}

/// Who waits for the client when a turn cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// The watcher: the connection is parked.
    Watcher,
    /// The thread itself.
    Thread,
}

/// How a turn ended, to be carried out by [`ParkedConns::settle`].
pub(crate) enum TurnEnd<'s> {
    /// The connection is parked.
    Parks(Box<Conn<'s>>, ParkReason),
    /// It is closed.
    Closes(Box<Conn<'s>>, Close),
    /// It lingers.
    Lingers(Box<Conn<'s>>),
}

/// Gives a connection a turn, until it is to be parked or closed. `waiter` says for which waits it
/// is parked; otherwise the calling thread waits. `ending` says whether and how the process is to
/// end. A signal interrupts a wait so that we ask it.
pub(crate) fn turn<'s>(
    service: &'s Service,
    mut conn: Box<Conn<'s>>,
    waiter: impl Fn(ParkReason, &Exchange<'s>) -> Waiter,
    ending: impl Fn() -> Option<Stop>,
) -> TurnEnd<'s> {
    let mut now = clock::monotonic();
    let mut finishes = false;
    loop {
        // Asked before the socket is read, so that a request that arrived before the end is still
        // answered.
        let stop = ending();
        if stop == Some(Stop::AtOnce) {
            conn.exchange.lost(now);
        }
        conn.exchange.timed_out(now);
        let Socket::Open(socket) = &conn.socket else { return TurnEnd::Lingers(conn) };
        let after_call =
            || AfterCall { now: socket_io::time(service, now), ending: stop.is_some() };
        // Level-triggered: the next turn sees an end of the stream that comes with the last bytes.
        let mut input = InputState::MayHave;
        let (reason, flags) =
            match socket_io::advance(socket.as_fd(), &mut conn.exchange, &mut input, after_call) {
                Step::Close(how) => return TurnEnd::Closes(conn, how),
                // The thread stays with this connection until it waits, as in the original servers.
                Step::Turn => {
                    now = clock::monotonic();
                    continue;
                }
                Step::Hold(until) => {
                    socket_io::sleep_until(until);
                    now = clock::monotonic();
                    continue;
                }
                // The thread waits for the gateway, as in the original servers.
                Step::Gateway => {
                    socket_io::wait_for_gateway(socket.as_fd(), &mut conn.exchange, None);
                    now = clock::monotonic();
                    continue;
                }
                // Everything that had arrived was read above, and no request is in progress.
                Step::Read | Step::Write if !finishes && stop.is_some() => {
                    finishes = true;
                    conn.exchange.finish();
                    continue;
                }
                Step::Write => (ParkReason::Writing, PollFlags::OUT),
                Step::Read if conn.exchange.is_idle() => (ParkReason::Idle, PollFlags::IN),
                Step::Read => (ParkReason::Reading, PollFlags::IN),
            };
        conn.until = conn.exchange.deadline();
        if waiter(reason, &conn.exchange) == Waiter::Watcher {
            return TurnEnd::Parks(conn, reason);
        }
        let left = conn.until.saturating_sub(clock::monotonic());
        if poll::wait_for(&mut [PollFd::new(socket, flags)], Some(left)).is_err() {
            conn.exchange.lost(now);
        }
        now = clock::monotonic();
    }
}
