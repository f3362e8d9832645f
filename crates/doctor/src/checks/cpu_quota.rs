//! Owns the check that no quota of CPU time stopped server or generator. Start reading at [`look`].
//!
//! A cgroup with a quota (`cpu.max`, a container's limit) may use a fixed CPU time in each period of 100 ms. What
//! it does in less it does at full speed, then it stands still until the period ends. Throughput is then the quota's,
//! and latency has a comb of 100 ms. The kernel counts periods in which it was stopped, and the time.
//!
//! The pattern is the share of periods; the second witness is the time that was lost, or the comb: silences between
//! replies that come again every 100 ms. A count without lost time is what a kernel shows that charged a slice
//! a moment late, so it is no more than a suspicion. Counted are the cgroups of the process that measures. The
//! server's own lies below one of them, and has no quota by itself.

use record::{Certainty, Question, Severity, Visit};
use units::Nanos;

use super::Check;
use crate::timeline::Timeline;
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "cpu_quota",
    severity: Severity::Void,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "a quota of CPU time stopped server or generator",
    meaning: "the rate is that of the quota, and requests wait up to 100 ms for the next period",
    remedy: "run it without a quota: `docker run` without --cpus, a unit without CPUQuota=, `echo max > \
             /sys/fs/cgroup/NAME/cpu.max`; or give both sides fewer CPUs by cpuset",
    detection: "In more than 0.5 % of the periods the kernel stopped us (nr_throttled of cpu.stat). It is confirmed \
             by the time that was lost (throttled_usec) or by silences between replies every 100 ms",
    example: "`systemd-run --user --scope -p CPUQuota=20% joust load http://127.0.0.1:8080/`",
    source: "https://docs.kernel.org/scheduler/sched-bwc.html; cgroups(7)",
    needs: &[&counters::QUOTA],
    look,
};

/// Share of periods that may be throttled: a scheduler that charges a slice late stops one in some hundred of a
/// group that never comes near its quota.
const THROTTLED_MAX: f64 = 0.005;
/// The kernel's period, unless somebody set another one, and how far off a comb of it may be seen.
const PERIOD: Nanos = Nanos::from_millis(100);
/// See [`PERIOD`].
const PERIOD_OFF_MAX: Nanos = Nanos::from_millis(3);
/// Least strength of the comb: 1 is a pattern that repeats exactly.
const COMB_MIN: f64 = 0.5;
/// Least share of time without a reply, and least replies in the rest, a ms each: rare replies are silent by chance.
const SILENT_MIN: f64 = 0.1;
/// See [`SILENT_MIN`].
const REPLIES_MIN: f64 = 1.0;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

/// Sums over the visits of a contender.
#[derive(Default)]
struct Throttled {
    periods: i64,
    throttled: i64,
    lost: Nanos,
    wall: Nanos,
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let mut sum = Throttled::default();
    let mut has_comb = false;
    for visit in evidence.run.measured(contender) {
        add(&mut sum, visit);
        has_comb |= self::has_comb(visit);
    }
    let share = sum.throttled as f64 / sum.periods.max(1) as f64;
    if sum.periods == 0 || share <= THROTTLED_MAX {
        return None;
    }
    let lost = sum.lost.as_secs_f64() / sum.wall.as_secs_f64().max(f64::MIN_POSITIVE);
    let evidence = format!(
        "{}: the quota stopped us in {} of {}, {} of the time{}",
        evidence.name(contender),
        words::grouped(sum.throttled as u64),
        words::count(sum.periods as u64, "period"),
        words::percent(lost),
        if has_comb { "; replies fell silent every 100 ms" } else { "" },
    );
    let is_seen_twice = sum.lost > Nanos::ZERO || has_comb;
    Some(Observation {
        share: Some(if sum.lost > Nanos::ZERO { lost.min(1.0) } else { share }),
        certainty: if is_seen_twice { Certainty::Confirmed } else { Certainty::Suspected },
        contenders: vec![contender],
        evidence,
    })
}

