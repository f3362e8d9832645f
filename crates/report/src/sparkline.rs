//! Owns sparklines: one column a visit, block by block, higher is better. Must not know where they stand. Start reading
//! at [`Beats::of`].

use record::{Metric, RunRecord, VisitState};

use crate::standing::median;

/// All lines of a chart share their scale. It spans at least the first share of the median on either side, so that
/// noise of a thousandth does not look large, and at most the second, so that one outlier does not flatten all lines.
const SPAN: (f64, f64) = (0.05, 0.5);
const LEVELS: [[char; 8]; 2] = [
    ['1', '2', '3', '4', '5', '6', '7', '8'],
    [
        '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}',
        '\u{2588}',
    ],
];

/// What a column shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Beat {
    /// Logarithm of the visit's figure over the contender's median, turned so that more is better.
    Value(f64),
    /// The visit failed.
    Failed,
    /// There is none.
    Missing,
}

/// The visits of one contender in one cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Beats(pub(crate) Vec<Beat>);

impl Beats {
    /// One beat for each of the first `blocks` blocks.
    pub(crate) fn of(record: &RunRecord, contender: usize, metric: Metric, blocks: usize) -> Self {
        let mut values: Vec<Beat> = vec![Beat::Missing; blocks];
        for visit in record.visits.iter().filter(|visit| visit.contender == contender) {
            let Some(beat) = values.get_mut(visit.block as usize) else { continue };
            match (&visit.state, visit.value(metric)) {
                (VisitState::Measured, Some(value)) if value > 0.0 && value.is_finite() => {
                    *beat = Beat::Value(value.ln());
                }
                (VisitState::Failed { .. }, _) => *beat = Beat::Failed,
                _ => {}
            }
        }
        Self(values).over_median(metric.more_is_better())
    }

    /// From logarithms of figures.
    pub(crate) fn over_median(mut self, more_is_better: bool) -> Self {
        let value = |beat: &Beat| if let Beat::Value(ln) = beat { Some(*ln) } else { None };
        let centre = median(self.0.iter().filter_map(value)).unwrap_or(0.0);
        let sign = if more_is_better { 1.0 } else { -1.0 };
        for beat in &mut self.0 {
            if let Beat::Value(ln) = beat {
                *ln = sign * (*ln - centre);
            }
        }
        self
    }

    /// At most `columns` of it: neighbours share a column, with their mean; a failure is always seen.
    pub(crate) fn line(&self, span: f64, columns: usize, is_unicode: bool) -> String {
        let each = self.0.len().div_ceil(columns.max(1)).max(1);
        let joined = |beats: &[Beat]| {
            if beats.contains(&Beat::Failed) {
                return Beat::Failed;
            }
            let values: Vec<f64> = beats.iter().filter_map(of_value).collect();
            match values.len() {
                0 => Beat::Missing,
                n => Beat::Value(values.iter().sum::<f64>() / n as f64),
            }
        };
        self.0.chunks(each).map(|beats| symbol(joined(beats), span, is_unicode)).collect()
    }
}

fn of_value(beat: &Beat) -> Option<f64> {
    if let Beat::Value(ln) = beat { Some(*ln) } else { None }
}

fn symbol(beat: Beat, span: f64, is_unicode: bool) -> char {
    match beat {
        Beat::Value(ln) => {
            let height = (ln / (1.0 + span).ln()).clamp(-1.0, 1.0);
            LEVELS[usize::from(is_unicode)][(((height + 1.0) / 2.0 * 8.0) as usize).min(7)]
        }
        Beat::Failed if is_unicode => '\u{d7}',
        Beat::Failed => 'x',
        Beat::Missing if is_unicode => '\u{b7}',
        Beat::Missing => '.',
    }
}

/// The share of a median that all these lines span on either side.
pub(crate) fn span<'a>(all: impl Iterator<Item = &'a Beats>) -> f64 {
    let farthest = all.flat_map(|beats| &beats.0).filter_map(of_value).map(f64::abs);
    (farthest.fold(0.0, f64::max).exp() - 1.0).clamp(SPAN.0, SPAN.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beats(values: &[f64]) -> Beats {
        let beat = |&value: &f64| match value {
            0.0 => Beat::Missing,
            value if value < 0.0 => Beat::Failed,
            value => Beat::Value(value.ln()),
        };
        Beats(values.iter().map(beat).collect())
    }

    #[test]
    fn up_is_better_whatever_the_metric_and_failures_are_marked() {
        let rates = beats(&[95.0, 100.0, 105.0, 0.0, -1.0]);
        let more = rates.clone().over_median(true);
        let span = span([&more].into_iter());
        assert!((0.05..0.06).contains(&span), "{span}");
        assert_eq!(more.line(span, 10, true), "\u{2581}\u{2585}\u{2588}\u{b7}\u{d7}");
        assert_eq!(more.line(span, 10, false), "158.x");
        assert_eq!(rates.over_median(false).line(span, 10, false), "851.x");
    }

    #[test]
    fn noise_stays_flat_and_an_outlier_flattens_nobody() {
        let calm = beats(&[100.0, 100.1, 99.9]).over_median(true);
        assert_eq!(calm.line(span([&calm].into_iter()), 9, false), "554");
        let wild = beats(&[100.0, 100.0, 1.0]).over_median(true);
        assert_eq!(span([&wild].into_iter()), 0.5);
        assert_eq!(wild.line(0.5, 9, false), "551");
    }

    #[test]
    fn more_blocks_than_columns_share_them() {
        let many = beats(&[100.0; 40]).over_median(true);
        assert_eq!(many.line(0.05, 10, false), "5555555555");
        let mut failed = many;
        failed.0[7] = Beat::Failed;
        assert_eq!(failed.line(0.05, 10, false), "5x55555555");
        assert_eq!(beats(&[]).line(0.05, 10, false), "");
    }
}
