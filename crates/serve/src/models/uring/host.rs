//! The loop of one ring: it hands over what is to be done, and moves on each connection of which there
//! is news. Owns the connections of its ring; must not know HTTP. Start reading at [`Host::serve`].
//!
//! A round: one call hands over the answers and operations that the last one left, and waits for
//! events; then each connection that was sent to is told, each event makes a request and its answer,
//! and what came of time (deadlines, holds, turns) follows. What is to be sent is not copied: its
//! connection holds it until the call that sends it is over.
//!
//! An answer that is taken as a whole has no event. Its connection hears of it after the call, which
//! may sleep long if nobody else comes: so whoever has more to do after its answer than to wait for the
//! next request keeps the call from sleeping (`must_not_sleep`), and the others are told the time at which
//! it was sent.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::PollFlags;
use sys::clock;
use sys::listener;
use sys::signals::Stop;
use sys::uring_server::{self, Event, Id, Kind, Op, ServerRing, Size, Wait, What};
use units::Nanos;

use super::accepting::Accepting;
use super::conn::{ConnSlots, OpState, PENDING_INPUT_MAX, RingConnState, Stream, feed};
use super::together::{Part, Together};
use crate::models::shared::run_queue::RunQueue;
use crate::models::shared::socket_io::{
    self, AfterCall, InputState, LINGER_BYTES_MAX, LINGER_MAX, Step,
};
use crate::models::shared::timers::Timers;
use crate::service::Service;
use site::exchange::{Close, Exchange, Spare};

/// Names of operations that belong to no connection; those of connections are their places.
pub(super) const LISTENER: Id = 1 << 32;
const SIGNALS: Id = LISTENER + 1;
const DRAIN: Id = LISTENER + 2;
const STOP: Id = LISTENER + 3;
const GONE: Id = LISTENER + 4;

/// In the name of an operation: it is about the file of the gateway that answers this connection.
pub(super) const GATEWAY: Id = 1 << 33;

/// Buffers of answers that are kept for the next ones; a call rarely sends more.
const ANSWERS_KEPT_MAX: usize = 64;

/// One ring and all it holds.
pub(super) struct Host<'a> {
    pub(super) service: &'a Service,
    pub(super) together: &'a Together,
    part: Part<'a>,
    ring: ServerRing,
    pub(super) conns: ConnSlots<'a>,
    /// The most that may be taken.
    conns_max: usize,
    /// What all connections receive into and answer from, unless they stop within a request or an
    /// answer; as many answers as one call sends.
    spare: Spare,
    /// Queued are connections that used up their last turn.
    run_queue: RunQueue,
    timers: Timers,
    pub(super) accepting: Accepting,
    /// What is to be done with the next call: the sends, and all else.
    sends: Vec<Send>,
    pub(super) todo: Vec<(Id, Todo)>,
    /// Sends of the last call; kept for its memory.
    sent: Vec<Send>,
    /// Somebody has more to do after its answer than to wait: the next call must not sleep.
    must_not_sleep: bool,
    /// The drain was asked for. It begins in the next round, when what had arrived by then was seen.
    drain_is_due: bool,
    /// It has begun: what waits to be accepted is taken, and the port closed.
    pub(super) is_draining: bool,
    /// When it ends whatever is left.
    end: Nanos,
    /// One read of the clock for all that a call brings.
    pub(super) now: Nanos,
}

/// What is to be done, beside sending.
#[derive(Debug, Clone, Copy)]
pub(super) enum Todo {
    Accept {
        many: bool,
    },
    Receive,
    Room,
    /// For one of these the file of a gateway is awaited.
    Gateway(PollFlags),
    /// Hear one of the files that are no connections.
    Hear,
    Cancel(Kind),
}

/// An answer, or a part of one: so many bytes of what the connection wants to send.
#[derive(Debug, Clone, Copy)]
struct Send {
    index: u32,
    n_bytes: usize,
    /// When the connection wanted it.
    at: Nanos,
}

impl<'a> Host<'a> {
    pub(super) fn new(
        service: &'a Service,
        together: &'a Together,
        part: Part<'a>,
        conns_max: usize,
        buffers: u16,
    ) -> io::Result<Self> {
        let now = clock::monotonic();
        let operations = u32::try_from(conns_max).unwrap_or(u32::MAX);
        Ok(Self {
            service,
            together,
            part,
            ring: ServerRing::new(Size { operations, buffers })?,
            conns: ConnSlots::default(),
            conns_max,
            spare: Spare::for_batches(ANSWERS_KEPT_MAX),
            run_queue: RunQueue::default(),
            timers: Timers::new(now),
            accepting: Accepting::Rests(Nanos::ZERO),
            sends: Vec::new(),
            todo: Vec::new(),
            sent: Vec::new(),
            must_not_sleep: false,
            drain_is_due: false,
            is_draining: false,
            end: Nanos::MAX,
            now,
        })
    }

