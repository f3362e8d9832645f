//! Several event loops in one process, one for each CPU: nginx with threads as workers, h2o, Envoy.
//! The default model. Start reading at [`Reactors`], then `shared/event_loop.rs`.
//!
//! After nginx 1.22 to 1.31 (src/event/ngx_event_accept.c, src/core/ngx_connection.c). With
//! `exclusive`, loops watch one listener with EPOLLEXCLUSIVE. The kernel wakes the loop that
//! watches it first, so each loop goes to the end after 16 accepts. With `reuseport` each loop has
//! a queue of its own, and the kernel spreads connections by a hash. Near `worker_connections` a
//! loop closes idle connections, also those that have sent nothing yet. If there are none, it
//! accepts and closes new ones.
//!
//! Differences from nginx: loops are threads, so they share the file cache. `worker_processes`
//! defaults to `auto` (nginx: 1). `worker_connections` defaults to 16384 and counts clients only
//! (nginx: 512, with listeners). A request on a connection that is about to be closed as idle is
//! still answered. M. Majkowski, "Why does one NGINX worker take all the load?" (Cloudflare 2017),
//! compares the two ways to share a port.

use std::io;
use std::sync::Arc;

use sys::affinity;
use sys::epoll::Epoll;
use sys::listener::Mode;
use sys::signals::{Signals, Stop};
use sys::socket;

use super::reactor::CONNECTIONS_MAX_DEFAULT;
use super::shared::event_loop::{Loop, Overflow, Rules};
use super::shared::loop_group::{LoopGroup, StopSources};
use super::shared::socket_io::ACCEPTS_MAX;
use super::shared::{begin, serving_thread, system};
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec};
use crate::ServeError;
use crate::service::Service;

const LOOPS: &str = "worker_processes";
const CONNECTIONS_MAX: &str = "worker_connections";
const ACCEPT: &str = "accept";
const MULTI_ACCEPT: &str = "multi_accept";
const OVERFLOW: &str = "overflow";

/// The model.
pub(super) static ITEM: Model = Model {
    name: "reactors",
    about: "several loops, one for each CPU (nginx's workers, as threads)",
    settings: &[
        SettingSpec {
            name: LOOPS,
            kind: SettingKind::CountOrAuto { min: 1, max: 1024 },
            about: "loops; auto: one for each CPU that it may run on (nginx's own default is 1)",
        },
        SettingSpec {
            name: CONNECTIONS_MAX,
            kind: SettingKind::Count { default: CONNECTIONS_MAX_DEFAULT, min: 1, max: 1_000_000 },
            about: "connections that each loop holds at once (nginx's own default is 512)",
        },
        SettingSpec {
            name: ACCEPT,
            kind: SettingKind::Word { default: "exclusive", allowed: &["exclusive", "reuseport"] },
            about: "one queue that all loops watch (EPOLLEXCLUSIVE), or one for each (SO_REUSEPORT)",
        },
        SettingSpec {
            name: MULTI_ACCEPT,
            kind: SettingKind::Switch { default: false },
            about: "whether a loop that is woken accepts all that wait, up to 100, or one connection",
        },
        SettingSpec {
            name: OVERFLOW,
            kind: SettingKind::Word { default: "close", allowed: &["close", "wait"] },
            about: "connections past worker_connections are closed at once, idle ones before them \
                    (nginx), or wait in the backlog",
        },
    ],
    declares: Declared {
        accept_order: "exclusive: the kernel wakes the loop that watches the port longest, which steps \
                       back every 16 accepts; reuseport: a hash of the addresses",
        keep_alive_holder: "the loop that accepted it",
        backlog: "exclusive: one queue of ListenBacklog connections; reuseport: one for each loop",
        concurrency: "one request a loop; worker_connections a loop and open files bound the rest",
        saturation: "overflow=close: idle connections are closed for new ones, then new ones at once; \
                     wait: they wait in the backlog",
    },
    two_at_once: Some(&["worker_processes=1", "worker_connections=2", "overflow=wait"]),
    prepare: |settings| {
        Ok(Arc::new(Reactors {
            loops: settings.size_or_auto(LOOPS),
            conns_max: settings.size(CONNECTIONS_MAX),
            has_own_queues: settings.word(ACCEPT) == "reuseport",
            round_max: if settings.switch(MULTI_ACCEPT) { ACCEPTS_MAX } else { 1 },
            overflow: match settings.word(OVERFLOW) {
                "wait" => Overflow::Wait,
                _ => Overflow::Close,
            },
        }))
    },
};

