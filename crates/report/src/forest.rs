//! The plot of ratios with their intervals, each contender against one reference. Better is always to the right,
//! whatever the metric. Owns its geometry; must not know the page it stands in, whose script draws the same against
//! another reference. Rows lie beside those of [`crate::bars`]. Start reading at [`forest`].

use record::{BoundCause, Metric, Verdict};

use crate::bars::{BELOW, FONT, NAME, ROW, TOP, best_first};
use crate::cells::CellView;
use crate::drawing::Drawing;
use crate::figures::{ratio_down, ratio_up};
use crate::pairs::reference;
use crate::svg::{Anchor, Scale, Svg};
use crate::wording::{Reading, name_of};

/// Width in units of the drawing; the page scales it.
pub(crate) const WIDTH: f64 = 500.0;
const PLOT: (f64, f64) = (150.0, 320.0);
const SAID: f64 = 328.0;
/// Length of an arrow; the axis leaves room for one at its ends.
const ARROW: f64 = 26.0;
/// Least distance between two labels of the axis.
const TICK_GAP: f64 = 34.0;
/// Ratios beyond this are drawn on the edge.
const RATIO_MAX: f64 = 1e6;

/// What is drawn in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RatioMark {
    /// A point with its interval.
    Interval { ratio: f64, low: f64, high: f64, trust: Trust },
    /// An arrow to the right: at least this much.
    From(f64),
    /// An arrow to the left: at most this much.
    UpTo(f64),
    /// The reference itself.
    Reference,
    /// There is no figure.
    Nothing,
}

/// How an interval may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// One of the two is proved better.
    Proved,
    /// No difference was proved.
    Open,
    /// The verdict is withheld.
    Withheld,
}

impl Trust {
    /// Its class in a drawing.
    fn class(self) -> &'static str {
        match self {
            Self::Proved => "",
            Self::Open => " open",
            Self::Withheld => " open void",
        }
    }
}

/// A contender against the reference, as it is drawn and said.
pub(crate) struct RatioRow {
    pub(crate) name: String,
    /// Number in the whole run.
    pub(crate) number: usize,
    /// Ratio and interval; empty if there is none.
    pub(crate) ratio: String,
    /// The verdict, in a word or a few.
    pub(crate) said: String,
    pub(crate) mark: RatioMark,
}

/// The plot for a metric against the plan's reference or the best; `None` if no pair was compared on it.
pub(crate) fn forest(view: &CellView, metric: Metric) -> Option<Drawing> {
    let held_against = reference(&view.run, &view.ranking, metric)?;
    let rows = rows(view, metric, held_against);
    let name = name_of(&view.run.plan.contenders, held_against);
    let bottom = TOP + rows.len() as f64 * ROW;
    let margin = view.run.plan.margin.0;
    let scale = Scale::log(domain(&rows, margin), (PLOT.0 + ARROW / 2.0, PLOT.1 - ARROW));
    let mut svg = Svg::default();
    axis(&mut svg, &scale, bottom, margin);
    for (at, row) in rows.iter().enumerate() {
        svg.row(row.number, TOP + at as f64 * ROW, &drawn(row, &scale));
    }
    let said: Vec<String> = rows.iter().map(RatioRow::sentence).collect();
    let title = metric.info().title;
    let about = format!("{title}, times as good as {name}. {}.", said.join("; "));
    Some(Drawing { svg, height: bottom + BELOW, about })
}

/// How the ratios of a metric against a reference are read.
pub(crate) fn caption(view: &CellView, metric: Metric) -> Option<String> {
    let reference = reference(&view.run, &view.ranking, metric)?;
    let name = name_of(&view.run.plan.contenders, reference);
    Some(format!("Times as good as {name}: at 2x a contender {} {name}", metric.info().twice))
}

