//! Owns how words of a command line become the text of a study, so that what was typed can be run again as a file:
//! who is compared, at what work, for how long. Must not know how argv is read, nor how a study is parsed: the text
//! goes through the same parser as any file. Start reading at [`Brief`].

mod contender;
mod draft;

use std::path::PathBuf;

use record::{Metric, Plan};
use units::{Bytes, Nanos, PerSecond};

use super::SEED_MAX;
use super::work::{CONNECTIONS_MAX, PAGE_MAX};
use crate::nearest::suggestion;
use contender::NamedContender;
use draft::{Draft, quoted};

/// Connections if none are requested: as many as `joust load` has.
const CONNECTIONS: u64 = 10;
/// The same if every request needs a connection of its own. More would overflow the listen queue of a small server,
/// such as Python's http.server, which holds five.
const CONNECTIONS_UNKEPT: u64 = 4;
/// Page size if none is requested: that of the shipped studies.
const PAGE: Bytes = Bytes(3361);
/// Budget of up to three contenders, and the addition for each further one: some ten blocks.
const BUDGET: Nanos = Nanos::from_secs(45);
const BUDGET_FURTHER: Nanos = Nanos::from_secs(15);
/// Smallest budget that says anything about two contenders.
const BUDGET_MIN: Nanos = Nanos::from_secs(1);
/// The short form gets this fraction of the budget.
const SHORT_PART: u64 = 3;
/// Visits of a contender that the budget should hold; each start counts as one more load.
const VISITS: u64 = 24;
/// Bounds of a visit's measurement. A longer budget gives more visits, not longer ones: they are what the
/// statistics are made of.
const MEASURE_MIN: Nanos = Nanos::from_millis(100);
const MEASURE_MAX: Nanos = Nanos::from_millis(500);
/// Requests that an open-loop visit should hold, so that it has a 99th percentile, and how long it may take for that.
const REQUESTS: f64 = 1000.0;
const MEASURE_OPEN_MAX: Nanos = Nanos::from_secs(2);
/// Longest name of a folder that lists its contenders; beyond it, their number is used.
const NAME_MAX: usize = 60;
/// The path that every server has.
const ROOT: &str = "/";

/// What is wrong with what was typed, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BriefError {
    /// What is wrong.
    pub message: String,
    /// The way out.
    pub help: String,
}

impl BriefError {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

/// The contenders as they were typed: each a server's name, with settings in brackets or
/// without, a command with `{port}` in it, or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Several, all alike.
    Listed(Vec<String>),
    /// Two versions of one program: is the candidate worse?
    Pair {
        /// The current version.
        base: String,
        /// Its possible replacement.
        candidate: String,
    },
}

/// Other options; `None` leaves the choice to the brief.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Wishes {
    /// Connections (-c).
    pub connections: Option<u64>,
    /// Longest time (-d).
    pub budget: Option<Nanos>,
    /// Size of the page (--page).
    pub page: Option<Bytes>,
    /// What is asked for (--target).
    pub target: Option<String>,
    /// Requests a second of an open loop (--rate).
    pub rate: Option<PerSecond>,
    /// Whether each request has a connection of its own (--no-keepalive).
    pub no_keep_alive: bool,
    /// Metrics by name, the primary one first (--metric); empty: the usual ones.
    pub metrics: Vec<String>,
    /// Further keys of the study, as KEY=VALUE (--set).
    pub set: Vec<String>,
    /// Seed of the order of visits (--seed).
    pub seed: Option<u64>,
    /// Folder in which commands are started.
    pub cwd: PathBuf,
    /// What was typed, for the first line of the study.
    pub line: String,
}

/// A comparison in a few words.
#[derive(Debug, Clone)]
pub struct Brief {
    contenders: Vec<NamedContender>,
    is_pair: bool,
    wishes: Wishes,
    /// Contenders that were seen to close every connection.
    closing: Vec<String>,
}

