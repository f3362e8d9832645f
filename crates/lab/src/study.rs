//! Owns the study file: TOML to a complete `Plan`, or an error that points into the file. Start reading at
//! [`parse`].

mod axes;
pub mod brief;
mod contenders;
mod keys;
mod programs;
mod published;
mod schema;
mod work;

use std::ops::Range;
use std::path::Path;

use record::{Blocks, Cell, Contender, METRICS, Metric, Plan, SearchPlan, Settings, VisitPlan};
use toml::Spanned;
use toml::de::DeTable;
use units::{Nanos, Share};

use crate::error::LabError;
use crate::nearest::{nearest, suggestion};
pub use crate::study_error::StudyError;
pub use schema::schema;

use keys::{Located, Section, StudySource};

/// The study that runs if none is named.
const QUICK: &str = include_str!("../../../studies/quick.toml");

/// Most blocks of a study.
const BLOCKS_MAX: u64 = 10_000;
/// Longest name: the folder's name adds a date, and most file systems allow 255 bytes.
const NAME_MAX: usize = 100;
/// Shortest load that is measured: MSER-5 needs ten of the generator's 10 ms intervals to say anything.
const MEASURE_MIN: Nanos = Nanos::from_millis(100);
/// Largest margin: beyond it, "no difference" would cover differences that everybody sees.
const MARGIN_MAX: f64 = 0.5;

/// The largest whole number of TOML.
const SEED_MAX: u64 = i64::MAX as u64;

const TOP: [&str; 17] = [
    "name",
    "question",
    "metrics",
    "margin",
    "budget",
    "keep_disturbed",
    "seed",
    "workload",
    "blocks",
    "visit",
    "contender",
    "axis",
    "reference",
    "declared",
    "published",
    "short",
    "search",
];
const SEARCH: [&str; 3] = ["goals", "precision", "tries"];
const BLOCKS: [&str; 3] = ["min", "max", "half_width"];
const VISIT: [&str; 3] = ["warm_up", "settle", "measure"];
const SHORT: [&str; 7] = ["budget", "warm_up", "settle", "measure", "min", "max", "sleep"];
/// Which form of a study is wanted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All of it.
    #[default]
    Full,
    /// The values of each axis that `short` names, and the times and blocks of `[short]`: a first look
    /// that ends within minutes.
    Short,
}

/// The built-in study.
pub fn quick() -> Plan {
    parse("studies/quick.toml", QUICK, Form::Full)
        .expect("a test holds that the built-in study is right")
}

/// Reads a study file.
///
/// # Errors
/// [`LabError::Read`] if the file cannot be read, [`LabError::Study`] if it is wrong.
pub fn read(path: &Path, form: Form) -> Result<Plan, LabError> {
    let text = std::fs::read_to_string(path)
        .map_err(|cause| LabError::Read { path: path.to_owned(), cause })?;
    Ok(parse(&path.display().to_string(), &text, form)?)
}

/// Makes a plan from the text of a study; `file` is its name in errors. Contenders stay in the plan even if their
/// servers are not installed.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse(file: &str, text: &str, form: Form) -> Result<Plan, StudyError> {
    let source = StudySource { file, text };
    let document = DeTable::parse(text)
        .map_err(|error| source.error(error.span().unwrap_or(0..0), error.message().to_owned()))?;
    // An error about the whole file points to its first line, not to every line.
    let first_line = 0..text.find('\n').unwrap_or(text.len());
    let top = Section::open(source, "the study", first_line, document.get_ref(), &TOP)?;
    let axes = axes::axes(&top, form, source)?;
    let over: Vec<&str> = axes.iter().map(|axis| axis.over.get_ref().as_str()).collect();
    let base = work::workload(&top, &over, source)?;
    let cells = axes::cells(&base, &axes, &top)?;
    let contenders = contenders::contenders(&top, &axes, form, source)?;
    let mut plan = Plan {
        name: name(&top, source)?,
        question: top
            .text("question")?
            .ok_or_else(|| top.missing("question", "question = \"Which is faster?\""))?
            .into_inner(),
        reference: reference(&top, &contenders, source)?,
        declared: declared(&top, source)?,
        published: published::published(&top, (&contenders, &cells), form, source)?,
        search: search(&top, (&contenders, &cells), source)?,
        cells,
        blocks: blocks(&top, source)?,
        visit: visit(&top, source)?,
        keep_disturbed: keep_disturbed(&top, source)?,
        metrics: metrics(&top, source)?,
        margin: margin(&top, source)?,
        budget: or(top.quantity("budget")?, Nanos::from_secs(600)),
        seed: or(top.whole("seed", 0..=SEED_MAX)?, 1),
        contenders,
    };
    short(&mut plan, &top, form, source)?;
    if let Some(reason) = too_many_threads(&plan) {
        let help = "each thread of the generator needs a connection of its own";
        let place = top.section("workload", "[workload]", &work::KEYS)?;
        let typed = place.as_ref().and_then(|section| section.get("threads"));
        let error = typed.map_or_else(|| top.error(&reason), |at| source.error(at.span(), &reason));
        return Err(error.with_help(help));
    }
    if plan.metrics.contains(&Metric::Capacity) && plan.search.is_none() {
        return Err(
            top.missing("search", "[search] with goals = \"p99<10ms\": it finds the capacity")
        );
    }
    if let Err((message, help)) = programs::check(&plan) {
        return Err(top.error(message).with_help(help));
    }
    if let Err(error) = crate::by_tool::check(&plan) {
        return Err(top.error(error.to_string()));
    }
    if let Some(reason) = budget_too_small(&plan) {
        let help = "raise `budget`, or shorten `warm_up` and `measure` in [visit]";
        return Err(top.error(reason).with_help(help));
    }
    Ok(plan)
}

