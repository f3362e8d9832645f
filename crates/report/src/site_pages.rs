//! Pages of the site that shows a history: its runs, the comparison of two, a contender's figures over all of them, and
//! what to say where there is no such page. Owns what they show; must not know how pages are served, nor where runs are
//! kept. Start reading at [`index_page`].

use std::collections::BTreeSet;

use record::{Comparison, HistoryRecord, HistoryRun, HistorySeries};
use serde::Serialize;

use crate::compare_text::{changes, drifts, headline, metrics, run_name, sentence};
use crate::figures::counted;
use crate::history_text::{machine_text, minute};
use crate::html;
use crate::lines::WIDTH;
use crate::table::Table;
use crate::trend_plot::trend_plot;
use crate::wording::plain;

/// Runs of the list, at most: the latest.
const RUNS_MAX: usize = 2000;

/// A page of the site.
#[derive(Default, Serialize)]
struct SitePage {
    title: String,
    /// Whether it is the list of runs, which other pages lead back to.
    is_index: bool,
    /// Class and text of each.
    lines: Vec<(&'static str, String)>,
    runs: Vec<ListedRun>,
    trends: Vec<TrendLink>,
    figures: Vec<TrendFigure>,
    tables: Vec<Table>,
    /// Sentences after the tables.
    notes: Vec<String>,
    /// The pages of the two runs that are compared.
    links: Vec<(String, String)>,
}

/// A run of the list.
#[derive(Serialize)]
struct ListedRun {
    id: i64,
    started: String,
    study: String,
    contenders: String,
    blocks: u32,
    cells: u32,
    machine: String,
    is_there: bool,
    /// What became worse with it; empty for nothing.
    worse: String,
}

/// A link to the trends of a contender.
#[derive(Serialize)]
struct TrendLink {
    study: String,
    contenders: Vec<(String, String)>,
}

/// A figure over runs.
#[derive(Serialize)]
struct TrendFigure {
    title: String,
    note: String,
    svg: String,
}

/// The list of runs, newest first, with what became worse at which run, and links to trends.
pub fn index_page(history: &HistoryRecord) -> String {
    let runs = history.runs.iter().rev().map(|run| listed(run, &history.series));
    let mut runs: Vec<ListedRun> = runs.collect();
    let all = runs.len();
    let worse = runs.iter().filter(|run| !run.worse.is_empty()).count() as u64;
    runs.truncate(RUNS_MAX);
    let mut lines = vec![("answer", format!("{} kept", counted(all as u64, "run")))];
    if all > RUNS_MAX {
        lines.push((
            "caution",
            format!("the latest {} are listed", counted(RUNS_MAX as u64, "run")),
        ));
    }
    if worse > 0 {
        lines.push(("alarm", format!("a figure became worse with {}", counted(worse, "run"))));
    }
    page(&SitePage {
        title: "Runs".to_owned(),
        is_index: true,
        lines,
        runs,
        trends: trends(&history.runs),
        ..SitePage::default()
    })
}

fn listed(run: &HistoryRun, series: &[HistorySeries]) -> ListedRun {
    let worse = series.iter().flat_map(|one| {
        let is_worse = |ratio: f64| (ratio > 1.0) != one.metric.more_is_better();
        let here = one.changes.iter().filter(move |change| change.run == run.id);
        let here = here.filter(move |change| is_worse(change.ratio));
        here.map(|_| format!("{} of {}", one.metric.info().quantity, plain(&one.contender)))
    });
    let worse: BTreeSet<String> = worse.collect();
    ListedRun {
        id: run.id,
        started: plain(&minute(&run.started)),
        study: plain(&run.study),
        contenders: plain(&run.contenders.join(", ")),
        blocks: run.blocks,
        cells: run.cells,
        machine: machine_text(&run.machine),
        is_there: run.is_there,
        worse: worse.into_iter().collect::<Vec<_>>().join("; "),
    }
}

/// The contenders of each study, with the addresses of their trends.
fn trends(runs: &[HistoryRun]) -> Vec<TrendLink> {
    let studies: BTreeSet<&str> = runs.iter().map(|run| run.study.as_str()).collect();
    let link = |study: &str| {
        let of_study = runs.iter().filter(|run| run.study == study);
        let names: BTreeSet<&String> = of_study.flat_map(|run| &run.contenders).collect();
        let address =
            |name: &String| format!("/trend?study={}&contender={}", encoded(study), encoded(name));
        let contenders = names.into_iter().map(|name| (plain(name), address(name))).collect();
        TrendLink { study: plain(study), contenders }
    };
    studies.into_iter().map(link).collect()
}

/// Text for the value of a query: letters, digits and `-._~` as they are (RFC 3986, 2.3), all else as bytes in hex.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A contender's figures over all runs.
pub fn trend_page(study: &str, contender: &str, series: &[HistorySeries]) -> String {
    let figure = |(index, one): (usize, &HistorySeries)| {
        let title = one.metric.info().title;
        let cell = if one.cell.is_empty() { String::new() } else { format!(", {}", one.cell) };
        let drawing = trend_plot(one)?;
        let id = format!("trend-{index}");
        Some(TrendFigure {
            title: plain(&format!("{title}{cell}")),
            note: trend_note(one),
            svg: drawing.svg.finish(&id, (WIDTH, drawing.height), title, &drawing.about),
        })
    };
    let figures: Vec<TrendFigure> = series.iter().enumerate().filter_map(figure).collect();
    let changes: usize = series.iter().map(|one| one.changes.len()).sum();
    page(&SitePage {
        title: plain(&format!("{contender} in {study}")),
        lines: vec![(
            "answer",
            match changes {
                0 => "no change of level".to_owned(),
                n => counted(n as u64, "change") + " of level",
            },
        )],
        figures,
        ..SitePage::default()
    })
}

fn trend_note(series: &HistorySeries) -> String {
    let machine = machine_text(&series.machine);
    let usable = series.points.iter().filter(|point| point.withheld.is_none()).count();
    let direction = series.metric.info().direction();
    let changes = match usable < series.points_needed {
        true => format!(
            "; changes are searched in at least {} usable runs, there are {usable}",
            series.points_needed
        ),
        false => String::new(),
    };
    format!("{direction}; a point is a run, its bar the 95 % interval; {machine}{changes}")
}

/// The comparison of two runs; `runs` are their numbers.
pub fn compare_page(comparison: &Comparison, runs: (i64, i64)) -> String {
    let class = match (comparison.regressions().next(), comparison.says_something()) {
        (Some(_), _) => "alarm",
        (None, true) => "answer",
        (None, false) => "caution",
    };
    let cautions = comparison.cautions.iter().map(|text| ("caution", plain(text)));
    let said = headline(comparison).into_iter().map(|text| (class, text));
    let method = std::iter::once(("trust", sentence(&comparison.method)));
    let shown = metrics(comparison);
    let tables = shown.iter().filter_map(|metric| changes(comparison, *metric).filled());
    let drifts = shown.iter().flat_map(|metric| drifts(comparison, *metric));
    let unmatched =
        comparison.unmatched.iter().map(|line| format!("not compared: {}", plain(line)));
    let link = |what: &str, run: &record::RunName, id: i64| {
        (format!("{what}: run {id}, {}", run_name(run)), format!("/run/{id}"))
    };
    page(&SitePage {
        title: plain(&format!("Run {} compared with run {}", runs.1, runs.0)),
        lines: cautions.chain(said).chain(method).collect(),
        tables: tables.collect(),
        notes: drifts.chain(unmatched).collect(),
        links: vec![
            link("base", &comparison.base, runs.0),
            link("candidate", &comparison.candidate, runs.1),
        ],
        ..SitePage::default()
    })
}

/// A page that says why there is no other.
pub fn message_page(title: &str, text: &str) -> String {
    page(&SitePage {
        title: plain(title),
        lines: vec![("caution", plain(text))],
        ..SitePage::default()
    })
}

fn page(data: &SitePage) -> String {
    html::page("site.html", &SitePageData { data: "{}", page: data })
}

/// The script of pages needs its data, even if there is nothing in it.
#[derive(Serialize)]
struct SitePageData<'a> {
    data: &'static str,
    page: &'a SitePage,
}

