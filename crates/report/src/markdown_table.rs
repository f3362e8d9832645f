//! Owns how a table and a text look in Markdown.

use std::fmt::Write as _;

use crate::table::{Cell, Row, Table};
use crate::wording::plain;

/// A table with its title and note.
pub(crate) fn described(page: &mut String, table: &Table, level: &str) {
    let _ = writeln!(page, "\n{level} {}\n", escaped(&table.title));
    if !table.note.is_empty() {
        let _ = writeln!(page, "{}\n", escaped(&table.note));
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let headings = table.columns.iter().map(|column| escaped(&column.heading()));
    page.push_str(&line(headings.collect()));
    let rule = |column: &crate::table::Column| if column.is_figures() { "---:" } else { "---" };
    page.push_str(&line(table.columns.iter().map(|column| rule(column).to_owned()).collect()));
    for row in &table.rows {
        let mut cells = match row {
            Row::Group(name) => vec![format!("**{}**", escaped(name))],
            Row::Cells(cells) => cells.iter().map(shown).collect(),
        };
        cells.resize(table.columns.len(), String::new());
        page.push_str(&line(cells));
    }
}

fn shown(cell: &Cell) -> String {
    let text = escaped(&cell.text);
    if cell.is_bad { format!("**{text}**") } else { text }
}

/// Text without what Markdown or HTML would read as markup; on one line.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in plain(text).chars() {
        // A bracket alone is text; only `](` makes a link of it.
        if c == '(' && safe.ends_with(']') {
            safe.push('\\');
        }
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '|' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}