#[derive(Debug)]
struct Reactors {
    /// `None`: one for each CPU.
    loops: Option<usize>,
    /// Of each loop.
    conns_max: usize,
    /// Whether each loop has a queue of the port to itself.
    has_own_queues: bool,
    round_max: usize,
    overflow: Overflow,
}

impl Reactors {
    /// How many loops there are.
    fn loops(&self, cpus: &[u32]) -> Result<usize, ServeError> {
        match (self.loops, cpus.len()) {
            (Some(count), _) => Ok(count),
            (None, 0) => Ok(affinity::allowed()
                .map_err(system("cannot read which CPUs the process may use"))?
                .len()),
            (None, given) => Ok(given),
        }
    }
}

impl PreparedModel for Reactors {
    fn port_queues(&self, cpus: &[u32]) -> Result<usize, ServeError> {
        if self.has_own_queues { self.loops(cpus) } else { Ok(1) }
    }

    fn run(&self, service: &Service) -> Result<(), ServeError> {
        // As nginx's worker_rlimit_nofile. If the kernel refuses, fewer connections fit, and the
        // error log says so when accept fails.
        let _ = socket::raise_file_limit();
        let signals = begin(service, Mode::NonBlocking)?;
        let count = self.loops(&service.cpus)?;
        let rules = Rules {
            conns_max: self.conns_max,
            round_max: self.round_max,
            overflow: self.overflow,
            is_shared: count > 1 && service.more_listeners.is_empty(),
        };
        let group = LoopGroup::new(count)
            .map_err(system("cannot create an eventfd that wakes the loops"))?;
        // We make all loops before the first one serves: its connections could take the
        // descriptors.
        let loops = (0..count)
            .map(|number| {
                let listener = service.listeners().nth(number).unwrap_or(&service.listener);
                Ok(Worker {
                    number,
                    service,
                    group: &group,
                    it: Loop::new(service, listener, rules, None)?,
                })
            })
            .collect::<io::Result<Vec<_>>>()
            .map_err(system("cannot create the poll set of each loop"))?;
        run_loops(loops, &group, &signals)
            .map_err(system("cannot wait for events in a loop of worker_processes"))
    }
}

/// A loop that has not started.
struct Worker<'a> {
    number: usize,
    service: &'a Service,
    group: &'a LoopGroup,
    it: Loop<'a, 'a, Epoll>,
}

/// Runs all loops, the first one in the calling thread. Returns the first error.
fn run_loops<'a>(
    loops: Vec<Worker<'a>>,
    group: &LoopGroup,
    signals: &'a Signals,
) -> io::Result<()> {
    let mut loops = loops.into_iter();
    let Some(first) = loops.next() else { return Ok(()) };
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        let mut result = Ok(());
        for worker in loops {
            let builder = serving_thread().name(format!("loop {}", worker.number));
            match builder.spawn_scoped(scope, move || worker.run(None)) {
                Ok(thread) => others.push(thread),
                Err(error) => {
                    group.stop(Stop::AtOnce);
                    result = Err(error);
                    break;
                }
            }
        }
        result = result.and_then(|()| first.run(Some(signals)));
        for other in others {
            let ended = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(ended);
        }
        result
    })
}

impl<'a> Worker<'a> {
    /// Runs the loop to its end. If it fails or panics, the other loops stop too, so that the
    /// server can be restarted instead of answering only some connections.
    fn run(mut self, signals: Option<&'a Signals>) -> io::Result<()> {
        let _guard = EndsAllInPanic(self.group);
        let cpus = &self.service.cpus;
        let pinned = match cpus.get(self.number % cpus.len().max(1)) {
            Some(&cpu) => affinity::pin(&[cpu]),
            None => Ok(()),
        };
        let ended =
            pinned.and_then(|()| self.it.serve(StopSources { signals, group: Some(self.group) }));
        if ended.is_err() {
            self.group.stop(Stop::AtOnce);
        }
        ended
    }
}

/// Stops the other loops if one panics. The panic goes on when all have ended.
struct EndsAllInPanic<'a>(&'a LoopGroup);

impl Drop for EndsAllInPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(Stop::AtOnce);
        }
    }
}
