//! Owns the table of contenders: their figures, in the order of the ranking. Must not know layout.
//! Start reading at [`table`].

use record::Metric;

use crate::cells::CellView;
use crate::figures::NONE;
use crate::headline::Ranking;
use crate::standing::Standing;
use crate::table::{Cell, Column, Depth, Row, Table};
use crate::wording::words;

const PLACE: &str = "place";

const COLUMNS: [Column; 9] = [
    Column::text("contender"),
    Column::common(PLACE),
    Column::figure("requests", "/s"),
    Column::figure("p50", ""),
    Column::figure("p99", ""),
    Column::figure("CPU", "us/request"),
    Column::figure("memory", ""),
    Column::figure("errors", ""),
    Column::count("visits"),
];

/// The contenders of one cell.
pub(crate) fn table(view: &CellView) -> Table {
    // Where no two were told apart all would share one place.
    let has_places = view.ranking.tells_apart();
    let columns = COLUMNS.into_iter().filter(|column| has_places || column.title != PLACE);
    Table {
        title: "Contenders".to_owned(),
        note: note(&view.standings, &view.ranking),
        columns: columns.collect(),
        rows: in_order(&view.standings, &view.ranking).map(|one| row(one, &view.ranking)).collect(),
        depth: Depth::Answer,
    }
}

fn row(standing: &Standing, ranking: &Ranking) -> Row {
    let place = || ranking.place_of(standing.index).unwrap_or_else(|| NONE.to_owned());
    let place = ranking.tells_apart().then(|| Cell::from(place()));
    let metrics = [Metric::Throughput, Metric::P50, Metric::P99, Metric::ServerCpu, Metric::Memory];
    let figures = metrics.map(|metric| Cell::from(standing.shown(metric)));
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
        "Medians over visits; p50 and p99 over the requests of all visits. A pair's ratio is made \
         within each block, so it can differ a little from that of two figures here",
    ];
    let by = words(ranking.metric).quantity;
    let places =
        format!("places by {by}; = marks places that are shared, as not all were told apart");
    if ranking.tells_apart() {
        notes.push(&places);
    }
    if standings.iter().any(|standing| standing.is_bound) {
        notes.push(">= and <= mark bounds: the measurement was the limit, not the server");
    }
    let dashed = |s: &Standing| [Metric::P50, Metric::P99].iter().any(|&m| s.value(m).is_none());
    if standings.iter().any(dashed) {
        notes.push("- marks what was not measured or has too few samples");
    }
    notes.join("; ")
}
