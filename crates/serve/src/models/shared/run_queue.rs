//! Connections of an event loop that get a turn without an event: in the next round, or when a
//! planted fault releases their answer. Start reading at [`RunQueue::push`] and
//! [`RunQueue::hold_until`].
//!
//! The wheel of `timers` may be 32 ms late, which suits timeouts but not holds. This heap is exact,
//! and it is empty unless a fault is planted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sys::clock;
use units::Nanos;

use super::socket_io::SPIN;

/// A connection is in the queue at most once and among the held ones at most once.
#[derive(Default)]
pub(crate) struct RunQueue {
    queue: VecDeque<u32>,
    /// Ordered by their end, then by their beginning.
    held: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    pushed: u64,
}

/// What a connection itself stores about it, because the loop has that at hand.
#[derive(Debug, Default)]
pub(crate) struct RunMark {
    queued: bool,
    /// Zero if it is not held.
    held_until: Nanos,
}

impl RunMark {
    /// Whether it gets a turn in the next round.
    pub(crate) fn is_queued(&self) -> bool {
        self.queued
    }

    /// It was taken from the queue.
    pub(crate) fn leave_queue(&mut self) {
        self.queued = false;
    }

    /// Its hold is over.
    pub(crate) fn release_hold(&mut self) {
        self.held_until = Nanos::ZERO;
    }
}

impl RunQueue {
    /// Gives `index` a turn in the next round.
    pub(crate) fn push(&mut self, index: u32, mark: &mut RunMark) {
        if !std::mem::replace(&mut mark.queued, true) {
            self.queue.push_back(index);
        }
    }

    /// How many are queued. A round takes that many and leaves later ones to the next round.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Takes the first; the caller then clears its mark.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.queue.pop_front()
    }

    /// Holds `index` until that instant. Events may give it turns before, more than once.
    pub(crate) fn hold_until(&mut self, index: u32, until: Nanos, mark: &mut RunMark) {
        if mark.held_until != until {
            mark.held_until = until;
            self.pushed += 1;
            self.held.push(Reverse((until, self.pushed, index)));
        }
    }

    /// When to wake for the first hold, slightly early; [`Nanos::MAX`] if there is none.
    pub(crate) fn wake_at(&self) -> Nanos {
        self.next().map_or(Nanos::MAX, |until| until.saturating_sub(SPIN))
    }

    /// The first whose hold is over; the caller then clears its mark. Reads the clock only if there
    /// is a hold.
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

/// An event loop that gives turns to its connections by index.
pub(crate) trait TakesTurns {
    fn run_queue(&mut self) -> &mut RunQueue;

    /// The mark of a connection; `None` if the connection is gone.
    fn mark(&mut self, index: u32) -> Option<&mut RunMark>;

    /// Moves one connection on as far as possible, or to the end of its turn.
    fn turn(&mut self, index: u32);

    /// Gives a turn to each connection whose hold is over. Called between any two events, because
    /// one event may take as long as a hold may end late.
    #[inline]
    fn end_holds(&mut self) {
        while let Some(index) = self.run_queue().pop_held(clock::monotonic) {
            if let Some(mark) = self.mark(index) {
                mark.release_hold();
                self.turn(index);
            }
        }
    }

    /// Gives a turn to each connection that is queued now.
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
    fn no_connection_is_queued_or_held_twice() {
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
