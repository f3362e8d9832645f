//! The report as one page that needs nothing else: no network, no script, no font. Plots are inline
//! SVG; colours follow the reader's light or dark setting, and print. Owns what the template is
//! given; the layout is `templates/report.html`. Start reading at [`OUTPUT`].

use minijinja::{AutoEscape, Environment, UndefinedBehavior, value::Serde};
use record::{Certainty, Metric, RunRecord, Severity};
use serde::Serialize;

use crate::cells::{CellView, cells, note};
use crate::extras::{self, Extra};
use crate::figures::{NONE, grouped, listed};
use crate::forest::{Drawing, caption, forest};
use crate::headline::{Ranking, Tone, headline, incomplete, ranking, weight};
use crate::pairs::{PairRow, PairTable, metrics};
use crate::percentiles::percentiles;
use crate::published::{self, Table};
use crate::run_facts::{ending, machine, no_findings, repeat, run_facts, workload};
use crate::standing::{Failure, Standing, joined_failures, shown, span, standings};
use crate::text::{CONTENDER_COLUMNS, contender_notes, contender_row, in_order, touched};
use crate::visit_plot::visit_plot;
use crate::wording::{name_of, plain, words};
use crate::{Options, Output, forest as forest_plot, percentiles as curves, visit_plot as visits};

/// One self-contained page.
pub(crate) static OUTPUT: Output =
    Output { name: "html", extension: "html", about: "one self-contained page", render };

const TEMPLATE: &str = include_str!("../templates/report.html");
const PAGE_CSS: &str = include_str!("../templates/report.css");
/// Classes of the plots, which the picture needs too.
pub(crate) const PLOTS_CSS: &str = include_str!("../templates/plots.css");

/// Metrics whose visits are plotted one by one.
const VISIT_METRICS: [Metric; 2] = [Metric::Throughput, Metric::ServerCpu];

