//! Whether the generator itself limited a load, and whether a requested rate was reached. Owns the thresholds; must not
//! know the words for them. Start reading at [`LoadRecord::generator_limits`].

use crate::load::LoadRecord;

/// A thread of the generator that spends at least this share of its time on the CPU counts as always busy: the rest is
/// less than the jitter of a scheduler tick.
pub const GENERATOR_BUSY: f64 = 0.85;

/// In a shorter load a busy generator means nothing: making the first connections takes CPU time, which is counted in
/// steps of up to a scheduler tick.
const BUSY_SECONDS_MIN: f64 = 0.010;

/// At this ratio of own delay to response time, at the same quantile, the figure is about the generator. A quarter:
/// with less, the first digit of the response time is right.
const LATE_SHARE_MIN: f64 = 0.25;
/// Own delay below this means nothing: an idle CPU of a virtual machine takes as long to wake up.
const LATE_MS_MIN: f64 = 0.2;

/// Share of the due requests that must have been started.
const BEGUN_MIN: f64 = 0.99;
/// Missing requests below this number are ignored whatever their share: so many depend on where a short load ends.
const MISSING_FEW: u64 = 10;

/// How the generator, or its machine, limited a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GeneratorLimit {
    /// Requests failed because this process may open no more files.
    Files {
        /// How many.
        n_requests: u64,
    },
    /// Requests failed because no local port was free.
    Ports {
        /// How many.
        n_requests: u64,
    },
    /// Its busiest thread had no CPU time left.
    Busy {
        /// CPU time over wall time, 0 to 1.
        share: f64,
    },
    /// Requests were sent late although a connection was free.
    Late {
        /// At this quantile, 0 to 1.
        quantile: f64,
        /// The delay there.
        late_ms: f64,
        /// The response time there.
        response_ms: f64,
    },
}

/// Requests of an open loop that were due and never started. If `-n` ended the load, those started later than the law
/// plans for that number are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateMissed {
    /// Due in the window.
    pub due: u64,
    /// Of them started in time.
    pub begun: u64,
    /// Of them dropped because the queue was full.
    pub dropped: u64,
}

impl LoadRecord {
    /// How the generator limited the load, the clearest reason first; empty if it kept up. In a closed loop the rate is
    /// then a lower bound, and latencies include the generator's own queue.
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

    /// The requests that an open loop did not start, if that is more than chance at its end: anything was dropped, or
    /// less than 99 % was started and more than the last few, or half of all, are missing. A queue is long, so chance
    /// does not fill it.
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
