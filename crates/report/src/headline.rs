//! Owns the answer of a run in a few lines: who is first and by how much, what other metrics say, what may not be
//! said and why, and how far to trust it. Must not know layout or colour. Start reading at [`headline`].

use record::{BoundCause, Ending, Metric, RunRecord, Severity, UserSkip, Verdict};

use crate::figures::{counted, listed};
use crate::first_place::{at_least, first_place};
use crate::integrity::changed;
use crate::line::{Line, Tone};
use crate::order::Order;
use crate::standing::{Standing, failures};
use crate::trust::trust;
use crate::wording::{Reading, name_of, plain};

/// Most metrics that are named because they disagree with the ranking metric.
const DISAGREEING_MAX: usize = 2;

/// Contenders by a metric, best first. Between two places every pair was told apart; within a place, some pairs were
/// not.
#[derive(Debug, PartialEq)]
pub(crate) struct Ranking {
    pub(crate) metric: Metric,
    /// Indices of contenders, place by place.
    pub(crate) places: Vec<Vec<usize>>,
}

impl Ranking {
    /// Whether it says anything: at least two places.
    pub(crate) fn tells_apart(&self) -> bool {
        self.places.len() > 1
    }

    /// "1"; "2=" for a shared place; `None` for a contender without a place.
    pub(crate) fn place_of(&self, index: usize) -> Option<String> {
        let at = self.places.iter().position(|place| place.contains(&index))?;
        let number = 1 + self.places[..at].iter().map(Vec::len).sum::<usize>();
        let shared = if self.places[at].len() > 1 { "=" } else { "" };
        Some(format!("{number}{shared}"))
    }

    /// Indices of contenders, best first.
    pub(crate) fn order(&self) -> impl Iterator<Item = usize> {
        self.places.iter().flatten().copied()
    }

    /// "By server CPU time per request, least first".
    pub(crate) fn label(&self) -> String {
        let words = self.metric.info();
        format!("By {}, {}", words.quantity, words.best_first)
    }

