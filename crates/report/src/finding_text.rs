//! Owns how findings are laid out on a terminal: a heading for each question, below it each check with what it saw.
//! Must not know what they concern. Start reading at [`findings`].

use record::{LoadRecord, RunRecord};

use crate::finding_groups::{Group, Section, sections, sections_of_load};
use crate::terminal::{Page, Paint};
use crate::{Detail, Options};

/// The findings, each below its question.
pub(crate) fn findings(page: &mut Page, sections: &[Section], detail: Detail) {
    for section in sections {
        page.heading(&format!("Findings: {}", section.question), "");
        section.groups.iter().for_each(|group| put(page, group, detail));
    }
}

fn put(page: &mut Page, group: &Group, detail: Detail) {
    let paint = match group.class {
        "void" => Paint::Alarm,
        "bound" => Paint::Caution,
        _ => Paint::Heading,
    };
    let Group { check, explain, weight, entries, meaning, remedy, .. } = group;
    page.paragraph(&format!("{check} ({weight}{})", group.whom()), paint);
    for text in entries.iter().flat_map(|entry| entry.lines(entries.len() == 1, detail)) {
        page.detail(&text);
    }
    page.detail(&format!("Why it misleads: {meaning}"));
    page.detail(&format!("Remedy: {remedy}"));
    page.detail(&format!("More: {explain}"));
}

/// All findings of a run, for `joust doctor`; empty if there are none.
pub fn findings_text(record: &RunRecord, options: &Options) -> String {
    text(&sections(record), options)
}

/// All findings of a load; empty if there are none.
pub fn load_findings_text(record: &LoadRecord, options: &Options) -> String {
    text(&sections_of_load(record), options)
}

fn text(sections: &[Section], options: &Options) -> String {
    let mut page = Page::narrow(options);
    findings(&mut page, sections, Detail::Full);
    page.finish()
}
