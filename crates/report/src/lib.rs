//! Owns how a run looks: pure functions from run records to text, Markdown, HTML, a picture and formats for other
//! programs. Must not know sockets, threads, terminals or how anything was measured; prints nothing itself.
//! Start reading at [`OUTPUTS`]; `wording` has the six wordings of a verdict, `headline` the answer, `measured` the
//! figures that formats for programs have.
//!
//! ```
//! assert!(joust_report::output("html").is_some());
//! assert!(joust_report::output("pdf").is_none());
//! ```

mod answers;
mod bars;
mod bencher;
mod cell_maps;
mod cell_names;
mod cells;
mod colours;
mod columns;
mod compare_text;
mod contenders;
#[cfg(test)]
mod contrast;
mod csv;
mod distribution;
mod distribution_plot;
mod drawing;
mod extras;
mod figure_files;
mod figures;
mod finding_groups;
mod finding_markdown;
mod finding_text;
mod first_place;
mod forest;
mod github_benchmark;
mod gitlab;
mod growth_plot;
mod headline;
mod heat_map;
mod hgrm;
mod history_text;
mod hlog;
mod html;
mod integrity;
mod json;
mod json_load;
mod json_run;
mod junit;
mod k6_summary;
mod knee_plot;
mod leads;
mod line;
mod lines;
mod listing;
pub mod live;
mod live_metrics;
mod load_figures;
mod load_findings;
mod load_markdown;
mod load_page;
mod load_shape;
mod load_tables;
mod load_text;
mod maps;
mod markdown;
mod markdown_table;
mod measured;
mod memory_account;
mod ndjson;
mod offsets;
mod open_metrics;
mod order;
mod outcome_words;
mod over_time;
mod pairs;
mod pairs_csv;
#[cfg(feature = "parquet")]
mod parquet;
mod percentiles;
mod picture;
mod plan_text;
#[cfg(feature = "png")]
mod png;
mod prose;
mod published;
mod run_facts;
mod run_page;
mod samples_csv;
mod script_data;
mod search_text;
mod sheet;
mod sheets;
mod site_pages;
mod sparkline;
mod standing;
mod stream;
mod svg;
mod table;
mod terminal;
#[cfg(test)]
mod testdata;
#[cfg(test)]
mod tests;
mod text;
mod text_charts;
mod trend_plot;
mod trust;
mod visit_plot;
mod what_was_run;
mod wording;

pub use compare_text::compare_text;
pub use figure_files::{FigureFile, figure_files, load_figure_files};
pub use finding_text::{findings_text, load_findings_text};
pub use history_text::history_text;
pub use integrity::changed;
pub use listing::{Listed, listed_text, rows_text};
pub use live_metrics::LiveMetrics;
pub use load_text::load_text;
pub use plan_text::{LocalPlan, plan_text};
#[cfg(feature = "png")]
pub use png::{Fonts, NoFonts};
pub use prose::{Prose, ProseTone, prose_text};
pub use search_text::search_text;
pub use site_pages::{compare_page, index_page, message_page, trend_page};
pub use stream::StreamFormat;
pub use terminal::wrapped;
pub use wording::verdict;

use record::{LoadRecord, RunRecord};

/// Narrowest terminal that a report is laid out for, in columns.
pub const WIDTH_MIN: usize = 40;

/// The same for a page without tables.
pub const PROSE_WIDTH_MIN: usize = 32;

/// What an output needs to know beyond the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal; fewer than [`WIDTH_MIN`] count as that many.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub colour: bool,
    /// Whether lines may be drawn with characters outside of ASCII.
    pub unicode: bool,
    /// How much a terminal shows; the other forms always show everything.
    pub detail: Detail,
}

/// How much is said of a run on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The answers, and what limits them.
    Short,
    /// Every table too, cell by cell.
    Full,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 100, colour: false, unicode: true, detail: Detail::Short }
    }
}

/// A format: one way to show a run, and with some a load too. A new one is a file with its `OUTPUT`, and a
/// line in [`OUTPUTS`].
#[derive(Debug)]
pub struct Output {
    /// Its name on the command line ("html").
    pub name: &'static str,
    /// Extension of its file, without a dot ("html").
    pub extension: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    /// Who gets it without asking.
    pub written: Written,
    /// Renders a run; `None` if it shows only loads.
    pub run: Option<Render<RunRecord>>,
    /// Renders the record of one load; `None` if it shows only runs.
    pub load: Option<Render<LoadRecord>>,
}

/// Who gets an output without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Everybody: `joust run` puts it into the folder of its results.
    WithEveryRun,
    /// Nobody.
    OnRequest,
}

/// How a format is made of a record.
#[derive(Debug)]
pub enum Render<R: 'static> {
    /// Text in UTF-8, ending in a newline.
    Text(fn(&R, &Options) -> String),
    /// Anything else.
    Bytes(fn(&R) -> Vec<u8>),
}

impl<R> Render<R> {
    /// The file.
    pub fn bytes(&self, record: &R, options: &Options) -> Vec<u8> {
        match self {
            Self::Text(render) => render(record, options).into_bytes(),
            Self::Bytes(render) => render(record),
        }
    }
}

/// Every output.
pub static OUTPUTS: &[&Output] = &[
    &text::OUTPUT,
    &markdown::OUTPUT,
    &html::OUTPUT,
    &picture::OUTPUT,
    &csv::OUTPUT,
    &pairs_csv::OUTPUT,
    &samples_csv::OUTPUT,
    #[cfg(feature = "parquet")]
    &parquet::OUTPUT,
    #[cfg(feature = "parquet")]
    &parquet::SAMPLES,
    #[cfg(feature = "parquet")]
    &parquet::FIGURES,
    &json::OUTPUT,
    &ndjson::OUTPUT,
    &junit::OUTPUT,
    &github_benchmark::BIGGER,
    &github_benchmark::SMALLER,
    &bencher::OUTPUT,
    &gitlab::OUTPUT,
    &open_metrics::OUTPUT,
    &k6_summary::OUTPUT,
    &hgrm::OUTPUT,
    &hlog::OUTPUT,
];

/// Names of the outputs that show a run.
pub fn run_outputs() -> impl Iterator<Item = &'static str> {
    OUTPUTS.iter().filter(|output| output.run.is_some()).map(|output| output.name)
}

/// Names of the outputs that show a load.
pub fn load_outputs() -> impl Iterator<Item = &'static str> {
    OUTPUTS.iter().filter(|output| output.load.is_some()).map(|output| output.name)
}

/// The output of that name, or of that extension of files ("md").
pub fn output(name: &str) -> Option<&'static Output> {
    let is_it = |output: &&Output| output.name == name || output.extension == name;
    OUTPUTS.iter().copied().find(is_it)
}
