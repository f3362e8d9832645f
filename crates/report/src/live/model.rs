//! What the live screen keeps of a load: bounded, whatever its length. Must not know how it is drawn.
//! Start reading at [`Live::add`].

use std::collections::{BTreeMap, VecDeque};

use record::{Engine, ErrorCounts, Interval, LoadPlan, LoadStop};
use stats::{Histogram, samples_needed};
use units::{Nanos, PerSecond};

use crate::figures::{counted, grouped};
use crate::load_shape::law;
use crate::wording::plain;

use super::agents::AgentFigures;

/// Quantiles that are drawn; the longest is drawn beside them.
pub(crate) const QUANTILES: [f64; 3] = [0.50, 0.90, 0.99];

/// p50, p90, p99 and the longest response time; `None` if there are too few requests for it.
pub(crate) type Latency = [Option<Nanos>; QUANTILES.len() + 1];

/// Most points of the history, an even number. Beyond it, neighbours are joined, so the memory is at most about 10 KB
/// times this.
const POINTS_MAX: usize = 256;
/// A point of this length is complete, even if it has too few requests for p99.
const POINT_LENGTH_ENOUGH: Nanos = Nanos::from_secs(1);
/// How far back "the last second" reaches.
const RECENT: Nanos = Nanos::from_secs(1);
/// Most intervals that can lie in it, however short they are.
const RECENT_MAX: usize = 100;

/// A load as it is seen while it runs.
#[derive(Debug, Clone)]
pub struct Live {
    url: String,
    shape: String,
    /// At least 1.
    threads: u32,
    stop: LoadStop,
    /// In order, without gaps; the last one may still grow.
    points: Vec<Point>,
    /// Shortest length of a point.
    point_length: Nanos,
    /// The intervals of the last second, in order.
    recent: VecDeque<Stretch>,
    whole: Stretch,
    last_second: Summary,
    whole_load: Summary,
    /// Of a fleet, the worst first.
    agents: Vec<AgentFigures>,
}

/// What happened in some neighbouring intervals.
#[derive(Debug, Clone)]
struct Stretch {
    start: Nanos,
    end: Nanos,
    started: u64,
    ok: u64,
    errors: ErrorCounts,
    status: BTreeMap<u16, u64>,
    bytes_read: u64,
    client_cpu: Nanos,
    response: Histogram,
}

/// A stretch of the history.
#[derive(Debug, Clone)]
pub(super) struct Point {
    stretch: Stretch,
    /// Of the stretch.
    pub(super) latency: Latency,
}

/// The figures of a stretch.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Summary {
    length: Nanos,
    ok: u64,
    bytes_read: u64,
    pub(crate) failed: u64,
    /// CPU time of the generator over what its threads had of it, 0 to 1.
    pub(super) cpu_share: f64,
    pub(crate) latency: Latency,
}

impl Live {
    /// A load that has not begun.
    pub fn new(plan: &LoadPlan) -> Self {
        Self {
            url: plain(&plan.url),
            shape: shape(plan),
            threads: plan.threads.max(1),
            stop: plan.stop,
            points: Vec::new(),
            point_length: Nanos::ZERO,
            recent: VecDeque::new(),
            whole: Stretch::empty(Nanos::ZERO),
            last_second: Summary::default(),
            whole_load: Summary::default(),
            agents: Vec::new(),
        }
    }

    /// Takes in the interval that follows on the last one.
    pub fn add(&mut self, interval: &Interval) {
        let stretch = Stretch::of(interval);
        self.whole.join(&stretch);
        self.whole_load = Summary::of(&self.whole, self.threads);
        self.add_to_history(&stretch);
        self.add_to_recent(stretch);
    }

    /// Takes in how the agents of a fleet stand, all of them.
    pub fn set_agents(&mut self, agents: &[AgentFigures]) {
        self.agents = agents.to_vec();
        self.agents.sort_by(AgentFigures::worse_first);
    }

    /// The agents of a fleet, the worst first; empty without one.
    pub(crate) fn agents(&self) -> &[AgentFigures] {
        &self.agents
    }

    fn add_to_recent(&mut self, stretch: Stretch) {
        let begin = stretch.end.saturating_sub(RECENT);
        self.recent.push_back(stretch);
        // An interval that is longer than a second stays, as the only one.
        while self.recent.len() > 1
            && (self.recent[0].start < begin || self.recent.len() > RECENT_MAX)
        {
            self.recent.pop_front();
        }
        let mut second = Stretch::empty(self.recent[0].start);
        self.recent.iter().for_each(|one| second.join(one));
        self.last_second = Summary::of(&second, self.threads);
    }

