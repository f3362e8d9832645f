//! Which modules of a crate use which, and where they form a cycle, at every folder level. Read from `use` and from
//! paths that begin with `crate`, `super` or `self`; unit tests are left out. A re-exported name (`pub use`) counts as
//! a use of the module that defines it. Start reading at [`knots`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::source::Source;

/// A module, from the crate's root: `["models", "uring"]`. The root itself is empty.
type Module = Vec<String>;

/// How often a name is followed from one `use` to the next.
const PASSED_ON_MAX: usize = 8;

/// Modules that use each other in a cycle, so that none of them can be read, tested or moved alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Knot {
    /// The crate, and the folder in it: `serve`, `serve::models`.
    pub level: String,
    /// The modules of that folder, sorted.
    pub members: Vec<String>,
    /// A use for each pair of them: `a -> b (file:line)`.
    pub arrows: Vec<String>,
}

impl fmt::Display for Knot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.members.join(" ");
        write!(f, "{}: {members}\n    {}", self.level, self.arrows.join("\n    "))
    }
}

/// Every cycle, sorted by level.
pub fn knots(sources: &[Source]) -> Vec<Knot> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_product()) {
        crates.entry(source.crate_name()).or_default().push(source);
    }
    let mut found: Vec<Knot> =
        crates.iter().flat_map(|(name, sources)| knots_of(name, &Crate::read(sources))).collect();
    found.sort();
    found
}

fn knots_of(name: &str, modules: &Crate) -> Vec<Knot> {
    let uses = modules.resolved();
    let levels: BTreeSet<&[String]> =
        modules.all.iter().filter_map(|module| Some(module.split_last()?.1)).collect();
    levels.into_iter().flat_map(|level| knots_at(name, level, &uses)).collect()
}

/// The cycles among the children of one module. Deeper modules count for the child that contains them.
fn knots_at(name: &str, level: &[String], uses: &[(Module, Module, String)]) -> Vec<Knot> {
    let child = |module: &Module| module.strip_prefix(level)?.first().cloned();
    let mut arrows: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (from, to, place) in uses {
        let (Some(a), Some(b)) = (child(from), child(to)) else { continue };
        if a != b {
            arrows.entry(a).or_default().entry(b).or_insert_with(|| place.clone());
        }
    }
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        arrows.keys().map(|from| (from, reachable(from, &arrows))).collect();
    let mutual = |a: &String, b: &String| {
        reached[a].contains(b) && reached.get(b).is_some_and(|back| back.contains(a))
    };
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for from in arrows.keys() {
        let members: Vec<String> = arrows.keys().filter(|to| mutual(from, to)).cloned().collect();
        if members.is_empty() || !seen.insert(members.clone()) {
            continue;
        }
        let within = |a: &String| {
            let to = arrows[a].iter().filter(|(b, _)| members.contains(b));
            to.map(|(b, place)| format!("{a} -> {b} ({place})")).collect::<Vec<_>>()
        };
        let level = std::iter::once(name).chain(level.iter().map(String::as_str));
        let level = level.collect::<Vec<_>>().join("::");
        found.push(Knot { level, arrows: members.iter().flat_map(within).collect(), members });
    }
    found
}

fn reachable<'a>(
    from: &'a String,
    arrows: &'a BTreeMap<String, BTreeMap<String, String>>,
) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        for to in arrows.get(next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}

/// What the files of one crate say about its modules.
#[derive(Default)]
struct Crate {
    all: BTreeSet<Module>,
    tests: BTreeSet<Module>,
    /// A module, the path that it names, and the place in the source.
    uses: Vec<(Module, Vec<String>, String)>,
    /// A module and a name in it, and the path that the name refers to there.
    names: BTreeMap<(Module, String), Vec<String>>,
}

impl Crate {
    fn read(sources: &[&Source]) -> Self {
        let mut read = Self::default();
        for source in sources {
            let here = module_of(&source.path);
            read.all.insert(here.clone());
            Reader { read: &mut read, here, path: &source.path }.visit_file(&source.syntax);
        }
        let tests = std::mem::take(&mut read.tests);
        let tested = |module: &Module| tests.iter().any(|test| module.starts_with(test));
        read.all.retain(|module| !tested(module));
        read.uses.retain(|(module, _, _)| !tested(module));
        read
    }

