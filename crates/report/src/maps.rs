//! Owns what maps of a load share: their size, their axes, and how their fields are drawn. Time runs to the right in
//! seconds; what runs upwards is the map's own. Must not know what is counted. Start reading at [`axes`].

use units::Nanos;

use crate::figures::round;
use crate::svg::{Anchor, Scale, Svg};

/// Width in units of the drawing.
pub(crate) const WIDTH: f64 = 300.0;
pub(crate) const HEIGHT: f64 = 168.0;
pub(crate) const PLOT_X: (f64, f64) = (48.0, 292.0);
pub(crate) const PLOT_Y: (f64, f64) = (8.0, 140.0);
/// Colours of a map, from the palest to the strongest.
pub(crate) const LEVELS: usize = 6;

/// Left end, middle and length of a stroke.
pub(crate) type Stroke = (f64, f64, f64);

/// Spans of time upwards, in milliseconds, and seconds to the right.
pub(crate) fn axes(svg: &mut Svg, x: &Scale, y: &Scale) {
    for tick in y.ticks(5) {
        let at = y.at(tick);
        svg.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
        let text = Nanos((tick * 1e6).round() as u64).to_string();
        svg.text("t tick", (PLOT_X.0 - 5.0, at + 4.0), Anchor::End, &text);
    }
    let ticks = x.ticks(5);
    for tick in &ticks {
        let unit = if ticks.last() == Some(tick) { " s" } else { "" };
        let text = format!("{}{unit}", round(*tick));
        svg.text("t tick", (x.at(*tick), PLOT_Y.1 + 16.0), Anchor::Middle, &text);
    }
    svg.line("axis", (PLOT_X.0, PLOT_Y.1), (PLOT_X.1, PLOT_Y.1));
}

/// The strokes of each colour, in rows of that height.
pub(crate) fn fields(svg: &mut Svg, row: f64, levels: &[Vec<Stroke>]) {
    for (level, strokes) in levels.iter().enumerate().filter(|(_, strokes)| !strokes.is_empty()) {
        // Neighbours overlap a little, so that no line of the background shows between them.
        svg.strokes(&format!("heat h{level}"), row + 0.3, strokes);
    }
}
