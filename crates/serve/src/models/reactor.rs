//! One thread, one epoll loop, non-blocking sockets: as lighttpd and one worker of nginx do. Owns
//! who waits (the loop, for all connections at once); must not know HTTP.
//! Start reading at [`Reactor::serve`].
//!
//! Cost of a request on a kept-alive connection: one receive, one send, and a share of one
//! epoll_wait. Sockets are watched once, for everything, edge-triggered: a level-triggered socket
//! would be polled by the kernel once more in each wait, and switching between reading and writing
//! would cost an epoll_ctl. A response is sent without asking first whether there is room. A fresh
//! connection has its first turn after all events of its round, when its request has most often
//! arrived; one that is served and closed in that turn never enters the epoll set.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use sys::clock;
use sys::epoll::{Epoll, EventFlags, Ready};
use sys::listener::{self, Mode};
use sys::signals::{Signals, Stop};
use sys::socket;
use units::Nanos;

use super::acceptor::{Acceptor, Next, Room};
use super::drive::{self, ACCEPTS_MAX, EXHAUSTED_REST, GATEWAY_EDGES, Inlet, Look, SPIN, Step};
use super::holds::Holds;
use super::timers::Timers;
use super::{Declared, Kind, Model, SettingSpec, system};
use crate::ServeError;
use crate::exchange::{Close, Exchange};
use crate::service::Service;

const CONNECTIONS_MAX: &str = "server.max-connections";

/// The model.
pub(super) static ITEM: Model = Model {
    name: "reactor",
    about: "one thread waits for all connections with epoll (lighttpd, one worker of nginx)",
    settings: &[SettingSpec {
        name: CONNECTIONS_MAX,
        kind: Kind::Count { default: 16_384, min: 1, max: 1_000_000 },
        about: "connections held at once (lighttpd's own default is a third of server.max-fds, 1365)",
    }],
    declares: Declared {
        accept_order: "the one loop takes them in order of arrival, up to 100 a round",
        keep_alive_holder: "the loop",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "one request in work; server.max-connections and open files bound the rest",
        saturation: "requests wait in the sockets, connections past the bound in the backlog",
    },
    check: |_| Ok(()),
    available: super::everywhere,
    run,
};

const LISTENER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;
/// In the token of a connection: the news is of the gateway that answers it. Beyond the number of any
/// connection.
const GATEWAY: u64 = 1 << 31;

fn run(service: &Service) -> Result<(), ServeError> {
    // Servers of many connections do so at their start (nginx worker_rlimit_nofile, lighttpd
    // server.max-fds); where it is refused, fewer connections fit, which accepting reports.
    let _ = socket::raise_file_limit();
    let signals = Signals::new().map_err(system("cannot take signals as a file"))?;
    listener::set_mode(&service.listener, Mode::NonBlocking)
        .map_err(system("cannot make the listener non-blocking"))?;
    let mut reactor = Reactor::new(service).map_err(system("cannot create the epoll set"))?;
    let _seat = service.board.sit();
    reactor.serve(&signals).map_err(system("cannot wait for events"))
}

/// The loop and all it holds.
struct Reactor<'s> {
    service: &'s Service,
    epoll: Epoll,
    conns: Vec<Conn<'s>>,
    /// The most that `conns` may become.
    conns_max: usize,
    /// Indices of `conns` that hold no connection.
    free: Vec<u32>,
    /// Connections that are to have a turn without the kernel saying so: fresh ones, and those that
    /// used up their last one.
    turns: VecDeque<u32>,
    timers: Timers,
    holds: Holds,
    acceptor: Acceptor<'s>,
    accepting: Accepting,
    /// One read of the clock for all that a wake-up brings.
    now: Nanos,
}

/// Whether the listener is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepting {
    Yes,
    /// Nothing is left to hold a connection: until one closes, or this instant.
    Rests(Nanos),
    /// The port is closed.
    No,
}