    /// What a reader must know about the places: that some are shared, and who has none.
    pub(crate) fn note(&self, standings: &[Standing]) -> Option<String> {
        let shared = self.places.iter().any(|place| place.len() > 1);
        let unplaced: Vec<&str> = standings
            .iter()
            .filter(|standing| self.order().all(|index| index != standing.index))
            .map(|standing| standing.name.as_str())
            .collect();
        let mut notes = Vec::new();
        if shared {
            notes.push("those that share a place were not all told apart".to_owned());
        }
        if !unplaced.is_empty() {
            notes.push(format!("not measured: {}", listed(&unplaced)));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

/// The metric by which the contenders are ranked, and the ranking: the primary metric, unless
/// bounds or withheld verdicts keep it from ranking them and server CPU time does it better.
pub(crate) fn ranking(record: &RunRecord, standings: &[Standing]) -> Ranking {
    let readings: Vec<Reading> = record.verdicts.iter().map(Reading::new).collect();
    let primary = primary(record);
    let silent = |metric: Metric| {
        readings.iter().filter(|one| one.metric == metric && is_silent(one)).count()
    };
    let has_cpu = readings.iter().any(|reading| reading.metric == Metric::ServerCpu);
    let by_cpu = has_cpu && silent(Metric::ServerCpu) < silent(primary);
    rank(if by_cpu { Metric::ServerCpu } else { primary }, &readings, standings)
}

/// The metric that the study put first.
pub(crate) fn primary(record: &RunRecord) -> Metric {
    let first_verdict = record.verdicts.first().map(|pair| pair.metric);
    record.plan.metrics.first().copied().or(first_verdict).unwrap_or(Metric::Throughput)
}

/// Sorts by the contenders' figures, and begins a new place only if every pair across the gap was told apart by its
/// verdict. A contender without a figure has no place.
fn rank(metric: Metric, readings: &[Reading], standings: &[Standing]) -> Ranking {
    let mut order: Vec<(usize, f64)> =
        standings.iter().filter_map(|s| Some((s.index, s.value(metric)?))).collect();
    order.sort_by(|left, right| left.1.total_cmp(&right.1));
    if metric.more_is_better() {
        order.reverse();
    }
    let order: Vec<usize> = order.into_iter().map(|(index, _)| index).collect();
    let ahead = |left: usize, right: usize| {
        let is_pair = |r: &&Reading| r.metric == metric && r.is_between(left, right);
        readings.iter().find(is_pair).and_then(Reading::ahead) == Some(left)
    };
    let mut places: Vec<Vec<usize>> = Vec::new();
    for (at, &index) in order.iter().enumerate() {
        let (before, after) = order.split_at(at);
        let apart = before.iter().all(|&left| after.iter().all(|&right| ahead(left, right)));
        match places.last_mut() {
            Some(place) if !apart => place.push(index),
            _ => places.push(vec![index]),
        }
    }
    Ranking { metric, places }
}

/// The answer to the study's question.
pub(crate) fn headline(record: &RunRecord, standings: &[Standing], ranking: &Ranking) -> Vec<Line> {
    let readings: Vec<Reading> = record.verdicts.iter().map(Reading::new).collect();
    let mut lines = Vec::new();
    let mut push = |tone, text: String| lines.push(Line { tone, text });
    if let Some(text) = incomplete(record) {
        push(Tone::Alarm, text);
    }
    if let Some(text) = no_answer(record, standings) {
        push(Tone::Alarm, text);
        return lines;
    }
    for (tone, text) in answers(record, ranking, &readings) {
        push(tone, text);
    }
    let cautions = [
        bounded(record, ranking.metric).or_else(|| passed_over(record, ranking.metric, &readings)),
        withheld(record, ranking.metric, &readings),
        lost(record),
        skipped(record),
    ];
    cautions.into_iter().flatten().for_each(|text| push(Tone::Caution, text));
    push(Tone::Trust, trust(record, Some(ranking.metric)));
    lines
}

/// Says first that a run's file was changed, or that the run ended early.
pub(crate) fn incomplete(record: &RunRecord) -> Option<String> {
    let parts = [changed(record).map(str::to_owned), broken_off(record)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(". "))
}

fn broken_off(record: &RunRecord) -> Option<String> {
    let Ending::Incomplete { reason } = &record.ending else { return None };
    let measured: usize =
        (0..record.plan.contenders.len()).map(|c| record.measured(c).count()).sum();
    let rests = counted(measured as u64, "visit");
    Some(format!("incomplete: {}; based on {rests}", plain(reason)))
}

/// Why there is no verdict at all, if that is so.
pub(crate) fn no_answer(record: &RunRecord, standings: &[Standing]) -> Option<String> {
    if standings.iter().all(|standing| standing.visits_measured == 0) {
        let begun = record.visits.len();
        let failed = match begun {
            0 => "no visit was started".to_owned(),
            1 => "the only visit failed".to_owned(),
            n => format!("all {n} visits failed"),
        };
        return Some(format!("no verdict: {failed}, so nothing was measured"));
    }
    record.verdicts.is_empty().then(|| {
        "no verdict: no block has a visit of two contenders, so no pair can be compared".to_owned()
    })
}

/// Who is first by the ranking metric, and what others say: for two contenders, their verdict on the primary metric
/// or on server CPU time; for more, whatever contradicts the ranking.
fn answers(record: &RunRecord, ranking: &Ranking, readings: &[Reading]) -> Vec<(Tone, String)> {
    let order = |metric| Order::new(metric, readings, ranking.order());
    let sentence = |metric| {
        let contenders = &record.plan.contenders;
        let said = first_place(&order(metric), contenders, record.plan.reference);
        (if said.is_answer { Tone::Answer } else { Tone::Open }, said.text)
    };
    let ranked = order(ranking.metric);
    let first = sentence(ranking.metric);
    // If only two can be compared, or if the ranking metric proves nothing, another metric may help.
    let is_pair = ranked.readings.len() == 1 || ranked.compared.len() == 2;
    let beside = if is_pair || first.0 == Tone::Open {
        beside(record, ranking.metric, readings).map(sentence)
    } else {
        disagreement(record, &ranked, readings).map(|text| (Tone::Open, text))
    };
    std::iter::once(first).chain(beside).collect()
}

/// The metric beside the ranking metric: throughput is never shown without server CPU time.
fn beside(record: &RunRecord, ranked_by: Metric, readings: &[Reading]) -> Option<Metric> {
    let mut others =
        [primary(record), Metric::ServerCpu].into_iter().filter(|metric| *metric != ranked_by);
    others.find(|&metric| readings.iter().any(|reading| reading.metric == metric))
}

/// Whether another metric puts a contender ahead of one in first place that this metric puts ahead of it.
pub(crate) fn disagreement(
    record: &RunRecord,
    ranked: &Order,
    readings: &[Reading],
) -> Option<String> {
    let mut metrics: Vec<Metric> = vec![primary(record), Metric::ServerCpu];
    metrics.extend(readings.iter().map(|reading| reading.metric));
    let mut said: Vec<String> = Vec::new();
    let mut seen = vec![ranked.metric];
    for metric in metrics {
        if seen.contains(&metric) {
            continue;
        }
        seen.push(metric);
        let other = Order::new(metric, readings, ranked.compared.iter().copied());
        let first = ranked.first();
        let pairs = first.iter().flat_map(|&one| ranked.compared.iter().map(move |&o| (one, o)));
        let behind = pairs.filter(|&(one, o)| ranked.lead(one, o).is_some());
        let turned = behind.filter_map(|(one, o)| Some((other.lead(o, one)?, o, one)));
        let widest = turned.max_by(|left, right| left.0.total_cmp(&right.0));
        let Some((lead, better, first)) = widest else { continue };
        let [better, first] = [better, first].map(|index| name_of(&record.plan.contenders, index));
        let quantity = metric.info().quantity;
        said.push(format!("by {quantity} {better} is ahead of {first} ({})", at_least(lead)));
    }
    said.truncate(DISAGREEING_MAX);
    let noun = if said.len() == 1 { "Another metric disagrees" } else { "Other metrics disagree" };
    (!said.is_empty()).then(|| format!("{noun}: {}.", listed(&said)))
}

/// Why the primary metric does not rank, if no finding says it.
fn passed_over(record: &RunRecord, ranked_by: Metric, readings: &[Reading]) -> Option<String> {
    let primary = primary(record);
    let of: Vec<&Reading> = readings.iter().filter(|one| one.metric == primary).collect();
    let silent = of.iter().filter(|one| is_silent(one)).count();
    let [passed, ranks] = [primary, ranked_by].map(|metric| metric.info().quantity);
    (primary != ranked_by).then(|| {
        let pairs = counted(of.len() as u64, "verdict");
        format!("{ranks} ranks the contenders, since {silent} of {pairs} on {passed} give no ratio")
    })
}

/// Whether it says less about two contenders than their ratio: it is withheld, or the measurement was the limit.
fn is_silent(reading: &Reading) -> bool {
    matches!(
        reading.verdict,
        Verdict::Withheld { .. }
            | Verdict::AtLeast { cause: BoundCause::Ceiling, .. }
            | Verdict::AtMost { cause: BoundCause::Ceiling, .. }
    )
}

/// Whose throughput is a bound, by which finding, and which metric ranks them nevertheless.
fn bounded(record: &RunRecord, ranked_by: Metric) -> Option<String> {
    let finding = record.findings.iter().find(|finding| finding.acts(Severity::Bound))?;
    let all = record.plan.contenders.len();
    let acting = || record.findings.iter().filter(|finding| finding.acts(Severity::Bound));
    let touched = (0..all).filter(|&index| acting().any(|finding| finding.touches(index))).count();
    let whom = if touched == all { format!("all {all}") } else { format!("{touched} of {all}") };
    let cause = if finding.check.contains("generator") {
        format!("The generator was the limit for {whom}")
    } else {
        format!("{} bounds {whom}", plain(&finding.check))
    };
    let ranks = match ranked_by {
        Metric::Throughput | Metric::Capacity => "",
        Metric::ServerCpu => "; server CPU time per request ranks the contenders",
        _ => "; the ranking does not rest on it",
    };
    let their = if touched == 1 { "its" } else { "their" };
    Some(format!("{cause}: {their} throughput is a lower bound{ranks}"))
}

/// How many verdicts were withheld, on the metrics that the headline mentions, and why.
fn withheld(record: &RunRecord, ranked_by: Metric, readings: &[Reading]) -> Option<String> {
    let primary = primary(record);
    let metrics = if ranked_by == primary { vec![primary] } else { vec![primary, ranked_by] };
    let parts: Vec<String> =
        metrics.into_iter().filter_map(|metric| withheld_on(metric, readings)).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn withheld_on(metric: Metric, readings: &[Reading]) -> Option<String> {
    let of_metric = readings.iter().filter(|reading| reading.metric == metric);
    let pairs = of_metric.clone().count();
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for reading in of_metric {
        let Verdict::Withheld { reason } = &reading.verdict else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let total: usize = reasons.iter().map(|(_, count)| count).sum();
    let (first, _) = reasons.first()?;
    let others = match reasons.len() - 1 {
        0 => String::new(),
        n => format!(" (and {})", counted(n as u64, "further reason")),
    };
    let quantity = metric.info().quantity;
    Some(format!("{total} of {pairs} verdicts on {quantity} are withheld: {first}{others}"))
}

/// Says how many visits were lost, if others were measured.
pub(crate) fn lost(record: &RunRecord) -> Option<String> {
    let failed = failures(record).count();
    let begun = record.visits.len();
    (failed > 0).then(|| format!("{failed} of {begun} visits failed; their reasons are below"))
}

/// Says whom the user had skipped, how many visits of them there are, and that nothing is concluded from those.
pub(crate) fn skipped(record: &RunRecord) -> Option<String> {
    let skip = |skip: UserSkip| {
        let name = name_of(&record.plan.contenders, skip.contender);
        let kept = counted(record.measured(skip.contender).count() as u64, "visit");
        format!("{name} in block {} ({kept} kept)", skip.block + 1)
    };
    let all: Vec<String> = record.user_skips().map(skip).collect();
    let whose = if all.len() == 1 { "its" } else { "their" };
    (!all.is_empty())
        .then(|| format!("skipped by the user: {}; {whose} verdicts are withheld", listed(&all)))
}

#[cfg(test)]
mod tests {
    use record::PairVerdict;
    use units::Share;

    use super::*;
    use crate::{standing::standings, testdata};

    const MARGIN: Share = Share(0.02);

    /// The made-up run with its first contenders, where `say` gives each pair's verdict.
    fn run(contenders: usize, say: impl Fn(&PairVerdict) -> Verdict) -> RunRecord {
        let mut record = testdata::run_with(contenders);
        record.findings.clear();
        record.verdicts.retain(|pair| pair.metric == Metric::Throughput);
        for pair in &mut record.verdicts {
            pair.verdict = say(pair);
        }
        record
    }

    fn lines(record: &RunRecord) -> Vec<String> {
        let standings = standings(record);
        let ranking = ranking(record, &standings);
        headline(record, &standings, &ranking).into_iter().map(|line| line.text).collect()
    }

    /// From the estimate, whatever the made-up run says of bounds.
    fn ratio(pair: &PairVerdict) -> Verdict {
        let e = pair.estimate.unwrap();
        Verdict::Ratio { ratio: e.ratio, low: e.low, high: e.high }
    }

    #[test]
    fn two_contenders_get_their_verdict_and_how_far_to_trust_it() {
        let record = run(2, |_| Verdict::Ratio { ratio: 2.0, low: 1.9, high: 2.1 });
        let said = [
            "joust reactor is faster than joust prefork: 2.00x [1.90, 2.10] the requests/s.",
            "How far to trust it: 4 blocks of at most 4; none of 8 visits was disturbed; no finding; \
             stopped by the \
             budget of 85s.",
        ];
        assert_eq!(lines(&record), said);
    }

    #[test]
    fn a_bound_on_throughput_stands_beside_cpu_time() {
        let said = lines(&testdata::run_with(2));
        let start = "joust reactor needs less server CPU time per request than joust prefork: ";
        assert!(said[0].starts_with(start), "{said:?}");
        let start = "joust reactor is faster than joust prefork: at least ";
        assert!(said[1].starts_with(start), "{said:?}");
    }

    #[test]
    fn the_same_server_twice_is_not_called_a_difference() {
        let record = run(2, |_| Verdict::NoDifference { margin: MARGIN });
        let said =
            "joust reactor and joust prefork show no difference of 2 % or more in requests/s (";
        assert!(lines(&record)[0].starts_with(said), "{:?}", lines(&record));
    }

    #[test]
    fn another_metric_that_puts_a_better_one_behind_is_named() {
        let mut record = testdata::run_with(3);
        record.findings.clear();
        let turned = |pair: &PairVerdict| match (pair.metric, ratio(pair)) {
            // Contender 0 is fastest, and here it needs most CPU time.
            (Metric::ServerCpu, Verdict::Ratio { ratio, low, high }) if pair.a == 0 => {
                Verdict::Ratio { ratio: 1.0 / ratio, low: 1.0 / high, high: 1.0 / low }
            }
            (Metric::Throughput | Metric::ServerCpu, said) => said,
            _ => Verdict::Undecided { more_blocks: None, margin: MARGIN },
        };
        for pair in &mut record.verdicts {
            pair.verdict = turned(pair);
        }
        let said = lines(&record);
        assert!(said[0].starts_with("joust reactor is fastest: at least "), "{said:?}");
        let start = "Another metric disagrees: by server CPU time per request joust prefork is ahead of \
                     joust reactor (at least ";
        assert!(said[1].starts_with(start), "{said:?}");
    }

    #[test]
    fn a_run_that_was_disturbed_or_is_short_of_blocks_says_so() {
        let mut record = run(2, |_| Verdict::Ratio { ratio: 2.0, low: 1.9, high: 2.1 });
        record.verdicts[0].short_of = Some(record::ShortOf { blocks: 4, of: 8 });
        record.visits[3].state = record::VisitState::Disturbed;
        record.findings = testdata::run_with(2).findings;
        let said = "How far to trust it: 4 blocks of the 8 required, so preliminary; 1 of 8 visits \
                    (12.5 %) was disturbed (repeated); 2 findings, the most severe: generator_limit, \
                    makes throughput a bound; stopped by the budget of 85s.";
        assert_eq!(lines(&record).last().unwrap(), said);
    }

    #[test]
    fn places_part_only_where_every_pair_was_told_apart() {
        // Contenders 2 and 3 (worker and pool) are the close ones.
        let close = |pair: &PairVerdict| (pair.a, pair.b) == (2, 3) || (pair.a, pair.b) == (3, 2);
        let undecided = Verdict::Undecided { more_blocks: Some(9), margin: MARGIN };
        let record = run(4, |pair| if close(pair) { undecided.clone() } else { ratio(pair) });
        let standings = standings(&record);
        let ranking = ranking(&record, &standings);
        assert_eq!(ranking.metric, Metric::Throughput);
        assert_eq!(ranking.places, [vec![0], vec![3, 2], vec![1]]);
    }

    #[test]
    fn bounds_on_throughput_hand_the_ranking_to_cpu_time() {
        let record = testdata::run();
        let standings = standings(&record);
        assert_eq!(ranking(&record, &standings).metric, Metric::ServerCpu);
        let said = "The generator was the limit for 3 of 8: their throughput is a lower bound; \
                    server CPU time per request ranks the contenders";
        assert!(lines(&record).iter().any(|line| line == said), "{:?}", lines(&record));
    }

    #[test]
    fn what_is_withheld_is_counted_with_its_reason() {
        let reason = || "bodies differ".to_owned();
        let record = run(3, |_| Verdict::Withheld { reason: reason() });
        let said = lines(&record);
        assert_eq!(said[0], "No answer by requests/s: all 3 verdicts are withheld.");
        assert_eq!(said[1], "3 of 3 verdicts on requests/s are withheld: bodies differ");
    }

    #[test]
    fn a_run_without_a_visit_has_no_verdict() {
        let said = lines(&testdata::all_failed());
        assert_eq!(said[1], "no verdict: all 9 visits failed, so nothing was measured");
    }

    #[test]
    fn who_was_not_measured_has_no_place_and_is_named() {
        let mut record = run(3, ratio);
        for visit in record.visits.iter_mut().filter(|visit| visit.contender == 2) {
            visit.state =
                record::VisitState::Failed { reason: String::new(), log_tail: String::new() };
        }
        record.verdicts.retain(|pair| pair.b != 2);
        record.verdicts.push(PairVerdict {
            cell: 0,
            metric: Metric::Throughput,
            a: 0,
            b: 2,
            estimate: None,
            verdict: Verdict::Withheld { reason: "joust worker was not measured".to_owned() },
            short_of: None,
        });
        let said = lines(&record);
        assert!(said[0].ends_with(" of joust prefork; not compared: joust worker."), "{said:?}");
        assert!(said.contains(&"4 of 12 visits failed; their reasons are below".to_owned()));
    }
}
