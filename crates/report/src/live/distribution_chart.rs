//! How the response times of the whole load are spread: a bar for each step of a logarithmic scale. Start
//! reading at [`draw`].

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use super::model::Live;
use super::{BOLD, FAINT, put, put_right};
use crate::distribution::{Distribution, STEPS_MAX, bar};
use crate::figures::grouped;

/// Columns of the end of a step, and of its count.
const TO: u16 = 7;
const COUNT: u16 = 12;
/// Columns behind the longest bar, for the quantiles of its step; where there is little room, only for the two that
/// are asked for most.
const MARKS: u16 = 12;
const MARKS_FEW: u16 = 5;
const WIDTH_OF_MARKS: u16 = 40;
const FEW: [&str; 2] = ["p50", "p99"];

const BAR: Style = Style::new().fg(Color::Green);

/// Draws the bars below a title; nothing but the title if there is no room for all steps.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, live: &Live) {
    let mut rows = area.rows();
    let Some(title) = rows.next() else { return };
    put(buffer, title, "Distribution of response times", BOLD);
    let most = usize::from(area.height.saturating_sub(1)).min(STEPS_MAX);
    let Some(found) = Distribution::of(live.response(), most) else { return };
    let room = area.width.saturating_sub(TO + COUNT + 1);
    if found.steps.len() > most || room < MARKS_FEW + 4 {
        return;
    }
    let highest = found.count_max().max(1) as f64;
    for (at, (row, step)) in rows.zip(&found.steps).enumerate() {
        put_right(buffer, Rect { width: TO, ..row }, &step.to.to_string(), FAINT);
        let count = Rect { x: row.x + TO, width: COUNT, ..row };
        put_right(buffer, count, &grouped(step.count), Style::new());
        let bars = Rect { x: count.right() + 1, width: room, ..row };
        let is_wide = room >= WIDTH_OF_MARKS;
        let marks = found.marks(at);
        let shown: Vec<&str> =
            marks.split(' ').filter(|mark| is_wide || FEW.contains(mark)).collect();
        let columns = room - if is_wide { MARKS } else { MARKS_FEW };
        let bar = bar(step.count as f64 / highest, columns.into(), true);
        put(buffer, bars, &bar, BAR);
        let from = bar.chars().count() as u16 + 1;
        let marked = Rect { x: bars.x + from, width: bars.width.saturating_sub(from), ..bars };
        put(buffer, marked, &shown.join(" "), FAINT);
    }
}
