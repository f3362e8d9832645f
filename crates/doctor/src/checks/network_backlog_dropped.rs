//! Owns the check that no CPU dropped packets before TCP saw them. Start reading at [`look`].
//!
//! Packets of a virtual interface, and of loopback, wait in a queue of the CPU that is to handle them
//! (net.core.netdev_max_backlog, 1,000 by default). When it is full the kernel drops them, and counts that in
//! /proc/net/softnet_stat alone. The count is of the whole machine, and what it cost is `packet_loss`: so this is
//! a note.

use std::collections::BTreeMap;

use record::{Certainty, Question, Severity};

use super::Check;
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "network_backlog_dropped",
    severity: Severity::Note,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "a CPU's queue of received packets was full",
    meaning: "packets were dropped by this machine, and waited for TCP to send them again",
    remedy: "raise net.core.netdev_max_backlog, or spread packets over CPUs (rps_cpus)",
    detection: "The column dropped of /proc/net/softnet_stat moved for any CPU: each is a count, so it is confirmed",
    example: "sysctl net.core.netdev_max_backlog=10, and `joust load -c 200`",
    source: "https://docs.kernel.org/networking/scaling.html; net/core/dev.c, enqueue_to_backlog",
    needs: &[&counters::SOFTNET],
    look,
};

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let mut by_cpu: BTreeMap<&str, u64> = BTreeMap::new();
    let mut handled = 0;
    for (visit, _) in evidence.loads(contender) {
        let Some(around) = &visit.surroundings else { continue };
        for (name, course) in &around.series.counters {
            let Some((cpu, column)) =
                name.strip_prefix("softnet.").and_then(|name| name.split_once('.'))
            else {
                continue;
            };
            let moved = u64::try_from(course.steps.iter().sum::<i64>()).unwrap_or(0);
            match column {
                "processed" => handled += moved,
                "dropped" if moved > 0 => *by_cpu.entry(cpu).or_default() += moved,
                _ => {}
            }
        }
    }
    let dropped: u64 = by_cpu.values().sum();
    if dropped == 0 {
        return None;
    }
    let share = dropped as f64 / (handled + dropped) as f64;
    let cpus: Vec<&str> = by_cpu.keys().copied().collect();
    let evidence = format!(
        "{}: {} ({} of all) were dropped because the queue of CPU {} was full",
        evidence.name(contender),
        words::count(dropped, "packet"),
        words::percent(share),
        words::list(&cpus),
    );
    Some(Observation {
        certainty: Certainty::Confirmed,
        share: Some(share),
        contenders: vec![contender],
        evidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn planted(dropped: i64) -> Vec<Observation> {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
            let moved = [
                ("softnet.1.dropped", dropped),
                ("softnet.1.processed", 10_000 - dropped),
                ("softnet.0.time_squeeze", 7),
            ];
            testdata::count(visit, &moved);
        }
        look(&Evidence::of(&run))
    }

    #[test]
    fn dropped_packets_are_noted_with_their_dose_and_a_squeeze_is_silent() {
        for dropped in [50, 100] {
            let seen = planted(dropped);
            assert_eq!((seen.len(), &seen[0].contenders[..]), (1, &[1][..]));
            assert!((seen[0].share.unwrap() - dropped as f64 / 10_000.0).abs() < 1e-9, "{seen:?}");
        }
        let said = "b: 800 packets (1 % of all) were dropped because the queue of CPU 1 was full";
        assert_eq!(planted(100)[0].evidence, said);
        assert_eq!(planted(0), []);
    }
}
