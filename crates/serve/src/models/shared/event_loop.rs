//! The event loop of `reactor`, `reactors` and `reactor-pool`: one thread, non-blocking sockets,
//! one poll set for all of them. Start reading at [`Loop::serve`].
//!
//! Cost of a request on a kept-alive connection: one receive, one send, and a share of one wait.
//! With epoll each socket is registered once, edge-triggered, for reading and writing. The kernel
//! would poll a level-triggered socket once more in each wait, and switching from reading to
//! writing would cost an epoll_ctl. We send a response without asking first whether there is room.
//! A new connection gets its first turn after all events of its round, when its request has usually
//! arrived. If it is served and closed in that turn, it never enters the poll set.

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
use super::run_queue::{RunMark, RunQueue, TakesTurns};
use super::socket_io::{self, AfterCall, InputState, Step};
use super::timers::Timers;
use crate::service::{Service, closing};
use site::exchange::{Close, Exchange, Spare};

const LISTENER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;
const GROUP: u64 = u64::MAX - 2;
const ANSWERED: u64 = u64::MAX - 3;
/// In the token of a connection: the event is about its gateway. This bit is above the index of any
/// connection.
const GATEWAY: u64 = 1 << 31;

/// What differs between the loops of two models.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Connections that a loop holds at once.
    pub(crate) conns_max: usize,
    /// Connections that it accepts in one round.
    pub(crate) round_max: usize,
    /// What happens to connections beyond `conns_max`.
    pub(crate) overflow: Overflow,
    /// Whether other loops accept from the same listener.
    pub(crate) is_shared: bool,
}

impl Rules {
    /// For a loop that has the port to itself.
    pub(crate) fn of_one_loop(conns_max: usize) -> Self {
        let overflow = Overflow::Wait;
        Self { conns_max, round_max: socket_io::ACCEPTS_MAX, overflow, is_shared: false }
    }
}

/// What happens to connections for which a loop has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// They wait in the kernel's queue, as in lighttpd.
    Wait,
    /// The loop closes idle connections to make room. If there are none, it accepts and closes new
    /// ones, as nginx does.
    Close,
}

/// One event loop with its connections.
pub(crate) struct Loop<'h, 's, W> {
    service: &'s Service,
    rules: Rules,
    /// The group it belongs to, if there are other loops.
    group: Option<&'h LoopGroup>,
    watch: W,
    conns: Vec<Conn<'s>>,
    /// Indices of `conns` without a connection.
    free: Vec<u32>,
    /// New connections, and those that used up their last turn.
    run_queue: RunQueue,
    timers: Timers,
    acceptor: Acceptor<'s>,
    accepting: Accepting,
    /// Connections accepted since the listener was last put behind those of the other loops.
    accepted: usize,
    /// Idle connections by deadline, the soonest last. Built only when room is needed, so a busy
    /// connection pays nothing for it. Entries that are out of date are skipped.
    idle: Vec<(Nanos, u32)>,
    /// No search for idle connections before this instant.
    idle_look: Nanos,
    /// The threads that answer; `None`: the loop answers.
    answer_threads: Option<&'h AnswerThreads<'s>>,
    /// Connections that these threads have.
    handed_over: usize,
    /// Connections that wait until the threads take more.
    waiting_jobs: VecDeque<AnswerJob<'s>>,
    /// Buffers that all connections share, unless one stops within a request or an answer.
    spare: Spare,
    /// When the loop ends at the latest.
    end: Nanos,
    /// The time when the last wait ended; read once for all its events.
    now: Nanos,
}

/// Whether the poll set has the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepting {
    Yes,
    /// Not until a connection closes or this instant comes, because a resource ran out.
    Rests(Nanos),
    /// The port is closed.
    No,
}

/// A slot for a connection. Its exchange serves one connection after the other.
struct Conn<'s> {
    /// `None` while an answer thread has it. Boxed so that slots of idle connections are small and
    /// an exchange can be handed over.
    exchange: Option<Box<Exchange<'s>>>,
    input: InputState,
    /// Changes with each connection, so that we recognize events of an earlier one.
    generation: u32,
    /// While it is queued, its events wait as well.
    mark: RunMark,
    /// The id of the gateway's file that is watched for it; 0: none.
    watches: u64,
    state: LoopConnState,
}

enum LoopConnState {
    Free,
    /// It has had no turn yet and is not watched.
    Fresh(OwnedFd),
    Watched(OwnedFd),
    /// An answer thread has it, or will. It may have been watched before.
    HandedOver {
        was_watched: bool,
    },
    /// Closed on our side. Until the instant we drop at most this many bytes of further input.
    Lingering(OwnedFd, usize, Nanos),
}

