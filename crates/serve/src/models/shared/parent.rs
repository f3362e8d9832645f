//! The parent process of `prefork`, `worker` and `event`: starts children, keeps the number of
//! spare workers within bounds, and ends all children. It serves nothing itself. Start reading at
//! [`lead`].
//!
//! The loop is Apache's `ap_wait_or_timeout`: reap one dead child and look again, or sleep one
//! second and do the maintenance. So a dead child is not replaced at once, and maintenance comes at
//! most once a second. One difference: the parent chooses the child to end (the last idle one, as
//! in Apache 1.3) and wakes it by SIGTERM. Apache writes to the "pipe of death" and connects to
//! itself, which its access log would show.

use std::io;

use sys::clock;
use sys::process::{self, Ended, Pid, Signal};
use sys::signals::{self, Signals, Stop};
use units::Nanos;

use super::child::{FATAL, SICK};
use super::scoreboard::{Intake, Scoreboard};
use super::spare::{Maintain, SpareCounts, SpareRule};
use super::{system, take_signals};
use crate::ServeError;
use crate::service::Service;
use site::board::{Counter, State};
use site::gateway;
use site::log::Level;

/// How often the parent checks its children in a drain, and signals them again.
pub(crate) const ENDING_TICK: Nanos = Nanos::from_millis(20);

/// The same when the server stops at once. A child needs some 100 us.
const STOP_TICK: Nanos = Nanos::from_millis(2);

/// From this spawn rate on the error log says that the server is busy (`idle_spawn_rate >= 8`).
const BUSY_RATE: usize = 8;

/// How long children may take to stop at once before they are killed.
const STOP_GRACE: Nanos = Nanos::from_secs(1);

/// How many children a model has, and of what kind.
#[derive(Debug, Clone)]
pub(crate) struct ChildPlan {
    /// Children at the start (StartServers).
    pub(crate) start: usize,
    /// The most children, without those that are about to end.
    pub(crate) children_max: usize,
    /// The most children, with those that are about to end but still have connections.
    pub(crate) places: usize,
    /// While a child ends, end another only if there is room for a full set beside all that exist.
    /// For `event`, whose children may take long to end.
    pub(crate) ends_one_at_a_time: bool,
    /// Workers of each child.
    pub(crate) workers_per_child: usize,
    /// Settings to raise if load grows faster than children start.
    pub(crate) busy_hint: &'static str,
    /// How many idle workers are kept.
    pub(crate) rule: SpareRule,
    /// Connections after which a child ends.
    pub(crate) connections_per_child: u64,
}

/// Leads the children until a signal ends the server. When it returns, no child is left. `child` is
/// the life of a child with this number; its exit status is one of those in `child`.
///
/// # Errors
/// Why the first children could not start. A later failure to start one only leaves fewer of them.
pub(crate) fn lead(
    service: &Service,
    plan: &ChildPlan,
    child: &dyn Fn(&Scoreboard, usize) -> u8,
) -> Result<(), ServeError> {
    let signals = take_signals()?;
    let plan = plan.clone().after(service.workers_before);
    let board = Scoreboard::new(&service.board, plan.places, plan.workers_per_child)
        .map_err(system("cannot map the scoreboard of the children"))?;
    let children = (0..plan.places).map(|_| None).collect();
    let mut parent = Parent {
        service,
        plan,
        child,
        board,
        children,
        limit_reported: false,
        places_reported: false,
        has_served: false,
    };
    let led = parent.start().and_then(|()| parent.watch(&signals));
    // After an error too: otherwise the kernel would kill the children (PDEATHSIG) and nobody would
    // reap them.
    let ended = match led {
        Ok(Stop::Drain) => parent.drain(&signals),
        Ok(Stop::AtOnce) | Err(_) => stop(&mut parent),
    };
    led.and(ended.map_err(system("cannot wait for the children to end")))
}

