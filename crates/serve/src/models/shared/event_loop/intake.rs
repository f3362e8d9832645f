//! How an event loop accepts: when it watches the listener, what it does without room, and how it
//! shares with other loops. Start reading at [`Loop::accept_some`].

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use sys::watch::Watch;
use units::Nanos;

use super::super::acceptor::{Next, Room};
use super::super::loop_group::LoopGroup;
use super::super::socket_io::{EXHAUSTED_REST, InputState};
use super::{
    Accepting, Conn, LISTENER, Loop, LoopConnState, Overflow, Rules, RunMark, TakesTurns as _,
};
use site::board::Counter;
use site::exchange::{Close, Exchange};

/// After how many accepts a loop puts a shared listener behind those of the other loops (nginx's
/// ngx_reorder_accept_events). The kernel wakes the first loop that watches the listener, which
/// would otherwise get most connections.
const REORDER_ACCEPTS: usize = 16;

/// One connection in this many is kept free by closing idle ones (nginx's ngx_drain_connections).
const FREE_SHARE: usize = 16;

/// The most idle connections closed to make room for one (from nginx too).
const MADE_ROOM_MAX: usize = 32;

/// Pause after a search that found no idle connection, since a search looks at all connections.
const IDLE_LOOK_REST: Nanos = Nanos::from_millis(10);

impl<W: Watch> Loop<'_, '_, W> {
    pub(super) fn accept_some(&mut self) {
        if self.accepting != Accepting::Yes {
            return;
        }
        self.acceptor.begin_round();
        loop {
            if self.open() >= self.rules.conns_max {
                self.make_room();
            }
            let room = match self.rules.overflow {
                _ if !self.waiting_jobs.is_empty() => Room::Waits,
                _ if self.open() < self.rules.conns_max => Room::Free,
                Overflow::Wait => Room::Waits,
                Overflow::Close => Room::Closes,
            };
            match self.acceptor.next(room) {
                Next::Admit(socket, peer) => {
                    self.make_room();
                    self.admit(socket, peer);
                    if self.must_step_back() {
                        return self.rest(Nanos::MAX);
                    }
                }
                Next::Done => return self.let_others_accept(),
                Next::Rest(most) => return self.rest(self.now.saturating_add(most)),
                Next::Over => return self.stop_listening(),
            }
        }
    }

    /// Whether a full loop must stop watching the listener. The kernel wakes only one watching
    /// loop, and if that one has no room, no loop would accept the connection.
    fn must_step_back(&self) -> bool {
        let Rules { conns_max, overflow, is_shared, .. } = self.rules;
        let is_full = self.open() >= conns_max;
        is_shared && is_full && overflow == Overflow::Wait && !self.acceptor.is_draining()
    }

    /// Puts the listener behind those of the other loops now and then.
    fn let_others_accept(&mut self) {
        if self.rules.is_shared && self.accepted >= REORDER_ACCEPTS {
            self.accepted = 0;
            self.watch.remove(self.acceptor.listener());
            self.accept_again();
        }
    }

    /// With [`Overflow::Close`]: closes idle connections before new ones have to be closed, those
    /// with the nearest deadline first. Not in a drain: there new ones wait for room, and an idle
    /// one was just accepted and is about to send its request.
    fn make_room(&mut self) {
        let Rules { conns_max, overflow, .. } = self.rules;
        let free = conns_max.saturating_sub(self.open());
        let is_draining = self.acceptor.is_draining();
        if overflow == Overflow::Wait || is_draining || free > conns_max / FREE_SHARE {
            return;
        }
        if self.idle.is_empty() && self.idle_look <= self.now {
            let conns = self.conns.iter().zip(0..);
            self.idle.extend(conns.filter_map(|(conn, index)| Some((conn.idle_until()?, index))));
            self.idle.sort_unstable_by_key(|&(deadline, _)| std::cmp::Reverse(deadline));
            if self.idle.is_empty() {
                self.idle_look = self.now.saturating_add(IDLE_LOOK_REST);
            }
        }
        let mut left = (self.idle.len() / 8).clamp(1, MADE_ROOM_MAX);
        while left > 0
            && let Some((deadline, index)) = self.idle.pop()
        {
            left -= usize::from(self.close_idle(index, deadline));
        }
    }

    /// Closes a connection if it still waits with this deadline. Returns whether it did. A request
    /// that has arrived but was not read yet is answered (nginx drops it).
    fn close_idle(&mut self, index: u32, deadline: Nanos) -> bool {
        if self.conns[index as usize].idle_until() != Some(deadline) {
            return false;
        }
        self.conns[index as usize].input = InputState::MayHave;
        self.turn(index);
        let was_idle = self.conns[index as usize].idle_until() == Some(deadline);
        if was_idle {
            self.service.board.count(Counter::KeepAliveClosed);
            self.conns[index as usize].exchange().ended();
            self.close(index, Close::Normal);
        }
        was_idle
    }

    /// In a drain: accepts what still waits, as far as there is room. We cannot rely on the
    /// listener's event, which does not come for a connection that has gone in the meantime.
    pub(super) fn accept_the_last(&mut self) {
        while self.acceptor.is_draining() && self.accepting == Accepting::Yes {
            self.accept_some();
        }
        // Even if the loop is full: later connections are refused, or belong to the next server.
        if self.acceptor.is_over() && self.accepting != Accepting::No {
            self.stop_listening();
        }
    }

    fn admit(&mut self, socket: OwnedFd, peer: SocketAddr) {
        let index = match self.free.pop() {
            Some(index) => {
                self.conns[index as usize].exchange().reset_for(peer, self.now);
                index
            }
            None => {
                let exchange = Exchange::new(self.service, peer, self.now);
                self.conns.push(Conn {
                    exchange: Some(Box::new(exchange)),
                    input: InputState::MayHave,
                    generation: 0,
                    mark: RunMark::default(),
                    watches: 0,
                    state: LoopConnState::Free,
                });
                self.conns.len() as u32 - 1
            }
        };
        let conn = &mut self.conns[index as usize];
        conn.input = InputState::MayHave;
        conn.state = LoopConnState::Fresh(socket);
        if self.answer_threads.is_some() {
            conn.exchange().hold_answers();
        }
        self.accepted += 1;
        self.queue(index);
    }

    pub(super) fn watch_listener(&mut self) -> io::Result<()> {
        match self.rules.is_shared {
            true => self.watch.add_shared(self.acceptor.listener(), LISTENER),
            false => self.watch.add_source(self.acceptor.listener(), LISTENER),
        }
    }

    /// Takes the listener out of the set, where it would stay ready and keep the loop awake.
    pub(super) fn rest(&mut self, until: Nanos) {
        if self.accepting == Accepting::Yes {
            self.watch.remove(self.acceptor.listener());
            self.accepting = Accepting::Rests(until);
        }
    }

    pub(super) fn accept_again(&mut self) {
        self.accepting = match self.watch_listener() {
            Ok(()) => Accepting::Yes,
            Err(_) => Accepting::Rests(self.now.saturating_add(EXHAUSTED_REST)),
        };
    }

    fn stop_listening(&mut self) {
        self.accepting = Accepting::No;
        self.watch.remove(self.acceptor.listener());
        self.service.stop_listening_at(self.acceptor.listener());
        if self.group.is_none_or(LoopGroup::stops_accepting) {
            self.service.stop_listening();
        }
    }
}
