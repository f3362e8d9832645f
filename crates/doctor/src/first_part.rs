//! Owns whether the first part of what was measured had another rate than the rest: where the rate of one visit
//! changes, and by how much more than its noise. Start reading at [`FirstPart::of`].
//!
//! The best place to divide the counts in two is found by least squares, as in the first step of binary
//! segmentation. Whether the difference is more than noise is judged by its standard error, with as many values
//! as the residuals' correlation leaves.

use record::{LoadRecord, Visit};
use stats::{effective_samples, lag1_autocorrelation};
use units::Nanos;

use crate::timeline::Timeline;

/// The measured time is divided into at most this many bins: finer ones have more noise and no more to say.
const BINS_MAX: usize = 256;
/// Bins on each side of a change: the spread of fewer cannot be told.
const SIDE_MIN: usize = 8;
/// Length of a bin in median service times: each connection ends a request or two in it.
const SERVICE_TIMES: u64 = 2;
/// Standard errors from which a difference is more than noise. The place is chosen for the largest difference,
/// among some hundred: of series without a change, 1 in 30 reaches 4 so.
const CLEAR_MIN: f64 = 5.0;
/// A difference of the levels that is smaller is of no interest, however clear.
const DIFFERENCE_MIN: f64 = 0.02;
/// A clock that falls, or another program on the same core, makes a CPU slower by less than this factor.
const CLOCK_FACTOR_MAX: f64 = 2.0;
/// Share of a change, in ln, from which what the generator's replies cost explains it.
const MACHINE_SHARE_MIN: f64 = 0.5;

/// A first part with another rate than the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FirstPart {
    /// Its start and end, since the start of the load.
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
    /// By how much its rate is below that of the rest, as a share of the rest's; negative where it is above.
    pub(crate) slower: f64,
    /// By how much it lowers the rate of the whole, as a share of the rest's; negative where it raises it.
    pub(crate) share: f64,
    /// The same of the rest, divided once more: how far it is from having one level. 0 where it has one, and where
    /// the machine explains the change.
    pub(crate) rest_changes: f64,
    /// By how much a reply cost the generator more CPU time than in the rest, as a factor; `None` where that was
    /// not counted, or the generator polls and is always busy.
    pub(crate) generator_dearer: Option<f64>,
}

impl FirstPart {
    /// Of what was measured of a visit. `None` where one rate explains it all, and where that cannot be told:
    /// an open loop, whose rate is that of its plan; loads merged from several; too few requests one after
    /// another.
    pub(crate) fn of(visit: &Visit, load: &LoadRecord) -> Option<Self> {
        if load.open_loop.is_some() || !load.parts.is_empty() {
            return None;
        }
        let timeline = Timeline::measured(visit, load)?;
        let typical = load.latencies.service.quantile(0.5)?;
        let long_enough = (SERVICE_TIMES * typical.0).div_ceil(timeline.bin.0) as usize;
        let bins = timeline.counts.len().div_ceil(BINS_MAX).max(long_enough).max(1);
        let series = timeline.joined(bins);
        let change = Change::of(&series)?;
        let until = timeline.from + Nanos(timeline.bin.0 * (change.at * bins) as u64);
        let end = crate::timeline::end(load);
        let rest_changes = Change::of(&series[change.at..]).map_or(0.0, |later| {
            let at = until + Nanos(timeline.bin.0 * (later.at * bins) as u64);
            let dearer = generator_dearer(load, until, at, end);
            if is_of_the_machine(later.slower(), dearer) { 0.0 } else { later.slower().abs() }
        });
        Some(Self {
            from: timeline.from,
            until,
            slower: change.slower(),
            share: change.slower() * change.at as f64 / series.len() as f64,
            rest_changes,
            generator_dearer: generator_dearer(load, timeline.from, until, end),
        })
    }

    /// Whether CPUs that were slower for a while may be all of it. In one visit that cannot be told from a server
    /// whose replies come one by one at first and in bunches later, which cost the generator less each.
    pub(crate) fn may_be_the_machine(&self) -> bool {
        is_of_the_machine(self.slower, self.generator_dearer)
    }
}

