//! One connection of the load and the requests on it. Owns the state machine and the classification
//! of what happens; does no I/O, reads no clock: it says what to do next.
//! Start reading at [`Conn::received`].
//!
//! ```text
//!        start             connected              handshaken
//!   Down -----> Connecting ---------> Handshaking -----------> Up
//!     ^             `--> Tunnelling -->  (TLS)                 |
//!     +----- any failure, any close ---------------------------+
//! ```
//! A connection that is up has requests in flight, in the order in which they are answered. Some are sent; the rest
//! wait for this connection, or for the next one after a last request. Without pipelining there is at most one.
//! `ends` has how a connection ends, and what happens to its requests then.

mod ends;

use std::collections::VecDeque;

use record::{AtEnd, Carrier, Outcome, Redirect, Sample, Wants};
use units::Nanos;
use wire::tls::TlsClient;
use wire::{Event, Fields, ReplyHead, ReplyLimits, ReplyParser, ReplyTotals, RequestKind};

use crate::check::{BodyWatch, Checks, Judged};
use crate::cookies::Jar;
use crate::first_head::FirstHead;
use crate::hashing::{HashCounts, HashTurns};
use crate::location;
use crate::proxy::{self, Tunnel};
use crate::user::{self, KeptReply, User};

/// The kernel may throw away a body of which at least this much is still to come. If less is to come, most of the
/// rest came with the head, and asking costs more than the copy.
const DISCARD_MIN: u64 = 16 * 1024;

/// A connection slot.
pub(crate) struct Conn {
    state: ConnState,
    /// Index of the origin that it is or will be connected to.
    pub(crate) origin: u32,
    parser: ReplyParser,
    pub(crate) tls: Option<Box<TlsClient>>,
    pub(crate) jar: Jar,
    /// Requests, the oldest first; the first `n_sent` of them are sent.
    pending: VecDeque<PendingRequest>,
    n_sent: usize,
    /// Requests that were sent on this connection.
    n_requests: u64,
    /// The reply that is being read, or the next one.
    reply: Reply,
    watch: BodyWatch,
    /// When it began to connect, or to shake hands.
    pub(crate) stage_began: Nanos,
    /// Whether a byte of a reply came on this connection.
    has_served: bool,
    /// Whether the peer has closed its side, and whether it closed the previous connection while that was idle.
    peer_closed: bool,
    is_replacing: bool,
    /// How the server ended it in order; kept until it is closed.
    ended_by_server: Option<ServerEnd>,
    /// Consecutive connections of this slot that failed before a byte of a reply.
    failures: u8,
    /// Whether requests go out one at a time. Those of a pipeline that broke off are sent once more, and any of them
    /// may be the cause (RFC 9112, 9.3.2).
    is_cautious: bool,
    /// Whether a body waits for `100 Continue`, and the body.
    pub(crate) awaits_continue: bool,
    pub(crate) held_body: Vec<u8>,
    /// Present if a scenario plays the user.
    pub(crate) user: Option<Box<User>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnState {
    /// There is no connection.
    Down,
    Connecting,
    /// The proxy was asked for a tunnel.
    Tunnelling,
    /// TLS.
    Handshaking,
    Up,
}

/// How the server ended a connection in order, though the client would have kept it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerEnd {
    /// Replies that it had carried whole.
    pub(crate) n_replies: u64,
    /// Whether the last of them announced the end.
    pub(crate) was_announced: bool,
}

/// A request that has begun and has not ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingRequest {
    pub(crate) due: Nanos,
    /// Index in the plan.
    pub(crate) request: u32,
    pub(crate) kind: RequestKind,
    pub(crate) sent: Nanos,
    pub(crate) carrier: Carrier,
    /// Whether it may be sent once more.
    pub(crate) may_retry: bool,
    /// Number of its rendering, once it was rendered: a second sending has the same values.
    number: Option<u64>,
    /// For a request of a user: begin and end of its bytes in [`User::asked`].
    pub(crate) asked: (u32, u32),
}

