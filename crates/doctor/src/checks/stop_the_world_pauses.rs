//! Owns the check for pauses in which a server answers on no connection. Start reading at [`look`].
//!
//! A garbage collection that stops the world, a process that is stopped, a lock that everyone needs: for some
//! tens of milliseconds no reply comes, and then all. It is a property of the server, so the finding is a note:
//! it says how much of the time, and of the tail, is made by it.
//!
//! One stalled connection is none: all others go on. By chance all may be stalled at once. Then connections
//! spend far more time in long requests than the silences last; in a pause each connection spends just that.
//! A machine that stops everything pauses each contender alike, and leaves its traces in the counters.
//!
//! False alarms over simulated clean visits (the tests with 40 seeds): none in 160 runs of 16 visits, at
//! 2,000 and 20,000 replies/s, 4 and 64 connections, and hiccups of 1 to 10 ms five times a second.

use record::{Certainty, LoadRecord, Question, Severity, Visit};
use units::Nanos;

use super::Check;
use crate::timeline::{Silence, Timeline};
use crate::{Evidence, Observation, counters, waiting, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "stop_the_world_pauses",
    severity: Severity::Note,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "the server paused, and no connection got a reply",
    meaning: "the highest quantiles of latency are the length of these pauses, whatever a request costs",
    remedy: "keep the figures, for the pauses are real, and say that they are in them; for a JVM compare with \
             another collector or more memory (-Xmx, -Xlog:gc,safepoint names each pause)",
    detection: "Three silences or more of at least 20 ms and 10 median service times, with 8 connections or \
             more, in which each connection waited just as long. It is confirmed if other contenders pause \
             less than a third of that, or if nothing waited for a CPU in half of their time",
    example: "`joust serve --fixed 3361 --fault pause=every:500ms,for:50ms`",
    source: "https://docs.oracle.com/en/java/javase/21/gctuning/",
    needs: &[&counters::PRESSURE_CPU, &counters::QUOTA],
    look,
};

/// A pause is longer than what a scheduler does (10 ms), and than requests usually take.
const PAUSE_MIN: Nanos = Nanos::from_millis(20);
const SERVICE_TIMES_MIN: u64 = 10;
/// Once or twice is chance.
const PAUSES_MIN: usize = 3;
/// With fewer connections it is likely that all are stalled at once, each for itself.
const CONNECTIONS_MIN: u32 = 8;
/// Time that connections spent in long requests, over that of as many silences: 1 in a pause. Of stalls that
/// are independent it is s^(1/c - 1) for c connections that are all stalled for a share s of the time, so above
/// 1.8 for a half and eight.
const LONG_OVER_SILENT: std::ops::RangeInclusive<f64> = 0.5..=1.5;
const SILENT_MAX: f64 = 0.5;
/// Others pause alike from this part of a contender's share on: then it is the machine.
const OTHERS_MAX: f64 = 1.0 / 3.0;
/// Of a generator that was late by this much, silences say nothing of the server.
const GENERATOR_LAG_MAX: Nanos = Nanos::from_millis(10);

/// What the loads of a contender showed.
#[derive(Debug, Default)]
struct Pauses {
    lengths: Vec<Nanos>,
    /// Silent time, and all that was measured.
    silent_s: f64,
    measured_s: f64,
    /// Silent time and time in long requests, of all connections.
    silent_by_connection_s: f64,
    long_by_connection_s: f64,
    /// Silent time in which something waited for a CPU; `None` where that is not known of each load.
    waited_s: Option<f64>,
}

fn look(evidence: &Evidence) -> Vec<Observation> {
    let all: Vec<Pauses> = evidence.contenders().map(|one| pauses(evidence, one)).collect();
    all.iter().enumerate().filter_map(|(one, seen)| judge(evidence, one, seen, &all)).collect()
}

fn pauses(evidence: &Evidence, contender: usize) -> Pauses {
    let mut all = Pauses { waited_s: Some(0.0), ..Pauses::default() };
    for (visit, load) in evidence.loads(contender) {
        let Some(timeline) = Timeline::measured(visit, load) else { continue };
        all.measured_s += timeline.length().as_secs_f64();
        let (Some(service), true) = (visit.service_after_cut(), can_tell(visit, load)) else {
            continue;
        };
        let Some(typical) = service.quantile(0.5) else { continue };
        let least = PAUSE_MIN.max(Nanos(SERVICE_TIMES_MIN * typical.0));
        let silences: Vec<Silence> = timeline.silences(least);
        let silent: f64 = silences.iter().map(|one| one.length.as_secs_f64()).sum();
        let long = service.buckets().filter(|(span, _)| *span >= least);
        all.lengths.extend(silences.iter().map(|one| one.length));
        all.silent_s += silent;
        all.silent_by_connection_s += silent * f64::from(load.connections);
        all.long_by_connection_s +=
            long.map(|(span, times)| span.as_secs_f64() * times as f64).sum::<f64>();
        let series = visit.surroundings.as_ref().map(|around| &around.series);
        let waited = series.and_then(|series| waiting::in_silences(series, &timeline, &silences));
        all.waited_s = all.waited_s.zip(waited).map(|(sum, more)| sum + more);
    }
    all
}

/// Whether silences of a load can be those of its server.
fn can_tell(visit: &Visit, load: &LoadRecord) -> bool {
    let series = visit.surroundings.as_ref().map(|around| &around.series);
    let throttled = series.and_then(|series| series.change("quota.throttled")).unwrap_or(0);
    load.connections >= CONNECTIONS_MIN
        && load.client.lag_max < GENERATOR_LAG_MAX
        && throttled == 0
        && visit.disturbance().is_none()
}

