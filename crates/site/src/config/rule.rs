//! `[[rule]]`: what is done with requests that match a pattern. Owns the form of the table and its checks;
//! `hosts::rules` matches requests. Start reading at [`RuleConfig`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::table::{Table, shown_as, taken_as};
use crate::pattern::{self, PathPattern};

/// A rule: conditions, and what is done if all of them hold. Rules apply in the order in which they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleConfig {
    /// The path is this, or lies beneath it; `$1` is what follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The path matches this glob: `*` is any part of a name, `**` any part of a path, `?` one letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// The path matches this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The method is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "some")]
    pub methods: Vec<String>,
    /// The host is one of these; `*.example.org` means all names beneath it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "some")]
    pub hosts: Vec<String>,
    /// The request has this header field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The value of that field matches this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_matches: Option<String>,

    /// Redirects the client there: a path, or a URL whose host is written out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// The status of the redirect: 301, 302 (unless set), 303, 307 or 308.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the redirect keeps the query, unless it has one of its own; true unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_query: Option<bool>,
    /// Goes on with this path, within the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<String>,
    /// Refuses with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<u16>,
    /// Demands a name and a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthConfig>,
    /// Fields that replace those of the same name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Fields that are added to those already there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub add: BTreeMap<String, String>,
    /// Fields that are removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

impl RuleConfig {
    /// Which paths it is for; `None`: all.
    pub(crate) fn path(&self) -> Option<PathPattern<'_>> {
        let prefix = self.prefix.as_deref().map(PathPattern::Prefix);
        let glob = self.glob.as_deref().map(PathPattern::Glob);
        prefix.or(glob).or(self.regex.as_deref().map(PathPattern::Regex))
    }
}

/// Fields that frame a message or belong to the connection. Changing them could make the next answer part of this one.
const FRAMING: [&str; 8] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Who has access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// What the client shows to the person who types the password.
    pub realm: String,
    /// Names and bcrypt hashes, as `htpasswd -B` writes them. Read again when it changes.
    pub file: PathBuf,
    /// Which of those users have access; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "some")]
    pub users: Vec<String>,
}

/// Reads a list that restricts. An empty one is refused: it would restrict nothing, though it reads as if it meant
/// nobody.
fn some<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<String>, D::Error> {
    let list = Vec::deserialize(list)?;
    match list.is_empty() {
        true => Err(D::Error::custom("the list must not be empty: leave it out to mean all")),
        false => Ok(list),
    }
}

/// Refuses the first invalid rule; the message gives its number, since rules have no names.
pub(super) fn check_rules(rules: &[RuleConfig]) -> Result<(), String> {
    let check =
        |(index, rule)| check_rule(rule).map_err(|why| format!("rule {}: {why}", index + 1));
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

/// Refuses an invalid rule, with the way out.
///
/// # Errors
/// More than one path or action; an invalid pattern; a redirect that could lead to any host; a
/// field that would break a head.
fn check_rule(rule: &RuleConfig) -> Result<(), String> {
    let paths = [&rule.prefix, &rule.glob, &rule.regex];
    if paths.iter().filter(|path| path.is_some()).count() > 1 {
        return Err("a rule can have only one of `prefix`, `glob` and `regex`".to_owned());
    }
    if let Some(prefix) =
        [&rule.prefix, &rule.glob].into_iter().flatten().find(|p| !p.starts_with('/'))
    {
        return Err(format!("`{prefix}` matches no path: paths begin with a slash"));
    }
    rule.path().map(pattern::of_path).transpose()?;
    rule.header_matches.as_deref().map(pattern::of_value).transpose()?;
    if rule.header_matches.is_some() && rule.header.is_none() {
        return Err("`header_matches` needs `header`: set both".to_owned());
    }
    let actions =
        [rule.redirect.is_some(), rule.rewrite.is_some(), rule.deny.is_some(), rule.auth.is_some()];
    let edits = rule.set.len() + rule.add.len() + rule.remove.len();
    match actions.into_iter().filter(|is| *is).count() {
        0 if edits == 0 => {
            return Err("a rule without an action: add `redirect`, `rewrite`, `deny`, `auth`, \
                        `set`, `add` or `remove`"
                .to_owned());
        }
        0 | 1 => {}
        _ => {
            return Err(
                "a rule can have only one of `redirect`, `rewrite`, `deny` and `auth`".to_owned()
            );
        }
    }
    if let Some(auth) = &rule.auth
        && auth.realm.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\' | 0x7f))
    {
        return Err("`realm` must not contain quotes, \\ or control characters".to_owned());
    }
    check_redirect(rule)?;
    check_rewrite(rule)?;
    if let Some(status) = rule.deny.filter(|status| !(400..600).contains(status)) {
        return Err(format!("`deny` must be within 400 to 599, got {status}"));
    }
    check_fields(rule)
}

fn check_redirect(rule: &RuleConfig) -> Result<(), String> {
    let Some(to) = &rule.redirect else {
        return match rule.status.is_some() || rule.keep_query.is_some() {
            true => Err("`status` and `keep_query` need `redirect`".to_owned()),
            false => Ok(()),
        };
    };
    if let Some(status) = rule.status.filter(|s| ![301, 302, 303, 307, 308].contains(s)) {
        return Err(format!(
            "`status` of a redirect must be 301, 302, 303, 307 or 308, got {status}"
        ));
    }
    if !to.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "`redirect` must be ASCII without spaces, got {to:?}: percent-encode it"
        ));
    }
    let is_path = to.starts_with('/') && !to.starts_with("//");
    let authority = to.strip_prefix("https://").or_else(|| to.strip_prefix("http://"));
    let is_url = authority.is_some_and(|rest| {
        let end = rest.find('/').unwrap_or(rest.len());
        let authority = rest[..end].strip_prefix("${host}").unwrap_or(&rest[..end]);
        !rest.starts_with('/') && !authority.contains(['$', '@', '\\', '?', '#'])
    });
    match is_path || is_url {
        true => Ok(()),
        false => Err(format!(
            "`redirect` = {to:?} could lead to any host: begin with one slash, or write the host out, as in https://example.org/$1 or https://${{host}}/$1"
        )),
    }
}

fn check_rewrite(rule: &RuleConfig) -> Result<(), String> {
    match &rule.rewrite {
        Some(to) if !to.starts_with('/') || !to.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(format!(
                "`rewrite` must be a path that begins with a slash, percent-encoded, got {to:?}"
            ))
        }
        _ => Ok(()),
    }
}

fn check_fields(rule: &RuleConfig) -> Result<(), String> {
    let names = rule.set.keys().chain(rule.add.keys()).chain(&rule.remove);
    for name in names {
        if FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing)) {
            return Err(format!(
                "`{name}` cannot be changed by a rule: it frames the message or controls the connection"
            ));
        }
    }
    let mut head = Vec::new();
    let mut head = wire::ResponseHead::new(&mut head, 200);
    let set = rule.set.iter().chain(&rule.add).map(|(name, value)| (name, value.as_str()));
    for (name, value) in set.chain(rule.remove.iter().map(|name| (name, ""))) {
        head.field(name, value).map_err(|error| error.to_string())?;
    }
    Ok(())
}
