//! Why two contenders differ: the parts of the logarithm of their ratio, by cause.

use serde::{Deserialize, Serialize};

use crate::shift::Band;

/// What makes up the difference of two contenders in a cell. The parts add up to the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the numerator.
    pub a: usize,
    /// Index of the denominator.
    pub b: usize,
    /// Blocks with a measured visit of both.
    pub blocks: u32,
    /// What is divided.
    pub of: Attributed,
    /// Mean over blocks of ln(a / b) of that.
    pub ln: f64,
    /// The causes that either has, in the order of [`Cause`].
    pub parts: Vec<AttributedPart>,
}

/// What is divided among the causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attributed {
    /// Throughput of a closed loop: connections over the time of a cycle, which the causes make up.
    Throughput,
    /// Mean response time of an open loop.
    ResponseTime,
}

/// What one cause contributes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AttributedPart {
    /// Which.
    pub cause: Cause,
    /// Time that it takes of a good request of a, in the mean, ms.
    pub a_ms: f64,
    /// The same of b, ms.
    pub b_ms: f64,
    /// Part of [`Attribution::ln`].
    pub ln: f64,
    /// The same as a share: 1 where it is all of it, above 1 or below 0 where causes pull in opposite directions.
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
    /// Segments that were sent again after a timeout.
    RetransmissionTimeout,
    /// Requests that waited until the server had started a process.
    ProcessStarts,
    /// Requests that waited for another timer.
    FixedHold,
    /// Stretches in which no connection got a reply: pauses, or replies that are released together.
    Pauses,
    /// Connections that had to be made again.
    Reconnects,
    /// Requests that failed and took a connection's time.
    Errors,
    /// The first part of the measurement was slower.
    WarmUp,
    /// Bytes, where the link was the limit of both.
    Bytes,
    /// The queue for the generator's own CPU.
    ClientLimit,
    /// Open loop: waiting for a free connection.
    Waiting,
    /// The rest: the server's own work, and queues for it.
    ServiceTime,
}

impl Cause {
    /// As a row of a table has it.
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
