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

#[test]
fn cells_are_shown_one_by_one_only_in_full() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = crate::history::made_up(1, 1.0);
    run.plan.cells[0].name = "connections=1".to_owned();
    let second = record::Cell { name: "connections=10".to_owned(), ..run.plan.cells[0].clone() };
    run.plan.cells.push(second);
    let again: Vec<record::Visit> =
        run.visits.iter().map(|visit| record::Visit { cell: 1, ..visit.clone() }).collect();
    run.visits.extend(again);
    let folder = crate::history::put_run(dir.path(), "cells", &run);
    let path = folder.to_str().unwrap();
    let short = stdout(&output(&["report", path]));
    assert!(short.contains("\nAnswer") && short.contains("--full"), "{short}");
    assert!(!short.contains("Cell connections=1"), "{short}");
    let full = stdout(&output(&["report", path, "--full"]));
    assert!(full.contains("\nAnswer") && full.contains("\nCell connections=10\n"), "{full}");
    assert!(!full.contains("--full"), "nothing is left out: {full}");
}
