//! Owns the figures of one visit: which part of the load is measured, and what the server used in it. Start
//! reading at [`Window`].

use record::{
    Interval, LoadPlan, LoadRecord, LoadStop, Pacing, Plan, Verify, Visit, VisitState, Workload,
};
use stats::Histogram;
use units::Nanos;

use crate::by_tool;

/// Shortest interval of a visit's load: in shorter ones the counts of a slow server are mostly noise.
const INTERVAL_MIN: Nanos = Nanos::from_millis(10);
/// Approximate number of intervals of a measurement.
const INTERVALS: u64 = 60;
/// Intervals that MSER-5 takes as one batch; its cut lies between two batches. After the cut, the intervals of a
/// batch are joined: a histogram for each 10 ms would make the run file five times as large.
const BATCH: u64 = 5;
/// Samples kept of each visit's raw log: enough for a plot, small beside the histograms.
const RAW_MAX: u32 = 200;
/// How long unfinished replies may take after the end.
const DRAIN: Nanos = Nanos::from_millis(500);

/// The planned measurement inside a load, in whole batches of intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// Start: the planned warm-up, rounded up to a whole batch.
    pub(crate) from: Nanos,
    /// End: that of the load.
    pub(crate) until: Nanos,
    /// Length of an interval.
    pub(crate) interval: Nanos,
}

impl Window {
    /// For the visits of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        const MILLISECOND: u64 = 1_000_000;
        let measure = plan.visit.measure.0;
        let interval = (measure / INTERVALS).next_multiple_of(MILLISECOND).max(INTERVAL_MIN.0);
        let from = plan.visit.warm_up.0.next_multiple_of(interval * BATCH);
        let until = from + measure.next_multiple_of(interval * BATCH);
        assert!(until - from >= measure, "a window is no shorter than what is to be measured");
        Self { from: Nanos(from), until: Nanos(until), interval: Nanos(interval) }
    }

    /// For a load that is only the warm-up of a plan's visits.
    pub(crate) fn warm_up(plan: &Plan) -> Self {
        let whole = Self::of(plan);
        Self { from: Nanos::ZERO, until: plan.visit.warm_up, ..whole }
    }
}

/// What the counts of a load say about the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counted {
    /// Where measuring starts, after the further cut.
    pub(crate) cut: Nanos,
    /// Goodput from there to the end of the window.
    pub(crate) rate_per_s: f64,
}

/// Counts the window, and cuts it further if a warm-up reaches into it.
pub(crate) fn count(load: &LoadRecord, window: Window, work: &Workload) -> Counted {
    let inside = inside(load, window);
    if let Some(rate_per_s) = by_littles_law(&inside, work) {
        return Counted { cut: window.from, rate_per_s };
    }
    let ok: Vec<f64> = inside.iter().map(|interval| interval.ok as f64).collect();
    let kept = &inside[stats::mser5(&ok).cut..];
    assert!(inside.is_empty() || !kept.is_empty(), "a cut leaves something to count");
    Counted {
        cut: kept.first().map_or(window.from, |interval| interval.start),
        rate_per_s: goodput(kept),
    }
}

/// Recomputes the rate of a visit from its counts. Keeps its cut, and the rate of a visit without counts.
pub(crate) fn rate_anew(plan: &Plan, visit: &mut Visit) {
    if visit.state != VisitState::Measured {
        return;
    }
    visit.rate_per_s = match visit {
        Visit { search: Some(search), .. } => search.highest_good.map(|rate| rate.0),
        Visit { tool: Some(tool), .. } => by_tool::rate(tool),
        Visit { load: Some(load), cut, cell, contender, .. } => {
            let window = Window { from: *cut, ..Window::of(plan) };
            let inside = inside(load, window);
            let work = plan.work(*cell, *contender);
            Some(by_littles_law(&inside, &work).unwrap_or_else(|| goodput(&inside)))
        }
        _ => return,
    };
}

/// Requests/s that these intervals answered successfully.
fn goodput(intervals: &[&Interval]) -> f64 {
    let length: u64 = intervals.iter().map(|interval| interval.length.0).sum();
    let done: u64 = intervals.iter().map(|interval| interval.ok).sum();
    if length > 0 { done as f64 / Nanos(length).as_secs_f64() } else { 0.0 }
}

/// The intervals that lie entirely in a window.
fn inside(load: &LoadRecord, window: Window) -> Vec<&Interval> {
    let is_inside =
        |interval: &&Interval| interval.start >= window.from && interval.end() <= window.until;
    load.intervals.iter().filter(is_inside).collect()
}

