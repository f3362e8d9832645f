//! Owns the layout of a study that a program writes: keys in sections, each with a remark, and values that the user
//! overrides by key. Start reading at [`Draft`].

use std::fmt::Write as _;

use super::BriefError;
use crate::nearest::{nearest, suggestion};
use crate::study::{BLOCKS, SHORT, TOP, VISIT, work};

/// Top-level keys that a command line cannot set: tables, and keys that name the run.
const NOT_SET: [&str; 9] =
    ["name", "contender", "axis", "published", "search", "workload", "blocks", "visit", "short"];

/// A study before it is text.
#[derive(Debug, Default)]
pub(super) struct Draft {
    lines: Vec<Line>,
    /// The text of each `[[contender]]`.
    pub(super) contenders: Vec<String>,
}

#[derive(Debug)]
struct Line {
    /// Empty for the top of the file.
    section: &'static str,
    key: String,
    /// As TOML has it.
    value: String,
    remark: String,
}

impl Draft {
    /// Adds a key.
    pub(super) fn put(&mut self, section: &'static str, key: &str, value: String, remark: &str) {
        let (key, remark) = (key.to_owned(), remark.to_owned());
        self.lines.push(Line { section, key, value, remark });
    }

    /// Sets a key of the study and replaces its value: `visit.measure=1s`, or `measure=1s` if only one section has
    /// such a key.
    ///
    /// # Errors
    /// It is not KEY=VALUE, or there is no such key.
    pub(super) fn set(&mut self, typed: &str) -> Result<(), BriefError> {
        let Some((path, value)) = typed.split_once('=') else {
            return Err(BriefError::new(
                format!("--set must be KEY=VALUE, got `{typed}`"),
                "write as in --set visit.measure=1s or --set margin=5%",
            ));
        };
        let (section, key) = place(path.trim())?;
        let (key, value) = (key.to_owned(), literal(value.trim()));
        match self.lines.iter_mut().find(|line| line.section == section && line.key == key) {
            Some(line) => (line.value, line.remark) = (value, "--set".to_owned()),
            None => self.lines.push(Line { section, key, value, remark: "--set".to_owned() }),
        }
        Ok(())
    }

    /// The file, after this head.
    pub(super) fn text(&self, head: &str) -> String {
        let mut text = head.to_owned();
        for section in ["", "workload", "blocks", "visit", "short"] {
            let lines: Vec<&Line> =
                self.lines.iter().filter(|line| line.section == section).collect();
            if lines.is_empty() {
                continue;
            }
            text.push('\n');
            if !section.is_empty() {
                let _ = writeln!(text, "[{section}]");
            }
            for Line { key, value, remark, .. } in lines {
                match remark.is_empty() {
                    true => writeln!(text, "{key} = {value}"),
                    false => writeln!(text, "{key} = {value}    # {remark}"),
                }
                .expect("a string takes all");
            }
        }
        for contender in &self.contenders {
            text.push('\n');
            text.push_str(contender);
        }
        text
    }
}

/// The section and the key that a path means.
fn place(path: &str) -> Result<(&'static str, &'static str), BriefError> {
    let top: Vec<&'static str> = TOP.into_iter().filter(|key| !NOT_SET.contains(key)).collect();
    let sections: [(&'static str, Vec<&'static str>); 5] = [
        ("", top),
        ("workload", work::KEYS.to_vec()),
        ("blocks", BLOCKS.to_vec()),
        ("visit", VISIT.to_vec()),
        ("short", SHORT.to_vec()),
    ];
    let all =
        || sections.iter().flat_map(|(section, keys)| keys.iter().map(move |key| (*section, *key)));
    let full = |(section, key): (&str, &str)| match section {
        "" => key.to_owned(),
        section => format!("{section}.{key}"),
    };
    // A bare key never means the one in [short]: other sections have the same keys.
    let is_meant = |&(section, key): &(&str, &str)| {
        full((section, key)) == path || (section != "short" && key == path)
    };
    all().find(is_meant).ok_or_else(|| {
        let known: Vec<String> = all().map(full).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        // The key was typed without its section.
        let help = match nearest(path, all().map(|(_, key)| key)) {
            Some(key) if !path.contains('.') => format!("did you mean `{key}`?"),
            _ => suggestion(path, &known),
        };
        BriefError::new(format!("--set: a study of the command line has no key `{path}`"), help)
    })
}

/// A value as TOML has it: numbers, true, false and lists unchanged, everything else as text.
fn literal(typed: &str) -> String {
    let stands = typed.parse::<i64>().is_ok()
        || matches!(typed, "true" | "false")
        || typed.starts_with(['[', '"', '\'']);
    if stands { typed.to_owned() } else { quoted(typed) }
}

/// A text as a basic string of TOML, whose escapes are those of JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
