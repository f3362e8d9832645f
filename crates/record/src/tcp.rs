//! What the kernel knew about the generator's own connections when they ended. Start reading at [`TcpUse`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Sums of TCP_INFO (tcp(7)) over connections of the generator, read just before each is closed. Reading needs no
/// privilege, and no other process is involved.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpUse {
    /// Connections that were established.
    pub connections: u64,
    /// Of them: those that were read. If a load closes very many, only some are.
    pub looked_at: u64,
    /// Segments that were retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts, those of SYN included; `None` before Linux 6.7.
    pub timeouts: Option<u64>,
    /// Time from a first timeout until its connection had recovered; `None` before Linux 6.7. It does not include the
    /// wait before that timeout (a second for a SYN, 200 ms or more for data).
    pub timeout_time: Option<Nanos>,
}

/// How connections ended, by what the server did.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionEnds {
    /// The server ended the connection properly: it announced the end in a reply, or closed it (FIN).
    pub by_server: u64,
    /// Of them: those whose last reply announced it (`Connection: close`, HTTP/1.0).
    pub announced: u64,
    /// Number of connections that the server ended properly, by the number of replies on them. At most
    /// [`ConnectionEnds::KINDS_MAX`] different numbers are kept.
    pub replies: BTreeMap<u64, u64>,
    /// Connections with other numbers of replies.
    pub others: u64,
}

impl ConnectionEnds {
    /// Maximum number of entries in `replies`.
    pub const KINDS_MAX: usize = 64;

    /// The server ended a connection after that many replies.
    pub fn record(&mut self, replies: u64, was_announced: bool) {
        self.by_server += 1;
        self.announced += u64::from(was_announced);
        self.add(replies, 1);
    }

    /// Adds the counts of another thread or part.
    pub fn merge(&mut self, other: &Self) {
        self.by_server += other.by_server;
        self.announced += other.announced;
        self.others += other.others;
        other.replies.iter().for_each(|(&replies, &connections)| self.add(replies, connections));
    }

    fn add(&mut self, replies: u64, connections: u64) {
        if self.replies.len() < Self::KINDS_MAX || self.replies.contains_key(&replies) {
            *self.replies.entry(replies).or_default() += connections;
        } else {
            self.others += connections;
        }
    }
}

impl TcpUse {
    /// Adds the counts of another thread or part.
    pub fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.looked_at += other.looked_at;
        self.retransmitted += other.retransmitted;
        self.timeouts = sum(self.timeouts, other.timeouts);
        self.timeout_time = sum(self.timeout_time, other.timeout_time);
    }
}

/// `None` means unknown, not zero.
fn sum<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (known, None) | (None, known) => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_that_the_server_ended_is_counted_once() {
        let mut ends = ConnectionEnds::default();
        (0..100).for_each(|replies| ends.record(replies, replies % 2 == 0));
        let mut sum = ends.clone();
        sum.merge(&ends);
        assert_eq!((sum.by_server, sum.announced, sum.replies[&0]), (200, 100, 2));
        assert_eq!(sum.replies.values().sum::<u64>() + sum.others, sum.by_server);
        assert_eq!(sum.replies.len(), ConnectionEnds::KINDS_MAX);
    }

    #[test]
    fn what_one_kernel_does_not_know_leaves_the_sum_known() {
        let mut known = TcpUse { timeouts: Some(2), ..TcpUse::default() };
        known.merge(&TcpUse { timeouts: None, retransmitted: 3, ..TcpUse::default() });
        assert_eq!((known.timeouts, known.timeout_time, known.retransmitted), (Some(2), None, 3));
    }
}
