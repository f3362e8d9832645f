//! Worker threads and a listener in several processes: Apache's MPM event. In each child the
//! listener waits for new connections and for parked ones: kept alive, slow to take an answer, or
//! lingering. A worker waits only for the rest of a request. Start reading at [`Listener::serve`],
//! then [`work`].
//!
//! Cost of a request on a kept-alive connection: one receive, one send, a share of one epoll_wait,
//! an epoll_ctl that parks the connection, and one handoff (with a wake-up if the worker slept, see
//! `handoff`). An idle connection takes no thread, unlike in `worker`.
//!
//! Source: `listener_thread`, `connections_above_limit` and `process_socket` of
//! server/mpm/event/event.c, httpd 2.4. A new connection goes to a worker at once, which waits for
//! its whole first request. If a kept-alive connection sends a request while no worker is idle, it
//! is closed with all idle ones, so that the client can connect to another process. As in httpd, a
//! child accepts one connection at a time.
//!
//! Differences from httpd: AsyncRequestWorkerFactor is not cut to a whole number. A child accepts
//! when all of its threads have started, not the first. The listener itself drops the input of
//! lingering connections. All linger for the same time, so there is one queue of them instead of
//! two. A connection whose client takes its answer again waits for a worker at the end of the
//! queue; httpd's listener waits with it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sys::clock;
use sys::epoll::EventFlags;
use sys::listener::{self, Mode};
use sys::process;
use sys::signals::{self, Stop};
use sys::socket;
use units::Nanos;

use super::shared::child::{self, Workers};
use super::shared::handoff::{HandoffQueue, Taken};
use super::shared::parent::{self, ChildPlan};
use super::shared::parked::{self, Conn, LISTENER, ParkReason, ParkedConns, Waiter};
use super::shared::scoreboard::{Intake, Scoreboard};
use super::shared::set_mode;
use super::worker;
use super::{Decimal, Declared, Model, PreparedModel, SettingKind, SettingSpec};
use crate::ServeError;
use crate::service::Service;
use site::board::{Counter, State};
use site::exchange::{Close, Exchange};

/// The model.
pub(super) static ITEM: Model = Model {
    name: "event",
    about: "threads that work, and one that waits for all connections, in several processes \
            (Apache, MPM event)",
    settings: &SETTINGS,
    declares: Declared {
        accept_order: "all children below their limit wake, and the first one there takes one \
                       connection",
        keep_alive_holder: "the listener of a child, in its epoll set; no thread",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "MaxRequestWorkers requests in progress; AsyncRequestWorkerFactor + 1 times as many \
                      connections",
        saturation: "connections wait in the backlog while all threads work, and those that are kept \
                     alive are closed",
    },
    two_at_once: Some(&[
        "ThreadsPerChild=1",
        "MaxRequestWorkers=1",
        "ServerLimit=1",
        "AsyncRequestWorkerFactor=1",
    ]),
    prepare: |settings| {
        let plan = ChildPlan {
            places: settings.size("ServerLimit"),
            ends_one_at_a_time: true,
            ..worker::plan(settings)?
        };
        Ok(Arc::new(Event { plan, factor: settings.decimal(FACTOR) }))
    },
};

#[derive(Debug)]
struct Event {
    plan: ChildPlan,
    factor: Decimal,
}

const FACTOR: &str = "AsyncRequestWorkerFactor";

/// The settings of `worker`, and one more.
static SETTINGS: [SettingSpec; worker::SETTINGS.len() + 1] = {
    let factor = SettingSpec {
        name: FACTOR,
        kind: SettingKind::Decimal {
            default: Decimal::whole(2),
            min: Decimal::whole(1),
            max: Decimal::whole(1000),
        },
        about: "connections that a child takes for each idle thread, beyond its ThreadsPerChild",
    };
    let mut all = [factor; worker::SETTINGS.len() + 1];
    let mut at = 0;
    while at < worker::SETTINGS.len() {
        all[at] = worker::SETTINGS[at];
        at += 1;
    }
    all
};

impl PreparedModel for Event {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        let _ = socket::raise_file_limit();
        set_mode(service, Mode::NonBlocking)?;
        parent::lead(service, &self.plan, &|board, number| serve(service, board, number, self))
    }
}

