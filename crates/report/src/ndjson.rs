//! A JSON object a line, for jq, a log pipeline or a table: each line says in `record` what it is of. The first is the
//! run or the load itself; then come figures, pairs or goals, findings, and visits of a run or intervals of a load.
//! Names are those of the JSON format. Start reading at [`OUTPUT`].

use record::{LoadRecord, RunRecord};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::json::one_line;
use crate::json_load::{LoadHead, goals};
use crate::json_run::{FindingFacts, PairFigures, RunHead};
use crate::measured::{cell_name, of_load, of_run};
use crate::sheet::{Cell, Sheet};
use crate::sheets::visits;
use crate::{Options, Output, Render, StreamFormat, Written};

/// A line for each figure, pair, finding and visit.
pub(crate) static OUTPUT: Output = Output {
    name: "ndjson",
    extension: "ndjson",
    about: "a JSON object a line: figures, pairs, findings, and visits or intervals",
    written: Written::OnRequest,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(render_load)),
};

/// A line and what it is of.
#[derive(Serialize)]
struct Line<T> {
    record: &'static str,
    #[serde(flatten)]
    of: T,
}

/// A pair with the cell that it is of.
#[derive(Serialize)]
struct PairOfCell {
    cell: String,
    #[serde(flatten)]
    pair: PairFigures,
}

fn render(record: &RunRecord, _: &Options) -> String {
    let pair = |pair: &record::PairVerdict| PairOfCell {
        cell: cell_name(record, pair.cell),
        pair: PairFigures::of(pair, record),
    };
    let figures = lines("figure", of_run(record).into_iter());
    let pairs = lines("pair", record.verdicts.iter().map(pair));
    let findings = record.findings.iter().map(|finding| FindingFacts::of(finding, record));
    lines("run", std::iter::once(RunHead::of(record)))
        + &figures
        + &pairs
        + &lines("finding", findings)
        + &lines("visit", objects(visits(record)))
}

fn render_load(record: &LoadRecord, _: &Options) -> String {
    let findings = record.findings.iter().map(FindingFacts::of_load);
    let interval = |interval| {
        let line = StreamFormat::Ndjson.line(interval);
        serde_json::from_str::<Map<String, Value>>(&line).expect("a line of a stream is an object")
    };
    lines("load", std::iter::once(LoadHead::of(record)))
        + &lines("figure", of_load(record).into_iter())
        + &lines("goal", goals(record).into_iter())
        + &lines("finding", findings)
        + &lines("interval", record.intervals.iter().map(interval))
}

fn lines<T: Serialize>(record: &'static str, all: impl Iterator<Item = T>) -> String {
    all.map(|of| one_line(&Line { record, of })).collect()
}

/// The rows of a table as objects.
fn objects(sheet: Sheet) -> impl Iterator<Item = Map<String, Value>> {
    let names: Vec<&str> = sheet.columns.iter().map(|(name, _)| *name).collect();
    let object = move |row: Vec<Cell>| {
        names.iter().map(|name| (*name).to_owned()).zip(row.into_iter().map(value)).collect()
    };
    sheet.rows.into_iter().map(object)
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Text(text) => text.into(),
        Cell::Count(count) => count.into(),
        Cell::Figure(figure) => figure.into(),
        Cell::Flag(flag) => flag.into(),
        Cell::Empty => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn counted(text: &str, record: &str) -> usize {
        let parsed = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        parsed.filter(|one| one["record"] == record).count()
    }

    #[test]
    fn every_figure_pair_finding_and_visit_has_a_line() {
        let run = testdata::celled();
        let text = render(&run, &Options::default());
        let expected = [
            ("run", 1),
            ("figure", of_run(&run).len()),
            ("pair", run.verdicts.len()),
            ("finding", run.findings.len()),
            ("visit", run.visits.len()),
        ];
        for (record, number) in expected {
            assert_eq!(counted(&text, record), number, "{record}");
        }
        let lines: usize = expected.iter().map(|(_, number)| number).sum();
        assert_eq!(text.lines().count(), lines);
    }

    #[test]
    fn every_interval_of_a_load_has_a_line() {
        let mut load = testdata::load();
        load.plan.goals = record::parse_goals("errors<1%").unwrap();
        let text = render_load(&load, &Options::default());
        assert_eq!(counted(&text, "interval"), load.intervals.len());
        assert_eq!((counted(&text, "load"), counted(&text, "goal")), (1, 1));
        assert_eq!(counted(&text, "figure"), of_load(&load).len());
    }
}
