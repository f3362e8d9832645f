//! `joust compare`: a candidate run held against a base run, and an exit code for whoever waits for it.

use std::path::{Path, PathBuf};

use history::{Question, Reference};
use miette::miette;
use record::{Metric, RunRecord};
use units::Share;

use crate::history::{Database, metric_named, run_of};
use crate::output;
use crate::trouble::{Ended, Trouble};

/// Hold a run against an earlier one: what became slower, and how sure that is
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 no regression, 99 a regression (its whole interval is worse by more than the margin) or a server that worked in BASE and fails in CANDIDATE, 3 nothing comparable or all of it withheld.\n\nRuns made at different times share no block, so a machine that was slower on one of the days looks like a slower server. Where a server is in both runs whose version and configuration are the same, each figure is held against that server's within its run, and what the machine did to both cancels out; the report says which was done."
)]
pub struct Args {
    /// The run to compare with: a run file, its folder, or its number in the history
    base: String,
    /// The run to judge, named likewise
    candidate: String,
    /// A regression smaller than this is none
    #[arg(long, default_value = "2%", value_parser = margin)]
    margin: Share,
    /// Only these metrics, instead of those of the study: throughput, server_cpu, p50, p99, memory
    #[arg(long, value_delimiter = ',', value_parser = metric_named)]
    metric: Vec<Metric>,
    /// Hold every figure against this contender's, which you know to be unchanged
    #[arg(long, value_name = "NAME", conflicts_with = "no_reference")]
    reference: Option<String>,
    /// Hold no figure against another: compare each by itself
    #[arg(long)]
    no_reference: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
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
        false => report::compare_text(&comparison, &crate::report::options()),
    };
    output::stdout(text.as_bytes())?;
    Ok(match comparison.regressions().next() {
        Some(_) => Ended::GoalBroken,
        None if comparison.says_something() => Ended::Well,
        None => Ended::Incomplete,
    })
}

/// The run that was named: what lies there comes first, then the number of a run of the history.
fn subject(word: &str, args: &Args) -> Result<(PathBuf, RunRecord), Trouble> {
    let path = Path::new(word);
    match word.parse::<i64>() {
        Ok(id) if !path.exists() => {
            let history = args.database.open()?;
            run_of(&history.file_of(id).map_err(crate::history::trouble)?)
        }
        _ => run_of(path),
    }
}

/// Above 0, because nothing is ever exactly as it was, and below 1.
fn margin(text: &str) -> Result<Share, String> {
    match text.parse::<Share>() {
        Ok(share) if share.0 > 0.0 && share.0 < 1.0 => Ok(share),
        Ok(_) => Err("a margin lies between 0 % and 100 %, as in 2%".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
