//! `joust load --search`: one load after another, each at a rate that the search requests. Owns its output. Start
//! reading at [`main`].

use load::SearchOptions;
use miette::miette;
use record::{Limit, LoadPlan, SearchRecord};
use units::{Nanos, PerSecond};

use super::args::Args;
use super::{Session, measure};
use crate::output::{self, Destination};
use crate::trouble::{Ended, Trouble};

/// Duration of the closed loop that gives a first estimate of the limit.
const GUESS: Nanos = Nanos::from_secs(2);

/// The options of `--search` and related flags, checked before any connection is made.
pub fn options(args: &Args, plan: &LoadPlan) -> Result<Option<SearchOptions>, Trouble> {
    let Some(goals) = &args.pace.search else { return Ok(None) };
    let options = SearchOptions {
        precision: args.pace.precision,
        high: args.pace.rate_max,
        tries_max: args.pace.tries,
        ..SearchOptions::new(goals.0.clone())
    };
    options.check().map_err(super::plan::usage)?;
    match options.refused_where_kept().filter(|_| plan.keeps_connections()) {
        Some(reason) => Err(Trouble::usage(miette!(
            help = "open a new connection for each request (--no-keepalive), or set a goal on the response",
            "{reason}"
        ))),
        None => Ok(Some(options)),
    }
}

/// Finds the highest rate at which the goals hold, and prints it.
pub fn main(
    session: Session<'_>,
    mut options: SearchOptions,
    plan: &LoadPlan,
) -> Result<Ended, Trouble> {
    let args = session.args;
    let mut closed = plan.clone();
    closed.stop.duration = Some(GUESS);
    closed.goals.clear();
    let guess = measure(&closed, session)?;
    let is_whole = guess.fleet.as_ref().is_none_or(|fleet| fleet.is_whole());
    if guess.requests.ok == 0 || !is_whole {
        return super::ended(&guess, args.checks.strict);
    }
    options.high_guess = Some(PerSecond(guess.rate_per_s)).filter(|rate| rate.0 > 0.0);
    let mut gone = None;
    // A new seed, so that a chance effect of one try does not repeat in the next at the same rate.
    let mut seed = plan.seed;
    let mut at_rate = |rate: PerSecond| {
        let pacing = (args.pace.arrivals.at)(rate);
        let mut load = measure(&LoadPlan { pacing, seed, ..plan.clone() }, session)?;
        seed = seed.wrapping_add(1);
        // A try of which a part is missing says nothing of its rate.
        load.interrupted |= load.fleet.as_ref().is_some_and(|fleet| !fleet.is_whole());
        // A rate can crash a server, and no lower rate revives it.
        if load.requests.ok == 0
            && let Err(trouble) = super::check_servers_listen(plan)
        {
            (gone, load.interrupted) = (Some(trouble), true);
        }
        Ok(load)
    };
    let mut watch = |record: &SearchRecord| {
        if !args.output.quiet
            && let Some(tried) = record.tries.last()
        {
            let judgements = tried.judgements.iter().map(|judgement| judgement.text.as_str());
            let judgements = judgements.collect::<Vec<_>>().join(", ");
            crate::terminal::say(&format!("{}: {judgements}", tried.rate));
        }
    };
    let found = load::search(&options, &mut at_rate, &mut watch)?;
    if let Some(place) = &args.output.json {
        output::write(place, found.to_json().as_bytes())?;
    }
    if !args.output.quiet && args.output.json != Some(Destination::Stdout) {
        let text = report::search_text(&found, &crate::terminal::report_options());
        output::stdout(text.as_bytes())?;
    }
    if let Some(trouble) = gone {
        return Err(trouble);
    }
    match found.highest_good {
        _ if interrupted(&found) => Ok(Ended::Incomplete),
        _ if args.checks.strict && found.limit == Limit::Generator => Ok(Ended::Unbelievable),
        Some(_) => Ok(Ended::Well),
        None if found.limit == Limit::Samples => Err(Trouble::failed(miette!(
            help = "use longer tries (-d), which have more requests, or a lower percentile, which needs fewer",
            "the goals were {}",
            found.none_held()
        ))),
        None => Err(Trouble::failed(miette!("the goals were {}", found.none_held()))),
    }
}

fn interrupted(found: &SearchRecord) -> bool {
    found.ending == record::SearchEnding::Interrupted
}
