//! Owns the decision whether a server has warmed up: a JVM compiles while it is loaded, and a measurement before it
//! is done describes another program. Loads of about a second are repeated until the change-point test of `stats`
//! finds one level in the rates of the last ones, or the time is used up. Start reading at [`Settling`].

use record::{Interval, LoadRecord, Settled};
use stats::{Better, Steadiness};
use units::{Nanos, Share};

use crate::trial::Window;

/// Length of a load.
const LOAD: Nanos = Nanos::from_secs(1);
/// Loads whose rates must be one level.
const LOADS: usize = 3;
/// Intervals of a load. The first, in which it connects, is ignored.
const INTERVALS: u64 = 20;

/// A server that warms up.
pub(crate) struct Settling {
    longest: Nanos,
    /// Rates that differ by less are the same level.
    tolerance: Share,
    length: Nanos,
    took: Nanos,
    rates: Vec<f64>,
    requests: u64,
    steady: bool,
}

impl Settling {
    /// For at most `longest`, which is split into shorter loads if it holds too few of them.
    pub(crate) fn new(longest: Nanos, tolerance: Share) -> Self {
        let length = LOAD.min(Nanos(longest.0 / LOADS as u64));
        Self {
            longest,
            tolerance,
            length,
            took: Nanos::ZERO,
            rates: Vec::new(),
            requests: 0,
            steady: false,
        }
    }

    /// The next load; `None` if the rate is steady or the time is used up.
    pub(crate) fn next_load(&self) -> Option<Window> {
        let interval = Nanos(self.length.0 / INTERVALS);
        let is_over = self.steady || self.took + self.length > self.longest || interval.0 == 0;
        (!is_over).then_some(Window { from: Nanos::ZERO, until: self.length, interval })
    }

    /// Takes the rate of a finished load.
    pub(crate) fn add(&mut self, load: &LoadRecord) {
        let is_whole = |interval: &&Interval| interval.end() <= self.length;
        let rate = |interval: &Interval| interval.ok as f64 / interval.length.as_secs_f64();
        self.rates.extend(load.intervals.iter().skip(1).filter(is_whole).map(rate));
        self.took += self.length;
        self.requests += load.requests.done;
        let looked_at = LOADS * (INTERVALS as usize - 1);
        let Some(first) = self.rates.len().checked_sub(looked_at) else { return };
        let last = &self.rates[first..];
        let said = stats::steadiness(last, Better::Higher, self.tolerance.0);
        // A rate of zero is a level too, but no sign of a running server.
        self.steady = said == Steadiness::Flat && last.iter().any(|&rate| rate > 0.0);
    }

    /// Requests of all loads.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// The time that it took.
    pub(crate) fn settled(&self) -> Settled {
        Settled { took: self.took, steady: self.steady }
    }
}

#[cfg(test)]
mod tests {
    use record::LoadPlan;

    use super::*;

    /// The result of loads whose rate is this function of the time since the first load began.
    fn settled(longest: Nanos, rate: impl Fn(f64) -> f64) -> Settled {
        let mut settling = Settling::new(longest, Share(0.02));
        let mut before = Nanos::ZERO;
        while let Some(window) = settling.next_load() {
            let plan = LoadPlan::get("127.0.0.1:80".parse().unwrap(), "/");
            let mut load = LoadRecord::empty(plan);
            // One more than the load has: the interval that is drained.
            load.intervals = (0..=window.until.0 / window.interval.0)
                .map(|n| {
                    let mut interval = Interval::new(Nanos(window.interval.0 * n), window.interval);
                    let at = (before + interval.start).as_secs_f64();
                    // A ripple that is no change, and a dip while it connects.
                    let ripple = 1.0 + 0.01 * (n as f64 * 2.4).sin();
                    let dip = if n == 0 { 0.5 } else { 1.0 };
                    interval.ok =
                        (rate(at) * dip * ripple * interval.length.as_secs_f64()).round() as u64;
                    interval
                })
                .collect();
            settling.add(&load);
            before += window.until;
        }
        settling.settled()
    }

    #[test]
    fn a_rate_that_never_changed_takes_three_loads() {
        let said = settled(Nanos::from_secs(60), |_| 20_000.0);
        assert_eq!(said, Settled { took: Nanos::from_secs(3), steady: true });
        let said = settled(Nanos::from_millis(600), |_| 20_000.0);
        assert_eq!(said, Settled { took: Nanos::from_millis(600), steady: true });
    }

    #[test]
    fn a_warm_up_of_seven_seconds_is_waited_for_and_no_longer_than_it_takes_to_see() {
        let said =
            settled(
                Nanos::from_secs(60),
                |at| if at < 7.0 { 4000.0 * (1.0 + at) } else { 32_000.0 },
            );
        assert!(said.steady, "{said:?}");
        assert!((8.0..=11.0).contains(&said.took.as_secs_f64()), "{said:?}");
    }

    #[test]
    fn what_never_settles_has_its_time_and_is_not_steady() {
        let said = settled(Nanos::from_secs(10), |at| 1000.0 * (1.0 + at));
        assert_eq!(said, Settled { took: Nanos::from_secs(10), steady: false });
    }

    #[test]
    fn a_server_that_answers_nothing_is_not_steady() {
        assert!(!settled(Nanos::from_secs(5), |_| 0.0).steady);
    }
}
