//! Owns the check that what was measured is not in part a warm-up. Start reading at [`look`].
//!
//! A server that is slow for its first half second (a compiler at work, caches that fill, workers that are still
//! started) has in a short visit a rate that depends on the length of the visit: it is the mean of two servers.
//! The planned warm-up may be too short, and the further cut (MSER-5) takes half of the measurement at most.
//!
//! Visits are fresh starts, so a warm-up is in most of them, with the same sign; what the machine does is in some,
//! with either sign. A first part that is faster, as a CPU's clock is after a pause, counts only where replies did not
//! cost the generator less in it too. A few loads alone cannot show any of that. There service times must say the same as the rate, the
//! rate must keep its later level, and CPUs must not have been in greater demand at first.
//!
//! False alarms over simulated clean visits (the tests with 40 seeds): none in 240 runs of 16 visits, at
//! 2,000, 20,000 and 100,000 replies/s, 4 and 64 connections, and hiccups of 1 to 10 ms five times a second; none
//! of 240 visits alone.

use record::{Certainty, Interval, LoadRecord, Question, Severity, Visit};
use stats::Histogram;
use units::Nanos;

use super::Check;
use crate::first_part::FirstPart;
use crate::timeline::end;
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "warm_up_inside",
    severity: Severity::Void,
    question: Question::DoesItReproduce,
    spares_like_pairs: false,
    title: "a part of the measurement is a warm-up",
    meaning: "the rate is the mean of two levels, so it depends on the length of the measurement",
    remedy: "warm up for longer before measuring (`warm_up` or `settle` in [visit]; of a load alone, make one \
             load before the one that counts), or measure the warm-up itself",
    detection: "The rate of a first part of the measurement differs from the later rate by more than 2 % and \
             five standard errors, and changes the whole by more than 2 %. It is confirmed if that holds for \
             three quarters of four or more visits, with the same sign. Fewer loads confirm it only if the first \
             part is at least 40 % slower (a machine's own changes of speed are smaller), the median service time \
             agrees, and demand for CPUs (PSI) does not explain it. A change of less than twofold in which a reply \
             cost the generator more CPU time too is taken for the machine's there, and everywhere where the \
             first part is faster",
    example: "a server that sleeps 5 ms more in each request of its first half second",
    source: "Barrett et al., Virtual Machine Warmup Blows Hot and Cold, OOPSLA 2017; White, An Effective \
             Truncation Heuristic for Bias Reduction in Simulation Output, 1997 (MSER)",
    needs: &[&counters::PRESSURE_CPU],
    look,
};

/// By how much a first part must change the rate of the whole: the margin below which studies see no difference.
const SHARE_MIN: f64 = 0.02;
/// From this number of visits on, that most of them agree is a second witness.
const VISITS_MIN: usize = 4;
const VISITS_SHARE_MIN: f64 = 0.75;
/// With fewer, the difference must be larger than what the machine makes by itself: a CPU whose core another virtual
/// machine uses too was seen to be 20 to 30 % slower for a second or two, and no counter of ours shows it.
const SLOWER_MIN_ALONE: f64 = 0.4;
/// How much of the change the rest may have once more: a level is kept, or it is no warm-up.
const REST_CHANGES_MAX: f64 = 1.0 / 3.0;
/// How much more of the time something may wait for a CPU at first than later, at least, or as a share of the loss:
/// who waits for a tenth of the time loses a tenth of the rate.
const PRESSURE_MORE_MAX: f64 = 0.1;
const PRESSURE_OF_LOSS_MAX: f64 = 1.0 / 3.0;
/// Where something waited for a CPU for more of the time than this, others' work changes rates at any time. Then
/// CPUs must have been in less demand, by this share, while the server was slow: nobody else took them.
const PRESSURE_MAX: f64 = 0.5;
const PRESSURE_LESS_MIN: f64 = 0.2;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let visits: Vec<(&Visit, &LoadRecord)> = evidence.loads(contender).collect();
    let parts: Vec<(usize, FirstPart)> = visits
        .iter()
        .enumerate()
        .filter_map(|(n, (visit, load))| Some((n, FirstPart::of(visit, load)?)))
        .filter(|(_, part)| part.slower > 0.0 || !part.may_be_the_machine())
        .collect();
    if parts.is_empty() {
        return None;
    }
    let slower = parts.iter().filter(|(_, part)| part.slower > 0.0).count();
    let is_slower = 2 * slower >= parts.len();
    let alike: Vec<&(usize, FirstPart)> =
        parts.iter().filter(|(_, part)| (part.slower > 0.0) == is_slower).collect();
    let share = alike.iter().map(|(_, part)| part.share).sum::<f64>() / visits.len() as f64;
    if share.abs() < SHARE_MIN {
        return None;
    }
    let is_sure = if visits.len() >= VISITS_MIN {
        alike.len() as f64 >= VISITS_SHARE_MIN * visits.len() as f64
    } else {
        // Each of a few loads must say the same.
        visits.iter().enumerate().all(|(n, (visit, load))| {
            let part = alike.iter().find(|(of, _)| *of == n);
            part.is_some_and(|(_, part)| alone(visit, load, part) == Some(true))
        })
    };
    let evidence = said(evidence.name(contender), &alike, visits.len(), share);
    is_sure.then(|| Observation {
        certainty: Certainty::Confirmed,
        share: Some(share.abs()),
        contenders: vec![contender],
        evidence,
    })
}

