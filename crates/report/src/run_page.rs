//! Owns what the page of a run shows, part by part, as data for its template. A run of several cells is shown cell by
//! cell: one table or plot must not mix figures of different workloads. Must not know layout. Start reading at
//! [`page`].

use record::{Metric, RunRecord, Severity};
use serde::Serialize;

use crate::answers;
use crate::bars::{self, bars};
use crate::cell_maps::{MapOf, heat_maps, offset_maps};
use crate::cells::{CellView, cells};
use crate::contenders::{self, in_order};
use crate::drawing::Drawing;
use crate::extras;
use crate::figures::listed;
use crate::finding_groups::{Section, sections};
use crate::forest::{self, caption, forest};
use crate::growth_plot::growth_plots;
use crate::headline::{Ranking, headline};
use crate::knee_plot::knee_plot;
use crate::line::{Line, Tone};
use crate::lines;
use crate::maps;
use crate::pairs::{INTERVALS, PairTable, metrics};
use crate::percentiles::{self as curves, Sample, percentiles};
use crate::run_facts::{ending, machine, no_findings, repeat, run_facts, workload};
use crate::script_data;
use crate::standing::{Failure, Standing, joined_failures};
use crate::table::{Depth, Table};
use crate::trust::{facts, grade, trust};
use crate::visit_plot::{self as visits, visit_plot};
use crate::what_was_run::{ContenderSettings, Parity, Skipped, parity, settings, skipped};
use crate::wording::{name_of, plain};

/// Metrics that are drawn before everything else; the others follow below.
const METRICS_FIRST: usize = 2;
/// Metrics whose visits are plotted one by one.
const VISIT_METRICS: [Metric; 2] = [Metric::Throughput, Metric::ServerCpu];
/// Up to this many contenders over all cells, each has its maps, and every metric is drawn. With more, the script
/// draws them for the visit that is chosen.
const DRAWN_MAX: usize = 120;
/// Up to this many pairs over all cells and metrics, all of them are in tables; with more, those with the reference
/// are, and the script has all.
const PAIRS_MAX: usize = 1500;
/// Reasons that are named beside the word of trust.
const REASONS_MAX: usize = 4;
/// The same as [`PAIRS_MAX`], for visits.
const VISITS_MAX: usize = 1500;

