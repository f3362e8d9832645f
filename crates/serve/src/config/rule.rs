//! `[[rule]]`: what is done with requests that fit a pattern. Owns the form of the table and what
//! may not stand in one; must not know how a request is matched (see `site::rules`).
//! Start reading at [`RuleConfig`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::tables::{Table, shown_as, taken_as};
use crate::site::check_rule;

/// A rule: conditions, all of which hold where it applies, and what is done then. Rules are taken in
/// the order in which they stand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleConfig {
    /// The path is this, or lies beneath it; `$1` is what follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The path fits it: `*` any part of a name, `**` any part of a path, `?` a letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// The path fits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The method is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "some")]
    pub methods: Vec<String>,
    /// The host is one of these; `*.example.org` are all beneath it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "some")]
    pub hosts: Vec<String>,
    /// The request has such a field,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// and its value fits this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_matches: Option<String>,

    /// Send the client there: a path, or a URL whose host is written out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// With this status: 301, 302 (unless set), 303, 307 or 308.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the query goes with it, unless the redirect has one; so unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_query: Option<bool>,
    /// Go on with this path, within the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<String>,
    /// Refuse with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<u16>,
    /// Demand a name and a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthConfig>,
    /// Fields that stand in place of those of that name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Fields beside those that are there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub add: BTreeMap<String, String>,
    /// Fields that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// Who may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// What the client shows to whoever has to type the password.
    pub realm: String,
    /// Names and bcrypt hashes, as `htpasswd -B` writes them. Read again when it changes.
    pub file: PathBuf,
    /// Of those, these; none: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "some")]
    pub users: Vec<String>,
}

/// A list that narrows. An empty one would narrow nothing, though it says that nobody is meant.
fn some<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<String>, D::Error> {
    let list = Vec::deserialize(list)?;
    match list.is_empty() {
        true => Err(D::Error::custom("the list is empty: leave it out where all are meant")),
        false => Ok(list),
    }
}

/// What is wrong with the first that cannot be, and which it is: they have no names.
pub(super) fn check_rules(rules: &[RuleConfig]) -> Result<(), String> {
    let check = |(index, rule)| {
        check_rule(rule).map_err(|why| format!("the rule in place {}: {why}", index + 1))
    };
    rules.iter().enumerate().try_for_each(check)
}

/// `[[rule]]`.
pub(super) static TABLE: Table = Table {
    name: "rule",
    is_list: true,
    take: |config, value| {
        config.rules = taken_as(value, |rules: &Vec<RuleConfig>| check_rules(rules))?;
        Ok(())
    },
    show: |config| match config.rules.is_empty() {
        true => None,
        false => Some(shown_as("rule", &config.rules)),
    },
    example: || {
        let rule = RuleConfig {
            prefix: Some("/old/".to_owned()),
            redirect: Some("/new/$1".to_owned()),
            status: Some(301),
            ..RuleConfig::default()
        };
        shown_as("rule", &[rule])
    },
};
