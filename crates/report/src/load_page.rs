//! Owns what the page of a single load shows, as data for its template. Must not know layout. Start reading at [`page`].

use record::{Judgement, LoadRecord};
use serde::Serialize;

use crate::drawing::Drawing;
use crate::figures::{grouped, percent, significant};
use crate::finding_groups::{Section, sections_of_load};
use crate::load_figures::{LoadFigure, load_figures, load_maps};
use crate::load_findings::is_rate_bound;
use crate::load_markdown::{latencies, outcomes};
use crate::load_shape::shape;
use crate::load_tables::{by_request, fleet_line};
use crate::load_text::{cost, judgement, rate};
use crate::script_data;
use crate::standing::span;
use crate::table::{Column, Depth, Row, Table};
use crate::wording::plain;

#[derive(Serialize)]
pub(crate) struct LoadPageData {
    url: String,
    shape: String,
    rate: String,
    /// Goals, and whether each was met.
    goals: Vec<(String, bool)>,
    /// Figure and what it is.
    tiles: Vec<Tile>,
    trust: LoadTrust,
    findings: Vec<Section>,
    figures: Vec<DrawnFigure>,
    maps: Vec<DrawnFigure>,
    tables: Vec<Table>,
    cost: Vec<String>,
    fleet: String,
    parts: Vec<(String, String)>,
    plan: String,
    /// Whether there is a course to explore.
    explores: bool,
    data: String,
}

#[derive(Serialize)]
struct Tile {
    figure: String,
    what: String,
    is_bad: bool,
}

#[derive(Serialize)]
struct LoadTrust {
    word: &'static str,
    class: &'static str,
    facts: Vec<String>,
}

#[derive(Serialize)]
struct DrawnFigure {
    title: &'static str,
    /// How it is read.
    note: &'static str,
    svg: String,
    table: Option<Table>,
}

/// The page of a load.
pub(crate) fn page(record: &LoadRecord) -> LoadPageData {
    let judged: Vec<Judgement> = record.plan.goals.iter().map(|goal| goal.judge(record)).collect();
    let parts = record
        .parts
        .iter()
        .flat_map(|part| part.findings.iter().map(|finding| (plain(&part.name), plain(finding))));
    LoadPageData {
        url: plain(&record.plan.url),
        shape: shape(record),
        rate: rate(record),
        goals: judged.iter().map(|one| (judgement(one), one.is_met())).collect(),
        tiles: tiles(record),
        trust: trust(record),
        findings: sections_of_load(record),
        figures: drawn(load_figures(record)),
        maps: drawn(load_maps(record)),
        tables: tables(record),
        cost: cost(record),
        fleet: record.fleet.as_deref().map(fleet_line).unwrap_or_default(),
        parts: parts.collect(),
        plan: serde_json::to_string_pretty(&record.plan).unwrap_or_default(),
        explores: record.intervals.len() > 1,
        data: script_data::of_load(record),
    }
}

fn tiles(record: &LoadRecord) -> Vec<Tile> {
    let tile = |figure: String, what: &str| Tile { figure, what: what.to_owned(), is_bad: false };
    let response = record.response_ms;
    let millis = |value: Option<f64>| value.map_or_else(|| "not available".to_owned(), span);
    let bound = if is_rate_bound(record) { ">=" } else { "" };
    let failed = record.requests.failed;
    vec![
        tile(format!("{bound}{}", significant(record.rate_per_s)), "ok requests/s"),
        tile(millis(response.p50), "p50 response time"),
        tile(millis(response.p99), "p99 response time"),
        tile(millis(response.max), "longest response time"),
        Tile {
            is_bad: failed > 0,
            ..tile(
                match failed {
                    0 => "0".to_owned(),
                    _ => format!("{} ({})", grouped(failed), percent(failed, record.requests.done)),
                },
                "failed requests",
            )
        },
    ]
}

/// The most severe finding decides the word.
fn trust(record: &LoadRecord) -> LoadTrust {
    use record::Severity;
    let acts = |severity| record.findings.iter().any(|finding| finding.acts(severity));
    let (word, class) = if record.requests.ok == 0 || acts(Severity::Void) {
        ("Not usable", "unusable")
    } else if acts(Severity::Bound) || record.interrupted {
        ("Limited", "limited")
    } else {
        ("Reliable", "reliable")
    };
    let mut facts: Vec<String> = record
        .findings
        .iter()
        .filter(|finding| finding.acts(Severity::Void) || finding.acts(Severity::Bound))
        .map(|finding| plain(&finding.check))
        .collect();
    facts.dedup();
    if record.interrupted {
        facts.push("the load was interrupted".to_owned());
    }
    if record.requests.ok == 0 {
        facts.push("no request succeeded".to_owned());
    }
    if facts.is_empty() {
        facts.push("no finding of the doctor limits these figures".to_owned());
    }
    facts.push("one load does not show how the next would be: joust run repeats it".to_owned());
    LoadTrust { word, class, facts }
}

fn drawn(figures: Vec<LoadFigure>) -> Vec<DrawnFigure> {
    let drawn = |LoadFigure { name, title, note, width, drawing, table }: LoadFigure| {
        let Drawing { svg, height, about } = drawing;
        DrawnFigure { title, note, svg: svg.finish(name, (width, height), title, &about), table }
    };
    figures.into_iter().map(drawn).collect()
}

fn tables(record: &LoadRecord) -> Vec<Table> {
    let tables = [Some(outcomes(record)), statuses(record), latencies(record), by_request(record)];
    tables.into_iter().flatten().collect()
}

/// Complete replies by status.
fn statuses(record: &LoadRecord) -> Option<Table> {
    let total: u64 = record.status.values().sum();
    let row = |(status, count): (&u16, &u64)| {
        Row::of([status.to_string(), grouped(*count), percent(*count, total)])
    };
    let table = Table {
        title: "Status codes".to_owned(),
        note: "Complete replies".to_owned(),
        columns: vec![
            Column::text("status"),
            Column::figure("replies", ""),
            Column::figure("share", ""),
        ],
        rows: record.status.iter().map(row).collect(),
        depth: Depth::Answer,
    };
    table.filled()
}
