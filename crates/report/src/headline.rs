//! Owns the answer of a run in one to four lines: who is ahead, by how much, and what may not be
//! said and why. Must not know layout or colour. Start reading at [`headline`].

use record::{BoundCause, Ending, Metric, RunRecord, Severity, Verdict};

use crate::figures::{counted, listed};
use crate::standing::{Standing, failures};
use crate::wording::{Better, Reading, name_of, plain, words};

/// What a line of the headline is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Ranks the contenders.
    Ranking,
    /// Says something of the contenders.
    Answer,
    /// Limits what is said.
    Caution,
    /// The run itself is not whole.
    Alarm,
}

/// One sentence of the headline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

/// Contenders by a metric, best first. Between two places every pair was told apart; within a place
/// not all were.
#[derive(Debug, PartialEq)]
pub(crate) struct Ranking {
    pub(crate) metric: Metric,
    /// Indices of contenders, place by place.
    pub(crate) places: Vec<Vec<usize>>,
}

impl Ranking {
    /// Whether it says anything: at least two places.
    fn tells_apart(&self) -> bool {
        self.places.len() > 1
    }

    /// Indices of contenders, best first.
    pub(crate) fn order(&self) -> impl Iterator<Item = usize> {
        self.places.iter().flatten().copied()
    }

    /// "By server CPU time per request, least first".
    pub(crate) fn label(&self) -> String {
        let words = words(self.metric);
        format!("By {}, {}", words.quantity, words.best_first)
    }

