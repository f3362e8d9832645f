//! `joust compare` and `joust history` over made-up runs: exit codes, several processes at once, damage;
//! and docs/history.md, whose commands run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use record::{Comparison, HistoryRecord, RunRecord};

use crate::docs::{flags, page, words};
use crate::{joust, output, said, stdout};

#[path = "../../../history/src/testdata.rs"]
#[expect(dead_code, reason = "the tests of the crate use all of it")]
mod testdata;

const NAMES: [&str; 2] = ["nginx", "joust one"];

/// A run of the study `quick` in a folder of its own.
fn put(dir: &Path, name: &str, seed: u64, factor: f64) -> PathBuf {
    put_run(dir, name, &made_up(seed, factor))
}

pub(crate) fn made_up(seed: u64, factor: f64) -> RunRecord {
    let mut run = testdata::run_of(&NAMES, 30, seed, &[1.0, factor]);
    run.plan.name = "quick".to_owned();
    for facts in &mut run.contenders {
        facts.body_sha256 = "a page".to_owned();
    }
    run
}

pub(crate) fn put_run(dir: &Path, name: &str, run: &RunRecord) -> PathBuf {
    let folder = dir.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("run.json"), run.to_json()).unwrap();
    folder
}

fn at(dir: &Path, args: &[&str]) -> std::process::Output {
    joust(args).current_dir(dir).output().unwrap()
}

#[test]
fn the_exit_code_of_a_comparison_says_how_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "base", 1, 1.0);
    put(dir.path(), "same", 2, 1.0);
    put(dir.path(), "slower", 3, 0.9);
    let mut void = made_up(4, 0.9);
    // Every third start is slow; findings in a file are ignored and recomputed.
    for visit in void.visits.iter_mut().filter(|one| one.contender == 1 && one.block % 3 == 0) {
        visit.rate_per_s = visit.rate_per_s.map(|rate| 0.6 * rate);
    }
    put_run(dir.path(), "void", &void);
    let mut broken = made_up(4, 1.0);
    broken.contenders[1].body_sha256 = "another page".to_owned();
    put_run(dir.path(), "broken", &broken);
    let mut other = made_up(5, 1.0);
    other.plan.cells[0].workload.connections += 1;
    put_run(dir.path(), "other", &other);
    let cases: [(&[&str], i32, &str); 11] = [
        (&["base", "same"], 0, "no regression"),
        (&["base", "slower"], 99, "regression: joust one: 0.89x"),
        (&["slower", "base"], 0, "improvement"),
        (&["base/run.json", "slower", "--margin", "30%"], 0, "no regression"),
        (&["base", "slower", "--metric", "server_cpu"], 99, "server CPU time per request"),
        (&["base", "slower", "--no-reference"], 99, "contender's own figures"),
        (&["base", "void"], 3, "two_clusters"),
        (&["base", "broken"], 99, "broken: joust one: it worked in the base run"),
        (&["base", "other"], 3, "was asked otherwise"),
        (&["base", "gone"], 2, "gone"),
        (&["base", "same", "--reference", "h2o"], 2, "nginx, joust one"),
    ];
    for (args, code, part) in cases {
        let done = at(dir.path(), &[&["compare"], args].concat());
        let text = stdout(&done).split_whitespace().collect::<Vec<_>>().join(" ") + &said(&done);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: `{part}` is not in {text}");
    }
    for margin in ["0%", "-1%", "100%", "x"] {
        let margin = format!("--margin={margin}");
        assert_eq!(at(dir.path(), &["compare", "base", "same", &margin]).status.code(), Some(2));
    }
}

#[test]
fn as_json_a_comparison_has_its_estimates() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "base", 1, 1.0);
    put(dir.path(), "slower", 3, 0.9);
    let done = at(dir.path(), &["compare", "base", "slower", "--json"]);
    let seen: Comparison = serde_json::from_str(&stdout(&done)).unwrap();
    assert_eq!((seen.format.as_str(), seen.regressions().count()), (Comparison::FORMAT, 2));
    let estimate = seen.changes[0].estimate.unwrap();
    assert!(estimate.low < 0.9 && 0.9 < estimate.high, "{estimate:?}");
}

#[test]
fn processes_that_add_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..12).map(|n| format!("run-{n}")).collect();
    (0..).zip(&names).for_each(|(seed, name)| drop(put(dir.path(), name, seed, 1.0)));
    // Each process adds all of them; the first one creates the database.
    let add = |_| {
        let mut command = joust(&["history", "add", "--db", "h.sqlite"]);
        command.args(&names).current_dir(dir.path()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(add).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = stdout(&at(dir.path(), &["history", "--db", "h.sqlite", "--json"]));
    let listed: HistoryRecord = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.runs.len(), names.len());
    let files: BTreeSet<&str> = listed.runs.iter().map(|run| run.path.as_str()).collect();
    assert_eq!(files.len(), names.len());
}