    /// Serves until it is told to end.
    pub(super) fn serve(mut self) -> io::Result<()> {
        match self.part {
            Part::Leads(_) => self.todo.extend([(SIGNALS, Todo::Hear), (GONE, Todo::Hear)]),
            Part::Follows => self.todo.extend([(DRAIN, Todo::Hear), (STOP, Todo::Hear)]),
        }
        while self.now < self.end && !self.is_done() {
            self.accept_again();
            self.enter()?;
            self.now = clock::monotonic();
            let drains_now = std::mem::take(&mut self.drain_is_due);
            self.tell_sent();
            while let Some(event) = self.ring.next_event() {
                self.take(event)?;
                self.end_holds();
            }
            self.end_holds();
            self.run_queued();
            self.expire();
            if drains_now {
                self.drain();
            }
            self.accept_the_last();
        }
        self.cut();
        Ok(())
    }

    fn is_done(&self) -> bool {
        let is_last = match self.part {
            Part::Leads(_) => self.together.is_alone(),
            Part::Follows => true,
        };
        self.accepting == Accepting::No && self.open() == 0 && is_last
    }

    /// How many connections there are.
    fn open(&self) -> usize {
        self.conns.taken()
    }

    /// How many more there may be.
    pub(super) fn free_slots(&self) -> usize {
        self.conns_max.saturating_sub(self.open())
    }

    /// The one call of a round.
    fn enter(&mut self) -> io::Result<()> {
        self.forget_vain_watches();
        let wait = self.wait();
        let Self { ring, conns, sends, todo, service, together, part, .. } = self;
        let sends = sends.iter().filter_map(|send| {
            // It may have been closed since.
            let conn = conns.get(send.index)?;
            let (head, body) = conn.is_sending.then(|| conn.exchange.outgoing(|| send.at))??;
            let head = &head[..head.len().min(send.n_bytes)];
            let body = &body[..body.len().min(send.n_bytes - head.len())];
            Some((Id::from(send.index), Op::Send { socket: conn.socket(), head, body }))
        });
        let others = todo.iter().map(|&(id, todo)| {
            let op = match todo {
                Todo::Accept { many } => Op::Accept { listener: service.listener.as_fd(), many },
                Todo::Receive => Op::Receive(conns[id as u32].socket()),
                Todo::Room if conns[id as u32].is_half_closed => {
                    Op::Edges(conns[id as u32].socket(), PollFlags::OUT)
                }
                Todo::Room => Op::Poll(conns[id as u32].socket(), PollFlags::OUT),
                Todo::Cancel(kind) => Op::Cancel(kind),
                Todo::Gateway(flags) => {
                    let awaited = conns[(id & !GATEWAY) as u32].exchange.awaited();
                    Op::Poll(awaited.expect("vain watches were forgotten").file, flags)
                }
                Todo::Hear => {
                    let file = match (id, &*part) {
                        (SIGNALS, Part::Leads(signals)) => signals.as_fd(),
                        (DRAIN, _) => together.drain.as_fd(),
                        (STOP, _) => together.stop.as_fd(),
                        _ => together.gone.as_fd(),
                    };
                    Op::Poll(file, PollFlags::IN)
                }
            };
            (id, op)
        });
        ring.enter(sends.chain(others), wait)?;
        self.todo.clear();
        self.must_not_sleep = false;
        Ok(())
    }

    fn wait(&self) -> Wait {
        if self.must_not_sleep || self.drain_is_due || self.run_queue.len() > 0 {
            return Wait::No;
        }
        let rest = match self.accepting {
            Accepting::Rests(until) if self.free_slots() > 0 => until,
            _ => Nanos::MAX,
        };
        let timed = self.timers.next().unwrap_or(Nanos::MAX).min(self.run_queue.wake_at());
        let next = timed.min(rest).min(self.end);
        if next <= self.now { Wait::No } else { Wait::Until(next) }
    }

    fn take(&mut self, event: Event) -> io::Result<()> {
        let Event { id, what, ended } = event;
        match what {
            What::Accepted(result) => self.accepted(result, ended),
            What::Received(result) => self.arrived(id as u32, result, ended),
            What::Ready(flags) if id < LISTENER => {
                let flags = flags.unwrap_or(PollFlags::empty());
                self.has_room(id as u32, flags, ended);
            }
            What::Ready(_) if id & GATEWAY != 0 => self.gateway_ready((id & !GATEWAY) as u32),
            What::Ready(_) => self.hear(id)?,
        }
        Ok(())
    }

