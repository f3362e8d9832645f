//! An acceptor, a poller and an executor: Tomcat's connector NIO. Owns who waits: one thread in accept,
//! one in epoll for every connection between two turns, and the threads of the executor, each with one
//! connection as long as it is read from, answered and written to. Must not know HTTP.
//! Start reading at [`Poller::serve`], then [`Executor::submit`].
//!
//! Cost of a request on a kept-alive connection: one receive, one send, a share of one epoll_wait, an
//! epoll_ctl that gives the connection back to the poller, and one handing-over (a wake-up where the
//! thread slept, see `handoff`). What differs from `pool`: there is a thread for accepting, threads come
//! and go, and one blocks in a client that takes no more of its answer.
//!
//! Source: Acceptor, NioEndpoint and TaskQueue of Tomcat 10 (java/org/apache/tomcat/util/net and
//! util/threads). The acceptor counts a connection before it accepts it, and parks at maxConnections,
//! while the kernel queues acceptCount more. The executor grows from minSpareThreads to maxThreads before
//! anything is queued; past maxQueueSize a connection is closed. Tomcat's connectionTimeout is
//! `limits.head_timeout` and TimeOut here, keepAliveTimeout and maxKeepAliveRequests are the common
//! settings, so that a model can be compared with all else equal. What differs: what remains of a
//! request is read by the poller's leave, bodies too, so that a slow sender holds no thread; and a
//! closed connection lingers, as in every model.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::thread::{Builder, Scope};
use std::time::Duration;

use sys::clock;
use sys::epoll::EventFlags;
use sys::listener::{self, Mode};
use sys::process;
use sys::signals::{self, Signals, Stop};
use sys::socket;
use units::Nanos;

use super::shared::handoff::{HandoffQueue, Taken};
use super::shared::parked::{self, Conn, ParkReason, ParkedConns, SIGNALS, Waiter};
use super::shared::socket_io::EXHAUSTED_REST;
use super::{Declared, Model, SettingKind, SettingSpec, Settings, THREAD_STACK_BYTES, system};
use crate::ServeError;
use crate::service::{Service, closing};
use site::exchange::{Close, Exchange};

/// The model.
pub(super) static ITEM: Model = Model {
    name: "poller",
    about: "an acceptor, a poller and an executor of threads (Tomcat, connector NIO)",
    settings: &[
        count("maxThreads", 200, 1, 20_000, "threads of the executor at most"),
        count("minSpareThreads", 10, 1, 20_000, "threads that are started at once and stay"),
        count("maxConnections", 8192, 1, 1_000_000, "connections held at once"),
        count(
            "maxQueueSize",
            i32::MAX as u64,
            1,
            i32::MAX as u64,
            "connections that may wait for a thread when maxThreads work; more are closed",
        ),
        SettingSpec {
            name: "threadsMaxIdleTime",
            kind: SettingKind::Time {
                default: Nanos::from_secs(60),
                min: Nanos::from_millis(1),
                max: Nanos::from_secs(86_400),
            },
            about: "how long a thread above minSpareThreads may have nothing to do",
        },
        count(
            "ListenBacklog",
            100,
            1,
            i32::MAX as u64,
            "connections that may wait to be accepted (acceptCount); the kernel caps it by \
             net.core.somaxconn",
        ),
    ],
    declares: Declared {
        accept_order: "the one acceptor takes them in order of arrival",
        keep_alive_holder: "the poller, in its epoll set; no thread",
        backlog: "the kernel's queue, ListenBacklog (acceptCount) connections",
        concurrency: "maxThreads requests in work, maxConnections connections held",
        saturation: "requests wait in the executor's queue, connections past maxConnections in the \
                     backlog",
    },
    check,
    available: super::everywhere,
    run,
};

const fn count(
    name: &'static str,
    default: u64,
    min: u64,
    max: u64,
    about: &'static str,
) -> SettingSpec {
    SettingSpec { name, kind: SettingKind::Count { default, min, max }, about }
}

