//! Owns the table of contenders: their figures, in the order of the ranking. Start reading at [`columns`].

use record::Metric;

use crate::cells::CellView;
use crate::figures::NONE;
use crate::headline::Ranking;
use crate::standing::Standing;
use crate::table::{Cell, Column, Depth, Row, Table};

const PLACE: &str = "place";

/// The contenders of one cell.
pub(crate) fn table(view: &CellView) -> Table {
    let columns = columns(view);
    let row = |one| Row::Cells(columns.iter().map(|(_, cell)| cell(one)).collect());
    Table {
        title: "Contenders".to_owned(),
        note: note(&view.standings, &view.ranking),
        rows: in_order(&view.standings, &view.ranking).map(row).collect(),
        columns: columns.into_iter().map(|(column, _)| column).collect(),
        depth: Depth::Answer,
    }
}

/// What stands in a contender's row.
type CellOf<'a> = Box<dyn Fn(&Standing) -> Cell + 'a>;

/// The columns from left to right, each with its cells.
fn columns(view: &CellView) -> Vec<(Column, CellOf<'_>)> {
    let ranking = &view.ranking;
    let place = move |one: &Standing| {
        Cell::from(ranking.place_of(one.index).unwrap_or_else(|| NONE.to_owned()))
    };
    let mut columns: Vec<(Column, CellOf<'_>)> =
        vec![(Column::text("contender"), Box::new(|one| Cell::from(one.name.clone())))];
    // If no two were told apart, all would share one place.
    if ranking.tells_apart() {
        columns.push((Column::common(PLACE), Box::new(place)));
    }
    for metric in metrics(&view.standings) {
        columns.push((Column::metric(metric), Box::new(move |one| Cell::from(one.shown(metric)))));
    }
    let errors = |one: &Standing| Cell { is_bad: one.has_errors(), ..Cell::from(one.errors()) };
    columns.push((Column::figure("errors", ""), Box::new(errors)));
    columns.push((Column::count("visits"), Box::new(|one| Cell::from(one.visits()))));
    columns
}

/// A study's default metrics, and any other that was measured.
fn metrics(standings: &[Standing]) -> Vec<Metric> {
    let is_measured = |metric| standings.iter().any(|one| one.value(metric).is_some());
    Metric::all().filter(|&metric| !metric.info().needs_search || is_measured(metric)).collect()
}

/// The contenders in the order of the ranking, those without a place last.
pub(crate) fn in_order<'a>(
    standings: &'a [Standing],
    ranking: &'a Ranking,
) -> impl Iterator<Item = &'a Standing> {
    let unplaced = standings.iter().filter(|s| ranking.order().all(|index| index != s.index));
    ranking.order().map(|index| &standings[index]).chain(unplaced)
}

/// What a reader must know to read the table.
fn note(standings: &[Standing], ranking: &Ranking) -> String {
    let mut notes = vec![
        "Medians over visits; p50 and p99 over the requests of all visits. The ratio of a pair is \
         computed within each block, so it can differ a little from the ratio of two figures here",
    ];
    let by = ranking.metric.info().quantity;
    let places =
        format!("places by {by}; = marks a shared place: not all of these were told apart");
    if ranking.tells_apart() {
        notes.push(&places);
    }
    if standings.iter().any(|standing| standing.is_bound) {
        notes.push(">= and <= mark bounds: the measurement was the limit, not the server");
    }
    let is_latency = |metric: &Metric| metric.service_quantile().is_some();
    let dashed = |s: &Standing| Metric::all().filter(is_latency).any(|m| s.value(m).is_none());
    if standings.iter().any(dashed) {
        notes.push("- marks what was not measured or has too few samples");
    }
    notes.join("; ")
}