impl PendingRequest {
    /// A request that is begun.
    #[inline]
    pub(crate) fn new(due: Nanos, request: u32, kind: RequestKind) -> Self {
        let (sent, carrier) = (Nanos::ZERO, Carrier::Fresh);
        let (may_retry, number) = (false, None);
        Self { due, request, kind, sent, carrier, may_retry, number, asked: (0, 0) }
    }
}

/// The reply being read.
#[derive(Debug, Clone, Copy, Default)]
struct Reply {
    has_begun: bool,
    first_byte: Nanos,
    bytes_read: u64,
    bytes_head: u32,
    /// Once its head is complete.
    status: u16,
    keep_alive: bool,
    has_headers: bool,
}

/// What all connections of a thread have in common.
pub(crate) struct ConnContext {
    pub(crate) checks: Checks,
    pub(crate) keep_alive: bool,
    /// Whether the plan's own requests ask the server to end the connection.
    pub(crate) asks_to_close: bool,
    pub(crate) cookies: bool,
    /// Requests that a connection may carry.
    pub(crate) requests_per_connection: u64,
    /// Replies that began, on all connections; the choice of hashed bodies counts by this.
    pub(crate) n_replies: u64,
    /// Which replies have their bodies hashed, and the results.
    pub(crate) turns: HashTurns,
    pub(crate) bodies: HashCounts,
    /// Replies whose heads end lines in LF alone.
    pub(crate) n_bare_lf: u64,
    /// Present if the plan asks for it.
    pub(crate) first_head: Option<FirstHead>,
    /// Whether all connections lead to a proxy, and the reason for the proxy's first failure.
    pub(crate) is_proxied: bool,
    pub(crate) proxy_failure: Option<String>,
    /// The first redirect that came.
    pub(crate) redirect: Option<Redirect>,
    /// What users want to see of replies.
    pub(crate) wants: Wants,
    /// What was kept of complete replies, each with its index in `ended`, in rising order.
    pub(crate) kept: Vec<(usize, KeptReply)>,
}

/// What the worker has to do for a request that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartAction {
    /// Nothing: it waits.
    Waits,
    /// Connect.
    Connect,
    /// Send what has not been sent.
    Send,
    /// Leave the current origin and connect to another.
    Move,
}

/// What the worker has to do after bytes arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReceiveResult {
    /// The first byte of a reply came: the time for reading begins.
    pub(crate) first_byte: bool,
    /// The server wants the body.
    pub(crate) continues: bool,
    /// This many bytes of a body that need no check are still to come.
    pub(crate) discard: u64,
    /// What happens to the connection.
    pub(crate) then: NextStep,
}

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NextStep {
    /// It stays.
    #[default]
    Keep,
    /// The proxy has opened the tunnel that it was asked for.
    Tunnelled,
    /// It is closed in order.
    Close,
    /// It is given up.
    Abandon,
}

impl Conn {
    pub(crate) fn new(pipeline: u32) -> Self {
        Self {
            state: ConnState::Down,
            origin: 0,
            parser: ReplyParser::new(ReplyLimits::DEFAULT),
            tls: None,
            jar: Jar::default(),
            pending: VecDeque::with_capacity(pipeline as usize),
            n_sent: 0,
            n_requests: 0,
            reply: Reply::default(),
            watch: BodyWatch::default(),
            stage_began: Nanos::ZERO,
            has_served: false,
            peer_closed: false,
            is_replacing: false,
            ended_by_server: None,
            failures: 0,
            is_cautious: false,
            awaits_continue: false,
            held_body: Vec::new(),
            user: None,
        }
    }

    /// A connection on which a scenario plays the user.
    pub(crate) fn of_user() -> Self {
        Self { user: Some(Box::default()), ..Self::new(1) }
    }

    pub(crate) fn state(&self) -> ConnState {
        self.state
    }