    /// What a reader must know of the places: that some are shared, and who has none.
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
        let of = readings.iter().filter(|reading| reading.metric == metric);
        of.filter(|r| {
            let is_bound = matches!(
                r.verdict,
                Verdict::AtLeast { cause: BoundCause::Ceiling, .. }
                    | Verdict::AtMost { cause: BoundCause::Ceiling, .. }
            );
            is_bound || matches!(r.verdict, Verdict::Withheld { .. })
        })
        .count()
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

/// Sorts by the contenders' figures, and begins a new place only where every pair across the gap was
/// told apart by its verdict. Who has no figure has no place.
fn rank(metric: Metric, readings: &[Reading], standings: &[Standing]) -> Ranking {
    let mut order: Vec<(usize, f64)> =
        standings.iter().filter_map(|s| Some((s.index, s.value(metric)?))).collect();
    order.sort_by(|left, right| left.1.total_cmp(&right.1));
    if words(metric).better == Better::More {
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
    for (tone, text) in answers(record, standings, ranking, &readings) {
        push(tone, text);
    }
    let cautions = [
        bounded(record, ranking.metric),
        withheld(record, ranking.metric, &readings),
        lost(record),
    ];
    cautions.into_iter().flatten().for_each(|text| push(Tone::Caution, text));
    lines
}

/// Says on top that a run was broken off.
pub(crate) fn incomplete(record: &RunRecord) -> Option<String> {
    let Ending::Incomplete { reason } = &record.ending else { return None };
    let measured: usize =
        (0..record.plan.contenders.len()).map(|c| record.measured(c).count()).sum();
    let rests = counted(measured as u64, "visit");
    Some(format!("incomplete: {}; what follows rests on {rests}", plain(reason)))
}

/// Why there is no verdict at all, where there is none.
pub(crate) fn no_answer(record: &RunRecord, standings: &[Standing]) -> Option<String> {
    if standings.iter().all(|standing| standing.visits_measured == 0) {
        let begun = record.visits.len();
        let failed = match begun {
            0 => "no visit was begun".to_owned(),
            1 => "the only visit failed".to_owned(),
            n => format!("all {n} visits failed"),
        };
        return Some(format!("no verdict: {failed}, so nothing was measured"));
    }
    record.verdicts.is_empty().then(|| {
        "no verdict: no block holds a visit of two contenders, so no pair can be compared"
            .to_owned()
    })
}

/// The ranking, where it can be said, and the widest contrast.
fn answers(
    record: &RunRecord,
    standings: &[Standing],
    ranking: &Ranking,
    readings: &[Reading],
) -> Vec<(Tone, String)> {
    let contenders = &record.plan.contenders;
    let of_metric: Vec<&Reading> = readings.iter().filter(|r| r.metric == ranking.metric).collect();
    if let [only] = of_metric[..] {
        return pair_answers(record, only, readings);
    }
    if !ranking.tells_apart() {
        return vec![(Tone::Answer, undivided(ranking, &of_metric))];
    }
    let first = ranking_line(record, standings, ranking);
    let (best, worst) = (ranking.order().next(), ranking.order().last());
    let ends =
        |r: &&&Reading| best.zip(worst).is_some_and(|(best, worst)| r.is_between(best, worst));
    let contrast = of_metric.iter().find(ends).map(|reading| reading.sentence(contenders));
    let contrast = contrast.map(|text| (Tone::Answer, text));
    std::iter::once((Tone::Ranking, first)).chain(contrast).collect()
}

/// The ranking on one line, best first, with those that have no figure at its end.
fn ranking_line(record: &RunRecord, standings: &[Standing], ranking: &Ranking) -> String {
    let place = |(at, place): (usize, &Vec<usize>)| {
        let names: Vec<String> =
            place.iter().map(|&index| name_of(&record.plan.contenders, index)).collect();
        format!("{}. {}", at + 1, names.join(" = "))
    };
    let places: Vec<String> = ranking.places.iter().enumerate().map(place).collect();
    let note = match ranking.note(standings) {
        Some(note) => format!(" ({note})"),
        None => String::new(),
    };
    format!("{}: {}{note}", ranking.label(), places.join(", "))
}

/// Two contenders: their verdict on the metric that ranks them, and beside it the one on the primary
/// metric or on server CPU time, whichever that is not.
fn pair_answers(record: &RunRecord, only: &Reading, readings: &[Reading]) -> Vec<(Tone, String)> {
    let others = [primary(record), Metric::ServerCpu].into_iter().filter(|m| *m != only.metric);
    let beside = others.take(1).filter_map(|m| readings.iter().find(|r| r.metric == m));
    let sentence = |reading: &Reading| (Tone::Answer, reading.sentence(&record.plan.contenders));
    std::iter::once(only).chain(beside).map(sentence).collect()
}

/// What may be said where nobody was told apart from all others.
pub(crate) fn undivided(ranking: &Ranking, of_metric: &[&Reading]) -> String {
    let quantity = words(ranking.metric).quantity;
    let count = |is: fn(&Verdict) -> bool| of_metric.iter().filter(|r| is(&r.verdict)).count();
    let same = count(|verdict| matches!(verdict, Verdict::NoDifference { .. }));
    if same == of_metric.len()
        && let Some(Verdict::NoDifference { margin }) = of_metric.first().map(|r| &r.verdict)
    {
        return format!(
            "no difference of {margin} or more in {quantity} between any two contenders"
        );
    }
    let parts = [
        (count(|v| matches!(v, Verdict::Ratio { .. })), "told apart"),
        (same, "without a difference that matters"),
        (count(|v| matches!(v, Verdict::Undecided { .. })), "undecided"),
        (count(|v| matches!(v, Verdict::AtLeast { .. } | Verdict::AtMost { .. })), "bounded"),
        (count(|v| matches!(v, Verdict::Withheld { .. })), "withheld"),
    ];
    let said: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let pairs = counted(of_metric.len() as u64, "pair");
    format!("No ranking by {quantity}: of {pairs}, {}", listed(&said))
}

/// Whose throughput is a bound, by which finding, and what ranks them all the same.
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

/// How many verdicts were withheld, on the metrics that the headline speaks of, and why.
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
    let quantity = words(metric).quantity;
    Some(format!("{total} of {pairs} verdicts on {quantity} are withheld: {first}{others}"))
}

/// Says how many visits were lost, where others were measured.
pub(crate) fn lost(record: &RunRecord) -> Option<String> {
    let failed = failures(record).count();
    let begun = record.visits.len();
    (failed > 0).then(|| format!("{failed} of {begun} visits failed; their reasons are below"))
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
    fn two_contenders_get_their_verdict_and_nothing_else() {
        let record = run(2, |_| Verdict::Ratio { ratio: 2.0, low: 1.9, high: 2.1 });
        let said = "joust reactor: 2.00x [1.90, 2.10] the requests/s of joust prefork \
                    (more is better, so joust reactor is ahead)";
        assert_eq!(lines(&record), [said]);
    }

    #[test]
    fn a_bound_on_throughput_stands_beside_cpu_time() {
        let said = lines(&testdata::run_with(2));
        assert!(said[0].contains("the server CPU time per request of joust reactor"), "{said:?}");
        assert!(said[1].starts_with("joust reactor: at least "), "{said:?}");
    }

    #[test]
    fn the_same_server_twice_is_not_called_a_difference() {
        let record = run(2, |_| Verdict::NoDifference { margin: MARGIN });
        let said = "joust reactor and joust prefork: no difference of 2 % or more in requests/s";
        assert_eq!(lines(&record), [said]);
        let three = run(3, |_| Verdict::NoDifference { margin: MARGIN });
        let said = "no difference of 2 % or more in requests/s between any two contenders";
        assert_eq!(lines(&three), [said]);
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
        assert_eq!(said[0], "No ranking by requests/s: of 3 pairs, 3 withheld");
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
        assert!(said[0].ends_with("2. joust prefork (not measured: joust worker)"), "{said:?}");
        assert!(said.contains(&"4 of 12 visits failed; their reasons are below".to_owned()));
    }
}
