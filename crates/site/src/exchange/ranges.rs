//! Ranges of a representation: which are sent, and how several are sent as one body (RFC 9110, 14 and 15.3.7). Owns
//! merging and multipart/byteranges. Start reading at [`select`].

use std::ops::Range;
use std::sync::Arc;

use wire::range::{RangeRequest, Selection};

use super::output::Parts;
use crate::hosts::Representation;

/// The parts of `size` bytes that the value of a Range field asks for. Ranges that overlap or touch are sent as one, in
/// rising order (RFC 9110, 15.3.7.2); others in the order asked for.
pub(super) fn select(value: &[u8], count_max: usize, size: u64) -> Selection {
    match RangeRequest::parse(value, count_max).select(size) {
        Selection::Parts(parts) if parts.len() > 1 => Selection::Parts(merged(parts)),
        other => other,
    }
}

fn merged(parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut sorted = parts.clone();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    if merged.len() == parts.len() { parts } else { merged }
}

/// A multipart body, ready to be sent: its parts, length and boundary.
#[derive(Debug)]
pub(super) struct Multipart {
    pub(super) parts: Parts,
    pub(super) length: u64,
    pub(super) boundary: String,
}

impl Multipart {
    /// The body of several ranges. `seed` makes the boundary unpredictable, so that no content can have been written to
    /// contain it (RFC 2046, 5.1.1).
    pub(super) fn new(of: &Arc<Representation>, ranges: Vec<Range<u64>>, seed: u64) -> Self {
        let mixed = (seed ^ of.size()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let boundary = format!("joust-{mixed:016x}");
        let end = format!("\r\n--{boundary}--\r\n");
        let mut length = end.len() as u64;
        let mut left = Vec::with_capacity(ranges.len());
        // `left` holds the next part last, so the ranges are taken in reverse.
        for range in ranges.into_iter().rev() {
            let head = format!(
                "\r\n--{boundary}\r\nContent-Type: {}\r\nContent-Range: bytes {}-{}/{}\r\n\r\n",
                of.content_type(),
                range.start,
                range.end - 1,
                of.size(),
            );
            length += head.len() as u64 + (range.end - range.start);
            left.push((head, range));
        }
        Self { parts: Parts { of: Arc::clone(of), left, end }, length, boundary }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one_and_others_keep_their_order() {
        let cases: [(&str, &[(u64, u64)]); 6] = [
            ("bytes=0-1,4-5", &[(0, 2), (4, 6)]),
            ("bytes=4-5,0-1", &[(4, 6), (0, 2)]),
            ("bytes=0-1,2-3", &[(0, 4)]),
            ("bytes=2-3,0-1", &[(0, 4)]),
            ("bytes=0-3,1-2", &[(0, 4)]),
            ("bytes=8-,0-0,1-1", &[(0, 2), (8, 10)]),
        ];
        for (value, expected) in cases {
            let expected = expected.iter().map(|&(start, end)| start..end).collect();
            assert_eq!(select(value.as_bytes(), 8, 10), Selection::Parts(expected), "{value}");
        }
    }

    #[test]
    fn abuse_gets_the_whole() {
        assert_eq!(select(b"bytes=0-,0-", 8, 10), Selection::Whole);
        assert_eq!(select(b"bytes=0-0,2-2,4-4", 2, 10), Selection::Whole);
        assert_eq!(select(b"bytes=-9,-9223372036854775807", 8, 10), Selection::Whole);
    }
}
