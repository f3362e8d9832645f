//! Owns the figures of a run: for each contender, cell and metric one logarithm per block, and why a figure may not be
//! used. Must not know databases. Start reading at [`logs`].

use std::collections::{BTreeMap, BTreeSet};

use record::{MemoryMethod, Metric, RunRecord, Severity, VisitState, Workload};
#[cfg(feature = "database")]
use stats::Paired;

/// If a larger share of a contender's visits failed, the remaining ones are its best; the same limit as for verdicts
/// within a run.
const FAILED_SHARE_MAX: f64 = 0.1;

/// The position of a figure in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FigurePlace {
    pub(crate) cell: usize,
    pub(crate) contender: usize,
}

/// All places of a run, cell by cell.
pub(crate) fn places(run: &RunRecord) -> impl Iterator<Item = FigurePlace> + '_ {
    let of_cell =
        |cell| run.plan.in_cell(cell).map(move |contender| FigurePlace { cell, contender });
    (0..run.plan.cells.len()).flat_map(of_cell)
}

/// The work of a place as JSON: two figures are comparable only if it is equal.
pub(crate) fn work(run: &RunRecord, place: FigurePlace) -> String {
    let work: Workload = run.plan.work(place.cell, place.contender);
    serde_json::to_string(&work).expect("plain data serialises")
}

/// For each block, the mean logarithm of the metric over its usable visits.
pub(crate) fn logs(run: &RunRecord, place: FigurePlace, metric: Metric) -> BTreeMap<u32, f64> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for visit in run.measured(place.contender).filter(|visit| visit.cell == place.cell) {
        // Zero has no logarithm; a contender that answered nothing is withheld by `failing`.
        if let Some(value) = visit.value(metric).filter(|value| value.is_finite() && *value > 0.0) {
            blocks.entry(visit.block).or_default().push(value.ln());
        }
    }
    let mean = |logs: Vec<f64>| logs.iter().sum::<f64>() / logs.len() as f64;
    blocks.into_iter().map(|(block, logs)| (block, mean(logs))).collect()
}

/// How memory was measured there, over the usable visits.
pub(crate) fn memory_methods(run: &RunRecord, place: FigurePlace) -> BTreeSet<MemoryMethod> {
    let here = run.measured(place.contender).filter(|visit| visit.cell == place.cell);
    here.filter_map(|visit| visit.memory_method()).collect()
}

/// The level over blocks with its interval, as in a verdict: a robust mean of logarithms, which outlying blocks do not
/// move.
#[cfg(feature = "database")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    pub(crate) mean: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) n: u32,
}

/// The level of a figure; `None` where nothing was measured.
#[cfg(feature = "database")]
pub(crate) fn level(run: &RunRecord, place: FigurePlace, metric: Metric) -> Option<Level> {
    let logs: Vec<f64> = logs(run, place, metric).into_values().collect();
    // The ratio to 1: an interval for a paired ratio holds for any centre of logarithms.
    let seen = Paired::of_logs(&logs).ok()?;
    let interval = seen.interval.map(|interval| (interval.low, interval.high));
    Some(Level { mean: seen.ratio, interval, n: seen.n as u32 })
}

/// Why no figure of a contender may be used there, if so: a confirmed finding voids it, or too many visits failed.
pub(crate) fn void(run: &RunRecord, place: FigurePlace) -> Option<String> {
    if let Some(check) = finding(run, place, Severity::Void) {
        return Some(format!("{check} on {}", run.plan.contenders[place.contender].name));
    }
    failing(run, place)
}

/// Checks of the doctor that fire when a server does not answer as it should.
const BROKEN: [&str; 2] = ["errors_as_speed", UNLIKE_BODIES];
/// The check for bodies that differ between contenders.
const UNLIKE_BODIES: &str = "different_bodies";

/// Why a contender does not do its work there, if so: too many visits failed, or its answers are wrong.
/// [`is_unlike_others`] covers bodies that differ from those of other contenders.
pub(crate) fn broken(run: &RunRecord, place: FigurePlace) -> Option<String> {
    let is_broken = |finding: &&record::Finding| {
        BROKEN.contains(&finding.check.as_str())
            && !is_of_unlike_bodies(finding)
            && acts(finding, place, Severity::Void)
    };
    let name = &run.plan.contenders[place.contender].name;
    let found = run.findings.iter().find(is_broken);
    found.map(|finding| format!("{} on {name}", finding.check)).or_else(|| failing(run, place))
}

