//! The report as one self-contained page: no network, no script, no font. Plots are inline SVG; colours follow the
//! reader's light or dark setting, and print. Owns the data for the template; the layout is `templates/report.html`.
//! Start reading at [`OUTPUT`].

use minijinja::{AutoEscape, Environment, UndefinedBehavior, value::Serde};
use record::{Metric, RunRecord};
use serde::Serialize;

use crate::answers;
use crate::cells::{CellView, cells};
use crate::contenders::{self, in_order};
use crate::extras;
use crate::figures::{NONE, listed};
use crate::finding_groups::{Section, sections};
use crate::forest::{Drawing, caption, forest};
use crate::headline::{Ranking, headline};
use crate::line::Tone;
use crate::pairs::{INTERVALS, PairTable, metrics};
use crate::percentiles::percentiles;
use crate::run_facts::{ending, machine, no_findings, repeat, run_facts, workload};
use crate::standing::{Failure, Standing, joined_failures};
use crate::table::{Depth, Table};
use crate::visit_plot::visit_plot;
use crate::wording::{name_of, plain};
use crate::{
    Options, Output, forest as forest_plot, line, percentiles as curves, visit_plot as visits,
};

/// One self-contained page.
pub(crate) static OUTPUT: Output = Output {
    name: "html",
    extension: "html",
    about: "one self-contained page",
    render,
    render_load: None,
};

const TEMPLATE: &str = include_str!("../templates/report.html");
const PAGE_CSS: &str = include_str!("../templates/report.css");
/// Classes of the plots, which the picture needs too.
pub(crate) const PLOTS_CSS: &str = include_str!("../templates/plots.css");

/// Metrics whose visits are plotted one by one.
const VISIT_METRICS: [Metric; 2] = [Metric::Throughput, Metric::ServerCpu];

/// Metrics whose ratios are drawn for each of several cells.
const CELL_METRICS: usize = 2;

