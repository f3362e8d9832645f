//! Owns what plots of one line a contender share: their width, colours and dashes, and the names at the ends of the
//! lines. Must not know what the axes are. Start reading at [`end_labels`].

use crate::svg::{Anchor, Svg, spread};

/// Width in units of the drawing.
pub(crate) const WIDTH: f64 = 760.0;
/// The area of the lines; names stand at its right.
pub(crate) const PLOT_X: (f64, f64) = (62.0, 556.0);
/// The same, top and bottom.
pub(crate) const PLOT_Y: (f64, f64) = (16.0, 336.0);
/// Height with an axis and its caption.
pub(crate) const HEIGHT: f64 = 388.0;
const LABEL_X: f64 = 584.0;
const FONT: f64 = 13.0;
/// Height of a line of labels.
const LABEL_GAP: f64 = 17.0;

/// Colours and dashes repeat after this many lines; their combinations do not repeat within 12 contenders.
const COLOURS: usize = 8;
/// Dash patterns; the first is solid.
const DASHES: usize = 7;

/// Classes of a contender's line: a colour and a dash pattern.
pub(crate) fn ink(number: usize) -> String {
    format!("c{} d{}", number % COLOURS, number % DASHES)
}

/// Class of a contender's colour.
pub(crate) fn colour(number: usize) -> String {
    format!("c{}", number % COLOURS)
}

/// The end of a line, which bears its name.
pub(crate) struct LineEnd<'a> {
    /// Number of the contender in the run.
    pub(crate) number: usize,
    pub(crate) name: &'a str,
    pub(crate) at: (f64, f64),
}

/// Names at the ends of lines, moved apart, each tied to its end by a thin line.
pub(crate) fn end_labels(svg: &mut Svg, ends: &[LineEnd]) {
    let wanted: Vec<f64> = ends.iter().map(|end| end.at.1).collect();
    // More names than there is room for are drawn closer.
    let room = PLOT_Y.1 - PLOT_Y.0 - 6.0;
    let gap = LABEL_GAP.min(room / ends.len().max(1) as f64);
    let places = spread(&wanted, gap, (PLOT_Y.0 + 6.0, PLOT_Y.1));
    for (end, place) in ends.iter().zip(places) {
        let colour = colour(end.number);
        let mut label = Svg::default();
        let tie = [end.at, (LABEL_X - 22.0, place), (LABEL_X - 5.0, place)];
        label.path(&format!("tie {colour}"), &tie, false);
        let class = format!("t ink {colour}");
        let at = (LABEL_X, place + 4.5);
        label.fitted(&class, at, Anchor::Start, end.name, (WIDTH - LABEL_X, FONT));
        svg.mark_of(end.number, &label);
    }
}
