//! The rules of a site: which apply to a request, and what they do with it. Owns matching and captures (`config::rule`
//! has the checks that keep a redirect on its host and a head in one piece). Start reading at [`Rules::apply`].
//!
//! Rules match the decoded and normalised path, which is the one that is opened. So no other spelling of a path gets
//! past a rule (CVE-2026-6414). Captures come from that path too, so they are escaped again before they go into a head.

use std::sync::Arc;

use regex::bytes::{Captures, Regex};
use wire::Request;
use wire::target::SafePath;

use super::auth::{Guard, Passed};
use super::escape_path;
use crate::SiteError;
use crate::config::RuleConfig;
use crate::names::{self, Names, host_name};
use crate::pattern;
use units::Nanos;

/// Rules in their order.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    path: Option<Regex>,
    methods: Vec<String>,
    /// `None`: every host.
    hosts: Option<Names<()>>,
    header: Option<(String, Option<Regex>)>,
    edits: Vec<Edit>,
    action: Action,
}

#[derive(Debug)]
enum Action {
    GoOn,
    Redirect { to: String, status: u16, keep_query: bool },
    Rewrite(String),
    Deny(u16),
    Guard(Arc<Guard>),
}

/// A change of an answer's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) name: Box<str>,
    pub(crate) how: EditKind,
}

/// What is done with the fields of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditKind {
    /// One field replaces those that are there.
    Set(Box<str>),
    /// One field is added to them.
    Add(Box<str>),
    /// All of them are removed.
    Remove,
}

/// What the rules decide on a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is served.
    #[default]
    Serve,
    /// Its path is invalid.
    Malformed,
    /// It is answered with this status.
    Deny(u16),
    /// It is answered with this status and these field lines.
    Tell(u16, String),
}

/// What was decided on a request so far.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub(super) verdict: Verdict,
    /// Path and query in place of those of the request.
    pub(super) target: Option<String>,
    /// Numbers of the rules whose edits apply.
    pub(super) edits: Vec<u16>,
    /// The user, if a password was demanded and was right.
    pub(super) user: Option<String>,
    /// Until when it holds; `None`: for ever.
    pub(super) until: Option<Nanos>,
}

impl Rules {
    /// # Errors
    /// A password file that cannot be read; an invalid pattern.
    pub(super) fn new(configs: &[RuleConfig]) -> Result<Self, SiteError> {
        let rules = configs.iter().map(Rule::new).collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The edits of a rule, by its number.
    pub(super) fn edits(&self, number: u16) -> &[Edit] {
        self.rules.get(usize::from(number)).map_or(&[], |rule| &rule.edits)
    }

    /// Applies the rules to a request. Each rule is looked at once, so rewriting ends.
    pub(super) fn apply(&self, request: &Request<'_>, now: Nanos) -> Applied {
        let mut applied = Applied::default();
        let mut target = request.path_and_query.to_owned();
        // `OPTIONS *` concerns the server itself, and has no path.
        if target == "*" {
            return applied;
        }
        for (number, rule) in self.rules.iter().enumerate() {
            let Ok(path) = SafePath::new(&target) else {
                applied.verdict = Verdict::Malformed;
                return applied;
            };
            if !rule.fits_head(request) {
                continue;
            }
            let captures = match &rule.path {
                None => None,
                Some(regex) => match regex.captures(path.path()) {
                    None => continue,
                    captures => captures,
                },
            };
            if !rule.edits.is_empty() {
                applied.edits.extend(u16::try_from(number));
            }
            match &rule.action {
                Action::GoOn => {}
                Action::Deny(status) => applied.verdict = Verdict::Deny(*status),
                Action::Redirect { to, status, keep_query } => {
                    let query = path.query().filter(|_| *keep_query);
                    let location = location(to, captures.as_ref(), query, request.host);
                    applied.verdict = location
                        .map_or(Verdict::Deny(400), |location| Verdict::Tell(*status, location));
                }
                Action::Rewrite(to) => {
                    let rewritten = rewritten(to, captures.as_ref(), path.query());
                    drop(path);
                    target = rewritten;
                    applied.target = Some(target.clone());
                }
                Action::Guard(guard) => match guard.pass(request, now) {
                    Passed::Yes { user, until } => {
                        applied.user = Some(user);
                        applied.until = Some(applied.until.map_or(until, |other| other.min(until)));
                    }
                    Passed::No => {
                        applied.verdict = Verdict::Tell(401, guard.challenge().to_owned());
                        // The file may change meanwhile.
                        applied.until = Some(now);
                    }
                    Passed::Busy => {
                        applied.verdict = Verdict::Tell(503, "Retry-After: 1\r\n".to_owned());
                        applied.until = Some(now);
                    }
                    Passed::Broken => {
                        applied.verdict = Verdict::Deny(500);
                        applied.until = Some(now);
                    }
                },
            }
            if applied.verdict != Verdict::Serve {
                break;
            }
        }
        applied
    }
}

impl Rule {
    fn new(config: &RuleConfig) -> Result<Self, SiteError> {
        let refused = |reason| SiteError::Pattern { reason };
        let header = match &config.header {
            None => None,
            Some(name) => {
                let value = config.header_matches.as_deref().map(pattern::of_value);
                Some((name.clone(), value.transpose().map_err(refused)?))
            }
        };
        let edit = |name: &String, how| Edit { name: name.as_str().into(), how };
        let set =
            config.set.iter().map(|(name, value)| edit(name, EditKind::Set(value.as_str().into())));
        let add =
            config.add.iter().map(|(name, value)| edit(name, EditKind::Add(value.as_str().into())));
        let remove = config.remove.iter().map(|name| edit(name, EditKind::Remove));
        Ok(Self {
            path: config.path().map(pattern::of_path).transpose().map_err(refused)?,
            methods: config.methods.clone(),
            hosts: (!config.hosts.is_empty())
                .then(|| Names::new(config.hosts.iter().map(|name| (name.as_str(), ())))),
            header,
            edits: remove.chain(set).chain(add).collect(),
            action: Action::new(config)?,
        })
    }

