//! Owns the note that server and generator ran on the same CPUs. Start reading at [`look`].
//!
//! On a machine that both share, each request costs its CPUs the sum of both, so a faster server looks slower than
//! it is, and the more so the cheaper it is beside the generator. `generator_limit` says what that makes of the
//! rate; this note says that it is so.

use record::{Certainty, LoadRecord, MachineSeries, Question, ServerAddress, Severity};

use super::Check;
use crate::counters::{PRESSURE_CPU, STAT};
use crate::{Evidence, Observation, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "shared_cpus",
    severity: Severity::Note,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "server and generator shared their CPUs",
    meaning: "each takes CPU time from the other, so that rate and latency are those of both together",
    remedy: "give each CPUs of its own (--cpus for the generator, taskset for the server; `joust run` does both on a \
             machine with two), or compare the server's CPU time per request",
    detection: "Their sets of CPUs overlap, and those were idle for less than 5 % of the time. A load alone knows \
                the server's CPUs only if both run on this machine: there all CPUs must be that busy, and something \
                must have waited for a CPU in 20 % of the time",
    example: "`joust load` and a server with as many threads as CPUs on one machine",
    source: "taskset(1); Documentation/accounting/psi.rst",
    needs: &[&STAT, &PRESSURE_CPU],
    look,
};

/// Share of idle time below which there is no room left.
const IDLE_MAX: f64 = 0.05;
/// Share of the time in which something waited for a CPU, from which two compete. On CPUs of their own both wait
/// for replies, not for a CPU.
const WAITED_MIN: f64 = 0.20;

fn look(evidence: &Evidence) -> Vec<Observation> {
    let layout = &evidence.run.layout;
    let common: Vec<u32> =
        layout.server.iter().copied().filter(|cpu| layout.client.contains(cpu)).collect();
    let is_alone = layout.server.is_empty() && layout.client.is_empty();
    let look_at = |contender| match (is_alone, common.as_slice()) {
        (true, _) => load_alone(evidence, contender),
        (false, []) => None,
        (false, cpus) => in_a_run(evidence, contender, cpus),
    };
    evidence.contenders().filter_map(look_at).collect()
}

/// Sets that overlap.
fn in_a_run(evidence: &Evidence, contender: usize, cpus: &[u32]) -> Option<Observation> {
    let series = evidence.loads(contender).filter_map(|(visit, _)| visit.surroundings.as_ref());
    let idle: Vec<f64> = series.filter_map(|around| idle(&around.series, Some(cpus))).collect();
    let number = cpus.iter().map(u32::to_string).collect::<Vec<_>>();
    let plural = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    let (certainty, was_idle) = match stats::median(&idle) {
        Some(idle) if idle >= IDLE_MAX => return None,
        Some(idle) => {
            (Certainty::Confirmed, format!(", idle for {} of the time", words::percent(idle)))
        }
        None => (Certainty::Suspected, String::new()),
    };
    // Without a load there is nothing to share.
    evidence.loads(contender).next()?;
    Some(Observation {
        share: None,
        certainty,
        contenders: vec![contender],
        evidence: format!(
            "{}: server and generator shared {plural} {}{was_idle}",
            evidence.name(contender),
            words::list(&number)
        ),
    })
}

/// A server on this machine, on CPUs that are not known.
fn load_alone(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let (visit, load) = evidence.loads(contender).next()?;
    let series = &visit.surroundings.as_ref()?.series;
    let idle = idle(series, None)?;
    let waited =
        series.change("pressure.cpu.some_us")? as f64 / 1e6 / series.length().as_secs_f64();
    if !is_here(load) || idle >= IDLE_MAX || waited < WAITED_MIN {
        return None;
    }
    Some(Observation {
        share: Some(waited.min(1.0)),
        certainty: Certainty::Confirmed,
        contenders: vec![contender],
        evidence: format!(
            "{}: it runs on this machine, whose CPUs were idle for {} of the time; something waited for a CPU in {}",
            evidence.name(contender),
            words::percent(idle),
            words::percent(waited.min(1.0)),
        ),
    })
}

