//! The meaning of an operation's result for its slot. Owns the interpretation of results. Start
//! reading at [`UringDriver::take`].

use std::io;

use io_uring::cqueue;

use super::chains::Event;
use super::conn::{self, Operation};
use super::{UringDriver, alarm, receives};
use crate::driver::{Failure, Slot};
use crate::shared::ConnPhase;
use crate::socket;
use units::Nanos;

impl UringDriver {
    /// Takes one completion: adds it to its slot's chain, or drops it if it is from an earlier use.
    pub(super) fn take(&mut self, completion: &cqueue::Entry) {
        let (token, result) = (completion.user_data(), completion.result());
        let ended = !cqueue::more(completion.flags());
        let Some((kind, slot)) = conn::parse(token) else {
            if token == alarm::token() {
                self.alarm.rang();
            }
            return;
        };
        if ended && kind != Operation::Send {
            self.n_in_flight -= 1;
        }
        if token != self.token(slot, kind) {
            if let Some(id) = cqueue::buffer_select(completion.flags()) {
                self.buffers.give_back(id);
            }
            self.orphans.retain(|(orphan, _)| *orphan != token);
            return;
        }
        match kind {
            Operation::Connect => self.connect_ended(slot, result),
            Operation::Receive => self.arrived_on(slot, completion),
            Operation::Send => self.sent_in_part(slot, result),
            Operation::SendRest => self.sent_rest(slot, result),
            Operation::Poll => self.polled(slot, completion),
            Operation::Cancel | Operation::Alarm => {}
        }
    }

    /// A connecting socket has an event.
    fn connect_ended(&mut self, slot: Slot, result: i32) {
        let gone = i32::from(libc::POLLERR | libc::POLLHUP);
        if result >= 0 && result & gone == 0 {
            return self.connected(slot, None);
        }
        let socket = self.conns[slot.0 as usize].socket.as_ref().expect("its token is of this use");
        let error = socket::pending_error(socket);
        self.fails(slot, error.as_ref().map_or(Failure::Reset, Failure::from));
    }

    /// The connection is established, since `at` if that is known.
    pub(super) fn connected(&mut self, slot: Slot, at: Option<Nanos>) {
        self.conns[slot.0 as usize].phase = ConnPhase::Open;
        self.chains.append(slot, Event::Connected(at));
    }

    fn arrived_on(&mut self, slot: Slot, completion: &cqueue::Entry) {
        let result = completion.result();
        let stamped = self.header.is_some();
        let conn = &mut self.conns[slot.0 as usize];
        let ended = !cqueue::more(completion.flags());
        if ended {
            conn.receiving = None;
        }
        let filled = cqueue::buffer_select(completion.flags())
            .map(|id| receives::filled(stamped, id, result.max(0) as u32));
        match filled {
            Some(filled) if filled.n_bytes > 0 => {
                return self.chains.append(slot, Event::Received(filled));
            }
            Some(filled) => self.buffers.give_back(filled.id),
            None => {}
        }
        match -result {
            libc::ENOBUFS => {
                self.n_starved += 1;
                conn.starved = true;
                self.starved.push_back((slot, conn.generation));
            }
            // We cancelled it, to receive in another way.
            libc::ECANCELED => self.receive(slot),
            // The end; with a prefix if stamps are requested.
            ..=0 => match conn.send_failure.take() {
                Some(failure) => self.fails(slot, failure),
                None => {
                    conn.phase = ConnPhase::Ended;
                    self.chains.append(slot, Event::Closed);
                }
            },
            errno => {
                let failure = conn.send_failure.take().unwrap_or_else(|| failure(errno));
                self.fails(slot, failure);
            }
        }
    }

    /// The kernel took only the first `result` bytes of a staged send, or none, or it failed.
    fn sent_in_part(&mut self, slot: Slot, result: i32) {
        if result < 0 && result != -libc::EAGAIN {
            return self.send_fails(slot, -result);
        }
        let staged = self.staged.iter().find(|staged| staged.slot == slot);
        let staged = staged.expect("what fails in part fails as it is handed over");
        let left = &self.staged_bytes[staged.from..][..staged.n_bytes][result.max(0) as usize..];
        let conn = &mut self.conns[slot.0 as usize];
        conn.unsent.clear();
        conn.unsent.extend_from_slice(left);
        self.send_rest(slot);
    }

    fn sent_rest(&mut self, slot: Slot, result: i32) {
        let conn = &mut self.conns[slot.0 as usize];
        conn.sending = false;
        let n_unsent = conn.unsent.len();
        if result < 0 {
            return self.send_fails(slot, -result);
        }
        if result as usize != n_unsent {
            // Fewer than requested despite MSG_WAITALL: an error happened in between, and the next
            // send reports it.
            conn.unsent.drain(..result as usize);
            return self.send_rest(slot);
        }
        conn.unsent.clear();
        if !conn.queued.is_empty() {
            std::mem::swap(&mut conn.unsent, &mut conn.queued);
            self.send_rest(slot);
        }
    }

    /// A server may refuse a long request before it has all of it. Its reply is still to be
    /// received, and the failure is reported after it.
    pub(super) fn send_fails(&mut self, slot: Slot, errno: i32) {
        let conn = &mut self.conns[slot.0 as usize];
        if conn.phase == ConnPhase::Open {
            conn.send_failure = Some(failure(errno));
            if conn.polled {
                // The event that announced it may have been processed already.
                conn.drains = true;
                self.readable(slot);
            }
        } else {
            self.fails(slot, failure(errno));
        }
    }

    pub(super) fn fails(&mut self, slot: Slot, failure: Failure) {
        let conn = &mut self.conns[slot.0 as usize];
        if conn.phase != ConnPhase::Failed {
            conn.phase = ConnPhase::Failed;
            self.chains.append(slot, Event::Failed(failure));
        }
    }
}

fn failure(errno: i32) -> Failure {
    Failure::from(&io::Error::from_raw_os_error(errno))
}
