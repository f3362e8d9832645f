//! One row a visit, for a spreadsheet or R (RFC 4180). Owns its columns; figures are not rounded
//! here, since they are to be computed with. Start reading at [`OUTPUT`].

use record::{Metric, RunRecord, Visit, VisitState};

use crate::wording::{name_of, plain};
use crate::{Options, Output};

/// Every visit, one row each.
pub(crate) static OUTPUT: Output =
    Output { name: "csv", extension: "csv", about: "every visit, one row each", render };

const COLUMNS: &str = "cell,contender,block,position,attempt,state,rate_per_s,cpu_us_per_request,p50_ms,p99_ms,\
memory_bytes,capacity_per_s,started,done,ok,failed,unanswered";

const METRICS: [Metric; 6] = [
    Metric::Throughput,
    Metric::ServerCpu,
    Metric::P50,
    Metric::P99,
    Metric::Memory,
    Metric::Capacity,
];

fn render(record: &RunRecord, _: &Options) -> String {
    let rows = record.visits.iter().map(|visit| row(record, visit));
    std::iter::once(COLUMNS.to_owned()).chain(rows).map(|line| line + "\r\n").collect()
}

fn row(record: &RunRecord, visit: &Visit) -> String {
    let state = match &visit.state {
        VisitState::Measured => "measured".to_owned(),
        VisitState::Disturbed => {
            let seen = visit.disturbance().map(ToString::to_string).unwrap_or_default();
            format!("disturbed: {}", plain(&seen))
        }
        VisitState::Failed { reason, .. } => format!("failed: {}", plain(reason)),
    };
    let values = METRICS.map(|metric| {
        let value = visit.value(metric).filter(|value| value.is_finite());
        value.map_or_else(String::new, |value| value.to_string())
    });
    let counts = visit.load.as_ref().map(|load| {
        let r = load.requests;
        [r.started, r.done, r.ok, r.failed, r.unanswered].map(|count| count.to_string())
    });
    let place = [visit.block, visit.position, visit.attempt].map(|place| place.to_string());
    let cell = record.plan.cells.get(visit.cell).map_or_else(String::new, |cell| plain(&cell.name));
    let cells = [cell, name_of(&record.plan.contenders, visit.contender)]
        .into_iter()
        .chain(place)
        .chain([state])
        .chain(values)
        .chain(counts.unwrap_or_default());
    line(cells)
}

/// A row of those cells.
pub(crate) fn line(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",")
}

/// The name of a metric as run files have it ("server_cpu").
pub(crate) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::ServerCpu => "server_cpu",
        Metric::P50 => "p50",
        Metric::P99 => "p99",
        Metric::Capacity => "capacity",
        Metric::Memory => "memory",
    }
}

/// In quotes where a comma or a quote is inside. A text that a spreadsheet would take for a formula
/// gets an apostrophe in front.
fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
    let cell = if is_formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn every_row_has_every_column() {
        for record in [testdata::run_with(3), testdata::all_failed()] {
            let text = render(&record, &Options::default());
            let columns = COLUMNS.split(',').count();
            assert_eq!(text.lines().count(), record.visits.len() + 1);
            assert!(text.lines().all(|line| line.split(',').count() == columns), "{text}");
        }
    }

    #[test]
    fn quotes_and_formulas_are_harmless() {
        let cells = ["a,b", "say \"no\"", "=cmd()", "-1.5"].map(quoted);
        assert_eq!(cells, ["\"a,b\"", "\"say \"\"no\"\"\"", "'=cmd()", "-1.5"]);
    }
}
