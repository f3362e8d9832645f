//! Owns the times for which TCP waits, of all kernels that a report may come from. How late a wait may end is for
//! each check to say. Start reading at [`SYN_AFTER_MS`].
//!
//! Source: include/net/tcp.h (TCP_TIMEOUT_INIT, TCP_RTO_MIN, TCP_DELACK_MIN); for a SYN since Linux 6.5
//! net.ipv4.tcp_syn_linear_timeouts.

/// Times from a first SYN to those that are sent again: 1 to 5, 7 and 11 s since Linux 6.5; 1, 3, 7 and 15 s before.
pub(crate) const SYN_AFTER_MS: [u64; 8] = [1000, 2000, 3000, 4000, 5000, 7000, 11_000, 15_000];
/// The same before Linux 3.1.
pub(crate) const SYN_AFTER_MS_BEFORE_3_1: [u64; 3] = [3000, 9000, 21_000];
/// The same of Solaris 10.
pub(crate) const SYN_AFTER_MS_SOLARIS: [u64; 2] = [3375, 10_125];
/// Times from a segment to those that are sent again: after 200 ms, doubled each time.
pub(crate) const SEGMENT_AFTER_MS: [u64; 3] = [200, 600, 1400];
/// Time for which an acknowledgement is delayed, at least.
pub(crate) const DELAYED_ACK_MS: u64 = 40;
