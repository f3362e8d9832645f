//! One connection of the load and the request on it. Owns the state machine and the classification
//! of what happens; does no I/O, reads no clock: it says what to do next, as a [`Step`].
//! Start reading at [`Conn::received`].
//!
//! ```text
//!           start            connected           received           complete
//!   Down ---------> Connecting -----> Waiting -----------> Reading ---------> Idle (keep-alive)
//!     ^                                  ^     start           |               |   or Down
//!     |                                  +---------------------|---------------+
//!     +----- any failure, any close ---------------------------+
//! ```

use record::{Outcome, Sample, Verify};
use sys::driver::Failure;
use units::Nanos;
use wire::{Eof, Event, ReplyLimits, ReplyParser, RequestKind};

/// A connection slot.
pub(crate) struct Conn {
    state: State,
    parser: ReplyParser,
    /// When it began to connect.
    pub(crate) connect_began: Nanos,
    /// Whether a byte of a reply came on this connection.
    has_served: bool,
    /// Consecutive requests of this slot that failed before a byte of their reply.
    failures: u8,
    due: Nanos,
    sent: Nanos,
    first_byte: Nanos,
    bytes_read: u64,
    /// Of the reply being read, once its head is complete.
    status: u16,
    keep_alive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// There is no connection, and no request.
    Down,
    /// A request waits for the connection.
    Connecting,
    /// The connection stands; no request.
    Idle,
    /// A request is out; no byte of its reply came.
    Waiting,
    /// A reply is coming.
    Reading,
}

/// What all requests of a load have in common, as far as a reply depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expectation {
    pub(crate) kind: RequestKind,
    pub(crate) keep_alive: bool,
    pub(crate) verify: Verify,
}

/// What the worker is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// Connect.
    Connect,
    /// Send the request.
    Send,
    /// The first byte came: the time for reading begins.
    Read,
    /// An idle connection is of no more use: close it. No request is concerned.
    Drop,
    /// The request ended.
    End(Ending),
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    /// What becomes of the connection.
    pub(crate) then: Then,
    /// Body bytes of the reply that were read.
    pub(crate) bytes_body: u64,
}

/// What becomes of a connection after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// It carries the next one.
    Keep,
    /// It is closed after a complete reply.
    Close,
    /// It is given up.
    Abandon,
}

