//! What is served: for each host the files beneath a directory, or one content for every path. Owns what is decided
//! from a request's head before any file is looked up. Start reading at `Hosts::decide` and `Hosts::find`.

mod auth;
mod cache;
mod directory;
mod hide;
mod listing;
mod media;
mod pages;
mod redirect;
mod representation;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sys::file::Root;
use units::Nanos;
use wire::Request;
use wire::target::SafePath;

use crate::SiteError;
use crate::coding::{self, ContentPreferences};
use crate::config::{Content, HostConfig, Limits, Mapping, SiteConfig, ToHttps};
use crate::log::AccessLogs;
use crate::names::{Names, host_name};
use directory::Directory;
use pages::Page;
use rules::Rules;

pub(crate) use hide::Hide;
pub(crate) use listing::escape_path;
pub(crate) use representation::Prepared;
pub use representation::{Representation, Stored, Validators};
pub(crate) use rules::{Edit, EditKind, Verdict};

/// How long the contents of password files, and the choice of a directory's index, are used without looking again. For
/// files that is `FileCache`.
pub(crate) const FRESH_FOR: Nanos = Nanos::from_secs(1);

/// What is served. Shared by all threads of a process.
#[derive(Debug)]
pub struct Hosts {
    /// Where requests are redirected to TLS, if they are.
    to_https: Option<ToHttps>,
    /// At least one.
    hosts: Vec<Host>,
    names: Names<usize>,
    /// The host of requests that name none of them.
    default_host: usize,
    /// Whether such a request is refused, if it names a host at all.
    refuses_unknown: bool,
    /// Every request has the same decision.
    is_plain: bool,
}

/// What one host has.
#[derive(Debug)]
struct Host {
    source: Source,
    /// Whether codings are chosen.
    has_codings: bool,
    /// Whether directories are listed.
    has_listings: bool,
    rules: Rules,
    /// Error pages by status.
    errors: BTreeMap<u16, Page>,
    /// Names of index files that are programs, by their extension.
    program_indexes: Vec<String>,
}

#[derive(Debug)]
enum Source {
    Fixed(Arc<Representation>),
    Directory(Box<Directory>),
}

/// What lies at a path.
#[derive(Debug)]
pub enum Found {
    /// Something to send. Until that instant it may be sent again without a lookup.
    Here(Arc<Representation>, Nanos),
    /// A directory, requested without its final slash.
    NeedsSlash,
    /// Nothing, or nothing that may be seen.
    NotFound,
    /// Something that may not be read, or leads out of the site.
    Forbidden,
    /// It exists in no coding that the client accepts.
    NotAcceptable,
    /// The path is longer than the file system allows.
    TooLong,
    /// The process or the machine has no more files (EMFILE, ENFILE) or memory.
    Busy,
    /// Reading failed.
    Failed,
}

/// An instant, on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClockReading {
    /// Monotonic.
    pub(crate) now: Nanos,
    /// The time of day in whole seconds since 1970.
    pub(crate) now_s: u64,
}

/// What is decided from a head alone, before any file is looked up. Until an instant it is a pure function of the
/// head's bytes, so a head that repeats the last one is not decided on again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    /// The number of the host whose content it is.
    host: usize,
    /// The form that the client prefers.
    wants: ContentPreferences,
    /// Whether it is served at all.
    pub(crate) verdict: Verdict,
    /// Path and query in place of those of the request.
    target: Option<String>,
    /// Numbers of the rules that change the head of the answer.
    pub(crate) edits: Vec<u16>,
    /// The user, if a password was demanded and was right.
    pub(crate) user: Option<String>,
    /// Until when the decision holds.
    pub(crate) until: Nanos,
}

impl Default for Decision {
    fn default() -> Self {
        Self {
            host: 0,
            wants: ContentPreferences::default(),
            verdict: Verdict::Serve,
            target: None,
            edits: Vec::new(),
            user: None,
            until: Nanos::MAX,
        }
    }
}

impl Decision {
    /// The number of the host whose content and log are used.
    pub(crate) fn host(&self) -> usize {
        self.host
    }

    /// Whether a content found for one decision is also the right one for the other.
    pub(crate) fn finds_the_same(&self, other: &Self) -> bool {
        self.host == other.host && self.wants == other.wants
    }

    /// Path and query that are served when `asked` is requested.
    pub(crate) fn target<'a>(&'a self, asked: &'a [u8]) -> &'a [u8] {
        self.target.as_ref().map_or(asked, |target| target.as_bytes())
    }
}