impl ChildPlan {
    /// After a reload, starts as many children as the server had, because the load is still there.
    /// Apache's graceful restart begins with StartServers, and clients wait while it grows.
    fn after(mut self, workers_before: usize) -> Self {
        if workers_before > 0 {
            self.start = self.start.max(workers_before.div_ceil(self.workers_per_child));
            self.rule.hold_off();
        }
        self
    }
}

struct Parent<'a> {
    service: &'a Service,
    plan: ChildPlan,
    child: &'a dyn Fn(&Scoreboard, usize) -> u8,
    board: Scoreboard,
    /// By number, as on the scoreboard.
    children: Vec<Option<Child>>,
    /// Whether the error log says that the limit is reached.
    limit_reported: bool,
    /// Whether the error log says that ending children take all places.
    places_reported: bool,
    /// A child has started and waited for connections, so the settings work.
    has_served: bool,
}

/// A process that ends its children before itself.
pub(crate) trait Family {
    /// Children that were not reaped yet.
    fn children(&self) -> impl Iterator<Item = Pid>;
    /// Removes a child that has ended.
    fn reaped(&mut self, pid: Pid, ended: Ended);
}

/// Makes every child cut its connections, write its log and end. Kills those that do not end in
/// time, and waits until all are reaped.
pub(crate) fn stop<F: Family>(family: &mut F) -> io::Result<()> {
    let signal_all = |family: &F, signal| {
        family.children().for_each(|pid| _ = process::signal(pid, signal));
    };
    let end = clock::monotonic().saturating_add(STOP_GRACE);
    while family.children().next().is_some() && clock::monotonic() < end {
        signal_all(family, Signal::INT);
        std::thread::sleep(STOP_TICK.into());
        while let Some((pid, ended)) = process::reap()? {
            family.reaped(pid, ended);
        }
    }
    signal_all(family, Signal::KILL);
    while family.children().next().is_some() {
        let (pid, ended) = process::reap_waiting()?;
        family.reaped(pid, ended);
    }
    Ok(())
}

struct Child {
    pid: Pid,
    /// It was asked to end. The signal is repeated until it has.
    leaving: bool,
}

