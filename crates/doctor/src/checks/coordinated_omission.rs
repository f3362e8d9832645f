//! Owns the check that waiting is not hidden by who stops asking. Start reading at [`look`].
//!
//! A server that stops for a second meets a closed loop that stops too: each connection waits with one request, and
//! the thousands that users would have sent in that second are never sent. So the pause is one slow request on each
//! connection, below p99 (Tene's coordinated omission). What those requests would have waited is computed: due at the
//! mean rate outside the silences, each waits until the silence ends, at least. Nothing measured is changed.
//!
//! An open loop sends what is due as soon as a connection is free. Its response time holds that wait, its service
//! time does not.
//!
//! A generator without a CPU makes the same silences. They are the server's if nothing waited for a CPU as long as
//! they lasted (PSI), and the hypervisor took none.

use record::{Certainty, GeneratorLimit, LoadRecord, Question, Severity, Visit};
use stats::Histogram;
use units::Nanos;

use super::Check;
use crate::counters::{PRESSURE_CPU, STAT};
use crate::timeline::{Silence, Timeline};
use crate::{Evidence, Observation, waiting, window, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "coordinated_omission",
    severity: Severity::Void,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "latencies leave out the requests that waited while the server was silent",
    meaning: "users go on asking while a server is silent; the quantiles here are those of a client that stops too",
    remedy: "measure in an open loop at the rate that users make (--rate) and read the response time; or give the \
             length of the pauses beside the quantiles",
    detection: "Closed loop: no reply on any connection for more than 50 ms and 20 mean gaps, and p99 of requests that \
                are due at the mean rate is 1.5 times p99 or more. Confirmed where there were two silences (or one of \
                500 ms) and nothing waited for a CPU meanwhile. Open loop: p99 or p90 of response times is 1.5 times \
                that of service times, and 2 ms more, by waiting for a connection",
    example: "`joust serve --fixed 3361 --fault pause=every:10s,for:1s` and `joust load -d 30s`",
    source: "Tene, How NOT to Measure Latency, 2013; wrk2, README",
    needs: &[&PRESSURE_CPU, &STAT],
    look,
};

/// Shortest silence: a scheduler makes shorter ones.
const SILENCE_MIN: Nanos = Nanos::from_millis(50);
/// Mean gaps between replies in it, so that a slow server's own distance is none. By chance (e to the power of minus
/// 20 a gap) it is seen once in 500 million.
const GAPS_MIN: f64 = 20.0;
/// Ratio of the quantiles from which a reader is misled.
const RATIO_MIN: f64 = 1.5;
const QUANTILE: f64 = 0.99;
/// In an open loop p90 too: a pause that p99 of service times has, too, may be ten times as many requests.
const OPEN_QUANTILES: [f64; 2] = [0.99, 0.9];
/// A silence as long as this is no scheduler's.
const LONG_SILENCE: Nanos = Nanos::from_millis(500);
/// Share of the silences in which something may have waited for a CPU, or the hypervisor had it.
const WAITED_MAX: f64 = 0.5;
/// Wait in an open loop below which a reader is not misled: connecting and waking up take as long.
const QUEUE_MIN: Nanos = Nanos::from_millis(2);

fn look(evidence: &Evidence) -> Vec<Observation> {
    let look_at = |contender| closed(evidence, contender).or_else(|| open(evidence, contender));
    evidence.contenders().filter_map(look_at).collect()
}

/// All loads of a contender, with their silences.
#[derive(Default)]
struct Silences {
    service: Histogram,
    /// What requests due in them would have waited.
    omitted: Histogram,
    all: Vec<Nanos>,
    /// Time that was measured.
    length: Nanos,
    /// Time of the silences in which something waited for a CPU or the hypervisor had it; `None` where it could not
    /// be read.
    waited: Option<f64>,
}

fn closed(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let mut seen = Silences { waited: Some(0.0), ..Silences::default() };
    let loads = evidence.loads(contender).filter(|(_, load)| window::is_closed_loop(load));
    for (visit, load) in loads {
        seen.add(visit, load);
    }
    let silent: f64 = seen.all.iter().map(|silence| silence.as_secs_f64()).sum();
    let p99 = seen.service.quantile(QUANTILE)?;
    let mut due = seen.service.clone();
    due.merge(&seen.omitted);
    let due_p99 = due.quantile(QUANTILE)?;
    if seen.all.is_empty() || due_p99.as_secs_f64() < RATIO_MIN * p99.as_secs_f64() {
        return None;
    }
    let longest = seen.all.iter().copied().max()?;
    let repeats = seen.all.len() > 1 || longest >= LONG_SILENCE;
    let is_calm = seen.waited.is_some_and(|waited| waited <= WAITED_MAX * silent);
    let share = silent / seen.length.as_secs_f64();
    let evidence = format!(
        "{}: {} without any reply, up to {longest} long, {} of the time; p99 is {p99}, and would be {due_p99} or more \
         for requests due at the mean rate{}",
        evidence.name(contender),
        words::count(seen.all.len() as u64, "silence"),
        words::percent(share),
        if is_calm { "; nothing waited for a CPU as long" } else { "" },
    );
    let certainty = match repeats && is_calm {
        true => Certainty::Confirmed,
        false => Certainty::Suspected,
    };
    // One short silence may be anything.
    repeats.then_some(Observation {
        share: Some(share),
        certainty,
        contenders: vec![contender],
        evidence,
    })
}

