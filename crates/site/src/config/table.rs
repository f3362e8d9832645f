//! Tables of a configuration file that serde reads as a whole: those that repeat, such as `[[host]]`, or hold more than
//! scalars. Start reading at [`Table`].
//!
//! To add a table: one file with a struct that serde reads (`deny_unknown_fields`) and its [`Table`], a line
//! in `config::TABLES`, and a field of `SiteConfig`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::SiteConfig;

/// A table, or a list of tables of one name.
pub struct Table {
    /// The name in the brackets.
    pub name: &'static str,
    /// There may be several: its brackets are double.
    pub is_list: bool,
    /// Reads it into the configuration. A problem is reported as an error of serde, which knows its position.
    pub(super) take: fn(&mut SiteConfig, ValueDeserializer<'_>) -> Result<(), toml::de::Error>,
    /// The whole table as TOML, brackets included; `None`: the configuration has none.
    pub show: fn(&SiteConfig) -> Option<String>,
    /// A table to start from, as TOML: all its defaults, or an example.
    pub example: fn() -> String,
}

impl Table {
    /// Its name as it is written.
    pub fn header(&self) -> String {
        if self.is_list { format!("[[{}]]", self.name) } else { format!("[{}]", self.name) }
    }

    /// Reads the table of a file into `config`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(
        &self,
        config: &mut SiteConfig,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), toml::de::Error> {
        let is_list = match value.get_ref() {
            DeValue::Array(items) => {
                Some(true).filter(|_| items.iter().all(|item| item.get_ref().is_table()))
            }
            DeValue::Table(_) => Some(false),
            _ => None,
        };
        if is_list != Some(self.is_list) {
            let header = self.header();
            return Err(toml::de::Error::custom(match self.is_list {
                true => format!("this table can be repeated: write {header}"),
                false => format!("this table cannot be repeated: write {header}"),
            }));
        }
        (self.take)(config, ValueDeserializer::from(value.clone()))
    }
}

/// Serde's words, and those that somebody who writes a file knows.
const PLAIN_WORDS: [(&str, &str); 10] = [
    ("expected a sequence", "expected a list in brackets"),
    ("expected a string", "expected a text in quotes"),
    ("wanted string or table", "expected a text in quotes"),
    ("expected path string", "expected a path in quotes"),
    ("expected socket address", "expected an address with its port, as in \"0.0.0.0:80\""),
    ("expected a boolean", "expected true or false"),
    ("expected u8", "expected a whole number"),
    ("expected u16", "expected a whole number"),
    ("expected u32", "expected a whole number"),
    ("expected u64", "expected a whole number"),
];

/// A message of serde without the names of Rust's types.
pub fn in_plain_words(message: &str) -> String {
    PLAIN_WORDS
        .iter()
        .fold(message.to_owned(), |message, (theirs, plain)| message.replace(theirs, plain))
}

/// The line of `text` that contains the byte at `offset`.
pub fn line_at(text: &str, offset: usize) -> &str {
    let begin = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    text[begin..].lines().next().unwrap_or_default().trim()
}

/// Reads a value of a file as a `T`, and refuses it if `check` does.
pub(super) fn taken_as<T: DeserializeOwned>(
    value: ValueDeserializer<'_>,
    check: impl FnOnce(&T) -> Result<(), String>,
) -> Result<T, toml::de::Error> {
    let taken = T::deserialize(value)?;
    check(&taken).map_err(toml::de::Error::custom)?;
    Ok(taken)
}

/// The table of that name as TOML.
pub(super) fn shown_as<T: Serialize>(name: &str, table: &T) -> String {
    toml::to_string(&BTreeMap::from([(name, table)])).expect("a table that was read can be written")
}
