//! `docs/glossary.md` is the glossary of this crate's documentation: the test generates the page and compares it.

use std::fmt::Write as _;
use std::path::Path;

const SOURCE: &str = include_str!("../src/lib.rs");
const KEPT: &str = include_str!("../../../docs/glossary.md");

/// The documentation below its heading "Glossary", without links that only rustdoc knows.
fn page() -> String {
    let (_, glossary) = SOURCE.split_once("//! # Glossary\n").expect("lib.rs has a glossary");
    let mut page = "# Glossary\n".to_owned();
    for line in glossary.lines().map_while(|line| line.strip_prefix("//!")) {
        let line = line.strip_prefix(' ').unwrap_or(line).replace("[`", "`").replace("`]", "`");
        let _ = writeln!(page, "{line}");
    }
    page
}

#[test]
fn the_page_is_the_glossary_in_the_code() {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("glossary.md");
    std::fs::write(&made, page()).unwrap();
    assert!(
        KEPT == page(),
        "docs/glossary.md is not the glossary of crates/record/src/lib.rs: cp {} docs/glossary.md",
        made.display()
    );
}

#[test]
fn every_term_stands_once() {
    let page = page();
    let terms = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let mut terms: Vec<&str> = terms.filter(|term| *term != "term").collect();
    let all = terms.len();
    terms.sort_unstable();
    terms.dedup();
    assert_eq!(terms.len(), all, "a term stands twice: {terms:?}");
    assert!(all > 60, "{all} terms");
}
