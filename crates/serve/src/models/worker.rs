//! A thread for each connection, in several processes: Apache's MPM worker. In each child one
//! thread waits in accept, and each other thread with its connection through keep-alive. Start
//! reading at [`serve`].
//!
//! Cost of a request on a kept-alive connection: as in prefork. Cost of a connection: one handoff
//! more, a lock and a wake-up. The listener accepts only while one of its own workers is idle, so
//! that no connection waits in a process while another process could take it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use sys::process;
use sys::signals::{self, Stop};

use super::shared::child::{self, Accepted, Workers};
use super::shared::handoff::{HandoffQueue, Taken};
use super::shared::parent::{self, ChildPlan};
use super::shared::scoreboard::Scoreboard;
use super::shared::socket_io::{self, CallLimit};
use super::shared::spare::SpareRule;
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec, Settings};
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
    two_at_once: Some(&["ThreadsPerChild=1", "MaxRequestWorkers=2", "ServerLimit=2"]),
    prepare: |settings| Ok(Arc::new(Worker(plan(settings)?))),
};

/// Settings of a server of processes with threads.
pub(super) static SETTINGS: [SettingSpec; 8] = [
    setting("StartServers", 3, 0, "children at the start"),
    setting("ThreadsPerChild", 25, 1, "threads of a child that serve, fixed for its life"),
    setting("ThreadLimit", 64, 1, "the most that ThreadsPerChild may be"),
    setting(
        "MaxRequestWorkers",
        400,
        1,
        "threads of all children, and so the maximum of connections",
    ),
    setting("ServerLimit", 16, 1, "maximum number of children"),
    setting(
        "MinSpareThreads",
        75,
        1,
        "minimum of idle threads; below it 1, 2, 4 ... 32 children a second start",
    ),
    setting("MaxSpareThreads", 250, 1, "maximum of idle threads; above it one child a second ends"),
    setting("MaxConnectionsPerChild", 0, 0, "connections after which a child ends; 0: any number"),
];

/// Apache's hard limit of children, and of threads.
const LIMIT_MAX: u64 = 20_000;

const fn setting(name: &'static str, default: u64, min: u64, about: &'static str) -> SettingSpec {
    let max = if default == 0 { u64::MAX } else { LIMIT_MAX };
    SettingSpec { name, kind: SettingKind::Count { default, min, max }, about }
}

#[derive(Debug)]
struct Worker(ChildPlan);

/// Makes the plan for children from [`SETTINGS`].
///
/// # Errors
/// Settings that do not work together, and the way out.
pub(super) fn plan(settings: &Settings) -> Result<ChildPlan, String> {
    let count = |name| settings.size(name);
    let (per_child, workers_max) = (count("ThreadsPerChild"), count("MaxRequestWorkers"));
    let (spare_min, spare_max) = (count("MinSpareThreads"), count("MaxSpareThreads"));
    let (thread_limit, limit) = (count("ThreadLimit"), count("ServerLimit"));
    if per_child > thread_limit {
        return Err(format!(
            "ThreadsPerChild must be at most ThreadLimit ({thread_limit}), got {per_child}: raise \
             ThreadLimit"
        ));
    }
    if workers_max < per_child || workers_max % per_child != 0 {
        return Err(format!(
            "MaxRequestWorkers must be a multiple of ThreadsPerChild ({per_child}), got \
             {workers_max}: a child always has all its threads (Apache would round down)"
        ));
    }
    if workers_max / per_child > limit {
        return Err(format!(
            "MaxRequestWorkers must be at most ServerLimit ({limit}) times ThreadsPerChild \
             ({per_child}), got {workers_max}: raise ServerLimit or ThreadsPerChild"
        ));
    }
    if spare_max < spare_min + per_child {
        return Err(format!(
            "MaxSpareThreads must be at least MinSpareThreads + ThreadsPerChild ({}), got \
             {spare_max}: otherwise the end of one child would at once start another",
            spare_min + per_child
        ));
    }
    Ok(ChildPlan {
        start: count("StartServers"),
        children_max: workers_max / per_child,
        places: workers_max / per_child,
        ends_one_at_a_time: false,
        workers_per_child: per_child,
        busy_hint: "StartServers, ThreadsPerChild or Min/MaxSpareThreads",
        rule: SpareRule::new(spare_min, spare_max),
        connections_per_child: settings.count_or_any("MaxConnectionsPerChild"),
    })
}

impl PreparedModel for Worker {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        let Self(plan) = self;
        let call_limit = CallLimit::of(service);
        parent::lead(service, plan, &|board, number| {
            let queue = HandoffQueue::default();
            serve(&Child { service, call_limit, board, number, queue: &queue }, plan)
        })
    }
}

/// What the threads of a child share.
#[derive(Clone, Copy)]
struct Child<'a> {
    service: &'a Service,
    call_limit: CallLimit,
    board: &'a Scoreboard,
    /// The child's number.
    number: usize,
    queue: &'a HandoffQueue<(OwnedFd, SocketAddr)>,
}

/// How long the listener waits for an idle worker before it checks for the end of the child.
const LOOK_UP: Duration = Duration::from_millis(100);

/// The life of a child: starts the workers, accepts for them, and waits until they have left.
fn serve(child: &Child<'_>, plan: &ChildPlan) -> u8 {
    let workers = Workers { board: child.board, number: child.number, queue: child.queue };
    let listen = || listen(child, plan.connections_per_child);
    workers.run(plan.workers_per_child, &|worker| work(child, worker), listen)
}

/// Accepts whenever a worker is idle.
fn listen(child: &Child<'_>, connections_max: u64) -> u8 {
    process::set_name("joust listener");
    let mut left = connections_max;
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

/// The life of a worker: takes a connection, serves it to its end, and so on.
fn work(child: &Child<'_>, worker: usize) {
    let doing = |state| child.board.set(child.number, worker, state);
    let ending = || child.board.ending().or(child.queue.is_ending().then_some(Stop::Drain));
    let mut spare_exchange = None;
    let _registration = child.queue.register();
    let _slot = child.board.claim_slot(child.number, worker);
    while let Taken::Item((socket, peer)) = {
        doing(State::Waiting);
        child.queue.take(None)
    } {
        doing(State::Reading);
        let exchange = socket_io::exchange_for(&mut spare_exchange, child.service, peer);
        socket_io::serve_blocking(socket, exchange, child.call_limit, &ending);
    }
}
