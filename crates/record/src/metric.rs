//! Owns the metrics: their names, which direction is better, how each is read from a visit, and its wording. A new
//! metric is a variant of [`Metric`] and its record in [`METRICS`]: studies, verdicts, the history, command lines and
//! every report take it from there. Start reading at [`MetricInfo`].

use serde::{Deserialize, Serialize};
use stats::Better;
use units::{Bytes, PerSecond};

use crate::visit::{Visit, VisitState};

/// A quantity that contenders are compared by; [`METRICS`] describes it completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "METRICS defines them")]
pub enum Metric {
    Throughput,
    ServerCpu,
    P50,
    P99,
    Memory,
    Capacity,
}

/// The description of a metric.
#[derive(Debug)]
pub struct MetricInfo {
    /// The metric.
    pub metric: Metric,
    /// Its name in studies, run files and on command lines ("server_cpu").
    pub name: &'static str,
    /// Heading: "Server CPU time per request".
    pub title: &'static str,
    /// The quantity of a ratio, in the middle of a sentence: "server CPU time per request".
    pub quantity: &'static str,
    /// Title of its column, without the unit: "CPU".
    pub column: &'static str,
    /// Name of its column in CSV files, unit last.
    pub csv_column: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// The unit of its values.
    pub unit: MetricUnit,
    /// What limits it, and how visits are summarised.
    pub kind: MetricKind,
    /// Whether only a study with `[search]` has it. A study that names no metrics has all others.
    pub needs_search: bool,
    /// Its value in a measured visit; `None` if it was not measured or the sample is too small.
    pub value: fn(&Visit) -> Option<f64>,
    /// Which end a ranking starts with: "most first".
    pub best_first: &'static str,
    /// The predicate of the best one: "is fastest".
    pub first: &'static str,
    /// The predicate of the better of two, before the name of the other: "is faster than".
    pub beats: &'static str,
    /// The meaning of a ratio of two, before the name of the other: "has twice the requests/s of".
    pub twice: &'static str,
    /// The wording of a ratio above 1.
    pub factor: MetricFactor,
}

/// The unit of a metric's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    /// Requests/s.
    PerSecond,
    /// Microseconds per request.
    MicrosPerRequest,
    /// Milliseconds.
    Millis,
    /// Bytes.
    Bytes,
    /// A number per request.
    PerRequest,
}

/// What can limit a metric, and how visits are summarised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// A rate of requests. If the generator was the limit it is a lower bound; a visit without any good answer has no
    /// rate. Median over visits.
    Rate,
    /// This quantile of service time, from the histogram merged over visits. If the generator was the limit it includes
    /// the generator's own queue.
    ServiceTime(f64),
    /// A resource that the server used; the generator's limit does not affect it. Median over visits.
    Resource,
}

/// The wording of a ratio above 1 in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricFactor {
    /// About the better one: "1.32x the requests/s".
    Has(&'static str),
    /// About the other one: "needs 1.32x as much".
    Other(&'static str, &'static str),
}

/// Every metric, in the order of [`Metric`], in which reports show them.
pub static METRICS: [MetricInfo; 6] = [
    MetricInfo {
        metric: Metric::Throughput,
        name: "throughput",
        title: "Throughput",
        quantity: "requests/s",
        column: "requests",
        csv_column: "rate_per_s",
        better: Better::Higher,
        unit: MetricUnit::PerSecond,
        kind: MetricKind::Rate,
        needs_search: false,
        value: |visit| visit.rate_per_s,
        best_first: "most first",
        first: "is fastest",
        beats: "is faster than",
        twice: "has twice the requests/s of",
        factor: MetricFactor::Has("the requests/s"),
    },
    // Over the server's whole process tree.
    MetricInfo {
        metric: Metric::ServerCpu,
        name: "server_cpu",
        title: "Server CPU time per request",
        quantity: "server CPU time per request",
        column: "CPU",
        csv_column: "cpu_us_per_request",
        better: Better::Lower,
        unit: MetricUnit::MicrosPerRequest,
        kind: MetricKind::Resource,
        needs_search: false,
        value: |visit| visit.server?.cpu_us_per_request(),
        best_first: "least first",
        first: "needs the least server CPU time per request",
        beats: "needs less server CPU time per request than",
        twice: "needs half the server CPU time per request of",
        factor: MetricFactor::Other("needs", "as much"),
    },
    MetricInfo {
        metric: Metric::P50,
        name: "p50",
        title: "Median service time",
        quantity: "median service time",
        column: "p50",
        csv_column: "p50_ms",
        better: Better::Lower,
        unit: MetricUnit::Millis,
        kind: MetricKind::ServiceTime(0.50),
        needs_search: false,
        value: |visit| visit.service_quantile_ms(0.50),
        best_first: "shortest first",
        first: "has the shortest median service time",
        beats: "has a shorter median service time than",
        twice: "has half the median service time of",
        factor: MetricFactor::Other("takes", "as long"),
    },
    MetricInfo {
        metric: Metric::P99,
        name: "p99",
        title: "99th percentile of service time",
        quantity: "p99 service time",
        column: "p99",
        csv_column: "p99_ms",
        better: Better::Lower,
        unit: MetricUnit::Millis,
        kind: MetricKind::ServiceTime(0.99),
        needs_search: false,
        value: |visit| visit.service_quantile_ms(0.99),
        best_first: "shortest first",
        first: "has the shortest p99 service time",
        beats: "has a shorter p99 service time than",
        twice: "has half the p99 service time of",
        factor: MetricFactor::Other("takes", "as long"),
    },
    // Over the server's whole process tree, with each page counted once.
    MetricInfo {
        metric: Metric::Memory,
        name: "memory",
        title: "Peak memory",
        quantity: "peak memory",
        column: "memory",
        csv_column: "memory_bytes",
        better: Better::Lower,
        unit: MetricUnit::Bytes,
        kind: MetricKind::Resource,
        needs_search: false,
        value: |visit| Some(visit.server?.memory.0 as f64),
        best_first: "least first",
        first: "has the lowest peak memory",
        beats: "has a lower peak memory than",
        twice: "has half the peak memory of",
        factor: MetricFactor::Other("uses", "as much"),
    },
    MetricInfo {
        metric: Metric::Capacity,
        name: "capacity",
        title: "Capacity",
        quantity: "capacity (highest requests/s that meet the goals)",
        column: "capacity",
        csv_column: "capacity_per_s",
        better: Better::Higher,
        unit: MetricUnit::PerSecond,
        kind: MetricKind::Rate,
        needs_search: true,
        value: |visit| Some(visit.search.as_ref()?.highest_good?.0),
        best_first: "most first",
        first: "has the highest capacity",
        beats: "has a higher capacity than",
        twice: "has twice the capacity of",
        factor: MetricFactor::Has("the capacity"),
    },
];

