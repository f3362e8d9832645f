//! Owns the check for replies that a server holds and releases together. Start reading at [`look`].
//!
//! A server that lets replies go at fixed instants only (a timer, a buffer that is flushed every 50 ms) answers
//! each connection once a period. Its rate is connections over the period, and says nothing of its work; its
//! latency is what is left of the period.
//!
//! Three things look alike and are told apart. (1) A CPU that is busy all the time and serves generator and
//! server in turn: then there is no time in which neither works. (2) Requests that all take equally long: all
//! connections begin together and stay together, but no reply comes sooner than the others, while a held reply
//! comes as soon as the period is over, and the first ones find it half over. (3) Nagle's algorithm against
//! delayed acknowledgements: 40 ms, and the kernel counts each.
//!
//! False alarms over simulated clean visits (the tests with 20 seeds): none in 120 runs of 16 visits, at
//! 2,000, 20,000 and 100,000 replies/s, 4 and 64 connections, and hiccups of 1 to 10 ms five times a second; none
//! of these 1,920 visits alone.

use record::{Certainty, LoadRecord, Question, Severity, Visit};
use units::Nanos;

use super::Check;
use crate::cpus::busy_cores;
use crate::timeline::{Period, Timeline};
use crate::{Evidence, Observation, counters, timers, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "bursts_of_replies",
    severity: Severity::Void,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "replies were held and released together",
    meaning: "the rate is connections over the time between two releases: it measures a timer, not the \
              server's work",
    remedy: "find what releases replies at intervals (a timer, a buffer that is flushed periodically, \
             coalesced interrupts) and turn it off; more connections would raise the rate without any \
             change of the server",
    detection: "In most visits replies come with a period, no reply in more than 20 % of the milliseconds, \
             an index of dispersion above 5, and at most three replies a connection between two silences. It is \
             confirmed if the CPUs idled meanwhile and the first replies came sooner than the period",
    example: "`joust serve --fixed 3361 --fault batch=50ms`",
    source: "https://docs.kernel.org/networking/napi.html (coalescing); Cox and Lewis, The Statistical \
             Analysis of Series of Events, 1966 (index of dispersion)",
    needs: &[&counters::NETSTAT, &counters::STAT, &counters::QUOTA],
    look,
};

/// Share of the bins without a reply, and variance of the counts over their mean: specs of bursts. Replies that
/// come by chance have a dispersion of 1, whatever their rate.
const EMPTY_MIN: f64 = 0.2;
const DISPERSION_MIN: f64 = 5.0;
/// Fewer connections cannot make bursts that differ from chance.
const CONNECTIONS_MIN: u32 = 8;
/// Correlation of the counts with themselves a period later, above the lowest one before. Counts that do not
/// repeat have 0.05 in 500 bins, and hiccups of the machine 0.2.
const STRENGTH_MIN: f64 = 0.3;
const STRENGTH_CLEAR: f64 = 0.5;
/// Joined bins in which the period is looked for as well, and how many there must be: of fewer, chance alone
/// makes correlations as strong.
const COARSER: [usize; 4] = [1, 2, 4, 8];
const BINS_MIN: usize = 200;
/// Share of the visits in which the same period is to be seen, and how far periods of one server may differ.
const VISITS_MIN: f64 = 0.75;
const PERIOD_WITHIN: f64 = 0.15;
/// With fewer busy cores, generator and server idled together for a quarter of the time at least.
const BUSY_CORES_MAX: f64 = 0.75;
/// Replies of a connection in one burst. One that is held until its end is one; of many in between, single requests
/// stalled, until all connections did.
const EACH_MAX: f64 = 3.0;
/// A reply that came before this share of the period was over did not take the period: it waited for its end.
const SOON: f64 = 0.8;
/// The first replies of most visits come so soon: as many requests as this share of the connections.
const SOON_SHARE_MIN: f64 = 0.3;
/// Delayed acknowledgements: from when to when a reply comes that waited for one (TCP_DELACK_MIN is 40 ms).
const DELAYED_ACK_MS: std::ops::RangeInclusive<u64> =
    timers::DELAYED_ACK_MS - 2..=timers::DELAYED_ACK_MS + 8;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

