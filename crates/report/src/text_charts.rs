//! Owns the charts of a terminal report: figures as bars with the spread of their visits, the visits block by block,
//! and percentiles of service time. In all of them right, or up, is better, and nothing is said by colour. Must not
//! know the page. Start reading at [`charts`].

use record::Metric;
use units::Nanos;

use crate::Options;
use crate::cells::CellView;
use crate::columns::{cut, padded, right, width};
use crate::contenders::in_order;
use crate::figures::ratio;
use crate::sparkline::{Beats, span};
use crate::standing::{Standing, shown, span as time};
use crate::table::Column;

/// Most contenders of a chart; the table of contenders has all.
const ROWS_MAX: usize = 24;
/// Space left of a row, and between its parts.
const INDENT: &str = "  ";
/// Names take at most one part in this many of the width.
const NAME_SHARE: usize = 3;
/// Columns of a plot, at least and at most.
const PLOT: (usize, usize) = (4, 80);
/// From this width on, the range of the visits stands beside a bar, and figures beside percentiles.
const WIDTH_OF_RANGES: usize = 76;
/// Percentiles that are marked, in the order in which they are drawn: a later mark hides an earlier one.
const MARKS: [(f64, &str, [char; 2]); 4] = [
    (0.5, "p50", ['o', '\u{25cf}']),
    (0.9, "p90", ['+', '\u{25c6}']),
    (0.99, "p99", ['x', '\u{25b2}']),
    (0.999, "p99.9", ['*', '\u{25a0}']),
];

/// A chart: its title, what must be known to read it, and its lines.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) lines: Vec<String>,
}

/// The charts of a cell; none of a cell in which nothing was measured.
pub(crate) fn charts(view: &CellView, options: &Options) -> Vec<Chart> {
    let ranked = view.ranking.metric;
    let beside = if ranked == Metric::ServerCpu { Metric::Throughput } else { Metric::ServerCpu };
    let figures = [ranked, beside].map(|metric| figure_bars(view, metric, options));
    let rest = [by_block(view, options), percentiles(view, options)];
    figures.into_iter().chain(rest).flatten().collect()
}

/// Most rows over all cells in which the cells of a short report are drawn; the line of each cell has the figures.
const ROWS_OF_CELLS_MAX: usize = 36;

/// The figures of several cells by the metric that ranks each, if there are few enough; what must be known stands with
/// the first.
pub(crate) fn of_cells(cells: &[CellView], options: &Options) -> Vec<Chart> {
    if cells.iter().map(|view| view.standings.len()).sum::<usize>() > ROWS_OF_CELLS_MAX {
        return Vec::new();
    }
    let chart = |view: &CellView| {
        let chart = figure_bars(view, view.ranking.metric, options)?;
        Some(Chart { title: format!("{} at {}", chart.title, view.name), ..chart })
    };
    let mut charts: Vec<Chart> = cells.iter().filter_map(chart).collect();
    let said = charts.first().map_or_else(String::new, |chart| chart.note.clone());
    charts
        .iter_mut()
        .skip(1)
        .filter(|chart| chart.note == said)
        .for_each(|chart| chart.note.clear());
    charts
}

/// The contenders that are shown, with the name of each in the same width.
fn rows<'a>(view: &'a CellView, options: &Options) -> Vec<(&'a Standing, String)> {
    let shown: Vec<&Standing> = in_order(&view.standings, &view.ranking).take(ROWS_MAX).collect();
    let room = (options.width / NAME_SHARE).max(10);
    let widest = shown.iter().map(|one| width(&one.name).min(room)).max().unwrap_or(0);
    let named = |one: &'a Standing| (one, padded(&cut(&one.name, widest, options.unicode), widest));
    shown.into_iter().map(named).collect()
}

/// The line below a chart that does not show everybody.
fn others(view: &CellView) -> Option<String> {
    let hidden = view.standings.len().saturating_sub(ROWS_MAX);
    (hidden > 0).then(|| format!("{INDENT}and {hidden} more, see the table below"))
}

