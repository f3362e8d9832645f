//! An acceptor with a poll set, and a few threads that work on ready connections. Wyvern-style,
//! after what is public of Wyvern 2 (max-thread, max-request). The acceptor waits for all
//! connections between requests. Start reading at [`Pool::accept_and_watch`], then [`Pool::work`].
//!
//! Cost of a request on a kept-alive connection: receive, send, one epoll_ctl that gives the
//! connection back to the poll set, a share of one epoll_wait, and one handoff to a thread (a lock,
//! and a wake-up if the thread slept). A connection is watched for one event at a time
//! (EPOLLONESHOT), so only one thread ever has it. Threads never block in a socket, so a slow
//! client holds none.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::clock;
use sys::epoll::{Epoll, EventFlags};
use sys::listener::Mode;
use sys::signals::{Signals, Stop};
use sys::socket;
use sys::wake::Wake;
use units::Nanos;

use super::shared::acceptor::{Acceptor, Next, Room};
use super::shared::handoff::{HandoffQueue, Taken};
use super::shared::socket_io::{self, ACCEPTS_MAX, AfterCall, InputState, Step};
use super::shared::timers::Timers;
use super::shared::{begin, serving_thread, system};
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec};
use crate::ServeError;
use crate::service::Service;
use site::exchange::{Close, Exchange};

/// The model.
pub(super) static ITEM: Model = Model {
    name: "pool",
    about: "one acceptor with a poll set, a few threads for what is ready (Wyvern-style)",
    settings: &[
        SettingSpec {
            name: "max-thread",
            kind: SettingKind::Count { default: 8, min: 1, max: 1024 },
            about: "threads that work on requests; those above max-request stay idle",
        },
        SettingSpec {
            name: "max-request",
            kind: SettingKind::Count { default: 128, min: 1, max: 1_000_000 },
            about: "connections held at once",
        },
        SettingSpec {
            name: "overflow",
            kind: SettingKind::Word { default: "wait", allowed: &["wait", "close"] },
            about: "whether connections beyond max-request wait in the backlog or are closed at once",
        },
    ],
    declares: Declared {
        accept_order: "the one acceptor takes them in order of arrival",
        keep_alive_holder: "the acceptor's poll set; no thread",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "max-thread requests in progress, max-request connections held",
        saturation: "overflow=wait: connections wait in the backlog; close: they are closed at once",
    },
    // More threads than connections are allowed, as in the original server. The extra threads stay
    // idle, and their cost can be measured.
    two_at_once: Some(&["max-request=2", "max-thread=2", "overflow=wait"]),
    prepare: |settings| {
        Ok(Arc::new(PoolPlan {
            threads: settings.size("max-thread"),
            conns_max: settings.size("max-request"),
            closes_overflow: settings.word("overflow") == "close",
        }))
    },
};

#[derive(Debug)]
struct PoolPlan {
    threads: usize,
    conns_max: usize,
    closes_overflow: bool,
}

/// How often the acceptor checks in a drain whether the last connection has ended.
const DRAIN_TICK: Nanos = Nanos::from_millis(20);

const LISTENER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

impl PreparedModel for PoolPlan {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        // If the kernel refuses, fewer connections fit; the error log says so when accept fails.
        let _ = socket::raise_file_limit();
        let signals = begin(service, Mode::NonBlocking)?;
        let pool = Pool::new(service, self).map_err(system("cannot create the epoll set"))?;
        std::thread::scope(|scope| {
            let started = (0..self.threads)
                .try_for_each(|_| serving_thread().spawn_scoped(scope, || pool.work()).map(|_| ()));
            let served = match started {
                Ok(()) => pool.accept_and_watch(&signals).map_err(system("cannot wait for events")),
                Err(error) => Err(system("cannot start the threads of max-thread")(error)),
            };
            pool.stop();
            served
        })?;
        pool.cut();
        Ok(())
    }
}

/// All that the acceptor and the threads share.
struct Pool<'s> {
    service: &'s Service,
    closes_overflow: bool,
    epoll: Epoll,
    /// Connections for the threads. At most three entries for each: two from the poll set (the
    /// socket and the file of a gateway) and one from the timers.
    ready: HandoffQueue<u32>,
    /// Rung when the threads are to end. Whatever they work on is cut.
    ends: Wake,
    stopping: AtomicBool,
    /// One for each connection of max-request.
    slots: Vec<ConnSlot<'s>>,
    /// Slots without a connection.
    free: Mutex<Vec<u32>>,
    open: AtomicUsize,
    /// The listener is out of the poll set until a connection ends.
    rests: AtomicBool,
    draining: AtomicBool,
}

struct ConnSlot<'s> {
    conn: Mutex<Conn<'s>>,
    /// Deadline of its connection; written by the thread that worked on it last.
    deadline: AtomicU64,
}

