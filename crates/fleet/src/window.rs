//! What one agent did in one window of a load, as it goes from agent to controller. Owns the frame. Start reading at
//! [`Window`].
//!
//! A frame is 0.5 to 3 KB where a window holds 1,000 to 100,000 requests. It is binary, without compression: reading
//! 600,000 of them takes seconds, where inflating a standard histogram of each would take minutes. Numbers are LEB128,
//! texts and histograms have their length before them. A reader trusts nothing: every length and count is checked.

use record::{ErrorCounts, Interval, Outcome};
use stats::{Histogram, leb128};
use units::Nanos;

use crate::ids::Id;

/// Version of the frame, its first byte.
const VERSION: u8 = 1;
/// Largest frame that is read: brokers carry 1 MiB at most by default.
pub const FRAME_MAX: usize = 1 << 20;
/// Status codes in a frame.
const STATUSES_MAX: u64 = 1_000;

/// One window of one agent, or a part of it: windows of the same number add up.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The run it belongs to.
    pub run: Id,
    /// The agent.
    pub agent: Id,
    /// Who commanded it: the controller's fencing number.
    pub epoch: u64,
    /// Number of this message of the agent in this run, from 0, each once.
    pub seq: u64,
    /// Number of the window, from 0 at the start of the load.
    pub number: u32,
    /// Largest error of the agent's run clock in it.
    pub clock_error: Nanos,
    /// Requests that were in flight at its end.
    pub in_flight: u64,
    /// What happened in it.
    pub happened: Interval,
}

/// Bytes that are no window.
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

impl Window {
    /// The bytes of a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = vec![VERSION];
        let happened = &self.happened;
        put_bytes(&mut to, self.run.as_str().as_bytes());
        put_bytes(&mut to, self.agent.as_str().as_bytes());
        for number in [
            self.epoch,
            self.seq,
            self.number.into(),
            self.clock_error.0,
            self.in_flight,
            happened.start.0,
            happened.length.0,
            happened.started,
            happened.ok,
            happened.bytes_read,
            happened.client_cpu.0,
        ] {
            leb128::push(&mut to, number);
        }
        // All of them, and how many there are: a joust that knows other outcomes must not read them.
        leb128::push(&mut to, happened.errors.each().count() as u64);
        happened.errors.each().for_each(|(_, count)| leb128::push(&mut to, count));
        leb128::push(&mut to, happened.status.len() as u64);
        for (status, count) in &happened.status {
            leb128::push(&mut to, u64::from(*status));
            leb128::push(&mut to, *count);
        }
        put_bytes(&mut to, &happened.service.compact());
        put_bytes(&mut to, &happened.response.compact());
        to
    }

    /// Reads [`Window::encode`].
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
        let (run, agent) = (from.id()?, from.id()?);
        let (epoch, seq, number) = (from.number()?, from.number()?, from.number()?);
        let number = u32::try_from(number).map_err(|_| FrameError::Damaged("window number"))?;
        let (clock_error, in_flight) = (Nanos(from.number()?), from.number()?);
        let mut happened = Interval::new(Nanos(from.number()?), Nanos(from.number()?));
        happened.started = from.number()?;
        happened.ok = from.number()?;
        happened.bytes_read = from.number()?;
        happened.client_cpu = Nanos(from.number()?);
        happened.errors = from.errors()?;
        for _ in 0..from.count(STATUSES_MAX)? {
            let status = u16::try_from(from.number()?);
            let status = status.map_err(|_| FrameError::Damaged("status code"))?;
            if happened.status.insert(status, from.number()?).is_some() {
                return Err(FrameError::Damaged("a status code twice"));
            }
        }
        happened.service = from.histogram()?;
        happened.response = from.histogram()?;
        if !from.rest.is_empty() {
            return Err(FrameError::Damaged("bytes after its end"));
        }
        if happened.service.count() != happened.ok || happened.response.count() != happened.ok {
            return Err(FrameError::Damaged("latencies and requests differ in number"));
        }
        Ok(Self { run, agent, epoch, seq, number, clock_error, in_flight, happened })
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

    fn count(&mut self, max: u64) -> Result<u64, FrameError> {
        let count = self.number()?;
        if count <= max { Ok(count) } else { Err(FrameError::Damaged("a list is too long")) }
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

    fn errors(&mut self) -> Result<ErrorCounts, FrameError> {
        let mut errors = ErrorCounts::default();
        let known: Vec<Outcome> = errors.each().map(|(outcome, _)| outcome).collect();
        if self.number()? != known.len() as u64 {
            return Err(FrameError::Damaged("outcomes that are not known here"));
        }
        for outcome in known {
            *errors.of(outcome).expect("each yields failures only") = self.number()?;
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
    pub(crate) fn window(agent: &str, seq: u64, number: u32, micros: &[u64]) -> Window {
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
        Window {
            run: "r-1".parse().expect("a name"),
            agent: agent.parse().expect("a name"),
            epoch: 1,
            seq,
            number,
            clock_error: Nanos::from_micros(40),
            in_flight: 3,
            happened,
        }
    }

    proptest! {
        #[test]
        fn what_was_sent_is_read(micros in prop::collection::vec(1u64..10_000_000, 0..50), seq: u64, number: u32) {
            let sent = window("a-1", seq, number, &micros);
            prop_assert_eq!(Window::decode(&sent.encode()).unwrap(), sent);
        }

        #[test]
        fn a_damaged_frame_is_refused_or_adds_up(at in 0usize..200, to: u8, cut in 0usize..200) {
            let mut bytes = window("a-1", 7, 3, &[100, 200, 300]).encode();
            prop_assert!(Window::decode(&bytes[..cut.min(bytes.len() - 1)]).is_err());
            let at = at % bytes.len();
            bytes[at] = to;
            if let Ok(read) = Window::decode(&bytes) {
                prop_assert_eq!(read.happened.ok, read.happened.service.count());
            }
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = window("a-1", 0, 0, &[]).encode();
        bytes[0] = 9;
        let said = Window::decode(&bytes).unwrap_err().to_string();
        assert!(said.contains("version 9") && said.contains("the same joust"), "{said}");
    }
}
