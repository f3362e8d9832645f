//! Owns a model of a closed loop for the tests of checks: a server that answers in turn, on a machine whose
//! scheduler stops it now and then, and faults that are planted in it. Start reading at [`Loop`].
//!
//! It is made of the same laws for every seed: service times of a gamma law, hiccups as a Poisson process.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use record::{
    Completions, Interval, LatencyMillis, LoadPlan, LoadRecord, LoadStop, RequestCounts, RunRecord,
};
use units::Nanos;

use crate::noise::{Law, Noise};
use crate::testdata;

const MICROSECOND: f64 = 1_000.0;
const MILLISECOND: f64 = 1_000_000.0;
const SECOND: f64 = 1_000_000_000.0;
/// Time that the client takes to ask again.
const THINKING_NS: f64 = 10.0 * MICROSECOND;

/// A closed loop, and what is planted in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loop {
    pub(crate) connections: u32,
    /// Replies a second of the undisturbed server.
    pub(crate) rate_per_s: f64,
    /// How long it is loaded; the first 150 ms are before the cut of a visit.
    pub(crate) length: Nanos,
    /// Hiccups of the machine a second, each of 1 to 10 ms.
    pub(crate) hiccups_per_s: f64,
    /// Replies leave at multiples of this alone; zero: at once.
    pub(crate) batch: Nanos,
    /// From when to when they do so.
    pub(crate) batch_until: Nanos,
    /// No byte leaves for the second of the two every first of the two; zero: never.
    pub(crate) pause: (Nanos, Nanos),
    /// Each reply takes longer by this, in parallel, before `delay_until`.
    pub(crate) delay: Nanos,
    pub(crate) delay_until: Nanos,
    /// Share of the replies that are held for 200 ms.
    pub(crate) stalled: f64,
}

/// How busy the generator is in a run, of all visits alike.
const CLIENT_BUSY: f64 = 0.1;
pub(crate) const CUT: Nanos = Nanos::from_millis(150);
const NEVER: Nanos = Nanos::MAX;

impl Loop {
    /// As long as a visit of the study `quick`, with nothing planted.
    pub(crate) fn clean(connections: u32, rate_per_s: f64) -> Self {
        Self {
            connections,
            rate_per_s,
            length: Nanos::from_millis(650),
            hiccups_per_s: 5.0,
            batch: Nanos::ZERO,
            batch_until: NEVER,
            pause: (Nanos::ZERO, Nanos::ZERO),
            delay: Nanos::ZERO,
            delay_until: NEVER,
            stalled: 0.0,
        }
    }

    /// One load of it.
    pub(crate) fn load(&self, seed: u64) -> LoadRecord {
        let mut noise = Noise::new(seed);
        let mut recorded = Recorded::new(self.length);
        let hiccups = self.hiccups(&mut noise);
        // Of a batch and a pause: where in its period the load begins.
        let phase = uniform(&mut noise) * 1e10;
        let mut asked: BinaryHeap<Reverse<u64>> = (0..self.connections)
            .map(|at| Reverse((f64::from(at) * 5.0 * MICROSECOND) as u64))
            .collect();
        let (mut free, mut hiccup) = (0.0_f64, 0);
        while let Some(Reverse(sent)) = asked.pop() {
            if sent >= self.length.0 {
                continue;
            }
            let mut begun = free.max(sent as f64);
            while hiccup < hiccups.len() && hiccups[hiccup].1 <= begun {
                hiccup += 1;
            }
            if let Some(&(from, until)) = hiccups.get(hiccup).filter(|one| one.0 <= begun) {
                begun = begun.max(until).max(from);
            }
            // Gamma of shape 4: a coefficient of variation of a half.
            let work: f64 = (0..4).map(|_| -noise_exponential(&mut noise)).sum::<f64>() / 4.0;
            free = begun + work * SECOND / self.rate_per_s;
            let left = self.leaves(free, phase, &mut noise);
            recorded.reply(Nanos(sent), Nanos(left as u64));
            asked.push(Reverse((left + THINKING_NS) as u64));
        }
        recorded.finish(self)
    }

