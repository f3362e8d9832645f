//! The plot of a figure over past runs: a point and its interval for each run, and where the level changed. Must not
//! know the page it stands in. Start reading at [`trend_plot`].

use record::{HistoryPoint, HistorySeries};

use crate::drawing::Drawing;
use crate::figures::ratio;
use crate::history_text::minute;
use crate::lines::WIDTH;
use crate::standing::shown;
use crate::svg::{Anchor, Scale, Svg};

const PLOT_X: (f64, f64) = (72.0, 744.0);
const PLOT_Y: (f64, f64) = (26.0, 196.0);
const HEIGHT: f64 = 236.0;

/// The drawing; `None` without a usable point.
pub(crate) fn trend_plot(series: &HistorySeries) -> Option<Drawing> {
    let usable = |point: &&HistoryPoint| point.withheld.is_none();
    let all = || series.points.iter().filter(usable);
    let low = all().map(|one| one.low.unwrap_or(one.mean)).reduce(f64::min)?;
    let high = all().map(|one| one.high.unwrap_or(one.mean)).reduce(f64::max)?;
    let air = ((high - low) * 0.08).max(high.abs() * 0.01);
    let x = Scale::linear((-0.5, series.points.len() as f64 - 0.5), PLOT_X);
    let y = Scale::linear(((low - air).max(0.0), high + air), (PLOT_Y.1, PLOT_Y.0));
    let mut svg = Svg::default();
    axes(&mut svg, series, &x, &y);
    for (index, point) in series.points.iter().enumerate() {
        draw_point(&mut svg, series, point, x.at(index as f64), &y);
    }
    for change in &series.changes {
        let Some(index) = series.points.iter().position(|point| point.run == change.run) else {
            continue;
        };
        let at = x.at(index as f64 - 0.5);
        let is_worse = (change.ratio > 1.0) != series.metric.more_is_better();
        let (class, word) = if is_worse { ("cut worse", "worse") } else { ("cut", "better") };
        svg.line(class, (at, PLOT_Y.0), (at, PLOT_Y.1));
        let text = format!("run {}: {} {word}", change.run, ratio(change.ratio));
        let anchor = if at > WIDTH / 2.0 { Anchor::End } else { Anchor::Start };
        svg.text(if is_worse { "t alarm" } else { "t" }, (at, PLOT_Y.0 - 9.0), anchor, &text);
    }
    let about = format!(
        "{} of {} over {} runs, from {} to {}; {} level changes.",
        series.metric.info().title,
        series.contender,
        series.points.len(),
        shown(series.metric, Some(low)),
        shown(series.metric, Some(high)),
        series.changes.len()
    );
    Some(Drawing { svg, height: HEIGHT, about })
}

fn axes(svg: &mut Svg, series: &HistorySeries, x: &Scale, y: &Scale) {
    for tick in y.ticks(4) {
        let at = y.at(tick);
        svg.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
        let text = shown(series.metric, Some(tick));
        svg.text("t tick", (PLOT_X.0 - 8.0, at + 4.0), Anchor::End, &text);
    }
    svg.line("axis", (PLOT_X.0, PLOT_Y.1), (PLOT_X.1, PLOT_Y.1));
    let stride = (series.points.len() / 6 + 1).max(1);
    for (index, point) in series.points.iter().enumerate().step_by(stride) {
        let at = x.at(index as f64);
        svg.text("t tick", (at, PLOT_Y.1 + 17.0), Anchor::Middle, &point.run.to_string());
        let day = minute(&point.started);
        let day = day.split(' ').next().unwrap_or_default();
        svg.text("t tick", (at, PLOT_Y.1 + 32.0), Anchor::Middle, day);
    }
    svg.text("t tick", (PLOT_X.0 - 8.0, PLOT_Y.1 + 17.0), Anchor::End, "run");
}

fn draw_point(svg: &mut Svg, series: &HistorySeries, point: &HistoryPoint, x: f64, y: &Scale) {
    let value = |value| shown(series.metric, Some(value));
    if let Some(reason) = &point.withheld {
        let at = PLOT_Y.1 - 8.0;
        svg.line("lost", (x - 4.0, at - 4.0), (x + 4.0, at + 4.0));
        svg.line("lost", (x - 4.0, at + 4.0), (x + 4.0, at - 4.0));
        svg.dot("target", (x, at), 7.0, &format!("run {}: withheld: {reason}", point.run));
        return;
    }
    let mut title = format!("run {}, {}: {}", point.run, minute(&point.started), value(point.mean));
    if let (Some(low), Some(high)) = (point.low, point.high) {
        svg.line("whisker", (x, y.at(low)), (x, y.at(high)));
        title += &format!(" [{}, {}]", value(low), value(high));
    }
    svg.dot("mark", (x, y.at(point.mean)), 3.6, &title);
}
