//! A new thread for each connection: Tomcat's BIO connector (up to 8.0), MySQL, and the first server in most books. One
//! thread waits in poll for connections. Each of the others waits with its connection through keep-alive. Start reading
//! at [`Acceptor::serve`].
//!
//! Cost of a request on a kept-alive connection: one receive and one send, both blocking. Cost of a
//! connection: poll, accept, and the start and end of a thread, some 30 us together. That is a
//! tenth of a fork, and threads share what the server has learnt (open files, prepared answers).
//! Worker is this model with threads that stay. At `maxThreads`, connections wait in the backlog
//! until a thread ends, as in BIO, whose maxConnections defaults to maxThreads.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use sys::clock;
use sys::listener::{self, Mode};
use sys::poll;
use sys::process;
use sys::signals::{self, Signals, Stop};
use units::Nanos;

use super::shared::handoff::{HandoffQueue, Taken};
use super::shared::socket_io::{self, CallLimit, EXHAUSTED_REST};
use super::shared::{begin, serving_thread, system};
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec};
use crate::ServeError;
use crate::service::{Service, closing};
use site::exchange::Exchange;

/// The model.
pub(super) static ITEM: Model = Model {
    name: "thread",
    about: "a thread for each connection, started when it comes (Tomcat's BIO)",
    settings: &[SettingSpec {
        name: THREADS_MAX,
        kind: SettingKind::Count { default: 200, min: 1, max: 20_000 },
        about: "maximum number of threads, and so of connections",
    }],
    declares: Declared {
        accept_order: "the one acceptor takes them in order of arrival",
        keep_alive_holder: "a thread, blocked in receive",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "maxThreads connections, idle ones counted",
        saturation: "connections wait in the backlog while the maximum number of threads is running",
    },
    two_at_once: Some(&["maxThreads=2"]),
    prepare: |settings| Ok(Arc::new(Thread { threads_max: settings.size(THREADS_MAX) })),
};

const THREADS_MAX: &str = "maxThreads";

/// How often the acceptor checks the signals while it waits for something else.
const TICK: Nanos = Nanos::from_millis(20);

#[derive(Debug)]
struct Thread {
    threads_max: usize,
}

impl PreparedModel for Thread {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        let signals = begin(service, Mode::NonBlocking)?;
        signals::let_interrupt().map_err(system("cannot handle signals"))?;
        let shared = Threads::new(service);
        let served = std::thread::scope(|scope| {
            let mut acceptor = Acceptor {
                shared: &shared,
                threads_max: self.threads_max,
                owes_thread: false,
                rest: Nanos::ZERO,
                tickets: None,
            };
            let served = acceptor.serve(scope, &signals);
            shared.stopping.store(true, Relaxed);
            shared.queue.close_and_wait();
            served
        });
        served.map_err(system("cannot wait for connections and signals"))
    }
}

/// What all threads share.
struct Threads<'s> {
    service: &'s Service,
    /// Hands a connection to the thread that was started for it.
    queue: HandoffQueue<(OwnedFd, SocketAddr)>,
    /// Threads that were started and have not ended.
    threads: AtomicUsize,
    /// Exchanges of ended connections, whose buffers serve others. At most maxThreads.
    spare_exchanges: Mutex<Vec<Exchange<'s>>>,
    /// What is left is cut.
    stopping: AtomicBool,
}

impl<'s> Threads<'s> {
    fn new(service: &'s Service) -> Self {
        let (queue, threads) = (HandoffQueue::default(), AtomicUsize::new(0));
        Self {
            service,
            queue,
            threads,
            spare_exchanges: Mutex::default(),
            stopping: AtomicBool::new(false),
        }
    }

    /// The life of a thread: one connection.
    fn work(&self) {
        process::set_name("joust thread");
        let _registration = self.queue.register();
        // Dropped before `_registration`, which wakes the acceptor.
        let _counted = Counted(&self.threads);
        let Taken::Item((socket, peer)) = self.queue.take(Some(Duration::ZERO)) else { return };
        let spare_exchanges =
            || self.spare_exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spare_exchange = spare_exchanges().pop();
        let exchange = socket_io::exchange_for(&mut spare_exchange, self.service, peer);
        let ending = || match self.stopping.load(Relaxed) {
            true => Some(Stop::AtOnce),
            false => self.queue.is_ending().then_some(Stop::Drain),
        };
        socket_io::serve_blocking(socket, exchange, CallLimit::of(self.service), &ending);
        spare_exchanges().extend(spare_exchange);
    }
}

