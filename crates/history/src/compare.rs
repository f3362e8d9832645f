//! Owns how a candidate run is compared with a base run. Must not know files, databases or how it is shown. Start
//! reading at [`compare`].
//!
//! The runs were made at different times and share no block, so nothing is paired across them: the blocks of each run
//! are a separate sample. A plain ratio cannot tell a machine that was slower on one of the days from a server that
//! became slower. A contender that did not change was slowed by the machine as much as the others. So each figure is
//! divided by that contender's figure, within the run and block by block: what both shared cancels out.

mod reference;

use std::collections::BTreeSet;

use record::{
    Basis, BoundCause, ChangeJudgement, Comparison, Direction, Ending, Integrity, MemoryMethod,
    Metric, RunChange, RunEstimate, RunName, RunRecord, ShortOf, Verdict,
};
use stats::{Decision, Held, Standard, TwoSample};
use units::Share;

use crate::figures::{
    FigurePlace, body, broken, is_limited, is_unlike_others, logs, memory_methods, places,
    withheld, work,
};
use crate::machine::{instant, machine};

pub use reference::{CompareError, Reference};

/// An adjusted p below this level is called a difference. It is strict, as within a run, because stopping on the width
/// of intervals favours blocks that happened to vary little.
const ALPHA: f64 = 0.02;

/// The question to two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Smaller regressions do not matter; above 0.
    pub margin: Share,
    /// The metrics to compare; empty: those that both studies ask for.
    pub metrics: Vec<Metric>,
    /// The reference for figures within a run.
    pub reference: Reference,
}

/// Compares a candidate run with a base run; each comes with the path of its file.
///
/// # Errors
/// The named reference is not the same in both runs.
pub fn compare(
    (base_path, base): (&str, &RunRecord),
    (candidate_path, candidate): (&str, &RunRecord),
    question: &Question,
) -> Result<Comparison, CompareError> {
    let matched = matched(base, candidate);
    let chosen = reference::choose(base, candidate, &matched, &question.reference)?;
    let bench = Bench { base, candidate, matched: &matched, reference: chosen.name };
    let (mut changes, mut drift) = (Vec::new(), Vec::new());
    for metric in metrics(base, candidate, question) {
        let (own, others): (Vec<&Pair>, Vec<&Pair>) =
            matched.iter().partition(|pair| bench.is_reference(pair));
        changes.extend(bench.changes(&others, metric, question.margin));
        drift.extend(bench.changes(&own, metric, question.margin));
    }
    // A contender that did not change only shows what the machine did, so it is not judged.
    drift.iter_mut().for_each(|change| change.judgement = ChangeJudgement::Neither);
    Ok(Comparison {
        format: Comparison::FORMAT.to_owned(),
        base: name(base_path, base),
        candidate: name(candidate_path, candidate),
        margin: question.margin,
        method: chosen.why,
        cautions: cautions(base, candidate, &metrics(base, candidate, question)),
        changes,
        drift,
        unmatched: unmatched(base, candidate, &matched),
    })
}

/// The same contender with the same work in both runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    base: FigurePlace,
    candidate: FigurePlace,
}

/// Cells match by their work, not by their name: a study that gains an axis renames its old cell.
fn matched(base: &RunRecord, candidate: &RunRecord) -> Vec<Pair> {
    let same = |of_base: &FigurePlace, of_candidate: FigurePlace| {
        contender_name(base, *of_base) == contender_name(candidate, of_candidate)
            && work(base, *of_base) == work(candidate, of_candidate)
    };
    let pair = |candidate: FigurePlace| {
        let base = places(base).find(|place| same(place, candidate))?;
        Some(Pair { base, candidate })
    };
    places(candidate).filter_map(pair).collect()
}

fn contender_name(run: &RunRecord, place: FigurePlace) -> &str {
    &run.plan.contenders[place.contender].name
}

fn metrics(base: &RunRecord, candidate: &RunRecord, question: &Question) -> Vec<Metric> {
    let is_asked = |metric: &Metric| match question.metrics.as_slice() {
        [] => base.plan.metrics.contains(metric) && candidate.plan.metrics.contains(metric),
        asked => asked.contains(metric),
    };
    Metric::all().filter(is_asked).collect()
}

