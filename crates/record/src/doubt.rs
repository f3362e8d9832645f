//! Whether the generator itself was the limit of a load, and whether a rate that was asked for was
//! reached. Owns the thresholds; must not know the words for them. Start reading at
//! [`LoadRecord::generator_limits`].

use crate::load::LoadRecord;

/// From this share of its time on the CPU a thread of the generator counts as always busy: what is
/// left is less than the jitter of a scheduler tick.
pub const GENERATOR_BUSY: f64 = 0.85;

/// Length of a load below which being busy is no news: to make the first connections is work, and
/// the CPU time of a thread is counted in steps of up to a scheduler tick.
const BUSY_SECONDS_MIN: f64 = 0.010;

/// Own delay over response time, at the same quantile, from which on the figure is about the
/// generator. A quarter: with less, the response time has its first digit right.
const LATE_SHARE_MIN: f64 = 0.25;
/// Own delay below which it is no news: an idle CPU of a virtual machine takes as long to wake up.
const LATE_MS_MIN: f64 = 0.2;

/// Share of what was due that must have been begun.
const BEGUN_MIN: f64 = 0.99;
/// Requests that may be missing whatever their share: where a short load ends decides about so few.
const MISSING_FEW: u64 = 10;

/// What of the generator, or of its machine, bounded a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GeneratorLimit {
    /// Requests failed since this process may open no more files.
    Files {
        /// How many.
        n_requests: u64,
    },
    /// Requests failed since no local port was free.
    Ports {
        /// How many.
        n_requests: u64,
    },
    /// Its busiest thread had no time left.
    Busy {
        /// CPU time over wall time, 0 to 1.
        share: f64,
    },
    /// Requests were sent late although a connection was free.
    Late {
        /// At this quantile, 0 to 1.
        quantile: f64,
        /// So late.
        late_ms: f64,
        /// Of such a response time.
        response_ms: f64,
    },
}

/// Requests of an open loop that were due and never begun, or, where `-n` ended it, begun only after
/// the time in which so many are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateMissed {
    /// Due in the window.
    pub due: u64,
    /// Of them begun in time.
    pub begun: u64,
    /// Of them dropped since the queue was full.
    pub dropped: u64,
}

impl LoadRecord {
    /// What of the generator bounded the load, the plainest first; empty where it kept up. In a
    /// closed loop the rate is then a lower bound; latencies hold the generator's own queue.
    pub fn generator_limits(&self) -> Vec<GeneratorLimit> {
        let (files, ports) = (self.errors.fd_exhausted, self.errors.port_exhausted);
        let share = self.client.busiest();
        [
            (files > 0).then_some(GeneratorLimit::Files { n_requests: files }),
            (ports > 0).then_some(GeneratorLimit::Ports { n_requests: ports }),
            (share >= GENERATOR_BUSY && self.seconds >= BUSY_SECONDS_MIN)
                .then_some(GeneratorLimit::Busy { share }),
            self.late(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// At the median or at p99, whichever is worse.
    fn late(&self) -> Option<GeneratorLimit> {
        let (late, response) = (self.open_loop?.late_ms, self.response_ms);
        let pairs = [(0.5, late.p50, response.p50), (0.99, late.p99, response.p99)];
        let at = pairs.into_iter().filter_map(|(quantile, late_ms, response_ms)| {
            let (late_ms, response_ms) = (late_ms?, response_ms?);
            let counts = late_ms >= LATE_MS_MIN && late_ms >= LATE_SHARE_MIN * response_ms;
            counts.then_some((quantile, late_ms, response_ms))
        });
        let worst = at.max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)));
        worst.map(|(quantile, late_ms, response_ms)| GeneratorLimit::Late {
            quantile,
            late_ms,
            response_ms,
        })
    }

    /// What an open loop did not begin, where that is more than chance at its end: less than 99 % was
    /// begun, and more than the last few or half of all are missing, or anything was dropped. A queue is
    /// long; no chance fills it.
    pub fn rate_missed(&self) -> Option<RateMissed> {
        let open = self.open_loop?;
        let begun = open.begun_on_time(self.requests.started);
        let missing = open.due - begun;
        let is_few = missing < MISSING_FEW && 2 * missing <= open.due;
        let is_short = !is_few && (begun as f64) < BEGUN_MIN * open.due as f64;
        (is_short || open.dropped > 0).then_some(RateMissed {
            due: open.due,
            begun,
            dropped: open.dropped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LatencyMillis, LoadPlan, OpenLoop, ThreadUse};
    use units::Nanos;

    fn load(due: u64, begun: u64, dropped: u64) -> LoadRecord {
        let mut load = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
        load.requests.started = begun;
        let left = due.saturating_sub(begun + dropped);
        load.open_loop = Some(OpenLoop { due, dropped, left, ..OpenLoop::default() });
        load
    }

    #[test]
    fn a_rate_is_missed_by_a_hundredth_or_by_a_drop_and_not_by_the_last_few() {
        let cases = [
            (10_000, 10_000, 0, false),
            (10_000, 9_900, 0, false),
            (10_000, 9_899, 0, true),
            (10_000, 9_999, 1, true),
            (100, 91, 0, false),
            (100, 90, 0, true),
            (10, 5, 0, false),
            (10, 4, 0, true),
            (1, 0, 0, true),
            (0, 0, 0, false),
            (5, 7, 0, false),
        ];
        for (due, begun, dropped, missed) in cases {
            let seen = load(due, begun, dropped).rate_missed();
            assert_eq!(seen.is_some(), missed, "{due} {begun} {dropped}: {seen:?}");
        }
        let closed = LoadRecord { open_loop: None, ..load(100, 0, 0) };
        assert_eq!(closed.rate_missed(), None);
    }

    #[test]
    fn a_generator_that_was_busy_or_refused_by_its_machine_was_the_limit() {
        let mut load = load(10, 10, 0);
        load.seconds = 1.0;
        assert_eq!(load.generator_limits(), []);
        let wall = Nanos::from_secs(1);
        let thread = |percent: u64| ThreadUse {
            cpu: Nanos::from_millis(10 * percent),
            wall,
            pinned_to: None,
        };
        load.client.threads = vec![thread(20), thread(84)];
        assert_eq!(load.generator_limits(), []);
        load.client.threads.push(thread(90));
        (load.errors.fd_exhausted, load.errors.port_exhausted) = (1, 2);
        let limits = load.generator_limits();
        assert_eq!(limits[0], GeneratorLimit::Files { n_requests: 1 });
        assert_eq!(limits[1], GeneratorLimit::Ports { n_requests: 2 });
        assert_eq!(limits[2], GeneratorLimit::Busy { share: 0.9 });
        load.seconds = 0.009;
        assert_eq!(load.generator_limits().len(), 2, "to begin is work");
    }

    #[test]
    fn lateness_is_a_limit_where_it_is_what_the_figure_shows() {
        let with = |late: f64, response: f64| {
            let mut load = load(10, 10, 0);
            let millis =
                |p99| LatencyMillis { p50: Some(0.01), p99: Some(p99), ..Default::default() };
            load.open_loop.as_mut().unwrap().late_ms = millis(late);
            load.response_ms = millis(response);
            load.generator_limits()
        };
        assert_eq!(with(0.1, 0.2), [], "a wake-up is no news");
        assert_eq!(with(2.0, 20.0), []);
        let expected = GeneratorLimit::Late { quantile: 0.99, late_ms: 2.0, response_ms: 4.0 };
        assert_eq!(with(2.0, 4.0), [expected]);
    }
}
