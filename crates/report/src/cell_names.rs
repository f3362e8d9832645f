//! Owns how a set of cells is named in few words: "connections=10|100, client=ab", "every cell". Must not know why
//! they are named. Start reading at [`named`].

use record::Plan;

use crate::figures::counted;
use crate::wording::plain;

/// Most groups of cells that are named; further ones are given as a number of cells.
const GROUPS_MAX: usize = 4;

/// The parts of a cell's name: its value on each axis.
type Parts = Vec<String>;
/// Cells that differ only in listed values: the values of each axis. Every combination belongs to the group.
type Group = Vec<Vec<String>>;

/// Names cells of a plan, given by their indices without repetition. Cells that differ in one value are joined, as
/// often as possible. An axis with all its values is left out.
pub(crate) fn named(plan: &Plan, cells: &[usize]) -> String {
    let all: Vec<Parts> = plan.cells.iter().map(|cell| parts(&cell.name)).collect();
    match cells {
        [only] => return plan.cells.get(*only).map_or_else(String::new, |cell| plain(&cell.name)),
        _ if cells.len() == all.len() => return "every cell".to_owned(),
        _ => {}
    }
    let groups = joined(&all, cells);
    let rest: usize = groups.iter().skip(GROUPS_MAX).map(size).sum();
    let shown = groups.iter().take(GROUPS_MAX).map(|group| text(group, &said(group, &all)));
    let further = (rest > 0).then(|| format!("and {}", counted(rest as u64, "further cell")));
    shown.chain(further).collect::<Vec<_>>().join("; ")
}

/// The axes of a plan with all their values: "page=3KB|100KB, connections=1|10"; empty if its cells are not every
/// combination of them.
pub(crate) fn axes(plan: &Plan) -> String {
    let all: Vec<Parts> = plan.cells.iter().map(|cell| parts(&cell.name)).collect();
    match joined(&all, &(0..all.len()).collect::<Vec<_>>()).as_slice() {
        [only] => text(only, &(0..only.len()).collect::<Vec<_>>()),
        _ => String::new(),
    }
}

/// Joins the cells into as few groups as possible.
fn joined(all: &[Parts], cells: &[usize]) -> Vec<Group> {
    let single = |&cell: &usize| all[cell].iter().map(|value| vec![value.clone()]).collect();
    let mut groups: Vec<Group> = cells.iter().map(single).collect();
    while join_two(&mut groups) {}
    groups
}

fn parts(name: &str) -> Parts {
    plain(name).split(", ").map(str::to_owned).collect()
}

/// Number of cells of a group.
fn size(group: &Group) -> usize {
    group.iter().map(Vec::len).product()
}

/// Joins the first two groups that differ in only one axis; false if there are none.
fn join_two(groups: &mut Vec<Group>) -> bool {
    let found = (0..groups.len()).find_map(|at| {
        let axis = |other: usize| Some((at, other, only_difference(&groups[at], &groups[other])?));
        (at + 1..groups.len()).find_map(axis)
    });
    let Some((at, other, axis)) = found else { return false };
    let mut gone = groups.remove(other);
    groups[at][axis].append(&mut gone[axis]);
    true
}

/// The axis in which two groups differ, if they differ in only one.
fn only_difference(left: &Group, right: &Group) -> Option<usize> {
    let mut differing = (0..left.len()).filter(|&axis| right.get(axis) != Some(&left[axis]));
    let axis = differing.next().filter(|_| left.len() == right.len())?;
    differing.next().is_none().then_some(axis)
}

/// The axes that a group must name. The others can be left out without adding a cell.
fn said(group: &Group, all: &[Parts]) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..group.len()).collect();
    for axis in 0..group.len() {
        let without: Vec<usize> = kept.iter().copied().filter(|&one| one != axis).collect();
        if group[axis].len() > 1 && meant(group, &without, all) == size(group) {
            kept = without;
        }
    }
    kept
}

/// A group in words, on some of its axes.
fn text(group: &Group, axes: &[usize]) -> String {
    axes.iter().map(|&axis| values(&group[axis])).collect::<Vec<_>>().join(", ")
}