fn name(path: &str, run: &RunRecord) -> RunName {
    RunName {
        path: path.to_owned(),
        study: run.plan.name.clone(),
        started: run.started.clone(),
        joust: run.joust.clone(),
    }
}

/// Two runs, what they share, and the reference contender.
struct Bench<'a> {
    base: &'a RunRecord,
    candidate: &'a RunRecord,
    matched: &'a [Pair],
    reference: Option<String>,
}

/// A ratio before it is judged.
struct MeasuredRatio {
    pair: Pair,
    basis: Basis,
    /// Candidate over base; or why there is no ratio.
    ratio: Result<TwoSample, String>,
}

impl Bench<'_> {
    fn is_reference(&self, pair: &Pair) -> bool {
        self.reference.as_deref() == Some(contender_name(self.candidate, pair.candidate))
    }

    /// The changes of these pairs in a metric; Holm's correction covers all of them.
    fn changes(&self, pairs: &[&Pair], metric: Metric, margin: Share) -> Vec<RunChange> {
        let seen: Vec<MeasuredRatio> = pairs.iter().map(|&&pair| self.see(pair, metric)).collect();
        // Pairs that are withheld or have no figures are not tested, and do not raise the p of others.
        let p = |seen: &MeasuredRatio| Some(seen.ratio.as_ref().ok()?.interval?.p);
        let tested: Vec<f64> = seen.iter().filter_map(p).collect();
        let mut held = stats::held(&tested).into_iter();
        let said = seen.iter().map(|seen| {
            let held = p(seen).and_then(|_| held.next()).unwrap_or(Held { p: 1.0, tests: 1 });
            self.say(seen, metric, margin, held)
        });
        said.collect()
    }

    fn see(&self, pair: Pair, metric: Metric) -> MeasuredRatio {
        let over = self.reference_for(pair, metric);
        let of = |run, place, over| -> Vec<f64> {
            let own = logs(run, place, metric);
            let Some(over) = over else { return own.into_values().collect() };
            let over = logs(run, over, metric);
            own.into_iter().filter_map(|(block, log)| Some(log - over.get(&block)?)).collect()
        };
        let base = of(self.base, pair.base, over.map(|over| over.base));
        let candidate = of(self.candidate, pair.candidate, over.map(|over| over.candidate));
        let ratio = match self.withheld(pair, metric) {
            Some(reason) => Err(reason),
            None => TwoSample::of_logs(&candidate, &base)
                .map_err(|_| "a run has no block in which it was measured".to_owned()),
        };
        let basis = over.map_or(Basis::Figures, |over| Basis::OverReference {
            reference: contender_name(self.base, over.base).to_owned(),
        });
        MeasuredRatio { pair, basis, ratio }
    }

    /// The reference, if it is in the same cell as the contender and is itself usable. Memory does not depend on the
    /// machine's speed: a reference would add its noise and cancel nothing.
    fn reference_for(&self, pair: Pair, metric: Metric) -> Option<Pair> {
        let is_usable = |over: &&Pair| {
            if self.other_body(**over) {
                return false;
            }
            let runs = [(self.base, over.base), (self.candidate, over.candidate)];
            runs.into_iter().all(|(run, place)| {
                let is_bound = metric.is_rate() && is_limited(run, place);
                withheld(run, place, metric).is_none() && !is_bound
            })
        };
        let is_beside = |over: &&Pair| {
            over.base.cell == pair.base.cell && over.candidate.cell == pair.candidate.cell
        };
        let others = self.matched.iter().filter(|over| self.is_reference(over) && **over != pair);
        match metric {
            Metric::Memory => None,
            _ => others.filter(is_beside).find(is_usable).copied(),
        }
    }

    /// Why no verdict is possible, if so.
    fn withheld(&self, pair: Pair, metric: Metric) -> Option<String> {
        let runs = [("base", self.base, pair.base), ("candidate", self.candidate, pair.candidate)];
        let reason = runs.into_iter().find_map(|(which, run, place)| {
            Some(format!("in the {which} run, {}", withheld(run, place, metric)?))
        });
        let is_bound = |run, place| metric.is_rate() && is_limited(run, place);
        let both_limited =
            is_bound(self.base, pair.base) && is_bound(self.candidate, pair.candidate);
        let other_body = || {
            let name = contender_name(self.candidate, pair.candidate);
            let said =
                format!("{name} sent another body in the candidate run than in the base run");
            self.other_body(pair).then_some(said)
        };
        let unlike_memory = || match metric {
            Metric::Memory => record::unlike_memory([
                ("the base run", &memory_methods(self.base, pair.base)),
                ("the candidate run", &memory_methods(self.candidate, pair.candidate)),
            ]),
            _ => None,
        };
        reason.or_else(other_body).or_else(unlike_memory).or_else(|| {
            both_limited.then(|| {
                "the generator was the limit in both runs; compare server CPU time per request"
                    .to_owned()
            })
        })
    }

    /// Whether a contender sent different bodies in the two runs. What other contenders of its run sent does not matter
    /// here.
    fn other_body(&self, pair: Pair) -> bool {
        match (body(self.base, pair.base), body(self.candidate, pair.candidate)) {
            (Some(base), Some(candidate)) => base != candidate,
            _ => false,
        }
    }

    /// Whether the contender worked in the base run and does not in the candidate. A gate on figures alone would pass a
    /// server that crashes.
    fn broke(&self, pair: Pair) -> bool {
        let is_odd = |run, place| is_unlike_others(run, place);
        let became_odd = self.other_body(pair)
            && !is_odd(self.base, pair.base)
            && is_odd(self.candidate, pair.candidate);
        let breaks = broken(self.candidate, pair.candidate).is_some();
        (broken(self.base, pair.base).is_none() && breaks) || became_odd
    }

    fn say(&self, seen: &MeasuredRatio, metric: Metric, margin: Share, held: Held) -> RunChange {
        let (direction, verdict) = match &seen.ratio {
            Err(reason) => {
                (Direction::CandidateOverBase, Verdict::Withheld { reason: reason.clone() })
            }
            Ok(ratio) => self.verdict(seen.pair, metric, margin, (ratio, held)),
        };
        let place = seen.pair.candidate;
        RunChange {
            contender: contender_name(self.candidate, place).to_owned(),
            cell: self.candidate.plan.cells[place.cell].name.clone(),
            metric,
            differs: reference::differences(self.base, self.candidate, seen.pair),
            basis: seen.basis.clone(),
            estimate: seen.ratio.as_ref().ok().and_then(|ratio| estimate(ratio, held)),
            judgement: match self.broke(seen.pair) {
                true => ChangeJudgement::Broken,
                false => judge(metric, direction, &verdict, margin),
            },
            verdict,
            short_of: seen.ratio.as_ref().ok().and_then(|ratio| self.short_of(ratio)),
            direction,
        }
    }

    fn verdict(
        &self,
        pair: Pair,
        metric: Metric,
        margin: Share,
        (ratio, held): (&TwoSample, Held),
    ) -> (Direction, Verdict) {
        let worded = self.wording(ratio, held, margin);
        let is_bound = |run, place| metric.is_rate() && is_limited(run, place);
        let (direction, bound) = match (&worded, ratio.interval) {
            _ if is_bound(self.candidate, pair.candidate) => {
                (Direction::CandidateOverBase, ratio.interval.map(|interval| interval.low))
            }
            (_, Some(interval)) if is_bound(self.base, pair.base) => {
                (Direction::BaseOverCandidate, Some(1.0 / interval.high))
            }
            _ => return (Direction::CandidateOverBase, worded),
        };
        let which = match direction {
            Direction::CandidateOverBase => "candidate",
            Direction::BaseOverCandidate => "base",
        };
        let verdict = match (worded, bound) {
            (worded, Some(ratio)) if worded.tells_apart() && ratio > 1.0 => {
                Verdict::AtLeast { ratio, cause: BoundCause::Ceiling }
            }
            _ => Verdict::Withheld {
                reason: format!(
                    "the generator was the limit in the {which} run, and what it let through is no \
                     more than the other reached; compare server CPU time per request"
                ),
            },
        };
        (direction, verdict)
    }

    /// The run that has fewer blocks than its study asks for; if both have, the one that lacks more.
    fn short_of(&self, ratio: &TwoSample) -> Option<ShortOf> {
        let of = |run: &RunRecord, n: usize| ShortOf { blocks: n as u32, of: run.plan.blocks.min };
        let lacks = |short: &ShortOf| short.of.saturating_sub(short.blocks);
        let runs = [of(self.base, ratio.n_b), of(self.candidate, ratio.n_a)];
        runs.into_iter().filter(|short| lacks(short) > 0).max_by_key(lacks)
    }

    fn wording(&self, ratio: &TwoSample, held: Held, margin: Share) -> Verdict {
        let decision = ratio.decide(held, Standard { margin: margin.0, alpha: ALPHA });
        match (decision, ratio.interval) {
            (Decision::Undecided { more }, None) => {
                // The spread is not known yet, so ask for the blocks that the studies plan.
                let missing = self.short_of(ratio).map_or(0, |short| short.of - short.blocks);
                Verdict::Undecided { more_blocks: more.map(|more| more.max(missing)), margin }
            }
            (Decision::Undecided { more }, Some(_)) => {
                Verdict::Undecided { more_blocks: more, margin }
            }
            (Decision::NoDifference, _) => Verdict::NoDifference { margin },
            (Decision::Ratio, None) => unreachable!("a difference is decided by its interval"),
            (Decision::Ratio, Some(interval)) => {
                Verdict::of_difference(ratio.ratio, (interval.low, interval.high))
            }
        }
    }
}