fn check(settings: &Settings) -> Result<(), String> {
    let (spare, max) = (settings.count("minSpareThreads"), settings.count("maxThreads"));
    if spare > max {
        return Err(format!(
            "minSpareThreads {spare} is above maxThreads {max}: lower minSpareThreads (Tomcat would \
             start only {max})"
        ));
    }
    Ok(())
}

fn run(service: &Service) -> Result<(), ServeError> {
    let _ = socket::raise_file_limit();
    // Before the threads: they inherit the mask, and signals are the poller's.
    let signals = Signals::new().map_err(system("cannot take signals as a file"))?;
    signals::let_interrupt().map_err(system("cannot handle signals"))?;
    listener::set_mode(&service.listener, Mode::Blocking)
        .map_err(system("cannot make the listener blocking"))?;
    let connector = Connector::new(service).map_err(system("cannot create the epoll set"))?;
    let served = std::thread::scope(|scope| {
        let executor = Executor { connector: &connector, scope };
        let served = (0..connector.rule.threads_min)
            .try_for_each(|_| executor.start_thread())
            .and_then(|()| start_acceptor(&connector, scope))
            .map_err(system("cannot start the threads (`ulimit -u` bounds them)"))
            .and_then(|()| {
                let served = Poller { executor, end: Nanos::MAX }.serve(&signals);
                served.map_err(system("cannot wait for events"))
            });
        connector.stopping.store(true, Relaxed);
        connector.acceptor.close_and_wait();
        connector.queue.close_and_wait();
        served
    });
    connector.parked.cut();
    served
}

/// When the executor starts a thread: TaskQueue.offer as a pure function of counts.
#[derive(Debug, Clone, Copy)]
struct GrowthRule {
    threads_min: usize,
    threads_max: usize,
    queued_max: usize,
}

/// What the rule looks at when something is submitted.
#[derive(Debug, Clone, Copy)]
struct ExecutorLoad {
    /// Threads of the executor.
    threads: usize,
    /// What they work on and what is queued, with what is submitted now.
    submitted: usize,
}

/// What becomes of what is submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// It is queued: a thread is idle, or there are as many as may be.
    Queue,
    /// A thread is started for it.
    Start,
    /// There is no room for it.
    Reject,
}

impl GrowthRule {
    fn submit(self, load: ExecutorLoad) -> Growth {
        let is_full = load.threads >= self.threads_max;
        if is_full && load.submitted > load.threads + self.queued_max {
            Growth::Reject
        } else if is_full || load.submitted <= load.threads {
            Growth::Queue
        } else {
            Growth::Start
        }
    }
}

/// What all threads share.
struct Connector<'s> {
    service: &'s Service,
    parked: ParkedConns<'s>,
    queue: HandoffQueue<Box<Conn<'s>>>,
    /// Nothing is handed over here; the acceptor signs in, so that it can be interrupted and awaited.
    acceptor: HandoffQueue<()>,
    rule: GrowthRule,
    connections_max: usize,
    idle_max: Duration,
    /// Threads of the executor, started and not ended; and what was submitted and is not done.
    threads: AtomicUsize,
    submitted: AtomicUsize,
    /// A drain has begun; so many connections may still be accepted (see `Service::tickets`).
    draining: AtomicBool,
    tickets: AtomicU32,
    /// The acceptor waits for room.
    acceptor_waits: AtomicBool,
    /// The acceptor has not accepted its last.
    accepts: AtomicBool,
    /// What is left is cut.
    stopping: AtomicBool,
}

