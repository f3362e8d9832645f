//! The content of a store of past runs: its runs, and series of one figure over them.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// The result of a query to a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRecord {
    /// [`HistoryRecord::FORMAT`].
    pub format: String,
    /// The database.
    pub database: String,
    /// Runs, the oldest first.
    pub runs: Vec<HistoryRun>,
    /// The requested series; empty if no contender was named.
    pub series: Vec<HistorySeries>,
}

impl HistoryRecord {
    /// Name and version of this format.
    pub const FORMAT: &'static str = "joust-history/1";

    /// As JSON, one object, ending in a newline.
    pub fn to_json(&self) -> String {
        crate::json::write(self)
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRun {
    /// Its number in this history, which `joust compare` accepts.
    pub id: i64,
    /// Name of the study.
    pub study: String,
    /// Start, RFC 3339.
    pub started: String,
    /// How long it took, seconds.
    pub seconds: f64,
    /// Version of joust.
    pub joust: String,
    /// Where it was made.
    pub machine: HistoryMachine,
    /// The run file.
    pub path: String,
    /// Whether the file is still there.
    pub is_there: bool,
    /// Names of its contenders.
    pub contenders: Vec<String>,
    /// Number of its cells.
    pub cells: u32,
    /// Its number of blocks.
    pub blocks: u32,
}

/// What identifies a machine.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HistoryMachine {
    /// Model of its CPUs; empty: not known.
    pub cpu_model: String,
    /// Its CPUs, as a list ("0-3").
    pub cpus: String,
    /// Release of its kernel.
    pub kernel: String,
}

/// A figure over the runs of one study on one machine, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistorySeries {
    /// Name of the study.
    pub study: String,
    /// Name of the contender.
    pub contender: String,
    /// Name of the cell; empty if the study has only one.
    pub cell: String,
    /// The metric.
    pub metric: Metric,
    /// The machine.
    pub machine: HistoryMachine,
    /// One point per run.
    pub points: Vec<HistoryPoint>,
    /// Where the level changed; always empty with fewer usable points than `points_needed`.
    pub changes: Vec<HistoryChange>,
    /// Fewest usable points in which changes are searched.
    pub points_needed: usize,
}

/// A figure of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryPoint {
    /// Number of the run.
    pub run: i64,
    /// Its start, RFC 3339.
    pub started: String,
    /// Geometric mean over blocks, in the metric's unit.
    pub mean: f64,
    /// Lower end of its 95 % interval; `None` with fewer than three blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Blocks.
    pub n: u32,
    /// The server's version as it prints it.
    pub version: String,
    /// SHA-256 in hex over settings and configuration, without ports and temporary folders.
    pub configuration: String,
    /// Version of joust.
    pub joust: String,
    /// Why the figure is not used, if so.
    pub withheld: Option<String>,
}

/// A place where a series changes its level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryChange {
    /// Number of the first run on the new level.
    pub run: i64,
    /// Its start, RFC 3339.
    pub started: String,
    /// Geometric mean of the level before.
    pub before: f64,
    /// Geometric mean of the level after.
    pub after: f64,
    /// After over before.
    pub ratio: f64,
    /// Lower end of its 95 % interval over runs.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What else changed with that run: version, configuration, joust.
    pub with: Vec<String>,
}
