//! Owns the guess at what was meant by a mistyped name. Must not know what the names stand for.

/// The candidate nearest to `typed`, where it is near enough to be what was meant: at most a third
/// of the letters wrong, capitals, hyphens and underscores aside.
pub(crate) fn nearest<'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
    let typed = plain(typed);
    let far = |name: &&str| edits(&typed, &plain(name));
    let best = candidates.into_iter().min_by_key(far)?;
    (far(&best) * 3 <= typed.chars().count().max(3)).then_some(best)
}

/// `did you mean X?`, or the list of what there is where nothing is near.
pub(crate) fn suggestion(typed: &str, candidates: &[&str]) -> String {
    match nearest(typed, candidates.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("there is: {}", candidates.join(", ")),
    }
}

/// Levenshtein's distance in characters: insertions, deletions and replacements.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &r) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(l != r);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_insertions_deletions_and_replacements() {
        let cases = [("kitten", "sitting", 3), ("", "abc", 3), ("flaw", "lawn", 2), ("a", "a", 0)];
        for (left, right, distance) in cases {
            assert_eq!(edits(left, right), distance, "{left} {right}");
        }
    }

    #[test]
    fn a_typing_error_is_guessed_and_nonsense_is_not() {
        let names = ["connections", "keep_alive", "page"];
        assert_eq!(nearest("conections", names), Some("connections"));
        assert_eq!(nearest("keepAlive", names), Some("keep_alive"));
        assert_eq!(nearest("zzz", names), None);
        assert_eq!(suggestion("zzz", &names), "there is: connections, keep_alive, page");
    }
}