/// A place for a connection; its buffers serve one connection after the other.
struct Conn<'s> {
    exchange: Exchange<'s>,
    inlet: Inlet,
    /// Differs from use to use, so that an event of an earlier connection is known as such.
    generation: u32,
    /// It is in `turns`; until it is at the head, events of it wait as well.
    queued: bool,
    /// It is in `holds` until then; zero: it is not.
    held_until: Nanos,
    /// The file of a gateway that is watched for it, by its id; 0: none.
    watches: u64,
    phase: Phase,
}

enum Phase {
    Free,
    /// Not watched: it has had no turn yet.
    Fresh(OwnedFd),
    Watched(OwnedFd),
    /// Closed on our side; what still comes is dropped, up to so many bytes and until then.
    Lingering(OwnedFd, usize, Nanos),
}

impl<'s> Reactor<'s> {
    fn new(service: &'s Service) -> io::Result<Self> {
        let now = clock::monotonic();
        Ok(Self {
            service,
            epoll: Epoll::new()?,
            conns: Vec::new(),
            conns_max: service.config.settings.count(CONNECTIONS_MAX) as usize,
            free: Vec::new(),
            turns: VecDeque::new(),
            timers: Timers::new(now),
            holds: Holds::default(),
            acceptor: Acceptor::new(service, &service.listener, ACCEPTS_MAX),
            accepting: Accepting::Yes,
            now,
        })
    }

    /// Waits and serves until a signal ends it.
    fn serve(&mut self, signals: &Signals) -> io::Result<()> {
        self.epoll.add(&self.service.listener, LISTENER, EventFlags::IN)?;
        self.epoll.add(signals, SIGNALS, EventFlags::IN)?;
        let grace = self.service.config.settings.time("GracefulShutdownTimeout");
        let mut end = Nanos::MAX;
        let mut ready = Vec::new();
        while self.now < end && !(self.accepting == Accepting::No && self.open() == 0) {
            self.service.board.wait(|| self.now);
            self.epoll.wait(&mut ready, self.timeout(end))?;
            self.now = clock::monotonic();
            for event in ready.drain(..) {
                match event.token {
                    LISTENER => self.accept_some(),
                    SIGNALS => match signals.take()? {
                        Some(Stop::AtOnce) => end = self.now,
                        Some(Stop::Drain) if end == Nanos::MAX => {
                            end = self.now.saturating_add(grace);
                            self.drain();
                        }
                        _ => {}
                    },
                    _ => self.wake(event),
                }
                self.end_holds();
            }
            self.end_holds();
            self.take_turns();
            self.expire();
            self.accept_the_last();
        }
        self.cut();
        Ok(())
    }

    /// How many connections there are.
    fn open(&self) -> usize {
        self.conns.len() - self.free.len()
    }

    fn timeout(&self, end: Nanos) -> Option<Nanos> {
        if !self.turns.is_empty() {
            return Some(Nanos::ZERO);
        }
        let rest = match self.accepting {
            Accepting::Rests(until) => until,
            Accepting::Yes | Accepting::No => Nanos::MAX,
        };
        let held = self.holds.next().map_or(Nanos::MAX, |until| until.saturating_sub(SPIN));
        let next = self.timers.next().unwrap_or(Nanos::MAX).min(rest).min(end).min(held);
        (next != Nanos::MAX).then(|| next.saturating_sub(self.now))
    }

    fn accept_some(&mut self) {
        self.acceptor.begin_round();
        loop {
            let room = if self.open() < self.conns_max { Room::Free } else { Room::Waits };
            match self.acceptor.next(room) {
                Next::Admit(socket, peer) => self.admit(socket, peer),
                Next::Done => return,
                Next::Rest(most) => return self.rest(self.now.saturating_add(most)),
                Next::Over => return self.stop_listening(),
            }
        }
    }

    /// In a drain: takes what still waits, as far as there is room. The listener's event would do it
    /// too, but does not come for a connection that has gone in the meantime.
    fn accept_the_last(&mut self) {
        while self.acceptor.is_draining() && self.accepting == Accepting::Yes {
            self.accept_some();
        }
    }

