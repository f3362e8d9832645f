//! Owns how a load that was no part of a run is examined: as a run of one contender and one visit, so that one
//! check serves both. Start reading at [`examine_load`].

use record::{
    Blocks, Cell, Contender, ContenderFacts, CpuLayout, Ending, Facts, Finding, LoadRecord, Metric,
    Plan, RunRecord, Surroundings, Visit, VisitPlan, VisitState, Workload,
};
use units::{Bytes, Nanos, Share};

/// The findings of every check in a load alone; the most severe first. What only a comparison can show is not
/// looked for. Findings name no contender.
pub fn examine_load(load: &LoadRecord) -> Vec<Finding> {
    let mut findings = crate::examine(&as_run(load));
    findings.iter_mut().for_each(|finding| finding.contenders.clear());
    findings
}

fn as_run(load: &LoadRecord) -> RunRecord {
    let length = Nanos::from_secs_f64(load.seconds);
    let surroundings = load.machine.as_ref().map(|series| {
        Box::new(Surroundings { series: (**series).clone(), ..Surroundings::default() })
    });
    RunRecord {
        format: RunRecord::FORMAT.to_owned(),
        joust: String::new(),
        started: String::new(),
        seconds: load.seconds,
        ending: Ending::Blocks,
        plan: plan(load, length),
        facts: Facts::default(),
        layout: CpuLayout::default(),
        contenders: vec![ContenderFacts::default()],
        skipped: Vec::new(),
        visits: vec![Visit {
            state: VisitState::Measured,
            load: Some(load.clone()),
            rate_per_s: Some(load.rate_per_s),
            surroundings,
            ..Visit::default()
        }],
        findings: Vec::new(),
        verdicts: Vec::new(),
        analysis: Default::default(),
        integrity: Default::default(),
    }
}

fn plan(load: &LoadRecord, length: Nanos) -> Plan {
    let asked = &load.plan;
    let contender = Contender { name: Finding::SERVER.to_owned(), ..Contender::default() };
    let page = load.bytes.body.checked_div(load.requests.done).unwrap_or(0);
    let workload = Workload {
        target: asked.requests.first().map_or_else(String::new, |one| one.target.clone()),
        page: Bytes(page),
        connections: load.connections,
        keep_alive: asked.keeps_connections(),
        threads: load.threads,
        timeout: asked.timeout,
        rate: load.open_loop.map(|open| units::PerSecond(open.asked_per_s)),
        ..Workload::default()
    };
    Plan {
        contenders: vec![contender],
        cells: vec![Cell::only(workload)],
        blocks: Blocks { min: 1, max: 1, half_width: Share(1.0) },
        visit: VisitPlan { measure: length, ..VisitPlan::default() },
        metrics: vec![Metric::Throughput],
        ..Plan::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_clean_load_has_no_finding_and_a_planted_one_names_no_contender() {
        let mut load = testdata::load();
        assert_eq!(examine_load(&load), []);
        load.requests.failed = 500;
        load.requests.ok -= 500;
        load.errors.unexpected_status = 500;
        load.intervals[3].errors.unexpected_status = 500;
        load.intervals[3].ok -= 500;
        let found = examine_load(&load);
        assert_eq!(
            found.iter().map(|one| one.check.as_str()).collect::<Vec<_>>(),
            ["errors_as_speed"]
        );
        assert!(found[0].contenders.is_empty() && found[0].evidence.starts_with(Finding::SERVER));
    }
}
