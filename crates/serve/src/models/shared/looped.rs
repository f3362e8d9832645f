//! An event loop, as every model of loops runs it: one thread, non-blocking sockets, all of them in one
//! poll set. Owns who waits (the loop, for all connections at once) and the loops' common end; must
//! not know HTTP, nor how many loops there are or what the kernel is asked by.
//! Start reading at [`Loop::serve`].
//!
//! Cost of a request on a kept-alive connection: one receive, one send, and a share of one wait. With
//! epoll, sockets are watched once, for everything, edge-triggered: a level-triggered socket would be
//! polled by the kernel once more in each wait, and switching between reading and writing would cost
//! an epoll_ctl. A response is sent without asking first whether there is room. A fresh connection has
//! its first turn after all events of its round, when its request has most often arrived; one that is
//! served and closed in that turn never enters the poll set.

mod answering;
mod intake;

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use sys::clock;
use sys::epoll::{EventFlags, Ready};
use sys::listener;
use sys::signals::Stop;
use sys::watch::{Interest, Watch};
use units::Nanos;

use super::acceptor::Acceptor;
use super::answer_threads::{AnswerJob, AnswerThreads};
use super::loop_group::{LoopGroup, StopSources};
use super::run_queue::{RunMark, RunQueue};
use super::socket_io::{self, AfterCall, InputState, Step};
use super::timers::Timers;
use crate::service::{Service, closing};
use site::exchange::{Close, Exchange, Spare};

const LISTENER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;
const GROUP: u64 = u64::MAX - 2;
const ANSWERED: u64 = u64::MAX - 3;
/// In the token of a connection: the news is of the gateway that answers it. Beyond the number of any
/// connection.
const GATEWAY: u64 = 1 << 31;

/// What makes the loops of one model differ from those of another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Connections that a loop holds at once.
    pub(crate) conns_max: usize,
    /// Connections that it accepts in one round.
    pub(crate) round_max: usize,
    /// What becomes of those past `conns_max`.
    pub(crate) overflow: Overflow,
    /// Whether other loops take connections from the same listener.
    pub(crate) is_shared: bool,
}

/// What becomes of connections that a loop has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// They wait in the kernel's queue, as lighttpd has it.
    Wait,
    /// Idle ones are closed for them as long as there are any; then they are accepted and closed, as
    /// nginx has it.
    Close,
}

/// A loop and all it holds.
pub(crate) struct Loop<'h, 's, W> {
    service: &'s Service,
    rules: Rules,
    /// The loops that it is one of, if there are others.
    group: Option<&'h LoopGroup>,
    watch: W,
    conns: Vec<Conn<'s>>,
    /// Indices of `conns` that hold no connection.
    free: Vec<u32>,
    /// Queued are fresh connections, and those that used up their last turn.
    run_queue: RunQueue,
    timers: Timers,
    acceptor: Acceptor<'s>,
    accepting: Accepting,
    /// Connections accepted since the listener was put behind those of the other loops.
    accepted: usize,
    /// Idle connections by the end of their wait, the soonest last: made when room is needed, so that
    /// one who is busy pays nothing for it. What has changed since is passed over.
    idle: Vec<(Nanos, u32)>,
    /// Nobody looks for idle ones before.
    idle_look: Nanos,
    /// Who answers, where it is not the loop.
    answer_threads: Option<&'h AnswerThreads<'s>>,
    /// Connections that they have.
    handed_over: usize,
    /// Those that wait until they take more.
    waiting_jobs: VecDeque<AnswerJob<'s>>,
    /// What all connections read and write with, unless they stop within a request or an answer.
    spare: Spare,
    /// When it ends at the latest.
    end: Nanos,
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

/// A place for a connection; its exchange serves one connection after the other.
struct Conn<'s> {
    /// `None` while it is with an answer thread. Behind a pointer, so that places are small where many are
    /// idle, and an exchange can be handed over.
    exchange: Option<Box<Exchange<'s>>>,
    input: InputState,
    /// Differs from use to use, so that an event of an earlier connection is known as such.
    generation: u32,
    /// While it is queued, events of it wait as well.
    mark: RunMark,
    /// The file of a gateway that is watched for it, by its id; 0: none.
    watches: u64,
    state: LoopConnState,
}

enum LoopConnState {
    Free,
    /// Not watched: it has had no turn yet.
    Fresh(OwnedFd),
    Watched(OwnedFd),
    /// With an answer thread, or on its way to one; it was watched before, or had not been yet.
    HandedOver {
        was_watched: bool,
    },
    /// Closed on our side; what still comes is dropped, up to so many bytes and until then.
    Lingering(OwnedFd, usize, Nanos),
}