fn estimate(ratio: &TwoSample, held: Held) -> Option<RunEstimate> {
    let interval = ratio.interval?;
    Some(RunEstimate {
        ratio: ratio.ratio,
        low: interval.low,
        high: interval.high,
        blocks_base: ratio.n_b as u32,
        blocks_candidate: ratio.n_a as u32,
        p_holm: held.p,
    })
}

/// A regression is worse by more than the margin over the whole interval. A certain but smaller change does not matter,
/// and a large but uncertain one is no reason to stop a release.
fn judge(
    metric: Metric,
    direction: Direction,
    verdict: &Verdict,
    margin: Share,
) -> ChangeJudgement {
    let (low, high) = match *verdict {
        Verdict::Ratio { low, high, .. } => (low, high),
        Verdict::AtLeast { ratio, .. } => (ratio, f64::INFINITY),
        Verdict::AtMost { ratio, .. } => (0.0, ratio),
        _ => return ChangeJudgement::Neither,
    };
    // Inverted where needed, so that above 1 is worse.
    let is_worse_above = metric.more_is_better() == (direction == Direction::BaseOverCandidate);
    let (low, high) = if is_worse_above { (low, high) } else { (1.0 / high, 1.0 / low) };
    match 1.0 + margin.0 {
        edge if low > edge => ChangeJudgement::Regression,
        edge if high < 1.0 / edge => ChangeJudgement::Improvement,
        _ => ChangeJudgement::Neither,
    }
}

