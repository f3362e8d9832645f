//! Buckets of a histogram, small: for the thousands that are kept and seldom looked at. Owns the
//! encoding, which stays in memory or goes to another joust, never into a file that lasts. Start reading at
//! [`Packed`].
//!
//! A bucket is its count and the distance of its number from the one before. Each is a variable-length integer of seven
//! bits per byte (LEB128). Neighbours are common in a latency's histogram, so most buckets take 2 or 3 bytes, where a
//! pair of integers would take 16.
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

/// Buckets of one width, after the first [`HALF`].
const HALF: u64 = 1 << HALF_BITS;
const HALF_BITS: u32 = 10;

/// Number of the bucket that holds a span.
fn number_of(span: Nanos) -> u64 {
    // Of a span with more than 11 bits, the 11 highest say which bucket it is in.
    let shift = (u64::BITS - (span.0 | HALF).leading_zeros()) - (HALF_BITS + 1);
    (u64::from(shift) << HALF_BITS) + (span.0 >> shift)
}

/// The highest span of a bucket.
fn highest_of(number: u64) -> u64 {
    let shift = (number >> HALF_BITS).saturating_sub(1);
    let low = (number - (shift << HALF_BITS)) << shift;
    low + ((1u64 << shift) - 1)
}

impl Packed {
    /// Packs buckets that come in rising order, each by a span that it holds.
    pub(crate) fn of(buckets: impl Iterator<Item = (Nanos, u64)>) -> Self {
        let (mut bytes, mut total, mut before) = (Vec::new(), 0, 0);
        for (span, count) in buckets {
            let number = number_of(span);
            push(&mut bytes, number - before);
            push(&mut bytes, count);
            before = number;
            total += count;
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
            let rise = take(&mut rest)?;
            let count = take(&mut rest)?;
            if rise == 0 || count == 0 {
                return None;
            }
            number = number.checked_add(rise).filter(|number| *number <= last)?;
            total = total.checked_add(count)?;
        }
        Some(Self { bytes: bytes.into(), total })
    }

    /// The highest span and the count of each bucket, in rising order.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let (mut rest, mut number) = (&*self.bytes, 0);
        std::iter::from_fn(move || {
            number += take(&mut rest)?;
            // The highest span of the last bucket is above the bound.
            let span = Nanos(highest_of(number)).min(SPAN_MAX);
            Some((span, take(&mut rest).expect("a bucket is followed by its count")))
        })
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
        assert!(read(&[5, 1, 0, 1]).is_none(), "a bucket twice");
        assert!(read(&[5, 0]).is_none(), "a count of zero");
        assert!(read(&[0, 10]).is_none(), "a span of zero");
        let at = |number: u64| {
            let mut bytes = Vec::new();
            push(&mut bytes, number);
            bytes.push(1);
            bytes
        };
        assert!(read(&at(number_of(SPAN_MAX))).is_some());
        assert!(read(&at(number_of(SPAN_MAX) + 1)).is_none(), "too long a span");
        let wide = [&[0xff; 9][..], &[2, 1]].concat();
        assert!(read(&wide).is_none(), "65 bits");
        let largest = [&[1][..], &[0xff; 9], &[1]].concat();
        assert!(read(&largest).is_some());
        assert!(read(&[&largest[..], &[1, 1]].concat()).is_none(), "their sum");
    }

    #[test]
    fn a_bucket_of_a_latency_takes_two_bytes() {
        let spans = (0..1000u64).map(|n| (Nanos(1_000_000 + 1024 * n), 1 + n % 100));
        assert!(Packed::of(spans).bytes.len() <= 2_010);
    }
}
