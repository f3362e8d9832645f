//! Reads the compressed form of HdrHistogram (V2, deflated) straight into a packed histogram. A run file has tens of
//! thousands of them, and the library makes an array of 270 KB for each. Owns the common case alone: histograms that
//! joust wrote. The library reads all others. Start reading at [`read`].
//!
//! Source: the format as HdrHistogram's own code has it (AbstractHistogram.java, V2EncodingCookieBase): two headers, then
//! counts as ZigZag LEB128 numbers; a negative one is as many buckets without a count.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

use crate::packed::{Packed, SPAN_MAX};

const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
const PLAIN: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
/// Bytes before the counts.
const HEAD: usize = 40;
/// Bytes of the longest text that joust writes: nine for each of its buckets, and some to spare.
const PLAIN_MAX: u64 = 400_000;
/// A number of this many bytes is left to the library: its last byte has eight bits.
const NUMBER_BYTES: usize = 8;

/// The histogram; `None` if it is not one that joust wrote.
pub(crate) fn read(bytes: &[u8]) -> Option<Packed> {
    let (head, deflated) = bytes.split_at_checked(8)?;
    let length = u32::from_be_bytes(head[4..].try_into().ok()?) as usize;
    let deflated = deflated.get(..length).filter(|_| head[..4] == COMPRESSED)?;
    let mut plain = Vec::with_capacity(4096);
    ZlibDecoder::new(deflated).take(PLAIN_MAX).read_to_end(&mut plain).ok()?;
    let (head, counts) = plain.split_at_checked(HEAD)?;
    let length = u32::from_be_bytes(head[4..8].try_into().ok()?) as usize;
    let mut expected = [0; HEAD];
    expected[..4].copy_from_slice(&PLAIN);
    expected[4..8].copy_from_slice(&head[4..8]);
    expected[12..16].copy_from_slice(&3u32.to_be_bytes());
    expected[16..24].copy_from_slice(&1u64.to_be_bytes());
    expected[24..32].copy_from_slice(&SPAN_MAX.0.to_be_bytes());
    expected[32..].copy_from_slice(&1f64.to_be_bytes());
    if head != expected || counts.len() != length {
        return None;
    }
    let buckets = buckets(counts)?;
    Packed::of_counts(buckets.into_iter())
}

/// Number and count of each bucket that has one.
fn buckets(mut rest: &[u8]) -> Option<Vec<(u64, u64)>> {
    let (mut found, mut number) = (Vec::new(), 0u64);
    while !rest.is_empty() {
        let stored = take(&mut rest)?;
        let half = stored >> 1;
        if stored & 1 == 1 {
            // ZigZag: an odd number is a negative one.
            number = number.checked_add(half + 1)?;
        } else {
            if half > 0 {
                found.push((number, half));
            }
            number += 1;
        }
    }
    Some(found)
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let end = rest.iter().take(NUMBER_BYTES).position(|byte| byte & 0x80 == 0)?;
    let (bytes, after) = rest.split_at(end + 1);
    *rest = after;
    let bits = bytes.iter().enumerate().map(|(index, byte)| u64::from(byte & 0x7f) << (7 * index));
    Some(bits.fold(0, |number, bits| number | bits))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
    use proptest::prelude::*;
    use units::Nanos;

    use super::*;

    fn written(spans: &[u64], (low, high, digits): (u64, u64, u8)) -> Vec<u8> {
        let mut all = Histogram::<u64>::new_with_bounds(low, high, digits).unwrap();
        spans.iter().for_each(|span| all.saturating_record(*span));
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&all, &mut bytes).unwrap();
        bytes
    }

    const OURS: (u64, u64, u8) = (1, SPAN_MAX.0, 3);

    proptest! {
        #[test]
        fn it_reads_what_the_library_reads(spans in prop::collection::vec(1..SPAN_MAX.0, 0..300)) {
            let bytes = written(&spans, OURS);
            let library: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
            let buckets = library.iter_recorded();
            let expected = Packed::of(buckets.map(|v| (Nanos(v.value_iterated_to()), v.count_at_value())));
            prop_assert_eq!(read(&bytes), Some(expected));
        }

        #[test]
        fn damaged_bytes_are_left_to_the_library(at in 0usize..200, byte in any::<u8>()) {
            let mut bytes = written(&[1_000, 2_000_000, 2_000_001], OURS);
            let at = at % bytes.len();
            bytes[at] = byte;
            // Whatever comes out, it is not a panic, and within bounds.
            if let Some(packed) = read(&bytes) {
                prop_assert!(packed.buckets().all(|(span, count)| span <= SPAN_MAX && count > 0));
            }
        }
    }

    #[test]
    fn histograms_of_others_are_left_to_the_library() {
        assert!(read(&written(&[5], OURS)).is_some());
        for other in [(1, SPAN_MAX.0, 2), (1, 60_000_000_000, 3), (1000, SPAN_MAX.0, 3)] {
            assert_eq!(read(&written(&[5_000], other)), None, "{other:?}");
        }
        assert_eq!(read(b"no histogram"), None);
        assert_eq!(read(&[]), None);
        let counted_many = u64::from(u32::MAX) << 20;
        let mut all = Histogram::<u64>::new_with_bounds(1, SPAN_MAX.0, 3).unwrap();
        all.saturating_record_n(7, counted_many);
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&all, &mut bytes).unwrap();
        let read = read(&bytes).map(|packed| packed.total());
        assert!(read.is_none_or(|total| total == counted_many));
    }
}
