//! Owns the figures that others printed of an experiment, set beside today's. Must not know layout.
//! Start reading at [`Table::of`].

use record::{Metric, PublishedFigure, RunRecord};
use stats::Paired;

use crate::figures::{NONE, ratio, ratio_with_interval, significant};
use crate::wording::{name_of, plain, words};

/// Titles of the columns; all but the first lean to the right.
pub(crate) const COLUMNS: [&str; 5] =
    ["contender", "printed", "printed ratio", "today [95 %]", "today's ratio [95 %]"];

/// What was printed of one cell, beside what was measured.
pub(crate) struct Table {
    /// Whose figures, of what, and over whom the ratios are.
    pub(crate) caption: String,
    /// Below [`COLUMNS`].
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Of a run of one cell; `None` where nothing was printed of it.
    pub(crate) fn of(run: &RunRecord) -> Option<Self> {
        let published = run.plan.published.as_ref()?;
        let first = published.figures.first()?;
        let base = published.over.unwrap_or(first.contender);
        // The figure that printed ratios are over; ratios that were printed need none.
        let printed_base = || {
            let of_base = published.figures.iter().find(|one| one.contender == base);
            of_base.map_or(first.value, |one| one.value)
        };
        let row = |one: &PublishedFigure| {
            let (printed, printed_ratio) = match published.over {
                Some(_) => (NONE.to_owned(), ratio(one.value)),
                None => (significant(one.value), ratio(one.value / printed_base())),
            };
            let name = name_of(&run.plan.contenders, one.contender);
            let of =
                if one.of.is_empty() { String::new() } else { format!(" ({})", plain(&one.of)) };
            let today = today(run, one.metric, one.contender);
            let beside = beside(run, one.metric, one.contender, base);
            vec![format!("{name}{of}"), printed, printed_ratio, today, beside]
        };
        let caption = format!(
            "{}, in {}; {}. It concluded: {}. Ratios are over {}",
            plain(&published.source),
            words(first.metric).quantity,
            plain(&published.machine),
            plain(&published.claim),
            name_of(&run.plan.contenders, base),
        );
        Some(Self { caption, rows: published.figures.iter().map(row).collect() })
    }
}

/// Today's figure with its interval over visits, on the log scale as for ratios.
fn today(run: &RunRecord, metric: Metric, contender: usize) -> String {
    let values = run.measured(contender).filter_map(|visit| visit.value(metric));
    let over_one: Vec<(f64, f64)> =
        values.filter(|value| *value > 0.0).map(|value| (value, 1.0)).collect();
    let Ok(mean) = Paired::of(&over_one, run.plan.seed) else { return NONE.to_owned() };
    let middle = significant(mean.ratio);
    mean.interval.map_or_else(
        || middle.clone(),
        |interval| {
            let [low, high] = [interval.low, interval.high].map(significant);
            format!("{middle} [{low}, {high}]")
        },
    )
}

/// Today's ratio over the base, paired by block.
fn beside(run: &RunRecord, metric: Metric, contender: usize, base: usize) -> String {
    if contender == base {
        return ratio(1.0);
    }
    let value = |contender: usize, block: u32| {
        let visit = run.measured(contender).find(|visit| visit.block == block)?;
        visit.value(metric).filter(|value| *value > 0.0)
    };
    let blocks = run.measured(contender).map(|visit| visit.block);
    let pairs: Vec<(f64, f64)> =
        blocks.filter_map(|block| Some((value(contender, block)?, value(base, block)?))).collect();
    let Ok(paired) = Paired::of(&pairs, run.plan.seed) else { return NONE.to_owned() };
    match paired.interval {
        Some(interval) => ratio_with_interval(paired.ratio, interval.low, interval.high),
        None => ratio(paired.ratio),
    }
}
