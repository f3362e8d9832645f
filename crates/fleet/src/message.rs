//! What agents send of a load: windows while it runs, and the record in parts when it is over. Owns the frame. Start
//! reading at [`Message`].
//!
//! The frame of a window is 0.5 to 10 KB where it holds 500 to 100,000 requests. It is binary, without compression:
//! reading 600,000 of them takes seconds, where inflating a standard histogram of each would take minutes. Numbers are
//! LEB128, texts and histograms have their length before them. A reader trusts nothing: every length and count is
//! checked.

use record::{ErrorCounts, Interval, Outcome};
use serde::{Deserialize, Serialize};
use stats::{Histogram, leb128};
use units::Nanos;

use crate::ids::Id;

/// Version of a frame, its first byte.
const VERSION: u8 = 3;
/// Largest frame that is read: brokers carry 1 MiB at most by default.
pub const FRAME_MAX: usize = 1 << 20;
/// Bytes of a record in one part.
pub const PART_MAX: usize = 256 << 10;
/// Most parts of a record.
const PARTS_MAX: u64 = 1_024;
/// Status codes in a frame.
const STATUSES_MAX: u64 = 1_000;
/// Largest number in a window, a million requests a second or 13 days: sums of what strangers send do not overflow.
const NUMBER_MAX: u64 = 1 << 50;
/// Before the content of each kind.
const WINDOW: u64 = 0;
const PART: u64 = 1;
const TOTALS: u64 = 2;

/// A message of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who sent it.
    pub from: Sender,
    /// What it holds.
    pub content: Content,
}

/// Who sent a message, and which of its messages it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// The run it belongs to.
    pub run: Id,
    /// The agent.
    pub agent: Id,
    /// Who commanded it: the controller's fencing number.
    pub epoch: u64,
    /// Number of this message of the agent in this run, from 0, each once.
    pub seq: u64,
    /// Largest error of the agent's run clock when it was sent.
    pub clock_error: Nanos,
}

/// What a message holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// What happened in a window.
    Window(Box<Window>),
    /// A part of the record of the whole load.
    Part(Part),
    /// The sums of all, last.
    Totals(AgentTotals),
}

/// One window of one agent, or a part of it: windows of the same number add up.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Number of the window, from 0 at the start of the load.
    pub number: u32,
    /// Requests that were in flight at its end.
    pub in_flight: u64,
    /// What happened in it.
    pub happened: Interval,
}

/// A part of a compressed record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The totals of an agent, as it states them when its load is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTotals {
    /// Messages that it sent: their numbers are 0 to this, less one.
    pub messages: u64,
    /// Windows of its load, which may have ended before its time.
    pub windows: u32,
    /// Requests started.
    pub started: u64,
    /// Requests that ended, well or not.
    pub done: u64,
    /// Whether its load ended before its time.
    pub interrupted: bool,
}

/// Bytes that are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Of a joust that writes another frame.
    #[error(
        "the frame has version {0}, and this joust reads version {VERSION}: use the same joust on every machine"
    )]
    Version(u8),
    /// Cut, or changed on the way.
    #[error("the frame is damaged: {0}")]
    Damaged(&'static str),
}

impl Sender {
    /// The bytes of a message with this content, as [`Content::encode`] wrote it.
    pub fn frame(&self, content: &[u8]) -> Vec<u8> {
        let mut to = vec![VERSION];
        put_bytes(&mut to, self.run.as_str().as_bytes());
        put_bytes(&mut to, self.agent.as_str().as_bytes());
        for number in [self.epoch, self.seq, self.clock_error.0] {
            leb128::push(&mut to, number);
        }
        to.extend_from_slice(content);
        to
    }
}

impl Message {
    /// Reads [`Sender::frame`].
    ///
    /// # Errors
    /// [`FrameError`]; nothing of a damaged frame is used.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        if bytes.len() > FRAME_MAX {
            return Err(FrameError::Damaged("it is larger than 1 MiB"));
        }
        let (&version, rest) = bytes.split_first().ok_or(FrameError::Damaged("it is empty"))?;
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let mut from = Reader { rest };
        let sender = Sender {
            run: from.id()?,
            agent: from.id()?,
            epoch: from.number()?,
            seq: from.number()?,
            clock_error: Nanos(from.number()?),
        };
        let content = match from.number()? {
            WINDOW => Content::Window(Box::new(from.window()?)),
            PART => Content::Part(from.part()?),
            TOTALS => Content::Totals(AgentTotals {
                messages: from.count(NUMBER_MAX)?,
                windows: from.small()?,
                started: from.count(NUMBER_MAX)?,
                done: from.count(NUMBER_MAX)?,
                interrupted: from.count(1)? == 1,
            }),
            _ => return Err(FrameError::Damaged("a kind that is not known here")),
        };
        if !from.rest.is_empty() {
            return Err(FrameError::Damaged("bytes after its end"));
        }
        Ok(Self { from: sender, content })
    }
}

