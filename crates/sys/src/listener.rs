//! The server's sockets: listen, accept, receive, send, close. Owns the flags of each call. Start reading
//! at [`bind`].
//!
//! What an accepted socket needs (TCP_NODELAY, receive and send timeouts) is set on the listener:
//! Linux copies it to each socket that is accepted (`sk_clone_lock`), so a connection costs no
//! setsockopt. Receive and send are one system call each, and neither raises SIGPIPE.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::sockopt;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags};
use rustix::thread::{MembarrierCommand, membarrier};
use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};
use units::Nanos;

use crate::tcp_info::TcpInfo;

/// Whether a call on a socket waits for the kernel or returns `WouldBlock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Waits, at most for the socket's timeout.
    Blocking,
    /// Returns `WouldBlock` at once.
    NonBlocking,
}

/// Whether more bytes of the same message follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoreData {
    /// More will be sent at once: an incomplete segment is held back (MSG_MORE).
    More,
    /// No more: everything is sent now.
    Nothing,
}

/// Socket options that connections inherit from their listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inherited {
    /// A blocking receive or send fails with `WouldBlock` after this; so does a blocking accept.
    pub call_max: Nanos,
    /// TCP_NODELAY: a send leaves even if an earlier one has not been acknowledged.
    pub nodelay: bool,
}

/// A listening socket on `addr` (port 0: the kernel chooses), blocking. The kernel limits `backlog` to
/// net.core.somaxconn.
///
/// # Errors
/// EADDRINUSE, EACCES (a port below 1024), EADDRNOTAVAIL, EAFNOSUPPORT.
pub fn bind(addr: SocketAddr, backlog: u32, conns: Inherited) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of an earlier server in TIME_WAIT must not block the port; a running server still does.
    socket.set_reuse_address(true)?;
    // All of it before listen: a connection copies its listener at the end of the handshake, which may be long before
    // it is accepted.
    prepare(SockRef::from(&socket), conns)?;
    socket.bind(&addr.into())?;
    socket.listen(listen_backlog(backlog))?;
    Ok(socket.into())
}

/// `count` further queues for the port of `first`, which already listens (SO_REUSEPORT); otherwise like [`bind`]. The
/// kernel chooses the queue of a connection by a hash of both addresses. When a queue is closed, the connections that
/// wait in it are lost, unless net.ipv4.tcp_migrate_req is set.
///
/// # Errors
/// As those of [`bind`].
pub fn bind_more(
    first: &TcpListener,
    backlog: u32,
    conns: Inherited,
    count: usize,
) -> io::Result<Vec<TcpListener>> {
    // Only set now that it has the port to itself: two servers that both set it before bind would share the port.
    SockRef::from(first).set_reuse_port(count > 0)?;
    let addr = first.local_addr()?;
    let queue = |_| {
        let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        prepare(SockRef::from(&socket), conns)?;
        socket.bind(&addr.into())?;
        socket.listen(listen_backlog(backlog))?;
        Ok(socket.into())
    };
    (0..count).map(queue).collect()
}

/// Gives a socket that already listens, perhaps for an earlier server, the settings of [`bind`]. Connections that wait
/// in it keep their settings.
///
/// # Errors
/// None in practice.
pub fn adopt(listener: &TcpListener, backlog: u32, conns: Inherited) -> io::Result<()> {
    set_mode(listener, Mode::Blocking)?;
    let socket = SockRef::from(listener);
    prepare(socket, conns)?;
    // Calling listen again on a listening socket only sets the length of its queue.
    SockRef::from(listener).listen(listen_backlog(backlog))
}

fn prepare(socket: SockRef<'_>, conns: Inherited) -> io::Result<()> {
    socket.set_tcp_nodelay(conns.nodelay)?;
    // The kernel counts in microseconds, and 0 means "no limit".
    let call_max = Some(Duration::from(conns.call_max).max(Duration::from_micros(1)));
    socket.set_read_timeout(call_max)?;
    socket.set_write_timeout(call_max)
}

fn listen_backlog(backlog: u32) -> i32 {
    i32::try_from(backlog).unwrap_or(i32::MAX)
}

/// The first descriptor that a service manager passes (SD_LISTEN_FDS_START of sd_listen_fds(3)).
const PASSED_FIRST: RawFd = 3;

