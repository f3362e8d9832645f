//! Owns the parts of a terminal report: colour, wrapping, tables. Must not know what is reported. Start reading at
//! [`Page`].

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width,
};

use crate::columns::{padded, split, width};
use crate::table::{self, ColumnKind};
use crate::{Options, PROSE_WIDTH_MIN, WIDTH_MIN};

/// Columns left of a table; its cells begin one further.
const TABLE_INDENT: usize = 1;
/// Space left of everything but headings.
const INDENT: &str = "  ";

/// A colour by what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Heading,
    Good,
    Caution,
    Alarm,
    Faint,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Heading => "\u{1b}[1m",
            Self::Good => "\u{1b}[1;32m",
            Self::Caution => "\u{1b}[33m",
            Self::Alarm => "\u{1b}[1;31m",
            Self::Faint => "\u{1b}[2m",
        }
    }
}

/// How a column's cells are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lean {
    Left,
    Right,
    /// To the left, and never broken, as figures are not.
    Whole,
}

/// A report that grows from top to bottom.
#[derive(Debug)]
pub(crate) struct Page {
    options: Options,
    text: String,
}

impl Page {
    pub(crate) fn new(options: &Options) -> Self {
        let options = Options { width: options.width.max(WIDTH_MIN), ..*options };
        Self { options, text: String::new() }
    }

    /// A page without tables, which fits a narrow terminal too.
    pub(crate) fn narrow(options: &Options) -> Self {
        let options = Options { width: options.width.max(PROSE_WIDTH_MIN), ..*options };
        Self { options, text: String::new() }
    }

    /// The report.
    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// A heading with an empty line above it and a remark beside it.
    pub(crate) fn heading(&mut self, title: &str, remark: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let fits = width(title) + 2 + width(remark) <= self.width();
        let lines = wrapped(title, self.width());
        for (at, line) in lines.iter().enumerate() {
            let line = self.painted(line, Paint::Heading);
            self.text.push_str(&line);
            if at + 1 < lines.len() {
                self.text.push('\n');
            }
        }
        if !remark.is_empty() && fits {
            let remark = self.painted(remark, Paint::Faint);
            self.text.push_str(INDENT);
            self.text.push_str(&remark);
        }
        self.text.push('\n');
        if !remark.is_empty() && !fits {
            self.paragraph(remark, Paint::Faint);
        }
    }

