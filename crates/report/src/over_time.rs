//! The plot of a load over time: requests/s above, service time below, on one time axis. Must not know the page it
//! stands in; the page's script draws it too, so that it can be explored. Start reading at [`over_time`].

use record::LoadRecord;
use units::Nanos;

use crate::drawing::Drawing;
use crate::figures::{round, significant};
use crate::lines::WIDTH;
use crate::svg::{Anchor, Scale, Svg};

const PLOT_X: (f64, f64) = (62.0, 700.0);
const RATE_Y: (f64, f64) = (16.0, 136.0);
const LATENCY_Y: (f64, f64) = (166.0, 306.0);
const HEIGHT: f64 = 344.0;
/// Fewer intervals are no course.
const INTERVALS_MIN: usize = 3;
const NAMES_X: f64 = 708.0;

/// The drawing; `None` for a load of too few intervals.
pub(crate) fn over_time(load: &LoadRecord) -> Option<Drawing> {
    let whole: Vec<_> = load.intervals.iter().filter(|one| one.length > Nanos::ZERO).collect();
    if whole.len() < INTERVALS_MIN {
        return None;
    }
    let middle = |one: &record::Interval| (one.start + Nanos(one.length.0 / 2)).as_secs_f64();
    let rate = |ok: u64, one: &record::Interval| ok as f64 / one.length.as_secs_f64();
    let ok: Vec<(f64, f64)> = whole.iter().map(|one| (middle(one), rate(one.ok, one))).collect();
    let failed: Vec<(f64, f64)> =
        whole.iter().map(|one| (middle(one), rate(one.errors.total(), one))).collect();
    let quantile = |q: f64| -> Vec<(f64, f64)> {
        let millis = |one: &&record::Interval| {
            Some((middle(one), one.service.quantile(q)?.as_millis_f64().max(1e-6)))
        };
        whole.iter().copied().filter_map(|one| millis(&one)).collect()
    };
    let latencies = [("p50", quantile(0.5), "c0"), ("p99", quantile(0.99), "c1")];
    let end = whole.last()?.end().as_secs_f64();
    let x = Scale::linear((0.0, end), PLOT_X);
    let mut svg = Svg::default();
    let most = ok.iter().chain(&failed).map(|point| point.1).fold(0.0, f64::max);
    let y = Scale::linear((0.0, most.max(f64::MIN_POSITIVE) * 1.05), (RATE_Y.1, RATE_Y.0));
    for tick in y.ticks(4) {
        tick_line(&mut svg, y.at(tick), &round(tick));
    }
    line(&mut svg, "c0", "ok/s", &ok, &x, &y);
    if failed.iter().any(|point| point.1 > 0.0) {
        line(&mut svg, "c1 d2", "failed/s", &failed, &x, &y);
    }
    let all = || latencies.iter().flat_map(|(_, points, _)| points).map(|point| point.1);
    if let (Some(low), Some(high)) = (all().reduce(f64::min), all().reduce(f64::max)) {
        let y = Scale::log((low / 1.15, high * 1.15), (LATENCY_Y.1, LATENCY_Y.0));
        for tick in y.ticks(5) {
            tick_line(&mut svg, y.at(tick), &Nanos((tick * 1e6).round() as u64).to_string());
        }
        for (name, points, class) in &latencies {
            line(&mut svg, class, name, points, &x, &y);
        }
    }
    for tick in x.ticks(10) {
        svg.text("t tick", (x.at(tick), LATENCY_Y.1 + 18.0), Anchor::Middle, &round(tick));
    }
    for bottom in [RATE_Y.1, LATENCY_Y.1] {
        svg.line("axis", (PLOT_X.0, bottom), (PLOT_X.1, bottom));
    }
    svg.text("t faint", (PLOT_X.1, LATENCY_Y.1 + 34.0), Anchor::End, "seconds since the start");
    let rates = ok.iter().map(|point| point.1);
    let about = format!(
        "Good replies per second over {} s: from {} to {}.",
        significant(end),
        significant(rates.clone().fold(f64::INFINITY, f64::min)),
        significant(rates.fold(0.0, f64::max))
    );
    Some(Drawing { svg, height: HEIGHT, about })
}

fn tick_line(svg: &mut Svg, y: f64, text: &str) {
    svg.line("grid", (PLOT_X.0, y), (PLOT_X.1, y));
    svg.text("t tick", (PLOT_X.0 - 8.0, y + 4.0), Anchor::End, text);
}

fn line(svg: &mut Svg, class: &str, name: &str, points: &[(f64, f64)], x: &Scale, y: &Scale) {
    let drawn: Vec<(f64, f64)> =
        points.iter().map(|&(at, value)| (x.at(at), y.at(value))).collect();
    svg.path(&format!("curve {class}"), &drawn, false);
    if let Some(&(_, last)) = drawn.last() {
        let colour = class.split(' ').next().unwrap_or(class);
        let room = (WIDTH - NAMES_X, 13.0);
        svg.fitted(&format!("t ink {colour}"), (NAMES_X, last + 4.5), Anchor::Start, name, room);
    }
}
