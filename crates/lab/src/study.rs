//! Owns the study file: TOML to a complete `Plan`, or an error that points into the file. Must not
//! know how a plan is carried out. Start reading at [`parse`].

mod keys;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use record::{Blocks, Contender, Metric, Plan, SettingValue, Settings, VisitPlan, Workload};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::{Bytes, Nanos, Share};

use crate::adapters::{self, Adapter};
use crate::error::LabError;
use crate::nearest::suggestion;
use keys::{Section, Source, integer};

/// The study that is run where none is named.
const QUICK: &str = include_str!("../../../studies/quick.toml");

/// Most connections of a study: what one client address may hold to one port.
const CONNECTIONS_MAX: u64 = 60_000;
/// Most blocks of a study.
const BLOCKS_MAX: u64 = 10_000;
/// Shortest load that is measured: with the generator's intervals of 10 ms, MSER-5 needs ten of
/// them to say anything.
const MEASURE_MIN: Nanos = Nanos::from_millis(100);
/// Largest margin: past it "no difference" would be said of what everybody sees.
const MARGIN_MAX: f64 = 0.5;

/// TOML has no larger whole number.
const SEED_MAX: u64 = i64::MAX as u64;

const TOP: [&str; 10] = [
    "name",
    "question",
    "metrics",
    "margin",
    "budget",
    "seed",
    "workload",
    "blocks",
    "visit",
    "contender",
];
const WORKLOAD: [&str; 5] = ["page", "connections", "keep_alive", "threads", "timeout"];
const BLOCKS: [&str; 3] = ["min", "max", "half_width"];
const VISIT: [&str; 2] = ["warm_up", "measure"];
const CONTENDER: [&str; 3] = ["name", "server", "settings"];
const METRICS: [(&str, Metric); 5] = [
    ("throughput", Metric::Throughput),
    ("server_cpu", Metric::ServerCpu),
    ("p50", Metric::P50),
    ("p99", Metric::P99),
    ("memory", Metric::Memory),
];

/// What is wrong with a study file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StudyError {
    /// The file, as it was named.
    pub file: String,
    /// Its whole text.
    pub text: String,
    /// The place, in bytes of the text; on character boundaries.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// The way out.
    pub help: Option<String>,
}

impl StudyError {
    /// Line and column of the place, both from 1; the column counts characters.
    pub fn place(&self) -> (usize, usize) {
        let before = &self.text[..self.span.start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// The built-in study.
pub fn quick() -> Plan {
    parse("studies/quick.toml", QUICK).expect("a test holds that the built-in study is right")
}

/// Reads a study file.
///
/// # Errors
/// [`LabError::Read`] where the file cannot be read, [`LabError::Study`] where it is wrong.
pub fn read(path: &Path) -> Result<Plan, LabError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| LabError::Read { path: path.to_owned(), cause })?;
    Ok(parse(&path.display().to_string(), &text)?)
}

/// Makes a plan of the text of a study; `file` is its name in errors. The plan still holds
/// contenders whose servers may not be installed.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse(file: &str, text: &str) -> Result<Plan, StudyError> {
    let source = Source { file, text };
    let document = DeTable::parse(text)
        .map_err(|error| source.error(error.span().unwrap_or(0..0), error.message().to_owned()))?;
    // An error about the file as a whole points to its first line, not at every line.
    let first_line = 0..text.find('\n').unwrap_or(text.len());
    let top = Section::open(source, "the study", first_line, document.get_ref(), &TOP)?;
    let contenders = contenders(&top, source)?;
    let plan = Plan {
        name: name(&top, source)?,
        question: top
            .text("question")?
            .ok_or_else(|| top.missing("question", "question = \"Which is faster?\""))?
            .into_inner(),
        workload: workload(&top, source)?,
        blocks: blocks(&top, source)?,
        visit: visit(&top, source)?,
        metrics: metrics(&top, source)?,
        margin: margin(&top, source)?,
        budget: or(top.quantity("budget")?, Nanos::from_secs(600)),
        seed: or(top.whole("seed", 0..=SEED_MAX)?, 1),
        contenders,
    };
    if let Some(reason) = budget_too_small(&plan) {
        let help = "raise `budget`, or shorten `warm_up` and `measure` in [visit]";
        return Err(top.error(reason).with_help(help));
    }
    Ok(plan)
}

/// Why no block could be made within the plan's budget, however few of its servers are installed.
pub fn budget_too_small(plan: &Plan) -> Option<String> {
    let visit = plan.visit.warm_up + plan.visit.measure;
    let too_small = plan.budget < visit + visit;
    too_small.then(|| format!("the budget of {} does not hold two visits of {visit}", plan.budget))
}

