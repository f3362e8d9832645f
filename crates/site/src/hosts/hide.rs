//! What may not be seen: the one rule for files, directories, listings, indexes and precompressed siblings.
//! Owns the matching of names. Start reading at [`Hide::hides`].

use regex::bytes::Regex;

use crate::config::Presentation;
use crate::pattern;

/// The rule.
#[derive(Debug)]
pub(crate) struct Hide {
    /// Names that may be seen although they begin with a dot.
    shown: Vec<Box<[u8]>>,
    /// Patterns of further names that may not; `None`: there are none.
    patterns: Option<Regex>,
}

impl Hide {
    /// As the configuration says.
    ///
    /// # Errors
    /// A pattern that is too large.
    pub(crate) fn new(presentation: &Presentation) -> Result<Self, String> {
        let shown = presentation.show.iter().map(|name| name.as_bytes().into()).collect();
        let patterns = match &presentation.hide[..] {
            [] => None,
            globs => Some(pattern::names(globs)?),
        };
        Ok(Self { shown, patterns })
    }

    /// Whether a name is hidden: it begins with a dot, or matches a pattern.
    pub(crate) fn hides(&self, name: &[u8]) -> bool {
        let is_dotted = name.starts_with(b".") && !self.shown.iter().any(|shown| **shown == *name);
        is_dotted || self.patterns.as_ref().is_some_and(|patterns| patterns.is_match(name))
    }

    /// Whether any name of a path is hidden.
    pub(crate) fn hides_path(&self, path: &[u8]) -> bool {
        path.split(|&byte| byte == b'/').any(|name| !name.is_empty() && self.hides(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_files_and_patterns_are_hidden_but_for_names_that_are_shown() {
        let look = Presentation {
            hide: vec!["*~".into(), "*.b?k".into(), "core".into()],
            show: vec![".well-known".into()],
            ..Presentation::default()
        };
        let hide = Hide::new(&look).unwrap();
        for name in ["a~", "x.bak", "x.bok", "core", ".git", ".well-known~", "~"] {
            assert!(hide.hides(name.as_bytes()), "{name}");
        }
        for name in ["a", "x.bk", "cores", ".well-known", "a~b", "x.bak.txt"] {
            assert!(!hide.hides(name.as_bytes()), "{name}");
        }
        assert!(hide.hides_path(b"a/.git/config") && !hide.hides_path(b"a/b"));
    }
}
