//! Owns the figures of one contender over all its visits: medians over visits, histograms merged
//! over visits, errors summed. Must not know how they are shown. Start reading at [`Standing`].

use std::collections::BTreeSet;

use record::{Metric, MetricKind, MetricUnit, RunRecord, Severity, Visit, VisitState};
use stats::Histogram;
use units::{Bytes, Nanos};

use crate::cell_names;
use crate::figures::{NONE, grouped, listed, optional, percent};
use crate::wording::{name_of, plain};

/// The result of one contender.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) name: String,
    /// Index in the plan of its cell.
    pub(crate) index: usize,
    /// Its number in the whole run: contenders keep their colour from cell to cell.
    pub(crate) number: usize,
    /// Each metric in its own unit, by its place in [`record::METRICS`].
    values: Vec<Option<f64>>,
    /// Whether the rate is a lower bound: a finding of severity `bound` touches the contender.
    pub(crate) is_bound: bool,
    /// Service times of all measured visits after their cuts, merged.
    pub(crate) service: Histogram,
    /// Failed requests of measured visits, and all that ended.
    failed: u64,
    done: u64,
    /// Visits that were measured to their end, and all that were begun.
    pub(crate) visits_measured: usize,
    pub(crate) visits_begun: usize,
}

/// One entry a contender, in the order of the plan.
pub(crate) fn standings(record: &RunRecord) -> Vec<Standing> {
    (0..record.plan.contenders.len()).map(|index| Standing::new(record, index)).collect()
}

impl Standing {
    fn new(record: &RunRecord, index: usize) -> Self {
        let measured: Vec<&Visit> = record.measured(index).collect();
        let median_of = |metric| median(measured.iter().filter_map(|visit| visit.value(metric)));
        let mut service = Histogram::new();
        for visit in &measured {
            if let Some(histogram) = visit.service_after_cut() {
                service.merge(&histogram);
            }
        }
        let value = |metric: Metric| match metric.service_quantile() {
            // Rare requests show only in all visits together; another tool reports one percentile per visit.
            Some(q) => service
                .quantile(q)
                .map(Nanos::as_millis_f64)
                .or_else(|| claimed(record, index, metric)),
            None => median_of(metric),
        };
        // A visit that was repeated because the machine was disturbed counts once.
        let begun =
            |visit: &&Visit| visit.contender == index && visit.state != VisitState::Disturbed;
        let counts = || measured.iter().filter_map(|visit| visit.load.as_ref()).map(|l| l.requests);
        Self {
            name: name_of(&record.plan.contenders, index),
            index,
            number: index,
            values: Metric::all().map(value).collect(),
            is_bound: is_bound(record, index),
            service,
            failed: counts().map(|requests| requests.failed).sum(),
            done: counts().map(|requests| requests.done).sum(),
            visits_measured: measured.len(),
            visits_begun: record.visits.iter().filter(begun).count(),
        }
    }

    /// The figure of a metric in the metric's own unit (requests/s, us, ms, bytes); `None` if it was not measured or
    /// the sample is too small.
    pub(crate) fn value(&self, metric: Metric) -> Option<f64> {
        self.values[metric as usize]
    }

    /// [`Standing::value`] as it is printed. If the measurement was the limit, the server could answer more (`>=`),
    /// and the latency includes the generator's own queue (`<=`).
    pub(crate) fn shown(&self, metric: Metric) -> String {
        let value = self.value(metric);
        let sign = match metric.info().kind {
            MetricKind::Rate => ">=",
            MetricKind::ServiceTime(_) => "<=",
            MetricKind::Resource => "",
        };
        let sign = if self.is_bound && value.is_some() { sign } else { "" };
        format!("{sign}{}", shown(metric, value))
    }

    /// Failed requests: `0`, or the count and its share of those done.
    pub(crate) fn errors(&self) -> String {
        match (self.failed, self.done) {
            (_, 0) => NONE.to_owned(),
            (0, _) => "0".to_owned(),
            (failed, done) => {
                format!("{} ({})", grouped(failed), percent(failed, done))
            }
        }
    }

    /// Requests of measured visits: failed, and all that ended; `None` if nothing was counted.
    pub(crate) fn failed_of_done(&self) -> Option<(u64, u64)> {
        (self.done > 0).then_some((self.failed, self.done))
    }

    /// Whether any request failed.
    pub(crate) fn has_errors(&self) -> bool {
        self.failed > 0
    }

    /// Visits measured, and out of how many if some failed.
    pub(crate) fn visits(&self) -> String {
        if self.visits_measured == self.visits_begun {
            self.visits_measured.to_string()
        } else {
            format!("{} of {}", self.visits_measured, self.visits_begun)
        }
    }
}