impl Hosts {
    /// Opens what the configuration names.
    ///
    /// # Errors
    /// A directory that is missing, not a directory, or forbidden; a kernel without openat2.
    pub fn open(config: &SiteConfig) -> Result<Self, SiteError> {
        let (configs, default_host) = config.all_hosts();
        let open = |host: &HostConfig| Host::open(host, config).map_err(host.named());
        let hosts = configs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let named = configs
            .iter()
            .enumerate()
            .flat_map(|(index, host)| host.names.iter().map(move |name| (name.as_str(), index)));
        let decides = |host: &Host| host.has_codings || host.has_listings || !host.rules.is_empty();
        Ok(Self {
            to_https: config.to_https.clone(),
            is_plain: hosts.len() == 1
                && config.to_https.is_none()
                && !hosts.iter().any(decides)
                && !config.refuse_unknown_hosts,
            names: Names::new(named),
            default_host,
            refuses_unknown: config.refuse_unknown_hosts,
            hosts,
        })
    }

    /// Every problem with what the configuration names; one that hosts have in common is reported once.
    pub(crate) fn check(config: &SiteConfig) -> Vec<SiteError> {
        let mut said = BTreeSet::new();
        let check = |host: &HostConfig| {
            let checks = [
                Source::open(host, &config.limits).map(drop),
                Rules::new(&host.rules).map(drop),
                pages::open(host).map(drop),
                AccessLogs::check(&host.access_log),
            ];
            let wrong = checks.into_iter().filter_map(Result::err);
            let wrong = wrong.filter(|error| said.insert(error.to_string()));
            wrong.map(host.named()).collect::<Vec<_>>()
        };
        config.all_hosts().0.iter().flat_map(check).collect()
    }

    /// For a request that cannot be read, so that its host is unknown: the default host answers and logs it.
    pub(crate) fn undecided(&self) -> Decision {
        Decision { host: self.default_host, ..Decision::default() }
    }

    /// What is to be done with a request.
    pub(crate) fn decide(&self, request: &Request<'_>, now: Nanos) -> Decision {
        if self.is_plain {
            return Decision::default();
        }
        let named = request.host.filter(|host| !host.is_empty());
        let found = named.and_then(|host| self.names.find(&host_name(host)));
        let host = found.unwrap_or(self.default_host);
        if self.refuses_unknown && found.is_none() && named.is_some() {
            return Decision { host, verdict: Verdict::Deny(421), ..Decision::default() };
        }
        if let Some(to) = &self.to_https {
            let has_files = matches!(self.hosts[host].source, Source::Directory(_));
            let verdict = match has_files && redirect::is_excepted(request, &to.except) {
                true => Verdict::Serve,
                false => redirect::to_https(request, to.port),
            };
            return Decision { host, verdict, ..Decision::default() };
        }
        let applied = self.hosts[host].rules.apply(request, now);
        Decision {
            host,
            wants: self.hosts[host].wants(request),
            verdict: applied.verdict,
            target: applied.target,
            edits: applied.edits,
            user: applied.user,
            until: applied.until.unwrap_or(Nanos::MAX),
        }
    }

    /// If the index of a directory is a program, makes the decision lead to it: its source must not be sent. Which file
    /// is the index may change, so the decision holds for [`FRESH_FOR`] at most.
    pub(crate) fn lead_to_index(&self, decision: &mut Decision, asked: &[u8], now: Nanos) {
        let Host { source, program_indexes, .. } = &self.hosts[decision.host];
        let (Source::Directory(directory), false) = (source, program_indexes.is_empty()) else {
            return;
        };
        let Ok(text) = std::str::from_utf8(decision.target(asked)) else { return };
        let Some(path) = SafePath::new(text).ok().filter(SafePath::is_directory) else { return };
        let name = directory.index_name(path.path());
        let is_programs = |name: &&[u8]| program_indexes.iter().any(|one| one.as_bytes() == *name);
        let target = name.filter(is_programs).map(|name| {
            let mut target = String::new();
            escape_path(path.path(), &mut target);
            escape_path(name, &mut target);
            path.query().map_or(target.clone(), |query| format!("{target}?{query}"))
        });
        decision.until = decision.until.min(now.saturating_add(FRESH_FOR));
        if target.is_some() {
            decision.target = target;
        }
    }

