//! The plot of latency over percentiles: one curve a contender, from the median into the tail, both
//! axes logarithmic, each curve named at its end. A curve ends where its sample becomes too small.
//! Must not know the page it stands in. Start reading at [`percentiles`].

use units::Nanos;

use crate::figures::{NONE, grouped};
use crate::forest::Drawing;
use crate::standing::{Standing, span};
use crate::svg::{Anchor, Scale, Svg, spread};
use crate::table::{Column, Depth, Row, Table};

/// Width in units of the drawing.
pub(crate) const WIDTH: f64 = 880.0;
const PLOT_X: (f64, f64) = (62.0, 640.0);
const PLOT_Y: (f64, f64) = (16.0, 336.0);
const HEIGHT: f64 = 388.0;
const LABEL_X: f64 = 668.0;
const FONT: f64 = 13.0;
/// Height of a line of labels.
const LABEL_GAP: f64 = 17.0;

/// Percentiles that the axis names, with the share of requests beyond each.
pub(crate) const NAMED: [(&str, f64); 6] = [
    ("50 %", 0.5),
    ("75 %", 0.25),
    ("90 %", 0.1),
    ("99 %", 0.01),
    ("99.9 %", 0.001),
    ("99.99 %", 0.0001),
];

/// The figures of the plot.
pub(crate) fn table<'a>(shown: impl Iterator<Item = &'a Standing>) -> Table {
    let row = |standing: &Standing| {
        let quantile = |(_, beyond): &(&str, f64)| {
            let latency = standing.service.quantile(1.0 - beyond);
            latency.map_or_else(|| NONE.to_owned(), |latency| span(latency.as_millis_f64()))
        };
        Row::of(
            std::iter::once(standing.name.clone())
                .chain(NAMED.iter().map(quantile))
                .chain([grouped(standing.service.count())]),
        )
    };
    let named = NAMED.iter().map(|(name, _)| Column::figure(name, ""));
    Table {
        title: "Service time by percentile".to_owned(),
        note: String::new(),
        columns: std::iter::once(Column::text("contender"))
            .chain(named)
            .chain([Column::figure("samples", "")])
            .collect(),
        rows: shown.map(row).collect(),
        depth: Depth::Detail,
    }
}

/// Points of a curve per factor of ten in the share beyond.
const POINTS_PER_DECADE: f64 = 16.0;

/// Colours and dashes repeat after this many curves; their combinations do not repeat within 12 contenders.
pub(crate) const COLOURS: usize = 8;
/// Dash patterns; the first is solid.
pub(crate) const DASHES: usize = 5;

/// One curve: share beyond, and milliseconds.
struct Curve<'a> {
    standing: &'a Standing,
    points: Vec<(f64, f64)>,
}

/// The plot; `None` if no contender has enough samples for a median. `shown` gives the order.
pub(crate) fn percentiles<'a>(shown: impl Iterator<Item = &'a Standing>) -> Option<Drawing> {
    let curves: Vec<Curve> = shown.map(curve).filter(|curve| curve.points.len() > 1).collect();
    let all = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let least_beyond = all().map(|(beyond, _)| beyond).fold(f64::INFINITY, f64::min);
    let (low, high) =
        all().fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), (_, ms)| (l.min(ms), h.max(ms)));
    if curves.is_empty() {
        return None;
    }
    // The axis ends at the first named percentile that no curve goes beyond.
    let end =
        NAMED.iter().map(|(_, beyond)| *beyond).find(|beyond| *beyond <= least_beyond * 1.001);
    let x = Scale::log((1.0, 0.5 / end.unwrap_or(least_beyond)), PLOT_X);
    let y = Scale::log((low / 1.12, high * 1.12), (PLOT_Y.1, PLOT_Y.0));
    let mut svg = Svg::default();
    axes(&mut svg, &x, &y);
    for curve in &curves {
        let points: Vec<(f64, f64)> =
            curve.points.iter().map(|&(beyond, ms)| (x.at(0.5 / beyond), y.at(ms))).collect();
        svg.path(&format!("curve {}", ink(curve.standing.index)), &points, false);
    }
    labels(&mut svg, &curves, &x, &y);
    Some(Drawing { svg, height: HEIGHT, about: about(&curves) })
}