    /// One of the files that are no connections has something to say.
    fn hear(&mut self, id: Id) -> io::Result<()> {
        match (id, self.part) {
            (SIGNALS, Part::Leads(signals)) => {
                match signals.take()? {
                    Some(Stop::AtOnce) => self.end = self.now,
                    Some(Stop::Drain) => self.drain_soon(),
                    None => {}
                }
                self.todo.push((SIGNALS, Todo::Hear));
            }
            (DRAIN, _) => self.drain_soon(),
            (STOP, _) => self.end = self.now,
            _ => {
                self.together.gone.silence();
                if self.together.has_failed() {
                    self.end = self.now;
                }
                self.todo.push((GONE, Todo::Hear));
            }
        }
        Ok(())
    }

    /// The drain begins when what has arrived by now was seen: a request of those is still answered.
    fn drain_soon(&mut self) {
        if self.end == Nanos::MAX {
            let grace = self.service.shutdown_grace;
            self.end = self.now.saturating_add(grace);
            self.together.end();
            self.drain_is_due = true;
        }
    }

    /// Lets each connection end with the response it is at; what waits to be accepted is taken in
    /// before the port is closed.
    fn drain(&mut self) {
        self.is_draining = true;
        self.must_not_sleep = true;
        self.stop_accepting();
        if let Part::Leads(_) = self.part {
            self.service.begin_closing();
            let is_drained = self.service.is_drained();
            let tickets = if is_drained { 0 } else { self.service.tickets() };
            if self.together.hand_out(tickets) {
                self.service.stop_listening();
            }
        }
        for index in self.conns.numbers() {
            if let Some(conn) = self.conns.get_mut(index)
                && conn.state == RingConnState::Open
            {
                conn.exchange.finish();
                self.turn(index);
            }
        }
    }

    pub(super) fn admit(&mut self, socket: OwnedFd, peer: SocketAddr) {
        let (service, now) = (self.service, self.now);
        let index = self
            .conns
            .take(|exchange| exchange.reset_for(peer, now), || Exchange::new(service, peer, now));
        let conn = &mut self.conns[index];
        conn.take(socket);
        self.timers.arm(index, conn.exchange.deadline());
        self.receive(index);
    }

    /// Arms the receive of a connection, unless it is under way or there is nothing to come.
    fn receive(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        if conn.receiving == OpState::None && conn.stream == Stream::Open {
            conn.receiving = OpState::Pending;
            self.todo.push((index.into(), Todo::Receive));
        }
    }

    pub(super) fn stop_receiving(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        if conn.receiving == OpState::Pending {
            conn.receiving = OpState::Cancelling;
            self.todo.push((index.into(), Todo::Cancel(Kind::Receive)));
        }
    }

    /// Something came of a connection's receive.
    fn arrived(&mut self, index: u32, result: io::Result<()>, ended: bool) {
        let conn = &mut self.conns[index];
        if ended {
            conn.receiving = OpState::None;
        }
        let bytes = self.ring.received();
        if result.is_ok() && bytes.is_empty() {
            conn.stream = Stream::Ended;
        }
        match (conn.state, result) {
            (RingConnState::Free, _) => {
                unreachable!("a place is free when nothing is under way for it")
            }
            (RingConnState::Leaving(_), _) => self.leave(index),
            (RingConnState::Lingering { left, until }, Ok(())) if conn.stream == Stream::Open => {
                let left = left.saturating_sub(bytes.len());
                conn.state = RingConnState::Lingering { left, until };
                if left == 0 {
                    return self.go(index, Close::Normal);
                }
                self.receive(index);
            }
            (_, Ok(())) => self.take_in(index),
            // For want of a buffer, or by us for want of an ear; it goes on when there is one.
            (_, Err(error))
                if uring_server::is_starved(&error) || uring_server::is_cancelled(&error) =>
            {
                self.turn(index);
            }
            (_, Err(_)) => {
                conn.exchange.lost(self.now);
                self.go(index, Close::Normal);
            }
        }
    }

