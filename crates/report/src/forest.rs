//! The plot of ratios with their intervals: one row for each pair, named after the side that is ahead ("nginx over
//! lighttpd"). Better is always to the right, whatever the metric. Owns its geometry; must not know the page it
//! stands in. Start reading at [`forest`].

use record::{BoundCause, Metric, RunRecord, Verdict};

use crate::figures::ratio;
use crate::headline::Ranking;
use crate::pairs::{OVER, pair_name, readings_against, reference};
use crate::svg::{Anchor, Scale, Svg, cut};
use crate::wording::{Reading, name_of};

/// Width in units of the drawing; the page scales it.
pub(crate) const WIDTH: f64 = 880.0;
const PLOT: (f64, f64) = (310.0, 604.0);
const SAID: f64 = 612.0;
const ROW: f64 = 27.0;
const TOP: f64 = 42.0;
const BELOW: f64 = 46.0;
const FONT: f64 = 13.0;
/// Length of an arrow; the axis leaves room for one at its right end.
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
enum RatioMark {
    /// A point with its interval.
    Interval { ratio: f64, low: f64, high: f64, trust: Trust },
    /// An arrow to the right: at least this much.
    From(f64),
    /// There is no figure.
    Nothing,
}

/// How an interval may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// The first named is ahead.
    Proved,
    /// No difference was proved.
    Open,
    /// The verdict is withheld.
    Withheld,
}

impl Trust {
    fn class(self) -> &'static str {
        match self {
            Self::Proved => "",
            Self::Open => " open",
            Self::Withheld => " open void",
        }
    }
}

struct Row {
    name: String,
    said: String,
    mark: RatioMark,
}

/// The plot for a metric; `None` if no pair was compared on it.
pub(crate) fn forest(record: &RunRecord, ranking: &Ranking, metric: Metric) -> Option<Drawing> {
    let held_against = reference(record, ranking, metric)?;
    let readings = readings_against(record, ranking, metric, Some(held_against));
    let row = |reading: &Reading| Row {
        name: pair_name(record, reading),
        said: said(reading),
        mark: mark(reading),
    };
    let rows: Vec<Row> = readings.iter().map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let bottom = TOP + rows.len() as f64 * ROW;
    let scale = Scale::log(domain(&rows, record.plan.margin.0), (PLOT.0 + 8.0, PLOT.1 - ARROW));
    let mut svg = Svg::default();
    axis(&mut svg, &scale, bottom, record.plan.margin.0);
    legend(&mut svg, &scale, bottom);
    for (at, row) in rows.iter().enumerate() {
        draw(&mut svg, row, &scale, TOP + (at as f64 + 0.5) * ROW);
    }
    let said: Vec<String> = rows.iter().map(|row| format!("{}: {}", row.name, row.said)).collect();
    let reference = name_of(&record.plan.contenders, held_against);
    let title = metric.info().title;
    let about = format!("{title}, pairs with {reference}, better first. {}.", said.join("; "));
    Some(Drawing { svg, height: bottom + BELOW, about })
}

/// How the ratios of a metric are read, after its name.
pub(crate) fn caption(metric: Metric) -> String {
    format!("at 2x the first named {} the second", metric.info().twice)
}

/// Ratio, interval and verdict, for the space of one row.
fn said(reading: &Reading) -> String {
    let measured = reading.measured();
    let with = |what: &str| match &measured {
        Some(measured) => format!("{measured}, {what}"),
        None => what.to_owned(),
    };
    match &reading.verdict {
        Verdict::Ratio { .. } if reading.ahead().is_some() => measured.unwrap_or_default(),
        Verdict::AtLeast { ratio: bound, cause: BoundCause::WideInterval } => {
            with(&format!("at least {}", ratio(*bound)))
        }
        Verdict::AtLeast { ratio: bound, .. } | Verdict::AtMost { ratio: bound, .. } => {
            let seen =
                reading.estimate.map(|estimate| format!(" ({} seen)", ratio(estimate.ratio)));
            format!("at least {}{}", ratio(*bound), seen.unwrap_or_default())
        }
        Verdict::NoDifference { .. } => with("no difference"),
        Verdict::Ratio { .. } | Verdict::Undecided { .. } => with("undecided"),
        Verdict::Withheld { .. } => match &measured {
            Some(measured) => format!("withheld ({measured})"),
            None => "withheld".to_owned(),
        },
    }
}

