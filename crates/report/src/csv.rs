//! One row for each visit, or for each interval of a load, for a spreadsheet or R (RFC 4180). Owns its columns;
//! figures are not rounded here, because they are computed with. Start reading at [`OUTPUT`].

use record::{
    LoadRecord, METRICS, MemoryAccount, Metric, RequestCounts, RunRecord, Visit, VisitState,
};

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

/// The name of a column, and what stands in the row of a visit.
type Column = (&'static str, fn(&RunRecord, &Visit) -> String);

/// Before the metrics.
const FIRST: [Column; 6] = [
    ("cell", |run, visit| {
        run.plan.cells.get(visit.cell).map_or_else(String::new, |cell| plain(&cell.name))
    }),
    ("contender", |run, visit| name_of(&run.plan.contenders, visit.contender)),
    ("block", |_, visit| visit.block.to_string()),
    ("position", |_, visit| visit.position.to_string()),
    ("attempt", |_, visit| visit.attempt.to_string()),
    ("state", |_, visit| state(visit)),
];

/// After them.
const LAST: [Column; 10] = [
    ("started", |_, visit| requests(visit, |requests| requests.started)),
    ("done", |_, visit| requests(visit, |requests| requests.done)),
    ("ok", |_, visit| requests(visit, |requests| requests.ok)),
    ("failed", |_, visit| requests(visit, |requests| requests.failed)),
    ("unanswered", |_, visit| requests(visit, |requests| requests.unanswered)),
    ("memory_method", |_, visit| memory(visit, |account| account.method.name().to_owned())),
    ("memory_at_most_bytes", |_, visit| memory(visit, |account| account.at_most.0.to_string())),
    ("memory_swapped_bytes", |_, visit| memory(visit, |account| account.swapped.0.to_string())),
    ("memory_unread_processes", |_, visit| memory(visit, |account| account.unread.to_string())),
    ("cgroup_peak_bytes", |_, visit| {
        memory(visit, |account| {
            account.cgroup.map_or_else(String::new, |cgroup| cgroup.peak.0.to_string())
        })
    }),
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
    let name = |column: &Column| column.0;
    let metrics = METRICS.iter().map(|info| info.csv_column);
    let names = FIRST.iter().map(name).chain(metrics).chain(LAST.iter().map(name));
    names.collect::<Vec<_>>().join(",")
}

fn row(run: &RunRecord, visit: &Visit) -> String {
    let cell = |column: &Column| (column.1)(run, visit);
    let metrics = Metric::all().map(|metric| {
        let value = visit.value(metric).filter(|value| value.is_finite());
        value.map_or_else(String::new, |value| value.to_string())
    });
    line(FIRST.iter().map(cell).chain(metrics).chain(LAST.iter().map(cell)))
}

fn state(visit: &Visit) -> String {
    match &visit.state {
        VisitState::Measured => "measured".to_owned(),
        VisitState::Disturbed => {
            let seen = visit.disturbance().map(ToString::to_string).unwrap_or_default();
            format!("disturbed: {}", plain(&seen))
        }
        VisitState::Failed { reason, .. } => format!("failed: {}", plain(reason)),
    }
}

/// A count of the load's requests; empty where another tool made it.
fn requests(visit: &Visit, count: impl Fn(&RequestCounts) -> u64) -> String {
    visit.load.as_ref().map_or_else(String::new, |load| count(&load.requests).to_string())
}

/// How the server's memory was measured; empty where it was not.
fn memory(visit: &Visit, figure: impl Fn(&MemoryAccount) -> String) -> String {
    visit.server.map_or_else(String::new, |server| figure(&server.memory_account))
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
