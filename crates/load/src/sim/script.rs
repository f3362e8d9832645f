//! What a simulated world does: how connecting ends, what a server does with a request, and the bytes that
//! it sends. Owns the acts and their wording. Start reading at [`Script`], then [`Act`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use record::Spread;
use sys::driver::Failure;
use units::Nanos;

/// How the simulated world behaves.
#[derive(Debug, Clone)]
pub struct Script {
    /// Time to establish a connection, and for a RST to come back.
    pub connect: Nanos,
    /// Time from a request to the first byte of its reply; at least 1 ns, so that time advances.
    pub delay: Nanos,
    /// Bytes of a reply's body. A request whose target is a number, such as `/250`, gets a body of this many bytes
    /// instead, so that replies to different requests can be told apart.
    pub body_bytes: usize,
    /// Most bytes that arrive as one piece.
    pub segment_bytes: usize,
    /// The results of connection attempts: each attempt draws one, by weight.
    pub connects: Vec<(Connecting, u32)>,
    /// The acts of the server: each request draws one, by weight.
    pub acts: Vec<(Act, u32)>,
    /// A time in which the server stalls: replies that would leave during it leave at its end.
    pub stall: Option<Stall>,
    /// Time that the client needs for one completion: delays everything after it.
    pub client: Nanos,
    /// Whether bytes carry the instant of their arrival, as a kernel's stamps do. Then no latency includes the
    /// client's delay.
    pub stamps: bool,
    /// How many requests the server works on at once, and how long each takes, on average [`Script::delay`]; the
    /// others wait. `None`: all at once, each for that time.
    pub slots: Option<Slots>,
    /// Number of replies after which the server closes a connection without announcing it.
    pub replies_per_connection: Option<u64>,
    /// Counts the requests whose heads reached a server, if present.
    pub heard: Option<Arc<AtomicU64>>,
    /// Decides what is drawn.
    pub seed: u64,
}

/// A stretch of time in which nothing leaves the server.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    /// Start.
    pub at: Nanos,
    /// Length.
    pub length: Nanos,
}

/// A server of a limited capacity: `n / delay` requests a second.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    /// Number of requests at once, at least one.
    pub n: usize,
    /// How service times are spread.
    pub spread: Spread,
}

/// How a connection attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connecting {
    /// It is established after [`Script::connect`].
    Well,
    /// It fails after that time.
    Fails(Failure),
    /// It fails in the call itself.
    FailsAtOnce(Failure),
    /// Nothing ever comes.
    Never,
}

/// What a server does with a request. Replies leave in the order of the requests. A request that expects `100
/// Continue` gets it after half the delay, unless its act says otherwise, and is processed when its body has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Replies after the delay, all bytes at once.
    Reply,
    /// Replies after the delay, in pieces of `bytes` (at least 1), `gap` apart.
    #[expect(missing_docs, reason = "said above")]
    Dribble { bytes: usize, gap: Nanos },
    /// Sends the first `bytes` of the reply after the delay, and the rest `gap` later.
    #[expect(missing_docs, reason = "said above")]
    Pause { bytes: usize, gap: Nanos },
    /// Replies, and closes after this time without announcing it; a later request is reset.
    ReplyThenClose(Nanos),
    /// Replies, and shuts down its sending side after this time; it still reads.
    HalfClose(Nanos),
    /// Replies, and closes when the next request comes.
    CloseOnNext,
    /// Replies with `Connection: close`, and closes.
    ReplySayingClose,
    /// Replies with `Connection: close`, but stays open.
    SayCloseGoOn,
    /// An interim reply after half the delay, then the reply.
    Interim,
    /// This many interim replies, together with the reply.
    InterimFlood(usize),
    /// The reply as a chunked body.
    Chunked,
    /// The reply, its end marked by closing.
    UntilClose,
    /// Sends this many bytes of the reply, then RST.
    Reset(usize),
    /// Sends this many bytes of the reply, then FIN.
    Close(usize),
    /// Sends this many bytes of the reply and then nothing; 0: it never answers.
    Stop(usize),
    /// A complete reply of that status.
    Status(u16),
    /// A complete reply that sets a cookie.
    SetCookie,
    /// A complete reply whose body is one byte longer than usual, with the right length declared.
    Longer,
    /// A complete reply of the right length, with other bytes.
    OtherBytes,
    /// The reply, and one byte more than its length says; the connection stays open.
    Surplus,
    /// The reply, one byte shorter than its length says; the connection stays open.
    Short,
    /// The reply, the lines of its head ending in LF alone.
    BareLf,
    /// A chunked body whose size lines end in LF alone.
    ChunkedBareLf,
    /// Not HTTP.
    Garbage,
    /// Replies as soon as it has the head, whether `100 Continue` is expected or not.
    FinalAtOnce,
    /// Does not say `100 Continue`, and waits for the body; then replies.
    NoContinue,
    /// Says `103 Early Hints` instead of `100 Continue`, and waits for the body; then replies.
    HintsNoContinue,
}

