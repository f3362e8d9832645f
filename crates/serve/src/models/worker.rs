//! A thread for each connection, in several processes: Apache's MPM worker. Owns who waits (in each
//! child one thread in accept, the others with one connection each through keep-alive); must not
//! know HTTP, nor how many children there are.
//! Start reading at [`serve`].
//!
//! Cost of a request on a kept-alive connection: as in prefork. Of a connection: one handing-over
//! more, a lock and a wake-up. The listener accepts only when one of its own workers is idle, so that
//! no connection waits in a process while another process could take it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sys::process;
use sys::signals::{self, Stop, ThreadId};

use super::child::{self, Accepted};
use super::drive::{self, Patience};
use super::parent::{self, Herd};
use super::scoreboard::{Scoreboard, Status};
use super::spare::SpareRule;
use super::{Declared, Kind, Model, SettingSpec, Settings, THREAD_STACK_BYTES};
use crate::ServeError;
use crate::service::Service;

/// The model.
pub(super) static ITEM: Model = Model {
    name: "worker",
    about: "a thread for each connection, in several processes (Apache, MPM worker)",
    settings: &[
        setting("StartServers", 3, 0, "children at the start"),
        setting("ThreadsPerChild", 25, 1, "threads of a child that serve, fixed for its life"),
        setting("ThreadLimit", 64, 1, "the most that ThreadsPerChild may be"),
        setting("MaxRequestWorkers", 400, 1, "threads of all children, and so connections at once"),
        setting("ServerLimit", 16, 1, "children at most"),
        setting(
            "MinSpareThreads",
            75,
            1,
            "fewer idle threads, and 1, 2, 4 ... 32 children a second start",
        ),
        setting("MaxSpareThreads", 250, 1, "more idle threads, and one child a second ends"),
        setting(
            "MaxConnectionsPerChild",
            0,
            0,
            "connections after which a child ends; 0: any number",
        ),
    ],
    declares: Declared {
        accept_order: "of the children with an idle thread, the one that waits longest in accept",
        keep_alive_holder: "a thread, blocked in receive",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "MaxRequestWorkers connections, idle ones counted",
        saturation: "connections wait in the backlog while all threads hold one",
    },
    check,
    run,
};

/// Apache's hard limit, of children and of threads.
const LIMIT_MAX: u64 = 20_000;

const fn setting(name: &'static str, default: u64, min: u64, about: &'static str) -> SettingSpec {
    let max = if default == 0 { u64::MAX } else { LIMIT_MAX };
    SettingSpec { name, kind: Kind::Count { default, min, max }, about }
}

fn check(settings: &Settings) -> Result<(), String> {
    let count = |name| settings.count(name);
    let (per_child, workers_max) = (count("ThreadsPerChild"), count("MaxRequestWorkers"));
    let (spare_min, spare_max) = (count("MinSpareThreads"), count("MaxSpareThreads"));
    let (thread_limit, limit) = (count("ThreadLimit"), count("ServerLimit"));
    if per_child > thread_limit {
        return Err(format!(
            "ThreadsPerChild {per_child} is above ThreadLimit {thread_limit}: raise ThreadLimit"
        ));
    }
    if workers_max < per_child || workers_max % per_child != 0 {
        return Err(format!(
            "MaxRequestWorkers {workers_max} is no multiple of ThreadsPerChild {per_child}: a child \
             has all its threads or is not there (Apache would round down)"
        ));
    }
    if workers_max / per_child > limit {
        return Err(format!(
            "MaxRequestWorkers {workers_max} needs {} children of {per_child} threads, and \
             ServerLimit is {limit}: raise ServerLimit or ThreadsPerChild",
            workers_max / per_child
        ));
    }
    if spare_max < spare_min + per_child {
        return Err(format!(
            "MaxSpareThreads {spare_max} is below MinSpareThreads + ThreadsPerChild: ending one \
             child would at once start another; set it to {} or more, as Apache itself would",
            spare_min + per_child
        ));
    }
    Ok(())
}

fn run(service: &Service) -> Result<(), ServeError> {
    let settings = &service.config.settings;
    let count = |name| settings.count(name) as usize;
    let patience = Patience::of(service);
    let threads = count("ThreadsPerChild");
    parent::lead(
        service,
        Herd {
            name: "joust child",
            start: count("StartServers"),
            children_max: count("MaxRequestWorkers") / threads,
            workers_per_child: threads,
            rule: SpareRule::new(count("MinSpareThreads"), count("MaxSpareThreads")),
            child: &|board, number| {
                let desk = Desk::default();
                serve(&Place { service, patience, board, number, desk: &desk }, threads)
            },
        },
    )
}

/// Where the threads of a child find each other.
#[derive(Clone, Copy)]
struct Place<'a> {
    service: &'a Service,
    patience: Patience,
    board: &'a Scoreboard,
    /// The child's.
    number: usize,
    desk: &'a Desk,
}

/// Hands connections from the listener to idle workers.
#[derive(Default)]
struct Desk {
    inner: Mutex<Inner>,
    /// A connection was put down, or the desk was closed.
    work: Condvar,
    /// A worker became idle, or left.
    idler: Condvar,
    /// The child ends: connections are finished, none is kept alive.
    ending: AtomicBool,
}

