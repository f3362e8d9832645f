//! What a controller orders and an agent answers. Start reading at [`Order`].
//!
//! Every order may be sent again: it is answered as the first time and done once. Orders of a controller that has
//! been replaced are refused, by its fencing number.

use record::Share;
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::ids::Id;
use crate::message::AgentTotals;

/// An order, with who gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The run.
    pub run: Id,
    /// The controller's fencing number: a higher one replaces a lower one for good.
    pub epoch: u64,
    /// What is to be done.
    pub order: Order,
}

/// Times of an agent, which its plan sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatTimes {
    /// Longest silence of the controller.
    pub dead_man: Nanos,
    /// How long after its planned end a load may still take.
    pub grace: Nanos,
}

/// What an agent is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Fetch the plan of this digest, check it, and be ready to carry out this share of it.
    Prepare {
        /// SHA-256 of the plan, in hex.
        plan: String,
        /// Which part.
        share: Share,
        /// How long the load takes.
        duration: Nanos,
        /// When the agent ends it by itself.
        times: SeatTimes,
        /// Largest error of its run clock with which it may begin.
        clock_error_max: Nanos,
    },
    /// Be ready to begin at this instant of the run clock. Nothing begins by this alone.
    Arm {
        /// On the run clock.
        at: Nanos,
    },
    /// Begin at the instant that was armed.
    Commit {
        /// The same instant as in `Arm`.
        at: Nanos,
    },
    /// Forget the run; nothing has begun.
    Cancel,
    /// End the load: let replies come that are in flight, or not.
    Stop {
        /// Whether what is in flight is given up.
        at_once: bool,
    },
    /// Send these messages again: they have not come.
    Resend {
        /// Their numbers.
        seqs: Vec<u64>,
    },
    /// All is collected: the spool may go.
    Release,
}

/// What an agent says to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The plan is being prepared.
    Preparing,
    /// It can be armed.
    Ready,
    /// It would begin then.
    Armed {
        /// The instant, as ordered.
        at: Nanos,
    },
    /// It will begin.
    Committed,
    /// It has begun.
    Running,
    /// The load is over, and its result is being sent.
    Reporting,
    /// The load is over, and this is all that was sent of it.
    Finished(AgentTotals),
    /// It has forgotten the run, or never knew it.
    Free,
    /// It works for another run.
    Busy(Id),
    /// It will not, or cannot: the plan is refused, or its worker ended.
    Failed(String),
    /// The instant had passed when the order came.
    TooLate {
        /// By so much.
        by: Nanos,
    },
    /// Another controller is in force.
    Fenced {
        /// Its fencing number.
        by: u64,
    },
}