impl Silences {
    fn add(&mut self, visit: &Visit, load: &LoadRecord) {
        let (Some(timeline), Some(sum)) =
            (Timeline::measured(visit, load), window::sum(visit, load))
        else {
            return;
        };
        self.length += timeline.length();
        self.service.merge(&sum.service);
        let gap = timeline.length().as_secs_f64() / timeline.replies().max(1) as f64;
        let at_least = SILENCE_MIN.max(Nanos::from_secs_f64(GAPS_MIN * gap));
        let end = timeline.from + timeline.length();
        let is_inside = |one: &Silence| one.from > timeline.from && one.from + one.length < end;
        let mut silences = timeline.silences(at_least);
        silences.retain(is_inside);
        let series = visit.surroundings.as_ref().map(|around| &around.series);
        let waited = series.and_then(|series| waiting::in_silences(series, &timeline, &silences));
        self.waited = self.waited.zip(waited).map(|(sum, more)| sum + more);
        let silences: Vec<Nanos> = silences.iter().map(|one| one.length).collect();
        let silent: f64 = silences.iter().map(|one| one.as_secs_f64()).sum();
        let talking = timeline.length().as_secs_f64() - silent;
        let per_s = sum.service.count() as f64 / talking.max(1e-3);
        silences.iter().for_each(|&silence| self.omit(silence, per_s));
        self.all.extend(silences);
    }

    /// Requests due evenly in a silence: each waits for its end, at least. (What is then served in which order is not
    /// known; replies in batches come at once.)
    fn omit(&mut self, silence: Nanos, per_s: f64) {
        let number = (per_s * silence.as_secs_f64()).round() as u64;
        for n in 0..number {
            let left = silence.as_secs_f64() * (n as f64 + 0.5) / number as f64;
            self.omitted.record(Nanos::from_secs_f64(left));
        }
    }
}

