//! Latency histograms: mergeable, with a bounded relative error, and silent where the sample is
//! too small for the quantile that is asked for.
//!
//! One record costs an index computation and an add (a few ns); one histogram takes 270 KB of
//! address space, of which only the touched pages are real.

use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use units::Nanos;

/// Largest span a histogram holds; later ones are clamped to it and counted as such.
pub const SPAN_MAX: Nanos = Nanos::from_secs(3600);

/// Counts of time spans, 1 ns to one hour, each within 0.1 % of its true value (three digits).
/// All histograms have the same bounds, so merging is exact.
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    clamped: u64,
}

/// A stored histogram that could not be read back.
#[derive(Debug, thiserror::Error)]
#[error("not a histogram of joust: {0}")]
pub struct DecodeError(String);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        let counts = hdrhistogram::Histogram::new_with_bounds(1, SPAN_MAX.0, 3)
            .expect("constant bounds are valid");
        Self { counts, clamped: 0 }
    }

    /// Adds one span. A span of zero counts as one nanosecond.
    #[inline]
    pub fn record(&mut self, span: Nanos) {
        if span > SPAN_MAX {
            self.clamped += 1;
        }
        self.counts.saturating_record(span.0.clamp(1, SPAN_MAX.0));
    }

    /// Adds all spans of `other`.
    pub fn merge(&mut self, other: &Self) {
        if self.is_empty() {
            // `add` would copy all 270 KB into an empty one, and so make every page of it real; a
            // run keeps thousands of histograms, each with a few pages that are not zero.
            for (span, count) in other.buckets() {
                self.counts.saturating_record_n(span.0.min(SPAN_MAX.0), count);
            }
        } else {
            self.counts.add(&other.counts).expect("all histograms share their bounds");
        }
        self.clamped += other.clamped;
    }

    /// Forgets every span; keeps the memory.
    pub fn clear(&mut self) {
        self.counts.reset();
        self.clamped = 0;
    }

    /// Number of spans.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Number of spans that were longer than [`SPAN_MAX`].
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// Whether there is no span at all.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The `q`-quantile (0 to 1), or `None` where fewer than [`samples_needed`] spans are in.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        (self.count() >= samples_needed(q)).then(|| self.quantile_unchecked(q))
    }

    /// The `q`-quantile whatever the size of the sample; zero when empty. For plots of a whole
    /// distribution; a number that is printed comes from [`Histogram::quantile`].
    pub fn quantile_unchecked(&self, q: f64) -> Nanos {
        Nanos(self.counts.value_at_quantile(q))
    }

    /// Mean, or `None` when empty.
    pub fn mean(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.counts.mean().round() as u64))
    }

    /// Standard deviation of the population, or `None` for fewer than two spans.
    pub fn sd(&self) -> Option<Nanos> {
        (self.count() > 1).then(|| Nanos(self.counts.stdev().round() as u64))
    }

    /// Shortest span, or `None` when empty.
    pub fn min(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.counts.min()))
    }

    /// Longest span, or `None` when empty.
    pub fn max(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.counts.max()))
    }

    /// Number of spans of at least `span`, to the resolution of the buckets.
    pub fn count_from(&self, span: Nanos) -> u64 {
        self.counts.count_between(span.0.clamp(1, SPAN_MAX.0), u64::MAX)
    }

    /// Every bucket that is not empty: its highest span and its count, in rising order.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.counts.iter_recorded().map(|v| (Nanos(v.value_iterated_to()), v.count_at_value()))
    }

    /// The standard compressed form (HdrHistogram V2, deflated), which other tools read too.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.counts, &mut bytes)
            .expect("writing to memory does not fail");
        bytes
    }

    /// Reads what [`Histogram::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let counts: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut &bytes[..])
            .map_err(|error| DecodeError(error.to_string()))?;
        let mut histogram = Self::new();
        histogram.counts.add(&counts).map_err(|error| DecodeError(error.to_string()))?;
        // The copy takes a few pages where `add` has touched all.
        Ok(histogram.clone())
    }
}

impl Clone for Histogram {
    /// Only the pages that are not zero are made real, as in [`Histogram::merge`].
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        copy.merge(self);
        copy
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.counts == other.counts
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram({} spans, mean {:?})", self.count(), self.mean())
    }
}

/// Fewest samples from which the `q`-quantile may be printed: with fewer, the chance that not one
/// of them lies beyond the true quantile exceeds 2.5 % (72 for p95, 368 for p99, 3 688 for p99.9).
/// By symmetry a low quantile needs as many as its mirror image.
pub fn samples_needed(q: f64) -> u64 {
    let tail = q.max(1.0 - q);
    if tail >= 1.0 {
        return 1;
    }
    // -1e-9: ln(0.025)/ln(0.5) and its like must not be pushed up by rounding.
    (0.025f64.ln() / tail.ln() - 1e-9).ceil() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quantile_needs_its_samples() {
        for (q, needed) in [(0.5, 6), (0.95, 72), (0.99, 368), (0.999, 3688), (0.9999, 36_887)] {
            assert_eq!(samples_needed(q), needed, "q = {q}");
        }
        let mut histogram = Histogram::new();
        (0..367).for_each(|n| histogram.record(Nanos(n)));
        assert_eq!(histogram.quantile(0.99), None);
        histogram.record(Nanos(1));
        assert!(histogram.quantile(0.99).is_some());
    }

    #[test]
    fn what_is_too_long_is_clamped_and_counted() {
        let mut histogram = Histogram::new();
        histogram.record(Nanos::from_secs(7200));
        assert_eq!((histogram.count(), histogram.clamped()), (1, 1));
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Histogram::decode(b"not a histogram").is_err());
    }

    proptest! {
        #[test]
        fn merging_is_the_same_as_recording_together(
            left in prop::collection::vec(1u64..10_000_000_000, 0..200),
            right in prop::collection::vec(1u64..10_000_000_000, 0..200),
        ) {
            let fill = |spans: &[u64]| {
                let mut histogram = Histogram::new();
                spans.iter().for_each(|&span| histogram.record(Nanos(span)));
                histogram
            };
            let mut merged = fill(&left);
            merged.merge(&fill(&right));
            let together: Vec<u64> = left.iter().chain(&right).copied().collect();
            prop_assert_eq!(&merged, &fill(&together));
            prop_assert_eq!(Histogram::decode(&merged.encode()).unwrap(), merged);
        }
    }
}
