//! Buckets of a histogram, small: for the thousands that are kept and seldom looked at. Owns the
//! encoding, which stays in memory or goes to another joust, never into a file that lasts. Start reading at
//! [`Packed`].
//!
//! A bucket is its count and the distance of its number from the one before, as variable-length integers of seven bits
//! per byte (LEB128). Neighbours are common in a latency's histogram: the lowest bit of the first integer says whether
//! it is the next bucket, and then the distance is left out. So most buckets take 1 or 2 bytes, where a pair of
//! integers would take 16.
//!
//! Buckets are numbered as in HdrHistogram with three digits: the first 2,048 hold one nanosecond each, and each 1,024
//! after them hold spans twice as wide as those before.

use units::Nanos;

use crate::leb128::{push, take};

/// Longest span a histogram holds; longer ones count as this long. A load rejects timeouts that would let a request
/// take longer.
pub const SPAN_MAX: Nanos = Nanos::from_secs(3600);

/// Buckets in strictly rising order, each with its count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    /// Sum of the counts.
    total: u64,
}

/// Largest count of a bucket: a bit of its integer is taken. More requests than a load of a million a second makes in
/// 290,000 years.
const COUNT_MAX: u64 = u64::MAX >> 1;

/// Buckets of one width, after the first [`HALF`].
const HALF: u64 = 1 << HALF_BITS;
const HALF_BITS: u32 = 10;

/// Number of the bucket that holds a span.
pub(crate) fn number_of(span: Nanos) -> u64 {
    // Of a span with more than 11 bits, the 11 highest say which bucket it is in.
    let shift = (u64::BITS - (span.0 | HALF).leading_zeros()) - (HALF_BITS + 1);
    (u64::from(shift) << HALF_BITS) + (span.0 >> shift)
}

/// The lowest span of a bucket, and how many it holds.
fn spans_of(number: u64) -> (u64, u64) {
    let shift = (number >> HALF_BITS).saturating_sub(1);
    ((number - (shift << HALF_BITS)) << shift, 1 << shift)
}

/// The highest span of a bucket.
fn highest_of(number: u64) -> u64 {
    let (low, width) = spans_of(number);
    low + (width - 1)
}

/// The middle of a bucket, in whole nanoseconds.
fn middle_of(number: u64) -> f64 {
    let (low, width) = spans_of(number);
    (low + (width >> 1)) as f64
}

/// Distance from the bucket before, and count; `None` at the end, or for what [`Packed::of_numbers`] does not write.
fn bucket(rest: &mut &[u8]) -> Option<(u64, u64)> {
    let first = take(rest)?;
    if first & 1 == 0 {
        return Some((1, first >> 1));
    }
    let rise = take(rest).filter(|rise| *rise != 1)?;
    Some((rise, first >> 1))
}

impl Packed {
    /// Packs buckets that come in rising order, each by a span that it holds.
    pub(crate) fn of(buckets: impl Iterator<Item = (Nanos, u64)>) -> Self {
        Self::of_numbers(buckets.map(|(span, count)| (number_of(span), count)))
    }

    /// Packs buckets by their numbers, which rise.
    pub(crate) fn of_numbers(buckets: impl Iterator<Item = (u64, u64)>) -> Self {
        let (mut bytes, mut total, mut before) = (Vec::new(), 0, 0);
        for (number, count) in buckets {
            let (rise, count) = (number - before, count.min(COUNT_MAX));
            push(&mut bytes, count << 1 | u64::from(rise != 1));
            if rise != 1 {
                push(&mut bytes, rise);
            }
            before = number;
            total = u64::saturating_add(total, count);
        }
        Self { bytes: bytes.into_boxed_slice(), total }
    }

