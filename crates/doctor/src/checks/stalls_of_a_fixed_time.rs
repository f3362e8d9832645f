//! Owns the check for requests that the server itself holds for one fixed time. Start reading at [`look`].
//!
//! A lock with a timeout, a poll interval, a retry after 200 ms, a name that is looked up: a few requests
//! wait for a timer in the server, and a mean, or a p99, tells of the timer. 200 ms in 1 % of the requests
//! are 2 ms of the mean: as much as the whole service time of many servers.
//!
//! The pattern is a narrow mode far behind the main one (see `modes`), spread over the load. The second witness is
//! what it is not:
//! - TCP's timers: no segment was sent again, and no acknowledgement delayed behind the first byte;
//! - a pause of everything: other requests were answered while most of these waited;
//! - a queue: those that wait are not bound to some connections, and CPUs were idle, or mean and standard
//!   deviation both tell of the share that was counted, as no queue does.
//!
//! Where one of these speaks against it, or nobody knows of the last two, it is silent. Where TCP's counters are not
//! known, or a quota stopped anything, it is a suspicion. So it is with one connection, which cannot tell a pause,
//! on idle CPUs. A load of several kinds of requests is not looked at: one kind may take long.

use record::{Certainty, LoadRecord, Question, Severity, Visit};
use stats::Histogram;
use units::Nanos;

use super::Check;
use crate::modes::{self, Mode};
use crate::timeline::{self, Timeline};
use crate::transport::{DelayedAcks, Retransmissions, Times};
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "stalls_of_a_fixed_time",
    severity: Severity::Void,
    question: Question::DoesItMatter,
    spares_like_pairs: false,
    title: "some requests waited for one fixed time in the server",
    meaning: "mean and tail tell of a timer in the server, not of the work for a request",
    remedy: "look for a timer of that length in the server (lock timeout, poll interval, retry, name lookup; \
             strace -f -T shows it), and compare medians until it is gone",
    detection: "A narrow mode of service times at 20 ms or more and 4 medians or more (p < 1e-6), of 0.02 to 25 % of the \
             requests, spread over the load. It is confirmed where no segment was sent again, no acknowledgement \
             delayed, other requests were answered meanwhile, and CPUs were idle or mean and standard deviation \
             tell of the same share",
    example: "`joust serve --fixed 3361 --fault stall=1%,200ms`, and `joust load -c 20`",
    source: "https://www.joyent.com/blog/visualizations-for-outliers-and-multi-modal-latency",
    needs: &[&counters::NETSTAT, &counters::SNMP, &counters::STAT, &counters::QUOTA],
    look,
};

/// Shortest time that is told from a scheduler's slices and a timer's ticks.
const TIME_MIN: Nanos = Nanos::from_millis(20);
/// Minimum share of the requests: fewer move neither a mean nor p99.9.
const SHARE_MIN: f64 = 0.000_2;
/// Maximum share: beyond it the mode is a kind of reply, not a stall.
const SHARE_MAX: f64 = 0.25;
/// Of the stalls, the part that segments sent again may be: they are another check's.
const RETRANSMITTED_MAX: f64 = 0.1;
/// Of the stalls, the part that one interval may hold: more is one event, a cold start above all.
const INTERVAL_MAX: f64 = 0.5;
/// How far the share by the standard deviation may be from the counted one, as a ratio.
const SD_APART_MAX: f64 = 1.3;
/// The same by the mean. Slices of a busy scheduler, 4 and 8 ms in 3 % of the requests, made 1.4 of it, and 1.03 by the
/// standard deviation, where short waits count less.
const MEAN_APART_MAX: f64 = 1.6;
/// Share of the CPUs' time from which a queue is not ruled out.
const BUSY_MAX: f64 = 0.85;
/// Minimum number of logged stalls that tell of other connections.
const LOGGED_MIN: usize = 5;
/// Minimum number of logged requests that tell of a connection.
const OF_CONNECTION_MIN: usize = 4;
/// Share of a connection's requests that stall, from which it is bound to them.
const BOUND_MIN: f64 = 0.8;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    if evidence.loads(contender).any(|(_, load)| load.plan.n_requests > 1) {
        return None;
    }
    let times = Times::of(evidence, contender);
    let is_stall =
        |mode: &Mode| mode.middle >= TIME_MIN && (SHARE_MIN..=SHARE_MAX).contains(&mode.share);
    let mode = modes::far(&times.service).into_iter().find(is_stall)?;
    let again = Retransmissions::of(evidence, contender);
    let is_tcp = again
        .is_some_and(|again| again.segments as f64 >= RETRANSMITTED_MAX * mode.count as f64)
        || DelayedAcks::of(evidence, contender, &times).is_some_and(|acks| acks.are(&mode));
    if is_tcp || !is_spread(evidence, contender, &mode) {
        return None;
    }
    let stalls = Logged::of(evidence, contender, &mode);
    let idle = idle(evidence, contender);
    let is_idle = idle.is_some_and(|idle| idle > 1.0 - BUSY_MAX);
    let others_served = stalls.others_served(evidence, contender, &mode);
    let is_no_pause = others_served.unwrap_or(has_one_connection(evidence, contender) && is_idle);
    let is_no_queue = is_idle || is_told_by_moments(&times.service, &mode);
    if !is_no_pause || !is_no_queue || stalls.are_bound_to_connections() {
        return None;
    }
    let is_no_timer_of_tcp = again.is_some_and(|again| again.server_known);
    let is_confirmed =
        is_no_timer_of_tcp && others_served == Some(true) && !was_throttled(evidence, contender);
    let evidence = sentence(evidence, contender, &times, &mode, again, idle);
    Some(Observation {
        certainty: if is_confirmed { Certainty::Confirmed } else { Certainty::Suspected },
        share: Some(mode.share),
        contenders: vec![contender],
        evidence,
    })
}