#[test]
fn a_damaged_history_and_a_file_that_moved_are_named_with_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let absent = at(dir.path(), &["history"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(said(&absent).contains("joust history add"), "{}", said(&absent));
    assert!(!dir.path().join("joust-results").exists(), "looking makes nothing");
    put(dir.path(), "base", 1, 1.0);
    assert!(at(dir.path(), &["history", "add", "base"]).status.success());
    std::fs::rename(dir.path().join("base"), dir.path().join("elsewhere")).unwrap();
    let moved = at(dir.path(), &["compare", "1", "1"]);
    assert_eq!(moved.status.code(), Some(2));
    assert!(said(&moved).contains("base/run.json"), "{}", said(&moved));
    assert!(stdout(&at(dir.path(), &["history"])).contains("(gone)"));
    let added = at(dir.path(), &["history", "add", "elsewhere"]);
    assert!(stdout(&added).contains("run 1: moved here"), "{}", stdout(&added));
    assert_eq!(at(dir.path(), &["compare", "1", "1"]).status.code(), Some(0));
    assert_eq!(at(dir.path(), &["compare", "1", "7"]).status.code(), Some(2));
    let unknown = at(dir.path(), &["history", "--contender", "h2o"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("joust one; nginx"), "{}", said(&unknown));
    let mistaken: [(&[&str], [&str; 2]); 3] = [
        (&["--study", "quik"], ["no run of a study `quik`", "known studies: quick"]),
        (&["--study", "quik", "--contender", "nginx"], ["study `quik`", "quick"]),
        (&["--contender", "nginx", "--cell", "c=1"], ["cell `c=1`", "`joust history` lists"]),
    ];
    for (args, parts) in mistaken {
        let done = at(dir.path(), &[&["history"], args].concat());
        assert_eq!((done.status.code(), stdout(&done).as_str()), (Some(2), ""), "{args:?}");
        assert!(parts.iter().all(|part| said(&done).contains(part)), "{}", said(&done));
    }
    let database = dir.path().join("joust-results/history.sqlite");
    std::fs::write(&database, "this is no database".repeat(100)).unwrap();
    let damaged = at(dir.path(), &["history"]);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(said(&damaged).contains("make it again"), "{}", said(&damaged));
}

#[test]
fn every_command_of_the_page_runs_and_every_flag_is_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("joust-results");
    put(&results, "2026-11-20-quick", 1, 1.0);
    put(&results, "2026-11-22-quick", 2, 1.0);
    let add =
        ["history", "add", "joust-results/2026-11-20-quick", "joust-results/2026-11-22-quick"];
    assert!(at(dir.path(), &add).status.success());
    let page = page("docs/history.md");
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("$ joust ")).collect();
    assert!(commands.len() >= 5, "the page has its commands: {commands:?}");
    for command in commands {
        let words = words(command);
        let done = at(dir.path(), &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(done.status.success(), "{command}: {}", said(&done));
    }
    let help = stdout(&output(&["compare", "--help"])) + &stdout(&output(&["history", "--help"]));
    let on_page = flags(&page);
    let missing: Vec<_> = flags(&help)
        .into_iter()
        .filter(|flag| *flag != "--help" && !on_page.contains(flag))
        .collect();
    assert!(missing.is_empty(), "docs/history.md does not name {missing:?}");
}

#[test]
fn a_run_into_the_usual_folder_is_in_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let study = crate::run::study(dir.path(), 3);
    let study = study.to_str().unwrap();
    let done = at(dir.path(), &["run", study, "--quiet"]);
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}", said(&done));
    let listed = stdout(&at(dir.path(), &["history", "--study", "brief", "--json"]));
    let listed: HistoryRecord = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.runs.len(), 1);
    assert!(listed.runs[0].is_there && listed.runs[0].blocks == 3, "{listed:?}");
    // With an unusable history the run is still complete, and a warning is printed.
    std::fs::write(dir.path().join("joust-results/history.sqlite"), "no database".repeat(99))
        .unwrap();
    let done = at(dir.path(), &["run", study, "--quiet"]);
    assert!(matches!(done.status.code(), Some(0 | 3)), "{}", said(&done));
    assert!(
        said(&done).contains("warning: the run was not added to the history"),
        "{}",
        said(&done)
    );
}