fn said(name: &str, alike: &[&(usize, FirstPart)], visits: usize, share: f64) -> String {
    let middle = |of: &dyn Fn(&FirstPart) -> f64| {
        let all: Vec<f64> = alike.iter().map(|(_, part)| of(part)).collect();
        stats::median(&all).unwrap_or_default()
    };
    let by = middle(&|part| part.slower);
    let (than, effect) = match by > 0.0 {
        true => ("slower", "below"),
        false => ("faster", "above"),
    };
    format!(
        "{name}: in {} of {} the first {} of what was measured were {} {than} than the rest, so that the rate \
         is {} {effect} the later one",
        alike.len(),
        words::count(visits as u64, "visit"),
        Nanos::from_secs_f64(middle(&|part| part.until.saturating_sub(part.from).as_secs_f64())),
        words::percent(by.abs()),
        words::percent(share.abs()),
    )
}

/// Whether one load alone shows it: not where the machine may explain it, or the level does not stay. `None` where a
/// witness is missing.
fn alone(visit: &Visit, load: &LoadRecord, part: &FirstPart) -> Option<bool> {
    let is_kept = part.rest_changes <= REST_CHANGES_MAX * part.slower;
    let is_clear = part.slower >= SLOWER_MIN_ALONE && !part.may_be_the_machine();
    if !is_clear || !is_kept || !service_agrees(load, part)? {
        return Some(false);
    }
    // Where either is not known, the machine is as likely.
    part.generator_dearer?;
    let (first, rest) = pressure(visit, part)?;
    let more_max = PRESSURE_MORE_MAX.max(PRESSURE_OF_LOSS_MAX * part.slower);
    // Waits that are there all the time hide as much of those at first: they overlap.
    let more = (first - rest) / (1.0 - rest).max(f64::MIN_POSITIVE);
    let is_calm = rest < PRESSURE_MAX && more <= more_max;
    let was_idle = rest - first >= PRESSURE_LESS_MIN;
    Some(is_calm || was_idle)
}

/// Whether the median service time of the first part is longer by half of what the rates would make of it at
/// least. `None` where neither samples nor intervals tell the parts apart.
fn service_agrees(load: &LoadRecord, part: &FirstPart) -> Option<bool> {
    let (first, rest) =
        service_of_samples(load, part).or_else(|| service_of_intervals(load, part))?;
    let (first, rest) = (first.quantile(0.5)?.as_secs_f64(), rest.quantile(0.5)?.as_secs_f64());
    let expected = 1.0 / (1.0 - part.slower);
    Some(first / rest > 1.0 + (expected - 1.0) / 2.0)
}

fn service_of_samples(load: &LoadRecord, part: &FirstPart) -> Option<(Histogram, Histogram)> {
    const SAMPLES_MIN: u64 = 30;
    let (mut first, mut rest) = (Histogram::new(), Histogram::new());
    let measured = load.raw.iter().filter(|one| one.done >= part.from && one.done < end(load));
    for one in measured.filter(|one| one.outcome == record::Outcome::Ok) {
        let side = if one.done < part.until { &mut first } else { &mut rest };
        side.record(one.done.saturating_sub(one.sent));
    }
    (first.count() >= SAMPLES_MIN && rest.count() >= SAMPLES_MIN).then_some((first, rest))
}