/// What a reader must know before the figures.
fn cautions(base: &RunRecord, candidate: &RunRecord, metrics: &[Metric]) -> Vec<String> {
    let mut cautions = Vec::new();
    if base == candidate {
        cautions.push("both are the same run".to_owned());
    } else if (base.started == candidate.started) && (base.plan.name == candidate.plan.name) {
        let is_changed = [base, candidate].iter().any(|run| run.integrity == Integrity::Changed);
        let how = match is_changed {
            true => "one run is a copy of the other whose file was changed after it was measured",
            false => "one run repeats or continues the other",
        };
        cautions.push(format!("{how}: they share visits, so the intervals are too narrow"));
    }
    let (one, other) = (machine(base), machine(candidate));
    let facts = [
        ("CPU", one.cpu_model, other.cpu_model),
        ("CPUs", one.cpus, other.cpus),
        ("kernel", one.kernel, other.kernel),
    ];
    let differing: Vec<String> = facts
        .into_iter()
        .filter(|(_, one, other)| one != other)
        .map(|(what, one, other)| format!("{what} {one} in the base run, {other} in the candidate"))
        .collect();
    if !differing.is_empty() {
        cautions.push(format!(
            "the machines differ ({}): what is said below is of machine and server together, and a \
             reference takes the machine out only as far as it slows all servers alike",
            differing.join("; ")
        ));
    }
    if base.layout != candidate.layout {
        cautions.push("servers and generator had other CPUs in the two runs".to_owned());
    }
    if base.plan.visit != candidate.plan.visit {
        cautions.push("visits were of other lengths in the two runs".to_owned());
    }
    if base.joust != candidate.joust {
        cautions.push(format!(
            "the generator was joust {} in the base run and {} in the candidate",
            base.joust, candidate.joust
        ));
    }
    if instant(candidate) < instant(base) {
        cautions.push("the base run is newer than the candidate".to_owned());
    }
    for (which, run) in [("base", base), ("candidate", candidate)] {
        if run.integrity == Integrity::Changed {
            cautions.push(format!(
                "{which} run: this file was changed after it was measured: its digest does not fit"
            ));
        }
        if let Ending::Incomplete { reason } = &run.ending {
            cautions.push(format!("the {which} run is incomplete: {reason}"));
        }
        if let Ending::Stopped { blocks } = &run.ending {
            cautions.push(format!("the {which} run was stopped by its user after block {blocks}"));
        }
        for skip in run.user_skips() {
            let (name, block) = (&run.plan.contenders[skip.contender].name, skip.block + 1);
            cautions.push(format!(
                "in the {which} run {name} was skipped by the user in block {block}"
            ));
        }
    }
    if metrics.contains(&Metric::Memory) {
        cautions.extend(of_memory(base, candidate));
    }
    cautions
}

