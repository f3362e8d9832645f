//! How a ring accepts: when it does, when it pauses, and what it still accepts in a drain. Start
//! reading at [`RingLoop::accept_again`].

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

use sys::listener::{self, Mode};
use sys::uring_server;
use units::Nanos;

use super::{LISTENER, RingLoop, Todo};
use crate::models::shared::socket_io::EXHAUSTED_REST;
use crate::service::closing;

/// Whether a ring accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepting {
    /// An accept is pending; `many`: it is a multishot one.
    Pending { many: bool },
    /// It was cancelled, and its last event has not come yet.
    Ending,
    /// Not before this instant, and not until a slot is free.
    Rests(Nanos),
    /// The port is closed, or others go on with it.
    No,
}

impl RingLoop<'_> {
    /// Accepts again if the pause is over and a slot is free. Uses multishot only if no other ring
    /// shares the port, and if slots remain for all that may be accepted before it stops: twice the
    /// backlog.
    pub(super) fn accept_again(&mut self) {
        let is_due = matches!(self.accepting, Accepting::Rests(until) if until <= self.now);
        if !is_due || self.group.is_ending() || self.free_slots() == 0 {
            return;
        }
        let many = self.group.n_rings == 1 && self.free_slots() > self.burst_max();
        self.accepting = Accepting::Pending { many };
        self.todo.push((LISTENER, Todo::Accept { many }));
    }

    fn burst_max(&self) -> usize {
        2 * self.service.listen_backlog as usize
    }

    /// Handles an event of the accept.
    pub(super) fn accepted(&mut self, result: io::Result<OwnedFd>, ended: bool) {
        if ended {
            self.accepting = Accepting::Rests(Nanos::ZERO);
        }
        match result {
            Ok(socket) => {
                let peer = listener::peer(&socket);
                self.admit(socket, peer);
                if self.accepting == (Accepting::Pending { many: true })
                    && self.free_slots() <= self.burst_max()
                {
                    self.stop_accepting();
                }
            }
            Err(error) if uring_server::is_cancelled(&error) => {}
            Err(error) if listener::is_exhaustion(&error) => self.exhausted(&error),
            // The port was closed: `drain` was rung, or will be.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.accepting = Accepting::Rests(self.now.saturating_add(EXHAUSTED_REST));
            }
            // The connection was gone before it was accepted; others may wait.
            Err(_) => {}
        }
    }

    fn exhausted(&mut self, error: &io::Error) {
        self.service.note_exhaustion(error);
        self.accepting = Accepting::Rests(self.now.saturating_add(EXHAUSTED_REST));
    }

    /// Cancels the pending accept.
    pub(super) fn stop_accepting(&mut self) {
        if let Accepting::Pending { .. } = self.accepting {
            self.accepting = Accepting::Ending;
            self.todo.push((LISTENER, Todo::Cancel(uring_server::Kind::Accept)));
        }
    }

    /// In a drain: accepts what still waits, as far as there is room. By system calls, because an
    /// operation of the ring would wait for further connections.
    pub(super) fn accept_the_last(&mut self) {
        while self.is_draining
            && matches!(self.accepting, Accepting::Rests(until) if until <= self.now)
            && self.free_slots() > 0
        {
            if !self.group.take_ticket() {
                self.accepting = Accepting::No;
                return;
            }
            let is_last = match listener::accept(&self.service.listener, Mode::NonBlocking) {
                Ok((socket, peer)) => {
                    self.admit(socket, peer);
                    self.group.use_ticket()
                }
                Err(error) if listener::is_exhaustion(&error) => {
                    self.group.give_ticket_back();
                    return self.exhausted(&error);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.service.is_drained() {
                        // A connection whose handshake had begun may still come.
                        self.group.give_ticket_back();
                        self.accepting = Accepting::Rests(self.now.saturating_add(closing::LOOK));
                        return;
                    }
                    self.group.void_tickets()
                }
                Err(_) => self.group.use_ticket(),
            };
            if is_last {
                self.service.stop_listening();
            }
        }
    }
}
