//! Which crate may depend on which: the table of ARCHITECTURE.md, compared with the manifests.

use std::collections::BTreeMap;

use crate::source;

/// A crate, and those of ours that it may depend on. Everything else would point up or sideways.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    // For tests: product code must not use it.
    ("skips", &[]),
    ("units", &[]),
    ("sys", &["units"]),
    ("wire", &["units"]),
    ("stats", &["units"]),
    ("record", &["units", "stats"]),
    ("load", &["units", "sys", "wire", "stats", "record"]),
    ("site", &["units", "sys", "wire"]),
    ("serve", &["units", "sys", "wire", "site"]),
    ("classic", &["units", "record"]),
    ("doctor", &["units", "stats", "record", "classic"]),
    ("lab", &["units", "load", "classic", "doctor", "record", "stats", "sys"]),
    ("history", &["units", "record", "stats"]),
    ("report", &["units", "record", "stats"]),
    ("fleet", &["units", "record", "stats", "sys"]),
    (
        "cli",
        &[
            "units", "sys", "stats", "record", "load", "serve", "classic", "doctor", "lab",
            "report", "history", "fleet",
        ],
    ),
];

/// Libraries that a crate must not use, because they bring in what it must not know.
const MAY_NOT_HAVE: &[(&str, &[&str])] = &[
    ("units", &["rustix", "libc", "nix", "socket2"]),
    ("wire", &["rustix", "libc", "nix", "socket2", "jiff", "rand"]),
    ("stats", &["rustix", "libc", "nix", "socket2", "jiff"]),
    ("record", &["rustix", "libc", "nix", "socket2", "jiff"]),
    ("classic", &["rustix", "libc", "nix", "socket2", "procfs", "jiff", "clap"]),
    ("doctor", &["rustix", "libc", "nix", "socket2", "procfs", "jiff"]),
    (
        "history",
        &["rustix", "libc", "nix", "socket2", "procfs", "comfy-table", "minijinja", "clap"],
    ),
    ("report", &["rustix", "libc", "nix", "socket2", "procfs", "jiff", "crossterm", "rusqlite"]),
    ("fleet", &["rustix", "libc", "nix", "socket2"]),
    ("load", &["tokio", "mio", "hyper", "async-std", "smol", "clap"]),
    ("site", &["tokio", "mio", "hyper", "async-std", "smol", "clap"]),
    ("serve", &["tokio", "mio", "hyper", "async-std", "smol", "clap"]),
    ("lab", &["clap", "comfy-table", "minijinja"]),
];

/// The forbidden dependencies among these, each (from, to).
pub fn violations(arrows: &[(String, String)]) -> Vec<String> {
    let ours: BTreeMap<&str, &[&str]> = MAY_DEPEND_ON.iter().copied().collect();
    let shut: BTreeMap<&str, &[&str]> = MAY_NOT_HAVE.iter().copied().collect();
    let wrong = |from: &str, to: &str| match (ours.get(from), ours.contains_key(to)) {
        (None, _) => true,
        (Some(below), true) => !below.contains(&to),
        (Some(_), false) => shut.get(from).is_some_and(|words| words.contains(&to)),
    };
    let broken = arrows.iter().filter(|(from, to)| wrong(from, to));
    broken.map(|(from, to)| format!("{from} may not depend on {to}")).collect()
}

/// The dependencies in the manifests, without dev-dependencies: tests may use anything.
pub fn from_manifests() -> Vec<(String, String)> {
    let crates = source::top().join("crates");
    let mut arrows = Vec::new();
    for entry in std::fs::read_dir(crates).expect("crates/ is readable") {
        let dir = entry.expect("an entry is readable").path();
        let name = dir.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        let Ok(text) = std::fs::read_to_string(dir.join("Cargo.toml")) else { continue };
        let manifest: toml::Table = text.parse().expect("cargo reads the same manifest");
        let dependencies = manifest.get("dependencies").and_then(|table| table.as_table());
        let names = dependencies.into_iter().flat_map(|table| table.keys());
        arrows.extend(names.map(|to| (name.clone(), to.clone())));
    }
    assert!(arrows.len() > 20, "only {} arrows found: the walk is broken", arrows.len());
    arrows
}
