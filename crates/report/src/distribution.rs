//! Response times as a histogram: a bar for each step of a logarithmic scale, and the counts behind it.
//! Owns the choice of the steps; must not know what is drawn with them. Start reading at
//! [`Distribution::of`].

use stats::Histogram;
use units::Nanos;

/// Most steps that are shown.
pub(crate) const STEPS_MAX: usize = 16;

/// Where steps end in each decade, from the finest scale to the coarsest: the rounded series of preferred
/// numbers (ISO 3) R20, R10 and R5, then 1-2-5, then decades.
const SCALES: [&[f64]; 5] = [
    &[
        1.0, 1.12, 1.25, 1.4, 1.6, 1.8, 2.0, 2.24, 2.5, 2.8, 3.15, 3.55, 4.0, 4.5, 5.0, 5.6, 6.3,
        7.1, 8.0, 9.0,
    ],
    &[1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0],
    &[1.0, 1.6, 2.5, 4.0, 6.3],
    &[1.0, 2.0, 5.0],
    &[1.0],
];

/// Decades from 1 ns to past the longest span that a histogram holds.
const DECADES: i32 = 14;

/// Quantiles whose step is marked.
const MARKED: [(f64, &str); 4] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

/// The steps from the shortest span to the longest, without gaps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Distribution {
    pub(crate) steps: Vec<Step>,
    /// Those of [`MARKED`] for which there are enough spans.
    marked: Vec<(f64, &'static str)>,
}

/// Spans above the end of the step before, up to and with `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) to: Nanos,
    pub(crate) count: u64,
    /// Count of this step and all before it.
    pub(crate) up_to: u64,
}

impl Distribution {
    /// By the finest scale that has at most `steps_max` steps; `None` if the histogram is empty. The histogram is
    /// exact to 0.1 %, and so is which step a span is in.
    pub(crate) fn of(histogram: &Histogram, steps_max: usize) -> Option<Self> {
        let (min, _) = histogram.buckets().next()?;
        let (max, _) = histogram.buckets().last()?;
        let fits = |scale: &[f64]| n_steps(scale, min, max) <= steps_max;
        let scale = SCALES.into_iter().find(|scale| fits(scale)).unwrap_or(SCALES[4]);
        Some(Self::by(histogram, scale, min))
    }

    fn by(histogram: &Histogram, scale: &[f64], min: Nanos) -> Self {
        let mut ends = ends(scale).skip_while(|to| *to < min);
        let mut steps = Vec::new();
        let mut open = Step { to: ends.next().unwrap_or(Nanos::MAX), count: 0, up_to: 0 };
        for (span, count) in histogram.buckets() {
            while span > open.to {
                steps.push(open);
                let to = ends.next().unwrap_or(Nanos::MAX);
                open = Step { to, count: 0, up_to: open.up_to };
            }
            open.count += count;
            open.up_to += count;
        }
        steps.push(open);
        let is_known = |(q, _): &(f64, &str)| histogram.quantile(*q).is_some();
        Self { steps, marked: MARKED.into_iter().filter(is_known).collect() }
    }

    /// The quantiles that lie in the step of that index: "p50 p90", or nothing.
    pub(crate) fn marks(&self, index: usize) -> String {
        let before = index.checked_sub(1).map_or(0, |before| self.steps[before].up_to);
        let rank = |q: f64| (q * self.total() as f64).ceil().max(1.0) as u64;
        let is_here =
            |&&(q, _): &&(f64, &str)| (before + 1..=self.steps[index].up_to).contains(&rank(q));
        let here: Vec<&str> = self.marked.iter().filter(is_here).map(|(_, name)| *name).collect();
        here.join(" ")
    }

    /// Count of all spans.
    pub(crate) fn total(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.up_to)
    }

    /// Largest count of a step.
    pub(crate) fn count_max(&self) -> u64 {
        self.steps.iter().map(|step| step.count).max().unwrap_or(0)
    }
}

/// Where the steps of a scale end, in rising order.
fn ends(scale: &[f64]) -> impl Iterator<Item = Nanos> {
    (0..DECADES).flat_map(move |decade| {
        let one = 10f64.powi(decade);
        scale.iter().map(move |digits| Nanos((digits * one).round() as u64))
    })
}

fn n_steps(scale: &[f64], min: Nanos, max: Nanos) -> usize {
    ends(scale).skip_while(|to| *to < min).take_while(|to| *to < max).count() + 1
}

