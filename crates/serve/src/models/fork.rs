//! A new process for each connection: NCSA httpd and CERN httpd without inetd, and any server under
//! inetd. The parent waits in poll, and each child waits with its connection through keep-alive.
//! Start reading at [`Parent::serve`].
//!
//! Cost of a request on a kept-alive connection: one receive and one send, both blocking. Cost of a
//! connection: poll, accept, fork and exit, some 300 us together. A child knows only what its
//! parent knew, so the first request of every connection opens its file again. Prefork is this
//! model with the fork moved out of the request.
//!
//! A child that dies takes one connection with it. At `instances` children, connections wait in the
//! backlog until one ends.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::event::{PollFd, PollFlags};
use sys::clock;
use sys::listener::{self, Mode};
use sys::poll;
use sys::process::{self, Ended, Pid, SharedCells, Signal};
use sys::signals::{self, ChildEnds, Signals, Stop};
use units::Nanos;

use super::shared::child;
use super::shared::parent::{self, ENDING_TICK, Family};
use super::shared::socket_io::{self, CallLimit, EXHAUSTED_REST};
use super::shared::{begin, system};
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec};
use crate::ServeError;
use crate::service::Service;
use site::board::Counter;
use site::exchange::Exchange;
use site::gateway;

/// The model.
pub(super) static ITEM: Model = Model {
    name: "fork",
    about: "a process for each connection, forked when it comes (inetd, NCSA httpd)",
    settings: &[SettingSpec {
        name: INSTANCES,
        kind: SettingKind::Count { default: 256, min: 1, max: 200_000 },
        about: "maximum number of children, and so of connections (xinetd's name; it refuses more)",
    }],
    declares: Declared {
        accept_order: "the one parent takes them in order of arrival",
        keep_alive_holder: "a whole child process, blocked in receive",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "instances connections, idle ones counted",
        saturation: "connections wait in the backlog while the maximum number of children is running",
    },
    two_at_once: Some(&["instances=2"]),
    prepare: |settings| Ok(Arc::new(Fork { children_max: settings.size(INSTANCES) })),
};

const INSTANCES: &str = "instances";

#[derive(Debug)]
struct Fork {
    children_max: usize,
}

impl PreparedModel for Fork {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        let signals = begin(service, Mode::NonBlocking)?;
        let ends = ChildEnds::new().map_err(system("cannot take the end of a child as a file"))?;
        let mut parent = Parent {
            service,
            children: HashSet::new(),
            children_max: self.children_max,
            next: None,
            rest: Nanos::ZERO,
            tickets: None,
            draining: SharedCells::new(1)
                .map_err(system("cannot map memory that the children share"))?,
        };
        let served = parent.serve(&signals, &ends);
        // After an error too: no child may outlive the parent.
        let ended = parent::stop(&mut parent);
        served.and(ended).map_err(system("cannot wait for connections, children and signals"))
    }
}

struct Parent<'s> {
    service: &'s Service,
    children: HashSet<Pid>,
    children_max: usize,
    /// Accepted, and waiting until a child can be started for it.
    next: Option<(OwnedFd, SocketAddr)>,
    /// A process, a descriptor or memory was lacking: no new attempt before this instant.
    rest: Nanos,
    /// In a drain, how many connections may still be accepted (see `Service::tickets`).
    tickets: Option<u32>,
    /// Tells the children that the drain has begun. One that is forked in the drain may get no
    /// signal before it answers.
    draining: SharedCells,
}

