//! Owns the check for silences while something waited for a disk. Start reading at [`look`].
//!
//! An access log that is flushed, or an fsync for every hundred lines, stops a server for as long as the disk takes.
//! The kernel counts the time in which something waited for a disk (PSI), five times a second. If hardly any
//! silence lies outside of the readings in which that happened, the disk is the likely cause. It may be another
//! program's: a compiler takes CPU and disk at once. So it is suspected, unless other contenders on the same
//! machine have no such silences.

use record::{Certainty, LoadRecord, Question, Severity, Visit};
use units::Nanos;

use super::Check;
use crate::timeline::{Timeline, end};
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "log_stalls",
    severity: Severity::Note,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "the server was silent while something waited for a disk",
    meaning: "the highest quantiles of latency are those of a disk, and depend on how logs are written",
    remedy: "give all contenders the same policy for logs (Apache: BufferedLogs On; nginx: access_log ... \
             buffer=64k), write them to memory (a tmpfs), or turn them off for all",
    detection: "Three silences or more of 5 ms and 10 median service times, nine tenths of their time in \
             readings in which something waited for a disk (PSI), which are at most half of all readings. It \
             is confirmed if other contenders have less than a third of such silences",
    example: "an access log with fsync after each 100 lines on a slow disk",
    source: "https://docs.kernel.org/accounting/psi.html; \
             https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#bufferedlogs",
    needs: &[&counters::PRESSURE_IO],
    look,
};

const SILENCE_MIN: Nanos = Nanos::from_millis(5);
const SERVICE_TIMES_MIN: u64 = 10;
const SILENCES_MIN: usize = 3;
/// With fewer connections one stalled request is a silence.
const CONNECTIONS_MIN: u32 = 4;
/// Of a reading: how long something waited for a disk.
const WAITED_MIN: Nanos = Nanos::from_millis(5);
const READINGS_MIN: usize = 10;
/// Share of the readings in which something waited: with more, silences lie in them by chance.
const WAITING_MAX: f64 = 0.5;
const INSIDE_MIN: f64 = 0.9;
/// Time that was waited for a disk over the time of the silences.
const WAITED_OVER_SILENT_MIN: f64 = 0.5;
const OTHERS_MAX: f64 = 1.0 / 3.0;

#[derive(Debug, Default)]
struct Sums {
    silences: usize,
    readings: usize,
    /// Readings in which something waited.
    waiting: usize,
    silent_s: f64,
    /// Of it: inside those readings.
    inside_s: f64,
    waited_s: f64,
    measured_s: f64,
}

fn look(evidence: &Evidence) -> Vec<Observation> {
    let all: Vec<Sums> = evidence.contenders().map(|one| sums(evidence, one)).collect();
    all.iter().enumerate().filter_map(|(one, seen)| judge(evidence, one, seen, &all)).collect()
}

fn sums(evidence: &Evidence, contender: usize) -> Sums {
    let mut sums = Sums::default();
    for (visit, load) in evidence.loads(contender) {
        if load.connections >= CONNECTIONS_MIN && load.open_loop.is_none() {
            sums.add(visit, load);
        }
    }
    sums
}

impl Sums {
    /// Nothing where counters could not be read.
    fn add(&mut self, visit: &Visit, load: &LoadRecord) -> Option<()> {
        const COUNTER: &str = "pressure.io.some_us";
        let series = &visit.surroundings.as_ref()?.series;
        series.change(COUNTER)?;
        let steps = series.counters.get(COUNTER).map_or(&[][..], |course| &course.steps);
        let timeline = Timeline::between(load, visit.cut, end(load))?;
        let typical = load.latencies.service.quantile(0.5)?;
        let silences = timeline.silences(SILENCE_MIN.max(Nanos(SERVICE_TIMES_MIN * typical.0)));
        for (at, edge) in series.at.windows(2).enumerate() {
            let waited = Nanos::from_micros(steps.get(at).copied().unwrap_or(0).max(0) as u64);
            self.readings += 1;
            self.waited_s += waited.as_secs_f64();
            if waited >= WAITED_MIN {
                self.waiting += 1;
                let inside = silences.iter().map(|one| one.overlap(edge[0], edge[1]));
                self.inside_s += inside.sum::<f64>();
            }
        }
        self.silences += silences.len();
        self.silent_s += silences.iter().map(|one| one.length.as_secs_f64()).sum::<f64>();
        self.measured_s += timeline.length().as_secs_f64();
        Some(())
    }