impl Brief {
    /// Reads what was typed.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn new(who: &Who, wishes: Wishes) -> Result<Self, BriefError> {
        let read = |word: &String| contender::read(word, &wishes.cwd);
        let (contenders, is_pair) = match who {
            Who::Listed(words) => {
                let mut all = words.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                contender::tell_apart(&mut all);
                (all, false)
            }
            Who::Pair { base, candidate } => {
                let named =
                    |word, name: &str| Ok(NamedContender { name: name.to_owned(), ..read(word)? });
                (vec![named(base, "base")?, named(candidate, "candidate")?], true)
            }
        };
        if let [only] = contenders.as_slice() {
            return Err(BriefError::new(
                format!("a comparison needs at least two contenders, got one: {}", only.name),
                "name a second one, as in `joust run nginx lighttpd`; to load a single server that \
                 runs already: `joust load URL`",
            ));
        }
        let brief = Self { contenders, is_pair, wishes, closing: Vec::new() };
        brief.check()?;
        // Keys of --set are checked together with the rest.
        brief.draft()?;
        Ok(brief)
    }

    /// Names of the contenders, in the order that they were typed.
    pub fn names(&self) -> Vec<&str> {
        self.contenders.iter().map(|one| one.name.as_str()).collect()
    }

    /// Contenders that keep a run on loopback, because they cannot run in a network of their own.
    pub fn bound_to_loopback(&self) -> Vec<&str> {
        let bound = self.contenders.iter().filter(|one| !one.adapter.is_movable());
        bound.map(|one| one.name.as_str()).collect()
    }

    /// Notes the contenders that close every connection. Then no contender keeps a connection, so that all do the
    /// same work.
    pub fn close_as(&mut self, closing: Vec<String>) {
        self.closing = closing;
    }

    /// Contenders that were seen to close every connection, if that decides.
    pub fn closing(&self) -> &[String] {
        if self.wishes.no_keep_alive { &[] } else { &self.closing }
    }

    /// Whether a connection serves more than one request.
    pub fn keeps_alive(&self) -> bool {
        !self.wishes.no_keep_alive && self.closing.is_empty()
    }

    /// The text of the study.
    ///
    /// # Panics
    /// Never: [`Brief::new`] has already made it once.
    pub fn text(&self) -> String {
        self.draft().expect("the brief was checked when it was made").text(&self.head())
    }

    fn check(&self) -> Result<(), BriefError> {
        let Wishes { connections, budget, page, target, metrics, seed, .. } = &self.wishes;
        if let Some(n) = connections.filter(|n| !(1..=CONNECTIONS_MAX).contains(n)) {
            let message = format!("-c must be from 1 to {CONNECTIONS_MAX}, got {n}");
            return Err(BriefError::new(message, format!("leave it out for {CONNECTIONS}")));
        }
        if let Some(time) = budget.filter(|time| *time < BUDGET_MIN) {
            let message = format!("-d must be at least {BUDGET_MIN}, got {time}");
            return Err(BriefError::new(message, format!("leave it out for {}", self.budget())));
        }
        if let Some(size) = page.filter(|size| size.0 == 0 || *size > PAGE_MAX) {
            let message = format!("--page must be from 1 B to {PAGE_MAX}, got {size}");
            return Err(BriefError::new(message, "write a size as in --page 3361 or --page 100KB"));
        }
        if page.is_some() && !self.contenders.iter().any(|one| one.takes_page) {
            return Err(BriefError::new(
                "--page has no effect here: no contender serves the page that joust makes",
                "give {docroot} to a command, so that it serves that page, or leave --page out",
            ));
        }
        if let Some(path) = target.as_ref().filter(|path| !path.starts_with('/')) {
            let message = format!("--target must begin with /, got `{path}`");
            return Err(BriefError::new(message, format!("write --target /{path}")));
        }
        if let Some(seed) = seed.filter(|seed| *seed > SEED_MAX) {
            let message = format!("--seed must be at most {SEED_MAX}, got {seed}");
            return Err(BriefError::new(message, "take a smaller number"));
        }
        // A command line cannot give the goals that some metrics need.
        let offered = default_metrics(|_| true);
        for (index, name) in metrics.iter().enumerate() {
            match Metric::named(name) {
                None => {
                    let message = format!("--metric: there is no metric `{name}`");
                    return Err(BriefError::new(message, suggestion(name, &offered)));
                }
                Some(metric) if metric.info().needs_search => {
                    let message =
                        format!("--metric {name} needs goals, which only a study file can have");
                    return Err(BriefError::new(message, "see [search] in docs/studies.md"));
                }
                Some(_) if metrics[..index].contains(name) => {
                    let message = format!("--metric: `{name}` is named twice");
                    return Err(BriefError::new(message, "name each once, the primary one first"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn budget(&self) -> Nanos {
        let further = (self.contenders.len() as u64).saturating_sub(3);
        Nanos(BUDGET.0 + further * BUDGET_FURTHER.0)
    }

    /// How long a visit measures: the budget must hold enough visits and, with a rate, the visit enough requests.
    fn measure(&self, budget: Nanos) -> Nanos {
        const STEP: u64 = 10_000_000;
        let part = budget.0 / (self.contenders.len() as u64 * VISITS);
        let wanted = self.wishes.rate.map_or(MEASURE_MAX, |rate| {
            Nanos::from_secs_f64(REQUESTS / rate.0.max(1.0)).clamp(MEASURE_MAX, MEASURE_OPEN_MAX)
        });
        let whole = part.clamp(MEASURE_MIN.0, wanted.0);
        Nanos(whole / STEP * STEP)
    }

    /// Letters, digits, hyphens and underscores, for the folder of results.
    fn name(&self) -> String {
        let plain = |name: &str| {
            let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
            let text: String = name.chars().map(fits).collect();
            let parts: Vec<&str> = text.split('-').filter(|part| !part.is_empty()).collect();
            parts.join("-")
        };
        let all = self.names().into_iter().map(plain).filter(|name| !name.is_empty());
        let name = all.collect::<Vec<_>>().join("-");
        match name.len() {
            1..=NAME_MAX => name,
            _ => format!("{}-contenders", self.contenders.len()),
        }
    }

    fn question(&self) -> String {
        if self.is_pair {
            return "Is the candidate worse than the base?".to_owned();
        }
        let names = self.names();
        let (last, others) = names.split_last().expect("there are at least two");
        format!("Which is ahead: {} or {last}?", others.join(", "))
    }

    /// The metrics of the study; `measure` is the length of a visit that is measured.
    fn metrics(&self, measure: Nanos) -> Vec<&str> {
        match (self.wishes.metrics.is_empty(), self.wishes.rate) {
            (false, _) => self.wishes.metrics.iter().map(String::as_str).collect(),
            (true, None) => default_metrics(|_| true),
            // The rate is given, so the question is how long a request takes.
            (true, Some(rate)) => {
                let is_latency = |metric: Metric| {
                    metric.service_quantile().is_some_and(|q| has_quantile(q, rate, measure))
                };
                let is_other =
                    |metric: Metric| !metric.is_rate() && metric.service_quantile().is_none();
                let mut metrics = default_metrics(is_latency);
                metrics.reverse();
                metrics.extend(default_metrics(is_other));
                metrics
            }
        }
    }

    /// What to tell the user if visits of its plan hold too few requests for their 99th percentile.
    pub fn note_on_p99(&self, plan: &Plan) -> Option<String> {
        let (rate, measure) = (plan.cells[0].workload.rate?, plan.visit.measure);
        let about = format!(
            "at {rate} a visit of {measure} holds about {:.0} requests, and p99 needs {}",
            rate.0 * measure.as_secs_f64(),
            stats::samples_needed(0.99)
        );
        match (has_p99(rate, measure), plan.metrics.contains(&Metric::P99)) {
            (true, _) => None,
            (false, true) => Some(format!(
                "p99 will have no verdict: {about}. Take --metric p50, or longer visits (--set visit.measure=…)."
            )),
            (false, false) if self.wishes.metrics.is_empty() => {
                Some(format!("The primary metric is p50 instead of p99: {about}."))
            }
            (false, false) => None,
        }
    }

    /// The measured length of a visit: what --set says, or what the budget allows.
    fn measured(&self) -> Nanos {
        let set = |typed: &String| {
            let (key, value) = typed.split_once('=')?;
            let is_measure = matches!(key.trim(), "measure" | "visit.measure");
            value.trim().parse().ok().filter(|_| is_measure)
        };
        let budget = self.wishes.budget.unwrap_or_else(|| self.budget());
        self.wishes.set.iter().rev().find_map(set).unwrap_or_else(|| self.measure(budget))
    }

    /// The target, if it is not the page by its name: a server that does not serve joust's page has something at its
    /// root.
    fn target(&self) -> Option<&str> {
        let root = || (!self.contenders.iter().all(|one| one.takes_page)).then_some(ROOT);
        self.wishes.target.as_deref().or_else(root)
    }

    fn head(&self) -> String {
        let line: String =
            self.wishes.line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!(
            "# Made by: {line}\n\
             # Run it again with `joust run THIS_FILE`; docs/studies.md says what else a study can have.\n"
        )
    }

    fn draft(&self) -> Result<Draft, BriefError> {
        let budget = self.wishes.budget.unwrap_or_else(|| self.budget());
        let measure = self.measure(budget);
        let warm_up =
            Nanos((measure.0 / 3).clamp(50_000_000, 150_000_000) / 10_000_000 * 10_000_000);
        let metrics: Vec<String> = self.metrics(self.measured()).into_iter().map(quoted).collect();
        let mut draft = Draft::default();
        draft.put("", "name", quoted(&self.name()), "");
        draft.put("", "question", quoted(&self.question()), "");
        draft.put(
            "",
            "metrics",
            format!("[{}]", metrics.join(", ")),
            "the first is the primary one",
        );
        draft.put("", "margin", quoted("2%"), "a smaller difference does not matter");
        draft.put("", "budget", time(budget), "blocks that do not fit are not started");
        if let Some(seed) = self.wishes.seed {
            draft.put("", "seed", seed.to_string(), "of the order of visits");
        }
        self.workload(&mut draft);
        draft.put("blocks", "min", "8".to_owned(), "in each block every contender is visited once");
        draft.put("blocks", "max", "1000".to_owned(), "");
        draft.put("blocks", "half_width", quoted("2%"), "done when intervals are this narrow");
        draft.put("visit", "warm_up", time(warm_up), "cut off");
        draft.put("visit", "measure", time(measure), "");
        draft.put("short", "budget", time(Nanos(budget.0 / SHORT_PART)), "with --short");
        for typed in &self.wishes.set {
            draft.set(typed)?;
        }
        draft.contenders = self.contenders.iter().map(contender::table).collect();
        Ok(draft)
    }

    fn workload(&self, draft: &mut Draft) {
        let (wishes, keeps) = (&self.wishes, self.keeps_alive());
        let usual = if keeps { CONNECTIONS } else { CONNECTIONS_UNKEPT };
        let connections = wishes.connections.unwrap_or(usual);
        let why = match self.closing() {
            [] => String::new(),
            closing => format!("closed after each reply by: {}", closing.join(", ")),
        };
        draft.put("workload", "page", wishes.page.unwrap_or(PAGE).0.to_string(), "bytes");
        draft.put("workload", "connections", connections.to_string(), "");
        draft.put("workload", "keep_alive", keeps.to_string(), &why);
        if let Some(target) = self.target() {
            draft.put("workload", "target", quoted(target), "");
        }
        if let Some(rate) = wishes.rate {
            let text = quoted(&format!("{}/s", rate.0));
            draft.put(
                "workload",
                "rate",
                text,
                "an open loop: requests are due whatever the server does",
            );
        }
    }
}

/// Whether a visit of that length has enough requests for its 99th percentile.
fn has_p99(rate: PerSecond, measure: Nanos) -> bool {
    has_quantile(0.99, rate, measure)
}

fn has_quantile(q: f64, rate: PerSecond, measure: Nanos) -> bool {
    rate.0 * measure.as_secs_f64() >= stats::samples_needed(q) as f64
}

/// Names of the metrics that need no study file and that `is_wanted` accepts.
fn default_metrics(is_wanted: impl Fn(Metric) -> bool) -> Vec<&'static str> {
    let usual = Metric::all().filter(|metric| !metric.info().needs_search);
    usual.filter(|&metric| is_wanted(metric)).map(|metric| metric.info().name).collect()
}

/// A time as a study has it, exactly.
fn time(time: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (scale, unit) = units
        .into_iter()
        .find(|(scale, _)| time.0.is_multiple_of(*scale))
        .expect("every number is a multiple of 1");
    quoted(&format!("{}{unit}", time.0 / scale))
}

#[cfg(test)]
mod tests;
