//! The plot of throughput over connections: a point for each cell, the fitted Universal Scalability Law as a line, and
//! points at which the generator was the limit marked as such. Owns which cells belong to one plot; must not know the
//! page it stands in. Start reading at [`growth_plots`].

use record::{Metric, Plan, RunRecord, Scalability};

use crate::cells::CellView;
use crate::drawing::Drawing;
use crate::figures::{round, significant};
use crate::lines::{HEIGHT, LineEnd, PLOT_X, PLOT_Y, WIDTH, colour, end_labels, ink};
use crate::standing::Standing;
use crate::svg::{Anchor, Scale, Svg};
use crate::wording::plain;

/// A line needs more than one point.
const LEVELS_MIN: usize = 2;
/// Points of a fitted curve.
const STEPS: usize = 60;

/// A plot and what distinguishes its cells from those of other plots.
pub(crate) struct Growth {
    /// "page=3 KB"; empty if connections are the only axis.
    pub(crate) name: String,
    pub(crate) drawing: Drawing,
}

/// One plot for each set of cells that differ in the number of connections alone.
pub(crate) fn growth_plots(run: &RunRecord, cells: &[CellView]) -> Vec<Growth> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for cell in 0..run.plan.cells.len() {
        let is_like = |group: &Vec<usize>| differ_in_connections(&run.plan, group[0], cell);
        match groups.iter_mut().find(|group| is_like(group)) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups.retain(|group| group.len() >= LEVELS_MIN);
    groups.iter().filter_map(|group| growth(run, cells, group)).collect()
}

fn differ_in_connections(plan: &Plan, one: usize, other: usize) -> bool {
    let [a, b] = [one, other].map(|cell| &plan.cells[cell].workload);
    let alike = record::Workload { connections: a.connections, ..b.clone() };
    a.connections != b.connections && *a == alike
}

/// A contender's measured points: connections, requests/s, and whether that is a lower bound.
struct Line<'a> {
    standing: &'a Standing,
    points: Vec<(f64, f64, bool)>,
}

fn growth(run: &RunRecord, cells: &[CellView], group: &[usize]) -> Option<Growth> {
    let connections = |cell: usize| f64::from(run.plan.cells[cell].workload.connections);
    let mut lines: Vec<Line> = Vec::new();
    for &cell in group {
        for standing in &cells[cell].standings {
            let Some(rate) = standing.value(Metric::Throughput).filter(|rate| *rate > 0.0) else {
                continue;
            };
            let point = (connections(cell), rate, standing.is_bound);
            match lines.iter_mut().find(|line| line.standing.number == standing.number) {
                Some(line) => line.points.push(point),
                None => lines.push(Line { standing, points: vec![point] }),
            }
        }
    }
    lines.retain(|line| line.points.len() >= LEVELS_MIN);
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let all = || lines.iter().flat_map(|line| &line.points);
    let highest = all().map(|point| point.1).reduce(f64::max)?;
    let range = |of: fn(f64, f64) -> f64| all().map(|point| point.0).reduce(of);
    let (first, last) = (range(f64::min)?, range(f64::max)?);
    let x = Scale::log((first.max(1.0), last), (PLOT_X.0 + 8.0, PLOT_X.1 - 8.0));
    let y = Scale::linear((0.0, highest * 1.06), (PLOT_Y.1, PLOT_Y.0));
    let mut svg = Svg::default();
    axes(&mut svg, &x, &y, group.iter().map(|cell| connections(*cell)));
    for line in &lines {
        let is_of = |fit: &&Scalability| {
            fit.contender == line.standing.number
                && fit.cells.iter().all(|cell| group.contains(cell))
        };
        let fit = run.analysis.scalability.iter().find(is_of);
        svg.mark_of(line.standing.number, &drawn(line, fit, &x, &y));
    }
    let end = |line: &Line<'_>| line.points.last().map(|&(n, rate, _)| (x.at(n), y.at(rate)));
    let ends: Vec<LineEnd> = lines
        .iter()
        .filter_map(|line| {
            let Standing { number, name, .. } = line.standing;
            Some(LineEnd { number: *number, name, at: end(line)? })
        })
        .collect();
    end_labels(&mut svg, &ends);
    let about = about(&lines);
    Some(Growth { name: name(&run.plan, group), drawing: Drawing { svg, height: HEIGHT, about } })
}

/// What all cells of a group share and other cells do not.
fn name(plan: &Plan, group: &[usize]) -> String {
    let parts = |cell: &usize| -> Vec<String> {
        plain(&plan.cells[*cell].name).split(", ").map(str::to_owned).collect()
    };
    let shared = parts(&group[0]).into_iter();
    let shared = shared.filter(|part| group.iter().all(|cell| parts(cell).contains(part)));
    shared.collect::<Vec<_>>().join(", ")
}

