//! Patterns of paths and names. A prefix, a glob or a regular expression becomes the same kind of automaton, whose time
//! is linear in the text, whatever the pattern (crate regex). Start reading at [`of_path`].

use regex::bytes::{Regex, RegexBuilder};

/// Bytes that a compiled pattern may take.
const SIZE_MAX: usize = 1 << 20;

/// How a rule names paths.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PathPattern<'a> {
    /// That path and all beneath it; `$1` is what follows.
    Prefix(&'a str),
    /// `*` matches any part of a name, `?` a letter of it, `**` any part of a path; each is a capture.
    Glob(&'a str),
    /// A regular expression; it has to match the whole path only if it is anchored.
    Regex(&'a str),
}

/// An automaton for decoded, normalised paths.
///
/// # Errors
/// An invalid pattern.
pub(crate) fn of_path(pattern: PathPattern<'_>) -> Result<Regex, String> {
    match pattern {
        // `/private/` names the directory, with and without its slash.
        PathPattern::Prefix(prefix) => {
            let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
            compile(&format!("^{}(/.*)?$", regex::escape(prefix)))
        }
        PathPattern::Glob(glob) => compile(&format!("^{}$", translate(glob))),
        PathPattern::Regex(regex) => compile(regex),
    }
}

/// An automaton for single names, which matches any of these globs.
pub(crate) fn names(globs: &[String]) -> Result<Regex, String> {
    let each: Vec<String> = globs.iter().map(|glob| translate(glob)).collect();
    compile(&format!("^(?:{})$", each.join("|")))
}

/// An automaton for the value of a field.
///
/// # Errors
/// An invalid pattern.
pub(crate) fn of_value(regex: &str) -> Result<Regex, String> {
    compile(regex)
}

/// Paths are bytes, and a name may contain any byte but NUL: a dot matches each of them.
fn compile(regex: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(regex);
    builder.unicode(false).dot_matches_new_line(true).size_limit(SIZE_MAX);
    builder.build().map_err(|error| error.to_string())
}

fn translate(glob: &str) -> String {
    let mut regex = String::new();
    let mut rest = glob;
    while let Some(letter) = rest.chars().next() {
        let (part, taken) = match letter {
            '*' if rest.starts_with("**") => ("(.*)".to_owned(), 2),
            '*' => ("([^/]*)".to_owned(), 1),
            '?' => ("([^/])".to_owned(), 1),
            letter => (regex::escape(&letter.to_string()), letter.len_utf8()),
        };
        regex.push_str(&part);
        rest = &rest[taken..];
    }
    regex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_a_slash_and_a_star_within_a_name() {
        use PathPattern::{Glob, Prefix, Regex};
        let cases = [
            (Prefix("/private"), "/private", true),
            (Prefix("/private"), "/private/x", true),
            (Prefix("/private/"), "/private", true),
            (Prefix("/private"), "/privateer", false),
            (Prefix("/"), "/anything/at/all", true),
            (Prefix("/a.b"), "/axb", false),
            (Glob("/img/*.png"), "/img/a.png", true),
            (Glob("/img/*.png"), "/img/a/b.png", false),
            (Glob("/img/**.png"), "/img/a/b.png", true),
            (Glob("/?"), "/\n", true),
            (Regex("^/a(\\d+)$"), "/a12", true),
            (Regex("^/a(\\d+)$"), "/a12/", false),
        ];
        for (pattern, path, matches) in cases {
            let regex = of_path(pattern).unwrap();
            assert_eq!(regex.is_match(path.as_bytes()), matches, "{pattern:?} {path}");
        }
        assert!(of_path(Regex("(")).is_err());
    }
}
