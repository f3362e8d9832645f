//! The terminal report of a run. Owns its layout; figures, words and tables come from elsewhere in this crate.
//! Whatever limits an answer is always shown; tables of detail only on request. Start reading at [`OUTPUT`].

use record::RunRecord;

use crate::answers::{self, answer};
use crate::cells::{CellView, cells};
use crate::finding_groups::sections;
use crate::finding_text;
use crate::headline::headline;
use crate::line::{Line, Tone};
use crate::load_text::load_text;
use crate::run_facts::{no_findings, run_facts};
use crate::standing::joined_failures;
use crate::table::{Depth, Table};
use crate::terminal::{Page, Paint};
use crate::text_charts::{self, Chart};
use crate::wording::plain;
use crate::{Detail, Options, Output, Render, Written, extras, figures::counted, published};

/// Text for a terminal.
pub(crate) static OUTPUT: Output = Output {
    name: "text",
    extension: "txt",
    about: "for the terminal",
    written: Written::WithEveryRun,
    run: Some(Render::Text(render)),
    load: Some(Render::Text(load_text)),
};

fn render(record: &RunRecord, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(
        &format!("joust run: {}", plain(&record.plan.name)),
        &plain(&record.plan.question),
    );
    let cells = cells(record);
    let left_out = match cells.as_slice() {
        [only] => {
            headlines(&mut page, only);
            charts(&mut page, only, options);
            findings(&mut page, record, options.detail);
            tables(&mut page, extras::of_cell(only), options.detail)
        }
        cells => several(&mut page, record, cells, options),
    };
    extras::of_run(record).iter().for_each(|table| page.described(table));
    failed_visits(&mut page, record);
    skipped(&mut page, record);
    page.heading("Run", "");
    for (label, text) in run_facts(record) {
        page.paragraph(&format!("{label}: {text}"), Paint::Plain);
    }
    if !left_out.is_empty() {
        let text = format!(
            "Not shown here: {}. They are in report.html; `joust report RUN --full` shows them.",
            left_out.join("; ")
        );
        page.paragraph(&text, Paint::Faint);
    }
    page.finish()
}

fn headlines(page: &mut Page, view: &CellView) {
    for Line { tone, text } in headline(&view.run, &view.standings, &view.ranking) {
        page.paragraph(&text, paint(tone));
    }
}

fn charts(page: &mut Page, view: &CellView, options: &Options) {
    let options = Options { width: page.width(), ..*options };
    show(page, text_charts::charts(view, &options));
}

fn show(page: &mut Page, charts: Vec<Chart>) {
    for Chart { title, note, lines } in charts {
        page.chart(&title, &note, &lines);
    }
}

/// Lays out the tables to the requested depth; returns the titles of the others.
fn tables(page: &mut Page, all: Vec<Table>, detail: Detail) -> Vec<String> {
    let is_shown = |table: &Table| detail == Detail::Full || table.depth == Depth::Answer;
    let (shown, left_out): (Vec<Table>, Vec<Table>) = all.into_iter().partition(is_shown);
    shown.iter().for_each(|table| page.described(table));
    left_out.into_iter().map(|table| table.title).collect()
}

/// One line per cell, with figures published elsewhere beside all of them; each cell by itself only in full.
fn several(
    page: &mut Page,
    record: &RunRecord,
    cells: &[CellView],
    options: &Options,
) -> Vec<String> {
    let detail = options.detail;
    for Line { tone, text } in answers::overview(record, cells) {
        page.paragraph(&text, paint(tone));
    }
    findings(page, record, detail);
    page.heading("Answer", &answers::note(cells));
    let line = |view: &&CellView| {
        let said = answer(view, cells);
        let paint = if said.doubts.is_empty() { paint(said.tone) } else { doubted(said.tone) };
        (said.line(), paint)
    };
    let lines: Vec<(String, Paint)> = cells.iter().map(|view| line(&view)).collect();
    let names = cells.iter().map(|view| view.name.as_str());
    page.labelled(names.zip(&lines).map(|(name, (text, paint))| (name, text.clone(), *paint)));
    if detail == Detail::Short {
        show(page, text_charts::of_cells(cells, &Options { width: page.width(), ..*options }));
        let printed = published::of_cells(record, cells).filled();
        printed.iter().for_each(|table| page.described(table));
        let all = counted(cells.len() as u64, "cell");
        return vec![format!("the figures, pairs and quantiles of each of {all}")];
    }
    for view in cells {
        page.heading(&format!("Cell {}", view.name), "");
        headlines(page, view);
        charts(page, view, options);
        tables(page, extras::of_cell(view), detail);
    }
    Vec::new()
}

fn paint(tone: Tone) -> Paint {
    match tone {
        Tone::Answer => Paint::Good,
        Tone::Trust => Paint::Plain,
        Tone::Open | Tone::Caution => Paint::Caution,
        Tone::Alarm => Paint::Alarm,
    }
}

/// The colour of an answer that something limits.
fn doubted(tone: Tone) -> Paint {
    if tone == Tone::Alarm { Paint::Alarm } else { Paint::Caution }
}

/// Before any table: they say what the figures are worth.
fn findings(page: &mut Page, record: &RunRecord, detail: Detail) {
    if record.findings.is_empty() {
        page.heading("Findings", "");
        page.paragraph(no_findings(record), Paint::Plain);
    }
    finding_text::findings(page, &sections(record), detail);
}

fn failed_visits(page: &mut Page, record: &RunRecord) {
    let failures = joined_failures(record);
    if failures.is_empty() {
        return;
    }
    page.heading("Visits that failed", "");
    for failure in failures {
        let text = format!("{}, {}: {}", failure.name, failure.blocks, failure.reason);
        page.paragraph(&text, Paint::Alarm);
        page.verbatim(&failure.log_tail);
    }
}

fn skipped(page: &mut Page, record: &RunRecord) {
    if record.skipped.is_empty() {
        return;
    }
    page.heading("Left out", "");
    for skipped in &record.skipped {
        let (name, reason) = (plain(&skipped.name), plain(&skipped.reason));
        let text = format!("{name}: {reason}. To include it: {}", plain(&skipped.remedy));
        page.paragraph(&text, Paint::Plain);
    }
}
