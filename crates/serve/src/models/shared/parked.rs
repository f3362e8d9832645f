//! Connections that the threads of one process take turns with: those that nobody works on lie here,
//! watched by epoll, until their client or their deadline brings them up. Owns the set, the deadlines
//! and how a turn is taken; must not know who waits for what (see `event`, `poller`).
//! Start reading at [`ParkedConns::park`] and [`turn`].
//!
//! Cost of handing a connection back: a lock and one epoll_ctl. A connection is registered once, for
//! one event at a time (EPOLLONESHOT), so only one thread ever has it. It keeps its place, and so its
//! token, through all its turns; its buffers go to a later connection.

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

/// Tokens of a connection are its place; these are above every place.
pub(crate) const LISTENER: u64 = u64::MAX;
pub(crate) const SIGNALS: u64 = u64::MAX - 1;
const WAKE: u64 = u64::MAX - 2;

/// How often the logs of a process are looked after that has nothing to do.
const LOGS_KEPT_UP: Nanos = Nanos::from_secs(1);

/// A connection, owned by whoever works on it.
pub(crate) struct Conn<'s> {
    pub(crate) exchange: Exchange<'s>,
    socket: Socket,
    slot: u32,
    /// It is in the epoll set.
    watched: bool,
    /// When it comes up if its client does nothing.
    until: Nanos,
    /// For what it lies in the set.
    reason: ParkReason,
}

enum Socket {
    None,
    Open(OwnedFd),
    /// Closed on our side; what still comes is dropped, up to so many bytes.
    Lingering(OwnedFd, usize),
}

/// Why nobody works on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParkReason {
    /// It is between two requests, or has sent none yet.
    Idle,
    /// A request has begun and is not complete.
    Reading,
    /// The client takes none of its answer.
    Writing,
    /// It is closed on our side.
    Lingering,
}

/// The connections of a process that nobody works on, and the epoll set that watches them.
pub(crate) struct ParkedConns<'s> {
    service: &'s Service,
    pub(crate) epoll: Epoll,
    /// Readable: the watcher is to look at its deadlines, or at its flags.
    wake: OwnedFd,
    inner: Mutex<Inner<'s>>,
    /// Connections that have not ended, wherever they are; and those of them that linger.
    open: AtomicUsize,
    lingering: AtomicUsize,
}

struct Inner<'s> {
    /// By place; empty while somebody has the connection.
    slots: Vec<Option<Box<Conn<'s>>>>,
    /// What connections that have ended leave to later ones; each has its place.
    #[expect(clippy::vec_box, reason = "they go back and forth as boxes, and are large")]
    spare: Vec<Box<Conn<'s>>>,
    timers: Timers,
    /// How many lie here with [`ParkReason::Idle`].
    idle: usize,
    /// The watcher sleeps until then.
    sleeps_until: Nanos,
}

impl<'s> ParkedConns<'s> {
    /// None.
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
        // Nothing that can panic is done while it is locked but an assertion of a broken count.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connections that have not ended.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Those of them that are closed on our side.
    pub(crate) fn lingering(&self) -> usize {
        self.lingering.load(Relaxed)
    }

    /// How many lie here between two requests.
    pub(crate) fn idle(&self) -> usize {
        self.lock().idle
    }

    /// A connection that was just accepted.
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

    /// Lays down a connection that was just accepted, for its first request.
    pub(crate) fn park_fresh(&self, mut conn: Box<Conn<'s>>) {
        conn.until = conn.exchange.deadline();
        self.park(conn, ParkReason::Idle);
    }

    /// Lays a connection down until its client does what it rests for, or its time is over.
    pub(crate) fn park(&self, mut conn: Box<Conn<'s>>, reason: ParkReason) {
        // Who waits for room is not told that the client has ended its side: it stays so, and would be told
        // again each time.
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
        // Within the lock: the watcher must find it when it is told of it.
        let watching = match conn.watched {
            true => self.epoll.modify(socket, token, flags),
            false => self.epoll.add(socket, token, flags),
        };
        if watching.is_err() {
            // ENOMEM or ENOSPC (fs.epoll.max_user_watches): nobody would ever wake it.
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

    /// Has the watcher look up from its wait.
    pub(crate) fn wake(&self) {
        // It can only fail where the counter is full, and then it is readable anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Takes up the connection of an event, if it still lies here.
    pub(crate) fn unpark(&self, token: u64) -> Option<Box<Conn<'s>>> {
        if token == WAKE {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
            return None;
        }
        self.lock().unpark(token as usize)
    }

    /// Takes up one connection whose time is over.
    pub(crate) fn unpark_expired(&self, now: Nanos) -> Option<Box<Conn<'s>>> {
        let mut inner = self.lock();
        while let Some(slot) = inner.timers.expired(now) {
            match &inner.slots[slot as usize] {
                Some(conn) if conn.until <= now => return inner.unpark(slot as usize),
                Some(conn) => {
                    let until = conn.until;
                    inner.timers.arm(slot, until);
                }
                // It is laid down again with a time of its own, or has ended.
                None => {}
            }
        }
        None
    }

    /// Takes up all that rest so.
    #[expect(clippy::vec_box, reason = "they go back and forth as boxes, and are large")]
    pub(crate) fn unpark_all(&self, reason: Option<ParkReason>) -> Vec<Box<Conn<'s>>> {
        let mut inner = self.lock();
        let wanted = |conn: &Conn<'s>| reason.is_none_or(|reason| conn.reason == reason);
        let slots: Vec<usize> = (0..inner.slots.len())
            .filter(|&slot| inner.slots[slot].as_deref().is_some_and(wanted))
            .collect();
        slots.into_iter().filter_map(|slot| inner.unpark(slot)).collect()
    }

