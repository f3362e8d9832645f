//! An exchange whose answer a program or an application makes: from the end of the request to the last byte
//! of the answer. Owns what the client is told of it, and when; see also `gateway`. Start reading at
//! [`Exchange::ask_gateway`].
//!
//! The gateway's output is read as far as it has arrived, and sent before more is read. So a client that reads its
//! answer slowly slows the program down, and no answer is held in memory as a whole. If an answer is complete before
//! its head is sent, the head states its length. Otherwise HTTP/1.1 gets chunks, and HTTP/1.0 the end of the
//! connection.

use std::os::fd::BorrowedFd;

use units::Nanos;
use wire::cgi::CgiHead;
use wire::{Framing, LAST_CHUNK, Request, Version, write_chunk_head};

use super::answer::{Answerer, Connection, UNREAD, WrittenAnswer};
use super::request_summary::{Method, RequestSummary};
use super::{Close, Exchange, State, connection};
use crate::config::KeepAlive;
use crate::gateway::{Awaited, Call, Failure, GatewayOutput, REDIRECTS_MAX, Requested, Route};
use crate::hosts::Verdict;

/// The result of [`Exchange::ask_gateway`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// This many bytes were moved, and [`Exchange::want`] says what comes next.
    Moved(usize),
    /// The file of [`Exchange::awaited`] is not ready.
    Waits,
}

/// What ends the body of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// This many bytes more, as the head says.
    Length(u64),
    Chunked,
    /// The end of the connection.
    Close,
    /// There is none, whatever the program writes: HEAD, 204, 304.
    None,
}