    /// Whether all conditions but that on the path hold.
    fn fits_head(&self, request: &Request<'_>) -> bool {
        if !self.methods.is_empty() && !self.methods.iter().any(|method| method == request.method) {
            return false;
        }
        if let Some(hosts) = &self.hosts
            && request.host.and_then(|host| hosts.find(&host_name(host))).is_none()
        {
            return false;
        }
        self.header.as_ref().is_none_or(|(name, value)| {
            let mut values = request.fields.all(name);
            values.any(|found| value.as_ref().is_none_or(|regex| regex.is_match(found)))
        })
    }
}

impl Action {
    fn new(config: &RuleConfig) -> Result<Self, SiteError> {
        if let Some(to) = &config.redirect {
            return Ok(Self::Redirect {
                to: to.clone(),
                status: config.status.unwrap_or(302),
                keep_query: config.keep_query.unwrap_or(true),
            });
        }
        Ok(match (&config.rewrite, config.deny, &config.auth) {
            (Some(to), _, _) => Self::Rewrite(to.clone()),
            (_, Some(status), _) => Self::Deny(status),
            (_, _, Some(auth)) => Self::Guard(Arc::new(Guard::open(auth)?)),
            _ => Self::GoOn,
        })
    }
}

/// The text of a template with its captures (`$1`, `${1}`, `${name}`), each given by `capture`, and
/// `${host}`.
fn expand(template: &str, mut capture: impl FnMut(&str, &mut String)) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, left) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some(braced) => braced,
            None => {
                let digits = after.bytes().take_while(u8::is_ascii_digit).count();
                after.split_at(digits)
            }
        };
        capture(name, &mut out);
        rest = left;
    }
    out.push_str(rest);
    out
}

fn captured<'c>(captures: Option<&'c Captures<'_>>, name: &str) -> &'c [u8] {
    let found = captures.and_then(|captures| match name.parse() {
        Ok(number) => captures.get(number),
        Err(_) => captures.name(name),
    });
    found.map_or(&[], |found| found.as_bytes())
}

/// A capture to be appended to `before`. If both have a slash where they meet, one of the two is dropped; what a prefix
/// leaves begins with one.
fn joined<'c>(before: &str, captured: &'c [u8]) -> &'c [u8] {
    match before.ends_with('/') {
        true => captured.strip_prefix(b"/").unwrap_or(captured),
        false => captured,
    }
}

/// The line of a redirect. Captures are escaped, so that it is one line. If it begins with a slash, it begins with
/// exactly one, so that no capture turns into a host (`//host/`). `None`: it needs the client's host, which is missing
/// or invalid, so that what follows would be taken for the host.
fn location(
    to: &str,
    captures: Option<&Captures<'_>>,
    query: Option<&str>,
    host: Option<&str>,
) -> Option<String> {
    let host = host.map(host_name).filter(|host| names::check(host).is_ok());
    if host.is_none() && to.contains("${host}") {
        return None;
    }
    let mut place = expand(to, |name, out| match name {
        "host" => out.push_str(host.as_deref().unwrap_or_default()),
        name => escape_path(joined(out, captured(captures, name)), out),
    });
    if place.starts_with('/') {
        let slashes = place.bytes().take_while(|&byte| byte == b'/').count();
        place.drain(1..slashes);
    }
    if let Some(query) = query.filter(|_| !place.contains('?')) {
        place.push('?');
        place.push_str(query);
    }
    Some(format!("Location: {place}\r\n"))
}

/// Path and query with which a request continues.
fn rewritten(to: &str, captures: Option<&Captures<'_>>, query: Option<&str>) -> String {
    let mut target = expand(to, |name, out| escape_path(captured(captures, name), out));
    if let Some(query) = query.filter(|_| !target.contains('?')) {
        target.push('?');
        target.push_str(query);
    }
    target
}
