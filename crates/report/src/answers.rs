//! Owns the answer of one cell of several in one line: who is ahead, or why that is not said, and what limits the
//! answer. Server CPU time stands beside every figure that ranks. Must not know layout. Start reading at [`answer`].

use record::{Metric, MetricUnit, RankedContender, RunRecord, Severity, Verdict};

use crate::cells::CellView;
use crate::figures::{counted, listed};
use crate::finding_groups::verdict_of_the_doctor;
use crate::first_place::first_place;
use crate::headline::{incomplete, lost, no_answer, skipped};
use crate::leads::leads;
use crate::line::{Line, Tone};
use crate::order::Order;
use crate::standing::Standing;
use crate::table::{Cell, Column, Depth, Row, Table};
use crate::trust::trust;
use crate::wording::{Reading, plain, verdict};

/// Most contenders of a cell without a ranking that are named; of more, only the range of their figures is given.
const NAMED_MAX: usize = 3;
/// Most reasons for withheld verdicts that are named.
const REASONS_MAX: usize = 2;

/// The answer of one cell.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) tone: Tone,
    pub(crate) text: String,
    /// What limits the answer; empty if nothing does.
    pub(crate) doubts: Vec<String>,
}

impl Answer {
    fn new(tone: Tone, text: String) -> Self {
        Self { tone, text, doubts: Vec::new() }
    }