fn axes(svg: &mut Svg, x: &Scale, y: &Scale, levels: impl Iterator<Item = f64>) {
    for tick in y.ticks(6) {
        let at = y.at(tick);
        svg.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
        svg.text("t tick", (PLOT_X.0 - 8.0, at + 4.0), Anchor::End, &round(tick));
    }
    let mut levels: Vec<f64> = levels.collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let mut labelled = f64::NEG_INFINITY;
    for level in levels {
        let at = x.at(level);
        svg.line("grid", (at, PLOT_Y.0), (at, PLOT_Y.1));
        if at - labelled > 26.0 {
            svg.text("t tick", (at, PLOT_Y.1 + 18.0), Anchor::Middle, &round(level));
            labelled = at;
        }
    }
    svg.line("axis", (PLOT_X.0, PLOT_Y.1), (PLOT_X.1, PLOT_Y.1));
    svg.text("t faint", (PLOT_X.0, PLOT_Y.1 + 42.0), Anchor::Start, "connections");
    svg.text("t faint", (WIDTH, PLOT_Y.1 + 42.0), Anchor::End, "requests/s, higher is better");
}

fn drawn(line: &Line, fit: Option<&Scalability>, x: &Scale, y: &Scale) -> Svg {
    let mut svg = Svg::default();
    let Standing { number, name, .. } = line.standing;
    let at = |&(n, rate, _): &(f64, f64, bool)| (x.at(n), y.at(rate));
    let points: Vec<(f64, f64)> = match (fit, line.points.first(), line.points.last()) {
        (Some(fit), Some(first), Some(last)) => {
            let step = |step| first.0 * (last.0 / first.0).powf(step as f64 / STEPS as f64);
            (0..=STEPS).map(step).map(|n| (x.at(n), y.at(law(fit, n)))).collect()
        }
        _ => line.points.iter().map(at).collect(),
    };
    svg.path(&format!("curve {}", ink(*number)), &points, false);
    for point in &line.points {
        let &(n, rate, is_bound) = point;
        let (class, more) =
            if is_bound { ("ring", ", the generator was the limit") } else { ("end", "") };
        let title = format!("{name}, {} connections: {}/s{more}", round(n), significant(rate));
        svg.dot(&format!("{class} {}", colour(*number)), at(point), 4.2, &title);
    }
    svg
}

/// Gunther's law at a number of connections.
fn law(fit: &Scalability, n: f64) -> f64 {
    let (sigma, kappa) = (fit.sigma.value, fit.kappa.value);
    fit.lambda.value * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

fn about(lines: &[Line]) -> String {
    let each = |line: &Line| {
        let points: Vec<String> = line
            .points
            .iter()
            .map(|(n, rate, bound)| {
                format!("{}{} at {}", if *bound { ">=" } else { "" }, significant(*rate), round(*n))
            })
            .collect();
        format!("{}: {}", line.standing.name, points.join(", "))
    };
    let said: Vec<String> = lines.iter().map(each).collect();
    format!("Requests/s by number of connections. {}.", said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::cells;
    use crate::testdata;

    #[test]
    fn cells_that_differ_in_connections_alone_are_one_plot_with_every_contender() {
        let mut run = testdata::celled();
        for (cell, connections) in run.plan.cells.iter_mut().zip([1, 10, 100]) {
            cell.workload.connections = connections;
        }
        let plots = growth_plots(&run, &cells(&run));
        assert_eq!(plots.len(), 1);
        let about = &plots[0].drawing.about;
        assert!(run.plan.contenders.iter().all(|one| about.contains(&one.name)), "{about}");
        run.plan.cells[2].workload.keep_alive ^= true;
        let plots = growth_plots(&run, &cells(&run));
        assert!(!plots[0].drawing.about.contains(" at 100"), "it is another workload");
    }

    #[test]
    fn the_law_passes_through_the_rate_of_one_and_falls_behind_its_peak() {
        let of = |value| record::Coefficient { value, interval: None };
        let fit = Scalability {
            contender: 0,
            cells: vec![0],
            connections: vec![1],
            lambda: of(100.0),
            sigma: of(0.01),
            kappa: of(0.001),
            peak: Some(31.5),
            misfit_ln: 0.0,
        };
        assert_eq!(law(&fit, 1.0), 100.0);
        assert!(law(&fit, 31.5) > law(&fit, 25.0) && law(&fit, 31.5) > law(&fit, 40.0));
    }
}
