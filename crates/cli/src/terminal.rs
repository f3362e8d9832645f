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
    let columns = terminal.map_or(100, |(_, columns)| usize::from(columns));
    columns.clamp(report::WIDTH_MIN, WIDTH_MAX)
}

/// Widest report: longer lines are not found again at their left end.
const WIDTH_MAX: usize = 200;

/// Width of prose: a line of more than 100 columns is hard to read, and a narrow terminal is used fully.
pub fn prose_options() -> Options {
    let terminal = console::Term::stdout().size_checked();
    let columns = terminal.map_or(100, |(_, columns)| usize::from(columns));
    Options { width: columns.clamp(report::PROSE_WIDTH_MIN, 100), ..report_options() }
}

/// Whether stdout may have colour: on a terminal unless NO_COLOR is set, and elsewhere only if CLICOLOR_FORCE is.
pub fn colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_forced =
        std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    !is_set("NO_COLOR") && (is_forced || io::stdout().is_terminal())
}

/// Width, colour and characters of reports on this terminal. A report that goes to a file has all characters.
pub fn report_options() -> Options {
    let unicode = speaks_unicode() || !io::stdout().is_terminal();
    Options { width: columns(), colour: colour(), unicode, ..Options::default() }
}

/// Whether the locale is UTF-8. Most containers set no locale, and the terminal outside speaks UTF-8.
pub fn speaks_unicode() -> bool {
    let set = |name| std::env::var(name).ok().filter(|locale| !locale.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}
