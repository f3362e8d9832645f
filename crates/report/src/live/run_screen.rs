//! The layout of the live screen of a run: what is done now, the time left, contenders, intervals that narrow, findings,
//! other load, messages. Space goes from the most to the least important. Start reading at [`draw_run`].

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Style};
use ratatui::widgets::{Block, Clear, Padding, Widget as _};
use units::{Nanos, Share};

use super::model::clock;
use super::run_model::{Doing, RunLive, Skip};
use super::{BOLD, CAUTION, FAILED, FAINT, ROOMY, Rows, ascii, put, put_right, without_colour};
use crate::columns::{cut, right, width};
use crate::distribution::bar;
use crate::figures::{counted, ratio_with_interval, significant};
use crate::sparkline::span;
use crate::standing::shown;
use crate::table::Column;
use crate::terminal::wrapped;

/// How a frame must look, and what is shown over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    /// Whether colours may be used; nothing is shown by colour alone.
    pub colour: bool,
    /// Whether characters outside of ASCII may be used.
    pub unicode: bool,
    /// Whether the help is shown over the picture.
    pub help: bool,
    /// What was typed for the question which contender to skip; `None`: it is not asked.
    pub asking: Option<String>,
    /// Time since the last event: the clock goes on between events.
    pub since: Nanos,
}

impl Default for RunView {
    fn default() -> Self {
        Self { colour: true, unicode: true, help: false, asking: None, since: Nanos::ZERO }
    }
}

/// Most lines of findings, and of messages.
const FINDINGS_MAX: usize = 4;
const MESSAGES_MAX: usize = 4;
/// Fewest rows of a table, its title included.
const TABLE_MIN: usize = 3;
/// From this width on, visits are drawn block by block, and a gauge shows how far an interval has narrowed.
const WIDTH_OF_BEATS: u16 = 60;
/// Columns of that gauge, and of the beats at most.
const GAUGE: usize = 10;
const BEATS_MAX: usize = 24;

/// Draws one frame.
pub fn draw_run(live: &RunLive, view: &RunView, frame: &mut Frame<'_>) {
    let whole = frame.area();
    let margin = if whole.width >= ROOMY { 1 } else { 0 };
    let inner = Rect { x: whole.x + margin, width: whole.width - 2 * margin, ..whole };
    let buffer = frame.buffer_mut();
    let mut page = Rows { buffer, left: inner };
    let is_tight = inner.height < 20;
    title(&mut page, live, is_tight);
    gauge(&mut page, live, view);
    now(&mut page, live, view);
    time_left(&mut page, live, view, is_tight);
    if let Some(row) = page.bottom() {
        keys(page.buffer, row, live);
    }
    below(&mut page, live, is_tight);
    tables(&mut page, live, view);
    if view.help {
        lay_over(buffer, whole, " joust run ", &HELP.map(str::to_owned));
    }
    if let Some(typed) = &view.asking {
        lay_over(buffer, whole, " Skip which contender? ", &question(live, typed, whole));
    }
    if !view.unicode {
        ascii::without_unicode(buffer);
    }
    if !view.colour {
        without_colour(buffer);
    }
}

fn title(page: &mut Rows<'_>, live: &RunLive, is_tight: bool) {
    let plan = &live.plan;
    let name = crate::wording::plain(&plan.name);
    let shape = format!(
        "{}, {}, at most {}, {} of budget",
        counted(live.n_contenders() as u64, "contender"),
        counted(live.cells.len() as u64, "cell"),
        counted(plan.blocks.max.into(), "block"),
        plan.budget
    );
    let Some(row) = page.top() else { return };
    let text = format!("joust run {name}");
    put(page.buffer, row, &text, BOLD);
    if width(&text) + 2 + width(&shape) <= usize::from(row.width) {
        put_right(page.buffer, row, &shape, FAINT);
    } else if !is_tight && let Some(row) = page.top() {
        put(page.buffer, row, &shape, FAINT);
    }
}

