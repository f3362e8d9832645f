//! What children of `prefork`, `worker` and `event` share: how they accept, when they leave, and
//! how their threads start. Start reading at [`accept`] and [`Workers::run`].

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use sys::listener::{self, Mode};
use sys::signals::{self, Stop};

use super::handoff::HandoffQueue;
use super::scoreboard::{Intake, Scoreboard};
use super::serving_thread;
use crate::service::Service;

/// Exit status of a child that ended as planned.
pub(crate) const DONE: u8 = 0;

/// Exit status of a child that ran out of descriptors or memory (APEXIT_CHILDSICK): start fewer.
pub(crate) const SICK: u8 = 7;

/// Exit status of a child that cannot start at all (APEXIT_CHILDFATAL).
pub(crate) const FATAL: u8 = 15;

/// What [`accept`] returns.
pub(crate) enum Accepted {
    /// A connection.
    Conn(OwnedFd, SocketAddr),
    /// No connection; try again.
    Nothing,
    /// The child is to exit with this status.
    Leave(u8),
}

/// Waits for a connection. In a drain, some child still accepts each connection that waited.
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
        // The parent has made the listener non-blocking: no child waits any more.
        Err(error) if error.kind() == ErrorKind::WouldBlock && board.is_draining() => {
            Accepted::Leave(DONE)
        }
        // The parent has stopped listening.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Accepted::Leave(DONE),
        // A signal, the listener's timeout, or a connection that was gone before we accepted it.
        Err(_) => {
            service.keep_logs_up();
            Accepted::Nothing
        }
    }
}

/// The serving threads of a child, and the queue through which its listener hands them connections.
pub(crate) struct Workers<'a, T> {
    pub(crate) board: &'a Scoreboard,
    /// The child's number.
    pub(crate) number: usize,
    pub(crate) queue: &'a HandoffQueue<T>,
}

impl<T: Send> Workers<'_, T> {
    /// Starts the threads, runs `listen` in the calling one and waits until all threads have left.
    /// Returns the exit status of the child.
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
            // The last clients may take long. The parent must not count on this child any more.
            self.board.set_intake(self.number, Intake::Ended);
            self.queue.close_and_wait();
            status
        })
    }
}