impl<'s> Conn<'s> {
    /// Its exchange; not while an answer thread has it.
    fn exchange(&mut self) -> &mut Exchange<'s> {
        self.exchange.as_mut().expect("a connection that is not away has its exchange")
    }

    /// Whether it waits for a request, and nothing else; then, until when.
    fn idle_until(&self) -> Option<Nanos> {
        match (&self.state, &self.exchange) {
            (LoopConnState::Watched(_), Some(exchange)) if exchange.is_idle() => {
                Some(exchange.deadline())
            }
            _ => None,
        }
    }
}

impl<'h, 's, W: Watch> Loop<'h, 's, W> {
    /// Takes connections from `listener`, one of `service`'s, which does not block. With `answer_threads`, it
    /// only reads, and they answer.
    pub(crate) fn new(
        service: &'s Service,
        listener: &'s TcpListener,
        rules: Rules,
        answer_threads: Option<&'h AnswerThreads<'s>>,
    ) -> io::Result<Self> {
        let now = clock::monotonic();
        Ok(Self {
            service,
            rules,
            group: None,
            watch: W::new()?,
            conns: Vec::new(),
            free: Vec::new(),
            run_queue: RunQueue::default(),
            timers: Timers::new(now),
            acceptor: Acceptor::new(service, listener, rules.round_max),
            accepting: Accepting::Yes,
            accepted: 0,
            idle: Vec::new(),
            idle_look: now,
            answer_threads,
            handed_over: 0,
            waiting_jobs: VecDeque::new(),
            spare: Spare::default(),
            end: Nanos::MAX,
            now,
        })
    }

    /// Waits and serves until it is told to end.
    pub(crate) fn serve(&mut self, sources: StopSources<'h>) -> io::Result<()> {
        self.group = sources.group;
        let _seat = self.service.board.sit();
        self.watch_listener()?;
        if let Some(signals) = sources.signals {
            self.watch.add_source(signals, SIGNALS)?;
        }
        if let Some(group) = sources.group {
            // For edges: it is never read, so that one ring wakes all.
            self.watch.add(group.wake(), GROUP, Interest::Read)?;
        }
        if let Some(answer_threads) = self.answer_threads {
            self.watch.add_source(answer_threads.returns(), ANSWERED)?;
        }
        let mut ready = Vec::new();
        while self.now < self.end && !(self.accepting == Accepting::No && self.open() == 0) {
            self.service.board.wait(|| self.now);
            self.watch.wait(&mut ready, self.timeout())?;
            self.now = clock::monotonic();
            for event in ready.drain(..) {
                match event.token {
                    LISTENER => self.accept_some(),
                    SIGNALS | GROUP => self.heed(sources)?,
                    ANSWERED => self.take_back(),
                    _ => self.wake(event),
                }
                self.end_holds();
            }
            self.end_holds();
            self.run_queued();
            self.expire();
            self.accept_the_last();
        }
        self.cut();
        Ok(())
    }

    /// Ends as it is told to, and tells the others.
    fn heed(&mut self, sources: StopSources<'_>) -> io::Result<()> {
        let StopSources { signals, group } = sources;
        let sent = match signals {
            Some(signals) => signals.take()?,
            None => None,
        };
        if sent == Some(Stop::Drain) {
            // Before the others hear of it: each closes its queue when it is empty.
            self.service.begin_closing();
        }
        if let (Some(stop), Some(group)) = (sent, group) {
            group.stop(stop);
        }
        match sent.or(group.and_then(LoopGroup::stop_asked)) {
            Some(Stop::AtOnce) => self.end = self.now,
            Some(Stop::Drain) if self.end == Nanos::MAX => {
                let grace = self.service.shutdown_grace;
                self.end = self.now.saturating_add(grace);
                self.drain();
            }
            _ => {}
        }
        Ok(())
    }

    /// How many connections there are.
    fn open(&self) -> usize {
        self.conns.len() - self.free.len()
    }

