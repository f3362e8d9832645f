//! How a connection ends early, and what happens to its requests. Owns which outcome it is, and which requests are
//! sent once more. Start reading at [`Conn::closed`].
//!
//! # Retries
//!
//! A server may close a kept connection at any time, also while a request is under way. Neither side is at fault, and
//! any browser sends the request once more. So does joust if the plan allows it ([`Conn::lost`]) and four conditions
//! hold: no byte of the reply came, the connection had served before, the method is idempotent, and it is the first
//! retry (RFC 9112, 9.3.1). Cost: a byte for each request, and a look at it when a connection ends.

use record::{Carrier, Outcome, Sample};
use sys::driver::Failure;
use units::Nanos;
use wire::Eof;

use super::{Conn, ConnContext, ConnState, NextStep, PendingRequest, Reply};
use crate::proxy;

/// How a server ended a connection early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BrokenOff {
    /// RST, or another error.
    Reset,
    /// FIN.
    Closed,
}

/// Whether requests may be sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    No,
    /// Requests of a kind that may be repeated, if no byte of their replies came.
    IfAllowed,
}

impl Conn {
    /// The peer closed its side. If TLS did not announce this before TCP did, a body that only the connection's end
    /// delimits may have been cut off, and counts as cut off (RFC 9112, 9.8).
    pub(crate) fn closed(
        &mut self,
        at: Nanos,
        common: &mut ConnContext,
        ended: &mut Vec<Sample>,
    ) -> NextStep {
        self.peer_closed = true;
        match self.state {
            ConnState::Connecting | ConnState::Tunnelling if common.is_proxied => {
                common.proxy_failure.get_or_insert_with(|| "closed the connection".to_owned());
                return self.fail(Outcome::Proxy, at, ended);
            }
            ConnState::Connecting | ConnState::Tunnelling => {
                return self.fail(Outcome::ConnectFailed, at, ended);
            }
            ConnState::Handshaking => return self.fail(Outcome::Tls, at, ended),
            ConnState::Down => return NextStep::Close,
            ConnState::Up if self.n_sent == 0 => {
                self.is_replacing = true;
                self.server_ends(false, common);
                return NextStep::Close;
            }
            ConnState::Up => {}
        }
        let is_told = self.tls.as_ref().is_none_or(|client| client.end().is_ok());
        match self.parser.eof() {
            Ok(Eof::Done(totals)) if is_told => {
                self.reply.keep_alive = false;
                self.complete(totals, at, common, ended)
            }
            Ok(_) | Err(_) => {
                if !self.reply.has_begun {
                    // The close crossed with a request: to the server, the connection was idle.
                    self.server_ends(false, common);
                }
                self.lost(self.cut(BrokenOff::Closed), at, ended)
            }
        }
    }

    /// The connection was lost.
    pub(crate) fn failed(
        &mut self,
        failure: Failure,
        at: Nanos,
        common: &mut ConnContext,
        ended: &mut Vec<Sample>,
    ) -> NextStep {
        let outcome = match (self.state, failure) {
            (_, Failure::FdExhausted) => Outcome::FdExhausted,
            (_, Failure::PortExhausted) => Outcome::PortExhausted,
            (ConnState::Connecting | ConnState::Tunnelling, _) if common.is_proxied => {
                common.proxy_failure.get_or_insert_with(|| proxy::lost(failure));
                Outcome::Proxy
            }
            (ConnState::Tunnelling, _) => Outcome::ConnectFailed,
            (ConnState::Connecting, Failure::Refused) => Outcome::ConnectRefused,
            (ConnState::Connecting, Failure::TimedOut) => Outcome::ConnectTimeout,
            (ConnState::Connecting, _) => Outcome::ConnectFailed,
            (ConnState::Handshaking, _) => Outcome::Tls,
            (ConnState::Down | ConnState::Up, _) => {
                return self.lost(self.cut(BrokenOff::Reset), at, ended);
            }
        };
        self.fail(outcome, at, ended)
    }

