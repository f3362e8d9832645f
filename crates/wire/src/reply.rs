//! Owns the client's side of a connection: the bytes of replies go in, events come out, however the bytes are divided.
//! Start reading at [`ReplyParser::feed`].
//!
//! Cost of a small reply: three calls (head, body, done), no allocation, and never a copy of a body. A server sends the
//! same head for the same request, except for its Date once per second. So the last head is kept, and an identical one
//! costs a comparison instead of a parse (30 ns per reply instead of 190 with nginx's head). A different head is read
//! in place, by one pass of httparse and one comparison of lengths per field, and then kept. `examples/parse_rate.rs`
//! measures both.

use std::collections::VecDeque;
use std::mem::MaybeUninit;

use crate::body::{BodyDecoder, BodyFault, BodyLimits, Piece};
use crate::framing::{Framing, FramingFault, FramingFields};
use crate::head::{
    EndScanner, FIELDS_MAX, Fields, HeadBounds, HeadFault, LineEnd, Version, diagnose,
    fields_start, lines_are_strict,
};

/// Longest head that a connection keeps: each connection has a copy, and there may be 10,000. Longer heads are parsed
/// each time, and the buffer of a long head that came in parts is freed.
const KEPT_BYTES_MAX: usize = 2048;

/// What a reply's framing depends on besides the reply: the method of its request
/// (RFC 9112, 6.3, 1 and 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// HEAD: its reply never has a body, whatever its fields say.
    Head,
    /// CONNECT: after a 2xx the connection is a tunnel.
    Connect,
    /// Every other method.
    Other,
}

impl RequestKind {
    /// The kind of a method, which is case-sensitive.
    pub fn of(method: &str) -> Self {
        match method {
            "HEAD" => Self::Head,
            "CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }
}

/// Limits of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Bytes of a head, start line and empty line included.
    pub head_bytes_max: usize,
    /// Interim replies (1xx) before a final one.
    pub interim_max: u32,
    /// Chunk extensions and trailers.
    pub body: BodyLimits,
}

impl ReplyLimits {
    /// 64 KiB of head, far more than any server sends by default; 32 interim replies.
    pub const DEFAULT: Self =
        Self { head_bytes_max: 64 * 1024, interim_max: 32, body: BodyLimits::DEFAULT };
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a connection's bytes are not the expected replies. After an error the connection is unusable: every later call
/// returns the same error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The first bytes are not `HTTP/`: another protocol, or a body longer than its length said.
    #[error("the reply does not begin with HTTP/ (another protocol, or a wrong length before it)")]
    NotHttp,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    #[error("the reply's version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// Not three digits, or below 100.
    #[error("the reply's status is not a number from 100 to 999")]
    Status,
    /// See [`HeadFault`].
    #[error(transparent)]
    Head(#[from] HeadFault),
    /// See [`FramingFault`].
    #[error(transparent)]
    Framing(#[from] FramingFault),
    /// See [`BodyFault`].
    #[error(transparent)]
    Body(#[from] BodyFault),
    /// Bytes arrived without a request in flight.
    #[error("the server sent bytes that no request asked for")]
    Unasked,
    /// Bytes arrived after a reply that ends the connection.
    #[error("the server sent bytes after a reply that closes the connection")]
    AfterClose,
    /// 101: we never request another protocol (RFC 9110, 15.2.2).
    #[error("the server switched protocols without being asked")]
    SwitchedProtocols,
    /// See [`ReplyLimits::interim_max`].
    #[error("more interim (1xx) replies than the limit")]
    TooManyInterim,
    /// The peer closed the connection.
    #[error("the server closed the connection inside the head of a reply")]
    CutInHead,
    /// The peer closed the connection.
    #[error("the server closed the connection inside the body of a reply")]
    CutInBody,
}

/// The head of a final reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyHead {
    /// 200 to 999.
    pub status: u16,
    /// The server's version.
    pub version: Version,
    /// Whether the connection can carry another request after this reply: the fields and the version allow it, and the
    /// body does not end by closing.
    pub keep_alive: bool,
    /// How its body ends.
    pub framing: Framing,
    /// A line of it ends in LF without CR. A recipient may accept that as a line end (RFC 9112, 2.2), and most clients
    /// do; a proxy need not.
    pub bare_lf: bool,
}

/// Length of a complete reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplyTotals {
    /// Everything on the wire: interim heads, head, chunk framing, body, trailers.
    pub wire_bytes: u64,
    /// The body without chunk framing.
    pub body_bytes: u64,
}

/// The result of a call of [`ReplyParser::feed`].
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Number of bytes used, at most the number fed. Feed the rest again.
    pub used: usize,
    /// What they contained.
    pub event: Event<'a>,
}

/// What the bytes of a reply contained.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// All bytes were used, and nothing is complete yet.
    NeedMore,
    /// An interim reply; the final one is still to come.
    Interim {
        /// 100 to 199, never 101.
        status: u16,
    },
    /// The head of a reply; its body follows, then `Done`.
    Head {
        /// The decisive facts.
        head: ReplyHead,
        /// All fields, for callers that need them.
        fields: Fields<'a>,
    },
    /// Body bytes, at least one, without chunk framing: a part of the slice that was fed.
    Body(&'a [u8]),
    /// The reply is complete. It may come without further bytes, after the last event used them all. So feed until
    /// `NeedMore`, with an empty slice if nothing is left.
    Done(ReplyTotals),
}

/// The meaning of a close by the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eof {
    /// No request is in flight: the peer closed an idle connection.
    Idle,
    /// Requests are in flight, and no byte of the next reply arrived.
    BeforeReply,
    /// The body ended by this close, as its framing says.
    Done(ReplyTotals),
}