#[derive(Serialize)]
struct Page {
    css: String,
    joust: String,
    name: String,
    question: String,
    started: String,
    headline: Vec<Line>,
    ranking: Places,
    chips: Vec<String>,
    contender_notes: String,
    columns: Vec<&'static str>,
    contenders: Vec<ContenderRow>,
    metrics: Vec<MetricSection>,
    more_metrics: String,
    /// Tables beside the verdicts: of the one cell, and over all.
    extras: Vec<ExtraTable>,
    extras_of_run: Vec<ExtraTable>,
    published: Option<Published>,
    published_columns: Vec<&'static str>,
    /// One a cell of a run that has several; the parts above are empty then.
    cells: Vec<CellSection>,
    cells_note: String,
    incomplete: String,
    /// Names of those whose figures are bounds; empty for none.
    bounded: String,
    percentiles: String,
    percentile_names: Vec<&'static str>,
    percentile_rows: Vec<Vec<String>>,
    visits: Vec<VisitSection>,
    visit_columns: Vec<&'static str>,
    visit_rows: Vec<Vec<String>>,
    findings: Vec<Finding>,
    no_findings: &'static str,
    failures: Vec<Failure>,
    skipped: Vec<Skipped>,
    parity: Vec<Parity>,
    settings: Vec<ContenderSettings>,
    facts: Vec<(&'static str, String)>,
    machine: Vec<(String, String)>,
    repeat: String,
    seed: u64,
    margin: String,
}

/// One cell of several.
#[derive(Serialize)]
struct CellSection {
    name: String,
    best_first: String,
    headline: Vec<Line>,
    ranking: Places,
    contender_notes: String,
    contenders: Vec<ContenderRow>,
    metrics: Vec<MetricSection>,
    extras: Vec<ExtraTable>,
    published: Option<Published>,
}

#[derive(Serialize)]
struct ExtraTable {
    title: String,
    note: String,
    columns: Vec<&'static str>,
    /// Columns that are text, from the first on.
    left: usize,
    rows: Vec<Vec<String>>,
}

/// Figures printed elsewhere, beside today's.
#[derive(Serialize)]
struct Published {
    caption: String,
    rows: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct Line {
    tone: &'static str,
    text: String,
}

#[derive(Serialize)]
struct Places {
    label: String,
    note: Option<String>,
    places: Vec<Place>,
}

#[derive(Serialize)]
struct Place {
    number: usize,
    members: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    name: String,
    figure: String,
}

#[derive(Serialize)]
struct ContenderRow {
    cells: Vec<String>,
    has_errors: bool,
}

#[derive(Serialize)]
struct MetricSection {
    title: String,
    caption: String,
    forest: String,
    scope: String,
    rows: Vec<PairRow>,
}

#[derive(Serialize)]
struct VisitSection {
    title: &'static str,
    svg: String,
}

#[derive(Serialize)]
struct Finding {
    check: String,
    class: &'static str,
    weight: &'static str,
    whom: String,
    evidence: String,
    meaning: String,
    remedy: String,
}

#[derive(Serialize)]
struct Skipped {
    name: String,
    reason: String,
    remedy: String,
}

#[derive(Serialize)]
struct Parity {
    setting: String,
    /// One where all contenders agree.
    values: Vec<ParityValue>,
}

#[derive(Serialize)]
struct ParityValue {
    value: String,
    who: String,
}

#[derive(Serialize)]
struct ContenderSettings {
    name: String,
    version: String,
    command: String,
    changed: String,
    body: String,
    files: Vec<File>,
    head: String,
}

#[derive(Serialize)]
struct File {
    name: String,
    text: String,
}

fn render(record: &RunRecord, _: &Options) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // minijinja drops a template's last newline.
    let page = environment
        .render_named_str("report.html", TEMPLATE, Serde(page(record)))
        .expect("the built-in template renders every record; a test covers each of its branches");
    page + "\n"
}

/// Of the whole run. A run of several cells is shown cell by cell: figures of different workloads do
/// not belong into one table.
fn page(record: &RunRecord) -> Page {
    let cells = cells(record);
    if cells.is_empty() {
        return page_of_one(record);
    }
    let run = Page {
        cells_note: note(&cells),
        incomplete: incomplete(record).unwrap_or_default(),
        chips: vec![format!("{} cells", cells.len()), machine(record), ending(record)],
        cells: cells.iter().enumerate().map(|(index, view)| cell_section(index, view)).collect(),
        ..page_of_one(&nothing_measured(record))
    };
    Page {
        findings: findings(record),
        no_findings: no_findings(record),
        failures: joined_failures(record),
        visit_rows: Vec::new(),
        extras: Vec::new(),
        extras_of_run: extra_tables(extras::of_run(record)),
        facts: run_facts(record),
        ..run
    }
}

/// The run without what is shown by cell.
fn nothing_measured(record: &RunRecord) -> RunRecord {
    let visits = Vec::new();
    RunRecord { visits, verdicts: Vec::new(), findings: Vec::new(), ..record.clone() }
}

fn cell_section(index: usize, view: &CellView) -> CellSection {
    let CellView { name, run, standings, ranking } = view;
    let sections = metrics(run, ranking).into_iter().take(2);
    let id = format!("cell-{index}-");
    CellSection {
        name: name.clone(),
        best_first: view.best_first(),
        headline: lines(run, standings, ranking),
        ranking: places(standings, ranking),
        contender_notes: contender_notes(standings),
        contenders: contender_rows(in_order(standings, ranking)),
        metrics: sections.filter_map(|metric| section(run, ranking, metric, &id)).collect(),
        extras: extra_tables(extras::of_cell(run)),
        published: published(run),
    }
}

fn extra_tables(extras: Vec<Extra>) -> Vec<ExtraTable> {
    let shown = |Extra { title, note, columns, left, rows }| ExtraTable {
        title,
        note,
        columns,
        left,
        rows,
    };
    extras.into_iter().map(shown).collect()
}

fn published(run: &RunRecord) -> Option<Published> {
    let Table { caption, rows } = Table::of(run)?;
    Some(Published { caption, rows })
}

fn contender_rows<'a>(ordered: impl Iterator<Item = &'a Standing>) -> Vec<ContenderRow> {
    ordered.map(|s| ContenderRow { cells: contender_row(s), has_errors: s.has_errors() }).collect()
}