/// What a visit showed.
#[derive(Clone, Copy)]
struct Bursts {
    period: Nanos,
    /// Share of the measured time without a reply.
    empty: f64,
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let visits: Vec<(&Visit, &LoadRecord)> = evidence.loads(contender).collect();
    let work = |visit: &Visit| evidence.run.plan.work(visit.cell, contender);
    if visits.iter().any(|(visit, _)| work(visit).sleep.is_some()) {
        return None;
    }
    let seen: Vec<Bursts> = visits.iter().filter_map(|(visit, load)| bursts(visit, load)).collect();
    let period = middle(&seen)?;
    let is_near =
        |one: &&Bursts| one.period.0.abs_diff(period.0) as f64 <= PERIOD_WITHIN * period.0 as f64;
    let alike: Vec<&Bursts> = seen.iter().filter(is_near).collect();
    if (alike.len() as f64) < VISITS_MIN * visits.len() as f64 {
        return None;
    }
    let (certainty, why) = certainty(&visits, period)?;
    let empty: f64 = alike.iter().map(|one| one.empty).sum::<f64>() / visits.len() as f64;
    let evidence = format!(
        "{}: in {} of {} replies came together every {period}; no reply came in {} of the time, although \
         every connection waited for one{}",
        evidence.name(contender),
        alike.len(),
        words::count(visits.len() as u64, "visit"),
        words::percent(empty),
        why,
    );
    Some(Observation { certainty, share: Some(empty), contenders: vec![contender], evidence })
}

fn bursts(visit: &Visit, load: &LoadRecord) -> Option<Bursts> {
    if load.open_loop.is_some() || load.connections < CONNECTIONS_MIN {
        return None;
    }
    let timeline = Timeline::measured(visit, load)?;
    let empty = timeline.empty_share();
    if empty <= EMPTY_MIN || timeline.dispersion() <= DISPERSION_MIN {
        return None;
    }
    let period = clearest_period(&timeline).filter(|period| period.strength >= STRENGTH_MIN)?;
    let each = replies_in_burst(&timeline, period.length)? / f64::from(load.connections);
    if each > EACH_MAX {
        return None;
    }
    Some(Bursts { period: period.length, empty })
}

/// Median number of replies between silences of half a period or more. `None` with fewer than two of those.
fn replies_in_burst(timeline: &Timeline, period: Nanos) -> Option<f64> {
    let silences = timeline.silences(Nanos(period.0 / 2));
    let bursts = silences.windows(2).map(|pair| {
        let bin = |at: Nanos| (at.saturating_sub(timeline.from).0 / timeline.bin.0) as usize;
        let (from, until) = (bin(pair[0].from + pair[0].length), bin(pair[1].from));
        timeline.counts[from..until].iter().map(|&count| f64::from(count)).sum()
    });
    stats::median(&bursts.collect::<Vec<f64>>())
}

/// A busy machine is late by some milliseconds with each release: then it repeats in coarser bins only.
fn clearest_period(timeline: &Timeline) -> Option<Period> {
    let scales = COARSER.into_iter().map(|times| timeline.coarser(times));
    let enough = scales.filter(|coarser| coarser.counts.len() >= BINS_MIN);
    let periods: Vec<Period> = enough.filter_map(|coarser| coarser.period()).collect();
    // The finest that is clear says the period best.
    let clear = periods.iter().find(|period| period.strength >= STRENGTH_CLEAR);
    clear.or_else(|| periods.iter().max_by(|a, b| a.strength.total_cmp(&b.strength))).copied()
}

/// The median of the periods.
fn middle(seen: &[Bursts]) -> Option<Nanos> {
    let mut periods: Vec<Nanos> = seen.iter().map(|one| one.period).collect();
    periods.sort_unstable();
    periods.get(periods.len() / 2).copied()
}