fn open(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (mut service, mut response, mut queue) =
        (Histogram::default(), Histogram::default(), Histogram::default());
    for (visit, load) in evidence.loads(contender).filter(|(_, load)| load.open_loop.is_some()) {
        let is_late = |limit: &GeneratorLimit| matches!(limit, GeneratorLimit::Late { .. });
        if load.generator_limits().iter().any(is_late) {
            return None;
        }
        // Connecting is part of the first requests; without a cut the first interval has them.
        let first = load.intervals.first().map_or(Nanos::ZERO, record::Interval::end);
        for interval in window::measured(visit, load).filter(|one| one.start >= first) {
            service.merge(&interval.service);
            response.merge(&interval.response);
        }
        queue.merge(&load.latencies.queue);
    }
    let (percent, served, answered) =
        OPEN_QUANTILES.into_iter().find_map(|q| waits_at(q, &service, &response, &queue))?;
    let waited =
        queue.buckets().filter(|(span, _)| *span >= QUEUE_MIN).map(|(_, n)| n).sum::<u64>();
    let share = waited as f64 / queue.count() as f64;
    let evidence = format!(
        "{}: p{percent} of response times is {answered}, of service times {served}; {} of the requests waited \
         {QUEUE_MIN} or longer for a connection",
        evidence.name(contender),
        words::percent(share),
    );
    Some(Observation {
        share: Some(share),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

/// In percent, service time and response time at a quantile, where the one hides what the other shows.
fn waits_at(
    q: f64,
    service: &Histogram,
    response: &Histogram,
    queue: &Histogram,
) -> Option<(f64, Nanos, Nanos)> {
    let (served, answered) = (service.quantile(q)?, response.quantile(q)?);
    let more = answered.saturating_sub(served);
    let ratio = answered.as_secs_f64() / served.as_secs_f64().max(1e-9);
    // What was waited for must be a connection.
    let is_queue = 2 * queue.quantile(q)?.0 >= more.0;
    (ratio >= RATIO_MIN && more >= QUEUE_MIN && is_queue).then_some((q * 100.0, served, answered))
}

#[cfg(test)]
mod tests {
    use record::{Course, MachineSeries, OpenLoop, RunRecord, Surroundings};

    use super::*;
    use crate::simulated::Loop;
    use crate::testdata;

    /// Puts in each visit of a run that something waited for a CPU for a given number of milliseconds.
    fn waited_for(run: &mut RunRecord, millis: i64) {
        for visit in &mut run.visits {
            let course = Course { first: 0, steps: vec![millis * 1_000] };
            let series = MachineSeries {
                sources: ["pressure.cpu".to_owned()].into(),
                counters: [("pressure.cpu.some_us".to_owned(), course)].into(),
                ..MachineSeries::default()
            };
            visit.surroundings = Some(Box::new(Surroundings { series, ..Surroundings::default() }));
        }
    }

    /// Loads of ten seconds in which no byte leaves for a given time every two seconds.
    fn paused(millis: u64) -> RunRecord {
        let each = Loop {
            length: Nanos::from_secs(10),
            hiccups_per_s: 0.0,
            pause: (Nanos::from_secs(2), Nanos::from_millis(millis)),
            ..Loop::clean(16, 5_000.0)
        };
        let mut run = Loop::run(
            &[each, Loop { pause: (Nanos::ZERO, Nanos::ZERO), ..each }],
            &["a", "b"],
            1,
            7,
        );
        waited_for(&mut run, 40);
        run
    }

    #[test]
    fn clean_loops_are_silent_whatever_the_machine_does() {
        for seed in 0..20 {
            for (connections, rate) in [(1, 200.0), (64, 2_000.0), (64, 20_000.0)] {
                let run = Loop::run(&[Loop::clean(connections, rate); 2], &["a", "b"], 4, seed);
                assert_eq!(look(&Evidence::of(&run)), [], "{seed} {connections} {rate}");
            }
        }
    }

    #[test]
    fn pauses_that_a_closed_loop_hides_are_told_with_the_p99_that_they_make() {
        let run = paused(200);
        let seen = look(&Evidence::of(&run));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[0][..]), "{seen:?}");
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        let full = seen[0].share.unwrap();
        assert!((full - 0.1).abs() < 0.01, "{full}");
        let half = look(&Evidence::of(&paused(100)))[0].share.unwrap();
        assert!((half / full - 0.5).abs() < 0.1, "{half} of {full}");
        // Due evenly, a tenth of the requests waits up to 200 ms: one in a hundred more than 180 ms.
        let says = |text: &str| seen[0].evidence.contains(text);
        assert!(says("would be 18") && says("nothing waited for a CPU"), "{}", seen[0].evidence);
    }

    #[test]
    fn silences_in_which_something_waited_for_a_cpu_are_no_proof() {
        let mut run = paused(200);
        waited_for(&mut run, 900);
        assert_eq!(look(&Evidence::of(&run))[0].certainty, Certainty::Suspected);
        run.visits.iter_mut().for_each(|visit| visit.surroundings = None);
        assert_eq!(look(&Evidence::of(&run))[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn replies_in_batches_hide_nothing() {
        let batches = Loop {
            batch: Nanos::from_millis(100),
            length: Nanos::from_secs(3),
            ..Loop::clean(64, 20_000.0)
        };
        let run = Loop::run(&[batches; 2], &["a", "b"], 1, 3);
        assert_eq!(
            look(&Evidence::of(&run)),
            [],
            "every request waits for its batch, and is seen to"
        );
    }

    /// An open loop in which some of 1,000 requests, as given, waited 100 ms for a connection.
    fn queued(number: u64) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 4);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let load = visit.load.as_mut().unwrap();
            load.open_loop = Some(OpenLoop::default());
            for n in 0..1_000 {
                let waited = Nanos::from_micros(if n < number { 100_000 } else { 50 });
                load.latencies.queue.record(waited);
                let interval = &mut load.intervals[1 + n as usize % 8];
                interval.service.record(Nanos::from_micros(1_280));
                interval.response.record(Nanos::from_micros(1_280) + waited);
            }
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn an_open_loop_says_how_many_waited_for_a_connection() {
        assert_eq!(queued(0), []);
        let seen = queued(200);
        assert_eq!(
            (seen.len(), seen[0].certainty, seen[0].share),
            (1, Certainty::Confirmed, Some(0.2))
        );
        assert_eq!(queued(100)[0].share, Some(0.1));
        assert!(seen[0].evidence.contains("20 % of the requests waited 2ms or longer"), "{seen:?}");
    }
}
