//! `joust report` and `joust doctor` over files that the binary itself wrote.

use crate::{Server, output, said, stdout};

#[test]
fn the_record_of_a_load_is_shown_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("load.json");
    let server = Server::start(&["--fixed", "100"]);
    let path = file.to_str().unwrap();
    let first = output(&["load", &server.url, "-n", "50", "--json", path]);
    let again = output(&["report", path]);
    assert_eq!(stdout(&again), stdout(&first), "{}", said(&again));
    assert_eq!(output(&["report", path, "--format", "html"]).status.code(), Some(2));
    assert_eq!(output(&["doctor", path]).status.code(), Some(2));
}

#[test]
fn the_checks_are_listed() {
    let text = stdout(&output(&["doctor", "--checks"]));
    assert!(text.contains("errors_as_speed") && text.contains("generator_limit"), "{text}");
}
