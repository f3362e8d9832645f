//! How a ring waits for a gateway: one poll for the gateway's file, in addition to the receive from the client. Start
//! reading at [`RingLoop::watch_gateway`].

use rustix::event::PollFlags;
use sys::uring_server::Kind;

use super::super::conn::{OpState, RingConnState};
use super::{GATEWAY, RingLoop, TakesTurns as _, Todo};

impl RingLoop<'_> {
    /// Watches the file of the gateway that a connection waits for, and no other.
    pub(super) fn watch_gateway(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        let Some(awaited) = conn.exchange.awaited() else { return };
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, awaited.reads);
        flags.set(PollFlags::OUT, awaited.writes);
        let wanted = (awaited.id, flags);
        match conn.watching {
            OpState::None => {
                conn.watching = OpState::Pending;
                conn.watched = wanted;
                self.todo.push((GATEWAY | u64::from(index), Todo::Gateway(flags)));
            }
            // The new one starts when the old one has ended.
            OpState::Pending if conn.watched != wanted => self.unwatch_gateway(index),
            OpState::Pending | OpState::Cancelling => {}
        }
    }

    /// Ends the watch. Until it has ended the kernel keeps the file open, so a program that writes
    /// to it would not learn that nobody reads.
    pub(super) fn unwatch_gateway(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        if conn.watching == OpState::Pending {
            conn.watching = OpState::Cancelling;
            self.todo.push((GATEWAY | u64::from(index), Todo::Cancel(Kind::Poll)));
        }
    }

    /// Handles an event of the gateway's file, or the end of the watch.
    pub(super) fn gateway_ready(&mut self, index: u32) {
        let conn = &mut self.conns[index];
        conn.watching = OpState::None;
        match conn.state {
            RingConnState::Leaving(_) => self.leave(index),
            _ => self.turn(index),
        }
    }

    /// Removes queued watches whose file was closed or replaced in this round.
    pub(super) fn forget_vain_watches(&mut self) {
        let mut at = 0;
        while let Some(&(id, todo)) = self.todo.get(at) {
            let index = (id & !GATEWAY) as u32;
            if matches!(todo, Todo::Gateway(_)) && !self.is_awaited(index) {
                self.todo.remove(at);
                let conn = &mut self.conns[index];
                conn.watching = OpState::None;
                match conn.state {
                    RingConnState::Open => self.watch_gateway(index),
                    _ => self.leave(index),
                }
            } else {
                at += 1;
            }
        }
    }

    fn is_awaited(&self, index: u32) -> bool {
        let conn = &self.conns[index];
        conn.exchange.awaited().is_some_and(|awaited| awaited.id == conn.watched.0)
    }
}
