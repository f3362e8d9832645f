//! A failure that happens again and again while its cause lasts, such as a lack of descriptors. It is logged when it
//! begins, once a minute with a count, and when it is over. Owns when a line is due, for all processes of a server
//! together. Start reading at [`Episode::happens`].
//!
//! Cost while there is no failure: one load per connection, of a cell that nobody writes.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use sys::process::SharedCells;
use units::Nanos;

/// How often an episode that lasts is logged.
const TOLD_EVERY_S: u32 = 60;

/// An episode is over when the failure has not happened for this long. While descriptors are scarce, each connection
/// that ends makes room for one more, which does not end the episode.
const QUIET_S: u32 = 10;

/// Cells: when it was last logged, when it began, and when the failure last happened, in seconds of the monotonic clock
/// and above 0 while it lasts; how often the failure happened since it was last logged, and in all.
const TOLD: usize = 0;
const BEGAN: usize = 1;
const LAST: usize = 2;
const SINCE_TOLD: usize = 3;
const TOTAL: usize = 4;
const CELLS: usize = 5;

/// What is to be logged for a failure that has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// The failure; further ones are counted.
    First,
    /// The failure again, with a count and the time that it covers.
    Again {
        /// How often it happened since it was last logged.
        times: u32,
        /// In how many seconds.
        seconds: u32,
    },
}

/// What is to be logged for an episode that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// How often the failure happened.
    pub times: u32,
    /// In how many seconds.
    pub seconds: u32,
}

/// One kind of failure of a server.
#[derive(Debug)]
pub struct Episode {
    cells: SharedCells,
}

impl Episode {
    /// No episode is going on.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> io::Result<Self> {
        Ok(Self { cells: SharedCells::new(CELLS)? })
    }

    /// The failure has happened; `None`: it is only counted.
    pub fn happens(&self, now: Nanos) -> Option<Occurrence> {
        let now = seconds(now);
        self.forget_if_quiet(now);
        self.cells[LAST].store(now, Relaxed);
        self.cells[TOTAL].fetch_add(1, Relaxed);
        if self.cells[TOLD].compare_exchange(0, now, Relaxed, Relaxed).is_ok() {
            self.cells[BEGAN].store(now, Relaxed);
            return Some(Occurrence::First);
        }
        let times = 1 + self.cells[SINCE_TOLD].fetch_add(1, Relaxed);
        let told = self.cells[TOLD].load(Relaxed);
        let seconds = now.saturating_sub(told);
        if seconds < TOLD_EVERY_S || !self.tells_instead_of(told, now) {
            return None;
        }
        self.cells[SINCE_TOLD].store(0, Relaxed);
        Some(Occurrence::Again { times, seconds })
    }

    /// Whether an episode goes on, as far as is known.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.cells[TOLD].load(Relaxed) != 0
    }

    /// The operation that failed before has succeeded. Ends the episode, if the failure has not happened for a while.
    pub fn succeeds(&self, now: Nanos) -> Option<Over> {
        self.forget_if_quiet(seconds(now))
    }

    fn forget_if_quiet(&self, now: u32) -> Option<Over> {
        let [told, began, last] = [TOLD, BEGAN, LAST].map(|cell| self.cells[cell].load(Relaxed));
        if told == 0 || now.saturating_sub(last) < QUIET_S || !self.tells_instead_of(told, 0) {
            return None;
        }
        self.cells[SINCE_TOLD].store(0, Relaxed);
        let times = self.cells[TOTAL].swap(0, Relaxed);
        Some(Over { times, seconds: last.saturating_sub(began) })
    }

    /// Whether this process, of all that have noticed, is the one to log what is due now.
    fn tells_instead_of(&self, told: u32, next: u32) -> bool {
        self.cells[TOLD].compare_exchange(told, next, Relaxed, Relaxed).is_ok()
    }
}

/// Above 0 even in the first second of the machine.
fn seconds(now: Nanos) -> u32 {
    (now.0 / 1_000_000_000) as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is logged for failures at these instants, in milliseconds.
    fn told(episode: &Episode, at_ms: impl Iterator<Item = u64>) -> Vec<Occurrence> {
        at_ms.filter_map(|ms| episode.happens(Nanos(ms * 1_000_000))).collect()
    }

    #[test]
    fn ten_failures_a_second_are_one_line_and_one_a_minute_with_their_number() {
        let episode = Episode::new().unwrap();
        assert!(!episode.goes_on());
        let lines = told(&episode, (0..1800).map(|n| 5_000_000 + n * 100));
        let again = Occurrence::Again { times: 600, seconds: 60 };
        assert_eq!(lines, [Occurrence::First, again, again]);
        assert!(episode.goes_on());
    }

    #[test]
    fn an_episode_is_over_when_something_succeeds_after_a_quiet_while() {
        let episode = Episode::new().unwrap();
        assert_eq!(episode.succeeds(Nanos::from_secs(99)), None, "there was none");
        assert_eq!(told(&episode, (0..30).map(|n| 100_000 + n * 100)), [Occurrence::First]);
        // A place that an ended connection frees does not end the lack.
        assert_eq!(episode.succeeds(Nanos::from_secs(104)), None);
        assert_eq!(episode.succeeds(Nanos::from_secs(113)), Some(Over { times: 30, seconds: 2 }));
        assert!(!episode.goes_on());
        assert_eq!(episode.succeeds(Nanos::from_secs(114)), None, "it is told once");
        assert_eq!(told(&episode, [120_000].into_iter()), [Occurrence::First]);
    }

    #[test]
    fn a_failure_long_after_the_last_one_begins_a_new_episode() {
        let episode = Episode::new().unwrap();
        assert_eq!(
            told(&episode, [1000, 2000, 500_000, 500_100].into_iter()),
            [Occurrence::First; 2]
        );
    }

    #[test]
    fn of_many_who_notice_one_tells() {
        let episode = Episode::new().unwrap();
        let firsts = std::thread::scope(|scope| {
            let all =
                [(); 4].map(|()| scope.spawn(|| told(&episode, std::iter::repeat_n(7, 1000))));
            all.map(|one| one.join().unwrap().len()).iter().sum::<usize>()
        });
        assert_eq!(firsts, 1);
        let over = episode.succeeds(Nanos::from_secs(60)).unwrap();
        assert_eq!(over.times, 4000);
    }
}