#[cfg(test)]
mod tests {
    use record::{HistoryChange, HistoryMachine, HistoryPoint, Metric};

    use super::*;

    fn run(id: i64, contender: &str) -> HistoryRun {
        HistoryRun {
            id,
            study: "quick".to_owned(),
            started: format!("2026-11-{id:02}T11:14:03Z"),
            seconds: 80.0,
            joust: "0.1.0".to_owned(),
            machine: HistoryMachine::default(),
            path: "/r/run.json".to_owned(),
            is_there: id != 2,
            contenders: vec![contender.to_owned()],
            cells: 1,
            blocks: 8,
        }
    }

    fn series(contender: &str) -> HistorySeries {
        let point = |run: i64, mean: f64| HistoryPoint {
            run,
            started: format!("2026-11-{run:02}T11:14:03Z"),
            mean,
            low: Some(0.98 * mean),
            high: Some(1.02 * mean),
            n: 8,
            version: "a/1".to_owned(),
            configuration: String::new(),
            joust: "0.1.0".to_owned(),
            withheld: (run == 4).then(|| "errors_as_speed <b>".to_owned()),
        };
        HistorySeries {
            study: "quick".to_owned(),
            contender: contender.to_owned(),
            cell: String::new(),
            metric: Metric::Throughput,
            machine: HistoryMachine::default(),
            points: vec![point(1, 1000.0), point(2, 1001.0), point(3, 900.0), point(4, 900.0)],
            changes: vec![HistoryChange {
                run: 3,
                started: "2026-11-03T11:14:03Z".to_owned(),
                before: 1000.0,
                after: 900.0,
                ratio: 0.9,
                low: 0.88,
                high: 0.92,
                with: Vec::new(),
            }],
            points_needed: 3,
        }
    }

