//! Owns the parts that every plot uses: scales, ticks, escaped elements. Must not know what is plotted. It never
//! emits a coordinate that is not finite. Start reading at [`Scale`], then [`Svg`].
//!
//! Colours and fonts are classes. The page (or the picture) that contains a plot defines them, so one plot serves
//! light, dark and print.

use std::fmt::Write as _;

/// Mean width of a character over the font's size, for a proportional sans-serif; only used to
/// shorten what would not fit, so an error of a tenth does no harm.
const CHAR_WIDTH: f64 = 0.62;

/// A map from values to coordinates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    law: Law,
    domain: (f64, f64),
    range: (f64, f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Law {
    Linear,
    Log,
}

impl Scale {
    /// Equal steps for equal differences. A domain without width gets one.
    pub(crate) fn linear(domain: (f64, f64), range: (f64, f64)) -> Self {
        let (low, high) =
            if domain.0.is_finite() && domain.1.is_finite() { domain } else { (0.0, 1.0) };
        let domain = if high > low {
            (low, high)
        } else {
            let air = low.abs().max(1.0) / 2.0;
            (low - air, low + air)
        };
        Self { law: Law::Linear, domain, range }
    }

    /// Equal steps for equal ratios. A domain without width, or not above zero, gets a usable one.
    pub(crate) fn log(domain: (f64, f64), range: (f64, f64)) -> Self {
        let usable = domain.0.is_finite() && domain.1.is_finite() && domain.0 > 0.0;
        let (low, high) = if usable { domain } else { (0.5, 2.0) };
        let domain = if high > low { (low, high) } else { (low / 2.0, low * 2.0) };
        Self { law: Law::Log, domain, range }
    }

    /// The coordinate of a value; values outside the domain are placed on its edge.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let value = if value.is_nan() { low } else { value.clamp(low, high) };
        let share = match self.law {
            Law::Linear => (value - low) / (high - low),
            Law::Log => (value.ln() - low.ln()) / (high.ln() - low.ln()),
        };
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// Whether a value lies inside of the domain.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.domain.0..=self.domain.1).contains(&value)
    }

    /// Round values inside of the domain, at most about `most` of them.
    pub(crate) fn ticks(&self, most: usize) -> Vec<f64> {
        let (low, high) = self.domain;
        match self.law {
            Law::Log if high / low >= 8.0 => log_ticks(low, high, most),
            _ => linear_ticks(low, high, most),
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil();
    let count = ((high / step + 1e-9).floor() - first).clamp(0.0, 100.0) as usize;
    (0..=count).map(|n| (first + n as f64) * step).collect()
}

/// 1, 2 and 5 of each decade; 1 and 3, or every n-th power of ten, if those are too many.
fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
    let inside = |tick: &f64| *tick >= low * (1.0 - 1e-9) && *tick <= high * (1.0 + 1e-9);
    let of = |steps: &[f64], stride: usize| -> Vec<f64> {
        let powers = decades.clone().step_by(stride);
        powers.flat_map(|p| steps.iter().map(move |s| s * 10f64.powi(p))).filter(inside).collect()
    };
    let denser = [of(&[1.0, 2.0, 5.0], 1), of(&[1.0, 3.0], 1)];
    let fits = |ticks: &Vec<f64>| ticks.len() <= most;
    denser.into_iter().find(fits).unwrap_or_else(|| {
        let span = decades.clone().count();
        of(&[1.0], span.div_ceil(most.max(1)).max(1))
    })
}

/// Which end of a text lies at its coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// An SVG in the making: a string to which elements are added.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
}

