//! Owns a table of typed columns, for formats that have types: what a column is called, what it holds, and that a cell
//! may be empty. Must not know what is in it. Start reading at [`Sheet`].

/// A table. Every row has a cell for every column, of the column's kind or empty.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) columns: Vec<(&'static str, Kind)>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Count,
    Figure,
    Flag,
}

/// A cell; [`Cell::Empty`] if there is no such figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Count(u64),
    /// Always finite.
    Figure(f64),
    Flag(bool),
    Empty,
}

/// A column: its name with its unit last, what it holds, and how it is read from a row.
pub(crate) struct SheetColumn<R> {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) of: fn(&R) -> Cell,
}

impl<R> SheetColumn<R> {
    pub(crate) const fn new(name: &'static str, kind: Kind, of: fn(&R) -> Cell) -> Self {
        Self { name, kind, of }
    }
}

impl Sheet {
    /// The table of those columns and rows.
    pub(crate) fn of<R>(columns: &[SheetColumn<R>], rows: impl Iterator<Item = R>) -> Self {
        let row = |row: R| columns.iter().map(|column| (column.of)(&row)).collect();
        Self {
            columns: columns.iter().map(|column| (column.name, column.kind)).collect(),
            rows: rows.map(row).collect(),
        }
    }

    /// The columns of both; they have the same rows.
    pub(crate) fn beside(mut self, right: Self) -> Self {
        assert_eq!(self.rows.len(), right.rows.len(), "tables side by side have the same rows");
        self.columns.extend(right.columns);
        for (row, more) in self.rows.iter_mut().zip(right.rows) {
            row.extend(more);
        }
        self
    }

    /// As CSV (RFC 4180), the names first.
    pub(crate) fn csv(&self) -> String {
        let names = self.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
        let rows = self.rows.iter().map(|row| csv_line(row.iter().map(Cell::shown)));
        std::iter::once(names).chain(rows).map(|line| line + "\r\n").collect()
    }
}

impl Cell {
    /// A figure; empty if it is absent or not finite.
    pub(crate) fn figure(value: Option<f64>) -> Self {
        value.filter(|value| value.is_finite()).map_or(Self::Empty, Self::Figure)
    }

    /// A count; empty if it is absent.
    pub(crate) fn count(value: Option<u64>) -> Self {
        value.map_or(Self::Empty, Self::Count)
    }

    /// A text; empty if it is absent.
    pub(crate) fn text(value: Option<String>) -> Self {
        value.map_or(Self::Empty, Self::Text)
    }

    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Figure(figure) => figure.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Empty => String::new(),
        }
    }
}

/// A row of those cells, without the end of its line.
pub(crate) fn csv_line(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().map(|cell| quoted(&cell)).collect::<Vec<_>>().join(",")
}

/// Puts a cell in quotes if it contains a comma or a quote. A text that a spreadsheet would take for a formula gets
/// an apostrophe in front.
fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
    let cell = if is_formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_formulas_are_harmless() {
        let cells = ["a,b", "say \"no\"", "=cmd()", "-1.5"].map(quoted);
        assert_eq!(cells, ["\"a,b\"", "\"say \"\"no\"\"\"", "'=cmd()", "-1.5"]);
    }

    #[test]
    fn what_is_not_finite_is_empty() {
        assert_eq!(Cell::figure(Some(f64::NAN)), Cell::Empty);
        assert_eq!(Cell::figure(Some(0.0)), Cell::Figure(0.0));
    }
}
