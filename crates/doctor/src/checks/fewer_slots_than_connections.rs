//! Owns the check for a server that turns connections away because all its workers are taken. Start reading at
//! [`look`].
//!
//! With 8 workers and 32 connections, 24 wait or are refused. Those that were let in have less competition, and
//! their figures are good. Where the others wait to the end, `unserved_connections` says so; here they are refused,
//! reset, or told 503.
//!
//! How many connections were served at a time follows from Little's law: the rate of good replies times their
//! mean time. It must be well below the number of connections, and be the number of workers that the server has,
//! or a limit in its configuration must be below it, or connections must have waited to be accepted.

use record::{Certainty, LoadRecord, Question, SettingValue, Severity, Visit};

use super::Check;
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "fewer_slots_than_connections",
    severity: Severity::Void,
    question: Question::DidItError,
    spares_like_pairs: false,
    title: "the server had fewer slots than there were connections, and turned the others away",
    meaning: "only those who got a slot are in the figures, and they had less competition",
    remedy: "give the server a slot for each connection (MaxRequestWorkers, max-thread, \
             worker_connections), or use fewer connections ([workload] connections; -c)",
    detection: "Refusals, resets, timeouts and 503, 1 % of the requests at least, while good replies filled \
             fewer than 90 % of the connections (rate times mean service time). It is confirmed if the server \
             has as many processes or threads as were filled, if a limit of its configuration is below the \
             number of connections, or if connections waited to be accepted",
    example: "Apache with MaxRequestWorkers 8 and ListenBacklog 1, asked on 32 connections",
    source: "https://httpd.apache.org/docs/2.4/mod/mpm_common.html#maxrequestworkers; listen(2)",
    needs: &[&counters::LISTENERS],
    look,
};

/// Requests that were turned away, as a share of all.
const TURNED_AWAY_MIN: f64 = 0.01;
/// Connections that were filled, as a share of all: a connection that connects again is never full.
const FILLED_MAX: f64 = 0.9;
/// How far the number of workers may be from that of filled connections.
const ALIKE: f64 = 0.25;
/// Settings that limit how many connections are served at a time.
const LIMITS: [&str; 4] =
    ["MaxRequestWorkers", "max-thread", "worker_connections", "server.max-connections"];
/// Where they wait to the end, another check says it from this share of the connections on.
const UNSERVED_MAX: f64 = 0.05;

#[derive(Debug, Default)]
struct Sums {
    requests: u64,
    turned_away: u64,
    unanswered: u64,
    connections: u64,
    /// Connections that good replies filled, summed over visits.
    filled: f64,
    /// Most processes or threads at the end of a visit.
    workers: Option<u32>,
    queued: bool,
    visits: u64,
}

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let mut sums = Sums::default();
    for (visit, load) in evidence.loads(contender) {
        if load.open_loop.is_some() {
            return None;
        }
        sums.add(visit, load);
    }
    let share = 1.0 - sums.filled / sums.connections.max(1) as f64;
    let turned_away = sums.turned_away as f64 / sums.requests.max(1) as f64;
    let is_other_check_s = sums.unanswered as f64 > UNSERVED_MAX * sums.connections as f64;
    if turned_away < TURNED_AWAY_MIN || share < 1.0 - FILLED_MAX || is_other_check_s {
        return None;
    }
    let each = sums.connections as f64 / sums.visits as f64;
    let filled = sums.filled / sums.visits as f64;
    let settings = &evidence.run.plan.contenders[contender].settings;
    let limit = LIMITS.into_iter().find_map(|name| match settings.get(name) {
        Some(SettingValue::Number(limit)) if (*limit as f64) < each => Some((name, *limit)),
        _ => None,
    });
    let workers = sums.workers.filter(|workers| {
        (f64::from(*workers) - filled).abs() <= (ALIKE * filled).max(1.0) && *workers > 1
    });
    let witness = match (limit, workers, sums.queued) {
        (Some((name, limit)), ..) => format!("; its {name} is {limit}"),
        (_, Some(workers), _) => format!("; it has {workers} processes or threads"),
        (_, _, true) => "; others waited to be accepted".to_owned(),
        _ => String::new(),
    };
    let evidence = format!(
        "{}: {} of {} ({}) were refused, reset, timed out or told 503, and good replies filled {filled:.0} of \
         {each:.0} connections{witness}",
        evidence.name(contender),
        words::grouped(sums.turned_away),
        words::count(sums.requests, "request"),
        words::percent(turned_away),
    );
    let certainty = if witness.is_empty() { Certainty::Suspected } else { Certainty::Confirmed };
    Some(Observation { certainty, share: Some(share), contenders: vec![contender], evidence })
}