#[derive(Serialize)]
struct PageData {
    css: String,
    joust: String,
    name: String,
    question: String,
    started: String,
    chips: Vec<String>,
    /// The answers of several cells; `None` for one cell, whose headline is the answer.
    answers: Option<Table>,
    /// What is said of all cells, before them.
    overview: Vec<HeadlineLine>,
    /// What a reader must know about every interval.
    intervals: &'static str,
    cells: Vec<CellSection>,
    more_metrics: String,
    /// Tables over all cells.
    extras_of_run: Vec<Table>,
    /// Names of the contenders whose figures are bounds; empty if there are none.
    bounded: String,
    percentiles: String,
    percentile_table: Option<Table>,
    visits: Vec<VisitSection>,
    visit_table: Option<Table>,
    findings: Vec<Section>,
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

/// One cell, even if it is the only one.
#[derive(Serialize)]
struct CellSection {
    name: String,
    headline: Vec<HeadlineLine>,
    /// For more than two contenders, if any two were told apart.
    ranking: Option<Places>,
    contenders: Table,
    metrics: Vec<MetricSection>,
    extras: Vec<Table>,
}

#[derive(Serialize)]
struct HeadlineLine {
    tone: &'static str,
    text: String,
}

#[derive(Serialize)]
struct Places {
    label: String,
    note: Option<String>,
    places: Vec<RankedPlace>,
}

#[derive(Serialize)]
struct RankedPlace {
    /// "2=" if it is shared.
    number: String,
    members: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    name: String,
    figure: String,
}

#[derive(Serialize)]
struct MetricSection {
    title: String,
    caption: String,
    /// "all 15 pairs".
    scope: String,
    forest: String,
    table: Table,
}

#[derive(Serialize)]
struct VisitSection {
    title: &'static str,
    svg: String,
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
    /// One value if all contenders agree.
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

/// The data of the whole run. A run of several cells is shown cell by cell: one table or plot must not mix figures of
/// different workloads.
fn page(record: &RunRecord) -> PageData {
    let cells = cells(record);
    let page = frame(record, &cells);
    match cells.as_slice() {
        [only] => PageData { chips: chips(workload(record), record), ..with_plots(page, only) },
        several => PageData {
            chips: chips(format!("{} cells", several.len()), record),
            answers: Some(answers::table(several)),
            overview: shown(answers::overview(record, several)),
            ..page
        },
    }
}

fn chips(workload: String, record: &RunRecord) -> Vec<String> {
    vec![workload, machine(record), ending(record)]
}

/// What every page has, with one cell or several.
fn frame(record: &RunRecord, cells: &[CellView]) -> PageData {
    PageData {
        css: format!("{PAGE_CSS}{PLOTS_CSS}"),
        joust: plain(&record.joust),
        name: plain(&record.plan.name),
        question: plain(&record.plan.question),
        started: plain(&record.started),
        chips: Vec::new(),
        answers: None,
        overview: Vec::new(),
        intervals: INTERVALS,
        cells: cells
            .iter()
            .enumerate()
            .map(|(index, view)| cell_section(index, view, cells.len() == 1))
            .collect(),
        more_metrics: String::new(),
        extras_of_run: extras::of_run(record),
        bounded: String::new(),
        percentiles: String::new(),
        percentile_table: None,
        visits: Vec::new(),
        visit_table: None,
        findings: sections(record),
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

/// The plots that a run of one cell has room for.
fn with_plots(page: PageData, view: &CellView) -> PageData {
    let CellView { run, standings, ranking, .. } = view;
    let ordered: Vec<&Standing> = in_order(standings, ranking).collect();
    let bounded: Vec<&str> =
        ordered.iter().filter(|s| s.is_bound).map(|s| s.name.as_str()).collect();
    let metrics = metrics(run, ranking);
    let more: Vec<&str> =
        metrics.iter().skip(CELL_METRICS).map(|&metric| metric.info().quantity).collect();
    PageData {
        more_metrics: format!("Ratios of {}", listed(&more)),
        bounded: listed(&bounded),
        percentiles: percentile_plot(&ordered),
        percentile_table: curves::table(ordered.iter().copied()).filled(),
        visits: visit_sections(run, &ordered),
        visit_table: visits::table(run).filled(),
        ..page
    }
}

fn cell_section(index: usize, view: &CellView, is_only: bool) -> CellSection {
    let CellView { name, run, standings, ranking } = view;
    let drawn = if is_only { usize::MAX } else { CELL_METRICS };
    let id = if is_only { String::new() } else { format!("cell-{index}-") };
    let sections = metrics(run, ranking).into_iter().take(drawn);
    CellSection {
        name: name.clone(),
        headline: shown(headline(run, standings, ranking)),
        ranking: (run.plan.contenders.len() > 2 && ranking.tells_apart())
            .then(|| places(standings, ranking)),
        contenders: contenders::table(view),
        metrics: sections.filter_map(|metric| section(run, ranking, metric, &id)).collect(),
        extras: extras::beside(view).collect(),
    }
}

fn shown(lines: Vec<line::Line>) -> Vec<HeadlineLine> {
    let shown = |line: line::Line| HeadlineLine { tone: tone(line.tone), text: line.text };
    lines.into_iter().map(shown).collect()
}

/// Classes of a line.
fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Answer => "answer",
        Tone::Open => "answer open",
        Tone::Trust => "trust",
        Tone::Caution => "caution",
        Tone::Alarm => "alarm",
    }
}

fn places(standings: &[Standing], ranking: &Ranking) -> Places {
    let unit = ranking.metric.info().unit.suffix();
    let member = |&index: &usize| {
        let standing = &standings[index];
        let figure = format!("{}{unit}", standing.shown(ranking.metric));
        Member { name: standing.name.clone(), figure }
    };
    let number = |place: &[usize]| place.first().and_then(|&index| ranking.place_of(index));
    let place = |place: &Vec<usize>| RankedPlace {
        number: number(place).unwrap_or_default(),
        members: place.iter().map(member).collect(),
    };
    Places {
        label: ranking.label(),
        note: ranking.note(standings),
        places: ranking.places.iter().map(place).collect(),
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
    let id = format!("{prefix}forest-{}", metric.info().name);
    let (title, scope) = (table.title(), table.scope());
    Some(MetricSection {
        forest: svg.finish(&id, (forest_plot::WIDTH, height), &title, &about),
        caption: caption(metric),
        title,
        scope,
        table: table.described(Depth::Detail),
    })
}

fn percentile_plot(ordered: &[&Standing]) -> String {
    let Some(Drawing { svg, height, about }) = percentiles(ordered.iter().copied()) else {
        return String::new();
    };
    svg.finish("percentiles", (curves::WIDTH, height), "Service time by percentile", &about)
}

fn visit_sections(record: &RunRecord, ordered: &[&Standing]) -> Vec<VisitSection> {
    let section = |metric| {
        let Drawing { svg, height, about } = visit_plot(record, ordered.iter().copied(), metric)?;
        let title = metric.info().title;
        let id = format!("visits-{}", metric.info().name);
        Some(VisitSection { title, svg: svg.finish(&id, (visits::WIDTH, height), title, &about) })
    };
    VISIT_METRICS.into_iter().filter_map(section).collect()
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
