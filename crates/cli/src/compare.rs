//! `joust compare`: compares a candidate run with a base run, and ends with an exit code for scripts.

use std::path::{Path, PathBuf};

use history::{Question, Reference};
use miette::miette;
use record::{Metric, RunRecord};
use units::Share;

#[cfg(feature = "history-database")]
use crate::history::Database;
use crate::metric::metric_parser;
use crate::output;
use crate::run_file::read_run;
use crate::trouble::{Ended, Trouble};

/// Compare a run with an earlier one: what became slower, and how certain that is
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 no regression; 99 a regression (its whole interval is worse by more than the margin), or a server that worked in BASE and fails in CANDIDATE; 3 nothing is comparable, or every comparison is withheld.\n\nTwo runs share no block, so a machine that was slower on one day looks like a slower server. If both runs have a server of the same version and configuration, joust divides each figure by that server's figure in the same run; the effect of the machine cancels out. The report says whether that was done."
)]
pub struct Args {
    /// The run to compare with: a run file, its folder, or its number in the history
    base: String,
    /// The run to judge, named in the same way
    candidate: String,
    /// Ignore regressions smaller than this
    #[arg(long, default_value = "2%", value_parser = margin)]
    margin: Share,
    /// Only these metrics, instead of those of the study
    #[arg(long, value_delimiter = ',', value_parser = metric_parser())]
    metric: Vec<Metric>,
    /// Divide every figure by this contender's, which you know is unchanged
    #[arg(long, value_name = "NAME", conflicts_with = "no_reference")]
    reference: Option<String>,
    /// Compare each figure by itself, without a reference contender
    #[arg(long)]
    no_reference: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[cfg(feature = "history-database")]
    #[command(flatten)]
    database: Database,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let (base, candidate) = (subject(&args.base, args)?, subject(&args.candidate, args)?);
    let reference = match (&args.reference, args.no_reference) {
        (Some(name), _) => Reference::Named(name.clone()),
        (None, true) => Reference::None,
        (None, false) => Reference::Found,
    };
    let question = Question { margin: args.margin, metrics: args.metric.clone(), reference };
    let named = |subject: &(PathBuf, RunRecord)| subject.0.display().to_string();
    let (base_path, candidate_path) = (named(&base), named(&candidate));
    let comparison =
        history::compare((&base_path, &base.1), (&candidate_path, &candidate.1), &question)
            .map_err(|error| {
                Trouble::usage(miette!(
                    help = "name another with --reference, or use --no-reference",
                    "{error}"
                ))
            })?;
    let text = match args.json {
        true => comparison.to_json(),
        false => report::compare_text(&comparison, &crate::terminal::report_options()),
    };
    output::stdout(text.as_bytes())?;
    Ok(match comparison.regressions().next() {
        Some(_) => Ended::GoalBroken,
        None if comparison.says_something() => Ended::Well,
        None => Ended::Incomplete,
    })
}

/// The run that a word names: a file or folder of that name, else the run of that number in the history.
fn subject(word: &str, args: &Args) -> Result<(PathBuf, RunRecord), Trouble> {
    let path = Path::new(word);
    match word.parse::<i64>() {
        Ok(id) if !path.exists() => read_run(&file_of(id, args)?),
        _ => read_run(path),
    }
}

/// The file of a run of the history.
#[cfg(feature = "history-database")]
fn file_of(id: i64, args: &Args) -> Result<PathBuf, Trouble> {
    args.database.open()?.file_of(id).map_err(crate::history::trouble)
}

#[cfg(not(feature = "history-database"))]
fn file_of(id: i64, _: &Args) -> Result<PathBuf, Trouble> {
    Err(Trouble::usage(miette!(
        help = "name a run file or its folder, or build joust with the feature `history-database`",
        "cannot look up run {id}: this joust has no history"
    )))
}

/// Above 0, because no two runs are exactly equal, and below 1.
fn margin(text: &str) -> Result<Share, String> {
    match text.parse::<Share>() {
        Ok(share) if share.0 > 0.0 && share.0 < 1.0 => Ok(share),
        Ok(_) => Err("it must be above 0% and below 100%, as in 2%".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
