//! Every figure of a run or a load as a file of its own: a standalone SVG with its colours in it, for a paper or a slide. Owns
//! which figures there are and their file names; the plots come from elsewhere in this crate. Start reading at
//! [`figure_files`].

use std::collections::BTreeSet;

use record::{LoadRecord, Metric, MetricUnit, RunRecord};

use crate::bars::{WIDTH as BARS_WIDTH, bars};
use crate::cell_maps::{heat_maps, offset_maps};
use crate::cells::{CellView, cells};
use crate::contenders::in_order;
use crate::drawing::Drawing;
use crate::forest::{WIDTH as FOREST_WIDTH, forest};
use crate::growth_plot::growth_plots;
use crate::html::PLOTS_CSS;
use crate::knee_plot::knee_plot;
use crate::lines::WIDTH as LINES_WIDTH;
use crate::load_figures::{load_figures, load_maps};
use crate::maps;
use crate::pairs::metrics;
use crate::percentiles::{Sample, percentiles};
use crate::standing::Standing;
use crate::svg::{Anchor, Svg};
use crate::visit_plot::{WIDTH as VISITS_WIDTH, visit_plot};
use crate::{Options, Render};
use crate::{colours, measured, picture};

/// A figure.
#[derive(Debug)]
pub struct FigureFile {
    /// Its name without an extension: letters, digits, `-` and `_`, unique among the figures of a run even where
    /// large and small letters are the same.
    pub name: String,
    /// A whole SVG file.
    pub svg: String,
}

/// Space around a plot.
const PADDING: f64 = 16.0;

/// Characters of a name that come from a cell's name.
const CELL_CHARS_MAX: usize = 60;

/// Every figure of a single load: distribution, percentiles, course, and both maps.
pub fn load_figure_files(record: &LoadRecord) -> Vec<FigureFile> {
    let mut files = Files::default();
    for figure in load_figures(record).into_iter().chain(load_maps(record)) {
        files.add(figure.name, "", standalone(figure.drawing, figure.width, figure.title));
    }
    files.all
}

/// Every figure of a run: the picture; throughput over connections; of each cell the figures, ratios and visits of each
/// metric, the percentiles, latency over offered rate, and each contender's maps.
pub fn figure_files(record: &RunRecord) -> Vec<FigureFile> {
    let mut files = Files::default();
    if let Some(Render::Text(render)) = &picture::OUTPUT.run {
        files.add("picture", "", with_colours(&render(record, &Options::default())));
    }
    let cells = cells(record);
    for growth in growth_plots(record, &cells) {
        let title = titled("Throughput over connections", &growth.name);
        files.add("growth", &growth.name, standalone(growth.drawing, LINES_WIDTH, &title));
    }
    cells.iter().for_each(|view| of_cell(&mut files, view));
    files.all
}

fn of_cell(files: &mut Files, view: &CellView) {
    let CellView { name, run, standings, ranking } = view;
    let ordered: Vec<&Standing> = in_order(standings, ranking).collect();
    for metric in metrics(run, ranking) {
        let drawings = [
            ("figures", bars(view, metric), BARS_WIDTH),
            ("ratios", forest(view, metric), FOREST_WIDTH),
        ];
        for (what, drawing, width) in drawings {
            let Some(drawing) = drawing else { continue };
            let title = titled(&format!("{}{}, {what}", metric.info().title, unit(metric)), name);
            let file = standalone(drawing, width, &title);
            files.add(&format!("{what}-{}", metric.info().name), name, file);
        }
    }
    let curves = percentiles(ordered.iter().map(|standing| Sample::from(*standing)));
    let plots = [
        ("percentiles", curves, "Service time by percentile"),
        ("knee", knee_plot(view), "Latency over offered rate"),
    ];
    for (what, drawing, title) in plots {
        if let Some(drawing) = drawing {
            files.add(what, name, standalone(drawing, LINES_WIDTH, &titled(title, name)));
        }
    }
    for (what, maps, title) in [
        ("heat", heat_maps(view, &ordered), "Service time over a visit"),
        ("offsets", offset_maps(view, &ordered), "Completions within each second of a visit"),
    ] {
        for (standing, drawing) in maps {
            let title = titled(&format!("{title}: {}", standing.name), name);
            let of = if name.is_empty() {
                standing.name.clone()
            } else {
                format!("{name} {}", standing.name)
            };
            files.add(what, &of, standalone(drawing, maps::WIDTH, &title));
        }
    }
    let is_measured = |metric: &Metric| run.visits.iter().any(|one| one.value(*metric).is_some());
    for metric in Metric::all().filter(is_measured) {
        if let Some(drawing) = visit_plot(run, ordered.iter().copied(), metric) {
            let title =
                titled(&format!("{}{}, visit by visit", metric.info().title, unit(metric)), name);
            let file = standalone(drawing, VISITS_WIDTH, &title);
            files.add(&format!("visits-{}", metric.info().name), name, file);
        }
    }
}

