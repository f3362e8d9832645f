//! When which answer that a planted fault holds may leave, to the nanosecond. Owns their order; must
//! not know what a connection is, only its index. Start reading at [`Holds::push`].
//!
//! The wheel of `timers` is 32 ms late at times, which is nothing to a timeout and everything to a
//! hold. A heap is exact, and is empty unless a fault is planted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Nanos;

/// Connections that are held: each at most once, so that there are no more than connections.
#[derive(Default)]
pub(super) struct Holds {
    /// Those that end together end in the order in which they began.
    heap: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    pushed: u64,
}

impl Holds {
    /// Has `index` come up at `until`.
    pub(super) fn push(&mut self, until: Nanos, index: u32) {
        self.pushed += 1;
        self.heap.push(Reverse((until, self.pushed, index)));
    }

    /// When the first one comes up.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((until, ..))| *until)
    }

    /// The index that comes up first.
    pub(super) fn pop(&mut self) -> Option<u32> {
        self.heap.pop().map(|Reverse((.., index))| index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_come_up_by_their_end_and_then_by_their_beginning() {
        let mut holds = Holds::default();
        for (until, index) in [(7, 0), (5, 1), (7, 2), (5, 3)] {
            holds.push(Nanos(until), index);
        }
        assert_eq!(holds.next(), Some(Nanos(5)));
        let order: Vec<u32> = std::iter::from_fn(|| holds.pop()).collect();
        assert_eq!(order, [1, 3, 0, 2]);
        assert_eq!(holds.next(), None);
    }
}
