//! `joust history`: the runs that were made, and a figure over them; and the history that `joust run`
//! adds to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use history::{Added, Filter, History, HistoryError};
use miette::miette;
use record::{HistoryRecord, Metric, RunRecord};

use crate::report::Read;
use crate::trouble::{Ended, Trouble};
use crate::{output, run};

/// List the runs that were made, or the figures of a contender over them
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "The history is an index over run files: lost or damaged, it can be made again with `joust history add joust-results/*/run.json`. A series is of one study, contender, cell, workload and metric on one machine (CPU model, CPUs, kernel)."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only runs of this study
    #[arg(long, value_name = "NAME")]
    study: Option<String>,
    /// The figures of this contender over the runs, with a plot and changes of level
    #[arg(long, value_name = "NAME")]
    contender: Option<String>,
    /// Only this cell
    #[arg(long, value_name = "NAME", requires = "contender")]
    cell: Option<String>,
    /// Only this metric: throughput, server_cpu, p50, p99 or memory
    #[arg(long, value_parser = metric_named, requires = "contender")]
    metric: Option<Metric>,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: Database,
}

#[derive(clap::Subcommand)]
enum Command {
    Add(Add),
}

/// Add runs to the history; one that is there stays there once
#[derive(clap::Args)]
struct Add {
    /// Run files, or the folders they lie in
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    database: Database,
}

/// Where the history is.
#[derive(clap::Args)]
pub struct Database {
    /// The database
    #[arg(long, value_name = "FILE", default_value = "joust-results/history.sqlite")]
    db: PathBuf,
}

impl Database {
    /// Opens it; it must be there.
    pub fn open(&self) -> Result<History, Trouble> {
        History::open(&self.db).map_err(trouble)
    }
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    if let Some(Command::Add(add)) = &args.command {
        return add_all(add);
    }
    let history = args.database.open()?;
    let Args { study, contender, cell, metric, .. } = args;
    let (study, contender, cell) = (study.clone(), contender.clone(), cell.clone());
    let filter = Filter { study, contender, cell, metric: *metric };
    let runs = history.runs(&filter).map_err(trouble)?;
    if runs.is_empty() && filter.study.is_some() && filter.contender.is_none() {
        return Err(nothing_found(&history, &filter));
    }
    let series = match &filter.contender {
        Some(_) => history.series(&filter).map_err(trouble)?,
        None => Vec::new(),
    };
    if filter.contender.is_some() && series.is_empty() {
        return Err(nothing_found(&history, &filter));
    }
    let database = args.database.db.display().to_string();
    let found = HistoryRecord { format: HistoryRecord::FORMAT.to_owned(), database, runs, series };
    let text = match args.json {
        true => found.to_json(),
        false => report::history_text(&found, &crate::report::options()),
    };
    output::stdout(text.as_bytes())?;
    Ok(Ended::Well)
}

/// What there is, where it is not what was asked for: the first of study, contender and cell that has no
/// run decides what is said.
fn nothing_found(history: &History, filter: &Filter) -> Trouble {
    let runs = |filter: Filter| history.runs(&filter).unwrap_or_default();
    let of_study = Filter { study: filter.study.clone(), ..Filter::default() };
    let of_contender = Filter { contender: filter.contender.clone(), ..of_study.clone() };
    let in_study = runs(of_study);
    if let Some(study) = filter.study.as_ref().filter(|_| in_study.is_empty()) {
        let known = runs(Filter::default()).into_iter().map(|run| run.study);
        return unknown(&format!("run of a study `{study}`"), "studies", known);
    }
    if runs(of_contender.clone()).is_empty() {
        let known = in_study.into_iter().flat_map(|run| run.contenders);
        let contender = filter.contender.as_deref().unwrap_or_default();
        return unknown(&format!("figure of a contender `{contender}`"), "contenders", known);
    }
    let series = history.series(&of_contender).unwrap_or_default();
    if let Some(cell) = filter.cell.as_ref().filter(|cell| series.iter().all(|s| s.cell != **cell))
    {
        let cells = series.into_iter().map(|one| one.cell);
        return unknown(&format!("figure of it in a cell `{cell}`"), "cells", cells);
    }
    let metrics = series.into_iter().filter_map(|one| serde_json::to_value(one.metric).ok());
    let metrics = metrics.filter_map(|metric| Some(metric.as_str()?.to_owned()));
    unknown("such figure of it", "metrics", metrics)
}

/// That the history has no such thing, and which it has.
fn unknown(what: &str, plural: &str, known: impl Iterator<Item = String>) -> Trouble {
    let known: BTreeSet<String> = known.filter(|name| !name.is_empty()).collect();
    let known: Vec<String> = known.into_iter().collect();
    let help = match known.as_slice() {
        [] => "`joust history` lists the runs that there are".to_owned(),
        names => format!("its {plural} are {}", names.join("; ")),
    };
    Trouble::usage(miette!(help = help, "the history has no {what}"))
}

fn add_all(args: &Add) -> Result<Ended, Trouble> {
    // All are read first: a file that is no run should not be found halfway.
    let runs: Vec<(PathBuf, RunRecord)> =
        args.runs.iter().map(|path| run_of(path)).collect::<Result<_, _>>()?;
    let mut history = History::open_or_make(&args.database.db).map_err(trouble)?;
    for (file, run) in &runs {
        let said = match history.add(file, run).map_err(trouble)? {
            Added::New(id) => format!("run {id}: added"),
            Added::Known(id) => format!("run {id}: was there"),
            Added::Replaced(id) => format!("run {id}: its file was written anew, taken again"),
            Added::Moved { id, from } => format!("run {id}: moved here from {}", from.display()),
        };
        output::stdout(format!("{said}, {}\n", file.display()).as_bytes())?;
    }
    Ok(Ended::Well)
}

/// The run in a file or folder, and its file.
pub fn run_of(path: &Path) -> Result<(PathBuf, RunRecord), Trouble> {
    let file = if path.is_dir() { path.join("run.json") } else { path.to_owned() };
    match crate::report::read(&file)? {
        Read::Run(run) => Ok((file, *run)),
        Read::Load(_) => Err(Trouble::usage(miette!(
            help = "name the run.json of a `joust run`, or its folder",
            "{} is the record of one load: it has no blocks to compare by",
            file.display()
        ))),
    }
}

/// Adds a run that was just saved to the history of the folder of results. A run is not lost where that
/// cannot be done, so it is a warning.
pub fn remember(file: &Path, run: &RunRecord) {
    let results = Path::new(run::RESULTS);
    if !file.starts_with(results) {
        return;
    }
    let added = History::open_or_make(&results.join("history.sqlite"))
        .and_then(|mut history| history.add(file, run));
    if let Err(error) = added {
        output::say(&format!("warning: the run is not in the history: {error}"));
    }
}

/// The metric of that name, as run files have it.
pub fn metric_named(name: &str) -> Result<Metric, String> {
    serde_json::from_value(serde_json::Value::String(name.to_owned()))
        .map_err(|_| "the metrics are throughput, server_cpu, p50, p99 and memory".to_owned())
}

/// What is wrong with a history, by whose fault.
pub fn trouble(error: HistoryError) -> Trouble {
    match error {
        HistoryError::Absent { .. } | HistoryError::NoRun { .. } | HistoryError::Moved { .. } => {
            Trouble::usage(miette!("{error}"))
        }
        error => Trouble::failed(miette!("{error}")),
    }
}
