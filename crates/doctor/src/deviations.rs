//! Owns what visits deviate by from what is usual for their contender, in the order in which they were made.
//! Start reading at [`Deviation`].

use std::collections::BTreeMap;

use record::{Metric, MetricKind, Visit};

use crate::Evidence;

/// A visit that was used, and its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deviation<'a> {
    /// The visit.
    pub visit: &'a Visit,
    /// ln of its value less the median of its contender's.
    pub log: f64,
}

/// Of every visit that was used and has a value above 0, by their start. Of several of a contender in a block the
/// last counts.
pub(crate) fn deviations<'a>(
    evidence: Evidence<'a>,
    value: impl Fn(&Visit) -> Option<f64>,
) -> Vec<Deviation<'a>> {
    let mut all = Vec::new();
    for contender in evidence.contenders() {
        let logged = evidence.run.measured(contender).filter_map(|visit| {
            let value = value(visit).filter(|value| *value > 0.0 && value.is_finite())?;
            Some((visit.block, Deviation { visit, log: value.ln() }))
        });
        let mut own: Vec<Deviation> = logged.collect::<BTreeMap<_, _>>().into_values().collect();
        let usual = stats::median(&own.iter().map(|one| one.log).collect::<Vec<_>>());
        own.iter_mut().for_each(|one| one.log -= usual.unwrap_or(0.0));
        all.append(&mut own);
    }
    all.sort_by_key(|one| (one.visit.block, one.visit.started, one.visit.position));
    all
}

/// The blocks in which all contenders have a value, each in the order of its visits.
pub(crate) fn complete_blocks<'a>(
    evidence: Evidence<'a>,
    all: &[Deviation<'a>],
) -> Vec<Vec<Deviation<'a>>> {
    let in_block = all.chunk_by(|one, next| one.visit.block == next.visit.block);
    in_block.filter(|block| block.len() == evidence.contenders().len()).map(<[_]>::to_vec).collect()
}

/// Metrics of the study in which each visit has a level of its own: no p99, which few requests decide, and no
/// memory, which is quantised.
pub(crate) fn level_metrics(evidence: Evidence<'_>) -> Vec<Metric> {
    let metrics = evidence.run.plan.metrics.iter().copied();
    let has_level = |metric: &Metric| match metric.info().kind {
        MetricKind::Rate => true,
        MetricKind::ServiceTime(q) => q <= 0.5,
        MetricKind::Resource => *metric != Metric::Memory,
    };
    metrics.filter(has_level).collect()
}
