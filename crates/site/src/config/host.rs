//! Virtual hosts: `[[host]]`, and `[errors]`, which each host may define for itself. Owns what a host inherits from the
//! top of the file; `hosts` finds the host of a request. Start reading at [`HostConfig`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::presentation::{Presentation, check_types};
use super::rule::{RuleConfig, check_rules};
use super::table::{Table, shown_as, taken_as};
use super::text::{self, check_media};
use super::{AccessLogConfig, Compression, Content, LogFormat, SiteConfig};
use crate::SiteError;
use crate::names::{check as check_name, host_name};

/// Everything that is decided per host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// How messages name its table; `None`: it is the top of the file.
    pub table: Option<String>,
    /// Names whose requests it serves; `*.example.org` means all names beneath it.
    pub names: Vec<String>,
    /// What is served.
    pub content: Content,
    /// Names tried in a directory, in order.
    pub index: Vec<String>,
    /// Whether a directory without an index is listed.
    pub listing: bool,
    /// How files are shown.
    pub presentation: Presentation,
    /// Error pages by status.
    pub errors: BTreeMap<u16, ErrorPage>,
    /// Rules, those of the top of the file first.
    pub rules: Vec<RuleConfig>,
    /// Where its requests are logged.
    pub access_log: AccessLogConfig,
}

impl HostConfig {
    /// Whether `name` is one of its names in the configuration.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|own| host_name(own) == host_name(name))
    }

    /// Adds the name of its table to an error.
    pub(crate) fn named(&self) -> impl Fn(SiteError) -> SiteError {
        |error: SiteError| match &self.table {
            None => error,
            Some(table) => SiteError::Within { table: table.clone(), error: Box::new(error) },
        }
    }
}

/// `[[host]]`, as written in a file. What it leaves out is inherited from the top of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostTable {
    names: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    listing: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hide: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    show: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    charset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    types: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compression: Option<Compression>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<BTreeMap<String, ErrorPage>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_log: Option<HostLog>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rule: Vec<RuleConfig>,
}

/// The page that is sent for an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "write it as in \"/404.html\", a page of the site, or \
                               { file = \"/etc/joust/404.html\" }"
)]
pub enum ErrorPage {
    /// The page at that path of the site, looked up when it is needed.
    OfSite(String),
    /// A file anywhere on the machine.
    Own(OwnPage),
}

/// A page that is read when the server starts or reloads, with the rights that it has then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnPage {
    /// Its absolute path.
    pub file: PathBuf,
}

/// `[host.access_log]`. What it leaves out is as in `[access_log]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HostLog {
    /// A file, or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<LogFormat>,
}

impl HostLog {
    fn over(&self, top: &AccessLogConfig) -> AccessLogConfig {
        let file = self.file.as_deref().map(text::log_file);
        AccessLogConfig {
            file: file.unwrap_or_else(|| top.file.clone()),
            format: self.format.as_ref().unwrap_or(&top.format).clone(),
        }
    }
}

impl SiteConfig {
    /// All hosts, and the index of the one for requests that name none of them. Unless one of the named hosts is the
    /// default, that is the top of the file, which then comes first.
    pub fn all_hosts(&self) -> (Vec<HostConfig>, usize) {
        let top = HostConfig {
            table: None,
            names: Vec::new(),
            content: self.content.clone(),
            index: self.index.clone(),
            listing: self.listing,
            presentation: self.presentation.clone(),
            errors: statuses(&self.errors),
            rules: self.rules.clone(),
            access_log: self.access_log.clone(),
        };
        let named: Vec<HostConfig> = self.hosts.iter().map(|table| table.over(&top)).collect();
        match self.default_host {
            Some(index) => (named, index),
            None => ([top].into_iter().chain(named).collect(), 0),
        }
    }

