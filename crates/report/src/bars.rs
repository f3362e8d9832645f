//! The plot of absolute figures: a bar for each contender, best first, with the 95 % interval of the median over
//! visits and every visit as a point. Owns its geometry; must not know the page it stands in. Rows lie beside those of
//! [`crate::forest`]. Start reading at [`bars`].

use record::{Metric, RunRecord};
use stats::ConfidenceInterval;

use crate::cells::CellView;
use crate::drawing::Drawing;
use crate::figures::NONE;
use crate::headline::Ranking;
use crate::standing::{Standing, shown};
use crate::svg::{Anchor, Scale, Svg};

/// Width in units of the drawing; the page scales it.
pub(crate) const WIDTH: f64 = 500.0;
/// Height of a row, which has two lines of text.
pub(crate) const ROW: f64 = 36.0;
/// Height of what stands above the rows.
pub(crate) const TOP: f64 = 30.0;
/// Height of what stands below them.
pub(crate) const BELOW: f64 = 30.0;
/// Room for a name.
pub(crate) const NAME: f64 = 140.0;
pub(crate) const FONT: f64 = 13.0;
const PLOT: (f64, f64) = (150.0, 364.0);
/// Digits are narrower than letters.
const FONT_SMALL: f64 = 11.0;
const BAR: f64 = 15.0;
/// With more visits in a plot than this, they are left out: the interval stays.
const VISITS_MAX: usize = 1200;

/// The plot of a metric; `None` if no contender has a figure.
pub(crate) fn bars(view: &CellView, metric: Metric) -> Option<Drawing> {
    let CellView { run, standings, ranking, .. } = view;
    let ordered = best_first(standings, ranking, metric);
    let figures: Vec<Figure> = ordered.iter().map(|one| Figure::of(run, one, metric)).collect();
    let highest = figures.iter().filter_map(Figure::highest).fold(f64::NAN, f64::max);
    if highest.is_nan() {
        return None;
    }
    let scale = Scale::linear((0.0, highest), PLOT);
    let bottom = TOP + ordered.len() as f64 * ROW;
    let mut svg = Svg::default();
    axis(&mut svg, &scale, bottom, metric);
    let draws_visits = run.visits.len() <= VISITS_MAX;
    for (at, (standing, figure)) in ordered.iter().zip(&figures).enumerate() {
        let row = row(standing, figure, metric, &scale, draws_visits);
        svg.row(standing.number, TOP + at as f64 * ROW, &row);
    }
    let said: Vec<String> =
        ordered.iter().map(|one| format!("{} {}", one.name, value(one, metric))).collect();
    let title = metric.info().title;
    let about = format!("{title}, {}: {}.", metric.info().best_first, said.join("; "));
    Some(Drawing { svg, height: bottom + BELOW, about })
}

/// The contenders by their figures of a metric, best first; those without one come last.
pub(crate) fn best_first<'a>(
    standings: &'a [Standing],
    ranking: &Ranking,
    metric: Metric,
) -> Vec<&'a Standing> {
    let place = |one: &Standing| ranking.order().position(|index| index == one.index);
    let mut ordered: Vec<&Standing> = standings.iter().collect();
    // Equal figures keep the order of the ranking.
    ordered.sort_by_key(|one| place(one).unwrap_or(usize::MAX));
    ordered.sort_by(|left, right| match (left.value(metric), right.value(metric)) {
        (Some(left), Some(right)) if metric.more_is_better() => right.total_cmp(&left),
        (Some(left), Some(right)) => left.total_cmp(&right),
        (left, right) => left.is_none().cmp(&right.is_none()),
    });
    ordered
}

/// A contender's figure with its unit: "79,900/s", "12.1 us".
pub(crate) fn value(standing: &Standing, metric: Metric) -> String {
    with_unit(&standing.shown(metric), metric)
}

/// Adds the unit of a metric to a figure that does not have it already.
fn with_unit(figure: &str, metric: Metric) -> String {
    match figure {
        NONE => "not available".to_owned(),
        _ => format!("{figure}{}", metric.info().unit.suffix()),
    }
}