    /// Whether the connection is established, TLS or not.
    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.state, ConnState::Handshaking | ConnState::Up)
    }

    /// Whether a request has begun and has not ended.
    #[inline]
    pub(crate) fn has_request(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Number of requests that were sent and are not answered.
    #[inline]
    pub(crate) fn n_sent(&self) -> usize {
        self.n_sent
    }

    /// Whether a request waits to be sent on this connection, and none is in flight.
    #[inline]
    pub(crate) fn is_held_back(&self) -> bool {
        self.n_sent == 0 && !self.pending.is_empty()
    }

    /// The number of the request that was sent last; it gets the next number if it has none yet.
    pub(crate) fn number(&mut self, next: &mut u64) -> u64 {
        let sent = &mut self.pending[self.n_sent - 1];
        *sent.number.get_or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    /// Begins a request to that origin.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        out: PendingRequest,
        origin: u32,
        common: &ConnContext,
    ) -> StartAction {
        self.pending.push_back(out);
        match self.state {
            ConnState::Up if self.origin != origin => {
                assert_eq!(self.pending.len(), 1, "only a free connection changes its origin");
                self.origin = origin;
                StartAction::Move
            }
            ConnState::Up if self.n_requests < common.requests_per_connection => StartAction::Send,
            ConnState::Down => {
                self.origin = origin;
                StartAction::Connect
            }
            _ => StartAction::Waits,
        }
    }

    /// Begins another request right after the last one, to be sent with it.
    pub(crate) fn begin_behind(&mut self, out: PendingRequest) {
        self.pending.push_back(out);
    }

    /// It begins to connect.
    pub(crate) fn connects(&mut self, now: Nanos) {
        assert_eq!(self.state, ConnState::Down, "only a slot without a connection connects");
        self.state = ConnState::Connecting;
        self.stage_began = now;
        self.has_served = false;
        self.peer_closed = false;
        self.ended_by_server = None;
        self.n_requests = 0;
        self.is_cautious = self.has_retried();
        self.reply = Reply::default();
        self.parser.reset();
    }

    fn has_retried(&self) -> bool {
        self.pending.iter().any(|out| out.carrier == Carrier::Retried)
    }

    /// It is connected, and begins to shake hands if there is a TLS client.
    pub(crate) fn connected(&mut self, tls: Option<Box<TlsClient>>, now: Nanos) {
        assert!(
            matches!(self.state, ConnState::Connecting | ConnState::Tunnelling),
            "only a connecting slot gets connected"
        );
        self.state = if tls.is_some() { ConnState::Handshaking } else { ConnState::Up };
        self.tls = tls;
        self.stage_began = now;
    }

    /// It is connected to a proxy, which is asked for a tunnel.
    pub(crate) fn tunnels(&mut self) {
        self.state = ConnState::Tunnelling;
        proxy::expect_tunnel(&mut self.parser);
    }

    /// The TLS handshake is done.
    pub(crate) fn handshaken(&mut self) {
        self.state = ConnState::Up;
    }

    /// The next request that is to be sent on this connection, counted as sent at `now`.
    #[inline]
    pub(crate) fn next_to_send(
        &mut self,
        now: Nanos,
        common: &ConnContext,
    ) -> Option<PendingRequest> {
        if self.state != ConnState::Up || self.n_requests >= common.requests_per_connection {
            return None;
        }
        if self.is_cautious && self.n_sent > 0 {
            return None;
        }
        let out = self.pending.get_mut(self.n_sent)?;
        if out.carrier != Carrier::Retried {
            out.sent = now;
            out.carrier = match (self.n_requests, self.is_replacing) {
                (0, false) => Carrier::Fresh,
                (0, true) => Carrier::Replacing,
                _ => Carrier::Reused,
            };
        }
        self.is_replacing = false;
        self.n_sent += 1;
        self.n_requests += 1;
        self.parser.expect(out.kind);
        Some(*out)
    }

    /// Bytes arrived at `at`; appends the requests that they ended to `ended`.
    #[inline]
    pub(crate) fn received(
        &mut self,
        bytes: &[u8],
        at: Nanos,
        common: &mut ConnContext,
        ended: &mut Vec<Sample>,
    ) -> ReceiveResult {
        let mut heard = ReceiveResult::default();
        let mut left = bytes;
        loop {
            if !self.reply.has_begun && !left.is_empty() {
                if self.n_sent == 0 {
                    return self.unasked(left, heard, common, at, ended);
                }
                heard.first_byte = true;
                self.begin_reply(at, common);
            }
            let Ok(step) = self.parser.feed(left) else {
                heard.then = self.no_http(left, at, common, ended);
                return heard;
            };
            if let Some(first) = common.first_head.as_mut().filter(|first| first.is_awaited()) {
                first.see(&left[..step.used], matches!(step.event, Event::Head { .. }));
            }
            if let Some(user) = self.user.as_deref_mut().filter(|_| common.wants.heads) {
                user.see_head(&left[..step.used], &step.event, self.reply.status);
            }
            left = &left[step.used..];
            self.reply.bytes_read += step.used as u64;
            match step.event {
                Event::NeedMore => {
                    heard.discard = self.discardable(common);
                    return heard;
                }
                Event::Interim { status } => heard.continues |= status == 100,
                Event::Body(bytes) => {
                    if self.watch.wants_body(&common.checks) {
                        self.watch.see(&common.checks, bytes);
                    }
                    if let Some(user) = self.user.as_deref_mut().filter(|user| user.keeps_body) {
                        let most = common.wants.bytes_max.unwrap_or(usize::MAX);
                        let room = most.saturating_sub(user.kept.body.len());
                        user.kept.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    }
                }
                Event::Head { head, fields } => {
                    self.reply.bytes_head =
                        u32::try_from(self.reply.bytes_read).unwrap_or(u32::MAX);
                    if let Some(user) = self.user.as_deref_mut() {
                        user.keeps_body = user::is_wanted(common.wants.bodies, fields);
                    }
                    common.n_bare_lf += u64::from(head.bare_lf);
                    Self::take_head(&mut self.reply, &mut self.jar, head, fields, common);
                }
                Event::Done(totals) => {
                    if !left.is_empty() && !self.awaits_another(common) {
                        // More bytes than the framing said: what follows is not what the server meant.
                        heard.then = self.no_http(left, at, common, ended);
                        return heard;
                    }
                    heard.then = self.complete(totals, at, common, ended);
                    if heard.then != NextStep::Keep || left.is_empty() {
                        return heard;
                    }
                }
            }
        }
    }

    /// This many bytes of a body arrived at `at`, and were thrown away.
    pub(crate) fn discarded(
        &mut self,
        n_bytes: u64,
        at: Nanos,
        common: &mut ConnContext,
        ended: &mut Vec<Sample>,
    ) -> ReceiveResult {
        self.parser.discarded(n_bytes);
        self.reply.bytes_read += n_bytes;
        let heard = self.received(&[], at, common, ended);
        // The driver already throws these bytes away, so it is not asked again.
        ReceiveResult { discard: 0, ..heard }
    }

    #[inline]
    fn begin_reply(&mut self, at: Nanos, common: &mut ConnContext) {
        self.reply =
            Reply { has_begun: true, first_byte: at, has_headers: true, ..Reply::default() };
        let request = self.pending[0].request;
        self.watch.begin(&common.checks, &mut common.turns, request, common.n_replies);
        common.n_replies += 1;
        if let Some(first) = common.first_head.as_mut().filter(|first| first.is_awaited()) {
            first.bytes.clear();
        }
        if let Some(user) = self.user.as_deref_mut() {
            user.kept.head.clear();
            user.kept.body.clear();
            user.keeps_body = false;
        }
    }

    #[inline]
    fn take_head(
        reply: &mut Reply,
        jar: &mut Jar,
        head: ReplyHead,
        fields: Fields<'_>,
        common: &mut ConnContext,
    ) {
        reply.status = head.status;
        if head.status / 100 == 3 && common.redirect.is_none() {
            common.redirect = location::redirect(head.status, fields);
        }
        reply.keep_alive = head.keep_alive;
        reply.has_headers = common.checks.has_headers(fields);
        if common.cookies {
            fields.all("set-cookie").for_each(|field| jar.take(field));
        }
    }

    /// Bytes that are not HTTP, or not where HTTP allows them.
    #[cold]
    fn no_http(
        &mut self,
        bytes: &[u8],
        at: Nanos,
        common: &mut ConnContext,
        ended: &mut Vec<Sample>,
    ) -> NextStep {
        if let Some(first) = common.first_head.as_mut().filter(|first| first.is_awaited()) {
            first.see_garbage(bytes);
        }
        self.reply.bytes_read += bytes.len() as u64;
        self.fail(Outcome::Protocol, at, ended)
    }

    /// Bytes that no request asked for. They belong to a proxy's answer to CONNECT, or would be taken for the answer
    /// to a request on this connection.
    #[cold]
    fn unasked(
        &mut self,
        bytes: &[u8],
        heard: ReceiveResult,
        common: &mut ConnContext,
        at: Nanos,
        ended: &mut Vec<Sample>,
    ) -> ReceiveResult {
        if self.state != ConnState::Tunnelling {
            return ReceiveResult { then: NextStep::Close, ..heard };
        }
        let then = match proxy::read_tunnel(&mut self.parser, bytes) {
            Tunnel::Awaited => NextStep::Keep,
            Tunnel::Open => {
                self.parser.reset();
                NextStep::Tunnelled
            }
            Tunnel::Refused(why) => {
                common.proxy_failure.get_or_insert(why);
                self.fail(Outcome::Proxy, at, ended)
            }
        };
        ReceiveResult { then, ..heard }
    }

    fn discardable(&self, common: &ConnContext) -> u64 {
        let n_bytes = self.parser.discardable();
        let may = n_bytes >= DISCARD_MIN
            && self.tls.is_none()
            && self.reply.has_begun
            && !self.watch.wants_body(&common.checks)
            && !self.user.as_ref().is_some_and(|user| user.keeps_body);
        if may { n_bytes } else { 0 }
    }

    /// Whether what follows a complete reply may be another one.
    fn awaits_another(&self, common: &ConnContext) -> bool {
        self.n_sent > 1 && self.reply.keep_alive && common.keep_alive
    }

    /// The reply to the oldest request is complete.
    #[inline]
    fn complete(
        &mut self,
        totals: ReplyTotals,
        at: Nanos,
        common: &mut ConnContext,
        ended: &mut Vec<Sample>,
    ) -> NextStep {
        let out = self.pending.pop_front().expect("a reply is read only while a request is out");
        self.n_sent -= 1;
        let reply = Judged {
            request: out.request,
            status: self.reply.status,
            body_bytes: totals.body_bytes,
            is_head: out.kind == RequestKind::Head,
            has_headers: self.reply.has_headers,
            at,
            watch: &self.watch,
        };
        let outcome = common.checks.judge(&reply, &mut common.bodies);
        ended.push(self.sample(out, outcome, at, totals.body_bytes));
        if let Some(user) = self.user.as_deref_mut().filter(|_| common.wants != Wants::default()) {
            common.kept.push((ended.len() - 1, std::mem::take(&mut user.kept)));
        }
        let keeps = self.reply.keep_alive
            && common.keep_alive
            && !self.awaits_continue
            && (self.n_sent > 0 || self.n_requests < common.requests_per_connection);
        if !self.reply.keep_alive {
            self.server_ends(true, common);
        }
        // The next reply may never begin, so nothing of this one may be reported for it.
        self.reply = Reply::default();
        self.has_served = true;
        self.failures = 0;
        self.is_cautious = self.is_cautious && self.has_retried();
        if keeps { NextStep::Keep } else { NextStep::Close }
    }

    /// The server ends the connection in order, unless that is what the plan asked for.
    fn server_ends(&mut self, was_announced: bool, common: &ConnContext) {
        let is_by_plan = !common.keep_alive
            || common.asks_to_close
            || self.n_requests >= common.requests_per_connection;
        if !is_by_plan {
            let n_replies = self.n_requests - self.n_sent as u64;
            self.ended_by_server = Some(ServerEnd { n_replies, was_announced });
        }
    }

    /// How the server ended it in order; returned only once.
    pub(crate) fn take_server_end(&mut self) -> Option<ServerEnd> {
        self.ended_by_server.take()
    }

    /// The connection was closed. Returns which backoff the slot must wait before it connects again, counted from 0;
    /// `None`: no backoff.
    pub(crate) fn down(&mut self, then: NextStep) -> Option<u8> {
        let had_served = self.has_served;
        self.state = ConnState::Down;
        self.tls = None;
        self.n_sent = 0;
        self.awaits_continue = false;
        self.reply = Reply::default();
        if then != NextStep::Abandon {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        // The loss of a kept-alive connection is no sign of a dead server, so the slot tries again at once.
        let again_at_once = had_served && self.failures == 1;
        (!again_at_once).then(|| self.failures - 1)
    }

    #[inline]
    fn sample(
        &self,
        out: PendingRequest,
        outcome: Outcome,
        done: Nanos,
        bytes_body: u64,
    ) -> Sample {
        // An event has the time of the wake-up, and may belong to a request that was sent later in the same batch;
        // the time is then raised to the time of sending.
        let first_byte = match self.reply.first_byte {
            Nanos::ZERO => Nanos::ZERO,
            first_byte => first_byte.max(out.sent),
        };
        Sample {
            due: out.due,
            sent: out.sent,
            first_byte,
            done: done.max(out.sent),
            bytes_read: self.reply.bytes_read,
            bytes_body,
            status: self.reply.status,
            outcome,
            conn: 0,
            bytes_head: self.reply.bytes_head,
            carrier: out.carrier,
            request: out.request,
            at_end: match self.reply.keep_alive {
                _ if self.peer_closed => AtEnd::Closed,
                _ if !outcome.is_complete() => AtEnd::Lost,
                true => AtEnd::Kept,
                false => AtEnd::Last,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use record::LoadPlan;
    use wire::tls::{Resumption, TlsClientConfig, TlsOptions};

    use super::*;

    /// The outcome of a body that only the connection's end delimits, when TCP ends.
    fn outcome_of_an_end(tls: Option<Box<TlsClient>>) -> Outcome {
        let plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        let mut common = ConnContext {
            checks: Checks::new(&plan),
            keep_alive: true,
            asks_to_close: false,
            cookies: false,
            requests_per_connection: u64::MAX,
            n_replies: 0,
            turns: HashTurns::new(&plan, 0),
            bodies: HashCounts::default(),
            n_bare_lf: 0,
            first_head: None,
            is_proxied: false,
            proxy_failure: None,
            redirect: None,
            wants: Wants::default(),
            kept: Vec::new(),
        };
        let now = Nanos(1);
        let mut ended = Vec::new();
        let mut conn = Conn::new(1);
        let out = PendingRequest::new(now, 0, RequestKind::Other);
        assert_eq!(conn.begin(out, 0, &common), StartAction::Connect);
        conn.connects(now);
        conn.connected(tls, now);
        conn.handshaken();
        conn.next_to_send(now, &common).expect("it is up");
        conn.received(b"HTTP/1.1 200 OK\r\n\r\nhello", now, &mut common, &mut ended);
        conn.closed(now, &mut common, &mut ended);
        ended[0].outcome
    }

    #[test]
    fn a_body_that_the_end_of_tcp_ends_is_whole_only_without_tls() {
        let config =
            TlsClientConfig::new(&TlsOptions { insecure: true, ..TlsOptions::default() }).unwrap();
        let client = TlsClient::new(&config, "localhost", Resumption::Fresh).unwrap();
        assert_eq!(outcome_of_an_end(None), Outcome::Ok);
        assert_eq!(outcome_of_an_end(Some(Box::new(client))), Outcome::ClosedAfterFirstByte);
    }
}
