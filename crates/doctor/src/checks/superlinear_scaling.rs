//! Owns the check that N connections do no more than N times the work of one. Start reading at [`look`].
//!
//! In a closed loop each connection adds at most what it does alone: X(N) <= N X(1), and likewise from n to N. More
//! than that means that the few were slowed by something that the many were spared: a CPU that went to sleep between
//! requests or had not raised its clock, a first run without a warm cache. It is the low end that is wrong.
//!
//! Looked at over the cells of a study that differ in connections alone. The pattern is the ratio of
//! two cells' rates over blocks; the second witness is CPU time: a request of the low end that also costs more of it
//! was not only alone, it was slow.

use std::collections::BTreeMap;

use record::{Certainty, Metric, Question, Severity, Workload};
use stats::Paired;

use super::Check;
use crate::{Evidence, Observation};

/// See the module.
pub(crate) const ITEM: Check = Check {
    name: "superlinear_scaling",
    severity: Severity::Note,
    question: Question::DidItBreakALimit,
    spares_like_pairs: false,
    title: "more connections did more than their number allows",
    meaning: "with few connections something slowed the server that it was spared with many (a CPU that slept, a cold \
              start), so the low end of the curve is not the server's",
    remedy: "keep CPUs awake and at one clock (`cpupower frequency-set -g performance`, `cpupower idle-set -D 0`), \
             and warm up each visit ([visit] warm_up)",
    detection: "In a closed loop X(N) is more than 1.05 N/n X(n), with an interval beyond N/n. It is confirmed where \
             a request also costs 10 % more server CPU time at n",
    example: "one connection on an idle laptop: the CPU wakes up for each request",
    source: "Gunther, Guerrilla Capacity Planning, chapter 4 (superlinear scaling)",
    needs: &[],
    look,
};

/// X(N) over N/n X(n).
const ABOVE_MAX: f64 = 1.05;
/// p of "no more than N/n", over all pairs of neighbours.
const P_MAX: f64 = 0.005;
/// CPU time a request at n over that at N, from which it is the second witness.
const COSTS_MORE_MIN: f64 = 1.1;

/// Over all cells of a run; one for each contender, at its worst pair of neighbours.
fn look(evidence: &Evidence) -> Vec<Observation> {
    evidence.contenders().filter_map(|contender| look_at(evidence, contender)).collect()
}

fn look_at(evidence: &Evidence, contender: usize) -> Option<Observation> {
    let steps: Vec<Step> = ladders(evidence, contender)
        .iter()
        .flat_map(|cells| cells.windows(2))
        .filter_map(|two| Step::of(evidence, contender, two[0], two[1]))
        .collect();
    let tests = steps.len() as f64;
    let is_above = |step: &&Step| step.above > ABOVE_MAX && step.p * tests < P_MAX;
    let worst = steps.iter().filter(is_above).max_by(|a, b| a.above.total_cmp(&b.above))?;
    let costs_more = worst.costs_more.is_some_and(|ratio| ratio >= COSTS_MORE_MIN);
    let cost = match worst.costs_more {
        Some(ratio) => {
            format!("; a request costs {ratio:.2}x the server CPU time at {}", worst.few)
        }
        None => String::new(),
    };
    Some(Observation {
        certainty: if costs_more { Certainty::Confirmed } else { Certainty::Suspected },
        contenders: vec![contender],
        evidence: format!(
            "{}: {} connections did {:.2}x the requests/s of {}, {:.2}x what their number allows{cost}",
            evidence.name(contender),
            worst.many,
            worst.above * f64::from(worst.many) / f64::from(worst.few),
            worst.few,
            worst.above,
        ),
        ..Observation::default()
    })
}

/// From a cell to the next one with more connections.
struct Step {
    few: u32,
    many: u32,
    /// X(N) over N/n X(n).
    above: f64,
    p: f64,
    /// CPU time a request at n over that at N.
    costs_more: Option<f64>,
}

impl Step {
    /// `None` where too few blocks have both.
    fn of(evidence: &Evidence, contender: usize, few: usize, many: usize) -> Option<Self> {
        let connections = |cell: usize| evidence.run.plan.work(cell, contender).connections;
        let values = |cell: usize, metric: Metric| -> BTreeMap<u32, f64> {
            let visits = evidence.run.measured(contender).filter(|visit| visit.cell == cell);
            let valued = visits.filter_map(|visit| Some((visit.block, visit.value(metric)?)));
            valued.filter(|(_, value)| *value > 0.0).collect()
        };
        let ratio = |metric: Metric, scale: f64| {
            let (low, high) = (values(few, metric), values(many, metric));
            let logs = high
                .iter()
                .filter_map(|(block, value)| Some((value / low.get(block)? / scale).ln()));
            Paired::of_logs(&logs.collect::<Vec<f64>>()).ok()
        };
        let scale = f64::from(connections(many)) / f64::from(connections(few).max(1));
        let rates = ratio(Metric::Throughput, scale)?;
        Some(Self {
            few: connections(few),
            many: connections(many),
            above: rates.ratio,
            p: rates.interval?.p,
            costs_more: ratio(Metric::ServerCpu, 1.0).map(|cpu| 1.0 / cpu.ratio),
        })
    }
}

