//! The report as Markdown (GitHub's tables). Owns its layout; figures and words come from elsewhere
//! in this crate. Start reading at [`OUTPUT`].

use std::fmt::Write as _;

use record::RunRecord;

use crate::cells::{CellView, cells, note};
use crate::extras::{self, Extra};
use crate::headline::{Ranking, Tone, headline, incomplete, ranking, weight};
use crate::pairs::{PairTable, metrics};
use crate::run_facts::{no_findings, repeat, run_facts};
use crate::standing::{Standing, joined_failures, standings};
use crate::text::{CONTENDER_COLUMNS, contender_notes, contender_row, in_order, touched};
use crate::wording::plain;
use crate::{Options, Output, published};

/// Markdown, for a README, an issue or a mail.
pub(crate) static OUTPUT: Output =
    Output { name: "markdown", extension: "md", about: "tables for a README or an issue", render };

fn render(record: &RunRecord, _: &Options) -> String {
    let mut page = format!("# joust run: {}\n\n", escaped(&record.plan.name));
    let _ = writeln!(page, "{}\n", escaped(&record.plan.question));
    let cells = cells(record);
    if cells.is_empty() {
        let standings = standings(record);
        cell(&mut page, record, &standings, &ranking(record, &standings), "##");
    } else {
        several(&mut page, record, &cells);
    }
    extras::of_run(record).iter().for_each(|extra| extra_table(&mut page, extra, "##"));
    findings(&mut page, record);
    lost_and_left_out(&mut page, record);
    page.push_str("\n## Run\n\n");
    for (label, text) in run_facts(record) {
        let _ = writeln!(page, "- {label}: {}", escaped(&text));
    }
    let _ = writeln!(page, "- Repeat: `{}`", repeat(record).replace('`', "'"));
    page
}

/// An overview of the cells, then each.
fn several(page: &mut String, record: &RunRecord, cells: &[CellView]) {
    if let Some(text) = incomplete(record) {
        let _ = writeln!(page, "> **{}**\n", escaped(&text));
    }
    let _ = writeln!(page, "## Cells\n\n{}\n", escaped(&note(cells)));
    let rows: Vec<Vec<String>> =
        cells.iter().map(|view| vec![view.name.clone(), view.best_first()]).collect();
    table(page, &["cell", "best first"], 2, &rows);
    for view in cells {
        let _ = writeln!(page, "\n## Cell {}\n", escaped(&view.name));
        cell(page, &view.run, &view.standings, &view.ranking, "###");
    }
}

/// What is said of one cell, or of a run that has but one; `level` is that of its headings.
fn cell(
    page: &mut String,
    record: &RunRecord,
    standings: &[Standing],
    ranking: &Ranking,
    level: &str,
) {
    for line in headline(record, standings, ranking) {
        let text = escaped(&line.text);
        let _ = match line.tone {
            Tone::Alarm => writeln!(page, "> **{text}**\n>"),
            Tone::Answer | Tone::Ranking => writeln!(page, "> {text}\n>"),
            Tone::Caution => writeln!(page, "> _{text}_\n>"),
        };
    }
    let _ = writeln!(page, "\n{level} Contenders\n\n{}\n", escaped(&contender_notes(standings)));
    let rows: Vec<Vec<String>> = in_order(standings, ranking).map(contender_row).collect();
    table(page, &CONTENDER_COLUMNS, 1, &rows);
    for metric in metrics(record, ranking) {
        let Some(pairs) = PairTable::short(record, ranking, metric) else { continue };
        let (title, scope) = (pairs.title(), escaped(&pairs.scope()));
        let _ = writeln!(page, "\n{level} Pairs: {title}\n\n{scope}\n");
        let cells =
            |row: crate::pairs::PairRow| vec![row.this, row.said, row.that, row.ahead, row.blocks];
        let rows: Vec<Vec<String>> = pairs.rows.into_iter().map(cells).collect();
        table(page, &["", "verdict", "against", "ahead", "blocks"], 4, &rows);
    }
    extras::of_cell(record).iter().for_each(|extra| extra_table(page, extra, level));
    if let Some(printed) = published::Table::of(record) {
        let caption = escaped(&printed.caption);
        let _ = writeln!(page, "\n{level} Printed elsewhere\n\n{caption}\n");
        table(page, &published::COLUMNS, 1, &printed.rows);
    }
}

fn extra_table(page: &mut String, extra: &Extra, level: &str) {
    let _ = writeln!(page, "\n{level} {}\n\n{}\n", extra.title, escaped(&extra.note));
    table(page, &extra.columns, extra.left, &extra.rows);
}

fn findings(page: &mut String, record: &RunRecord) {
    page.push_str("\n## Findings\n\n");
    if record.findings.is_empty() {
        let _ = writeln!(page, "{}", no_findings(record));
    }
    for finding in &record.findings {
        let _ = writeln!(
            page,
            "- **{}** ({}; {})\n  - Seen: {}\n  - Why it misleads: {}\n  - Remedy: {}",
            escaped(&finding.check),
            weight(finding.severity, finding.certainty),
            escaped(&touched(record, finding)),
            escaped(&finding.evidence),
            escaped(&finding.meaning),
            escaped(&finding.remedy),
        );
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
        // Indented by six columns a log is code inside of its item, whatever backticks it holds.
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
            "- {}: {}. To have it: `{}`",
            escaped(&skipped.name),
            escaped(&skipped.reason),
            plain(&skipped.remedy).replace('`', "'"),
        );
    }
}

/// A table; the first `left` columns lean to the left, the others to the right.
fn table(page: &mut String, titles: &[&str], left: usize, rows: &[Vec<String>]) {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    page.push_str(&row(titles.iter().map(|title| (*title).to_owned()).collect()));
    let rule = |column: usize| if column < left { "---" } else { "---:" };
    page.push_str(&row((0..titles.len()).map(|column| rule(column).to_owned()).collect()));
    for cells in rows {
        page.push_str(&row(cells.iter().map(|cell| escaped(cell)).collect()));
    }
}

/// Text without what Markdown or HTML would read as markup; on one line.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in plain(text).chars() {
        // A bracket alone is text; only `](` makes a link of it.
        if c == '(' && safe.ends_with(']') {
            safe.push('\\');
        }
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '|' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}
