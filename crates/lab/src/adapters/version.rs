//! Owns versions of servers: as they print them, and which one is older.

use std::cmp::Ordering;
use std::path::Path;
use std::process::Command;

/// The version that a server prints: the text from `marker` to the end of the line.
pub(crate) fn version_printed(binary: &Path, flag: &str, marker: &str) -> Option<String> {
    let output = Command::new(binary).arg(flag).output().ok()?;
    // nginx prints its version to stderr, the others to stdout.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.contains(marker))?;
    Some(line.split_once(marker)?.1.trim().to_owned())
}

/// Whether the version in `text` ("nginx/1.22.1 (Debian)") is older than `minimum` ("1.19.5"). False for a text
/// without a number, which cannot be compared.
pub(super) fn is_before(text: &str, minimum: &str) -> bool {
    let (have, wanted) = (numbers(text), numbers(minimum));
    !have.is_empty() && have.cmp(&wanted) == Ordering::Less
}

/// The first numbers that are separated by dots.
fn numbers(text: &str) -> Vec<u64> {
    let Some(start) = text.find(|c: char| c.is_ascii_digit()) else { return Vec::new() };
    // The digit in the name h2o is no version: a dot must follow a version's first number.
    let rest = &text[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (version, behind) = rest.split_at(end);
    if !version.contains('.') && behind.contains('.') {
        return numbers(behind);
    }
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number_not_by_letter() {
        assert!(is_before("nginx/1.9.5", "1.19.5"));
        assert!(!is_before("nginx/1.22.1", "1.19.5"));
        assert!(!is_before("Apache/2.4.66 (Debian)", "2.4"));
        assert!(is_before("Apache/2.2.22 (Ubuntu)", "2.4"));
        assert!(is_before("h2o/1.7.0", "2.0"));
        assert!(!is_before("h2o/2.2.5", "2.0"));
        assert!(!is_before("Apache Tomcat/10.1.60 (Debian), JVM 17.0.15+6", "10.0"));
        assert!(!is_before("2.0", "2.0"));
    }

    #[test]
    fn a_version_that_says_nothing_is_not_called_old() {
        assert!(!is_before("(devel)", "2.6"));
        assert!(!is_before("", "2.6"));
    }
}
