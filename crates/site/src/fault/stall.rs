//! `stall`: a share of the responses is held for a longer time, either the whole response or what follows its head.
//! Start reading at [`Stall`].

use std::sync::Arc;

use units::Nanos;

use super::{Draw, Effect, FaultKind, HOLD_MAX, Hold, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "stall",
    forms: "stall=1%,200ms, with ,phase=body to send the head before the stall, and ,seed=N",
    is_unique: false,
    read: |spec| {
        let seed = spec.seed()?;
        let phase = match spec.named("phase") {
            None | Some("head") => Phase::Head,
            Some("body") => Phase::Body,
            Some(other) => return Err(format!("the phase `{other}` is neither head nor body")),
        };
        let share = spec::share(spec.first("the share")?)?;
        let time = spec::time(spec.first("the time")?, HOLD_MAX)?;
        Ok(Arc::new(Stall { share, time, phase, seed }))
    },
};

/// Each response is stalled with this probability, independent of earlier ones. Stalls at regular intervals would fall
/// into step with clients that take turns.
#[derive(Debug)]
struct Stall {
    /// Above 0 and at most 1.
    share: f64,
    time: Nanos,
    phase: Phase,
    seed: u64,
}

/// What is held.
#[derive(Debug)]
enum Phase {
    Head,
    /// What follows the head; a response without a body is not held.
    Body,
}

impl Effect for Stall {
    fn hold(&self, draw: Draw) -> Hold {
        let mut hold = Hold::default();
        if draw.unit(self.seed) <= self.share {
            match self.phase {
                Phase::Head => hold.head = self.time,
                Phase::Body => hold.body = self.time,
            }
        }
        hold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_responses_are_held_as_the_share_says() {
        let stall = Stall { share: 0.01, time: Nanos(1), phase: Phase::Head, seed: 3 };
        let held =
            (0..100_000).filter(|&number| stall.hold(Draw { number, place: 0 }).head == Nanos(1));
        // Binomial: 1,000 with a standard deviation of 31.5; five of those on either side.
        assert!((843..1157).contains(&held.count()));
    }
}