fn sentence(
    evidence: &Evidence,
    contender: usize,
    times: &Times,
    mode: &Mode,
    again: Option<Retransmissions>,
    idle: Option<f64>,
) -> String {
    let before = modes::count_between(&times.first_byte, mode.from, Nanos(mode.until.0 + 1));
    let phase = if 2 * before >= mode.count { "before" } else { "behind" };
    let tcp = match again {
        Some(again) if again.server_known => {
            format!("TCP sent {} again", words::count(again.segments, "segment"))
        }
        Some(_) | None => "what the server's TCP sent again is not known".to_owned(),
    };
    let idle = idle.map_or(String::new(), |idle| {
        format!(", and CPUs were idle {} of the time", words::percent(idle))
    });
    format!(
        "{}: {} of the requests ({}) took {} to {}, half of all at most {}; they waited {phase} the first byte; \
         {tcp}{idle}",
        evidence.name(contender),
        words::percent(mode.share),
        words::grouped(mode.count),
        mode.from,
        mode.until,
        times.service.quantile_unchecked(0.5),
    )
}

/// Whether stalls came all over the load: in three intervals of all visits or more, and no more than half of them in
/// one.
fn is_spread(evidence: &Evidence, contender: usize, mode: &Mode) -> bool {
    let (mut intervals, mut most, mut all) = (0, 0, 0);
    for interval in evidence.loads(contender).flat_map(|(_, load)| &load.intervals) {
        let here = modes::count_between(&interval.service, mode.from, Nanos(mode.until.0 + 1));
        intervals += usize::from(here > 0);
        most = most.max(here);
        all += here;
    }
    intervals >= 3 && most as f64 <= INTERVAL_MAX * all as f64
}

/// Whether mean and standard deviation both tell of the share that was counted.
fn is_told_by_moments(service: &Histogram, mode: &Mode) -> bool {
    let is_near =
        |share: f64, apart: f64| (mode.share / apart..=mode.share * apart).contains(&share);
    modes::shares_by_moments(service, mode).is_some_and(|(by_mean, by_sd)| {
        is_near(by_mean, MEAN_APART_MAX) && is_near(by_sd, SD_APART_MAX)
    })
}

/// Whether a quota of CPU time stopped anything in a visit: it holds requests for up to 100 ms.
fn was_throttled(evidence: &Evidence, contender: usize) -> bool {
    evidence.loads(contender).any(|(visit, _)| {
        let series = visit.surroundings.as_ref().map(|around| &around.series);
        series.and_then(|series| series.change("quota.throttled")).is_some_and(|times| times > 0)
    })
}