#[derive(Debug, Clone, Copy)]
enum ReplyPhase {
    Head,
    Body,
    /// After a reply that ends the connection.
    Closed,
    Failed(ReplyError),
}

/// Reads the replies of one connection, in order.
#[derive(Debug)]
pub struct ReplyParser {
    phase: ReplyPhase,
    body: BodyDecoder,
    /// For the reply in `ReplyPhase::Body`.
    keep_alive: bool,
    /// For the current reply, so far.
    totals: ReplyTotals,
    /// Interim replies before the current one.
    interim: u32,
    /// Kinds of the requests whose replies are not complete; the first one is being read.
    expected: VecDeque<RequestKind>,
    /// The last head, if `known` is set; otherwise, if `scanner` has seen any, the current one so far.
    head: Vec<u8>,
    /// The parsed form of `head`.
    known: Option<HeadTokens>,
    scanner: EndScanner,
    limits: ReplyLimits,
}

impl ReplyParser {
    /// A parser for a fresh connection.
    pub fn new(limits: ReplyLimits) -> Self {
        Self {
            phase: ReplyPhase::Head,
            body: BodyDecoder::new(Framing::None, limits.body),
            keep_alive: true,
            totals: ReplyTotals::default(),
            interim: 0,
            expected: VecDeque::new(),
            head: Vec::new(),
            known: None,
            scanner: EndScanner::default(),
            limits,
        }
    }

    /// Prepares for another connection; memory is kept.
    pub fn reset(&mut self) {
        self.expected.clear();
        self.next_reply(ReplyPhase::Head);
    }

    /// Announces a request that was sent: its reply comes after those of earlier ones.
    pub fn expect(&mut self, kind: RequestKind) {
        self.expected.push_back(kind);
    }

    /// Length of the current reply so far; zeros between replies.
    pub fn totals(&self) -> ReplyTotals {
        let in_head = self.scanner.seen() as u64;
        ReplyTotals { wire_bytes: self.totals.wire_bytes + in_head, ..self.totals }
    }

