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
    let refused = output(&["report", path, "--format", "pairs-csv"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("one of text, markdown, html, csv,"), "{}", said(&refused));
    let drawn = output(&["report", path, "--figures", dir.path().join("f").to_str().unwrap()]);
    assert!(dir.path().join("f/distribution.svg").exists(), "{}", said(&drawn));
    let examined = output(&["doctor", path]);
    assert_eq!(examined.status.code(), Some(0), "{}", said(&examined));
    assert!(stdout(&examined).contains("checks over a load of "), "{}", stdout(&examined));
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&output(&["doctor", path, "--json"]))).unwrap();
    assert!(json["findings"].is_array(), "{json}");
}

#[test]
fn colour_is_for_a_terminal_unless_it_is_asked_for_or_refused() {
    let coloured = |settings: &[(&str, &str)]| {
        let mut command = crate::joust(&["doctor", "--checks"]);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let output = command.envs(settings.iter().copied()).output().unwrap();
        stdout(&output).contains('\u{1b}')
    };
    assert!(!coloured(&[]), "a pipe is no terminal");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "0")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(
        coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]),
        "empty is as if it were not set"
    );
}

#[test]
fn the_checks_are_listed() {
    let text = stdout(&output(&["doctor", "--checks"]));
    assert!(text.contains("errors_as_speed") && text.contains("generator_limit"), "{text}");
    assert!(text.contains("\nReports of other tools: Did it error?\n"), "{text}");
}

#[test]
fn a_check_is_explained_and_a_mistaken_name_gets_the_nearest() {
    let text = stdout(&output(&["doctor", "--explain", "errors_as_speed"]));
    assert!(text.starts_with("errors_as_speed: ") && text.contains("\nWhat to do\n"), "{text}");
    let mistaken = output(&["doctor", "--explain", "errors_as_sped"]);
    assert_eq!(mistaken.status.code(), Some(2));
    assert!(said(&mistaken).contains("errors_as_speed"), "{}", said(&mistaken));
}

#[test]
fn this_machine_is_looked_at_for_a_person_a_shell_and_a_program() {
    let text = stdout(&output(&["doctor", "--machine"]));
    assert!(text.starts_with("This machine: ") && text.contains("accept_backlog: "), "{text}");
    let script = stdout(&output(&["doctor", "--fix"]));
    assert!(script.starts_with("#!/bin/sh\n"), "{script}");
    let checked = std::process::Command::new("sh").args(["-n", "-c", &script]).output().unwrap();
    assert!(checked.status.success(), "the shell can read it: {checked:?}");
    let json = stdout(&output(&["doctor", "--machine", "--json"]));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let lines = value["machine"].as_array().unwrap();
    assert_eq!(lines.len(), doctor::machine::TOPICS.len());
    for line in lines {
        let is_known = line["state"] != "not_available";
        assert_eq!(line["seen"].is_string(), is_known, "{line}");
        assert_eq!(line["why"].is_string(), !is_known, "{line}");
    }
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
