//! Owns what the kernel reports about listening sockets (address, backlog, queue, inode), and about begun handshakes
//! and ended connections at a port (sock_diag(7)). /proc/net/tcp has no backlog, and lists listening sockets among all
//! others. Start reading at [`listeners`].
//!
//! Requests and replies have a fixed layout in the machine's byte order (`linux/netlink.h`, `linux/inet_diag.h`), so
//! they are written and read here without `unsafe`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, sockopt};

/// A listening TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    /// Its address.
    pub addr: SocketAddr,
    /// Most connections that the kernel holds until they are accepted: the value given to listen(2), at most
    /// net.core.somaxconn.
    pub backlog: u32,
    /// Connections that wait to be accepted now.
    pub waiting: u32,
    /// Its inode, as `/proc/PID/fd` names it.
    pub inode: u64,
}

/// Longest wait for the kernel, which replies at once.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// Most datagrams read for one reply: the kernel puts some hundred sockets into each.
const DATAGRAMS_MAX: usize = 10_000;
const DATAGRAM_BYTES: usize = 32 << 10;

// From linux/netlink.h and linux/sock_diag.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const IPPROTO_TCP: u8 = 6;
const TCP_SYN_RECV: u32 = 3;
const TCP_TIME_WAIT: u32 = 6;
const TCP_LISTEN: u32 = 10;

/// Length of `struct nlmsghdr`, of `struct inet_diag_req_v2`, of `struct inet_diag_msg`.
const HEADER: usize = 16;
const QUESTION: usize = 56;
const ANSWER: usize = 72;

/// TCP sockets of this network namespace that listen at `port`, over IPv4 and IPv6.
///
/// # Errors
/// The kernel has no sock_diag (a container may forbid it), or did not answer.
pub fn listeners(port: u16) -> io::Result<Vec<Listening>> {
    in_state(TCP_LISTEN, port)
}

/// Incomplete handshakes at `port` of this network namespace: the client has received the SYN-ACK, and its ACK has not
/// arrived. Handshakes that the kernel keeps no record of (SYN cookies) are not included.
///
/// # Errors
/// As those of [`listeners`].
pub fn handshakes(port: u16) -> io::Result<usize> {
    in_state(TCP_SYN_RECV, port).map(|found| found.len())
}

/// Connections to or from `port` in this network namespace that are in TIME_WAIT, at either end.
///
/// # Errors
/// As those of [`listeners`].
pub fn time_wait(port: u16) -> io::Result<usize> {
    let mut count = 0;
    for family in FAMILIES {
        for ports in [Ports { own: port, peer: 0 }, Ports { own: 0, peer: port }] {
            count += ask(family.as_raw() as u8, TCP_TIME_WAIT, ports)?.len();
        }
    }
    Ok(count)
}

const FAMILIES: [AddressFamily; 2] = [AddressFamily::INET, AddressFamily::INET6];

/// The ports that the kernel filters by; 0 matches any.
#[derive(Debug, Clone, Copy)]
struct Ports {
    own: u16,
    peer: u16,
}

fn in_state(state: u32, port: u16) -> io::Result<Vec<Listening>> {
    let mut found = Vec::new();
    for family in FAMILIES {
        found.extend(ask(family.as_raw() as u8, state, Ports { own: port, peer: 0 })?);
    }
    found.retain(|socket| socket.addr.port() == port);
    Ok(found)
}

fn ask(family: u8, state: u32, ports: Ports) -> io::Result<Vec<Listening>> {
    let protocol = Some(netlink::SOCK_DIAG);
    let kind = (SocketType::DGRAM, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind.0, kind.1, protocol)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE))?;
    rustix::net::send(&socket, &question(family, state, ports), SendFlags::empty())?;
    answers(&socket)
}

