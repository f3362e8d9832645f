//! One acceptor with a poll set, and a few threads that work on what is ready: Wyvern-style, after
//! what is public of Wyvern 2 (max-thread, max-request). Owns who waits (the acceptor, for all
//! connections between their requests); must not know HTTP.
//! Start reading at [`Pool::accept_and_watch`], then [`Pool::work`].
//!
//! Cost of a request on a kept-alive connection: receive, send, one epoll_ctl that gives the
//! connection back to the poll set, a share of one epoll_wait, and one handing-over from the acceptor
//! to a thread (a lock, and a wake-up where the thread slept). A connection is watched for one event
//! at a time (EPOLLONESHOT), so only one thread ever has it. Threads never block in a socket: a slow
//! client holds none.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use sys::clock;
use sys::epoll::{Epoll, EventFlags};
use sys::listener::{self, Mode};
use sys::signals::{Signals, Stop};
use sys::socket;
use units::Nanos;

use super::shared::acceptor::{Acceptor, Next, Room};
use super::shared::socket_io::{self, ACCEPTS_MAX, AfterCall, InputState, SPIN, Step};
use super::shared::timers::Timers;
use super::{Declared, Model, SettingKind, SettingSpec, THREAD_STACK_BYTES, system};
use crate::ServeError;
use crate::service::Service;
use site::board::Board;
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
            about: "what lies past max-request waits in the backlog, or is closed at once",
        },
    ],
    declares: Declared {
        accept_order: "the one acceptor takes them in order of arrival",
        keep_alive_holder: "the acceptor's poll set; no thread",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "max-thread requests in work, max-request connections held",
        saturation: "overflow=wait: connections wait in the backlog; close: they are closed at once",
    },
    // More threads than connections are allowed, as they were in the server that this follows: they stay
    // idle, and what they cost is one of the questions.
    check: |_| Ok(()),
    available: super::everywhere,
    run,
};

/// How often the acceptor looks whether the last connection has ended, while it drains.
const DRAIN_TICK: Nanos = Nanos::from_millis(20);

const LISTENER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

fn run(service: &Service) -> Result<(), ServeError> {
    // Servers of many connections do so at their start (nginx worker_rlimit_nofile, lighttpd
    // server.max-fds); where it is refused, fewer connections fit, which accepting reports.
    let _ = socket::raise_file_limit();
    // Before the threads: they inherit the mask, and signals are the acceptor's.
    let signals = Signals::new().map_err(system("cannot take signals as a file"))?;
    listener::set_mode(&service.listener, Mode::NonBlocking)
        .map_err(system("cannot make the listener non-blocking"))?;
    let pool = Pool::new(service).map_err(system("cannot create the epoll set"))?;
    std::thread::scope(|scope| {
        let threads = service.settings.count("max-thread");
        let started = (0..threads).try_for_each(|_| {
            let builder = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES);
            builder.spawn_scoped(scope, || pool.work()).map(|_| ())
        });
        let served = match started {
            Ok(()) => pool.accept_and_watch(&signals).map_err(system("cannot wait for events")),
            Err(error) => Err(system("cannot start the threads of max-thread")(error)),
        };
        pool.ready.close();
        served
    })?;
    pool.cut();
    Ok(())
}

/// All that the acceptor and the threads share.
struct Pool<'s> {
    service: &'s Service,
    epoll: Epoll,
    ready: ReadyQueue,
    /// One place for each connection of max-request.
    slots: Vec<ConnSlot<'s>>,
    /// Places without a connection.
    free: Mutex<Vec<u32>>,
    open: AtomicUsize,
    /// The listener is out of the poll set until a connection ends.
    rests: AtomicBool,
    draining: AtomicBool,
}

struct ConnSlot<'s> {
    conn: Mutex<Conn<'s>>,
    /// When the wait of its connection ends; written by the thread that worked on it last.
    deadline: AtomicU64,
}