    #[test]
    fn the_list_has_every_run_newest_first_and_says_what_became_worse_with_which() {
        let name = "a&b <script>";
        let history = HistoryRecord {
            format: HistoryRecord::FORMAT.to_owned(),
            database: "h.sqlite".to_owned(),
            runs: (1..=3).map(|id| run(id, name)).collect(),
            series: vec![series(name)],
        };
        // The template escapes slashes too.
        let page = index_page(&history).replace("&#x2f;", "/");
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in\n{page}"));
        assert!(at("href=\"/run/3\"") < at("href=\"/run/1\""));
        assert!(!page.contains("href=\"/run/2\""), "its file is gone");
        assert!(page.contains("requests/s of a&amp;b &lt;script&gt;"));
        assert!(page.contains("/trend?study=quick&amp;contender=a%26b%20%3Cscript%3E"));
        assert!(!page.contains("b <script"));
    }

    #[test]
    fn a_trend_marks_where_it_became_worse_and_what_was_withheld() {
        let page = trend_page("quick", "nginx", &[series("nginx")]);
        for part in
            ["run 3: 0.90x worse", "class=\"cut worse\"", "withheld: errors_as_speed &lt;b&gt;"]
        {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }

    #[test]
    fn the_pages_of_a_comparison_lead_to_its_runs() {
        let comparison = Comparison {
            format: Comparison::FORMAT.to_owned(),
            base: record::RunName { path: "a".to_owned(), ..Default::default() },
            candidate: record::RunName::default(),
            margin: units::Share(0.02),
            method: "each ratio is by itself".to_owned(),
            cautions: vec!["the machines differ".to_owned()],
            changes: Vec::new(),
            drift: Vec::new(),
            unmatched: vec!["nginx: only in the base run".to_owned()],
        };
        let page = compare_page(&comparison, (3, 7)).replace("&#x2f;", "/");
        for part in [
            "/run/3",
            "/run/7",
            "the machines differ",
            "only in the base run",
            "nothing can be compared",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }
}
