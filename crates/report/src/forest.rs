//! The plot of ratios with their intervals: one row a contender, held against the one that is
//! ranked first. Every ratio is turned so that right of 1 means "the reference is ahead", whatever
//! the metric. Owns its geometry; must not know the page it stands in. Start reading at [`forest`].

use record::{BoundCause, Metric, RunRecord, Verdict};

use crate::figures::ratio;
use crate::headline::Ranking;
use crate::pairs::{readings_of, reference};
use crate::svg::{Anchor, Scale, Svg};
use crate::wording::{Better, Reading, name_of, verdict, words};

/// Width in units of the drawing; the page scales it.
pub(crate) const WIDTH: f64 = 880.0;
const PLOT: (f64, f64) = (196.0, 640.0);
const SAID: f64 = 656.0;
const ROW: f64 = 27.0;
const TOP: f64 = 42.0;
const BELOW: f64 = 46.0;
const FONT: f64 = 13.0;
/// Length of an arrow; the axis leaves room for one on either side.
const ARROW: f64 = 34.0;
/// Least distance between two labels of the axis.
const TICK_GAP: f64 = 36.0;
/// Ratios beyond this are drawn on the edge.
const RATIO_MAX: f64 = 1e6;

/// A drawing and its size.
#[derive(Debug)]
pub(crate) struct Drawing {
    pub(crate) svg: Svg,
    pub(crate) height: f64,
    /// What it shows, in a sentence, for those who cannot see it.
    pub(crate) about: String,
}

/// What is drawn in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mark {
    /// A point with its interval; hollow where no difference was proved.
    Interval { ratio: f64, low: f64, high: f64, proved: bool },
    /// An arrow to the right: at least this much.
    From(f64),
    /// An arrow to the left: at most this much.
    UpTo(f64),
    /// Nothing may be drawn.
    Nothing,
}

struct Row {
    name: String,
    said: String,
    mark: Mark,
}

/// The plot for a metric; `None` where no pair was compared on it.
pub(crate) fn forest(record: &RunRecord, ranking: &Ranking, metric: Metric) -> Option<Drawing> {
    let held_against = reference(record, ranking, metric)?;
    let rows = rows(record, ranking, metric, held_against);
    if rows.is_empty() {
        return None;
    }
    let reference = name_of(&record.plan.contenders, held_against);
    let bottom = TOP + (rows.len() + 1) as f64 * ROW;
    let scale = Scale::log(domain(&rows, record.plan.margin.0), (PLOT.0 + ARROW, PLOT.1 - ARROW));
    let mut svg = Svg::default();
    axis(&mut svg, &scale, bottom, record.plan.margin.0);
    legend(&mut svg, &scale, &reference, bottom, metric);
    let y = TOP + ROW / 2.0;
    label(&mut svg, &reference, y);
    diamond(&mut svg, scale.at(1.0), y);
    svg.text("t faint", (SAID, y + 4.5), Anchor::Start, "the reference");
    for (at, row) in rows.iter().enumerate() {
        draw(&mut svg, row, &scale, TOP + (at as f64 + 1.5) * ROW);
    }
    let said: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.name, row.said)).collect();
    let about = format!("{} against {reference}. {}.", words(metric).title, said.join("; "));
    Some(Drawing { svg, height: bottom + BELOW, about })
}

/// Whose ratios the plot shows, after the name of the metric: "of each, over that of nginx".
pub(crate) fn caption(record: &RunRecord, ranking: &Ranking, metric: Metric) -> String {
    let name = reference(record, ranking, metric)
        .map_or_else(String::new, |index| name_of(&record.plan.contenders, index));
    match words(metric).better {
        Better::More => format!("of {name}, over that of each other"),
        Better::Less => format!("of each, over that of {name}"),
    }
}

fn rows(record: &RunRecord, ranking: &Ranking, metric: Metric, held_against: usize) -> Vec<Row> {
    let mut readings = readings_of(record, metric);
    readings.retain(|reading| [reading.this, reading.that].contains(&held_against));
    let other = |r: &Reading| if r.this == held_against { r.that } else { r.this };
    let place = |index: usize| ranking.order().position(|i| i == index).unwrap_or(usize::MAX);
    readings.sort_by_key(|reading| place(other(reading)));
    let row = |reading: Reading| {
        let index = other(&reading);
        let upright = upright(reading, held_against);
        let mark = mark(&upright);
        let name = name_of(&record.plan.contenders, index);
        Row { name, said: verdict(&upright.verdict), mark }
    };
    readings.into_iter().map(row).collect()
}

