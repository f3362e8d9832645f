//! The conditions of a request (RFC 9110, 13). Owns their order and what each compares. Start reading at
//! [`evaluate`].

use std::time::SystemTime;

use wire::Fields;
use wire::etag::{Comparison, EntityTag, any_matches};

use super::request_summary::{SelectedFields, SingleField};
use crate::hosts::Validators;

/// What the conditions allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Send it.
    Go,
    /// 304: the client has it.
    NotModified,
    /// 412: the content is not the one that the client expects.
    Failed,
}

/// The conditions of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConditionalRequest<'h> {
    pub(super) selected: SelectedFields<&'h [u8]>,
    /// All fields, for lists that are spread over several of them.
    pub(super) fields: Fields<'h>,
}

/// Evaluates the conditions in the order of RFC 9110, 13.2.2, for GET and HEAD. `current` is `None` for content without
/// validators: a star matches it, a tag does not, and a date is ignored.
pub(super) fn evaluate(request: &ConditionalRequest<'_>, current: Option<&Validators>) -> Outcome {
    let ConditionalRequest { selected, fields } = request;
    let tag = current.map(current_tag);
    let modified_s = current.map(|current| current.modified_s);
    let names = |list: SingleField<&[u8]>, name: &str, comparison| match list {
        SingleField::Absent => None,
        SingleField::Is(tags) => Some(any_matches(tags, tag.as_ref(), comparison)),
        // Lines of a list are one list (RFC 9110, 5.3).
        SingleField::Repeated => {
            let mut lines = fields.all(name);
            Some(lines.any(|tags| any_matches(tags, tag.as_ref(), comparison)))
        }
    };
    let is_later = |date: SingleField<&[u8]>| Some(modified_s? > date_of(date)?);
    let unmodified = names(selected.if_match, "if-match", Comparison::Strong)
        .unwrap_or_else(|| is_later(selected.if_unmodified_since) != Some(true));
    if !unmodified {
        return Outcome::Failed;
    }
    let modified = names(selected.if_none_match, "if-none-match", Comparison::Weak)
        .map_or_else(|| is_later(selected.if_modified_since) != Some(false), |matches| !matches);
    if modified { Outcome::Go } else { Outcome::NotModified }
}

/// Whether the ranges apply: there is no If-Range, or it names this representation. A date is a strong validator only
/// if it lies a second or more before now (RFC 9110, 8.8.2.2).
pub(super) fn range_counts(if_range: SingleField<&[u8]>, current: &Validators, now_s: u64) -> bool {
    let value = match if_range {
        SingleField::Absent => return true,
        SingleField::Repeated => return false,
        SingleField::Is(value) => value,
    };
    if let Some(tag) = EntityTag::parse(value) {
        return tag.matches(&current_tag(current), Comparison::Strong);
    }
    date_of(SingleField::Is(value)) == Some(current.modified_s) && current.modified_s < now_s
}

fn current_tag(current: &Validators) -> EntityTag<'_> {
    EntityTag { is_weak: false, opaque: current.etag.trim_matches('"').as_bytes() }
}