/// The listening socket that was passed by the program which started this process: descriptor 3, by systemd's protocol.
/// Call it only if the environment announces a socket, because the number belongs to another file otherwise. A second
/// call is refused.
///
/// # Errors
/// EBADF, ENOTSOCK; `InvalidInput` where it is no listening TCP socket, or was taken before.
pub fn passed() -> io::Result<TcpListener> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let refused = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if TAKEN.swap(true, Ordering::Relaxed) {
        return refused("it was taken before");
    }
    // SAFETY: fcntl with F_GETFD only inspects the number, and fails if it is not an open file.
    if unsafe { libc::fcntl(PASSED_FIRST, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, as just checked, and whoever started this process has left it to us; the flag above makes
    // sure that there is one owner.
    let fd = unsafe { OwnedFd::from_raw_fd(PASSED_FIRST) };
    let socket = Socket::from(fd);
    if socket.r#type()? != Type::STREAM || !socket.is_listener()? {
        return refused("it is no stream socket that listens");
    }
    if socket.local_addr()?.as_socket().is_none() {
        return refused("it has no address of IPv4 or IPv6");
    }
    socket.set_cloexec(true)?;
    Ok(socket.into())
}

/// The next connection and its peer address. `mode` is that of the new socket; the listener decides whether the call
/// waits.
///
/// # Errors
/// `WouldBlock` (none is waiting, or the listener's timeout passed), `Interrupted`, EMFILE, ENFILE,
/// ENOBUFS, ENOMEM (nothing left to hold it: see [`is_exhaustion`]), ECONNABORTED and the network's
/// own errors (that connection is lost: go on), EINVAL (after [`stop_listening`]).
pub fn accept(listener: impl AsFd, mode: Mode) -> io::Result<(OwnedFd, SocketAddr)> {
    let mut flags = SocketFlags::CLOEXEC;
    flags.set(SocketFlags::NONBLOCK, mode == Mode::NonBlocking);
    let (socket, peer) = rustix::net::acceptfrom_with(listener, flags)?;
    let peer = peer.and_then(|any| SocketAddr::try_from(any).ok());
    Ok((socket, peer.unwrap_or(NOBODY)))
}

/// Used if the kernel does not know the peer: the connection was reset before it was accepted.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The peer address of a connection, if accepting did not return it.
pub fn peer(socket: impl AsFd) -> SocketAddr {
    let any = rustix::net::getpeername(socket).ok().flatten();
    any.and_then(|any| SocketAddr::try_from(any).ok()).unwrap_or(NOBODY)
}

