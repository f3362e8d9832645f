//! Owns how findings are laid out in Markdown. Must not know what they concern. Start reading at [`findings`].

use std::fmt::Write as _;

use crate::Detail;
use crate::finding_groups::{Group, Section};
use crate::markdown_table::escaped;

/// The findings, below their questions; `none` if there are no findings.
pub(crate) fn findings(page: &mut String, sections: &[Section], none: &str) {
    page.push_str("\n## Findings\n");
    if sections.is_empty() {
        let _ = writeln!(page, "\n{none}");
    }
    for Section { question, groups } in sections {
        let _ = writeln!(page, "\n### {question}\n");
        groups.iter().for_each(|group| put(page, group));
    }
}

fn put(page: &mut String, group: &Group) {
    let Group { check, explain, weight, entries, meaning, remedy, .. } = group;
    let whom = escaped(&group.whom());
    let _ = writeln!(page, "- **{}** ({weight}{whom})", escaped(check));
    let seen = entries.iter().flat_map(|entry| entry.lines(entries.len() == 1, Detail::Full));
    let why = [format!("Why it misleads: {meaning}"), format!("Remedy: {remedy}")];
    for text in seen.chain(why) {
        let _ = writeln!(page, "  - {}", escaped(&text));
    }
    let _ = writeln!(page, "  - More: `{}`", explain.replace('`', "'"));
}