impl Content {
    /// Its bytes within a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        match self {
            Self::Window(window) => {
                leb128::push(&mut to, WINDOW);
                window.encode(&mut to);
            }
            Self::Part(part) => {
                leb128::push(&mut to, PART);
                leb128::push(&mut to, part.index.into());
                leb128::push(&mut to, part.of.into());
                put_bytes(&mut to, &part.bytes);
            }
            Self::Totals(totals) => {
                let AgentTotals { messages, windows, started, done, interrupted } = *totals;
                leb128::push(&mut to, TOTALS);
                for number in [messages, windows.into(), started, done, interrupted.into()] {
                    leb128::push(&mut to, number);
                }
            }
        }
        to
    }
}

impl Window {
    fn encode(&self, to: &mut Vec<u8>) {
        let happened = &self.happened;
        for number in [
            self.number.into(),
            self.in_flight,
            happened.start.0,
            happened.length.0,
            happened.started,
            happened.ok,
            happened.bytes_read,
            happened.client_cpu.0,
        ] {
            leb128::push(to, number);
        }
        // All of them, and how many there are: a joust that knows other outcomes must not read them.
        leb128::push(to, happened.errors.each().count() as u64);
        happened.errors.each().for_each(|(_, count)| leb128::push(to, count));
        leb128::push(to, happened.status.len() as u64);
        for (status, count) in &happened.status {
            leb128::push(to, u64::from(*status));
            leb128::push(to, *count);
        }
        let (service, response) = (happened.service.compact(), happened.response.compact());
        put_bytes(to, &service);
        // In a closed loop they are the same.
        leb128::push(to, u64::from(response != service));
        if response != service {
            put_bytes(to, &response);
        }
    }

    /// Requests of it that ended, well or not.
    pub fn done(&self) -> u64 {
        self.happened.ok + self.happened.errors.total()
    }
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    leb128::push(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// What is left of a frame.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn number(&mut self) -> Result<u64, FrameError> {
        leb128::take(&mut self.rest).ok_or(FrameError::Damaged("a number is cut off or too large"))
    }

    fn small(&mut self) -> Result<u32, FrameError> {
        u32::try_from(self.number()?).map_err(|_| FrameError::Damaged("a number is too large"))
    }

    fn count(&mut self, max: u64) -> Result<u64, FrameError> {
        let count = self.number()?;
        if count <= max { Ok(count) } else { Err(FrameError::Damaged("a number is too large")) }
    }

    fn bytes(&mut self) -> Result<&'a [u8], FrameError> {
        let length = usize::try_from(self.number()?).ok();
        let split = length.and_then(|length| self.rest.split_at_checked(length));
        let (bytes, rest) = split.ok_or(FrameError::Damaged("it is cut off"))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn id(&mut self) -> Result<Id, FrameError> {
        let text = std::str::from_utf8(self.bytes()?).ok();
        let id = text.and_then(|text| text.parse().ok());
        id.ok_or(FrameError::Damaged("the name of its run or agent"))
    }

    fn window(&mut self) -> Result<Window, FrameError> {
        let (number, in_flight) = (self.small()?, self.count(NUMBER_MAX)?);
        let mut happened =
            Interval::packed(Nanos(self.count(NUMBER_MAX)?), Nanos(self.count(NUMBER_MAX)?));
        happened.started = self.count(NUMBER_MAX)?;
        happened.ok = self.count(NUMBER_MAX)?;
        happened.bytes_read = self.count(NUMBER_MAX)?;
        happened.client_cpu = Nanos(self.count(NUMBER_MAX)?);
        happened.errors = self.errors()?;
        for _ in 0..self.count(STATUSES_MAX)? {
            let status = u16::try_from(self.number()?);
            let status = status.map_err(|_| FrameError::Damaged("status code"))?;
            if happened.status.last_key_value().is_some_and(|(last, _)| *last >= status) {
                return Err(FrameError::Damaged("status codes that do not rise"));
            }
            happened.status.insert(status, self.count(NUMBER_MAX)?);
        }
        happened.service = self.histogram()?;
        happened.response = match self.count(1)? {
            0 => happened.service.clone(),
            _ => self.histogram()?,
        };
        if happened.service.count() != happened.ok || happened.response.count() != happened.ok {
            return Err(FrameError::Damaged("latencies and requests differ in number"));
        }
        Ok(Window { number, in_flight, happened })
    }

