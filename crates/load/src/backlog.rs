//! The queue of an open loop: requests that are due and wait for a free connection. Owns its bound
//! and its counts; must not know connections. Start reading at [`Backlog::fill`].
//!
//! A request that is due waits here, never in the law: so the queue has a length that can be shown,
//! and a bound. One that finds it full is dropped and counted; it is never skipped in silence.

use std::collections::VecDeque;

use units::Nanos;

use crate::pacing::Arrivals;

/// Requests that are due, and those to come.
pub(crate) struct Backlog {
    arrivals: Arrivals,
    waiting: VecDeque<Nanos>,
    n_max: usize,
    counts: BacklogCounts,
}

/// What became of the instants of a law.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BacklogCounts {
    /// Instants that were reached.
    pub(crate) due: u64,
    /// Of them: found the queue full.
    pub(crate) dropped: u64,
    /// Of them: in the queue when the window ended.
    pub(crate) left: u64,
    /// Longest queue.
    pub(crate) waiting_max: u64,
}

/// Waiting requests for which memory is there from the start; a longer queue grows, by doubling.
const RESERVED: usize = 1024;

impl Backlog {
    /// A queue of at most `n_max`.
    pub(crate) fn new(arrivals: Arrivals, n_max: u64) -> Self {
        let n_max = usize::try_from(n_max).unwrap_or(usize::MAX);
        let waiting = VecDeque::with_capacity(n_max.min(RESERVED));
        Self { arrivals, waiting, n_max, counts: BacklogCounts::default() }
    }

    /// Takes in every request that is due at `now`, at most `quota` more than were taken in before
    /// and wait.
    #[inline]
    pub(crate) fn fill(&mut self, now: Nanos, quota: u64) {
        while (self.waiting.len() as u64) < quota
            && self.arrivals.peek().is_some_and(|due| due <= now)
            && let Some(due) = self.arrivals.take()
        {
            self.counts.due += 1;
            if self.waiting.len() < self.n_max {
                self.waiting.push_back(due);
                self.counts.waiting_max = self.counts.waiting_max.max(self.waiting.len() as u64);
            } else {
                self.counts.dropped += 1;
            }
        }
    }

    /// Takes the request that waits longest: when it was due.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Nanos> {
        self.waiting.pop_front()
    }

    /// Puts back what was taken last.
    pub(crate) fn put_back(&mut self, due: Nanos) {
        self.waiting.push_front(due);
    }

    /// Whether any request waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the next request is due that does not wait yet; `None`: never.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.arrivals.peek()
    }

    /// The window is over: what waits is given up.
    pub(crate) fn end(&mut self) -> BacklogCounts {
        self.counts.left += self.waiting.len() as u64;
        self.waiting.clear();
        self.counts
    }
}
