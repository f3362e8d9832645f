//! The plot of every visit: one lane for each contender, blocks from left to right, each visit as a point at its
//! distance from the contender's own median. It shows drift, outliers and clusters, which a median hides. Must not
//! know the page it stands in. Start reading at [`visit_plot`].

use record::{Metric, RunRecord, VisitState};

use crate::drawing::Drawing;
use crate::standing::{Standing, median, shown};
use crate::svg::{Anchor, Scale, Svg};
use crate::table::{Column, Depth, Row, Table};
use crate::wording::name_of;

/// Width in units of the drawing.
pub(crate) const WIDTH: f64 = 470.0;
/// From the middle of a lane to where its visits end.
const EDGE: f64 = LANE * 0.42;
/// Width of a character beside an arrow.
const CHAR: f64 = 6.5;
const PLOT: (f64, f64) = (136.0, 392.0);
const TOP: f64 = 12.0;
const LANE: f64 = 38.0;
const FONT: f64 = 13.0;
/// A lane spans at least the first share of the median on either side, so that noise of a thousandth does not look
/// large, and at most the second, so that one outlier does not flatten all lanes.
const SPAN: (f64, f64) = (0.05, 0.5);

/// The plot for a metric; `None` if no visit was made.
pub(crate) fn visit_plot<'a>(
    record: &RunRecord,
    lanes: impl Iterator<Item = &'a Standing>,
    metric: Metric,
) -> Option<Drawing> {
    let lanes: Vec<(&Standing, Option<f64>)> =
        lanes.map(|standing| (standing, own_median(record, standing.index, metric))).collect();
    let last_block = record.visits.iter().map(|visit| visit.block).max()?;
    let x = Scale::linear((-0.5, f64::from(last_block) + 0.5), PLOT);
    let span = span(record, &lanes, metric);
    let bottom = TOP + lanes.len() as f64 * LANE;
    let mut svg = Svg::default();
    for (at, lane) in lanes.iter().enumerate() {
        let middle = TOP + (at as f64 + 0.5) * LANE;
        let y = Scale::linear((-span, span), (middle + EDGE, middle - EDGE));
        draw_lane(&mut svg, record, *lane, metric, &x, &y);
        svg.line("rule", (0.0, middle + LANE / 2.0), (WIDTH, middle + LANE / 2.0));
    }
    blocks_axis(&mut svg, &x, last_block, bottom);
    let percent = (100.0 * span).round();
    let captions = [
        format!("each lane: \u{b1} {percent} % of its own median, which stands at the right"),
        "arrow: a visit beyond the lane, with its value where there is room".to_owned(),
    ];
    for (caption, y) in captions.iter().zip([40.0, 56.0]) {
        svg.text("t faint", (0.0, bottom + y), Anchor::Start, caption);
    }
    let about = about(record, &lanes, metric, span);
    Some(Drawing { svg, height: bottom + 68.0, about })
}

/// Every metric that was measured, one row a visit.
pub(crate) fn table(record: &RunRecord) -> Table {
    let is_measured = |&metric: &Metric| record.visits.iter().any(|v| v.value(metric).is_some());
    let metrics: Vec<Metric> = Metric::all().filter(is_measured).collect();
    let row = |visit: &record::Visit| {
        let name = name_of(&record.plan.contenders, visit.contender);
        let place = [visit.block + 1, visit.position + 1].map(|n| n.to_string());
        let values = metrics.iter().map(|&metric| shown(metric, visit.value(metric)));
        Row::of(std::iter::once(name).chain(place).chain(values))
    };
    Table {
        title: "Every visit".to_owned(),
        note: String::new(),
        columns: [
            Column::text("contender"),
            Column::figure("block", ""),
            Column::figure("position", ""),
        ]
        .into_iter()
        .chain(metrics.iter().map(|&metric| Column::metric(metric)))
        .collect(),
        rows: record.visits.iter().map(row).collect(),
        depth: Depth::Detail,
    }
}

/// Median over visits, of quantiles too: a lane shows visits, not the merged histogram.
fn own_median(record: &RunRecord, contender: usize, metric: Metric) -> Option<f64> {
    median(record.measured(contender).filter_map(|visit| visit.value(metric)))
        .filter(|middle| *middle > 0.0)
}

/// Largest distance from a median, as a share of it, within [`SPAN`].
fn span(record: &RunRecord, lanes: &[(&Standing, Option<f64>)], metric: Metric) -> f64 {
    let distances = lanes.iter().filter_map(|&(standing, middle)| {
        let values = record.measured(standing.index).filter_map(|visit| visit.value(metric));
        let middle = middle?;
        Some(values.map(|value| (value / middle - 1.0).abs()).fold(0.0, f64::max))
    });
    let widest = distances.fold(0.0, f64::max).clamp(SPAN.0, SPAN.1);
    (100.0 * widest).ceil() / 100.0
}