impl Sums {
    fn add(&mut self, visit: &Visit, load: &LoadRecord) {
        let errors = &load.errors;
        let lost = errors.connect_refused
            + errors.connect_timeout
            + errors.reset_before_first_byte
            + errors.closed_before_first_byte
            + errors.timeout_waiting;
        self.turned_away += lost + load.status.get(&503).copied().unwrap_or(0);
        self.requests += load.requests.done;
        self.unanswered += load.requests.unanswered;
        self.connections += u64::from(load.connections);
        let mean = load.latencies.service.mean().map_or(0.0, units::Nanos::as_secs_f64);
        self.filled += (load.rate_per_s * mean).min(f64::from(load.connections));
        let workers = visit.server.map(|server| server.processes.max(server.threads));
        self.workers = self.workers.max(workers);
        let series = visit.surroundings.as_ref().map(|around| &around.series);
        let waited = |side: &str| {
            let course = series?.counters.get(&format!("{side}.listeners.queue_max"))?;
            let mut queue = course.first as i64;
            Some(course.steps.iter().any(|step| {
                queue += step;
                queue > 0
            }))
        };
        self.queued |= ["server", "both"].into_iter().any(|side| waited(side) == Some(true));
        self.visits += 1;
    }
}

#[cfg(test)]
mod tests {
    use record::{Course, RunRecord, Surroundings};

    use super::*;
    use crate::testdata;

    /// Eight visits of a and b, of 64 connections, of which b's good replies fill some, as given; some requests of
    /// 100 are told 503.
    fn with(filled: f64, percent: u64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let load = visit.load.as_mut().unwrap();
            let mean = load.latencies.service.mean().unwrap().as_secs_f64();
            load.rate_per_s = filled / mean;
            let told = load.requests.done * percent / 100;
            load.status.insert(503, told);
        }
        run
    }

    fn seen(run: &RunRecord) -> Vec<Observation> {
        look(&Evidence::of(run))
    }

    fn with_workers(mut run: RunRecord, workers: u32) -> RunRecord {
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            visit.server.as_mut().unwrap().threads = workers;
        }
        run
    }

    #[test]
    fn as_many_workers_as_filled_connections_confirm_it() {
        let seen = seen(&with_workers(with(16.0, 20), 17));
        assert_eq!(seen.len(), 1);
        let (certainty, who) = (seen[0].certainty, seen[0].contenders.as_slice());
        assert_eq!((certainty, who), (Certainty::Confirmed, &[1][..]));
        let text = "good replies filled 16 of 64 connections; it has 17 processes or threads";
        assert!(seen[0].evidence.ends_with(text), "{}", seen[0].evidence);
    }

    #[test]
    fn a_limit_in_the_configuration_and_a_queue_confirm_it_too() {
        let mut limited = with(16.0, 20);
        let settings = &mut limited.plan.contenders[1].settings;
        settings.insert("MaxRequestWorkers".to_owned(), SettingValue::Number(16));
        let said = seen(&limited);
        assert!(said[0].evidence.ends_with("; its MaxRequestWorkers is 16"), "{said:?}");
        assert_eq!(said[0].certainty, Certainty::Confirmed);
        let mut queued = with(16.0, 20);
        for visit in queued.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let mut around = Surroundings::default();
            let course = Course { first: 0, steps: vec![0, 9, -9] };
            around.series.counters.insert("server.listeners.queue_max".to_owned(), course);
            visit.surroundings = Some(Box::new(around));
        }
        assert_eq!(seen(&queued)[0].certainty, Certainty::Confirmed);
        assert_eq!(seen(&with(16.0, 20))[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn half_as_many_without_a_slot_are_half_of_the_share() {
        let share = |filled| seen(&with(filled, 20))[0].share.unwrap();
        assert!((share(48.0) / share(32.0) - 0.5).abs() < 0.05);
    }

    #[test]
    fn errors_of_a_server_that_serves_all_and_idle_connections_without_errors_are_silent() {
        assert_eq!(seen(&testdata::run(&["a", "b"], 8)), []);
        assert_eq!(seen(&with_workers(with(63.0, 20), 64)), []);
        assert_eq!(seen(&with_workers(with(16.0, 0), 16)), []);
    }

    #[test]
    fn connections_that_wait_to_the_end_are_another_check_s() {
        let mut run = with(16.0, 20);
        let of_b = run.visits.iter_mut().filter(|visit| visit.contender == 1);
        of_b.for_each(|visit| visit.load.as_mut().unwrap().requests.unanswered = 30);
        assert_eq!(seen(&run), []);
    }
}
