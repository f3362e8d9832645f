//! The state machine of one connection: bytes come in, and [`Want`] says what the connection needs next. It
//! never touches the connection's socket, reads no monotonic clock, and never waits: that is what a
//! concurrency model does. Start reading at [`Exchange::want`] and `Exchange::advance`.
//!
//! It is not free of I/O. While it makes an answer it opens and reads files (`hosts`, cached for a second),
//! starts programs and reads their output as far as it has come (`gateway`, without blocking), and hands
//! lines to the logs. None of these waits for a client, and all models do them alike. Asking for each of them
//! through `Want` would add a round trip through the model to each request and change nothing that models
//! differ in.
//!
//! Work is done when something happened (`received`, `wrote`, `timed_out`, `finish`, `lost`); `want` is a view of the
//! state, and may be called again. Cost of a request for a small file on a kept-alive connection, besides one read and
//! one write: about 40 ns if it repeats the last request, 300 ns otherwise (`examples/exchange_rate.rs` measures the
//! first; a send of such an answer takes 3 us and more). Nothing is allocated but one answer a second, which all
//! connections share.
//!
//! Each value that is kept from one request to the next is a pure function of its key, so keeping it never changes an
//! answer. What a head asks for is kept by the bytes of the head; the content at a target by the target, while it is
//! fresh; the answer that sends a content whole by that content and the second.

mod answer;
mod body;
mod conditions;
mod deadlines;
mod fault_release;
mod flawed_answer;
mod gateway_relay;
mod head_edit;
mod input;
mod journal;
mod output;
mod ranges;
mod rendered_time;
mod request_summary;
mod tls_layer;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use units::Nanos;
use wire::{Framing, RequestLimits, RequestParser, Version};

use crate::Site;
use crate::board::State as Doing;
use crate::config::{KeepAlive, Limits};
use crate::fault::Release;
pub use crate::gateway::Awaited;
use crate::gateway::Call;
use crate::hosts::{Decision, Verdict};
use crate::status;
use answer::{Answerer, Connection, LastFile};
use body::Body;
pub use gateway_relay::Progress;
use gateway_relay::RelayedAnswer;
use input::Input;
use journal::Journal;
use output::{Output, Outputs};
use rendered_time::RenderedTime;
use request_summary::{Method, RequestSummary};
use tls_layer::TlsLayer;

/// One connection.
#[derive(Debug)]
pub struct Exchange<'s> {
    site: &'s Site,
    peer: SocketAddr,
    state: State,
    parser: RequestParser,
    /// What the last parsed head asks for.
    summary: RequestSummary,
    /// What was decided from that head.
    decision: Decision,
    input: Input,
    output: Output,
    journal: Journal,
    rendered_time: RenderedTime,
    last_file: LastFile,
    /// Requests that were answered or refused.
    requests: u32,
    /// Bytes that were received.
    bytes_in: u64,
    deadline: Nanos,
    /// When the request that is answered next was complete: the last receive, or the timeout that ended the request.
    /// Nothing is received while a complete request waits.
    complete: Nanos,
    /// What planted faults do to the answer that is being made or sent, and when it may leave.
    release: Release,
    /// The request that a program or an application is to answer, from the end of its head to the end
    /// of its answer. Boxed: most connections never have one.
    call: Option<Box<Call<'s, RelayedAnswer>>>,
    /// The next answer is the last one.
    finishing: bool,
    /// A request that has been read waits for [`Exchange::answer`].
    answers_wait: bool,
    /// The peer has closed its side.
    half_closed: bool,
    /// The slot of the status board that counts it, until it has ended.
    accepted_at: Option<u32>,
    /// The TLS between it and the socket; `None`: there is none.
    tls: Option<Box<TlsLayer>>,
}

/// What comes next in the input.
#[derive(Debug)]
enum State {
    /// Nothing yet: the TLS handshake is under way, since that instant.
    Handshake(Nanos),
    /// A head. The instant is that of its first byte; on a fresh connection, that of accepting it.
    Head(Option<Nanos>),
    /// The body of the request whose head is the first of the input.
    Body(Body),
    /// A head whose body was discarded, and which is to be answered.
    Answer,
    /// Nothing yet: the gateway that answers the first head of the input is at work.
    Gateway,
    /// Nothing: when the output has been sent, the connection is closed.
    Close(Close),
}