/// Columns that a plot has beside the other parts of a row; `None` if they are too few for one.
fn plot_columns(options: &Options, beside: usize) -> Option<usize> {
    let columns = options.width.saturating_sub(beside).min(PLOT.1);
    (columns >= PLOT.0).then_some(columns)
}

/// The values of a contender's visits, lowest and highest.
fn range(view: &CellView, contender: usize, metric: Metric) -> Option<(f64, f64)> {
    let values = view.run.measured(contender).filter_map(|visit| visit.value(metric));
    let usable = values.filter(|value| value.is_finite() && *value > 0.0);
    usable.fold(None, |seen, value| {
        let (low, high) = seen.unwrap_or((value, value));
        Some((f64::min(low, value), f64::max(high, value)))
    })
}

/// A bar: where it is solid, where its mark is, where it ends; shares of the plot, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bar {
    low: f64,
    middle: f64,
    high: f64,
}

/// The figures of a metric, longest bar best. Of a metric of which less is better, a bar is the least figure over its
/// own, so that longer is better there too.
fn figure_bars(view: &CellView, metric: Metric, options: &Options) -> Option<Chart> {
    let rows = rows(view, options);
    let more_is_better = metric.more_is_better();
    let figures: Vec<Option<(f64, (f64, f64))>> = rows
        .iter()
        .map(|(one, _)| {
            let value = one.value(metric).filter(|value| value.is_finite() && *value > 0.0)?;
            let (low, high) = range(view, one.index, metric).unwrap_or((value, value));
            Some((value, (low.min(value), high.max(value))))
        })
        .collect();
    let all = figures.iter().flatten();
    let best = match more_is_better {
        true => all.map(|(_, (_, high))| *high).reduce(f64::max)?,
        false => all.map(|(_, (low, _))| *low).reduce(f64::min)?,
    };
    let bar = |(value, (low, high)): (f64, (f64, f64))| match more_is_better {
        true => Bar { low: low / best, middle: value / best, high: high / best },
        false => Bar { low: best / high, middle: best / value, high: best / low },
    };
    let texts: Vec<String> = rows.iter().map(|(one, _)| one.shown(metric)).collect();
    let widest = texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let ranges: Vec<String> = match options.width >= WIDTH_OF_RANGES {
        true => figures.iter().map(|figure| range_text(metric, *figure)).collect(),
        false => vec![String::new(); rows.len()],
    };
    let ranged = ranges.iter().map(|text| width(text)).max().unwrap_or(0);
    let name = rows.first().map_or(0, |(_, name)| width(name));
    let gaps = INDENT.len() * if ranged > 0 { 4 } else { 3 };
    let columns = plot_columns(options, name + widest + ranged + gaps)?;
    let line = |(((_, name), text), (figure, range)): (
        ((&_, &String), &String),
        (&Option<_>, &String),
    )| {
        let drawn = figure.map_or_else(String::new, |one| draw(bar(one), columns, options.unicode));
        let row = format!("{INDENT}{name}{INDENT}{}{INDENT}{drawn}", right(text, widest));
        match range.is_empty() {
            true => row.trim_end().to_owned(),
            false => format!("{}{INDENT}{range}", padded(&row, name_end(name, widest) + columns)),
        }
    };
    let named = rows.iter().map(|(one, name)| (one, name));
    let lines = named.zip(&texts).zip(figures.iter().zip(&ranges)).map(line);
    let heading = Column::metric(metric).heading();
    let mut lines: Vec<String> = lines.collect();
    lines.extend(others(view));
    Some(Chart { title: capital(&heading), note: legend(more_is_better, options), lines })
}

/// Columns of a row before its bar.
fn name_end(name: &str, figure: usize) -> usize {
    3 * INDENT.len() + width(name) + figure
}

