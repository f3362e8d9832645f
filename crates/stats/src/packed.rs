//! Buckets of a histogram, small: for the thousands that are kept and seldom looked at. Owns the
//! encoding, which stays in memory or goes to another joust, never into a file that lasts. Start reading at
//! [`Packed`].
//!
//! A bucket is its count and the distance of its span from the one before. Each is a variable-length integer of seven
//! bits per byte (LEB128): a bucket takes 3 to 5 bytes, where a pair of integers would take 16.

use units::Nanos;

use crate::leb128::{push, take};

/// Spans in strictly rising order, each with its count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    /// Sum of the counts.
    total: u64,
}

impl Packed {
    /// Packs buckets that come in rising order.
    pub(crate) fn of(buckets: impl Iterator<Item = (Nanos, u64)>) -> Self {
        let (mut bytes, mut total, mut before) = (Vec::new(), 0, 0);
        for (span, count) in buckets {
            push(&mut bytes, span.0 - before);
            push(&mut bytes, count);
            before = span.0;
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
    /// cut or too large, spans of zero, spans that do not rise or lie above `span_max`, a count of zero, counts whose sum overflows.
    pub(crate) fn parse(bytes: &[u8], span_max: Nanos) -> Option<Self> {
        let (mut rest, mut span, mut total) = (bytes, 0u64, 0u64);
        while !rest.is_empty() {
            let rise = take(&mut rest)?;
            let count = take(&mut rest)?;
            if rise == 0 || count == 0 {
                return None;
            }
            span = span.checked_add(rise).filter(|span| *span <= span_max.0)?;
            total = total.checked_add(count)?;
        }
        Some(Self { bytes: bytes.into(), total })
    }

    /// The buckets, in rising order.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let (mut rest, mut span) = (&*self.bytes, 0);
        std::iter::from_fn(move || {
            span += take(&mut rest)?;
            Some((Nanos(span), take(&mut rest).expect("a span is followed by its count")))
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
        fn what_was_packed_comes_back(buckets in prop::collection::btree_map(any::<u64>(), any::<u32>(), 0..50)) {
            let buckets: BTreeMap<u64, u64> = buckets.into_iter().map(|(s, c)| (s, c.into())).collect();
            let pairs = || buckets.iter().map(|(span, count)| (Nanos(*span), *count));
            let packed = Packed::of(pairs());
            prop_assert_eq!(packed.total(), buckets.values().sum::<u64>());
            prop_assert!(packed.buckets().eq(pairs()));
        }

        #[test]
        fn bytes_of_a_stranger_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(packed) = Packed::parse(&bytes, Nanos(u64::MAX)) {
                let sum: u64 = packed.buckets().map(|(_, count)| count).sum();
                prop_assert_eq!(packed.total(), sum);
                prop_assert!(packed.buckets().zip(packed.buckets().skip(1)).all(|(a, b)| a.0 < b.0));
            }
        }
    }

    #[test]
    fn what_was_not_packed_here_is_refused() {
        let packed = Packed::of([(Nanos(5), 1), (Nanos(900), 70_000)].into_iter());
        let read = |bytes: &[u8]| Packed::parse(bytes, Nanos(1_000));
        assert_eq!(read(packed.bytes()), Some(packed.clone()));
        assert!(read(&packed.bytes()[..packed.bytes().len() - 1]).is_none(), "cut");
        assert!(read(&[5, 1, 0, 1]).is_none(), "a span twice");
        assert!(read(&[5, 0]).is_none(), "a count of zero");
        assert!(read(&[0, 10]).is_none(), "a span of zero");
        assert!(Packed::parse(packed.bytes(), Nanos(899)).is_none(), "too long a span");
        let wide = [&[0xff; 9][..], &[2, 1]].concat();
        assert!(Packed::parse(&wide, Nanos(u64::MAX)).is_none(), "65 bits");
        let largest = [&[1][..], &[0xff; 9], &[1]].concat();
        assert!(Packed::parse(&largest, Nanos(9)).is_some());
        assert!(Packed::parse(&[&largest[..], &[1, 1]].concat(), Nanos(9)).is_none(), "their sum");
    }

    #[test]
    fn a_bucket_of_a_latency_takes_at_most_five_bytes() {
        let spans = (0..1000u64).map(|n| (Nanos(1_000_000 + 4096 * n), n % 100));
        assert!(Packed::of(spans).bytes.len() <= 5000);
    }
}