    fn admit(&mut self, socket: OwnedFd, peer: SocketAddr) {
        let index = match self.free.pop() {
            Some(index) => {
                self.conns[index as usize].exchange.reset_for(peer, self.now);
                index
            }
            None => {
                let exchange = Exchange::new(self.service, peer, self.now);
                self.conns.push(Conn {
                    exchange,
                    inlet: Inlet::Open,
                    generation: 0,
                    queued: false,
                    held_until: Nanos::ZERO,
                    watches: 0,
                    phase: Phase::Free,
                });
                self.conns.len() as u32 - 1
            }
        };
        let conn = &mut self.conns[index as usize];
        conn.inlet = Inlet::Open;
        conn.phase = Phase::Fresh(socket);
        self.queue(index);
    }

    /// The kernel has news of a connection.
    fn wake(&mut self, event: Ready) {
        let index = event.token as u32 & !(GATEWAY as u32);
        let ending = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        match self.conns.get_mut(index as usize) {
            // It was closed in this very round.
            Some(conn) if u64::from(conn.generation) != event.token >> 32 => return,
            None => return,
            Some(_) if event.token & GATEWAY != 0 => {}
            Some(conn) if event.flags.intersects(ending) => conn.inlet = Inlet::Ending,
            Some(conn) if event.flags.contains(EventFlags::IN) => conn.inlet = Inlet::Open,
            Some(_) => {}
        }
        if !self.conns[index as usize].queued {
            self.turn(index);
        }
    }

    /// Gives a turn to each connection whose hold is over: between any two events, since each may take
    /// as long as a hold may end late.
    fn end_holds(&mut self) {
        while let Some(until) = self.holds.next() {
            if clock::monotonic() < until {
                return;
            }
            let Some(index) = self.holds.pop() else { return };
            self.conns[index as usize].held_until = Nanos::ZERO;
            self.turn(index);
        }
    }

    fn queue(&mut self, index: u32) {
        if !std::mem::replace(&mut self.conns[index as usize].queued, true) {
            self.turns.push_back(index);
        }
    }

    fn take_turns(&mut self) {
        for _ in 0..self.turns.len() {
            let Some(index) = self.turns.pop_front() else { return };
            self.conns[index as usize].queued = false;
            self.turn(index);
        }
    }

    /// Moves one connection on as far as it goes, or to the end of its turn.
    fn turn(&mut self, index: u32) {
        let (service, now, ending) = (self.service, self.now, self.acceptor.is_draining());
        let look = || Look { now: drive::time(service, now), ending };
        let conn = &mut self.conns[index as usize];
        let socket = match &mut conn.phase {
            Phase::Free => return,
            Phase::Lingering(socket, left, _) => {
                if drive::drop_input(socket.as_fd(), left) {
                    self.release(index);
                }
                return;
            }
            Phase::Fresh(socket) | Phase::Watched(socket) => socket,
        };
        match drive::advance(socket.as_fd(), &mut conn.exchange, &mut conn.inlet, look) {
            Step::Close(how) => self.close(index, how),
            step => {
                self.timers.arm(index, conn.exchange.deadline());
                if matches!(conn.phase, Phase::Fresh(_)) {
                    self.watch(index);
                }
                match step {
                    Step::Turn => self.queue(index),
                    Step::Hold(until) => self.hold(index, until),
                    Step::Gateway => self.watch_gateway(index),
                    _ => {}
                }
            }
        }
    }

    /// Has the connection wait until then; an event may have it looked at before, more than once.
    fn hold(&mut self, index: u32, until: Nanos) {
        let held_until = &mut self.conns[index as usize].held_until;
        if *held_until != until {
            *held_until = until;
            self.holds.push(until, index);
        }
    }

    /// Watches the file of a gateway like the socket, once: news of either is a turn.
    fn watch_gateway(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        let Some(awaited) = conn.exchange.awaited() else { return };
        if conn.watches == awaited.id {
            return;
        }
        conn.watches = awaited.id;
        let token = u64::from(conn.generation) << 32 | GATEWAY | u64::from(index);
        if drive::watch_gateway(&self.epoll, &awaited, token, GATEWAY_EDGES).is_err() {
            conn.exchange.lost(self.now);
            self.queue(index);
        }
    }

