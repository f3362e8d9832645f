//! Owns the check that the server still answered when the load ended. Start reading at [`silence`].
//!
//! A server that dies or hangs fails few requests: in a closed loop each connection has one at a time, and waits
//! before it tries again. The share of failures hides it, and the rate is only a little lower. The
//! silence at the end does not hide it. Two witnesses are asked for: no reply, and requests that failed or were
//! never answered.

use record::{Certainty, LoadRecord, Question, Severity};
use units::Nanos;

use super::Check;
use crate::{Evidence, Observation, words};

/// The server no longer answered when the load ended.
pub const ITEM: Check = Check {
    name: "silent_at_end",
    severity: Severity::Void,
    question: Question::DidItEvenHappen,
    spares_like_pairs: false,
    title: "the server no longer answered when the load ended",
    meaning: "the server crashed or hung, and the rate includes that time",
    remedy: "look into the server's log and `dmesg` (a crash, the OOM killer, a limit of files or processes), \
             then run again",
    detection: "No reply came in the last 5 % of the load or more, that is longer than an interval and \
             twice the slowest reply, and than the timeout if requests timed out; and requests failed or were \
             not answered",
    example: "`joust serve --fixed 3361 --fault pause=at:2s,for:10s`, or kill the server in the midst of a load",
    source: "https://docs.kernel.org/admin-guide/sysctl/vm.html (oom_kill)",
    needs: &[],
    look,
};

/// Share of the window without a reply at its end from which the server counts as gone.
const SILENT_SHARE_MIN: f64 = 0.05;

/// How long no reply had come when the window ended, where that is too long for chance.
pub(super) fn silence(load: &LoadRecord) -> Option<Nanos> {
    let last = load.intervals.iter().rfind(|one| one.ok > 0 || !one.status.is_empty())?;
    let slowest = load.latencies.service.max().unwrap_or_default();
    // How much later than its timeout a reply would have come is not known.
    let timed_out = match load.errors.timeout_waiting + load.errors.timeout_reading {
        0 => Nanos::ZERO,
        _ => load.plan.timeout,
    };
    let silence = Nanos::from_secs_f64(load.seconds).saturating_sub(last.end());
    // Replies that take long may be further apart than intervals are long.
    let is_long = silence.as_secs_f64() > SILENT_SHARE_MIN * load.seconds
        && silence > last.length.max(slowest.saturating_add(slowest)).max(timed_out);
    (is_long && load.requests.failed + load.requests.unanswered > 0).then_some(silence)
}

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let loads = || evidence.loads(contender).map(|(_, load)| load);
    let silent: Vec<(Nanos, &LoadRecord)> =
        loads().filter_map(|load| Some((silence(load)?, load))).collect();
    let (longest, load) = silent.iter().copied().max_by_key(|(silence, _)| *silence)?;
    let whole: f64 = loads().map(|load| load.seconds).sum();
    let sum: f64 = silent.iter().map(|(silence, _)| silence.as_secs_f64()).sum();
    let visits = match (silent.len(), loads().count()) {
        (_, 1) => String::new(),
        (n_silent, n_all) => {
            format!(" (in {n_silent} of {})", words::count(n_all as u64, "visit"))
        }
    };
    let evidence = format!(
        "{}: no reply came in the last {longest} of {}{visits}",
        evidence.name(contender),
        Nanos::from_secs_f64(load.seconds),
    );
    Some(Observation {
        share: Some(sum / whole),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use record::Interval;

    use super::*;
    use crate::testdata;

    /// Three seconds of load, in which the server was dead after a given number of intervals of 100 ms.
    fn dead_after(n_intervals: u64) -> LoadRecord {
        let mut load = testdata::load();
        load.seconds = 3.0;
        let interval = |n: u64| {
            let start = Nanos::from_millis(100 * n);
            let mut interval = Interval::new(start, Nanos::from_millis(100));
            interval.ok = if n < n_intervals { 5000 } else { 0 };
            interval
        };
        load.intervals = (0..30).map(interval).collect();
        (load.requests.failed, load.errors.connect_refused) = (40, 40);
        load.requests.done += 40;
        load
    }

    #[test]
    fn a_server_that_died_is_told_by_its_silence_not_by_the_share_of_failures() {
        let mut run = testdata::run(&["a", "b"], 2);
        assert_eq!(look(&Evidence::of(&run)), []);
        run.visits[0].load = Some(dead_after(10));
        let seen = look(&Evidence::of(&run));
        assert_eq!((seen.len(), seen[0].contenders.as_slice()), (1, &[0][..]));
        let text = "a: no reply came in the last 2s of 3s (in 1 of 2 visits)";
        assert_eq!(seen[0].evidence, text);
        let found = crate::examine_load(&dead_after(10));
        let found = found.iter().find(|one| one.check == ITEM.name).unwrap();
        assert!(found.evidence.ends_with("in the last 2s of 3s"), "{}", found.evidence);
        for n_intervals in [29, 30] {
            assert_eq!(silence(&dead_after(n_intervals)), None);
        }
    }

    #[test]
    fn the_share_follows_the_dose() {
        let share = |n_intervals| {
            let mut run = testdata::run(&["a"], 1);
            run.visits[0].load = Some(dead_after(n_intervals));
            look(&Evidence::of(&run))[0].share.unwrap()
        };
        assert!((share(10) - 2.0 / 3.0).abs() < 1e-9);
        assert!((share(20) - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn replies_that_are_wrong_are_no_silence() {
        let mut load = dead_after(10);
        for interval in &mut load.intervals {
            interval.status = [(503, 40)].into();
        }
        assert_eq!(silence(&load), None);
    }

    #[test]
    fn a_server_that_hangs_is_silent_for_longer_than_the_timeout_once() {
        let mut load = dead_after(10);
        load.errors.timeout_waiting = 40;
        load.plan.timeout = Nanos::from_millis(1_900);
        assert_eq!(silence(&load), Some(Nanos::from_secs(2)));
        load.plan.timeout = Nanos::from_millis(2_100);
        assert_eq!(silence(&load), None, "each reply may have been about to come");
    }

    #[test]
    fn slow_replies_without_a_failure_are_no_silence() {
        let mut load = dead_after(10);
        (load.requests.failed, load.errors.connect_refused) = (0, 0);
        assert_eq!(silence(&load), None);
        let mut slow = dead_after(10);
        slow.latencies.service.record(Nanos::from_millis(1100));
        assert_eq!(silence(&slow), None, "replies of a second may be two apart");
    }
}
