//! Owns how far an answer can be trusted: blocks, disturbed and failed visits, findings and what stopped the run, as a
//! line, and as a grade with its reasons. Must not know layout. Start reading at [`trust`], then [`Grade`].

use record::{Ending, Integrity, Metric, RunRecord, Severity, Verdict, VisitState};

use crate::figures::{counted, percent};
use crate::finding_groups::grouped;
use crate::wording::plain;

/// From this share of disturbed visits on, an answer is limited even if all of them were repeated: the machine was
/// busy with something else for a good part of the run.
const DISTURBED_MANY: f64 = 0.2;

/// How far an answer can be trusted, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    /// Nothing that was seen limits it.
    Reliable,
    /// It holds within limits, which are named.
    Limited,
    /// There is no answer, or none that may be used.
    Unusable,
}

impl Grade {
    /// The word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Reliable => "Reliable",
            Self::Limited => "Limited",
            Self::Unusable => "Not usable",
        }
    }

    /// What the word means, before the reasons.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Reliable => "Nothing that was seen limits the answer.",
            Self::Limited => "The answer holds within these limits:",
            Self::Unusable => "Do not use the answer:",
        }
    }

    /// Its class in a page.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Reliable => "reliable",
            Self::Limited => "limited",
            Self::Unusable => "unusable",
        }
    }
}

/// The grade and why it is not better; no reason if it is the best.
pub(crate) fn grade(record: &RunRecord) -> (Grade, Vec<String>) {
    let unusable = unusable(record);
    if !unusable.is_empty() {
        return (Grade::Unusable, unusable);
    }
    let limits = limits(record);
    let grade = if limits.is_empty() { Grade::Reliable } else { Grade::Limited };
    (grade, limits)
}

fn unusable(record: &RunRecord) -> Vec<String> {
    let withheld = |one: &record::PairVerdict| matches!(one.verdict, Verdict::Withheld { .. });
    let measured = record.visits.iter().any(|visit| visit.state == VisitState::Measured);
    let reasons = [
        (record.integrity == Integrity::Changed)
            .then(|| "the file was changed after it was measured".to_owned()),
        (!measured).then(|| "nothing was measured".to_owned()),
        (measured && !record.verdicts.is_empty() && record.verdicts.iter().all(withheld))
            .then(|| "every verdict is withheld".to_owned()),
        (measured && record.verdicts.is_empty()).then(|| "no pair has a verdict".to_owned()),
    ];
    reasons.into_iter().flatten().collect()
}

fn limits(record: &RunRecord) -> Vec<String> {
    let acting = acting(record);
    let reasons = ended_early(record)
        .into_iter()
        .chain(acting)
        .chain(pairs(record))
        .chain(visits_lost(record));
    let mut seen: Vec<String> = Vec::new();
    for reason in reasons {
        if !seen.contains(&reason) {
            seen.push(reason);
        }
    }
    seen
}

fn ended_early(record: &RunRecord) -> Option<String> {
    match &record.ending {
        Ending::Incomplete { reason } => Some(format!("broken off: {}", plain(reason))),
        Ending::Stopped { blocks } => Some(format!("stopped by the user after block {blocks}")),
        Ending::Narrow | Ending::Blocks | Ending::Budget => None,
    }
}

/// Checks that withhold verdicts or make them bounds, and what they do.
fn acting(record: &RunRecord) -> Vec<String> {
    let acts = |check: &str| {
        let of_check = record.findings.iter().filter(|one| one.check == check);
        of_check.into_iter().any(|one| one.acts(Severity::Void) || one.acts(Severity::Bound))
    };
    let groups = grouped(record);
    let acting = groups.iter().filter(|group| acts(&group.check));
    acting.map(|group| format!("{}: {}", group.check, group.weight)).collect()
}

/// Pairs without a verdict, with a bound, or with too few blocks, on the two metrics that answers are about: the
/// primary one and server CPU time.
fn pairs(record: &RunRecord) -> Vec<String> {
    let primary = record.plan.metrics.first().or(record.verdicts.first().map(|one| &one.metric));
    let mut metrics: Vec<Metric> =
        primary.copied().into_iter().chain([Metric::ServerCpu]).collect();
    metrics.dedup();
    let is_bound = |one: &record::PairVerdict| match one.verdict {
        Verdict::AtLeast { cause, .. } | Verdict::AtMost { cause, .. } => {
            cause == record::BoundCause::Ceiling
        }
        _ => false,
    };
    let is_withheld = |one: &record::PairVerdict| matches!(one.verdict, Verdict::Withheld { .. });
    let mut reasons = Vec::new();
    for metric in metrics {
        let of_metric = || record.verdicts.iter().filter(|one| one.metric == metric);
        let all = of_metric().count() as u64;
        let mut say = |is: &dyn Fn(&record::PairVerdict) -> bool, what: &str| {
            let count = of_metric().filter(|one| is(one)).count() as u64;
            let of = if all == 1 { String::new() } else { format!("{count} of ") };
            if count > 0 {
                let quantity = metric.info().quantity;
                reasons.push(format!("{of}{} {what} on {quantity}", counted(all, "pair")));
            }
        };
        say(&is_withheld, "withheld");
        say(&is_bound, "only bounded");
        say(&|one| one.short_of.is_some(), "preliminary (too few blocks)");
    }
    reasons
}