/// The rate of a closed loop on a program that sleeps; `None` for any other load, and if a request failed or none
/// ended.
///
/// A sleep is a large part of the window, so whole requests are too coarse a count. A window that begins a moment
/// later may hold nine requests instead of ten, for every visit of a contender alike. No interval over visits can
/// tell that from a difference. By Little's law the rate is also that of connections over the mean time from the end
/// of one request to the end of the next (`response`), which has no such step. MSER-5 is not used: requests that all
/// end at once are no warm-up.
fn by_littles_law(inside: &[&Interval], work: &Workload) -> Option<f64> {
    if work.sleep.is_none() || work.rate.is_some() {
        return None;
    }
    let mut response = Histogram::new();
    for interval in inside {
        if interval.errors.total() > 0 {
            return None;
        }
        response.merge(&interval.response);
    }
    Some(f64::from(work.connections) / response.mean()?.as_secs_f64())
}

/// Requests that ended between two instants, successfully or not: what the server spent its time on. An interval that
/// is half inside counts half.
pub(crate) fn requests_between(load: &LoadRecord, from: Nanos, until: Nanos) -> u64 {
    let share = |interval: &Interval| {
        let overlap = interval.end().min(until).saturating_sub(interval.start.max(from));
        overlap.0 as f64 / interval.length.0.max(1) as f64
    };
    let ended = |interval: &Interval| (interval.ok + interval.errors.total()) as f64;
    load.intervals.iter().map(|interval| share(interval) * ended(interval)).sum::<f64>().round()
        as u64
}

/// Prepares a finished load for storage: joins each batch of intervals into one, and packs what is left. Joined
/// intervals begin where the batches of the window do, so the cut stays between two of them.
pub(crate) fn condense(load: &mut LoadRecord) {
    let joined = load.intervals.chunks(BATCH as usize).map(|batch| {
        let mut whole = batch[0].clone();
        for interval in &batch[1..] {
            whole.merge(interval);
            whole.length += interval.length;
        }
        whole.service.pack();
        whole.response.pack();
        whole
    });
    load.intervals = joined.collect();
    load.latencies.each_mut().into_iter().for_each(Histogram::pack);
}

/// The load of a visit: one run over warm-up and measurement, so that its connections are kept.
pub(crate) fn load_plan(
    window: Window,
    work: &Workload,
    target: &str,
    addr: std::net::SocketAddr,
    cpus: &[u32],
    seed: u64,
) -> LoadPlan {
    LoadPlan {
        connections: work.connections,
        threads: work.threads,
        cpus: cpus.to_vec(),
        keep_alive: work.keep_alive,
        stop: LoadStop { requests: None, duration: Some(window.until) },
        timeout: work.timeout,
        // A request that begins just before the end still has its whole sleep ahead.
        drain: (DRAIN + work.sleep.unwrap_or_default()).min(work.timeout),
        // A server may close a kept connection at any time.
        retry: true,
        verify: Verify {
            status_min: 200,
            status_max: 200,
            // The length of a program's answer is not known beforehand.
            length: work.is_page().then_some(work.page),
            ..Verify::default()
        },
        interval: window.interval,
        raw_max: RAW_MAX,
        seed,
        pacing: work.rate.map_or(Pacing::Closed, |rate| Pacing::Constant { rate }),
        ..LoadPlan::get(addr, target)
    }
}

#[cfg(test)]
mod tests {
    use record::{Blocks, VisitPlan};
    use units::Share as Part;

    use super::*;

    fn plan(warm_up_ms: u64, measure_ms: u64) -> Plan {
        let (warm_up, measure) = (Nanos::from_millis(warm_up_ms), Nanos::from_millis(measure_ms));
        Plan {
            name: "test".into(),
            question: "?".into(),
            contenders: vec![record::Contender::default()],
            cells: vec![record::Cell::only(Workload { connections: 2, ..Workload::default() })],
            blocks: Blocks { min: 8, max: 8, half_width: Part(0.02) },
            visit: VisitPlan { warm_up, measure, ..VisitPlan::default() },
            metrics: Vec::new(),
            margin: Part(0.02),
            budget: Nanos::from_secs(1),
            seed: 1,
            ..Plan::default()
        }
    }

    fn addr() -> std::net::SocketAddr {
        "127.0.0.1:80".parse().unwrap()
    }

    /// A load whose intervals ended with these numbers of requests.
    fn load(plan: &Plan, ok: &[u64]) -> LoadRecord {
        let load_plan = load_plan(Window::of(plan), &plan.work(0, 0), "/", addr(), &[], 1);
        let length = load_plan.interval;
        let interval = |(n, &ok): (usize, &u64)| {
            let mut interval = Interval::new(Nanos(length.0 * n as u64), length);
            interval.ok = ok;
            (0..ok).for_each(|_| interval.service.record(Nanos::from_micros(50)));
            interval
        };
        let intervals = ok.iter().enumerate().map(interval).collect();
        LoadRecord { intervals, ..LoadRecord::empty(load_plan) }
    }

