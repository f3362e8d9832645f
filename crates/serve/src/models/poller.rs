//! An acceptor, a poller and an executor: Tomcat's NIO connector. One thread accepts. One waits in
//! epoll for all connections between two turns. A thread of the executor keeps a connection while
//! it reads, answers and writes. Start reading at [`Poller::serve`], then [`Executor::submit`].
//!
//! Cost of a request on a kept-alive connection: one receive, one send, a share of one epoll_wait,
//! an epoll_ctl that parks the connection, and one handoff (with a wake-up if the thread slept, see
//! `handoff`). Unlike `pool`, it has a thread that accepts, its threads come and go, and a thread
//! blocks when a client takes no more of its answer.
//!
//! Source: Acceptor, NioEndpoint and TaskQueue of Tomcat 10 (java/org/apache/tomcat/util/net and
//! util/threads). The acceptor counts a connection before it accepts it. It stops at
//! maxConnections, and the kernel queues acceptCount more. The executor grows from minSpareThreads
//! to maxThreads before it queues, and closes connections beyond maxQueueSize. Here
//! connectionTimeout is `limits.head_timeout` and TimeOut, and keepAliveTimeout and
//! maxKeepAliveRequests are the common settings, so that models can be compared with all else
//! equal.
//!
//! Differences from Tomcat: the poller waits for the rest of a request, bodies too, so a slow
//! sender holds no thread. A closed connection lingers, as in every model.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::thread::Scope;
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
use super::shared::{begin, serving_thread, system};
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec, Settings};
use crate::ServeError;
use crate::service::{Service, closing};
use site::exchange::{Close, Exchange};

/// The model.
pub(super) static ITEM: Model = Model {
    name: "poller",
    about: "an acceptor, a poller and an executor of threads (Tomcat, connector NIO)",
    settings: &[
        count("maxThreads", 200, 1, 20_000, "maximum number of threads of the executor"),
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
        concurrency: "maxThreads requests in progress, maxConnections connections held",
        saturation: "requests wait in the executor's queue, connections past maxConnections in the \
                     backlog",
    },
    two_at_once: Some(&["maxConnections=2"]),
    prepare,
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

#[derive(Debug)]
struct NioConnector {
    rule: GrowthRule,
    connections_max: usize,
    idle_max: Duration,
}

fn prepare(settings: &Settings) -> Result<Arc<dyn PreparedModel>, String> {
    let (spare, max) = (settings.size("minSpareThreads"), settings.size("maxThreads"));
    if spare > max {
        return Err(format!(
            "minSpareThreads must be at most maxThreads ({max}), got {spare}: lower minSpareThreads \
             (Tomcat would start only {max})"
        ));
    }
    Ok(Arc::new(NioConnector {
        rule: GrowthRule {
            threads_min: spare,
            threads_max: max,
            queued_max: settings.size("maxQueueSize"),
        },
        connections_max: settings.size("maxConnections"),
        idle_max: settings.time("threadsMaxIdleTime").into(),
    }))
}

impl PreparedModel for NioConnector {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        let _ = socket::raise_file_limit();
        let signals = begin(service, Mode::Blocking)?;
        signals::let_interrupt().map_err(system("cannot handle signals"))?;
        let connector =
            Connector::new(service, self).map_err(system("cannot create the epoll set"))?;
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
}

/// When the executor starts a thread: TaskQueue.offer as a pure function of counts.
#[derive(Debug, Clone, Copy)]
struct GrowthRule {
    threads_min: usize,
    threads_max: usize,
    queued_max: usize,
}

/// The input of the rule.
#[derive(Debug, Clone, Copy)]
struct ExecutorLoad {
    /// Threads of the executor.
    threads: usize,
    /// Connections that they work on or that are queued, with the new one.
    submitted: usize,
}

/// What happens to a submitted connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// It is queued, because a thread is idle or no more may be started.
    Queue,
    /// A thread is started for it.
    Start,
    /// It is closed, because the queue is full.
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
    /// Never used to hand over: the acceptor registers here, so that it can be interrupted and
    /// awaited.
    acceptor: HandoffQueue<()>,
    rule: GrowthRule,
    connections_max: usize,
    idle_max: Duration,
    /// Threads of the executor, and connections that were submitted and are not done.
    threads: AtomicUsize,
    submitted: AtomicUsize,
    /// Whether a drain has begun, and how many connections it may still accept (see
    /// `Service::tickets`).
    draining: AtomicBool,
    tickets: AtomicU32,
    /// The acceptor waits for room.
    acceptor_waits: AtomicBool,
    /// The acceptor may still accept.
    accepts: AtomicBool,
    /// What is left is cut.
    stopping: AtomicBool,
}