/// Seconds since 1970; an invalid date is ignored (RFC 9110, 13.1.3).
fn date_of(value: SingleField<&[u8]>) -> Option<u64> {
    let text = std::str::from_utf8(value.value()?).ok()?;
    let date = httpdate::parse_http_date(text).ok()?;
    // A date before 1970 is taken for 1970: no file here is that old.
    Some(date.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURRENT_S: u64 = 784_111_777;
    const SAME: SingleField<&[u8]> = SingleField::Is(b"Sun, 06 Nov 1994 08:49:37 GMT");
    const LATER: SingleField<&[u8]> = SingleField::Is(b"Sun, 06 Nov 1994 08:49:38 GMT");
    const EARLIER: SingleField<&[u8]> = SingleField::Is(b"Sunday, 06-Nov-94 08:49:36 GMT");
    const NO_DATE: SingleField<&[u8]> = SingleField::Is(b"yesterday");
    const TAG: SingleField<&[u8]> = SingleField::Is(b"\"x\", \"abc\"");
    const WEAK: SingleField<&[u8]> = SingleField::Is(b"W/\"abc\"");
    const OTHER: SingleField<&[u8]> = SingleField::Is(b"\"x\"");
    const ANY: SingleField<&[u8]> = SingleField::Is(b"*");

    fn current() -> Validators {
        Validators { etag: "\"abc\"".to_owned(), modified_s: CURRENT_S }
    }

    #[test]
    fn conditions_are_taken_in_the_order_of_the_rfc() {
        use Outcome::{Failed, Go, NotModified};
        let base = SelectedFields::default();
        let cases = [
            (base, Go),
            (SelectedFields { if_none_match: TAG, ..base }, NotModified),
            (SelectedFields { if_none_match: WEAK, ..base }, NotModified),
            (SelectedFields { if_none_match: ANY, ..base }, NotModified),
            (SelectedFields { if_none_match: OTHER, ..base }, Go),
            (SelectedFields { if_none_match: OTHER, if_modified_since: SAME, ..base }, Go),
            (
                SelectedFields { if_none_match: TAG, if_modified_since: EARLIER, ..base },
                NotModified,
            ),
            (SelectedFields { if_modified_since: SAME, ..base }, NotModified),
            (SelectedFields { if_modified_since: LATER, ..base }, NotModified),
            (SelectedFields { if_modified_since: EARLIER, ..base }, Go),
            (SelectedFields { if_modified_since: NO_DATE, ..base }, Go),
            (SelectedFields { if_match: TAG, ..base }, Go),
            (SelectedFields { if_match: ANY, ..base }, Go),
            (SelectedFields { if_match: WEAK, ..base }, Failed),
            (SelectedFields { if_match: OTHER, ..base }, Failed),
            (SelectedFields { if_match: TAG, if_unmodified_since: EARLIER, ..base }, Go),
            (SelectedFields { if_match: OTHER, if_none_match: TAG, ..base }, Failed),
            (SelectedFields { if_unmodified_since: SAME, ..base }, Go),
            (SelectedFields { if_unmodified_since: EARLIER, ..base }, Failed),
            (SelectedFields { if_unmodified_since: NO_DATE, ..base }, Go),
        ];
        for (fields, expected) in cases {
            let asked = ConditionalRequest { selected: fields, fields: Fields::of_head(b"") };
            assert_eq!(evaluate(&asked, Some(&current())), expected, "{fields:?}");
        }
    }

    #[test]
    fn lines_of_a_list_are_one_list() {
        let head = b"\r\nGET / HTTP/1.1\r\nIf-Match: \"x\"\r\nIf-None-Match: \"y\"\r\n\
            if-match: \"abc\"\r\nIf-None-Match: W/\"abc\"\r\n\r\n";
        let fields = Fields::of_head(head);
        let asked = |selected| ConditionalRequest { selected, fields };
        let repeated = SingleField::Repeated;
        let match_alone = asked(SelectedFields { if_match: repeated, ..SelectedFields::default() });
        assert_eq!(evaluate(&match_alone, Some(&current())), Outcome::Go);
        let other = Validators { etag: "\"z\"".to_owned(), ..current() };
        assert_eq!(evaluate(&match_alone, Some(&other)), Outcome::Failed);
        let both = asked(SelectedFields { if_none_match: repeated, ..match_alone.selected });
        assert_eq!(evaluate(&both, Some(&current())), Outcome::NotModified);
    }

    #[test]
    fn without_validators_only_a_star_is_known_to_be_true() {
        use Outcome::{Failed, Go, NotModified};
        let base = SelectedFields::default();
        let cases = [
            (SelectedFields { if_match: ANY, ..base }, Go),
            (SelectedFields { if_match: TAG, ..base }, Failed),
            (SelectedFields { if_none_match: ANY, ..base }, NotModified),
            (SelectedFields { if_none_match: TAG, ..base }, Go),
            (SelectedFields { if_modified_since: LATER, ..base }, Go),
            (SelectedFields { if_unmodified_since: EARLIER, ..base }, Go),
        ];
        for (fields, expected) in cases {
            let asked = ConditionalRequest { selected: fields, fields: Fields::of_head(b"") };
            assert_eq!(evaluate(&asked, None), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_range_counts_only_for_exactly_this_representation() {
        let cases = [
            (SingleField::Absent, true),
            (SingleField::Is(&b"\"abc\""[..]), true),
            (WEAK, false),
            (OTHER, false),
            (TAG, false),
            (SAME, true),
            (LATER, false),
            (EARLIER, false),
            (NO_DATE, false),
            (SingleField::Repeated, false),
        ];
        for (if_range, expected) in cases {
            let counts = range_counts(if_range, &current(), CURRENT_S + 10);
            assert_eq!(counts, expected, "{if_range:?}");
        }
        let within_the_second = range_counts(SAME, &current(), CURRENT_S);
        assert!(!within_the_second, "what may change within its second is no strong validator");
    }
}