struct Conn<'s> {
    /// Comes with the first connection; its buffers serve all later ones.
    spare_exchange: Option<Exchange<'s>>,
    state: PoolConnState,
}

enum PoolConnState {
    Free,
    Open(OwnedFd),
    /// Closed on our side; what still comes is dropped, up to so many bytes.
    Lingering(OwnedFd, usize),
}

/// Connections that a thread is to work on. At most three entries for each place: two of the poll set, for
/// the socket and the file of a gateway, and one of the timers.
struct ReadyQueue {
    /// Shows how long it is.
    board: Board,
    inner: Mutex<(VecDeque<u32>, bool)>,
    changed: Condvar,
    /// The queue was closed.
    closed: Condvar,
}

impl ReadyQueue {
    fn new(board: &Board) -> Self {
        let (changed, closed) = (Condvar::new(), Condvar::new());
        Self { board: board.clone(), inner: Mutex::default(), changed, closed }
    }

    fn push(&self, index: u32) {
        let mut inner = lock(&self.inner);
        inner.0.push_back(index);
        self.board.queue(inner.0.len());
        drop(inner);
        self.changed.notify_one();
    }

    /// The next one, waiting for it; `None` once the queue is closed.
    fn pop(&self) -> Option<u32> {
        let nothing = |inner: &mut (VecDeque<u32>, bool)| inner.0.is_empty() && !inner.1;
        let waited = self.changed.wait_while(lock(&self.inner), nothing);
        let mut inner = waited.unwrap_or_else(PoisonError::into_inner);
        if inner.1 {
            return None;
        }
        let index = inner.0.pop_front();
        self.board.queue(inner.0.len());
        index
    }

