//! Owns the figures that formats for other programs have: one for each contender, cell and metric of a run, or one for
//! each quantity of a load, with its unit in its name. Must not know any format. Start reading at [`of_run`].

use record::{LatencyMillis, LoadRecord, Metric, MetricKind, MetricUnit, RunRecord};
use serde::Serialize;

use crate::cells::{CellView, cells};
use crate::figures::rounded;
use crate::load_findings::is_rate_bound;
use crate::standing::Standing;
use crate::wording::plain;

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Measured {
    /// Name of the cell; empty if there is only one.
    pub(crate) cell: String,
    /// Name of the contender; of a load, its URL.
    pub(crate) contender: String,
    /// Its name, the unit last: "p99_ms".
    pub(crate) name: String,
    /// In words: "p99 service time".
    #[serde(skip)]
    pub(crate) quantity: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Direction,
    /// `None` if it was not measured, or if there are too few samples for it.
    pub(crate) value: Option<f64>,
    /// The lowest and the highest visit; `None` in a load, and if no visit has it.
    pub(crate) visit_min: Option<f64>,
    pub(crate) visit_max: Option<f64>,
    /// Visits that have it; `None` in a load.
    pub(crate) visits: Option<usize>,
    /// Whether the value is only a bound, because the measurement was the limit.
    pub(crate) bound: Option<Bound>,
}

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    Higher,
    Lower,
}

/// On which side of a figure the truth lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast,
    AtMost,
}

impl Measured {
    /// Whose it is: "nginx at connections=10".
    pub(crate) fn whose(&self) -> String {
        whose(&self.cell, &self.contender)
    }

    /// What a reader must know of the value: "at least; median of 8 visits".
    pub(crate) fn remark(&self) -> String {
        let bound = self.bound.map(|bound| match bound {
            Bound::AtLeast => "a lower bound: the measurement was the limit".to_owned(),
            Bound::AtMost => "an upper bound: the measurement was the limit".to_owned(),
        });
        let visits = self.visits.map(|visits| match visits {
            1 => "1 visit".to_owned(),
            n => format!("{n} visits"),
        });
        bound.into_iter().chain(visits).collect::<Vec<_>>().join("; ")
    }
}

/// "nginx at connections=10"; of the only cell "nginx".
pub(crate) fn whose(cell: &str, contender: &str) -> String {
    if cell.is_empty() { contender.to_owned() } else { format!("{contender} at {cell}") }
}

/// Name of a cell, by its index.
pub(crate) fn cell_name(record: &RunRecord, cell: usize) -> String {
    record.plan.cells.get(cell).map_or_else(String::new, |cell| plain(&cell.name))
}

/// The unit of a metric, in full.
pub(crate) fn unit(metric: Metric) -> &'static str {
    match metric.info().unit {
        MetricUnit::PerSecond => "requests/s",
        MetricUnit::MicrosPerRequest => "us/request",
        MetricUnit::PerRequest => "1/request",
        MetricUnit::Millis => "ms",
        MetricUnit::Bytes => "bytes",
    }
}

/// Every figure of a run, cell by cell and contender by contender.
pub(crate) fn of_run(record: &RunRecord) -> Vec<Measured> {
    let of_view = |view: &CellView| {
        let metrics = metrics(record, view);
        let of = |one: &Standing| of_contender(view, one, &metrics);
        view.standings.iter().flat_map(of).collect::<Vec<_>>()
    };
    cells(record).iter().flat_map(of_view).collect()
}

/// The metrics of the study, and any other that was measured.
pub(crate) fn metrics(record: &RunRecord, view: &CellView) -> Vec<Metric> {
    let has = |metric| view.standings.iter().any(|one| one.value(metric).is_some());
    Metric::all().filter(|metric| record.plan.metrics.contains(metric) || has(*metric)).collect()
}

/// The figures of one contender of a cell.
pub(crate) fn of_contender(
    view: &CellView,
    standing: &Standing,
    metrics: &[Metric],
) -> Vec<Measured> {
    let of = |&metric: &Metric| {
        let info = metric.info();
        let visits = view.run.measured(standing.index).filter_map(|visit| visit.value(metric));
        let visits: Vec<f64> = visits.filter_map(rounded).collect();
        let value = standing.value(metric).and_then(rounded);
        let bound = match info.kind {
            MetricKind::Rate => Some(Bound::AtLeast),
            MetricKind::ServiceTime(_) => Some(Bound::AtMost),
            MetricKind::Resource => None,
        };
        Measured {
            cell: view.name.clone(),
            contender: standing.name.clone(),
            name: info.csv_column.to_owned(),
            quantity: info.quantity.to_owned(),
            unit: unit(metric),
            better: if metric.more_is_better() { Direction::Higher } else { Direction::Lower },
            value,
            visit_min: visits.iter().copied().reduce(f64::min),
            visit_max: visits.iter().copied().reduce(f64::max),
            visits: Some(visits.len()),
            bound: bound.filter(|_| standing.is_bound && value.is_some()),
        }
    };
    let errors = standing.failed_of_done().map(|(failed, done)| failed as f64 / done as f64);
    let errors = Measured {
        cell: view.name.clone(),
        contender: standing.name.clone(),
        visits: Some(standing.visits_measured),
        ..error_share(errors)
    };
    metrics.iter().map(of).chain([errors]).collect()
}