    /// Takes the next bytes of the connection. Call it again with the unused bytes, until [`Event::NeedMore`].
    ///
    /// # Errors
    /// The bytes are not the expected replies; the connection is unusable.
    #[inline]
    pub fn feed<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Step<'a>, ReplyError> {
        match self.phase {
            ReplyPhase::Head => self.feed_head(bytes),
            ReplyPhase::Body => self.feed_body(bytes),
            ReplyPhase::Closed if !bytes.is_empty() => {
                self.phase = ReplyPhase::Failed(ReplyError::AfterClose);
                Err(ReplyError::AfterClose)
            }
            ReplyPhase::Closed => Ok(Step { used: 0, event: Event::NeedMore }),
            ReplyPhase::Failed(error) => Err(error),
        }
    }

    /// Number of bytes from here on that are certain to belong to the body of the current reply, so a driver may let
    /// the kernel discard them. It is the rest of a body with a Content-Length, or of the current chunk. For a body
    /// that ends with the connection it is `u64::MAX`; between replies, in heads and in chunk framing it is 0.
    pub fn discardable(&self) -> u64 {
        match self.phase {
            ReplyPhase::Body => self.body.discardable(),
            ReplyPhase::Head | ReplyPhase::Closed | ReplyPhase::Failed(_) => 0,
        }
    }

    /// Tells the parser that `n_bytes` of the [`discardable`](Self::discardable) bytes were discarded. They count in
    /// the totals like bytes that were fed. Then call feed: an empty slice returns `Done` if that was all.
    ///
    /// # Panics
    /// There were fewer.
    pub fn discarded(&mut self, n_bytes: u64) {
        assert!(
            n_bytes <= self.discardable(),
            "only bytes that are certain to be body are discarded"
        );
        if let ReplyPhase::Body = self.phase {
            self.body.discarded(n_bytes);
            self.totals.wire_bytes += n_bytes;
            self.totals.body_bytes += n_bytes;
        }
    }

    /// The peer closed its side. Call it once, after all earlier bytes were fed until `NeedMore`.
    ///
    /// # Errors
    /// A reply was cut off.
    pub fn eof(&mut self) -> Result<Eof, ReplyError> {
        match self.phase {
            ReplyPhase::Failed(error) => Err(error),
            ReplyPhase::Body if self.body.is_complete_at_eof() => Ok(Eof::Done(self.finish())),
            ReplyPhase::Body => Err(self.fail(ReplyError::CutInBody)),
            _ if self.totals().wire_bytes > 0 => Err(self.fail(ReplyError::CutInHead)),
            _ if self.expected.is_empty() => Ok(Eof::Idle),
            _ => Ok(Eof::BeforeReply),
        }
    }

    fn feed_head<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Step<'a>, ReplyError> {
        if bytes.is_empty() {
            return Ok(Step { used: 0, event: Event::NeedMore });
        }
        if self.expected.is_empty() {
            return Err(self.fail(ReplyError::Unasked));
        }
        if self.scanner.seen() == 0
            && let Some(tokens) = self.recall(bytes).or_else(|| self.read_in_place(bytes))
        {
            let taken = self.take_head(&tokens)?;
            let head = &bytes[..tokens.head_len];
            return Ok(Step { used: head.len(), event: tokens.event(taken, head) });
        }
        self.feed_straddling_head(bytes)
    }

    /// The meaning of the head at the start of `bytes`, if it equals the last one. A head ends with its first empty
    /// line, so no head is a prefix of another.
    #[inline]
    fn recall(&self, bytes: &[u8]) -> Option<HeadTokens> {
        self.known.filter(|_| bytes.starts_with(&self.head))
    }

    /// Reads the head at the start of `bytes` and keeps it, if it is complete and valid.
    fn read_in_place(&mut self, bytes: &[u8]) -> Option<HeadTokens> {
        let tokens = HeadTokens::read(bytes)?;
        if tokens.head_len > self.limits.head_bytes_max {
            return None;
        }
        self.known = (tokens.head_len <= KEPT_BYTES_MAX).then_some(tokens);
        if self.known.is_some() {
            self.head.clear();
            self.head.extend_from_slice(&bytes[..tokens.head_len]);
        }
        Some(tokens)
    }

    /// Reads a head that is incomplete in `bytes`, or invalid.
    #[cold]
    fn feed_straddling_head<'a>(&'a mut self, bytes: &[u8]) -> Result<Step<'a>, ReplyError> {
        let end = match self.find_head_end(bytes) {
            Ok(end) => end,
            Err(error) => return Err(self.fail(error)),
        };
        let used = end.unwrap_or(bytes.len());
        self.head.extend_from_slice(&bytes[..used]);
        if end.is_none() {
            return Ok(Step { used, event: Event::NeedMore });
        }
        self.scanner = EndScanner::default();
        let Some(tokens) = HeadTokens::read(&self.head) else {
            let error = diagnose(&self.head, FIELDS_MAX, check_status_line);
            return Err(self.fail(error));
        };
        self.known = (tokens.head_len <= KEPT_BYTES_MAX).then_some(tokens);
        let taken = self.take_head(&tokens)?;
        Ok(Step { used, event: tokens.event(taken, &self.head) })
    }

    /// How many of the bytes belong to the head, if it ends within them.
    fn find_head_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, ReplyError> {
        if self.scanner.seen() == 0 {
            self.known = None;
            self.head.clear();
        }
        let first = self.head.iter().chain(bytes);
        if first.zip(b"HTTP/").any(|(byte, wanted)| byte != wanted) {
            return Err(ReplyError::NotHttp);
        }
        let max = self.limits.head_bytes_max;
        let bounds = HeadBounds {
            start_line_max: max,
            head_max: max,
            fields_max: FIELDS_MAX,
            line_end: LineEnd::BareLf,
        };
        Ok(self.scanner.scan(bytes, bounds)?)
    }

    /// Decides what follows a head; `None` after an interim one.
    fn take_head(&mut self, tokens: &HeadTokens) -> Result<Option<ReplyHead>, ReplyError> {
        self.totals.wire_bytes += tokens.head_len as u64;
        let kind = *self.expected.front().expect("a head is read only while a reply is expected");
        match tokens.decide(kind) {
            Ok(Some(head)) => {
                self.keep_alive = head.keep_alive;
                self.body = BodyDecoder::new(head.framing, self.limits.body);
                self.phase = ReplyPhase::Body;
                Ok(Some(head))
            }
            Ok(None) if self.interim == self.limits.interim_max => {
                Err(self.fail(ReplyError::TooManyInterim))
            }
            Ok(None) => {
                self.interim += 1;
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn feed_body<'a>(&mut self, bytes: &'a [u8]) -> Result<Step<'a>, ReplyError> {
        let (used, piece) = match self.body.decode(bytes) {
            Ok(decoded) => decoded,
            Err(fault) => return Err(self.fail(fault.into())),
        };
        self.totals.wire_bytes += used as u64;
        let event = match piece {
            Piece::NeedMore => Event::NeedMore,
            Piece::Data(data) => {
                self.totals.body_bytes += data.len() as u64;
                Event::Body(data)
            }
            Piece::Done => Event::Done(self.finish()),
        };
        Ok(Step { used, event })
    }

    /// Ends the current reply.
    fn finish(&mut self) -> ReplyTotals {
        let totals = self.totals;
        self.expected.pop_front();
        self.next_reply(if self.keep_alive { ReplyPhase::Head } else { ReplyPhase::Closed });
        totals
    }

    fn next_reply(&mut self, phase: ReplyPhase) {
        self.phase = phase;
        self.totals = ReplyTotals::default();
        self.interim = 0;
        self.scanner = EndScanner::default();
        if self.head.capacity() > 2 * KEPT_BYTES_MAX {
            self.head = Vec::new();
            self.known = None;
        }
    }

    fn fail(&mut self, error: ReplyError) -> ReplyError {
        self.phase = ReplyPhase::Failed(error);
        error
    }
}

