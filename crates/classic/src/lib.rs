//! Owns everything specific to each classic load tool: its command line, its report, and what it counts differently
//! from us. Each tool is in one file or folder. Must not know sockets, how a load is made, how a program is started, or
//! argv of this process: text in, values out.
//!
//! A command line becomes a plan and a printer (see [`command`]): the load itself is that of `joust load`, and the
//! report is written from its record.
//!
//! Reports are accepted as people have them: from a terminal, wrapped by a mail program, quoted, indented, coloured,
//! several in a file, with prose around them, cut off at either end. So a report is parsed as words, not as lines (see
//! `words`), and a tool is a list of the labels it prints (see `layout`). What is absent or unreadable stays `None` and
//! is named in [`Report::missing`].
//!
//! Start reading at [`Tool`] and [`Report`]; a new tool is a new file and a line in [`ALL`].
//!
//! ```
//! let text = "Running 1s test @ http://127.0.0.1:8080/
//!   1 threads and 2 connections
//!   25532 requests in 1.02s, 7.89MB read
//! Requests/sec:  25039.03
//! Transfer/sec:      7.74MB";
//! let reports = joust_classic::read_any(text).unwrap();
//! assert_eq!(reports[0].tool, "wrk");
//! assert_eq!(reports[0].requests.complete, Some(25532));
//! ```

#![warn(clippy::cast_lossless)]

mod ab;
mod called;
mod clean;
pub mod command;
mod h2load;
mod hey;
mod http_load;
mod httperf;
mod json;
mod k6;
mod layout;
mod numbers;
mod oha;
mod report;
mod siege;
mod weighttp;
mod words;
mod wrk;
mod wrk2;

use command::{Call, CommandOutcome, OwnFlag};
pub use report::{
    Bin, DocumentLength, Ordered, Rates, Report, Requests, Steps, Summary, Times, Traffic, Users,
};

/// Every tool whose reports are read.
pub static ALL: &[&Tool] = &[
    &ab::TOOL,
    &siege::TOOL,
    &wrk::TOOL,
    &wrk2::TOOL,
    &http_load::TOOL,
    &weighttp::TOOL,
    &h2load::TOOL,
    &hey::TOOL,
    &oha::TOOL,
    &httperf::TOOL,
    &k6::TOOL,
];

/// A load tool.
#[derive(Debug)]
pub struct Tool {
    /// Its name, which is that of its program ("ab").
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// What it counts differently from us, a sentence each: what one must know before comparing its figures with ours.
    pub counts_differently: &'static [&'static str],
    /// Its command line, if joust can replace it.
    pub command: Option<fn(&Call<'_>) -> CommandOutcome>,
    /// joust's own flags on its command line.
    pub own_flags: &'static [OwnFlag],
    /// Finds its reports in a text, in order of their positions.
    pub read: fn(&str) -> Result<Vec<Report>, ReadError>,
}

/// Why nothing could be read from a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The text contains no report of this tool.
    #[error(
        "no report of {tool} in this text: a report of it has at least one of these lines: \
         {}; is it cut off, or from another tool?", looked_for.join(", ")
    )]
    NoReport {
        /// Name of the tool.
        tool: &'static str,
        /// Beginnings of lines that only its reports have; `#` represents a number.
        looked_for: Vec<&'static str>,
    },
    /// The text contains no report of any tool.
    #[error("no report of {} in this text", names().join(", "))]
    NoneOfAll,
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|tool| tool.name).collect()
}

/// The tool with that name.
pub fn named(name: &str) -> Option<&'static Tool> {
    ALL.iter().copied().find(|tool| tool.name == name)
}

/// Every report of any tool in a text, in order of their positions.
///
/// # Errors
/// There is none.
pub fn read_any(text: &str) -> Result<Vec<Report>, ReadError> {
    let mut found: Vec<Report> =
        ALL.iter().filter_map(|tool| (tool.read)(text).ok()).flatten().collect();
    found.sort_by_key(|report| report.place.start);
    if found.is_empty() { Err(ReadError::NoneOfAll) } else { Ok(found) }
}