/// How many cells of the plan have one of the group's values on each of some axes.
fn meant(group: &Group, axes: &[usize], all: &[Parts]) -> usize {
    let fits = |cell: &&Parts| {
        cell.len() == group.len() && axes.iter().all(|&axis| group[axis].contains(&cell[axis]))
    };
    if axes.is_empty() { usize::MAX } else { all.iter().filter(fits).count() }
}

/// "client=ab|siege"; whole values if they do not begin alike.
fn values(values: &[String]) -> String {
    let [first, rest @ ..] = values else { return String::new() };
    let key = first.split_once('=').map(|(key, _)| format!("{key}="));
    let bare = |value: &String| Some(value.strip_prefix(key.as_ref()?)?.to_owned());
    match rest.iter().map(bare).collect::<Option<Vec<String>>>() {
        Some(rest) => std::iter::once(first.clone()).chain(rest).collect::<Vec<_>>().join("|"),
        None => values.join("|"),
    }
}

#[cfg(test)]
mod tests {
    use record::{Cell, Workload};

    use super::*;

    /// A plan of every combination, the first axis outermost.
    fn plan(axes: &[&[&str]]) -> Plan {
        let mut names = vec![String::new()];
        for values in axes {
            let with = |name: &String| {
                let sep = if name.is_empty() { "" } else { ", " };
                values.iter().map(|value| format!("{name}{sep}{value}")).collect::<Vec<_>>()
            };
            names = names.iter().flat_map(with).collect();
        }
        let cell = |name: String| Cell { name, ..Cell::only(Workload::default()) };
        Plan { cells: names.into_iter().map(cell).collect(), ..Plan::default() }
    }

    #[test]
    fn cells_are_joined_over_their_axes() {
        let plan = plan(&[&["page=3KB", "page=100KB"], &["c=1", "c=10", "c=100"]]);
        let cases: [(&[usize], &str); 7] = [
            (&[0, 1, 2, 3, 4, 5], "every cell"),
            (&[4], "page=100KB, c=10"),
            (&[0, 1], "page=3KB, c=1|10"),
            (&[0, 1, 2], "page=3KB"),
            (&[1, 4], "c=10"),
            (&[0, 2, 3, 5], "c=1|100"),
            (&[0, 4], "page=3KB, c=1; page=100KB, c=10"),
        ];
        for (cells, text) in cases {
            assert_eq!(named(&plan, cells), text, "{cells:?}");
        }
        assert_eq!(axes(&plan), "page=3KB|100KB, c=1|10|100");
    }

    #[test]
    fn what_is_named_is_every_cell_and_no_other() {
        let plan = plan(&[&["a=1", "a=2", "a=3"], &["b=1", "b=2"], &["c=1", "c=2"]]);
        let all: Vec<Parts> = plan.cells.iter().map(|cell| parts(&cell.name)).collect();
        for set in 1..(1u32 << all.len()) - 1 {
            let cells: Vec<usize> = (0..all.len()).filter(|n| set >> n & 1 == 1).collect();
            let text = named(&plan, &cells);
            let groups = text.split("; and ").next().unwrap_or(&text);
            let has = |cell: &Parts| {
                groups.split("; ").any(|group| {
                    group.split(", ").all(|part| {
                        let (key, values) = part.split_once('=').unwrap();
                        values.split('|').any(|value| cell.contains(&format!("{key}={value}")))
                    })
                })
            };
            for (index, cell) in all.iter().enumerate() {
                let is_meant = cells.contains(&index);
                let may_be_cut = text.contains("further cell");
                assert!(has(cell) == is_meant || (is_meant && may_be_cut), "{cells:?}: {text}");
            }
        }
    }

    #[test]
    fn labels_without_a_key_are_named_whole_and_many_groups_are_counted() {
        let labels = plan(&[&["small", "large", "huge"]]);
        assert_eq!(named(&labels, &[0, 2]), "small|huge");
        let names: Vec<String> = (0..7).map(|n| format!("a={n}, b={n}")).collect();
        let odd = plan(&[&names.iter().map(String::as_str).collect::<Vec<_>>()]);
        let said = named(&odd, &[0, 1, 2, 3, 4, 5]);
        assert!(said.ends_with("a=3, b=3; and 2 further cells"), "{said}");
        assert_eq!(axes(&odd), "");
    }
}
