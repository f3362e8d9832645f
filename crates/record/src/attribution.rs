//! Why two contenders differ: the parts of the logarithm of their ratio, by cause.

use serde::{Deserialize, Serialize};

use crate::shift::Band;

/// The causes of the difference of two contenders in a cell. The parts add up to the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the numerator.
    pub a: usize,
    /// Index of the denominator.
    pub b: usize,
    /// Blocks in which both have a measured visit.
    pub blocks: u32,
    /// The quantity that is divided.
    pub of: Attributed,
    /// Mean over blocks of ln(a / b) of that quantity.
    pub ln: f64,
    /// The causes that a or b has, in the order of [`Cause`].
    pub parts: Vec<AttributedPart>,
}

/// The quantity that is divided among the causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attributed {
    /// Throughput of a closed loop: connections over the time of a cycle, which is the sum of the causes.
    Throughput,
    /// Mean response time of an open loop.
    ResponseTime,
}

/// The contribution of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AttributedPart {
    /// The cause.
    pub cause: Cause,
    /// Mean time that it takes of a good request of a, ms.
    pub a_ms: f64,
    /// The same of b, ms.
    pub b_ms: f64,
    /// Part of [`Attribution::ln`].
    pub ln: f64,
    /// The same as a share: 1 if it is the whole difference, above 1 or below 0 if causes pull in opposite directions.
    pub share: f64,
    /// 95 % interval of `share`, by a bootstrap over blocks; `None` with too few of them.
    pub interval: Option<Band>,
}

/// Where the time of a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Replies that were held until the client's kernel sent a delayed acknowledgement.
    DelayedAck,
    /// Segments that were retransmitted after a timeout.
    RetransmissionTimeout,
    /// Requests that waited while the server started a process.
    ProcessStarts,
    /// Requests that waited for another timer.
    FixedHold,
    /// Periods in which no connection got a reply: pauses, or replies that are released together.
    Pauses,
    /// Connections that had to be re-established.
    Reconnects,
    /// Requests that failed and occupied a connection.
    Errors,
    /// The first part of the measurement was slower.
    WarmUp,
    /// Bytes, if the link limited both.
    Bytes,
    /// The queue for the generator's own CPU.
    ClientLimit,
    /// Open loop: waiting for a free connection.
    Waiting,
    /// The rest: the server's own work, and queues for it.
    ServiceTime,
}

impl Cause {
    /// Its name in a row of a table.
    pub fn text(self) -> &'static str {
        match self {
            Self::DelayedAck => "stalls: delayed ACK",
            Self::RetransmissionTimeout => "stalls: retransmission timeout",
            Self::ProcessStarts => "stalls: processes that start",
            Self::FixedHold => "stalls: fixed hold",
            Self::Pauses => "stalls: pauses and batches",
            Self::Reconnects => "reconnects",
            Self::Errors => "failed requests",
            Self::WarmUp => "warm-up",
            Self::Bytes => "bytes on the link",
            Self::ClientLimit => "the generator's CPU",
            Self::Waiting => "waiting for a connection",
            Self::ServiceTime => "service time",
        }
    }
}