    fn add_to_history(&mut self, stretch: &Stretch) {
        if let Some(open) = self.points.last_mut() {
            if !open.stretch.is_enough(self.point_length) {
                open.join(stretch);
                return;
            }
            open.stretch.response.pack();
        }
        if self.points.len() == POINTS_MAX {
            self.join_neighbours();
        }
        self.points.push(Point::of(stretch.clone()));
    }

    /// Joins neighbours as histograms, because percentiles cannot be averaged.
    fn join_neighbours(&mut self) {
        // POINTS_MAX is even, so that every one has its neighbour.
        let mut pairs = std::mem::take(&mut self.points).into_iter();
        while let (Some(mut left), Some(right)) = (pairs.next(), pairs.next()) {
            left.join(&right.stretch);
            left.stretch.response.pack();
            self.point_length = self.point_length.max(left.stretch.length());
            self.points.push(left);
        }
    }

    /// What is loaded, without control characters.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Connections, threads and law in words.
    pub(super) fn shape(&self) -> &str {
        &self.shape
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    pub(crate) fn last_second(&self) -> &Summary {
        &self.last_second
    }

    pub(crate) fn whole_load(&self) -> &Summary {
        &self.whole_load
    }

    pub(crate) fn errors(&self) -> &ErrorCounts {
        &self.whole.errors
    }

    /// Requests started so far.
    pub(crate) fn started(&self) -> u64 {
        self.whole.started
    }

    /// Requests that ended well so far.
    pub(crate) fn ok(&self) -> u64 {
        self.whole.ok
    }

    /// Complete replies of the whole load, by status.
    pub(super) fn statuses(&self) -> &BTreeMap<u16, u64> {
        &self.whole.status
    }

    /// Response times of the whole load.
    pub(crate) fn response(&self) -> &Histogram {
        &self.whole.response
    }

    /// End of the last interval, since the start of the load.
    pub(crate) fn elapsed(&self) -> Nanos {
        self.whole.end
    }

    /// How long the load may last, if the plan says so.
    pub(super) fn duration(&self) -> Option<Nanos> {
        self.stop.duration
    }

    /// 0 to 1, by time or by count, whichever ends the load first.
    pub(super) fn share_done(&self) -> f64 {
        let of = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let by_time = self.stop.duration.map_or(0.0, |whole| of(self.elapsed().0, whole.0));
        let by_count = self.stop.requests.map_or(0.0, |whole| of(self.whole.done(), whole));
        by_time.max(by_count).min(1.0)
    }

    /// At the rate so far; `None` where nothing has been done yet.
    fn time_left(&self) -> Option<Nanos> {
        let by_time = self.stop.duration.map(|whole| whole.saturating_sub(self.elapsed()));
        let by_count = self.stop.requests.and_then(|whole| {
            let left = whole.saturating_sub(self.whole.done()) as f64;
            let rate = self.whole.done() as f64 / self.elapsed().as_secs_f64();
            (rate > 0.0).then(|| Nanos::from_secs_f64((left / rate).min(TIME_LEFT_MAX_S)))
        });
        by_time.into_iter().chain(by_count).min()
    }

    /// ` 53 %  5.3 s of 10 s, 4.7 s left`.
    pub(super) fn progress_words(&self) -> String {
        let percent = (100.0 * self.share_done()).floor();
        let left = self.time_left().map(|left| format!(", {} left", ticking(left)));
        let so_far = so_far(&ticking(self.elapsed()), self.whole.done(), self.stop);
        format!("{percent:>3.0} %  {so_far}{}", left.unwrap_or_default())
    }
}

/// Ten years: longer than any load, and what a clock can show.
const TIME_LEFT_MAX_S: f64 = 315e6;

/// One line about a stretch of a load, for a log: `30 s of 60 s: 41.2k/s, p99 2.1ms, 0 failed`. `done` counts from
/// the start of the load; everything else is about the stretch.
pub fn progress_line(stretch: &Interval, done: u64, stop: LoadStop) -> String {
    let summary = Summary::of(&Stretch::of(stretch), 1);
    let p99 = summary.latency[2].map_or_else(String::new, |span| format!("p99 {span}, "));
    format!(
        "{}: {}, {p99}{} failed",
        so_far(&clock(stretch.end()), done, stop),
        PerSecond(summary.rate_per_s()),
        grouped(summary.failed)
    )
}

/// `5.3 s of 10 s`, or by count if the plan has no duration.
fn so_far(elapsed: &str, done: u64, stop: LoadStop) -> String {
    match (stop.duration, stop.requests) {
        (Some(whole), _) => format!("{elapsed} of {}", clock(whole)),
        (None, Some(whole)) => {
            format!("{elapsed}, {} of {} requests", grouped(done), grouped(whole))
        }
        (None, None) => elapsed.to_owned(),
    }
}

/// Time as a watch shows it: whole seconds without a fraction.
pub(super) fn clock(time: Nanos) -> String {
    ticking(time).replace(".0 s", " s")
}

/// As [`clock`], but always with tenths below 100 s: it visibly advances, and its width stays the same.
fn ticking(time: Nanos) -> String {
    let tenths = time.0 / 100_000_000;
    let seconds = tenths / 10;
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600);
    match seconds {
        0..100 => format!("{seconds}.{} s", tenths % 10),
        100..3600 => format!("{minutes}:{:02} min", seconds % 60),
        _ => format!("{hours}:{minutes:02}:{:02} h", seconds % 60),
    }
}

