//! Owns which pairs a report lists: all of them for a few contenders, else each against the one
//! that is ranked first. Must not know layout. Start reading at [`PairTable`].

use record::{Metric, RunRecord};

use crate::cells::CellView;
use crate::figures::NONE;
use crate::headline::{Ranking, primary};
use crate::table::{Column, Depth, Row, Table};
use crate::wording::{Reading, name_of, verdict, words};

/// Up to this many contenders every pair is listed (15 pairs); above, a list would bury the answer.
pub(crate) const CONTENDERS_ALL_PAIRS: usize = 6;

/// Metrics whose pairs a short report has.
const METRICS_SHORT: usize = 2;

/// The pairs of one metric, as rows that read from left to right.
#[derive(Debug)]
pub(crate) struct PairTable {
    pub(crate) metric: Metric,
    /// How many pairs the run has on this metric.
    pub(crate) pairs_all: usize,
    /// Name of the contender that all rows are held against, where not all pairs are listed.
    pub(crate) reference: Option<String>,
    pub(crate) rows: Vec<PairRow>,
}

/// One pair: "`this` `said` `that`".
#[derive(Debug)]
pub(crate) struct PairRow {
    pub(crate) this: String,
    pub(crate) said: String,
    pub(crate) that: String,
    /// Who is better, or a dash.
    pub(crate) ahead: String,
    /// Blocks behind the verdict.
    pub(crate) blocks: String,
}

const COLUMNS: [Column; 5] = [
    Column::text("pair"),
    Column::text("verdict"),
    Column::text("against"),
    Column::text("ahead"),
    Column::count("blocks"),
];

/// The pairs of one cell, a table a metric; a short report has those of the first two metrics.
pub(crate) fn tables(view: &CellView) -> Vec<Table> {
    let CellView { run, ranking, .. } = view;
    let table = |(at, metric)| {
        let depth = if at < METRICS_SHORT { Depth::Answer } else { Depth::Detail };
        Some(PairTable::short(run, ranking, metric)?.described(depth))
    };
    metrics(run, ranking).into_iter().enumerate().filter_map(table).collect()
}

impl PairTable {
    /// The pairs of a metric that a short report lists; `None` without any.
    pub(crate) fn short(record: &RunRecord, ranking: &Ranking, metric: Metric) -> Option<Self> {
        let reference = (record.plan.contenders.len() > CONTENDERS_ALL_PAIRS)
            .then(|| reference(record, ranking, metric))
            .flatten();
        Self::against(record, ranking, metric, reference)
    }

    /// All pairs of a metric; `None` without any.
    pub(crate) fn all(record: &RunRecord, ranking: &Ranking, metric: Metric) -> Option<Self> {
        Self::against(record, ranking, metric, None)
    }

    /// Pairs of better-ranked contenders come first.
    fn against(
        record: &RunRecord,
        ranking: &Ranking,
        metric: Metric,
        reference: Option<usize>,
    ) -> Option<Self> {
        let mut readings = readings_of(record, metric);
        let pairs_all = readings.len();
        if let Some(held_against) = reference {
            readings.retain(|reading| [reading.this, reading.that].contains(&held_against));
        }
        let place = |index: usize| ranking.order().position(|i| i == index).unwrap_or(usize::MAX);
        readings.sort_by_key(|r| {
            let (this, that) = (place(r.this), place(r.that));
            (this.min(that), this.max(that))
        });
        let rows = readings.iter().map(|reading| row(record, reading)).collect();
        let reference = reference.map(|index| name_of(&record.plan.contenders, index));
        (pairs_all > 0).then_some(Self { metric, pairs_all, reference, rows })
    }

    /// Heading: the metric, its direction, and against whom.
    pub(crate) fn title(&self) -> String {
        let words = words(self.metric);
        format!("{}, {}", words.title, words.direction())
    }

    /// As a table of that depth.
    pub(crate) fn described(self, depth: Depth) -> Table {
        let (title, note) = (format!("Pairs: {}", self.title()), self.scope());
        let row = |row: PairRow| Row::of([row.this, row.said, row.that, row.ahead, row.blocks]);
        let rows = self.rows.into_iter().map(row).collect();
        Table { title, note, columns: COLUMNS.to_vec(), rows, depth }
    }

    /// What is left out and where it is, or that nothing is.
    pub(crate) fn scope(&self) -> String {
        match &self.reference {
            None if self.pairs_all == 1 => "the only pair".to_owned(),
            None => format!("all {} pairs", self.pairs_all),
            Some(name) => format!(
                "each against {name}: {} of {} pairs; report.html has all",
                self.rows.len(),
                self.pairs_all
            ),
        }
    }
}

/// Metrics that the run has verdicts on: the one it ranks by, the primary one, server CPU time, and
/// the rest in the order of the plan.
pub(crate) fn metrics(record: &RunRecord, ranking: &Ranking) -> Vec<Metric> {
    let first = [ranking.metric, primary(record), Metric::ServerCpu];
    let rest = record.verdicts.iter().map(|pair| pair.metric);
    let mut metrics: Vec<Metric> = Vec::new();
    for metric in first.into_iter().chain(rest) {
        let has_verdicts = record.verdicts.iter().any(|pair| pair.metric == metric);
        if has_verdicts && !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics
}

/// The contender that others are held against: that of the plan, else the first of the ranking that has
/// a verdict.
pub(crate) fn reference(record: &RunRecord, ranking: &Ranking, metric: Metric) -> Option<usize> {
    let pairs = || record.verdicts.iter().filter(|pair| pair.metric == metric);
    let has_verdict = |index: &usize| pairs().any(|pair| [pair.a, pair.b].contains(index));
    let planned = record.plan.reference.filter(has_verdict);
    planned
        .or_else(|| ranking.order().find(has_verdict))
        .or_else(|| pairs().next().map(|pair| pair.a))
}

/// Every verdict on a metric, read the right way round.
pub(crate) fn readings_of(record: &RunRecord, metric: Metric) -> Vec<Reading> {
    record.verdicts.iter().filter(|pair| pair.metric == metric).map(Reading::new).collect()
}

fn row(record: &RunRecord, reading: &Reading) -> PairRow {
    let contenders = &record.plan.contenders;
    let ahead = reading.ahead().map(|index| name_of(contenders, index));
    PairRow {
        this: name_of(contenders, reading.this),
        said: verdict(&reading.verdict),
        that: name_of(contenders, reading.that),
        ahead: ahead.unwrap_or_else(|| NONE.to_owned()),
        blocks: reading.estimate.map_or_else(|| NONE.to_owned(), |e| e.blocks.to_string()),
    }
}