/// How far the run is, by time.
fn gauge(page: &mut Rows<'_>, live: &RunLive, view: &RunView) {
    let Some(row) = page.top() else { return };
    let (gone, left) = times(live, view);
    let whole = (gone + left).0.max(1);
    let share = if live.place().is_none() { 0.0 } else { gone.0 as f64 / whole as f64 };
    let most = if row.width >= WIDTH_OF_BEATS { "at most " } else { "" };
    let left = match live.place() {
        None => String::new(),
        Some(_) => format!(", {most}{} left", clock(left)),
    };
    let text = format!("{:>3.0} %  {} gone{left}", (100.0 * share).floor(), clock(gone));
    let columns = row.width.saturating_sub(width(&text) as u16 + 2);
    if columns < 8 {
        put(page.buffer, row, &text, Style::new());
        return;
    }
    put_right(page.buffer, row, &text, Style::new());
    let filled = (f64::from(columns) * share).round() as u16;
    for column in 0..columns {
        let (symbol, style) = if column < filled {
            ('\u{2588}', Style::new().fg(Color::Green))
        } else {
            ('\u{2591}', FAINT)
        };
        page.buffer[(row.x + column, row.y)].set_char(symbol).set_style(style);
    }
}

/// Time gone and time left; both go on between two events.
fn times(live: &RunLive, view: &RunView) -> (Nanos, Nanos) {
    (live.progress.elapsed + view.since, live.progress.left.saturating_sub(view.since))
}

/// What is done now.
fn now(page: &mut Rows<'_>, live: &RunLive, view: &RunView) {
    let Some(row) = page.top() else { return };
    let is_wide = row.width >= WIDTH_OF_BEATS;
    let block = |block: u32| match is_wide {
        true => format!("block {} of at most {}", block + 1, live.plan.blocks.max),
        false => format!("block {}/{}", block + 1, live.plan.blocks.max),
    };
    let name = |contender: usize| live.contestants[contender].name.as_str();
    let text = match live.doing {
        Doing::Preparing => "preparing".to_owned(),
        Doing::Discovering(contender) => {
            format!("starting {} to see what it serves", name(contender))
        }
        Doing::Visiting(at) => {
            let cell = match live.cells.len() {
                1 => String::new(),
                _ => format!(" at {}", live.cells[at.cell]),
            };
            let again = if at.attempt > 0 { ", made again" } else { "" };
            let (block, visit) = (block(at.block), live.made_of_block + 1);
            let visit = if is_wide { format!(", visit {visit}") } else { String::new() };
            format!("{block}{visit}: {}{cell}{again}, {}", name(at.contender), clock(view.since))
        }
        Doing::Between(at) => format!("{}: preparing the next visit", block(at.block)),
    };
    put(page.buffer, row, &cut(&text, row.width.into(), true), BOLD);
}

/// What the time left is made of.
fn time_left(page: &mut Rows<'_>, live: &RunLive, view: &RunView, is_tight: bool) {
    if live.place().is_none() {
        return;
    }
    let progress = live.progress;
    let left = progress.left_of_block.saturating_sub(view.since);
    let based = match progress.visits_seen {
        0 => "as planned".to_owned(),
        n => format!("by {} so far", counted(n, "visit")),
    };
    let blocks = match (live.stops_after_block, progress.blocks_left) {
        (true, _) => ", then it ends".to_owned(),
        (false, 0) => ", and no further block fits".to_owned(),
        (false, n) => {
            format!(
                ", then {} of {} that fit",
                counted(n.into(), "block"),
                clock(progress.block_time)
            )
        }
    };
    let is_short = is_tight || page.left.width < WIDTH_OF_BEATS;
    let text = match is_short {
        true => format!("left: this block {}{blocks}", clock(left)),
        false => format!(
            "time left: this block {}{blocks} ({based}); narrow intervals end it sooner",
            clock(left)
        ),
    };
    let most = if is_short { 1 } else { 2 };
    for line in wrapped(&text, page.left.width.max(1).into()).into_iter().take(most) {
        if let Some(row) = page.top() {
            put(page.buffer, row, &line, FAINT);
        }
    }
}

fn keys(buffer: &mut Buffer, row: Rect, live: &RunLive) {
    let (wide, narrow) = match live.stops_after_block {
        true => (
            "STOPS after this block   s go on   k skip   q end now   ? help",
            "STOPS after block  s go on  q end",
        ),
        false => (
            "s stop after this block   k skip a contender   q end now   ? help",
            "s stop  k skip  q end  ? help",
        ),
    };
    let keys = if width(wide) <= row.width.into() { wide } else { narrow };
    put(buffer, row, keys, if live.stops_after_block { CAUTION } else { FAINT });
}