/// Visits that were disturbed or failed.
fn visits_lost(record: &RunRecord) -> Vec<String> {
    let count = |is: &dyn Fn(&record::Visit) -> bool| {
        record.visits.iter().filter(|visit| is(visit)).count() as u64
    };
    let all = record.visits.len() as u64;
    let kept = count(&|one| one.state == VisitState::Measured && one.disturbance().is_some());
    let disturbed = kept + count(&|one| one.state == VisitState::Disturbed);
    let failed = count(&|one| matches!(one.state, VisitState::Failed { .. }));
    let reasons = [
        (kept > 0).then(|| format!("{} disturbed and used anyway", counted(kept, "visit"))),
        (all > 0 && disturbed as f64 / all as f64 >= DISTURBED_MANY)
            .then(|| format!("{} of {} disturbed", percent(disturbed, all), counted(all, "visit"))),
        (failed > 0).then(|| format!("{} failed", counted(failed, "visit"))),
    ];
    reasons.into_iter().flatten().collect()
}

/// How far to trust what a metric says; without a metric, how far to trust a run of several cells as a whole.
pub(crate) fn trust(record: &RunRecord, metric: Option<Metric>) -> String {
    format!("How far to trust it: {}.", facts(record, metric).join("; "))
}

/// The facts behind it.
pub(crate) fn facts(record: &RunRecord, metric: Option<Metric>) -> Vec<String> {
    let facts =
        [Some(blocks(record, metric)), Some(visits(record)), findings(record), stop(record)];
    facts.into_iter().flatten().collect()
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
        Ending::Stopped { blocks } => format!(
            "stopped by the user after block {blocks} (if the figures were the reason, differences look more \
             certain than they are)"
        ),
        Ending::Incomplete { reason } => format!("broken off: {}", plain(reason)),
    })
}

#[cfg(test)]
mod tests {
    use record::{BoundCause, Disturbance, Finding, ShortOf, Surroundings};
    use units::{Nanos, Share};

    use super::*;
    use crate::testdata;

    /// Two contenders, everything as it should be.
    fn clean() -> RunRecord {
        let mut run = testdata::run_with(2);
        run.findings.clear();
        for pair in &mut run.verdicts {
            pair.verdict = Verdict::NoDifference { margin: Share(0.02) };
            pair.short_of = None;
        }
        run
    }

    #[test]
    fn a_run_that_nothing_limits_is_reliable() {
        assert_eq!(grade(&clean()), (Grade::Reliable, Vec::new()));
    }

    #[test]
    fn each_limit_is_named_and_makes_the_grade_limited() {
        type Plant = fn(&mut RunRecord);
        let plants: [(Plant, &str); 8] = [
            (|run| run.ending = Ending::Stopped { blocks: 3 }, "stopped by the user after block 3"),
            (
                |run| run.ending = Ending::Incomplete { reason: "interrupted".to_owned() },
                "broken off: interrupted",
            ),
            (
                |run| run.verdicts[0].verdict = Verdict::Withheld { reason: "x".to_owned() },
                "1 pair withheld on requests/s",
            ),
            (
                |run| {
                    let cause = BoundCause::Ceiling;
                    run.verdicts[1].verdict = Verdict::AtLeast { ratio: 1.2, cause };
                },
                "1 pair only bounded on server CPU time per request",
            ),
            (
                |run| run.verdicts[0].short_of = Some(ShortOf { blocks: 2, of: 8 }),
                "1 pair preliminary (too few blocks) on requests/s",
            ),
            (
                |run| {
                    let slept = Nanos::from_secs(1);
                    run.visits[0].surroundings = Some(Box::new(Surroundings {
                        disturbance: Some(Disturbance::Suspended { slept }),
                        ..Surroundings::default()
                    }));
                },
                "1 visit disturbed and used anyway",
            ),
            (
                |run| {
                    let (reason, log_tail) = ("it hung".to_owned(), String::new());
                    run.visits[0].state = VisitState::Failed { reason, log_tail };
                },
                "1 visit failed",
            ),
            (
                |run| {
                    run.findings = vec![Finding {
                        check: "generator_limit".to_owned(),
                        severity: Severity::Bound,
                        certainty: record::Certainty::Confirmed,
                        contenders: vec![0],
                        ..Finding::default()
                    }];
                },
                "generator_limit: makes throughput a bound",
            ),
        ];
        for (plant, reason) in plants {
            let mut run = clean();
            plant(&mut run);
            assert_eq!(grade(&run), (Grade::Limited, vec![reason.to_owned()]));
        }
    }

    #[test]
    fn what_has_no_answer_is_not_usable() {
        assert_eq!(grade(&testdata::all_failed()).0, Grade::Unusable);
        let mut run = clean();
        for pair in &mut run.verdicts {
            pair.verdict = Verdict::Withheld { reason: "x".to_owned() };
        }
        assert_eq!(grade(&run), (Grade::Unusable, vec!["every verdict is withheld".to_owned()]));
        run.verdicts.clear();
        assert_eq!(grade(&run), (Grade::Unusable, vec!["no pair has a verdict".to_owned()]));
        let mut changed = clean();
        changed.integrity = Integrity::Changed;
        assert_eq!(grade(&changed).0, Grade::Unusable);
    }
}