impl<'s> Connector<'s> {
    fn new(service: &'s Service, plan: &NioConnector) -> io::Result<Self> {
        let NioConnector { rule, connections_max, idle_max } = *plan;
        Ok(Self {
            service,
            parked: ParkedConns::new(service)?,
            queue: HandoffQueue::default(),
            acceptor: HandoffQueue::default(),
            rule,
            connections_max,
            idle_max,
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

    /// The life of an executor thread: takes a connection, works on it until it is parked, and so
    /// on.
    fn work(&self) {
        process::set_name("joust exec");
        let _registration = self.queue.register();
        // The poller waits for input, the thread for room in the send buffer.
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
                        // This may have been the last connection.
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

    /// Whether an idle thread is to leave. If so, it is no longer counted.
    fn leaves(&self) -> bool {
        let min = self.rule.threads_min;
        let fewer = |threads: usize| (threads > min).then(|| threads - 1);
        self.threads.fetch_update(Relaxed, Relaxed, fewer).is_ok()
    }

    /// Submitted connections beyond the number of threads wait.
    fn show_queue(&self, submitted: usize) {
        self.service.board.queue(submitted.saturating_sub(self.threads.load(Relaxed)));
    }

    fn has_room(&self) -> bool {
        self.parked.open() < self.connections_max
    }

    /// Waits for room, for a limited time. Returns whether there is room.
    fn wait_for_room(&self) -> bool {
        self.acceptor_waits.store(true, Relaxed);
        let has_room = self.acceptor.wait_until(LOOK_UP, || self.has_room());
        self.acceptor_waits.store(false, Relaxed);
        has_room
    }

    /// Wakes the acceptor if it waits for room and there is some.
    fn let_acceptor_go_on(&self) {
        if self.acceptor_waits.load(Relaxed) && self.has_room() {
            self.acceptor.wake_waiters();
        }
    }

    /// The life of the acceptor: waits for room, accepts, parks the connection.
    fn accept(&self) {
        process::set_name("joust acceptor");
        let _registration = self.acceptor.register();
        while !self.stopping.load(Relaxed) {
            // Asked before accepting: a connection that is accepted while the drain begins may not
            // be counted in it.
            let needs_ticket = self.draining.load(Relaxed);
            let is_last = || self.tickets.load(Relaxed) == 0 || self.service.is_drained();
            if needs_ticket && is_last() {
                break;
            }
            // Tomcat's latch: a connection is counted before it is accepted.
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
                // The listener's timeout. In a drain accept does not wait, so it may also mean that
                // none is left.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // A connection whose handshake had begun may still come.
                    if self.draining.load(Relaxed) {
                        std::thread::sleep(closing::LOOK.into());
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // The connection was gone before it was accepted; others may wait.
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

/// How often the acceptor checks for the end of the server while it waits for room.
const LOOK_UP: Duration = Duration::from_millis(100);

/// How often blocked threads are interrupted in a drain.
const DRAIN_TICK: Nanos = Nanos::from_millis(20);

fn start_acceptor<'scope, 'h: 'scope>(
    connector: &'h Connector<'_>,
    scope: &'scope Scope<'scope, '_>,
) -> io::Result<()> {
    serving_thread().spawn_scoped(scope, || connector.accept()).map(|_| ())
}

/// Gives connections to threads, and starts threads.
struct Executor<'h, 's, 'scope, 'env> {
    connector: &'h Connector<'s>,
    scope: &'scope Scope<'scope, 'env>,
}

impl<'h: 'scope, 's, 'scope> Executor<'h, 's, 'scope, '_> {
    fn start_thread(&self) -> io::Result<()> {
        let connector = self.connector;
        connector.threads.fetch_add(1, Relaxed);
        let started = serving_thread().spawn_scoped(self.scope, || connector.work()).map(|_| ());
        if started.is_err() {
            connector.threads.fetch_sub(1, Relaxed);
        }
        started
    }

    /// Gives a connection to an idle thread, to a new one, or to the first that becomes idle.
    fn submit(&self, conn: Box<Conn<'s>>) {
        let connector = self.connector;
        let submitted = connector.submitted.fetch_add(1, Relaxed) + 1;
        match connector
            .rule
            .submit(ExecutorLoad { threads: connector.threads.load(Relaxed), submitted })
        {
            Growth::Queue => {}
            Growth::Start => {
                // If no thread can start (`ulimit -u`), the connection waits for an existing one.
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

/// The thread that waits for all parked connections.
struct Poller<'h, 's, 'scope, 'env> {
    executor: Executor<'h, 's, 'scope, 'env>,
    /// When what is left is cut.
    end: Nanos,
}

impl<'h: 'scope, 's, 'scope> Poller<'h, 's, 'scope, '_> {
    /// Handles events and deadlines until a signal ends it. A drain goes on until all connections
    /// have ended.
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

    /// Begins a drain: the acceptor accepts what waits, and no connection is kept alive.
    fn drain(&mut self) {
        let Connector { service, draining, tickets, .. } = self.executor.connector;
        self.end = clock::monotonic().saturating_add(service.shutdown_grace);
        service.begin_closing();
        tickets.store(service.tickets(), Relaxed);
        draining.store(true, Relaxed);
        service.accept_without_waiting();
    }

    fn finish_idle(&self) {
        let Connector { parked, queue, acceptor, .. } = self.executor.connector;
        // Each time: a signal just before a blocking call has no effect.
        acceptor.interrupt_workers();
        queue.interrupt_workers();
        if parked.idle() > 0 {
            for conn in parked.finish_idle() {
                self.executor.submit(conn);
            }
        }
    }

    /// Handles parked connections whose deadline has come. If an answer is due, a thread sends it.
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

    /// An executor in virtual time whose threads never finish their work.
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