/// What a connection needs now.
#[derive(Debug)]
pub enum Want<'a> {
    /// Read into this; never empty.
    Read(&'a mut [u8]),
    /// Send both, in one call; one of them may be empty.
    Write {
        /// Sent first.
        head: &'a [u8],
        /// Sent second.
        body: &'a [u8],
    },
    /// Send the head, which may be empty, and then a part of a file.
    File {
        /// Sent first.
        head: &'a [u8],
        /// Sent then: a part of this file,
        fd: BorrowedFd<'a>,
        /// from here on,
        offset: u64,
        /// this many bytes; at least one. If the file has become shorter, the connection is lost.
        len: u64,
    },
    /// Read a part of a file into `into`, which is never empty, and report with `loaded` how much that was: it is
    /// encrypted before it is sent.
    Load {
        /// From this file,
        fd: BorrowedFd<'a>,
        /// from here on.
        offset: u64,
        /// Where the bytes go.
        into: &'a mut [u8],
    },
    /// Do nothing before this instant, which is later than the one that was given: a planted fault holds the answer.
    Hold(Nanos),
    /// Call [`Exchange::ask_gateway`]. If that has to wait, wait for the file of [`Exchange::awaited`] and for the
    /// client ([`Exchange::room`]).
    Gateway,
    /// Close the connection; nothing else will be wanted.
    Close(Close),
}

/// Buffers that the connections of one thread use in turn; see [`Exchange::lend`].
#[derive(Debug)]
pub struct Spare {
    input: Vec<u8>,
    outputs: Outputs,
}

impl Default for Spare {
    /// For a thread that sends one answer at a time.
    fn default() -> Self {
        Self::for_batches(1)
    }
}

impl Spare {
    /// For a thread that sends up to `answers` answers at once; buffers for more are allocated anew.
    pub fn for_batches(answers: usize) -> Self {
        Self { input: Vec::new(), outputs: Outputs::new(answers) }
    }
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// Nothing more is under way.
    Normal,
    /// Close the sending side, and read on for a while. Otherwise the kernel answers what the client still sends with a
    /// reset, and the client loses our last bytes (RFC 9112, 9.6).
    Linger,
    /// At once: the client took none of an answer in time.
    Reset,
}

impl State {
    /// Of a connection that was accepted `now`.
    fn first(site: &Site, now: Nanos) -> Self {
        if site.tls.is_some() { Self::Handshake(now) } else { Self::Head(Some(now)) }
    }
}

impl<'s> Exchange<'s> {
    /// For a connection that was accepted `now`.
    pub fn new(site: &'s Site, peer: SocketAddr, now: Nanos) -> Self {
        site.note_accepted(now);
        let limits = request_limits(&site.config.limits);
        let mut exchange = Self {
            site,
            peer,
            state: State::first(site, now),
            parser: RequestParser::new(limits),
            summary: RequestSummary::nothing(),
            decision: Decision::default(),
            // The parser needs two bytes more to detect a head that is too long; a body needs some room.
            input: Input::new(limits.head_bytes_max + 4096),
            output: Output::default(),
            journal: Journal::default(),
            rendered_time: RenderedTime::new(),
            last_file: LastFile::default(),
            requests: 0,
            bytes_in: 0,
            deadline: Nanos::ZERO,
            complete: now,
            release: Release::default(),
            call: None,
            finishing: false,
            answers_wait: false,
            half_closed: false,
            accepted_at: Some(site.board.accepted()),
            tls: TlsLayer::of(site),
        };
        exchange.rearm(now);
        exchange.show(now);
        exchange
    }

    /// For another connection, accepted `now`; buffers are used again, so nothing is allocated.
    pub fn reset_for(&mut self, peer: SocketAddr, now: Nanos) {
        self.ended();
        self.site.note_accepted(now);
        self.accepted_at = Some(self.site.board.accepted());
        self.peer = peer;
        self.state = State::first(self.site, now);
        self.parser.reset();
        self.input.reset();
        self.output.reset();
        self.journal.reset();
        self.complete = now;
        self.release = Release::default();
        self.call = None;
        self.requests = 0;
        self.bytes_in = 0;
        self.finishing = false;
        self.half_closed = false;
        self.tls = TlsLayer::of(self.site);
        self.rearm(now);
        self.show(now);
    }