/// Turned so that a ratio above 1 puts the reference ahead.
fn upright(reading: Reading, held_against: usize) -> Reading {
    let reference_first = words(reading.metric).better == Better::More;
    let is_first = reading.this == held_against;
    if is_first == reference_first { reading } else { reading.turned() }
}

fn mark(reading: &Reading) -> Mark {
    let interval = |proved| match reading.estimate {
        Some(e) => Mark::Interval { ratio: e.ratio, low: e.low, high: e.high, proved },
        None => Mark::Nothing,
    };
    match reading.verdict {
        Verdict::Ratio { ratio, low, high } => {
            Mark::Interval { ratio, low, high, proved: low > 1.0 || high < 1.0 }
        }
        Verdict::AtLeast { cause: BoundCause::WideInterval, .. }
        | Verdict::AtMost { cause: BoundCause::WideInterval, .. }
            if reading.estimate.is_some() =>
        {
            interval(true)
        }
        Verdict::AtLeast { ratio, .. } => Mark::From(ratio),
        Verdict::AtMost { ratio, .. } => Mark::UpTo(ratio),
        Verdict::NoDifference { .. } | Verdict::Undecided { .. } => interval(false),
        Verdict::Withheld { .. } => Mark::Nothing,
    }
}

/// From the least to the greatest that is drawn, the margin included, with air on both sides.
fn domain(rows: &[Row], margin: f64) -> (f64, f64) {
    let (mut low, mut high) =
        (1.0 - 2.0 * margin.clamp(0.0, 0.4), 1.0 + 2.0 * margin.clamp(0.0, 0.4));
    for row in rows {
        let (from, to) = match row.mark {
            Mark::Interval { low, high, .. } => (low, high),
            Mark::From(bound) | Mark::UpTo(bound) => (bound, bound),
            Mark::Nothing => continue,
        };
        (low, high) = (low.min(from), high.max(to));
    }
    let (low, high) = (low.max(1.0 / RATIO_MAX), high.min(RATIO_MAX));
    let air = (high / low).powf(0.07).max(1.01);
    (low / air, high * air)
}

fn axis(svg: &mut Svg, scale: &Scale, bottom: f64, margin: f64) {
    let (low, high) = (scale.at(1.0 - margin.clamp(0.0, 0.99)), scale.at(1.0 + margin));
    svg.rect("band", (low, TOP), (high - low, bottom - TOP), 0.0);
    let one = scale.at(1.0);
    let mut labelled = f64::NEG_INFINITY;
    for tick in scale.ticks(9) {
        let x = scale.at(tick);
        svg.line("grid", (x, TOP), (x, bottom));
        let is_free = x - labelled >= TICK_GAP && (x - one).abs() >= TICK_GAP;
        if is_free || tick == 1.0 {
            svg.text("t tick", (x, bottom + 16.0), Anchor::Middle, &tick_text(tick));
            labelled = x;
        }
    }
    svg.line("axis", (scale.at(1.0), TOP), (scale.at(1.0), bottom));
    svg.line("rule", (0.0, TOP), (WIDTH, TOP));
    svg.line("rule", (0.0, bottom), (WIDTH, bottom));
}