    /// Changes of the head of an answer, in order.
    pub(crate) fn edits<'a>(&'a self, decision: &'a Decision) -> impl Iterator<Item = &'a Edit> {
        let rules = &self.hosts[decision.host].rules;
        decision.edits.iter().flat_map(|&number| rules.edits(number))
    }

    /// The error page for that status, if there is one.
    pub(crate) fn error_page(
        &self,
        status: u16,
        decision: &Decision,
        time: ClockReading,
    ) -> Option<Arc<Representation>> {
        let host = &self.hosts[decision.host];
        match (host.errors.get(&status)?, &host.source) {
            (Page::Own(page), _) => Some(Arc::clone(page)),
            (Page::OfSite(_), Source::Fixed(_)) => None,
            (Page::OfSite(path), Source::Directory(directory)) => {
                match directory.find(path.as_bytes(), ContentPreferences::default(), time) {
                    Found::Here(page, _) => Some(page),
                    _ => None,
                }
            }
        }
    }

    /// What lies at `path`: normalised, decoded once, absolute, without `.` and `..` segments; a final slash is kept.
    pub(crate) fn find(&self, path: &[u8], decision: &Decision, time: ClockReading) -> Found {
        match &self.hosts[decision.host].source {
            Source::Fixed(representation) => Found::Here(Arc::clone(representation), Nanos::MAX),
            Source::Directory(directory) => directory.find(path, decision.wants, time),
        }
    }

    /// Closes the files that are kept open, for a process that has no descriptor left. Returns whether there were any.
    pub fn release_descriptors(&self) -> bool {
        // `count` and not `any`: all directories must close their files.
        self.directories().filter(|directory| directory.release_descriptors()).count() > 0
    }

    /// Files that had to leave memory, or were not kept, for lack of room.
    pub fn evicted(&self) -> u64 {
        self.directories().map(Directory::evicted).sum()
    }

    fn directories(&self) -> impl Iterator<Item = &Directory> {
        self.hosts.iter().filter_map(|host| match &host.source {
            Source::Fixed(_) => None,
            Source::Directory(directory) => Some(&**directory),
        })
    }
}

impl Source {
    fn open(config: &HostConfig, limits: &Limits) -> Result<Self, SiteError> {
        match &config.content {
            Content::Fixed(bytes) => {
                let modified_s = sys::clock::wall_secs_coarse();
                Ok(Self::Fixed(Arc::new(Representation::fixed(bytes.0, modified_s))))
            }
            Content::Directory(path) => {
                let root =
                    Root::open(path).map_err(|error| SiteError::of_directory(path, error))?;
                let directory = Directory::new(root, config, limits)
                    .map_err(|reason| SiteError::Pattern { reason })?;
                Ok(Self::Directory(Box::new(directory)))
            }
        }
    }
}

impl Host {
    fn open(config: &HostConfig, server: &SiteConfig) -> Result<Self, SiteError> {
        let source = Source::open(config, &server.limits)?;
        let is_directory = matches!(source, Source::Directory(_));
        let is_programs = |name: &&String| {
            let mut its = server.gateways.iter().filter(|gateway| gateway.is_for(config));
            its.any(|gateway| match &gateway.mapping {
                Mapping::Extension(extension) => name.ends_with(extension.as_str()),
                // Such a gateway answers for the directory itself.
                Mapping::Path(_) => false,
            })
        };
        Ok(Self {
            source,
            has_codings: is_directory && config.presentation.compression.is_some(),
            has_listings: is_directory && config.listing,
            rules: Rules::new(&config.rules)?,
            errors: pages::open(config)?,
            program_indexes: config.index.iter().filter(is_programs).cloned().collect(),
        })
    }

    /// The form in which a client wants the content.
    fn wants(&self, request: &Request<'_>) -> ContentPreferences {
        let mut wants = ContentPreferences::default();
        if self.has_codings {
            wants = ContentPreferences::read(request.fields.all("accept-encoding"));
            // Only if there is a choice: the answer is kept by these preferences.
            wants.is_ranged =
                wants != ContentPreferences::default() && request.fields.get("range").is_some();
        }
        if self.has_listings {
            let query = request.path_and_query.split_once('?').map_or("", |(_, query)| query);
            wants.json = query.split('&').any(|pair| pair == "format=json")
                || coding::likes_json(request.fields.all("accept"));
        }
        wants
    }
}