impl<'s> Connector<'s> {
    fn new(service: &'s Service) -> io::Result<Self> {
        let settings = &service.settings;
        let count = |name| settings.count(name) as usize;
        Ok(Self {
            service,
            parked: ParkedConns::new(service)?,
            queue: HandoffQueue::default(),
            acceptor: HandoffQueue::default(),
            rule: GrowthRule {
                threads_min: count("minSpareThreads"),
                threads_max: count("maxThreads"),
                queued_max: count("maxQueueSize"),
            },
            connections_max: count("maxConnections"),
            idle_max: settings.time("threadsMaxIdleTime").into(),
            threads: AtomicUsize::new(0),
            submitted: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            tickets: AtomicU32::new(0),
            acceptor_waits: AtomicBool::new(false),
            accepts: AtomicBool::new(true),
            stopping: AtomicBool::new(false),
        })
    }

    fn ending(&self) -> Option<Stop> {
        match self.stopping.load(Relaxed) {
            true => Some(Stop::AtOnce),
            false => self.draining.load(Relaxed).then_some(Stop::Drain),
        }
    }

    /// The life of a thread of the executor: take a connection, work on it until it waits, again.
    fn work(&self) {
        process::set_name("joust exec");
        let _registration = self.queue.register();
        // The poller waits for the client's next bytes, the thread for room in the socket.
        let waiter = |reason, _: &Exchange<'_>| match reason {
            ParkReason::Idle | ParkReason::Reading | ParkReason::Lingering => Waiter::Watcher,
            ParkReason::Writing => Waiter::Thread,
        };
        loop {
            match self.queue.take(Some(self.idle_max)) {
                Taken::Item(conn) => {
                    let turned = parked::turn(self.service, conn, waiter, || self.ending());
                    self.show_queue(self.submitted.fetch_sub(1, Relaxed) - 1);
                    self.parked.settle(turned);
                    self.let_acceptor_go_on();
                    if self.draining.load(Relaxed) {
                        // The last connection may have been this one.
                        self.parked.wake();
                    }
                }
                Taken::Nothing if self.leaves() => return,
                Taken::Nothing => {}
                Taken::Closed => {
                    self.threads.fetch_sub(1, Relaxed);
                    return;
                }
            }
        }
    }

    /// Whether a thread that has had nothing to do for long is one too many; it is counted out then.
    fn leaves(&self) -> bool {
        let min = self.rule.threads_min;
        let fewer = |threads: usize| (threads > min).then(|| threads - 1);
        self.threads.fetch_update(Relaxed, Relaxed, fewer).is_ok()
    }

    /// Of what is submitted, more than there are threads waits.
    fn show_queue(&self, submitted: usize) {
        self.service.board.queue(submitted.saturating_sub(self.threads.load(Relaxed)));
    }

    fn has_room(&self) -> bool {
        self.parked.open() < self.connections_max
    }

    /// Waits for room, for a while at most; returns whether there is.
    fn wait_for_room(&self) -> bool {
        self.acceptor_waits.store(true, Relaxed);
        let has_room = self.acceptor.wait_until(LOOK_UP, || self.has_room());
        self.acceptor_waits.store(false, Relaxed);
        has_room
    }

    /// A connection may have ended.
    fn let_acceptor_go_on(&self) {
        if self.acceptor_waits.load(Relaxed) && self.has_room() {
            self.acceptor.wake_waiters();
        }
    }

    /// The life of the acceptor: wait for room, accept, hand over to the poller.
    fn accept(&self) {
        process::set_name("joust acceptor");
        let _registration = self.acceptor.register();
        while !self.stopping.load(Relaxed) {
            // Before it accepts: what it takes while the drain begins may not be among those counted then.
            let needs_ticket = self.draining.load(Relaxed);
            let is_last = || self.tickets.load(Relaxed) == 0 || self.service.is_drained();
            if needs_ticket && is_last() {
                break;
            }
            // The latch: a connection is counted before it is accepted.
            if !self.has_room() && !self.wait_for_room() {
                continue;
            }
            match listener::accept(&self.service.listener, Mode::NonBlocking) {
                Ok((socket, peer)) => {
                    let conn = self.parked.admit(socket, peer);
                    self.parked.park_fresh(conn);
                }
                Err(error) if listener::is_exhaustion(&error) => {
                    self.service.note_exhaustion(&error);
                    std::thread::sleep(EXHAUSTED_REST.into());
                    continue;
                }
                // The listener's timeout, or nobody is left in a drain, where accept does not wait.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // A connection may come whose handshake had begun.
                    if self.draining.load(Relaxed) {
                        std::thread::sleep(closing::LOOK.into());
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The connection was gone before it was accepted; there may be others.
                Err(_) => {}
            }
            if needs_ticket {
                let left = |left: u32| left.checked_sub(1);
                let _ = self.tickets.fetch_update(Relaxed, Relaxed, left);
            }
        }
        self.service.stop_listening();
        self.accepts.store(false, Relaxed);
        self.parked.wake();
    }
}