/// Whether CPUs that were slower, for a while, explain a change: a reply cost the generator more as well, by half of
/// the change. Its clock fell, or its core had a busy neighbour of another virtual machine, which PSI does not show.
fn is_of_the_machine(slower: f64, generator_dearer: Option<f64>) -> bool {
    let rates = -(1.0 - slower).ln();
    rates.abs() < CLOCK_FACTOR_MAX.ln()
        && generator_dearer.is_some_and(|dearer| dearer.ln() / rates > MACHINE_SHARE_MIN)
}

/// By which factor a reply cost the generator more up to an instant than from there to the end. Intervals count by how
/// much of them lies in each part.
fn generator_dearer(load: &LoadRecord, from: Nanos, until: Nanos, end: Nanos) -> Option<f64> {
    if load.plan.busy_poll {
        return None;
    }
    let cost = |from: Nanos, until: Nanos| {
        let (mut cpu, mut replies) = (0.0, 0.0);
        for one in load.intervals.iter().filter(|one| one.length > Nanos::ZERO) {
            let inside = one.end().min(until).saturating_sub(one.start.max(from));
            let share = inside.as_secs_f64() / one.length.as_secs_f64();
            cpu += share * one.client_cpu.as_secs_f64();
            replies += share * one.ok as f64;
        }
        (cpu > 0.0 && replies > 0.0).then(|| cpu / replies)
    };
    Some(cost(from, until)? / cost(until, end)?)
}

/// The clearest change of a series' level.
#[derive(Debug, Clone, Copy)]
struct Change {
    /// Values before it.
    at: usize,
    before: f64,
    after: f64,
}

impl Change {
    /// `None` where there is no clear one.
    fn of(series: &[f64]) -> Option<Self> {
        if series.len() < 2 * SIDE_MIN {
            return None;
        }
        let all: f64 = series.iter().sum();
        let mut sum: f64 = series[..SIDE_MIN - 1].iter().sum();
        let mut best = (0.0, Self { at: 0, before: 0.0, after: 0.0 });
        for at in SIDE_MIN..=series.len() - SIDE_MIN {
            sum += series[at - 1];
            let (first, rest) = (at as f64, (series.len() - at) as f64);
            let (before, after) = (sum / first, (all - sum) / rest);
            // What dividing here takes from the sum of squares.
            let gain = (before - after).powi(2) * first * rest / (first + rest);
            if gain > best.0 {
                best = (gain, Self { at, before, after });
            }
        }
        let (gain, change) = best;
        (gain > 0.0 && change.is_clear(series)).then_some(change)
    }

    fn slower(&self) -> f64 {
        1.0 - self.before / self.after
    }

