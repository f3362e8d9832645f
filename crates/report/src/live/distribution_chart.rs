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

const BAR: Style = Style::new().fg(Color::Green);

/// Draws the bars below a title; nothing but the title if there is no room for all steps.
pub(super) fn draw(buffer: &mut Buffer, area: Rect, live: &Live) {
    let mut rows = area.rows();
    let Some(title) = rows.next() else { return };
    put(buffer, title, "Distribution of response times", BOLD);
    let most = usize::from(area.height.saturating_sub(1)).min(STEPS_MAX);
    let Some(found) = Distribution::of(live.response(), most) else { return };
    let room = area.width.saturating_sub(TO + COUNT + 1);
    if found.steps.len() > most || room < 4 {
        return;
    }
    let highest = found.count_max().max(1) as f64;
    for (row, step) in rows.zip(&found.steps) {
        put_right(buffer, Rect { width: TO, ..row }, &step.to.to_string(), FAINT);
        let count = Rect { x: row.x + TO, width: COUNT, ..row };
        put_right(buffer, count, &grouped(step.count), Style::new());
        let bars = Rect { x: count.right() + 1, width: room, ..row };
        put(buffer, bars, &bar(step.count as f64 / highest, room.into(), true), BAR);
    }
}
