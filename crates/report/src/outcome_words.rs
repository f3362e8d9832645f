//! Owns what the outcome of a request is called for a reader who does not know its name in the record.

use record::{LoadRecord, Outcome};

/// Failures that occurred, with their counts.
pub(crate) fn failures(record: &LoadRecord) -> impl Iterator<Item = (Outcome, u64)> {
    record.errors.each().filter(|(_, count)| *count > 0)
}

/// What an outcome means, for a reader who does not know the names.
pub(crate) fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::UnexpectedStatus => "unexpected status",
        Outcome::WrongLength => "body of the wrong length",
        Outcome::WrongHeader => "a header field missing or other than asked for",
        Outcome::WrongBody => "body other than expected",
        Outcome::Protocol => "not HTTP",
        Outcome::TooManyRedirects => "too many redirects (--follow)",
        Outcome::BadRedirect => "redirect that cannot be followed",
        Outcome::ConnectRefused => "connection refused",
        Outcome::ConnectFailed => "connection failed",
        Outcome::ConnectTimeout => "timed out connecting",
        Outcome::TlsTimeout => "timed out in the TLS handshake",
        Outcome::Proxy => "failed at the proxy",
        Outcome::Tls => "TLS failed",
        Outcome::ResetBeforeFirstByte => "reset before the first byte",
        Outcome::ResetAfterFirstByte => "reset inside the reply",
        Outcome::ClosedBeforeFirstByte => "closed before the first byte",
        Outcome::ClosedAfterFirstByte => "closed inside the reply",
        Outcome::TimeoutWaiting => "timed out waiting for the first byte",
        Outcome::TimeoutReading => "timed out inside the reply",
        Outcome::FdExhausted => "no file descriptor left (ulimit -n)",
        Outcome::PortExhausted => "no local port left (ip_local_port_range)",
        Outcome::Unanswered => "unanswered",
    }
}