fn range_text(metric: Metric, figure: Option<(f64, (f64, f64))>) -> String {
    let Some((_, (low, high))) = figure else { return String::new() };
    let [low, high] = [low, high].map(|value| shown(metric, Some(value)));
    if low == high { String::new() } else { format!("{low} to {high}") }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn legend(more_is_better: bool, options: &Options) -> String {
    let (spread, middle) = if options.unicode { ('\u{2592}', '\u{2503}') } else { ('-', '|') };
    let of = if more_is_better { "" } else { " (a bar is the least figure over its own)" };
    format!(
        "median over visits, longer is better{of}; {spread} spans the visits, {middle} is the median"
    )
}

fn draw(bar: Bar, columns: usize, is_unicode: bool) -> String {
    let [solid, spread, middle] =
        if is_unicode { ['\u{2588}', '\u{2592}', '\u{2503}'] } else { ['#', '-', '|'] };
    let at = |share: f64| ((share.clamp(0.0, 1.0) * columns as f64).round() as usize).max(1);
    let (low, end) = (at(bar.low), at(bar.high));
    let mark = (at(bar.middle) - 1).clamp(low - 1, end - 1);
    let column = |column: usize| match column {
        // Where the visits spread over less than a column, there is nothing to mark.
        _ if end - low < 2 => solid,
        _ if column == mark => middle,
        _ if column < low => solid,
        _ => spread,
    };
    (0..end).map(column).collect()
}

/// Every visit by the metric that ranks, block by block.
fn by_block(view: &CellView, options: &Options) -> Option<Chart> {
    let metric = view.ranking.metric;
    let blocks = view.run.visits.iter().map(|visit| visit.block as usize + 1).max()?;
    if blocks < 2 {
        return None;
    }
    let rows = rows(view, options);
    let all: Vec<Beats> =
        rows.iter().map(|(one, _)| Beats::of(&view.run, one.index, metric, blocks)).collect();
    let name = rows.first().map_or(0, |(_, name)| width(name));
    let columns = plot_columns(options, name + 2 * INDENT.len())?;
    let span = span(all.iter());
    let line = |(beats, (_, name)): (&Beats, &(&Standing, String))| {
        format!("{INDENT}{name}{INDENT}{}", beats.line(span, columns, options.unicode))
    };
    let mut lines: Vec<String> = all.iter().zip(&rows).map(line).collect();
    lines.extend(others(view));
    let [low, high, failed, none] = match options.unicode {
        true => ['\u{2581}', '\u{2588}', '\u{d7}', '\u{b7}'],
        false => ['1', '8', 'x', '.'],
    };
    let each = blocks.div_ceil(columns);
    let joined = if each > 1 { format!("; {each} blocks a column") } else { String::new() };
    let note = format!(
        "by {}, over the contender's own median: {low} is {} worse or more, {high} as much better; {failed} \
         failed, {none} no visit{joined}",
        metric.info().quantity,
        ratio(1.0 + span)
    );
    Some(Chart { title: "Visits by block".to_owned(), note, lines })
}

/// Percentiles of service time on one logarithmic scale, faster to the right.
fn percentiles(view: &CellView, options: &Options) -> Option<Chart> {
    let rows = rows(view, options);
    let millis = |one: &Standing, q| one.service.quantile(q).map(Nanos::as_millis_f64);
    let of = |one: &Standing| MARKS.map(|(q, ..)| millis(one, q).filter(|&ms| ms > 0.0));
    let all: Vec<[Option<f64>; MARKS.len()]> = rows.iter().map(|(one, _)| of(one)).collect();
    let known = || all.iter().flatten().flatten().copied();
    let (fast, slow) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
    let name = rows.first().map_or(0, |(_, name)| width(name));
    let figures: Vec<String> = match options.width >= WIDTH_OF_RANGES {
        true => all.iter().map(percentile_text).collect(),
        false => vec![String::new(); rows.len()],
    };
    let beside = figures.iter().map(|text| width(text)).max().unwrap_or(0);
    let gaps = INDENT.len() * if beside > 0 { 3 } else { 2 };
    let columns = plot_columns(options, name + beside + gaps)?;
    let place = |ms: f64| {
        let whole = (slow / fast).ln();
        let share = if whole > 0.0 { (slow / ms).ln() / whole } else { 1.0 };
        ((share * (columns - 1) as f64).round() as usize).min(columns - 1)
    };
    let line =
        |((marks, (_, name)), text): ((&[Option<f64>; MARKS.len()], &(_, String)), &String)| {
            let strip = strip(marks.map(|mark| mark.map(place)), columns, options.unicode);
            format!("{INDENT}{name}{INDENT}{strip}{INDENT}{text}").trim_end().to_owned()
        };
    let mut lines: Vec<String> = all.iter().zip(&rows).zip(&figures).map(line).collect();
    lines.push(format!("{INDENT}{}{INDENT}{}", " ".repeat(name), scale(slow, fast, columns)));
    lines.extend(others(view));
    let drawn = (0..MARKS.len()).filter(|&at| all.iter().any(|marks| marks[at].is_some()));
    let mark = |at: usize| {
        let (_, name, symbols) = MARKS[at];
        format!("{} {name}", symbols[usize::from(options.unicode)])
    };
    let marks: Vec<String> = drawn.map(mark).collect();
    let note =
        format!("{}; logarithmic, faster is right; of all visits together", marks.join(", "));
    Some(Chart { title: "Service time".to_owned(), note, lines })
}

/// "p50 412us, p99 1.2ms".
fn percentile_text(marks: &[Option<f64>; MARKS.len()]) -> String {
    let named = |at: usize| Some(format!("{} {}", MARKS[at].1, time(marks[at]?)));
    [0, 2].into_iter().filter_map(named).collect::<Vec<_>>().join(", ")
}

/// A line from the slowest mark to the fastest, with the marks on it.
fn strip(places: [Option<usize>; MARKS.len()], columns: usize, is_unicode: bool) -> String {
    let known = || places.iter().flatten().copied();
    let (Some(from), Some(to)) = (known().min(), known().max()) else { return String::new() };
    let between = if is_unicode { '\u{2500}' } else { '-' };
    let mut cells: Vec<char> =
        (0..columns).map(|at| if (from..=to).contains(&at) { between } else { ' ' }).collect();
    for (place, (.., symbols)) in places.iter().zip(MARKS) {
        if let Some(place) = place {
            cells[*place] = symbols[usize::from(is_unicode)];
        }
    }
    cells.into_iter().collect()
}

/// The ends of the scale, the slow one at the left.
fn scale(slow: f64, fast: f64, columns: usize) -> String {
    let (left, end) = (time(slow), time(fast));
    let gap = columns.saturating_sub(width(&left) + width(&end));
    if gap == 0 { left } else { format!("{left}{}{end}", " ".repeat(gap)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_solid_to_its_lowest_visit_and_marked_at_its_median() {
        let bar = |low, middle, high| draw(Bar { low, middle, high }, 10, false);
        assert_eq!(bar(1.0, 1.0, 1.0), "##########");
        assert_eq!(bar(0.5, 0.8, 1.0), "#####--|--");
        assert_eq!(bar(0.42, 0.44, 0.46), "#####", "a spread below a column is not drawn");
        assert_eq!(bar(1e-9, 1e-9, 1e-9), "#", "anything at all is seen");
        assert_eq!(bar(0.1, 0.1, 1.0), "|---------");
    }

    #[test]
    fn marks_lie_on_a_line_and_a_later_one_hides_an_earlier_one() {
        assert_eq!(strip([Some(8), Some(5), Some(2), None], 10, false), "  x--+--o ");
        assert_eq!(strip([Some(8), Some(8), None, None], 10, false), "        + ");
        assert_eq!(strip([None; 4], 10, false), "");
        assert_eq!(scale(12.0, 0.5, 20), "12ms           500us");
    }
}
