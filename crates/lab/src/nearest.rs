//! Owns the guess at what was meant by a mistyped name.

/// The candidate nearest to `typed`, if it is near enough to be meant: at most a third of the letters differ,
/// ignoring capitals, hyphens and underscores.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
    let typed = plain(typed);
    let far = |name: &&str| edits(&typed, &plain(name));
    let best = candidates.into_iter().min_by_key(far)?;
    (far(&best) * 3 <= typed.chars().count().max(3)).then_some(best)
}

/// `did you mean X?`, or the list of candidates if none is near.
pub(crate) fn suggestion(typed: &str, candidates: &[&str]) -> String {
    match nearest(typed, candidates.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("there is: {}", candidates.join(", ")),
    }
}

/// Edits between two words in characters: insertions, deletions, replacements, and swapped neighbours, the most
/// common slip (optimal string alignment).
fn edits(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let differ = usize::from(left[i - 1] != right[j - 1]);
                let mut least = (table[i - 1][j - 1] + differ)
                    .min(table[i - 1][j] + 1)
                    .min(table[i][j - 1] + 1);
                let swapped =
                    i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
                if swapped {
                    least = least.min(table[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    table[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits_and_swaps() {
        let cases = [
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("flaw", "lawn", 2),
            ("a", "a", 0),
            ("sede", "seed", 1),
        ];
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
