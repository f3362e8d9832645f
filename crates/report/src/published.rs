//! Owns the figures that others published of an experiment, set beside today's. Must not know layout. Start reading
//! at [`table`].

use record::{BoundCause, Metric, PairVerdict, PublishedFigure, RunRecord, Verdict};
use stats::Paired;

use crate::cells::CellView;
use crate::figures::{NONE, ratio, ratio_with_interval};
use crate::standing::shown;
use crate::table::{Column, Depth, Row, Table};
use crate::wording::{name_of, plain, verdict};

const COLUMNS: [Column; 5] = [
    Column::text("contender"),
    Column::figure("printed", ""),
    Column::figure("printed ratio", ""),
    Column::figure("today [95 %]", ""),
    Column::figure("today's ratio [95 %]", ""),
];

/// Published figures of one cell beside the measured ones; no rows if nothing was published.
pub(crate) fn table(view: &CellView) -> Table {
    let captioned = captioned(&view.run);
    of(&view.run, true, rows(&view.run, captioned).collect())
}

/// The same of all cells, in one table with a heading a cell.
pub(crate) fn of_cells(record: &RunRecord, cells: &[CellView]) -> Table {
    let of_cell = |view: &CellView| {
        let rows: Vec<Row> = rows(&view.run, captioned(record)).collect();
        let name = (!rows.is_empty()).then(|| Row::Group(view.name.clone()));
        name.into_iter().chain(rows)
    };
    of(record, false, cells.iter().flat_map(of_cell).collect())
}

/// Whose figures they are, what they mean, and the denominator of the ratios.
fn of(run: &RunRecord, is_one: bool, rows: Vec<Row>) -> Table {
    let published = run.plan.published.as_ref();
    let quantity = captioned(run).map_or("", |metric| metric.info().quantity);
    let note = published.map_or_else(String::new, |published| {
        let [source, machine, claim] =
            [&published.source, &published.machine, &published.claim].map(|text| plain(text));
        format!("{source}, in {quantity}; {machine}. It concluded: {claim}.")
    });
    let is_fixed = is_one || published.is_some_and(|published| published.over.is_some());
    let base = base(run).filter(|_| is_fixed);
    let over = base.map_or_else(
        || "the first of each cell".to_owned(),
        |base| name_of(&run.plan.contenders, base),
    );
    Table {
        title: "Printed elsewhere".to_owned(),
        note: format!("{note} Ratios are over {over}"),
        columns: COLUMNS.to_vec(),
        rows,
        depth: Depth::Answer,
    }
}

/// The denominator of the ratios; `None` if nothing was published.
fn base(run: &RunRecord) -> Option<usize> {
    let published = run.plan.published.as_ref()?;
    let first = published.figures.first()?;
    Some(published.over.unwrap_or(first.contender))
}

/// The metric of the first figure: the note names it, and the rows those of others.
fn captioned(run: &RunRecord) -> Option<Metric> {
    Some(run.plan.published.as_ref()?.figures.first()?.metric)
}

fn rows(run: &RunRecord, captioned: Option<Metric>) -> impl Iterator<Item = Row> {
    let published = run.plan.published.iter();
    let figures = published.flat_map(|published| &published.figures);
    figures.filter_map(move |one| Some(row(run, one, base(run)?, captioned)))
}

fn row(run: &RunRecord, one: &PublishedFigure, base: usize, captioned: Option<Metric>) -> Row {
    let name = name_of(&run.plan.contenders, one.contender);
    let metric = (Some(one.metric) != captioned).then(|| one.metric.info().quantity);
    let of = [metric.unwrap_or_default(), &one.of];
    let of: Vec<String> = of.into_iter().filter(|text| !text.is_empty()).map(plain).collect();
    let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
    let [printed, printed_ratio] = printed(run, one, base);
    let today = today(run, one.metric, one.contender);
    let beside = beside(run, one.metric, one.contender, base);
    Row::of([format!("{name}{of}"), printed, printed_ratio, today, beside])
}

/// The published figure and its ratio to that of the base; if only ratios were published, those alone.
fn printed(run: &RunRecord, one: &PublishedFigure, base: usize) -> [String; 2] {
    let published = || run.plan.published.iter();
    if published().any(|published| published.over.is_some()) {
        return [NONE.to_owned(), ratio(one.value)];
    }
    let of_base = |of: &&PublishedFigure| of.contender == base && of.metric == one.metric;
    let over = published().flat_map(|published| &published.figures).find(of_base);
    let beside = over.map_or_else(|| NONE.to_owned(), |over| ratio(one.value / over.value));
    [shown(one.metric, Some(one.value)), beside]
}

