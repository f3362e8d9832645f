//! The properties of the terminal, and lines for its user. All code with output for people uses it, so it uses nothing
//! else of this crate.

use std::io::{self, IsTerminal as _, Write as _};

use report::Options;

/// Writes a line to stderr. If that fails, there is no other place to report it.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Columns of the terminal on stdout, 100 without a terminal.
pub fn columns() -> usize {
    let terminal = console::Term::stdout().size_checked();
    terminal.map_or(100, |(_, columns)| usize::from(columns)).clamp(60, 200)
}

/// Width of prose: a line of more than 100 columns is hard to read, and a narrow terminal is used fully.
pub fn prose_options() -> Options {
    let terminal = console::Term::stdout().size_checked();
    let columns = terminal.map_or(100, |(_, columns)| usize::from(columns));
    Options { width: columns.clamp(report::PROSE_WIDTH_MIN, 100), ..report_options() }
}

/// Whether stdout may have colour: a terminal, and NO_COLOR is not set.
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Width and colour of reports on this terminal.
pub fn report_options() -> Options {
    Options { width: columns(), colour: colour(), ..Options::default() }
}