fn answers(socket: &OwnedFd) -> io::Result<Vec<Listening>> {
    let mut found = Vec::new();
    let mut datagram = vec![0; DATAGRAM_BYTES];
    for _ in 0..DATAGRAMS_MAX {
        let (length, _) = rustix::net::recv(socket, datagram.as_mut_slice(), RecvFlags::empty())?;
        for message in messages(&datagram[..length]) {
            match message {
                Message::Socket(socket) => found.push(socket),
                Message::Other => {}
                Message::Refused(errno) => return Err(io::Error::from_raw_os_error(errno)),
                Message::Done => return Ok(found),
            }
        }
    }
    Err(io::Error::other("the kernel's list of sockets has no end"))
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`. Of the fields that name the socket, the kernel filters only by the
/// ports.
fn question(family: u8, state: u32, ports: Ports) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + QUESTION);
    bytes.extend(((HEADER + QUESTION) as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, 0, 0]);
    bytes.extend((1_u32 << state).to_ne_bytes());
    bytes.extend(ports.own.to_be_bytes());
    bytes.extend(ports.peer.to_be_bytes());
    bytes.resize(HEADER + QUESTION, 0);
    bytes
}

/// A message from the kernel.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    Socket(Listening),
    Refused(i32),
    Done,
    Other,
}

fn messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut all = Vec::new();
    while let Some(length) = number(bytes, 0).map(|length| length as usize) {
        if length < HEADER || length > bytes.len() {
            break;
        }
        let body = &bytes[HEADER..length];
        all.push(match u16::from_ne_bytes([bytes[4], bytes[5]]) {
            NLMSG_DONE => Message::Done,
            NLMSG_ERROR => Message::Refused(number(body, 0).map_or(0, |code| -(code as i32))),
            SOCK_DIAG_BY_FAMILY => listening(body).map_or(Message::Other, Message::Socket),
            _ => Message::Other,
        });
        // Each message begins at a multiple of four.
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    all
}

/// `struct inet_diag_msg`. For a listening socket, rqueue is the number of waiting connections and wqueue the backlog.
fn listening(body: &[u8]) -> Option<Listening> {
    let body = body.get(..ANSWER)?;
    let ip = match AddressFamily::from_raw(body[0].into()) {
        AddressFamily::INET => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(&body[8..12]).ok()?)),
        AddressFamily::INET6 => {
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&body[8..24]).ok()?))
        }
        _ => return None,
    };
    Some(Listening {
        addr: SocketAddr::new(ip, u16::from_be_bytes([body[4], body[5]])),
        waiting: number(body, 56)?,
        backlog: number(body, 60)?,
        inode: number(body, 68)?.into(),
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn listener(addr: &str, backlog: i32) -> Option<(socket2::Socket, SocketAddr)> {
        let addr: SocketAddr = addr.parse().unwrap();
        let kind = socket2::Type::STREAM;
        let socket = socket2::Socket::new(socket2::Domain::for_address(addr), kind, None).ok()?;
        socket.bind(&addr.into()).ok()?;
        socket.listen(backlog).ok()?;
        let addr = socket.local_addr().unwrap().as_socket().unwrap();
        Some((socket, addr))
    }

    #[test]
    fn a_listening_socket_is_found_with_its_backlog_and_inode() {
        for addr in ["127.0.0.1:0", "[::1]:0"] {
            // On a machine without IPv6 there is nothing to find.
            let Some((socket, addr)) = listener(addr, 37) else { continue };
            let found = listeners(addr.port()).unwrap();
            let of_ours: Vec<_> = found.iter().filter(|found| found.addr == addr).collect();
            assert_eq!(of_ours.len(), 1, "{found:?}");
            assert_eq!((of_ours[0].backlog, of_ours[0].waiting), (37, 0));
            let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
            let link = std::fs::read_link(link).unwrap();
            assert_eq!(link.to_string_lossy(), format!("socket:[{}]", of_ours[0].inode));
            let _waits = std::net::TcpStream::connect(addr).unwrap();
            assert_eq!(listeners(addr.port()).unwrap()[0].waiting, 1);
            drop(socket);
            assert!(listeners(addr.port()).unwrap().iter().all(|found| found.addr != addr));
        }
    }

    #[test]
    fn a_handshake_without_its_last_word_is_one_that_has_begun() {
        let (socket, addr) = listener("127.0.0.1:0", 37).unwrap();
        // Drops packets with ACK, which a SYN does not have: the client then believes that it is connected.
        let filter = [
            socket2::SockFilter::new(0x30, 0, 0, 13),
            socket2::SockFilter::new(0x45, 0, 1, 0x10),
            socket2::SockFilter::new(0x06, 0, 0, 0),
            socket2::SockFilter::new(0x06, 0, 0, u32::MAX),
        ];
        socket.attach_filter(&filter).unwrap();
        assert_eq!(handshakes(addr.port()).unwrap(), 0);
        let _client = std::net::TcpStream::connect(addr).unwrap();
        assert_eq!(handshakes(addr.port()).unwrap(), 1);
        assert_eq!(listeners(addr.port()).unwrap()[0].waiting, 0);
    }

    #[test]
    fn what_has_ended_is_counted_by_the_port_at_either_end() {
        for who_closes_first in ["client", "server"] {
            let (socket, addr) = listener("127.0.0.1:0", 8).unwrap();
            let client = std::net::TcpStream::connect(addr).unwrap();
            let server = socket.accept().unwrap().0;
            assert_eq!(time_wait(addr.port()).unwrap(), 0);
            match who_closes_first {
                "client" => (drop(client), drop(server)),
                _ => (drop(server), drop(client)),
            };
            // On a busy machine a kernel thread delivers the last segments a moment later.
            let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
            while time_wait(addr.port()).unwrap() == 0 && std::time::Instant::now() < until {
                std::thread::yield_now();
            }
            assert_eq!(time_wait(addr.port()).unwrap(), 1, "{who_closes_first}");
        }
    }

    #[test]
    fn a_backlog_beyond_the_systems_limit_shows_as_the_limit() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let (_socket, addr) = listener("127.0.0.1:0", i32::MAX).unwrap();
        let found = listeners(addr.port()).unwrap();
        assert_eq!(found[0].backlog.to_string(), most.trim());
    }

    #[test]
    fn a_message_that_is_cut_short_is_no_socket() {
        let mut message = question(2, TCP_LISTEN, Ports { own: 80, peer: 0 });
        assert_eq!(message.len(), HEADER + QUESTION);
        assert_eq!(messages(&message), [Message::Other]);
        message.truncate(HEADER + 3);
        assert_eq!(messages(&message), []);
        assert_eq!(messages(&[0; 64]), []);
    }
}