// `Metric::info` uses the variant's number as an index.
const _: () = {
    let mut index = 0;
    while index < METRICS.len() {
        assert!(METRICS[index].metric as usize == index, "METRICS has the order of Metric");
        index += 1;
    }
};

impl Metric {
    /// Its description.
    pub fn info(self) -> &'static MetricInfo {
        &METRICS[self as usize]
    }

    /// The metric of that name.
    pub fn named(name: &str) -> Option<Self> {
        METRICS.iter().find(|info| info.name == name).map(|info| info.metric)
    }

    /// Every metric, in the order of reports.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + Clone {
        METRICS.iter().map(|info| info.metric)
    }

    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        self.info().better == Better::Higher
    }

    /// Whether it is a rate of requests.
    pub fn is_rate(self) -> bool {
        self.info().kind == MetricKind::Rate
    }

    /// The quantile of service time that it is, if it is one.
    pub fn service_quantile(self) -> Option<f64> {
        match self.info().kind {
            MetricKind::ServiceTime(q) => Some(q),
            MetricKind::Rate | MetricKind::Resource => None,
        }
    }
}

impl Visit {
    /// The value of a metric in this visit; `None` if it was not measured or the sample is too small for it.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        if self.state == VisitState::Measured { (metric.info().value)(self) } else { None }
    }
}

impl MetricUnit {
    /// The unit in the heading of a column; empty if each value has its own.
    pub fn heading(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::MicrosPerRequest => "us/request",
            Self::PerRequest => "/request",
            Self::Millis | Self::Bytes => "",
        }
    }

    /// The unit after a figure; empty if each value has its own.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::MicrosPerRequest => " us",
            Self::PerRequest | Self::Millis | Self::Bytes => "",
        }
    }

    /// A value with its unit, in the middle of a sentence.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::PerSecond => PerSecond(value).to_string(),
            Self::MicrosPerRequest => format!("{value:.1} us"),
            Self::PerRequest => format!("{value:.2}"),
            Self::Millis => format!("{value:.2} ms"),
            Self::Bytes => Bytes(value as u64).to_string(),
        }
    }
}

impl MetricInfo {
    /// "more is better" or "less is better".
    pub fn direction(&self) -> &'static str {
        match self.better {
            Better::Higher => "more is better",
            Better::Lower => "less is better",
        }
    }

    /// The wording of the better one's factor over the `others`: "at least 1.28x the requests/s of each of the other
    /// 5", "each of the other 5 needs at least 1.28x as much".
    pub fn factor(&self, said: &str, others: &str) -> String {
        match self.factor {
            MetricFactor::Has(what) => format!("{said} {what} of {others}"),
            MetricFactor::Other(verb, unit) => format!("{others} {verb} {said} {unit}"),
        }
    }

    /// The same in a sentence that has already named the other: "1.32x the requests/s".
    pub fn factor_of_pair(&self, said: &str, other: &str) -> String {
        match self.factor {
            MetricFactor::Has(what) => format!("{said} {what}"),
            MetricFactor::Other(..) => self.factor(said, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_record_under_the_name_that_files_have() {
        let refused = serde_json::from_str::<Metric>("\"no metric\"").unwrap_err().to_string();
        let variants: Vec<&str> = refused.split('`').skip(3).step_by(2).collect();
        let names: Vec<&str> = METRICS.iter().map(|info| info.name).collect();
        assert_eq!(variants, names, "a metric without a record in METRICS? {refused}");
        for info in &METRICS {
            assert_eq!(serde_json::to_value(info.metric).unwrap(), info.name);
            assert_eq!(Metric::named(info.name), Some(info.metric));
        }
    }

    #[test]
    fn a_ratio_is_said_of_the_better_or_of_the_other() {
        let throughput = Metric::Throughput.info().factor("at least 1.28x", "nginx");
        assert_eq!(throughput, "at least 1.28x the requests/s of nginx");
        let cpu = Metric::ServerCpu.info().factor("2.50x", "each of the other 5");
        assert_eq!(cpu, "each of the other 5 needs 2.50x as much");
    }
}