    /// A line as it is.
    pub(crate) fn line(&mut self, text: &str, paint: Paint) {
        let line = self.painted(text, paint);
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// A paragraph, wrapped and indented; lines after the first hang by two more columns.
    pub(crate) fn paragraph(&mut self, text: &str, paint: Paint) {
        self.hanging(text, paint, INDENT);
    }

    /// A paragraph that belongs to the one above it: indented once more.
    pub(crate) fn detail(&mut self, text: &str) {
        self.hanging(text, Paint::Plain, &INDENT.repeat(2));
    }

    fn hanging(&mut self, text: &str, paint: Paint, indent: &str) {
        let room = self.width() - indent.len() - INDENT.len();
        for (at, line) in wrapped(text, room).iter().enumerate() {
            let line = self.painted(line, paint);
            let hang = if at == 0 { "" } else { INDENT };
            self.text.push_str(&format!("{indent}{hang}{line}\n"));
        }
    }

    /// Lines as they are (a log, without control characters), each cut to the width.
    pub(crate) fn verbatim(&mut self, text: &str) {
        let room = self.width() - 3 * INDENT.len();
        for line in text.lines() {
            let (line, _) = split(line, room);
            let line = self.painted(&line, Paint::Faint);
            self.text.push_str(&format!("{INDENT}{INDENT}| {line}\n"));
        }
    }

    /// A table with its title and note. A value that is the same in all rows of a count column stands once, in the
    /// note; sentences stand below the table.
    pub(crate) fn described(&mut self, of: &table::Table) {
        let mut note = of.note.clone();
        let mut kept = Vec::new();
        for (at, column) in of.columns.iter().enumerate() {
            match (column.kind, of.constant(at)) {
                (ColumnKind::Sentence, _) => {}
                (ColumnKind::Count | ColumnKind::Common, Some(all)) => {
                    let sep = if note.is_empty() { "" } else { "; " };
                    note += &format!("{sep}{}: {all} each", column.title);
                }
                _ => kept.push(at),
            }
        }
        self.heading(&of.title, &note);
        let headings: Vec<String> = kept.iter().map(|&at| of.columns[at].heading()).collect();
        let lean = |at: usize| if of.columns[at].is_figures() { Lean::Right } else { Lean::Left };
        let columns: Vec<(&str, Lean)> =
            headings.iter().zip(&kept).map(|(text, &at)| (text.as_str(), lean(at))).collect();
        let rows: Vec<Vec<String>> = of.rows.iter().map(|row| row_of(row, &kept)).collect();
        let groups = of.rows.iter().filter_map(|row| match row {
            table::Row::Group(name) => Some(name.as_str()),
            table::Row::Cells(_) => None,
        });
        self.grouped(&columns, &rows, groups);
        self.sentences(of);
    }

    /// The sentences of a table, each with the first cell of its row.
    fn sentences(&mut self, of: &table::Table) {
        let is_sentence = |column: &&table::Column| column.kind == ColumnKind::Sentence;
        let said = of.columns.iter().enumerate().filter(|(_, column)| is_sentence(column));
        for (at, column) in said {
            for cells in of.rows.iter().map(table::Row::cells) {
                let (Some(first), Some(cell)) = (cells.first(), cells.get(at)) else { continue };
                if !cell.text.is_empty() {
                    let text = format!("{} {}: {}", first.text, column.title, cell.text);
                    self.paragraph(&text, Paint::Faint);
                }
            }
        }
    }

    /// A chart, whose lines are laid out for the width.
    pub(crate) fn chart(&mut self, title: &str, note: &str, lines: &[String]) {
        self.heading(title, note);
        lines.iter().for_each(|line| self.line(line, Paint::Plain));
    }

    /// Texts with a label each: beside it if all labels are narrow, otherwise after it.
    pub(crate) fn labelled<'a>(
        &mut self,
        lines: impl Iterator<Item = (&'a str, String, Paint)> + Clone,
    ) {
        let widest = lines.clone().map(|(label, ..)| width(label)).max().unwrap_or(0);
        let is_beside = widest <= self.width() / LABEL_SHARE;
        for (label, text, paint) in lines {
            if !is_beside {
                self.paragraph(&format!("{label}: {text}"), paint);
                continue;
            }
            let room = self.width() - widest - 2 * INDENT.len();
            for (at, line) in wrapped(&text, room).iter().enumerate() {
                let label = if at == 0 { label } else { "" };
                let line = self.painted(line, paint);
                let label = padded(label, widest);
                self.text.push_str(&format!("{INDENT}{label}{INDENT}{line}\n"));
            }
        }
    }

    /// A table; its cells must not hold escape codes, which would count as width.
    pub(crate) fn table(&mut self, columns: &[(&str, Lean)], rows: &[Vec<String>]) {
        self.grouped(columns, rows, std::iter::empty());
    }

    /// The same, with a name in place of each empty row; the name may be wider than the first column.
    fn grouped<'a>(
        &mut self,
        columns: &[(&str, Lean)],
        rows: &[Vec<String>],
        groups: impl Iterator<Item = &'a str>,
    ) {
        let mut groups = groups.peekable();
        let room = self.width() - TABLE_INDENT;
        let Some(layout) = Layout::of(columns, rows, room) else {
            return self.stacked(columns, rows, groups);
        };
        let mut table = Table::new();
        table
            .load_style(self.style())
            .set_content_arrangement(layout.arrangement)
            .set_width(u16::try_from(room).unwrap_or(u16::MAX))
            .set_header(layout.titles.iter().zip(columns).map(|(text, of)| cell(text, of.1)));
        for row in rows {
            table.add_row(row.iter().zip(columns).map(|(text, of)| cell(text, of.1)));
        }
        for (at, (column, width)) in table.column_iter_mut().zip(layout.fixed).enumerate() {
            if at + 1 == columns.len() {
                column.set_padding((1, 0));
            }
            if let Some(width) = width {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
            }
        }
        for line in table.lines() {
            match groups.next_if(|_| line.trim().is_empty()) {
                Some(name) => self.paragraph(name, Paint::Heading),
                None => self.text.push_str(&format!(" {}\n", line.trim_end())),
            }
        }
    }

    /// A table that does not fit: of each row its first cell, then the others with their titles, as many on a line as
    /// fit.
    fn stacked<'a>(
        &mut self,
        columns: &[(&str, Lean)],
        rows: &[Vec<String>],
        mut groups: impl Iterator<Item = &'a str>,
    ) {
        for row in rows {
            if row.iter().all(String::is_empty) {
                groups.next().into_iter().for_each(|name| self.paragraph(name, Paint::Heading));
                continue;
            }
            let mut cells = columns.iter().zip(row);
            if let Some((_, first)) = cells.next() {
                self.paragraph(first, Paint::Plain);
            }
            let is_shown = |(_, text): &(_, &String)| !text.is_empty();
            let named = |((title, _), text): (&(&str, Lean), &String)| match title.is_empty() {
                true => text.clone(),
                false => format!("{title}: {text}"),
            };
            self.flow(cells.filter(is_shown).map(named));
        }
    }

    /// Items side by side, each whole if it fits on a line.
    fn flow(&mut self, items: impl Iterator<Item = String>) {
        let indent = INDENT.repeat(2);
        let room = self.width() - indent.len();
        let mut line = String::new();
        for item in items {
            if !line.is_empty() && width(&line) + INDENT.len() + width(&item) > room {
                self.text.push_str(&format!("{indent}{}\n", std::mem::take(&mut line)));
            }
            if width(&item) > room {
                self.detail(&item);
            } else {
                line += &format!("{}{item}", if line.is_empty() { "" } else { INDENT });
            }
        }
        if !line.is_empty() {
            self.text.push_str(&format!("{indent}{line}\n"));
        }
    }

    /// One rule below the header and nothing else: figures are told apart by their columns.
    fn style(&self) -> TableStyle {
        let rule = if self.options.unicode { '─' } else { '-' };
        TableStyle::new().header_separator(LineStyle::none().fill(rule))
    }

    /// Columns of the page.
    pub(crate) fn width(&self) -> usize {
        self.options.width
    }

    fn painted(&self, text: &str, paint: Paint) -> String {
        if self.options.colour && paint != Paint::Plain {
            format!("{}{text}\u{1b}[0m", paint.code())
        } else {
            text.to_owned()
        }
    }
}

