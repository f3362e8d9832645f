//! The plot of how response times are spread: a bar for each step of a logarithmic scale, with the percentiles that one
//! asks for as marks. Must not know the page it stands in. Start reading at [`distribution_plot`].

use stats::Histogram;

use crate::distribution::Distribution;
use crate::drawing::Drawing;
use crate::figures::{grouped, percent};
use crate::lines::WIDTH;
use crate::svg::{Anchor, Scale, Svg};

const PLOT_X: (f64, f64) = (62.0, 740.0);
const PLOT_Y: (f64, f64) = (30.0, 210.0);
const HEIGHT: f64 = 250.0;
/// Most bars.
const STEPS_MAX: usize = 44;
/// Percentiles that are marked.
const MARKED: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")];

/// The drawing; `None` without a span.
pub(crate) fn distribution_plot(spans: &Histogram) -> Option<Drawing> {
    let found = Distribution::of(spans, STEPS_MAX)?;
    let total = found.total();
    let share = |count: u64| 100.0 * count as f64 / total.max(1) as f64;
    let y = Scale::linear((0.0, share(found.count_max())), (PLOT_Y.1, PLOT_Y.0));
    let mut svg = Svg::default();
    for tick in y.ticks(4) {
        let at = y.at(tick);
        svg.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
        let text = format!("{} %", crate::figures::round(tick));
        svg.text("t tick", (PLOT_X.0 - 8.0, at + 4.0), Anchor::End, &text);
    }
    let width = (PLOT_X.1 - PLOT_X.0) / found.steps.len() as f64;
    let stride = (found.steps.len() / 12 + 1).max(1);
    for (index, step) in found.steps.iter().enumerate() {
        let left = PLOT_X.0 + index as f64 * width;
        let top = y.at(share(step.count));
        // What is there is seen, however little it is.
        let height = if step.count > 0 { (PLOT_Y.1 - top).max(1.0) } else { 0.0 };
        svg.rect("bar", (left + 1.0, PLOT_Y.1 - height), (width - 2.0, height), 1.0);
        let title = format!(
            "up to {}: {} requests, {}",
            step.to,
            grouped(step.count),
            percent(step.count, total)
        );
        svg.titled_area((left, PLOT_Y.0), (width, PLOT_Y.1 - PLOT_Y.0), &title);
        if index % stride == stride - 1 || found.steps.len() == 1 {
            let at = (left + width, PLOT_Y.1 + 18.0);
            svg.text("t tick", at, Anchor::Middle, &step.to.to_string());
        }
    }
    svg.line("axis", (PLOT_X.0, PLOT_Y.1), (PLOT_X.1, PLOT_Y.1));
    marks(&mut svg, spans, &found, width);
    svg.text(
        "t faint",
        (PLOT_X.1, PLOT_Y.1 + 36.0),
        Anchor::End,
        "response time, logarithmic steps",
    );
    let each: Vec<String> = MARKED
        .iter()
        .filter_map(|(q, name)| Some(format!("{name} {}", spans.quantile(*q)?)))
        .collect();
    let about = format!("{} response times: {}.", grouped(total), each.join(", "));
    Some(Drawing { svg, height: HEIGHT, about })
}

fn marks(svg: &mut Svg, spans: &Histogram, found: &Distribution, width: f64) {
    let mut labelled = f64::NEG_INFINITY;
    for (q, name) in MARKED {
        let Some(quantile) = spans.quantile(q) else { continue };
        let step = found.steps.iter().position(|step| quantile <= step.to);
        let Some(step) = step else { continue };
        let x = PLOT_X.0 + (step as f64 + 0.5) * width;
        svg.line("guide", (x, PLOT_Y.0 - 8.0), (x, PLOT_Y.1));
        let row = if x - labelled < 90.0 { 0.0 } else { 10.0 };
        let anchor = if x > WIDTH - 110.0 { Anchor::End } else { Anchor::Start };
        svg.text(
            "t guided",
            (x + 4.0, PLOT_Y.0 - 18.0 + row),
            anchor,
            &format!("{name} {quantile}"),
        );
        labelled = x;
    }
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    #[test]
    fn every_request_is_in_a_bar_and_a_single_one_is_seen() {
        let mut spans = Histogram::new();
        (0..9999).for_each(|n| spans.record(Nanos::from_micros(900 + n / 50)));
        spans.record(Nanos::from_millis(200));
        let drawing = distribution_plot(&spans).unwrap();
        let drawn = drawing.svg.finish("d", (WIDTH, drawing.height), "t", &drawing.about);
        let counts = drawn.split("requests, ").count() - 1;
        let counted: u64 = drawn
            .split(": ")
            .filter_map(|part| part.split_once(" requests, "))
            .map(|(count, _)| count.replace(',', "").parse::<u64>().unwrap())
            .sum();
        assert_eq!(counted, 10_000, "{counts}");
        assert!(drawn.contains("height=\"1\""), "the slowest one has a bar of its own");
        assert!(drawing.about.contains("10,000 response times: p50 "), "{}", drawing.about);
    }
}
