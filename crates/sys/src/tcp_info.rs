//! What the kernel knows about a TCP connection (TCP_INFO, tcp(7)). Start reading at [`TcpInfo::of`].
//!
//! The kernel's structure grows at its end, and an older kernel fills less of it. So it is read as bytes, and a field
//! that the kernel did not reach is unknown, never 0.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _};

use units::Nanos;

/// Sums over the life of one connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments that are not acknowledged; of a listener: connections that wait to be accepted (tcp_get_info).
    pub unacknowledged: u32,
    /// Segments that were retransmitted, SYN included.
    pub retransmitted: u32,
    /// Retransmission timeouts, SYN included; `None` before Linux 6.7.
    pub timeouts: Option<u32>,
    /// Time from a first timeout until the connection had recovered; `None` before Linux 6.7. It does not include the
    /// wait before that timeout (a second for a SYN, 200 ms or more for data; tcp_update_rto_stats).
    pub timeout_time: Option<Nanos>,
}

/// Offsets of the fields in `struct tcp_info` (include/uapi/linux/tcp.h); the kernel never moves one.
const UNACKED_AT: usize = 24;
const TOTAL_RETRANS_AT: usize = 100;
const TOTAL_RTO_AT: usize = 240;
/// In milliseconds.
const TOTAL_RTO_TIME_AT: usize = 244;
/// Number of bytes requested: the structure up to the last of the fields.
const N_BYTES: usize = 248;

impl TcpInfo {
    /// Those of a socket; `None` if it is not a TCP socket, or the kernel does not tell. One system call.
    pub fn of(socket: impl AsFd) -> Option<Self> {
        let mut bytes = MaybeUninit::<[u8; N_BYTES]>::zeroed();
        let mut len = N_BYTES as libc::socklen_t;
        // SAFETY: the fd is open while `socket` is borrowed; the kernel writes at most `len` bytes to
        // `bytes`, which has that many, and stores to `len` how many it wrote.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &mut len,
            )
        };
        if result != 0 {
            return None;
        }
        // SAFETY: a zeroed array of bytes is initialised, whatever part of it the kernel wrote.
        let bytes = unsafe { bytes.assume_init() };
        Self::parse(&bytes[..N_BYTES.min(len as usize)])
    }

    /// Reads the bytes that a kernel filled.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let millis = word(TOTAL_RTO_TIME_AT);
        Some(Self {
            unacknowledged: word(UNACKED_AT)?,
            retransmitted: word(TOTAL_RETRANS_AT)?,
            // All three fields were added at once: if the last one is missing, so is this one.
            timeouts: millis.and(half(TOTAL_RTO_AT)).map(u32::from),
            timeout_time: millis.map(|millis| Nanos::from_millis(millis.into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::clock;
    use crate::socket::{Handshake, connect};

    #[test]
    fn a_shorter_structure_leaves_unknown_what_it_does_not_reach() {
        let mut bytes = [0; N_BYTES];
        bytes[UNACKED_AT..][..4].copy_from_slice(&5_u32.to_ne_bytes());
        bytes[TOTAL_RETRANS_AT..][..4].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[TOTAL_RTO_AT..][..2].copy_from_slice(&3_u16.to_ne_bytes());
        bytes[TOTAL_RTO_TIME_AT..][..4].copy_from_slice(&1500_u32.to_ne_bytes());
        let whole = TcpInfo {
            unacknowledged: 5,
            retransmitted: 7,
            timeouts: Some(3),
            timeout_time: Some(Nanos::from_millis(1500)),
        };
        assert_eq!(TcpInfo::parse(&bytes), Some(whole));
        let old = TcpInfo { unacknowledged: 5, retransmitted: 7, ..TcpInfo::default() };
        // 104 bytes: Linux 2.6 to 3.14; 240: 6.6.
        for n_bytes in [104, 240, 244, 247] {
            assert_eq!(TcpInfo::parse(&bytes[..n_bytes]), Some(old), "{n_bytes}");
        }
        assert_eq!(TcpInfo::parse(&bytes[..103]), None);
    }

    #[test]
    fn a_connection_that_lost_nothing_has_zeros_and_a_unix_socket_has_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = TcpInfo::of(&stream).expect("TCP");
        assert_eq!((info.retransmitted, info.timeouts.unwrap_or(0)), (0, 0));
        assert_eq!(info.timeout_time.unwrap_or(Nanos::ZERO), Nanos::ZERO);
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(TcpInfo::of(&one), None);
    }

    /// Nobody accepts and the backlog is full: the kernel drops the SYN, and sends it again after a second.
    #[test]
    fn a_syn_that_was_lost_is_told_as_a_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let route = listener.local_addr().unwrap().into();
        let sockets: Vec<_> =
            (0..8).map(|_| connect(&route, Handshake::AckAtOnce).unwrap()).collect();
        let lost = || sockets.iter().filter_map(TcpInfo::of).find(|info| info.retransmitted > 0);
        let until = clock::monotonic() + Nanos::from_secs(10);
        let info = loop {
            match lost() {
                Some(info) => break info,
                None => assert!(clock::monotonic() < until, "no SYN was sent again"),
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        if info.timeouts.is_none() {
            return skips::note(format_args!("Linux before 6.7: timeouts are not told"));
        }
        assert!(info.timeouts >= Some(1), "{info:?}");
        assert!(info.timeout_time.is_some(), "{info:?}");
    }
}