/// How many connections a child takes: `connections_above_limit`.
#[derive(Debug, Clone, Copy)]
struct Limit {
    threads: usize,
    factor: Decimal,
}

/// The input of the limit.
#[derive(Debug, Clone, Copy)]
struct ChildLoad {
    /// Connections of the child that do not linger.
    connections: usize,
    /// Idle threads of the child.
    idle: usize,
    /// The child accepts no more at present. Then one more idle thread is required, so that it does
    /// not start again each time that a connection ends.
    disabled: bool,
}

impl Limit {
    fn allows(self, load: ChildLoad) -> bool {
        let counted = load.idle.saturating_sub(usize::from(load.disabled)) as u64;
        let allowed = self.threads as u64 * 1000 + counted * self.factor.thousandths;
        load.idle > 0 && (load.connections as u64 * 1000) < allowed
    }
}

/// What the threads of a child share.
struct Child<'a> {
    service: &'a Service,
    board: &'a Scoreboard,
    /// The child's number.
    number: usize,
    parked: ParkedConns<'a>,
    queue: HandoffQueue<Box<Conn<'a>>>,
    limit: Limit,
    /// Workers that have been idle once. With fewer than all, a few first clients could keep all of
    /// them busy.
    started: AtomicUsize,
    /// Guards changes of `disabled`: whether the listening socket is out of the epoll set.
    change: Mutex<()>,
    disabled: AtomicBool,
    /// The listening socket never comes back, because the child ends.
    closed: AtomicBool,
}

/// The life of a child: starts the workers, listens, and waits until they have left.
fn serve(service: &Service, board: &Scoreboard, number: usize, model: &Event) -> u8 {
    let parked = match ParkedConns::new(service) {
        Ok(parked) => parked,
        Err(error) => {
            board.note_start_error(&error);
            return child::FATAL;
        }
    };
    let threads = model.plan.workers_per_child;
    let child = &Child {
        service,
        board,
        number,
        parked,
        queue: HandoffQueue::default(),
        limit: Limit { threads, factor: model.factor },
        started: AtomicUsize::new(0),
        change: Mutex::new(()),
        disabled: AtomicBool::new(true),
        closed: AtomicBool::new(false),
    };
    let left = model.plan.connections_per_child;
    let listen = || Listener { child, left, status: None }.serve();
    let workers = Workers { board, number, queue: &child.queue };
    let status = workers.run(threads, &|worker| work(child, worker), listen);
    child.parked.cut();
    status
}

/// The life of a worker: takes a connection, works on it until it is parked, and so on.
fn work<'a>(child: &Child<'a>, worker: usize) {
    let status = |status| child.board.set(child.number, worker, status);
    let _registration = child.queue.register();
    let _slot = child.board.claim_slot(child.number, worker);
    // The listener waits between two requests and while the client takes no more. The worker waits
    // for the rest of a request, and for the first request.
    let waiter = |reason, exchange: &Exchange<'_>| match reason {
        ParkReason::Idle if exchange.requests() > 0 => Waiter::Watcher,
        ParkReason::Writing | ParkReason::Lingering => Waiter::Watcher,
        ParkReason::Idle | ParkReason::Reading => Waiter::Thread,
    };
    let Child { parked, queue, .. } = child;
    let ending = || child.board.ending().or(queue.is_ending().then_some(Stop::Drain));
    status(State::Waiting);
    queue.mark_idle();
    // The last worker to start lets the child accept: the listener sleeps and would not check
    // again.
    child.started.fetch_add(1, Relaxed);
    child.enable_below_limit(queue.idle_workers());
    while let Taken::Item(conn) = queue.take_when_idle(None) {
        status(State::Reading);
        let turned = parked::turn(child.service, conn, waiter, ending);
        // Before the client can send its next request, which would need another idle worker.
        status(State::Waiting);
        queue.mark_idle();
        parked.settle(turned);
        child.enable_below_limit(queue.idle_workers());
        if queue.is_ending() {
            // This may have been the last connection.
            parked.wake();
        }
    }
}