/// A bar of this share of `columns`, in eighths of a column; a share above zero is always visible.
pub(crate) fn bar(share: f64, columns: usize, is_unicode: bool) -> String {
    const EIGHTHS: [char; 8] = ['█', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if share <= 0.0 {
        return String::new();
    }
    if !is_unicode {
        return "#".repeat(((share * columns as f64).round() as usize).max(1));
    }
    let eighths = ((share * columns as f64 * 8.0).round() as usize).max(1);
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(spans: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        spans.iter().for_each(|&span| histogram.record(Nanos(span)));
        histogram
    }

    #[test]
    fn the_scale_is_as_fine_as_the_room_allows() {
        let ends = |spans: &[u64]| {
            let steps = Distribution::of(&histogram(spans), STEPS_MAX).unwrap().steps;
            steps.iter().map(|step| (step.to.to_string(), step.count)).collect::<Vec<_>>()
        };
        let narrow = ends(&[40_000, 41_000, 52_000]);
        // The bucket of 40 us ends past it, by less than 0.1 %.
        let expected = [("45us", 2), ("50us", 0), ("56us", 1)];
        assert_eq!(narrow, expected.map(|(to, count)| (to.to_owned(), count)));
        let wide = ends(&[10_500, 1_000_500_000]);
        assert_eq!(wide.len(), 16, "{wide:?}");
        assert_eq!((wide[0].0.as_str(), wide[15].0.as_str()), ("20us", "2s"));
        let widest = ends(&[1, 3_000_000_000_000]);
        assert_eq!(widest.len(), 14, "{widest:?}");
        assert_eq!(Distribution::of(&Histogram::new(), STEPS_MAX), None);
    }

    #[test]
    fn a_bar_is_to_scale_and_anything_at_all_is_seen() {
        assert_eq!(bar(1.0, 4, true), "████");
        assert_eq!(bar(0.4, 4, true), "█▋");
        assert_eq!((bar(1e-9, 4, true), bar(0.0, 4, true)), ("▏".to_owned(), String::new()));
        assert_eq!((bar(0.5, 4, false), bar(1e-9, 4, false)), ("##".to_owned(), "#".to_owned()));
    }

    #[test]
    fn each_quantile_is_marked_in_the_step_that_reaches_its_share() {
        let spans: Vec<u64> = (1..=1000).map(|n| 101_000 + n * 1_000).collect();
        let found = Distribution::of(&histogram(&spans), STEPS_MAX).unwrap();
        let marked: Vec<(String, String)> = (0..found.steps.len())
            .map(|at| (found.steps[at].to.to_string(), found.marks(at)))
            .filter(|(_, marks)| !marks.is_empty())
            .collect();
        let expected = [("630us", "p50"), ("1.25ms", "p90 p99")];
        assert_eq!(marked, expected.map(|(to, marks)| (to.to_owned(), marks.to_owned())));
        let few = Distribution::of(&histogram(&[5, 6, 7]), STEPS_MAX).unwrap();
        assert!((0..few.steps.len()).all(|at| !few.marks(at).contains("p99")), "too few for it");
    }

    proptest! {
        #[test]
        fn every_span_is_in_one_step_and_the_steps_rise_without_gaps(
            spans in prop::collection::vec(1u64..4_000_000_000_000, 1..200),
            steps_max in 14usize..30,
        ) {
            let distribution = Distribution::of(&histogram(&spans), steps_max).unwrap();
            let steps = &distribution.steps;
            prop_assert_eq!(steps.iter().map(|step| step.count).sum::<u64>(), spans.len() as u64);
            prop_assert_eq!(distribution.total(), spans.len() as u64);
            prop_assert!(steps.len() <= steps_max, "{}", steps.len());
            prop_assert!(steps.first().unwrap().count > 0 && steps.last().unwrap().count > 0);
            prop_assert!(steps.windows(2).all(|pair| pair[0].to < pair[1].to));
            // Within the 0.1 % of a bucket, each step has the spans that belong to it.
            for step in steps {
                let low = spans.iter().filter(|&&span| span as f64 * 1.001 < step.to.0 as f64);
                let high = spans.iter().filter(|&&span| span as f64 * 0.999 <= step.to.0 as f64);
                let bounds = low.count() as u64..=high.count() as u64;
                prop_assert!(bounds.contains(&step.up_to), "{step:?} {bounds:?}");
            }
        }
    }
}