fn page_of_one(record: &RunRecord) -> Page {
    let standings = standings(record);
    let ranking = ranking(record, &standings);
    let ordered: Vec<&Standing> = in_order(&standings, &ranking).collect();
    let metrics = metrics(record, &ranking);
    let bounded: Vec<&str> =
        ordered.iter().filter(|s| s.is_bound).map(|s| s.name.as_str()).collect();
    let bounded = listed(&bounded);
    let more: Vec<&str> = metrics.iter().skip(2).map(|&metric| words(metric).quantity).collect();
    let more_metrics = format!("Ratios of {}", listed(&more));
    let sections = metrics.into_iter().filter_map(|metric| section(record, &ranking, metric, ""));
    Page {
        css: format!("{PAGE_CSS}{PLOTS_CSS}"),
        joust: plain(&record.joust),
        name: plain(&record.plan.name),
        question: plain(&record.plan.question),
        started: plain(&record.started),
        headline: lines(record, &standings, &ranking),
        ranking: places(&standings, &ranking),
        chips: vec![workload(record), machine(record), ending(record)],
        contender_notes: contender_notes(&standings),
        columns: CONTENDER_COLUMNS.to_vec(),
        contenders: contender_rows(ordered.iter().copied()),
        metrics: sections.collect(),
        more_metrics,
        extras: extra_tables(extras::of_cell(record)),
        extras_of_run: extra_tables(extras::of_run(record)),
        published: published(record),
        published_columns: published::COLUMNS.to_vec(),
        cells: Vec::new(),
        cells_note: String::new(),
        incomplete: String::new(),
        bounded,
        percentiles: percentile_plot(&ordered),
        percentile_names: curves::NAMED.iter().map(|(name, _)| *name).collect(),
        percentile_rows: ordered.iter().map(|standing| percentile_row(standing)).collect(),
        visits: visit_sections(record, &ordered),
        visit_columns: vec!["contender", "block", "place", "requests/s", "CPU us/request", "p99"],
        visit_rows: visit_rows(record),
        findings: findings(record),
        no_findings: no_findings(record),
        failures: joined_failures(record),
        skipped: skipped(record),
        parity: parity(record),
        settings: settings(record),
        facts: run_facts(record),
        machine: record.facts.named.iter().map(|(k, v)| (plain(k), plain(v))).collect(),
        repeat: repeat(record),
        seed: record.plan.seed,
        margin: record.plan.margin.to_string(),
    }
}

fn lines(record: &RunRecord, standings: &[Standing], ranking: &Ranking) -> Vec<Line> {
    let tone = |tone| match tone {
        Tone::Ranking => "ranking",
        Tone::Answer => "answer",
        Tone::Caution => "caution",
        Tone::Alarm => "alarm",
    };
    let lines = headline(record, standings, ranking).into_iter();
    lines.map(|line| Line { tone: tone(line.tone), text: line.text }).collect()
}

fn places(standings: &[Standing], ranking: &Ranking) -> Places {
    let unit = match ranking.metric {
        Metric::Throughput | Metric::Capacity => "/s",
        Metric::ServerCpu => " us",
        _ => "",
    };
    let member = |&index: &usize| {
        let standing = &standings[index];
        let figure = format!("{}{unit}", standing.shown(ranking.metric));
        Member { name: standing.name.clone(), figure }
    };
    let place = |(at, place): (usize, &Vec<usize>)| Place {
        number: at + 1,
        members: place.iter().map(member).collect(),
    };
    Places {
        label: ranking.label(),
        note: ranking.note(standings),
        places: ranking.places.iter().enumerate().map(place).collect(),
    }
}

/// A short name of a metric for an element's id.
fn id(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::ServerCpu => "cpu",
        Metric::P50 => "p50",
        Metric::P99 => "p99",
        Metric::Memory => "memory",
        Metric::Capacity => "capacity",
    }
}

fn section(
    record: &RunRecord,
    ranking: &Ranking,
    metric: Metric,
    prefix: &str,
) -> Option<MetricSection> {
    let Drawing { svg, height, about } = forest(record, ranking, metric)?;
    let table = PairTable::all(record, ranking, metric)?;
    let id = format!("{prefix}forest-{}", id(metric));
    let title = table.title();
    Some(MetricSection {
        forest: svg.finish(&id, (forest_plot::WIDTH, height), &title, &about),
        caption: caption(record, ranking, metric),
        scope: table.scope(),
        title,
        rows: table.rows,
    })
}

fn percentile_plot(ordered: &[&Standing]) -> String {
    let Some(Drawing { svg, height, about }) = percentiles(ordered.iter().copied()) else {
        return String::new();
    };
    svg.finish("percentiles", (curves::WIDTH, height), "Service time by percentile", &about)
}

