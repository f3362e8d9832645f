//! How the port of a server is closed in a drain without a reset for any connected client. Owns what the kernel is
//! told, and when the queue is empty for good. Start reading at [`Service::begin_closing`].
//!
//! The kernel completes handshakes by itself. So there is always a gap between the last accept and the end of the
//! listening socket, and connections that arrive in it are reset. So the order is:
//! 1 no handshake begins any more (see [`sys::listener::begin_no_more`]); those that have begun are completed;
//! 2 waiting connections are accepted and answered, until none waits;
//! 3 the socket is shut, and later connections are refused.
//!
//! A queue that goes on in another process is left alone. One that somebody else keeps (socket activation) is not shut:
//! connections that waited when the drain began are answered, and the next server gets the rest.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sys::{clock, listener, sock_diag};
use units::Nanos;

use crate::service::Service;

/// How long to wait for a handshake that has begun: one second until what was lost is sent again (RFC 6298, 2), and the
/// way back.
const HANDSHAKE_MAX: Nanos = Nanos::from_millis(1500);

/// How often to look at an empty queue to which a connection may still come.
pub(crate) const LOOK: Nanos = Nanos::from_millis(10);

/// Whether the port is being closed.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// Since when no handshake begins, on the monotonic clock; 0: they still do.
    since: AtomicU64,
}

impl Service {
    /// In a drain, before anything else: from now on no connection begins in the queues that end with this server.
    /// Takes about 15 ms; a second call does nothing.
    pub(crate) fn begin_closing(&self) {
        let now = clock::monotonic();
        let ours = self.listeners().filter(|listener| !self.stays(listener));
        let is_done = self.closing.since.load(Relaxed) != 0;
        if self.listeners().any(|listener| !self.stays(listener)) {
            self.handover.closes_port();
        }
        // If the kernel refuses, connections that wait now are answered, and those that arrive in between are lost.
        if !is_done && listener::begin_no_more(ours).is_ok() {
            self.closing.since.store(now.0.max(1), Relaxed);
        }
    }

    /// Whether no connection begins any more, so that accepting all that wait comes to an end.
    fn is_closing(&self) -> bool {
        self.closing.since.load(Relaxed) != 0
    }

    /// How many connections a drain may still accept from a queue: any number, if no more begin.
    pub(crate) fn tickets_at(&self, queue: &TcpListener) -> u32 {
        match self.is_closing() && !self.stays(queue) {
            true => u32::MAX,
            false => self.waiting_at(queue),
        }
    }

    /// As [`Service::tickets_at`], for a server with one queue.
    pub(crate) fn tickets(&self) -> u32 {
        self.tickets_at(&self.listener)
    }

    /// In a drain: whether nothing waits in a queue, and nothing that this server would have to answer can
    /// come to it.
    pub(crate) fn is_drained_at(&self, queue: &TcpListener) -> bool {
        if self.goes_on(queue) {
            return true;
        }
        if listener::waiting(queue) > 0 {
            return false;
        }
        // The handshakes first: one that is completed between the two looks then waits in the queue.
        !self.has_handshakes(queue) && listener::waiting(queue) == 0
    }

    /// As [`Service::is_drained_at`], for a server with one queue.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_drained_at(&self.listener)
    }

    fn has_handshakes(&self, queue: &TcpListener) -> bool {
        let since = Nanos(self.closing.since.load(Relaxed));
        if since == Nanos::ZERO
            || self.stays(queue)
            || clock::monotonic().saturating_sub(since) > HANDSHAKE_MAX
        {
            return false;
        }
        // If the kernel does not tell, we wait for nobody.
        sock_diag::handshakes(self.address().port()).unwrap_or(0) > 0
    }

    /// Whether a queue remains after this server: another process goes on with it, or it was passed to us.
    pub(super) fn stays(&self, queue: &TcpListener) -> bool {
        self.goes_on(queue) || (self.is_lent && std::ptr::eq(queue, &*self.listener))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;
    use crate::testing;

    #[test]
    fn a_queue_is_drained_when_nothing_waits_and_no_handshake_has_begun() {
        let service = Service::bind(testing::config()).unwrap();
        let waits = TcpStream::connect(service.address()).unwrap();
        service.begin_closing();
        assert_eq!((service.tickets(), service.is_drained()), (u32::MAX, false));
        let late = TcpStream::connect_timeout(&service.address(), Duration::from_millis(50));
        assert!(late.is_err(), "no connection begins any more");
        let accepted = listener::accept(&service.listener, listener::Mode::Blocking);
        assert!(accepted.is_ok() && service.is_drained());
        drop(waits);
    }

    #[test]
    fn a_queue_that_is_somebody_elses_is_neither_closed_nor_kept_from_anyone() {
        let mut service = Service::bind(testing::config()).unwrap();
        service.is_lent = true;
        let _waits = TcpStream::connect(service.address()).unwrap();
        service.begin_closing();
        assert_eq!(service.tickets(), 1);
        let _later = TcpStream::connect(service.address()).unwrap();
        service.stop_listening();
        assert_eq!(service.waiting(), 2);
        let _last = TcpStream::connect(service.address()).unwrap();
    }
}
