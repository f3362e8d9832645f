//! Owns what the page's script knows: names, pairs, and the course of every visit, as one JSON object. Figures that a
//! reader needs without a script are not only here. Must not know layout. Start reading at [`of_run`].

use std::collections::BTreeMap;

use record::{Interval, LoadRecord, MachineSeries, Metric, RunRecord, Visit, VisitState};
use serde::Serialize;
use units::Nanos;

use crate::forest::{RatioMark, Trust, mark, words as verdict_words};
use crate::pairs::said;
use crate::standing::shown;
use crate::wording::{Reading, name_of, plain};

/// Points over time in the whole page: with more visits, each has fewer.
const POINTS_MAX: usize = 200_000;
/// Points over time of one visit, at most and at least.
const POINTS_OF_VISIT: (usize, usize) = (10, 240);
/// Up to this many visits, each brings the kernel's counters too.
const VISITS_WITH_COUNTERS: usize = 400;
/// Counters of a visit, at most: those that changed most often.
const COUNTERS_MAX: usize = 60;

/// What a script may want to draw.
#[derive(Serialize)]
struct ScriptData {
    contenders: Vec<String>,
    cells: Vec<String>,
    metrics: Vec<ScriptMetric>,
    /// Smaller differences do not matter, as a share.
    margin: f64,
    pairs: Vec<ScriptPair>,
    visits: Vec<ScriptVisit>,
    /// The words of verdicts, each once; pairs refer to them.
    words: Vec<String>,
}

#[derive(Serialize)]
struct ScriptMetric {
    name: &'static str,
    title: &'static str,
    twice: &'static str,
    higher: bool,
}

/// Cell, metric, first and second contender; ratio and interval of the first over the second, above 1 is better; what
/// is drawn ([`kind`]); words, as numbers of [`ScriptData::words`]: the verdict from the side of the first, from that of
/// the second, and as a table has it with the better one first; blocks.
type ScriptPair =
    (usize, usize, usize, usize, Option<f64>, Option<f64>, Option<f64>, u8, [usize; 3], u32);

/// A visit and its course. Times are seconds since the start of the load.
#[derive(Serialize)]
struct ScriptVisit {
    contender: usize,
    cell: usize,
    block: u32,
    /// "measured", "disturbed", "failed".
    state: &'static str,
    /// Its figures, with units.
    figures: String,
    #[serde(flatten)]
    course: Course,
}

/// The course of a load.
#[derive(Default, Serialize)]
struct Course {
    /// Where measuring begins.
    cut: f64,
    /// Ends of the spans that the figures are of.
    at: Vec<f64>,
    /// Good replies, per second.
    rate: Vec<f64>,
    /// Of service time, in milliseconds; null without a reply.
    p50: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
    /// Failed requests, per second.
    failed: Vec<f64>,
    /// When counters were read; before 0: before the load.
    read: Vec<f64>,
    /// Name of a counter and its change per second up to each reading.
    counters: Vec<(String, Vec<f64>)>,
}

/// The JSON of a run, safe inside of a script element.
pub(crate) fn of_run(record: &RunRecord) -> String {
    let mut words = Words::default();
    let pairs = record.verdicts.iter().map(|pair| {
        let better_first = Reading::new(pair);
        let reading = better_first.clone().seen_by(pair.a);
        let (ratio, low, high) = figures(&reading);
        let measured = reading.estimate.map_or(0, |estimate| estimate.blocks);
        let blocks = reading.short_of.map_or(measured, |short| short.blocks);
        let texts = [
            verdict_words(&reading).1,
            verdict_words(&better_first.clone().seen_by(pair.b)).1,
            said(&better_first),
        ];
        let texts = texts.map(|text| words.number(text));
        let metric = pair.metric as usize;
        (pair.cell, metric, pair.a, pair.b, ratio, low, high, kind(&reading), texts, blocks)
    });
    let pairs = pairs.collect();
    let budget = POINTS_MAX / record.visits.len().max(1);
    let points = budget.clamp(POINTS_OF_VISIT.0, POINTS_OF_VISIT.1);
    let with_counters = record.visits.len() <= VISITS_WITH_COUNTERS;
    json(&ScriptData {
        contenders: (0..record.plan.contenders.len())
            .map(|index| name_of(&record.plan.contenders, index))
            .collect(),
        cells: record.plan.cells.iter().map(|cell| plain(&cell.name)).collect(),
        metrics: Metric::all().map(metric).collect(),
        // A file that was edited may have any number.
        margin: record.plan.margin.0.clamp(0.0, 0.99),
        pairs,
        visits: record.visits.iter().map(|one| visit(one, points, with_counters)).collect(),
        words: words.all,
    })
}