/// How often the acceptor looks whether the server is to end while it waits for room.
const LOOK_UP: Duration = Duration::from_millis(100);

/// How often those that block are reminded in a drain.
const DRAIN_TICK: Nanos = Nanos::from_millis(20);

fn start_acceptor<'scope, 'h: 'scope>(
    connector: &'h Connector<'_>,
    scope: &'scope Scope<'scope, '_>,
) -> io::Result<()> {
    let builder = Builder::new().stack_size(THREAD_STACK_BYTES);
    builder.spawn_scoped(scope, || connector.accept()).map(|_| ())
}

/// Gives connections to threads, and starts those.
struct Executor<'h, 's, 'scope, 'env> {
    connector: &'h Connector<'s>,
    scope: &'scope Scope<'scope, 'env>,
}

impl<'h: 'scope, 's, 'scope> Executor<'h, 's, 'scope, '_> {
    fn start_thread(&self) -> io::Result<()> {
        let connector = self.connector;
        connector.threads.fetch_add(1, Relaxed);
        let builder = Builder::new().stack_size(THREAD_STACK_BYTES);
        let started = builder.spawn_scoped(self.scope, || connector.work()).map(|_| ());
        if started.is_err() {
            connector.threads.fetch_sub(1, Relaxed);
        }
        started
    }

    /// Has a thread work on a connection: an idle one, a new one, or the first that has done.
    fn submit(&self, conn: Box<Conn<'s>>) {
        let connector = self.connector;
        let submitted = connector.submitted.fetch_add(1, Relaxed) + 1;
        match connector
            .rule
            .submit(ExecutorLoad { threads: connector.threads.load(Relaxed), submitted })
        {
            Growth::Queue => {}
            Growth::Start => {
                // Without another thread (`ulimit -u`) it waits for one of those there are.
                let _ = self.start_thread();
            }
            Growth::Reject => {
                connector.submitted.fetch_sub(1, Relaxed);
                return connector.parked.close(conn, Close::Linger);
            }
        }
        connector.show_queue(submitted);
        connector.queue.push(conn);
    }
}

/// The thread that waits for all connections that nobody works on.
struct Poller<'h, 's, 'scope, 'env> {
    executor: Executor<'h, 's, 'scope, 'env>,
    /// When what is left is cut.
    end: Nanos,
}