    /// What the connection needs now. `now` is called only if a fault is planted.
    pub fn want(&mut self, now: impl FnOnce() -> Nanos) -> Want<'_> {
        if self.tls.is_some() {
            return self.want_secure(now);
        }
        if !self.output.is_empty() {
            return self.to_send(now);
        }
        match self.state {
            State::Close(close) => Want::Close(close),
            State::Gateway => Want::Gateway,
            _ => Want::Read(self.input.room()),
        }
    }

    /// The two parts of [`Want::Write`], if that is what is wanted. For a caller that sends for many connections at
    /// once and has to look at all of them first.
    pub fn outgoing(&self, now: impl FnOnce() -> Nanos) -> Option<(&[u8], &[u8])> {
        // With TLS only what was encrypted may leave, which `want` does.
        if self.output.is_empty() || self.tls.is_some() {
            return None;
        }
        match self.to_send(now) {
            Want::Write { head, body } => Some((head, body)),
            _ => None,
        }
    }

    /// Whether the connection will only wait for its next request once the next `count` bytes are sent, and nobody
    /// waits to hear that they were sent. Then [`Exchange::wrote`] may be called later, with the time of the send.
    pub fn rests_after(&self, count: usize) -> bool {
        let rests = matches!(self.state, State::Head(_)) && self.input.is_empty();
        let is_silent = self.journal.is_empty() && self.site.faults.is_none();
        let is_all = self.output.ends_at() == self.output.sent() + count as u64;
        rests && is_silent && is_all && !self.finishing && !self.half_closed
    }

    /// Takes bytes that were received elsewhere, as many as there is room for, and returns how many: 0 if neither
    /// [`Want::Read`] nor [`Want::Gateway`] is wanted. They are copied, which takes 5 ns for the head of a request.
    pub fn receive_from(&mut self, bytes: &[u8], now: Nanos) -> usize {
        let room = if matches!(self.state, State::Gateway) && self.output.is_empty() {
            self.room().unwrap_or_default()
        } else if let Want::Read(room) = self.want(|| now) {
            room
        } else {
            return 0;
        };
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        if count > 0 {
            self.received(count, now);
        }
        count
    }

    /// `count` bytes were put into the slice of [`Want::Read`]; 0: the peer has closed its side.
    pub fn received(&mut self, count: usize, now: Nanos) {
        if self.tls.is_some() {
            return self.received_secure(count, now);
        }
        self.half_closed |= count == 0;
        self.bytes_in += count as u64;
        self.input.filled(count);
        if let State::Gateway = self.state {
            return self.received_meanwhile(now);
        }
        self.complete = now;
        self.advance(now);
    }

    /// `count` bytes of [`Want::Write`] or [`Want::File`] were taken by the kernel.
    pub fn wrote(&mut self, count: usize, now: Nanos) {
        if self.tls.is_some() {
            return self.wrote_secure(count, now);
        }
        self.has_sent(count, now);
        if self.output.is_empty() {
            self.advance(now);
        } else {
            self.rearm(now);
        }
    }

    /// `count` bytes of the output have left, in plain or encrypted.
    #[inline]
    fn has_sent(&mut self, count: usize, now: Nanos) {
        self.output.took(count);
        if self.site.board.is_watched() {
            self.site.board.sent(count);
        }
        self.journal.sent(self.output.sent(), &self.site.log);
        if self.output.is_empty()
            && let Some(call) = self.call.as_deref_mut()
        {
            call.was_sent(now);
        }
    }

    /// The connection broke, or is cut: what was being sent is noted, and nothing more is wanted.
    pub fn lost(&mut self, now: Nanos) {
        self.note_unfinished(now);
        self.journal.cut(self.output.sent(), &self.site.log);
        self.output.reset();
        if let Some(tls) = &mut self.tls {
            tls.abandon();
        }
        self.state = State::Close(Close::Normal);
        self.deadline = Nanos::MAX;
        self.ended();
    }

    /// Its socket is about to be closed: the status board counts it as ended.
    pub fn ended(&mut self) {
        if let Some(slot) = self.accepted_at.take() {
            self.site.board.ended(slot);
        }
    }

    /// From now on a request that was read completely waits for [`Exchange::answer`], so that another thread than the
    /// reading one can answer it.
    pub fn hold_answers(&mut self) {
        self.answers_wait = true;
    }

    /// Whether a request waits to be answered. Nothing is to be read before that.
    pub fn is_asked(&self) -> bool {
        self.answers_wait && matches!(self.state, State::Answer)
    }

    /// Answers the request that waits, and all that follow it in the input. Later requests are answered at once again.
    pub fn answer(&mut self, now: Nanos) {
        let waits = self.is_asked();
        self.answers_wait = false;
        if waits {
            self.advance(now);
        }
    }

    /// Lends it the buffers of `spare`, if it has none of its own. Connections that are served in turns share one set
    /// of buffers, which stays in the processor's cache. Only a connection that stopped within a request or an answer
    /// keeps buffers of its own; an idle one has none.
    #[inline]
    pub fn lend(&mut self, spare: &mut Spare) {
        self.input.lend(&mut spare.input);
        self.output.lend(&mut spare.outputs);
    }

    /// Takes back the buffers that are not in use.
    #[inline]
    pub fn take_back(&mut self, spare: &mut Spare) {
        self.input.take_back(&mut spare.input);
        self.output.take_back(&mut spare.outputs);
    }

    /// Whether the connection waits for the first byte of a request, with nothing else to do.
    pub fn is_idle(&self) -> bool {
        let between = matches!(self.state, State::Head(_)) && self.input.is_empty();
        between && self.output.is_empty() && self.tls.as_ref().is_none_or(|tls| tls.is_idle())
    }

    /// The server, or this child process of it, ends: the next answer is the last one, and says so. An idle connection
    /// that has had an answer closes at once. A fresh one stays open, since its request is most likely under way.
    pub fn finish(&mut self) {
        self.finishing = true;
        self.close_if_finished();
    }

    /// As [`Exchange::finish`], but an idle connection stays open: for a request that has arrived and is about to be
    /// handed over.
    pub fn finish_next(&mut self) {
        self.finishing = true;
    }

    /// Requests that were answered or refused on this connection.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Continues as far as the input and the room for output allow: answers every complete request in the input, until
    /// the output is large enough for one write.
    fn advance(&mut self, now: Nanos) {
        while self.has_room() {
            let goes_on = match &mut self.state {
                State::Head(_) | State::Answer => self.next_request(now),
                State::Body(_) => self.drop_body(now),
                State::Gateway | State::Close(_) | State::Handshake(_) => false,
            };
            if !goes_on {
                break;
            }
        }
        self.close_if_finished();
        self.input.make_room();
        self.rearm(now);
        self.show(now);
    }

    /// Shows on the status board what this thread does for the connection, if the board is watched.
    fn show(&self, now: Nanos) {
        if !self.site.board.is_watched() {
            return;
        }
        let doing = match &self.state {
            _ if !self.output.is_empty() => Doing::Writing,
            State::Head(None) => Doing::KeepAlive,
            State::Handshake(_) | State::Head(Some(_)) | State::Body(_) | State::Answer => {
                Doing::Reading
            }
            State::Gateway => Doing::Gateway,
            State::Close(_) => Doing::Closing,
        };
        self.site.board.set(doing, now);
    }

    /// A request was answered or refused.
    fn count(&mut self) {
        self.requests = self.requests.saturating_add(1);
        if self.site.board.is_watched() {
            self.site.board.answered();
        }
    }

    /// Reads a head and answers it, or begins with its body. False: more bytes are needed.
    fn next_request(&mut self, now: Nanos) -> bool {
        if self.input.is_empty() {
            return self.wait_for_head(now);
        }
        // If its body has arrived, the head was read and decided on before.
        let is_known = matches!(self.state, State::Answer)
            || (self.parser.repeats(self.input.bytes()) && now < self.decision.until);
        if !is_known && !self.read_head(now) {
            return false;
        }
        let Self { summary, decision, .. } = self;
        if let Some(route) = summary.gateway {
            return self.call_gateway(route, now);
        }
        let body_is_due = summary.framing != Framing::None && !matches!(self.state, State::Answer);
        if body_is_due {
            // A client that waits for `100 Continue` gets a refusal at once.
            let is_refused = decision.verdict != Verdict::Serve
                || !matches!(summary.method, Method::Get | Method::Head);
            let answers_now = summary.expects_continue && is_refused;
            if !answers_now {
                return self.begin_body(now);
            }
        }
        if self.answers_wait && !body_is_due {
            self.state = State::Answer;
            return false;
        }
        self.plan_answer();
        let Self { summary, decision, input, site, .. } = self;
        let bytes = input.bytes();
        self.rendered_time.set((site.wall_s)(), site.log.zone());
        let ends =
            self.finishing || body_is_due || (summary.has_body && is_refused(decision, summary));
        let keep_alive = site.config.keep_alive;
        let keep_alive = KeepAlive { enabled: keep_alive.enabled && !ends, ..keep_alive };
        let conn = connection(keep_alive, self.requests, summary);
        let (head_len, asked_to_close) = (summary.head_len, !summary.keep_alive);
        let mut answerer = Answerer {
            site,
            client: self.peer,
            requests_before: self.requests,
            complete: self.complete,
            taken: self.bytes_in.saturating_sub((bytes.len() - head_len) as u64),
            output: &mut self.output,
            journal: &mut self.journal,
            rendered_time: &self.rendered_time,
            last_file: &mut self.last_file,
            decision,
            is_last: bytes.len() == head_len,
            flaws: site.faults.is_some().then_some(&mut self.release.flaws),
            now,
        };
        answerer.answer(&bytes[..head_len], summary, conn);
        self.input.used(head_len);
        self.count();
        self.state = match conn.keeps {
            true => State::Head(None),
            // A client that asked to close sends nothing more; others may have sent a request already.
            false if asked_to_close && self.input.is_empty() => State::Close(Close::Normal),
            false => State::Close(Close::Linger),
        };
        self.plan_release();
        true
    }

    /// Reads the first head of the input, and decides what is to be done with it. False: more bytes are
    /// needed, or it is refused.
    fn read_head(&mut self, now: Nanos) -> bool {
        let Self { parser, summary, decision, input, site, .. } = self;
        let bytes = input.bytes();
        match parser.parse(bytes) {
            Ok(Some(request)) => {
                *summary = RequestSummary::of(&request, bytes);
                *decision = site.hosts.decide(&request, now);
                let is_status = status::is_at(&site.config.status, summary.target.in_head(bytes));
                let is_open = decision.verdict == Verdict::Serve && !is_status;
                if request.method != "TRACE" && is_open {
                    let target = summary.target.in_head(bytes);
                    site.hosts.lead_to_index(decision, target, now);
                    let target = decision.target(target);
                    summary.gateway = site.gateways.route(target, decision.host());
                }
                true
            }
            Ok(None) => self.wait_for_head(now),
            Err(error) => {
                self.refuse(error.status(), now);
                false
            }
        }
    }

    /// The head is not complete. False, always: more bytes are needed.
    fn wait_for_head(&mut self, now: Nanos) -> bool {
        if self.half_closed {
            self.state = State::Close(Close::Normal);
        } else if let State::Head(began @ None) = &mut self.state
            && !self.input.is_empty()
        {
            *began = Some(now);
        }
        false
    }

    /// Answers with an error and closes the connection, because it is unknown where a next request would begin.
    fn refuse(&mut self, status: u16, now: Nanos) {
        self.refuse_saying(status, None, now);
    }

    /// The same with a text, if the status alone does not say what is wrong.
    fn refuse_saying(&mut self, status: u16, text: Option<&str>, now: Nanos) {
        self.call = None;
        self.plan_answer();
        let Self { site, input, .. } = self;
        let decision = site.hosts.undecided();
        self.rendered_time.set((site.wall_s)(), site.log.zone());
        let mut answerer = Answerer {
            site,
            client: self.peer,
            requests_before: self.requests,
            complete: self.complete,
            taken: self.bytes_in,
            output: &mut self.output,
            journal: &mut self.journal,
            rendered_time: &self.rendered_time,
            last_file: &mut self.last_file,
            decision: &decision,
            is_last: true,
            flaws: None,
            now,
        };
        answerer.refuse(status, text, input.bytes());
        self.plan_release();
        self.count();
        self.state = State::Close(Close::Linger);
    }

    fn close_if_finished(&mut self) {
        // If another process goes on with the port, the connection stays open for one more answer, which announces the
        // close: a client that is about to send a request loses nothing.
        if self.finishing
            && self.requests > 0
            && self.is_idle()
            && !self.site.server.port.is_handed_over()
        {
            self.state = State::Close(Close::Normal);
            self.deadline = Nanos::MAX;
        }
    }
}

