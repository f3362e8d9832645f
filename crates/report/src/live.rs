//! The live screens of a load and of a run: what they keep, and what one frame of them looks like. Pure: intervals or
//! events come in, a frame is drawn; must not know the terminal, the keys or the clock. Of a load, `live/model.rs` has
//! what is kept, and this file has the layout; of a run, see `live/run_model.rs` and `live/run_screen.rs`. Start
//! reading at [`draw`] or [`draw_run`].
//!
//! Intervals and frames of 160x50 together take some 5 ms of CPU time a second (`make bench-screen`),
//! and nothing of it is on a thread of the load.

mod agents;
mod ascii;
mod axis;
mod distribution_chart;
mod latency_chart;
pub(crate) mod model;
mod rate_chart;
mod run_model;
mod run_screen;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Block, Clear, Padding, Widget as _};
use units::{Bytes, Nanos};

pub use agents::{AgentFigures, AgentState};
pub use model::{Live, progress_line};
pub use run_model::{RunLive, VisitPlace};
pub use run_screen::{RunView, draw_run};

use crate::figures::{NONE, grouped, listed, percent, significant};
use crate::load_tables::statuses;
use crate::outcome_words::outcome_words;
use crate::terminal::wrapped;
use model::{Summary, clock};
use record::GENERATOR_BUSY;

/// How a frame must look, and what is shown over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Whether colours may be used; nothing is shown by colour alone.
    pub colour: bool,
    /// Whether characters outside of ASCII may be used.
    pub unicode: bool,
    /// Whether the picture is frozen while measuring goes on.
    pub frozen: bool,
    /// Whether the help is shown over the picture.
    pub help: bool,
    /// Whether the distribution of response times replaces their chart over time, if there is no room for both.
    pub distribution: bool,
}

impl Default for View {
    fn default() -> Self {
        Self { colour: true, unicode: true, frozen: false, help: false, distribution: false }
    }
}

/// Fewest rows of a chart, its title and axis included; with less room there is none.
const CHART_ROWS_MIN: u16 = 5;
/// Most lines that one remark takes.
const REMARK_LINES_MAX: usize = 3;
/// From this width on, the distribution of response times stands beside their chart over time; and its share of the
/// width.
const WIDTH_OF_BOTH: u16 = 110;
const DISTRIBUTION_SHARE: u16 = 3;
/// From this width on, lines keep a column free on both sides.
const ROOMY: u16 = 30;

/// From this width on there is room for the key of the distribution, too; where both charts are shown it
/// changes nothing.
const WIDTH_OF_KEYS: u16 = 60;

const FAILED: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const CAUTION: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws one frame. Space goes from the most to the least important: figures, progress, failures, then the charts
/// with the rest.
pub fn draw(live: &Live, view: &View, frame: &mut Frame<'_>) {
    let whole = frame.area();
    let margin = if whole.width >= ROOMY { 1 } else { 0 };
    let inner = Rect { x: whole.x + margin, width: whole.width - 2 * margin, ..whole };
    let buffer = frame.buffer_mut();
    let mut page = Rows { buffer, left: inner };
    heading(&mut page, live);
    if let Some(row) = page.top() {
        progress(page.buffer, row, live);
    }
    if let Some(row) = page.bottom() {
        keys(page.buffer, row, live, view);
    }
    figures(&mut page, live);
    let mut remarks = remarks(live, inner.width);
    remarks.truncate(page.left.height.into());
    for (text, style) in remarks.into_iter().rev() {
        if let Some(row) = page.bottom() {
            put(page.buffer, row, &text, style);
        }
    }
    status_row(&mut page, live);
    agents::draw(&mut page, live.agents());
    charts(&mut page, live, view);
    if view.help {
        help(buffer, whole);
    }
    if !view.unicode {
        ascii::without_unicode(buffer);
    }
    if !view.colour {
        without_colour(buffer);
    }
}

/// Rows that are still free.
struct Rows<'a> {
    buffer: &'a mut Buffer,
    left: Rect,
}

impl Rows<'_> {
    fn top(&mut self) -> Option<Rect> {
        self.take(1)
    }

    /// Takes rows from the top; `None` if fewer are left.
    fn take(&mut self, rows: u16) -> Option<Rect> {
        (self.left.height >= rows).then(|| {
            let taken = Rect { height: rows, ..self.left };
            self.left = Rect { y: taken.y + rows, height: self.left.height - rows, ..self.left };
            taken
        })
    }

    fn bottom(&mut self) -> Option<Rect> {
        (self.left.height > 0).then(|| {
            self.left.height -= 1;
            Rect { y: self.left.y + self.left.height, height: 1, ..self.left }
        })
    }
}

/// Writes text into a row, cut to its width.
fn put(buffer: &mut Buffer, row: Rect, text: &str, style: Style) {
    if row.height > 0 {
        buffer.set_stringn(row.x, row.y, text, usize::from(row.width), style);
    }
}

