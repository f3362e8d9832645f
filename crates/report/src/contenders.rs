//! Owns the table of contenders: their figures, in the order of the ranking. Must not know layout.
//! Start reading at [`table`].

use record::Metric;

use crate::cells::CellView;
use crate::headline::Ranking;
use crate::standing::Standing;
use crate::table::{Cell, Column, Depth, Row, Table};

const COLUMNS: [Column; 8] = [
    Column::text("contender"),
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
    Table {
        title: "Contenders".to_owned(),
        note: note(&view.standings),
        columns: COLUMNS.to_vec(),
        rows: in_order(&view.standings, &view.ranking).map(row).collect(),
        depth: Depth::Answer,
    }
}

fn row(standing: &Standing) -> Row {
    let metrics = [Metric::Throughput, Metric::P50, Metric::P99, Metric::ServerCpu, Metric::Memory];
    let figures = metrics.map(|metric| Cell::from(standing.shown(metric)));
    let errors = Cell { is_bad: standing.has_errors(), ..Cell::from(standing.errors()) };
    let cells = std::iter::once(Cell::from(standing.name.clone()))
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
fn note(standings: &[Standing]) -> String {
    let mut notes = vec![
        "Medians over visits; percentiles of service time from the merged histograms of all visits",
    ];
    if standings.iter().any(|standing| standing.is_bound) {
        notes.push(">= and <= mark bounds: the measurement was the limit, not the server");
    }
    let dashed = |s: &Standing| [Metric::P50, Metric::P99].iter().any(|&m| s.value(m).is_none());
    if standings.iter().any(dashed) {
        notes.push("- marks what was not measured or has too few samples");
    }
    notes.join("; ")
}
