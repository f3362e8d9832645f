//! Owns how a visit's work is ordered from another load tool, and which results of its run go into the visit. Must
//! not know how a tool is started or read (that is `clients`). Start reading at [`order`].
//!
//! Tools do not cut off a warm-up: our generator warms the server up first, and the tool's whole run is the
//! measurement. It lasts whole seconds, because some tools accept nothing else.

use std::net::SocketAddr;

use record::{Plan, ToolRun, Visit, Workload};
use units::Nanos;

use crate::clients::{self, ClientError, ClientKind, ClientRun, Order};

const SECOND: u64 = 1_000_000_000;

/// The order for a tool in a visit.
pub(crate) fn order(plan: &Plan, work: &Workload, target: &str, addr: SocketAddr) -> Order {
    Order {
        addr,
        target: target.to_owned(),
        connections: work.connections,
        threads: work.threads,
        keep_alive: work.keep_alive,
        duration: Nanos(plan.visit.measure.0.next_multiple_of(SECOND)),
        requests: None,
        timeout: work.timeout,
        rate: work.rate,
    }
}

/// Refuses a plan that asks a tool for something it cannot do.
pub(crate) fn check(plan: &Plan) -> Result<(), ClientError> {
    let addr = SocketAddr::from(([127, 0, 0, 1], 80));
    for cell in 0..plan.cells.len() {
        for contender in plan.in_cell(cell) {
            let work = plan.work(cell, contender);
            if work.client != Workload::OURS {
                let client = clients::named(&work.client)?;
                let order = order(plan, &work, &plan.target(cell, contender), addr);
                // A tool without a duration gets a number of requests, which a first run determines.
                let counts_only =
                    matches!(&client.kind, ClientKind::Program(program) if program.counts_only);
                let enough = counts_only.then_some(u64::from(work.connections));
                client.say(&Order { requests: enough, ..order })?;
            }
        }
    }
    Ok(())
}

/// Puts what a tool reported into its visit.
pub(crate) fn note(visit: &mut Visit, ran: &ClientRun) {
    let run = ran.tool_run();
    visit.rate_per_s = rate(&run);
    visit.tool = Some(run);
}

/// Requests/s that a tool reported, or that follow from its other figures.
pub(crate) fn rate(run: &ToolRun) -> Option<f64> {
    let seconds = run.claimed.duration.map(Nanos::as_secs_f64).filter(|seconds| *seconds > 0.0);
    let counted = || Some(run.claimed.requests_done? as f64 / seconds?);
    run.claimed.rate.map(|rate| rate.0).or_else(counted)
}
