//! Owns settings as an adapter sees them: declared with kind and default, read from a study, and looked up by name.

use std::collections::BTreeMap;

use record::{SettingValue, Settings};

use super::{Adapter, AdapterError};
use crate::nearest::suggestion;

/// A setting of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingSpec {
    /// The name in the server's own documentation.
    pub name: &'static str,
    /// Older names of the same setting that the server still takes.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub kind: SettingKind,
    /// The value if the study does not set it. In parentheses: the rule that sizes it.
    pub preset: &'static str,
    /// What it does, in one sentence; and why the preset is not the server's own default, if it is not.
    pub about: &'static str,
}

impl SettingSpec {
    /// A setting with one name.
    pub(super) const fn new(
        name: &'static str,
        kind: SettingKind,
        preset: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, aliases: &[], kind, preset, about }
    }

    /// The same setting under older names too.
    pub(super) const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// A whole number, bounds included.
    #[expect(missing_docs, reason = "the bounds")]
    Number { min: u64, max: u64 },
    /// A whole number from -1, where -1 means without limit.
    OrUnlimited,
    /// on or off; true and false are taken too.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A word without white space, quotes, braces or semicolons: nothing that could end a directive.
    Word,
    /// A line of text, for a program's arguments; no control characters.
    Line,
}

/// Settings of one contender, all known to its adapter and of the right kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    specs: &'static [SettingSpec],
    given: BTreeMap<&'static str, String>,
    handed_on: BTreeMap<String, String>,
}

impl Values {
    pub(super) fn read(adapter: &Adapter, settings: &Settings) -> Result<Self, AdapterError> {
        let mut values =
            Self { specs: adapter.settings, given: BTreeMap::new(), handed_on: BTreeMap::new() };
        for (name, value) in settings {
            match spec_named(adapter.settings, name) {
                Some(spec) => {
                    let text = spec.kind.accept(value).ok_or_else(|| AdapterError::BadValue {
                        server: adapter.name,
                        name: name.clone(),
                        value: value.to_string(),
                        wanted: spec.kind.wanted(),
                    })?;
                    values.given.insert(spec.name, text);
                }
                None if adapter.hands_on => {
                    values.handed_on.insert(name.clone(), value.to_string());
                }
                None => return Err(unknown(adapter, name)),
            }
        }
        Ok(values)
    }

    /// The value that the study sets.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str)
    }

    /// The value that the study sets, or else the preset.
    ///
    /// # Panics
    /// If the adapter does not declare the setting, which is a mistake in the adapter.
    pub fn text(&self, name: &str) -> &str {
        let preset = || {
            let spec = self.specs.iter().find(|spec| spec.name == name);
            spec.unwrap_or_else(|| panic!("the adapter declares the setting `{name}`")).preset
        };
        self.given(name).unwrap_or_else(preset)
    }

    /// The value that the study sets, or else `sized`.
    pub fn number_or(&self, name: &str, sized: u64) -> u64 {
        self.given(name)
            .map_or(sized, |text| text.parse().expect("a number was checked on reading"))
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.text(name) == "on"
    }

    /// Names of declared settings that the study sets.
    pub fn names_given(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.given.keys().copied()
    }

    /// Settings that are not declared; the server itself checks them.
    pub fn handed_on(&self) -> impl Iterator<Item = (&str, &str)> {
        self.handed_on.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl SettingKind {
    /// The value as the configuration will contain it; `None` if it is of another kind.
    fn accept(self, value: &SettingValue) -> Option<String> {
        let text = value.to_string();
        match self {
            Self::Number { min, max } => {
                let number: u64 = text.parse().ok()?;
                (min..=max).contains(&number).then(|| number.to_string())
            }
            Self::OrUnlimited => {
                let number: i64 = text.parse().ok()?;
                (-1..=i64::from(i32::MAX)).contains(&number).then(|| number.to_string())
            }
            Self::Switch => match text.to_ascii_lowercase().as_str() {
                "on" | "true" | "enable" | "1" => Some("on".to_owned()),
                "off" | "false" | "disable" | "0" => Some("off".to_owned()),
                _ => None,
            },
            // A switch among the choices may be written as a flag.
            Self::Choice(words) => {
                let text = match text.as_str() {
                    "true" => "on",
                    "false" => "off",
                    text => text,
                };
                words.iter().find(|word| word.eq_ignore_ascii_case(text)).map(|w| (*w).to_owned())
            }
            Self::Word => {
                let fits = |c: char| c.is_ascii_graphic() && !"\"'`;{}\\#$".contains(c);
                (!text.is_empty() && text.chars().all(fits)).then_some(text)
            }
            Self::Line => {
                let fits = !text.trim().is_empty() && !text.chars().any(char::is_control);
                fits.then_some(text)
            }
        }
    }

    /// What it takes, in words.
    pub fn wanted(self) -> String {
        match self {
            Self::Number { min, max: u64::MAX } => format!("a whole number from {min}"),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::OrUnlimited => "a whole number, or -1 for no limit".to_owned(),
            Self::Switch => "on or off".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Word => "one word, without quotes, braces or semicolons".to_owned(),
            Self::Line => "one line of text".to_owned(),
        }
    }
}

fn spec_named(specs: &'static [SettingSpec], name: &str) -> Option<&'static SettingSpec> {
    let same = |known: &&str| known.eq_ignore_ascii_case(name);
    specs.iter().find(|spec| same(&spec.name) || spec.aliases.iter().any(same))
}

fn unknown(adapter: &Adapter, name: &str) -> AdapterError {
    let names: Vec<&str> = adapter.settings.iter().map(|spec| spec.name).collect();
    AdapterError::UnknownSetting {
        server: adapter.name,
        name: name.to_owned(),
        suggestion: suggestion(name, &names),
    }
}