/// Part of the time that CPUs were idle: the server's own where its use is known, else the machine's. Median
/// over visits.
fn idle(evidence: &Evidence, contender: usize) -> Option<f64> {
    let visits = evidence.loads(contender).filter_map(|(visit, _)| match visit.server {
        Some(server) => Some(1.0 - server.busy()),
        None => machine_idle(visit),
    });
    stats::median(&visits.collect::<Vec<_>>())
}

fn machine_idle(visit: &Visit) -> Option<f64> {
    let series = &visit.surroundings.as_ref()?.series;
    let (mut idle, mut all) = (0_i64, 0_i64);
    for (name, course) in series.counters.iter().filter(|(name, _)| name.starts_with("cpu.")) {
        let ticks: i64 = course.steps.iter().sum();
        all += ticks;
        idle += if name.ends_with(".idle_ticks") { ticks } else { 0 };
    }
    (all > 0).then(|| idle as f64 / all as f64)
}

/// Whether nothing else can be answered while a request waits.
fn has_one_connection(evidence: &Evidence, contender: usize) -> bool {
    evidence.loads(contender).all(|(_, load)| load.connections < 2)
}

/// What the raw logs of all visits say of the stalls in them.
#[derive(Debug, Default)]
struct Logged {
    /// Stalls in the log.
    stalls: usize,
    /// Of them: those while which another request ended.
    others_ended: usize,
    /// Of them: those on connections of which enough requests are logged.
    known: usize,
    /// Of these: those on connections of which nearly all stall.
    bound: usize,
}

impl Logged {
    fn of(evidence: &Evidence, contender: usize, mode: &Mode) -> Self {
        let mut sum = Self::default();
        for (_, load) in evidence.loads(contender) {
            sum.add(load, mode);
        }
        sum
    }

    fn add(&mut self, load: &LoadRecord, mode: &Mode) {
        let is_in = |span: Nanos| (mode.from..=mode.until).contains(&span);
        let ok = load.raw.iter().filter(|one| one.outcome == record::Outcome::Ok);
        let mut by_connection: std::collections::BTreeMap<u32, (usize, usize)> = Default::default();
        for sample in ok {
            let of_connection = by_connection.entry(sample.conn).or_default();
            of_connection.1 += 1;
            if is_in(sample.done.saturating_sub(sample.sent)) {
                of_connection.0 += 1;
                self.stalls += 1;
                self.others_ended += usize::from(ended_within(load, sample.sent, sample.done));
            }
        }
        for (stalled, all) in
            by_connection.into_values().filter(|(_, all)| *all >= OF_CONNECTION_MIN)
        {
            self.known += stalled;
            let is_bound = stalled as f64 >= BOUND_MIN * all as f64;
            self.bound += if is_bound { stalled } else { 0 };
        }
    }

    /// Whether most stalls are on connections that do nothing else, as those of an overloaded worker.
    fn are_bound_to_connections(&self) -> bool {
        self.known >= LOGGED_MIN && 2 * self.bound > self.known
    }

    /// Whether other requests were answered while these waited; `None`: it is not known. With one connection
    /// nothing else can be answered. Where too few stalls are in the logs, silences of their length are counted:
    /// each explains a stall on every connection.
    fn others_served(&self, evidence: &Evidence, contender: usize, mode: &Mode) -> Option<bool> {
        let loads = || evidence.loads(contender).map(|(_, load)| load);
        if loads().any(|load| load.connections < 2 || load.completions.bin == Nanos::ZERO) {
            return None;
        }
        if self.stalls >= LOGGED_MIN {
            return Some(2 * self.others_ended >= self.stalls);
        }
        let silent = loads().map(|load| {
            let whole = Timeline::between(load, Nanos::ZERO, timeline::end(load));
            let long = Nanos(mode.middle.0 / 10 * 7);
            let silences = whole.map_or(0, |whole| whole.silences(long).len());
            silences as u64 * u64::from(load.connections)
        });
        Some(2 * silent.sum::<u64>() < mode.count)
    }
}

/// Whether a reply was complete between two instants, two bins from either: what was on its way when a pause began
/// is no answer in it.
fn ended_within(load: &LoadRecord, from: Nanos, until: Nanos) -> bool {
    let aside = Nanos(2 * load.completions.bin.0);
    let until = until.saturating_sub(aside);
    load.completions.between(from + aside, until).iter().any(|count| *count > 0)
}

#[cfg(test)]
#[path = "stalls_of_a_fixed_time/tests.rs"]
mod tests;