    fn share(&self) -> f64 {
        if self.measured_s > 0.0 { self.silent_s / self.measured_s } else { 0.0 }
    }
}

fn judge(evidence: &Evidence, contender: usize, seen: &Sums, all: &[Sums]) -> Option<Observation> {
    let is_rare = seen.waiting as f64 <= WAITING_MAX * seen.readings as f64;
    let is_inside = seen.inside_s >= INSIDE_MIN * seen.silent_s;
    let is_enough = seen.waited_s >= WAITED_OVER_SILENT_MIN * seen.silent_s;
    let is_counted = seen.silences >= SILENCES_MIN && seen.readings >= READINGS_MIN;
    if !(is_counted && is_rare && is_inside && is_enough) {
        return None;
    }
    let share = seen.share();
    let others =
        all.iter().enumerate().filter(|(one, other)| *one != contender && other.readings > 0);
    let others: Vec<f64> = others.map(|(_, other)| other.share()).collect();
    let certainty = match stats::median(&others) {
        Some(other) if other >= OTHERS_MAX * share => return None,
        Some(_) => Certainty::Confirmed,
        None => Certainty::Suspected,
    };
    let evidence = format!(
        "{}: {} took {} of the time, {} of it while something waited for a disk, which it did in {} of {}",
        evidence.name(contender),
        words::count(seen.silences as u64, "silence"),
        words::percent(share),
        words::percent((seen.inside_s / seen.silent_s).min(1.0)),
        seen.waiting,
        words::count(seen.readings as u64, "reading"),
    );
    Some(Observation { certainty, share: Some(share), contenders: vec![contender], evidence })
}

#[cfg(test)]
mod tests {
    use record::{Completions, Course, RunRecord, Surroundings};

    use super::*;
    use crate::testdata;

    /// Eight visits of a and b with readings each 200 ms. In the third reading b is silent for a given number of bins,
    /// and something waits for a disk for a given number of milliseconds in the readings named.
    fn with(silent: usize, waits: &[(usize, i64)]) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in &mut run.visits {
            let mut around = Surroundings::default();
            around.series.at = (0..=4).map(|n| Nanos::from_millis(200 * n)).collect();
            around.series.sources.insert("pressure.io".to_owned());
            let mut steps = vec![0; 4];
            waits.iter().for_each(|(at, millis)| steps[*at] = millis * 1000);
            let course = Course { first: 1, steps };
            around.series.counters.insert("pressure.io.some_us".to_owned(), course);
            visit.surroundings = Some(Box::new(around));
            let load = visit.load.as_mut().unwrap();
            let mut counts = vec![50; 900];
            if visit.contender == 1 {
                counts[450..450 + silent].fill(0);
            }
            load.completions = Completions { bin: Nanos::from_millis(1), counts };
        }
        run
    }

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    #[test]
    fn silences_while_something_waited_for_a_disk_fire_and_half_as_long_is_half_the_share() {
        let whole = seen(&with(40, &[(2, 60)]));
        assert_eq!(whole.len(), 1);
        let (certainty, who) = (whole[0].certainty, whole[0].contenders.as_slice());
        assert_eq!((certainty, who), (Certainty::Confirmed, &[1][..]));
        assert!(whole[0].evidence.starts_with("b: 8 silences took 5 % of the time"), "{whole:?}");
        let half = seen(&with(20, &[(2, 60)]));
        assert!((half[0].share.unwrap() / whole[0].share.unwrap() - 0.5).abs() < 0.01);
    }

    #[test]
    fn silences_at_other_times_a_disk_that_is_always_busy_and_a_calm_one_are_silent() {
        assert_eq!(seen(&with(40, &[(1, 60)])), []);
        assert_eq!(seen(&with(40, &[(0, 60), (1, 60), (2, 60)])), []);
        assert_eq!(seen(&with(40, &[])), []);
        assert_eq!(seen(&with(0, &[(2, 60)])), []);
        assert_eq!(seen(&testdata::run(&["a", "b"], 8)), []);
    }

    #[test]
    fn alone_it_is_suspected() {
        let mut run = with(40, &[(2, 60)]);
        run.visits.retain(|visit| visit.contender == 1);
        assert_eq!(seen(&run)[0].certainty, Certainty::Suspected);
    }
}
