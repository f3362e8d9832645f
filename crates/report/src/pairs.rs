//! Owns which pairs a report lists: all of them for a few contenders, otherwise each against the one that is ranked
//! first. A row is named after the side that is ahead, and has its ratio and interval whatever the verdict. Must not
//! know layout. Start reading at [`PairTable`].

use record::{BoundCause, Metric, RunRecord, Verdict};

use crate::cells::CellView;
use crate::figures::NONE;
use crate::headline::{Ranking, primary};
use crate::table::{Column, Depth, Row, Table};
use crate::wording::{Reading, name_of, verdict};

/// Up to this many contenders, every pair is listed (15 pairs); a longer list would bury the answer.
pub(crate) const CONTENDERS_ALL_PAIRS: usize = 6;

/// Metrics whose pairs a short report has.
const METRICS_SHORT: usize = 2;

/// Separates the two names of a pair, the better one first.
pub(crate) const OVER: &str = " over ";

/// What a reader must know about every interval that is shown.
pub(crate) const INTERVALS: &str = "Intervals are 95 % each, not adjusted for the number of pairs; \
                                    \"told apart\" needs p below 0.02 after Holm over all pairs of the \
                                    metric";

/// The pairs of one metric, the better side of each first.
#[derive(Debug)]
pub(crate) struct PairTable {
    pub(crate) metric: Metric,
    /// How many pairs the run has on this metric.
    pub(crate) pairs_all: usize,
    /// Name of the contender that all rows are compared with, if not all pairs are listed.
    pub(crate) reference: Option<String>,
    pub(crate) rows: Vec<PairRow>,
}

/// One pair.
#[derive(Debug)]
pub(crate) struct PairRow {
    /// "nginx over lighttpd".
    pub(crate) pair: String,
    /// Ratio and interval; in parentheses if the verdict is withheld, a dash if there is none.
    pub(crate) ratio: String,
    /// How it may be read.
    pub(crate) said: String,
    /// Number of its blocks, and of those required if it has fewer.
    pub(crate) blocks: String,
    pub(crate) is_withheld: bool,
}

const COLUMNS: [Column; 4] = [
    Column::text("pair"),
    Column::figure("ratio [95 %]", ""),
    Column::text("verdict"),
    Column::count("blocks"),
];