    /// Has no connection be kept alive that lies here between two requests. Returns those that a thread is
    /// to look at: a request that has arrived is still answered. The others end here, for every thread may
    /// be waiting for a client.
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

    /// Waits for events, for a deadline, for [`ParkedConns::wake`] or until `end`.
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

    /// Ends the turn of a connection.
    pub(crate) fn settle(&self, turned: TurnEnd<'s>) {
        match turned {
            TurnEnd::Parks(conn, reason) => self.park(conn, reason),
            TurnEnd::Closes(conn, how) => self.close(conn, how),
            TurnEnd::Lingers(conn) => self.linger(conn, clock::monotonic()),
        }
    }

    /// Closes a connection; one that is to linger is laid down.
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

    /// Drops what a lingering connection was sent, and closes it at its end.
    pub(crate) fn linger(&self, mut conn: Box<Conn<'s>>, now: Nanos) {
        let Socket::Lingering(socket, left) = &mut conn.socket else { return self.end(conn) };
        if conn.until <= now || socket_io::drop_input(socket.as_fd(), left) {
            self.end(conn);
        } else {
            self.park(conn, ParkReason::Lingering);
        }
    }

    /// The connection is over: its buffers and its place are another's.
    fn end(&self, mut conn: Box<Conn<'s>>) {
        conn.socket = Socket::None;
        if conn.reason == ParkReason::Lingering {
            self.lingering.fetch_sub(1, Relaxed);
        }
        conn.reason = ParkReason::Idle;
        self.lock().spare.push(conn);
        self.open.fetch_sub(1, Relaxed);
    }

    /// Closes what is left when there is no more time for it.
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
    /// Why it was laid down.
    pub(crate) fn reason(&self) -> ParkReason {
        self.reason
    }
}

/// Who waits for a client that a thread has come to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// The watcher of the set.
    Watcher,
    /// The thread, which does nothing else then.
    Thread,
}

/// What becomes of a connection after its turn: to be settled by [`ParkedConns::settle`].
pub(crate) enum TurnEnd<'s> {
    /// It is laid down.
    Parks(Box<Conn<'s>>, ParkReason),
    /// It is closed.
    Closes(Box<Conn<'s>>, Close),
    /// It lingers.
    Lingers(Box<Conn<'s>>),
}

/// A turn of a connection: it is moved on until it has to wait for its client in the set, or is to be
/// closed. `waiter` says for which waits that is so; for others the calling thread waits. `ending` says
/// whether and how the process is to end; a signal that interrupts a wait makes that known.
pub(crate) fn turn<'s>(
    service: &'s Service,
    mut conn: Box<Conn<'s>>,
    waiter: impl Fn(ParkReason, &Exchange<'s>) -> Waiter,
    ending: impl Fn() -> Option<Stop>,
) -> TurnEnd<'s> {
    let mut now = clock::monotonic();
    let mut finishes = false;
    loop {
        // Before the socket is asked: what had arrived when the end began is taken in below.
        let stop = ending();
        if stop == Some(Stop::AtOnce) {
            conn.exchange.lost(now);
        }
        conn.exchange.timed_out(now);
        let Socket::Open(socket) = &conn.socket else { return TurnEnd::Lingers(conn) };
        let after_call =
            || AfterCall { now: socket_io::time(service, now), ending: stop.is_some() };
        // Level-triggered: an end of the stream that comes with the last bytes is seen next time.
        let mut input = InputState::MayHave;
        let (reason, flags) =
            match socket_io::advance(socket.as_fd(), &mut conn.exchange, &mut input, after_call) {
                Step::Close(how) => return TurnEnd::Closes(conn, how),
                // The thread is this connection's until it waits, as in the original.
                Step::Turn => {
                    now = clock::monotonic();
                    continue;
                }
                Step::Hold(until) => {
                    socket_io::sleep_until(until);
                    now = clock::monotonic();
                    continue;
                }
                // A thread whose request a program answers waits for it, as in the originals.
                Step::Gateway => {
                    socket_io::wait_for_gateway(socket.as_fd(), &mut conn.exchange, None);
                    now = clock::monotonic();
                    continue;
                }
                // What had arrived was taken above; nothing is under way.
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