impl<'s> Conn<'s> {
    /// The exchange, while no answer thread has it.
    fn exchange(&mut self) -> &mut Exchange<'s> {
        self.exchange.as_mut().expect("a connection that is not away has its exchange")
    }

    /// If it only waits for a request: until when.
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
    /// Accepts from `listener`, a non-blocking queue of `service`. With `answer_threads` the loop
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

    /// Waits and serves until the server ends.
    pub(crate) fn serve(&mut self, sources: StopSources<'h>) -> io::Result<()> {
        self.group = sources.group;
        let _slot = self.service.board.claim_slot();
        self.watch_listener()?;
        if let Some(signals) = sources.signals {
            self.watch.add_source(signals, SIGNALS)?;
        }
        if let Some(group) = sources.group {
            // Edge-triggered: nobody reads it, so one ring wakes all loops.
            self.watch.add(group.wake(), GROUP, Interest::Read)?;
        }
        if let Some(answer_threads) = self.answer_threads {
            self.watch.add_source(&answer_threads.returns, ANSWERED)?;
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

    /// Begins to end, and tells the other loops.
    fn heed(&mut self, sources: StopSources<'_>) -> io::Result<()> {
        let StopSources { signals, group } = sources;
        let sent = match signals {
            Some(signals) => signals.take()?,
            None => None,
        };
        if sent == Some(Stop::Drain) {
            // Before we tell the others, because each closes its queue as soon as that is empty.
            self.service.begin_closing();
        }
        if let (Some(stop), Some(group)) = (sent, group) {
            group.stop(stop);
        }
        match sent.or(group.and_then(LoopGroup::stop_asked)) {
            Some(Stop::AtOnce) => self.end = self.now,
            Some(Stop::Drain) if self.end == Nanos::MAX => {
                self.end = self.now.saturating_add(self.service.shutdown_grace);
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
        // A full loop closes the port as soon as no connection waits there.
        let rest = match self.acceptor.is_draining() && self.accepting != Accepting::No {
            true => rest.min(self.now.saturating_add(closing::LOOK)),
            false => rest,
        };
        let timed = self.timers.next().unwrap_or(Nanos::MAX).min(self.run_queue.wake_at());
        let next = timed.min(rest).min(self.end);
        (next != Nanos::MAX).then(|| next.saturating_sub(self.now))
    }

    /// Handles an event of a connection.
    fn wake(&mut self, event: Ready) {
        let index = event.token as u32 & !(GATEWAY as u32);
        let ending = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        match self.conns.get_mut(index as usize) {
            // It was closed in this round.
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

    fn queue(&mut self, index: u32) {
        self.run_queue.push(index, &mut self.conns[index as usize].mark);
    }

    /// Watches for what a connection waits for.
    fn await_step(&mut self, index: u32, step: Step) {
        let interest = match step {
            Step::Read | Step::Close(_) => Interest::Read,
            Step::Write => Interest::Write,
            Step::Gateway => self.watch_gateway(index),
            // It gets its next turn without an event, so we ask for none.
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

    /// Watches the file of a gateway. Returns what to watch the client for at the same time.
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
        // Without room for it, new input would be reported again and again.
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
            // ENOMEM or ENOSPC (fs.epoll.max_user_watches): no event would ever come for it.
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
            // The set does not report again what arrived before.
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

    /// Begins a drain: accepts what waits, closes the port, and lets each connection finish its
    /// response.
    fn drain(&mut self) {
        self.acceptor.drain();
        for index in 0..self.conns.len() as u32 {
            self.finish(index);
        }
    }

    /// Lets a connection finish its response. One that an answer thread has finishes when it comes
    /// back.
    fn finish(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        if conn.exchange.as_ref().is_some_and(|exchange| exchange.is_idle()) {
            // A request that has arrived but was not read yet is still answered.
            conn.input = InputState::MayHave;
            self.turn(index);
        }
        if let Some(exchange) = &mut self.conns[index as usize].exchange {
            exchange.finish();
        }
        self.turn(index);
    }

    /// Cuts all connections.
    fn cut(&mut self) {
        for conn in &mut self.conns {
            if matches!(conn.state, LoopConnState::Fresh(_) | LoopConnState::Watched(_)) {
                conn.exchange().lost(self.now);
            }
            conn.state = LoopConnState::Free;
        }
    }
}

impl<W: Watch> TakesTurns for Loop<'_, '_, W> {
    fn run_queue(&mut self) -> &mut RunQueue {
        &mut self.run_queue
    }

    fn mark(&mut self, index: u32) -> Option<&mut RunMark> {
        Some(&mut self.conns.get_mut(index as usize)?.mark)
    }

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
}

/// Stops watching the file of a gateway before it may be closed or switched from reading to
/// writing. Only needed in a poll set that would notice; an edge-triggered one forgets closed files
/// by itself.
#[inline]
fn forget_gateway<W: Watch>(watch: &mut W, exchange: &mut Exchange<'_>, watches: &mut u64) {
    if !W::TELLS_ONCE && *watches != 0 {
        *watches = 0;
        if let Some(awaited) = exchange.awaited() {
            watch.forget(awaited.file);
        }
    }
}