struct Conn<'s> {
    /// `None` before the first connection; its buffers serve all later ones.
    spare_exchange: Option<Exchange<'s>>,
    state: PoolConnState,
}

enum PoolConnState {
    Free,
    Open(OwnedFd),
    /// Closed on our side. We drop at most this many bytes of further input.
    Lingering(OwnedFd, usize),
}

/// If a thread panicked, its connection stays as it is until its deadline.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'s> Pool<'s> {
    fn new(service: &'s Service, plan: &PoolPlan) -> io::Result<Self> {
        let slots = plan.conns_max as u32;
        let slot = |_| ConnSlot {
            conn: Mutex::new(Conn { spare_exchange: None, state: PoolConnState::Free }),
            deadline: AtomicU64::new(u64::MAX),
        };
        Ok(Self {
            service,
            closes_overflow: plan.closes_overflow,
            epoll: Epoll::new()?,
            ready: HandoffQueue::shown_on(&service.board),
            ends: Wake::new()?,
            stopping: AtomicBool::new(false),
            slots: (0..slots).map(slot).collect(),
            free: Mutex::new((0..slots).rev().collect()),
            open: AtomicUsize::new(0),
            rests: AtomicBool::new(false),
            draining: AtomicBool::new(false),
        })
    }

    /// The acceptor: accepts, watches all waiting connections, and hands over those with news or a
    /// deadline.
    fn accept_and_watch(&self, signals: &Signals) -> io::Result<()> {
        self.epoll.add(&self.service.listener, LISTENER, EventFlags::IN)?;
        self.epoll.add(signals, SIGNALS, EventFlags::IN)?;
        let mut watcher = Watcher::new(self);
        let mut end = Nanos::MAX;
        let mut ready = Vec::new();
        while watcher.now < end && (watcher.listens || self.open.load(Relaxed) > 0) {
            self.epoll.wait(&mut ready, watcher.timeout(end))?;
            watcher.now = clock::monotonic();
            for event in ready.drain(..) {
                match event.token {
                    LISTENER => watcher.accept_some(),
                    SIGNALS => match signals.take()? {
                        Some(Stop::AtOnce) => end = watcher.now,
                        Some(Stop::Drain) if end == Nanos::MAX => {
                            end = watcher.now.saturating_add(self.service.shutdown_grace);
                            watcher.drain();
                        }
                        _ => {}
                    },
                    index => self.ready.push(index as u32),
                }
            }
            watcher.expire();
            watcher.accept_the_last();
        }
        Ok(())
    }

    /// Ends the threads. They leave their connections as they are.
    fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.ends.ring();
        self.ready.close_and_wait();
    }

    /// The life of a thread: takes a ready connection, moves it on as far as possible, and gives it
    /// back to the poll set.
    fn work(&self) {
        let _slot = self.service.board.claim_slot();
        while let Taken::Item(index) = self.ready.take(None) {
            if self.stopping.load(Relaxed) {
                return;
            }
            self.turn(index);
            self.service.board.wait(clock::monotonic);
        }
    }

    fn turn(&self, index: u32) {
        let slot = &self.slots[index as usize];
        let mut conn = lock(&slot.conn);
        let conn = &mut *conn;
        let (Some(exchange), state) = (&mut conn.spare_exchange, &mut conn.state) else { return };
        let step = match state {
            // Its connection has ended in the meantime.
            PoolConnState::Free => return,
            PoolConnState::Lingering(socket, left) => {
                let due = slot.deadline.load(Relaxed) <= clock::monotonic().0;
                match due || socket_io::drop_input(socket.as_fd(), left) {
                    true => Step::Close(Close::Normal),
                    false => Step::Read,
                }
            }
            PoolConnState::Open(socket) => self.advance(slot, exchange, socket),
        };
        if let Step::Close(how) = step {
            let socket = match std::mem::replace(state, PoolConnState::Free) {
                PoolConnState::Open(socket) => socket_io::close(socket, how),
                PoolConnState::Free | PoolConnState::Lingering(..) => None,
            };
            let Some(socket) = socket else { return self.release(index) };
            *state = PoolConnState::Lingering(socket, socket_io::LINGER_BYTES_MAX);
            let until = clock::monotonic().saturating_add(socket_io::LINGER_MAX);
            slot.deadline.store(until.0, Relaxed);
        } else if let PoolConnState::Open(_) = state {
            slot.deadline.store(exchange.deadline().0, Relaxed);
        }
        self.watch(index, conn, step);
    }

    /// Moves a connection on until it has to wait.
    fn advance(&self, slot: &ConnSlot<'s>, exchange: &mut Exchange<'s>, socket: &OwnedFd) -> Step {
        let now = clock::monotonic();
        if exchange.deadline() <= now {
            exchange.timed_out(now);
        }
        // The next turn sees an end of the stream that comes with the last bytes: a socket that is
        // watched again reports its state.
        let mut input = InputState::MayHave;
        let mut finishes = false;
        loop {
            let ending = self.draining.load(Relaxed);
            let after_call = || AfterCall { now: socket_io::time(self.service, now), ending };
            match socket_io::advance(socket.as_fd(), exchange, &mut input, after_call) {
                Step::Close(how) => return Step::Close(how),
                Step::Hold(until) => {
                    // So that the acceptor does not send another thread because of a deadline.
                    slot.deadline.store(exchange.deadline().0, Relaxed);
                    if !socket_io::sleep_unless_rung(until, &self.ends) {
                        return Step::Hold(until);
                    }
                }
                step if finishes || !ending => return step,
                _ => {
                    exchange.finish();
                    finishes = true;
                }
            }
        }
    }

    /// Gives a connection back to the poll set, or to the end of the queue.
    fn watch(&self, index: u32, conn: &mut Conn<'s>, step: Step) {
        let wanted = match step {
            Step::Turn => return self.ready.push(index),
            // Held when the server ends, which cuts it. We do not ask about RDHUP while we wait for
            // room: once the client has shut its side, each wait would report it again.
            Step::Write | Step::Hold(_) => EventFlags::OUT,
            Step::Gateway => match self.watch_gateway(index, conn) {
                Some(wanted) => wanted,
                None => return self.ready.push(index),
            },
            Step::Read | Step::Close(_) => EventFlags::IN | EventFlags::RDHUP,
        };
        let (PoolConnState::Open(socket) | PoolConnState::Lingering(socket, _)) = &conn.state
        else {
            return;
        };
        let flags = wanted | EventFlags::ONESHOT;
        if self.epoll.modify(socket, u64::from(index), flags).is_err() {
            conn.state = PoolConnState::Free;
            self.release(index);
        }
    }

    /// Adds the file of a gateway to the poll set, also for one event. Returns what to watch the
    /// socket for at the same time; `None`: the connection is lost.
    fn watch_gateway(&self, index: u32, conn: &mut Conn<'s>) -> Option<EventFlags> {
        let exchange = conn.spare_exchange.as_mut()?;
        let has_room = exchange.room().is_some_and(|room| !room.is_empty());
        let awaited = exchange.awaited()?;
        let mut flags = EventFlags::ONESHOT;
        flags.set(EventFlags::IN | EventFlags::RDHUP, awaited.reads);
        flags.set(EventFlags::OUT, awaited.writes);
        if socket_io::watch_gateway(&self.epoll, &awaited, u64::from(index), flags).is_err() {
            exchange.lost(clock::monotonic());
            return None;
        }
        // Without room for it, new input would be reported again and again.
        let wanted = EventFlags::IN | EventFlags::RDHUP;
        Some(if has_room { wanted } else { EventFlags::empty() })
    }

    /// Frees the slot of a closed connection.
    fn release(&self, index: u32) {
        self.slots[index as usize].deadline.store(u64::MAX, Relaxed);
        lock(&self.free).push(index);
        self.open.fetch_sub(1, Relaxed);
        if self.rests.swap(false, Relaxed) {
            self.accept_again();
        }
    }

    fn accept_again(&self) {
        if let Err(error) = self.epoll.add(&self.service.listener, LISTENER, EventFlags::IN) {
            // EEXIST: another thread was faster. After any other error we try again.
            self.rests.store(error.kind() != ErrorKind::AlreadyExists, Relaxed);
        }
    }

    /// Cuts all connections, when the threads have ended.
    fn cut(&self) {
        for slot in &self.slots {
            let mut conn = lock(&slot.conn);
            if let (PoolConnState::Open(_), Some(exchange)) =
                (std::mem::replace(&mut conn.state, PoolConnState::Free), &mut conn.spare_exchange)
            {
                exchange.lost(clock::monotonic());
            }
        }
    }
}