fn failing(run: &RunRecord, place: FigurePlace) -> Option<String> {
    let visits = Tally::of(run, place);
    (visits.lost() as f64 > FAILED_SHARE_MAX * visits.all as f64).then(|| visits.said(run, place))
}

/// A contender's visits that count, and how many of them have no figure.
struct Tally {
    all: usize,
    failed: usize,
    silent: usize,
}

impl Tally {
    fn of(run: &RunRecord, place: FigurePlace) -> Self {
        let is_here = |visit: &&record::Visit| {
            (visit.cell, visit.contender) == (place.cell, place.contender)
                && visit.state != VisitState::Disturbed
        };
        let visits = || run.visits.iter().filter(is_here);
        let is_failed = |visit: &&record::Visit| matches!(visit.state, VisitState::Failed { .. });
        Self {
            all: visits().count(),
            failed: visits().filter(is_failed).count(),
            silent: visits().filter(|visit| visit.answered_nothing()).count(),
        }
    }

    fn lost(&self) -> usize {
        self.failed + self.silent
    }

    fn said(&self, run: &RunRecord, place: FigurePlace) -> String {
        let how = match (self.failed, self.silent) {
            (_, 0) => "failed",
            (0, _) => "finished no request in the measured window",
            _ => "failed or finished no request",
        };
        let name = &run.plan.contenders[place.contender].name;
        format!("{} of {} visits of {name} {how}", self.lost(), self.all)
    }
}

/// Whether a contender's body differs from those of the other contenders of its run.
pub(crate) fn is_unlike_others(run: &RunRecord, place: FigurePlace) -> bool {
    let acts = |one: &record::Finding| is_of_unlike_bodies(one) && acts(one, place, Severity::Void);
    run.findings.iter().any(acts)
}

/// Whether a finding says that contenders of one run sent different bodies, and is not about one alone.
fn is_of_unlike_bodies(finding: &record::Finding) -> bool {
    finding.alike && finding.check == UNLIKE_BODIES
}

/// SHA-256 of what a contender sends there; `None` where it never answered.
pub(crate) fn body(run: &RunRecord, place: FigurePlace) -> Option<&str> {
    let facts = &run.contenders[place.contender];
    let of_target = facts.bodies.get(&run.plan.target(place.cell, place.contender));
    let body = of_target.unwrap_or(&facts.body_sha256);
    (!body.is_empty()).then_some(body.as_str())
}

/// Whether the generator was the limit there, which makes throughput a lower bound.
pub(crate) fn is_limited(run: &RunRecord, place: FigurePlace) -> bool {
    finding(run, place, Severity::Bound).is_some()
}

/// Why that metric may not be used there, if so. A closed loop ties latency to the rate: at the generator's ceiling,
/// latency measures the generator's own queue, and throughput is only a bound.
pub(crate) fn withheld(run: &RunRecord, place: FigurePlace, metric: Metric) -> Option<String> {
    let silent = || {
        let visits = Tally { failed: 0, ..Tally::of(run, place) };
        (metric.is_rate() && visits.silent > 0).then(|| visits.said(run, place))
    };
    void(run, place).or_else(silent).or_else(|| {
        let name = &run.plan.contenders[place.contender].name;
        (metric.service_quantile().is_some() && is_limited(run, place)).then(|| {
            format!("the generator was the limit for {name}, so its latency holds the generator's own queue")
        })
    })
}

fn acts(finding: &record::Finding, place: FigurePlace, severity: Severity) -> bool {
    finding.acts(severity)
        && finding.touches(place.contender)
        && finding.cell.is_none_or(|cell| cell == place.cell)
}

fn finding(run: &RunRecord, place: FigurePlace, severity: Severity) -> Option<&str> {
    // Bodies that differ between contenders do not affect a contender compared with itself.
    let acts = |one: &&record::Finding| !is_of_unlike_bodies(one) && acts(one, place, severity);
    run.findings.iter().find(acts).map(|finding| finding.check.as_str())
}