/// A visit whose counters could not be read, or that no quota applied to, adds nothing.
fn add(sum: &mut Throttled, visit: &Visit) {
    let Some(around) = &visit.surroundings else { return };
    let change = |counter| around.series.change(counter);
    let (Some(periods), Some(throttled)) = (change("quota.periods"), change("quota.throttled"))
    else {
        return;
    };
    if periods <= 0 {
        return;
    }
    sum.periods += periods;
    sum.throttled += throttled.max(0);
    let lost = change("quota.throttled_us").unwrap_or(0);
    sum.lost += Nanos::from_micros(u64::try_from(lost).unwrap_or(0));
    sum.wall += around.series.length();
}

/// Whether silences come again every 100 ms.
fn has_comb(visit: &Visit) -> bool {
    let timeline = visit.load.as_ref().and_then(|load| Timeline::measured(visit, load));
    let Some(timeline) = timeline else { return false };
    let silent = timeline.empty_share();
    let talking_ms = (1.0 - silent) * timeline.length().as_millis_f64();
    let is_clear = silent >= SILENT_MIN && timeline.replies() as f64 >= REPLIES_MIN * talking_ms;
    let is_period = |length: Nanos| length.0.abs_diff(PERIOD.0) <= PERIOD_OFF_MAX.0;
    let period = timeline.period().filter(|_| is_clear);
    period.is_some_and(|period| is_period(period.length) && period.strength >= COMB_MIN)
}

#[cfg(test)]
mod tests {
    use record::{Completions, Course, RunRecord, Surroundings};

    use super::*;
    use crate::testdata;

    /// Visits of contender 0 in which `of_ten` of 10 periods were stopped, for `lost_ms` each.
    fn throttled(of_ten: i64, lost_ms: i64) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let course = |step| Course { first: 7, steps: vec![0, step] };
            let mut around = Surroundings::default();
            around.series.at = vec![Nanos::ZERO, Nanos::from_secs(1)];
            around.series.sources.insert("quota".to_owned());
            for (name, step) in
                [("periods", 10), ("throttled", of_ten), ("throttled_us", of_ten * lost_ms * 1000)]
            {
                around.series.counters.insert(format!("quota.{name}"), course(step));
            }
            visit.surroundings = Some(Box::new(around));
        }
        run
    }

    #[test]
    fn no_quota_one_that_never_stopped_us_and_one_that_is_not_known_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 8))), []);
        assert_eq!(look(&Evidence::of(&throttled(0, 0))), []);
        let mut none = throttled(0, 0);
        none.visits.iter_mut().filter_map(|visit| visit.surroundings.as_mut()).for_each(|around| {
            around.series.counters.clear();
        });
        assert_eq!(look(&Evidence::of(&none)), []);
    }

    #[test]
    fn a_quota_fires_for_its_contender_and_its_share_follows_the_dose() {
        let shares = [80, 40].map(|lost_ms| {
            let seen = look(&Evidence::of(&throttled(10, lost_ms)));
            assert_eq!(seen.len(), 1);
            assert_eq!(
                (seen[0].certainty, seen[0].contenders.as_slice()),
                (Certainty::Confirmed, &[0][..])
            );
            seen[0].share.unwrap()
        });
        assert!((shares[0] - 0.8).abs() < 1e-9 && (shares[1] - 0.4).abs() < 1e-9, "{shares:?}");
        let text = look(&Evidence::of(&throttled(10, 80)))[0].evidence.clone();
        assert_eq!(text, "a: the quota stopped us in 80 of 80 periods, 80 % of the time");
    }

    /// Replies of each ms of visits in which a quota counted, without lost time.
    fn with_replies(counts: impl Fn(u32) -> u32) -> Vec<Observation> {
        let mut run = throttled(10, 0);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.completions.bin = Completions::BIN;
            load.completions.counts = (0..900).map(&counts).collect();
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn a_count_alone_is_a_suspicion_until_replies_show_the_comb() {
        let seen = with_replies(|ms| if ms % 100 < 20 { 50 } else { 0 });
        assert_eq!(seen[0].certainty, Certainty::Confirmed);
        assert!(seen[0].evidence.ends_with("replies fell silent every 100 ms"), "{seen:?}");
        for counts in
            [|_| 10, |ms| u32::from(ms % 50 == 0), |ms| if ms % 130 < 30 { 50 } else { 0 }]
        {
            assert_eq!(with_replies(counts)[0].certainty, Certainty::Suspected);
        }
    }
}