    /// Copies the hosts of this server to the one that redirects plain requests, so that each host keeps its log and
    /// the files that are served without TLS. Nothing else that a host decides is copied.
    pub(super) fn give_files(&self, to: &mut Self, except: &[String]) {
        let has_files = !except.is_empty();
        let shown = except.iter().flat_map(|path| path.split('/'));
        let shown = shown.filter(|name| name.starts_with('.')).map(str::to_owned);
        to.presentation.show = shown.collect();
        to.presentation.default_type.clone_from(&self.presentation.default_type);
        to.index.clear();
        if let (Content::Directory(_), true) = (&self.content, has_files) {
            to.content.clone_from(&self.content);
        }
        let plain = |host: &HostTable| {
            let directory = host.directory.clone().filter(|_| has_files);
            HostTable {
                names: host.names.clone(),
                default: host.default,
                fixed: directory.is_none().then_some(0),
                directory,
                default_type: host.default_type.clone(),
                access_log: host.access_log.clone(),
                ..HostTable::default()
            }
        };
        to.hosts = self.hosts.iter().map(plain).collect();
        to.default_host = self.default_host;
    }

    /// Call it if the top of the file serves nothing. The default host, or else the first, then serves requests that
    /// name no other host. Returns false if there is no host.
    pub fn take_default_host(&mut self) -> bool {
        let index = self.hosts.iter().position(|host| host.default).unwrap_or(0);
        let Some(content) = self.hosts.get(index).and_then(HostTable::content) else {
            return false;
        };
        self.content = content;
        self.default_host = Some(index);
        true
    }
}

impl HostTable {
    fn content(&self) -> Option<Content> {
        let directory = self.directory.clone().map(Content::Directory);
        directory.or(self.fixed.map(|bytes| Content::Fixed(Bytes(bytes))))
    }

    fn over(&self, top: &HostConfig) -> HostConfig {
        let own = |own: &Option<Vec<String>>, top: &Vec<String>| own.clone().unwrap_or(top.clone());
        let presentation = &top.presentation;
        HostConfig {
            table: Some(self.title()),
            names: self.names.clone(),
            content: self.content().unwrap_or(top.content.clone()),
            index: own(&self.index, &top.index),
            listing: self.listing.unwrap_or(top.listing),
            presentation: Presentation {
                hide: own(&self.hide, &presentation.hide),
                show: own(&self.show, &presentation.show),
                charset: self.charset.clone().unwrap_or(presentation.charset.clone()),
                default_type: self
                    .default_type
                    .clone()
                    .unwrap_or(presentation.default_type.clone()),
                types: self.types.clone().unwrap_or(presentation.types.clone()),
                compression: self.compression.clone().or(presentation.compression.clone()),
            },
            errors: self.errors.as_ref().map_or(top.errors.clone(), statuses),
            rules: top.rules.iter().chain(&self.rule).cloned().collect(),
            access_log: self
                .access_log
                .as_ref()
                .map_or_else(|| top.access_log.clone(), |own| own.over(&top.access_log)),
        }
    }

    /// How messages name it.
    fn title(&self) -> String {
        format!("[[host]] {}", self.names.first().map_or("default", String::as_str))
    }

    fn check(&self) -> Result<(), String> {
        if self.names.is_empty() && !self.default {
            return Err("a host needs `names`, or `default = true`".to_owned());
        }
        if self.directory.is_some() == self.fixed.is_some() {
            return Err("a host needs exactly one of `directory` and `fixed`".to_owned());
        }
        if let Some(bytes) = self.fixed.filter(|bytes| *bytes > text::FIXED_BYTES_MAX) {
            return Err(format!("`fixed` must be at most {}, got {bytes}", text::FIXED_BYTES_MAX));
        }
        self.names.iter().try_for_each(|name| check_name(name))?;
        if self.listing == Some(true) && self.fixed.is_some() {
            return Err(
                "`listing` needs a `directory`, and this host is `fixed`: remove it".to_owned()
            );
        }
        [&self.index, &self.hide, &self.show]
            .into_iter()
            .flatten()
            .try_for_each(|names| text::check_file_names(names))?;
        self.compression.iter().try_for_each(Compression::check)?;
        self.types.iter().try_for_each(check_types)?;
        [&self.charset, &self.default_type]
            .into_iter()
            .flatten()
            .try_for_each(|text| check_media(text))?;
        self.errors.iter().try_for_each(check_errors)?;
        check_rules(&self.rule)
    }
}