/// Above the keys, from the bottom up: messages, other load, findings.
fn below(page: &mut Rows<'_>, live: &RunLive, is_tight: bool) {
    let room = usize::from(page.left.width.max(1));
    let tables = 2 * TABLE_MIN;
    let mut free = usize::from(page.left.height).saturating_sub(tables);
    let findings: Vec<(String, Style)> = match live.findings.len() {
        0 => Vec::new(),
        n => {
            let most = if is_tight { 1 } else { FINDINGS_MAX };
            let more = if n > most { format!(" (and {} more)", n - most) } else { String::new() };
            let shown = live.findings.iter().take(most);
            shown
                .enumerate()
                .map(|(at, text)| {
                    let label = if at == 0 { "Findings so far: " } else { "                 " };
                    let more = if at + 1 == most { more.as_str() } else { "" };
                    (format!("{label}{text}{more}"), CAUTION)
                })
                .collect()
        }
    };
    let others = live.other_load().into_iter().flat_map(|text| {
        let most = if is_tight { 1 } else { 2 };
        wrapped(&text, room).into_iter().take(most).map(|line| (line, FAINT))
    });
    let most = if is_tight { 1 } else { MESSAGES_MAX };
    let messages: Vec<String> = live.messages().collect();
    let first = messages.len().saturating_sub(most);
    let messages = messages[first..].iter().map(|text| (text.clone(), Style::new()));
    let mut lines: Vec<(String, Style)> = findings.into_iter().chain(others).collect();
    free = free.saturating_sub(lines.len());
    let messages: Vec<(String, Style)> = messages.collect();
    lines.extend(messages.into_iter().rev().take(free).rev());
    for (text, style) in lines.into_iter().rev() {
        if usize::from(page.left.height) <= TABLE_MIN {
            return;
        }
        if let Some(row) = page.bottom() {
            put(page.buffer, row, &cut(&text, room, true), style);
        }
    }
}

/// Contenders and pairs share what is left; each gets what it needs if the other needs less than half.
fn tables(page: &mut Rows<'_>, live: &RunLive, view: &RunView) {
    let rows = usize::from(page.left.height);
    let contenders = 1 + live.n_contenders();
    let pairs = pair_lines(live, page.left.width.into(), view.unicode);
    let (one, other) = match (contenders, 1 + pairs.len()) {
        (a, b) if a + b <= rows => (a, b),
        (a, b) if a <= rows / 2 => (a, b.min(rows - a)),
        (a, b) if b <= rows / 2 => (a.min(rows - b), b),
        _ => (rows.div_ceil(2), rows / 2),
    };
    draw_contenders(page, live, view, one.min(rows));
    draw_pairs(page, live, pairs, other);
}

/// The contenders of the cell that is visited, as many as fit; the one that is visited is always among them.
fn draw_contenders(page: &mut Rows<'_>, live: &RunLive, view: &RunView, rows: usize) {
    let Some(area) = page.take(rows as u16).filter(|area| area.height > 0) else { return };
    let (cell, metric) = (live.cell(), live.metric());
    let visited = match live.doing {
        Doing::Visiting(place) => Some(place.contender),
        _ => None,
    };
    let n = live.n_contenders();
    let fit = rows.saturating_sub(1).min(n);
    let first = visited.map_or(0, |at| (at + 1).saturating_sub(fit)).min(n - fit);
    let all: Vec<_> = (0..n).map(|one| live.beats(one, cell)).collect();
    let span = span(all.iter());
    let digits = n.to_string().len();
    let name_room = usize::from(area.width / 3).max(8);
    let named = live.contestants.iter().map(|one| width(&one.name)).max().unwrap_or(0);
    let named = named.min(name_room);
    let title = Column::metric(metric).heading();
    let figure = width(&title).max(9);
    let hidden =
        if fit < n { format!(" ({} to {} of {n})", first + 1, first + fit) } else { String::new() };
    let mut lines = area.rows();
    let head = lines.next().unwrap_or(area);
    let label = cut(&format!("contender{hidden}"), digits + 3 + named, view.unicode);
    let head_text = format!(
        "{}  {}  visits",
        crate::columns::padded(&label, digits + 3 + named),
        right(&title, figure)
    );
    put(page.buffer, head, &head_text, FAINT);
    for (index, row) in (first..first + fit).zip(lines) {
        let one = &live.contestants[index];
        let marker = if visited == Some(index) { '>' } else { ' ' };
        let value = shown(metric, live.figure(index, cell));
        let name = crate::columns::padded(&cut(&one.name, named, view.unicode), named);
        let number = right(&(index + 1).to_string(), digits);
        let text =
            format!("{marker}{number} {name}  {}  {:>6}", right(&value, figure + 1), one.measured);
        let style = match (one.failed > 0, visited == Some(index)) {
            (true, _) => FAILED,
            (_, true) => BOLD,
            _ => Style::new(),
        };
        put(page.buffer, row, &text, style);
        let used = width(&text) + 2;
        let rest = Rect {
            x: row.x + (used as u16).min(row.width),
            width: row.width.saturating_sub(used as u16),
            ..row
        };
        put(page.buffer, rest, &beside(live, index, span, (rest.width, view.unicode)), style);
    }
}

