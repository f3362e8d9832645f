//! Owns which contenders cannot be told apart: from verdicts of pairs to groups with letters (compact letter display).
//! Must not know what is ranked, nor what told a pair apart. Start reading at [`indistinct_groups`].
//!
//! "Cannot be told apart" is not transitive: a and b may be alike, b and c too, but a and c not. A ranking in places 1,
//! 2, 3 would hide that. So groups overlap, and b gets the letters of both.

/// Most groups that are listed. The verdicts of one metric give about as many as contenders; nobody can read a table
/// with more letters, and adversarial verdicts give 3^(k/3).
pub const GROUPS_MAX: usize = 52;

/// All maximal sets of contenders in which no two were told apart, sorted by their members in `order` (best first).
/// Every contender is in at least one; two share a group exactly if they were not told apart. `None` beyond
/// [`GROUPS_MAX`].
///
/// By insertion and absorption (Piepho 2004): begin with one group of all, and for each pair told
/// apart split every group that holds both, then drop those that lie inside another.
pub fn indistinct_groups(
    order: &[usize],
    told_apart: impl Fn(usize, usize) -> bool,
) -> Option<Vec<Vec<usize>>> {
    let n = order.len();
    // Groups hold positions in the order, so that sorting them puts the better ones first.
    let mut groups: Vec<Vec<usize>> = vec![(0..n).collect()];
    let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
    for (a, b) in pairs.filter(|(a, b)| told_apart(order[*a], order[*b])) {
        let (with_both, mut kept): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.contains(&a) && group.contains(&b));
        let without = |group: &[usize], out| {
            group.iter().copied().filter(|member| *member != out).collect::<Vec<_>>()
        };
        let mut halves: Vec<Vec<usize>> =
            with_both.iter().flat_map(|group| [without(group, a), without(group, b)]).collect();
        // Largest first, so that a group comes after those that absorb it.
        halves.sort_by_key(|half| std::cmp::Reverse(half.len()));
        for half in halves {
            if !kept.iter().any(|group| half.iter().all(|member| group.contains(member))) {
                kept.push(half);
            }
        }
        if kept.len() > GROUPS_MAX {
            return None;
        }
        groups = kept;
    }
    groups.sort();
    groups.retain(|group| !group.is_empty());
    Some(groups.into_iter().map(|group| group.into_iter().map(|at| order[at]).collect()).collect())
}

/// The letter of a group, by its place in the list: a to z, then A to Z.
///
/// # Panics
/// Beyond [`GROUPS_MAX`].
pub fn group_letter(group: usize) -> char {
    assert!(group < GROUPS_MAX, "groups have letters");
    let from = |first: u8, place: usize| char::from(first + place as u8);
    if group < 26 { from(b'a', group) } else { from(b'A', group - 26) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_alike_is_one_group_and_all_apart_is_one_each() {
        assert_eq!(indistinct_groups(&[2, 0, 1], |_, _| false), Some(vec![vec![2, 0, 1]]));
        assert_eq!(
            indistinct_groups(&[2, 0, 1], |_, _| true),
            Some(vec![vec![2], vec![0], vec![1]])
        );
        assert_eq!(indistinct_groups(&[], |_, _| true), Some(vec![]));
    }

    #[test]
    fn who_lies_between_two_that_differ_is_in_both_groups() {
        let ends = |a: usize, b: usize| a.abs_diff(b) == 2;
        assert_eq!(indistinct_groups(&[0, 1, 2], ends), Some(vec![vec![0, 1], vec![1, 2]]));
    }

    #[test]
    fn more_groups_than_letters_are_not_listed() {
        // Each triple's members differ from each other and from nobody else: 3^4 groups.
        let order: Vec<usize> = (0..12).collect();
        assert_eq!(indistinct_groups(&order, |a, b| a / 3 == b / 3), None);
        assert_eq!((group_letter(0), group_letter(26), group_letter(51)), ('a', 'A', 'Z'));
    }
}