impl Exchange<'_> {
    /// Lets the gateway do what it can without waiting: start, take its input, give its output. `socket` is the
    /// client's.
    ///
    /// # Panics
    /// If no gateway answers: [`Exchange::want`] did not ask for it.
    pub fn ask_gateway(&mut self, socket: BorrowedFd<'_>, now: Nanos) -> Progress {
        let progress = self.turn_gateway(socket, now);
        if !matches!(self.state, State::Gateway) && self.output.is_empty() {
            self.go_on(now);
        } else {
            self.rearm(now);
        }
        progress
    }

    fn turn_gateway(&mut self, socket: BorrowedFd<'_>, now: Nanos) -> Progress {
        let call = self.call.as_deref_mut().expect("a gateway is asked only where there is one");
        if !call.has_started() {
            let requested = Requested {
                head: &self.input.bytes()[..self.summary.head_len],
                version: self.summary.version,
                socket,
                client: self.peer,
                is_secure: self.tls.is_some(),
                user: self.decision.user.as_deref(),
                has_body: self.summary.has_body,
                listens_at: self.site.address(),
            };
            if let Err(failure) = call.start(&requested, &self.site.gateways.marks, now) {
                self.fail_gateway(failure, now);
                return Progress::Moved(0);
            }
        }
        let before = call.taken();
        let got = call.take(now);
        let moved = (call.taken() - before) as usize;
        let waits = got == Ok(GatewayOutput::Some { waits: true });
        match got {
            Ok(got) => self.relay(got, now),
            Err(failure) => self.fail_gateway(failure, now),
        }
        // After a redirect within the server, another gateway is to be started.
        let is_same = self.call.as_deref().is_some_and(|call| call.has_started());
        match waits && is_same && self.output.is_empty() && matches!(self.state, State::Gateway) {
            true => Progress::Waits,
            false => Progress::Moved(moved),
        }
    }

    /// The file that the gateway waits for; `None` if there is none, or the gateway has not started.
    pub fn awaited(&self) -> Option<Awaited<'_>> {
        self.call.as_deref()?.awaited()
    }

    /// Room for bytes that the client sends while its answer is being made; empty if there is no room for more. `None`:
    /// the client sends no more, and that does not matter.
    pub fn room(&mut self) -> Option<&mut [u8]> {
        match &mut self.tls {
            _ if self.half_closed => None,
            Some(tls) => Some(tls.room()),
            None => Some(self.input.room()),
        }
    }

    /// Bytes or their end arrived while a gateway works. Bytes of the next request wait until this one is answered.
    pub(super) fn received_meanwhile(&mut self, now: Nanos) {
        let aborts = |call: &Call<'_, _>| call.gateway().aborts_on_half_close();
        if self.half_closed && self.call.as_deref().is_some_and(aborts) {
            return self.lost(now);
        }
        self.input.make_room();
    }

    /// Until when the gateway may send nothing.
    pub(super) fn gateway_deadline(&self, now: Nanos) -> Nanos {
        // One that has not started is asked at once.
        match self.call.as_deref() {
            Some(call) if call.has_started() => call.deadline(),
            _ => now.saturating_add(self.site.config.limits.head_timeout),
        }
    }

    /// Passes on the gateway's output.
    fn relay(&mut self, got: GatewayOutput, now: Nanos) {
        let ended = got == GatewayOutput::End;
        let Some(call) = self.call.as_deref_mut() else { return };
        if call.answering.is_none() {
            match call.read_head(ended) {
                Ok(Some(head)) => {
                    if let Some(target) = head.local_redirect {
                        return self.redirect(target.into_bytes(), now);
                    }
                    if self.head_waits(&head) {
                        if ended {
                            let why = "it ended before it sent the body that its Content-Length announces";
                            self.fail_gateway(Failure::new(502, why), now);
                        }
                        return;
                    }
                    self.begin_answer(head, ended, now);
                }
                Ok(None) => return,
                Err(failure) => return self.fail_gateway(failure, now),
            }
        }
        self.relay_body(ended, now);
    }

    /// Whether a head waits for the first bytes of its body. If it states a length they are on their way, and a packet
    /// for the head alone would cost both sides as much as they do. A head without a length leaves at once: a client
    /// may wait for the head of a stream.
    fn head_waits(&self, head: &CgiHead) -> bool {
        let Some(call) = self.call.as_deref() else { return false };
        let is_due = head.content_length.is_some_and(|length| length > 0);
        let has_body =
            self.summary.method != Method::Head && !matches!(head.status, 204 | 205 | 304);
        is_due && has_body && call.body_len(head) == 0
    }

    /// Writes the head of the answer.
    fn begin_answer(&mut self, head: CgiHead, ended: bool, now: Nanos) {
        let Some(call) = self.call.as_deref() else { return };
        let status = head.status;
        let is_head = self.summary.method == Method::Head;
        let counted = || (ended && !is_head).then(|| call.body_len(&head));
        // A 205 has no content, and says so (RFC 9110, 15.3.6).
        let is_reset = (status == 205).then_some(0);
        let length = is_reset.or(head.content_length).or_else(counted);
        let body = match length {
            _ if is_head || matches!(status, 204 | 304) => Body::None,
            Some(length) => Body::Length(length),
            None if self.summary.version == Version::Http11 => Body::Chunked,
            None => Body::Close,
        };
        let conn = self.goes_on(body);
        let length = length.filter(|_| is_head || matches!(body, Body::Length(_)));
        let (mut answerer, ..) = self.answerer(now);
        answerer.relay_head(&head, length, body == Body::Chunked, conn);
        let written = answerer.head_for_log();
        self.plan_release();
        let Some(call) = self.call.as_deref_mut() else { return };
        call.begin_body(&head, RelayedAnswer { conn, body, status, sent: 0, head: written });
    }

    /// Passes on bytes of the body, and ends the answer with its last.
    fn relay_body(&mut self, ended: bool, now: Nanos) {
        let Some(call) = self.call.as_deref_mut() else { return };
        let (Some(answering), bytes) = call.body() else { return };
        let out = &mut self.output.buffer;
        let mut count = bytes.len();
        let mut is_whole = ended;
        match &mut answering.body {
            Body::Length(left) => {
                count = count.min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                is_whole = *left == 0;
                out.extend_from_slice(&bytes[..count]);
            }
            Body::Chunked if count > 0 => {
                write_chunk_head(out, count as u64);
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Body::Close => out.extend_from_slice(bytes),
            Body::Chunked => {}
            Body::None => count = 0,
        }
        answering.sent += count as u64;
        if ended && answering.body == Body::Chunked {
            out.extend_from_slice(LAST_CHUNK);
        }
        let is_cut = ended && !is_whole;
        call.used_body();
        if is_cut {
            call.note("it ended before it sent all bytes that its Content-Length announces");
            self.cut_gateway(now);
        } else if is_whole {
            self.end_gateway(now);
        }
    }

    /// The answer is whole: the program may end, and the connection goes on.
    fn end_gateway(&mut self, now: Nanos) {
        let Some(mut call) = self.call.take() else { return };
        call.finish();
        let Some(RelayedAnswer { conn, status, sent, head: answer, .. }) = call.answering else {
            return;
        };
        let (mut answerer, head, _) = self.answerer(now);
        answerer.note_relayed(head, &answer, WrittenAnswer { status, body_bytes: sent }, conn);
        self.tell_sent();
        self.after_answer(conn);
    }

    /// The request of the first head was answered.
    fn after_answer(&mut self, conn: Connection) {
        let asked_to_close = !self.summary.keep_alive;
        self.input.used(self.summary.head_len);
        self.requests = self.requests.saturating_add(1);
        self.state = match conn.keeps {
            true => State::Head(None),
            false if asked_to_close && self.input.is_empty() => State::Close(Close::Normal),
            false => State::Close(Close::Linger),
        };
        self.end_if_planned();
    }

    /// The gateway failed: an error page, or the end of the connection if its answer has begun.
    pub(super) fn fail_gateway(&mut self, failure: Failure, now: Nanos) {
        self.note_failure(&failure);
        let Some(call) = self.call.as_deref() else { return };
        if call.answering.is_some() {
            return self.cut_gateway(now);
        }
        self.call = None;
        let conn = self.goes_on(Body::None);
        let (mut answerer, head, summary) = self.answerer(now);
        answerer.fail(failure.status, head, summary, conn);
        self.plan_release();
        self.after_answer(conn);
    }

    /// The answer cannot be completed; only the end of the connection can tell the client so.
    fn cut_gateway(&mut self, now: Nanos) {
        self.note_unfinished(now);
        if let Some(tls) = &mut self.tls {
            tls.omit_end();
        }
        self.state = State::Close(Close::Normal);
    }

    /// The gateway has sent nothing for as long as it may.
    pub(super) fn gateway_timed_out(&mut self, now: Nanos) {
        self.fail_gateway(Failure::new(504, "it sent nothing within its `timeout`"), now);
    }

    /// Puts an answer that is not whole into the journal, and ends what made it.
    pub(super) fn note_unfinished(&mut self, now: Nanos) {
        let Some(call) = self.call.take() else { return };
        let (status, body_bytes, answer) = match call.answering {
            Some(answering) => (answering.status, answering.sent, answering.head),
            // nginx's number for a client that left before it had an answer.
            None => (499, 0, Box::default()),
        };
        let (mut answerer, head, _) = self.answerer(now);
        answerer.note_relayed(head, &answer, WrittenAnswer { status, body_bytes }, UNREAD);
        self.tell_sent();
    }

    /// Writes the log line of an answer whose last bytes had left before its end was known: no later send would write
    /// it.
    fn tell_sent(&mut self) {
        self.journal.sent(self.output.sent(), &self.site.log);
    }

    /// Sends the client what `target` answers to GET, as if the client had requested that (RFC 3875, 6.2.2). Rules and
    /// gateways decide on it as on a request.
    fn redirect(&mut self, target: Vec<u8>, now: Nanos) {
        let Some(call) = self.call.as_deref_mut() else { return };
        let redirects = call.redirects() + 1;
        if redirects > REDIRECTS_MAX {
            let why = "it caused too many redirects within the server";
            return self.fail_gateway(Failure::new(500, why), now);
        }
        if !self.decide_on(&target, now) {
            return self.fail_gateway(Failure::new(502, "it redirected to an invalid target"), now);
        }
        let (site, serves) = (self.site, self.decision.verdict == Verdict::Serve);
        site.hosts.lead_to_index(&mut self.decision, &target, now);
        let target = self.decision.target(&target).to_owned();
        if let Some(call) = self.call.as_deref_mut() {
            call.finish();
        }
        let host = self.decision.host();
        if let Some(route) = site.gateways.route(&target, host).filter(|_| serves) {
            let (gateways, errors) = (&site.gateways, &site.errors);
            let call = Call::redirected(gateways, errors, route, target, redirects);
            self.call = Some(Box::new(call));
            return;
        }
        self.call = None;
        let conn = self.goes_on(Body::None);
        let (mut answerer, head, summary) = self.answerer(now);
        match serves {
            true => answerer.answer_instead(&target, head, summary, conn),
            // Denied, redirected, or asked for a password.
            false => answerer.answer(head, summary, conn),
        }
        self.plan_release();
        self.after_answer(conn);
    }

    /// Lets rules and hosts decide on `target` as if the client had requested it. The decision does not hold for the
    /// next request with the same head. Returns false if `target` is invalid.
    fn decide_on(&mut self, target: &[u8], now: Nanos) -> bool {
        let Self { parser, decision, input, site, .. } = self;
        let Ok(target) = std::str::from_utf8(target) else { return false };
        let Ok(Some(request)) = parser.parse(input.bytes()) else { return false };
        let asked = Request { method: "GET", target, path_and_query: target, ..request };
        *decision = site.hosts.decide(&asked, now);
        decision.until = Nanos::ZERO;
        true
    }

    /// Begins with the request of the first head, which a gateway answers. Returns false if more bytes are needed, or
    /// if it is the gateway's turn now.
    pub(super) fn call_gateway(&mut self, route: Route, now: Nanos) -> bool {
        if self.call.is_none() {
            let asked = self.summary.target.in_head(self.input.bytes());
            let target = self.decision.target(asked).to_owned();
            let (gateways, errors) = (&self.site.gateways, &self.site.errors);
            self.call = Some(Box::new(Call::new(gateways, errors, route, target)));
            if self.summary.framing != Framing::None {
                return self.begin_body(now);
            }
        }
        self.plan_answer();
        if let Some(status) = self.release.flaws.status {
            self.fail_gateway(Failure { status, why: None }, now);
            return true;
        }
        self.state = State::Gateway;
        self.input.make_room();
        false
    }

    /// Notes in the error log why there is no answer.
    pub(super) fn note_failure(&self, failure: &Failure) {
        if let (Some(call), Some(why)) = (self.call.as_deref(), &failure.why) {
            call.note(why);
        }
    }

    /// What is needed to answer the first head of the input, and that head.
    fn answerer(&mut self, now: Nanos) -> (Answerer<'_>, &[u8], &RequestSummary) {
        let Self {
            site, output, journal, rendered_time, last_file, decision, input, summary, ..
        } = self;
        rendered_time.set((site.wall_s)(), site.log.zone());
        let answerer = Answerer {
            site,
            client: self.peer,
            requests_before: self.requests,
            complete: self.complete,
            taken: self.bytes_in.saturating_sub((input.bytes().len() - summary.head_len) as u64),
            output,
            journal,
            rendered_time,
            last_file,
            decision,
            is_last: false,
            flaws: None,
            now,
        };
        (answerer, &input.bytes()[..summary.head_len], summary)
    }

    /// What an answer that a gateway makes says of the connection.
    fn goes_on(&self, body: Body) -> Connection {
        let configured = self.site.config.keep_alive;
        let enabled = configured.enabled && !self.finishing && body != Body::Close;
        connection(KeepAlive { enabled, ..configured }, self.requests, &self.summary)
    }
}

/// An answer whose head was written.
#[derive(Debug)]
pub(super) struct RelayedAnswer {
    pub(super) conn: Connection,
    pub(super) body: Body,
    pub(super) status: u16,
    /// Bytes of the body that were put into the output.
    pub(super) sent: u64,
    /// Its head if the log needs it; otherwise empty.
    pub(super) head: Box<[u8]>,
}