/// What stands beside the figure of a contender: what went wrong, then its visits block by block.
fn beside(live: &RunLive, index: usize, span: f64, (room, is_unicode): (u16, bool)) -> String {
    let one = &live.contestants[index];
    let mut words = Vec::new();
    match one.skip {
        Skip::No => {}
        Skip::Asked => words.push("to be skipped".to_owned()),
        Skip::Since(block) => words.push(format!("skipped from block {} on", block + 1)),
    }
    if one.failed > 0 {
        words.push(format!("{} FAILED", one.failed));
    }
    let words = words.join(", ");
    let left =
        usize::from(room).saturating_sub(if words.is_empty() { 0 } else { width(&words) + 2 });
    let beats = live.beats(index, live.cell()).line(span, left.clamp(1, BEATS_MAX), is_unicode);
    let beats = if usize::from(room) < 6 || left < 6 { String::new() } else { beats };
    if words.is_empty() { beats } else { format!("{words}  {beats}") }
}

/// A line for each pair, the widest interval first: it is what keeps the run going.
fn pair_lines(live: &RunLive, room: usize, is_unicode: bool) -> Vec<(String, Style)> {
    let better = |pair: &record::PairSoFar| {
        // Turned so that the better side comes first, as in the report.
        let is_turned = (pair.ratio < 1.0) == live.metric().more_is_better();
        let (low, high) = pair.interval.unwrap_or((pair.ratio, pair.ratio));
        let turn = |ratio: f64, low: f64, high: f64| match pair.ratio < 1.0 {
            true => (1.0 / ratio, 1.0 / high, 1.0 / low),
            false => (ratio, low, high),
        };
        let sides = if is_turned { (pair.b, pair.a) } else { (pair.a, pair.b) };
        (sides, turn(pair.ratio, low, high))
    };
    let width_of = |pair: &record::PairSoFar| pair.half_width().unwrap_or(f64::INFINITY);
    let mut pairs: Vec<&record::PairSoFar> = live.pairs.iter().collect();
    pairs.sort_by(|a, b| width_of(b).total_cmp(&width_of(a)));
    let asked = live.plan.blocks.half_width.0;
    let line = |pair: &&record::PairSoFar| {
        let ((this, that), (ratio, low, high)) = better(pair);
        let (figures, style) = match pair.half_width() {
            None => (format!("{}x, interval from 3 blocks on", significant(ratio)), FAINT),
            Some(half) => {
                let is_enough = half <= asked && pair.blocks >= live.plan.blocks.min;
                let state = if is_enough { "  enough" } else { "" };
                let gauge = match room >= usize::from(WIDTH_OF_BEATS) && !is_enough {
                    true => format!("  [{}]", narrowed(half, asked)),
                    false => String::new(),
                };
                let figures = ratio_with_interval(ratio, low, high);
                let within = if room >= usize::from(WIDTH_OF_BEATS) { ", within" } else { "" };
                let half = significant(100.0 * half);
                (format!("{figures}{within} {half} %{gauge}{state}"), Style::new())
            }
        };
        let left = room.saturating_sub(width(&figures) + 2);
        let sides = sides(live, (this, that), pair.cell, left, is_unicode);
        (format!("{}  {figures}", crate::columns::padded(&sides, left)), style)
    };
    pairs.iter().map(line).collect()
}

/// The two of a pair and their cell, in at most `room` columns: names are shortened, and replaced by numbers where too
/// little of them would be left.
fn sides(
    live: &RunLive,
    (this, that): (usize, usize),
    cell: usize,
    room: usize,
    is_unicode: bool,
) -> String {
    const NAME_MIN: usize = 6;
    let at = match live.cells.len() {
        1 => String::new(),
        _ => format!(" at {}", live.cells[cell]),
    };
    let [this_name, that_name] = [this, that].map(|one| live.contestants[one].name.as_str());
    let whole = format!("{this_name} / {that_name}{at}");
    let half = room.saturating_sub(width(&at) + 3) / 2;
    if width(&whole) <= room {
        whole
    } else if half < NAME_MIN {
        cut(&format!("{} / {}{at}", this + 1, that + 1), room, is_unicode)
    } else {
        let [this, that] = [this_name, that_name].map(|one| cut(one, half, is_unicode));
        format!("{this} / {that}{at}")
    }
}

