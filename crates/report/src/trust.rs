//! Owns the line that says how far an answer can be trusted: blocks, disturbed and failed visits, findings and what
//! stopped the run. It gives facts and no grade, because each has its own remedy. Must not know layout. Start reading
//! at [`trust`].

use record::{Ending, Metric, RunRecord, Verdict, VisitState};

use crate::figures::{counted, percent};
use crate::finding_groups::grouped;
use crate::wording::plain;

/// How far to trust what a metric says; without a metric, how far to trust a run of several cells as a whole.
pub(crate) fn trust(record: &RunRecord, metric: Option<Metric>) -> String {
    let facts =
        [Some(blocks(record, metric)), Some(visits(record)), findings(record), stop(record)];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    format!("How far to trust it: {}.", facts.join("; "))
}

/// "8 blocks of at most 12"; "3 blocks of the 8 required, so preliminary".
fn blocks(record: &RunRecord, metric: Option<Metric>) -> String {
    let is_of = move |pair: &&record::PairVerdict| metric.is_none_or(|one| pair.metric == one);
    let of_metric = || record.verdicts.iter().filter(is_of);
    let is_said = |pair: &&record::PairVerdict| !matches!(pair.verdict, Verdict::Withheld { .. });
    // Pairs without a verdict are not what the reader is asked to trust.
    let says_something = of_metric().any(|pair| is_said(&pair));
    let pairs = || of_metric().filter(move |pair| !says_something || is_said(pair));
    // Below three blocks a pair has no estimate, but it has blocks.
    let blocks_of = |pair: &record::PairVerdict| {
        let short = pair.short_of.map(|short| short.blocks);
        short.or_else(|| pair.estimate.map(|estimate| estimate.blocks))
    };
    let counts = || pairs().filter_map(blocks_of);
    let (Some(fewest), Some(most)) = (counts().min(), counts().max()) else {
        return "no block has a visit of both contenders of a pair".to_owned();
    };
    let range = if fewest == most { String::new() } else { format!("{fewest} to ") };
    let asked = pairs().filter_map(|pair| pair.short_of).map(|short| short.of).max();
    match asked {
        Some(of) => {
            format!("{range}{} of the {of} required, so preliminary", counted(most.into(), "block"))
        }
        None => {
            let most = counted(most.into(), "block");
            format!("{range}{most} of at most {}", record.plan.blocks.max)
        }
    }
}

fn visits(record: &RunRecord) -> String {
    let all = record.visits.len() as u64;
    let count = |is: fn(&record::Visit) -> bool| {
        record.visits.iter().filter(|visit| is(visit)).count() as u64
    };
    let again = count(|visit| visit.state == VisitState::Disturbed);
    let kept = count(|one| one.state == VisitState::Measured && one.disturbance().is_some());
    let failed = count(|visit| matches!(visit.state, VisitState::Failed { .. }));
    let mut said: Vec<String> = Vec::new();
    let disturbed = again + kept;
    let was = |n: u64| if n == 1 { "was" } else { "were" };
    if disturbed == 0 {
        said.push(format!("none of {} was disturbed", counted(all, "visit")));
    } else {
        let what = match (again, kept) {
            (_, 0) => "repeated".to_owned(),
            (0, _) => "used anyway".to_owned(),
            (again, kept) => format!("{again} repeated, {kept} used anyway"),
        };
        said.push(format!(
            "{disturbed} of {} ({}) {} disturbed ({what})",
            counted(all, "visit"),
            percent(disturbed, all),
            was(disturbed),
        ));
    }
    if failed > 0 {
        said.push(format!("{failed} failed"));
    }
    said.join(", ")
}

/// The number of findings, and the most severe one.
fn findings(record: &RunRecord) -> Option<String> {
    let groups = grouped(record);
    let Some(gravest) = groups.first() else { return Some("no finding".to_owned()) };
    let (check, weight) = (&gravest.check, gravest.weight);
    Some(match groups.len() {
        1 => format!("1 finding: {check}, {weight}"),
        n => format!("{n} findings, the most severe: {check}, {weight}"),
    })
}

fn stop(record: &RunRecord) -> Option<String> {
    Some(match &record.ending {
        Ending::Narrow => "stopped when every interval was narrow enough".to_owned(),
        Ending::Blocks => "stopped after all planned blocks".to_owned(),
        Ending::Budget => format!("stopped by the budget of {}", record.plan.budget),
        Ending::Incomplete { reason } => format!("broken off: {}", plain(reason)),
    })
}
