//! Non-blocking TCP client sockets: open, send, receive, find out why it failed; and the limit of open files. Start
//! reading at [`connect`]. The server's side is [`crate::listener`].

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::driver::{Peer, Route};
use crate::stamps::{self, Control};
use units::Nanos;

/// Opens a socket and starts connecting: [`open`], then connect(2). Whether it succeeded shows when
/// the socket is writable: [`pending_error`].
///
/// # Errors
/// As [`open`]; EADDRNOTAVAIL (no local port free), ENETUNREACH and the like. ECONNREFUSED comes here
/// too where the kernel knows it at once; so does EAGAIN of a unix socket whose backlog is full.
pub fn connect(route: &Route, handshake: Handshake) -> io::Result<OwnedFd> {
    let socket = open(route, handshake)?;
    let started = match &route.to {
        Peer::Inet(to) => rustix::net::connect(&socket, to),
        Peer::Unix(path) => rustix::net::connect(&socket, &SocketAddrUnix::new(path)?),
    };
    match started {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Whether the connection is established: over loopback it is when connect(2) returns, although that says EINPROGRESS.
pub fn is_connected(socket: impl AsFd) -> bool {
    rustix::net::getpeername(socket).is_ok()
}

/// How the handshake of a TCP connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// The request carries the ACK of the handshake (TCP_QUICKACK of 0 before connect(2)): one packet less, and the
    /// server is woken once, with the request, instead of twice. The kernel does the same by itself for a client that
    /// has data ready when the SYN is answered (`tcp_rcv_synsent_state_process`, "Save one ACK"). It only affects the
    /// handshake. If nothing is sent, the ACK follows by a timer after at most 200 ms; until then the server does not
    /// see the connection.
    AckWithRequest,
    /// The ACK is sent at once: for connections that are opened in advance.
    AckAtOnce,
}

/// Opens a non-blocking socket for a route, not connected yet: three calls for TCP (socket, TCP_NODELAY, TCP_QUICKACK),
/// two more for a local address.
///
/// TCP_NODELAY is set because a request that spans segments would otherwise wait for the ACK of its first part (Nagle),
/// which the peer may delay by 40 ms: a latency that the server does not cause.
///
/// # Errors
/// EMFILE, ENFILE; [`io::ErrorKind::AddrNotAvailable`], without a number, if the local address is not this machine's.
pub fn open(route: &Route, handshake: Handshake) -> io::Result<OwnedFd> {
    let family = match &route.to {
        Peer::Inet(to) if to.is_ipv4() => AddressFamily::INET,
        Peer::Inet(_) => AddressFamily::INET6,
        Peer::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if family == AddressFamily::UNIX {
        return Ok(socket);
    }
    sockopt::set_tcp_nodelay(&socket, true)?;
    if handshake == Handshake::AckWithRequest {
        sockopt::set_tcp_quickack(&socket, false)?;
    }
    if let Some(from) = route.from {
        // connect(2) chooses the port, when the whole four-tuple is known. Without this option each local address could
        // have only one connection per port, whatever the server.
        set_int(&socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        rustix::net::bind(&socket, &SocketAddr::new(from, 0)).map_err(not_ours)?;
    }
    Ok(socket)
}

/// This bind(2) chooses no port, so EADDRNOTAVAIL says nothing about ports here. The error keeps its kind but not its
/// number, which [`crate::driver::Failure`] would take for a lack of ports.
fn not_ours(error: Errno) -> io::Error {
    match error {
        Errno::ADDRNOTAVAIL => io::ErrorKind::AddrNotAvailable.into(),
        error => error.into(),
    }
}

/// The error that is pending on a socket (SO_ERROR), if any; reading it clears it.
pub fn pending_error(socket: impl AsFd) -> Option<io::Error> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(error)) | Err(error) => Some(error.into()),
    }
}

/// Sends what the kernel takes at once. Returns the number of bytes, `None` if it takes none now. A peer that is gone
/// is an error, never a signal.
///
/// # Errors
/// ECONNRESET, EPIPE and the like.
#[inline]
pub fn send(socket: impl AsFd, bytes: &[u8]) -> io::Result<Option<usize>> {
    let send = || rustix::net::send(socket.as_fd(), bytes, SendFlags::NOSIGNAL);
    not_now(retry_on_intr(send))
}