fn is_here(load: &LoadRecord) -> bool {
    load.plan.origins.iter().all(|origin| match &origin.place {
        ServerAddress::Inet(address) => address.ip().is_loopback(),
        ServerAddress::Unix(_) => true,
    })
}

/// Share of their time in which CPUs (all of them without a list) had nothing to do; `None` where that was not read.
fn idle(series: &MachineSeries, cpus: Option<&[u32]>) -> Option<f64> {
    let (mut idle, mut all) = (0, 0);
    for (name, course) in &series.counters {
        let Some((cpu, what)) = name.strip_prefix("cpu.").and_then(|rest| rest.split_once('.'))
        else {
            continue;
        };
        let is_asked = cpus.is_none_or(|cpus| cpus.iter().any(|one| one.to_string() == cpu));
        let ticks: i64 = course.steps.iter().sum();
        if is_asked && what.ends_with("_ticks") {
            all += ticks;
            idle += if matches!(what, "idle_ticks" | "iowait_ticks") { ticks } else { 0 };
        }
    }
    (all > 0).then(|| idle as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use record::{Course, CpuLayout, RunRecord, Surroundings};
    use units::Nanos;

    use super::*;
    use crate::testdata;

    /// What was read in a second on one CPU that was idle for some of 100 ticks and waited for some, as given.
    fn series(idle: i64, waited_ms: i64) -> MachineSeries {
        let course = |step| Course { first: 0, steps: vec![step] };
        MachineSeries {
            at: vec![Nanos::ZERO, Nanos::from_secs(1)],
            sources: ["cpu.0".to_owned(), "pressure.cpu".to_owned()].into(),
            counters: [
                ("cpu.0.idle_ticks".to_owned(), course(idle)),
                ("cpu.0.user_ticks".to_owned(), course(100 - idle)),
                ("pressure.cpu.some_us".to_owned(), course(waited_ms * 1_000)),
            ]
            .into(),
            cost: Nanos::ZERO,
        }
    }

    fn with(server: &[u32], client: &[u32], idle: i64) -> RunRecord {
        let mut run = testdata::run(&["a"], 4);
        run.layout = CpuLayout { server: server.to_vec(), client: client.to_vec(), shared: false };
        for visit in &mut run.visits {
            let series = series(idle, 0);
            visit.surroundings = Some(Box::new(Surroundings { series, ..Surroundings::default() }));
        }
        run
    }

    #[test]
    fn cpus_of_their_own_and_those_with_room_are_silent() {
        assert_eq!(look(&Evidence::of(&testdata::run(&["a"], 4))), []);
        assert_eq!(look(&Evidence::of(&with(&[1], &[0], 0))), []);
        assert_eq!(look(&Evidence::of(&with(&[0], &[0], 40))), []);
    }

    #[test]
    fn sets_that_overlap_are_noted_with_what_was_idle() {
        let seen = look(&Evidence::of(&with(&[0, 1], &[0], 2)));
        assert_eq!((seen.len(), seen[0].certainty), (1, Certainty::Confirmed));
        assert_eq!(
            seen[0].evidence,
            "a: server and generator shared CPU 0, idle for 2 % of the time"
        );
        let mut unread = with(&[0], &[0], 2);
        unread.visits.iter_mut().for_each(|visit| visit.surroundings = None);
        assert_eq!(look(&Evidence::of(&unread))[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn a_load_alone_must_see_both_no_room_and_waiting() {
        let found = |idle, waited_ms| {
            let mut load = testdata::load();
            load.machine = Some(Box::new(series(idle, waited_ms)));
            crate::examine_load(&load).iter().any(|one| one.check == ITEM.name)
        };
        assert!(found(1, 600));
        assert!(!found(1, 50), "each on a CPU of its own");
        assert!(!found(40, 600));
    }
}