    /// The answer and what limits it, in one line.
    pub(crate) fn line(&self) -> String {
        let parts = std::iter::once(&self.text).chain(&self.doubts);
        parts.map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

/// What is said of all cells before each of them: whether the run is complete, who leads where, how the doctor limits
/// the answer, and how far to trust it.
pub(crate) fn overview(record: &RunRecord, cells: &[CellView]) -> Vec<Line> {
    let line = |tone| move |text| Line { tone, text };
    let lines = [
        incomplete(record).map(line(Tone::Alarm)),
        leads(record, cells).map(line(Tone::Answer)),
        skipped(record).map(line(Tone::Caution)),
        verdict_of_the_doctor(record),
        Some(trust(record, None)).map(line(Tone::Trust)),
    ];
    lines.into_iter().flatten().collect()
}

/// The answers of all cells, one a row.
pub(crate) fn table(cells: &[CellView]) -> Table {
    let answers: Vec<Answer> = cells.iter().map(|view| answer(view, cells)).collect();
    let is_limited = answers.iter().any(|one| !one.doubts.is_empty());
    let row = |(index, (view, answer)): (usize, (&CellView, &Answer))| {
        let name = Cell { to: format!("cell-{index}"), ..Cell::from(view.name.clone()) };
        let limits = is_limited.then(|| Cell::from(answer.doubts.join("; ")));
        Row::Cells([name, Cell::from(answer.text.clone())].into_iter().chain(limits).collect())
    };
    let columns = [Column::text("cell"), Column::text("answer")].into_iter();
    Table {
        title: "Answer".to_owned(),
        note: note(cells),
        columns: columns.chain(is_limited.then(|| Column::text("limits"))).collect(),
        rows: cells.iter().zip(&answers).enumerate().map(row).collect(),
        depth: Depth::Answer,
    }
}

/// What a reader must know to read the answers.
pub(crate) fn note(cells: &[CellView]) -> String {
    let mut notes = vec![
        common_metric(cells).map_or_else(|| "Best first".to_owned(), figures_of),
        "> stands between contenders that were told apart, ~ between those that were not"
            .to_owned(),
    ];
    if cells.iter().flat_map(|view| &view.standings).any(|standing| standing.is_bound) {
        notes.push(">= marks a lower bound: the measurement was the limit".to_owned());
    }
    notes.join("; ")
}

/// What the figures of an answer mean.
fn figures_of(metric: Metric) -> String {
    let unit = |metric: Metric| match metric.info().unit {
        MetricUnit::MicrosPerRequest => " in us",
        _ => "",
    };
    let (ranking, other) = (metric.info(), beside(metric));
    format!(
        "By {}{}, {}; in brackets {}{}",
        ranking.quantity,
        unit(metric),
        ranking.best_first,
        other.info().quantity,
        unit(other)
    )
}

/// The metric that ranks all cells, if they share one.
fn common_metric(cells: &[CellView]) -> Option<Metric> {
    let first = cells.first()?.ranking.metric;
    cells.iter().all(|view| view.ranking.metric == first).then_some(first)
}

/// The metric whose figures stand beside those of the ranking metric: throughput is never shown without server CPU
/// time, which contention cannot fake.
fn beside(metric: Metric) -> Metric {
    if metric == Metric::ServerCpu { Metric::Throughput } else { Metric::ServerCpu }
}

/// The answer of one of `cells`.
pub(crate) fn answer(view: &CellView, cells: &[CellView]) -> Answer {
    if let Some(text) = no_answer(&view.run, &view.standings) {
        return Answer::new(Tone::Alarm, text);
    }
    let metric = view.ranking.metric;
    let of_metric = |pair: &&record::PairVerdict| pair.metric == metric;
    let readings: Vec<Reading> =
        view.run.verdicts.iter().filter(of_metric).map(Reading::new).collect();
    let said = match readings.as_slice() {
        [only] => of_pair(view, only),
        readings => against(view, readings)
            .or_else(|| groups(view))
            .or_else(|| places(view))
            .unwrap_or_else(|| undecided(view)),
    };
    let by = match common_metric(cells) {
        Some(_) => String::new(),
        None => format!("{}: ", figures_of(metric)),
    };
    // A pair says this itself, and so does a comparison with a reference.
    let says_so = said.text.contains("withheld");
    let withheld = withheld(&view.run, &readings).filter(|_| !says_so);
    let doubts = [withheld, bounds(view, &said.text), lost(&view.run), failing(view)];
    Answer {
        text: format!("{by}{}", said.text),
        doubts: doubts.into_iter().flatten().collect(),
        ..said
    }
}

/// "nginx 79,900 (11.9)".
fn figure(view: &CellView, index: usize) -> String {
    let standing = &view.standings[index];
    let metric = view.ranking.metric;
    let [first, second] = [metric, beside(metric)].map(|metric| standing.shown(metric));
    format!("{} {first} ({second})", standing.name)
}

/// Two contenders: the better one first, and the verdict in its own words.
fn of_pair(view: &CellView, only: &Reading) -> Answer {
    let (this, that) = (only.this, only.that);
    let said = verdict(&only.verdict);
    let Some(ahead) = only.ahead() else {
        let both = [this, that].map(|index| figure(view, index)).join(" ~ ");
        let said = match only.measured() {
            Some(measured) => format!("{measured}, {said}"),
            None => said,
        };
        let tone = match only.verdict {
            Verdict::NoDifference { .. } => Tone::Answer,
            _ => Tone::Caution,
        };
        return Answer::new(tone, format!("{both}: {said}"));
    };
    let behind = if ahead == this { that } else { this };
    let order = [ahead, behind].map(|index| figure(view, index)).join(" > ");
    Answer::new(Tone::Answer, format!("{order}: {said}"))
}

/// Each contender against the plan's reference, if nothing else was compared.
fn against(view: &CellView, readings: &[Reading]) -> Option<Answer> {
    let reference = view.run.plan.reference?;
    let is_of = |reading: &Reading| [reading.this, reading.that].contains(&reference);
    if !readings.iter().all(is_of) {
        return None;
    }
    let other = |one: &Reading| if one.this == reference { one.that } else { one.this };
    let those = |is: &dyn Fn(&Reading) -> bool| -> Vec<usize> {
        readings.iter().filter(|one| is(one)).map(other).collect()
    };
    let same = |one: &Reading| matches!(one.verdict, Verdict::NoDifference { .. });
    let none = |one: &Reading| matches!(one.verdict, Verdict::Withheld { .. });
    let ahead = those(&|one| one.ahead().is_some_and(|index| index != reference));
    let behind = those(&|one| one.ahead() == Some(reference));
    let open = those(&|one| one.ahead().is_none() && !same(one) && !none(one));
    let figures = |list: &[usize]| list.iter().map(|&n| figure(view, n)).collect::<Vec<_>>();
    let names =
        |list: &[usize]| list.iter().map(|&n| view.standings[n].name.clone()).collect::<Vec<_>>();
    let figured = [
        ("ahead", figures(&ahead)),
        ("behind", figures(&behind)),
        ("no relevant difference", figures(&those(&same))),
    ];
    let why = reasons(&view.run, readings).map_or_else(String::new, |why| format!(" ({why})"));
    let withheld = format!("withheld{why}");
    let others = |list: &[usize]| match list.len() {
        n if n == readings.len() => vec![format!("all {n} others")],
        _ => names(list),
    };
    let named = [("not told apart", others(&open)), (withheld.as_str(), others(&those(&none)))];
    let says_something = figured.iter().any(|(_, of)| !of.is_empty());
    let tone = if says_something { Tone::Answer } else { Tone::Caution };
    let said = figured.iter().chain(&named).filter(|(_, of)| !of.is_empty());
    let said: Vec<String> = said.map(|(what, of)| format!("{what}: {}", of.join(" | "))).collect();
    Some(Answer::new(tone, format!("against {}; {}", figure(view, reference), said.join("; "))))
}

/// The groups of the analysis, if there are at least two. They rank the contenders whose verdicts are not withheld,
/// and name the others.
fn groups(view: &CellView) -> Option<Answer> {
    let mut rankings = view.run.analysis.rankings.iter();
    let ranking = rankings.find(|one| one.metric == view.ranking.metric)?;
    let first = ranking.places.first()?;
    if ranking.places.iter().all(|place| place.letters == first.letters) {
        return None;
    }
    let shown = |place: &RankedContender| {
        let figure = figure(view, place.contender);
        if ranking.overlapping { format!("{figure} [{}]", plain(&place.letters)) } else { figure }
    };
    let mut text = String::new();
    let before = std::iter::once(None).chain(ranking.places.iter().map(Some));
    for (before, place) in before.zip(&ranking.places) {
        text += match before {
            None => "",
            Some(_) if ranking.overlapping => ", ",
            Some(before) if before.letters == place.letters => " ~ ",
            Some(_) => " > ",
        };
        text += &shown(place);
    }
    if ranking.overlapping {
        text += "; contenders that share a letter were not told apart";
    }
    if !ranking.unranked.is_empty() {
        let name = |&index: &usize| view.standings[index].name.clone();
        let names: Vec<String> = ranking.unranked.iter().map(name).collect();
        text += &format!("; not ranked: {}", names.join(" | "));
    }
    Some(Answer::new(Tone::Answer, text))
}

/// The places of the ranking, if there are at least two.
fn places(view: &CellView) -> Option<Answer> {
    let place = |place: &Vec<usize>| {
        place.iter().map(|&index| figure(view, index)).collect::<Vec<_>>().join(" ~ ")
    };
    let places: Vec<String> = view.ranking.places.iter().map(place).collect();
    let note = view.ranking.note(&view.standings).filter(|note| note.contains("not measured"));
    let note = note.map_or_else(String::new, |note| format!("; {note}"));
    (places.len() > 1).then(|| Answer::new(Tone::Answer, format!("{}{note}", places.join(" > "))))
}

/// Who leads if the places do not separate the contenders, and what was measured of them.
fn undecided(view: &CellView) -> Answer {
    let readings: Vec<Reading> = view.run.verdicts.iter().map(Reading::new).collect();
    let order = Order::new(view.ranking.metric, &readings, view.ranking.order());
    let plan = &view.run.plan;
    let said = first_place(&order, &plan.contenders, plan.reference);
    let order: Vec<usize> = view.ranking.order().collect();
    let seen = match order.as_slice() {
        [] => String::new(),
        few if few.len() <= NAMED_MAX => {
            few.iter().map(|&index| figure(view, index)).collect::<Vec<_>>().join(" ~ ")
        }
        [best, .., worst] => {
            let shown = |index: &usize| view.standings[*index].shown(view.ranking.metric);
            format!("{} to {}", shown(best), shown(worst))
        }
        [only] => figure(view, *only),
    };
    let tone = if said.is_answer { Tone::Answer } else { Tone::Caution };
    let text = said.text.trim_end_matches('.');
    let seen = if seen.is_empty() { seen } else { format!("; {seen}") };
    Answer::new(tone, format!("{text}{seen}"))
}

/// How many verdicts are withheld and why.
fn withheld(run: &RunRecord, readings: &[Reading]) -> Option<String> {
    let is_withheld = |one: &&Reading| matches!(one.verdict, Verdict::Withheld { .. });
    let count = readings.iter().filter(is_withheld).count();
    let why = reasons(run, readings)?;
    Some(format!("{count} of {} verdicts withheld: {why}", readings.len()))
}

/// Why verdicts are withheld: the names of checks, whose findings say the rest, and other reasons in full.
fn reasons(run: &RunRecord, readings: &[Reading]) -> Option<String> {
    let mut reasons: Vec<String> = Vec::new();
    for reading in readings {
        let Verdict::Withheld { reason } = &reading.verdict else { continue };
        let check = reason.split_once(" on ").map_or(reason.as_str(), |(check, _)| check);
        let is_check = run.findings.iter().any(|finding| finding.check == check);
        let short = if is_check { check.to_owned() } else { reason.clone() };
        if !reasons.contains(&short) {
            reasons.push(short);
        }
    }
    let further = reasons.len().saturating_sub(REASONS_MAX);
    reasons.truncate(REASONS_MAX);
    let more = match further {
        0 => String::new(),
        n => format!(" and {}", counted(n as u64, "further reason")),
    };
    (!reasons.is_empty()).then(|| format!("{}{more}", reasons.join("; ")))
}

/// Whose throughput is a bound, and by which check, if the answer does not mark it.
fn bounds(view: &CellView, said: &str) -> Option<String> {
    let is_silent = |s: &Standing| s.is_bound && !said.contains(&figure(view, s.index));
    let acting = || view.run.findings.iter().filter(|finding| finding.acts(Severity::Bound));
    let names: Vec<&str> =
        view.standings.iter().filter(|s| is_silent(s)).map(|s| s.name.as_str()).collect();
    let mut checks: Vec<String> = acting().map(|finding| plain(&finding.check)).collect();
    checks.sort();
    checks.dedup();
    (!names.is_empty()).then(|| {
        format!("throughput is a lower bound ({}): {}", listed(&checks), names.join(" | "))
    })
}

/// Whose requests failed.
fn failing(view: &CellView) -> Option<String> {
    let failing = view.standings.iter().filter(|standing| standing.has_errors());
    let names: Vec<String> =
        failing.map(|standing| format!("{} {}", standing.name, standing.errors())).collect();
    (!names.is_empty()).then(|| format!("requests failed: {}", names.join(" | ")))
}

#[cfg(test)]
mod tests {
    use record::PairVerdict;
    use units::Share;

    use super::*;
    use crate::cells::cells;
    use crate::testdata;

    const MARGIN: Share = Share(0.02);

    /// The answer of the middle cell of three, where `say` gives the verdicts on throughput.
    fn line(mut run: RunRecord, say: impl Fn(&PairVerdict) -> Verdict) -> String {
        run.findings.clear();
        run.verdicts.retain(|pair| pair.metric == Metric::Throughput);
        run.verdicts.iter_mut().for_each(|pair| pair.verdict = say(pair));
        let cells = cells(&run);
        answer(&cells[1], &cells).line()
    }

    fn from_estimate(pair: &PairVerdict) -> Verdict {
        let e = pair.estimate.unwrap();
        Verdict::Ratio { ratio: e.ratio, low: e.low, high: e.high }
    }

    /// Without the groups that the made-up analysis has.
    fn plain_run() -> RunRecord {
        let mut run = testdata::celled();
        run.analysis.rankings.clear();
        run
    }

    #[test]
    fn who_is_told_apart_is_ranked_with_figures_and_cpu_time() {
        let said = line(plain_run(), from_estimate);
        let names: Vec<&str> = said.split(" > ").map(|part| &part[..13.min(part.len())]).collect();
        assert_eq!(names, ["joust reactor", "joust worker ", "joust prefork"], "{said}");
        assert_eq!(said.matches('(').count(), 3, "each with its CPU time: {said}");
    }

    #[test]
    fn the_groups_of_the_analysis_rank_those_who_can_be() {
        let said = line(testdata::celled(), |_| Verdict::Withheld { reason: "why".to_owned() });
        assert!(said.contains(" [a], joust prefork"), "{said}");
        assert!(said.contains(" [ab]; contenders that share a letter"), "{said}");
        assert!(
            said.ends_with("not ranked: joust worker; 3 of 3 verdicts withheld: why"),
            "{said}"
        );
        let mut run = testdata::celled();
        let ranking = &mut run.analysis.rankings[0];
        (ranking.overlapping, ranking.unranked) = (false, Vec::new());
        ranking.places[1].letters = "b".to_owned();
        let said = line(run, from_estimate);
        assert!(said.contains(") > joust prefork") && !said.contains('['), "{said}");
    }

    #[test]
    fn where_all_are_held_against_one_the_answer_says_on_which_side_they_are() {
        let mut run = plain_run();
        run.plan.reference = Some(2);
        run.verdicts.retain(|pair| [pair.a, pair.b].contains(&2));
        let said = line(run.clone(), from_estimate);
        assert!(said.starts_with("against joust worker "), "{said}");
        let [ahead, behind] = ["; ahead: joust reactor", "; behind: joust prefork"];
        assert!(said.contains(ahead) && said.contains(behind), "{said}");
        let said = line(run, |pair| match pair.a.min(pair.b) {
            0 => Verdict::Undecided { more_blocks: Some(9), margin: MARGIN },
            _ => Verdict::NoDifference { margin: MARGIN },
        });
        let same = "; no relevant difference: joust prefork";
        assert!(said.contains(same), "{said}");
        assert!(said.contains("; not told apart: joust reactor"), "{said}");
    }

    #[test]
    fn two_contenders_get_their_verdict() {
        let mut run = plain_run();
        run.verdicts.retain(|pair| pair.a.max(pair.b) == 1);
        let said = line(run.clone(), |_| Verdict::Ratio { ratio: 2.0, low: 1.9, high: 2.1 });
        assert!(said.contains(" > joust prefork"), "{said}");
        assert!(said.ends_with("): 2.00x [1.90, 2.10]"), "{said}");
        let said = line(run, |_| Verdict::Withheld { reason: "bodies differ".to_owned() });
        assert!(said.contains(" ~ ") && said.contains(", withheld: bodies differ"), "{said}");
    }

    #[test]
    fn what_nobody_can_say_is_not_ranked() {
        let said =
            line(plain_run(), |_| Verdict::Undecided { more_blocks: Some(9), margin: MARGIN });
        assert!(
            said.starts_with("Nobody is proved ahead by requests/s: all 3 pairs are undecided; ")
        );
        assert_eq!(said.matches(" ~ ").count(), 2, "{said}");
    }

    #[test]
    fn a_cell_in_which_nothing_was_measured_says_so() {
        let mut run = plain_run();
        for visit in &mut run.visits {
            let (reason, log_tail) = (String::new(), String::new());
            visit.state = record::VisitState::Failed { reason, log_tail };
        }
        run.verdicts.clear();
        let said = line(run, from_estimate);
        assert_eq!(said, "no verdict: all 12 visits failed, so nothing was measured");
    }
}