    /// A run of `names`, of which the loads of each contender are made by its loop.
    pub(crate) fn run(loops: &[Self], names: &[&str], blocks: u32, seed: u64) -> RunRecord {
        let mut run = testdata::run(names, blocks);
        for (n, visit) in run.visits.iter_mut().enumerate() {
            let load = loops[visit.contender].load(seed * 1009 + n as u64);
            visit.rate_per_s = Some(load.rate_per_s);
            (visit.cut, visit.load) = (CUT, Some(load));
        }
        for contender in 0..names.len() {
            testdata::limit(&mut run, contender, CLIENT_BUSY, 0.2);
        }
        // A generator is busy with replies, and waits between them.
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            let cpu = CLIENT_BUSY
                * load.intervals.iter().map(|one| one.length.as_secs_f64()).sum::<f64>();
            for one in &mut load.intervals {
                one.client_cpu =
                    Nanos::from_secs_f64(cpu * one.ok as f64 / load.requests.ok.max(1) as f64);
            }
        }
        run
    }

    fn leaves(&self, ready: f64, phase: f64, noise: &mut Noise) -> f64 {
        let mut at = ready;
        if at < self.delay_until.0 as f64 {
            at += self.delay.0 as f64;
        }
        if self.stalled > 0.0 && uniform(noise) < self.stalled {
            at += 200.0 * MILLISECOND;
        }
        if self.batch > Nanos::ZERO && at < self.batch_until.0 as f64 {
            let period = self.batch.0 as f64;
            at = ((at + phase) / period).ceil() * period - phase;
        }
        if self.pause.0 > Nanos::ZERO {
            let (every, length) = (self.pause.0.0 as f64, self.pause.1.0 as f64);
            let into = (at + phase) % every;
            at += if into < length { length - into } else { 0.0 };
        }
        at
    }

    fn hiccups(&self, noise: &mut Noise) -> Vec<(f64, f64)> {
        let mut all = Vec::new();
        let mut at = 0.0;
        while at < self.length.0 as f64 && self.hiccups_per_s > 0.0 {
            at += -noise_exponential(noise) * SECOND / self.hiccups_per_s;
            let length = (1.0 + 9.0 * uniform(noise)) * MILLISECOND;
            all.push((at, at + length));
            at += length;
        }
        all
    }
}

/// Uniform, above 0 and below 1.
fn uniform(noise: &mut Noise) -> f64 {
    (noise.of(Law::Uniform) / 12f64.sqrt() + 0.5).clamp(1e-12, 1.0 - 1e-12)
}

/// Minus an exponential law of mean 1.
fn noise_exponential(noise: &mut Noise) -> f64 {
    noise.of(Law::Skewed) - 1.0
}

/// What a load recorded so far.
struct Recorded {
    completions: Completions,
    intervals: Vec<Interval>,
    length: Nanos,
    done: u64,
}

impl Recorded {
    const INTERVAL: Nanos = Nanos::from_millis(50);

    fn new(length: Nanos) -> Self {
        let number = length.0.div_ceil(Self::INTERVAL.0);
        let interval = |n| Interval::new(Nanos(n * Self::INTERVAL.0), Self::INTERVAL);
        let completions = Completions::new();
        Self { completions, intervals: (0..number).map(interval).collect(), length, done: 0 }
    }

    fn reply(&mut self, sent: Nanos, left: Nanos) {
        if left >= self.length {
            return;
        }
        self.done += 1;
        self.completions.record(left);
        let interval = &mut self.intervals[(left.0 / Self::INTERVAL.0) as usize];
        interval.ok += 1;
        interval.started += 1;
        interval.service.record(left.saturating_sub(sent));
        interval.response.record(left.saturating_sub(sent));
    }

    fn finish(self, of: &Loop) -> LoadRecord {
        let plan = LoadPlan {
            connections: of.connections,
            cpus: vec![0],
            stop: LoadStop { requests: None, duration: Some(self.length) },
            timeout: Nanos::from_secs(5),
            interval: Self::INTERVAL,
            ..LoadPlan::get(([127, 0, 0, 1], 8080).into(), "/")
        };
        let mut load =
            LoadRecord { connects: u64::from(of.connections), ..LoadRecord::empty(plan) };
        self.intervals.iter().for_each(|one| load.latencies.service.merge(&one.service));
        load.seconds = self.length.as_secs_f64();
        load.requests =
            RequestCounts { started: self.done, done: self.done, ok: self.done, ..load.requests };
        load.rate_per_s = self.done as f64 / load.seconds;
        load.service_ms = LatencyMillis::from(&load.latencies.service);
        load.client = testdata::load().client;
        (load.completions, load.intervals) = (self.completions, self.intervals);
        // A run has hundreds of them.
        load.intervals.iter_mut().for_each(|one| {
            one.service.pack();
            one.response.pack();
        });
        load.latencies.service.pack();
        load
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Timeline;

    #[test]
    fn a_clean_loop_answers_at_its_rate_and_a_planted_one_in_bursts() {
        for rate in [2_000.0, 20_000.0, 100_000.0] {
            let calm = Loop { hiccups_per_s: 0.0, ..Loop::clean(64, rate) };
            let load = calm.load(1);
            assert!((load.rate_per_s / rate - 1.0).abs() < 0.1, "{rate}: {}", load.rate_per_s);
            // Little's law.
            let mean = load.latencies.service.mean().unwrap().as_secs_f64();
            let busy = load.rate_per_s * (mean + THINKING_NS / SECOND);
            assert!((busy / 64.0 - 1.0).abs() < 0.1, "{rate}: {busy}");
        }
        let batches = Loop { batch: Nanos::from_millis(50), ..Loop::clean(64, 20_000.0) }.load(1);
        let timeline = Timeline::between(&batches, CUT, Nanos::from_millis(650)).unwrap();
        assert_eq!(timeline.replies(), 640);
        assert_eq!(timeline.period().unwrap().length, Nanos::from_millis(50));
    }
}