fn statuses(errors: &BTreeMap<String, ErrorPage>) -> BTreeMap<u16, ErrorPage> {
    errors.iter().filter_map(|(status, page)| Some((status.parse().ok()?, page.clone()))).collect()
}

fn check_errors(errors: &BTreeMap<String, ErrorPage>) -> Result<(), String> {
    errors.iter().try_for_each(|(status, page)| {
        let is_error = status.parse::<u16>().is_ok_and(|status| (400..600).contains(&status));
        let (is_absolute, typed) = match page {
            ErrorPage::OfSite(path) => (path.starts_with('/'), format!("{path:?}")),
            ErrorPage::Own(own) => (own.file.is_absolute(), format!("{{ file = {:?} }}", own.file)),
        };
        match is_error && is_absolute {
            true => Ok(()),
            false => Err(format!(
                "`{status} = {typed}` is not valid: write a page of the site, as in `404 = \"/404.html\"`, or a file, as in `404 = {{ file = \"/etc/joust/404.html\" }}`"
            )),
        }
    })
}

fn check_hosts(hosts: &[HostTable]) -> Result<(), String> {
    for (number, host) in hosts.iter().enumerate() {
        // Named by its position too: a host may have no name.
        host.check().map_err(|why| format!("{} (table {}): {why}", host.title(), number + 1))?;
    }
    // In the form in which they are compared with names in requests.
    let mut names: Vec<String> =
        hosts.iter().flat_map(|host| &host.names).map(|name| host_name(name)).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!(
            "`{}` is in the `names` of two hosts: remove it from one of them",
            pair[0]
        ));
    }
    match hosts.iter().filter(|host| host.default).map(HostTable::title).collect::<Vec<_>>() {
        defaults if defaults.len() > 1 => {
            Err(format!("only one host can be the default, got {}", defaults.join(" and ")))
        }
        _ => Ok(()),
    }
}

/// Refuses hosts that do not fit the rest of the configuration.
pub(super) fn check_all(config: &SiteConfig) -> Result<(), String> {
    let default = config.hosts.iter().find(|host| host.default);
    match default.filter(|_| config.default_host.is_none()) {
        Some(host) => Err(format!(
            "{} is the default host, but the top of the file (or the command line) also has content for requests without a known host: remove one of them",
            host.title()
        )),
        None => Ok(()),
    }
}

/// `[[host]]`.
pub(super) static HOSTS: Table = Table {
    name: "host",
    is_list: true,
    take: |config, value| {
        config.hosts = taken_as(value, |hosts: &Vec<HostTable>| check_hosts(hosts))?;
        Ok(())
    },
    show: |config| match config.hosts.is_empty() {
        true => None,
        false => Some(shown_as("host", &config.hosts)),
    },
    example: || {
        let host = HostTable {
            names: ["example.org", "*.example.org"].map(str::to_owned).to_vec(),
            directory: Some("/srv/example".into()),
            ..HostTable::default()
        };
        shown_as("host", &[host])
    },
};

/// `[errors]`.
pub(super) static ERRORS: Table = Table {
    name: "errors",
    is_list: false,
    take: |config, value| {
        config.errors = taken_as(value, check_errors)?;
        Ok(())
    },
    show: |config| match config.errors.is_empty() {
        true => None,
        false => Some(shown_as("errors", &config.errors)),
    },
    example: || {
        let page = ErrorPage::OfSite("/404.html".to_owned());
        shown_as("errors", &BTreeMap::from([("404", page)]))
    },
};