fn error_share(value: Option<f64>) -> Measured {
    Measured {
        name: "error_share".to_owned(),
        quantity: "share of requests that failed".to_owned(),
        unit: "share",
        ..lower(value)
    }
}

/// A figure of which less is better, without a name.
fn lower(value: Option<f64>) -> Measured {
    Measured {
        cell: String::new(),
        contender: String::new(),
        name: String::new(),
        quantity: String::new(),
        unit: "ms",
        better: Direction::Lower,
        value: value.and_then(rounded),
        visit_min: None,
        visit_max: None,
        visits: None,
        bound: None,
    }
}

/// A span of a request, and the figures of its distribution.
type Span = (&'static str, &'static str, fn(&LoadRecord) -> &LatencyMillis);

/// Spans that a load's figures are of, the one that a user waits for first: name, words, summary.
const SPANS: [Span; 5] = [
    ("response", "response time", |load| &load.response_ms),
    ("service", "service time", |load| &load.service_ms),
    ("first_byte", "time to first byte", |load| &load.first_byte_ms),
    ("queue", "queue time", |load| &load.queue_ms),
    ("connect", "time to connect", |load| &load.connect_ms),
];

/// A figure of a summary.
type SummaryFigure = (&'static str, fn(&LatencyMillis) -> Option<f64>);

/// Figures of a summary: name and value.
const SUMMARY: [SummaryFigure; 7] = [
    ("mean", |one| one.mean),
    ("min", |one| one.min),
    ("p50", |one| one.p50),
    ("p90", |one| one.p90),
    ("p99", |one| one.p99),
    ("p999", |one| one.p999),
    ("max", |one| one.max),
];

/// Every figure of a load. A span that was never timed has none.
pub(crate) fn of_load(record: &LoadRecord) -> Vec<Measured> {
    let bound = is_rate_bound(record).then_some(Bound::AtLeast);
    let rate = (record.seconds > 0.0).then_some(record.rate_per_s);
    let rate = Measured {
        name: "rate_per_s".to_owned(),
        quantity: "requests/s".to_owned(),
        unit: "requests/s",
        better: Direction::Higher,
        bound: bound.filter(|_| rate.is_some()),
        ..lower(rate)
    };
    let is_timed = |span: &&Span| *(span.2)(record) != LatencyMillis::default();
    let spans = SPANS.iter().filter(is_timed).flat_map(|(span, words, summary)| {
        SUMMARY.iter().map(move |(figure, of)| Measured {
            name: format!("{span}_{figure}_ms"),
            quantity: format!("{figure} of {words}"),
            ..lower(of(summary(record)))
        })
    });
    let cpu = Measured {
        name: "client_cpu_us_per_request".to_owned(),
        quantity: "CPU time of the generator per request".to_owned(),
        unit: "us/request",
        ..lower(record.cpu_us_per_request)
    };
    let due = record.due();
    let errors = (due > 0).then(|| record.bad() as f64 / due as f64);
    let all = std::iter::once(rate).chain(spans).chain([error_share(errors), cpu]);
    let url = plain(&record.plan.url);
    all.map(|one| Measured { contender: url.clone(), ..one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn what_was_not_measured_is_absent_and_never_zero() {
        let figures = of_run(&testdata::all_failed());
        assert!(!figures.is_empty());
        for figure in figures {
            assert_eq!((figure.value, figure.visit_min, figure.bound), (None, None, None));
        }
        let empty = record::LoadRecord::empty(testdata::load().plan);
        let figures = of_load(&empty);
        assert!(figures.iter().all(|one| one.value.is_none()), "{figures:?}");
        assert!(figures.iter().all(|one| !one.name.starts_with("response")), "{figures:?}");
    }

    #[test]
    fn a_value_lies_among_its_visits_and_a_limited_rate_is_a_lower_bound() {
        let figures = of_run(&testdata::run());
        let rate = |name: &str| {
            let is_it = |one: &&Measured| one.contender == name && one.name == "rate_per_s";
            figures.iter().find(is_it).unwrap()
        };
        assert_eq!(rate("nginx").bound, Some(Bound::AtLeast));
        assert_eq!(rate("apache event").bound, None);
        let (low, high) = (rate("nginx").visit_min.unwrap(), rate("nginx").visit_max.unwrap());
        assert!(low < high && (low..=high).contains(&rate("nginx").value.unwrap()));
        assert_eq!(rate("nginx").visits, Some(8));
    }
}
