//! For tests only: a test that cannot run on this machine reports it here, and `make test` prints all skipped tests
//! with their reasons at its end. Start reading at [`note`].

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file that collects the lines, beside the folder of the test binaries: `target/debug/skipped-tests`.
const FILE: &str = "skipped-tests";

/// Reports that the calling test, or a part of it, is skipped, and why. It writes to stderr, past the output capture of
/// the test harness, and appends a line to the file that `make test` prints.
///
/// ```
/// let wrk = std::process::Command::new("wrk-of-another-machine").arg("-v").output();
/// if wrk.is_err() {
///     return joust_skips::note("wrk is not installed (scripts/peers.sh brings it)");
/// }
/// ```
pub fn note(why: impl Display) {
    let binary = std::env::current_exe().unwrap_or_default();
    let thread = std::thread::current();
    let line = line(&binary, thread.name().unwrap_or("a thread of a test"), &why);
    // Failed writes are ignored: the test may run without the right to write, and must not fail for that.
    let _ = write!(std::io::stderr(), "skipped: {line}");
    let file = file_beside(&binary);
    let opened = file.map(|file| OpenOptions::new().create(true).append(true).open(file));
    if let Some(Ok(mut file)) = opened {
        let _ = file.write_all(line.as_bytes());
    }
}

/// One line: the test, by its binary and the name that the harness gives its thread, and the reason.
fn line(binary: &Path, test: &str, why: &dyn Display) -> String {
    let stem = binary.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.rsplit_once('-').map_or(&*stem, |(name, _hash)| name);
    let why = why.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{stem} {test}: {why}\n")
}

/// The file for a test binary in `target/debug/deps`; `None` for binaries elsewhere, such as doc tests.
fn file_beside(binary: &Path) -> Option<PathBuf> {
    let deps = binary.parent().filter(|folder| folder.ends_with("deps"))?;
    Some(deps.with_file_name(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_binary_without_its_hash_the_test_and_the_reason() {
        let why = format_args!("no nginx\n  here");
        assert_eq!(
            line(Path::new("/t/deps/network-0af3"), "a::b", &why),
            "network a::b: no nginx here\n"
        );
    }

    #[test]
    fn lines_go_beside_the_folder_of_test_binaries_and_nowhere_else() {
        let file = file_beside(Path::new("/t/debug/deps/network-0af3"));
        assert_eq!(file, Some(PathBuf::from("/t/debug/skipped-tests")));
        assert_eq!(file_beside(Path::new("/tmp/rustdoctest/rust_out")), None);
    }
}