/// And why. `None` where something else explains the pattern.
fn certainty(visits: &[(&Visit, &LoadRecord)], period: Nanos) -> Option<(Certainty, &'static str)> {
    let cores: Vec<Option<f64>> =
        visits.iter().map(|(visit, load)| busy_cores(visit, load)).collect();
    let idle = cores.iter().filter(|cores| cores.is_some_and(|busy| busy < BUSY_CORES_MAX)).count();
    let busy = cores.iter().flatten().filter(|busy| **busy >= BUSY_CORES_MAX).count();
    let is_throttled = |visit: &Visit| {
        let series = visit.surroundings.as_ref().map(|around| &around.series);
        series.and_then(|series| series.change("quota.throttled")).is_some_and(|times| times > 0)
    };
    let throttled = visits.iter().filter(|(visit, _)| is_throttled(visit)).count();
    if 2 * busy > visits.len() || 2 * throttled > visits.len() || are_delayed_acks(visits, period) {
        return None;
    }
    let (soon, connections) = visits.iter().fold((0, 0), |(soon, connections), (_, load)| {
        (soon + sooner(load, period), connections + u64::from(load.connections))
    });
    let is_held = soon as f64 >= SOON_SHARE_MIN * connections as f64;
    match (is_held, 2 * idle > visits.len()) {
        (true, true) => Some((Certainty::Confirmed, " and neither server nor generator worked")),
        (true, false) => Some((Certainty::Suspected, "; whether its CPUs idled is not known")),
        // Of one visit in five the first replies come late in the period by chance; of many not.
        (false, _) if visits.len() == 1 => {
            Some((Certainty::Suspected, "; or each request took that time"))
        }
        (false, _) => None,
    }
}

/// Replies that came well before a period was over.
fn sooner(load: &LoadRecord, period: Nanos) -> u64 {
    let until = Nanos((period.0 as f64 * SOON) as u64);
    let buckets = load.latencies.service.buckets();
    buckets.take_while(|(span, _)| *span < until).map(|(_, replies)| replies).sum()
}

/// Whether the kernel delayed an acknowledgement for every second reply at least, and the period is that delay.
fn are_delayed_acks(visits: &[(&Visit, &LoadRecord)], period: Nanos) -> bool {
    const COUNTERS: [&str; 3] = ["client", "server", "both"];
    if !DELAYED_ACK_MS.contains(&(period.0 / 1_000_000)) {
        return false;
    }
    let delayed = visits.iter().filter_map(|(visit, _)| {
        let series = &visit.surroundings.as_ref()?.series;
        let each = COUNTERS.map(|side| series.change(&format!("{side}.TcpExt.DelayedACKs")));
        each.into_iter().flatten().max()
    });
    let replies: u64 = visits.iter().map(|(_, load)| load.requests.done).sum();
    2 * delayed.sum::<i64>().max(0) as u64 >= replies
}

#[cfg(test)]
mod tests {
    use record::RunRecord;

    use super::*;
    use crate::simulated::Loop;

    const NAMES: [&str; 2] = ["a", "b"];

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    /// Eight visits of a clean a and of b, made by `planted`.
    fn beside(planted: Loop, seed: u64) -> RunRecord {
        Loop::run(&[Loop::clean(planted.connections, 20_000.0), planted], &NAMES, 8, seed)
    }

    fn batch(millis: u64) -> Loop {
        Loop { batch: Nanos::from_millis(millis), ..Loop::clean(64, 20_000.0) }
    }

    #[test]
    fn replies_that_are_held_are_confirmed_with_their_period() {
        for millis in [5, 10, 50] {
            for seed in 0..3 {
                let seen = seen(&beside(batch(millis), seed));
                assert_eq!(seen.len(), 1, "{millis} ms, seed {seed}");
                assert_eq!(
                    (seen[0].certainty, seen[0].contenders.as_slice()),
                    (Certainty::Confirmed, &[1][..]),
                    "{millis} ms, seed {seed}"
                );
                let said =
                    format!("b: in 8 of 8 visits replies came together every {millis}ms; no");
                assert!(seen[0].evidence.replace(" ms", "ms").starts_with(&said), "{seen:?}");
            }
        }
    }

