//! What the children of `prefork` and `worker` have in common: how one accepts, and when it leaves.
//! Owns those rules; must not know who serves the connection.
//! Start reading at [`accept`].

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use sys::listener::{self, Mode};
use sys::signals::{self, Stop};

use super::scoreboard::Scoreboard;
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
