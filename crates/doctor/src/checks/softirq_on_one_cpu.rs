//! Owns the check that receiving is not the work of one CPU alone. Start reading at [`look`].
//!
//! The kernel receives in soft interrupts. Over loopback and veth they run on the CPU that sends, so they spread
//! like the processes. A network card with one queue interrupts one CPU: all of receiving is done there, and that
//! CPU may be the limit while the others idle.
//!
//! Only where server or generator used several CPUs: with one each, an even share is what there is. The pattern is
//! the count by CPU; the second witness is the time that this CPU spent in soft interrupts.

use std::collections::BTreeMap;

use record::{Certainty, MachineSeries, Question, Severity, Visit};

use super::Check;
use crate::{Evidence, Observation, counters, words};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "softirq_on_one_cpu",
    severity: Severity::Note,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "one CPU received for all",
    meaning: "the CPU that serves the network card may be the limit while others idle, so more CPUs for the server \
              would not help",
    remedy: "spread receiving: `ethtool -L DEV combined N`, irqbalance, or RPS (`echo ff > \
             /sys/class/net/DEV/queues/rx-0/rps_cpus`)",
    detection: "More than 80 % of NET_RX in /proc/softirqs is on one CPU though several are used. It is confirmed \
             where that CPU spent 20 % of the time in soft interrupts",
    example: "a virtual machine whose network card has one queue",
    source: "https://docs.kernel.org/networking/scaling.html",
    needs: &[&counters::SOFTIRQS, &counters::STAT],
    look,
};

/// Share of NET_RX on one CPU.
const ON_ONE_MAX: f64 = 0.8;
/// Part of its time that the CPU spends in soft interrupts, from which it may matter.
const SOFTIRQ_TIME_MIN: f64 = 0.2;
/// Interrupts a second below which it is not our traffic that they are for.
const PER_SECOND_MIN: f64 = 1000.0;
/// Part of its time that a CPU must have been busy to count as used.
const USED_MIN: f64 = 0.2;
/// CPUs that must have been used: a client and a server of one thread each share receiving between them by chance.
const USED_CPUS_MIN: usize = 3;

fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

/// What a visit shows: the busiest receiver, its share of NET_RX, its share of time in soft interrupts.
struct Receiver {
    cpu: String,
    share: f64,
    softirq_time: f64,
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let seen: Vec<Receiver> = evidence.run.measured(contender).filter_map(receiver).collect();
    let median = |of: fn(&Receiver) -> f64| stats::median(&seen.iter().map(of).collect::<Vec<_>>());
    let (share, time) = (median(|one| one.share)?, median(|one| one.softirq_time)?);
    let cpu = &seen.first()?.cpu;
    if share <= ON_ONE_MAX || seen.iter().any(|one| one.cpu != *cpu) {
        return None;
    }
    let evidence = format!(
        "{}: CPU {cpu} served {} of the soft interrupts that receive, and spent {} of its time in them \
         (medians over visits)",
        evidence.name(contender),
        words::percent(share),
        words::percent(time),
    );
    let is_busy = time >= SOFTIRQ_TIME_MIN;
    Some(Observation {
        share: Some(share),
        certainty: if is_busy { Certainty::Confirmed } else { Certainty::Suspected },
        contenders: vec![contender],
        evidence,
    })
}

/// `None` where it was not counted, was little, or where too few CPUs were used.
fn receiver(visit: &Visit) -> Option<Receiver> {
    let series = &visit.surroundings.as_ref()?.series;
    let received: BTreeMap<&str, i64> = by_cpu(series, "softirqs.", ".NET_RX").collect();
    let all: i64 = received.values().sum();
    let seconds = series.length().as_secs_f64();
    if (all as f64) < PER_SECOND_MIN * seconds {
        return None;
    }
    let used = by_cpu(series, "cpu.", ".idle_ticks").filter(|(cpu, idle)| {
        let whole = ticks(series, cpu);
        whole > 0 && (whole - idle) as f64 >= USED_MIN * whole as f64
    });
    if used.count() < USED_CPUS_MIN {
        return None;
    }
    let (cpu, most) = received.into_iter().max_by_key(|(_, count)| *count)?;
    let softirq = series.change(&format!("cpu.{cpu}.softirq_ticks"))?;
    Some(Receiver {
        cpu: cpu.to_owned(),
        share: most as f64 / all as f64,
        softirq_time: softirq as f64 / ticks(series, cpu).max(1) as f64,
    })
}

/// What a counter changed by, CPU by CPU.
fn by_cpu<'a>(
    series: &'a MachineSeries,
    before: &'static str,
    after: &'static str,
) -> impl Iterator<Item = (&'a str, i64)> {
    series.counters.iter().filter_map(move |(name, course)| {
        let cpu = name.strip_prefix(before)?.strip_suffix(after)?;
        Some((cpu, course.steps.iter().sum()))
    })
}

/// All ticks of a CPU.
fn ticks(series: &MachineSeries, cpu: &str) -> i64 {
    let parts = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    parts.iter().filter_map(|part| series.change(&format!("cpu.{cpu}.{part}_ticks"))).sum()
}

#[cfg(test)]
mod tests {
    use record::{Course, RunRecord, Surroundings};
    use units::Nanos;

    use super::*;
    use crate::testdata;

    /// Visits of a second on four CPUs, each with a given number of NET_RX; the first spends a part of 100 ticks
    /// there, as given.
    fn received(net_rx: [i64; 4], softirq: i64, used: usize) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 8);
        for visit in run.visits.iter_mut().filter(|visit| visit.contender == 0) {
            let mut around = Surroundings::default();
            around.series.at = vec![Nanos::ZERO, Nanos::from_secs(1)];
            for (cpu, count) in net_rx.into_iter().enumerate() {
                let softirq = if cpu == 0 { softirq } else { 0 };
                let idle = if cpu < used { 50 } else { 95 };
                for (name, step) in [
                    (format!("softirqs.{cpu}.NET_RX"), count),
                    (format!("cpu.{cpu}.softirq_ticks"), softirq),
                    (format!("cpu.{cpu}.idle_ticks"), idle),
                    (format!("cpu.{cpu}.user_ticks"), 100 - idle - softirq),
                ] {
                    around.series.sources.insert(name.rsplit_once('.').unwrap().0.to_owned());
                    around.series.counters.insert(name, Course { first: 0, steps: vec![step] });
                }
            }
            visit.surroundings = Some(Box::new(around));
        }
        run
    }

    #[test]
    fn one_cpu_that_receives_for_all_fires_with_its_share_and_time() {
        let seen = look(&Evidence::of(&received([9500, 300, 100, 100], 30, 4)));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].certainty, seen[0].contenders.as_slice()),
            (Certainty::Confirmed, &[0][..])
        );
        let text = "a: CPU 0 served 95 % of the soft interrupts that receive, and spent 30 % of its time in them \
                    (medians over visits)";
        assert_eq!(seen[0].evidence, text);
        let seen = look(&Evidence::of(&received([9500, 300, 100, 100], 5, 4)));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn spread_rare_and_unknown_interrupts_and_two_used_cpus_are_silent() {
        for run in [
            received([2500; 4], 30, 4),
            received([95, 3, 1, 1], 30, 4),
            received([9500, 300, 100, 100], 30, 2),
            testdata::run(&["a", "b"], 8),
        ] {
            assert_eq!(look(&Evidence::of(&run)), []);
        }
    }
}
