//! One row for each visit, or for each interval of a load, for a spreadsheet or R (RFC 4180). Owns its columns;
//! figures are not rounded here, because they are computed with. Start reading at [`OUTPUT`].

use record::{LoadRecord, METRICS, Metric, RunRecord, Visit, VisitState};

use crate::wording::{name_of, plain};
use crate::{Options, Output, StreamFormat};

/// Every visit, one row each.
pub(crate) static OUTPUT: Output = Output {
    name: "csv",
    extension: "csv",
    about: "every visit of a run, or every interval of a load, one row each",
    render,
    render_load: Some(render_load),
};

/// Before the metrics, and after them.
const COLUMNS: [&[&str]; 2] = [
    &["cell", "contender", "block", "position", "attempt", "state"],
    &[
        "started",
        "done",
        "ok",
        "failed",
        "unanswered",
        "memory_method",
        "memory_at_most_bytes",
        "memory_swapped_bytes",
        "memory_unread_processes",
        "cgroup_peak_bytes",
    ],
];

fn render(record: &RunRecord, _: &Options) -> String {
    let rows = record.visits.iter().map(|visit| row(record, visit));
    std::iter::once(heading()).chain(rows).map(|line| line + "\r\n").collect()
}

/// As `joust load --stream` writes it while the load runs.
fn render_load(record: &LoadRecord, _: &Options) -> String {
    let lines = record.intervals.iter().map(|interval| StreamFormat::Csv.line(interval));
    std::iter::once(StreamFormat::Csv.header()).chain(lines).collect()
}

fn heading() -> String {
    let metrics: Vec<&str> = METRICS.iter().map(|info| info.csv_column).collect();
    [COLUMNS[0], &metrics, COLUMNS[1]].concat().join(",")
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
    let values = Metric::all().map(|metric| {
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
        .chain(counts.unwrap_or_default())
        .chain(memory(visit));
    line(cells)
}

/// How its memory was measured.
fn memory(visit: &Visit) -> [String; 5] {
    let Some(account) = visit.server.map(|server| server.memory_account) else {
        return Default::default();
    };
    [
        account.method.name().to_owned(),
        account.at_most.0.to_string(),
        account.swapped.0.to_string(),
        account.unread.to_string(),
        account.cgroup.map_or_else(String::new, |cgroup| cgroup.peak.0.to_string()),
    ]
}

/// A row of those cells.
pub(crate) fn line(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",")
}

/// Puts a cell in quotes if it contains a comma or a quote. A text that a spreadsheet would take for a formula gets
/// an apostrophe in front.
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
            let columns = heading().split(',').count();
            assert_eq!(text.lines().count(), record.visits.len() + 1);
            assert!(text.lines().all(|line| line.split(',').count() == columns), "{text}");
        }
    }

    #[test]
    fn a_load_has_a_row_an_interval() {
        let load = testdata::load();
        let text = render_load(&load, &Options::default());
        assert_eq!(text.lines().count(), load.intervals.len() + 1);
        assert!(text.starts_with("start_s,end_s,"), "{text}");
    }

    #[test]
    fn quotes_and_formulas_are_harmless() {
        let cells = ["a,b", "say \"no\"", "=cmd()", "-1.5"].map(quoted);
        assert_eq!(cells, ["\"a,b\"", "\"say \"\"no\"\"\"", "'=cmd()", "-1.5"]);
    }
}
