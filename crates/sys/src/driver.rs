//! What a load generator asks of the kernel, in the shape of completions: connect, send, receive,
//! close, wait. epoll readiness is turned into it; io_uring has it natively; a simulator can play it
//! in virtual time. Owns the trait and its data; must not know HTTP, statistics or policy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use units::Nanos;

use crate::tcp_info::TcpInfo;

/// A connection slot: chosen by the caller, 0 to the driver's capacity - 1, used again after
/// [`Driver::close`]. A driver never reports a completion of an earlier use of the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// Where a connection leads, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The server.
    pub to: Peer,
    /// Local address; `None`: the kernel's choice. Of no meaning for a unix socket.
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
    /// On which slot.
    pub slot: Slot,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The connection is established; sending is possible.
    Connected,
    /// Bytes arrived: [`Driver::received`] has them until the next call of [`Driver::next`]. All that
    /// is already known of the slot follows at once, before a completion of any other slot.
    Received,
    /// This many bytes arrived and were thrown away, as [`Driver::discard`] allowed.
    Discarded(u64),
    /// The peer closed its side; nothing more will arrive.
    Closed,
    /// The connection is gone: refused, reset, no route. Nothing more will be reported on the slot.
    Failed(Failure),
}

/// Why a connection is gone. The kernel's many error numbers, as far as a report tells them apart.
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
    /// Any other error number; EADDRNOTAVAIL where the local address is not this machine's.
    Other(i32),
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        if error.raw_os_error().is_none() && error.kind() == io::ErrorKind::AddrNotAvailable {
            // Of a local address, not of its ports: see `socket::open`.
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

/// How a connection is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// FIN, as any client ends a conversation. The side that says it first keeps the port in
    /// TIME_WAIT for a minute.
    Orderly,
    /// RST: the server learns at once that nobody waits for its reply, and no port is kept. For
    /// requests that were given up.
    Abrupt,
}

/// The kernel, or a simulation of it, as one thread of the generator sees it.
///
/// One loop: `wait`, then `next` until `None`. Between those the caller connects, sends and closes;
/// a driver may batch what it is asked until the next `wait`.
pub trait Driver {
    /// Name for reports ("epoll", "io_uring", "sim").
    fn name(&self) -> &'static str;

    /// Sets the start: the instant of the monotonic clock that [`Driver::now`] counts from. Called
    /// once, before all else, with the same instant on every thread of a load.
    fn begin(&mut self, origin: Nanos);

    /// Now, since the driver's start. A read of the clock.
    fn now(&mut self) -> Nanos;

    /// CPU time, user and system, that the calling thread has used.
    fn cpu(&mut self) -> Nanos;

    /// Starts connecting a slot that has no connection. The result is a completion: `Connected` or
    /// `Failed`.
    fn connect(&mut self, slot: Slot, route: &Route);

    /// Sends all bytes, after those of earlier calls; what the kernel does not take at once the
    /// driver keeps (a copy) and sends as soon as it can. Fails by a `Failed` completion.
    fn send(&mut self, slot: Slot, bytes: &[u8]);

    /// The next `n_bytes` that arrive on the slot are of no interest. The driver may throw them away
    /// where that is cheaper (in the kernel: no copy), in one or more [`What::Discarded`] whose sum is
    /// at most `n_bytes`, or deliver some or all of them as [`What::Received`]; what comes after them
    /// is delivered. Allowed only while the slot's last completion, a `Received` or `Discarded`, is
    /// processed; a later call replaces what is left of an earlier one.
    fn discard(&mut self, slot: Slot, n_bytes: u64);

    /// The caller has the whole reply on the slot, and sends next. The driver need not look for more
    /// data that is already there; it reports such data no later than what arrives after it. Without
    /// this call it must ask once more, since it cannot know that it has taken all there was.
    fn reply_complete(&mut self, slot: Slot) {
        let _ = slot;
    }

    /// Closes the connection, or gives up connecting. Completions of the slot that were not taken
    /// are dropped. Does nothing on a slot that has none. Needed after `Failed` too.
    fn close(&mut self, slot: Slot, how: Leave);

    /// What the kernel knows of the slot's connection; `None` where it is not TCP, and where the driver
    /// has none. One system call.
    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        let _ = slot;
        None
    }

    /// Waits until something happened or `until` is reached, whichever is first; never returns
    /// early by rounding, but may with nothing to tell: a signal came, or something that concerns the
    /// driver alone. Returns at once where completions are left.
    ///
    /// # Errors
    /// Only of the driver itself; what happens to a connection is a completion.
    fn wait(&mut self, until: Nanos) -> io::Result<()>;

    /// Looks whether something happened, and does not sleep: for the last stretch before `until`,
    /// at which the caller has something to do, and which a sleep would miss. Where time is virtual,
    /// it passes as in [`Driver::wait`].
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

    /// When the last completion happened, since the start, if the driver knows better than by the start
    /// of its round. For `Received` and `Discarded` that is when its last bytes arrived at this
    /// machine, by the kernel's own stamp, which no delay of this thread changes. For a `Connected`
    /// that needed no wait it is when connect(2) returned.
    fn arrived(&self) -> Option<Nanos> {
        None
    }
}