impl Pauses {
    fn share(&self) -> f64 {
        if self.measured_s > 0.0 { self.silent_s / self.measured_s } else { 0.0 }
    }

    /// Whether each connection waited for as long as it was silent, and none much longer.
    fn are_of_all_connections(&self) -> bool {
        let ratio = self.long_by_connection_s / self.silent_by_connection_s.max(f64::MIN_POSITIVE);
        LONG_OVER_SILENT.contains(&ratio) && self.share() <= SILENT_MAX
    }
}

fn judge(
    evidence: &Evidence,
    contender: usize,
    seen: &Pauses,
    all: &[Pauses],
) -> Option<Observation> {
    if seen.lengths.len() < PAUSES_MIN || !seen.are_of_all_connections() {
        return None;
    }
    let others =
        all.iter().enumerate().filter(|(one, other)| *one != contender && other.measured_s > 0.0);
    let others: Vec<f64> = others.map(|(_, other)| other.share()).collect();
    let certainty = match stats::median(&others) {
        Some(share) if share >= OTHERS_MAX * seen.share() => return None,
        Some(_) => Certainty::Confirmed,
        // Alone: what waited for a CPU for less time than the pauses took does not explain them.
        None => match seen.waited_s {
            Some(waited) if waited >= seen.silent_s / 2.0 => return None,
            Some(_) => Certainty::Confirmed,
            None => Certainty::Suspected,
        },
    };
    let share = seen.share();
    let evidence = format!(
        "{}: {} of {} to {}, in which no connection got a reply: {} of the time",
        evidence.name(contender),
        words::count(seen.lengths.len() as u64, "pause"),
        seen.lengths.iter().min()?,
        seen.lengths.iter().max()?,
        words::percent(share),
    );
    Some(Observation { certainty, share: Some(share), contenders: vec![contender], evidence })
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

    fn pausing(every_ms: u64, for_ms: u64) -> Loop {
        let pause = (Nanos::from_millis(every_ms), Nanos::from_millis(for_ms));
        Loop { pause, ..Loop::clean(64, 20_000.0) }
    }

    fn beside(planted: Loop, seed: u64) -> RunRecord {
        let clean = Loop { pause: (Nanos::ZERO, Nanos::ZERO), stalled: 0.0, ..planted };
        Loop::run(&[clean, planted], &NAMES, 8, seed)
    }

    #[test]
    fn pauses_of_one_server_are_confirmed_with_their_share() {
        for seed in 0..3 {
            let seen = seen(&beside(pausing(200, 40), seed));
            assert_eq!(seen.len(), 1, "seed {seed}");
            let (certainty, who) = (seen[0].certainty, seen[0].contenders.as_slice());
            assert_eq!((certainty, who), (Certainty::Confirmed, &[1][..]));
            assert!((seen[0].share.unwrap() - 0.2).abs() < 0.04, "{seen:?}");
        }
    }

    #[test]
    fn half_as_long_is_half_of_the_share() {
        let share = |millis| seen(&beside(pausing(250, millis), 2))[0].share.unwrap();
        let (whole, half) = (share(100), share(50));
        assert!((half / whole - 0.5).abs() < 0.1, "{half} of {whole}");
    }

    #[test]
    fn clean_servers_are_silent_also_where_hiccups_are_long() {
        for rate in [2_000.0, 20_000.0] {
            for connections in [4, 64] {
                for seed in 0..2 {
                    let clean = Loop::clean(connections, rate);
                    let run = Loop::run(&[clean, clean], &NAMES, 8, seed);
                    assert_eq!(seen(&run), [], "{rate}/s, {connections}, seed {seed}");
                }
            }
        }
        let rough = Loop { hiccups_per_s: 30.0, ..Loop::clean(64, 20_000.0) };
        assert_eq!(seen(&Loop::run(&[rough, rough], &NAMES, 8, 1)), []);
    }

    #[test]
    fn a_machine_that_pauses_everyone_is_no_server_that_does() {
        let both = pausing(200, 40);
        assert_eq!(seen(&Loop::run(&[both, both], &NAMES, 8, 1)), []);
    }

    #[test]
    fn stalls_of_single_connections_are_no_pause() {
        for connections in [8, 16, 64] {
            for stalled in [0.003, 0.01] {
                let stalls = Loop { stalled, ..Loop::clean(connections, 50_000.0) };
                let long = Loop { length: Nanos::from_secs(4), ..stalls };
                assert_eq!(seen(&beside(long, 1)), [], "{connections}, {stalled}");
            }
        }
    }

    #[test]
    fn one_load_alone_needs_a_machine_on_which_nothing_waited() {
        let of = |waited_ms: Option<i64>| {
            let planted = Loop { length: Nanos::from_secs(3), ..pausing(500, 50) };
            let mut run = Loop::run(&[planted], &["a"], 1, 4);
            if let Some(millis) = waited_ms {
                let mut around = Surroundings::default();
                around.series.sources.insert("pressure.cpu".to_owned());
                let course = Course { first: 0, steps: vec![millis * 1000] };
                around.series.counters.insert("pressure.cpu.some_us".to_owned(), course);
                run.visits[0].surroundings = Some(Box::new(around));
            }
            seen(&run).first().map(|one| one.certainty)
        };
        assert_eq!(of(Some(30)), Some(Certainty::Confirmed));
        assert_eq!(of(None), Some(Certainty::Suspected));
        assert_eq!(of(Some(400)), None);
    }

    #[test]
    fn a_generator_that_was_late_itself_says_nothing_of_a_server() {
        let mut run = beside(pausing(200, 40), 1);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.client.lag_max = Nanos::from_millis(30);
        }
        assert_eq!(seen(&run), []);
    }
}