/// The unit in brackets, if the figures of a plot do not have their own.
fn unit(metric: Metric) -> String {
    match metric.info().unit {
        MetricUnit::Millis | MetricUnit::Bytes => String::new(),
        _ => format!(" ({})", measured::unit(metric)),
    }
}

fn titled(title: &str, cell: &str) -> String {
    if cell.is_empty() { title.to_owned() } else { format!("{title}, {cell}") }
}

/// Files so far, and their names in small letters.
#[derive(Default)]
struct Files {
    all: Vec<FigureFile>,
    taken: BTreeSet<String>,
}

impl Files {
    fn add(&mut self, figure: &str, cell: &str, svg: String) {
        let cell = safe(cell);
        let wanted = if cell.is_empty() { figure.to_owned() } else { format!("{figure}-{cell}") };
        let mut name = wanted.clone();
        let mut number = 1;
        while !self.taken.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{wanted}-{number}");
        }
        self.all.push(FigureFile { name, svg });
    }
}

/// A part of a file name: `connections=10, client=ab` is `connections_10_client_ab`. Nothing in it can lead out of a
/// folder or mean something to a shell.
fn safe(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").chars().take(CELL_CHARS_MAX).collect()
}

/// A plot with its title on a card.
fn standalone(drawing: Drawing, width: f64, title: &str) -> String {
    let head = 30.0;
    let (width, height) = (width + 2.0 * PADDING, drawing.height + head + 2.0 * PADDING);
    let mut card = Svg::default();
    card.rect("card", (0.5, 0.5), (width - 1.0, height - 1.0), 6.0);
    let at = (PADDING, PADDING + 16.0);
    card.fitted("t lead", at, Anchor::Start, title, (width - 2.0 * PADDING, 16.0));
    card.group(PADDING, PADDING + head, &drawing.svg);
    let whole = card.finish("figure", (width, height), title, &drawing.about);
    let open = whole.find("<title").expect("a finished drawing has a title");
    with_colours(&format!("{}<style>{PLOTS_CSS}</style>{}\n", &whole[..open], &whole[open..]))
}

/// With colours in the place of variables, because many programs that show an SVG know no variables.
fn with_colours(svg: &str) -> String {
    let replaced =
        |svg: String, (name, colour): (&str, &str)| svg.replace(&format!("var({name})"), colour);
    colours::light().fold(svg.to_owned(), replaced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn every_figure_is_a_whole_svg_with_its_own_colours() {
        for run in [testdata::run(), testdata::celled(), testdata::all_failed()] {
            let files = figure_files(&run);
            assert!(files.iter().any(|file| file.name == "picture"));
            for file in files {
                let document = roxmltree::Document::parse(&file.svg);
                let document = document.unwrap_or_else(|e| panic!("{}: {e}", file.name));
                assert_eq!(document.root_element().tag_name().name(), "svg");
                assert!(!file.svg.contains("var("), "{}", file.name);
            }
        }
    }

    #[test]
    fn a_load_has_every_figure_of_its_page() {
        let mut load = testdata::load();
        let names = |load: &LoadRecord| -> Vec<String> {
            load_figure_files(load).into_iter().map(|file| file.name).collect()
        };
        // In so few intervals there is no course to see.
        assert_eq!(names(&load), ["distribution", "percentiles", "heat"]);
        for _ in 0..5 {
            let mut next = load.intervals[0].clone();
            next.start = load.intervals[load.intervals.len() - 1].end();
            load.intervals.push(next);
        }
        assert_eq!(names(&load), ["distribution", "percentiles", "over-time", "heat"]);
        for file in load_figure_files(&load) {
            roxmltree::Document::parse(&file.svg).unwrap_or_else(|e| panic!("{}: {e}", file.name));
        }
    }

    #[test]
    fn a_run_has_its_ratios_percentiles_and_visits_by_name() {
        let names: Vec<String> =
            figure_files(&testdata::celled()).into_iter().map(|file| file.name).collect();
        for name in [
            "picture",
            "figures-throughput-connections_10",
            "ratios-throughput-connections_10",
            "percentiles-connections_100",
            "visits-server_cpu-connections_1",
        ] {
            assert!(names.iter().any(|one| one == name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn hostile_names_stay_in_the_folder_and_apart() {
        let mut run = testdata::celled();
        let names = ["../../etc/passwd", "A b", "a_B"];
        for (cell, name) in run.plan.cells.iter_mut().zip(names) {
            cell.name = name.to_owned();
        }
        let names: Vec<String> = figure_files(&run).into_iter().map(|file| file.name).collect();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(names.iter().all(|name| name.chars().all(is_plain)), "{names:?}");
        let small: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(small.len(), names.len(), "{names:?}");
        assert!(names.contains(&"percentiles-etc_passwd".to_owned()), "{names:?}");
        assert!(names.contains(&"percentiles-a_B-2".to_owned()), "{names:?}");
        assert_eq!(safe(&"x".repeat(400)).len(), CELL_CHARS_MAX);
    }
}