impl Parent<'_> {
    fn start(&mut self) -> Result<(), ServeError> {
        for number in 0..self.plan.start.min(self.plan.children_max) {
            self.fork(number).map_err(system(
                "cannot start a child process (`ulimit -u` and the cgroup's pids.max bound them)",
            ))?;
        }
        Ok(())
    }

    fn fork(&mut self, number: usize) -> io::Result<()> {
        // Otherwise both processes would write what this one has buffered.
        self.service.log.flush();
        self.board.set_all(number, State::Starting);
        self.board.set_intake(number, Intake::Open);
        let (board, run) = (&self.board, self.child);
        let forked = process::fork(&format!("joust child {number}"), || {
            if let Some(faults) = &self.service.faults {
                faults.enter_child();
            }
            let status = match signals::in_child() {
                Ok(()) => run(board, number),
                Err(error) => {
                    board.note_start_error(&error);
                    FATAL
                }
            };
            gateway::wind_up();
            self.service.log.flush();
            status
        });
        match forked {
            Ok(pid) => {
                self.children[number] = Some(Child { pid, leaving: false });
                self.service.board.count(Counter::ProcessesSpawned);
            }
            Err(_) => self.board.set_all(number, State::Free),
        }
        self.note_workers();
        forked.map(|_| ())
    }

    /// Reaps and maintains until a signal comes.
    fn watch(&mut self, signals: &Signals) -> Result<Stop, ServeError> {
        let broken = "cannot wait for children and signals";
        loop {
            if let Some((pid, ended)) = process::reap().map_err(system(broken))? {
                self.reaped(pid, ended)?;
                match signals.take().map_err(system(broken))? {
                    Some(stop) => return Ok(stop),
                    None => continue,
                }
            }
            if let Some(stop) = signals.wait(Nanos::from_secs(1)).map_err(system(broken))? {
                return Ok(stop);
            }
            self.service.keep_logs_up();
            self.remind();
            self.maintain();
            self.note_workers();
        }
    }

    /// Tells the generation that follows on a reload how many workers there are.
    fn note_workers(&self) {
        self.service.handover.set_workers(self.staying().count() * self.plan.workers_per_child);
    }

    /// Removes a dead child. The spare rule decides later whether another is started.
    fn reaped(&mut self, pid: Pid, ended: Ended) -> Result<(), ServeError> {
        let is_it = |child: &Option<Child>| child.as_ref().is_some_and(|child| child.pid == pid);
        let Some(number) = self.children.iter().position(is_it) else { return Ok(()) };
        self.has_served |= self.board.has_started(number);
        self.children[number] = None;
        self.service.board.count(Counter::ProcessesReaped);
        self.service.board.reaped(pid);
        self.board.set_all(number, State::Free);
        match ended {
            Ended::Exited(FATAL) if !self.has_served => {
                Err(system("a child process cannot start")(self.board.start_error()))
            }
            Ended::Exited(SICK | FATAL) => {
                self.plan.rule.child_was_sick();
                Ok(())
            }
            Ended::Killed(signal) => {
                // ap_process_child_status, AH00052.
                let pid = pid.as_raw_nonzero();
                let said = format_args!("child pid {pid} exit signal {signal}");
                self.service.errors.note(Level::Notice, said);
                Ok(())
            }
            Ended::Exited(_) => Ok(()),
        }
    }

    fn maintain(&mut self) {
        let free = self.children.iter().filter(|child| child.is_none()).count();
        let staying = self.staying().count();
        let room = free.min(self.plan.children_max.saturating_sub(staying));
        let is_none_leaving = free + staying == self.children.len();
        let idle = self.staying().map(|number| self.board.idle(number)).sum();
        let rate = self.plan.rule.spawn_rate();
        match self.plan.rule.maintain(SpareCounts { idle, room }) {
            Maintain::Nothing => {}
            // `do_kill` in perform_idle_server_maintenance of event.c.
            Maintain::ReapOne
                if self.plan.ends_one_at_a_time
                    && !is_none_leaving
                    && free <= self.plan.children_max => {}
            Maintain::ReapOne => self.reap_one(),
            Maintain::Spawn(n) => {
                self.report_shortage(rate, idle, room);
                for _ in 0..n {
                    let Some(number) = self.children.iter().position(Option::is_none) else {
                        break;
                    };
                    if let Err(error) = self.fork(number) {
                        self.service.note_no_start("a child process", &error);
                        self.plan.rule.child_was_sick();
                        break;
                    }
                }
            }
        }
    }

    /// Notes a shortage, mostly in Apache's words: once that the limit is reached, each time that
    /// load grows fast.
    fn report_shortage(&mut self, rate: usize, idle: usize, room: usize) {
        let errors = &self.service.errors;
        let leaving = self.children.iter().flatten().count() - self.staying().count();
        if room == 0 && self.staying().count() < self.plan.children_max {
            // AH03490: "scoreboard is full, not at MaxRequestWorkers".
            if !std::mem::replace(&mut self.places_reported, true) {
                errors.note(
                    Level::Error,
                    format_args!(
                        "cannot start another child: {leaving} ending children still have connections; \
                         raise ServerLimit, or ServerLimit and MaxRequestWorkers"
                    ),
                );
            }
        } else if room == 0 && !std::mem::replace(&mut self.limit_reported, true) {
            let threads = self.plan.workers_per_child > 1 && idle > 0;
            let what = if threads { "is within MinSpareThreads of" } else { "reached" };
            let setting = if threads { "" } else { " setting" };
            errors.note(
                Level::Error,
                format_args!(
                    "server {what} MaxRequestWorkers{setting}, consider raising the \
                     MaxRequestWorkers setting"
                ),
            );
        } else if room > 0 && rate >= BUSY_RATE {
            let (hint, children) = (self.plan.busy_hint, self.children.iter().flatten().count());
            errors.note(
                Level::Info,
                format_args!(
                    "server seems busy, (you may need to increase {hint}), spawning {} children, \
                     there are {idle} idle, and {children} total children",
                    rate.min(room)
                ),
            );
        }
    }

    /// Numbers of the children that do not end, asked or by themselves.
    fn staying(&self) -> impl Iterator<Item = usize> {
        let stays = |child: &Option<Child>| child.as_ref().is_some_and(|child| !child.leaving);
        (0..self.board.children_max()).filter(move |&number| {
            stays(&self.children[number]) && !self.board.has_intake_ended(number)
        })
    }

    /// Asks the child with the most idle workers to end; among equals, the last.
    fn reap_one(&mut self) {
        let chosen = self.staying().max_by_key(|&number| self.board.idle(number));
        if let Some(child) = chosen.and_then(|number| self.children[number].as_mut()) {
            child.leaving = true;
            process::signal(child.pid, Signal::TERM);
        }
    }

    /// Repeats signals: one that comes just before a blocking call has no effect.
    fn remind(&self) {
        for child in self.children.iter().flatten().filter(|child| child.leaving) {
            process::signal(child.pid, Signal::TERM);
        }
    }

    /// Lets the children answer the requests that are in progress and the connections in the
    /// backlog. Kills whatever is left after GracefulShutdownTimeout.
    fn drain(&mut self, signals: &Signals) -> io::Result<()> {
        let end = clock::monotonic().saturating_add(self.service.shutdown_grace);
        self.service.begin_closing();
        self.board.drain(self.service.tickets());
        self.service.accept_without_waiting();
        let (mut listening, mut was_taken) = (true, false);
        while listening || self.has_children() {
            // Each time: a signal just before a blocking call has no effect.
            self.signal_all(Signal::TERM);
            let is_drained = listening && self.service.is_drained();
            // A child takes a ticket before it accepts. So whoever took the last ticket gets one
            // tick to use it, and a child that accepts from a port that goes on gets one tick to
            // leave.
            let is_taken = is_drained || self.board.tickets() == 0;
            let may_stop = was_taken || (is_drained && !self.service.is_handed_over());
            if listening && is_taken && may_stop {
                listening = false;
                self.service.stop_listening();
            }
            was_taken = is_taken;
            if listening && !is_taken {
                self.fork_for_who_waits();
            }
            let stop = signals.wait(ENDING_TICK)?;
            self.reap_all()?;
            if stop == Some(Stop::AtOnce) || clock::monotonic() >= end {
                break;
            }
        }
        if listening {
            self.service.stop_listening();
        }
        stop(self)
    }

    /// In a drain: starts a child if connections wait and no child would accept them. A signal to
    /// the whole process group (systemd's KillMode=control-group) may have ended the children
    /// before the drain began. A child that found nothing to accept leaves, and a connection may
    /// come after it.
    fn fork_for_who_waits(&mut self) {
        let children = self.children.iter().flatten().count();
        let idle: usize = self.staying().map(|number| self.board.idle(number)).sum();
        let room = children < self.plan.children_max.max(1) && idle == 0;
        if room
            && self.service.waiting() > 0
            && let Some(number) = self.children.iter().position(Option::is_none)
        {
            // The failure may be temporary: we try again until the drain is over.
            let _ = self.fork(number);
        }
    }

    fn has_children(&self) -> bool {
        self.children.iter().any(Option::is_some)
    }

    fn reap_all(&mut self) -> io::Result<()> {
        while let Some((pid, ended)) = process::reap()? {
            // The server ends anyway, so it does not matter why a child did.
            let _ = self.reaped(pid, ended);
        }
        Ok(())
    }

    fn signal_all(&self, signal: Signal) {
        for child in self.children.iter().flatten() {
            process::signal(child.pid, signal);
        }
    }
}

impl Family for Parent<'_> {
    fn children(&self) -> impl Iterator<Item = Pid> {
        self.children.iter().flatten().map(|child| child.pid)
    }

    fn reaped(&mut self, pid: Pid, ended: Ended) {
        // The server ends anyway, so it does not matter why a child did.
        let _ = Self::reaped(self, pid, ended);
    }
}