/// The study's name becomes a folder's: letters, digits, hyphens and underscores.
fn name(top: &Section<'_>, source: Source<'_>) -> Result<String, StudyError> {
    let name = top.text("name")?.ok_or_else(|| top.missing("name", "name = \"my-study\""))?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let text = name.get_ref();
    if text.is_empty() || !text.chars().all(fits) {
        return Err(source
            .error(name.span(), format!("`{text}` cannot name the results' folder"))
            .with_help("use letters, digits, hyphens and underscores"));
    }
    Ok(name.into_inner())
}

fn workload(top: &Section<'_>, source: Source<'_>) -> Result<Workload, StudyError> {
    const EXAMPLE: &str = "[workload] with page = \"3361\" and connections = 64";
    let section = top
        .section("workload", "[workload]", &WORKLOAD)?
        .ok_or_else(|| top.missing("workload", EXAMPLE))?;
    let connections = section
        .whole("connections", 1..=CONNECTIONS_MAX)?
        .ok_or_else(|| section.missing("connections", "connections = 64"))?
        .into_inner();
    let threads = section.whole("threads", 1..=1024)?;
    if let Some(threads) = threads.as_ref().filter(|threads| *threads.get_ref() > connections) {
        return Err(source
            .error(threads.span(), format!("more threads than the {connections} connections"))
            .with_help("each thread of the generator needs a connection of its own"));
    }
    Ok(Workload {
        page: section
            .quantity::<Bytes>("page")?
            .ok_or_else(|| section.missing("page", "page = 3361"))?
            .into_inner(),
        connections: narrow(connections),
        keep_alive: or(section.flag("keep_alive")?, true),
        threads: narrow(or(threads, 1)),
        timeout: positive(section.quantity("timeout")?, Nanos::from_secs(5), "timeout", source)?,
    })
}

fn blocks(top: &Section<'_>, source: Source<'_>) -> Result<Blocks, StudyError> {
    let standard = Blocks { min: 8, max: 40, half_width: Share(0.02) };
    let Some(section) = top.section("blocks", "[blocks]", &BLOCKS)? else { return Ok(standard) };
    let min = section.whole("min", 2..=BLOCKS_MAX)?;
    let max = section.whole("max", 2..=BLOCKS_MAX)?;
    let least = min.as_ref().map_or(u64::from(standard.min), |min| *min.get_ref());
    let most = max.as_ref().map_or(u64::from(standard.max).max(least), |max| *max.get_ref());
    if most < least {
        let span = max.or(min).map_or(0..0, |value| value.span());
        return Err(source
            .error(span, format!("`max` is {most}, fewer than `min`, {least}"))
            .with_help("raise `max` or lower `min`"));
    }
    let half_width = section.quantity::<Share>("half_width")?;
    if let Some(zero) = half_width.as_ref().filter(|width| width.get_ref().0 <= 0.0) {
        return Err(source
            .error(zero.span(), "no interval is of width 0: the run would never be done")
            .with_help("write half_width = \"2%\""));
    }
    Ok(Blocks {
        min: narrow(least),
        max: narrow(most),
        half_width: or(half_width, standard.half_width),
    })
}

fn visit(top: &Section<'_>, source: Source<'_>) -> Result<VisitPlan, StudyError> {
    let standard = VisitPlan { warm_up: Nanos::from_secs(1), measure: Nanos::from_secs(3) };
    let Some(section) = top.section("visit", "[visit]", &VISIT)? else { return Ok(standard) };
    let measure = section.quantity::<Nanos>("measure")?;
    if let Some(short) = measure.as_ref().filter(|measure| *measure.get_ref() < MEASURE_MIN) {
        return Err(source
            .error(short.span(), format!("`measure` is shorter than {MEASURE_MIN}"))
            .with_help("the end of a warm-up is not seen in so short a load"));
    }
    Ok(VisitPlan {
        warm_up: or(section.quantity("warm_up")?, standard.warm_up),
        measure: or(measure, standard.measure),
    })
}

fn metrics(top: &Section<'_>, source: Source<'_>) -> Result<Vec<Metric>, StudyError> {
    let Some(typed) = top.texts("metrics")? else {
        return Ok(METRICS.map(|(_, metric)| metric).into());
    };
    if typed.is_empty() {
        return Err(top.missing("metrics", "metrics = [\"throughput\"], or leave it out for all"));
    }
    let mut metrics = Vec::new();
    for name in &typed {
        let text = name.get_ref();
        let found = METRICS.iter().find(|(known, _)| known == text);
        let &(_, metric) = found.ok_or_else(|| {
            source
                .error(name.span(), format!("there is no metric `{text}`"))
                .with_help(suggestion(text, &METRICS.map(|(known, _)| known)))
        })?;
        if metrics.contains(&metric) {
            return Err(source.error(name.span(), format!("the metric `{text}` is named twice")));
        }
        metrics.push(metric);
    }
    Ok(metrics)
}

