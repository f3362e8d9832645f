//! One request and its outcome.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// How a request ended. All but `Ok` are failures; they are distinguished because their causes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A complete, well-formed reply of the expected status and length.
    Ok,
    /// A complete reply, but with an unexpected status (default: 200 to 399 are expected).
    UnexpectedStatus,
    /// A complete reply whose body does not have the expected length.
    WrongLength,
    /// A complete reply without a required header field.
    WrongHeader,
    /// A complete reply whose body is not the expected one.
    WrongBody,
    /// Bytes that are not HTTP, or whose framing is not allowed.
    Protocol,
    /// A redirect beyond the allowed number ([`crate::LoadPlan::follow`]).
    TooManyRedirects,
    /// A redirect with an unusable Location: not an http URL, or a host without an address.
    BadRedirect,
    /// The connection was refused (nobody listens).
    ConnectRefused,
    /// The connection could not be made for another reason (no route, reset in the handshake).
    ConnectFailed,
    /// Connecting took longer than the timeout.
    ConnectTimeout,
    /// The TLS handshake took longer than the timeout. Older files count it as `ConnectTimeout`.
    TlsTimeout,
    /// The proxy could not be reached, or did not open a tunnel to the server.
    Proxy,
    /// The TLS handshake failed, or a record was invalid.
    Tls,
    /// Reset by the peer (RST) before the first byte of the reply. In older files also closed.
    ResetBeforeFirstByte,
    /// Reset by the peer (RST) inside the reply. In older files also closed.
    ResetAfterFirstByte,
    /// Closed properly by the peer (FIN) before the first byte of the reply.
    ClosedBeforeFirstByte,
    /// Closed properly by the peer (FIN) inside the reply.
    ClosedAfterFirstByte,
    /// No byte of the reply arrived within the timeout.
    TimeoutWaiting,
    /// The reply began but was not complete within the timeout.
    TimeoutReading,
    /// This process cannot open more files (EMFILE, ENFILE).
    FdExhausted,
    /// No local port was free (EADDRNOTAVAIL).
    PortExhausted,
    /// Still in flight when the load ended. Neither a failure of the server nor a success.
    Unanswered,
}

impl Outcome {
    /// Every outcome, in the order of the columns of a report.
    pub const ALL: [Self; 23] = [
        Self::Ok,
        Self::UnexpectedStatus,
        Self::WrongLength,
        Self::WrongHeader,
        Self::WrongBody,
        Self::Protocol,
        Self::TooManyRedirects,
        Self::BadRedirect,
        Self::ConnectRefused,
        Self::ConnectFailed,
        Self::ConnectTimeout,
        Self::TlsTimeout,
        Self::Proxy,
        Self::Tls,
        Self::ResetBeforeFirstByte,
        Self::ResetAfterFirstByte,
        Self::ClosedBeforeFirstByte,
        Self::ClosedAfterFirstByte,
        Self::TimeoutWaiting,
        Self::TimeoutReading,
        Self::FdExhausted,
        Self::PortExhausted,
        Self::Unanswered,
    ];

    /// Whether the reply was complete, as expected or not.
    pub fn is_complete(self) -> bool {
        matches!(
            self,
            Self::Ok
                | Self::UnexpectedStatus
                | Self::WrongLength
                | Self::WrongHeader
                | Self::WrongBody
                | Self::TooManyRedirects
                | Self::BadRedirect
        )
    }
}

/// One request. Instants count from the start of the load; an instant that was never reached is 0,
/// and `done` is then the instant of the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was due. Closed loop: when its connection became free.
    pub due: Nanos,
    /// When its first byte was handed to the kernel.
    pub sent: Nanos,
    /// When the first byte of the reply was seen.
    pub first_byte: Nanos,
    /// When its last byte was seen, or the failure.
    pub done: Nanos,
    /// Bytes of the reply that were read, head included.
    pub bytes_read: u64,
    /// Bytes of the reply's body (after removal of chunk framing).
    pub bytes_body: u64,
    /// Status of the reply, even if it broke off after its head; 0: no complete head. In older files it is 0 for every
    /// incomplete reply.
    pub status: u16,
    /// Its outcome.
    pub outcome: Outcome,
    /// Index of the connection slot, 0 to connections - 1.
    pub conn: u32,
    /// Of `bytes_read`: the head, with interim ones; 0 if it was not complete.
    #[serde(default)]
    pub bytes_head: u32,
    /// How it got its connection.
    #[serde(default, skip_serializing_if = "Carrier::is_default")]
    pub carrier: Carrier,
    /// The state of its connection when it ended.
    #[serde(default, skip_serializing_if = "AtEnd::is_default")]
    pub at_end: AtEnd,
    /// Which request it was: its index in [`LoadPlan::requests`](crate::LoadPlan::requests), or the number from the
    /// scenario.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u32,
}