/// What a memory figure depends on besides the server, if anything.
fn of_memory(base: &RunRecord, candidate: &RunRecord) -> Option<String> {
    let methods: BTreeSet<MemoryMethod> = [base, candidate]
        .into_iter()
        .flat_map(|run| places(run).flat_map(|place| memory_methods(run, place)))
        .collect();
    if methods.contains(&MemoryMethod::Pss) {
        return Some(
            "memory is PSS, as an older joust took it: each page is divided over all processes of the \
             machine that map it, so that other programs change it; measure again"
                .to_owned(),
        );
    }
    methods.contains(&MemoryMethod::Bound).then(|| {
        "memory is a lower bound: pages that processes share since a fork cannot be told apart \
         without CAP_SYS_ADMIN"
            .to_owned()
    })
}

/// Pairs that are in one run only, or whose work differs.
fn unmatched(base: &RunRecord, candidate: &RunRecord, matched: &[Pair]) -> Vec<String> {
    let title = |run: &RunRecord, place: FigurePlace| match run.plan.cells[place.cell].name.as_str()
    {
        "" => contender_name(run, place).to_owned(),
        cell => format!("{} at {cell}", contender_name(run, place)),
    };
    let missing =
        |run: &RunRecord, other: &RunRecord, own: &dyn Fn(&Pair) -> FigurePlace, said: &str| {
            let alone = places(run).filter(|place| !matched.iter().any(|pair| own(pair) == *place));
            let says = |place: FigurePlace| {
                let is_asked = |of: FigurePlace| title(other, of) == title(run, place);
                let why = if places(other).any(is_asked) { "was asked otherwise" } else { said };
                format!("{}: {why}", title(run, place))
            };
            alone.map(says).collect::<Vec<_>>()
        };
    let mut all = missing(base, candidate, &|pair| pair.base, "only in the base run");
    all.extend(missing(candidate, base, &|pair| pair.candidate, "only in the candidate run"));
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests;