/// Whether accepting failed because the process or the machine has no resources left for another connection. An
/// immediate retry would spin.
pub fn is_exhaustion(error: &io::Error) -> bool {
    let codes = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Whether accepting failed because the port was closed: see [`stop_listening`].
pub fn has_stopped(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

/// Makes the listener itself blocking or not, for every process that shares it.
///
/// # Errors
/// None in practice.
pub fn set_mode(listener: &TcpListener, mode: Mode) -> io::Result<()> {
    listener.set_nonblocking(mode == Mode::NonBlocking)
}

/// Established connections that wait to be accepted, or 0 if the kernel does not tell.
pub fn waiting(listener: &TcpListener) -> u32 {
    TcpInfo::of(listener).map_or(0, |info| info.unacknowledged)
}

/// Makes the kernel begin no further connection on these listening sockets, in any process that shares them. A SYN is
/// dropped as if the network had lost it. The client sends it again after a second, and is refused once the socket is
/// closed. Begun handshakes complete, and waiting connections can be accepted. It cannot be undone.
///
/// It uses a filter of socket(7), because the alternatives lose connections or need more rights. Ending the listening
/// state resets waiting connections; with a backlog of 0 one more connection may come; a firewall rule needs its own
/// rights. Connections that are accepted later inherit the filter, which passes all their packets.
///
/// # Errors
/// EPERM, ENOMEM, and ENOPROTOOPT if the kernel has no filters: then some connections may still begin.
pub fn begin_no_more<'a>(listeners: impl Iterator<Item = &'a TcpListener>) -> io::Result<()> {
    const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    /// Offset of the flags in a TCP header, which is where the packet begins here (RFC 9293, 3.1).
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    let filter = [
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(AND, 0, 0, SYN | ACK),
        SockFilter::new(JUMP_IF_EQUAL, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ];
    let mut any = false;
    for listener in listeners {
        SockRef::from(listener).attach_filter(&filter)?;
        any = true;
    }
    // Another CPU may be processing a SYN that passed before. The kernel waits here (some 15 ms) until every CPU has
    // left such work, so that begun connections can be counted.
    if any && membarrier(MembarrierCommand::Global).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Stops listening, in every process that shares the socket: new connections are refused, waiting ones are reset, and a
/// blocked accept fails with EINVAL.
///
/// # Errors
/// ENOTCONN where it has stopped before.
pub fn stop_listening(listener: &TcpListener) -> io::Result<()> {
    Ok(rustix::net::shutdown(listener, Shutdown::Both)?)
}

/// Receives into `buf`; 0 is the end of the stream.
///
/// # Errors
/// `WouldBlock` (nothing there, or the timeout passed), `Interrupted`, ECONNRESET, ETIMEDOUT.
pub fn receive(socket: impl AsFd, buf: &mut [u8]) -> io::Result<usize> {
    let (_, n) = rustix::net::recv(socket, buf, RecvFlags::empty())?;
    Ok(n)
}

/// As [`receive`], and never waits (MSG_DONTWAIT), whatever the mode of the socket.
///
/// # Errors
/// As [`receive`].
pub fn receive_now(socket: impl AsFd, buf: &mut [u8]) -> io::Result<usize> {
    let (_, n) = rustix::net::recv(socket, buf, RecvFlags::DONTWAIT)?;
    Ok(n)
}

/// Sends what the kernel takes of `bytes`.
///
/// # Errors
/// `WouldBlock` (no room, or the timeout passed), `Interrupted`, EPIPE, ECONNRESET.
pub fn send(socket: impl AsFd, bytes: &[u8], then: MoreData) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, send_flags(then))?)
}

/// Sends what the kernel takes of `head` and then `body`, in one call.
///
/// # Errors
/// As [`send`].
pub fn send_two(socket: impl AsFd, head: &[u8], body: &[u8]) -> io::Result<usize> {
    let parts = [IoSlice::new(head), IoSlice::new(body)];
    let control = &mut SendAncillaryBuffer::default();
    Ok(rustix::net::sendmsg(socket, &parts, control, send_flags(MoreData::Nothing))?)
}

/// Sends what the kernel takes of `len` bytes of `file` from `offset` on, without a copy through this process; 0 if the
/// file has become shorter than `offset`.
///
/// # Errors
/// As [`send`], and those of reading the file.
pub fn send_file(
    socket: impl AsFd,
    file: impl AsFd,
    mut offset: u64,
    len: usize,
) -> io::Result<usize> {
    Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), len)?)
}

/// Ends the sending side: the peer reads the end of the stream after what was sent.
///
/// # Errors
/// ENOTCONN where the peer has reset the connection.
pub fn shutdown_send(socket: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(socket, Shutdown::Write)?)
}

/// Closes at once and without an orderly end: the peer sees a reset.
pub fn reset(socket: OwnedFd) {
    // If this fails, an orderly close is the next best.
    let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
}