/// Writes text at the right end of a row, if all of it fits.
fn put_right(buffer: &mut Buffer, row: Rect, text: &str, style: Style) {
    let width = text.chars().count() as u16;
    if width <= row.width {
        put(buffer, Rect { x: row.right() - width, width, ..row }, text, style);
    }
}

fn heading(page: &mut Rows<'_>, live: &Live) {
    let Some(row) = page.top() else { return };
    let (title, shape) = (format!("joust load {}", live.url()), live.shape());
    put(page.buffer, row, &title, BOLD);
    let fits = title.chars().count() + 2 + shape.chars().count() <= usize::from(row.width);
    if fits {
        put_right(page.buffer, row, shape, FAINT);
    } else if page.left.height > 6
        && let Some(row) = page.top()
    {
        put(page.buffer, row, shape, FAINT);
    }
}

/// The gauge: a bar, and beside it percent, time gone and time left.
fn progress(buffer: &mut Buffer, row: Rect, live: &Live) {
    let text = live.progress_words();
    let words = text.chars().count() as u16;
    let bar = row.width.saturating_sub(words + 2);
    if bar < 8 {
        put(buffer, row, &text, Style::new());
        return;
    }
    put_right(buffer, row, &text, Style::new());
    let filled = (f64::from(bar) * live.share_done()).round() as u16;
    for column in 0..bar {
        let (symbol, style) =
            if column < filled { ('█', Style::new().fg(Color::Green)) } else { ('░', FAINT) };
        buffer[(row.x + column, row.y)].set_char(symbol).set_style(style);
    }
}

fn keys(buffer: &mut Buffer, row: Rect, live: &Live, view: &View) {
    let keys = if row.width < WIDTH_OF_KEYS || row.width >= WIDTH_OF_BOTH {
        "q end now   space freeze   ? help"
    } else {
        "q end now   space freeze   d distribution   ? help"
    };
    if view.frozen {
        let text = format!(
            "FROZEN at {}: measuring goes on   space go on   q end now",
            clock(live.elapsed())
        );
        put(buffer, row, &text, CAUTION);
    } else {
        put(buffer, row, keys, FAINT);
    }
}

/// The statuses of the whole load, if charts leave enough room.
fn status_row(page: &mut Rows<'_>, live: &Live) {
    if page.left.height > 2 * CHART_ROWS_MIN
        && !live.statuses().is_empty()
        && let Some(row) = page.top()
    {
        put(page.buffer, row, &statuses(live.statuses()), FAINT);
    }
}

/// What must be seen at once, above the keys, worst first; empty if all is well.
fn remarks(live: &Live, width: u16) -> Vec<(String, Style)> {
    let remarks = [(failures(live), FAILED), (busy(live), CAUTION)];
    let lines = |(text, style): (Option<String>, Style)| {
        let lines = wrapped(&text?, usize::from(width.max(1)));
        Some(lines.into_iter().take(REMARK_LINES_MAX).map(move |line| (line, style)))
    };
    remarks.into_iter().filter_map(lines).flatten().collect()
}

fn busy(live: &Live) -> Option<String> {
    let busy = live.last_second().cpu_share;
    (busy >= GENERATOR_BUSY).then(|| {
        format!(
            "generator CPU {:.0} %: it may be the limit, not the server; -t gives more threads",
            100.0 * busy
        )
    })
}

/// Failures by kind, the most frequent first. A dead server fails few requests, because a closed loop waits before it
/// tries again. So the share of the last second stands beside that of the load.
fn failures(live: &Live) -> Option<String> {
    let (whole, last) = (live.whole_load(), live.last_second());
    let mut kinds: Vec<_> = live.errors().each().filter(|(_, count)| *count > 0).collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words = |(outcome, count)| format!("{} {}", grouped(count), outcome_words(outcome));
    let kinds: Vec<String> = kinds.into_iter().map(words).collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "FAILED {} of all, {} of the last second: {}",
            percent(whole.failed, whole.done()),
            percent(last.failed, last.done()),
            listed(&kinds)
        )
    })
}

/// A column of the table of figures.
struct Figure {
    title: &'static str,
    /// Characters that it is likely to need: the columns stand still while figures change.
    width: usize,
    /// Priority when there is not enough room; 0 is removed last.
    rank: usize,
    text: fn(&Summary) -> String,
    style: fn(&Summary) -> Style,
}

/// In the order in which they stand.
static FIGURES: [Figure; 8] = [
    Figure {
        title: "requests/s",
        width: 10,
        rank: 0,
        text: |summary| significant(summary.rate_per_s()),
        style: |_| BOLD,
    },
    Figure {
        title: "failed",
        width: 6,
        rank: 1,
        text: |summary| grouped(summary.failed),
        style: |summary| if summary.failed > 0 { FAILED } else { Style::new() },
    },
    latency_figure("p50", 3, |summary| span(summary.latency[0])),
    latency_figure("p90", 4, |summary| span(summary.latency[1])),
    latency_figure("p99", 2, |summary| span(summary.latency[2])),
    latency_figure("max", 5, |summary| span(summary.latency[3])),
    Figure {
        title: "read",
        width: 9,
        rank: 6,
        text: |summary| format!("{}/s", Bytes(summary.bytes_per_s() as u64)),
        style: |_| Style::new(),
    },
    Figure {
        title: "CPU",
        width: 5,
        rank: 7,
        text: |summary| format!("{:.0} %", 100.0 * summary.cpu_share),
        style: |summary| if summary.cpu_share >= GENERATOR_BUSY { CAUTION } else { Style::new() },
    },
];