    #[test]
    fn a_window_is_whole_batches_and_no_shorter_than_planned() {
        for (warm_up, measure) in [(150, 600), (0, 100), (1, 101), (1000, 3000), (333, 7777)] {
            let plan = plan(warm_up, measure);
            let window = Window::of(&plan);
            let batch = window.interval.0 * BATCH;
            assert_eq!((window.from.0 % batch, window.until.0 % batch), (0, 0));
            assert!(window.from >= plan.visit.warm_up);
            assert!(window.until - window.from >= plan.visit.measure);
            assert!(window.interval >= INTERVAL_MIN);
        }
    }

    #[test]
    fn a_settled_load_is_counted_from_the_planned_warm_up_on() {
        let plan = plan(100, 200);
        // Ten intervals of warm-up at a tenth of the speed, twenty measured, one drained.
        let counts: Vec<u64> = [vec![10; 10], vec![100; 20], vec![64]].concat();
        let counted = count(&load(&plan, &counts), Window::of(&plan), &plan.work(0, 0));
        assert_eq!(counted, Counted { cut: Nanos::from_millis(100), rate_per_s: 10_000.0 });
    }

    #[test]
    fn a_warm_up_that_reaches_into_the_window_is_cut_off() {
        let plan = plan(100, 400);
        let counts: Vec<u64> = [vec![10; 20], vec![100; 30]].concat();
        let counted = count(&load(&plan, &counts), Window::of(&plan), &plan.work(0, 0));
        assert_eq!(counted, Counted { cut: Nanos::from_millis(200), rate_per_s: 10_000.0 });
    }

    #[test]
    fn a_load_that_ended_before_the_window_has_no_rate() {
        let plan = plan(100, 200);
        let counted = count(&load(&plan, &[7, 7]), Window::of(&plan), &plan.work(0, 0));
        assert_eq!(counted.rate_per_s, 0.0);
    }

    #[test]
    fn a_program_that_sleeps_has_a_rate_that_does_not_step_with_whole_requests() {
        let plan = plan(100, 200);
        let work = Workload { sleep: Some(Nanos::from_millis(41)), ..plan.work(0, 0) };
        // Two connections whose requests take 42 ms and end together; the first may end at any time.
        let counted_from = |first: usize| {
            let mut load = load(&plan, &[0; 35]);
            for end_ms in (first..350).step_by(42) {
                let interval = &mut load.intervals[end_ms / 10];
                interval.ok += 2;
                (0..2).for_each(|_| interval.response.record(Nanos::from_millis(42)));
            }
            (count(&load, Window::of(&plan), &work), load)
        };
        for first in 0..42 {
            let (counted, _) = counted_from(first);
            assert_eq!(counted.cut, Nanos::from_millis(100));
            assert!((counted.rate_per_s - 2.0 / 0.042).abs() < 0.1, "{first}: {counted:?}");
        }
        let (_, mut load) = counted_from(0);
        load.intervals[20].errors.timeout_waiting = 1;
        let counted = count(&load, Window::of(&plan), &work);
        assert_ne!(counted.rate_per_s, 2.0 / 0.042, "a failed request is no time of a good one");
        assert_eq!(load_plan(Window::of(&plan), &work, "/", addr(), &[], 1).verify.length, None);
    }

    #[test]
    fn requests_of_half_an_interval_count_half() {
        let plan = plan(0, 100);
        let load = load(&plan, &[100; 10]);
        let between = |from_ms, until_ms| {
            requests_between(&load, Nanos::from_micros(from_ms), Nanos::from_micros(until_ms))
        };
        assert_eq!(between(0, 100_000), 1000);
        assert_eq!(between(5_000, 95_000), 900);
        assert_eq!(between(12_000, 14_000), 20);
        assert_eq!(between(200_000, 300_000), 0);
    }

    #[test]
    fn joining_keeps_every_count_and_the_place_of_the_cut() {
        let plan = plan(100, 200);
        let mut load = load(&plan, &[3; 33]);
        let cut = count(&load, Window::of(&plan), &plan.work(0, 0)).cut;
        let spans = |load: &LoadRecord| {
            let after = load.intervals.iter().filter(|interval| interval.start >= cut);
            after.map(|interval| interval.service.count()).sum::<u64>()
        };
        let before = spans(&load);
        condense(&mut load);
        assert_eq!(load.intervals.len(), 7);
        assert!(load.intervals.iter().any(|interval| interval.start == cut));
        assert_eq!(spans(&load), before);
        assert_eq!(load.intervals.iter().map(|interval| interval.ok).sum::<u64>(), 99);
        assert_eq!(load.intervals.last().unwrap().end(), Nanos::from_millis(330));
    }
}