/// Subtracts one when dropped.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// State of the acceptor alone.
struct Acceptor<'f, 's> {
    shared: &'f Threads<'s>,
    threads_max: usize,
    /// A connection is in the queue for which no thread could be started yet.
    owes_thread: bool,
    /// A thread, a descriptor or memory was lacking: no new attempt before this instant.
    rest: Nanos,
    /// In a drain, how many connections may still be accepted (see `Service::tickets`).
    tickets: Option<u32>,
}

impl<'f> Acceptor<'f, '_> {
    /// Starts a thread for each connection until a signal ends it. A drain goes on until all have
    /// ended.
    fn serve<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        signals: &Signals,
    ) -> io::Result<()>
    where
        'f: 'scope,
    {
        let Threads { service, queue, threads, .. } = self.shared;
        let mut end = Nanos::MAX;
        while clock::monotonic() < end {
            if self.tickets.is_some_and(|left| left > 0) && service.is_drained() {
                self.tickets = Some(0);
            }
            if self.tickets == Some(0) && !self.owes_thread {
                service.stop_listening();
                if threads.load(Relaxed) == 0 {
                    break;
                }
            }
            let may_accept = self.wait(signals)?;
            match signals.take()? {
                Some(Stop::AtOnce) => break,
                Some(Stop::Drain) if end == Nanos::MAX => {
                    end = clock::monotonic().saturating_add(service.shutdown_grace);
                    service.begin_closing();
                    self.tickets = Some(service.tickets());
                }
                _ => {}
            }
            if self.tickets.is_some() {
                queue.interrupt_workers();
            }
            if may_accept && self.tickets != Some(0) {
                self.accept();
            }
            if self.owes_thread && self.rest <= clock::monotonic() {
                self.start_thread(scope);
            }
        }
        Ok(())
    }

    /// Waits until there is something to do. Returns whether a connection may be accepted.
    fn wait(&self, signals: &Signals) -> io::Result<bool> {
        let Threads { service, queue, threads, .. } = self.shared;
        let cannot = self.owes_thread || self.rest > clock::monotonic();
        if cannot || self.tickets == Some(0) {
            poll::wait_for(&mut [PollFd::new(signals, PollFlags::IN)], Some(TICK))?;
            return Ok(false);
        }
        if !queue.wait_until(TICK.into(), || threads.load(Relaxed) < self.threads_max) {
            return Ok(false);
        }
        let listener = &service.listener;
        let mut files = [PollFd::new(signals, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        poll::wait_for(&mut files, self.tickets.map(|_| Nanos::ZERO))?;
        Ok(!files[1].revents().is_empty() || self.tickets.is_some())
    }

    fn accept(&mut self) {
        match listener::accept(&self.shared.service.listener, Mode::Blocking) {
            Ok(conn) => {
                self.shared.queue.push(conn);
                self.owes_thread = true;
            }
            Err(error) if listener::is_exhaustion(&error) => {
                self.shared.service.note_exhaustion(&error);
                return self.take_rest();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // A connection whose handshake had begun may still come.
                if self.tickets.is_some() {
                    self.rest = clock::monotonic().saturating_add(closing::LOOK);
                }
                return;
            }
            // The connection was gone before it was accepted; others may wait.
            Err(_) => {}
        }
        self.tickets = self.tickets.map(|left| left.saturating_sub(1));
    }

    fn start_thread<'scope>(&mut self, scope: &'scope Scope<'scope, '_>)
    where
        'f: 'scope,
    {
        let shared = self.shared;
        shared.threads.fetch_add(1, Relaxed);
        match serving_thread().spawn_scoped(scope, || shared.work()) {
            Ok(_) => self.owes_thread = false,
            // `ulimit -u`, the cgroup's pids.max, or memory: the connection waits in the queue.
            Err(error) => {
                shared.threads.fetch_sub(1, Relaxed);
                shared.service.note_no_start("a thread for a connection, which waits", &error);
                self.take_rest();
            }
        }
    }

    fn take_rest(&mut self) {
        self.rest = clock::monotonic().saturating_add(EXHAUSTED_REST);
    }
}