fn send_flags(then: MoreData) -> SendFlags {
    match then {
        MoreData::More => SendFlags::NOSIGNAL | SendFlags::MORE,
        MoreData::Nothing => SendFlags::NOSIGNAL,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;

    const CONNS: Inherited = Inherited { call_max: Nanos::from_millis(20), nodelay: true };

    fn local() -> (TcpListener, SocketAddr) {
        let listener = bind("127.0.0.1:0".parse().unwrap(), 64, CONNS).unwrap();
        let addr = listener.local_addr().unwrap();
        (listener, addr)
    }

    #[test]
    fn a_connection_takes_nodelay_and_timeouts_from_its_listener() {
        let (listener, addr) = local();
        let client = TcpStream::connect(addr).unwrap();
        let (socket, peer) = accept(&listener, Mode::Blocking).unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
        let before = Instant::now();
        let error = receive(&socket, &mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(before.elapsed() >= Duration::from_millis(20));
        let send = sockopt::socket_timeout(&socket, sockopt::Timeout::Send).unwrap().unwrap();
        // The kernel keeps it in ticks of 1 to 10 ms.
        assert!(send >= Duration::from_millis(20) && send <= Duration::from_millis(30), "{send:?}");
    }

    #[test]
    fn a_connection_has_no_nodelay_where_its_listener_has_none() {
        let conns = Inherited { nodelay: false, ..CONNS };
        let listener = bind("127.0.0.1:0".parse().unwrap(), 64, conns).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = accept(&listener, Mode::Blocking).unwrap();
        assert!(!sockopt::tcp_nodelay(&socket).unwrap());
    }

    #[test]
    fn waiting_counts_connections_that_were_not_accepted() {
        let (listener, addr) = local();
        assert_eq!(waiting(&listener), 0);
        let _clients: Vec<_> = (0..3).map(|_| TcpStream::connect(addr).unwrap()).collect();
        assert_eq!(waiting(&listener), 3);
        accept(&listener, Mode::Blocking).unwrap();
        assert_eq!(waiting(&listener), 2);
    }

    #[test]
    fn where_no_more_begin_those_that_wait_are_served_and_later_ones_are_not_connected() {
        let (listener, addr) = local();
        let mut waits = TcpStream::connect(addr).unwrap();
        begin_no_more([&listener].into_iter()).unwrap();
        let late = TcpStream::connect_timeout(&addr, Duration::from_millis(50)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        assert_eq!(waiting(&listener), 1);
        let (socket, _) = accept(&listener, Mode::NonBlocking).unwrap();
        waits.write_all(b"asks").unwrap();
        let mut got = [0; 8];
        assert_eq!(receive(&socket, &mut got).unwrap(), 4);
        send(&socket, b"answer", MoreData::Nothing).unwrap();
        drop(socket);
        let mut answer = String::new();
        waits.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
        stop_listening(&listener).unwrap();
        let refused = TcpStream::connect(addr).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_stopped_listener_refuses_and_wakes_who_waits() {
        let (listener, addr) = local();
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| {
                while let Err(error) = accept(&listener, Mode::Blocking) {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        return error.raw_os_error();
                    }
                }
                None
            });
            stop_listening(&listener).unwrap();
            assert_eq!(accepting.join().unwrap(), Some(libc::EINVAL));
        });
        let refused = TcpStream::connect(addr).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn head_and_body_arrive_as_one_stream() {
        let (listener, addr) = local();
        let mut client = TcpStream::connect(addr).unwrap();
        let (socket, _) = accept(&listener, Mode::NonBlocking).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        assert_eq!(send_two(&socket, b"head ", b"body ").unwrap(), 10);
        assert_eq!(send(&socket, b"range ", MoreData::More).unwrap(), 6);
        assert_eq!(send_file(&socket, &file, 2, 3).unwrap(), 3);
        assert_eq!(send_file(&socket, &file, 10, 3).unwrap(), 0);
        shutdown_send(&socket).unwrap();
        let mut got = String::new();
        client.read_to_string(&mut got).unwrap();
        assert_eq!(got, "head body range 234");
    }

    #[test]
    fn a_reset_is_seen_as_a_reset() {
        let (listener, addr) = local();
        let mut client = TcpStream::connect(addr).unwrap();
        reset(accept(&listener, Mode::Blocking).unwrap().0);
        let error = client.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn queues_of_one_port_share_its_connections_and_nobody_else_gets_the_port() {
        let (first, addr) = local();
        let more = bind_more(&first, 64, CONNS, 2).unwrap();
        assert!(more.iter().all(|queue| queue.local_addr().unwrap() == addr));
        let _clients: Vec<_> = (0..48).map(|_| TcpStream::connect(addr).unwrap()).collect();
        let waiting: Vec<u32> = std::iter::once(&first).chain(&more).map(waiting).collect();
        assert_eq!(waiting.iter().sum::<u32>(), 48);
        // Of 3^48 distributions, about 3 * 2^48 leave a queue empty.
        assert!(waiting.iter().all(|&waiting| waiting > 0), "{waiting:?}");
        let refused = bind(addr, 16, CONNS).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_taken_port_is_refused() {
        let (_listener, addr) = local();
        assert_eq!(bind(addr, 16, CONNS).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
