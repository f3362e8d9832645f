//! The terminal report of a history: its runs, and series of a figure with their changes. Owns layout and plot. Must
//! not know where runs are kept. Start reading at [`history_text`].

use std::collections::BTreeSet;

use record::{
    HistoryChange, HistoryMachine, HistoryPoint, HistoryRecord, HistoryRun, HistorySeries,
};

use crate::Options;
use crate::figures::{NONE, counted, listed, ratio_with_interval};
use crate::standing::shown;
use crate::terminal::{Lean, Page, Paint};
use crate::wording::plain;

/// Columns of a plot, and of one on a terminal of fewer columns than [`WIDE`].
const PLOT: usize = 30;
const PLOT_NARROW: usize = 12;
const WIDE: usize = 100;
/// Most points of a series that are listed; the JSON has all of them.
const POINTS_SHOWN_MAX: usize = 60;

/// What a history holds, for a terminal; ends in a newline.
pub fn history_text(history: &HistoryRecord, options: &Options) -> String {
    let mut page = Page::new(options);
    let runs = counted(history.runs.len() as u64, "run");
    page.heading("joust history", &format!("{}: {runs}", plain(&history.database)));
    if history.series.is_empty() {
        run_table(&mut page, &history.runs);
    }
    history.series.iter().for_each(|one| series(&mut page, one, options));
    page.finish()
}

fn run_table(page: &mut Page, runs: &[HistoryRun]) {
    if runs.is_empty() {
        return;
    }
    let columns = [
        ("run", Lean::Right),
        ("started", Lean::Whole),
        ("study", Lean::Whole),
        ("cells", Lean::Right),
        ("blocks", Lean::Right),
        ("contenders", Lean::Right),
        ("file", Lean::Left),
    ];
    let rows: Vec<Vec<String>> = runs.iter().map(run_row).collect();
    page.table(&columns, &rows);
    contenders(page, runs);
    let mut machines: Vec<&HistoryMachine> = Vec::new();
    for run in runs {
        if !machines.contains(&&run.machine) {
            machines.push(&run.machine);
        }
    }
    for machine in machines {
        page.paragraph(&format!("machine: {}", machine_text(machine)), Paint::Faint);
    }
}

fn run_row(run: &HistoryRun) -> Vec<String> {
    let gone = if run.is_there { "" } else { " (gone)" };
    let row = [
        run.id.to_string(),
        minute(&run.started),
        run.study.clone(),
        run.cells.to_string(),
        run.blocks.to_string(),
        run.contenders.len().to_string(),
        format!("{}{gone}", run.path),
    ];
    row.iter().map(|text| plain(text)).collect()
}

/// The contenders, if all runs are of one study: with several there are too many.
fn contenders(page: &mut Page, runs: &[HistoryRun]) {
    let [first, rest @ ..] = runs else { return };
    if rest.iter().any(|run| run.study != first.study) {
        return page.paragraph("--study NAME lists the contenders of one", Paint::Faint);
    }
    let names: BTreeSet<&str> =
        runs.iter().flat_map(|run| &run.contenders).map(String::as_str).collect();
    let names = names.into_iter().collect::<Vec<_>>().join("; ");
    page.paragraph(&format!("contenders: {}", plain(&names)), Paint::Plain);
}

/// "2026-11-22 06:44" of an instant in RFC 3339; another text as it is.
pub(crate) fn minute(started: &str) -> String {
    match started.split_once('T') {
        Some((day, time)) => format!("{day} {}", time.get(..5).unwrap_or(time)),
        None => started.to_owned(),
    }
}

pub(crate) fn machine_text(machine: &HistoryMachine) -> String {
    let HistoryMachine { cpu_model, cpus, kernel } = machine;
    plain(&format!("{cpu_model}, CPUs {cpus}, Linux {kernel}"))
}