    fn part(&mut self) -> Result<Part, FrameError> {
        let (index, of) = (self.small()?, self.small()?);
        if index >= of || u64::from(of) > PARTS_MAX {
            return Err(FrameError::Damaged("the number of a part"));
        }
        Ok(Part { index, of, bytes: self.bytes()?.to_vec() })
    }

    fn errors(&mut self) -> Result<ErrorCounts, FrameError> {
        let mut errors = ErrorCounts::default();
        let known: Vec<Outcome> = errors.each().map(|(outcome, _)| outcome).collect();
        if self.number()? != known.len() as u64 {
            return Err(FrameError::Damaged("outcomes that are not known here"));
        }
        for outcome in known {
            *errors.of(outcome).expect("each yields failures only") = self.count(NUMBER_MAX)?;
        }
        Ok(errors)
    }

    fn histogram(&mut self) -> Result<Histogram, FrameError> {
        Histogram::from_compact(self.bytes()?).map_err(|_| FrameError::Damaged("a histogram"))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A window in which requests took so many microseconds.
    pub(crate) fn window(agent: &str, seq: u64, number: u32, micros: &[u64]) -> Message {
        let length = Nanos::from_secs(1);
        let mut happened = Interval::new(Nanos(u64::from(number) * length.0), length);
        for &micros in micros {
            happened.service.record(Nanos::from_micros(micros));
            happened.response.record(Nanos::from_micros(2 * micros));
        }
        happened.ok = micros.len() as u64;
        happened.started = happened.ok + 1;
        happened.errors.timeout_waiting = 1;
        happened.bytes_read = 100 * happened.ok;
        happened.status = [(200, happened.ok)].into();
        let from = Sender {
            run: "r-1".parse().expect("a name"),
            agent: agent.parse().expect("a name"),
            epoch: 1,
            seq,
            clock_error: Nanos::from_micros(40),
        };
        let window = Window { number, in_flight: 3, happened };
        Message { from, content: Content::Window(Box::new(window)) }
    }

    impl Message {
        pub(crate) fn encode(&self) -> Vec<u8> {
            self.from.frame(&self.content.encode())
        }

        pub(crate) fn window(&self) -> &Window {
            match &self.content {
                Content::Window(window) => window,
                other => panic!("it is no window: {other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_sent_is_read(micros in prop::collection::vec(1u64..10_000_000, 0..50), seq: u64, number in 0u32..1_000_000) {
            let sent = window("a-1", seq, number, &micros);
            prop_assert_eq!(Message::decode(&sent.encode()).unwrap(), sent);
        }

        #[test]
        fn a_damaged_frame_is_refused_or_adds_up(at in 0usize..200, to: u8, cut in 0usize..200) {
            let mut bytes = window("a-1", 7, 3, &[100, 200, 300]).encode();
            prop_assert!(Message::decode(&bytes[..cut.min(bytes.len() - 1)]).is_err());
            let at = at % bytes.len();
            bytes[at] = to;
            if let Ok(Message { content: Content::Window(read), .. }) = Message::decode(&bytes) {
                prop_assert_eq!(read.happened.ok, read.happened.service.count());
            }
        }
    }

    #[test]
    fn latencies_of_a_closed_loop_are_sent_once() {
        let open = window("a-1", 0, 0, &[100, 2_000, 300]);
        let mut closed = open.clone();
        let Content::Window(own) = &mut closed.content else { unreachable!() };
        own.happened.response = own.happened.service.clone();
        assert!(closed.encode().len() + 6 <= open.encode().len());
        assert_eq!(Message::decode(&closed.encode()), Ok(closed));
    }

    #[test]
    fn a_part_of_a_record_is_read() {
        let from = window("a-1", 4, 0, &[]).from;
        let part = Part { index: 1, of: 3, bytes: vec![7; 1_000] };
        let sent = Message { from, content: Content::Part(part) };
        assert_eq!(Message::decode(&sent.encode()), Ok(sent.clone()));
        let Content::Part(part) = sent.content else { unreachable!() };
        let wrong = Content::Part(Part { index: 3, ..part });
        assert!(Message::decode(&sent.from.frame(&wrong.encode())).is_err());
    }

    #[test]
    fn the_totals_are_read() {
        let totals =
            AgentTotals { messages: 9, windows: 7, started: 20, done: 19, interrupted: true };
        let sent =
            Message { from: window("a-1", 8, 0, &[]).from, content: Content::Totals(totals) };
        assert_eq!(Message::decode(&sent.encode()), Ok(sent));
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = window("a-1", 0, 0, &[]).encode();
        bytes[0] = 9;
        let said = Message::decode(&bytes).unwrap_err().to_string();
        assert!(said.contains("version 9") && said.contains("the same joust"), "{said}");
    }
}