#[derive(Serialize)]
pub(crate) struct PageData {
    joust: String,
    name: String,
    question: String,
    started: String,
    chips: Vec<String>,
    /// What is said before every figure.
    headline: Vec<HeadlineLine>,
    /// For more than two contenders of the only cell, if any two were told apart.
    ranking: Option<Places>,
    trust: TrustBox,
    /// Whether a finding withholds verdicts: it is then read before the charts.
    findings_first: bool,
    cells: Vec<CellSection>,
    /// The answers of several cells.
    answers: Option<Table>,
    growth: Vec<Figure>,
    /// Whether the tables of pairs have all of them.
    lists_all_pairs: bool,
    extras_of_run: Vec<Table>,
    /// What a reader must know about every interval.
    intervals: &'static str,
    findings: Vec<Section>,
    no_findings: &'static str,
    failures: Vec<Failure>,
    skipped: Vec<Skipped>,
    contenders: Vec<String>,
    /// What contenders are compared with unless the reader chooses.
    reference: String,
    parity: Vec<Parity>,
    settings: Vec<ContenderSettings>,
    facts: Vec<(&'static str, String)>,
    machine: Vec<(String, String)>,
    repeat: String,
    seed: u64,
    margin: String,
    /// Whether any visit has a course to explore.
    explores: bool,
    data: String,
}

/// How far to trust the answer.
#[derive(Serialize)]
struct TrustBox {
    word: &'static str,
    class: &'static str,
    /// What the word means.
    meaning: &'static str,
    /// Why the word is not better.
    reasons: Vec<String>,
    /// Further reasons.
    more: Vec<String>,
    facts: Vec<String>,
}

/// One cell, even if it is the only one.
#[derive(Serialize)]
struct CellSection {
    name: String,
    /// What is said of it; empty if it is the only one, because the page says it.
    headline: Vec<HeadlineLine>,
    /// How far to trust it, in a sentence.
    trust: String,
    ranking: Option<Places>,
    contenders: Table,
    first: Vec<MetricFigures>,
    more: Vec<MetricFigures>,
    pairs: Vec<Table>,
    extras: Vec<Table>,
    percentiles: Option<Figure>,
    /// Names of the contenders whose figures are bounds; empty if there are none.
    bounded: String,
    heat: Vec<Figure>,
    offsets: Vec<Figure>,
    knee: Option<Figure>,
    visits: Vec<Figure>,
    visit_table: Option<Table>,
}

/// A drawing with its table.
#[derive(Serialize)]
struct Figure {
    title: String,
    /// Number of the contender that it is of, if it is of one.
    number: Option<usize>,
    svg: String,
    table: Option<Table>,
}

/// Absolute figures of a metric, and ratios to the reference.
#[derive(Serialize)]
struct MetricFigures {
    /// Its name in the data.
    name: &'static str,
    title: &'static str,
    direction: &'static str,
    bars: String,
    caption: String,
    forest: String,
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

/// How much of a large run is drawn and listed.
struct Extent {
    draws_all: bool,
    lists_all_pairs: bool,
    lists_visits: bool,
    is_only: bool,
}

/// The page of a run.
pub(crate) fn page(record: &RunRecord) -> PageData {
    let cells = cells(record);
    let drawn: usize = cells.iter().map(|cell| cell.standings.len()).sum();
    let extent = Extent {
        draws_all: drawn <= DRAWN_MAX,
        lists_all_pairs: record.verdicts.len() <= PAIRS_MAX,
        lists_visits: record.visits.len() <= VISITS_MAX,
        is_only: cells.len() == 1,
    };
    let frame = frame(record);
    let section = |(index, view): (usize, &CellView)| cell_section(index, view, &extent);
    let sections: Vec<CellSection> = cells.iter().enumerate().map(section).collect();
    match cells.as_slice() {
        [only] => {
            let CellView { run, standings, ranking, .. } = only;
            PageData {
                chips: chips(workload(record), record),
                headline: shown(without_trust(headline(run, standings, ranking))),
                ranking: places_of(only),
                cells: sections,
                ..frame
            }
        }
        several => PageData {
            chips: chips(format!("{} cells", several.len()), record),
            headline: shown(without_trust(answers::overview(record, several))),
            answers: Some(answers::table(several)),
            growth: growth_figures(record, several),
            cells: sections,
            ..frame
        },
    }
}

/// What every page has, with one cell or several.
fn frame(record: &RunRecord) -> PageData {
    let (grade, mut reasons) = grade(record);
    let more = reasons.split_off(REASONS_MAX.min(reasons.len()));
    PageData {
        joust: plain(&record.joust),
        name: plain(&record.plan.name),
        question: plain(&record.plan.question),
        started: plain(&record.started),
        chips: Vec::new(),
        headline: Vec::new(),
        ranking: None,
        trust: TrustBox {
            word: grade.word(),
            class: grade.class(),
            meaning: grade.meaning(),
            reasons,
            more,
            facts: facts(record, None),
        },
        findings_first: record.findings.iter().any(|finding| finding.acts(Severity::Void)),
        cells: Vec::new(),
        answers: None,
        growth: Vec::new(),
        lists_all_pairs: record.verdicts.len() <= PAIRS_MAX,
        extras_of_run: extras::of_run(record),
        intervals: INTERVALS,
        findings: sections(record),
        no_findings: no_findings(record),
        failures: joined_failures(record),
        skipped: skipped(record),
        contenders: record.plan.contenders.iter().map(|one| plain(&one.name)).collect(),
        reference: match record.plan.reference {
            Some(index) => {
                format!("{}, as the study does", name_of(&record.plan.contenders, index))
            }
            None => "the best".to_owned(),
        },
        parity: parity(record),
        settings: settings(record),
        facts: run_facts(record),
        machine: record.facts.named.iter().map(|(k, v)| (plain(k), plain(v))).collect(),
        repeat: repeat(record),
        seed: record.plan.seed,
        margin: record.plan.margin.to_string(),
        explores: loads(record).any(|load| load.intervals.len() > 1),
        data: script_data::of_run(record),
    }
}

fn loads(record: &RunRecord) -> impl Iterator<Item = &record::LoadRecord> {
    record.visits.iter().filter_map(|visit| visit.load.as_ref())
}

fn chips(workload: String, record: &RunRecord) -> Vec<String> {
    vec![workload, machine(record), ending(record)]
}

/// The box beside the headline says it.
fn without_trust(lines: Vec<Line>) -> Vec<Line> {
    lines.into_iter().filter(|line| line.tone != Tone::Trust).collect()
}

fn cell_section(index: usize, view: &CellView, extent: &Extent) -> CellSection {
    let CellView { name, run, standings, ranking } = view;
    let ordered: Vec<&Standing> = in_order(standings, ranking).collect();
    let bounded: Vec<&str> =
        ordered.iter().filter(|s| s.is_bound).map(|s| s.name.as_str()).collect();
    let id = |what: &str| format!("cell-{index}-{what}");
    let all = metrics(run, ranking);
    let figures = |metric: &Metric| metric_figures(view, *metric, &id(metric.info().name));
    let more = &all[METRICS_FIRST.min(all.len())..];
    let pairs = |metric: &Metric| {
        let table = match extent.lists_all_pairs {
            true => PairTable::all(run, ranking, *metric),
            false => PairTable::short(run, ranking, *metric),
        };
        Some(table?.described(Depth::Detail))
    };
    let visit_metrics: &[Metric] =
        if extent.draws_all { &VISIT_METRICS } else { &VISIT_METRICS[..1] };
    CellSection {
        name: name.clone(),
        headline: match extent.is_only {
            true => Vec::new(),
            false => shown(without_trust(headline(run, standings, ranking))),
        },
        trust: trust(run, Some(ranking.metric)),
        ranking: if extent.is_only { None } else { places_of(view) },
        contenders: contenders::table(view),
        first: all.iter().take(METRICS_FIRST).filter_map(figures).collect(),
        more: if extent.draws_all { more.iter().filter_map(figures).collect() } else { Vec::new() },
        pairs: all.iter().filter_map(pairs).collect(),
        extras: extras::beside(view).collect(),
        percentiles: percentile_figure(&ordered, id("percentiles")),
        bounded: listed(&bounded),
        heat: match extent.draws_all {
            true => map_figures(heat_maps(view, &ordered), "heat", &id),
            false => Vec::new(),
        },
        offsets: match extent.draws_all {
            true => map_figures(offset_maps(view, &ordered), "offsets", &id),
            false => Vec::new(),
        },
        knee: knee_plot(view).map(|drawing| {
            finished(drawing, lines::WIDTH, id("knee"), "Latency over offered rate", None)
        }),
        visits: visit_metrics
            .iter()
            .filter_map(|metric| visit_figure(view, &ordered, *metric, &id))
            .collect(),
        visit_table: visits::table(run).filled().filter(|_| extent.lists_visits),
    }
}

/// A finished drawing.
fn finished(
    Drawing { svg, height, about }: Drawing,
    width: f64,
    id: String,
    title: &str,
    number: Option<usize>,
) -> Figure {
    let svg = svg.finish(&id, (width, height), title, &about);
    Figure { title: title.to_owned(), number, svg, table: None }
}

fn metric_figures(view: &CellView, metric: Metric, id: &str) -> Option<MetricFigures> {
    let info = metric.info();
    let absolute = bars(view, metric);
    let ratios = forest(view, metric);
    if absolute.is_none() && ratios.is_none() {
        return None;
    }
    let svg = |drawing: Option<Drawing>, width: f64, what: &str, title: &str| {
        let id = format!("{id}-{what}");
        drawing.map_or_else(String::new, |drawing| finished(drawing, width, id, title, None).svg)
    };
    let caption = caption(view, metric).unwrap_or_default();
    let ratio_title = format!("{}: ratios", info.title);
    Some(MetricFigures {
        name: info.name,
        title: info.title,
        direction: if metric.more_is_better() { "higher is better" } else { "lower is better" },
        bars: svg(absolute, bars::WIDTH, "bars", info.title),
        forest: svg(ratios, forest::WIDTH, "forest", &ratio_title),
        caption,
    })
}

fn growth_figures(record: &RunRecord, cells: &[CellView]) -> Vec<Figure> {
    let figure = |(index, growth): (usize, crate::growth_plot::Growth)| {
        let title = match growth.name.as_str() {
            "" => "Throughput over connections".to_owned(),
            name => format!("Throughput over connections, {name}"),
        };
        finished(growth.drawing, lines::WIDTH, format!("growth-{index}"), &title, None)
    };
    growth_plots(record, cells).into_iter().enumerate().map(figure).collect()
}

fn percentile_figure(ordered: &[&Standing], id: String) -> Option<Figure> {
    let samples = || ordered.iter().map(|standing| Sample::from(*standing));
    let drawing = percentiles(samples())?;
    let figure = finished(drawing, lines::WIDTH, id, "Service time by percentile", None);
    Some(Figure { table: curves::table(samples()).filled(), ..figure })
}

/// One map a contender.
fn map_figures(maps: Vec<MapOf<'_>>, what: &str, id: &dyn Fn(&str) -> String) -> Vec<Figure> {
    let figure = |(standing, drawing): MapOf<'_>| {
        let id = id(&format!("{what}-{}", standing.index));
        finished(drawing, maps::WIDTH, id, &standing.name, Some(standing.number))
    };
    maps.into_iter().map(figure).collect()
}

fn visit_figure(
    view: &CellView,
    ordered: &[&Standing],
    metric: Metric,
    id: &dyn Fn(&str) -> String,
) -> Option<Figure> {
    let drawing = visit_plot(&view.run, ordered.iter().copied(), metric)?;
    let info = metric.info();
    let id = id(&format!("visits-{}", info.name));
    Some(finished(drawing, visits::WIDTH, id, info.title, None))
}

fn shown(lines: Vec<Line>) -> Vec<HeadlineLine> {
    let shown = |line: Line| HeadlineLine { tone: tone(line.tone), text: line.text };
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

fn places_of(view: &CellView) -> Option<Places> {
    let CellView { run, standings, ranking, .. } = view;
    let is_told = run.plan.contenders.len() > 2 && ranking.tells_apart();
    is_told.then(|| places(standings, ranking))
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
