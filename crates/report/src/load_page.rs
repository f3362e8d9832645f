//! Owns what the page of a single load shows, as data for its template. Must not know layout. Start reading at [`page`].

use record::{Judgement, LoadRecord};
use serde::Serialize;
use stats::Histogram;

use crate::Options;
use crate::distribution_plot::distribution_plot;
use crate::drawing::Drawing;
use crate::figures::{grouped, percent, significant};
use crate::finding_groups::{Section, sections_of_load};
use crate::heat_map::HeatMap;
use crate::lines::WIDTH;
use crate::load_findings::is_rate_bound;
use crate::load_markdown::{latencies, outcomes};
use crate::load_shape::shape;
use crate::load_tables::{by_request, distribution, fleet_line};
use crate::load_text::{cost, judgement, rate};
use crate::maps;
use crate::offsets::offsets;
use crate::over_time::over_time;
use crate::percentiles::{self as curves, Sample, percentiles};
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
    figures: Vec<LoadFigure>,
    maps: Vec<LoadFigure>,
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
struct LoadFigure {
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
        figures: figures(record),
        maps: maps(record),
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

fn figures(record: &LoadRecord) -> Vec<LoadFigure> {
    let finished = |drawing: Option<Drawing>, id: &str, title, note| {
        let Drawing { svg, height, about } = drawing?;
        let svg = svg.finish(id, (WIDTH, height), title, &about);
        Some(LoadFigure { title, note, svg, table: None })
    };
    let latencies = &record.latencies;
    let samples = [
        Sample { name: "service", number: 0, spans: &latencies.service },
        Sample { name: "response", number: 1, spans: &latencies.response },
    ];
    // In a closed loop a request is due when it is sent, and both are the same.
    let shown = if record.open_loop.is_some() { &samples[..] } else { &samples[..1] };
    let curve = finished(
        percentiles(shown.iter().copied()),
        "percentiles",
        "Latency by percentile",
        "A curve ends where the sample is too small for the next percentile. Service time is from sent to done; \
         response time from due to done",
    );
    let curve = curve.map(|figure| LoadFigure {
        table: curves::table(shown.iter().copied()).filled(),
        ..figure
    });
    let spread: &Histogram = &latencies.response;
    let distribution_figure = finished(
        distribution_plot(spread),
        "distribution",
        "Distribution of response times",
        "Each bar is the share of ok requests in a step of a logarithmic scale",
    );
    let distribution_figure = distribution_figure
        .map(|figure| LoadFigure { table: distribution(record, &Options::default()), ..figure });
    let course = finished(
        over_time(record),
        "over-time",
        "Throughput and service time over the load",
        "Each point is an interval of the load",
    );
    [distribution_figure, curve, course].into_iter().flatten().collect()
}

fn maps(record: &LoadRecord) -> Vec<LoadFigure> {
    let finished = |Drawing { svg, height, about }: Drawing, width, id, title, note| LoadFigure {
        title,
        note,
        svg: svg.finish(id, (width, height), title, &about),
        table: None,
    };
    let map = HeatMap::of(record, units::Nanos::ZERO);
    let heat = map.range().and_then(|range| map.drawing("this load", range)).map(|drawing| {
        finished(
            drawing,
            maps::WIDTH,
            "heat",
            "Service time over the load",
            "Darker: a larger share of the requests of that moment. Lines at 40 ms, 200 ms, 1 s and 3 s, where timers \
             of the kernel show",
        )
    });
    let within = offsets(record, "this load").map(|drawing| {
        finished(
            drawing,
            maps::WIDTH,
            "offsets",
            "Completions within each second",
            "Each column is a second. Lines and gaps are timers, batches and silences",
        )
    });
    heat.into_iter().chain(within).collect()
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
