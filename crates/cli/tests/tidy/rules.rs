//! One rule per entry: its name, its check, what it must catch and what it must not.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::source::Source;

/// A house rule.
pub struct Rule {
    pub name: &'static str,
    /// What to do instead.
    pub instead: &'static str,
    /// Returns the lines that break it, with the reason.
    pub look: fn(&Source) -> Vec<(usize, String)>,
    /// Path and text that must be caught.
    pub planted: (&'static str, &'static str),
    /// Path and text that must pass.
    pub clean: (&'static str, &'static str),
}

impl Rule {
    pub fn report(&self, source: &Source) -> Vec<String> {
        let line = |(line, what): (usize, String)| {
            format!("{}:{line}: {what} [{}]; {}", source.path, self.name, self.instead)
        };
        (self.look)(source).into_iter().map(line).collect()
    }
}

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 700;

const LONG_FUNCTION: &str = concat!(
    "//! x\nfn long() {\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n",
    "    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n    f();\n}\n",
);

pub const RULES: &[Rule] = &[
    Rule {
        name: "header",
        instead: "open with `//!`: what the file owns, and where to start",
        look: |source| {
            let opens = source.text.starts_with("//!") && source.text.len() > 8;
            if opens { vec![] } else { vec![(1, "no header".to_owned())] }
        },
        planted: ("crates/units/src/x.rs", "use std::fmt;\n"),
        clean: ("crates/units/src/x.rs", "//! Owns x.\nuse std::fmt;\n"),
    },
    Rule {
        name: "function_size",
        instead: "split it by the ideas in it (70 lines at most)",
        look: long_functions,
        planted: ("crates/units/src/x.rs", LONG_FUNCTION),
        clean: ("crates/units/src/x.rs", "//! x\nfn short() {\n    f();\n}\n"),
    },
    Rule {
        name: "file_size",
        instead: "split it by noun (700 lines at most, tests not counted)",
        look: |source| match source.lines_without_tests() {
            lines if lines > FILE_LINES_MAX && source.is_product() => {
                vec![(lines, format!("{lines} lines"))]
            }
            _ => vec![],
        },
        planted: ("crates/units/src/x.rs", include_str!("planted_long_file.txt")),
        clean: ("crates/units/src/x.rs", "//! x\n"),
    },
    Rule {
        name: "unsafe_only_in_sys",
        instead: "give `sys` a safe function that does it",
        look: |source| {
            if source.crate_name() == "sys" {
                return vec![];
            }
            let mut found = UnsafeLines(Vec::new());
            found.visit_file(&source.syntax);
            found.0.into_iter().map(|line| (line, "`unsafe`".to_owned())).collect()
        },
        planted: ("crates/load/src/x.rs", "//! x\nfn f() { unsafe { g() } }\n"),
        clean: ("crates/sys/src/x.rs", "//! x\nfn f() { unsafe { g() } }\n"),
    },
    Rule {
        name: "only_cli_prints_and_exits",
        instead: "return it; `cli` prints, exits and reads argv and the environment",
        look: |source| {
            let words =
                ["println!", "eprintln!", "print!(", "process::exit", "env::args", "env::var"];
            if source.crate_name() == "cli" || !source.is_product() {
                return vec![];
            }
            lines_with(source, &words)
        },
        planted: ("crates/lab/src/x.rs", "//! x\nfn f() { println!(); }\n"),
        clean: ("crates/cli/src/x.rs", "//! x\nfn f() { println!(); }\n"),
    },
    Rule {
        name: "time_through_sys",
        instead: "take the time as an argument, or read `sys::clock`",
        look: |source| {
            let pure = [
                "units", "wire", "stats", "record", "classic", "doctor", "report", "load", "site",
                "serve",
            ];
            if !pure.contains(&source.crate_name()) || !source.is_product() {
                return vec![];
            }
            lines_with(source, &["Instant::now", "SystemTime::now", "Zoned::now", "Timestamp::now"])
        },
        planted: ("crates/load/src/x.rs", "//! x\nfn f() { Instant::now(); }\n"),
        clean: ("crates/load/src/x.rs", "//! x\nfn f(now: Nanos) { g(now); }\n"),
    },
    Rule {
        name: "no_io_in_pure_crates",
        instead: "take the bytes as an argument; files, sockets and threads live in other crates",
        look: |source| {
            let pure = ["units", "wire", "stats", "record", "classic", "doctor", "report"];
            if !pure.contains(&source.crate_name()) || !source.is_product() {
                return vec![];
            }
            lines_with(source, &["std::fs", "std::net::Tcp", "std::thread", "File::open"])
        },
        planted: ("crates/stats/src/x.rs", "//! x\nuse std::fs;\n"),
        clean: ("crates/lab/src/x.rs", "//! x\nuse std::fs;\n"),
    },
    Rule {
        name: "skips_are_counted",
        instead: "say it by `skips::note`, so that `make test` prints and counts it",
        look: |source| match source.crate_name() {
            "skips" => vec![],
            _ => {
                let lines = source.text.lines().enumerate();
                let said = lines.filter(|(_, line)| line.contains(concat!("\"skip", "ped: ")));
                said.map(|(at, _)| (at + 1, "a skip of its own".to_owned())).collect()
            }
        },
        planted: (
            "crates/lab/tests/x.rs",
            concat!("//! x\nfn f() { println!(\"skip", "ped: no nginx\"); }\n"),
        ),
        clean: ("crates/lab/tests/x.rs", "//! x\nfn f() { skips::note(\"no nginx\"); }\n"),
    },
    Rule {
        name: "nothing_unused",
        instead: "remove it; what only tests need stands under `cfg(test)`",
        look: |source| match source.is_product() {
            true => lines_with(source, &["dead_code", "unused_imports"]),
            false => vec![],
        },
        planted: ("crates/load/src/x.rs", "//! x\n#[allow(dead_code)]\nfn f() {}\n"),
        // Each test binary uses only a part of a shared support module.
        clean: ("crates/load/tests/x.rs", "//! x\n#![allow(dead_code)]\nfn f() {}\n"),
    },
    Rule {
        name: "nothing_unfinished",
        instead: "finish it, or leave it out",
        look: |source| {
            // Split so that this file does not break its own rule.
            let words = [
                concat!("to", "do!("),
                concat!("unimple", "mented!("),
                concat!("FIX", "ME"),
                concat!("#[ign", "ore"),
            ];
            lines_with(source, &words)
        },
        planted: ("crates/load/src/x.rs", concat!("//! x\nfn f() { to", "do!() }\n")),
        clean: ("crates/load/src/x.rs", "//! x\nfn f() {}\n"),
    },
];

