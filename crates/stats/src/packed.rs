//! Buckets of a histogram, small: for the thousands that are kept and seldom looked at. Owns the
//! encoding, which never leaves memory; must not know what is counted. Start reading at [`Packed`].
//!
//! A bucket is the distance of its span from the one before and its count, each as a number of as many
//! bytes as it needs, seven bits each (LEB128): 3 to 5 bytes where a pair of integers takes 16.

use units::Nanos;

/// Spans in strictly rising order, each with its count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    bytes: Box<[u8]>,
    /// Sum of the counts.
    total: u64,
}

impl Packed {
    /// Packs buckets, which come in rising order.
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

    /// The buckets, in rising order.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let (mut rest, mut span) = (&*self.bytes, 0);
        std::iter::from_fn(move || {
            span += take(&mut rest)?;
            Some((Nanos(span), take(&mut rest).expect("a span is followed by its count")))
        })
    }
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The next number; `None` at the end.
fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (index, byte) in rest.iter().enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *rest = &rest[index + 1..];
            return Some(number);
        }
    }
    None
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
    }

    #[test]
    fn a_bucket_of_a_latency_takes_at_most_five_bytes() {
        let spans = (0..1000u64).map(|n| (Nanos(1_000_000 + 4096 * n), n % 100));
        assert!(Packed::of(spans).bytes.len() <= 5000);
    }
}
