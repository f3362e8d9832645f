//! The known name that is most like one that was typed wrong, for error messages.

/// The one of `known` with the fewest edits (Levenshtein), without regard to case; the first of several.
pub fn nearest<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let typed = typed.to_ascii_lowercase();
    let edits = |known: &&str| strsim::levenshtein(&typed, &known.to_ascii_lowercase());
    known.into_iter().min_by_key(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_edits_win_whatever_the_case() {
        let known = ["KeepAlive", "KeepAliveTimeout", "TimeOut"];
        assert_eq!(nearest("keepalivetimeouts", known), Some("KeepAliveTimeout"));
        assert_eq!(nearest("TIMEOUT", known), Some("TimeOut"));
        assert_eq!(nearest("x", []), None);
    }
}