    /// Sum of the counts.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The packed form, for [`Packed::parse`].
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads [`Packed::bytes`] of an untrusted sender. `None` for what it would not have written: a number that is
    /// cut or too large, spans of zero, buckets that do not rise or lie above that of [`SPAN_MAX`], a count of zero,
    /// counts whose sum overflows.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let last = number_of(SPAN_MAX);
        let (mut rest, mut number, mut total) = (bytes, 0u64, 0u64);
        while !rest.is_empty() {
            let (rise, count) = bucket(&mut rest)?;
            if rise == 0 || count == 0 {
                return None;
            }
            number = number.checked_add(rise).filter(|number| *number <= last)?;
            total = total.checked_add(count)?;
        }
        Some(Self { bytes: bytes.into(), total })
    }

    /// Reads counts bucket by bucket from number 0 on, as HdrHistogram stores them. `None` where they go beyond the bucket
    /// of [`SPAN_MAX`], or one is of a span of zero.
    pub(crate) fn of_counts(counts: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let last = number_of(SPAN_MAX);
        let counts: Vec<(u64, u64)> = counts.collect();
        let is_fine = counts.iter().all(|(number, _)| (1..=last).contains(number));
        let sum = counts.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(*count));
        (is_fine && sum.is_some()).then(|| Self::of_numbers(counts.into_iter()))
    }

    /// The highest span and the count of each bucket, in rising order.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> {
        // The highest span of the last bucket is above the bound.
        self.numbers().map(|(number, count)| (Nanos(highest_of(number)).min(SPAN_MAX), count))
    }

    /// Number and count of each bucket, in rising order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (u64, u64)> {
        let (mut rest, mut number) = (&*self.bytes, 0);
        std::iter::from_fn(move || {
            let (rise, count) = bucket(&mut rest)?;
            number += rise;
            Some((number, count))
        })
    }

    /// The buckets of both.
    pub(crate) fn merged(&self, other: &Self) -> Self {
        let (mut own, mut others) = (self.numbers().peekable(), other.numbers().peekable());
        let both = std::iter::from_fn(|| {
            let (left, right) = (own.peek().copied(), others.peek().copied());
            match (left, right) {
                (Some(left), Some(right)) if left.0 == right.0 => {
                    own.next();
                    others.next();
                    Some((left.0, left.1.saturating_add(right.1)))
                }
                (Some(left), Some(right)) if left.0 < right.0 => own.next(),
                (Some(_), None) => own.next(),
                _ => others.next(),
            }
        });
        Self::of_numbers(both)
    }

    /// The `q`-quantile (0 to 1), as HdrHistogram has it: the highest span of the bucket in which it is, or at 0 the
    /// lowest; 0 if there is no bucket.
    pub(crate) fn quantile(&self, q: f64) -> u64 {
        let target = ((q.min(1.0) * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let mut reached = self.numbers().skip_while(|(_, count)| {
            seen += count;
            seen < target
        });
        match reached.next() {
            Some((number, _)) if q == 0.0 => spans_of(number).0,
            Some((number, _)) => highest_of(number),
            None => 0,
        }
    }

    /// Mean of the middles of buckets; 0 if there is none.
    pub(crate) fn mean(&self) -> f64 {
        let total = self.total as f64;
        self.numbers().map(|(number, count)| middle_of(number) * count as f64 / total).sum()
    }

    /// Standard deviation of the middles of buckets; 0 if there is none.
    pub(crate) fn sd(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let mean = self.mean();
        let square = |(number, count)| (middle_of(number) - mean).powi(2) * count as f64;
        (self.numbers().map(square).sum::<f64>() / self.total as f64).sqrt()
    }

    /// Lowest and highest span; `None` if there is no bucket.
    pub(crate) fn ends(&self) -> Option<(u64, u64)> {
        let first = self.numbers().next()?;
        let last = self.numbers().last()?;
        Some((spans_of(first.0).0, highest_of(last.0)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_comes_back_bucket_by_bucket(
            spans in prop::collection::btree_map(1..SPAN_MAX.0, 1..u64::from(u32::MAX), 0..50),
        ) {
            let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
            for (span, count) in spans {
                *buckets.entry(highest_of(number_of(Nanos(span))).min(SPAN_MAX.0)).or_default() += count;
            }
            let pairs = || buckets.iter().map(|(span, count)| (Nanos(*span), *count));
            let packed = Packed::of(pairs());
            prop_assert_eq!(packed.total(), buckets.values().sum::<u64>());
            prop_assert!(packed.buckets().eq(pairs()));
            prop_assert_eq!(Packed::parse(packed.bytes()), Some(packed));
        }

        #[test]
        fn buckets_are_those_of_hdrhistogram(span in 1..SPAN_MAX.0) {
            let oracle = hdrhistogram::Histogram::<u64>::new_with_bounds(1, SPAN_MAX.0, 3).unwrap();
            prop_assert_eq!(highest_of(number_of(Nanos(span))), oracle.highest_equivalent(span));
        }

        #[test]
        fn every_figure_is_that_of_hdrhistogram(
            spans in prop::collection::vec(1..SPAN_MAX.0, 1..200),
            more in prop::collection::vec(1..SPAN_MAX.0, 0..200),
            q in 0.0..=1.0f64,
        ) {
            let of = |spans: &[u64]| {
                let mut all = hdrhistogram::Histogram::<u64>::new_with_bounds(1, SPAN_MAX.0, 3).unwrap();
                spans.iter().for_each(|span| all.record(*span).unwrap());
                all
            };
            let packed = |all: &hdrhistogram::Histogram<u64>| {
                Packed::of(all.iter_recorded().map(|v| (Nanos(v.value_iterated_to()), v.count_at_value())))
            };
            let (mut oracle, others) = (of(&spans), of(&more));
            let merged = packed(&oracle).merged(&packed(&others));
            oracle.add(&others).unwrap();
            prop_assert_eq!(&merged, &packed(&oracle));
            for q in [q, 0.0, 0.5, 1.0] {
                prop_assert_eq!(merged.quantile(q), oracle.value_at_quantile(q), "{}", q);
            }
            prop_assert_eq!(merged.ends(), Some((oracle.min(), oracle.max())));
            prop_assert!((merged.mean() / oracle.mean() - 1.0).abs() < 1e-9);
            prop_assert!((merged.sd() - oracle.stdev()).abs() <= 1e-9 * oracle.stdev().max(1.0));
        }

        #[test]
        fn bytes_of_a_stranger_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(packed) = Packed::parse(&bytes) {
                let sum: u64 = packed.buckets().map(|(_, count)| count).sum();
                prop_assert_eq!(packed.total(), sum);
                prop_assert!(packed.buckets().zip(packed.buckets().skip(1)).all(|(a, b)| a.0 < b.0));
            }
        }
    }

    #[test]
    fn what_was_not_packed_here_is_refused() {
        let packed = Packed::of([(Nanos(5), 1), (Nanos(900), 70_000)].into_iter());
        let read = Packed::parse;
        assert_eq!(read(packed.bytes()), Some(packed.clone()));
        assert!(read(&packed.bytes()[..packed.bytes().len() - 1]).is_none(), "cut");
        // First integers are twice the count, and one more where a distance follows.
        assert!(read(&[3, 5, 3, 0]).is_none(), "a bucket twice");
        assert!(read(&[1, 5]).is_none(), "a count of zero");
        assert!(read(&[3, 0]).is_none(), "a span of zero");
        assert!(read(&[3, 5, 3, 1]).is_none(), "a neighbour by its distance");
        let at = |number: u64| {
            let mut bytes = vec![3];
            push(&mut bytes, number);
            bytes
        };
        assert!(read(&at(number_of(SPAN_MAX))).is_some());
        assert!(read(&at(number_of(SPAN_MAX) + 1)).is_none(), "too long a span");
        let wide = [&[3][..], &[0xff; 9], &[2]].concat();
        assert!(read(&wide).is_none(), "65 bits");
        let mut largest = Vec::new();
        push(&mut largest, COUNT_MAX << 1);
        assert_eq!(read(&largest).unwrap().total(), COUNT_MAX);
        assert!(read(&[&largest[..], &largest, &[4]].concat()).is_none(), "their sum");
    }

    #[test]
    fn a_neighbour_takes_a_byte_and_another_bucket_two() {
        // Buckets are 512 ns wide from 2^19 to 2^20 ns.
        let spans = |width: u64| (0..500u64).map(move |n| (Nanos(524_288 + width * n), 1 + n % 60));
        assert!(Packed::of(spans(512)).bytes.len() <= 505);
        assert!(Packed::of(spans(1_024)).bytes.len() <= 1_005);
    }
}
