//! Accepting for event loops: some connections a round, none while there is no room, and in a drain
//! all that wait. Owns what a failed accept means. Start reading at [`Acceptor::next`].

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use sys::listener::{self, Mode};
use units::Nanos;

use super::socket_io::EXHAUSTED_REST;
use crate::service::{Service, closing};
use site::board::Counter;

/// Accepts connections from one queue of the port.
pub(crate) struct Acceptor<'s> {
    service: &'s Service,
    listener: &'s TcpListener,
    /// In a drain, how many connections may still be accepted (see `Service::tickets_at`).
    tickets: Option<u32>,
    /// Accepts left in this round, so that older connections get turns in between.
    left: usize,
    round_max: usize,
}

/// Whether the caller can hold another connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Yes.
    Free,
    /// No: connections wait in the kernel's queue.
    Waits,
    /// No: connections are accepted and closed at once. In a drain they wait instead, because all
    /// that waited when it began are to be answered.
    Closes,
}

/// What one attempt to accept returns.
#[derive(Debug)]
pub(crate) enum Next {
    /// A non-blocking connection for which there is room.
    Admit(OwnedFd, SocketAddr),
    /// No more in this round. The listener reports when there is more.
    Done,
    /// Take the listener out of the poll set, where it would stay ready, until a connection ends
    /// and at most for this long.
    Rest(Nanos),
    /// A drain has accepted everything, or the port was closed elsewhere.
    Over,
}

impl<'s> Acceptor<'s> {
    /// Accepts at most `round_max` connections a round from `listener`, a non-blocking queue of
    /// `service`.
    pub(crate) fn new(service: &'s Service, listener: &'s TcpListener, round_max: usize) -> Self {
        Self { service, listener, tickets: None, left: round_max, round_max }
    }

    /// The queue it accepts from.
    pub(crate) fn listener(&self) -> &'s TcpListener {
        self.listener
    }

    /// Starts a new round.
    pub(crate) fn begin_round(&mut self) {
        self.left = self.round_max;
    }

    /// Begins a drain: accepts what waits, and then no more.
    pub(crate) fn drain(&mut self) {
        self.tickets = Some(self.service.tickets_at(self.listener));
    }

    /// Whether a drain has begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.tickets.is_some()
    }

    /// Whether a drain has accepted everything, so that the port can be closed without waiting for
    /// room.
    pub(crate) fn is_over(&self) -> bool {
        let is_drained = || self.service.is_drained_at(self.listener);
        self.tickets == Some(0) || (self.is_draining() && is_drained())
    }

    /// The next connection of this round.
    pub(crate) fn next(&mut self, room: Room) -> Next {
        while self.left > 0 {
            if self.tickets == Some(0) {
                return Next::Over;
            }
            if room == Room::Waits || (room == Room::Closes && self.is_draining()) {
                return Next::Rest(Nanos::MAX);
            }
            let accepted = listener::accept(self.listener, Mode::NonBlocking);
            match &accepted {
                Err(error) if listener::is_exhaustion(error) => {
                    self.service.note_exhaustion(error);
                    return Next::Rest(EXHAUSTED_REST);
                }
                Err(error) if listener::has_stopped(error) => return Next::Over,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return match (self.is_draining(), self.is_over()) {
                        (false, _) => Next::Done,
                        (true, true) => Next::Over,
                        // A connection whose handshake had begun may still come.
                        (true, false) => Next::Rest(closing::LOOK),
                    };
                }
                // A connection that was gone before it was accepted counts too; others may wait.
                Ok(_) | Err(_) => {}
            }
            self.left -= 1;
            self.tickets = self.tickets.map(|left| left - 1);
            match (accepted, room) {
                (Ok((socket, peer)), Room::Free) => return Next::Admit(socket, peer),
                (Ok(_), Room::Waits | Room::Closes) => self.service.board.count(Counter::Refused),
                (Err(_), _) => {}
            }
        }
        Next::Done
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpStream;

    use super::*;
    use crate::testing;

    fn service() -> Service {
        let service = Service::bind(testing::config()).unwrap();
        listener::set_mode(&service.listener, Mode::NonBlocking).unwrap();
        service
    }

    fn clients(service: &Service, count: usize) -> Vec<TcpStream> {
        (0..count).map(|_| TcpStream::connect(service.address()).unwrap()).collect()
    }

    #[test]
    fn a_round_takes_as_many_as_it_may_and_the_next_one_the_others() {
        let service = service();
        let _clients = clients(&service, 3);
        let mut acceptor = Acceptor::new(&service, &service.listener, 2);
        assert!(matches!(acceptor.next(Room::Free), Next::Admit(..)));
        assert!(matches!(acceptor.next(Room::Free), Next::Admit(..)));
        assert!(matches!(acceptor.next(Room::Free), Next::Done));
        acceptor.begin_round();
        assert!(matches!(acceptor.next(Room::Free), Next::Admit(..)));
        assert!(matches!(acceptor.next(Room::Free), Next::Done));
    }

    #[test]
    fn a_drain_takes_what_waited_and_closes_nothing_of_it() {
        let service = service();
        let _clients = clients(&service, 2);
        let mut acceptor = Acceptor::new(&service, &service.listener, 100);
        acceptor.drain();
        // The kernel still completes handshakes here.
        let _later = clients(&service, 1);
        assert!(matches!(acceptor.next(Room::Closes), Next::Rest(Nanos::MAX)));
        assert!(matches!(acceptor.next(Room::Free), Next::Admit(..)));
        assert!(matches!(acceptor.next(Room::Free), Next::Admit(..)));
        assert!(matches!(acceptor.next(Room::Free), Next::Over));
        assert_eq!(service.waiting(), 1);
    }

    #[test]
    fn a_drain_that_no_connection_can_join_takes_all_that_wait() {
        let service = service();
        let _clients = clients(&service, 3);
        service.begin_closing();
        let mut acceptor = Acceptor::new(&service, &service.listener, 2);
        acceptor.drain();
        assert!(!acceptor.is_over());
        for _ in 0..2 {
            assert!(matches!(acceptor.next(Room::Free), Next::Admit(..)));
        }
        assert!(matches!(acceptor.next(Room::Free), Next::Done));
        acceptor.begin_round();
        assert!(matches!(acceptor.next(Room::Free), Next::Admit(..)));
        assert!(acceptor.is_over());
        assert!(matches!(acceptor.next(Room::Free), Next::Over));
    }

    #[test]
    fn without_room_connections_wait_or_are_closed() {
        let service = service();
        let mut clients = clients(&service, 2);
        let mut acceptor = Acceptor::new(&service, &service.listener, 100);
        assert!(matches!(acceptor.next(Room::Waits), Next::Rest(Nanos::MAX)));
        assert_eq!(service.waiting(), 2);
        assert!(matches!(acceptor.next(Room::Closes), Next::Done));
        for client in &mut clients {
            assert!(!matches!(client.read(&mut [0]), Ok(1)));
        }
    }

    #[test]
    fn a_port_that_was_closed_elsewhere_is_the_end() {
        let service = service();
        service.stop_listening();
        assert!(matches!(
            Acceptor::new(&service, &service.listener, 100).next(Room::Free),
            Next::Over
        ));
    }
}