fn service_of_intervals(load: &LoadRecord, part: &FirstPart) -> Option<(Histogram, Histogram)> {
    let merged = |is_inside: &dyn Fn(&&Interval) -> bool| {
        let mut all = Histogram::new();
        load.intervals.iter().filter(is_inside).for_each(|one| all.merge(&one.service));
        (!all.is_empty()).then_some(all)
    };
    let first = merged(&|one| one.start >= part.from && one.end() <= part.until)?;
    let rest = merged(&|one| one.start >= part.until && one.end() <= end(load))?;
    Some((first, rest))
}

/// Share of the time in which something waited for a CPU, in the first part and in the rest. `None` where it
/// could not be read in one of them.
fn pressure(visit: &Visit, part: &FirstPart) -> Option<(f64, f64)> {
    const COUNTER: &str = "pressure.cpu.some_us";
    let series = &visit.surroundings.as_ref()?.series;
    // Known, and it never moved: nobody waited.
    let total = series.change(COUNTER)?;
    let Some(course) = series.counters.get(COUNTER).filter(|_| total > 0) else {
        return Some((0.0, 0.0));
    };
    let (mut first, mut rest) = ((0.0, 0.0), (0.0, 0.0));
    for (edge, step) in series.at.windows(2).zip(&course.steps) {
        // Readings begin with the load, but for a few milliseconds.
        let middle = Nanos((edge[0].0 + edge[1].0) / 2);
        let side = if middle < part.until { &mut first } else { &mut rest };
        side.0 += *step as f64 / 1e6;
        side.1 += (edge[1] - edge[0]).as_secs_f64();
    }
    let share = |(waited, time): (f64, f64)| (time > 0.0).then(|| waited / time);
    Some((share(first)?, share(rest)?))
}

#[cfg(test)]
mod tests {
    use record::{Course, RunRecord, Surroundings};

    use super::*;
    use crate::simulated::Loop;

    const NAMES: [&str; 2] = ["a", "b"];

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    /// Each reply takes 5 ms more until then.
    fn warm_up(connections: u32, rate_per_s: f64, until_ms: u64) -> Loop {
        let (delay, delay_until) = (Nanos::from_millis(5), Nanos::from_millis(until_ms));
        Loop { delay, delay_until, ..Loop::clean(connections, rate_per_s) }
    }

    fn beside(planted: Loop, seed: u64) -> RunRecord {
        let clean = Loop { delay: Nanos::ZERO, ..planted };
        Loop::run(&[clean, planted], &NAMES, 8, seed)
    }

    #[test]
    fn half_a_second_of_warm_up_is_confirmed() {
        for (connections, rate) in [(4, 2_000.0), (4, 20_000.0), (64, 50_000.0)] {
            for seed in 0..3 {
                let seen = seen(&beside(warm_up(connections, rate, 500), seed));
                assert_eq!(seen.len(), 1, "{connections}, {rate}, seed {seed}");
                let (certainty, who) = (seen[0].certainty, seen[0].contenders.as_slice());
                assert_eq!((certainty, who), (Certainty::Confirmed, &[1][..]));
                assert!(
                    seen[0].evidence.starts_with("b: in 8 of 8 visits the first 3"),
                    "{seen:?}"
                );
            }
        }
        let mut run = beside(warm_up(64, 50_000.0, 500), 1);
        run.plan.visit.measure = Nanos::from_millis(500);
        let found = crate::examine(&run);
        assert!(
            found.iter().any(|one| one.check == ITEM.name && one.acts(Severity::Void)),
            "{found:?}"
        );
    }

    #[test]
    fn what_the_further_cut_left_of_it_is_found_and_what_it_left_out_is_not() {
        let with_cut = |millis| {
            let mut run = beside(warm_up(64, 50_000.0, 500), 1);
            run.visits.iter_mut().for_each(|visit| visit.cut = Nanos::from_millis(millis));
            seen(&run).len()
        };
        assert_eq!((with_cut(400), with_cut(510)), (1, 0));
    }

    #[test]
    fn half_of_the_warm_up_is_half_of_the_share() {
        let share = |until| seen(&beside(warm_up(4, 20_000.0, until), 3))[0].share.unwrap();
        // 300 and 150 of 500 ms are slow.
        let (whole, half) = (share(450), share(300));
        assert!((half / whole - 0.5).abs() < 0.1, "{half} of {whole}");
    }

