//! Owns what every plot is when it is made: elements, height, and a sentence for those who cannot see it. Must not
//! know what is plotted.

use crate::svg::Svg;

/// A drawing and its size; its width is a constant of the plot.
#[derive(Debug)]
pub(crate) struct Drawing {
    pub(crate) svg: Svg,
    pub(crate) height: f64,
    /// What it shows, in a sentence, for those who cannot see it.
    pub(crate) about: String,
}