const fn latency_figure(title: &'static str, rank: usize, text: fn(&Summary) -> String) -> Figure {
    Figure { title, width: 6, rank, text, style: |_| Style::new() }
}

fn span(span: Option<Nanos>) -> String {
    span.map_or_else(|| NONE.to_owned(), |span| span.to_string())
}

/// Columns of the names of the rows.
const LABEL: u16 = 8;

/// The table: the last second beside the whole load.
fn figures(page: &mut Rows<'_>, live: &Live) {
    let rows = [("last 1 s", live.last_second()), ("whole", live.whole_load())];
    let Some(area) = page.take(page.left.height.min(1 + rows.len() as u16)) else { return };
    let label = if area.width >= ROOMY { LABEL } else { 0 };
    for (line, (name, _)) in area.rows().skip(1).zip(rows) {
        put(page.buffer, Rect { width: label, ..line }, name, FAINT);
    }
    let width_of = |figure: &Figure| {
        let texts = rows.map(|(_, summary)| (figure.text)(summary).len());
        texts.into_iter().fold(figure.width, usize::max) as u16 + 2
    };
    let mut column = Rect { x: area.x + label, ..area };
    for figure in fitting(width_of, area.width - label) {
        column.width = width_of(figure);
        let mut cells = column.rows();
        if let Some(cell) = cells.next() {
            put_right(page.buffer, cell, figure.title, FAINT);
        }
        for (cell, (_, summary)) in cells.zip(rows) {
            put_right(page.buffer, cell, &(figure.text)(summary), (figure.style)(summary));
        }
        column.x += column.width;
    }
}

/// The figures that fit, in display order.
fn fitting(
    width_of: impl Fn(&Figure) -> u16,
    mut room: u16,
) -> impl Iterator<Item = &'static Figure> {
    let mut ranked: Vec<&Figure> = FIGURES.iter().collect();
    ranked.sort_by_key(|figure| figure.rank);
    let n_fitting = ranked
        .into_iter()
        .map_while(|figure| {
            room = room.checked_sub(width_of(figure))?;
            Some(())
        })
        .count();
    FIGURES.iter().filter(move |figure| figure.rank < n_fitting)
}

/// Two charts over one time axis, or as many as fit.
fn charts(page: &mut Rows<'_>, live: &Live, view: &View) {
    let rows = page.left.height;
    if rows < CHART_ROWS_MIN {
        return;
    }
    let n_charts = if rows >= 2 * CHART_ROWS_MIN { 2 } else { 1 };
    let first = page.take(rows.div_ceil(n_charts)).expect("they are left");
    rate_chart::draw(page.buffer, first, live, n_charts == 1);
    if n_charts == 2 {
        let second = page.left;
        if second.width < WIDTH_OF_BOTH {
            let draw =
                if view.distribution { distribution_chart::draw } else { latency_chart::draw };
            return draw(page.buffer, second, live);
        }
        let beside = second.width / DISTRIBUTION_SHARE;
        let course = Rect { width: second.width - beside, ..second };
        latency_chart::draw(page.buffer, course, live);
        let rest = Rect { x: course.right(), width: beside, ..second };
        distribution_chart::draw(page.buffer, rest, live);
    }
}

const HELP: [&str; 11] = [
    "q, Ctrl-C  end the load now, in order; the report follows",
    "space      freeze the picture; measuring goes on",
    "d          distribution of response times, or their course",
    "?          this help, and away again",
    "",
    "Requests/s counts what ended well; an x marks when requests",
    "failed. Response time counts from the instant a request was",
    "due, so waiting for a connection is in it. A dash: too few",
    "requests for that figure. CPU is the generator's own, of one",
    "CPU a thread: near 100 % it is the generator that is being",
    "measured.",
];

/// Over the middle of the picture.
fn help(buffer: &mut Buffer, whole: Rect) {
    let longest = HELP.iter().map(|line| line.len()).max().unwrap_or(0) as u16;
    let area = whole.centered(
        Constraint::Length(longest.saturating_add(4)),
        Constraint::Length(HELP.len() as u16 + 2),
    );
    Clear.render(area, buffer);
    let frame = Block::bordered().title(" joust load ").padding(Padding::horizontal(1));
    let inner = frame.inner(area);
    frame.render(area, buffer);
    for (row, line) in inner.rows().zip(HELP) {
        put(buffer, row, line, Style::new());
    }
}

/// Leaves bold, dim and reverse, as NO_COLOR has it.
fn without_colour(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        cell.set_fg(Color::Reset).set_bg(Color::Reset);
    }
}
