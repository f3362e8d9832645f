//! One standalone picture (SVG) of a run: the headline and the ratios of the metric it ranks by.
//! It brings its own colours on a light card, because an image in a README cannot know the theme
//! of the page around it. Start reading at [`OUTPUT`].

use record::RunRecord;

use crate::answers::{answer, overview};
use crate::bars::{WIDTH as BARS_WIDTH, bars};
use crate::cells::{CellView, cells};
use crate::colours;
use crate::drawing::Drawing;
use crate::forest::{WIDTH as FOREST_WIDTH, caption, forest};
use crate::headline::headline;
use crate::html::PLOTS_CSS;
use crate::line::{Line, Tone};
use crate::pairs::metrics;
use crate::run_facts::{machine, workload};
use crate::svg::{Anchor, Svg};
use crate::terminal::wrapped;
use crate::trust::grade;
use crate::wording::plain;
use crate::{Options, Output, Render, Written};

/// A picture for a README.
pub(crate) static OUTPUT: Output = Output {
    name: "picture",
    extension: "svg",
    about: "headline and ratios, for a README",
    written: Written::WithEveryRun,
    run: Some(Render::Text(render)),
    load: None,
};

const PADDING: f64 = 32.0;
/// Between bars and ratios.
const GAP: f64 = 28.0;
const WIDTH: f64 = BARS_WIDTH + GAP + FOREST_WIDTH + 2.0 * PADDING;
/// Characters that fit a line of the title, of an answer, and of smaller text; the fonts are the
/// reader's, so these are for the widest in common use.
const TITLE_CHARS: usize = 72;
const LEAD_CHARS: usize = 108;
const SMALL_CHARS: usize = 128;

/// Stands at the head of the picture, to say that it must not be edited by hand.
const MADE_BY: &str = "<!-- Made by `joust report RUN` with `format picture` (in the repository: make \
                       picture, from the newest quick run). Do not edit. -->";

fn render(record: &RunRecord, _: &Options) -> String {
    let cells = cells(record);
    let lines: Vec<Line> = match cells.as_slice() {
        [only] => headline(&only.run, &only.standings, &only.ranking),
        several => overview(record, several),
    };
    let mut svg = Svg::default();
    let mut y = PADDING + 14.0;
    let title = plain(&record.plan.question);
    y = paragraph(&mut svg, y, &title, ("t title", TITLE_CHARS, 27.0));
    for Line { tone, text } in &lines {
        y = match tone {
            Tone::Answer | Tone::Open => paragraph(&mut svg, y, text, ("t lead", LEAD_CHARS, 22.0)),
            Tone::Alarm => paragraph(&mut svg, y, text, ("t lead alarm", LEAD_CHARS, 22.0)),
            // Said below, after the word.
            Tone::Trust => y,
            Tone::Caution => paragraph(&mut svg, y, text, ("t caution", SMALL_CHARS, 19.0)),
        };
    }
    let (grade, reasons) = grade(record);
    let reasons =
        if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
    let text = format!("How far to trust it: {}{reasons}.", grade.word());
    let counts = lines.iter().filter(|line| line.tone == Tone::Trust);
    let counts = counts.map(|line| line.text.trim_start_matches("How far to trust it: "));
    for text in std::iter::once(text.as_str()).chain(counts) {
        y = paragraph(&mut svg, y, text, ("t small", SMALL_CHARS, 19.0));
    }
    match cells.as_slice() {
        [only] => y = plot(&mut svg, y, only),
        several => {
            for view in several {
                let text = format!("{}: {}", view.name, answer(view, several).line());
                y = paragraph(&mut svg, y, &text, ("t cell", SMALL_CHARS, 18.0));
            }
        }
    }
    y += 12.0;
    for text in [workload(record), format!("{}; joust {}", machine(record), plain(&record.joust))] {
        y = paragraph(&mut svg, y, &text, ("t faint", SMALL_CHARS, 17.0));
    }
    let height = y + PADDING;
    let mut card = Svg::default();
    card.rect("card", (0.5, 0.5), (WIDTH - 1.0, height - 1.0), 10.0);
    card.group(0.0, 0.0, &svg);
    let about: Vec<&str> = lines.iter().map(|line| line.text.trim_end_matches('.')).collect();
    let whole = card.finish("joust-run", (WIDTH, height), &title, &about.join(". "));
    // The style must be inside the element. It is the only thing that a picture adds.
    let open = whole.find("<title").unwrap_or(0);
    let colours: String =
        colours::light().map(|(name, colour)| format!("{name}:{colour};")).collect();
    let style = format!("{MADE_BY}<style>:root{{{colours}}}{PLOTS_CSS}</style>");
    format!("{}{style}{}\n", &whole[..open], &whole[open..])
}

/// Figures and ratios of the ranking metric, below `y`; returns the position below them.
fn plot(svg: &mut Svg, y: f64, view: &CellView) -> f64 {
    let Some(metric) = metrics(&view.run, &view.ranking).first().copied() else { return y };
    let drawings = [
        (0.0, bars(view, metric), Some(metric.info().title.to_owned())),
        (BARS_WIDTH + GAP, forest(view, metric), caption(view, metric).map(shortened)),
    ];
    let mut lowest = y;
    for (x, drawing, title) in drawings {
        let (Some(Drawing { svg: plot, height, .. }), Some(title)) = (drawing, title) else {
            continue;
        };
        let room = (FOREST_WIDTH, 14.0);
        svg.fitted("t small", (PADDING + x, y + 16.0), Anchor::Start, &title, room);
        svg.group(PADDING + x, y + 26.0, &plot);
        lowest = lowest.max(y + 26.0 + height);
    }
    lowest
}

/// A caption without what a figure of 2x would mean, for which there is no room.
fn shortened(caption: String) -> String {
    caption.split_once(": ").map_or_else(|| caption.clone(), |(first, _)| first.to_owned())
}

/// Writes wrapped lines of a class, of at most that many characters and one step apart; returns the position below
/// them.
fn paragraph(
    svg: &mut Svg,
    mut y: f64,
    text: &str,
    (class, most, step): (&str, usize, f64),
) -> f64 {
    for line in wrapped(text, most) {
        svg.text(class, (PADDING, y), Anchor::Start, &line);
        y += step;
    }
    y + 3.0
}
