//! The side of a loop on which it has hands: connections that go to them, wait for them, and come
//! back. Must not know what they do. Start reading at [`Loop::hand_over`].

use std::collections::VecDeque;

use sys::watch::Watch;

use super::super::hands::Job;
use super::{Accepting, Loop, Phase};

impl<W: Watch> Loop<'_, '_, W> {
    /// Gives a connection that is to be answered to the hands, or has it wait for them.
    pub(super) fn hand_over(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        let was_watched = matches!(conn.phase, Phase::Watched(_));
        let (Phase::Fresh(socket) | Phase::Watched(socket)) =
            std::mem::replace(&mut conn.phase, Phase::Away { was_watched })
        else {
            return;
        };
        let exchange = conn.exchange.take().expect("a connection goes away once");
        self.timers.disarm(index);
        self.parked.push_back(Job { index, socket, exchange });
        self.send_parked();
    }

    fn send_parked(&mut self) {
        let Some(hands) = self.hands else { return };
        while self.away < hands.jobs_max()
            && let Some(job) = self.parked.pop_front()
        {
            self.away += 1;
            hands.ask(job);
        }
        let waiting = self.away.saturating_sub(hands.threads()) + self.parked.len();
        self.service.board.queue(waiting);
    }

    /// Goes on with the connections that the hands have answered.
    pub(super) fn take_back(&mut self) {
        let Some(hands) = self.hands else { return };
        let mut done = VecDeque::new();
        hands.take_back(&mut done);
        self.away -= done.len();
        for Job { index, socket, mut exchange } in done {
            exchange.hold_answers();
            let conn = &mut self.conns[index as usize];
            conn.phase = match conn.phase {
                Phase::Away { was_watched: false } => Phase::Fresh(socket),
                _ => Phase::Watched(socket),
            };
            conn.exchange = Some(exchange);
            match self.acceptor.is_draining() {
                true => self.finish(index),
                false => self.turn(index),
            }
        }
        self.send_parked();
        if self.parked.is_empty() && matches!(self.accepting, Accepting::Rests(_)) {
            self.accept_again();
        }
    }
}
