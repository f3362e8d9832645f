//! `warmup`: the first answers of the server are held for a longer time. It stands for a JVM that compiles, a
//! cache that fills, a file that is read from a disk first. Start reading at [`Warmup`].

use std::sync::Arc;

use units::Nanos;

use super::{Draw, Effect, FaultKind, HOLD_MAX, Hold, spec};

/// The fault.
pub(super) static ITEM: FaultKind = FaultKind {
    name: "warmup",
    forms: "warmup=3000,5ms (the first 3000 answers are held for 5 ms)",
    is_unique: true,
    read: |spec| {
        let answers = spec::count(spec.first("the number of answers")?, u32::MAX)?;
        let time = spec::time(spec.first("the time")?, HOLD_MAX)?;
        Ok(Arc::new(Warmup { answers: u64::from(answers), time }))
    },
};

/// Counted by answers, not by time: what warms a server up is its work.
#[derive(Debug)]
struct Warmup {
    answers: u64,
    time: Nanos,
}

impl Effect for Warmup {
    fn hold(&self, draw: Draw) -> Hold {
        let head = if draw.number < self.answers { self.time } else { Nanos::ZERO };
        Hold { head, body: Nanos::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answers_of_the_server_are_held_and_no_others() {
        let warmup = Warmup { answers: 2, time: Nanos(7) };
        let holds = [0, 1, 2, 3].map(|number| warmup.hold(Draw { number, place: 0 }).head);
        assert_eq!(holds, [Nanos(7), Nanos(7), Nanos::ZERO, Nanos::ZERO]);
    }
}
