//! Owns entity tags and the conditions on them (RFC 9110, 8.8.3 and 13.1). Start reading at
//! [`any_matches`].

use crate::tokens::trim;

/// An entity tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// Whether it is weak: two representations with the same tag are only equivalent.
    pub is_weak: bool,
    /// The text between the quotes.
    pub opaque: &'a [u8],
}

/// How two tags are compared (RFC 9110, 8.8.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal, and neither is weak: If-Match, If-Range.
    Strong,
    /// Equal: If-None-Match.
    Weak,
}

impl<'a> EntityTag<'a> {
    /// Reads a value that is one tag (If-Range, ETag); `None` if it is anything else.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::read(trim(value))?;
        rest.is_empty().then_some(tag)
    }

    /// Whether the two are the same.
    pub fn matches(&self, other: &EntityTag<'_>, comparison: Comparison) -> bool {
        let may_match = comparison == Comparison::Weak || !(self.is_weak || other.is_weak);
        may_match && self.opaque == other.opaque
    }

    /// Reads the tag at the start, and returns what follows. `W/` is case-sensitive; a quote ends the tag, without
    /// escaping (RFC 9110, 8.8.3).
    fn read(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (is_weak, quoted) = match text.strip_prefix(b"W/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        let end = inner.iter().position(|&byte| byte == b'"')?;
        let (opaque, rest) = (&inner[..end], &inner[end + 1..]);
        let is_valid = opaque.iter().all(|byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..));
        is_valid.then_some((Self { is_weak, opaque }, rest))
    }
}

/// Whether a value of If-None-Match or If-Match matches a resource with the tag `current`, or without a tag: `*`, or a
/// list with a matching tag. A malformed rest of a list matches nothing. That makes the server send again
/// (If-None-Match) or refuse (If-Match), and both are safe.
pub fn any_matches(value: &[u8], current: Option<&EntityTag<'_>>, comparison: Comparison) -> bool {
    let value = trim(value);
    if value == b"*" {
        return true;
    }
    let Some(current) = current else { return false };
    let mut rest = value;
    loop {
        while let [b',' | b' ' | b'\t', after @ ..] = rest {
            rest = after;
        }
        let Some((tag, after)) = EntityTag::read(rest) else { return false };
        if tag.matches(current, comparison) {
            return true;
        }
        let after = trim(after);
        if !after.starts_with(b",") {
            return false;
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of RFC 9110, 8.8.3.2.
    #[test]
    fn tags_compare_as_the_rfc_says() {
        let cases = [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ];
        for (a, b, strong, weak) in cases {
            let [a, b] = [a, b].map(|text| EntityTag::parse(text.as_bytes()).unwrap());
            assert_eq!(a.matches(&b, Comparison::Strong), strong, "{a:?} {b:?}");
            assert_eq!(a.matches(&b, Comparison::Weak), weak, "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_condition_holds_for_a_star_and_for_any_tag_of_its_list() {
        let current = EntityTag { is_weak: false, opaque: b"a,b" };
        let cases = [
            ("*", true),
            (" * ", true),
            ("\"a,b\"", true),
            ("W/\"a,b\"", true),
            ("\"x\", ,\t\"y\" ,\"a,b\"", true),
            ("\"x\",\"y\"", false),
            ("", false),
            ("a,b", false),
            ("w/\"a,b\"", false),
            ("\"x\" \"a,b\"", false),
            ("\"x\", \"a,b", false),
            ("\"a b\"", false),
        ];
        for (value, holds) in cases {
            assert_eq!(
                any_matches(value.as_bytes(), Some(&current), Comparison::Weak),
                holds,
                "{value}"
            );
        }
    }

    #[test]
    fn one_tag_is_not_a_list() {
        assert!(EntityTag::parse(b"\"1\", \"2\"").is_none());
        assert!(EntityTag::parse(b"Sat, 21 Nov 2026 11:31:47 GMT").is_none());
        assert_eq!(EntityTag::parse(b" \"\" "), Some(EntityTag { is_weak: false, opaque: b"" }));
    }
}