/// The workload key nearest to a setting that our own server rejects in `said`: an axis over a mistyped workload key
/// becomes a setting of the server.
pub(crate) fn workload_key_near(settings: &Settings, said: &str) -> Option<&'static str> {
    let mut unknown =
        settings.keys().filter(|name| said.contains(&format!("unknown setting `{name}`")));
    unknown.find_map(|name| nearest(name, work::KEYS))
}

/// Why no block fits into the plan's budget, however few of its servers are installed.
pub fn budget_too_small(plan: &Plan) -> Option<String> {
    let visit = plan.visit.load();
    let too_small = plan.budget < visit + visit;
    too_small.then(|| format!("the budget of {} does not hold two visits of {visit}", plan.budget))
}

/// Why a resumed run could not make another block within `budget`, so that it would end at once.
pub fn budget_holds_no_block(plan: &Plan, budget: Nanos) -> Option<String> {
    let load = plan.load_of_block();
    (budget < load).then(|| {
        format!("the budget of {budget} does not hold another block, whose load takes {load}")
    })
}

/// The study's name becomes part of a folder's name: letters, digits, hyphens and underscores.
fn name(top: &Section<'_>, source: StudySource<'_>) -> Result<String, StudyError> {
    let name = top.text("name")?.ok_or_else(|| top.missing("name", "name = \"my-study\""))?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let text = name.get_ref();
    if text.is_empty() || !text.chars().all(fits) {
        return Err(source
            .error(
                name.span(),
                format!("`name` must be letters, digits, hyphens and underscores, got `{text}`"),
            )
            .with_help("use letters, digits, hyphens and underscores"));
    }
    if text.len() > NAME_MAX {
        return Err(source
            .error(name.span(), format!("a name of {} characters is too long", text.len()))
            .with_help(format!(
                "it names the results' folder: use at most {NAME_MAX} characters; `question` has room for more"
            )));
    }
    Ok(name.into_inner())
}

/// Each thread of the generator needs a connection.
fn too_many_threads(plan: &Plan) -> Option<String> {
    let at = |cell: usize| plan.in_cell(cell).map(move |contender| (cell, contender));
    (0..plan.cells.len()).flat_map(at).find_map(|(cell, contender)| {
        let work = plan.work(cell, contender);
        (work.threads > work.connections).then(|| {
            format!("more threads ({}) than connections ({})", work.threads, work.connections)
        })
    })
}