impl Svg {
    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(coordinate);
        let _ =
            write!(self.body, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    /// A rectangle, by its corner and its size, with rounded corners of radius `round`.
    pub(crate) fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), round: f64) {
        let [x, y, w, h, r] =
            [corner.0, corner.1, size.0.max(0.0), size.1.max(0.0), round].map(coordinate);
        let _ = write!(
            self.body,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}" rx="{r}"/>"#
        );
    }

    /// A circle with a text that is shown when it is pointed at.
    pub(crate) fn dot(&mut self, class: &str, centre: (f64, f64), radius: f64, title: &str) {
        let [x, y, r] = [centre.0, centre.1, radius].map(coordinate);
        let title = escaped(title);
        let _ = write!(
            self.body,
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r}"><title>{title}</title></circle>"#
        );
    }

    /// An area that is not seen, with a text that is shown when it is pointed at.
    pub(crate) fn titled_area(&mut self, corner: (f64, f64), size: (f64, f64), title: &str) {
        let [x, y, w, h] = [corner.0, corner.1, size.0.max(0.0), size.1.max(0.0)].map(coordinate);
        let title = escaped(title);
        let _ = write!(
            self.body,
            r#"<rect class="target" x="{x}" y="{y}" width="{w}" height="{h}"><title>{title}</title></rect>"#
        );
    }

    /// Straight segments through points; closed if asked.
    pub(crate) fn path(&mut self, class: &str, points: &[(f64, f64)], closed: bool) {
        let mut data = String::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(data, "{command}{} {}", coordinate(x), coordinate(y));
        }
        if closed {
            data.push('Z');
        }
        let _ = write!(self.body, r#"<path class="{class}" d="{data}"/>"#);
    }

    /// A text on one line.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        self.titled(class, at, anchor, text, "");
    }

    /// A text on one line that is cut to `room` (for a font of `size`); the whole is its title.
    pub(crate) fn fitted(
        &mut self,
        class: &str,
        at: (f64, f64),
        anchor: Anchor,
        text: &str,
        (room, size): (f64, f64),
    ) {
        let short = cut(text, room, size);
        let title = if short == text { "" } else { text };
        self.titled(class, at, anchor, &short, title);
    }

    fn titled(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str, title: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let [x, y] = [at.0, at.1].map(coordinate);
        let title = if title.is_empty() {
            String::new()
        } else {
            format!("<title>{}</title>", escaped(title))
        };
        let text = escaped(text);
        let _ = write!(
            self.body,
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{title}{text}</text>"#
        );
    }

    /// Adds all of `other`, moved by `(x, y)`.
    pub(crate) fn group(&mut self, x: f64, y: f64, other: &Self) {
        let [x, y] = [x, y].map(coordinate);
        let _ = write!(self.body, r#"<g transform="translate({x} {y})">{}</g>"#, other.body);
    }

    /// Adds the row of a contender, by its number in the run, moved down by `y`. The page hides rows of contenders
    /// that the reader does not want to see, and moves the others up.
    pub(crate) fn row(&mut self, contender: usize, y: f64, row: &Self) {
        let y = coordinate(y);
        let _ = write!(
            self.body,
            r#"<g class="row" data-c="{contender}" transform="translate(0 {y})">{}</g>"#,
            row.body
        );
    }

    /// Adds what is drawn of a contender, by its number in the run, where it is: a curve, which the page can hide.
    pub(crate) fn mark_of(&mut self, contender: usize, mark: &Self) {
        let _ = write!(self.body, r#"<g data-c="{contender}">{}</g>"#, mark.body);
    }

    /// Adds what stands below the rows, moved down by `y`; it moves up where rows are hidden.
    pub(crate) fn foot(&mut self, y: f64, foot: &Self) {
        let y = coordinate(y);
        let _ =
            write!(self.body, r#"<g class="foot" transform="translate(0 {y})">{}</g>"#, foot.body);
    }

    /// Horizontal strokes, each from its left end to the right by its length, as one element: thousands of small
    /// rectangles of one colour.
    pub(crate) fn strokes(&mut self, class: &str, width: f64, strokes: &[(f64, f64, f64)]) {
        let mut data = String::new();
        for &(x, y, length) in strokes {
            let [x, y, length] = [x, y, length].map(coordinate);
            let _ = write!(data, "M{x} {y}h{length}");
        }
        let width = coordinate(width);
        let _ = write!(self.body, r#"<path class="{class}" stroke-width="{width}" d="{data}"/>"#);
    }

    /// The whole element, with its name and description for those who cannot see it. `id` must be
    /// unique in its page.
    pub(crate) fn finish(self, id: &str, size: (f64, f64), title: &str, about: &str) -> String {
        let [width, height] = [size.0, size.1].map(coordinate);
        let (title, about) = (escaped(title), escaped(about));
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{id}-title {id}-desc"><title id="{id}-title">{title}</title><desc id="{id}-desc">{about}</desc>{}</svg>"#,
            self.body
        )
    }
}

/// A coordinate rounded to a tenth of a pixel; 0 if it is not finite, which no scale yields.
fn coordinate(value: f64) -> String {
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let text = format!("{value:.1}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text safe inside of an element or a quoted attribute; characters that XML forbids are replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// The text, or as much of it as fits into `room`, with an ellipsis.
pub(crate) fn cut(text: &str, room: f64, size: f64) -> String {
    let most = ((room / (size * CHAR_WIDTH)) as usize).max(2);
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    format!("{}\u{2026}", kept.trim_end())
}

/// Moves coordinates as little as possible, so that neighbours are at least `gap` apart, and inside `low..high` if
/// they fit. Keeps their order.
pub(crate) fn spread(wanted: &[f64], gap: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places = wanted.to_vec();
    let mut floor = low;
    for &index in &order {
        places[index] = places[index].max(floor);
        floor = places[index] + gap;
    }
    let mut ceiling = high;
    for &index in order.iter().rev() {
        places[index] = places[index].min(ceiling);
        ceiling = places[index] - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(linear_ticks(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(log_ticks(0.9, 12.0, 6), [1.0, 2.0, 5.0, 10.0]);
        for (low, high) in [(1e-9, 1e9), (0.97, 1.04), (3.0, 3.1), (1e-3, 1e4)] {
            let scale = Scale::log((low, high), (0.0, 100.0));
            let ticks = scale.ticks(8);
            assert!((1..=12).contains(&ticks.len()), "{low}..{high}: {ticks:?}");
            assert!(ticks.iter().all(|&t| t >= low * 0.999 && t <= high * 1.001), "{ticks:?}");
        }
    }

    #[test]
    fn no_scale_yields_what_is_not_finite() {
        let hostile = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300, 1e-300];
        for low in hostile {
            for high in hostile {
                let scales =
                    [Scale::log((low, high), (0.0, 9.0)), Scale::linear((low, high), (0.0, 9.0))];
                for (scale, value) in scales.iter().flat_map(|s| hostile.map(|v| (s, v))) {
                    let at = scale.at(value);
                    assert!(
                        at.is_finite() && (-1e-6..=9.000_001).contains(&at),
                        "{scale:?} {value}"
                    );
                }
            }
        }
    }

    #[test]
    fn labels_are_moved_apart_in_order() {
        let places = spread(&[10.0, 11.0, 50.0, 12.0], 10.0, (0.0, 100.0));
        assert_eq!(places, [10.0, 20.0, 50.0, 30.0]);
        let low = spread(&[95.0, 96.0], 10.0, (0.0, 100.0));
        assert_eq!(low, [90.0, 100.0]);
    }

    #[test]
    fn markup_in_text_is_escaped() {
        assert_eq!(escaped("<a b='\"&\u{1b}"), "&lt;a b=&#39;&quot;&amp;\u{fffd}");
        assert_eq!(cut("a long name of a contender", 70.0, 12.0), "a long n\u{2026}");
    }
}