    #[test]
    fn releases_that_a_busy_machine_delays_keep_their_period() {
        let mut run = beside(batch(50), 7);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let counts = &mut visit.load.as_mut().unwrap().completions.counts;
            let bursts: Vec<(usize, u32)> =
                counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
            counts.fill(0);
            for (n, (at, count)) in bursts.into_iter().enumerate() {
                // As seen on a machine of two cores with a load average of 15.
                let late = [0, 4, 1, 2, 0, 7, 0, 1][(at / 50 + n) % 8];
                let last = counts.len() - 1;
                counts[(at + late).min(last)] += count;
            }
        }
        let seen = seen(&run);
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
    }

    #[test]
    fn many_replies_of_each_connection_between_silences_are_stalls_of_single_requests() {
        let mut run = beside(batch(50), 7);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let counts = &mut visit.load.as_mut().unwrap().completions.counts;
            counts.iter_mut().for_each(|count| *count *= 10);
        }
        assert_eq!(seen(&run), []);
    }

    #[test]
    fn half_of_the_time_is_half_of_the_share() {
        let whole = seen(&beside(batch(20), 1))[0].share.unwrap();
        // From 150 ms to 400 ms of 150 ms to 650 ms.
        let half = Loop { batch_until: Nanos::from_millis(400), ..batch(20) };
        let half = seen(&beside(half, 1))[0].share.unwrap();
        assert!((half / whole - 0.5).abs() < 0.1, "{half} of {whole}");
    }

    #[test]
    fn a_single_load_shows_it_too() {
        let planted = Loop { length: Nanos::from_secs(3), ..batch(50) };
        let of_one = |seed| {
            let mut run = Loop::run(&[planted], &["a"], 1, seed);
            run.visits[0].cut = Nanos::ZERO;
            seen(&run)
        };
        let all: Vec<Observation> = (0..40).flat_map(of_one).collect();
        assert_eq!(all.len(), 40);
        let confirmed = all.iter().filter(|one| one.certainty == Certainty::Confirmed).count();
        assert!((28..=38).contains(&confirmed), "{confirmed}: in a fifth they may just be slow");
    }

    #[test]
    fn clean_servers_are_silent_at_every_rate() {
        for rate in [2_000.0, 20_000.0, 100_000.0] {
            for connections in [4, 64] {
                for seed in 0..1 {
                    let clean = Loop::clean(connections, rate);
                    let run = Loop::run(&[clean, clean], &NAMES, 8, seed);
                    assert_eq!(seen(&run), [], "{rate}/s, {connections}, seed {seed}");
                    for visit in &run.visits {
                        let load = visit.load.as_ref().unwrap();
                        assert!(
                            bursts(visit, load).is_none(),
                            "{rate}/s, {connections}, seed {seed}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn slow_servers_are_sparse_and_not_in_bursts() {
        for seed in 0..3 {
            let slow = Loop { length: Nanos::from_secs(10), ..Loop::clean(64, 20.0) };
            assert_eq!(seen(&Loop::run(&[slow], &["a"], 2, seed)), [], "seed {seed}");
        }
    }

    #[test]
    fn requests_that_take_equally_long_are_not_held() {
        let delay = Nanos::from_millis(20);
        for seed in 0..3 {
            let equal = Loop { delay, ..Loop::clean(64, 20_000.0) };
            assert_eq!(seen(&beside(equal, seed)), [], "seed {seed}");
        }
    }

    #[test]
    fn a_busy_machine_a_quota_and_nagle_explain_it_otherwise() {
        let mut busy = beside(batch(20), 1);
        crate::testdata::limit(&mut busy, 1, 0.4, 0.6);
        assert_eq!(seen(&busy), []);
        let moved = |period: u64, counter: &str, by: i64| {
            let mut run = beside(batch(period), 1);
            for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
                let mut around = record::Surroundings::default();
                let (source, _) = counter.rsplit_once('.').unwrap();
                around.series.sources.insert(source.to_owned());
                let course = record::Course { first: 0, steps: vec![by] };
                around.series.counters.insert(counter.to_owned(), course);
                visit.surroundings = Some(Box::new(around));
            }
            seen(&run).len()
        };
        assert_eq!(moved(20, "quota.throttled", 5), 0);
        assert_eq!(moved(20, "quota.throttled", 0), 1);
        assert_eq!(moved(40, "server.TcpExt.DelayedACKs", 800), 0);
        assert_eq!(moved(40, "server.TcpExt.DelayedACKs", 8), 1);
        assert_eq!(moved(50, "server.TcpExt.DelayedACKs", 800), 1, "a held reply delays them too");
    }

    #[test]
    fn where_a_program_sleeps_and_in_an_open_loop_nothing_is_judged() {
        let mut run = beside(batch(50), 1);
        run.plan.cells[0].workload.sleep = Some(Nanos::from_millis(50));
        assert_eq!(seen(&run), []);
        let mut run = beside(batch(50), 1);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.open_loop = Some(record::OpenLoop::default());
        }
        assert_eq!(seen(&run), []);
    }
}