impl<'h: 'scope, 's, 'scope> Poller<'h, 's, 'scope, '_> {
    /// Hands over what is ready and what has waited too long, until a signal ends it and, in a drain,
    /// all connections have.
    fn serve(&mut self, signals: &Signals) -> io::Result<()> {
        let connector = self.executor.connector;
        connector.parked.epoll.add(signals, SIGNALS, EventFlags::IN)?;
        let mut ready = Vec::new();
        while clock::monotonic() < self.end && !self.is_done() {
            let tick = match self.end {
                Nanos::MAX => Nanos::MAX,
                end => end.min(clock::monotonic().saturating_add(DRAIN_TICK)),
            };
            connector.parked.wait(&mut ready, tick)?;
            for event in ready.drain(..) {
                if event.token == SIGNALS {
                    match signals.take()? {
                        Some(Stop::AtOnce) => return Ok(()),
                        Some(Stop::Drain) if self.end == Nanos::MAX => self.drain(),
                        _ => {}
                    }
                } else if let Some(conn) = connector.parked.unpark(event.token) {
                    match conn.reason() {
                        ParkReason::Lingering => connector.parked.linger(conn, clock::monotonic()),
                        _ => self.executor.submit(conn),
                    }
                }
            }
            self.expire();
            connector.let_acceptor_go_on();
            if self.end != Nanos::MAX {
                self.finish_idle();
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        let connector = self.executor.connector;
        !connector.accepts.load(Relaxed) && connector.parked.open() == 0
    }

    /// Has the acceptor take what waits, and no connection be kept alive.
    fn drain(&mut self) {
        let Connector { service, draining, tickets, .. } = self.executor.connector;
        let grace = service.shutdown_grace;
        self.end = clock::monotonic().saturating_add(grace);
        service.begin_closing();
        tickets.store(service.tickets(), Relaxed);
        draining.store(true, Relaxed);
        service.accept_without_waiting();
    }

    fn finish_idle(&self) {
        let Connector { parked, queue, acceptor, .. } = self.executor.connector;
        // Again each time: a signal that comes just before a call blocks is lost.
        acceptor.interrupt_workers();
        queue.interrupt_workers();
        if parked.idle() > 0 {
            for conn in parked.finish_idle() {
                self.executor.submit(conn);
            }
        }
    }

    /// Closes what has waited too long; what has an answer coming is a thread's.
    fn expire(&self) {
        let parked = &self.executor.connector.parked;
        let now = clock::monotonic();
        while let Some(conn) = parked.unpark_expired(now) {
            match conn.reason() {
                ParkReason::Lingering => parked.linger(conn, now),
                ParkReason::Idle => parked.close(conn, Close::Normal),
                ParkReason::Reading | ParkReason::Writing => self.executor.submit(conn),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An executor in virtual time: threads that have something to do never end it.
    struct Busy {
        rule: GrowthRule,
        load: ExecutorLoad,
    }

    impl Busy {
        fn new(threads_min: usize, threads_max: usize, queued_max: usize) -> Self {
            let rule = GrowthRule { threads_min, threads_max, queued_max };
            Self { rule, load: ExecutorLoad { threads: threads_min, submitted: 0 } }
        }

        fn submit(&mut self) -> Growth {
            self.load.submitted += 1;
            let growth = self.rule.submit(self.load);
            match growth {
                Growth::Queue => {}
                Growth::Start => self.load.threads += 1,
                Growth::Reject => self.load.submitted -= 1,
            }
            growth
        }
    }

    #[test]
    fn threads_grow_from_the_least_to_the_most_before_anything_is_queued() {
        let mut busy = Busy::new(10, 200, usize::MAX / 2);
        let grown: Vec<Growth> = (0..1000).map(|_| busy.submit()).collect();
        assert!(grown[..10].iter().all(|growth| *growth == Growth::Queue), "idle threads first");
        assert!(grown[10..200].iter().all(|growth| *growth == Growth::Start));
        assert!(grown[200..].iter().all(|growth| *growth == Growth::Queue));
        assert_eq!(busy.load.threads, 200);
    }

    #[test]
    fn what_is_past_the_queue_is_rejected() {
        let mut busy = Busy::new(1, 2, 3);
        let grown = [(); 7].map(|()| busy.submit());
        let (q, s, r) = (Growth::Queue, Growth::Start, Growth::Reject);
        assert_eq!(grown, [q, s, q, q, q, r, r]);
    }

    #[test]
    fn a_thread_that_is_idle_is_used_before_another_is_started() {
        let mut busy = Busy::new(2, 200, 100);
        assert_eq!([(); 3].map(|()| busy.submit()), [Growth::Queue, Growth::Queue, Growth::Start]);
        busy.load.submitted -= 2;
        assert_eq!([(); 2].map(|()| busy.submit()), [Growth::Queue, Growth::Queue]);
    }
}
