//! The house rules that a program can hold, over every file of the project. Each rule is a function
//! from a source file to what it finds wrong, and each is proved by a planted violation.
//! Start reading at [`RULES`].

mod graph;
mod rules;
mod source;

use rules::RULES;
use source::Source;

#[test]
fn the_tree_keeps_the_house_rules() {
    let sources = source::all();
    assert!(sources.len() > 50, "only {} files found: the walk is broken", sources.len());
    let broken: Vec<String> = RULES
        .iter()
        .flat_map(|rule| sources.iter().flat_map(move |source| rule.report(source)))
        .collect();
    assert!(broken.is_empty(), "{} broken rules:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn every_rule_catches_its_planted_violation_and_passes_its_clean_twin() {
    for rule in RULES {
        let planted = Source::planted(rule.planted.0, rule.planted.1);
        assert!(!rule.report(&planted).is_empty(), "{} missed its planted violation", rule.name);
        let clean = Source::planted(rule.clean.0, rule.clean.1);
        assert_eq!(rule.report(&clean), Vec::<String>::new(), "{} on clean code", rule.name);
    }
}

#[test]
fn dependencies_point_down() {
    let broken = graph::violations(&graph::from_manifests());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn an_upward_arrow_and_a_forbidden_library_are_caught() {
    let planted = [("lab", "serve"), ("stats", "record"), ("wire", "rustix"), ("load", "tokio")];
    for (from, to) in planted {
        let arrows = vec![(from.to_owned(), to.to_owned())];
        assert_eq!(graph::violations(&arrows).len(), 1, "{from} -> {to}");
    }
    let allowed = vec![("lab".to_owned(), "load".to_owned())];
    assert!(graph::violations(&allowed).is_empty());
}

#[test]
fn no_file_is_dead() {
    let dead = source::dead_files(&source::all());
    assert!(dead.is_empty(), "not reached by any `mod`: {}", dead.join(", "));
}

#[test]
fn a_dead_file_is_caught() {
    let sources = vec![
        Source::planted("crates/units/src/lib.rs", "//! x\nmod alive;\n"),
        Source::planted("crates/units/src/alive.rs", "//! x\n"),
        Source::planted("crates/units/src/dead.rs", "//! x\n"),
    ];
    assert_eq!(source::dead_files(&sources), ["crates/units/src/dead.rs"]);
}
