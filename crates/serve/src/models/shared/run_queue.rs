//! Which connections of a loop are to have a turn without the kernel saying so: at once, in the next
//! round, or when a planted fault lets go of their answer. Owns their order; must not know what a
//! connection is, only its index and its [`RunMark`]. Start reading at [`RunQueue::push`] and
//! [`RunQueue::hold_until`].
//!
//! The wheel of `timers` is 32 ms late at times, which is nothing to a timeout and everything to a
//! hold. A heap is exact, and is empty unless a fault is planted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sys::clock;
use units::Nanos;

use super::socket_io::SPIN;

/// Who is to have a turn: each connection at most once in the queue, and once among those held.
#[derive(Default)]
pub(crate) struct RunQueue {
    queue: VecDeque<u32>,
    /// Those that end together end in the order in which they began.
    held: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    pushed: u64,
}

/// What a connection remembers of it: beside its other state, which whoever looks has at hand.
#[derive(Debug, Default)]
pub(crate) struct RunMark {
    queued: bool,
    /// Zero: it is not held.
    held_until: Nanos,
}

impl RunMark {
    /// Whether it has a turn in the next round anyway.
    pub(crate) fn is_queued(&self) -> bool {
        self.queued
    }

    /// Its turn has come from the queue.
    pub(crate) fn leave_queue(&mut self) {
        self.queued = false;
    }

    /// Its hold is over.
    pub(crate) fn release_hold(&mut self) {
        self.held_until = Nanos::ZERO;
    }
}

impl RunQueue {
    /// Has `index` have a turn in the next round.
    pub(crate) fn push(&mut self, index: u32, mark: &mut RunMark) {
        if !std::mem::replace(&mut mark.queued, true) {
            self.queue.push_back(index);
        }
    }

    /// How many are queued: a round takes so many, and leaves those that come meanwhile to the next.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The first of the queue; its mark is to leave it.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// Has `index` wait until then; an event may have it looked at before, more than once.
    pub(crate) fn hold_until(&mut self, index: u32, until: Nanos, mark: &mut RunMark) {
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
    pub(crate) fn pop_held(&mut self, clock: impl FnOnce() -> Nanos) -> Option<u32> {
        if self.next()? > clock() {
            return None;
        }
        self.held.pop().map(|Reverse((.., index))| index)
    }

    fn next(&self) -> Option<Nanos> {
        self.held.peek().map(|Reverse((until, ..))| *until)
    }
}

/// A loop that gives its connections turns: one at a time, by index.
pub(crate) trait TakesTurns {
    fn run_queue(&mut self) -> &mut RunQueue;

    /// The mark of a connection; `None`: it is gone.
    fn mark(&mut self, index: u32) -> Option<&mut RunMark>;

    /// Moves one connection on as far as it goes, or to the end of its turn.
    fn turn(&mut self, index: u32);

    /// Gives a turn to each connection whose hold is over: between any two events, since each may take
    /// as long as a hold may end late.
    #[inline]
    fn end_holds(&mut self) {
        while let Some(index) = self.run_queue().pop_held(clock::monotonic) {
            if let Some(mark) = self.mark(index) {
                mark.release_hold();
                self.turn(index);
            }
        }
    }

    /// Gives a turn to each that is queued now.
    fn run_queued(&mut self) {
        for _ in 0..self.run_queue().len() {
            let Some(index) = self.run_queue().pop() else { return };
            if let Some(mark) = self.mark(index) {
                mark.leave_queue();
                self.turn(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_are_over_by_their_end_and_then_by_their_beginning() {
        let mut run_queue = RunQueue::default();
        let mut marks: [RunMark; 4] = Default::default();
        for (until, index) in [(7, 0), (5, 1), (7, 2), (5, 3)] {
            run_queue.hold_until(index, Nanos(until), &mut marks[index as usize]);
        }
        let over = |run_queue: &mut RunQueue, now| -> Vec<u32> {
            std::iter::from_fn(|| run_queue.pop_held(|| Nanos(now))).collect()
        };
        assert!(over(&mut run_queue, 4).is_empty());
        assert_eq!(over(&mut run_queue, 6), [1, 3]);
        assert_eq!(over(&mut run_queue, 7), [0, 2]);
        assert_eq!(run_queue.wake_at(), Nanos::MAX);
    }

    #[test]
    fn nobody_is_queued_or_held_twice() {
        let (mut run_queue, mut mark) = (RunQueue::default(), RunMark::default());
        for _ in 0..2 {
            run_queue.push(3, &mut mark);
            run_queue.hold_until(3, Nanos(5), &mut mark);
        }
        assert!(mark.is_queued());
        assert_eq!((run_queue.len(), run_queue.pop(), run_queue.pop()), (1, Some(3), None));
        assert_eq!(run_queue.pop_held(|| Nanos(5)), Some(3));
        assert_eq!(run_queue.pop_held(|| Nanos(5)), None);
        mark.leave_queue();
        mark.release_hold();
        run_queue.push(3, &mut mark);
        run_queue.hold_until(3, Nanos(5), &mut mark);
        assert_eq!((run_queue.pop(), run_queue.pop_held(|| Nanos(5))), (Some(3), Some(3)));
    }
}
