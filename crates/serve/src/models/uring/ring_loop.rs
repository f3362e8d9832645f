//! The loop of one ring: submits operations, and moves on each connection with news. Start reading
//! at [`RingLoop::serve`].
//!
//! A round: one call submits the answers and operations of the last round and waits for events.
//! Then each connection that was sent to is told, each event leads to a request and its answer, and
//! deadlines, holds and turns follow. Output is not copied: the connection keeps it until the call
//! is over.
//!
//! A complete send has no event. Its connection learns of it after the call, which may sleep long
//! if nothing else happens. So a connection that has more to do than wait for its next request sets
//! `must_not_sleep`. The others are told the time at which the answer was submitted.

mod accepting;
mod watching;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::event::PollFlags;
use sys::clock;
use sys::listener;
use sys::signals::Stop;
use sys::uring_server::{self, Event, Id, Kind, Op, ServerRing, Size, Wait, What};
use units::Nanos;

use super::conn::{ConnSlots, OpState, PENDING_INPUT_MAX, RingConnState, Stream, feed};
use super::ring_group::{RingGroup, RingRole};
use crate::models::shared::run_queue::{RunMark, RunQueue, TakesTurns};
use crate::models::shared::socket_io::{
    self, AfterCall, InputState, LINGER_BYTES_MAX, LINGER_MAX, Step,
};
use crate::models::shared::timers::Timers;
use crate::service::Service;
use accepting::Accepting;
use site::exchange::{Close, Exchange, Spare};

/// Ids of operations that belong to no connection. Those of a connection are its slot number.
const LISTENER: Id = 1 << 32;
const SIGNALS: Id = LISTENER + 1;
const DRAIN: Id = LISTENER + 2;
const STOP: Id = LISTENER + 3;
const GONE: Id = LISTENER + 4;

/// In the id of an operation: it is about the gateway of this connection.
const GATEWAY: Id = 1 << 33;

/// Output buffers that are kept for reuse. A call rarely sends more.
const ANSWERS_KEPT_MAX: usize = 64;

/// One ring with its connections.
pub(super) struct RingLoop<'a> {
    service: &'a Service,
    group: &'a RingGroup,
    role: RingRole<'a>,
    ring: ServerRing,
    conns: ConnSlots<'a>,
    /// The most connections.
    conns_max: usize,
    /// Buffers that all connections share, unless one stops within a request or an answer; as many
    /// output buffers as one call sends.
    spare: Spare,
    /// Connections that used up their last turn.
    run_queue: RunQueue,
    timers: Timers,
    accepting: Accepting,
    /// What the next call submits: sends, and everything else.
    sends: Vec<Send>,
    todo: Vec<(Id, Todo)>,
    /// Sends of the last call; kept to reuse its memory.
    sent: Vec<Send>,
    /// A connection has more to do than wait: the next call must not sleep.
    must_not_sleep: bool,
    /// A drain was asked for. It begins in the next round, after everything that had arrived was
    /// handled.
    drain_is_due: bool,
    /// The drain has begun: waiting connections are accepted, then the port is closed.
    is_draining: bool,
    /// When the loop ends at the latest.
    end: Nanos,
    /// The time when the last call returned; read once for all its events.
    now: Nanos,
}

/// An operation other than a send.
#[derive(Debug, Clone, Copy)]
enum Todo {
    Accept {
        many: bool,
    },
    Receive,
    Room,
    /// Poll the file of a gateway for these.
    Gateway(PollFlags),
    /// Poll a file that is no connection.
    Hear,
    Cancel(Kind),
}

/// An answer or a part of one: how many bytes of a connection's output to send.
#[derive(Debug, Clone, Copy)]
struct Send {
    index: u32,
    n_bytes: usize,
    /// When the connection asked for it.
    at: Nanos,
}

