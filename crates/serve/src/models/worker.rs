//! A thread for each connection, in several processes: Apache's MPM worker. Owns who waits (in each
//! child one thread in accept, the others with one connection each through keep-alive); must not
//! know HTTP, nor how many children there are.
//! Start reading at [`serve`].
//!
//! Cost of a request on a kept-alive connection: as in prefork. Of a connection: one handing-over
//! more, a lock and a wake-up. The listener accepts only when one of its own workers is idle, so that
//! no connection waits in a process while another process could take it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use sys::process;
use sys::signals::{self, Stop};

use super::shared::child::{self, Accepted};
use super::shared::handoff::{HandoffQueue, Taken};
use super::shared::parent::{self, ChildPlan};
use super::shared::scoreboard::{Intake, Scoreboard};
use super::shared::socket_io::{self, CallLimit};
use super::shared::spare::SpareRule;
use super::{Declared, Model, SettingKind, SettingSpec, Settings, THREAD_STACK_BYTES};
use crate::ServeError;
use crate::service::Service;
use site::board::State;

/// The model.
pub(super) static ITEM: Model = Model {
    name: "worker",
    about: "a thread for each connection, in several processes (Apache, MPM worker)",
    settings: &SETTINGS,
    declares: Declared {
        accept_order: "of the children with an idle thread, the one that waits longest in accept",
        keep_alive_holder: "a thread, blocked in receive",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "MaxRequestWorkers connections, idle ones counted",
        saturation: "connections wait in the backlog while all threads hold one",
    },
    check,
    available: super::everywhere,
    run,
};

/// Those of a server of processes with threads.
pub(super) static SETTINGS: [SettingSpec; 8] = [
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
    setting("MaxConnectionsPerChild", 0, 0, "connections after which a child ends; 0: any number"),
];

/// Apache's hard limit, of children and of threads.
const LIMIT_MAX: u64 = 20_000;

const fn setting(name: &'static str, default: u64, min: u64, about: &'static str) -> SettingSpec {
    let max = if default == 0 { u64::MAX } else { LIMIT_MAX };
    SettingSpec { name, kind: SettingKind::Count { default, min, max }, about }
}

/// What goes together, of [`SETTINGS`].
pub(super) fn check(settings: &Settings) -> Result<(), String> {
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
    let settings = &service.settings;
    let count = |name| settings.count(name) as usize;
    let call_limit = CallLimit::of(service);
    let threads = count("ThreadsPerChild");
    parent::lead(
        service,
        ChildPlan {
            name: "joust child",
            start: count("StartServers"),
            children_max: count("MaxRequestWorkers") / threads,
            places: count("MaxRequestWorkers") / threads,
            ends_one_at_a_time: false,
            workers_per_child: threads,
            busy_hint: "StartServers, ThreadsPerChild or Min/MaxSpareThreads",
            rule: SpareRule::new(count("MinSpareThreads"), count("MaxSpareThreads")),
            child: &|board, number| {
                let queue = HandoffQueue::default();
                serve(&Child { service, call_limit, board, number, queue: &queue }, threads)
            },
        },
    )
}

/// Where the threads of a child find each other.
#[derive(Clone, Copy)]
struct Child<'a> {
    service: &'a Service,
    call_limit: CallLimit,
    board: &'a Scoreboard,
    /// The child's.
    number: usize,
    queue: &'a HandoffQueue<(OwnedFd, SocketAddr)>,
}

/// How long the listener waits for an idle worker before it looks whether the child is to end.
const LOOK_UP: Duration = Duration::from_millis(100);

/// The life of a child: start the workers, accept for them, see them off.
fn serve(child: &Child<'_>, threads: usize) -> u8 {
    std::thread::scope(|scope| {
        let started = signals::hidden_from(|| {
            (0..threads).try_for_each(|worker| {
                let builder = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES);
                builder.spawn_scoped(scope, move || work(child, worker)).map(|_| ())
            })
        });
        let status = match started.and_then(|all| all) {
            Ok(()) => listen(child),
            Err(error) => {
                child.board.note_start_error(&error);
                child::FATAL
            }
        };
        // It may wait long for its last clients: the parent is not to count on it any more.
        child.board.set_intake(child.number, Intake::Ended);
        child.queue.close_and_wait();
        status
    })
}

/// Accepts whenever a worker is idle.
fn listen(child: &Child<'_>) -> u8 {
    process::set_name("joust listener");
    let quota = child.service.settings.count("MaxConnectionsPerChild");
    let mut left = if quota == 0 { u64::MAX } else { quota };
    while left > 0 {
        if !child.queue.wait_for_idle_worker(LOOK_UP) {
            match signals::asked_to_end() {
                Some(Stop::Drain) if child.board.is_draining() => child.queue.interrupt_workers(),
                Some(_) => return child::DONE,
                None => {}
            }
            continue;
        }
        match child::accept(child.service, child.board) {
            Accepted::Conn(socket, peer) => {
                left -= 1;
                child.queue.push((socket, peer));
            }
            Accepted::Nothing => {}
            Accepted::Leave(status) => return status,
        }
    }
    child::DONE
}

/// The life of a worker: take a connection, serve it to its end, again.
fn work(child: &Child<'_>, worker: usize) {
    let doing = |state| child.board.set(child.number, worker, state);
    let ending = || child.board.ending().or(child.queue.is_ending().then_some(Stop::Drain));
    let mut spare_exchange = None;
    let _registration = child.queue.register();
    let _seat = child.board.sit(child.number, worker);
    while let Taken::Item((socket, peer)) = {
        doing(State::Waiting);
        child.queue.take(None)
    } {
        doing(State::Reading);
        let exchange = socket_io::exchange_for(&mut spare_exchange, child.service, peer);
        socket_io::serve_blocking(socket, exchange, child.call_limit, &ending);
    }
}