/// Lines of product code (unit tests and comments left out) that contain one of the words.
fn lines_with(source: &Source, words: &[&str]) -> Vec<(usize, String)> {
    let code = source.text.lines().take(source.lines_without_tests()).enumerate();
    code.filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(at, line)| {
            let held = words.iter().filter(move |word| line.contains(**word));
            held.map(move |word| (at + 1, format!("`{word}`")))
        })
        .collect()
}

fn long_functions(source: &Source) -> Vec<(usize, String)> {
    let mut found = FunctionSizes(Vec::new());
    found.visit_file(&source.syntax);
    let long = found.0.into_iter().filter(|(_, _, lines)| *lines > FUNCTION_LINES_MAX);
    long.map(|(line, name, lines)| (line, format!("`{name}` has {lines} lines"))).collect()
}

struct FunctionSizes(Vec<(usize, String, usize)>);

impl FunctionSizes {
    fn note(&mut self, name: &syn::Ident, block: &syn::Block) {
        let span = block.span();
        let lines = span.end().line - span.start().line + 1;
        self.0.push((span.start().line, name.to_string(), lines));
    }
}

impl<'ast> Visit<'ast> for FunctionSizes {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}

struct UnsafeLines(Vec<usize>);

impl<'ast> Visit<'ast> for UnsafeLines {
    fn visit_expr_unsafe(&mut self, unsafe_block: &'ast syn::ExprUnsafe) {
        self.0.push(unsafe_block.span().start().line);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.0.extend(item.unsafety.map(|word| word.span().start().line));
        visit::visit_item_impl(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.extend(signature.unsafety.map(|word| word.span().start().line));
    }
}
