//! Owns how a text is read: reports of tools first, else tables. What a text is, is told by what it says, not by
//! the name of its file. Start reading at [`read`].

use super::from_report;
use super::row::{Printed, Row, Source};
use super::table;

/// Why nothing can be said of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReadable {
    /// Name of the source.
    pub source: String,
    /// What is wrong with it.
    pub reason: String,
    /// The way out.
    pub help: String,
}

/// Everything in these sources.
///
/// # Errors
/// If one of them holds neither a report of a known tool nor a table of results.
pub fn read(sources: Vec<Source>) -> Result<Printed, NotReadable> {
    let mut rows: Vec<Row> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let found = rows_of(source, index);
        if found.is_empty() {
            return Err(not_readable(source));
        }
        rows.extend(found);
    }
    tell_apart(&mut rows);
    Ok(Printed { sources, rows })
}

fn rows_of(source: &Source, index: usize) -> Vec<Row> {
    let reports = classic::read_any(&source.text).unwrap_or_default();
    let of_reports = from_report::rows(reports, index, source);
    match of_reports.is_empty() {
        true => table::find(&source.text, index, &source.name),
        false => of_reports,
    }
}

/// Gives rows of one name the number of their line, since a reader has to find them again.
fn tell_apart(rows: &mut [Row]) {
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    for (index, row) in rows.iter_mut().enumerate() {
        let same = |to: usize| names[..to].iter().filter(|name| **name == names[index]).count();
        if same(names.len()) > 1 {
            row.name = match row.connections {
                Some(connections) => {
                    format!("{} (row {}, {} connections)", row.name, index + 1, connections.value)
                }
                None => format!("{} (row {})", row.name, index + 1),
            };
        }
    }
}

fn not_readable(source: &Source) -> NotReadable {
    let tools: Vec<&str> = classic::ALL.iter().map(|tool| tool.name).collect();
    let tools = tools.join(", ");
    let is_empty = source.text.trim().is_empty();
    NotReadable {
        source: source.name.clone(),
        reason: match is_empty {
            true => "it is empty".to_owned(),
            false => "it holds no report of a load tool and no table of results".to_owned(),
        },
        help: format!(
            "paste the whole output of one of {tools}, or a table (CSV, Markdown or JSON) whose columns \
             are named, as in `server, connections, req/s, mean latency (ms), p99 (ms)`"
        ),
    }
}