fn draw_lane(
    svg: &mut Svg,
    record: &RunRecord,
    (standing, middle): (&Standing, Option<f64>),
    metric: Metric,
    x: &Scale,
    y: &Scale,
) {
    let centre = y.at(0.0);
    let room = (PLOT.0 - 16.0, FONT);
    svg.fitted("t name", (0.0, centre + 4.5), Anchor::Start, &standing.name, room);
    svg.line("lane", (PLOT.0, centre), (PLOT.1, centre));
    svg.text("t said", (WIDTH, centre + 4.5), Anchor::End, &shown(metric, middle));
    let counts = |visit: &&record::Visit| {
        visit.contender == standing.index && visit.state != VisitState::Disturbed
    };
    // Arrows at the lower and at the upper edge, with their values.
    let mut arrows = [Vec::new(), Vec::new()];
    for visit in record.visits.iter().filter(counts) {
        let at = x.at(f64::from(visit.block));
        let (block, position) = (visit.block + 1, visit.position + 1);
        let place = format!("{}, block {block}, place {position} in it", standing.name);
        match (&visit.state, visit.value(metric), middle) {
            (VisitState::Measured, Some(value), Some(middle)) => {
                let title = format!("{place}: {}", shown(metric, Some(value)));
                let off = value / middle - 1.0;
                if y.holds(off) {
                    svg.dot("visit", (at, y.at(off)), 3.6, &title);
                } else {
                    arrows[usize::from(off > 0.0)].push((at, shown(metric, Some(value))));
                    beyond(svg, (at, y.at(off)), off.signum(), &title);
                }
            }
            _ => {
                let (low, high) = (centre - 4.0, centre + 4.0);
                svg.line("lost", (at - 4.0, low), (at + 4.0, high));
                svg.line("lost", (at - 4.0, high), (at + 4.0, low));
                svg.dot("target", (at, centre), 6.0, &format!("{place}: not measured"));
            }
        }
    }
    let [lower, upper] = arrows;
    values(svg, lower, centre + EDGE - 1.0);
    values(svg, upper, centre - EDGE + 7.0);
}

/// A visit beyond its lane: an arrow in its direction.
fn beyond(svg: &mut Svg, (x, y): (f64, f64), way: f64, title: &str) {
    let tip = y - 1.0 * way;
    svg.path("lost-way", &[(x, tip), (x - 4.5, tip + 7.0 * way), (x + 4.5, tip + 7.0 * way)], true);
    svg.dot("target", (x, y), 7.0, title);
}

/// Values of arrows of one edge, each at the right of its arrow, where neither the next arrow nor the end of the plot is
/// in the way.
fn values(svg: &mut Svg, mut arrows: Vec<(f64, String)>, y: f64) {
    arrows.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (index, (x, value)) in arrows.iter().enumerate() {
        let next = arrows.get(index + 1).map_or(PLOT.1, |(x, _)| x - 7.0);
        if x + 7.0 + value.chars().count() as f64 * CHAR <= next {
            svg.text("t guided", (x + 7.0, y), Anchor::Start, value);
        }
    }
}

fn blocks_axis(svg: &mut Svg, x: &Scale, last_block: u32, bottom: f64) {
    let stride = (last_block as usize / 12 + 1).max(1);
    for block in (0..=last_block).step_by(stride) {
        let at = (x.at(f64::from(block)), bottom + 17.0);
        svg.text("t tick", at, Anchor::Middle, &(block + 1).to_string());
    }
    svg.text("t tick", (PLOT.0 - 12.0, bottom + 17.0), Anchor::End, "block");
}

fn about(
    record: &RunRecord,
    lanes: &[(&Standing, Option<f64>)],
    metric: Metric,
    span: f64,
) -> String {
    let visits = record.visits.len();
    let percent = (100.0 * span).round();
    let said: Vec<String> = lanes
        .iter()
        .map(|(standing, middle)| format!("{} {}", standing.name, shown(metric, *middle)))
        .collect();
    format!(
        "{}: {visits} visits, each within {percent} % of the median of its contender or at the \
         edge. Medians: {}.",
        metric.info().title,
        said.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use record::Visit;

    use super::*;
    use crate::standing::standings;
    use crate::testdata;

    #[test]
    fn a_visit_beyond_its_lane_is_an_arrow_with_its_value_and_the_rest_are_points() {
        let mut run = testdata::run_with(2);
        let drawn = |run: &RunRecord| {
            let standings = standings(run);
            let drawing = visit_plot(run, standings.iter(), Metric::Throughput).unwrap();
            drawing.svg.finish("v", (WIDTH, drawing.height), "t", &drawing.about)
        };
        let visits = run.visits.len();
        assert_eq!(drawn(&run).matches("class=\"visit\"").count(), visits);
        let first = run.visits.iter_mut().find(|visit| visit.contender == 0).unwrap();
        first.rate_per_s = Some(12.5);
        let svg = drawn(&run);
        assert_eq!(svg.matches("class=\"visit\"").count(), visits - 1);
        assert_eq!(svg.matches("class=\"lost-way\"").count(), 1);
        assert!(svg.contains(">12.5</text>"), "{svg}");
        // Of many arrows beside each other, those with room have their values.
        let visit = run.visits.iter().find(|visit| visit.contender == 0).unwrap().clone();
        run.visits = (0..90)
            .map(|block| {
                let rate = if block < 30 { 12.5 } else { 90_000.0 };
                Visit { block, rate_per_s: Some(rate), ..visit.clone() }
            })
            .collect();
        let svg = drawn(&run);
        assert_eq!(svg.matches("class=\"lost-way\"").count(), 30);
        let values = svg.matches(">12.5</text>").count();
        assert!((1..15).contains(&values), "{values}");
    }
}