fn margin(top: &Section<'_>, source: Source<'_>) -> Result<Share, StudyError> {
    let Some(margin) = top.quantity::<Share>("margin")? else { return Ok(Share(0.02)) };
    if margin.get_ref().0 <= 0.0 || margin.get_ref().0 > MARGIN_MAX {
        return Err(source
            .error(margin.span(), "the margin must be more than 0 and at most 50 %")
            .with_help("it is the smallest difference of interest: write margin = \"2%\""));
    }
    Ok(margin.into_inner())
}

fn contenders(top: &Section<'_>, source: Source<'_>) -> Result<Vec<Contender>, StudyError> {
    const EXAMPLE: &str = "[[contender]] with name and server, at least twice";
    let sections = top.sections("contender", "[[contender]]", &CONTENDER)?;
    if sections.len() < 2 {
        return Err(top
            .error(format!("a study compares at least two contenders, this has {}", sections.len()))
            .with_help(format!("write {EXAMPLE}")));
    }
    let mut contenders: Vec<Contender> = Vec::new();
    for section in &sections {
        let name =
            section.text("name")?.ok_or_else(|| section.missing("name", "name = \"nginx\""))?;
        let taken = contenders.iter().any(|other| other.name == *name.get_ref());
        if taken || name.get_ref().trim().is_empty() {
            return Err(source
                .error(name.span(), format!("the name `{}` is taken or empty", name.get_ref()))
                .with_help("each contender needs a name of its own"));
        }
        contenders.push(contender(section, source, name.into_inner())?);
    }
    Ok(contenders)
}

fn contender(
    section: &Section<'_>,
    source: Source<'_>,
    name: String,
) -> Result<Contender, StudyError> {
    let server =
        section.text("server")?.ok_or_else(|| section.missing("server", "server = \"nginx\""))?;
    let adapter = adapters::named(server.get_ref())
        .map_err(|error| source.error(server.span(), error.to_string()))?;
    let mut settings: Settings = BTreeMap::new();
    let typed = section.free("settings")?;
    for (key, value) in &typed {
        settings.insert(key.get_ref().clone(), setting(key, value, source)?);
    }
    adapter.check(&settings).map_err(|error| {
        let culprit = culprit(adapter, &settings);
        let key = typed.iter().find(|(key, _)| culprit.as_ref() == Some(key.get_ref()));
        let message = format!("contender `{name}`: {error}");
        key.map_or_else(|| section.error(&message), |(key, _)| source.error(key.span(), &message))
    })?;
    Ok(Contender { name, server: server.into_inner(), settings })
}

/// The setting without which the others would do; `None` where no single one is at fault.
fn culprit(adapter: &Adapter, settings: &Settings) -> Option<String> {
    let without = |name: &str| {
        let mut rest = settings.clone();
        rest.remove(name);
        rest
    };
    settings.keys().find(|name| adapter.check(&without(name)).is_ok()).cloned()
}

fn setting(
    key: &Spanned<String>,
    value: &Spanned<DeValue<'_>>,
    source: Source<'_>,
) -> Result<SettingValue, StudyError> {
    let refused = || {
        let message = format!("the setting `{}` is no number, text or true/false", key.get_ref());
        source
            .error(value.span(), message)
            .with_help("a name with a dot needs quotes: \"server.max-worker\" = 0")
    };
    Ok(match value.get_ref() {
        DeValue::Boolean(flag) => SettingValue::Flag(*flag),
        DeValue::String(text) => SettingValue::Text(text.to_string()),
        number @ DeValue::Integer(_) => SettingValue::Number(integer(number).ok_or_else(refused)?),
        _ => return Err(refused()),
    })
}

fn positive(
    value: Option<Spanned<Nanos>>,
    standard: Nanos,
    key: &str,
    source: Source<'_>,
) -> Result<Nanos, StudyError> {
    match value {
        Some(zero) if *zero.get_ref() == Nanos::ZERO => {
            Err(source.error(zero.span(), format!("`{key}` is zero")))
        }
        value => Ok(or(value, standard)),
    }
}

fn or<T>(value: Option<Spanned<T>>, standard: T) -> T {
    value.map_or(standard, Spanned::into_inner)
}

/// Counts are read within ranges that fit.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).expect("the range of the key fits 32 bits")
}