/// Classes of a contender's curve: a colour and a dash pattern.
fn ink(index: usize) -> String {
    format!("c{} d{}", index % COLOURS, index % DASHES)
}

fn curve(standing: &Standing) -> Curve<'_> {
    let last = (POINTS_PER_DECADE * (0.5f64 / 0.0001).log10()).round() as i32;
    let points = (0..=last).map_while(|step| {
        let beyond = 0.5 * 10f64.powf(-f64::from(step) / POINTS_PER_DECADE);
        let latency = standing.service.quantile(1.0 - beyond)?;
        Some((beyond, latency.as_millis_f64()))
    });
    Curve { standing, points: points.collect() }
}

fn axes(svg: &mut Svg, x: &Scale, y: &Scale) {
    for tick in y.ticks(7) {
        let at = y.at(tick);
        svg.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
        let text = Nanos((tick * 1e6).round() as u64).to_string();
        svg.text("t tick", (PLOT_X.0 - 8.0, at + 4.0), Anchor::End, &text);
    }
    for (name, beyond) in
        NAMED.iter().filter(|(_, beyond)| x.holds((0.5 / beyond * 0.999).max(1.0)))
    {
        let at = x.at(0.5 / beyond);
        svg.line("grid", (at, PLOT_Y.0), (at, PLOT_Y.1));
        svg.text("t tick", (at, PLOT_Y.1 + 18.0), Anchor::Middle, name);
    }
    svg.line("axis", (PLOT_X.0, PLOT_Y.1), (PLOT_X.1, PLOT_Y.1));
    let caption = "share of requests that were at least as fast";
    svg.text("t faint", (PLOT_X.0, PLOT_Y.1 + 42.0), Anchor::Start, caption);
}

/// Names at the ends of the curves, moved apart, each tied to its end by a thin line.
fn labels(svg: &mut Svg, curves: &[Curve], x: &Scale, y: &Scale) {
    let end = |curve: &Curve| curve.points.last().map(|&(b, ms)| (x.at(0.5 / b), y.at(ms), ms));
    let ends: Vec<(&Curve, (f64, f64, f64))> =
        curves.iter().filter_map(|curve| Some((curve, end(curve)?))).collect();
    let wanted: Vec<f64> = ends.iter().map(|(_, (_, at, _))| *at).collect();
    let places = spread(&wanted, LABEL_GAP, (PLOT_Y.0 + 6.0, PLOT_Y.1));
    for ((curve, (from_x, from_y, _)), place) in ends.into_iter().zip(places) {
        let standing = curve.standing;
        let colour = format!("c{}", standing.index % COLOURS);
        svg.path(
            &format!("tie {colour}"),
            &[(from_x, from_y), (LABEL_X - 22.0, place), (LABEL_X - 5.0, place)],
            false,
        );
        let at = (LABEL_X, place + 4.5);
        let class = format!("t ink {colour}");
        svg.fitted(&class, at, Anchor::Start, &standing.name, (WIDTH - LABEL_X, FONT));
    }
}

fn about(curves: &[Curve]) -> String {
    let each = |curve: &Curve| {
        let ends = curve.points.first().zip(curve.points.last());
        let (first, last) = ends.expect("a curve has at least two points");
        let percent = crate::figures::significant(100.0 - 100.0 * last.0);
        format!("{}: median {}, {percent} % {}", curve.standing.name, span(first.1), span(last.1))
    };
    let said: Vec<String> = curves.iter().map(each).collect();
    format!("Service time by percentile. {}.", said.join("; "))
}