/// The pairs of one cell, a table a metric; a short report has those of the first two metrics.
pub(crate) fn tables(view: &CellView) -> Vec<Table> {
    let CellView { run, ranking, .. } = view;
    let table = |(at, metric)| {
        let depth = if at < METRICS_SHORT { Depth::Answer } else { Depth::Detail };
        Some(PairTable::short(run, ranking, metric)?.described(depth))
    };
    let mut tables: Vec<Table> =
        metrics(run, ranking).into_iter().enumerate().filter_map(table).collect();
    if let Some(first) = tables.first_mut() {
        first.note += &format!(". {INTERVALS}");
    }
    tables
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

    fn against(
        record: &RunRecord,
        ranking: &Ranking,
        metric: Metric,
        reference: Option<usize>,
    ) -> Option<Self> {
        let pairs_all = record.verdicts.iter().filter(|pair| pair.metric == metric).count();
        let readings = readings_against(record, ranking, metric, reference);
        let rows = readings.iter().map(|reading| row(record, reading)).collect();
        let reference = reference.map(|index| name_of(&record.plan.contenders, index));
        (pairs_all > 0).then_some(Self { metric, pairs_all, reference, rows })
    }

    /// Heading: the metric.
    pub(crate) fn title(&self) -> String {
        self.metric.info().title.to_owned()
    }

    /// As a table of that depth.
    pub(crate) fn described(self, depth: Depth) -> Table {
        let title = format!("Pairs: {}", self.title());
        let (reading, scope) = (self.how_read(), self.scope());
        let row = |row: PairRow| Row::of([row.pair, row.ratio, row.said, row.blocks]);
        let rows = self.rows.into_iter().map(row).collect();
        let note = format!("{reading}; {scope}");
        Table { title, note, columns: COLUMNS.to_vec(), rows, depth }
    }

    /// "A over B at 2x: A has twice the requests/s of B".
    fn how_read(&self) -> String {
        let withheld = match self.rows.iter().any(|row| row.is_withheld && row.ratio != NONE) {
            true => "; in parentheses: withheld, do not rely on it",
            false => "",
        };
        format!("A over B at 2x: A {} B{withheld}", self.metric.info().twice)
    }

    /// What is left out and where it is, or that nothing is.
    pub(crate) fn scope(&self) -> String {
        match &self.reference {
            None if self.pairs_all == 1 => "the only pair".to_owned(),
            None => format!("all {} pairs", self.pairs_all),
            Some(name) => format!(
                "those with {name}: {} of {} pairs; report.html has all",
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

/// The contender that others are compared with: the plan's reference, or else the first of the ranking that has a
/// verdict.
pub(crate) fn reference(record: &RunRecord, ranking: &Ranking, metric: Metric) -> Option<usize> {
    let pairs = || record.verdicts.iter().filter(|pair| pair.metric == metric);
    let has_verdict = |index: &usize| pairs().any(|pair| [pair.a, pair.b].contains(index));
    let planned = record.plan.reference.filter(has_verdict);
    planned
        .or_else(|| ranking.order().find(has_verdict))
        .or_else(|| pairs().next().map(|pair| pair.a))
}

/// The verdicts on a metric, those with one contender if it is given; pairs of better-ranked
/// contenders come first.
pub(crate) fn readings_against(
    record: &RunRecord,
    ranking: &Ranking,
    metric: Metric,
    reference: Option<usize>,
) -> Vec<Reading> {
    let pairs = record.verdicts.iter().filter(|pair| pair.metric == metric);
    let mut readings: Vec<Reading> = pairs.map(Reading::new).collect();
    readings.retain(|one| reference.is_none_or(|index| [one.this, one.that].contains(&index)));
    let place = |index: usize| ranking.order().position(|i| i == index).unwrap_or(usize::MAX);
    readings.sort_by_key(|reading| {
        let (this, that) = (place(reading.this), place(reading.that));
        (this.min(that), this.max(that))
    });
    readings
}

/// "nginx over lighttpd".
pub(crate) fn pair_name(record: &RunRecord, reading: &Reading) -> String {
    let [this, that] =
        [reading.this, reading.that].map(|index| name_of(&record.plan.contenders, index));
    format!("{this}{OVER}{that}")
}

fn row(record: &RunRecord, reading: &Reading) -> PairRow {
    let is_withheld = matches!(reading.verdict, Verdict::Withheld { .. });
    let ratio = match reading.ratio_and_interval() {
        Some(ratio) if is_withheld => format!("({ratio})"),
        ratio => ratio.unwrap_or_else(|| NONE.to_owned()),
    };
    let blocks = match (reading.short_of, reading.estimate) {
        (Some(short), _) => format!("{} of {}", short.blocks, short.of),
        (None, Some(estimate)) => estimate.blocks.to_string(),
        (None, None) => NONE.to_owned(),
    };
    PairRow { pair: pair_name(record, reading), ratio, said: said(reading), blocks, is_withheld }
}

/// The verdict beside a ratio that stands in a column of its own.
pub(crate) fn said(reading: &Reading) -> String {
    let text = match &reading.verdict {
        Verdict::Ratio { .. } if reading.ahead().is_some() => "told apart".to_owned(),
        Verdict::Ratio { .. } => "not told apart".to_owned(),
        bound @ Verdict::AtLeast { cause: BoundCause::Ceiling, .. } => {
            format!("{} (at a ceiling)", verdict(bound))
        }
        bound @ Verdict::AtLeast { cause: BoundCause::WideInterval, .. } => {
            format!("{} (wide interval)", verdict(bound))
        }
        other => verdict(other),
    };
    if reading.short_of.is_some() { format!("{text}, preliminary") } else { text }
}
