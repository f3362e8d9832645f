//! How often a process that has failed is started again: a pure rule over instants. Owns the bound. Start
//! reading at [`Restarts::take`].

use std::collections::VecDeque;

use units::Nanos;

/// Restarts at most within [`WITHIN`]: systemd's own defaults (StartLimitBurst, StartLimitIntervalSec).
/// What fails more often is broken, and a service manager or a person is to look at it.
pub(super) const RESTARTS_MAX: usize = 5;

/// The time over which restarts are counted.
pub(super) const WITHIN: Nanos = Nanos::from_secs(10);

/// The restarts of one process.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// When the last ones were, the oldest first; at most [`RESTARTS_MAX`].
    at: VecDeque<Nanos>,
}

impl Restarts {
    /// Counts a restart now, and returns how many there were lately, with this one. `None`: there were too many.
    pub(super) fn take(&mut self, now: Nanos) -> Option<usize> {
        self.at.retain(|&at| now.saturating_sub(at) < WITHIN);
        if self.at.len() == RESTARTS_MAX {
            return None;
        }
        self.at.push_back(now);
        Some(self.at.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_five_restarts_in_any_ten_seconds_and_no_more() {
        let mut restarts = Restarts::default();
        let mut at = |ms| restarts.take(Nanos::from_millis(ms));
        assert_eq!([0, 1, 2, 3, 4000].map(&mut at), [1, 2, 3, 4, 5].map(Some));
        assert_eq!([4001, 9999].map(&mut at), [None, None]);
        // The four of the first milliseconds are past.
        assert_eq!([10_003, 10_004].map(&mut at), [Some(2), Some(3)]);
    }

    #[test]
    fn one_failure_in_three_seconds_is_made_up_for_without_an_end() {
        let mut restarts = Restarts::default();
        assert!((0..100).all(|n| restarts.take(Nanos::from_secs(3 * n)).is_some()));
    }
}
