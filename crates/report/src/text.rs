//! The terminal report of a run. Owns its layout; the figures and words come from elsewhere in this
//! crate. Start reading at [`OUTPUT`].

use record::{Certainty, Metric, RunRecord, Severity};

use crate::cells::{CellView, cells, note};
use crate::extras::{self, Extra};
use crate::headline::{Line, Ranking, Tone, headline, incomplete, ranking, weight};
use crate::pairs::{PairTable, metrics};
use crate::run_facts::{no_findings, run_facts};
use crate::standing::{Standing, joined_failures, standings};
use crate::terminal::{Lean, Page, Paint};
use crate::wording::{name_of, plain, words};
use crate::{Options, Output, figures::listed, published};

/// Text for a terminal.
pub(crate) static OUTPUT: Output =
    Output { name: "text", extension: "txt", about: "for the terminal", render };

/// Metrics whose pairs are listed on a terminal; the files have those of all.
const PAIR_METRICS_MAX: usize = 2;

fn render(record: &RunRecord, options: &Options) -> String {
    let mut page = Page::new(options);
    page.heading(
        &format!("joust run: {}", plain(&record.plan.name)),
        &plain(&record.plan.question),
    );
    let cells = cells(record);
    if cells.is_empty() {
        let standings = standings(record);
        cell(&mut page, record, &standings, &ranking(record, &standings));
    } else {
        several(&mut page, record, &cells);
    }
    for extra in extras::of_run(record) {
        short_table(&mut page, extra);
    }
    findings(&mut page, record);
    failed_visits(&mut page, record);
    skipped(&mut page, record);
    page.heading("Run", "");
    for (label, text) in run_facts(record) {
        page.paragraph(&format!("{label}: {text}"), Paint::Plain);
    }
    page.finish()
}

/// What is said of one cell, or of a run that has but one.
fn cell(page: &mut Page, record: &RunRecord, standings: &[Standing], ranking: &Ranking) {
    for Line { tone, text } in headline(record, standings, ranking) {
        page.paragraph(&text, paint(tone));
    }
    contenders(page, standings, ranking);
    pairs(page, record, ranking);
    // A terminal has room for the short ones; the files have all.
    for extra in [extras::tools(record), extras::groups(record)] {
        short_table(page, extra);
    }
    if let Some(table) = published::Table::of(record) {
        page.heading("Printed elsewhere", "");
        page.paragraph(&table.caption, Paint::Plain);
        page.table(&PUBLISHED_COLUMNS, &table.rows);
    }
}

/// An overview of the cells, then each.
fn several(page: &mut Page, record: &RunRecord, cells: &[CellView]) {
    if let Some(text) = incomplete(record) {
        page.paragraph(&text, Paint::Alarm);
    }
    page.heading("Cells", &note(cells));
    for view in cells {
        page.paragraph(&format!("{}: {}", view.name, view.best_first()), Paint::Plain);
    }
    for view in cells {
        page.heading(&format!("Cell {}", view.name), "");
        cell(page, &view.run, &view.standings, &view.ranking);
    }
}

/// A table of a few narrow columns; the sentences of the load tools stand in the files.
fn short_table(page: &mut Page, extra: Extra) {
    const SENTENCES: &str = "counts differently";
    if extra.rows.is_empty() {
        return;
    }
    let kept: Vec<usize> =
        (0..extra.columns.len()).filter(|&n| extra.columns[n] != SENTENCES).collect();
    let lean = |n: usize| if n < extra.left { Lean::Left } else { Lean::Right };
    let columns: Vec<(&str, Lean)> = kept.iter().map(|&n| (extra.columns[n], lean(n))).collect();
    let cells = |row: &Vec<String>| kept.iter().map(|&n| row[n].clone()).collect::<Vec<_>>();
    page.heading(&extra.title, &extra.note);
    page.table(&columns, &extra.rows.iter().map(cells).collect::<Vec<_>>());
}

/// [`published::COLUMNS`] with how they lean.
const PUBLISHED_COLUMNS: [(&str, Lean); 5] = [
    (published::COLUMNS[0], Lean::Left),
    (published::COLUMNS[1], Lean::Right),
    (published::COLUMNS[2], Lean::Right),
    (published::COLUMNS[3], Lean::Right),
    (published::COLUMNS[4], Lean::Right),
];

fn paint(tone: Tone) -> Paint {
    match tone {
        Tone::Answer | Tone::Ranking => Paint::Good,
        Tone::Caution => Paint::Caution,
        Tone::Alarm => Paint::Alarm,
    }
}

/// Titles of the contenders' table; the same in every output.
pub(crate) const CONTENDER_COLUMNS: [&str; 8] =
    ["contender", "requests/s", "p50", "p99", "CPU us/request", "memory", "errors", "visits"];

/// One row of the contenders' table, below [`CONTENDER_COLUMNS`].
pub(crate) fn contender_row(standing: &Standing) -> Vec<String> {
    let metrics = [Metric::Throughput, Metric::P50, Metric::P99, Metric::ServerCpu, Metric::Memory];
    let figures = metrics.map(|metric| standing.shown(metric));
    std::iter::once(standing.name.clone())
        .chain(figures)
        .chain([standing.errors(), standing.visits()])
        .collect()
}

