//! How a loop works with answer threads: connections go to them, wait for them and come back.
//! Start reading at [`Loop::hand_over`].

use std::collections::VecDeque;

use sys::watch::Watch;

use super::super::answer_threads::AnswerJob;
use super::{Accepting, Loop, LoopConnState, TakesTurns as _};

impl<W: Watch> Loop<'_, '_, W> {
    /// Gives a connection with a complete request to the answer threads, or queues it for them.
    pub(super) fn hand_over(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        let was_watched = matches!(conn.state, LoopConnState::Watched(_));
        let (LoopConnState::Fresh(socket) | LoopConnState::Watched(socket)) =
            std::mem::replace(&mut conn.state, LoopConnState::HandedOver { was_watched })
        else {
            return;
        };
        let exchange = conn.exchange.take().expect("a connection goes away once");
        self.timers.disarm(index);
        self.waiting_jobs.push_back(AnswerJob { index, socket, exchange });
        self.submit_waiting();
    }

    fn submit_waiting(&mut self) {
        let Some(answer_threads) = self.answer_threads else { return };
        while self.handed_over < answer_threads.jobs_max
            && let Some(job) = self.waiting_jobs.pop_front()
        {
            self.handed_over += 1;
            answer_threads.submit(job);
        }
        let waiting =
            self.handed_over.saturating_sub(answer_threads.threads) + self.waiting_jobs.len();
        self.service.board.queue(waiting);
    }

    /// Takes back the connections that the answer threads have answered.
    pub(super) fn take_back(&mut self) {
        let Some(answer_threads) = self.answer_threads else { return };
        let mut done = VecDeque::new();
        answer_threads.take_back(&mut done);
        self.handed_over -= done.len();
        for AnswerJob { index, socket, mut exchange } in done {
            exchange.hold_answers();
            let conn = &mut self.conns[index as usize];
            conn.state = match conn.state {
                LoopConnState::HandedOver { was_watched: false } => LoopConnState::Fresh(socket),
                _ => LoopConnState::Watched(socket),
            };
            conn.exchange = Some(exchange);
            match self.acceptor.is_draining() {
                true => self.finish(index),
                false => self.turn(index),
            }
        }
        self.submit_waiting();
        if self.waiting_jobs.is_empty() && matches!(self.accepting, Accepting::Rests(_)) {
            self.accept_again();
        }
    }
}
