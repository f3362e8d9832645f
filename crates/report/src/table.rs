//! Owns what a table is: title, note, columns with their unit and side, rows. A table is made once,
//! and each output lays out any of them: `terminal::Page::described`, `markdown_table::described`, the
//! macro `described` of the page's template. Must not know what the figures mean, nor any layout.
//! Start reading at [`Table`].

use record::Metric;
use serde::Serialize;

/// A table, with what a reader must know to read it.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// Sentences without a last full stop; empty for none.
    pub(crate) note: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    #[serde(skip)]
    pub(crate) depth: Depth,
}

/// Whether a short report has it. Files have all tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    Answer,
    Detail,
}

/// One column.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// "us/request", "/s", "%"; empty if the cells have their own unit, or none.
    pub(crate) unit: &'static str,
    pub(crate) kind: ColumnKind,
}

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ColumnKind {
    /// Names and words: aligned left, and broken if there is no room.
    Text,
    /// Sentences: like text, but a terminal shows them below the table.
    Sentence,
    /// Numbers: aligned right, never broken.
    Figure,
    /// Numbers that are often the same in all rows; a terminal then shows them once, in the note.
    Count,
    /// The same for words.
    Common,
}

/// One row.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Row {
    /// A heading over the rows below it.
    Group(String),
    /// A cell a column.
    Cells(Vec<Cell>),
}

/// One cell.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Whether it says that something went wrong.
    pub(crate) is_bad: bool,
    /// Id of the section that it names, on the same page; empty for none.
    pub(crate) to: String,
}

impl Column {
    pub(crate) const fn text(title: &'static str) -> Self {
        Self { title, unit: "", kind: ColumnKind::Text }
    }

    pub(crate) const fn sentence(title: &'static str) -> Self {
        Self { title, unit: "", kind: ColumnKind::Sentence }
    }

    pub(crate) const fn figure(title: &'static str, unit: &'static str) -> Self {
        Self { title, unit, kind: ColumnKind::Figure }
    }

    /// Of a metric's values.
    pub(crate) fn metric(metric: Metric) -> Self {
        Self::figure(metric.info().column, metric.info().unit.heading())
    }

    pub(crate) const fn count(title: &'static str) -> Self {
        Self { title, unit: "", kind: ColumnKind::Count }
    }

    pub(crate) const fn common(title: &'static str) -> Self {
        Self { title, unit: "", kind: ColumnKind::Common }
    }

    /// Whether its cells are numbers.
    pub(crate) fn is_figures(&self) -> bool {
        matches!(self.kind, ColumnKind::Figure | ColumnKind::Count)
    }

    /// Title and unit: "CPU us/request", "lambda/s".
    pub(crate) fn heading(&self) -> String {
        let between = if self.unit.is_empty() || self.unit.starts_with('/') { "" } else { " " };
        format!("{}{between}{}", self.title, self.unit)
    }
}

impl Row {
    pub(crate) fn of(texts: impl IntoIterator<Item = String>) -> Self {
        Self::Cells(texts.into_iter().map(Cell::from).collect())
    }

    /// Its cells; empty for a heading.
    pub(crate) fn cells(&self) -> &[Cell] {
        match self {
            Self::Group(_) => &[],
            Self::Cells(cells) => cells,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Table {
    /// The table, unless it has no row.
    pub(crate) fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// The value that all rows share in a column; `None` if they differ, or if there are fewer than two rows.
    pub(crate) fn constant(&self, column: usize) -> Option<&str> {
        let mut cells = self.rows.iter().filter_map(|row| row.cells().get(column)).peekable();
        let first = cells.next()?;
        cells.peek()?;
        cells.all(|cell| cell.text == first.text).then_some(first.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stands_behind_its_title() {
        assert_eq!(Column::figure("CPU", "us/request").heading(), "CPU us/request");
        assert_eq!(Column::figure("requests", "/s").heading(), "requests/s");
        assert_eq!(Column::text("tool").heading(), "tool");
    }

    #[test]
    fn a_column_is_constant_over_rows_with_cells() {
        let row = |last: &str| Row::of(["a".to_owned(), last.to_owned()]);
        let rows = vec![Row::Group("x".to_owned()), row("8"), row("8")];
        let columns = vec![Column::text("name"), Column::count("visits")];
        let (title, note) = (String::new(), String::new());
        let mut table = Table { title, note, columns, rows, depth: Depth::Answer };
        assert_eq!(table.constant(1), Some("8"));
        table.rows.push(row("7 of 8"));
        assert_eq!(table.constant(1), None);
        table.rows.truncate(2);
        assert_eq!(table.constant(1), None, "of one row nothing is said for all");
        table.rows.clear();
        assert_eq!(table.constant(1), None);
        assert!(table.filled().is_none());
    }
}