fn shape(plan: &LoadPlan) -> String {
    let connections = counted(plan.connections.into(), "connection");
    let threads = counted(plan.threads.into(), "thread");
    let engine = match plan.engine {
        // The record says which engine was chosen; the screen starts before that is known.
        Engine::Auto => "",
        Engine::Uring => ", io_uring",
        Engine::Epoll => ", epoll",
    };
    format!("{connections}, {threads}{engine}, {}", law(&plan.pacing))
}

impl Stretch {
    fn empty(start: Nanos) -> Self {
        Self {
            start,
            end: start,
            started: 0,
            ok: 0,
            errors: ErrorCounts::default(),
            status: BTreeMap::new(),
            bytes_read: 0,
            client_cpu: Nanos::ZERO,
            response: Histogram::new(),
        }
    }

    fn of(interval: &Interval) -> Self {
        let mut response = interval.response.clone();
        response.pack();
        Self {
            start: interval.start,
            end: interval.end(),
            started: interval.started,
            ok: interval.ok,
            errors: interval.errors,
            status: interval.status.clone(),
            bytes_read: interval.bytes_read,
            client_cpu: interval.client_cpu,
            response,
        }
    }

    fn join(&mut self, next: &Self) {
        self.end = next.end;
        self.started += next.started;
        self.ok += next.ok;
        self.errors.merge(&next.errors);
        for (status, count) in &next.status {
            *self.status.entry(*status).or_default() += count;
        }
        self.bytes_read += next.bytes_read;
        self.client_cpu += next.client_cpu;
        self.response.merge(&next.response);
    }

    fn length(&self) -> Nanos {
        self.end.saturating_sub(self.start)
    }

    fn done(&self) -> u64 {
        self.ok + self.errors.total()
    }

    fn latency(&self) -> Latency {
        let [p50, p90, p99] = QUANTILES.map(|q| self.response.quantile(q));
        [p50, p90, p99, self.response.max()]
    }

    /// Whether it makes a point of its own: it has enough requests for p99, or will not get them.
    fn is_enough(&self, point_length: Nanos) -> bool {
        let has_all_figures = self.ok >= samples_needed(QUANTILES[2]);
        self.length() >= point_length && (has_all_figures || self.length() >= POINT_LENGTH_ENOUGH)
    }
}

impl Point {
    fn of(stretch: Stretch) -> Self {
        Self { latency: stretch.latency(), stretch }
    }

    fn join(&mut self, next: &Stretch) {
        self.stretch.join(next);
        self.latency = self.stretch.latency();
    }

    pub(super) fn start(&self) -> Nanos {
        self.stretch.start
    }

    pub(super) fn end(&self) -> Nanos {
        self.stretch.end
    }

    /// Successful requests per second.
    pub(super) fn ok_per_s(&self) -> f64 {
        self.stretch.ok as f64 / self.stretch.length().as_secs_f64().max(1e-9)
    }

    /// Failed requests per second.
    pub(super) fn failed_per_s(&self) -> f64 {
        self.stretch.errors.total() as f64 / self.stretch.length().as_secs_f64().max(1e-9)
    }
}

impl Summary {
    fn of(stretch: &Stretch, threads: u32) -> Self {
        let had = stretch.length().as_secs_f64() * f64::from(threads);
        Self {
            length: stretch.length(),
            ok: stretch.ok,
            bytes_read: stretch.bytes_read,
            failed: stretch.errors.total(),
            cpu_share: if had > 0.0 { stretch.client_cpu.as_secs_f64() / had } else { 0.0 },
            latency: stretch.latency(),
        }
    }

    pub(super) fn done(&self) -> u64 {
        self.ok + self.failed
    }

    pub(crate) fn rate_per_s(&self) -> f64 {
        self.by_second(self.ok)
    }

    pub(super) fn bytes_per_s(&self) -> f64 {
        self.by_second(self.bytes_read)
    }