impl Child<'_> {
    fn load(&self, idle: usize) -> ChildLoad {
        let connections = self.parked.open().saturating_sub(self.parked.lingering());
        ChildLoad { connections, idle, disabled: self.disabled.load(Relaxed) }
    }

    /// Puts the listening socket back into the set if this many idle threads allow it.
    fn enable_below_limit(&self, idle: usize) {
        let wanted = || {
            self.disabled.load(Relaxed)
                && self.started.load(Relaxed) == self.limit.threads
                && self.limit.allows(self.load(idle))
        };
        if !wanted() {
            return;
        }
        let _changing = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        // Not EXCLUSIVE: the kernel would wake one child only, and if that one is at its limit, no
        // child would accept the connection.
        if wanted()
            && !self.closed.load(Relaxed)
            && self.parked.epoll.add(&self.service.listener, LISTENER, EventFlags::IN).is_ok()
        {
            self.disabled.store(false, Relaxed);
            self.board.set_intake(self.number, Intake::Open);
        }
    }

    /// Takes the listening socket out of the set. Other children may still accept, and the parent
    /// starts more: idle threads of this child no longer count.
    fn disable(&self) {
        let _changing = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.disabled.swap(true, Relaxed) {
            // The socket is in the set, so this does not fail.
            let _ = self.parked.epoll.remove(&self.service.listener);
            self.board.set_intake(self.number, Intake::Full);
        }
    }
}

/// How often the listener checks for the end of an ending child.
const ENDING_TICK: Nanos = Nanos::from_millis(20);

/// The thread of a child that waits for connections.
struct Listener<'h, 'a> {
    child: &'h Child<'a>,
    /// Connections that this child may still accept.
    left: u64,
    /// Set when it accepts no more: the exit status of the child.
    status: Option<u8>,
}

