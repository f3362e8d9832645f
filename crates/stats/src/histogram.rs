//! Latency histograms: mergeable, with a bounded relative error. They return `None` if the sample is too small for the
//! requested quantile.
//!
//! One record costs an index computation and an add (a few ns). A histogram that is recorded into takes up to 270 KB.
//! Histograms that are only kept are packed, with 2 or 3 bytes per non-empty bucket, so that a run can hold thousands.

use std::borrow::Cow;

use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use units::Nanos;

use crate::hdr_v2;
use crate::packed::{Packed, SPAN_MAX, number_of};

/// Counts of time spans, 1 ns to one hour, each within 0.1 % of its true value (three digits).
/// All histograms have the same bounds, so merging is exact.
#[derive(Clone)]
pub struct Histogram {
    counts: Counts,
}

type Open = hdrhistogram::Histogram<u64>;

/// The counts, open for recording or packed for keeping.
#[derive(Clone)]
enum Counts {
    Open(Open),
    /// The non-empty buckets by their highest span, in rising order.
    Packed(Packed),
}

/// A stored histogram that could not be read back.
#[derive(Debug, thiserror::Error)]
#[error("not a histogram of joust: {0}")]
pub struct DecodeError(String);

impl Default for Histogram {
    /// An empty one that stays small until something is recorded, for series that may stay empty.
    fn default() -> Self {
        Self { counts: Counts::Packed(Packed::of(std::iter::empty())) }
    }
}

impl Histogram {
    /// An empty one, whose first record allocates nothing.
    pub fn new() -> Self {
        Self { counts: Counts::Open(empty()) }
    }

    /// Makes it small; the next record unpacks it.
    pub fn pack(&mut self) {
        if let Counts::Open(_) = self.counts {
            self.counts = Counts::Packed(Packed::of(self.buckets()));
        }
    }

    /// Adds one span. A span of zero counts as one nanosecond.
    #[inline]
    pub fn record(&mut self, span: Nanos) {
        self.open_mut().saturating_record(span.0.clamp(1, SPAN_MAX.0));
    }

    /// Adds all spans of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if let (Counts::Packed(own), Counts::Packed(more)) = (&mut self.counts, &other.counts) {
            *own = own.merged(more);
            return;
        }
        let counts = self.open_mut();
        match &other.counts {
            Counts::Open(others) => counts.add(others).expect("all histograms share their bounds"),
            Counts::Packed(packed) => fill(counts, packed),
        }
    }

    /// The spans of all parts. Halves are merged first: one part after the other would read the sum so far again for
    /// each.
    pub fn sum(parts: &[&Self]) -> Self {
        match parts {
            [] => Self::default(),
            [only] => (*only).clone(),
            parts => {
                let (left, right) = parts.split_at(parts.len() / 2);
                let mut sum = Self::sum(left);
                sum.merge(&Self::sum(right));
                sum
            }
        }
    }

    /// Forgets every span; keeps the memory.
    pub fn clear(&mut self) {
        self.open_mut().reset();
    }

    /// Number of spans.
    pub fn count(&self) -> u64 {
        match &self.counts {
            Counts::Open(counts) => counts.len(),
            Counts::Packed(packed) => packed.total(),
        }
    }

    /// Whether there is no span at all.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The `q`-quantile (0 to 1), or `None` with fewer than [`samples_needed`] spans.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        (self.count() >= samples_needed(q)).then(|| self.quantile_unchecked(q))
    }

    /// The `q`-quantile whatever the size of the sample; zero if empty. For plots of a whole distribution; printed
    /// numbers come from [`Histogram::quantile`].
    pub fn quantile_unchecked(&self, q: f64) -> Nanos {
        Nanos(match &self.counts {
            Counts::Open(counts) => counts.value_at_quantile(q),
            Counts::Packed(packed) => packed.quantile(q),
        })
    }

    /// Mean, or `None` when empty.
    pub fn mean(&self) -> Option<Nanos> {
        let mean = match &self.counts {
            Counts::Open(counts) => counts.mean(),
            Counts::Packed(packed) => packed.mean(),
        };
        (!self.is_empty()).then(|| Nanos(mean.round() as u64))
    }

    /// Standard deviation of the population, or `None` for fewer than two spans.
    pub fn sd(&self) -> Option<Nanos> {
        let sd = match &self.counts {
            Counts::Open(counts) => counts.stdev(),
            Counts::Packed(packed) => packed.sd(),
        };
        (self.count() > 1).then(|| Nanos(sd.round() as u64))
    }

    /// Shortest span, or `None` when empty.
    pub fn min(&self) -> Option<Nanos> {
        self.ends().map(|(min, _)| min)
    }

    /// Longest span, or `None` when empty.
    pub fn max(&self) -> Option<Nanos> {
        self.ends().map(|(_, max)| max)
    }

    fn ends(&self) -> Option<(Nanos, Nanos)> {
        let (min, max) = match &self.counts {
            Counts::Open(counts) if counts.is_empty() => return None,
            Counts::Open(counts) => (counts.min(), counts.max()),
            Counts::Packed(packed) => packed.ends()?,
        };
        Some((Nanos(min), Nanos(max)))
    }

    /// All non-empty buckets in rising order: highest span and count.
    pub fn buckets(&self) -> Box<dyn Iterator<Item = (Nanos, u64)> + '_> {
        match &self.counts {
            Counts::Open(counts) => Box::new(
                // The highest span of the last bucket is above the bound.
                counts
                    .iter_recorded()
                    .map(|v| (Nanos(v.value_iterated_to()).min(SPAN_MAX), v.count_at_value())),
            ),
            Counts::Packed(packed) => Box::new(packed.buckets()),
        }
    }

    /// The standard compressed form (HdrHistogram V2, deflated), which other tools read too.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&*self.open(), &mut bytes)
            .expect("writing to memory does not fail");
        bytes
    }

    /// Reads what [`Histogram::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if let Some(packed) = hdr_v2::read(bytes) {
            return Ok(Self { counts: Counts::Packed(packed) });
        }
        let counts: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut &bytes[..])
            .map_err(|error| DecodeError(error.to_string()))?;
        let mut bounded = empty();
        bounded.add(&counts).map_err(|error| DecodeError(error.to_string()))?;
        let mut histogram = Self { counts: Counts::Open(bounded) };
        histogram.pack();
        Ok(histogram)
    }

    /// A compact form for another joust, 1 to 3 bytes a bucket that is not empty: without the compression of
    /// [`Histogram::encode`], which takes longer than all else that is done with a message.
    pub fn compact(&self) -> Vec<u8> {
        match &self.counts {
            Counts::Open(_) => Packed::of(self.buckets()).bytes().to_vec(),
            Counts::Packed(packed) => packed.bytes().to_vec(),
        }
    }

    /// Reads what [`Histogram::compact`] wrote, from a sender who need not be trusted.
    ///
    /// # Errors
    /// The bytes are not in that form.
    pub fn from_compact(bytes: &[u8]) -> Result<Self, DecodeError> {
        let packed = Packed::parse(bytes)
            .ok_or_else(|| DecodeError("its buckets are damaged".to_owned()))?;
        Ok(Self { counts: Counts::Packed(packed) })
    }

    /// A histogram that is kept small.
    pub(crate) fn of_packed(packed: Packed) -> Self {
        Self { counts: Counts::Packed(packed) }
    }

    /// Number and count of each bucket that is not empty, in rising order.
    pub(crate) fn each_bucket(&self, mut take: impl FnMut(u64, u64)) {
        match &self.counts {
            Counts::Open(_) => {
                self.buckets().for_each(|(span, count)| take(number_of(span), count));
            }
            Counts::Packed(packed) => {
                packed.numbers().for_each(|(number, count)| take(number, count))
            }
        }
    }

    fn open(&self) -> Cow<'_, Open> {
        match &self.counts {
            Counts::Open(counts) => Cow::Borrowed(counts),
            Counts::Packed(packed) => {
                let mut counts = empty();
                fill(&mut counts, packed);
                Cow::Owned(counts)
            }
        }
    }

    #[inline]
    fn open_mut(&mut self) -> &mut Open {
        if let Counts::Packed(_) = self.counts {
            self.counts = Counts::Open(self.open().into_owned());
        }
        match &mut self.counts {
            Counts::Open(counts) => counts,
            Counts::Packed(_) => unreachable!("it has been opened"),
        }
    }
}