impl Parent<'_> {
    /// Forks for each connection until a signal ends it. A drain goes on until all children have
    /// ended.
    fn serve(&mut self, signals: &Signals, ends: &ChildEnds) -> io::Result<()> {
        let mut end = Nanos::MAX;
        while clock::monotonic() < end && !self.is_done() {
            let comes = self.wait(signals, ends, end)?;
            ends.clear()?;
            while let Some((pid, ended)) = process::reap()? {
                self.reaped(pid, ended);
            }
            match signals.take()? {
                Some(Stop::AtOnce) => return Ok(()),
                Some(Stop::Drain) if end == Nanos::MAX => {
                    end = clock::monotonic().saturating_add(self.service.shutdown_grace);
                    self.service.begin_closing();
                    self.tickets = Some(self.service.tickets());
                    self.draining[0].store(1, Relaxed);
                }
                _ => {}
            }
            if comes && self.takes_more() {
                self.accept();
            }
            self.fork_for_next();
            if self.tickets.is_some() {
                // Each time: a signal just before a blocking call has no effect.
                self.children.iter().for_each(|&pid| _ = process::signal(pid, Signal::TERM));
                if self.service.is_drained() {
                    self.tickets = Some(0);
                }
            }
            if self.tickets == Some(0) {
                self.service.stop_listening();
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.tickets == Some(0) && self.children.is_empty() && self.next.is_none()
    }

    /// Whether another connection may be accepted.
    fn takes_more(&self) -> bool {
        let room = self.children.len() < self.children_max && self.next.is_none();
        room && self.tickets != Some(0) && self.rest <= clock::monotonic()
    }

    /// Waits until there is something to do. Returns whether to accept a connection.
    fn wait(&self, signals: &Signals, ends: &ChildEnds, end: Nanos) -> io::Result<bool> {
        let now = clock::monotonic();
        let until = match (self.tickets, self.rest > now) {
            (Some(_), _) => now.saturating_add(ENDING_TICK),
            (None, true) => self.rest,
            (None, false) => end,
        };
        let most = (until != Nanos::MAX).then(|| until.saturating_sub(now));
        let mut files = [
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(ends, PollFlags::IN),
            PollFd::new(&self.service.listener, PollFlags::IN),
        ];
        let files = &mut files[..if self.takes_more() { 3 } else { 2 }];
        poll::wait_for(files, most)?;
        // In a drain we try even if none is there: that ends the drain.
        Ok(files.get(2).is_some_and(|file| !file.revents().is_empty()) || self.tickets.is_some())
    }

    fn accept(&mut self) {
        match listener::accept(&self.service.listener, Mode::Blocking) {
            Ok(conn) => self.next = Some(conn),
            Err(error) if listener::is_exhaustion(&error) => {
                self.service.note_exhaustion(&error);
                return self.take_rest();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // The connection was gone before it was accepted; others may wait.
            Err(_) => {}
        }
        self.tickets = self.tickets.map(|left| left.saturating_sub(1));
    }

    /// Forks a child for the accepted connection.
    fn fork_for_next(&mut self) {
        if self.next.is_none() || self.rest > clock::monotonic() {
            return;
        }
        // Otherwise both processes would write what this one has buffered.
        self.service.log.flush();
        let Self { service, next, draining, .. } = self;
        let ending = || {
            let is_draining = draining[0].load(Relaxed) != 0;
            signals::asked_to_end().or(is_draining.then_some(Stop::Drain))
        };
        let forked = process::fork("joust child", || match next.take() {
            Some((socket, peer)) => serve(service, socket, peer, &ending),
            None => child::DONE,
        });
        match forked {
            Ok(pid) => {
                self.children.insert(pid);
                self.service.board.count(Counter::ProcessesSpawned);
                self.next = None;
            }
            // `ulimit -u`, the cgroup's pids.max, or memory: the connection waits until a child
            // ends.
            Err(error) => {
                service.note_no_start("a child process for a connection, which waits", &error);
                self.take_rest();
            }
        }
    }

    fn take_rest(&mut self) {
        self.rest = clock::monotonic().saturating_add(EXHAUSTED_REST);
    }
}

impl Family for Parent<'_> {
    fn children(&self) -> impl Iterator<Item = Pid> {
        self.children.iter().copied()
    }

    fn reaped(&mut self, pid: Pid, _: Ended) {
        self.children.remove(&pid);
        self.service.board.count(Counter::ProcessesReaped);
        self.service.board.reaped(pid);
        self.rest = Nanos::ZERO;
    }
}

/// The life of a child: one connection. `ending` says whether and how to end.
fn serve(
    service: &Service,
    socket: OwnedFd,
    peer: SocketAddr,
    ending: &impl Fn() -> Option<Stop>,
) -> u8 {
    if signals::in_child().is_err() {
        return child::FATAL;
    }
    let mut exchange = Exchange::new(service, peer, clock::monotonic());
    socket_io::serve_blocking(socket, &mut exchange, CallLimit::of(service), ending);
    // This ends its CGI program too, if there is one.
    drop(exchange);
    gateway::wind_up();
    service.log.flush();
    child::DONE
}