/// Every contender that was compared with the reference, and the reference, best first.
pub(crate) fn rows(view: &CellView, metric: Metric, reference: usize) -> Vec<RatioRow> {
    let readings: Vec<Reading> = view
        .run
        .verdicts
        .iter()
        .filter(|pair| pair.metric == metric && [pair.a, pair.b].contains(&reference))
        .map(Reading::new)
        .collect();
    let row = |standing: &&crate::standing::Standing| {
        let blank = |ratio: &str, mark| RatioRow {
            name: standing.name.clone(),
            number: standing.number,
            ratio: ratio.to_owned(),
            said: String::new(),
            mark,
        };
        if standing.index == reference {
            return Some(blank("1x, the reference", RatioMark::Reference));
        }
        let reading = readings.iter().find(|one| one.is_between(standing.index, reference))?;
        let reading = reading.clone().seen_by(standing.index);
        let (ratio, said) = words(&reading);
        Some(RatioRow { said, ..blank(&ratio, mark(&reading)) })
    };
    best_first(&view.standings, &view.ranking, metric).iter().filter_map(row).collect()
}

impl RatioRow {
    fn sentence(&self) -> String {
        let parts = [self.ratio.as_str(), self.said.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}: {}", self.name, parts.join(", "))
    }
}

/// Ratio and verdict of a reading from the side of its first contender.
pub(crate) fn words(reading: &Reading) -> (String, String) {
    let measured = reading.ratio_and_interval();
    let short = if reading.short_of.is_some() { ", preliminary" } else { "" };
    let (ratio, said) = match &reading.verdict {
        Verdict::Ratio { low, .. } if *low > 1.0 => (measured, "better".to_owned()),
        Verdict::Ratio { high, .. } if *high < 1.0 => (measured, "worse".to_owned()),
        Verdict::AtLeast { ratio: bound, cause } => bound_words(
            (&format!("at least {}", ratio_down(*bound)), *cause),
            ("better", *bound > 1.0),
            measured,
        ),
        Verdict::AtMost { ratio: bound, cause } => bound_words(
            (&format!("at most {}", ratio_up(*bound)), *cause),
            ("worse", *bound < 1.0),
            measured,
        ),
        Verdict::NoDifference { .. } => (measured, "no difference".to_owned()),
        Verdict::Ratio { .. } | Verdict::Undecided { .. } => (measured, "undecided".to_owned()),
        Verdict::Withheld { .. } => {
            (measured.map(|ratio| format!("({ratio})")), "withheld".to_owned())
        }
    };
    (ratio.unwrap_or_default(), format!("{said}{short}"))
}

/// A bound of a ceiling replaces the ratio, which is the generator's; that of a wide interval stands below it.
fn bound_words(
    (bound, cause): (&str, BoundCause),
    (side, is_proved): (&str, bool),
    measured: Option<String>,
) -> (Option<String>, String) {
    let side = if is_proved { side } else { "undecided" };
    match (cause, measured) {
        (BoundCause::WideInterval, Some(measured)) => (Some(measured), format!("{side}, {bound}")),
        _ => (Some(bound.to_owned()), format!("{side}, a bound")),
    }
}

/// What is drawn of a reading from the side of its first contender.
pub(crate) fn mark(reading: &Reading) -> RatioMark {
    let interval = |trust| match reading.estimate {
        Some(e) => RatioMark::Interval { ratio: e.ratio, low: e.low, high: e.high, trust },
        None => RatioMark::Nothing,
    };
    match reading.verdict {
        Verdict::Ratio { ratio, low, high } => {
            let is_proved = low > 1.0 || high < 1.0;
            let trust = if is_proved { Trust::Proved } else { Trust::Open };
            RatioMark::Interval { ratio, low, high, trust }
        }
        Verdict::AtLeast { cause: BoundCause::WideInterval, .. }
        | Verdict::AtMost { cause: BoundCause::WideInterval, .. }
            if reading.estimate.is_some() =>
        {
            interval(Trust::Proved)
        }
        Verdict::AtLeast { ratio, .. } => RatioMark::From(ratio),
        Verdict::AtMost { ratio, .. } => RatioMark::UpTo(ratio),
        Verdict::NoDifference { .. } | Verdict::Undecided { .. } => interval(Trust::Open),
        Verdict::Withheld { .. } => interval(Trust::Withheld),
    }
}