/// The value of a metric as it is printed, its unit included if the metric's unit varies.
pub(crate) fn shown(metric: Metric, value: Option<f64>) -> String {
    let Some(value) = value else { return NONE.to_owned() };
    match metric.info().unit {
        MetricUnit::PerSecond | MetricUnit::MicrosPerRequest | MetricUnit::PerRequest => {
            optional(Some(value))
        }
        MetricUnit::Millis => span(value),
        MetricUnit::Bytes => Bytes(value as u64).to_string(),
    }
}

/// A span of milliseconds with the unit that suits it: `412us`, `1.52ms`.
pub(crate) fn span(millis: f64) -> String {
    if !millis.is_finite() {
        return NONE.to_owned();
    }
    Nanos((millis * 1e6).round() as u64).to_string()
}

/// Whether the throughput of a contender is only a lower bound.
fn is_bound(record: &RunRecord, contender: usize) -> bool {
    let bounds = |finding: &&record::Finding| finding.acts(Severity::Bound);
    record.findings.iter().filter(bounds).any(|finding| finding.touches(contender))
}

/// The visits of a contender that failed, with their reasons.
pub(crate) fn failures(record: &RunRecord) -> impl Iterator<Item = (&Visit, &str, &str)> {
    record.visits.iter().filter_map(|visit| match &visit.state {
        VisitState::Measured | VisitState::Disturbed => None,
        VisitState::Failed { reason, log_tail } => Some((visit, &**reason, &**log_tail)),
    })
}

/// Visits of one contender that failed for the same reason.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Failure {
    pub(crate) name: String,
    /// "block 3", "blocks 1, 2 and 3"; counted from 1. In a run of several cells, at which.
    pub(crate) blocks: String,
    pub(crate) reason: String,
    /// Last lines of the server's log in the first of them.
    pub(crate) log_tail: String,
}

/// Failed visits, joined if contender and reason are the same.
pub(crate) fn joined_failures(record: &RunRecord) -> Vec<Failure> {
    let mut joined: Vec<(usize, &str, &str, Vec<&Visit>)> = Vec::new();
    for (visit, reason, log_tail) in failures(record) {
        match joined.iter_mut().find(|(c, known, ..)| (*c, *known) == (visit.contender, reason)) {
            Some((.., visits)) => visits.push(visit),
            None => joined.push((visit.contender, reason, log_tail, vec![visit])),
        }
    }
    let failure =
        |(contender, reason, log_tail, visits): (usize, &str, &str, Vec<&Visit>)| Failure {
            name: name_of(&record.plan.contenders, contender),
            blocks: blocks(record, &visits),
            reason: plain(reason),
            log_tail: log_tail.lines().map(plain).collect::<Vec<_>>().join("\n"),
        };
    joined.into_iter().map(failure).collect()
}

/// "block 3", "blocks 1 and 2 at connections=10": where visits were.
fn blocks(record: &RunRecord, visits: &[&Visit]) -> String {
    let numbers: BTreeSet<u32> = visits.iter().map(|visit| visit.block + 1).collect();
    let cells: BTreeSet<usize> = visits.iter().map(|visit| visit.cell).collect();
    let plural = if numbers.len() == 1 { "" } else { "s" };
    let at = match record.plan.cells.len() {
        0 | 1 => String::new(),
        _ => {
            let cells: Vec<usize> = cells.into_iter().collect();
            format!(" at {}", cell_names::named(&record.plan, &cells))
        }
    };
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    format!("block{plural} {}{at}", listed(&numbers))
}

/// Median of the finite values; the mean of the middle two of an even number.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(sorted[sorted.len() / 2 - 1].midpoint(upper))
}

/// The percentile of a metric as tools claimed it, median over visits.
fn claimed(run: &RunRecord, contender: usize, metric: Metric) -> Option<f64> {
    let by_tool = run.measured(contender).filter(|visit| visit.tool.is_some());
    median(by_tool.filter_map(|visit| visit.value(metric)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn the_median_ignores_what_is_no_number() {
        assert_eq!(median([3.0, f64::NAN, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median([f64::NAN].into_iter()), None);
    }

    #[test]
    fn percentiles_come_from_merged_histograms() {
        let record = testdata::run();
        let standing = Standing::new(&record, 0);
        let each = record.measured(0).filter_map(Visit::service_after_cut);
        let count: u64 = each.map(|histogram| histogram.count()).sum();
        assert_eq!(standing.service.count(), count);
        let merged = standing.service.quantile(0.99).map(Nanos::as_millis_f64);
        assert_eq!(standing.value(Metric::P99), merged);
    }

    #[test]
    fn a_contender_without_a_visit_has_dashes() {
        let standing = Standing::new(&testdata::all_failed(), 0);
        for metric in testdata::METRICS {
            assert_eq!(standing.shown(metric), "-");
        }
        assert_eq!((standing.errors(), standing.visits()), ("-".to_owned(), "0 of 3".to_owned()));
    }
}
