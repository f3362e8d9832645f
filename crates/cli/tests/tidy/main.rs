//! The house rules that a program can check, over every file of the project. Each rule is a
//! function from a source file to its violations, and is proved by a planted violation. Start
//! reading at [`RULES`].

mod cycles;
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

#[test]
fn the_modules_of_a_crate_form_no_cycle() {
    let found: Vec<String> =
        cycles::knots(&source::all()).iter().map(ToString::to_string).collect();
    assert!(
        found.is_empty(),
        "{} cycles of modules; move what both need into a module below them:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn a_cycle_of_modules_is_caught_at_every_level_and_by_every_kind_of_path() {
    let cycle = |uses_of_b: &str| {
        let knots = cycles::knots(&[
            Source::planted("crates/units/src/lib.rs", "//! x\nmod a;\npub use a::Name;\n"),
            Source::planted("crates/units/src/a.rs", "//! x\nuse crate::b::Thing;\n"),
            Source::planted("crates/units/src/b.rs", uses_of_b),
        ]);
        knots.iter().map(|knot| format!("{}: {}", knot.level, knot.members.join(" "))).collect()
    };
    let caught: [&str; 5] = [
        "//! x\nuse super::a;\n",
        "//! x\nuse crate::{Name, Other};\n",
        "//! x\nfn f() -> crate::a::Type { g() }\n",
        "//! x\nfn f() { vec![crate::a::g()] }\n",
        "//! x\nmod inner { use super::super::a::g; }\n",
    ];
    for text in caught {
        let found: Vec<String> = cycle(text);
        assert_eq!(found, ["units: a b"], "{text}");
    }
    let clean: [&str; 3] = [
        "//! x\nuse crate::Other;\npub(crate) fn a() {}\n",
        "//! x\n#[cfg(test)]\nmod tests { use crate::a::Type; }\n",
        "//! x\n#[cfg(test)]\nuse crate::a::Type;\n// crate::a::Type\n",
    ];
    for text in clean {
        let found: Vec<String> = cycle(text);
        assert_eq!(found, Vec::<String>::new(), "{text}");
    }
    let deep = cycles::knots(&[
        Source::planted("crates/load/src/m.rs", "//! x\nmod a;\nmod b;\n"),
        Source::planted("crates/load/src/m/a.rs", "//! x\nuse super::b::Thing;\n"),
        Source::planted("crates/load/src/m/b/mod.rs", "//! x\nmod c;\n"),
        Source::planted("crates/load/src/m/b/c.rs", "//! x\nuse crate::m::a::Other;\n"),
    ]);
    assert_eq!(deep.len(), 1);
    assert_eq!((deep[0].level.as_str(), deep[0].members.join(" ")), ("load::m", "a b".to_owned()));
}
