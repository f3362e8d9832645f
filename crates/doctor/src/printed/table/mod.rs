//! Owns the tables in a text: where they are, and the way from their cells to rows. One file a format; all of
//! them end as the same [`Table`]. Start reading at [`find`].

mod cells;
mod columns;
mod json;
mod markdown;
mod rows;
mod separated;

use super::row::Row;

/// A table as it was written.
#[derive(Debug, Default, Clone, PartialEq)]
struct Table {
    /// What stands above it: a heading.
    title: String,
    /// Names of its columns.
    header: Vec<String>,
    /// Its cells, row by row; a row may be shorter than the header.
    body: Vec<Vec<String>>,
}

/// Rows of every table of results in a text, in the order in which they stand there.
pub(super) fn find(text: &str, source: usize, source_name: &str) -> Vec<Row> {
    let place = rows::Place { source, name: source_name };
    if let Some(table) = json::table(text) {
        return rows::of(&table, place);
    }
    let tables = markdown::tables(text);
    let found: Vec<Row> = tables.iter().flat_map(|table| rows::of(table, place)).collect();
    if !found.is_empty() {
        return found;
    }
    separated::tables(text).iter().flat_map(|table| rows::of(table, place)).collect()
}