fn tick_text(tick: f64) -> String {
    let text = format!("{tick:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if (0.001..1e4).contains(&tick) { format!("{short}x") } else { format!("{tick:.0e}x") }
}

/// Who is ahead on which side, above the plot, and what the band is, below it.
fn legend(svg: &mut Svg, scale: &Scale, reference: &str, bottom: f64, metric: Metric) {
    let one = scale.at(1.0);
    let y = TOP - 14.0;
    svg.text("t head", (0.0, y), Anchor::Start, "contender");
    svg.text("t head", (SAID, y), Anchor::Start, "verdict");
    let right = format!("{reference} is ahead \u{2192}");
    let (left_room, right_room) = (one - PLOT.0, PLOT.1 - one);
    if right_room > 120.0 {
        svg.fitted("t side", (one + 8.0, y), Anchor::Start, &right, (right_room, FONT));
    }
    if left_room > 120.0 {
        svg.text("t side", (one - 8.0, y), Anchor::End, "\u{2190} the other is ahead");
    }
    let below = format!("{}; shaded: too small a difference to matter", words(metric).direction());
    svg.text("t faint", (PLOT.0, bottom + 36.0), Anchor::Start, &below);
}

fn label(svg: &mut Svg, name: &str, y: f64) {
    svg.fitted("t name", (0.0, y + 4.5), Anchor::Start, name, (PLOT.0 - 12.0, FONT));
}

fn diamond(svg: &mut Svg, x: f64, y: f64) {
    svg.path("mark", &[(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)], true);
}

fn draw(svg: &mut Svg, row: &Row, scale: &Scale, y: f64) {
    label(svg, &row.name, y);
    let title = format!("{}: {}", row.name, row.said);
    match row.mark {
        Mark::Interval { ratio: middle, low, high, proved } => {
            let class = if proved { "whisker" } else { "whisker open" };
            svg.line(class, (scale.at(low), y), (scale.at(high), y));
            // Ends that the point would cover only blur it.
            let is_wide = scale.at(high) - scale.at(low) > 14.0;
            for end in [low, high].into_iter().filter(|end| is_wide && scale.holds(*end)) {
                svg.line(class, (scale.at(end), y - 5.0), (scale.at(end), y + 5.0));
            }
            let class = if proved { "mark" } else { "mark open" };
            svg.dot(class, (scale.at(middle), y), 4.5, &format!("{title} ({})", ratio(middle)));
        }
        Mark::From(bound) => arrow(svg, scale.at(bound), y, 1.0, &title),
        Mark::UpTo(bound) => arrow(svg, scale.at(bound), y, -1.0, &title),
        Mark::Nothing => {
            let beside = (scale.at(1.0) + 12.0).min(SAID);
            let room = (WIDTH - beside, FONT);
            svg.fitted("t withheld", (beside, y + 4.5), Anchor::Start, &row.said, room);
            return;
        }
    }
    svg.fitted("t said", (SAID, y + 4.5), Anchor::Start, &row.said, (WIDTH - SAID, FONT));
}

/// An arrow from a bound into the open side; `way` is 1 to the right and -1 to the left.
fn arrow(svg: &mut Svg, x: f64, y: f64, way: f64, title: &str) {
    let tip = x + way * ARROW;
    svg.line("whisker bound", (x, y), (tip, y));
    svg.line("whisker bound", (x, y - 6.0), (x, y + 6.0));
    let back = tip - way * 8.0;
    svg.path("mark bound", &[(tip, y), (back, y - 5.0), (back, y + 5.0)], true);
    svg.dot("target", (x, y), 9.0, title);
}

#[cfg(test)]
mod tests {
    use record::PairVerdict;

    use super::*;

    const THROUGHPUT: Metric = Metric::Throughput;
    const CPU: Metric = Metric::ServerCpu;

    /// The mark of contender 1 against contender 0, stored as `a` over `b`.
    fn marked(metric: Metric, (a, b): (usize, usize), verdict: Verdict) -> Mark {
        let stored = PairVerdict { cell: 0, metric, a, b, estimate: None, verdict, short_of: None };
        mark(&upright(Reading::new(&stored), 0))
    }

    fn middle(mark: Mark) -> f64 {
        let Mark::Interval { ratio, .. } = mark else { panic!("{mark:?}") };
        ratio
    }

    #[test]
    fn right_of_one_the_reference_is_ahead_whatever_the_metric() {
        let twice = || Verdict::Ratio { ratio: 2.0, low: 1.6, high: 2.5 };
        // The reference serves twice as much, or the other does.
        assert_eq!(middle(marked(THROUGHPUT, (0, 1), twice())), 2.0);
        assert_eq!(middle(marked(THROUGHPUT, (1, 0), twice())), 0.5);
        // The other needs twice the CPU time, or the reference does.
        assert_eq!(middle(marked(CPU, (1, 0), twice())), 2.0);
        assert_eq!(middle(marked(CPU, (0, 1), twice())), 0.5);
    }

    #[test]
    fn a_bound_points_into_its_open_side() {
        let bound = || Verdict::AtLeast { ratio: 2.0, cause: BoundCause::Ceiling };
        assert_eq!(marked(THROUGHPUT, (0, 1), bound()), Mark::From(2.0));
        assert_eq!(marked(THROUGHPUT, (1, 0), bound()), Mark::UpTo(0.5));
        assert_eq!(marked(CPU, (1, 0), bound()), Mark::From(2.0));
        assert_eq!(marked(CPU, (0, 1), bound()), Mark::UpTo(0.5));
    }

    #[test]
    fn the_axis_holds_every_mark_and_the_margin() {
        let row = |mark| Row { name: String::new(), said: String::new(), mark };
        let rows = [row(Mark::From(5.0)), row(Mark::UpTo(0.2)), row(Mark::Nothing)];
        let (low, high) = domain(&rows, 0.02);
        assert!(low < 0.2 && high > 5.0);
        let (low, high) = domain(&[row(Mark::Nothing)], 0.02);
        assert!(low < 0.98 && high > 1.02);
    }
}