impl Conn {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Down,
            parser: ReplyParser::new(ReplyLimits::DEFAULT),
            connect_began: Nanos::ZERO,
            has_served: false,
            failures: 0,
            due: Nanos::ZERO,
            sent: Nanos::ZERO,
            first_byte: Nanos::ZERO,
            bytes_read: 0,
            status: 0,
            keep_alive: false,
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Whether the connection stands.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Idle | State::Waiting | State::Reading)
    }

    /// Whether a request was begun and has not ended.
    pub(crate) fn has_request(&self) -> bool {
        matches!(self.state, State::Connecting | State::Waiting | State::Reading)
    }

    /// Begins the request that was due at `due`.
    #[inline]
    pub(crate) fn start(&mut self, due: Nanos, now: Nanos) -> Step {
        self.due = due;
        self.sent = Nanos::ZERO;
        self.first_byte = Nanos::ZERO;
        self.bytes_read = 0;
        self.status = 0;
        self.keep_alive = false;
        match self.state {
            State::Idle => Step::Send,
            State::Down => {
                self.state = State::Connecting;
                self.connect_began = now;
                self.has_served = false;
                self.parser.reset();
                Step::Connect
            }
            busy => unreachable!("a request was begun on a slot that is {busy:?}"),
        }
    }

    /// The connection stands.
    pub(crate) fn connected(&mut self) -> Step {
        assert_eq!(self.state, State::Connecting, "only a connecting slot gets connected");
        self.state = State::Idle;
        Step::Send
    }

    /// The request's first byte was handed over at `sent`.
    #[inline]
    pub(crate) fn sent(&mut self, sent: Nanos, expectation: &Expectation) {
        self.state = State::Waiting;
        self.sent = sent;
        self.parser.expect(expectation.kind);
    }

    /// Bytes of the reply.
    #[inline]
    pub(crate) fn received(&mut self, bytes: &[u8], now: Nanos, expect: &Expectation) -> Step {
        let is_first = match self.state {
            State::Waiting => true,
            State::Reading => false,
            // Bytes that no request asked for; a request on this connection would be answered by them.
            _ => return Step::Drop,
        };
        if is_first {
            self.state = State::Reading;
            self.first_byte = now;
        }
        self.bytes_read += bytes.len() as u64;
        let mut left = bytes;
        loop {
            let Ok(step) = self.parser.feed(left) else {
                return self.ends(Outcome::Protocol, Then::Abandon);
            };
            left = &left[step.used..];
            match step.event {
                Event::NeedMore if is_first => return Step::Read,
                Event::NeedMore => return Step::Nothing,
                Event::Interim { .. } | Event::Body(_) => {}
                Event::Head { head, .. } => {
                    self.status = head.status;
                    self.keep_alive = head.keep_alive;
                }
                Event::Done(totals) if left.is_empty() => {
                    return self.completes(totals.body_bytes, expect);
                }
                // More than the framing said: what follows is not what the server meant it to be.
                Event::Done(_) => return self.ends(Outcome::Protocol, Then::Abandon),
            }
        }
    }

    /// The peer closed its side.
    pub(crate) fn closed(&mut self, expect: &Expectation) -> Step {
        match self.state {
            State::Down | State::Idle => return Step::Drop,
            State::Connecting => return self.ends(Outcome::ConnectFailed, Then::Abandon),
            State::Waiting | State::Reading => {}
        }
        match self.parser.eof() {
            Ok(Eof::Done(totals)) => {
                self.keep_alive = false;
                self.completes(totals.body_bytes, expect)
            }
            Ok(Eof::Idle | Eof::BeforeReply) | Err(_) => self.ends(self.cut(), Then::Abandon),
        }
    }

    /// The connection is gone.
    pub(crate) fn failed(&mut self, failure: Failure) -> Step {
        let outcome = match (self.state, failure) {
            (State::Down | State::Idle, _) => return Step::Drop,
            (_, Failure::FdExhausted) => Outcome::FdExhausted,
            (_, Failure::PortExhausted) => Outcome::PortExhausted,
            (State::Connecting, Failure::Refused) => Outcome::ConnectRefused,
            (State::Connecting, Failure::TimedOut) => Outcome::ConnectTimeout,
            (State::Connecting, _) => Outcome::ConnectFailed,
            (State::Waiting | State::Reading, _) => self.cut(),
        };
        self.ends(outcome, Then::Abandon)
    }

    /// The timeout of the current state ran out.
    pub(crate) fn timed_out(&mut self) -> Step {
        let outcome = match self.state {
            State::Down | State::Idle => return Step::Nothing,
            State::Connecting => Outcome::ConnectTimeout,
            State::Waiting => Outcome::TimeoutWaiting,
            State::Reading => Outcome::TimeoutReading,
        };
        self.ends(outcome, Then::Abandon)
    }

    /// Gives up the request that is out at the end of the load.
    pub(crate) fn unanswered(&self) -> Ending {
        self.ending(Outcome::Unanswered, Then::Abandon)
    }

    /// The request, which ended at `done`; `conn` is the index of its slot in the whole load.
    #[inline]
    pub(crate) fn sample(&self, ending: Ending, done: Nanos, conn: u32) -> Sample {
        let Ending { outcome, bytes_body, .. } = ending;
        Sample {
            due: self.due,
            sent: self.sent,
            first_byte: self.first_byte,
            done,
            bytes_read: self.bytes_read,
            bytes_body,
            // A status counts only with a complete reply.
            status: if is_complete(outcome) { self.status } else { 0 },
            outcome,
            conn,
        }
    }

    /// Settles the slot after an ending. Returns which backoff it has to sit out before its next
    /// request, from 0; `None`: none.
    #[inline]
    pub(crate) fn settle(&mut self, ending: Ending) -> Option<u8> {
        let had_served = self.has_served;
        self.state = if ending.then == Then::Keep { State::Idle } else { State::Down };
        if self.bytes_read > 0 {
            self.has_served = true;
            self.failures = 0;
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        // A kept-alive connection that was lost is no sign of a dead server: try again at once.
        let again_at_once = had_served && self.failures == 1;
        (!again_at_once).then(|| self.failures - 1)
    }

    /// An idle connection was dropped.
    pub(crate) fn dropped(&mut self) {
        self.state = State::Down;
    }

    fn cut(&self) -> Outcome {
        match self.state {
            State::Reading => Outcome::ResetAfterFirstByte,
            _ => Outcome::ResetBeforeFirstByte,
        }
    }

    #[inline]
    fn completes(&mut self, body_bytes: u64, expect: &Expectation) -> Step {
        let Verify { status_min, status_max, length } = expect.verify;
        let has_length = |length: units::Bytes| length.0 == body_bytes;
        let outcome = if !(status_min..=status_max).contains(&self.status) {
            Outcome::UnexpectedStatus
        } else if expect.kind != RequestKind::Head && !length.is_none_or(has_length) {
            Outcome::WrongLength
        } else {
            Outcome::Ok
        };
        let keeps = self.keep_alive && expect.keep_alive;
        let then = if keeps { Then::Keep } else { Then::Close };
        Step::End(Ending { outcome, then, bytes_body: body_bytes })
    }

    fn ends(&self, outcome: Outcome, then: Then) -> Step {
        Step::End(self.ending(outcome, then))
    }

    fn ending(&self, outcome: Outcome, then: Then) -> Ending {
        Ending { outcome, then, bytes_body: self.parser.totals().body_bytes }
    }
}

/// Whether a reply came whole.
fn is_complete(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Ok | Outcome::UnexpectedStatus | Outcome::WrongLength)
}