    /// The timeout of the current state ran out.
    pub(crate) fn timed_out(
        &mut self,
        at: Nanos,
        common: &mut ConnContext,
        ended: &mut Vec<Sample>,
    ) -> NextStep {
        let outcome = match self.state {
            ConnState::Connecting | ConnState::Tunnelling if common.is_proxied => {
                let what = if self.state == ConnState::Tunnelling { "CONNECT" } else { "at all" };
                common.proxy_failure.get_or_insert_with(|| {
                    format!("did not answer {what} within the timeout (--timeout)")
                });
                Outcome::Proxy
            }
            ConnState::Connecting | ConnState::Tunnelling => Outcome::ConnectTimeout,
            ConnState::Handshaking => Outcome::TlsTimeout,
            ConnState::Down | ConnState::Up if self.reply.has_begun => Outcome::TimeoutReading,
            ConnState::Down | ConnState::Up => Outcome::TimeoutWaiting,
        };
        self.fail(outcome, at, ended)
    }

    /// The server ended the connection while requests were in flight. Those that may be repeated go out on the next
    /// connection, if this one had served.
    fn lost(&mut self, outcome: Outcome, at: Nanos, ended: &mut Vec<Sample>) -> NextStep {
        // Part of a reply also shows that the server serves.
        let has_served = self.has_served || self.reply.has_begun;
        self.end_all(outcome, if has_served { Again::IfAllowed } else { Again::No }, at, ended)
    }

    /// The requests in flight fail: the oldest with `outcome`, the later ones with the same outcome, unless it
    /// concerns only the oldest reply. If the connection is up, requests that were not sent stay.
    pub(crate) fn fail(
        &mut self,
        outcome: Outcome,
        at: Nanos,
        ended: &mut Vec<Sample>,
    ) -> NextStep {
        self.end_all(outcome, Again::No, at, ended)
    }

    fn end_all(
        &mut self,
        outcome: Outcome,
        again: Again,
        at: Nanos,
        ended: &mut Vec<Sample>,
    ) -> NextStep {
        let n_lost = if self.state == ConnState::Up { self.n_sent } else { self.pending.len() };
        let body_bytes = self.parser.totals().body_bytes;
        let mut n_kept = 0;
        for index in 0..n_lost {
            let out = self.pending[index];
            if again == Again::IfAllowed && out.may_retry && !self.reply.has_begun {
                self.pending[n_kept] =
                    PendingRequest { carrier: Carrier::Retried, may_retry: false, ..out };
                n_kept += 1;
                continue;
            }
            let is_oldest = index == 0;
            let outcome = if is_oldest { outcome } else { behind(outcome) };
            let body_bytes = if is_oldest { body_bytes } else { 0 };
            ended.push(self.sample(out, outcome, at, body_bytes));
            if self.reply.bytes_read > 0 {
                self.has_served = true;
                self.failures = 0;
            }
            self.reply = Reply::default();
        }
        self.pending.drain(n_kept..n_lost);
        self.n_sent = 0;
        NextStep::Abandon
    }

    /// Gives up all requests that are in flight, at the end of the load.
    pub(crate) fn unanswered(&mut self, at: Nanos, ended: &mut Vec<Sample>) {
        let body_bytes = self.parser.totals().body_bytes;
        for (index, out) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            let body_bytes = if index == 0 { body_bytes } else { 0 };
            ended.push(self.sample(out, Outcome::Unanswered, at, body_bytes));
            self.reply = Reply::default();
        }
    }

    fn cut(&self, cut: BrokenOff) -> Outcome {
        match (cut, self.reply.has_begun) {
            (BrokenOff::Reset, false) => Outcome::ResetBeforeFirstByte,
            (BrokenOff::Reset, true) => Outcome::ResetAfterFirstByte,
            (BrokenOff::Closed, false) => Outcome::ClosedBeforeFirstByte,
            (BrokenOff::Closed, true) => Outcome::ClosedAfterFirstByte,
        }
    }
}

/// The outcome of the requests after one that ended with `outcome`: their replies had not begun.
fn behind(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Protocol | Outcome::ResetAfterFirstByte => Outcome::ResetBeforeFirstByte,
        Outcome::ClosedAfterFirstByte => Outcome::ClosedBeforeFirstByte,
        Outcome::TimeoutReading => Outcome::TimeoutWaiting,
        other => other,
    }
}
