//! What a load generator needs from the kernel, as completions: connect, send, receive, close, wait. The epoll driver
//! turns readiness into completions; io_uring has them natively; a simulator can produce them in virtual time. Owns the
//! trait and its data; must not know HTTP, statistics or policy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use units::Nanos;

use crate::tcp_info::TcpInfo;

/// A connection slot, 0 to the driver's capacity - 1. The caller chooses it and may reuse it after [`Driver::close`]. A
/// driver never reports a completion of an earlier use of the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Where a connection leads, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The server.
    pub to: Peer,
    /// Local address; `None`: the kernel's choice. Ignored for a unix socket.
    pub from: Option<IpAddr>,
}

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// TCP over IPv4 or IPv6.
    Inet(SocketAddr),
    /// A unix stream socket, by its path.
    Unix(PathBuf),
}

impl From<SocketAddr> for Route {
    fn from(addr: SocketAddr) -> Self {
        Self { to: Peer::Inet(addr), from: None }
    }
}

/// Something that happened on a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot.
    pub slot: Slot,
    /// The event.
    pub what: What,
}

/// An event on a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The connection is established; sending is possible.
    Connected,
    /// Bytes arrived: [`Driver::received`] has them until the next call of [`Driver::next`]. Everything already known
    /// about the slot follows at once, before a completion of any other slot.
    Received,
    /// This many bytes arrived and were thrown away, as [`Driver::discard`] allowed.
    Discarded(u64),
    /// The peer closed its side; nothing more will arrive.
    Closed,
    /// The connection is gone: refused, reset, no route. Nothing more will be reported on the slot.
    Failed(Failure),
}

/// Why a connection is gone: the kernel's many error numbers, as far as a report distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// ECONNREFUSED.
    Refused,
    /// ECONNRESET or EPIPE.
    Reset,
    /// ETIMEDOUT: the kernel gave up.
    TimedOut,
    /// EMFILE or ENFILE.
    FdExhausted,
    /// EADDRNOTAVAIL of connect(2).
    PortExhausted,
    /// Any other error number; EADDRNOTAVAIL if the local address is not this machine's.
    Other(i32),
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        if error.raw_os_error().is_none() && error.kind() == io::ErrorKind::AddrNotAvailable {
            // The kind without a number is about the local address and not about its ports: see `socket::open`.
            return Self::Other(libc::EADDRNOTAVAIL);
        }
        match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => Self::Refused,
            Some(libc::ECONNRESET | libc::EPIPE) => Self::Reset,
            Some(libc::ETIMEDOUT) => Self::TimedOut,
            Some(libc::EMFILE | libc::ENFILE) => Self::FdExhausted,
            Some(libc::EADDRNOTAVAIL) => Self::PortExhausted,
            other => Self::Other(other.unwrap_or(0)),
        }
    }
}

/// How to close a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// FIN, as any client closes. The side that sends it first keeps the port in TIME_WAIT for a minute.
    Orderly,
    /// RST: the server learns at once that nobody waits for its reply, and no port stays in use. For requests that were
    /// given up.
    Abrupt,
}

/// The kernel, or a simulation of it, as one thread of the generator sees it.
///
/// One loop: `wait`, then `next` until `None`. In between the caller connects, sends and closes; a driver may batch
/// these calls until the next `wait`.
pub trait Driver {
    /// Name for reports ("epoll", "io_uring", "sim").
    fn name(&self) -> &'static str;

    /// Sets the start: the instant of the monotonic clock that [`Driver::now`] counts from. Called once, before
    /// anything else, with the same instant on every thread of a load.
    fn begin(&mut self, origin: Nanos);

    /// Now, since the driver's start. Reads the clock.
    fn now(&mut self) -> Nanos;

    /// CPU time, user and system, that the calling thread has used.
    fn cpu(&mut self) -> Nanos;

    /// Starts connecting a slot that has no connection. The result is a completion: `Connected` or
    /// `Failed`.
    fn connect(&mut self, slot: Slot, route: &Route);

    /// Sends all bytes, after those of earlier calls. The driver keeps a copy of what the kernel does not take at once,
    /// and sends it as soon as it can. An error is a `Failed` completion.
    fn send(&mut self, slot: Slot, bytes: &[u8]);

    /// The next `n_bytes` that arrive on the slot are not needed. The driver may discard them if that is cheaper (in
    /// the kernel: no copy), in one or more [`What::Discarded`] with a sum of at most `n_bytes`, or deliver some or all
    /// of them as [`What::Received`]. Bytes after them are delivered. Allowed only while the slot's last completion, a
    /// `Received` or `Discarded`, is processed; a later call replaces the rest of an earlier one.
    fn discard(&mut self, slot: Slot, n_bytes: u64);

    /// The caller has the whole reply on the slot, and sends next. The driver need not check for more data that is
    /// already there; it reports such data no later than what arrives after it. Without this call the driver has to try
    /// another receive, since it cannot know that it has taken everything.
    fn reply_complete(&mut self, slot: Slot) {
        let _ = slot;
    }

    /// Closes the connection, or gives up connecting. Drops completions of the slot that were not taken. Does nothing
    /// on a slot without a connection. Needed after `Failed` too.
    fn close(&mut self, slot: Slot, how: Leave);

    /// What the kernel knows about the slot's connection; `None` if it is not TCP, or the driver cannot tell. One
    /// system call.
    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let _ = slot;
        None
    }

    /// Waits until something happens or `until` is reached. It never returns early because of rounding, but may return
    /// without completions: after a signal, or after an event inside the driver. Returns at once if completions are
    /// left.
    ///
    /// # Errors
    /// Only errors of the driver itself; events on a connection are completions.
    fn wait(&mut self, until: Nanos) -> io::Result<()>;

    /// Checks whether something happened, without sleeping. For the last moments before `until`, when the caller has
    /// something to do that a sleep would miss. Virtual time passes as in [`Driver::wait`].
    ///
    /// # Errors
    /// As [`Driver::wait`].
    fn poll(&mut self, until: Nanos) -> io::Result<()> {
        let _ = until;
        self.wait(Nanos::ZERO)
    }

    /// The next completion of this round, if any.
    fn next(&mut self) -> Option<Completion>;

    /// The bytes of the last completion, which was [`What::Received`].
    fn received(&self) -> &[u8];

    /// When the last completion happened, since the start, if the driver knows it more precisely than the start of its
    /// round. For `Received` and `Discarded` it is when the last bytes arrived at this machine, by the kernel's own
    /// stamp, which no delay of this thread changes. For a `Connected` that needed no wait it is when connect(2)
    /// returned.
    fn arrived(&self) -> Option<Nanos> {
        None
    }
}
