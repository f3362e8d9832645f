//! Which connections of a loop are to have a turn without the kernel saying so: at once, in the next
//! round, or when a planted fault lets go of their answer. Owns their order; must not know what a
//! connection is, only its index and its [`Mark`]. Start reading at [`Turns::queue`] and
//! [`Turns::hold`].
//!
//! The wheel of `timers` is 32 ms late at times, which is nothing to a timeout and everything to a
//! hold. A heap is exact, and is empty unless a fault is planted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use units::Nanos;

use super::drive::SPIN;

/// Who is to have a turn: each connection at most once in the queue, and once among those held.
#[derive(Default)]
pub(crate) struct Turns {
    queue: VecDeque<u32>,
    /// Those that end together end in the order in which they began.
    held: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    pushed: u64,
}

/// What a connection remembers of it: beside its other state, which whoever looks has at hand.
#[derive(Debug, Default)]
pub(crate) struct Mark {
    queued: bool,
    /// Zero: it is not held.
    held_until: Nanos,
}

impl Mark {
    /// Whether it has a turn in the next round anyway.
    pub(crate) fn is_queued(&self) -> bool {
        self.queued
    }

    /// Its turn has come from the queue.
    pub(crate) fn leave_queue(&mut self) {
        self.queued = false;
    }

    /// Its hold is over.
    pub(crate) fn let_go(&mut self) {
        self.held_until = Nanos::ZERO;
    }
}

impl Turns {
    /// Has `index` have a turn in the next round.
    pub(crate) fn queue(&mut self, index: u32, mark: &mut Mark) {
        if !std::mem::replace(&mut mark.queued, true) {
            self.queue.push_back(index);
        }
    }

    /// How many are queued: a round takes so many, and leaves those that come meanwhile to the next.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The first of the queue; its mark is to leave it.
    pub(crate) fn take_queued(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// Has `index` wait until then; an event may have it looked at before, more than once.
    pub(crate) fn hold(&mut self, index: u32, until: Nanos, mark: &mut Mark) {
        if mark.held_until != until {
            mark.held_until = until;
            self.pushed += 1;
            self.held.push(Reverse((until, self.pushed, index)));
        }
    }

    /// When to wake for the first hold, a little early; the far future where there is none.
    pub(crate) fn wake_at(&self) -> Nanos {
        self.next().map_or(Nanos::MAX, |until| until.saturating_sub(SPIN))
    }

    /// The first whose hold is over by a clock that is read only if there is any; its mark is to be let
    /// go.
    pub(crate) fn take_held(&mut self, clock: impl FnOnce() -> Nanos) -> Option<u32> {
        if self.next()? > clock() {
            return None;
        }
        self.held.pop().map(|Reverse((.., index))| index)
    }

    fn next(&self) -> Option<Nanos> {
        self.held.peek().map(|Reverse((until, ..))| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_are_over_by_their_end_and_then_by_their_beginning() {
        let mut turns = Turns::default();
        let mut marks: [Mark; 4] = Default::default();
        for (until, index) in [(7, 0), (5, 1), (7, 2), (5, 3)] {
            turns.hold(index, Nanos(until), &mut marks[index as usize]);
        }
        let over = |turns: &mut Turns, now| -> Vec<u32> {
            std::iter::from_fn(|| turns.take_held(|| Nanos(now))).collect()
        };
        assert!(over(&mut turns, 4).is_empty());
        assert_eq!(over(&mut turns, 6), [1, 3]);
        assert_eq!(over(&mut turns, 7), [0, 2]);
        assert_eq!(turns.wake_at(), Nanos::MAX);
    }

    #[test]
    fn nobody_is_queued_or_held_twice() {
        let (mut turns, mut mark) = (Turns::default(), Mark::default());
        for _ in 0..2 {
            turns.queue(3, &mut mark);
            turns.hold(3, Nanos(5), &mut mark);
        }
        assert!(mark.is_queued());
        assert_eq!((turns.queued(), turns.take_queued(), turns.take_queued()), (1, Some(3), None));
        assert_eq!(turns.take_held(|| Nanos(5)), Some(3));
        assert_eq!(turns.take_held(|| Nanos(5)), None);
        mark.leave_queue();
        mark.let_go();
        turns.queue(3, &mut mark);
        turns.hold(3, Nanos(5), &mut mark);
        assert_eq!((turns.take_queued(), turns.take_held(|| Nanos(5))), (Some(3), Some(3)));
    }
}