/// What the short form changes.
fn short(
    plan: &mut Plan,
    top: &Section<'_>,
    form: Form,
    source: StudySource<'_>,
) -> Result<(), StudyError> {
    let Some(section) = top.section("short", "[short]", &SHORT)? else { return Ok(()) };
    let blocks = Blocks {
        min: narrow(or(section.whole("min", 2..=BLOCKS_MAX)?, plan.blocks.min.into())),
        max: narrow(or(section.whole("max", 2..=BLOCKS_MAX)?, plan.blocks.max.into())),
        ..plan.blocks
    };
    let visit = VisitPlan {
        warm_up: or(section.quantity("warm_up")?, plan.visit.warm_up),
        settle: or(section.quantity("settle")?, plan.visit.settle),
        measure: or(measure(&section, source)?, plan.visit.measure),
    };
    let budget = or(section.quantity("budget")?, plan.budget);
    if blocks.max < blocks.min {
        return Err(section.error(format!("`max`, {}, is below `min`, {}", blocks.max, blocks.min)));
    }
    let sleep = section.get("sleep").map(|value| work::sleep(value, source)).transpose()?;
    programs::shorten(plan, &section, sleep, form)?;
    if form == Form::Short {
        (plan.blocks, plan.visit, plan.budget) = (blocks, visit, budget);
    }
    Ok(())
}

/// The contender that the others are compared with.
fn reference(
    top: &Section<'_>,
    contenders: &[Contender],
    source: StudySource<'_>,
) -> Result<Option<usize>, StudyError> {
    let Some(name) = top.text("reference")? else { return Ok(None) };
    let names: Vec<&str> = contenders.iter().map(|one| one.name.as_str()).collect();
    let index = names.iter().position(|known| known == name.get_ref());
    index.map(Some).ok_or_else(|| {
        let message = format!("`reference` must name a contender, got `{}`", name.get_ref());
        source.error(name.span(), message).with_help(suggestion(name.get_ref(), &names))
    })
}

/// What a visit searches for.
fn search(
    top: &Section<'_>,
    (contenders, cells): (&[Contender], &[Cell]),
    source: StudySource<'_>,
) -> Result<Option<SearchPlan>, StudyError> {
    let Some(section) = top.section("search", "[search]", &SEARCH)? else { return Ok(None) };
    let goals =
        section.text("goals")?.ok_or_else(|| section.missing("goals", "goals = \"p99<10ms\""))?;
    let span = goals.span();
    let refused = |reason: String| source.error(span.clone(), reason);
    let plan = SearchPlan {
        goals: record::parse_goals(goals.get_ref()).map_err(|error| refused(error.to_string()))?,
        precision: or(section.quantity("precision")?, Share(0.05)),
        tries_max: narrow(or(section.whole("tries", 1..=1000)?, 20)),
    };
    let options = crate::capacity::options(&plan);
    options.check().map_err(refused)?;
    let keeps = |cell: &Cell| contenders.iter().any(|one| one.work.over(&cell.workload).keep_alive);
    match options.refused_where_kept().filter(|_| cells.iter().any(keeps)) {
        Some(reason) => Err(refused(reason).with_help(
            "let each request have a connection, `keep_alive = false`, or set a goal on the response",
        )),
        None => Ok(Some(plan)),
    }
}

fn keep_disturbed(top: &Section<'_>, source: StudySource<'_>) -> Result<bool, StudyError> {
    const KEY: &str = "keep_disturbed";
    top.get(KEY).map_or(Ok(false), |value| source.flag(KEY, value))
}

fn declared(top: &Section<'_>, source: StudySource<'_>) -> Result<Vec<String>, StudyError> {
    let declared = top.texts("declared")?.unwrap_or_default();
    let known: Vec<&str> = doctor::parity::Switch::ALL.iter().map(|switch| switch.name()).collect();
    for one in &declared {
        let name = doctor::parity::declared_name(one.get_ref());
        if !known.contains(&name) {
            let message = format!("`declared` must name a parity switch, got `{name}`");
            // The name may be followed by a reason without its colon.
            let first = name.split_whitespace().next().filter(|first| known.contains(first));
            let help = first.map_or_else(
                || suggestion(name, &known),
                |first| format!("put a colon before the reason: \"{first}: why\""),
            );
            return Err(source.error(one.span(), message).with_help(help));
        }
    }
    Ok(declared.into_iter().map(Spanned::into_inner).collect())
}