impl<'a> Listener<'_, 'a> {
    /// Waits for all parked connections until the child ends and its last connection has ended.
    fn serve(&mut self) -> u8 {
        process::set_name("joust listener");
        let Child { parked, queue, .. } = self.child;
        let mut ready = Vec::new();
        loop {
            self.heed_signals();
            if let Some(status) = self.status {
                if signals::asked_to_end() == Some(Stop::AtOnce) || parked.open() == 0 {
                    return status;
                }
                self.finish_idle();
            }
            self.child.enable_below_limit(queue.idle_workers());
            let most = match self.status.is_some() || signals::asked_to_end().is_some() {
                true => clock::monotonic().saturating_add(ENDING_TICK),
                false => Nanos::MAX,
            };
            if parked.wait(&mut ready, most).is_err() {
                return child::SICK;
            }
            let mut busy = false;
            for event in ready.drain(..) {
                if event.token == LISTENER {
                    busy |= self.accept_below_limit(busy);
                } else if let Some(conn) = parked.unpark(event.token) {
                    busy |= self.wake(conn);
                }
            }
            self.expire();
            if busy && queue.idle_workers() == 0 {
                self.close_idle();
            }
        }
    }

    /// Closes idle connections, as in httpd: "All workers are busy, will close %d keep-alive
    /// connections".
    fn close_idle(&self) {
        let Child { parked, queue, .. } = self.child;
        if parked.idle() == 0 {
            return;
        }
        let idle = parked.unpark_all(Some(ParkReason::Idle));
        // A worker may have become idle in the meantime. Its connection may be among these, and the
        // client most likely sends another request.
        let all_work = queue.idle_workers() == 0;
        for conn in idle {
            match all_work {
                true => self.close_kept(conn),
                false => parked.park(conn, ParkReason::Idle),
            }
        }
    }

    /// Handles an event of a parked connection. Returns whether all workers were busy.
    fn wake(&self, conn: Box<Conn<'a>>) -> bool {
        let Child { parked, queue, .. } = self.child;
        match conn.reason() {
            ParkReason::Lingering => parked.linger(conn, clock::monotonic()),
            reason => {
                if let Err(conn) = queue.push_to_idle(conn) {
                    match reason {
                        ParkReason::Idle => self.close_kept(conn),
                        // An answer that has begun waits for the next idle worker.
                        _ => queue.push(conn),
                    }
                    return true;
                }
            }
        }
        false
    }

    fn close_kept(&self, conn: Box<Conn<'a>>) {
        self.child.service.board.count(Counter::KeepAliveClosed);
        self.child.parked.close(conn, Close::Linger);
    }

    /// Handles an event of the listening socket. Returns whether all workers were busy.
    fn accept_below_limit(&mut self, busy: bool) -> bool {
        let Child { queue, limit, .. } = self.child;
        let idle = queue.idle_workers();
        if self.child.disabled.load(Relaxed) {
            return false;
        }
        if busy || !limit.allows(self.child.load(idle)) {
            self.child.disable();
            return idle == 0;
        }
        self.accept();
        false
    }

    /// Accepts one connection. Returns whether there may be more.
    fn accept(&mut self) -> bool {
        match listener::accept(&self.child.service.listener, Mode::NonBlocking) {
            Ok((socket, peer)) => self.admit(socket, peer),
            Err(error) if listener::is_exhaustion(&error) => {
                self.child.service.note_exhaustion(&error);
                self.leave(child::SICK);
            }
            // The parent has stopped listening.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                self.leave(child::DONE);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return false,
            // The connection was gone before it was accepted.
            Err(_) => {}
        }
        true
    }

    fn admit(&mut self, socket: OwnedFd, peer: SocketAddr) {
        let Child { parked, queue, .. } = self.child;
        queue.push(parked.admit(socket, peer));
        self.left -= 1;
        if self.left == 0 {
            self.leave(child::DONE);
        }
    }

    /// Accepts no more. The child ends when its last connection has ended.
    fn leave(&mut self, status: u8) {
        self.status = Some(status);
        self.child.closed.store(true, Relaxed);
        self.child.disable();
        self.child.board.set_intake(self.child.number, Intake::Ended);
    }

    /// Keeps no connection alive any longer.
    fn finish_idle(&self) {
        let Child { parked, queue, .. } = self.child;
        queue.interrupt_workers();
        if parked.idle() > 0 {
            parked.finish_idle().for_each(|conn| queue.push(conn));
        }
    }

    /// Checks the signals. In a drain, some child still accepts each connection that waited.
    fn heed_signals(&mut self) {
        let Child { queue, board, .. } = self.child;
        match signals::asked_to_end() {
            None => {}
            Some(_) if self.status.is_some() => {}
            Some(Stop::Drain) if board.is_draining() => {
                self.child.disable();
                self.finish_idle();
                while queue.idle_workers() > 0 && self.status.is_none() {
                    if !board.take_ticket() || !self.accept() {
                        self.leave(child::DONE);
                    }
                }
            }
            Some(_) => self.leave(child::DONE),
        }
    }

    /// Handles parked connections whose deadline has come.
    fn expire(&self) {
        let Child { parked, queue, .. } = self.child;
        let now = clock::monotonic();
        while let Some(conn) = parked.unpark_expired(now) {
            match conn.reason() {
                ParkReason::Lingering => parked.linger(conn, now),
                ParkReason::Idle => parked.close(conn, Close::Normal),
                ParkReason::Writing | ParkReason::Reading => queue.push(conn),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(threads: usize, thousandths: u64) -> Limit {
        Limit { threads, factor: Decimal { thousandths } }
    }

    #[test]
    fn a_child_takes_its_threads_and_factor_times_its_idle_ones() {
        let allows = |connections, idle| {
            limit(25, 2000).allows(ChildLoad { connections, idle, disabled: false })
        };
        // The manual: ThreadsPerChild + AsyncRequestWorkerFactor * idle workers.
        assert!(allows(74, 25) && !allows(75, 25));
        assert!(allows(28, 2) && !allows(29, 2));
        assert!(!allows(0, 0));
        let halves = |connections, idle| {
            limit(4, 1500).allows(ChildLoad { connections, idle, disabled: false })
        };
        assert!(halves(5, 1) && !halves(6, 1));
    }

    #[test]
    fn to_accept_again_takes_one_idle_thread_more() {
        let allows = |connections, idle| {
            limit(25, 2000).allows(ChildLoad { connections, idle, disabled: true })
        };
        assert!(allows(24, 1) && !allows(25, 1));
        assert!(allows(26, 2) && !allows(27, 2));
    }
}