    /// Bytes of a client, or the end of them.
    fn take_in(&mut self, index: u32) {
        let now = socket_io::time(self.service, self.now);
        let conn = &mut self.conns[index];
        let bytes = self.ring.received();
        let mut used = 0;
        if conn.pending_input.is_empty() {
            conn.exchange.lend(&mut self.spare);
            used = feed(&mut conn.exchange, bytes, self.together.is_ending(), now);
        }
        if used < bytes.len() {
            conn.pending_input.extend_from_slice(&bytes[used..]);
        }
        self.turn(index);
        if self.conns.get(index).is_some_and(|conn| conn.pending_input.len() > PENDING_INPUT_MAX) {
            self.stop_receiving(index);
        }
    }

    /// Moves one connection on as far as it goes, or to the end of its turn.
    pub(super) fn turn(&mut self, index: u32) {
        self.conns[index].exchange.lend(&mut self.spare);
        self.advance(index);
        if let Some(conn) = self.conns.get_mut(index) {
            conn.exchange.take_back(&mut self.spare);
        }
    }

    fn advance(&mut self, index: u32) {
        let (service, now, ending) = (self.service, self.now, self.together.is_ending());
        loop {
            let conn = &mut self.conns[index];
            match conn.state {
                RingConnState::Open if !conn.is_sending => {}
                // It is to have its turn as soon as it has sent.
                RingConnState::Open => {
                    self.must_not_sleep = true;
                    return;
                }
                RingConnState::Lingering { .. } if conn.stream == Stream::Open => {
                    return self.receive(index);
                }
                RingConnState::Lingering { .. } => return self.go(index, Close::Normal),
                _ => return,
            }
            if self.send(index) {
                return;
            }
            let conn = &mut self.conns[index];
            let after_call = || AfterCall { now: socket_io::time(service, now), ending };
            // All that is received comes by the ring.
            let input = &mut InputState::Empty;
            let socket = conn.socket.as_ref().expect("an open connection has a socket").as_fd();
            let step = socket_io::advance(socket, &mut conn.exchange, input, after_call);
            self.timers.arm(index, conn.exchange.deadline());
            if step != Step::Gateway {
                self.unwatch_gateway(index);
            }
            let conn = &mut self.conns[index];
            match step {
                Step::Read | Step::Gateway if conn.feed_pending(ending, after_call().now) => {
                    continue;
                }
                Step::Read | Step::Gateway if conn.stream == Stream::Ended => {
                    conn.stream = Stream::Told;
                    conn.exchange.received(0, after_call().now);
                    continue;
                }
                Step::Read if conn.stream == Stream::Told => self.go(index, Close::Normal),
                Step::Read => self.receive(index),
                Step::Gateway => {
                    self.receive(index);
                    self.watch_gateway(index);
                }
                Step::Write => self.await_room(index),
                Step::Turn => self.queue(index),
                Step::Hold(until) => {
                    self.run_queue.hold_until(index, until, &mut self.conns[index].mark);
                }
                Step::Close(how) => self.close(index, how),
            }
            return;
        }
    }

    /// Has the next call send what the connection wants to, if that lies in memory; returns whether it
    /// does.
    fn send(&mut self, index: u32) -> bool {
        let at = socket_io::time(self.service, self.now);
        let conn = &mut self.conns[index];
        let Some((head, body)) = conn.exchange.outgoing(|| at) else { return false };
        if conn.is_blocked {
            return true;
        }
        let n_bytes = (head.len() + body.len()).min(socket_io::TURN_BYTES_MAX);
        conn.is_sending = true;
        self.sends.push(Send { index, n_bytes, at });
        let mut deadline = conn.exchange.deadline();
        if conn.exchange.rests_after(n_bytes)
            && conn.pending_input.is_empty()
            && conn.stream == Stream::Open
        {
            // That of the wait for the next request, which nobody may hear begin.
            let idle = self.service.config.keep_alive.timeout;
            deadline = deadline.min(self.now.saturating_add(idle));
        } else {
            self.must_not_sleep = true;
        }
        self.timers.arm(index, deadline);
        true
    }

    /// Tells each connection that was sent to how much was taken.
    fn tell_sent(&mut self) {
        for cut in self.ring.cut() {
            self.conns[cut.id as u32].cut = Some(cut.sent);
        }
        let mut sent = std::mem::take(&mut self.sent);
        std::mem::swap(&mut sent, &mut self.sends);
        for Send { index, n_bytes, at } in sent.drain(..) {
            let Some(conn) = self.conns.get_mut(index) else { continue };
            if !std::mem::take(&mut conn.is_sending) {
                continue;
            }
            conn.exchange.lend(&mut self.spare);
            match conn.cut.take() {
                None => {
                    conn.exchange.wrote(n_bytes, at);
                    self.turn(index);
                }
                Some(Some(taken)) => {
                    if taken > 0 {
                        conn.exchange.wrote(taken, self.now);
                    }
                    self.timers.arm(index, self.conns[index].exchange.deadline());
                    self.await_room(index);
                }
                Some(None) => {
                    conn.exchange.lost(self.now);
                    self.go(index, Close::Normal);
                }
            }
        }
        self.sent = sent;
    }

