//! Owns the Range header (RFC 9110, 14): the requested ranges, and which of them a representation of a given length
//! has. Start reading at [`RangeRequest::parse`].

use std::ops::Range;

use crate::tokens;

/// One requested range, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeSpec {
    /// From the first to the last, both included; `last` is `u64::MAX` if it was omitted.
    FromTo {
        /// First byte.
        first: u64,
        /// Last byte, not less than `first`.
        last: u64,
    },
    /// This many bytes at the end.
    Suffix(u64),
}

/// What a Range header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeRequest {
    /// Another unit, or malformed. The header is ignored (RFC 9110, 14.2).
    Ignore,
    /// More ranges than the limit; a server may ignore them or answer 416 (RFC 9110, 14.2).
    TooMany,
    /// These, at least one.
    Ranges(Vec<RangeSpec>),
}

/// What to send for a request with ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The whole: 200.
    Whole,
    /// These, in the requested order, none empty: 206.
    Parts(Vec<Range<u64>>),
    /// No range contains a byte: 416.
    Unsatisfiable,
}

impl RangeRequest {
    /// Reads the value of a Range header, with at most `count_max` ranges. Numbers beyond 64 bits become the largest
    /// number: no representation is that long anyway.
    pub fn parse(value: &[u8], count_max: usize) -> Self {
        let Some(equals) = value.iter().position(|&byte| byte == b'=') else {
            return Self::Ignore;
        };
        if !value[..equals].eq_ignore_ascii_case(b"bytes") {
            return Self::Ignore;
        }
        let mut ranges = Vec::new();
        for element in tokens::list(&value[equals + 1..]) {
            let Some(range) = parse_spec(element) else { return Self::Ignore };
            if ranges.len() == count_max {
                return Self::TooMany;
            }
            ranges.push(range);
        }
        if ranges.is_empty() { Self::Ignore } else { Self::Ranges(ranges) }
    }

    /// What to send of a representation with `length` bytes. Ranges without a byte are left out. If overlapping ranges
    /// add up to more than the whole, the whole is sent: a request never makes the server send more than the
    /// representation (CVE-2011-3192). Too many ranges also get the whole. For an empty representation the whole is
    /// sent, as nginx, Apache and Go do: clients that use a range only as a limit can use a 200, but treat a 416 as an
    /// error (RFC 9110, 15.5.17).
    pub fn select(&self, length: u64) -> Selection {
        let Self::Ranges(specs) = self else { return Selection::Whole };
        if length == 0 {
            return Selection::Whole;
        }
        let parts: Vec<Range<u64>> = specs.iter().filter_map(|spec| spec.select(length)).collect();
        let total: u128 = parts.iter().map(|part| u128::from(part.end - part.start)).sum();
        match parts.len() {
            0 => Selection::Unsatisfiable,
            _ if total > u128::from(length) => Selection::Whole,
            _ => Selection::Parts(parts),
        }
    }
}

impl RangeSpec {
    /// The bytes of the range within `length`; `None` if there are none.
    pub fn select(self, length: u64) -> Option<Range<u64>> {
        let part = match self {
            Self::FromTo { first, last } => first..last.saturating_add(1).min(length),
            Self::Suffix(count) => length.saturating_sub(count)..length,
        };
        (part.start < part.end).then_some(part)
    }
}

/// `first-last`, `first-` or `-count`.
fn parse_spec(element: &[u8]) -> Option<RangeSpec> {
    let dash = element.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (&element[..dash], &element[dash + 1..]);
    match (first, last) {
        ([], _) => Some(RangeSpec::Suffix(saturating_digits(last)?)),
        (_, []) => Some(RangeSpec::FromTo { first: saturating_digits(first)?, last: u64::MAX }),
        _ => {
            let (first, last) = (saturating_digits(first)?, saturating_digits(last)?);
            (first <= last).then_some(RangeSpec::FromTo { first, last })
        }
    }
}

/// Only digits; a number that does not fit becomes the largest.
fn saturating_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = text.iter().map(|byte| u64::from(byte - b'0'));
    Some(digits.fold(0u64, |number, digit| number.saturating_mul(10).saturating_add(digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start and end of each part; empty if the range cannot be satisfied.
    fn parts(value: &str, length: u64) -> Vec<(u64, u64)> {
        match RangeRequest::parse(value.as_bytes(), 10).select(length) {
            Selection::Parts(parts) => parts.iter().map(|part| (part.start, part.end)).collect(),
            Selection::Unsatisfiable => Vec::new(),
            Selection::Whole => panic!("{value} is not to be ignored"),
        }
    }

    #[test]
    fn ranges_of_rfc_9110_14_1_2_select_what_it_says() {
        let cases: [(&str, &[(u64, u64)]); 11] = [
            ("bytes=0-499", &[(0, 500)]),
            ("bytes=500-999", &[(500, 1000)]),
            ("bytes=-500", &[(500, 1000)]),
            ("bytes=900-", &[(900, 1000)]),
            ("bytes=0-0,-1", &[(0, 1), (999, 1000)]),
            ("bytes= 0-0 , ,\t5-6", &[(0, 1), (5, 7)]),
            ("Bytes=0-5000", &[(0, 1000)]),
            ("bytes=1000-", &[]),
            ("bytes=-0", &[]),
            ("bytes=-5000", &[(0, 1000)]),
            ("bytes=5000-6000,1-2", &[(1, 3)]),
        ];
        for (value, expected) in cases {
            assert_eq!(parts(value, 1000), expected, "{value}");
        }
        for value in ["bytes=0-", "bytes=-1", "bytes=5-6"] {
            let request = RangeRequest::parse(value.as_bytes(), 10);
            assert_eq!(request.select(0), Selection::Whole, "{value}");
        }
    }

    #[test]
    fn malformed_ranges_are_ignored_as_a_whole() {
        let values = [
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=a-b",
            "bytes=5-4",
            "bytes=1-2,x",
            "bytes=+1-2",
            "bytes=1--2",
            "bytes=0x1-",
            "items=0-1",
            "bytes 0-1",
            "bytes=1 - 2",
        ];
        for value in values {
            assert_eq!(RangeRequest::parse(value.as_bytes(), 10), RangeRequest::Ignore, "{value}");
        }
    }

    /// nginx CVE-2017-7529 overflowed, Apache CVE-2011-3192 multiplied the work.
    #[test]
    fn range_bombs_cost_no_more_than_the_whole() {
        let wrapping = RangeRequest::parse(b"bytes=-9223372036854775908,-17208", 10);
        assert_eq!(wrapping.select(10_000), Selection::Whole);
        assert_eq!(parts("bytes=0-99999999999999999999999", u64::MAX), [(0, u64::MAX)]);
        let overlapping = RangeRequest::parse(b"bytes=0-,0-,0-", 10);
        assert_eq!(overlapping.select(3), Selection::Whole);
        let many = RangeRequest::parse(b"bytes=0-0,1-1,2-2", 2);
        assert_eq!(many, RangeRequest::TooMany);
        assert_eq!(many.select(3), Selection::Whole);
    }
}
