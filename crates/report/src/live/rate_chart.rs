//! Requests/s over time as columns, and on top of them where requests failed. Start reading at
//! [`draw`].

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use units::{Nanos, PerSecond};

use super::axis::{AxisMark, Plot, axis_end};
use super::model::{Live, Point};
use super::{BOLD, FAILED, put, put_right};

/// Cells filled from below, by eighths.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Marks a stretch in which requests failed; no height of a column looks like it.
const FAILURE: char = 'x';

const OK: Style = Style::new().fg(Color::Cyan);

/// Rates in the stretch of time that one column of the screen stands for.
#[derive(Debug, Default, Clone, Copy)]
struct Column {
    ok_per_s: f64,
    failed_per_s: f64,
}

/// Draws the chart; the marks of time are left to the chart below it unless `is_last`.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, live: &Live, is_last: bool) {
    let title = Rect { height: 1, ..area };
    put(buffer, title, "Requests/s", BOLD);
    if live.whole_load().failed > 0 {
        put_right(buffer, title, "x failed", FAILED);
    }
    let chart = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let end = axis_end(live.elapsed(), live.duration());
    let Some(plot) = Plot::place(buffer, chart, end, is_last) else { return };
    let columns = columns(live.points(), &plot);
    let highest = columns.iter().flatten().map(|column| column.ok_per_s + column.failed_per_s);
    let top = round_up(highest.fold(0.0, f64::max));
    plot.draw_marks(buffer, chart, &marks(top, plot.cells.height));
    for (x, column) in plot.cells.columns().zip(columns) {
        if let Some(column) = column {
            draw_column(buffer, x, column, top);
        }
    }
}

fn draw_column(buffer: &mut Buffer, cells: Rect, column: Column, top: f64) {
    let eighths_of = |rate: f64| (rate / top * f64::from(cells.height) * 8.0).round() as u16;
    let ok = eighths_of(column.ok_per_s);
    for (from_foot, y) in (cells.top()..cells.bottom()).rev().enumerate() {
        let filled = ok.saturating_sub(8 * from_foot as u16).min(8);
        if filled > 0 {
            buffer[(cells.x, y)].set_char(EIGHTHS[usize::from(filled)]).set_style(OK);
        }
    }
    if column.failed_per_s > 0.0 {
        // One failure among a million gets a mark of its own: visible, but not to scale.
        let height = eighths_of(column.failed_per_s).div_ceil(8).clamp(1, cells.height);
        let foot = ok.div_ceil(8).min(cells.height - height);
        for from_foot in foot..foot + height {
            let y = cells.bottom() - 1 - from_foot;
            buffer[(cells.x, y)].set_char(FAILURE).set_style(FAILED);
        }
    }
}

/// What happened in each column's stretch of time; `None` for those that are still to come.
fn columns(points: &[Point], plot: &Plot) -> Vec<Option<Column>> {
    let n_columns = u64::from(plot.cells.width);
    let instant = |column: u64| {
        // In 128 bits, since 584 years of nanoseconds times 200 columns are more than 64.
        Nanos((u128::from(plot.end.0) * u128::from(column) / u128::from(n_columns)) as u64)
    };
    let mut first = 0;
    let mut columns = Vec::with_capacity(usize::from(plot.cells.width));
    for column in 0..n_columns {
        let (from, to) = (instant(column), instant(column + 1));
        while points.get(first).is_some_and(|point| point.end() <= from) {
            first += 1;
        }
        let inside = points[first..].iter().take_while(|point| point.start() < to);
        columns.push(mean(inside, from, to));
    }
    columns
}

/// Mean over the points that share time with the stretch, each weighted by how much.
fn mean<'a>(points: impl Iterator<Item = &'a Point>, from: Nanos, to: Nanos) -> Option<Column> {
    let mut sum = Column::default();
    let mut seconds = 0.0;
    for point in points {
        let shared = point.end().min(to).saturating_sub(point.start().max(from)).as_secs_f64();
        sum.ok_per_s += point.ok_per_s() * shared;
        sum.failed_per_s += point.failed_per_s() * shared;
        seconds += shared;
    }
    (seconds > 0.0).then(|| Column {
        ok_per_s: sum.ok_per_s / seconds,
        failed_per_s: sum.failed_per_s / seconds,
    })
}

/// The next round number, so that the scale stays the same while the rate changes.
fn round_up(rate_per_s: f64) -> f64 {
    const ROUND: [f64; 9] = [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0];
    if rate_per_s <= 0.0 {
        return 1.0;
    }
    let decade = 10f64.powf(rate_per_s.log10().floor());
    let round = ROUND.into_iter().map(|n| n * decade).find(|round| *round >= rate_per_s);
    round.unwrap_or(10.0 * decade)
}

fn marks(top: f64, rows: u16) -> Vec<AxisMark> {
    let heights: &[f64] = if rows >= 5 { &[1.0, 0.5, 0.0] } else { &[1.0, 0.0] };
    let mark = |height: &f64| {
        let rate = PerSecond(top * height).to_string();
        AxisMark { height: *height, text: rate.trim_end_matches("/s").to_owned() }
    };
    heights.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_at_the_next_round_number() {
        for (rate, top) in [(0.0, 1.0), (0.9, 1.0), (1.0, 1.0), (41_200.0, 50_000.0), (9.1, 10.0)] {
            assert!((round_up(rate) - top).abs() < 1e-6, "{rate} gave {}", round_up(rate));
        }
    }
}
