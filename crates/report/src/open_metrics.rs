//! OpenMetrics 1.0 text, for a Pushgateway, a textfile collector or any reader of Prometheus' format: one gauge a
//! quantity in base units (seconds, bytes), with cell and contender as labels. What was not measured has no sample.
//! Start reading at [`OUTPUT`].

use std::fmt::Write as _;

use record::{LoadRecord, RunRecord};

use crate::figures::rounded;
use crate::json_run::PairFigures;
use crate::measured::{Measured, cell_name, of_load, of_run};
use crate::sheets::word;
use crate::wording::plain;
use crate::{Options, Output, Render, Written};

/// The text, ending in `# EOF`.
pub(crate) static OUTPUT: Output = Output {
    name: "openmetrics",
    extension: "prom",
    about: "OpenMetrics text, for Prometheus' tools",
    written: Written::OnRequest,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(render_load)),
};

/// A label and its value.
pub(crate) type Label<'a> = (&'static str, &'a str);

/// What the samples of a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A count that only grows; its samples are named `_total`.
    Counter,
    /// Quantiles, named by the label `quantile`.
    Summary,
}

/// Samples of one quantity.
pub(crate) struct Family {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// The last part of the name, as the format demands; empty for a number without one.
    pub(crate) unit: &'static str,
    pub(crate) help: String,
    /// Labels as they stand between braces, and the value.
    pub(crate) samples: Vec<(String, f64)>,
}

fn render(record: &RunRecord, _: &Options) -> String {
    let mut families = families(&of_run(record));
    families.extend(ratios(record));
    families.extend(findings(&record.findings));
    text(&families)
}

fn render_load(record: &LoadRecord, _: &Options) -> String {
    let mut families = families(&of_load(record));
    families.extend(requests(record));
    families.extend(findings(&record.findings));
    text(&families)
}

/// One family a quantity, in the order in which quantities first occur.
pub(crate) fn families(measured: &[Measured]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for one in measured {
        let Some(value) = one.value else { continue };
        let (name, unit, scale) = base(&one.name, one.unit);
        let labels = labels(&[("cell", &one.cell), ("contender", &one.contender)]);
        let sample = (labels, value * scale);
        match families.iter_mut().find(|family| family.name == name) {
            Some(family) => family.samples.push(sample),
            None => {
                let help = one.quantity.clone();
                families.push(Family {
                    kind: Kind::Gauge,
                    name,
                    unit,
                    help,
                    samples: vec![sample],
                });
            }
        }
    }
    families
}

/// Name, unit and factor of a quantity in base units: "p99_ms" is `joust_p99_seconds`.
fn base(name: &str, unit: &str) -> (String, &'static str, f64) {
    let (suffix, unit, scale) = match unit {
        "ms" => ("_ms", "seconds", 1e-3),
        "us/request" => ("_us_per_request", "seconds_per_request", 1e-6),
        "requests/s" => ("_per_s", "requests_per_second", 1.0),
        "bytes" => ("_bytes", "bytes", 1.0),
        "share" => ("_share", "ratio", 1.0),
        _ => ("", "", 1.0),
    };
    let stem = name.strip_suffix(suffix).unwrap_or(name);
    let unit_part = if unit.is_empty() { String::new() } else { format!("_{unit}") };
    (format!("joust_{stem}{unit_part}"), unit, scale)
}

/// A gauge of pairs: its name, what it means, and how it is read.
type PairGauge = (&'static str, &'static str, fn(&PairFigures) -> Option<f64>);

/// The estimate of each pair, a over b, with its interval.
fn ratios(record: &RunRecord) -> Vec<Family> {
    let ends: [PairGauge; 3] = [
        ("joust_pair_ratio", "a over b", |pair| pair.ratio),
        ("joust_pair_low_ratio", "lower end of the 95 % interval of a over b", |pair| pair.low),
        ("joust_pair_high_ratio", "upper end of the 95 % interval of a over b", |pair| pair.high),
    ];
    let of = |(name, help, end): PairGauge| {
        let sample = |pair: &record::PairVerdict| {
            let cell = cell_name(record, pair.cell);
            let pair = PairFigures::of(pair, record);
            let labels = labels(&[
                ("cell", &cell),
                ("metric", pair.metric),
                ("a", &pair.a),
                ("b", &pair.b),
                ("says", pair.says),
            ]);
            Some((labels, end(&pair)?))
        };
        let samples = record.verdicts.iter().filter_map(sample).collect();
        let (name, help) = (name.to_owned(), help.to_owned());
        Family { kind: Kind::Gauge, name, unit: "ratio", help, samples }
    };
    ends.map(of).into()
}

/// How many findings of a kind there are.
fn findings(all: &[record::Finding]) -> Option<Family> {
    let mut samples: Vec<(String, f64)> = Vec::new();
    for finding in all {
        let severity = word(&finding.severity).unwrap_or_default();
        let certainty = word(&finding.certainty).unwrap_or_default();
        let labels = labels(&[
            ("check", &plain(&finding.check)),
            ("severity", &severity),
            ("certainty", &certainty),
        ]);
        match samples.iter_mut().find(|(known, _)| *known == labels) {
            Some((_, count)) => *count += 1.0,
            None => samples.push((labels, 1.0)),
        }
    }
    let help = "findings of the doctor".to_owned();
    (!samples.is_empty()).then(|| Family {
        kind: Kind::Gauge,
        name: "joust_findings".to_owned(),
        unit: "",
        help,
        samples,
    })
}

/// Requests of a load by outcome.
fn requests(record: &LoadRecord) -> Option<Family> {
    let counts = record.requests;
    let outcomes =
        [("ok", counts.ok), ("failed", counts.failed), ("unanswered", counts.unanswered)];
    let sample = |(outcome, count): (&str, u64)| (labels(&[("outcome", outcome)]), count as f64);
    let help = "requests by outcome".to_owned();
    let samples = outcomes.map(sample).into();
    let name = "joust_requests".to_owned();
    Some(Family { kind: Kind::Gauge, name, unit: "", help, samples })
}

/// Labels as they stand between braces; one without a value is left out, which means the same.
pub(crate) fn labels(all: &[Label<'_>]) -> String {
    let there = all.iter().filter(|(_, value)| !value.is_empty());
    let each = there.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    each.collect::<Vec<_>>().join(",")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The whole text of some families.
pub(crate) fn text(families: &[Family]) -> String {
    let mut page = String::new();
    for Family { kind, name, unit, help, samples } in families {
        let (word, suffix) = match kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
            Kind::Summary => ("summary", ""),
        };
        let _ = writeln!(page, "# TYPE {name} {word}");
        if !unit.is_empty() {
            let _ = writeln!(page, "# UNIT {name} {unit}");
        }
        let _ = writeln!(page, "# HELP {name} {}", escaped(help));
        for (labels, value) in samples {
            let value = match kind {
                // A count is exact.
                Kind::Counter => *value,
                Kind::Gauge | Kind::Summary => rounded(*value).unwrap_or(f64::NAN),
            };
            let _ = match labels.as_str() {
                "" => writeln!(page, "{name}{suffix} {value}"),
                labels => writeln!(page, "{name}{suffix}{{{labels}}} {value}"),
            };
        }
    }
    page + "# EOF\n"
}
