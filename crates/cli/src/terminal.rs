//! What the terminal is like, and lines for the person before it. Everything that speaks to people uses
//! it, so it uses nothing else of this crate.

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

/// Whether stdout may have colour: a terminal, and NO_COLOR is not set.
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Width and colour of reports on this terminal.
pub fn report_options() -> Options {
    Options { width: columns(), colour: colour(), ..Options::default() }
}