    fn await_room(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        conn.is_blocked = true;
        if conn.room == OpState::None {
            conn.room = OpState::Pending;
            self.todo.push((index.into(), Todo::Room));
        }
    }

    fn has_room(&mut self, index: u32, flags: PollFlags, ended: bool) {
        let conn = &mut self.conns[index];
        conn.is_half_closed |= flags.contains(PollFlags::RDHUP);
        conn.is_blocked = false;
        if ended {
            conn.room = OpState::None;
        }
        match conn.state {
            RingConnState::Leaving(_) => self.leave(index),
            _ => self.turn(index),
        }
    }

    /// Gives a turn to each connection whose hold is over: between any two events, since each may take
    /// as long as a hold may end late.
    fn end_holds(&mut self) {
        while let Some(index) = self.run_queue.pop_held(clock::monotonic) {
            if let Some(conn) = self.conns.get_mut(index) {
                conn.mark.release_hold();
                self.turn(index);
            }
        }
    }

    fn queue(&mut self, index: u32) {
        self.run_queue.push(index, &mut self.conns[index].mark);
    }

    fn run_queued(&mut self) {
        for _ in 0..self.run_queue.len() {
            let Some(index) = self.run_queue.pop() else { return };
            if let Some(conn) = self.conns.get_mut(index) {
                conn.mark.leave_queue();
                self.turn(index);
            }
        }
    }

    fn expire(&mut self) {
        while let Some(index) = self.timers.expired(self.now) {
            let Some(conn) = self.conns.get_mut(index) else { continue };
            match conn.state {
                RingConnState::Free | RingConnState::Leaving(_) => {}
                RingConnState::Lingering { until, .. } if until <= self.now => {
                    self.go(index, Close::Normal);
                }
                RingConnState::Lingering { until, .. } => self.timers.arm(index, until),
                RingConnState::Open if conn.exchange.deadline() <= self.now && !conn.is_sending => {
                    conn.exchange.timed_out(self.now);
                    self.turn(index);
                }
                // What is handed over just now has its time yet: a tick at the least.
                RingConnState::Open => {
                    let deadline = conn.exchange.deadline();
                    self.timers.arm(index, deadline.max(self.now.saturating_add(Nanos(1))));
                }
            }
        }
    }

    fn close(&mut self, index: u32, how: Close) {
        let conn = &mut self.conns[index];
        if how != Close::Linger || conn.stream != Stream::Open {
            return self.go(index, how);
        }
        conn.pending_input = Vec::new();
        if listener::shutdown_send(conn.socket()).is_err() {
            return self.go(index, Close::Normal);
        }
        let until = self.now.saturating_add(LINGER_MAX);
        conn.state = RingConnState::Lingering { left: LINGER_BYTES_MAX, until };
        self.timers.arm(index, until);
        self.receive(index);
    }

    /// Ends what is under way for a connection, and then the connection.
    fn go(&mut self, index: u32, how: Close) {
        self.conns[index].is_sending = false;
        self.conns[index].state = RingConnState::Leaving(how);
        self.stop_receiving(index);
        let conn = &mut self.conns[index];
        if conn.room == OpState::Pending {
            conn.room = OpState::Cancelling;
            self.todo.push((index.into(), Todo::Cancel(Kind::Poll)));
        }
        self.unwatch_gateway(index);
        self.leave(index);
    }

    /// Closes a connection that is to go, once nothing is under way for it.
    pub(super) fn leave(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        let RingConnState::Leaving(how) = conn.state else { return };
        if conn.has_pending_ops() {
            return;
        }
        if let Some(socket) = conn.socket.take() {
            // One that lingers has done so.
            socket_io::close(socket, if how == Close::Reset { how } else { Close::Normal });
        }
        conn.clear();
        conn.exchange.take_back(&mut self.spare);
        self.timers.disarm(index);
        self.conns.free(index);
    }

    /// Closes what is left when there is no more time for it.
    fn cut(&mut self) {
        for index in self.conns.numbers() {
            if let Some(conn) = self.conns.get_mut(index)
                && conn.state == RingConnState::Open
            {
                conn.exchange.lost(self.now);
            }
        }
    }
}
