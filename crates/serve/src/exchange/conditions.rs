//! The conditions of a request (RFC 9110, 13). Owns their order and what each compares; must not
//! know how the answer is sent. Start reading at [`evaluate`].

use std::time::SystemTime;

use wire::etag::{Comparison, EntityTag, any_matches};

use super::asked::{Heeded, Once};
use crate::site::Validators;

/// What the conditions let happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Send it.
    Go,
    /// 304: the client has it.
    NotModified,
    /// 412: it is not what the client thinks.
    Failed,
}

/// In the order of RFC 9110, 13.2.2, for GET and HEAD.
pub(super) fn evaluate(asked: &Heeded<&[u8]>, current: &Validators) -> Outcome {
    let tag = current_tag(current);
    let unmodified = match (asked.if_match, asked.if_unmodified_since) {
        (Once::Absent, date) => date_of(date).is_none_or(|date| current.modified_s <= date),
        (Once::Is(tags), _) => any_matches(tags, &tag, Comparison::Strong),
        (Once::Repeated, _) => false,
    };
    if !unmodified {
        return Outcome::Failed;
    }
    let modified = match (asked.if_none_match, asked.if_modified_since) {
        (Once::Absent, date) => date_of(date).is_none_or(|date| current.modified_s > date),
        (Once::Is(tags), _) => !any_matches(tags, &tag, Comparison::Weak),
        (Once::Repeated, _) => true,
    };
    if modified { Outcome::Go } else { Outcome::NotModified }
}

/// Whether the ranges count: there is no If-Range, or it names this representation. A date is a
/// strong validator only if it lies a second or more before now (RFC 9110, 8.8.2.2).
pub(super) fn range_counts(if_range: Once<&[u8]>, current: &Validators, now_s: u64) -> bool {
    let value = match if_range {
        Once::Absent => return true,
        Once::Repeated => return false,
        Once::Is(value) => value,
    };
    if let Some(tag) = EntityTag::parse(value) {
        return tag.matches(&current_tag(current), Comparison::Strong);
    }
    date_of(Once::Is(value)) == Some(current.modified_s) && current.modified_s < now_s
}

fn current_tag(current: &Validators) -> EntityTag<'_> {
    EntityTag { is_weak: false, opaque: current.etag.trim_matches('"').as_bytes() }
}

/// Seconds since 1970; a date that is none is ignored (RFC 9110, 13.1.3).
fn date_of(value: Once<&[u8]>) -> Option<u64> {
    let text = std::str::from_utf8(value.value()?).ok()?;
    let date = httpdate::parse_http_date(text).ok()?;
    // Dates before 1970 are older than any file that is told apart here.
    Some(date.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURRENT_S: u64 = 784_111_777;
    const SAME: Once<&[u8]> = Once::Is(b"Sun, 06 Nov 1994 08:49:37 GMT");
    const LATER: Once<&[u8]> = Once::Is(b"Sun, 06 Nov 1994 08:49:38 GMT");
    const EARLIER: Once<&[u8]> = Once::Is(b"Sunday, 06-Nov-94 08:49:36 GMT");
    const NO_DATE: Once<&[u8]> = Once::Is(b"yesterday");
    const TAG: Once<&[u8]> = Once::Is(b"\"x\", \"abc\"");
    const WEAK: Once<&[u8]> = Once::Is(b"W/\"abc\"");
    const OTHER: Once<&[u8]> = Once::Is(b"\"x\"");
    const ANY: Once<&[u8]> = Once::Is(b"*");

    fn current() -> Validators {
        Validators { etag: "\"abc\"".to_owned(), modified_s: CURRENT_S }
    }

    #[test]
    fn conditions_are_taken_in_the_order_of_the_rfc() {
        use Outcome::{Failed, Go, NotModified};
        let base = Heeded::default();
        let cases = [
            (base, Go),
            (Heeded { if_none_match: TAG, ..base }, NotModified),
            (Heeded { if_none_match: WEAK, ..base }, NotModified),
            (Heeded { if_none_match: ANY, ..base }, NotModified),
            (Heeded { if_none_match: OTHER, ..base }, Go),
            (Heeded { if_none_match: OTHER, if_modified_since: SAME, ..base }, Go),
            (Heeded { if_none_match: TAG, if_modified_since: EARLIER, ..base }, NotModified),
            (Heeded { if_none_match: Once::Repeated, if_modified_since: SAME, ..base }, Go),
            (Heeded { if_modified_since: SAME, ..base }, NotModified),
            (Heeded { if_modified_since: LATER, ..base }, NotModified),
            (Heeded { if_modified_since: EARLIER, ..base }, Go),
            (Heeded { if_modified_since: NO_DATE, ..base }, Go),
            (Heeded { if_match: TAG, ..base }, Go),
            (Heeded { if_match: ANY, ..base }, Go),
            (Heeded { if_match: WEAK, ..base }, Failed),
            (Heeded { if_match: OTHER, ..base }, Failed),
            (Heeded { if_match: TAG, if_unmodified_since: EARLIER, ..base }, Go),
            (Heeded { if_match: OTHER, if_none_match: TAG, ..base }, Failed),
            (Heeded { if_unmodified_since: SAME, ..base }, Go),
            (Heeded { if_unmodified_since: EARLIER, ..base }, Failed),
            (Heeded { if_unmodified_since: NO_DATE, ..base }, Go),
        ];
        for (asked, expected) in cases {
            assert_eq!(evaluate(&asked, &current()), expected, "{asked:?}");
        }
    }

    #[test]
    fn a_range_counts_only_for_exactly_this_representation() {
        let cases = [
            (Once::Absent, true),
            (Once::Is(&b"\"abc\""[..]), true),
            (WEAK, false),
            (OTHER, false),
            (TAG, false),
            (SAME, true),
            (LATER, false),
            (EARLIER, false),
            (NO_DATE, false),
            (Once::Repeated, false),
        ];
        for (if_range, expected) in cases {
            let counts = range_counts(if_range, &current(), CURRENT_S + 10);
            assert_eq!(counts, expected, "{if_range:?}");
        }
        let within_the_second = range_counts(SAME, &current(), CURRENT_S);
        assert!(!within_the_second, "what may change within its second is no strong validator");
    }
}