/// The JSON of a load that is not part of a run.
pub(crate) fn of_load(load: &LoadRecord) -> String {
    let course = course(load, Nanos::ZERO, load.machine.as_deref(), POINTS_OF_VISIT.1);
    json(&ScriptData {
        contenders: Vec::new(),
        cells: Vec::new(),
        metrics: Vec::new(),
        margin: 0.0,
        pairs: Vec::new(),
        visits: vec![ScriptVisit {
            contender: 0,
            cell: 0,
            block: 0,
            state: "measured",
            figures: String::new(),
            course,
        }],
        words: Vec::new(),
    })
}

/// No `<` is left: it could end the element that the text stands in.
fn json(data: &ScriptData) -> String {
    let text = serde_json::to_string(data).expect("it has no map and finite numbers");
    text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

fn metric(metric: Metric) -> ScriptMetric {
    let info = metric.info();
    let higher = metric.more_is_better();
    ScriptMetric { name: info.name, title: info.title, twice: info.twice, higher }
}

/// Texts, each once, in the order in which they first came.
#[derive(Default)]
struct Words {
    all: Vec<String>,
    known: BTreeMap<String, usize>,
}

impl Words {
    /// The number of a text.
    fn number(&mut self, text: String) -> usize {
        *self.known.entry(text).or_insert_with_key(|text| {
            self.all.push(text.clone());
            self.all.len() - 1
        })
    }
}

/// Five digits are more than an interval has.
fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(0.0)
}

fn figures(reading: &Reading) -> (Option<f64>, Option<f64>, Option<f64>) {
    match mark(reading) {
        RatioMark::Interval { ratio, low, high, .. } => {
            (Some(short(ratio)), Some(short(low)), Some(short(high)))
        }
        RatioMark::From(bound) | RatioMark::UpTo(bound) => (Some(short(bound)), None, None),
        RatioMark::Reference | RatioMark::Nothing => (None, None, None),
    }
}

/// 0: an interval that proves a difference; 1: one that does not; 2: withheld; 3: a lower bound; 4: an upper bound;
/// 5: no figure.
fn kind(reading: &Reading) -> u8 {
    match mark(reading) {
        RatioMark::Interval { trust: Trust::Proved, .. } => 0,
        RatioMark::Interval { trust: Trust::Open, .. } => 1,
        RatioMark::Interval { trust: Trust::Withheld, .. } => 2,
        RatioMark::From(_) => 3,
        RatioMark::UpTo(_) => 4,
        RatioMark::Reference | RatioMark::Nothing => 5,
    }
}

fn visit(visit: &Visit, points: usize, with_counters: bool) -> ScriptVisit {
    let figures: Vec<String> = Metric::all()
        .filter_map(|metric| {
            let value = shown(metric, Some((metric.info().value)(visit)?));
            Some(format!("{} {value}{}", metric.info().column, metric.info().unit.suffix()))
        })
        .collect();
    let series = visit.surroundings.as_ref().map(|around| &around.series);
    let series = series.filter(|_| with_counters);
    let course = visit.load.as_ref().map(|load| course(load, visit.cut, series, points));
    ScriptVisit {
        contender: visit.contender,
        cell: visit.cell,
        block: visit.block + 1,
        state: match visit.state {
            VisitState::Measured => "measured",
            VisitState::Disturbed => "disturbed",
            VisitState::Failed { .. } => "failed",
        },
        figures: figures.join(", "),
        course: course.unwrap_or_default(),
    }
}

fn course(load: &LoadRecord, cut: Nanos, series: Option<&MachineSeries>, points: usize) -> Course {
    let mut course = Course { cut: seconds(cut), ..Course::default() };
    for joined in load.intervals.chunks(load.intervals.len().div_ceil(points).max(1)) {
        let mut whole = Interval::packed(joined[0].start, Nanos::ZERO);
        joined.iter().for_each(|interval| whole.merge(interval));
        let length = joined.iter().map(|interval| interval.length.as_secs_f64()).sum::<f64>();
        if length <= 0.0 {
            continue;
        }
        let millis = |span: Option<Nanos>| span.map(|span| short(span.as_millis_f64()));
        course.at.push(seconds(joined[joined.len() - 1].end()));
        course.rate.push(short(whole.ok as f64 / length));
        course.failed.push(short(whole.errors.total() as f64 / length));
        course.p50.push(millis(whole.service.quantile(0.5)));
        course.p99.push(millis(whole.service.quantile(0.99)));
        course.max.push(millis(whole.service.max()));
    }
    if let Some(series) = series {
        counters(&mut course, series);
    }
    course
}