    #[test]
    fn clean_servers_are_silent_at_every_rate() {
        let (mut alarms, mut single, mut visits) = (0, 0, 0);
        for rate in [2_000.0, 20_000.0, 100_000.0] {
            for connections in [4, 64] {
                for seed in 0..1 {
                    let clean = Loop::clean(connections, rate);
                    let run = Loop::run(&[clean, clean], &NAMES, 8, seed);
                    alarms += seen(&run).len();
                    let one = Loop::run(&[clean], &["a"], 1, seed);
                    visits += 1;
                    single += seen(&one).len();
                }
            }
        }
        assert_eq!((alarms, single), (0, 0), "of runs, and of {visits} visits alone");
    }

    #[test]
    fn visits_that_differ_in_sign_are_the_machine() {
        let mut run = beside(warm_up(4, 20_000.0, 300), 1);
        let clean = Loop::clean(4, 20_000.0);
        let slow_end = |seed| {
            let mut load = clean.load(seed);
            let end = load.completions.counts.len();
            load.completions.counts[end / 2..].iter_mut().for_each(|count| *count /= 2);
            load
        };
        let of_b = run.visits.iter_mut().filter(|visit| visit.contender == 1);
        for (seed, visit) in of_b.enumerate().filter(|(n, _)| n % 2 == 1) {
            visit.load = Some(slow_end(seed as u64));
        }
        assert_eq!(seen(&run), []);
    }

    /// One load of three seconds, and how much of the time something waited for a CPU: at first, and later.
    fn one_load(planted: Loop, pressure: Option<(f64, f64)>) -> Vec<Observation> {
        let mut run = Loop::run(&[Loop { length: Nanos::from_secs(3), ..planted }], &["a"], 1, 5);
        run.visits[0].cut = Nanos::ZERO;
        if let Some((first, rest)) = pressure {
            let mut around = Surroundings::default();
            around.series.at = (0..=15).map(|n| Nanos::from_millis(200 * n)).collect();
            around.series.sources.insert("pressure.cpu".to_owned());
            let step = |n| if n < 2 { first } else { rest };
            let steps = (0..15).map(|n| (200_000.0 * step(n)) as i64).collect();
            let course = Course { first: 1, steps };
            around.series.counters.insert("pressure.cpu.some_us".to_owned(), course);
            run.visits[0].surroundings = Some(Box::new(around));
        }
        seen(&run)
    }

    #[test]
    fn one_load_alone_needs_a_machine_that_does_not_explain_it() {
        let planted = warm_up(4, 20_000.0, 500);
        let certainty = |pressure| one_load(planted, pressure).first().map(|one| one.certainty);
        assert_eq!(certainty(Some((0.1, 0.1))), Some(Certainty::Confirmed));
        assert_eq!(certainty(None), None, "unknown is not none");
        assert_eq!(certainty(Some((0.6, 0.1))), None, "others wanted the CPU at first");
        assert_eq!(
            certainty(Some((0.3, 0.1))),
            Some(Certainty::Confirmed),
            "a fifth does not cost 96 %"
        );
        assert_eq!(certainty(Some((0.9, 0.9))), None, "others want it all the time");
        assert_eq!(certainty(Some((0.75, 0.45))), None, "of the time that is left, more than half");
        assert_eq!(certainty(Some((0.5, 0.9))), Some(Certainty::Confirmed), "it was idle at first");
        assert_eq!(one_load(Loop::clean(4, 20_000.0), Some((0.1, 0.1))), []);
    }

    #[test]
    fn one_load_whose_service_times_stay_the_same_is_silent() {
        let mut run = Loop::run(&[Loop::clean(64, 20_000.0)], &["a"], 1, 5);
        run.visits[0].cut = Nanos::ZERO;
        let load = run.visits[0].load.as_mut().unwrap();
        load.completions.counts[..200].iter_mut().for_each(|count| *count /= 2);
        // The generator was less busy: only service times tell that no server was slow.
        load.intervals[..4].iter_mut().for_each(|one| one.client_cpu = Nanos(one.client_cpu.0 / 2));
        assert!(FirstPart::of(&run.visits[0], run.visits[0].load.as_ref().unwrap()).is_some());
        assert_eq!(seen(&run), []);
    }
}