    /// Waits until that instant; false: the queue was closed before.
    fn sleep_until(&self, until: Nanos) -> bool {
        let mut inner = lock(&self.inner);
        while !inner.1 {
            let sleep = until.saturating_sub(clock::monotonic().saturating_add(SPIN));
            if sleep == Nanos::ZERO {
                drop(inner);
                socket_io::spin_until(until);
                return true;
            }
            let waited = self.closed.wait_timeout(inner, sleep.into());
            (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    fn close(&self) {
        lock(&self.inner).1 = true;
        self.changed.notify_all();
        self.closed.notify_all();
    }
}

/// A thread that panicked leaves at worst a connection that nobody moves on, until its timeout.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'s> Pool<'s> {
    fn new(service: &'s Service) -> io::Result<Self> {
        let slots = service.settings.count("max-request") as u32;
        let slot = |_| ConnSlot {
            conn: Mutex::new(Conn { spare_exchange: None, state: PoolConnState::Free }),
            deadline: AtomicU64::new(u64::MAX),
        };
        Ok(Self {
            service,
            epoll: Epoll::new()?,
            ready: ReadyQueue::new(&service.board),
            slots: (0..slots).map(slot).collect(),
            free: Mutex::new((0..slots).rev().collect()),
            open: AtomicUsize::new(0),
            rests: AtomicBool::new(false),
            draining: AtomicBool::new(false),
        })
    }

    /// The acceptor: accepts, watches all connections that wait, and hands over those that are ready
    /// or have waited too long.
    fn accept_and_watch(&self, signals: &Signals) -> io::Result<()> {
        self.epoll.add(&self.service.listener, LISTENER, EventFlags::IN)?;
        self.epoll.add(signals, SIGNALS, EventFlags::IN)?;
        let grace = self.service.shutdown_grace;
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
                            end = watcher.now.saturating_add(grace);
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

    /// A thread of max-thread: takes a connection that is ready, moves it on as far as it goes, and
    /// gives it back to the poll set.
    fn work(&self) {
        let _seat = self.service.board.sit();
        while let Some(index) = self.ready.pop() {
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
            // The entry is of a connection that has ended since.
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

    /// One turn of a connection whose exchange is not over.
    fn advance(&self, slot: &ConnSlot<'s>, exchange: &mut Exchange<'s>, socket: &OwnedFd) -> Step {
        let now = clock::monotonic();
        if exchange.deadline() <= now {
            exchange.timed_out(now);
        }
        // The end of the stream that comes with the last bytes is seen at the next turn: watching
        // again reports what is there.
        let mut input = InputState::MayHave;
        let mut finishes = false;
        loop {
            let ending = self.draining.load(Relaxed);
            let after_call = || AfterCall { now: socket_io::time(self.service, now), ending };
            match socket_io::advance(socket.as_fd(), exchange, &mut input, after_call) {
                Step::Close(how) => return Step::Close(how),
                Step::Hold(until) => {
                    // For the acceptor, which would otherwise send another thread to see to a timeout.
                    slot.deadline.store(exchange.deadline().0, Relaxed);
                    if !self.ready.sleep_until(until) {
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

    /// Gives a connection back to the acceptor's poll set, or to the end of the queue.
    fn watch(&self, index: u32, conn: &mut Conn<'s>, step: Step) {
        let wanted = match step {
            Step::Turn => return self.ready.push(index),
            // It is held at the end of the server, which cuts it. That the client has ended its side stays
            // so: who waits for room would be told again each time.
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

    /// Gives the file of a gateway to the poll set, for one event as well; returns what the socket is to be
    /// watched for beside it. `None`: the connection is lost.
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
        // What there is no room for would be told again and again.
        let wanted = EventFlags::IN | EventFlags::RDHUP;
        Some(if has_room { wanted } else { EventFlags::empty() })
    }

    /// The connection of a place has been closed.
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
            // EEXIST: someone else was faster. Anything else is tried again.
            self.rests.store(error.kind() != ErrorKind::AlreadyExists, Relaxed);
        }
    }

    /// Closes what is left when there is no more time for it; the threads have ended.
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

/// What only the acceptor's thread knows.
struct Watcher<'p, 's> {
    pool: &'p Pool<'s>,
    acceptor: Acceptor<'s>,
    timers: Timers,
    /// The shortest wait that a client is allowed: a place that is looked at as often as this is
    /// looked at before any deadline that a thread may have set since.
    glance: Nanos,
    closes_overflow: bool,
    /// The port is open.
    listens: bool,
    /// Accepting rests until then, for lack of descriptors or memory.
    rest: Nanos,
    /// One read of the clock for all that a wake-up brings.
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
            closes_overflow: service.settings.word("overflow") == "close",
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
            let room = match (full, self.closes_overflow) {
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

    /// In a drain: takes what still waits, as far as there is room. The listener's event would do it
    /// too, but does not come for a connection that has gone in the meantime.
    fn accept_the_last(&mut self) {
        while self.acceptor.is_draining() && self.listens && !self.pool.rests.load(Relaxed) {
            self.accept_some();
        }
        // Where it is full too: what comes now is to be refused, or the next server's.
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
            // ENOMEM or ENOSPC (fs.epoll.max_user_watches): nobody would ever wake it.
            drop(conn);
            self.pool.release(index);
        }
    }

    /// Takes the listener out of the set: it stays readable, and the acceptor would spin.
    fn pause(&mut self, until: Nanos) {
        if self.pool.epoll.remove(self.acceptor.listener()).is_err() {
            return;
        }
        self.rest = until;
        self.pool.rests.store(true, Relaxed);
        // A place that became free before the line above did not bring the listener back.
        let full = self.pool.open.load(Relaxed) == self.pool.slots.len();
        if until == Nanos::MAX && !full && self.pool.rests.swap(false, Relaxed) {
            self.pool.accept_again();
        }
    }

    /// Looks at the places whose turn it is, and hands over those that have waited too long.
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

    /// Takes in what already waits to be accepted, closes the port, and has a thread look at each
    /// connection, so that it ends with the response it is at.
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
        // It is not in the set where accepting rests.
        let _ = self.pool.epoll.remove(&self.pool.service.listener);
        self.pool.service.stop_listening();
    }
}