/// The cells of the kept columns; empty ones of a heading over rows.
fn row_of(row: &table::Row, kept: &[usize]) -> Vec<String> {
    match row {
        table::Row::Group(_) => vec![String::new(); kept.len()],
        table::Row::Cells(cells) => kept.iter().map(|&at| cells[at].text.clone()).collect(),
    }
}

/// Labels stand beside their texts if they take at most one part in this many of the width.
const LABEL_SHARE: usize = 3;
/// Columns around the text of a cell, one on each side; the last cell has none at its right.
const PADDING: usize = 2;
/// Fewest columns in which a name or a sentence can be read.
const TEXT_MIN: usize = 14;

/// How a table is fitted into its room. Figures are never broken; titles and texts may be.
struct Layout {
    arrangement: ContentArrangement,
    titles: Vec<String>,
    /// Width of each column that has a fixed one, padding included.
    fixed: Vec<Option<u16>>,
}

impl Layout {
    /// `None` if the room is too narrow for the columns.
    fn of(columns: &[(&str, Lean)], rows: &[Vec<String>], room: usize) -> Option<Self> {
        let whole: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        let natural: usize = widths(&whole, rows, |title| vec![title]).iter().sum();
        if natural <= room {
            let arrangement = ContentArrangement::Disabled;
            return Some(Self { arrangement, titles: whole, fixed: vec![None; columns.len()] });
        }
        let broken = |&(title, lean): &(&str, Lean)| match lean {
            Lean::Left | Lean::Whole => title.to_owned(),
            Lean::Right => title.replace('/', " /"),
        };
        let titles: Vec<String> = columns.iter().map(broken).collect();
        let least = widths(&titles, rows, |title| title.split(' ').collect());
        let least = least.into_iter().zip(columns);
        let needed: usize =
            least.clone().map(|(w, of)| if of.1 == Lean::Left { w.min(TEXT_MIN) } else { w }).sum();
        if needed > room {
            return None;
        }
        let fixed = |(width, of): (usize, &(&str, Lean))| {
            (of.1 != Lean::Left).then(|| u16::try_from(width).ok()).flatten()
        };
        let arrangement = ContentArrangement::Dynamic;
        Some(Self { arrangement, titles, fixed: least.map(fixed).collect() })
    }
}

/// Width of each column: its widest cell or part of its title, and its padding.
fn widths(titles: &[String], rows: &[Vec<String>], parts: fn(&str) -> Vec<&str>) -> Vec<usize> {
    let of = |(at, title): (usize, &String)| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(String::as_str);
        let widest = parts(title).into_iter().chain(cells).map(width).max();
        let padding = if at + 1 == titles.len() { PADDING - 1 } else { PADDING };
        widest.unwrap_or(0) + padding
    };
    titles.iter().enumerate().map(of).collect()
}

fn cell(text: &str, lean: Lean) -> Cell {
    let alignment = match lean {
        Lean::Left | Lean::Whole => CellAlignment::Left,
        Lean::Right => CellAlignment::Right,
    };
    Cell::new(text).set_alignment(alignment)
}

/// Breaks text at spaces into lines of at most `room` columns, and a longer word inside.
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().flat_map(|word| pieces(word, room)) {
        let line = lines.last_mut().expect("begun with one line");
        if line.is_empty() {
            line.push_str(&word);
        } else if width(line) + 1 + width(&word) <= room {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

/// The word in pieces of at most `room` columns; a character wider than that is a piece of its own.
fn pieces(word: &str, room: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while width(rest) > room {
        let (piece, behind) = split(rest, room);
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let (piece, behind) = match piece.is_empty() {
            true => (rest[..first].to_owned(), &rest[first..]),
            false => (piece, behind),
        };
        pieces.push(piece);
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(rest.to_owned());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("an unbreakable", 5), ["an", "unbre", "akabl", "e"]);
        assert_eq!(wrapped("", 3), [""]);
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        let mut page = Page::new(&Options::default());
        page.heading("Title", "remark");
        page.paragraph("text", Paint::Alarm);
        assert_eq!(page.finish(), "Title  remark\n  text\n");
    }
}