impl<'a> RingLoop<'a> {
    pub(super) fn new(
        service: &'a Service,
        group: &'a RingGroup,
        role: RingRole<'a>,
        conns_max: usize,
        buffers: u16,
    ) -> io::Result<Self> {
        let now = clock::monotonic();
        let operations = u32::try_from(conns_max).unwrap_or(u32::MAX);
        Ok(Self {
            service,
            group,
            role,
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

    /// Serves until the server ends.
    pub(super) fn serve(mut self) -> io::Result<()> {
        match self.role {
            RingRole::Leads(_) => self.todo.extend([(SIGNALS, Todo::Hear), (GONE, Todo::Hear)]),
            RingRole::Follows => self.todo.extend([(DRAIN, Todo::Hear), (STOP, Todo::Hear)]),
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
        let is_last = match self.role {
            RingRole::Leads(_) => self.group.is_alone(),
            RingRole::Follows => true,
        };
        self.accepting == Accepting::No && self.open() == 0 && is_last
    }

    /// How many connections there are.
    fn open(&self) -> usize {
        self.conns.taken()
    }

    /// How many more connections there may be.
    fn free_slots(&self) -> usize {
        self.conns_max.saturating_sub(self.open())
    }

    /// The one system call of a round.
    fn enter(&mut self) -> io::Result<()> {
        self.forget_vain_watches();
        let wait = self.wait();
        let Self { ring, conns, sends, todo, service, group, role, .. } = self;
        let sends = sends.iter().filter_map(|send| {
            // The connection may have been closed in the meantime.
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
                    let file = match (id, &*role) {
                        (SIGNALS, RingRole::Leads(signals)) => signals.as_fd(),
                        (DRAIN, _) => group.drain.as_fd(),
                        (STOP, _) => group.stop.as_fd(),
                        _ => group.gone.as_fd(),
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

    /// Handles an event of a file that is no connection.
    fn hear(&mut self, id: Id) -> io::Result<()> {
        match (id, self.role) {
            (SIGNALS, RingRole::Leads(signals)) => {
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
                self.group.gone.hush();
                if self.group.has_failed() {
                    self.end = self.now;
                }
                self.todo.push((GONE, Todo::Hear));
            }
        }
        Ok(())
    }

    /// Schedules the drain for after this round, so that a request that has arrived is still
    /// answered.
    fn drain_soon(&mut self) {
        if self.end == Nanos::MAX {
            self.end = self.now.saturating_add(self.service.shutdown_grace);
            self.group.end();
            self.drain_is_due = true;
        }
    }

    /// Begins the drain: accepts what waits, closes the port, and lets each connection finish its
    /// response.
    fn drain(&mut self) {
        self.is_draining = true;
        self.must_not_sleep = true;
        self.stop_accepting();
        if let RingRole::Leads(_) = self.role {
            self.service.begin_closing();
            let is_drained = self.service.is_drained();
            let tickets = if is_drained { 0 } else { self.service.tickets() };
            if self.group.hand_out(tickets) {
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

    fn admit(&mut self, socket: OwnedFd, peer: SocketAddr) {
        let (service, now) = (self.service, self.now);
        let index = self
            .conns
            .take(|exchange| exchange.reset_for(peer, now), || Exchange::new(service, peer, now));
        let conn = &mut self.conns[index];
        conn.take(socket);
        self.timers.arm(index, conn.exchange.deadline());
        self.receive(index);
    }

    /// Submits a receive for a connection, unless one is pending or no input can come.
    fn receive(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        if conn.receiving == OpState::None && conn.stream == Stream::Open {
            conn.receiving = OpState::Pending;
            self.todo.push((index.into(), Todo::Receive));
        }
    }

    fn stop_receiving(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        if conn.receiving == OpState::Pending {
            conn.receiving = OpState::Cancelling;
            self.todo.push((index.into(), Todo::Cancel(Kind::Receive)));
        }
    }

    /// Handles an event of a receive.
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
            // Stopped for lack of a buffer, or by us because the input was full. It goes on when
            // there is room.
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

    /// Handles bytes of a client, or the end of its stream.
    fn take_in(&mut self, index: u32) {
        let now = socket_io::time(self.service, self.now);
        let conn = &mut self.conns[index];
        let bytes = self.ring.received();
        let mut used = 0;
        if conn.pending_input.is_empty() {
            conn.exchange.lend(&mut self.spare);
            used = feed(&mut conn.exchange, bytes, self.group.is_ending(), now);
        }
        if used < bytes.len() {
            conn.pending_input.extend_from_slice(&bytes[used..]);
        }
        self.turn(index);
        if self.conns.get(index).is_some_and(|conn| conn.pending_input.len() > PENDING_INPUT_MAX) {
            self.stop_receiving(index);
        }
    }

    fn advance(&mut self, index: u32) {
        let (service, now, ending) = (self.service, self.now, self.group.is_ending());
        loop {
            let conn = &mut self.conns[index];
            match conn.state {
                RingConnState::Open if !conn.is_sending => {}
                // It gets its turn as soon as the send is over.
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
            // All input comes through the ring.
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

    /// Submits a connection's output with the next call if it lies in memory. Returns whether it
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
            // The deadline of the wait for the next request, whose beginning has no event.
            let idle = self.service.config.keep_alive.timeout;
            deadline = deadline.min(self.now.saturating_add(idle));
        } else {
            self.must_not_sleep = true;
        }
        self.timers.arm(index, deadline);
        true
    }

    /// Tells each connection how much of its output was sent.
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

    fn queue(&mut self, index: u32) {
        self.run_queue.push(index, &mut self.conns[index].mark);
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
                // Output of this round gets at least one more tick.
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

    /// Cancels the pending operations of a connection, then closes it.
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

    /// Closes a connection that is to go, if no operation is pending.
    fn leave(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        let RingConnState::Leaving(how) = conn.state else { return };
        if conn.has_pending_ops() {
            return;
        }
        if let Some(socket) = conn.socket.take() {
            // A lingering connection has already lingered.
            socket_io::close(socket, if how == Close::Reset { how } else { Close::Normal });
        }
        conn.clear();
        conn.exchange.take_back(&mut self.spare);
        self.timers.disarm(index);
        self.conns.free(index);
    }

    /// Cuts all connections.
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

impl TakesTurns for RingLoop<'_> {
    fn run_queue(&mut self) -> &mut RunQueue {
        &mut self.run_queue
    }

    fn mark(&mut self, index: u32) -> Option<&mut RunMark> {
        Some(&mut self.conns.get_mut(index)?.mark)
    }

    fn turn(&mut self, index: u32) {
        self.conns[index].exchange.lend(&mut self.spare);
        self.advance(index);
        if let Some(conn) = self.conns.get_mut(index) {
            conn.exchange.take_back(&mut self.spare);
        }
    }
}
