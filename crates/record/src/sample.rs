//! One request and what came of it.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// How a request ended. All but `Ok` are failures; each is told apart because each has another cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A complete, well-formed reply of the expected status and length.
    Ok,
    /// A complete reply, but its status is not one that was expected (default: 200 to 399).
    UnexpectedStatus,
    /// A complete reply whose body has not the length that was expected.
    WrongLength,
    /// A complete reply without a header field that was asked for.
    WrongHeader,
    /// A complete reply whose body is not the one that was expected.
    WrongBody,
    /// Bytes that are not HTTP, or whose framing is not allowed.
    Protocol,
    /// A redirect after as many as were to be followed ([`crate::LoadPlan::follow`]).
    TooManyRedirects,
    /// A redirect whose Location leads nowhere: no http URL, or a host without an address.
    BadRedirect,
    /// The connection was refused (nobody listens).
    ConnectRefused,
    /// The connection could not be made for another reason (no route, reset in the handshake).
    ConnectFailed,
    /// Connecting took longer than the timeout.
    ConnectTimeout,
    /// The TLS handshake took longer than the timeout. Older files count it as `ConnectTimeout`.
    TlsTimeout,
    /// The proxy could not be reached, or opened no tunnel to the server.
    Proxy,
    /// The TLS handshake failed, or a record was wrong.
    Tls,
    /// Reset by the peer (RST) before a byte of the reply. In older files closed, too.
    ResetBeforeFirstByte,
    /// Reset by the peer (RST) inside the reply. In older files closed, too.
    ResetAfterFirstByte,
    /// Closed by the peer in order (FIN) before a byte of the reply.
    ClosedBeforeFirstByte,
    /// Closed by the peer in order (FIN) inside the reply.
    ClosedAfterFirstByte,
    /// No byte of the reply came within the timeout.
    TimeoutWaiting,
    /// The reply began but was not complete within the timeout.
    TimeoutReading,
    /// This process may open no more files (EMFILE, ENFILE).
    FdExhausted,
    /// No local port was free (EADDRNOTAVAIL).
    PortExhausted,
    /// Still out when the load ended. Not a failure of the server, and not a success.
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

    /// Whether the reply came whole, as expected or not.
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
    /// When it was meant to start. Closed loop: when its connection became free.
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
    /// Status of the reply, also where it broke off behind its head; 0: no head came. In older files it is 0
    /// wherever the reply is not whole.
    pub status: u16,
    /// What came of it.
    pub outcome: Outcome,
    /// Index of the connection slot, 0 to connections - 1.
    pub conn: u32,
    /// Of `bytes_read`: the head, interim ones included; 0 where it was not complete.
    #[serde(default)]
    pub bytes_head: u32,
    /// How it came to its connection.
    #[serde(default, skip_serializing_if = "Carrier::is_default")]
    pub carrier: Carrier,
    /// What had become of its connection when it ended.
    #[serde(default, skip_serializing_if = "AtEnd::is_default")]
    pub at_end: AtEnd,
    /// Which request it was: its index in [`LoadPlan::requests`](crate::LoadPlan::requests), or the number
    /// that a scenario gave it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u32,
}

/// How a request came to its connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// Another request had been on it.
    #[default]
    Reused,
    /// It was made for this request: `sent - due` is the time to connect, TLS included.
    Fresh,
    /// The same, since the server had closed the one before in order while it was idle.
    Replacing,
    /// The one that it was sent on was closed before a byte of the reply, and it was sent once more on
    /// a new one. `sent` is of the first time.
    Retried,
}

/// What had become of a connection when a request on it ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// The reply said that another request may follow.
    #[default]
    Kept,
    /// The reply said that it was the last.
    Last,
    /// The server had closed it in order (FIN): that is how the reply ended, or was cut.
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

/// As serde wants it: most loads have one request, whose index needs no room in a file.
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Sample {
    /// Whether the server could not be reached or was lost, or did not answer in time: of all failures
    /// those that are not about what a reply says.
    pub fn is_lost(&self) -> bool {
        self.at_end == AtEnd::Lost
            && !matches!(self.outcome, Outcome::Protocol | Outcome::Unanswered)
    }
}

/// Number of failures of each kind; `total` is their sum. `Ok` and `Unanswered` have no place here.
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
    /// The counter of an outcome; `None` for those that are no failure.
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