/// Changes per second of the counters that moved at most readings.
fn counters(course: &mut Course, series: &MachineSeries) {
    // Readings count from the first one, which is before the load; the last one is made when the load is over.
    let end = course.at.last().copied().unwrap_or_default();
    let shift = end - series.at.last().map_or(0.0, |last| last.as_secs_f64());
    let on_axis = |at: &Nanos| ((at.as_secs_f64() + shift) * 1e4).round() / 1e4;
    course.read = series.at.iter().skip(1).map(on_axis).collect();
    let spans: Vec<f64> =
        series.at.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64().max(1e-6)).collect();
    let moved = |steps: &[i64]| steps.iter().filter(|step| **step != 0).count();
    let mut all: Vec<_> = series.counters.iter().filter(|(_, one)| moved(&one.steps) > 0).collect();
    all.sort_by_key(|(name, one)| (std::cmp::Reverse(moved(&one.steps)), name.as_str()));
    all.truncate(COUNTERS_MAX);
    all.sort_by_key(|(name, _)| name.as_str());
    course.counters = all
        .into_iter()
        .map(|(name, one)| {
            let per_second = one.steps.iter().zip(&spans).map(|(step, span)| *step as f64 / span);
            (plain(name), per_second.map(short).collect())
        })
        .collect();
}

/// Seconds to a tenth of a millisecond.
fn seconds(span: Nanos) -> f64 {
    (span.as_secs_f64() * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    #[test]
    fn the_data_is_json_that_cannot_end_its_element_and_has_every_pair_and_visit() {
        let mut run = testdata::run();
        run.plan.contenders[0].name = "</script><b>&amp;".to_owned();
        let text = of_run(&run);
        assert!(!text.contains(['<', '>', '&']));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["contenders"][0], "</script><b>&amp;");
        let lengths = ["pairs", "visits"].map(|name| value[name].as_array().unwrap().len());
        assert_eq!(lengths, [run.verdicts.len(), run.visits.len()]);
        let first = &value["visits"][0];
        assert_eq!(first["at"].as_array().unwrap().len(), first["p99"].as_array().unwrap().len());
    }

    #[test]
    fn a_ratio_in_the_data_is_above_one_where_the_first_is_better() {
        let run = testdata::run();
        let value: serde_json::Value = serde_json::from_str(&of_run(&run)).unwrap();
        let mut seen = 0;
        for pair in value["pairs"].as_array().unwrap().iter().filter(|pair| pair[7] == 0) {
            let index = |at: usize| pair[at].as_u64().unwrap() as usize;
            let metric = Metric::all().nth(index(1)).unwrap();
            let of = |contender| {
                let values: Vec<f64> =
                    run.measured(contender).filter_map(|visit| visit.value(metric)).collect();
                values.iter().sum::<f64>() / values.len() as f64
            };
            let (first, second) = (of(index(2)), of(index(3)));
            let is_better = if metric.more_is_better() { first > second } else { first < second };
            assert_eq!(pair[4].as_f64().unwrap() > 1.0, is_better, "{pair}");
            seen += 1;
        }
        assert!(seen > 10);
    }

    #[test]
    fn a_long_load_is_joined_and_loses_no_reply() {
        let mut load = testdata::load();
        let mut interval = load.intervals[0].clone();
        (interval.ok, interval.length) = (10, Nanos::from_millis(100));
        load.intervals = (0..1000)
            .map(|n| Interval { start: Nanos::from_millis(100 * n), ..interval.clone() })
            .collect();
        let course = course(&load, Nanos::ZERO, None, 240);
        assert!(course.at.len() <= 240 && course.at.len() >= 200, "{}", course.at.len());
        assert!(course.rate.iter().all(|rate| (rate - 100.0).abs() < 1e-6), "{:?}", course.rate);
        assert_eq!(course.at.last(), Some(&100.0));
    }
}
