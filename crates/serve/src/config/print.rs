//! A configuration as a file that has the same effect. Owns its layout; see also `keys`. Start reading at
//! [`Config::print`].

use std::fmt::Write as _;

use site::config::TABLES;
use site::config::text::{exact, quoted};

use super::Config;
use super::keys::KEYS;
use crate::settings::Value;

impl Config {
    /// All of it as TOML, each key with what it is for. What is not set is commented out with a `#` without a space.
    /// `--config` reads it again.
    pub fn print(&self) -> String {
        const WRITES: &str = "a String takes every write";
        let mut text = String::new();
        let model = self.model;
        writeln!(text, "# {}\nmodel = {}\n", model.about, quoted(model.name)).expect(WRITES);
        let mut section = "";
        for key in KEYS {
            let Some(value) = (key.show)(self) else { continue };
            if key.section != section {
                section = key.section;
                writeln!(text, "[{section}]").expect(WRITES);
            }
            writeln!(text, "# {}\n{} = {value}\n", key.about, key.name).expect(WRITES);
        }
        for table in TABLES {
            if let Some(lines) = (table.show)(&self.site) {
                writeln!(text, "{lines}").expect(WRITES);
            }
        }
        writeln!(text, "# By their original names; those of {} first.\n[settings]", model.name)
            .expect(WRITES);
        for (spec, value) in self.settings.iter() {
            let value = match value {
                Value::Count(_) | Value::Decimal(_) => value.to_string(),
                Value::Time(time) => quoted(&exact(time)),
                Value::Auto | Value::Off | Value::Switch(_) | Value::Word(_) => {
                    quoted(&value.to_string())
                }
            };
            writeln!(text, "# {}: {}\n{} = {value}\n", spec.about, spec.kind, spec.name)
                .expect(WRITES);
        }
        let mut absent =
            TABLES.iter().filter(|table| (table.show)(&self.site).is_none()).peekable();
        if absent.peek().is_some() {
            text.push_str(
                "# What follows is not set: with its defaults, or as an example. To set it, take away the \
                 # of each line.\n",
            );
        }
        for table in absent {
            writeln!(text, "\n{}", as_comment(&(table.example)())).expect(WRITES);
        }
        text
    }
}

/// Comments out each line that is not a comment already.
fn as_comment(lines: &str) -> String {
    let comment = |line: &str| match line.is_empty() || line.starts_with('#') {
        true => line.to_owned(),
        false => format!("#{line}"),
    };
    lines.trim_end().lines().map(comment).collect::<Vec<_>>().join("\n")
}