/// Today's figure with its interval over visits, on the log scale as for ratios.
fn today(run: &RunRecord, metric: Metric, contender: usize) -> String {
    let values = run.measured(contender).filter_map(|visit| visit.value(metric));
    let over_one: Vec<(f64, f64)> =
        values.filter(|value| *value > 0.0).map(|value| (value, 1.0)).collect();
    let Ok(centre) = Paired::of(&over_one) else { return NONE.to_owned() };
    let text = |value: f64| shown(metric, Some(value));
    let middle = text(centre.ratio);
    centre.interval.map_or_else(
        || middle.clone(),
        |interval| {
            let [low, high] = [interval.low, interval.high].map(text);
            format!("{middle} [{low}, {high}]")
        },
    )
}

/// Today's ratio to the base, paired by block. A pair without a verdict, or with only a bound, has no ratio here
/// either.
fn beside(run: &RunRecord, metric: Metric, contender: usize, base: usize) -> String {
    if contender == base {
        return ratio(1.0);
    }
    let is_pair = |pair: &&PairVerdict| {
        pair.metric == metric && [(contender, base), (base, contender)].contains(&(pair.a, pair.b))
    };
    let pair = run.verdicts.iter().find(is_pair);
    let turned = |pair: &PairVerdict| match pair.a == contender {
        true => pair.verdict.clone(),
        false => pair.verdict.turned(),
    };
    match pair.map(turned) {
        Some(Verdict::Withheld { .. }) => return "withheld".to_owned(),
        Some(
            said @ (Verdict::AtLeast { cause: BoundCause::Ceiling, .. }
            | Verdict::AtMost { cause: BoundCause::Ceiling, .. }),
        ) => return verdict(&said),
        _ => {}
    }
    let value = |contender: usize, block: u32| {
        let visit = run.measured(contender).find(|visit| visit.block == block)?;
        visit.value(metric).filter(|value| *value > 0.0)
    };
    let blocks = run.measured(contender).map(|visit| visit.block);
    let pairs: Vec<(f64, f64)> =
        blocks.filter_map(|block| Some((value(contender, block)?, value(base, block)?))).collect();
    let Ok(paired) = Paired::of(&pairs) else { return NONE.to_owned() };
    match paired.interval {
        Some(interval) => ratio_with_interval(paired.ratio, interval.low, interval.high),
        None => ratio(paired.ratio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_figure_of_another_metric_has_its_unit_and_ratios_of_its_own() {
        let mut run = testdata::run_with(3);
        let figure = |contender, metric, value| PublishedFigure {
            contender,
            cell: 0,
            metric,
            value,
            of: String::new(),
        };
        run.plan.published = Some(record::Published {
            figures: vec![
                figure(0, Metric::Throughput, 500.0),
                figure(1, Metric::Throughput, 250.0),
                figure(0, Metric::Memory, 32e6),
                figure(1, Metric::Memory, 561e6),
                figure(1, Metric::P99, 12.0),
            ],
            ..record::Published::default()
        });
        let table = table(&crate::cells::cells(&run)[0]);
        let texts = |row: &Row| row.cells().iter().map(|cell| cell.text.clone()).collect();
        let rows: Vec<Vec<String>> = table.rows.iter().map(texts).collect();
        let printed: Vec<[&str; 2]> = rows.iter().map(|row| [&*row[1], &*row[2]]).collect();
        let expected = [
            ["500", "1.00x"],
            ["250", "0.50x"],
            ["32 MB", "1.00x"],
            ["561 MB", "17.5x"],
            ["12ms", NONE],
        ];
        assert_eq!(printed, expected);
        assert!(rows[2][0].ends_with("(peak memory)") && !rows[0][0].contains('('), "{rows:?}");
        assert!(rows[2][3].contains(" MB"), "today's memory with its unit: {rows:?}");
    }

    #[test]
    fn a_ratio_that_may_not_be_said_is_not_said_beside_printed_ones() {
        let mut run = testdata::run_with(3);
        run.verdicts.clear();
        let said = |run: &RunRecord| beside(run, Metric::Throughput, 1, 0);
        assert!(said(&run).contains('['), "{}", said(&run));
        let pair = |a, b, verdict| PairVerdict {
            cell: 0,
            metric: Metric::Throughput,
            a,
            b,
            estimate: None,
            verdict,
            short_of: None,
        };
        let bound = || Verdict::AtLeast { ratio: 1.25, cause: BoundCause::Ceiling };
        let withheld = || Verdict::Withheld { reason: "different_bodies".to_owned() };
        for (pair, says) in [
            (pair(0, 1, withheld()), "withheld"),
            (pair(1, 0, bound()), "at least 1.25x"),
            (pair(0, 1, bound()), "at most 0.80x"),
        ] {
            run.verdicts = vec![pair];
            assert_eq!(said(&run), says);
        }
    }
}
