//! The laws by which requests are due, as data. Start reading at [`Pacing`]. A law with one rate is a variant of it and
//! an entry of [`RATE_LAWS`]; flags, help, reports and merged records follow from that entry.

use serde::{Deserialize, Serialize};
use units::{Nanos, PerSecond};

/// The law by which requests are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "snake_case")]
pub enum Pacing {
    /// Each connection sends its next request as soon as its reply is complete.
    Closed,
    /// Each connection sends its next request after a pause, like a user who reads a page.
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
    /// Open loop: independent arrivals with exponential gaps.
    Poisson {
        /// Their mean rate over all threads.
        rate: PerSecond,
    },
    /// Open loop: one request in each period of 1/rate, at a uniformly random instant.
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
    /// Open loop: constant rates one after the other; the last one continues.
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

/// A law that spreads the requests of one rate over time.
#[derive(Debug)]
pub struct RateLaw {
    /// Its name for `--arrivals`; `law` in a record.
    pub name: &'static str,
    /// How its requests arrive, for the help.
    pub about: &'static str,
    /// Its name in a report.
    pub shown: fn(PerSecond) -> String,
    /// Whether its instants are drawn at random from the seed.
    pub is_random: bool,
    /// The law at a given rate.
    pub at: fn(PerSecond) -> Pacing,
}

/// All of them; the first is the default.
pub static RATE_LAWS: [&RateLaw; 3] = [&CONSTANT, &POISSON, &JITTER];

static CONSTANT: RateLaw = RateLaw {
    name: "constant",
    about: "Evenly",
    shown: |rate| format!("constant {rate}"),
    is_random: false,
    at: |rate| Pacing::Constant { rate },
};

static POISSON: RateLaw = RateLaw {
    name: "poisson",
    about: "Random and independent, like requests of many users",
    shown: |rate| format!("Poisson {rate}"),
    is_random: true,
    at: |rate| Pacing::Poisson { rate },
};

static JITTER: RateLaw = RateLaw {
    name: "jitter",
    about: "One request in each period of 1/rate, at a random time in it",
    shown: |rate| format!("{rate} with jitter"),
    is_random: true,
    at: |rate| Pacing::Jitter { rate },
};

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
    /// The law and its rate, if it has a single rate.
    pub fn rate_law(&self) -> Option<(&'static RateLaw, PerSecond)> {
        match self {
            Self::Constant { rate } => Some((&CONSTANT, *rate)),
            Self::Poisson { rate } => Some((&POISSON, *rate)),
            Self::Jitter { rate } => Some((&JITTER, *rate)),
            Self::Closed
            | Self::Think { .. }
            | Self::Ramp { .. }
            | Self::Stages { .. }
            | Self::Replay { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_of_one_rate_is_read_back_by_its_name() {
        for law in RATE_LAWS {
            let pacing = (law.at)(PerSecond(5.0));
            let (found, rate) = pacing.rate_law().unwrap();
            assert_eq!((found.name, rate), (law.name, PerSecond(5.0)));
            let json = serde_json::to_string(&pacing).unwrap();
            assert!(json.contains(&format!("\"law\":\"{}\"", law.name)), "{json}");
        }
    }
}
