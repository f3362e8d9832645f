//! How a ring gets its connections: when it accepts, when it rests, and what is still accepted in a
//! drain. Owns that state of the ring; must not know what becomes of a connection.
//! Start reading at [`Host::accept_again`].

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

use sys::listener::{self, Mode};
use sys::uring_server;
use units::Nanos;

use super::host::{Host, LISTENER, Todo};
use crate::models::shared::socket_io::EXHAUSTED_REST;
use crate::service::closing;

/// Whether a ring accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepting {
    /// The operation is under way, once or again and again.
    Way { many: bool },
    /// It was cancelled, and its end has not come yet.
    Ending,
    /// Until a place is free for a connection, and not before this instant.
    Rests(Nanos),
    /// The port is closed, or others go on with it.
    No,
}

impl Host<'_> {
    /// Accepts, where that rests and there is a place. One operation for many connections is for who
    /// need not share, and has more places than can be taken before it is stopped: the backlog, and as
    /// many as arrive meanwhile.
    pub(super) fn accept_again(&mut self) {
        let is_due = matches!(self.accepting, Accepting::Rests(until) if until <= self.now);
        if !is_due || self.together.is_ending() || self.free_slots() == 0 {
            return;
        }
        let many = self.together.n_rings == 1 && self.free_slots() > self.burst_max();
        self.accepting = Accepting::Way { many };
        self.todo.push((LISTENER, Todo::Accept { many }));
    }

    fn burst_max(&self) -> usize {
        2 * self.service.listen_backlog as usize
    }

    /// Something came of the accept that was under way.
    pub(super) fn accepted(&mut self, result: io::Result<OwnedFd>, ended: bool) {
        if ended {
            self.accepting = Accepting::Rests(Nanos::ZERO);
        }
        match result {
            Ok(socket) => {
                let peer = listener::peer(&socket);
                self.admit(socket, peer);
                if self.accepting == (Accepting::Way { many: true })
                    && self.free_slots() <= self.burst_max()
                {
                    self.stop_accepting();
                }
            }
            Err(error) if uring_server::is_cancelled(&error) => {}
            Err(error) if listener::is_exhaustion(&error) => self.exhausted(&error),
            // The port was closed: the bell of the drain has rung, or will.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.accepting = Accepting::Rests(self.now.saturating_add(EXHAUSTED_REST));
            }
            // The connection was gone before it was accepted; there may be others.
            Err(_) => {}
        }
    }

    fn exhausted(&mut self, error: &io::Error) {
        self.service.note_exhaustion(error);
        self.accepting = Accepting::Rests(self.now.saturating_add(EXHAUSTED_REST));
    }

    /// Ends the operation that is under way.
    pub(super) fn stop_accepting(&mut self) {
        if let Accepting::Way { .. } = self.accepting {
            self.accepting = Accepting::Ending;
            self.todo.push((LISTENER, Todo::Cancel(uring_server::Kind::Accept)));
        }
    }

    /// In a drain: takes of what waits, as far as there is room. By system calls, since
    /// an operation would wait for connections that are not to be taken any longer.
    pub(super) fn accept_the_last(&mut self) {
        while self.is_draining
            && matches!(self.accepting, Accepting::Rests(until) if until <= self.now)
            && self.free_slots() > 0
        {
            if !self.together.take_ticket() {
                self.accepting = Accepting::No;
                return;
            }
            let is_last = match listener::accept(&self.service.listener, Mode::NonBlocking) {
                Ok((socket, peer)) => {
                    self.admit(socket, peer);
                    self.together.use_ticket()
                }
                Err(error) if listener::is_exhaustion(&error) => {
                    self.together.give_ticket_back();
                    return self.exhausted(&error);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.service.is_drained() {
                        // A connection may come whose handshake had begun.
                        self.together.give_ticket_back();
                        self.accepting = Accepting::Rests(self.now.saturating_add(closing::LOOK));
                        return;
                    }
                    self.together.void_tickets()
                }
                Err(_) => self.together.use_ticket(),
            };
            if is_last {
                self.service.stop_listening();
            }
        }
    }
}