fn mark(reading: &Reading) -> RatioMark {
    let interval = |trust| match reading.estimate {
        Some(e) => RatioMark::Interval { ratio: e.ratio, low: e.low, high: e.high, trust },
        None => RatioMark::Nothing,
    };
    match reading.verdict {
        Verdict::Ratio { ratio, low, high } => {
            let trust = if reading.ahead().is_some() { Trust::Proved } else { Trust::Open };
            RatioMark::Interval { ratio, low, high, trust }
        }
        Verdict::AtLeast { cause: BoundCause::WideInterval, .. } if reading.estimate.is_some() => {
            interval(Trust::Proved)
        }
        Verdict::AtLeast { ratio, .. } => RatioMark::From(ratio),
        // A reading never has one: it is turned so that its bound is a lower bound.
        Verdict::AtMost { .. } => RatioMark::Nothing,
        Verdict::NoDifference { .. } | Verdict::Undecided { .. } => interval(Trust::Open),
        Verdict::Withheld { .. } => interval(Trust::Withheld),
    }
}

/// From the smallest to the largest drawn value, including the margin, with some space on both sides.
fn domain(rows: &[Row], margin: f64) -> (f64, f64) {
    let (mut low, mut high) =
        (1.0 - 2.0 * margin.clamp(0.0, 0.4), 1.0 + 2.0 * margin.clamp(0.0, 0.4));
    for row in rows {
        let (from, to) = match row.mark {
            RatioMark::Interval { low, high, .. } => (low, high),
            RatioMark::From(bound) => (bound, bound),
            RatioMark::Nothing => continue,
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

/// What the columns are and which way is better, above the plot; what the band is, below it.
fn legend(svg: &mut Svg, scale: &Scale, bottom: f64) {
    let y = TOP - 14.0;
    svg.text("t head", (0.0, y), Anchor::Start, "pair, better first");
    svg.text("t head", (SAID, y), Anchor::Start, "ratio [95 %], verdict");
    let from = (scale.at(1.0) + 8.0).min(PLOT.1 - 150.0);
    svg.text("t side", (from, y), Anchor::Start, "the first is better \u{2192}");
    let below = "shaded: difference below the margin";
    svg.text("t faint", (PLOT.0, bottom + 36.0), Anchor::Start, below);
}

fn draw(svg: &mut Svg, row: &Row, scale: &Scale, y: f64) {
    let (name, room) = (&row.name, (PLOT.0 - 8.0, FONT));
    svg.fitted("t name", (0.0, y + 4.5), Anchor::Start, &label(name, room), room);
    let title = format!("{name}: {}", row.said);
    let mut class = "t said";
    match row.mark {
        RatioMark::Interval { ratio: middle, low, high, trust } => {
            let whisker = format!("whisker{}", trust.class());
            svg.line(&whisker, (scale.at(low), y), (scale.at(high), y));
            // Ends that the point would cover would only blur it.
            let is_wide = scale.at(high) - scale.at(low) > 14.0;
            for end in [low, high].into_iter().filter(|end| is_wide && scale.holds(*end)) {
                svg.line(&whisker, (scale.at(end), y - 5.0), (scale.at(end), y + 5.0));
            }
            svg.dot(&format!("mark{}", trust.class()), (scale.at(middle), y), 4.5, &title);
            if trust == Trust::Withheld {
                class = "t withheld";
            }
        }
        RatioMark::From(bound) => arrow(svg, scale.at(bound), y, &title),
        RatioMark::Nothing => class = "t withheld",
    }
    svg.fitted(class, (SAID, y + 4.5), Anchor::Start, &row.said, (WIDTH - SAID, FONT));
}

/// "nginx over lighttpd"; if it does not fit, each side is shortened separately, so that rows stay distinguishable.
fn label(name: &str, (room, size): (f64, f64)) -> String {
    let Some((this, that)) = name.split_once(OVER).filter(|_| cut(name, room, size) != name) else {
        return name.to_owned();
    };
    let half = room / 2.0 - 2.0 * size;
    format!("{}{OVER}{}", cut(this, half, size), cut(that, half, size))
}

/// An arrow from a bound into the open side.
fn arrow(svg: &mut Svg, x: f64, y: f64, title: &str) {
    let tip = x + ARROW;
    svg.line("whisker bound", (x, y), (tip, y));
    svg.line("whisker bound", (x, y - 6.0), (x, y + 6.0));
    let back = tip - 8.0;
    svg.path("mark bound", &[(tip, y), (back, y - 5.0), (back, y + 5.0)], true);
    svg.dot("target", (x, y), 9.0, title);
}

#[cfg(test)]
mod tests {
    use record::{Estimate, PairVerdict};
    use units::Share;

    use super::*;

    const THROUGHPUT: Metric = Metric::Throughput;
    const CPU: Metric = Metric::ServerCpu;

    fn stored(metric: Metric, (a, b): (usize, usize), verdict: Verdict) -> PairVerdict {
        PairVerdict { cell: 0, metric, a, b, estimate: None, verdict, short_of: None }
    }

    /// Who is named first, and the mark of the row.
    fn drawn(metric: Metric, sides: (usize, usize), verdict: Verdict) -> (usize, RatioMark) {
        let reading = Reading::new(&stored(metric, sides, verdict));
        (reading.this, mark(&reading))
    }

    #[test]
    fn who_is_ahead_is_named_first_and_stands_right_of_one_whatever_the_metric() {
        let twice = || Verdict::Ratio { ratio: 2.0, low: 1.6, high: 2.5 };
        let half = || Verdict::Ratio { ratio: 0.5, low: 0.4, high: 0.625 };
        let cases = [
            (THROUGHPUT, (0, 1), twice(), 0),
            (THROUGHPUT, (0, 1), half(), 1),
            // Twice the CPU time is worse.
            (CPU, (0, 1), twice(), 1),
            (CPU, (0, 1), half(), 0),
        ];
        for (metric, sides, verdict, first) in cases {
            let (this, mark) = drawn(metric, sides, verdict);
            let RatioMark::Interval { ratio, low, .. } = mark else { panic!("{mark:?}") };
            assert_eq!((this, ratio), (first, 2.0), "{metric:?}");
            assert!((low - 1.6).abs() < 1e-9);
        }
    }

    #[test]
    fn a_bound_points_to_the_right_from_whichever_side_it_was_stated() {
        let bound = || Verdict::AtLeast { ratio: 2.0, cause: BoundCause::Ceiling };
        assert_eq!(drawn(THROUGHPUT, (0, 1), bound()), (0, RatioMark::From(2.0)));
        assert_eq!(drawn(THROUGHPUT, (1, 0), bound().turned()), (0, RatioMark::From(2.0)));
        assert_eq!(drawn(CPU, (1, 0), bound()), (0, RatioMark::From(2.0)));
        assert_eq!(drawn(CPU, (0, 1), bound().turned()), (0, RatioMark::From(2.0)));
    }

    #[test]
    fn every_row_has_its_ratio_and_interval_whatever_the_verdict() {
        let estimate =
            Estimate { ratio: 1.02, low: 0.97, high: 1.08, blocks: 3, sd_ln: 0.1, p_holm: 0.3 };
        let margin = Share(0.02);
        let verdicts = [
            Verdict::Undecided { more_blocks: None, margin },
            Verdict::NoDifference { margin },
            Verdict::Withheld { reason: "bodies differ".to_owned() },
            Verdict::AtLeast { ratio: 0.97, cause: BoundCause::WideInterval },
        ];
        for verdict in verdicts {
            let pair = stored(THROUGHPUT, (0, 1), verdict);
            let reading = Reading::new(&PairVerdict { estimate: Some(estimate), ..pair });
            assert!(said(&reading).contains("1.02x [0.97, 1.08]"), "{}", said(&reading));
            assert!(matches!(mark(&reading), RatioMark::Interval { .. }), "{reading:?}");
        }
    }

    #[test]
    fn the_axis_holds_every_mark_and_the_margin() {
        let row = |mark| Row { name: String::new(), said: String::new(), mark };
        let interval =
            RatioMark::Interval { ratio: 1.0, low: 0.2, high: 1.5, trust: Trust::Withheld };
        let rows = [row(RatioMark::From(5.0)), row(interval), row(RatioMark::Nothing)];
        let (low, high) = domain(&rows, 0.02);
        assert!(low < 0.2 && high > 5.0);
        let (low, high) = domain(&[row(RatioMark::Nothing)], 0.02);
        assert!(low < 0.98 && high > 1.02);
    }
}
