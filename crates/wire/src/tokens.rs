//! Owns the comma-separated lists of tokens in field values (RFC 9110, 5.6.1), such as that of
//! `Connection`. Start reading at [`list`].

/// Whether `byte` is allowed in a token: a method or a field name (RFC 9110, 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether `bytes` is a token: one or more token bytes.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().copied().all(is_token_byte)
}

/// `value` without spaces and tabs at its ends (OWS, RFC 9110, 5.6.3).
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = value.iter().position(|byte| !is_space(byte)) else { return &[] };
    let end = value.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

/// The elements of a list, trimmed; empty ones are skipped, as a recipient must (RFC 9110,
/// 5.6.1.2). Not for values with quoted strings: a comma inside one would split it.
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|element| !element.is_empty())
}

/// Whether the list contains `token`, case-insensitively.
pub fn has(value: &[u8], token: &str) -> bool {
    list(value).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_divided_at_commas_and_empty_elements_do_not_count() {
        let elements: Vec<&[u8]> = list(b" ,close ,\tKeep-Alive,, x ").collect();
        assert_eq!(elements, [&b"close"[..], b"Keep-Alive", b"x"]);
        assert_eq!(list(b" , ").count(), 0);
    }

    #[test]
    fn a_token_is_found_whole_and_in_any_case() {
        assert!(has(b"Upgrade, CLOSE", "close"));
        assert!(!has(b"not-close, closed", "close"));
    }
}