fn request_limits(limits: &Limits) -> RequestLimits {
    RequestLimits {
        head_bytes_max: limits.head_bytes_max as usize,
        target_bytes_max: limits.target_bytes_max as usize,
        fields_max: limits.fields_max as usize,
    }
}

/// Whether the request is refused regardless of its target. If such a request announces a body, even an empty one,
/// its connection is closed: nobody needs the body, and a proxy in front of us may have found another end of it, so
/// that the next request here would not be the next request there.
fn is_refused(decision: &Decision, summary: &RequestSummary) -> bool {
    match decision.verdict {
        Verdict::Serve => matches!(summary.method, Method::NotAllowed | Method::Unknown),
        Verdict::Tell(status, _) | Verdict::Deny(status) => status >= 400,
        Verdict::Malformed => true,
    }
}

/// Whether the connection stays open after an answer, by Apache's rule (ap_set_keepalive), and what the answer says of
/// it. `answered` counts the requests before this one. Only answers that keep the connection open count, so the last
/// one does not.
fn connection(keep_alive: KeepAlive, answered: u32, summary: &RequestSummary) -> Connection {
    let further = match keep_alive.requests_max {
        0 => None,
        max => Some(max.saturating_sub(answered)),
    };
    let keeps = keep_alive.enabled && summary.keep_alive && further != Some(0);
    let said = summary.keep_alive_token || summary.version == Version::Http10;
    let seconds = keep_alive.timeout.0 / 1_000_000_000;
    Connection { keeps, keep_alive: (keeps && said).then_some((seconds, further)) }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use rustix::io::pread;

    use super::*;
    use crate::config::Content;
    use crate::{Opening, testing};

    thread_local! {
        static SECOND: Cell<u64> = const { Cell::new(1_700_000_000) };
    }

    const START: Nanos = Nanos::from_secs(1000);

    /// Requests that are nearly alike: what is kept for one must not be used for another.
    const REQUESTS: [&[u8]; 14] = [
        b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /small HTTP/1.1\r\nHost: b\r\n\r\n",
        b"GET /page? HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /none_ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HEAD /small HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\nGET /small HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /small HTTP/1.1\r\nHost: a\r\nRange: bytes=1-3\r\n\r\n",
        b"GET /small HTTP/1.1\r\nHost: a\r\nRange: bytes=2-4\r\n\r\n",
        b"GET /large HTTP/1.1\r\nHost: a\r\nRange: bytes=0-4,90-95\r\n\r\n",
        b"GET /small HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
        b"GET /small HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"GET /small HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        b"OPTIONS /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    ];

    /// Sends `bytes` in pieces of `size`; returns what comes back, read in pieces of the same size.
    fn ask(exchange: &mut Exchange<'_>, bytes: &[u8], size: usize) -> Vec<u8> {
        let (mut rest, mut answer) = (bytes, Vec::new());
        loop {
            let before = answer.len();
            match exchange.want(|| START) {
                Want::Read(_) if rest.is_empty() => return answer,
                Want::Read(room) => {
                    let count = rest.len().min(size).min(room.len());
                    room[..count].copy_from_slice(&rest[..count]);
                    rest = &rest[count..];
                    exchange.received(count, START);
                    continue;
                }
                Want::Write { head, body } => {
                    answer.extend(head.iter().chain(body).take(size));
                }
                Want::File { head, fd, offset, len } => {
                    let mut content = vec![0; len as usize];
                    assert_eq!(pread(fd, &mut content, offset).unwrap(), content.len());
                    answer.extend(head.iter().chain(&content).take(size));
                }
                Want::Hold(_) | Want::Gateway | Want::Close(_) => return answer,
                Want::Load { .. } => unreachable!("there is no TLS here"),
            }
            exchange.wrote(answer.len() - before, START);
        }
    }

    fn site() -> (tempfile::TempDir, Site) {
        let directory = tempfile::tempdir().unwrap();
        for (name, size) in [("small", 10), ("page", 3361), ("large", 100_000)] {
            let content: Vec<u8> = (0..size).map(|n: u32| n.to_le_bytes()[0]).collect();
            std::fs::write(directory.path().join(name), content).unwrap();
        }
        let mut config = testing::config();
        config.content = Content::Directory(directory.path().to_owned());
        config.keep_alive.requests_max = 0;
        let mut site = Site::open(config, Opening::default()).unwrap();
        site.wall_s = || SECOND.get();
        (directory, site)
    }

    fn fresh(site: &Site) -> Exchange<'_> {
        Exchange::new(site, site.address(), START)
    }

    /// What is kept from one request to the next (the head, what it asks for, the content, the prepared answer) never
    /// changes an answer: each is that of a fresh connection.
    #[test]
    fn answers_on_a_used_connection_are_those_of_fresh_ones_byte_for_byte() {
        let (_directory, site) = site();
        // Which requests leave together, how often, in pieces of what size, and after how many seconds.
        let step = (
            prop::collection::vec(0..REQUESTS.len(), 1..4),
            1usize..4,
            prop_oneof![3 => Just(usize::MAX), 1 => 1usize..40, 1 => 1000usize..5000],
            prop_oneof![4 => Just(0u64), 1 => 1u64..3],
        );
        proptest!(ProptestConfig::with_cases(128), |(steps in prop::collection::vec(step, 1..12))| {
            let mut used = [fresh(&site), fresh(&site)];
            for (index, (requests, times, size, seconds)) in steps.into_iter().enumerate() {
                SECOND.set(SECOND.get() + seconds);
                let batch = requests.iter().map(|&request| REQUESTS[request]).collect::<Vec<_>>();
                let expected: Vec<u8> = batch
                    .iter()
                    .flat_map(|request| ask(&mut fresh(&site), request, usize::MAX))
                    .collect();
                for _ in 0..times {
                    let answer = ask(&mut used[index % 2], &batch.concat(), size);
                    prop_assert!(answer == expected, "{}", answer.escape_ascii());
                }
            }
        });
    }

    #[test]
    fn a_repeated_page_lies_ready_once_for_all_connections_and_a_new_second_is_told() {
        let (_directory, site) = site();
        let request = b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut exchanges = [fresh(&site), fresh(&site)];
        let sent_from = |exchange: &mut Exchange<'_>| {
            let Want::Read(room) = exchange.want(|| START) else {
                panic!("an idle exchange reads")
            };
            room[..request.len()].copy_from_slice(request);
            exchange.received(request.len(), START);
            let Want::Write { head, body: [] } = exchange.want(|| START) else {
                panic!("one piece")
            };
            let (place, text) = (head.as_ptr(), String::from_utf8_lossy(head).into_owned());
            let count = head.len();
            exchange.wrote(count, START);
            (place, text)
        };
        let rounds: Vec<_> = (0..4).map(|_| exchanges.each_mut().map(&sent_from)).collect();
        let [first, second] = &rounds[3];
        assert_eq!(first, second, "the same bytes, in the same place");
        SECOND.set(SECOND.get() + 1);
        let (_, later) = sent_from(&mut exchanges[0]);
        let without_date = |text: &str| {
            text.lines().filter(|line| !line.starts_with("Date: ")).collect::<Vec<_>>().join("\n")
        };
        assert_ne!(&later, &first.1);
        assert_eq!(without_date(&later), without_date(&first.1));
    }
}