/// What is drawn of a contender.
struct Figure {
    value: Option<f64>,
    /// 95 % interval of the median over visits; `None` with too few visits.
    interval: Option<ConfidenceInterval>,
    visits: Vec<f64>,
}

impl Figure {
    fn of(run: &RunRecord, standing: &Standing, metric: Metric) -> Self {
        let visits = run.measured(standing.index).filter_map(|visit| visit.value(metric));
        let visits: Vec<f64> = visits.filter(|value| value.is_finite() && *value >= 0.0).collect();
        Self {
            value: standing.value(metric),
            // The figure of a service time is of all requests together, and no median over visits.
            interval: match metric.service_quantile() {
                None => stats::quantile_interval(&visits, 0.5, visits.len() as f64),
                Some(_) => None,
            },
            visits,
        }
    }

    fn highest(&self) -> Option<f64> {
        let all = self.visits.iter().copied().chain(self.value);
        all.chain(self.interval.map(|interval| interval.high)).reduce(f64::max)
    }
}

fn axis(svg: &mut Svg, scale: &Scale, bottom: f64, metric: Metric) {
    svg.text("t head", (0.0, TOP - 12.0), Anchor::Start, "best first");
    let figure = if metric.service_quantile().is_some() { "all visits" } else { "median [95 %]" };
    svg.text("t head", (WIDTH, TOP - 12.0), Anchor::End, figure);
    for tick in scale.ticks(4) {
        let x = scale.at(tick);
        svg.line("grid down", (x, TOP), (x, bottom));
    }
    let mut foot = Svg::default();
    foot.line("rule", (0.0, 0.0), (WIDTH, 0.0));
    for tick in scale.ticks(4) {
        let text = if tick == 0.0 { "0".to_owned() } else { shown(metric, Some(tick)) };
        foot.text("t tick", (scale.at(tick), 16.0), Anchor::Middle, &text);
    }
    svg.foot(bottom, &foot);
}

fn row(
    standing: &Standing,
    figure: &Figure,
    metric: Metric,
    scale: &Scale,
    draws_visits: bool,
) -> Svg {
    let mut row = Svg::default();
    let centre = ROW / 2.0;
    let name = &standing.name;
    row.fitted("t name", (0.0, centre + 4.5), Anchor::Start, name, (NAME, FONT));
    if let Some(value) = figure.value {
        let end = scale.at(value);
        row.rect("bar", (PLOT.0, centre - BAR / 2.0), (end - PLOT.0, BAR), 2.0);
        if standing.is_bound && metric.is_rate() {
            // The server could do more: the bar goes on.
            row.path(
                "bar bound",
                &[(end + 2.0, centre - 6.0), (end + 10.0, centre), (end + 2.0, centre + 6.0)],
                true,
            );
        }
    }
    if draws_visits {
        for visit in &figure.visits {
            let title =
                format!("{name}, a visit: {}", with_unit(&shown(metric, Some(*visit)), metric));
            row.dot("visit small", (scale.at(*visit), centre), 2.4, &title);
        }
    }
    let values = match figure.interval {
        Some(ConfidenceInterval { low, high }) => {
            let (from, to) = (scale.at(low), scale.at(high));
            row.line("whisker ink", (from, centre), (to, centre));
            for end in [from, to] {
                row.line("whisker ink", (end, centre - 5.0), (end, centre + 5.0));
            }
            format!("[{}, {}]", shown(metric, Some(low)), shown(metric, Some(high)))
        }
        None if figure.visits.len() == 1 => "one visit".to_owned(),
        None if figure.visits.is_empty() => String::new(),
        None if metric.service_quantile().is_some() => {
            let ends = |of: fn(f64, f64) -> f64| figure.visits.iter().copied().reduce(of);
            format!("{} to {}", shown(metric, ends(f64::min)), shown(metric, ends(f64::max)))
        }
        None => format!("{} visits", figure.visits.len()),
    };
    let room = WIDTH - PLOT.1 - 6.0;
    let said = value(standing, metric);
    row.fitted("t said", (WIDTH, centre - 2.0), Anchor::End, &said, (room, FONT));
    row.fitted("t tick", (WIDTH, centre + 13.0), Anchor::End, &values, (room, FONT_SMALL));
    row
}
