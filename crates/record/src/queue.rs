//! Whether the queue before a server grew during a load: then the rate was above its capacity, and its latencies depend
//! on the length of the load. Owns the judgement; must not know who asks. Start reading at
//! [`LoadRecord::queue_growth`].
//!
//! Growth shows in the response times. They count from when a request was due, so they include every wait, wherever it
//! is: for a connection, in the backlog, in the server. A server that does 1 % less than the requested rate answers 10
//! ms later with every second. By Little's law the number of requests in the system grows by rate x response time.

use stats::Trend;
use units::Nanos;

use crate::load::LoadRecord;

/// Part of the window, at its start, that is ignored: a queue that is empty at the start fills up to its steady level.
const FILLING: f64 = 0.2;

/// A slope counts if its p without a trend is below this. Near the limit response times are autocorrelated and drift
/// more than by chance; a rate that near does not hold reliably anyway.
const P_MAX: f64 = 0.01;

/// The queue grew only if the slope adds at least this many requests over the window.
const REQUESTS_MIN: f64 = 2.0;
/// The same as a share of the rate: a server that warms up or cools down causes smaller slopes.
const EXCESS_MIN: f64 = 0.001;

/// A number of requests beyond this many standard deviations is not due to chance.
const BEYOND_CHANCE: f64 = 3.0;

/// How a queue grew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueGrowth {
    /// Requests that were added to the system from the start to the end.
    pub requests: f64,
}

impl LoadRecord {
    /// How the queue grew, if it did, in an open loop with a steady rate. If there are too few intervals with replies
    /// for a trend, only the end of the load decides.
    pub fn queue_growth(&self) -> Option<QueueGrowth> {
        let asked_per_s = self.open_loop?.asked_per_s;
        if asked_per_s <= 0.0 {
            return None;
        }
        match Trend::of(&self.responses()) {
            Some(trend) => {
                let requests = trend.slope * self.seconds * asked_per_s;
                let is_queue = requests >= REQUESTS_MIN && trend.slope >= EXCESS_MIN;
                (is_queue && trend.p_rising < P_MAX).then_some(QueueGrowth { requests })
            }
            None => self.growth_at_end(asked_per_s),
        }
    }

    /// Mean response time in seconds of each interval in the window except the first few, by its middle.
    fn responses(&self) -> Vec<(f64, f64)> {
        let window = Nanos::from_secs_f64(self.seconds);
        let from = Nanos::from_secs_f64(FILLING * self.seconds);
        let is_within = |start: Nanos, end: Nanos| start >= from && end <= window;
        let points = self.intervals.iter().filter(|one| is_within(one.start, one.end()));
        points
            .filter_map(|one| {
                let middle = one.start.as_secs_f64() + one.length.as_secs_f64() / 2.0;
                Some((middle, one.response.mean()?.as_secs_f64()))
            })
            .collect()
    }

    /// A steady system holds rate x response time requests at all times (Little's law), so also at the end. If the
    /// number grew from nothing, it is twice as many.
    fn growth_at_end(&self, asked_per_s: f64) -> Option<QueueGrowth> {
        let open = self.open_loop?;
        let ended = self.requests.done - self.requests.drained;
        let at_end = open.due.saturating_sub(ended) as f64;
        let steady = asked_per_s * self.latencies.response.mean()?.as_secs_f64();
        let requests = at_end - steady;
        let is_queue = requests > REQUESTS_MIN + BEYOND_CHANCE * steady.sqrt();
        is_queue.then_some(QueueGrowth { requests })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, LoadPlan, OpenLoop, RequestCounts};

    /// A second at 400/s in ten intervals; response times by interval, in milliseconds.
    fn load(responses: impl Fn(u64) -> f64) -> LoadRecord {
        let mut load = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
        load.seconds = 1.0;
        for index in 0..10 {
            let length = Nanos::from_millis(100);
            let mut interval = Interval::new(Nanos::from_millis(100 * index), length);
            let response = Nanos::from_secs_f64(responses(index) / 1e3);
            (0..40).for_each(|_| interval.response.record(response));
            load.latencies.response.merge(&interval.response);
            load.intervals.push(interval);
        }
        load.requests = RequestCounts { started: 400, done: 400, ok: 400, ..Default::default() };
        load.open_loop = Some(OpenLoop { due: 400, asked_per_s: 400.0, ..OpenLoop::default() });
        load
    }

    #[test]
    fn a_queue_grows_where_responses_take_longer_and_longer() {
        type Responses = fn(u64) -> f64;
        let cases: [(&str, Responses, bool); 7] = [
            ("steady", |_| 10.0, false),
            ("to and fro", |at| 10.0 + 5.0 * (at % 2) as f64, false),
            ("1 % more than it can do", |at| 10.0 + at as f64, true),
            ("5 % more, with noise", |at| 10.0 + 5.0 * at as f64 + 8.0 * (at % 3) as f64, true),
            ("slower by a hair", |at| 10.0 + 0.01 * at as f64, false),
            ("first fills up, then stays", |at| 10.0 + 20.0 * at.min(2) as f64, false),
            ("faster and faster", |at| 100.0 - 5.0 * at as f64, false),
        ];
        for (name, responses, grows) in cases {
            assert_eq!(load(responses).queue_growth().is_some(), grows, "{name}");
        }
        let growth = load(|at| 10.0 + at as f64).queue_growth().unwrap();
        assert!((growth.requests - 4.0).abs() < 0.1, "1 % of 400: {growth:?}");
    }

    #[test]
    fn without_a_trend_what_is_left_at_the_end_tells() {
        let short = |drained: u64, response_ms: f64| {
            let mut load = load(|_| response_ms);
            load.intervals.clear();
            load.requests.drained = drained;
            load.queue_growth().is_some()
        };
        // About four requests are in the system.
        assert!(!short(4, 10.0) && !short(10, 10.0));
        assert!(short(40, 50.0), "as many as came in a tenth of the time");
        assert!(!short(40, 100.0), "that is how long they take");
    }

    #[test]
    fn a_closed_loop_has_no_queue() {
        let closed = LoadRecord { open_loop: None, ..load(|at| 10.0 * at as f64) };
        assert_eq!(closed.queue_growth(), None);
    }
}
