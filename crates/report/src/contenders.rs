//! Owns the table of contenders: their figures, in the order of the ranking. Must not know layout.
//! Start reading at [`table`].

use record::Metric;

use crate::cells::CellView;
use crate::figures::NONE;
use crate::headline::Ranking;
use crate::standing::Standing;
use crate::table::{Cell, Column, Depth, Row, Table};

const PLACE: &str = "place";

/// The contenders of one cell.
pub(crate) fn table(view: &CellView) -> Table {
    // If no two were told apart, all would share one place.
    let has_places = view.ranking.tells_apart();
    let place = has_places.then(|| Column::common(PLACE));
    let metrics = metrics(&view.standings);
    let columns = std::iter::once(Column::text("contender"))
        .chain(place)
        .chain(metrics.iter().map(|&metric| Column::metric(metric)))
        .chain([Column::figure("errors", ""), Column::count("visits")]);
    Table {
        title: "Contenders".to_owned(),
        note: note(&view.standings, &view.ranking),
        columns: columns.collect(),
        rows: in_order(&view.standings, &view.ranking)
            .map(|one| row(one, &view.ranking, &metrics))
            .collect(),
        depth: Depth::Answer,
    }
}

/// A study's default metrics, and any other that was measured.
fn metrics(standings: &[Standing]) -> Vec<Metric> {
    let is_measured = |metric| standings.iter().any(|one| one.value(metric).is_some());
    Metric::all().filter(|&metric| !metric.info().needs_search || is_measured(metric)).collect()
}

fn row(standing: &Standing, ranking: &Ranking, metrics: &[Metric]) -> Row {
    let place = || ranking.place_of(standing.index).unwrap_or_else(|| NONE.to_owned());
    let place = ranking.tells_apart().then(|| Cell::from(place()));
    let figures = metrics.iter().map(|&metric| Cell::from(standing.shown(metric)));
    let errors = Cell { is_bad: standing.has_errors(), ..Cell::from(standing.errors()) };
    let cells = std::iter::once(Cell::from(standing.name.clone()))
        .chain(place)
        .chain(figures)
        .chain([errors, Cell::from(standing.visits())]);
    Row::Cells(cells.collect())
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