/// From the smallest to the largest drawn value, including the margin, with some space on both sides.
fn domain(rows: &[RatioRow], margin: f64) -> (f64, f64) {
    let margin = 2.0 * margin.clamp(0.0, 0.4);
    let (mut low, mut high) = (1.0 - margin, 1.0 + margin);
    for row in rows {
        let (from, to) = match row.mark {
            RatioMark::Interval { low, high, .. } => (low, high),
            RatioMark::From(bound) | RatioMark::UpTo(bound) => (bound, bound),
            RatioMark::Reference | RatioMark::Nothing => continue,
        };
        (low, high) = (low.min(from), high.max(to));
    }
    let (low, high) = (low.max(1.0 / RATIO_MAX), high.min(RATIO_MAX));
    let air = (high / low).powf(0.07).max(1.01);
    (low / air, high * air)
}

fn axis(svg: &mut Svg, scale: &Scale, bottom: f64, margin: f64) {
    svg.text("t head", (PLOT.0, TOP - 12.0), Anchor::Start, "\u{2190} worse");
    svg.text("t head", (PLOT.1 - 8.0, TOP - 12.0), Anchor::End, "better \u{2192}");
    svg.text("t head", (SAID, TOP - 12.0), Anchor::Start, "times as good [95 %]");
    let (low, high) = (scale.at(1.0 - margin.clamp(0.0, 0.99)), scale.at(1.0 + margin));
    svg.rect("band down", (low, TOP), (high - low, bottom - TOP), 0.0);
    let mut foot = Svg::default();
    foot.line("rule", (0.0, 0.0), (WIDTH, 0.0));
    let one = scale.at(1.0);
    let mut labelled = f64::NEG_INFINITY;
    for tick in scale.ticks(5) {
        let x = scale.at(tick);
        svg.line("grid down", (x, TOP), (x, bottom));
        let is_free = x - labelled >= TICK_GAP && (x - one).abs() >= TICK_GAP;
        if is_free && tick != 1.0 {
            foot.text("t tick", (x, 16.0), Anchor::Middle, &tick_text(tick));
            labelled = x;
        }
    }
    foot.text("t tick", (one, 16.0), Anchor::Middle, "1x");
    svg.line("axis down", (one, TOP), (one, bottom));
    svg.foot(bottom, &foot);
}

fn tick_text(tick: f64) -> String {
    let text = format!("{tick:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if (0.001..1e4).contains(&tick) { format!("{short}x") } else { format!("{tick:.0e}x") }
}

fn drawn(row: &RatioRow, scale: &Scale) -> Svg {
    let mut svg = Svg::default();
    let y = ROW / 2.0;
    svg.fitted("t name", (0.0, y + 4.5), Anchor::Start, &row.name, (NAME, FONT));
    let title = row.sentence();
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
        }
        RatioMark::From(bound) => arrow(&mut svg, scale.at(bound), ARROW, &title),
        RatioMark::UpTo(bound) => arrow(&mut svg, scale.at(bound), -ARROW, &title),
        RatioMark::Reference => {
            let x = scale.at(1.0);
            svg.path("mark self", &[(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)], true);
        }
        RatioMark::Nothing => {}
    }
    let class = match row.mark {
        RatioMark::Interval { trust: Trust::Withheld, .. } | RatioMark::Nothing => "t withheld",
        _ => "t said",
    };
    let room = (WIDTH - SAID, FONT);
    // Without a ratio, the verdict has both lines.
    let (first, second) = match row.ratio.as_str() {
        "" => row.said.split_once(", ").unwrap_or((&row.said, "")),
        ratio => (ratio, row.said.as_str()),
    };
    let lines = match (first, second) {
        (text, "") => vec![(y + 4.5, class, text)],
        (ratio, said) => vec![(y - 2.0, class, ratio), (y + 13.0, "t tick", said)],
    };
    for (y, class, text) in lines {
        svg.fitted(class, (SAID, y), Anchor::Start, text, room);
    }
    svg
}

