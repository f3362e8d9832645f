//! Owns what is computed for a cell in addition to its verdicts: who is best, how far the tails differ and why, how
//! throughput grows, what the machine can show at all, which visits stand out. Start reading at [`analyse`].
//!
//! Each analysis takes the visits of one cell; [`scalability`] takes several cells that differ in connections.

mod noise_floor;
mod outliers;
mod ranking;
mod scalability;
mod tails;

pub use noise_floor::noise_floor;
pub use outliers::outliers;
pub use ranking::ranking;
pub use scalability::scalability;
pub use tails::{Tails, tails};

use std::collections::BTreeMap;

use record::{Analysis, Finding, Metric, PairVerdict, Plan, Severity, Visit, VisitState, Workload};
use stats::ConfidenceInterval;

/// The analysis of a run, in addition to its verdicts.
pub fn analyse(
    plan: &Plan,
    visits: &[Visit],
    findings: &[Finding],
    verdicts: &[PairVerdict],
) -> Analysis {
    let mut analysis = Analysis::default();
    for cell in 0..plan.cells.len() {
        let of = CellVisits {
            cell,
            contenders: plan.in_cell(cell).collect(),
            pairs: plan.pairs(cell),
            visits: visits.iter().filter(|visit| visit.cell == cell).collect(),
            seed: plan.seed,
        };
        let said: Vec<&PairVerdict> = verdicts.iter().filter(|pair| pair.cell == cell).collect();
        let metrics = || plan.metrics.iter();
        analysis.rankings.extend(metrics().filter_map(|metric| ranking(&of, &said, *metric)));
        let floor = |metric: &Metric| noise_floor(&of, &plan.contenders, *metric);
        analysis.noise_floors.extend(metrics().filter_map(floor));
        analysis.outliers.extend(metrics().flat_map(|metric| outliers(&of, *metric)));
        let Tails { shifts, explanations } = tails(&of);
        analysis.shifts.extend(shifts);
        analysis.explanations.extend(explanations);
        analysis.attributions.extend(doctor::attribute(plan, cell, visits, findings));
    }
    for contender in 0..plan.contenders.len() {
        let growth = ladders(plan, findings, contender).into_iter();
        // With fewer levels than the law has coefficients, for instance because visits failed, there is no fit.
        let fitted = growth.filter_map(|cells| scalability(plan, contender, &cells, visits).ok());
        analysis.scalability.extend(fitted);
    }
    analysis
}

/// Sets of cells, by rising connections, in which a contender's work differs in connections alone. Cells whose
/// figures are void are left out.
fn ladders(plan: &Plan, findings: &[Finding], contender: usize) -> Vec<Vec<usize>> {
    let mut ladders: Vec<(Workload, Vec<usize>)> = Vec::new();
    let takes_part = |cell: &usize| plan.in_cell(*cell).any(|one| one == contender);
    let is_void = |cell: usize| {
        findings.iter().any(|finding| finding.acts_on(Severity::Void, cell, contender))
    };
    let mut cells: Vec<usize> =
        (0..plan.cells.len()).filter(takes_part).filter(|cell| !is_void(*cell)).collect();
    cells.sort_by_key(|cell| plan.work(*cell, contender).connections);
    for cell in cells {
        let rest = Workload { connections: 0, ..plan.work(cell, contender) };
        match ladders.iter_mut().find(|(other, _)| *other == rest) {
            Some((_, cells)) => cells.push(cell),
            None => ladders.push((rest, vec![cell])),
        }
    }
    // At a fixed rate, more connections do not mean more load.
    let is_closed = |(work, _): &(Workload, Vec<usize>)| work.rate.is_none();
    ladders.into_iter().filter(is_closed).map(|(_, cells)| cells).collect()
}

fn band(interval: ConfidenceInterval) -> record::Band {
    record::Band { low: interval.low, high: interval.high }
}

/// One cell of a study, as it was visited.
#[derive(Debug, Clone)]
pub struct CellVisits<'a> {
    /// Index of the cell.
    pub cell: usize,
    /// Indices of its contenders.
    pub contenders: Vec<usize>,
    /// The pairs of contenders that are compared with each other.
    pub pairs: Vec<(usize, usize)>,
    /// Its visits, in the order they were made.
    pub visits: Vec<&'a Visit>,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl<'a> CellVisits<'a> {
    /// Usable visits, by contender and block. If a block has several, the last one counts: the earlier ones were made
    /// on a disturbed machine.
    fn usable(&self) -> BTreeMap<(usize, u32), &'a Visit> {
        let measured = self.visits.iter().filter(|visit| visit.state == VisitState::Measured);
        measured.map(|visit| ((visit.contender, visit.block), *visit)).collect()
    }

    /// Contenders that were measured in nine of ten blocks. The others get no verdict either, and their missing
    /// blocks would be lost for all contenders.
    fn reliable(&self) -> Vec<usize> {
        let blocks = self.visits.iter().map(|visit| visit.block + 1).max().unwrap_or(0) as usize;
        let usable = self.usable();
        let count = |one: usize| usable.keys().filter(|(contender, _)| *contender == one).count();
        self.contenders.iter().copied().filter(|one| count(*one) * 10 >= blocks * 9).collect()
    }

    /// A row for each named contender, a column for each block in which all of them have a value.
    fn complete_rows<T>(
        &self,
        contenders: &[usize],
        value: impl Fn(&Visit) -> Option<T>,
    ) -> Vec<Vec<T>> {
        let usable = self.usable();
        let blocks = self.visits.iter().map(|visit| visit.block + 1).max().unwrap_or(0);
        let mut rows: Vec<Vec<T>> = contenders.iter().map(|_| Vec::new()).collect();
        for block in 0..blocks {
            let of = |one: &usize| usable.get(&(*one, block)).and_then(|visit| value(visit));
            let column: Option<Vec<T>> = contenders.iter().map(of).collect();
            for (row, value) in rows.iter_mut().zip(column.into_iter().flatten()) {
                row.push(value);
            }
        }
        rows
    }

    /// [`CellVisits::complete_rows`] of the logarithms of a metric; zero has no logarithm.
    fn logs(&self, contenders: &[usize], metric: Metric) -> Vec<Vec<f64>> {
        self.complete_rows(contenders, |visit| {
            visit.value(metric).filter(|value| *value > 0.0).map(f64::ln)
        })
    }
}
