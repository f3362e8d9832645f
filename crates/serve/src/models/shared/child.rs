//! What the children of `prefork` and `worker` have in common: how one accepts, and when it leaves.
//! Owns those rules; must not know who serves the connection.
//! Start reading at [`accept`].

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use sys::listener::{self, Mode};
use sys::signals::{self, Stop};

use super::handoff::HandoffQueue;
use super::scoreboard::{Intake, Scoreboard};
use super::serving_thread;
use crate::service::Service;

/// Exit status of a child that has done what it was to do.
pub(crate) const DONE: u8 = 0;

/// Exit status of a child that lacks descriptors or memory (APEXIT_CHILDSICK): start fewer.
pub(crate) const SICK: u8 = 7;

/// Exit status of a child that cannot start at all (APEXIT_CHILDFATAL).
pub(crate) const FATAL: u8 = 15;

/// What comes of accepting.
pub(crate) enum Accepted {
    /// A connection.
    Conn(OwnedFd, SocketAddr),
    /// Nothing; try again.
    Nothing,
    /// The child is to end with this status.
    Leave(u8),
}

/// Waits for a connection. In a drain each that waited when it began is still taken by someone.
pub(crate) fn accept(service: &Service, board: &Scoreboard) -> Accepted {
    match signals::asked_to_end() {
        Some(Stop::Drain) if board.take_ticket() => {}
        Some(_) => return Accepted::Leave(DONE),
        None => {}
    }
    match listener::accept(&service.listener, Mode::Blocking) {
        Ok((socket, peer)) => Accepted::Conn(socket, peer),
        Err(error) if listener::is_exhaustion(&error) => {
            service.note_exhaustion(&error);
            Accepted::Leave(SICK)
        }
        // The parent has made the listener non-blocking: nobody waits any more.
        Err(error) if error.kind() == ErrorKind::WouldBlock && board.is_draining() => {
            Accepted::Leave(DONE)
        }
        // The parent has stopped listening.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Accepted::Leave(DONE),
        // A signal, the listener's timeout, or a connection that was gone before it was accepted.
        Err(_) => {
            service.keep_logs_up();
            Accepted::Nothing
        }
    }
}

/// The threads of a child that serve, and what a listener of the same child hands them.
pub(crate) struct Workers<'a, T> {
    pub(crate) board: &'a Scoreboard,
    /// The child's.
    pub(crate) number: usize,
    pub(crate) queue: &'a HandoffQueue<T>,
}

impl<T: Send> Workers<'_, T> {
    /// Starts so many, each with its number; listens for them, and waits until all have left. Returns the
    /// exit status of the child.
    pub(crate) fn run(
        &self,
        threads: usize,
        work: &(impl Fn(usize) + Sync),
        listen: impl FnOnce() -> u8,
    ) -> u8 {
        std::thread::scope(|scope| {
            let started = signals::hidden_from(|| {
                (0..threads).try_for_each(|worker| {
                    serving_thread().spawn_scoped(scope, move || work(worker)).map(|_| ())
                })
            });
            let status = match started.and_then(|all| all) {
                Ok(()) => listen(),
                Err(error) => {
                    self.board.note_start_error(&error);
                    FATAL
                }
            };
            // It may wait long for its last clients: the parent is not to count on it any more.
            self.board.set_intake(self.number, Intake::Ended);
            self.queue.close_and_wait();
            status
        })
    }
}