fn empty() -> Open {
    Open::new_with_bounds(1, SPAN_MAX.0, 3).expect("constant bounds are valid")
}

fn fill(counts: &mut Open, packed: &Packed) {
    packed.buckets().for_each(|(span, count)| counts.saturating_record_n(span.0, count));
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.open() == other.open()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram({} spans, mean {:?})", self.count(), self.mean())
    }
}

/// Fewest samples from which the `q`-quantile may be printed. With fewer, the probability that no sample is beyond the
/// true quantile exceeds 2.5 % (72 for p95, 368 for p99, 3 688 for p99.9). By symmetry a low quantile needs as many as
/// its mirror image.
pub fn samples_needed(q: f64) -> u64 {
    let tail = q.max(1.0 - q);
    if tail >= 1.0 {
        return 1;
    }
    // -1e-9: rounding must not push up integers such as ln(0.025)/ln(0.5).
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
    fn what_is_too_long_counts_as_the_longest() {
        let mut histogram = Histogram::new();
        histogram.record(Nanos::from_secs(7200));
        let longest = histogram.max().unwrap().as_secs_f64();
        assert_eq!(histogram.count(), 1);
        assert!((longest / SPAN_MAX.as_secs_f64() - 1.0).abs() < 0.001, "{longest}");
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Histogram::decode(b"not a histogram").is_err());
        assert!(Histogram::from_compact(b"\x01not a histogram").is_err());
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
            prop_assert_eq!(&Histogram::decode(&merged.encode()).unwrap(), &merged);
            let mut packed = merged.clone();
            packed.pack();
            prop_assert_eq!(&packed, &merged);
            prop_assert_eq!(packed.encode(), merged.encode());
            for one in [&packed, &merged] {
                prop_assert_eq!(&Histogram::from_compact(&one.compact()).unwrap(), &merged);
            }
            prop_assert_eq!((packed.min(), packed.max()), (merged.min(), merged.max()));
            prop_assert_eq!(packed.quantile_unchecked(0.5), merged.quantile_unchecked(0.5));
            packed.merge(&packed.clone());
            prop_assert_eq!(packed.count(), 2 * merged.count());
        }
    }

    #[test]
    fn a_sum_has_the_spans_of_all_parts_open_or_packed() {
        for parts in 0..9u64 {
            let of = |part: u64| {
                let mut one = Histogram::new();
                (1..50).for_each(|n| one.record(Nanos(n * n * (part + 1))));
                if !part.is_multiple_of(3) {
                    one.pack();
                }
                one
            };
            let all: Vec<Histogram> = (0..parts).map(of).collect();
            let mut expected = Histogram::new();
            all.iter().for_each(|one| expected.merge(one));
            assert_eq!(Histogram::sum(&all.iter().collect::<Vec<_>>()), expected, "{parts}");
        }
    }
}