/// How a request got its connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// The connection had carried another request.
    #[default]
    Reused,
    /// The connection was opened for this request: `sent - due` is the time to connect, TLS included.
    Fresh,
    /// The same, because the server had closed the previous one properly while it was idle.
    Replacing,
    /// The server closed its connection before the first byte of the reply, and the request was sent again on a new
    /// one. `sent` is that of the first time.
    Retried,
}

/// The state of a connection when a request on it ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// The reply allowed another request.
    #[default]
    Kept,
    /// The reply announced that it was the last.
    Last,
    /// The server closed it properly (FIN), which ended the reply or cut it off.
    Closed,
    /// It was lost (reset, refused, timed out) or given up.
    Lost,
}

impl Carrier {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl AtEnd {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// For serde: most loads have only one request, whose index is left out of the file.
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Sample {
    /// Whether the server could not be reached, was lost, or did not answer in time: all failures that are not about
    /// the content of a reply.
    pub fn is_lost(&self) -> bool {
        self.at_end == AtEnd::Lost
            && !matches!(self.outcome, Outcome::Protocol | Outcome::Unanswered)
    }
}

/// Number of failures of each kind; `total` is their sum. `Ok` and `Unanswered` are not counted here.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "each field is the outcome of its name")]
pub struct ErrorCounts {
    pub unexpected_status: u64,
    pub wrong_length: u64,
    pub wrong_header: u64,
    pub wrong_body: u64,
    pub protocol: u64,
    pub too_many_redirects: u64,
    pub bad_redirect: u64,
    pub connect_refused: u64,
    pub connect_failed: u64,
    pub connect_timeout: u64,
    pub tls_timeout: u64,
    pub proxy: u64,
    pub tls: u64,
    pub reset_before_first_byte: u64,
    pub reset_after_first_byte: u64,
    pub closed_before_first_byte: u64,
    pub closed_after_first_byte: u64,
    pub timeout_waiting: u64,
    pub timeout_reading: u64,
    pub fd_exhausted: u64,
    pub port_exhausted: u64,
}

impl ErrorCounts {
    /// The counter of an outcome; `None` if it is not a failure.
    pub fn of(&mut self, outcome: Outcome) -> Option<&mut u64> {
        Some(match outcome {
            Outcome::Ok | Outcome::Unanswered => return None,
            Outcome::UnexpectedStatus => &mut self.unexpected_status,
            Outcome::WrongLength => &mut self.wrong_length,
            Outcome::WrongHeader => &mut self.wrong_header,
            Outcome::WrongBody => &mut self.wrong_body,
            Outcome::Protocol => &mut self.protocol,
            Outcome::TooManyRedirects => &mut self.too_many_redirects,
            Outcome::BadRedirect => &mut self.bad_redirect,
            Outcome::ConnectRefused => &mut self.connect_refused,
            Outcome::ConnectFailed => &mut self.connect_failed,
            Outcome::ConnectTimeout => &mut self.connect_timeout,
            Outcome::TlsTimeout => &mut self.tls_timeout,
            Outcome::Proxy => &mut self.proxy,
            Outcome::Tls => &mut self.tls,
            Outcome::ResetBeforeFirstByte => &mut self.reset_before_first_byte,
            Outcome::ResetAfterFirstByte => &mut self.reset_after_first_byte,
            Outcome::ClosedBeforeFirstByte => &mut self.closed_before_first_byte,
            Outcome::ClosedAfterFirstByte => &mut self.closed_after_first_byte,
            Outcome::TimeoutWaiting => &mut self.timeout_waiting,
            Outcome::TimeoutReading => &mut self.timeout_reading,
            Outcome::FdExhausted => &mut self.fd_exhausted,
            Outcome::PortExhausted => &mut self.port_exhausted,
        })
    }

    /// Outcome and count of every kind, in the order of [`Outcome::ALL`].
    pub fn each(&self) -> impl Iterator<Item = (Outcome, u64)> {
        let mut counts = *self;
        Outcome::ALL.into_iter().filter_map(move |o| counts.of(o).map(|count| (o, *count)))
    }

    /// Sum over all kinds.
    pub fn total(&self) -> u64 {
        self.each().map(|(_, count)| count).sum()
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (outcome, count) in other.each() {
            *self.of(outcome).expect("each yields failures only") += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_one_place() {
        let mut counts = ErrorCounts::default();
        for outcome in Outcome::ALL {
            if let Some(count) = counts.of(outcome) {
                *count += 1;
            }
        }
        assert_eq!(counts.total(), Outcome::ALL.len() as u64 - 2);
        let fields = serde_json::to_value(counts).unwrap();
        assert!(fields.as_object().unwrap().values().all(|count| count == 1), "{fields}");
    }
}