    fn watch(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        let token = u64::from(conn.generation) << 32 | u64::from(index);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let (Phase::Fresh(socket) | Phase::Watched(socket) | Phase::Lingering(socket, ..)) =
            std::mem::replace(&mut conn.phase, Phase::Free)
        else {
            return;
        };
        if self.epoll.add(&socket, token, flags).is_ok() {
            conn.phase = Phase::Watched(socket);
        } else {
            // ENOMEM or ENOSPC (fs.epoll.max_user_watches): nobody would ever wake it.
            conn.exchange.lost(self.now);
            self.release(index);
        }
    }

    fn close(&mut self, index: u32, how: Close) {
        if matches!(self.conns[index as usize].phase, Phase::Fresh(_)) && how == Close::Linger {
            self.watch(index);
        }
        let conn = &mut self.conns[index as usize];
        let (Phase::Fresh(socket) | Phase::Watched(socket)) =
            std::mem::replace(&mut conn.phase, Phase::Free)
        else {
            return;
        };
        match drive::close(socket, how) {
            None => self.release(index),
            Some(socket) => {
                let until = self.now.saturating_add(drive::LINGER_MAX);
                conn.phase = Phase::Lingering(socket, drive::LINGER_BYTES_MAX, until);
                self.timers.arm(index, until);
                // What came before is not announced again.
                self.queue(index);
            }
        }
    }

    fn release(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        conn.phase = Phase::Free;
        conn.generation = conn.generation.wrapping_add(1) & 0x7fff_ffff;
        self.timers.disarm(index);
        self.free.push(index);
        if matches!(self.accepting, Accepting::Rests(_)) {
            self.accept_again();
        }
    }

    /// Takes the listener out of the set: it stays readable, and the loop would spin.
    fn rest(&mut self, until: Nanos) {
        if self.accepting == Accepting::Yes && self.epoll.remove(self.acceptor.listener()).is_ok() {
            self.accepting = Accepting::Rests(until);
        }
    }

    fn accept_again(&mut self) {
        let added = self.epoll.add(&self.service.listener, LISTENER, EventFlags::IN);
        self.accepting = match added {
            Ok(()) => Accepting::Yes,
            Err(_) => Accepting::Rests(self.now.saturating_add(EXHAUSTED_REST)),
        };
    }

    fn expire(&mut self) {
        if matches!(self.accepting, Accepting::Rests(until) if until <= self.now) {
            self.accept_again();
        }
        while let Some(index) = self.timers.expired(self.now) {
            let conn = &mut self.conns[index as usize];
            match conn.phase {
                Phase::Free => {}
                Phase::Lingering(_, _, until) if until <= self.now => self.release(index),
                Phase::Lingering(_, _, until) => self.timers.arm(index, until),
                Phase::Fresh(_) | Phase::Watched(_) => {
                    if conn.exchange.deadline() <= self.now {
                        conn.exchange.timed_out(self.now);
                        self.turn(index);
                    } else {
                        self.timers.arm(index, conn.exchange.deadline());
                    }
                }
            }
        }
    }

    /// Takes in what already waits to be accepted, closes the port, and lets each connection end
    /// with the response it is at.
    fn drain(&mut self) {
        self.acceptor.drain(self.service.waiting());
        for index in 0..self.conns.len() as u32 {
            let conn = &mut self.conns[index as usize];
            if conn.exchange.is_idle() {
                // A request that has arrived and was not seen yet is still answered.
                conn.inlet = Inlet::Open;
                self.turn(index);
            }
            self.conns[index as usize].exchange.finish();
            self.turn(index);
        }
    }

    fn stop_listening(&mut self) {
        self.accepting = Accepting::No;
        let _ = self.epoll.remove(self.acceptor.listener());
        self.service.stop_listening();
    }

    /// Closes what is left when there is no more time for it.
    fn cut(&mut self) {
        for conn in &mut self.conns {
            if matches!(conn.phase, Phase::Fresh(_) | Phase::Watched(_)) {
                conn.exchange.lost(self.now);
            }
            conn.phase = Phase::Free;
        }
    }
}