/// An arrow from a bound into the open side: to the right if `length` is positive.
fn arrow(svg: &mut Svg, x: f64, length: f64, title: &str) {
    let (y, tip) = (ROW / 2.0, x + length);
    svg.line("whisker bound", (x, y), (tip, y));
    svg.line("whisker bound", (x, y - 6.0), (x, y + 6.0));
    let back = tip - 8.0 * length.signum();
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

    /// What is drawn of contender 0.
    fn of_first(metric: Metric, sides: (usize, usize), verdict: Verdict) -> RatioMark {
        mark(&Reading::new(&stored(metric, sides, verdict)).seen_by(0))
    }

    #[test]
    fn better_is_right_of_one_whatever_the_metric_and_whoever_is_the_reference() {
        let twice = || Verdict::Ratio { ratio: 2.0, low: 1.6, high: 2.5 };
        let cases = [
            (THROUGHPUT, (0, 1), 2.0),
            (THROUGHPUT, (1, 0), 0.5),
            // Twice the CPU time is worse.
            (CPU, (0, 1), 0.5),
            (CPU, (1, 0), 2.0),
        ];
        for (metric, sides, expected) in cases {
            let mark = of_first(metric, sides, twice());
            let RatioMark::Interval { ratio, low, high, trust } = mark else { panic!("{mark:?}") };
            assert_eq!((ratio, trust), (expected, Trust::Proved), "{metric:?} {sides:?}");
            assert!(low < ratio && ratio < high);
        }
    }

    #[test]
    fn a_bound_points_away_from_the_reference_on_the_side_where_the_contender_is() {
        let bound = || Verdict::AtLeast { ratio: 2.0, cause: BoundCause::Ceiling };
        assert_eq!(of_first(THROUGHPUT, (0, 1), bound()), RatioMark::From(2.0));
        assert_eq!(of_first(THROUGHPUT, (1, 0), bound().turned()), RatioMark::From(2.0));
        assert_eq!(of_first(THROUGHPUT, (1, 0), bound()), RatioMark::UpTo(0.5));
        assert_eq!(of_first(CPU, (0, 1), bound()), RatioMark::UpTo(0.5));
        let reading = Reading::new(&stored(THROUGHPUT, (1, 0), bound())).seen_by(0);
        assert_eq!(words(&reading), ("at most 0.50x".to_owned(), "worse, a bound".to_owned()));
    }

    #[test]
    fn every_row_has_its_ratio_and_interval_whatever_the_verdict() {
        let estimate =
            Estimate { ratio: 1.02, low: 0.97, high: 1.08, blocks: 3, sd_ln: 0.1, p_holm: 0.3 };
        let margin = Share(0.02);
        let verdicts = [
            (Verdict::Undecided { more_blocks: None, margin }, "undecided"),
            (Verdict::NoDifference { margin }, "no difference"),
            (Verdict::Withheld { reason: "bodies differ".to_owned() }, "withheld"),
            (
                Verdict::AtLeast { ratio: 0.97, cause: BoundCause::WideInterval },
                "undecided, at least 0.97x",
            ),
        ];
        for (verdict, word) in verdicts {
            let pair = stored(THROUGHPUT, (0, 1), verdict);
            let reading =
                Reading::new(&PairVerdict { estimate: Some(estimate), ..pair }).seen_by(0);
            let (ratio, said) = words(&reading);
            assert!(ratio.contains("1.02x [0.97, 1.08]"), "{ratio}");
            assert_eq!(said, word);
            assert!(matches!(mark(&reading), RatioMark::Interval { .. }), "{reading:?}");
        }
    }

    #[test]
    fn the_axis_holds_every_mark_and_the_margin() {
        let row = |mark| RatioRow {
            name: String::new(),
            number: 0,
            ratio: String::new(),
            said: String::new(),
            mark,
        };
        let interval =
            RatioMark::Interval { ratio: 1.0, low: 0.2, high: 1.5, trust: Trust::Withheld };
        let rows = [row(RatioMark::From(5.0)), row(interval), row(RatioMark::Nothing)];
        let (low, high) = domain(&rows, 0.02);
        assert!(low < 0.2 && high > 5.0);
        let (low, high) = domain(&[row(RatioMark::UpTo(0.1))], 0.02);
        assert!(low < 0.1 && high > 1.02);
    }
}
