//! The report as Markdown (GitHub's tables). Owns its layout; figures and words come from elsewhere
//! in this crate. Start reading at [`OUTPUT`].

use std::fmt::Write as _;

use record::RunRecord;

use crate::answers;
use crate::cells::{CellView, cells};
use crate::finding_groups::sections;
use crate::finding_markdown::findings;
use crate::headline::headline;
use crate::line::{Line, Tone};
use crate::load_markdown::load_markdown;
use crate::markdown_table::{described, escaped};
use crate::run_facts::{no_findings, repeat, run_facts};
use crate::standing::joined_failures;
use crate::wording::plain;
use crate::{Options, Output, Render, Written, extras};

/// Markdown, for a README, an issue or a mail.
pub(crate) static OUTPUT: Output = Output {
    name: "markdown",
    extension: "md",
    about: "tables for a README or an issue",
    written: Written::WithEveryRun,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(load_markdown)),
};

fn render(record: &RunRecord, _: &Options) -> String {
    let mut page = format!("# joust run: {}\n\n", escaped(&record.plan.name));
    let _ = writeln!(page, "{}\n", escaped(&record.plan.question));
    match cells(record).as_slice() {
        [only] => {
            quoted(&mut page, &headline(&only.run, &only.standings, &only.ranking));
            findings(&mut page, &sections(record), no_findings(record));
            extras::of_cell(only).iter().for_each(|table| described(&mut page, table, "##"));
        }
        cells => several(&mut page, record, cells),
    }
    extras::of_run(record).iter().for_each(|table| described(&mut page, table, "##"));
    lost_and_left_out(&mut page, record);
    page.push_str("\n## Run\n\n");
    for (label, text) in run_facts(record) {
        let _ = writeln!(page, "- {label}: {}", escaped(&text));
    }
    let _ = writeln!(page, "- Repeat: `{}`", repeat(record).replace('`', "'"));
    page
}

/// The answers of the cells, then each.
fn several(page: &mut String, record: &RunRecord, cells: &[CellView]) {
    quoted(page, &answers::overview(record, cells));
    findings(page, &sections(record), no_findings(record));
    described(page, &answers::table(cells), "##");
    for view in cells {
        let _ = writeln!(page, "\n## Cell {}\n", escaped(&view.name));
        quoted(page, &headline(&view.run, &view.standings, &view.ranking));
        extras::of_cell(view).iter().for_each(|table| described(page, table, "###"));
    }
}

/// The lines of an answer.
fn quoted(page: &mut String, lines: &[Line]) {
    for Line { tone, text } in lines {
        let text = escaped(text);
        let _ = match tone {
            Tone::Answer | Tone::Alarm => writeln!(page, "> **{text}**\n>"),
            Tone::Open | Tone::Trust => writeln!(page, "> {text}\n>"),
            Tone::Caution => writeln!(page, "> _{text}_\n>"),
        };
    }
}

fn lost_and_left_out(page: &mut String, record: &RunRecord) {
    let failures = joined_failures(record);
    if !failures.is_empty() {
        page.push_str("\n## Visits that failed\n\n");
    }
    for failure in failures {
        let (name, reason) = (escaped(&failure.name), escaped(&failure.reason));
        let _ = writeln!(page, "- {name}, {}: {reason}", failure.blocks);
        // Indented by six columns, a log is code inside its item, whatever backticks it contains.
        if !failure.log_tail.is_empty() {
            page.push('\n');
        }
        for line in failure.log_tail.lines() {
            let _ = writeln!(page, "      {line}");
        }
    }
    if !record.skipped.is_empty() {
        page.push_str("\n## Left out\n\n");
    }
    for skipped in &record.skipped {
        let _ = writeln!(
            page,
            "- {}: {}. To include it: `{}`",
            escaped(&skipped.name),
            escaped(&skipped.reason),
            plain(&skipped.remedy).replace('`', "'"),
        );
    }
}