/// State of the acceptor's thread alone.
struct Watcher<'p, 's> {
    pool: &'p Pool<'s>,
    acceptor: Acceptor<'s>,
    timers: Timers,
    /// The shortest time that a client may wait. A slot that is checked this often is checked
    /// before any deadline that a thread may have set since.
    glance: Nanos,
    /// The port is open.
    listens: bool,
    /// No accept before this instant, because descriptors or memory ran out.
    rest: Nanos,
    /// The time when the last wait ended; read once for all its events.
    now: Nanos,
}

impl<'p, 's> Watcher<'p, 's> {
    fn new(pool: &'p Pool<'s>) -> Self {
        let now = clock::monotonic();
        let service = pool.service;
        Self {
            pool,
            acceptor: Acceptor::new(pool.service, &pool.service.listener, ACCEPTS_MAX),
            timers: Timers::new(now),
            glance: socket_io::call_max(&service.config).min(socket_io::LINGER_MAX),
            listens: true,
            rest: Nanos::MAX,
            now,
        }
    }

    fn timeout(&self, end: Nanos) -> Option<Nanos> {
        let mut next = self.timers.next().unwrap_or(Nanos::MAX).min(self.rest).min(end);
        if end != Nanos::MAX {
            next = next.min(self.now.saturating_add(DRAIN_TICK));
        }
        (next != Nanos::MAX).then(|| next.saturating_sub(self.now))
    }