fn blocks(top: &Section<'_>, source: StudySource<'_>) -> Result<Blocks, StudyError> {
    let standard = Blocks { min: 8, max: 40, half_width: Share(0.02) };
    let Some(section) = top.section("blocks", "[blocks]", &BLOCKS)? else { return Ok(standard) };
    let min = section.whole("min", 2..=BLOCKS_MAX)?;
    let max = section.whole("max", 2..=BLOCKS_MAX)?;
    let least = min.as_ref().map_or(u64::from(standard.min), |min| *min.get_ref());
    let most = max.as_ref().map_or(u64::from(standard.max).max(least), |max| *max.get_ref());
    if most < least {
        let span = max.or(min).map_or(0..0, |value| value.span());
        return Err(source
            .error(span, format!("`max` must be at least `min` ({least}), got {most}"))
            .with_help("raise `max` or lower `min`"));
    }
    let half_width = section.quantity::<Share>("half_width")?;
    if let Some(zero) = half_width.as_ref().filter(|width| width.get_ref().0 <= 0.0) {
        return Err(source
            .error(zero.span(), "`half_width` must be above 0: otherwise the run never ends")
            .with_help("write half_width = \"2%\""));
    }
    Ok(Blocks {
        min: narrow(least),
        max: narrow(most),
        half_width: or(half_width, standard.half_width),
    })
}

fn visit(top: &Section<'_>, source: StudySource<'_>) -> Result<VisitPlan, StudyError> {
    let standard = VisitPlan {
        warm_up: Nanos::from_secs(1),
        settle: Nanos::ZERO,
        measure: Nanos::from_secs(3),
    };
    let Some(section) = top.section("visit", "[visit]", &VISIT)? else { return Ok(standard) };
    Ok(VisitPlan {
        warm_up: or(section.quantity("warm_up")?, standard.warm_up),
        settle: or(section.quantity("settle")?, standard.settle),
        measure: or(measure(&section, source)?, standard.measure),
    })
}

fn measure(
    section: &Section<'_>,
    source: StudySource<'_>,
) -> Result<Option<Spanned<Nanos>>, StudyError> {
    let measure = section.quantity::<Nanos>("measure")?;
    if let Some(short) = measure.as_ref().filter(|measure| *measure.get_ref() < MEASURE_MIN) {
        return Err(source
            .error(short.span(), format!("`measure` is shorter than {MEASURE_MIN}"))
            .with_help("so short a load does not show the end of a warm-up"));
    }
    Ok(measure)
}

fn metrics(top: &Section<'_>, source: StudySource<'_>) -> Result<Vec<Metric>, StudyError> {
    const EXAMPLE: &str = "metrics = [\"throughput\"], or leave it out for all";
    let Some(typed) = top.get("metrics") else {
        // Only a search measures a capacity.
        return Ok(Metric::all().filter(|metric| !metric.info().needs_search).collect());
    };
    if top.texts("metrics")?.is_none_or(|names| names.is_empty()) {
        return Err(source
            .error(typed.span(), "`metrics` must name at least one metric")
            .with_help(format!("write {EXAMPLE}")));
    }
    let mut metrics = Vec::new();
    for value in source.list("metrics", typed)? {
        let found = metric(value, source)?;
        if metrics.contains(&found) {
            let typed = &source.text[value.span()];
            return Err(source.error(value.span(), format!("the metric `{typed}` is named twice")));
        }
        metrics.push(found);
    }
    Ok(metrics)
}

/// Names of the metrics that a study may ask for.
fn metric_names() -> Vec<&'static str> {
    METRICS.iter().map(|info| info.name).collect()
}

fn metric(value: Located<'_>, source: StudySource<'_>) -> Result<Metric, StudyError> {
    metric_named(&source.text("metric", value)?, value.span(), source)
}

fn metric_named(
    name: &str,
    span: Range<usize>,
    source: StudySource<'_>,
) -> Result<Metric, StudyError> {
    let found = Metric::named(name);
    found.ok_or_else(|| {
        source
            .error(span, format!("there is no metric `{name}`"))
            .with_help(suggestion(name, &metric_names()))
    })
}

fn margin(top: &Section<'_>, source: StudySource<'_>) -> Result<Share, StudyError> {
    let Some(margin) = top.quantity::<Share>("margin")? else { return Ok(Share(0.02)) };
    if margin.get_ref().0 <= 0.0 || margin.get_ref().0 > MARGIN_MAX {
        return Err(source
            .error(margin.span(), "the margin must be more than 0 and at most 50 %")
            .with_help("it is the smallest difference of interest: write margin = \"2%\""));
    }
    Ok(margin.into_inner())
}

fn or<T>(value: Option<Spanned<T>>, standard: T) -> T {
    value.map_or(standard, Spanned::into_inner)
}

/// The ranges that counts are read in make them fit.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).expect("the range of the key fits 32 bits")
}