/// Sets of cells, by rising connections, in which the contender's work differs in connections alone; closed loops,
/// since at a given rate more connections do not ask for more.
fn ladders(evidence: &Evidence, contender: usize) -> Vec<Vec<usize>> {
    let plan = &evidence.run.plan;
    let mut ladders: Vec<(Workload, Vec<usize>)> = Vec::new();
    let takes_part = |cell: &usize| plan.contenders[contender].takes_part(*cell);
    let mut cells: Vec<usize> = (0..plan.cells.len()).filter(takes_part).collect();
    cells.sort_by_key(|cell| plan.work(*cell, contender).connections);
    for cell in cells {
        let rest = Workload { connections: 0, ..plan.work(cell, contender) };
        match ladders.iter_mut().find(|(other, _)| *other == rest) {
            Some((_, cells)) => cells.push(cell),
            None if rest.rate.is_none() => ladders.push((rest, vec![cell])),
            None => {}
        }
    }
    ladders.into_iter().map(|(_, cells)| cells).collect()
}

#[cfg(test)]
mod tests {
    use record::{Cell, RunRecord};
    use units::Nanos;

    use super::*;
    use crate::noise::{Law, Noise};
    use crate::testdata;

    /// Contender a with 1 and 8 connections: its rates, and CPU time a request, in cells 0 and 1.
    fn ladder(rates: [f64; 2], cpu_us: [u64; 2]) -> RunRecord {
        let mut run = testdata::run(&["a", "b"], 10);
        let cell = |name: &str, connections| {
            let mut cell = Cell { name: name.into(), ..run.plan.cells[0].clone() };
            cell.workload.connections = connections;
            cell
        };
        run.plan.cells = vec![cell("one", 1), cell("eight", 8)];
        let mut second = run.visits.clone();
        second.iter_mut().for_each(|visit| visit.cell = 1);
        run.visits.extend(second);
        let mut noise = Noise::new(11);
        for visit in run.visits.iter_mut() {
            let rates = if visit.contender == 0 { rates } else { [10_000.0, 60_000.0] };
            visit.rate_per_s = Some(rates[visit.cell] * (0.02 * noise.of(Law::Normal)).exp());
            let server = visit.server.as_mut().unwrap();
            server.cpu = Nanos::from_micros(cpu_us[visit.cell] * server.requests);
        }
        run
    }

    #[test]
    fn one_connection_that_a_sleeping_cpu_slows_fires_and_cpu_time_confirms_it() {
        let seen = look(&Evidence::of(&ladder([4_000.0, 60_000.0], [30, 20])));
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].certainty, seen[0].contenders.as_slice()),
            (Certainty::Confirmed, &[0][..])
        );
        let text = &seen[0].evidence;
        assert!(text.starts_with("a: 8 connections did 1") && text.contains("of 1, 1.8"), "{text}");
        let seen = look(&Evidence::of(&ladder([4_000.0, 60_000.0], [20, 20])));
        assert_eq!(seen[0].certainty, Certainty::Suspected);
    }

    #[test]
    fn what_grows_as_its_number_or_less_and_open_loops_are_silent() {
        assert_eq!(look(&Evidence::of(&ladder([8_000.0, 64_000.0], [20, 20]))), []);
        assert_eq!(look(&Evidence::of(&ladder([8_000.0, 66_000.0], [20, 20]))), []);
        assert_eq!(look(&Evidence::of(&ladder([8_000.0, 20_000.0], [30, 20]))), []);
        let mut open = ladder([4_000.0, 60_000.0], [30, 20]);
        open.plan
            .cells
            .iter_mut()
            .for_each(|cell| cell.workload.rate = Some(units::PerSecond(100.0)));
        assert_eq!(look(&Evidence::of(&open)), []);
        assert_eq!(look(&Evidence::of(&testdata::run(&["a", "b"], 10))), []);
    }

    #[test]
    fn it_is_seen_over_the_cells_of_a_run_and_once() {
        let found = crate::examine(&ladder([4_000.0, 60_000.0], [30, 20]));
        let names: Vec<(&str, Option<usize>)> =
            found.iter().map(|finding| (finding.check.as_str(), finding.cell)).collect();
        assert_eq!(names, [("superlinear_scaling", None)]);
    }
}