/// Receives what is there. Returns the number of bytes, 0 at the end of the stream, `None` if nothing is there now.
///
/// # Errors
/// ECONNRESET and the like.
#[inline]
pub fn recv(socket: impl AsFd, buf: &mut [u8]) -> io::Result<Option<usize>> {
    let recv = || rustix::net::recv(socket.as_fd(), &mut *buf, RecvFlags::empty());
    not_now(retry_on_intr(recv).map(|(n_read, _)| n_read))
}

/// Discards at most `n_bytes` of what is there, without copying it (MSG_TRUNC on TCP, tcp(7)); otherwise like [`recv`].
/// Only for TCP: a unix socket would copy.
///
/// # Errors
/// As [`recv`].
#[inline]
pub fn discard(socket: impl AsFd, n_bytes: usize) -> io::Result<Option<usize>> {
    let fd = socket.as_fd().as_raw_fd();
    let discard = || {
        // SAFETY: with MSG_TRUNC TCP writes nothing to the buffer; any write would fail with EFAULT, because nothing is
        // mapped at null.
        let discarded = unsafe { libc::recv(fd, std::ptr::null_mut(), n_bytes, libc::MSG_TRUNC) };
        usize::try_from(discarded).map_err(|_| last_errno())
    };
    not_now(retry_on_intr(discard))
}

/// Asks for the kernel's stamps of what arrives, which [`recv_stamped`] then returns.
///
/// # Errors
/// EPERM and the like, where a sandbox forbids it.
pub(crate) fn enable_stamps(socket: impl AsFd) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Like [`recv`], or, with `n_discarded`, like [`discard`] of this many bytes. Also returns the kernel's stamp, by the
/// wall clock, of the last packet whose bytes were taken, if the socket has stamps.
///
/// # Errors
/// As [`recv`].
pub(crate) fn recv_stamped(
    socket: impl AsFd,
    buf: &mut [u8],
    n_discarded: Option<usize>,
) -> io::Result<Option<(usize, Option<Nanos>)>> {
    let fd = socket.as_fd().as_raw_fd();
    let (start, n_bytes, flags) = match n_discarded {
        None => (buf.as_mut_ptr(), buf.len(), 0),
        Some(n_bytes) => (std::ptr::null_mut(), n_bytes, libc::MSG_TRUNC),
    };
    let mut part = libc::iovec { iov_base: start.cast(), iov_len: n_bytes };
    let mut control = Control::default();
    let mut message = libc::msghdr {
        msg_name: std::ptr::null_mut(),
        msg_namelen: 0,
        msg_iov: &raw mut part,
        msg_iovlen: 1,
        msg_control: (&raw mut control).cast(),
        msg_controllen: size_of::<Control>(),
        msg_flags: 0,
    };
    let recv = || {
        // SAFETY: the header leads to the buffer, which is borrowed mutably (or, with MSG_TRUNC, to
        // null, where nothing is written), and to the control bytes; all outlive the call.
        let n_read = unsafe { libc::recvmsg(fd, &raw mut message, flags) };
        usize::try_from(n_read).map_err(|_| last_errno())
    };
    let n_read = not_now(retry_on_intr(recv))?;
    Ok(n_read.map(|n_read| (n_read, stamps::wall(&control.0))))
}

/// How many bytes must be in a socket before its thread is woken (SO_RCVLOWAT), while a long body is discarded. Its
/// parts are not read, so a wake-up for each is wasted. nginx, 3 MB, 20 connections, CPU time per reply: 455 us
/// without, 125 to 190 us with. A FIN, an error or a full window still wakes the thread. The kernel makes the window as
/// large as the mark, as it may do anyway.
#[derive(Debug, Default)]
pub(crate) struct LowWater {
    /// The kernel's value; 0 and 1 are equivalent.
    n_bytes: u32,
}

/// At 100 KB the two additional calls cost as much as the wake-ups.
const LOW_WATER_FROM: u64 = 256 * 1024;

/// A larger mark saves nothing: the queue no longer fits the cache.
const LOW_WATER_MAX: u64 = 1024 * 1024;

impl LowWater {
    /// Adapts the mark to the number of bytes that are still to be discarded.
    #[inline]
    pub(crate) fn follow(&mut self, socket: impl AsFd, n_left: u64) {
        let n_bytes = match n_left {
            0 => 1,
            n_left if self.n_bytes > 1 || n_left >= LOW_WATER_FROM => n_left.min(LOW_WATER_MAX),
            _ => 1,
        } as u32;
        if n_bytes != self.n_bytes.max(1) {
            self.n_bytes = n_bytes;
            let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
            // It only affects wake-ups: without it everything else works.
            set_int(socket, level, option, n_bytes as libc::c_int).ok();
        }
    }
}

