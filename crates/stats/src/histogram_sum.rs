//! The sum of very many histograms: a counter for each bucket, so that adding a packed histogram costs one addition for
//! each of its buckets. Start reading at [`HistogramSum`].

use crate::Histogram;
use crate::packed::Packed;

/// Counts by the number of their bucket, up to the highest that was added; at most 270 KB.
#[derive(Debug, Clone, Default)]
pub struct HistogramSum {
    counts: Vec<u64>,
}

impl HistogramSum {
    /// Adds all spans of a histogram.
    pub fn add(&mut self, histogram: &Histogram) {
        histogram.each_bucket(|number, count| {
            let number = number as usize;
            if number >= self.counts.len() {
                self.counts.resize(number + 1, 0);
            }
            self.counts[number] = self.counts[number].saturating_add(count);
        });
    }

    /// Everything that was added, as a small histogram.
    pub fn into_histogram(self) -> Histogram {
        let filled = (0..).zip(self.counts).filter(|(_, count)| *count > 0);
        Histogram::of_packed(Packed::of_numbers(filled))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Nanos;

    use super::*;
    use crate::SPAN_MAX;

    proptest! {
        #[test]
        fn the_sum_is_that_of_merging(
            parts in prop::collection::vec(prop::collection::vec(0..2 * SPAN_MAX.0, 0..40), 0..6),
            is_packed in any::<bool>(),
        ) {
            let (mut sum, mut merged) = (HistogramSum::default(), Histogram::default());
            for spans in parts {
                let mut part = Histogram::default();
                spans.into_iter().for_each(|span| part.record(Nanos(span)));
                if is_packed {
                    part.pack();
                }
                sum.add(&part);
                merged.merge(&part);
            }
            prop_assert_eq!(&sum.into_histogram(), &merged);
        }
    }
}
