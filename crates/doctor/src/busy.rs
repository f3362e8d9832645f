//! Owns how busy generator and server were, for the checks that ask what set the pace. Must not judge. Start
//! reading at [`medians`].

use std::collections::BTreeMap;

use record::{LoadRecord, ServerUse, Visit};
use units::Nanos;

use crate::Evidence;

/// Share of its CPU from which a generator counts as always busy. Above it a closed loop's queue is
/// the generator's; what remains is the time in which all its connections wait at once.
pub(crate) use record::GENERATOR_BUSY as BUSY_MIN;

/// How busy generator and server were, 0 to 1; `None` where no visit tells of both.
pub(crate) fn medians(evidence: &Evidence, contender: usize) -> Option<(f64, f64)> {
    let cpus = evidence.run.layout.client.len() as u32;
    let shares = evidence.run.measured(contender).filter_map(|visit| {
        let client = match (&visit.load, &visit.tool) {
            (Some(load), _) => client_busy(visit, load)?,
            // Another tool's CPU time is known over its whole run, its start included.
            (None, Some(tool)) => tool.busy(cpus.min(evidence.threads(visit))),
            (None, None) => return None,
        };
        Some((client, server_busy(visit.server.as_ref()?)))
    });
    let (client, server): (Vec<f64>, Vec<f64>) = shares.unzip();
    Some((stats::median(&client)?, stats::median(&server)?))
}

/// How busy the generator's busiest CPU was after the cut; `None` where that was not counted.
pub(crate) fn client_busy(visit: &Visit, load: &LoadRecord) -> Option<f64> {
    let after = load.intervals.iter().filter(|interval| interval.start >= visit.cut);
    let (cpu, wall) = after.fold((0, 0), |(cpu, wall), interval| {
        (cpu + interval.client_cpu.0, wall + interval.length.0)
    });
    let by_cpu = busy_by_cpu(load);
    let whole: f64 = by_cpu.iter().sum();
    if wall == 0 || whole == 0.0 {
        return None;
    }
    let busiest = by_cpu.iter().copied().fold(0.0, f64::max);
    Some((cpu as f64 / wall as f64 * busiest / whole).min(1.0))
}

/// How busy each CPU of the generator was over the whole load; a thread that is not pinned counts
/// as on a CPU of its own.
fn busy_by_cpu(load: &LoadRecord) -> Vec<f64> {
    let mut pinned: BTreeMap<u32, f64> = BTreeMap::new();
    let mut free = Vec::new();
    for thread in load.client.threads.iter().filter(|thread| thread.wall > Nanos::ZERO) {
        match thread.pinned_to {
            Some(cpu) => *pinned.entry(cpu).or_default() += thread.busy(),
            None => free.push(thread.busy()),
        }
    }
    pinned.into_values().chain(free).collect()
}

/// How busy the CPUs were that the server could use.
fn server_busy(server: &ServerUse) -> f64 {
    let could_use = server.cpus.min(server.threads).max(1);
    let had = server.wall.0 as f64 * f64::from(could_use);
    if had == 0.0 { 0.0 } else { (server.cpu.0 as f64 / had).min(1.0) }
}