/// The contenders in the order of the ranking, those without a place last.
pub(crate) fn in_order<'a>(
    standings: &'a [Standing],
    ranking: &'a Ranking,
) -> impl Iterator<Item = &'a Standing> {
    let unplaced = standings.iter().filter(|s| ranking.order().all(|index| index != s.index));
    ranking.order().map(|index| &standings[index]).chain(unplaced)
}

/// What a reader must know to read the contenders' table.
pub(crate) fn contender_notes(standings: &[Standing]) -> String {
    let mut notes = vec![
        "Medians over visits; percentiles of service time from the merged histograms of all visits",
    ];
    if standings.iter().any(|standing| standing.is_bound) {
        notes.push(">= and <= mark bounds: the measurement was the limit, not the server");
    }
    let dashed = |s: &Standing| [Metric::P50, Metric::P99].iter().any(|&m| s.value(m).is_none());
    if standings.iter().any(dashed) {
        notes.push("- marks what was not measured or has too few samples");
    }
    notes.join("; ")
}

fn contenders(page: &mut Page, standings: &[Standing], ranking: &Ranking) {
    let mut columns = CONTENDER_COLUMNS
        .map(|title| (title, if title == "contender" { Lean::Left } else { Lean::Right }))
        .to_vec();
    let mut rows: Vec<Vec<String>> = in_order(standings, ranking).map(contender_row).collect();
    let each = take_constant(&mut columns, &mut rows);
    page.heading("Contenders", &format!("{}{each}", contender_notes(standings)));
    page.table(&columns, &rows);
}

/// Takes the last column away where all its cells are the same, and says what they were: "; visits:
/// 8 each".
fn take_constant(columns: &mut Vec<(&str, Lean)>, rows: &mut [Vec<String>]) -> String {
    let Some(first) = rows.first().and_then(|row| row.last()).cloned() else {
        return String::new();
    };
    if rows.iter().any(|row| row.last() != Some(&first)) {
        return String::new();
    }
    for row in rows {
        row.pop();
    }
    columns.pop().map_or_else(String::new, |(title, _)| format!("; {title}: {first} each"))
}

fn pairs(page: &mut Page, record: &RunRecord, ranking: &Ranking) {
    let metrics = metrics(record, ranking);
    let columns = [
        ("", Lean::Left),
        ("verdict", Lean::Left),
        ("against", Lean::Left),
        ("ahead", Lean::Left),
        ("blocks", Lean::Right),
    ];
    for &metric in metrics.iter().take(PAIR_METRICS_MAX) {
        let Some(table) = PairTable::short(record, ranking, metric) else { continue };
        let (title, scope) = (format!("Pairs: {}", table.title()), table.scope());
        let cells =
            |row: crate::pairs::PairRow| vec![row.this, row.said, row.that, row.ahead, row.blocks];
        let mut rows: Vec<Vec<String>> = table.rows.into_iter().map(cells).collect();
        let mut columns = columns.to_vec();
        let each = take_constant(&mut columns, &mut rows);
        page.heading(&title, &format!("{scope}{each}"));
        page.table(&columns, &rows);
    }
    let rest: Vec<&str> =
        metrics.iter().skip(PAIR_METRICS_MAX).map(|&metric| words(metric).quantity).collect();
    if !rest.is_empty() {
        let text = format!("Verdicts on {} are in report.html.", listed(&rest));
        page.paragraph(&text, Paint::Faint);
    }
}

fn findings(page: &mut Page, record: &RunRecord) {
    page.heading("Findings", "");
    if record.findings.is_empty() {
        page.paragraph(no_findings(record), Paint::Plain);
    }
    for finding in &record.findings {
        let paint = match (finding.severity, finding.certainty) {
            (Severity::Void, Certainty::Confirmed) => Paint::Alarm,
            (Severity::Bound, Certainty::Confirmed) => Paint::Caution,
            _ => Paint::Heading,
        };
        let (what, whom) = (weight(finding.severity, finding.certainty), touched(record, finding));
        page.paragraph(&format!("{} ({what}; {whom})", plain(&finding.check)), paint);
        page.detail(&format!("Seen: {}", plain(&finding.evidence)));
        page.detail(&format!("Why it misleads: {}", plain(&finding.meaning)));
        page.detail(&format!("Remedy: {}", plain(&finding.remedy)));
    }
}

/// Names of the contenders that a finding touches, and of its cell where there are several.
pub(crate) fn touched(record: &RunRecord, finding: &record::Finding) -> String {
    let contenders = &record.plan.contenders;
    let several = record.plan.cells.len() > 1;
    let cell = finding.cell.filter(|_| several).and_then(|cell| record.plan.cells.get(cell));
    let at = cell.map_or_else(String::new, |cell| format!(" at {}", plain(&cell.name)));
    if finding.contenders.is_empty() || finding.contenders.len() == contenders.len() {
        return format!("all contenders{at}");
    }
    let names: Vec<String> =
        finding.contenders.iter().map(|&index| name_of(contenders, index)).collect();
    format!("{}{at}", listed(&names))
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
        let text = format!("{name}: {reason}. To have it: {}", plain(&skipped.remedy));
        page.paragraph(&text, Paint::Plain);
    }
}