    fn is_clear(&self, series: &[f64]) -> bool {
        let difference = self.before - self.after;
        if self.after <= 0.0 || difference.abs() < DIFFERENCE_MIN * self.after {
            return false;
        }
        // Each side has a spread of its own: a part that is slow varies less or more than the rest.
        let error = |side: &[f64], mean: f64| {
            let residuals: Vec<f64> = side.iter().map(|value| value - mean).collect();
            let squares: f64 = residuals.iter().map(|off| off * off).sum();
            let samples = effective_samples(side.len(), lag1_autocorrelation(side).unwrap_or(0.0));
            squares / (side.len() - 1) as f64 / samples
        };
        let (first, rest) = series.split_at(self.at);
        let error = (error(first, self.before) + error(rest, self.after)).sqrt();
        difference.abs() > CLEAR_MIN * error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{CUT, Loop};

    fn of(planted: Loop, seed: u64) -> Option<FirstPart> {
        let visit = Visit { cut: CUT, ..Visit::default() };
        FirstPart::of(&visit, &planted.load(seed))
    }

    #[test]
    fn a_slow_first_part_is_found_with_its_end_and_its_share() {
        let (delay, delay_until) = (Nanos::from_millis(5), Nanos::from_millis(350));
        for rate in [2_000.0, 20_000.0] {
            // 4 connections at 5 ms are 800 requests a second.
            let planted = Loop { delay, delay_until, ..Loop::clean(4, rate) };
            for seed in 0..5 {
                let seen = of(planted, seed).unwrap();
                let until = seen.until.as_millis_f64();
                assert!((until - 350.0).abs() < 25.0, "{rate}, seed {seed}: {seen:?}");
                let slower = 1.0 - 800.0 / rate;
                assert!((seen.slower - slower).abs() < 0.15, "{rate}, seed {seed}: {seen:?}");
                // 200 of 500 ms.
                assert!((seen.share - slower * 0.4).abs() < 0.07, "{rate}, seed {seed}: {seen:?}");
            }
        }
    }

    #[test]
    fn clean_loads_rarely_have_one_and_with_either_sign() {
        let (mut slower, mut faster, mut all) = (0, 0, 0);
        for rate in [2_000.0, 20_000.0, 100_000.0] {
            for connections in [4, 64] {
                for seed in 0..10 {
                    all += 1;
                    let seen = of(Loop::clean(connections, rate), seed);
                    slower += u32::from(seen.is_some_and(|one| one.slower > 0.0));
                    faster += u32::from(seen.is_some_and(|one| one.slower < 0.0));
                }
            }
        }
        assert!(10 * (slower + faster) <= all, "{slower} and {faster} of {all}");
    }

    #[test]
    fn where_replies_cost_the_generator_more_as_well_it_is_the_machine() {
        let (delay, delay_until) = (Nanos::from_micros(200), Nanos::from_millis(350));
        // About 20 % slower: 4 connections, each 260 us a round.
        let planted = Loop { delay, delay_until, ..Loop::clean(4, 20_000.0) };
        let visit = Visit { cut: CUT, ..Visit::default() };
        let mut load = planted.load(1);
        let with_cost = |load: &mut LoadRecord, first: u64| {
            for one in &mut load.intervals {
                let each = if one.end() <= delay_until { first } else { 10 };
                one.client_cpu = Nanos::from_micros(one.ok * each);
            }
            FirstPart::of(&visit, load)
        };
        let slower = with_cost(&mut load, 10).unwrap().slower;
        assert!((0.1..0.3).contains(&slower), "{slower}");
        let may_be = |load: &mut LoadRecord, first| {
            with_cost(load, first).map(|part| part.may_be_the_machine())
        };
        assert_eq!(may_be(&mut load, 11), Some(false));
        assert_eq!(may_be(&mut load, 13), Some(true));
        // A slow server at first, and later a machine that changes its speed.
        let planted = Loop { delay: Nanos::from_millis(5), hiccups_per_s: 0.0, ..planted };
        let mut load = planted.load(1);
        let half = load.completions.counts.len() * 3 / 4;
        load.completions.counts[half..].iter_mut().for_each(|count| *count = *count * 2 / 3);
        let rest = |load: &mut LoadRecord, busy_as_before: bool| {
            let late = Nanos(load.completions.bin.0 * half as u64);
            for one in &mut load.intervals {
                one.ok = if one.start >= late { one.ok * 2 / 3 } else { one.ok };
                let is_dearer = one.start >= late && busy_as_before;
                one.client_cpu = Nanos::from_micros(one.ok * if is_dearer { 15 } else { 10 });
            }
            let part = FirstPart::of(&visit, load).unwrap();
            (part.slower, part.rest_changes)
        };
        let (slower, changes) = rest(&mut load.clone(), true);
        assert!(slower > 0.9 && changes == 0.0, "{slower}, {changes}");
        let (_, changes) = rest(&mut load, false);
        assert!(changes > 0.2, "{changes}");
        let mut load = Loop { delay: Nanos::from_micros(200), ..planted }.load(1);
        load.plan.busy_poll = true;
        assert_eq!(may_be(&mut load, 13), Some(false), "a generator that polls is always busy");
    }

    #[test]
    fn what_an_open_loop_and_merged_loads_do_is_not_judged() {
        let planted = Loop {
            delay: Nanos::from_millis(5),
            delay_until: Nanos::from_millis(350),
            ..Loop::clean(4, 2e4)
        };
        let visit = Visit { cut: CUT, ..Visit::default() };
        let mut load = planted.load(1);
        assert!(FirstPart::of(&visit, &load).is_some());
        load.open_loop = Some(record::OpenLoop::default());
        assert_eq!(FirstPart::of(&visit, &load), None);
    }
}
