//! The plot of latency over percentiles: one curve a contender, from the median into the tail, both
//! axes logarithmic, each curve named at its end. A curve ends where its sample becomes too small.
//! Must not know the page it stands in. Start reading at [`percentiles`].

use stats::Histogram;
use units::Nanos;

use crate::drawing::Drawing;
use crate::figures::{NONE, grouped};
use crate::lines::{HEIGHT, LineEnd, PLOT_X, PLOT_Y, colour, end_labels, ink};
use crate::standing::{Standing, span};
use crate::svg::{Anchor, Scale, Svg};
use crate::table::{Column, Depth, Row, Table};

/// Percentiles that the axis names, with the share of requests beyond each.
pub(crate) const NAMED: [(&str, f64); 6] = [
    ("50 %", 0.5),
    ("75 %", 0.25),
    ("90 %", 0.1),
    ("99 %", 0.01),
    ("99.9 %", 0.001),
    ("99.99 %", 0.0001),
];

/// Spans of time, and whose they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'a> {
    pub(crate) name: &'a str,
    /// Number of the contender in the run, for its colour.
    pub(crate) number: usize,
    pub(crate) spans: &'a Histogram,
}

impl<'a> From<&'a Standing> for Sample<'a> {
    fn from(standing: &'a Standing) -> Self {
        Self { name: &standing.name, number: standing.number, spans: &standing.service }
    }
}

/// The figures of the plot.
pub(crate) fn table<'a>(shown: impl Iterator<Item = Sample<'a>>) -> Table {
    let row = |sample: Sample| {
        let quantile = |(_, beyond): &(&str, f64)| {
            let latency = sample.spans.quantile(1.0 - beyond);
            latency.map_or_else(|| NONE.to_owned(), |latency| span(latency.as_millis_f64()))
        };
        Row::of(
            std::iter::once(sample.name.to_owned())
                .chain(NAMED.iter().map(quantile))
                .chain([grouped(sample.spans.count())]),
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

/// One curve: share beyond, and milliseconds.
struct Curve<'a> {
    sample: Sample<'a>,
    points: Vec<(f64, f64)>,
}

/// The plot; `None` if none has enough samples for a median.
pub(crate) fn percentiles<'a>(shown: impl Iterator<Item = Sample<'a>>) -> Option<Drawing> {
    let curves: Vec<Curve> = shown.map(curve).filter(|curve| curve.points.len() > 1).collect();
    let all = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let least_beyond = all().map(|(beyond, _)| beyond).fold(f64::INFINITY, f64::min);
    let (low, high) =
        all().fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), (_, ms)| (l.min(ms), h.max(ms)));
    if curves.is_empty() {
        return None;
    }
    // The axis ends at the first named percentile that no curve goes beyond.
    let named =
        NAMED.iter().map(|(_, beyond)| *beyond).find(|beyond| *beyond <= least_beyond * 1.001);
    let x = Scale::log((1.0, 0.5 / named.unwrap_or(least_beyond)), PLOT_X);
    let y = Scale::log((low / 1.12, high * 1.12), (PLOT_Y.1, PLOT_Y.0));
    let mut svg = Svg::default();
    axes(&mut svg, &x, &y);
    let ends: Vec<LineEnd> = curves.iter().map(|curve| end(curve, &x, &y)).collect();
    for (Curve { sample, points }, end) in curves.iter().zip(&ends) {
        let drawn: Vec<(f64, f64)> =
            points.iter().map(|&(beyond, ms)| (x.at(0.5 / beyond), y.at(ms))).collect();
        let mut line = Svg::default();
        line.path(&format!("curve {}", ink(sample.number)), &drawn, false);
        let samples = grouped(sample.spans.count());
        let title = format!("{}: {samples} requests, too few for further percentiles", sample.name);
        line.dot(&format!("end {}", colour(sample.number)), end.at, 3.4, &title);
        svg.mark_of(sample.number, &line);
    }
    end_labels(&mut svg, &ends);
    Some(Drawing { svg, height: HEIGHT, about: about(&curves) })
}

fn curve(sample: Sample<'_>) -> Curve<'_> {
    let last = (POINTS_PER_DECADE * (0.5f64 / 0.0001).log10()).round() as i32;
    let points = (0..=last).map_while(|step| {
        let beyond = 0.5 * 10f64.powf(-f64::from(step) / POINTS_PER_DECADE);
        let latency = sample.spans.quantile(1.0 - beyond)?;
        Some((beyond, latency.as_millis_f64()))
    });
    Curve { sample, points: points.collect() }
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
    let caption = "share of requests that were at least as fast; lower curves are better";
    svg.text("t faint", (PLOT_X.0, PLOT_Y.1 + 42.0), Anchor::Start, caption);
}

/// The end of a curve, where its sample becomes too small.
fn end<'a>(curve: &'a Curve, x: &Scale, y: &Scale) -> LineEnd<'a> {
    let &(beyond, ms) = curve.points.last().expect("a curve has at least two points");
    let Sample { number, name, .. } = curve.sample;
    LineEnd { number, name, at: (x.at(0.5 / beyond), y.at(ms)) }
}

fn about(curves: &[Curve]) -> String {
    let each = |curve: &Curve| {
        let ends = curve.points.first().zip(curve.points.last());
        let (first, last) = ends.expect("a curve has at least two points");
        let percent = crate::figures::significant(100.0 - 100.0 * last.0);
        format!("{}: median {}, {percent} % {}", curve.sample.name, span(first.1), span(last.1))
    };
    let said: Vec<String> = curves.iter().map(each).collect();
    format!("Service time by percentile. {}.", said.join("; "))
}