impl Script {
    /// A server that answers every request successfully after `delay`.
    pub fn new(delay: Nanos) -> Self {
        Self {
            connect: Nanos::ZERO,
            delay,
            body_bytes: 100,
            segment_bytes: usize::MAX,
            connects: vec![(Connecting::Well, 1)],
            acts: vec![(Act::Reply, 1)],
            stall: None,
            client: Nanos::ZERO,
            stamps: false,
            slots: None,
            replies_per_connection: None,
            heard: None,
            seed: 1,
        }
    }
}

/// The body of a reply, as every server of a simulation sends it.
pub fn body(n_bytes: usize) -> Vec<u8> {
    vec![b'x'; n_bytes]
}

/// `103 Early Hints`, and `100 Continue`.
pub(super) const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Identifies a payload; each payload is made once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) act: Act,
    pub(super) body_bytes: usize,
    /// Whether the request was HEAD: the reply has no body.
    pub(super) is_head: bool,
}

/// What is sent, by number.
pub(super) struct Payloads {
    all: Vec<Vec<u8>>,
    known: HashMap<Wanted, usize>,
}

impl Payloads {
    /// Numbers of what is always there.
    pub(super) const HINTS: usize = 0;
    pub(super) const CONTINUE: usize = 1;

    pub(super) fn new() -> Self {
        Self { all: vec![HINTS.to_vec(), CONTINUE.to_vec()], known: HashMap::new() }
    }

    pub(super) fn number(&mut self, wanted: Wanted) -> usize {
        *self.known.entry(wanted).or_insert_with(|| {
            self.all.push(bytes(wanted));
            self.all.len() - 1
        })
    }

    pub(super) fn bytes(&self, number: usize) -> &[u8] {
        &self.all[number]
    }
}

/// All bytes that an act sends, except `100 Continue`.
fn bytes(wanted: Wanted) -> Vec<u8> {
    let Wanted { act, body_bytes: n, is_head } = wanted;
    let body = |n_bytes| if is_head { Vec::new() } else { body(n_bytes) };
    let reply = |status: u16, declared: usize, fields: &str, body: Vec<u8>| {
        let head = format!("HTTP/1.1 {status} Any\r\nContent-Length: {declared}\r\n{fields}\r\n");
        [head.into_bytes(), body].concat()
    };
    let mut whole = reply(200, n, "", body(n));
    match act {
        Act::ReplySayingClose | Act::SayCloseGoOn => {
            whole = reply(200, n, "Connection: close\r\n", body(n));
        }
        Act::CloseOnNext => whole = reply(200, n, "Connection: keep-alive\r\n", body(n)),
        Act::Interim => whole = [HINTS, &whole].concat(),
        Act::InterimFlood(n_interim) => whole = [HINTS.repeat(n_interim), whole].concat(),
        Act::Chunked => {
            whole = b"HTTP/1.1 200 Any\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            if !is_head {
                let size = if n > 0 { format!("{n:x}\r\n") } else { String::new() };
                let end: &[u8] = if n > 0 { b"\r\n0\r\n\r\n" } else { b"0\r\n\r\n" };
                whole.extend_from_slice(&[size.as_bytes(), &body(n), end].concat());
            }
        }
        Act::UntilClose => whole = [b"HTTP/1.1 200 Any\r\n\r\n".to_vec(), body(n)].concat(),
        Act::Reset(n_sent) | Act::Close(n_sent) | Act::Stop(n_sent) => whole.truncate(n_sent),
        Act::Status(status) => whole = reply(status, n, "", body(n)),
        Act::SetCookie => {
            whole = reply(200, n, "Set-Cookie: session=0123456789; Path=/\r\n", body(n));
        }
        Act::Longer => whole = reply(200, n + 1, "", body(n + 1)),
        Act::OtherBytes => whole = reply(200, n, "", vec![b'y'; body(n).len()]),
        Act::Surplus => whole.push(b'x'),
        Act::Short if !is_head => whole = reply(200, n + 1, "", body(n)),
        Act::BareLf => {
            whole = [format!("HTTP/1.1 200 Any\nContent-Length: {n}\n\n").into_bytes(), body(n)]
                .concat();
        }
        Act::ChunkedBareLf => {
            whole = b"HTTP/1.1 200 Any\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            whole.extend_from_slice(b"1\nx\r\n0\r\n\r\n");
        }
        Act::Garbage => whole = b"\x16\x03\x01 this is no HTTP at all\r\n\r\n".to_vec(),
        _ => {}
    }
    whole
}