/// What is kept of a head after its bytes are read.
#[derive(Debug, Clone, Copy)]
struct HeadTokens {
    head_len: usize,
    fields_start: usize,
    status: u16,
    version: Version,
    /// Only used for a reply that may have a body.
    framing: Result<FramingFields, FramingFault>,
    /// Whether the sender allows another request on the connection.
    keeps_alive: bool,
    bare_lf: bool,
}

impl HeadTokens {
    /// `None`: the head does not end in `bytes`, or is invalid.
    fn read(bytes: &[u8]) -> Option<Self> {
        // Clearing FIELDS_MAX headers would take longer than filling the few that are used.
        let mut headers = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut reply = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let parsed = config.parse_response_with_uninit_headers(&mut reply, bytes, &mut headers);
        let Ok(httparse::Status::Complete(head_len)) = parsed else { return None };
        let head = &bytes[..head_len];
        // httparse skips empty lines before a head; RFC 9112, 2.2 allows that only to servers.
        if head[0] != b'H' {
            return None;
        }
        let version = Version::from_minor(reply.version?);
        let framing = FramingFields::read(version, reply.headers);
        let fields =
            framing.unwrap_or_else(|_| FramingFields::read_connection(version, reply.headers));
        Some(Self {
            head_len,
            fields_start: fields_start(head, reply.headers),
            status: reply.code?,
            version,
            framing,
            keeps_alive: fields.keeps_alive(version),
            bare_lf: !lines_are_strict(head, reply.headers),
        })
    }

