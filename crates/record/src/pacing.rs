//! The laws by which requests are due, as data.

use serde::{Deserialize, Serialize};
use units::{Nanos, PerSecond};

/// The law by which requests are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "snake_case")]
pub enum Pacing {
    /// Each connection asks again as soon as its reply is complete.
    Closed,
    /// Each connection asks again after a pause, as a user reads a page.
    Think {
        /// Mean length of a pause.
        pause: Nanos,
        /// How the lengths of pauses are distributed.
        spread: Spread,
    },
    /// Open loop: every 1/rate.
    Constant {
        /// Requests a second over all threads.
        rate: PerSecond,
    },
    /// Open loop: independent arrivals, whose distances are exponential.
    Poisson {
        /// Their mean rate over all threads.
        rate: PerSecond,
    },
    /// Open loop: one request in each period of 1/rate, uniformly placed in it.
    Jitter {
        /// Requests a second over all threads.
        rate: PerSecond,
    },
    /// Open loop: the rate changes linearly, then stays.
    Ramp {
        /// Rate at the start.
        from: PerSecond,
        /// Rate at the end.
        to: PerSecond,
        /// Time from one to the other.
        over: Nanos,
    },
    /// Open loop: one constant rate after the other; the last one goes on.
    Stages {
        /// At least one.
        stages: Vec<Stage>,
    },
    /// Open loop: at given instants, counted from the start; then no more.
    Replay {
        /// In rising order.
        instants: Vec<Nanos>,
    },
}

/// A constant rate for some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Requests a second.
    pub rate: PerSecond,
    /// How long.
    pub length: Nanos,
}

/// How pauses are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// All are the same.
    Constant,
    /// Exponentially.
    Exponential,
}

impl Pacing {
    /// Whether instants do not depend on replies.
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed | Self::Think { .. })
    }
}
