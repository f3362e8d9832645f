//! The report of one load as Markdown: what the terminal has, as tables. Owns its layout; figures and words
//! come from elsewhere in this crate. Start reading at [`load_markdown`].

use std::fmt::Write as _;

use record::{Judgement, LatencyMillis, LoadRecord};

use crate::Options;
use crate::figures::NONE;
use crate::load_findings::found;
use crate::load_shape::shape;
use crate::load_tables::{by_request, distribution, fleet_line, replies};
use crate::load_text::{FIGURES, LATENCY_REMARK, judgement, outcome_rows, phases, rate};
use crate::markdown_table::{described, escaped};
use crate::standing::span;
use crate::table::{Column, Depth, Row, Table};

/// What a load measured, for a README or an issue; ends in a newline.
pub(crate) fn load_markdown(record: &LoadRecord, options: &Options) -> String {
    let mut page = format!("# joust load: {}\n\n", escaped(&record.plan.url));
    let judged: Vec<Judgement> = record.plan.goals.iter().map(|goal| goal.judge(record)).collect();
    let broken = judged.iter().filter(|judged| !judged.is_met()).map(judgement);
    for one in found(record) {
        let _ = write!(page, "> **{}**", escaped(&one.said));
        let more = one.more.iter().map(|more| format!(". {more}"));
        let more: String = more.chain([format!(". Remedy: {}", one.remedy)]).collect();
        let _ = writeln!(page, "{}\n>", escaped(&more));
    }
    for alarm in broken {
        let _ = writeln!(page, "> **{}**\n>", escaped(&alarm));
    }
    let _ = writeln!(page, "> {}\n>", escaped(&rate(record)));
    for judged in judged.iter().filter(|judged| judged.is_met()) {
        let _ = writeln!(page, "> {}\n>", escaped(&judgement(judged)));
    }
    let _ = writeln!(page, "> _{}_", escaped(&shape(record)));
    if let Some(fleet) = &record.fleet {
        let _ = writeln!(page, "\n_{}_", escaped(&fleet_line(fleet)));
    }
    for part in &record.parts {
        for finding in &part.findings {
            let _ = writeln!(page, "\n_{}: {}_", escaped(&part.name), escaped(finding));
        }
    }
    let tables = [
        Some(outcomes(record)),
        latencies(record),
        distribution(record, options),
        by_request(record),
    ];
    tables.iter().flatten().for_each(|table| described(&mut page, table, "##"));
    page
}

/// Requests by outcome.
pub(crate) fn outcomes(record: &LoadRecord) -> Table {
    Table {
        title: "Requests".to_owned(),
        note: replies(record),
        columns: vec![
            Column::text("outcome"),
            Column::figure("requests", ""),
            Column::figure("share", ""),
        ],
        rows: outcome_rows(record).into_iter().map(Row::of).collect(),
        depth: Depth::Answer,
    }
}

/// What was timed; `None` if nothing was.
pub(crate) fn latencies(record: &LoadRecord) -> Option<Table> {
    let row = |(phase, summary): (&str, &LatencyMillis)| {
        let shown = FIGURES.iter().map(|(_, of, _)| of(summary));
        let shown = shown.map(|millis| millis.map_or_else(|| NONE.to_owned(), span));
        Row::of(std::iter::once(phase.to_owned()).chain(shown))
    };
    let figures = FIGURES.iter().map(|(title, ..)| Column::figure(title, ""));
    let table = Table {
        title: "Latency".to_owned(),
        note: LATENCY_REMARK.to_owned(),
        columns: std::iter::once(Column::text("phase")).chain(figures).collect(),
        rows: phases(record).map(row).collect(),
        depth: Depth::Answer,
    };
    table.filled()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn a_load_as_markdown_has_its_warnings_first_and_every_table() {
        let mut load = testdata::load();
        let seen = "the load was interrupted";
        let severity = record::Severity::Note;
        load.findings =
            vec![crate::load_findings::finding_of_load("interrupted_load", severity, seen)];
        let page = load_markdown(&load, &Options::default());
        let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part} is not in\n{page}"));
        assert!(at("the load was interrupted**. Remedy: mend it") < at("requests/s over"));
        let tables = ["## Requests", "## Latency", "## Distribution"];
        assert!(tables.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{page}");
        assert!(page.lines().filter(|line| line.starts_with('|')).all(|line| line.ends_with('|')));
    }
}
