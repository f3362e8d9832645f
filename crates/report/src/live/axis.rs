//! The frame of a chart: a scale at the left, a time axis below, and the position of a value between them. Must not
//! know what is drawn inside. Start reading at [`Plot::place`].

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use units::Nanos;

use super::{FAINT, put, put_right};

/// Columns left of the axis, for the marks of the scale.
const SCALE: u16 = 8;
/// Columns right of the plot, for the names of lines.
const NAMES: u16 = 4;
/// Fewest columns of the plot itself for which scale and names are given room.
const PLOT_MIN: u16 = 16;

/// Where a chart's parts lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plot {
    /// The cells of the plot itself; neither dimension is 0.
    pub(super) cells: Rect,
    /// The end of the axis of time, after zero.
    pub(super) end: Nanos,
}

/// A mark on a scale.
#[derive(Debug)]
pub(super) struct AxisMark {
    /// 0 at the foot of the plot, 1 at its top.
    pub(super) height: f64,
    pub(super) text: String,
}

impl Plot {
    /// Lays out a chart and draws its axes; `None` if there is no room. The last row of the chart has the time marks
    /// if `is_last`.
    pub(super) fn place(
        buffer: &mut Buffer,
        chart: Rect,
        end: Nanos,
        is_last: bool,
    ) -> Option<Self> {
        let below = if is_last { 2 } else { 1 };
        let (left, right) =
            if chart.width >= SCALE + 1 + PLOT_MIN + NAMES { (SCALE + 1, NAMES) } else { (0, 0) };
        let height = chart.height.checked_sub(below).filter(|height| *height > 0)?;
        let width = chart.width.checked_sub(left + right).filter(|width| *width > 0)?;
        let cells = Rect { x: chart.x + left, y: chart.y, width, height };
        let plot = Self { cells, end: end.max(Nanos(1)) };
        plot.draw_axes(buffer, left > 0, is_last);
        Some(plot)
    }

    fn draw_axes(&self, buffer: &mut Buffer, has_scale: bool, is_last: bool) {
        let foot = self.cells.bottom();
        for x in self.cells.left()..self.cells.right() {
            buffer[(x, foot)].set_char('─').set_style(FAINT);
        }
        if has_scale {
            for y in self.cells.top()..foot {
                buffer[(self.cells.x - 1, y)].set_char('│').set_style(FAINT);
            }
            buffer[(self.cells.x - 1, foot)].set_char('└').set_style(FAINT);
        }
        let mut free_from = 0;
        for time in time_marks(self.end, self.cells.width) {
            let x = self.cells.x + self.column_of(time).min(self.cells.width - 1);
            buffer[(x, foot)].set_char('┴').set_style(FAINT);
            let text = if time == Nanos::ZERO { "0".to_owned() } else { time.to_string() };
            let width = text.len() as u16;
            // Under its mark, or as near to it as the right end lets it.
            let from = x.saturating_sub(width / 2).min(self.cells.right().saturating_sub(width));
            if is_last && from >= free_from {
                put(buffer, Rect { x: from, y: foot + 1, width, height: 1 }, &text, FAINT);
                free_from = from + width + 1;
            }
        }
    }

    /// Draws the marks of the scale, if there is room for it.
    pub(super) fn draw_marks(&self, buffer: &mut Buffer, chart: Rect, marks: &[AxisMark]) {
        if self.cells.x < chart.x + SCALE {
            return;
        }
        for AxisMark { height, text } in marks {
            let y = self.row_of(*height);
            let scale = Rect { x: chart.x, y, width: SCALE - 1, height: 1 };
            put_right(buffer, scale, text, Style::new());
            buffer[(self.cells.x - 1, y)].set_char('┤').set_style(FAINT);
        }
    }

    /// The row of the screen on which a height from 0 to 1 lies.
    pub(super) fn row_of(&self, height: f64) -> u16 {
        let rows = f64::from(self.cells.height);
        let from_top = ((1.0 - height) * rows).floor().clamp(0.0, rows - 1.0);
        self.cells.y + from_top as u16
    }

    /// The column of the plot, from 0, for an instant; for later instants, a column past the last one.
    fn column_of(&self, time: Nanos) -> u16 {
        let column = time.0 as f64 / self.end.0 as f64 * f64::from(self.cells.width);
        column.clamp(0.0, f64::from(self.cells.width)) as u16
    }
}

/// Steps of an axis of time that people count in, in seconds; beyond them whole days.
const STEPS_S: [u64; 17] =
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAY_S: u64 = 86_400;

/// Ends of a time axis; it grows by these steps, so that the picture stands still between them.
const ENDS_S: [u64; 12] = [10, 30, 60, 120, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400];

/// The end of the axis for a load that has come to `elapsed` and may last for `duration`.
pub(super) fn axis_end(elapsed: Nanos, duration: Option<Nanos>) -> Nanos {
    let grown = ENDS_S.into_iter().map(Nanos::from_secs).find(|end| *end >= elapsed);
    let days = elapsed.0.div_ceil(DAY_S * 1_000_000_000);
    let end = grown.unwrap_or_else(|| Nanos(days.saturating_mul(DAY_S * 1_000_000_000)));
    duration.map_or(end, |whole| end.min(whole.max(elapsed)))
}

/// Instants to mark: round ones, far enough apart to be written below.
fn time_marks(end: Nanos, width: u16) -> impl Iterator<Item = Nanos> {
    /// Columns that a mark with its text and the space around it needs.
    const MARK: u16 = 10;
    let n_marks_max = u64::from((width / MARK).max(1));
    let days = 1 + end.0 / (DAY_S * 1_000_000_000 * n_marks_max);
    let step = STEPS_S
        .into_iter()
        .map(Nanos::from_secs)
        .find(|step| end.0 / step.0 <= n_marks_max)
        .unwrap_or(Nanos::from_secs(days.saturating_mul(DAY_S)));
    (0..=end.0 / step.0).map(move |n| Nanos(n * step.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_grows_by_steps_up_to_the_duration() {
        let seconds = |elapsed, duration: Option<u64>| {
            let end = axis_end(Nanos::from_secs(elapsed), duration.map(Nanos::from_secs));
            end.0 / 1_000_000_000
        };
        assert_eq!(seconds(0, None), 10);
        assert_eq!(seconds(11, None), 30);
        assert_eq!(seconds(11, Some(15)), 15);
        assert_eq!(seconds(3, Some(5)), 5);
        // While replies are drained a load is older than its duration.
        assert_eq!(seconds(6, Some(5)), 6);
        assert_eq!(seconds(100_000, None), 172_800);
    }

    #[test]
    fn marks_of_time_are_round_and_have_room() {
        let marks = |seconds, width| -> Vec<String> {
            time_marks(Nanos::from_secs(seconds), width).map(|mark| mark.to_string()).collect()
        };
        assert_eq!(marks(10, 66), ["0s", "2s", "4s", "6s", "8s", "10s"]);
        assert_eq!(marks(60, 66), ["0s", "10s", "20s", "30s", "40s", "50s", "60s"]);
        assert_eq!(marks(10, 5), ["0s", "10s"]);
        assert!(marks(1_000_000_000, 66).len() <= 7);
    }
}
