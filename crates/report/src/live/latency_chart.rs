//! Response times over time, one line for each quantile, on a logarithmic scale: a tail is many times its median, and
//! both must be visible. Start reading at [`draw`].

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::widgets::Widget as _;
use ratatui::widgets::canvas::{Canvas, Line, Points};
use units::Nanos;

use super::axis::{AxisMark, Plot, axis_end};
use super::model::{Live, Point};
use super::{BOLD, put};

/// Each line: its index in [`super::model::Latency`], its name and its colour, in drawing order: where two meet, the
/// later one is visible.
const LINES: [(usize, &str, Color); 4] = [
    (3, "max", Color::Magenta),
    (2, "p99", Color::Yellow),
    (1, "p90", Color::Cyan),
    (0, "p50", Color::Green),
];

/// Smallest ratio between the top and the foot of the scale: below it, noise fills the chart.
const SCALE_MIN: f64 = 4.0;

/// Ends of the scale, as log10 of nanoseconds; the top is above the foot.
#[derive(Debug, Clone, Copy)]
struct Scale {
    foot: f64,
    top: f64,
}

/// Draws the chart, with the marks of time below it.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, live: &Live) {
    put(buffer, Rect { height: 1, ..area }, "Response time (log scale)", BOLD);
    let chart = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let end = axis_end(live.elapsed(), live.duration());
    let Some(plot) = Plot::place(buffer, chart, end, true) else { return };
    let Some(scale) = Scale::of(live.points()) else { return };
    plot.draw_marks(buffer, chart, &scale.marks(plot.cells.height));
    Canvas::default()
        .marker(Marker::Braille)
        .x_bounds([0.0, plot.end.as_secs_f64()])
        .y_bounds([scale.foot, scale.top])
        .paint(|canvas| {
            for (at, _, colour) in LINES {
                for (from, to) in segments(live.points(), at) {
                    canvas.draw(&Line::new(from.0, from.1, to.0, to.1, colour));
                    // A line whose ends are one dot is not drawn by itself.
                    canvas.draw(&Points { coords: &[from, to], color: colour });
                }
            }
        })
        .render(plot.cells, buffer);
    names(buffer, area, &plot, scale, live.points());
}

/// The segments of a line: from each point that has the figure to the next such point. An isolated point gives a
/// segment to itself.
fn segments(points: &[Point], at: usize) -> impl Iterator<Item = ((f64, f64), (f64, f64))> {
    let mut last = None;
    points.iter().filter_map(move |point| {
        let middle = (point.start().as_secs_f64() + point.end().as_secs_f64()) / 2.0;
        let here = (middle, log10(point.latency[at]?));
        let from = last.replace(here).unwrap_or(here);
        Some((from, here))
    })
}

fn log10(span: Nanos) -> f64 {
    (span.0.max(1) as f64).log10()
}

/// Names at the right ends of the lines, one below the other in the order of the lines.
fn names(buffer: &mut Buffer, area: Rect, plot: &Plot, scale: Scale, points: &[Point]) {
    let room = area.right() - plot.cells.right();
    let ends: Vec<_> = LINES
        .into_iter()
        .filter_map(|(at, name, colour)| {
            let span = points.iter().rev().find_map(|point| point.latency[at])?;
            Some((plot.row_of(scale.height(log10(span))), name, colour))
        })
        .collect();
    if room == 0 || ends.len() > usize::from(plot.cells.height) {
        return;
    }
    let mut free_from = plot.cells.top();
    for (index, (row, name, colour)) in ends.iter().enumerate() {
        let below = (ends.len() - 1 - index) as u16;
        let y = (*row).clamp(free_from, plot.cells.bottom() - 1 - below);
        free_from = y + 1;
        let place = Rect { x: plot.cells.right() + 1, y, width: room - 1, height: 1 };
        put(buffer, place, name, Style::new().fg(*colour));
    }
}

impl Scale {
    /// From the shortest to the longest; `None` if there is no latency yet.
    fn of(points: &[Point]) -> Option<Self> {
        let spans = || points.iter().flat_map(|point| point.latency).flatten();
        let (foot, top) = (log10(spans().min()?), log10(spans().max()?));
        let missing = (SCALE_MIN.log10() - (top - foot)).max(0.0);
        Some(Self { foot: foot - missing / 2.0 - 0.02, top: top + missing / 2.0 + 0.02 })
    }

    /// 0 at the foot, 1 at the top.
    fn height(&self, log10: f64) -> f64 {
        (log10 - self.foot) / (self.top - self.foot)
    }

    /// At 1, 2 and 5 of each decade; if that is too many, at each decade, or at every other.
    fn marks(&self, rows: u16) -> Vec<AxisMark> {
        let decades = self.foot.floor() as i32..=self.top.floor() as i32;
        let marks = |digits: &[f64], every: usize| -> Vec<AxisMark> {
            let values = decades.clone().step_by(every).flat_map(|decade| {
                digits.iter().map(move |digit| f64::from(decade) + digit.log10())
            });
            values
                .filter(|value| (self.foot..=self.top).contains(value))
                .map(|value| AxisMark {
                    height: self.height(value),
                    text: Nanos(10f64.powf(value).round() as u64).to_string(),
                })
                .collect()
        };
        let most = usize::from(rows.div_ceil(2));
        let choices =
            [(&[1.0, 2.0, 5.0][..], 1), (&[1.0][..], 1), (&[1.0][..], 2), (&[1.0][..], 3)];
        let fitting = choices.into_iter().map(|(digits, every)| marks(digits, every));
        fitting.into_iter().find(|marks| marks.len() <= most).unwrap_or_default()
    }
}