    fn by_second(&self, count: u64) -> f64 {
        if self.length == Nanos::ZERO { 0.0 } else { count as f64 / self.length.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn live(stop: LoadStop) -> Live {
        Live::new(&LoadPlan { stop, ..testdata::load().plan })
    }

    fn interval(n: u64, ok: u64, failed: u64) -> Interval {
        let length = Nanos::from_millis(100);
        let mut interval = Interval::new(Nanos(n * length.0), length);
        (interval.ok, interval.errors.connect_refused) = (ok, failed);
        (0..ok).for_each(|request| interval.response.record(Nanos(1_000 * n + request + 1)));
        interval
    }

    const ENDLESS: LoadStop = LoadStop { requests: None, duration: None };

    #[test]
    fn a_long_load_has_a_bounded_history_without_gaps() {
        let mut live = live(ENDLESS);
        for n in 0..3_000 {
            live.add(&interval(n, 400, 1));
            assert!(live.points.len() <= POINTS_MAX && live.recent.len() <= 10);
            assert_eq!(live.points[0].start(), Nanos::ZERO);
            assert!(live.points.windows(2).all(|pair| pair[0].end() == pair[1].start()), "{n}");
            assert_eq!(live.points.last().unwrap().end(), Nanos::from_millis(100 * (n + 1)));
        }
        assert_eq!(live.points.iter().map(|point| point.stretch.ok).sum::<u64>(), 1_200_000);
        assert_eq!((live.whole_load.ok, live.whole_load.failed), (1_200_000, 3_000));
        assert_eq!((live.last_second.ok, live.last_second.failed), (4_000, 10));
    }

    #[test]
    fn joined_points_have_the_quantiles_of_all_their_requests() {
        let (mut live, mut all) = (live(ENDLESS), Histogram::new());
        let n_intervals = 2 * POINTS_MAX as u64;
        for n in 0..n_intervals {
            let interval = interval(n, 400, 0);
            live.add(&interval);
            all.merge(&interval.response);
        }
        let mut joined = Histogram::new();
        live.points.iter().for_each(|point| joined.merge(&point.stretch.response));
        assert_eq!(joined, all);
        for point in &live.points {
            assert_eq!(point.latency, point.stretch.latency());
        }
    }

    #[test]
    fn a_point_waits_for_requests_enough_for_p99_but_not_for_ever() {
        let n_points = |ok| {
            let mut live = live(ENDLESS);
            (0..40).for_each(|n| live.add(&interval(n, ok, 0)));
            live.points.len()
        };
        // 368 requests are enough for p99.
        assert_eq!((n_points(368), n_points(184), n_points(1), n_points(0)), (40, 20, 4, 4));
    }

    #[test]
    fn time_left_is_by_time_or_by_count_whichever_is_first() {
        let words = |requests, seconds: Option<u64>, n_intervals| {
            let mut live = live(LoadStop { requests, duration: seconds.map(Nanos::from_secs) });
            (0..n_intervals).for_each(|n| live.add(&interval(n, 8, 2)));
            live.progress_words()
        };
        assert_eq!(words(None, Some(10), 0), "  0 %  0.0 s of 10 s, 10.0 s left");
        assert_eq!(words(None, Some(10), 53), " 53 %  5.3 s of 10 s, 4.7 s left");
        assert_eq!(words(Some(1_000), None, 0), "  0 %  0.0 s, 0 of 1,000 requests");
        assert_eq!(words(Some(1_000), None, 30), " 30 %  3.0 s, 300 of 1,000 requests, 7.0 s left");
        assert_eq!(words(Some(100), Some(10), 9), " 90 %  0.9 s of 10 s, 0.1 s left");
        assert_eq!(words(None, Some(4000), 11), "  0 %  1.1 s of 1:06:40 h, 1:06:38 h left");
        assert_eq!(words(None, Some(1), 12), "100 %  1.2 s of 1 s, 0.0 s left");
    }

    #[test]
    fn a_line_for_a_log_says_where_how_fast_and_what_failed() {
        let stop = LoadStop { requests: None, duration: Some(Nanos::from_secs(60)) };
        let mut stretch = Interval::new(Nanos::from_secs(20), Nanos::from_secs(10));
        (stretch.ok, stretch.errors.protocol) = (412_345, 7);
        (0..1000).for_each(|_| stretch.response.record(Nanos::from_millis(2)));
        assert_eq!(progress_line(&stretch, 0, stop), "30 s of 60 s: 41.2k/s, p99 2ms, 7 failed");
        let stop = LoadStop { requests: Some(5_000_000), duration: None };
        stretch.response.clear();
        let line = progress_line(&stretch, 1_200_000, stop);
        assert_eq!(line, "30 s, 1,200,000 of 5,000,000 requests: 41.2k/s, 7 failed");
    }
}
