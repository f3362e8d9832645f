//! The plot of latency over offered rate: every try of a search, and the knee of each contender as the interval between
//! the highest rate that met the goals and the lowest that missed them. Must not know the page it stands in. Start
//! reading at [`knee_plot`].

use record::{SearchRecord, Try};
use units::Nanos;

use crate::cells::CellView;
use crate::drawing::Drawing;
use crate::figures::{round, significant};
use crate::lines::{HEIGHT, LineEnd, PLOT_X, PLOT_Y, WIDTH, colour, end_labels};
use crate::standing::{Standing, span};
use crate::svg::{Anchor, Scale, Svg};

/// A contender and its searches.
struct Line<'a> {
    standing: &'a Standing,
    searches: Vec<&'a SearchRecord>,
}

impl Line<'_> {
    /// Offered rate, p99 of response time in milliseconds, and whether it met the goals.
    fn points(&self) -> impl Iterator<Item = (f64, f64, bool)> {
        let point = |one: &Try| Some((one.rate.0, one.p99_ms?, one.is_good()));
        self.searches.iter().flat_map(|search| &search.tries).filter_map(point)
    }

    /// From the lowest of the highest good rates to the highest of the lowest bad ones, over visits.
    fn knee(&self) -> Option<(f64, f64)> {
        let good = self.searches.iter().filter_map(|one| one.highest_good);
        let bad = self.searches.iter().filter_map(|one| one.lowest_bad);
        let low = good.map(|rate| rate.0).reduce(f64::min)?;
        Some((low, bad.map(|rate| rate.0).reduce(f64::max)?.max(low)))
    }
}

/// The plot of a cell; `None` if the run did not search.
pub(crate) fn knee_plot<'a>(view: &'a CellView) -> Option<Drawing> {
    let line = |standing: &'a Standing| {
        let visits = view.run.measured(standing.index);
        let searches = visits.filter_map(|visit| visit.search.as_ref());
        Line { standing, searches: searches.collect() }
    };
    let lines: Vec<Line> = view.standings.iter().map(line).collect();
    let all =
        || lines.iter().flat_map(Line::points).filter(|(rate, ms, _)| *rate > 0.0 && *ms > 0.0);
    let range = |of: &dyn Fn((f64, f64, bool)) -> f64| {
        let low = all().map(of).reduce(f64::min)?;
        Some((low, all().map(of).reduce(f64::max)?))
    };
    let (rates, latencies) = (range(&|point| point.0)?, range(&|point| point.1)?);
    let x = Scale::log((rates.0 / 1.05, rates.1 * 1.05), PLOT_X);
    let y = Scale::log((latencies.0 / 1.2, latencies.1 * 1.2), (PLOT_Y.1, PLOT_Y.0));
    let mut svg = Svg::default();
    axes(&mut svg, &x, &y);
    let mut ends = Vec::new();
    for line in &lines {
        let Standing { number, name, .. } = line.standing;
        svg.mark_of(*number, &drawn(line, &x, &y));
        let last = line.points().max_by(|a, b| a.0.total_cmp(&b.0));
        ends.extend(last.map(|(rate, ms, _)| LineEnd {
            number: *number,
            name,
            at: (x.at(rate), y.at(ms)),
        }));
    }
    end_labels(&mut svg, &ends);
    Some(Drawing { svg, height: HEIGHT, about: about(&lines) })
}

fn axes(svg: &mut Svg, x: &Scale, y: &Scale) {
    for tick in y.ticks(6) {
        let at = y.at(tick);
        svg.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
        let text = Nanos((tick * 1e6).round() as u64).to_string();
        svg.text("t tick", (PLOT_X.0 - 8.0, at + 4.0), Anchor::End, &text);
    }
    for tick in x.ticks(7) {
        let at = x.at(tick);
        svg.line("grid", (at, PLOT_Y.0), (at, PLOT_Y.1));
        svg.text("t tick", (at, PLOT_Y.1 + 18.0), Anchor::Middle, &round(tick));
    }
    svg.line("axis", (PLOT_X.0, PLOT_Y.1), (PLOT_X.1, PLOT_Y.1));
    svg.text("t faint", (PLOT_X.0, PLOT_Y.1 + 42.0), Anchor::Start, "offered requests/s");
    let caption = "p99 of response time; filled: met the goals; shaded: the knee";
    svg.text("t faint", (WIDTH, PLOT_Y.1 + 42.0), Anchor::End, caption);
}