/// setsockopt(2) for an int option that neither library supports.
///
/// # Errors
/// Those of the option.
pub(crate) fn set_int(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at the pointer during the call, which is the size of `value`.
    let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Makes the following close send RST instead of FIN (SO_LINGER of zero): no TIME_WAIT on either side.
///
/// # Errors
/// None on a TCP socket.
pub fn reset_on_close(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(socket, Some(Duration::ZERO))?)
}

/// Shuts down one or both directions, even if others hold the socket: FIN.
///
/// # Errors
/// ENOTCONN.
pub fn shutdown(socket: impl AsFd, how: Shutdown) -> io::Result<()> {
    let how = match how {
        Shutdown::Read => rustix::net::Shutdown::Read,
        Shutdown::Write => rustix::net::Shutdown::Write,
        Shutdown::Both => rustix::net::Shutdown::Both,
    };
    Ok(rustix::net::shutdown(socket, how)?)
}

/// Aborts a TCP connection at once, even if others hold the socket: RST (connect(2) to AF_UNSPEC).
///
/// # Errors
/// EINVAL on a unix socket.
pub fn disconnect(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::connect_unspec(socket)?)
}

/// Raises this process's limit of open files to its hard limit and returns it; `u64::MAX` if there is no limit.
///
/// # Errors
/// EPERM where a sandbox forbids it.
pub fn raise_file_limit() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(file_limit())
}

/// Lowers the limit of open files to `files` if it is higher: every descriptor is then below that number, which
/// select(2) needs.
///
/// # Errors
/// None in practice.
pub fn lower_file_limit(files: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current > files) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum })?;
    }
    Ok(())
}

/// Number of files that this process may have open (RLIMIT_NOFILE, soft); `u64::MAX` if there is no limit.
pub fn file_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// A signal must not look like "nothing there": the event that led here is still unread, and an edge comes only once.
/// It is not the end of a connection either. Hence [`retry_on_intr`] in both calls.
#[inline]
fn not_now(result: Result<usize, Errno>) -> io::Result<Option<usize>> {
    match result {
        Ok(n_bytes) => Ok(Some(n_bytes)),
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn ready(socket: &OwnedFd, flags: PollFlags) {
        let mut polled = [PollFd::new(socket, flags)];
        poll(&mut polled, None).unwrap();
    }

    #[test]
    fn bytes_go_there_and_come_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = connect(&listener.local_addr().unwrap().into(), Handshake::AckAtOnce).unwrap();
        ready(&socket, PollFlags::OUT);
        assert!(pending_error(&socket).is_none());
        let (mut peer, _) = listener.accept().unwrap();

        let mut buf = [0; 16];
        assert_eq!(recv(&socket, &mut buf).unwrap(), None);
        assert_eq!(send(&socket, b"ping").unwrap(), Some(4));
        peer.read_exact(&mut buf[..4]).unwrap();
        peer.write_all(b"pong!").unwrap();
        ready(&socket, PollFlags::IN);
        assert_eq!(recv(&socket, &mut buf).unwrap(), Some(5));
        drop(peer);
        ready(&socket, PollFlags::IN);
        assert_eq!(recv(&socket, &mut buf).unwrap(), Some(0));
    }

    #[test]
    fn a_closed_port_refuses() {
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = match connect(&addr.into(), Handshake::AckWithRequest) {
            Ok(socket) => {
                ready(&socket, PollFlags::OUT);
                pending_error(&socket).expect("nobody listens")
            }
            Err(error) => error,
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_reset_is_seen_by_the_peer_as_a_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = connect(&listener.local_addr().unwrap().into(), Handshake::AckAtOnce).unwrap();
        ready(&socket, PollFlags::OUT);
        let (mut peer, _) = listener.accept().unwrap();
        reset_on_close(&socket).unwrap();
        drop(socket);
        let error = peer.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn the_file_limit_is_raised_to_the_hard_one() {
        let limit = raise_file_limit().unwrap();
        assert_eq!(limit, file_limit());
        assert!(limit >= 256, "{limit}");
    }
}
