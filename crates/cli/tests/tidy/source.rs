//! The project's source files: found, read and parsed once. Must not know any rule.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One Rust file of the project.
pub struct Source {
    /// Path from the top of the project, with `/`.
    pub path: String,
    pub text: String,
    pub syntax: syn::File,
}

impl Source {
    pub fn planted(path: &str, text: &str) -> Self {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: path.to_owned(), text: text.to_owned(), syntax }
    }

    /// Name of the crate that the file belongs to.
    pub fn crate_name(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or("")
    }

    /// Whether it is product code: not a test, bench or example.
    pub fn is_product(&self) -> bool {
        self.path.split('/').nth(2) == Some("src")
    }

    /// Lines before the unit tests, which house style puts last.
    pub fn lines_without_tests(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        let tests = lines.iter().position(|line| line.trim() == "#[cfg(test)]");
        match tests {
            Some(at) if lines.get(at + 1).is_some_and(|line| line.starts_with("mod ")) => at,
            _ => lines.len(),
        }
    }
}

/// Every Rust file under `crates/`.
pub fn all() -> Vec<Source> {
    let top = top();
    let mut paths = Vec::new();
    walk(&top.join("crates"), &mut paths);
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a file just listed is readable");
        let name = path.strip_prefix(&top).expect("found below the top");
        Source::planted(&name.to_string_lossy(), &text)
    };
    paths.iter().map(read).collect()
}

/// Files under `src/` that no `mod` reaches from the crate's root.
pub fn dead_files(sources: &[Source]) -> Vec<String> {
    let product = |source: &&Source| source.is_product();
    let alive: BTreeSet<String> = sources
        .iter()
        .filter(product)
        .flat_map(|source| {
            let mut reached = Vec::new();
            modules(&source.syntax.items, &module_dir(&source.path), &mut reached);
            reached
        })
        .collect();
    let root = |path: &str| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    let dead = |source: &&Source| !root(&source.path) && !alive.contains(&source.path);
    sources.iter().filter(product).filter(dead).map(|source| source.path.clone()).collect()
}

/// The top of the project.
pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/cli is two below the top")
        .to_path_buf()
}

fn modules(items: &[syn::Item], dir: &str, reached: &mut Vec<String>) {
    for item in items {
        let syn::Item::Mod(module) = item else { continue };
        match &module.content {
            Some((_, items)) => modules(items, &format!("{dir}/{}", module.ident), reached),
            None => {
                reached.push(format!("{dir}/{}.rs", module.ident));
                reached.push(format!("{dir}/{}/mod.rs", module.ident));
            }
        }
    }
}

/// The directory in which the modules of a file lie.
fn module_dir(path: &str) -> String {
    let (dir, file) = path.rsplit_once('/').expect("every path has a directory");
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => dir.to_owned(),
        file => format!("{dir}/{}", file.trim_end_matches(".rs")),
    }
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory of the project is readable") {
        let path = entry.expect("an entry is readable").path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