#[derive(Default)]
struct Inner {
    /// At most as many as there are idle workers.
    conns: VecDeque<(OwnedFd, SocketAddr)>,
    /// Workers that wait for one.
    idle: usize,
    /// Workers that have not left.
    threads: Vec<ThreadId>,
    closed: bool,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A worker that panicked holds no connection of another's and leaves the counts whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the listener waits for an idle worker before it looks whether the child is to end.
const LOOK_UP: Duration = Duration::from_millis(100);

/// How long workers that were interrupted have until they are again.
const HURRY: Duration = Duration::from_millis(20);

/// The life of a child: start the workers, accept for them, see them off.
fn serve(place: &Place<'_>, threads: usize) -> u8 {
    std::thread::scope(|scope| {
        let started = signals::hidden_from(|| {
            (0..threads).try_for_each(|worker| {
                let builder = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES);
                builder.spawn_scoped(scope, move || work(place, worker)).map(|_| ())
            })
        });
        let status = match started.and_then(|all| all) {
            Ok(()) => listen(place),
            Err(error) => {
                place.board.note_start_error(&error);
                child::FATAL
            }
        };
        see_off(place.desk);
        status
    })
}

/// Accepts whenever a worker is idle.
fn listen(place: &Place<'_>) -> u8 {
    process::set_name("joust listener");
    let quota = place.service.config.settings.count("MaxConnectionsPerChild");
    let mut left = if quota == 0 { u64::MAX } else { quota };
    while left > 0 {
        if !wait_for_idler(place.desk) {
            match signals::asked_to_end() {
                Some(Stop::Drain) if place.board.is_draining() => {
                    hurry(place.desk, &place.desk.lock());
                }
                Some(_) => return child::DONE,
                None => {}
            }
            continue;
        }
        match child::accept(place.service, place.board) {
            Accepted::Conn(socket, peer) => {
                left -= 1;
                place.desk.lock().conns.push_back((socket, peer));
                place.desk.work.notify_one();
            }
            Accepted::Nothing => {}
            Accepted::Leave(status) => return status,
        }
    }
    child::DONE
}

/// Returns whether a worker is idle and has nothing coming, after a while at most.
fn wait_for_idler(desk: &Desk) -> bool {
    let none_idle = |inner: &mut Inner| inner.idle <= inner.conns.len();
    let waited = desk.idler.wait_timeout_while(desk.lock(), LOOK_UP, none_idle);
    let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
    !none_idle(&mut inner)
}

/// The life of a worker: take a connection, serve it to its end, again.
fn work(place: &Place<'_>, worker: usize) {
    let status = |status| place.board.set(place.number, worker, status);
    let ending = || {
        let closing = place.desk.ending.load(Relaxed).then_some(Stop::Drain);
        signals::asked_to_end().or(closing)
    };
    let mut seat = None;
    let _present = Present::sign_in(place, worker);
    while let Some((socket, peer)) = {
        status(Status::Ready);
        take(place.desk)
    } {
        status(Status::Busy);
        let exchange = drive::seat(&mut seat, place.service, peer);
        drive::serve_blocking(socket, exchange, place.patience, &ending);
    }
}

/// A worker that has not left; leaves when dropped, in a panic too, so that nobody waits for it.
struct Present<'a> {
    place: &'a Place<'a>,
    worker: usize,
    thread: ThreadId,
}

impl<'a> Present<'a> {
    fn sign_in(place: &'a Place<'a>, worker: usize) -> Self {
        let thread = signals::this_thread();
        place.desk.lock().threads.push(thread);
        Self { place, worker, thread }
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.place.board.set(self.place.number, self.worker, Status::Leaving);
        self.place.desk.lock().threads.retain(|thread| *thread != self.thread);
        self.place.desk.idler.notify_all();
    }
}

fn take(desk: &Desk) -> Option<(OwnedFd, SocketAddr)> {
    let mut inner = desk.lock();
    inner.idle += 1;
    desk.idler.notify_one();
    let nothing = |inner: &mut Inner| inner.conns.is_empty() && !inner.closed;
    inner = desk.work.wait_while(inner, nothing).unwrap_or_else(PoisonError::into_inner);
    inner.idle -= 1;
    inner.conns.pop_front()
}

/// Closes the desk and waits until every worker has finished its connection.
fn see_off(desk: &Desk) {
    let mut inner = desk.lock();
    inner.closed = true;
    desk.work.notify_all();
    while !inner.threads.is_empty() {
        hurry(desk, &inner);
        let waited = desk.idler.wait_timeout(inner, HURRY);
        (inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
    }
}

/// Has the workers keep no connection alive. Those that wait for a next request are interrupted; to
/// be called again until they heed it, for a signal that comes before the call is lost.
fn hurry(desk: &Desk, inner: &Inner) {
    desk.ending.store(true, Relaxed);
    for thread in &inner.threads {
        signals::interrupt(*thread);
    }
}