fn drawn(line: &Line, x: &Scale, y: &Scale) -> Svg {
    let mut svg = Svg::default();
    let Standing { number, name, .. } = line.standing;
    let colour = colour(*number);
    if let Some((low, high)) = line.knee() {
        let (from, to) = (x.at(low), x.at(high));
        let size = ((to - from).max(1.5), PLOT_Y.1 - PLOT_Y.0);
        svg.rect(&format!("knee {colour}"), (from, PLOT_Y.0), size, 0.0);
    }
    let mut points: Vec<(f64, f64, bool)> = line.points().collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (rate, ms, is_good) in points {
        let (class, word) = if is_good { ("end", "met") } else { ("ring", "not met") };
        let title = format!("{name} at {}/s: p99 {}, goals {word}", significant(rate), span(ms));
        svg.dot(&format!("{class} {colour}"), (x.at(rate), y.at(ms)), 4.0, &title);
    }
    svg
}

fn about(lines: &[Line]) -> String {
    let each = |line: &Line| {
        let name = &line.standing.name;
        match line.knee() {
            Some((low, high)) => {
                format!("{name}: from {} to {} requests/s", significant(low), significant(high))
            }
            None => format!("{name}: not found"),
        }
    };
    let said: Vec<String> = lines.iter().map(each).collect();
    format!("Latency over offered rate. The knee lies, {}.", said.join("; "))
}

#[cfg(test)]
mod tests {
    use record::{Limit, SearchEnding, parse_goals};
    use units::{PerSecond, Share};

    use super::*;
    use crate::cells::cells;
    use crate::testdata;

    /// A search whose tries have their p99 from the made-up load.
    fn search(rates: &[f64], (good, bad): (f64, f64)) -> SearchRecord {
        let load = testdata::load();
        SearchRecord {
            format: SearchRecord::FORMAT.to_owned(),
            goals: parse_goals("p99<10s").unwrap(),
            low: None,
            high: None,
            precision: Share(0.05),
            repeats: 3,
            tries_max: 40,
            tries: rates.iter().map(|&rate| Try::of(PerSecond(rate), &[], &load)).collect(),
            highest_good: Some(PerSecond(good)),
            lowest_bad: Some(PerSecond(bad)),
            limit: Limit::Server,
            ending: SearchEnding::Narrow,
            plan: None,
        }
    }

    #[test]
    fn the_knee_is_an_interval_over_all_visits_and_every_try_is_a_point() {
        let mut run = testdata::run_with(2);
        let rates = [1000.0, 2000.0, 4000.0];
        let of = |visit: &&mut record::Visit| visit.contender == 0;
        for visit in run.visits.iter_mut().filter(of) {
            visit.search = Some(search(&rates, (2000.0, 2200.0)));
        }
        run.visits.iter_mut().find(of).unwrap().search = Some(search(&rates, (1900.0, 2500.0)));
        let view = &cells(&run)[0];
        let searches = view.run.measured(0).filter_map(|visit| visit.search.as_ref()).collect();
        let line = Line { standing: &view.standings[0], searches };
        assert_eq!(line.knee(), Some((1900.0, 2500.0)));
        let drawing = knee_plot(view).unwrap();
        let drawn = drawing.svg.finish("knee", (WIDTH, drawing.height), "t", &drawing.about);
        assert_eq!(drawn.matches("<circle").count(), rates.len() * run.measured(0).count());
        assert!(drawing.about.contains(": not found"), "{}", drawing.about);
    }
}
