//! One standalone picture (SVG) of a run: the headline and the ratios of the metric it ranks by.
//! It brings its own colours on a light card, because an image in a README cannot know the theme
//! of the page around it. Start reading at [`OUTPUT`].

use record::RunRecord;

use crate::forest::{Drawing, WIDTH as FOREST_WIDTH, caption, forest};
use crate::headline::{Line, Tone, headline, ranking};
use crate::html::PLOTS_CSS;
use crate::pairs::metrics;
use crate::run_facts::{machine, workload};
use crate::standing::standings;
use crate::svg::{Anchor, Svg};
use crate::terminal::wrapped;
use crate::wording::{plain, words};
use crate::{Options, Output};

/// A picture for a README.
pub(crate) static OUTPUT: Output = Output {
    name: "picture",
    extension: "svg",
    about: "headline and ratios, for a README",
    render,
};

const PADDING: f64 = 32.0;
const WIDTH: f64 = FOREST_WIDTH + 2.0 * PADDING;
/// Characters of a headline's line at its font; and of the smaller lines.
const LEAD_CHARS: usize = 88;
const SMALL_CHARS: usize = 124;

/// The light colours of the page.
const COLOURS: &str = ":root{--bg:#fff;--ink:#171a21;--muted:#565e6c;--rule:#dfe3e9;\
--grid:#e9ecf1;--accent:#1b5eb8;--band:#dbe7f7;--warn:#8a5300;--bad:#b3261e}";

fn render(record: &RunRecord, _: &Options) -> String {
    let standings = standings(record);
    let ranking = ranking(record, &standings);
    let mut svg = Svg::default();
    let mut y = PADDING + 14.0;
    let lines = headline(record, &standings, &ranking);
    for Line { tone, text } in &lines {
        let (class, most, step) = match tone {
            Tone::Alarm | Tone::Answer | Tone::Ranking => ("t lead", LEAD_CHARS, 26.0),
            Tone::Caution => ("t caution", SMALL_CHARS, 20.0),
        };
        for line in wrapped(text, most) {
            svg.text(class, (PADDING, y), Anchor::Start, &line);
            y += step;
        }
        y += 4.0;
    }
    if let Some(metric) = metrics(record, &ranking).first().copied()
        && let Some(Drawing { svg: plot, height, .. }) = forest(record, &ranking, metric)
    {
        let text = format!("{}: {}", words(metric).title, caption(record, &ranking, metric));
        svg.text("t small", (PADDING, y + 14.0), Anchor::Start, &text);
        svg.group(PADDING, y + 30.0, &plot);
        y += 30.0 + height;
    }
    for text in [workload(record), format!("{}; joust {}", machine(record), plain(&record.joust))] {
        for line in wrapped(&text, SMALL_CHARS) {
            svg.text("t faint", (PADDING, y + 16.0), Anchor::Start, &line);
            y += 18.0;
        }
    }
    let height = y + PADDING;
    let mut card = Svg::default();
    card.rect("card", (0.5, 0.5), (WIDTH - 1.0, height - 1.0), 10.0);
    card.group(0.0, 0.0, &svg);
    let about: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let title = plain(&record.plan.question);
    let whole = card.finish("joust-run", (WIDTH, height), &title, &about.join(". "));
    // The style must be inside of the element; its own sheet is the one thing a picture adds.
    let open = whole.find("<title").unwrap_or(0);
    let size = format!("<style>{COLOURS}{PLOTS_CSS}</style>");
    format!("{}{size}{}\n", &whole[..open], &whole[open..])
}
