//! `joust history`: past runs, and a contender's figures over them. `joust run` adds each run here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use history::{Added, Filter, History, HistoryError};
use miette::miette;
use record::{HistoryRecord, Metric, RunRecord};

use crate::metric::metric_parser;
use crate::trouble::{Ended, Trouble};
use crate::{output, run_file};

/// List past runs, or show a contender's figures over them
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "The history is an index over run files. If it is lost or damaged, rebuild it with `joust history add joust-results/*/run.json`. A series belongs to one study, contender, cell, workload and metric on one machine (CPU model, CPUs, kernel)."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only runs of this study
    #[arg(long, value_name = "NAME")]
    study: Option<String>,
    /// Show this contender's figures over the runs, with a plot and level changes
    #[arg(long, value_name = "NAME")]
    contender: Option<String>,
    /// Only this cell
    #[arg(long, value_name = "NAME", requires = "contender")]
    cell: Option<String>,
    /// Only this metric
    #[arg(long, value_parser = metric_parser(), requires = "contender")]
    metric: Option<Metric>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: Database,
}

#[derive(clap::Subcommand)]
enum Command {
    Add(Add),
}

/// Add runs to the history; a run that is there already is not added twice
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
    /// Database file of the history
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
        false => report::history_text(&found, &crate::terminal::report_options()),
    };
    output::stdout(text.as_bytes())?;
    Ok(Ended::Well)
}

/// The error when nothing matches: it names the first of study, contender and cell that has no run, and
/// those that exist.
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
        return unknown(&format!("figure of this contender in a cell `{cell}`"), "cells", cells);
    }
    let metrics = series.into_iter().filter_map(|one| serde_json::to_value(one.metric).ok());
    let metrics = metrics.filter_map(|metric| Some(metric.as_str()?.to_owned()));
    unknown("figure of this contender for that metric", "metrics", metrics)
}

/// The error that the history has no such thing, with the names that it has.
fn unknown(what: &str, plural: &str, known: impl Iterator<Item = String>) -> Trouble {
    let known: BTreeSet<String> = known.filter(|name| !name.is_empty()).collect();
    let known: Vec<String> = known.into_iter().collect();
    let help = match known.as_slice() {
        [] => "`joust history` lists the runs".to_owned(),
        names => format!("known {plural}: {}", names.join("; ")),
    };
    Trouble::usage(miette!(help = help, "the history has no {what}"))
}

fn add_all(args: &Add) -> Result<Ended, Trouble> {
    // All files are read first, so that one that is not a run changes nothing.
    let runs: Vec<(PathBuf, RunRecord)> =
        args.runs.iter().map(|path| run_file::read_run(path)).collect::<Result<_, _>>()?;
    let mut history = History::open_or_make(&args.database.db).map_err(trouble)?;
    for (file, run) in &runs {
        let said = match history.add(file, run).map_err(trouble)? {
            Added::New(id) => format!("run {id}: added"),
            Added::Known(id) => format!("run {id}: already there"),
            Added::Replaced(id) => format!("run {id}: its file has changed, read again"),
            Added::Moved { id, from } => format!("run {id}: moved here from {}", from.display()),
        };
        output::stdout(format!("{said}, {}\n", file.display()).as_bytes())?;
    }
    Ok(Ended::Well)
}

/// Adds a run that was just saved to the history in the folder of results. The run itself is safe if that
/// fails, so a failure is only a warning.
pub fn remember(file: &Path, run: &RunRecord) {
    let results = Path::new(run_file::RESULTS);
    if !file.starts_with(results) {
        return;
    }
    let added = History::open_or_make(&results.join("history.sqlite"))
        .and_then(|mut history| history.add(file, run));
    if let Err(error) = added {
        crate::terminal::say(&format!("warning: the run was not added to the history: {error}"));
    }
}

/// An error of the history, as a usage error if the user can correct it.
pub fn trouble(error: HistoryError) -> Trouble {
    match error {
        HistoryError::Absent { .. } | HistoryError::NoRun { .. } | HistoryError::Moved { .. } => {
            Trouble::usage(miette!("{error}"))
        }
        error => Trouble::failed(miette!("{error}")),
    }
}