/// How far an interval has narrowed: full when it is as narrow as asked.
fn narrowed(half: f64, asked: f64) -> String {
    let share = if half > 0.0 { (asked / half).min(1.0) } else { 1.0 };
    let filled = (share * GAUGE as f64).floor() as usize;
    let bar = bar(filled as f64 / GAUGE as f64, GAUGE, true);
    format!("{bar}{}", "\u{2591}".repeat(GAUGE - filled))
}

fn draw_pairs(page: &mut Rows<'_>, live: &RunLive, pairs: Vec<(String, Style)>, rows: usize) {
    let Some(head) = page.top().filter(|_| rows > 0) else { return };
    let asked = Share(live.plan.blocks.half_width.0);
    let fit = rows.saturating_sub(1).min(page.left.height.into());
    let hidden = pairs.len().saturating_sub(fit);
    let more = if hidden > 0 { format!(" ({hidden} more)") } else { String::new() };
    let none = if pairs.is_empty() { ": none before the first block ends" } else { "" };
    let text = format!(
        "pairs by {}, widest first{more}; asked: within {asked} in at least {}{none}",
        live.metric().info().quantity,
        counted(live.plan.blocks.min.into(), "block")
    );
    let short = format!("pairs, asked: within {asked}{more}");
    let room = usize::from(head.width);
    put(page.buffer, head, if width(&text) <= room { &text } else { &short }, FAINT);
    for (text, style) in pairs.into_iter().take(fit) {
        if let Some(row) = page.top() {
            put(page.buffer, row, &text, style);
        }
    }
}

const HELP: [&str; 14] = [
    "s          end the run after this block, with its verdicts;",
    "           again: go on",
    "k          skip a contender: its visits are kept, its",
    "           verdicts are withheld",
    "q, Ctrl-C  end the run now; `joust run --resume` continues it",
    "?          this help, and away again",
    "",
    "A pair's ratio says how many times better the first is, with",
    "its 95 % interval. The run ends when every interval is as",
    "narrow as asked, and not when a difference shows: who stops",
    "for what is seen gets differences that look too certain.",
    "",
    "Visits by block: higher is better, against the contender's",
    "own median. Measuring never waits for this screen.",
];

/// The contenders that can be skipped, and what was typed.
fn question(live: &RunLive, typed: &str, whole: Rect) -> Vec<String> {
    let room = usize::from(whole.height).saturating_sub(5).max(1);
    let all = live.contestants.iter().enumerate();
    let left: Vec<String> = all
        .filter(|(_, one)| one.skip == Skip::No)
        .map(|(index, one)| format!("{:>3}  {}", index + 1, cut(&one.name, 40, true)))
        .collect();
    let hidden = left.len().saturating_sub(room);
    let mut lines: Vec<String> = left.into_iter().take(room).collect();
    if hidden > 0 {
        lines.push(format!("     and {hidden} more"));
    }
    lines.push(format!("number: {typed}_"));
    lines.push("Enter skips it, Esc does not".to_owned());
    lines
}

/// Over the middle of the picture.
fn lay_over(buffer: &mut Buffer, whole: Rect, title: &str, lines: &[String]) {
    let longest = lines.iter().map(|line| width(line)).max().unwrap_or(0).max(width(title));
    let rows = if longest + 4 > usize::from(whole.width) { 2 * lines.len() } else { lines.len() };
    let area =
        whole.centered(Constraint::Length(longest as u16 + 4), Constraint::Length(rows as u16 + 2));
    Clear.render(area, buffer);
    let frame = Block::bordered().title(title).padding(Padding::horizontal(1));
    let inner = frame.inner(area);
    frame.render(area, buffer);
    let room = usize::from(inner.width.max(1));
    let fitted = lines.iter().flat_map(|line| match width(line) > room {
        true => wrapped(line, room),
        false => vec![line.clone()],
    });
    for (row, line) in inner.rows().zip(fitted) {
        put(buffer, row, &line, Style::new());
    }
}