    fn accept_some(&mut self) {
        self.acceptor.begin_round();
        loop {
            let full = self.pool.open.load(Relaxed) == self.pool.slots.len();
            let room = match (full, self.pool.closes_overflow) {
                (false, _) => Room::Free,
                (true, false) => Room::Waits,
                (true, true) => Room::Closes,
            };
            match self.acceptor.next(room) {
                Next::Admit(socket, peer) => self.admit(socket, peer),
                Next::Done => return,
                Next::Rest(most) => return self.pause(self.now.saturating_add(most)),
                Next::Over => return self.stop_listening(),
            }
        }
    }

    /// In a drain: accepts what still waits, as far as there is room. We cannot rely on the
    /// listener's event, which does not come for a connection that has gone in the meantime.
    fn accept_the_last(&mut self) {
        while self.acceptor.is_draining() && self.listens && !self.pool.rests.load(Relaxed) {
            self.accept_some();
        }
        // Even if the pool is full: later connections are refused, or belong to the next server.
        if self.acceptor.is_over() && self.listens {
            self.stop_listening();
        }
    }

    fn admit(&mut self, socket: OwnedFd, peer: std::net::SocketAddr) {
        let Some(index) = lock(&self.pool.free).pop() else { return };
        let slot = &self.pool.slots[index as usize];
        let mut conn = lock(&slot.conn);
        let exchange = socket_io::exchange_for(&mut conn.spare_exchange, self.pool.service, peer);
        slot.deadline.store(exchange.deadline().0, Relaxed);
        self.timers.arm(index, exchange.deadline().min(self.now.saturating_add(self.glance)));
        self.pool.open.fetch_add(1, Relaxed);
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ONESHOT;
        if self.pool.epoll.add(&socket, u64::from(index), flags).is_ok() {
            conn.state = PoolConnState::Open(socket);
        } else {
            // ENOMEM or ENOSPC (fs.epoll.max_user_watches): no event would ever come for it.
            drop(conn);
            self.pool.release(index);
        }
    }

    /// Takes the listener out of the set, where it would stay ready and keep the acceptor awake.
    fn pause(&mut self, until: Nanos) {
        if self.pool.epoll.remove(self.acceptor.listener()).is_err() {
            return;
        }
        self.rest = until;
        self.pool.rests.store(true, Relaxed);
        // A slot that became free before the previous line did not put the listener back.
        let full = self.pool.open.load(Relaxed) == self.pool.slots.len();
        if until == Nanos::MAX && !full && self.pool.rests.swap(false, Relaxed) {
            self.pool.accept_again();
        }
    }

    /// Checks the slots whose timer has ended, and hands over those whose deadline has come.
    fn expire(&mut self) {
        if self.rest <= self.now {
            self.rest = Nanos::MAX;
            if self.pool.rests.swap(false, Relaxed) {
                self.pool.accept_again();
            }
        }
        while let Some(index) = self.timers.expired(self.now) {
            let deadline = Nanos(self.pool.slots[index as usize].deadline.load(Relaxed));
            if deadline == Nanos::MAX {
                continue;
            }
            let next_look = if deadline <= self.now {
                self.pool.ready.push(index);
                self.now.saturating_add(self.glance)
            } else {
                deadline.min(self.now.saturating_add(self.glance))
            };
            self.timers.arm(index, next_look);
        }
    }

    /// Begins a drain: accepts what waits, closes the port, and sends a thread to each connection
    /// so that it finishes its response.
    fn drain(&mut self) {
        self.pool.service.begin_closing();
        self.acceptor.drain();
        self.pool.draining.store(true, Relaxed);
        for index in 0..self.pool.slots.len() as u32 {
            self.pool.ready.push(index);
        }
    }

    fn stop_listening(&mut self) {
        self.listens = false;
        self.pool.rests.store(false, Relaxed);
        // If accepting had paused, the listener is not in the set.
        let _ = self.pool.epoll.remove(&self.pool.service.listener);
        self.pool.service.stop_listening();
    }
}