    /// Each use as (from, to, place), if both are modules and neither contains the other.
    fn resolved(&self) -> Vec<(Module, Module, String)> {
        let uses = self.uses.iter().map(|(from, path, place)| {
            (from.clone(), self.resolve(path, PASSED_ON_MAX), place.clone())
        });
        uses.filter(|(from, to, _)| !from.starts_with(to)).collect()
    }

    /// The module in which what a path names is defined.
    fn resolve(&self, path: &[String], left: usize) -> Module {
        let known = |n: &usize| self.all.contains(&path[..*n]);
        let depth = (0..=path.len()).rev().find(known).unwrap_or(0);
        let (module, rest) = path.split_at(depth);
        let passed_on =
            rest.first().and_then(|name| self.names.get(&(module.to_vec(), name.clone())));
        match passed_on {
            Some(target) if left > 0 && target != path => {
                let target: Vec<String> = target.iter().chain(&rest[1..]).cloned().collect();
                self.resolve(&target, left - 1)
            }
            _ => module.to_vec(),
        }
    }
}

/// The module that a file is: `crates/serve/src/models/uring.rs` is `models::uring`.
fn module_of(path: &str) -> Module {
    let inside = path.splitn(4, '/').nth(3).expect("a product file lies in src/");
    let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    match inside {
        "lib" | "main" => vec![],
        inside => inside.split('/').map(str::to_owned).collect(),
    }
}

struct Reader<'a> {
    read: &'a mut Crate,
    here: Module,
    path: &'a str,
}

impl Reader<'_> {
    /// The path from the crate's root; `None` for a path that leaves the crate.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => self.here.clone(),
            "super" => self.here.split_last()?.1.to_vec(),
            _ => return None,
        };
        let ups = rest.iter().take_while(|word| *word == "super").count();
        base.truncate(base.len().saturating_sub(ups));
        base.extend_from_slice(&rest[ups..]);
        Some(base)
    }

    fn note(&mut self, path: &[String], line: usize) {
        if let Some(target) = self.absolute(path) {
            let place = format!("{}:{line}", self.path);
            self.read.uses.push((self.here.clone(), target, place));
        }
    }

    /// Records a name that a `use` imports. A path without a keyword can only lead to a child.
    fn bring_in(&mut self, name: String, path: &[String], line: usize) {
        self.note(path, line);
        let child = || self.here.iter().chain(path).cloned().collect();
        let target = self.absolute(path).unwrap_or_else(child);
        self.read.names.insert((self.here.clone(), name), target);
    }

    fn use_tree(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: &syn::Ident| {
            let mut path = before.to_vec();
            path.push(name.to_string());
            path
        };
        let line = tree.span().start().line;
        match tree {
            syn::UseTree::Path(path) => self.use_tree(&path.tree, &with(&path.ident)),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.use_tree(item, before));
            }
            syn::UseTree::Glob(_) => self.note(before, line),
            syn::UseTree::Name(name) if name.ident == "self" => {
                let last = before.last().cloned().unwrap_or_default();
                self.bring_in(last, before, line);
            }
            syn::UseTree::Name(name) => {
                self.bring_in(name.ident.to_string(), &with(&name.ident), line);
            }
            syn::UseTree::Rename(name) => {
                self.bring_in(name.rename.to_string(), &with(&name.ident), line);
            }
        }
    }

    /// Paths in the arguments of a macro, which syn leaves as tokens.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut line = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) if colons == 2 && !path.is_empty() => {
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                other => {
                    self.note(&std::mem::take(&mut path), line);
                    colons = 0;
                    match other {
                        TokenTree::Ident(word) => {
                            line = word.span().start().line;
                            path = vec![word.to_string()];
                        }
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                    }
                }
            }
        }
        self.note(&path, line);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.here.push(module.ident.to_string());
        if for_tests(&module.attrs) {
            self.read.tests.insert(self.here.clone());
        } else if module.content.is_some() {
            self.read.all.insert(self.here.clone());
            visit::visit_item_mod(self, module);
        }
        self.here.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !for_tests(&item.attrs) {
            self.use_tree(&item.tree, &[]);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&words, path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.tokens(mac.tokens.clone());
        visit::visit_macro(self, mac);
    }

    // `pub(crate)` and `pub(super)` are not uses of a module.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// Whether something is compiled only for tests: `cfg(test)`, or an `all` or `any` with it.
fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let text = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg")
            && ["test", "all(test", "any(test"].iter().any(|start| text.starts_with(start))
    })
}