    fn timeout(&self) -> Option<Nanos> {
        if self.run_queue.len() > 0 {
            return Some(Nanos::ZERO);
        }
        let rest = match self.accepting {
            Accepting::Rests(until) => until,
            Accepting::Yes | Accepting::No => Nanos::MAX,
        };
        // A full loop closes its port as soon as nothing waits there.
        let rest = match self.acceptor.is_draining() && self.accepting != Accepting::No {
            true => rest.min(self.now.saturating_add(closing::LOOK)),
            false => rest,
        };
        let timed = self.timers.next().unwrap_or(Nanos::MAX).min(self.run_queue.wake_at());
        let next = timed.min(rest).min(self.end);
        (next != Nanos::MAX).then(|| next.saturating_sub(self.now))
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
            Some(conn) if event.flags.intersects(ending) => conn.input = InputState::Ending,
            Some(conn) if event.flags.contains(EventFlags::IN) => conn.input = InputState::MayHave,
            Some(_) => {}
        }
        if !self.conns[index as usize].mark.is_queued() {
            self.turn(index);
        }
    }

    /// Gives a turn to each connection whose hold is over: between any two events, since each may take
    /// as long as a hold may end late.
    fn end_holds(&mut self) {
        while let Some(index) = self.run_queue.pop_held(clock::monotonic) {
            self.conns[index as usize].mark.release_hold();
            self.turn(index);
        }
    }

    fn queue(&mut self, index: u32) {
        self.run_queue.push(index, &mut self.conns[index as usize].mark);
    }

    fn run_queued(&mut self) {
        for _ in 0..self.run_queue.len() {
            let Some(index) = self.run_queue.pop() else { return };
            self.conns[index as usize].mark.leave_queue();
            self.turn(index);
        }
    }

    /// Moves one connection on as far as it goes, or to the end of its turn.
    fn turn(&mut self, index: u32) {
        let (service, now, ending) = (self.service, self.now, self.acceptor.is_draining());
        let after_call = || AfterCall { now: socket_io::time(service, now), ending };
        let conn = &mut self.conns[index as usize];
        let socket = match &mut conn.state {
            LoopConnState::Free | LoopConnState::HandedOver { .. } => return,
            LoopConnState::Lingering(socket, left, _) => {
                if socket_io::drop_input(socket.as_fd(), left) {
                    self.release(index);
                }
                return;
            }
            LoopConnState::Fresh(socket) | LoopConnState::Watched(socket) => socket,
        };
        let exchange = conn.exchange.as_mut().expect("a connection with a socket has its exchange");
        forget_gateway(&mut self.watch, exchange, &mut conn.watches);
        exchange.lend(&mut self.spare);
        let step = match self.answer_threads {
            None => Some(socket_io::advance(socket.as_fd(), exchange, &mut conn.input, after_call)),
            Some(_) => {
                socket_io::receive_request(socket.as_fd(), exchange, &mut conn.input, after_call)
            }
        };
        exchange.take_back(&mut self.spare);
        match step {
            None => self.hand_over(index),
            Some(Step::Close(how)) => self.close(index, how),
            Some(step) => {
                self.timers.arm(index, exchange.deadline());
                self.await_step(index, step);
            }
        }
    }

    /// Has a connection that goes on wait for what it needs.
    fn await_step(&mut self, index: u32, step: Step) {
        let interest = match step {
            Step::Read | Step::Close(_) => Interest::Read,
            Step::Write => Interest::Write,
            Step::Gateway => self.watch_gateway(index),
            // It has its turn without the kernel; until then it would be told what it knows.
            Step::Turn | Step::Hold(_) => Interest::Nothing,
        };
        match &self.conns[index as usize].state {
            LoopConnState::Fresh(_) => self.watch(index, interest),
            LoopConnState::Watched(socket) | LoopConnState::Lingering(socket, ..) => {
                self.watch.change(socket, interest);
            }
            LoopConnState::Free | LoopConnState::HandedOver { .. } => return,
        }
        match step {
            Step::Turn => self.queue(index),
            Step::Hold(until) => {
                self.run_queue.hold_until(index, until, &mut self.conns[index as usize].mark);
            }
            _ => {}
        }
    }

    /// Watches the file of a gateway: news of it is a turn. Returns what the client is watched for beside
    /// it.
    fn watch_gateway(&mut self, index: u32) -> Interest {
        let conn = &mut self.conns[index as usize];
        let token = u64::from(conn.generation) << 32 | GATEWAY | u64::from(index);
        let Some(exchange) = &mut conn.exchange else { return Interest::Nothing };
        let has_room = exchange.room().is_some_and(|room| !room.is_empty());
        let Some(awaited) = exchange.awaited() else { return Interest::Nothing };
        let interest = match (awaited.reads, awaited.writes) {
            (true, true) => Interest::Either,
            (true, false) => Interest::Read,
            (false, true) => Interest::Write,
            (false, false) => Interest::Nothing,
        };
        if conn.watches != awaited.id {
            conn.watches = awaited.id;
            if self.watch.add(awaited.file, token, interest).is_err() {
                exchange.lost(self.now);
                self.queue(index);
            }
        }
        // What there is no room for would be told again and again.
        if has_room { Interest::Read } else { Interest::Nothing }
    }

    fn watch(&mut self, index: u32, interest: Interest) {
        let conn = &mut self.conns[index as usize];
        let token = u64::from(conn.generation) << 32 | u64::from(index);
        let (LoopConnState::Fresh(socket)
        | LoopConnState::Watched(socket)
        | LoopConnState::Lingering(socket, ..)) =
            std::mem::replace(&mut conn.state, LoopConnState::Free)
        else {
            return;
        };
        if self.watch.add(&socket, token, interest).is_ok() {
            conn.state = LoopConnState::Watched(socket);
        } else {
            // ENOMEM or ENOSPC (fs.epoll.max_user_watches): nobody would ever wake it.
            conn.exchange().lost(self.now);
            self.release(index);
        }
    }

    fn close(&mut self, index: u32, how: Close) {
        if matches!(self.conns[index as usize].state, LoopConnState::Fresh(_))
            && how == Close::Linger
        {
            self.watch(index, Interest::Read);
        }
        let conn = &mut self.conns[index as usize];
        let (LoopConnState::Fresh(socket) | LoopConnState::Watched(socket)) =
            std::mem::replace(&mut conn.state, LoopConnState::Free)
        else {
            return;
        };
        if how == Close::Linger && listener::shutdown_send(&socket).is_ok() {
            let until = self.now.saturating_add(socket_io::LINGER_MAX);
            self.watch.change(&socket, Interest::Read);
            conn.state = LoopConnState::Lingering(socket, socket_io::LINGER_BYTES_MAX, until);
            self.timers.arm(index, until);
            // What came before is not announced again.
            return self.queue(index);
        }
        self.watch.forget(&socket);
        socket_io::close(socket, how);
        self.release(index);
    }

    fn release(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        if let LoopConnState::Lingering(socket, ..) = &conn.state {
            self.watch.forget(socket);
        }
        conn.state = LoopConnState::Free;
        conn.generation = conn.generation.wrapping_add(1) & 0x7fff_ffff;
        self.timers.disarm(index);
        self.free.push(index);
        if matches!(self.accepting, Accepting::Rests(_)) {
            self.accept_again();
        }
    }

    fn expire(&mut self) {
        if matches!(self.accepting, Accepting::Rests(until) if until <= self.now) {
            self.accept_again();
        }
        while let Some(index) = self.timers.expired(self.now) {
            let conn = &mut self.conns[index as usize];
            match conn.state {
                LoopConnState::Free | LoopConnState::HandedOver { .. } => {}
                LoopConnState::Lingering(_, _, until) if until <= self.now => self.release(index),
                LoopConnState::Lingering(_, _, until) => self.timers.arm(index, until),
                LoopConnState::Fresh(_) | LoopConnState::Watched(_) => {
                    let Some(exchange) = &mut conn.exchange else { continue };
                    if exchange.deadline() <= self.now {
                        forget_gateway(&mut self.watch, exchange, &mut conn.watches);
                        exchange.timed_out(self.now);
                        self.turn(index);
                    } else {
                        self.timers.arm(index, exchange.deadline());
                    }
                }
            }
        }
    }

    /// Takes in what already waits to be accepted, closes the port, and lets each connection end
    /// with the response it is at.
    fn drain(&mut self) {
        self.acceptor.drain();
        for index in 0..self.conns.len() as u32 {
            self.finish(index);
        }
    }

    /// Lets a connection end with the response it is at; one that is away ends when it comes back.
    fn finish(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        if conn.exchange.as_ref().is_some_and(|exchange| exchange.is_idle()) {
            // A request that has arrived and was not seen yet is still answered.
            conn.input = InputState::MayHave;
            self.turn(index);
        }
        if let Some(exchange) = &mut self.conns[index as usize].exchange {
            exchange.finish();
        }
        self.turn(index);
    }

    /// Closes what is left when there is no more time for it.
    fn cut(&mut self) {
        for conn in &mut self.conns {
            if matches!(conn.state, LoopConnState::Fresh(_) | LoopConnState::Watched(_)) {
                conn.exchange().lost(self.now);
            }
            conn.state = LoopConnState::Free;
        }
    }
}

/// Before anything that may close the file of a gateway, or turn it from reading to writing: takes it
/// out of a set that is told of such things. One that is told once forgets by itself.
#[inline]
fn forget_gateway<W: Watch>(watch: &mut W, exchange: &mut Exchange<'_>, watches: &mut u64) {
    if !W::TELLS_ONCE && *watches != 0 {
        *watches = 0;
        if let Some(awaited) = exchange.awaited() {
            watch.forget(awaited.file);
        }
    }
}
