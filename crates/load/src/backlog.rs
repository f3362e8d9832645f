//! The queue of an open loop: requests that are due and wait for a free connection. Owns its bound and its counts.
//! Start reading at [`Backlog::admit`].
//!
//! A request that is due waits here, never in the law. So the queue has a visible length and a bound. A request that
//! finds the queue full is dropped and counted; it is never skipped in silence.

use std::collections::VecDeque;

use units::Nanos;

use crate::pacing::Arrivals;

/// The requests that are due, and the law for those to come.
pub(crate) struct Backlog {
    arrivals: Arrivals,
    waiting: VecDeque<Nanos>,
    n_max: usize,
    /// When the law's time for what was due is over; zero before the law is spent.
    over: Nanos,
    counts: BacklogCounts,
}

/// What happened to the instants of a law.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BacklogCounts {
    /// Instants that were reached.
    pub(crate) due: u64,
    /// Of these, the ones that found the queue full.
    pub(crate) dropped: u64,
    /// Of these, the ones in the queue when the window ended.
    pub(crate) left: u64,
    /// Longest queue.
    pub(crate) waiting_max: u64,
    /// When the last due instant was.
    pub(crate) last_due: Nanos,
    /// When the next instant would have been; `None`: never.
    pub(crate) next_due: Option<Nanos>,
    /// Time that the law has for what was due, if it can say.
    pub(crate) span: Option<Nanos>,
    /// Whether the law was asked for no more, because as many instants had become due as might ever be started.
    pub(crate) is_spent: bool,
    /// Of these, the ones that were still in the queue when the law's time for them was over; 0 if `is_spent` is
    /// false.
    pub(crate) overdue: u64,
}

/// Waiting requests that have memory from the start; a longer queue grows by doubling.
const RESERVED: usize = 1024;

impl Backlog {
    /// A queue of at most `n_max`.
    pub(crate) fn new(arrivals: Arrivals, n_max: u64) -> Self {
        let n_max = usize::try_from(n_max).unwrap_or(usize::MAX);
        let waiting = VecDeque::with_capacity(n_max.min(RESERVED));
        Self { arrivals, waiting, n_max, over: Nanos::ZERO, counts: BacklogCounts::default() }
    }

    /// Takes in the next request that is due at `now`, if any; at most `quota` may wait. Returns whether there was
    /// one; it waits, or was dropped.
    #[inline]
    pub(crate) fn admit(&mut self, now: Nanos, quota: u64) -> bool {
        if self.next_due(quota).is_none_or(|due| due > now) {
            return false;
        }
        let Some(due) = self.arrivals.take() else { return false };
        self.counts.due += 1;
        self.counts.last_due = due;
        if self.waiting.len() < self.n_max {
            self.waiting.push_back(due);
        } else {
            self.counts.dropped += 1;
        }
        true
    }

    /// Every request that waits and can be started has been.
    #[inline]
    pub(crate) fn settle(&mut self, quota: u64) {
        let n_waiting = self.waiting.len() as u64;
        self.counts.waiting_max = self.counts.waiting_max.max(n_waiting);
        if n_waiting >= quota && !self.counts.is_spent {
            (self.counts.is_spent, self.counts.overdue) = (true, n_waiting);
            self.over = self.span().or(self.arrivals.peek()).unwrap_or(Nanos::ZERO);
        }
    }

    fn span(&self) -> Option<Nanos> {
        self.arrivals.span(self.counts.due)
    }

    /// Takes the request that has waited longest, at `now`; returns when it was due.
    #[inline]
    pub(crate) fn take(&mut self, now: Nanos) -> Option<Nanos> {
        let due = self.waiting.pop_front()?;
        // A user who asks for nothing makes room for another request, which was never counted.
        let on_time = u64::from(now < self.over);
        self.counts.overdue = self.counts.overdue.saturating_sub(on_time);
        Some(due)
    }

    /// Puts back what was taken last, at the same `now`.
    pub(crate) fn put_back(&mut self, due: Nanos, now: Nanos) {
        self.counts.overdue += u64::from(now < self.over);
        self.waiting.push_front(due);
    }

    /// Whether any request waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When the next request is due that is not waiting yet; `None`: never. If `quota` requests already wait, as many
    /// as may ever start, the next one does not matter.
    #[inline]
    pub(crate) fn next_due(&self, quota: u64) -> Option<Nanos> {
        if self.waiting.len() as u64 >= quota { None } else { self.arrivals.peek() }
    }

    /// The window ended at `end`: gives up what waits and what became due since the last look. The window excludes
    /// `end` itself: 1000/s for 10 s ask for 10 000 requests, not for one more.
    pub(crate) fn end(&mut self, end: Nanos, quota: u64) -> BacklogCounts {
        while self.admit(end.saturating_sub(Nanos(1)), quota) {}
        self.settle(quota);
        self.counts.left += self.waiting.len() as u64;
        self.waiting.clear();
        (self.counts.next_due, self.counts.span) = (self.arrivals.peek(), self.span());
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use record::Pacing;
    use units::PerSecond;

    use super::*;
    use crate::pacing::{ArrivalShare, Pace, pace};

    fn backlog(n_max: u64) -> Backlog {
        let pacing = Pacing::Constant { rate: PerSecond(1000.0) };
        let Pace::Open(arrivals) = pace(&pacing, 1, ArrivalShare { first: 0, n: 1, of: 1 }) else {
            panic!("an open loop")
        };
        Backlog::new(arrivals, n_max)
    }

    #[test]
    fn every_instant_before_the_end_is_taken_dropped_or_left() {
        let mut backlog = backlog(5);
        let now = Nanos::from_millis(7);
        while backlog.admit(now, u64::MAX) {}
        backlog.settle(u64::MAX);
        assert_eq!(backlog.take(now), Some(Nanos::ZERO));
        let counts = backlog.end(Nanos::from_millis(10), u64::MAX);
        let expected = BacklogCounts {
            due: 10,
            dropped: 4,
            left: 5,
            waiting_max: 5,
            last_due: Nanos::from_millis(9),
            next_due: Some(Nanos::from_millis(10)),
            span: Some(Nanos::from_millis(10)),
            ..Default::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn what_waits_when_the_time_of_the_last_is_over_is_counted_once() {
        let mut backlog = backlog(5);
        while backlog.admit(Nanos::from_millis(2), 3) {}
        backlog.settle(3);
        // The last of three at 1000/s is due at 2 ms, and its time is over at 3 ms.
        let on_time = Nanos(2_999_999);
        let due = backlog.take(on_time).unwrap();
        backlog.put_back(due, on_time);
        backlog.take(on_time);
        backlog.settle(2);
        backlog.take(Nanos::from_millis(3));
        let counts = backlog.end(Nanos::from_secs(1), 1);
        assert_eq!((counts.overdue, counts.is_spent, counts.left), (2, true, 1));
        assert_eq!((counts.due, counts.last_due), (3, Nanos::from_millis(2)));
        assert_eq!(counts.span, Some(Nanos::from_millis(3)));
    }

    #[test]
    fn nobody_asks_when_a_request_is_due_that_may_never_be_started() {
        let mut backlog = backlog(5);
        while backlog.admit(Nanos::from_secs(1), 2) {}
        assert_eq!((backlog.next_due(2), backlog.next_due(3)), (None, Some(Nanos::from_millis(2))));
    }
}
