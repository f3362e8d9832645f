//! Connections whose bodies are discarded: polled by the ring, read by recv(2). Owns the order of their reads. Start
//! reading at [`UringDriver::read`].
//!
//! The size of a body that nobody needs is only known after the head before it has been parsed. A ring entry that
//! discards would be submitted with the next wait, which then returns at once with what was there: one more round for
//! each body. An immediate call costs less than that round; and one poll stays armed, while single receives are armed
//! one by one (figures: ARCHITECTURE.md). From its first discard on, a connection is polled until it is closed.

use io_uring::types::Fd;
use io_uring::{cqueue, opcode, squeue};
use std::os::fd::AsRawFd as _;

use super::UringDriver;
use super::chains::Event;
use super::conn::{Operation, Receiving};
use crate::driver::{Failure, Slot, What};
use crate::shared::{self, ConnPhase, FULL_RECVS_MAX};

/// What a polled connection waits for.
const EVENTS: u32 = (libc::POLLIN | libc::POLLRDHUP) as u32;

/// After these nothing more comes: what is there is read to its end.
const LAST: i32 = (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) as i32;

impl UringDriver {
    /// Arms the poll of a slot.
    pub(super) fn poll(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        conn.polled = true;
        conn.receiving = Some(Receiving::Polled);
        let socket = conn.socket.as_ref().expect("an open connection has a socket");
        let entry = opcode::PollAdd::new(Fd(socket.as_raw_fd()), EVENTS).multi(true).build();
        self.push(slot, Operation::Poll, entry);
    }

    /// Ends the poll of a slot that is closed.
    pub(super) fn end_poll(&mut self, slot: Slot) {
        let token = self.token(slot, Operation::Poll);
        let entry = opcode::AsyncCancel::new(token).build();
        self.cancel(&entry.flags(squeue::Flags::SKIP_SUCCESS));
    }

    /// The poll of a slot has completed.
    pub(super) fn polled(&mut self, slot: Slot, completion: &cqueue::Entry) {
        let conn = &mut self.conns[slot.0 as usize];
        if !cqueue::more(completion.flags()) {
            // It is armed again when everything there has been read.
            conn.receiving = None;
        }
        conn.drains |= completion.result() >= 0 && completion.result() & LAST != 0;
        self.readable(slot);
    }

    /// Something may be there on the slot.
    pub(super) fn readable(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        if conn.phase == ConnPhase::Open && !std::mem::replace(&mut conn.is_readable, true) {
            self.chains.append(slot, Event::Readable);
        }
    }

    /// Reads once; `None` if nothing is there after all.
    pub(super) fn read(&mut self, slot: Slot) -> Option<What> {
        let stamped = self.header.is_some();
        let conn = &mut self.conns[slot.0 as usize];
        conn.is_readable = false;
        let socket = conn.socket.as_ref().filter(|_| conn.phase == ConnPhase::Open)?;
        let taken = shared::take(socket, &mut conn.interest, &mut self.direct, stamped);
        let taken = match taken {
            Ok(Some(taken)) if taken.n_bytes > 0 => taken,
            Ok(None) if conn.send_failure.is_none() => return None,
            Ok(_) => return Some(conn.ends(None)),
            Err(error) => return Some(conn.ends(Some(Failure::from(&error)))),
        };
        if !taken.is_full() && !conn.drains {
            conn.n_full = 0;
        } else if conn.n_full < FULL_RECVS_MAX {
            conn.n_full += 1;
            self.readable(slot);
        } else {
            conn.n_full = 0;
            self.unfinished.push_back((slot, conn.generation));
        }
        self.arrived = taken.stamp.map(|stamp| self.timing.of_stamp(stamp));
        if taken.is_discarded {
            return Some(What::Discarded(taken.n_bytes as u64));
        }
        self.n_direct = taken.n_bytes;
        Some(What::Received)
    }

    /// Makes connections readable again that used up their share and may have more.
    pub(super) fn take_up_unfinished(&mut self) {
        while let Some((slot, generation)) = self.unfinished.pop_front() {
            if self.conns[slot.0 as usize].generation == generation {
                self.readable(slot);
            }
        }
    }
}
