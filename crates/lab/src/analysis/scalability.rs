//! Owns how a contender's throughput grows with connections, over the cells of a study. Start reading at
//! [`scalability`].

use record::{Metric, Plan, Scalability, Visit, VisitState};
use stats::{ScalabilityError, ScalabilityPoint};

use super::band;

/// The Universal Scalability Law of one contender, from its visits of `cells`, which are in the order of their
/// connections. Visits that cannot be used, or saw no reply, are skipped.
///
/// # Errors
/// [`ScalabilityError::TooFewLevels`] with visits at fewer than three numbers of connections.
pub fn scalability(
    plan: &Plan,
    contender: usize,
    cells: &[usize],
    visits: &[Visit],
) -> Result<Scalability, ScalabilityError> {
    let connections = |cell: usize| plan.work(cell, contender).connections;
    let point = |visit: &Visit| {
        let is_used = visit.contender == contender
            && cells.contains(&visit.cell)
            && visit.state == VisitState::Measured;
        let rate = visit.value(Metric::Throughput).filter(|rate| is_used && *rate > 0.0)?;
        let concurrency = connections(visit.cell);
        Some(ScalabilityPoint { concurrency, block: visit.block as usize, rate })
    };
    let points: Vec<ScalabilityPoint> = visits.iter().filter_map(point).collect();
    let fit = stats::fit_scalability(&points, plan.seed)?;
    let coefficient = |of: stats::Coefficient| record::Coefficient {
        value: of.value,
        interval: of.interval.map(band),
    };
    Ok(Scalability {
        contender,
        cells: cells.to_vec(),
        connections: cells.iter().map(|cell| connections(*cell)).collect(),
        lambda: coefficient(fit.lambda),
        sigma: coefficient(fit.sigma),
        kappa: coefficient(fit.kappa),
        peak: fit.peak,
        misfit_ln: fit.misfit_ln,
    })
}