fn percentile_row(standing: &Standing) -> Vec<String> {
    let quantile = |(_, beyond): &(&str, f64)| {
        let latency = standing.service.quantile(1.0 - beyond);
        latency.map_or_else(|| NONE.to_owned(), |latency| span(latency.as_millis_f64()))
    };
    std::iter::once(standing.name.clone())
        .chain(curves::NAMED.iter().map(quantile))
        .chain([grouped(standing.service.count())])
        .collect()
}

fn visit_sections(record: &RunRecord, ordered: &[&Standing]) -> Vec<VisitSection> {
    let section = |metric| {
        let Drawing { svg, height, about } = visit_plot(record, ordered.iter().copied(), metric)?;
        let title = words(metric).title;
        let id = format!("visits-{}", id(metric));
        Some(VisitSection { title, svg: svg.finish(&id, (visits::WIDTH, height), title, &about) })
    };
    VISIT_METRICS.into_iter().filter_map(section).collect()
}

fn visit_rows(record: &RunRecord) -> Vec<Vec<String>> {
    let metrics = [Metric::Throughput, Metric::ServerCpu, Metric::P99];
    let row = |visit: &record::Visit| {
        let name = name_of(&record.plan.contenders, visit.contender);
        let place = [visit.block + 1, visit.position + 1].map(|n| n.to_string());
        let values = metrics.map(|metric| shown(metric, visit.value(metric)));
        std::iter::once(name).chain(place).chain(values).collect()
    };
    record.visits.iter().map(row).collect()
}

fn findings(record: &RunRecord) -> Vec<Finding> {
    let shown = |finding: &record::Finding| Finding {
        check: plain(&finding.check),
        class: match (finding.severity, finding.certainty) {
            (Severity::Void, Certainty::Confirmed) => "void",
            (Severity::Bound, Certainty::Confirmed) => "bound",
            _ => "note-finding",
        },
        weight: weight(finding.severity, finding.certainty),
        whom: touched(record, finding),
        evidence: plain(&finding.evidence),
        meaning: plain(&finding.meaning),
        remedy: plain(&finding.remedy),
    };
    record.findings.iter().map(shown).collect()
}

fn skipped(record: &RunRecord) -> Vec<Skipped> {
    let shown = |skipped: &record::Skipped| Skipped {
        name: plain(&skipped.name),
        reason: plain(&skipped.reason),
        remedy: plain(&skipped.remedy),
    };
    record.skipped.iter().map(shown).collect()
}

/// Every setting that any contender has: each value, and who has it.
fn parity(record: &RunRecord) -> Vec<Parity> {
    let mut names: Vec<&String> = record.contenders.iter().flat_map(|c| c.parity.keys()).collect();
    names.sort();
    names.dedup();
    let row = |setting: &String| {
        let mut values: Vec<(String, Vec<String>)> = Vec::new();
        for (index, facts) in record.contenders.iter().enumerate() {
            let value = facts.parity.get(setting).map_or_else(|| NONE.to_owned(), |v| plain(v));
            let name = name_of(&record.plan.contenders, index);
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, who)) => who.push(name),
                None => values.push((value, vec![name])),
            }
        }
        let agreed = values.len() == 1;
        let who = |names: Vec<String>| if agreed { "all".to_owned() } else { listed(&names) };
        let values =
            values.into_iter().map(|(value, names)| ParityValue { value, who: who(names) });
        Parity { setting: plain(setting), values: values.collect() }
    };
    names.into_iter().map(row).collect()
}

fn settings(record: &RunRecord) -> Vec<ContenderSettings> {
    let shown = |(contender, facts): (&record::Contender, &record::ContenderFacts)| {
        let changed: Vec<String> = contender
            .settings
            .iter()
            .map(|(name, value)| plain(&format!("{name} = {value}")))
            .collect();
        ContenderSettings {
            name: plain(&contender.name),
            version: plain(&facts.version),
            command: plain(&facts.command),
            changed: changed.join(", "),
            body: match facts.body_sha256.as_str() {
                "" => "it never answered".to_owned(),
                sha256 => format!("SHA-256 {}", plain(sha256)),
            },
            files: facts
                .files
                .iter()
                .map(|(name, text)| File { name: plain(name), text: plain_lines(text) })
                .collect(),
            head: plain_lines(facts.head.trim_end()),
        }
    };
    record.plan.contenders.iter().zip(&record.contenders).map(shown).collect()
}

/// Text of several lines without other control characters.
fn plain_lines(text: &str) -> String {
    let spaced = text.replace('\t', "    ");
    spaced.lines().map(plain).collect::<Vec<_>>().join("\n")
}