    /// The meaning of the head for a request of that kind; `None` for an interim one. The rules are those of RFC 9112,
    /// 6.3, in their order. A reply that never has a body is not rejected for what its fields say about one: a HEAD may
    /// be answered with `gzip, chunked`.
    fn decide(&self, kind: RequestKind) -> Result<Option<ReplyHead>, ReplyError> {
        let is_tunnel = kind == RequestKind::Connect && self.status / 100 == 2;
        let framing = match self.status {
            0..=99 => return Err(ReplyError::Status),
            101 => return Err(ReplyError::SwitchedProtocols),
            100..=199 => return Ok(None),
            204 | 304 => Framing::None,
            _ if kind == RequestKind::Head || is_tunnel => Framing::None,
            _ => match self.framing? {
                FramingFields { chunked: true, .. } => Framing::Chunked,
                FramingFields { length, .. } => length.map_or(Framing::UntilClose, Framing::Length),
            },
        };
        let ends_by_closing = is_tunnel || framing == Framing::UntilClose;
        let keep_alive = self.keeps_alive && !ends_by_closing;
        let Self { status, version, bare_lf, .. } = *self;
        Ok(Some(ReplyHead { status, version, keep_alive, framing, bare_lf }))
    }

    /// The event for a head with the bytes `head`.
    fn event<'a>(&self, taken: Option<ReplyHead>, head: &'a [u8]) -> Event<'a> {
        match taken {
            Some(taken) => {
                Event::Head { head: taken, fields: Fields::new(&head[self.fields_start..]) }
            }
            None => Event::Interim { status: self.status },
        }
    }
}

/// Names what is wrong with a status line: `HTTP-version SP status-code [ SP reason ]`. A server must send the space
/// after the code (RFC 9112, 4), but without it nothing is ambiguous.
fn check_status_line(line: &[u8]) -> Result<(), ReplyError> {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let version = words.next().unwrap_or_default();
    if version != b"HTTP/1.0" && version != b"HTTP/1.1" {
        return Err(ReplyError::Version);
    }
    match words.next() {
        Some([b'0'..=b'9', b'0'..=b'9', b'0'..=b'9']) => Ok(()),
        _ => Err(ReplyError::Status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_head_in_parts_leaves_no_memory_behind() {
        let mut parser = ReplyParser::new(ReplyLimits::DEFAULT);
        let fill = "y".repeat(60_000);
        let long = format!("HTTP/1.1 204 No Content\r\nX: {fill}\r\n\r\n");
        let short = b"HTTP/1.1 204 No Content\r\n\r\n";
        for reply in [long.as_bytes(), short, long.as_bytes()] {
            parser.expect(RequestKind::Other);
            let (first, second) = reply.split_at(20);
            for part in [first, second, b""] {
                let mut left = part;
                while let Step { used, event: Event::Head { .. } | Event::Done(_) } =
                    parser.feed(left).unwrap()
                {
                    left = &left[used..];
                }
            }
            assert!(parser.totals() == ReplyTotals::default(), "the reply is complete");
            assert!(parser.head.capacity() <= 2 * KEPT_BYTES_MAX, "{}", parser.head.capacity());
        }
    }
}