fn series(page: &mut Page, series: &HistorySeries, options: &Options) {
    let words = series.metric.info();
    let cell = if series.cell.is_empty() { String::new() } else { format!(" at {}", series.cell) };
    let title = format!("{}: {} in {}{cell}", series.contender, words.quantity, series.study);
    let remark = format!("{}; {}", words.direction(), machine_text(&series.machine));
    page.heading(&plain(&title), &remark);
    let left_out = series.points.len().saturating_sub(POINTS_SHOWN_MAX);
    let points = &series.points[left_out..];
    if left_out > 0 {
        let text = format!(
            "the last {POINTS_SHOWN_MAX} of {} points (--json has all)",
            series.points.len()
        );
        page.paragraph(&text, Paint::Faint);
    }
    let scale = Scale::of(points, options.width);
    let is_change = |point: &HistoryPoint| series.changes.iter().any(|one| one.run == point.run);
    let row = |point: &HistoryPoint| {
        let value = |value| shown(series.metric, Some(value));
        let interval = point.low.zip(point.high);
        let interval = interval.map_or_else(
            || NONE.to_owned(),
            |(low, high)| format!("[{}, {}]", value(low), value(high)),
        );
        let mark = if is_change(point) { "change" } else { "" };
        let note = point.withheld.as_deref().map_or(mark, |_| "withheld");
        vec![
            point.run.to_string(),
            plain(&minute(&point.started)),
            value(point.mean),
            interval,
            point.n.to_string(),
            scale.plot(point, options),
            note.to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = points.iter().map(row).collect();
    let columns = [
        ("run", Lean::Right),
        ("started", Lean::Whole),
        ("mean", Lean::Right),
        ("95 % interval", Lean::Right),
        ("blocks", Lean::Right),
        ("", Lean::Whole),
        ("", Lean::Left),
    ];
    page.table(&columns, &rows);
    remarks(page, series);
}

/// The changes, or that none was found or none was looked for; and why points are withheld.
fn remarks(page: &mut Page, series: &HistorySeries) {
    let usable = series.points.iter().filter(|point| point.withheld.is_none()).count();
    for change in &series.changes {
        page.paragraph(&change_text(series, change), Paint::Caution);
    }
    if series.changes.is_empty() {
        let text = match usable >= series.points_needed {
            true => format!("no change of level in {}", counted(usable as u64, "run")),
            false => format!(
                "a change of level needs at least {} usable runs; there are {usable}",
                series.points_needed
            ),
        };
        page.paragraph(&text, Paint::Faint);
    }
    let mut reasons: Vec<String> =
        series.points.iter().filter_map(|point| point.withheld.clone()).collect();
    reasons.sort();
    reasons.dedup();
    reasons
        .iter()
        .for_each(|one| page.paragraph(&format!("withheld: {}", plain(one)), Paint::Faint));
}

fn change_text(series: &HistorySeries, change: &HistoryChange) -> String {
    let value = |value| shown(series.metric, Some(value));
    let with = match change.with.is_empty() {
        true => "no known change came with it".to_owned(),
        false => format!("changed at the same time: {}", listed(&change.with)),
    };
    plain(&format!(
        "change at run {}, {}: {} to {}, {}; {with}",
        change.run,
        change.started,
        value(change.before),
        value(change.after),
        ratio_with_interval(change.ratio, change.low, change.high)
    ))
}

/// From the smallest to the largest drawn value.
struct Scale {
    low: f64,
    high: f64,
    columns: usize,
}

impl Scale {
    fn of(points: &[HistoryPoint], width: usize) -> Self {
        let columns = if width < WIDE { PLOT_NARROW } else { PLOT };
        let ends = points.iter().flat_map(|point| [Some(point.mean), point.low, point.high]);
        let ends = ends.flatten().filter(|value| value.is_finite());
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        Self { low, high, columns }
    }

    /// Column of a value.
    fn at(&self, value: f64) -> usize {
        let span = self.high - self.low;
        if span <= 0.0 || !value.is_finite() {
            return self.columns / 2;
        }
        let share = ((value - self.low) / span).clamp(0.0, 1.0);
        (share * (self.columns - 1) as f64).round() as usize
    }

    /// The interval as a line and the mean as a dot on it.
    fn plot(&self, point: &HistoryPoint, options: &Options) -> String {
        let (line, dot) = if options.unicode { ('─', '●') } else { ('-', 'o') };
        let mut columns = vec![' '; self.columns];
        if let Some((low, high)) = point.low.zip(point.high) {
            columns[self.at(low)..=self.at(high).max(self.at(low))].fill(line);
        }
        columns[self.at(point.mean)] = dot;
        columns.into_iter().collect::<String>().trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use record::Metric;

    use super::*;

    fn point(run: i64, mean: f64) -> HistoryPoint {
        HistoryPoint {
            run,
            started: format!("2026-11-{:02}T08:00:00Z", run % 30 + 1),
            mean,
            low: Some(mean * 0.98),
            high: Some(mean * 1.02),
            n: 8,
            version: "a/1".to_owned(),
            configuration: String::new(),
            joust: "0.1.0".to_owned(),
            withheld: None,
        }
    }

    fn machine() -> HistoryMachine {
        HistoryMachine { cpu_model: "EPYC".into(), cpus: "0-1".into(), kernel: "6.12".into() }
    }

    fn of_series(points: Vec<HistoryPoint>, changes: Vec<HistoryChange>) -> HistoryRecord {
        HistoryRecord {
            format: HistoryRecord::FORMAT.to_owned(),
            database: "h.sqlite".to_owned(),
            runs: Vec::new(),
            series: vec![HistorySeries {
                study: "quick".to_owned(),
                contender: "nginx".to_owned(),
                cell: String::new(),
                metric: Metric::Throughput,
                machine: machine(),
                points,
                changes,
                points_needed: 20,
            }],
        }
    }

    #[test]
    fn a_series_is_plotted_and_its_change_has_a_date_and_a_size() {
        let change = HistoryChange {
            run: 3,
            started: "2026-11-04T08:00:00Z".to_owned(),
            before: 1000.0,
            after: 900.0,
            ratio: 0.9,
            low: 0.88,
            high: 0.92,
            with: vec!["version: a/1 to a/2".to_owned()],
        };
        let points = vec![point(1, 1000.0), point(2, 1001.0), point(3, 900.0), point(4, 901.0)];
        let text = history_text(&of_series(points, vec![change]), &Options::default());
        let spaced = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "nginx: requests/s in quick",
            "more is better; EPYC, CPUs 0-1, Linux 6.12",
            "1 2026-11-02 08:00 1,000 [980, 1,020] 8",
            "─ change",
            "change at run 3, 2026-11-04T08:00:00Z: 1,000 to 900, 0.90x [0.88, 0.92]; changed at the \
             same time: version: a/1 to a/2",
        ] {
            assert!(spaced.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn where_no_change_could_be_found_that_is_said() {
        let mut points = vec![point(1, 1000.0), point(2, 1000.0)];
        points[1].withheld = Some("errors_as_speed on nginx".to_owned());
        let text = history_text(&of_series(points, Vec::new()), &Options::default());
        assert!(text.contains("at least 20 usable runs; there are 1"), "{text}");
        assert!(text.contains("withheld: errors_as_speed on nginx"), "{text}");
        let flat = (1..=70).map(|run| point(run, 5.0)).collect();
        let text = history_text(&of_series(flat, Vec::new()), &Options::default());
        assert!(text.contains("no change of level in 70 runs"), "{text}");
        assert!(text.contains("the last 60 of 70"), "{text}");
    }

    #[test]
    fn a_run_whose_file_is_gone_says_so() {
        let run = HistoryRun {
            id: 7,
            study: "quick".to_owned(),
            started: "2026-11-21T11:14:03Z".to_owned(),
            seconds: 80.0,
            joust: "0.1.0".to_owned(),
            machine: machine(),
            path: "/r/run.json".to_owned(),
            is_there: false,
            contenders: vec!["nginx".to_owned(), "joust".to_owned()],
            cells: 1,
            blocks: 8,
        };
        let history =
            HistoryRecord { runs: vec![run], series: Vec::new(), ..of_series(vec![], vec![]) };
        let text = history_text(&history, &Options { width: 80, ..Options::default() });
        assert!(text.contains("contenders: joust; nginx"), "{text}");
        assert!(text.contains("2026-11-21 11:14  quick"), "{text}");
        assert!(text.contains("/r/run.json (gone)"), "{text}");
        assert!(text.contains("machine: EPYC, CPUs 0-1, Linux 6.12"), "{text}");
    }
}
