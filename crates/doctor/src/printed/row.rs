//! Owns what was printed of one load, in one shape for reports of tools and rows of tables. Start reading at
//! [`Printed`].

use classic::Report;

use super::figure::Figure;

/// A file or a paste, by the name a reader knows it under.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its name ("results.csv", "standard input").
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Everything that was printed: sources, and in them loads.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Printed {
    /// In the order in which they were named.
    pub sources: Vec<Source>,
    /// In the order in which they stand there.
    pub rows: Vec<Row>,
}

/// What was printed of one load. `None` is what was not printed: never the same as 0.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Row {
    /// As a reader finds it again ("wrk, report 2 in wrk.txt", "nginx").
    pub name: String,
    /// Index of its source.
    pub source: usize,
    /// Where it comes from.
    pub origin: Origin,
    /// Who was measured; rows of the same name are of one server. `None`: it is not said.
    pub server: Option<String>,
    /// What was asked for, and everything else that tells workloads apart.
    pub workload: String,
    /// What the load is known to be.
    pub load: LoadKind,
    /// Connections at once.
    pub connections: Option<Figure>,
    /// Requests in flight on each connection; `None`: 1, or not known with [`LoadKind::streams`].
    pub pipeline: Option<Figure>,
    /// Threads of the tool.
    pub threads: Option<u64>,
    /// Seconds.
    pub duration: Option<Figure>,
    /// Whether the duration is the ordered one; the load may have taken longer.
    pub is_duration_nominal: bool,
    /// Requests that were answered, whatever the status.
    pub complete: Option<Figure>,
    /// Requests that failed without a reply, as far as they are counted.
    pub failed: Option<u64>,
    /// Replies whose status is an error, as the tool counts.
    pub bad_status: Option<u64>,
    /// Whether `bad_status` is part of `rate`.
    pub has_errors_in_rate: bool,
    /// Requests that were given up after a timeout.
    pub timeouts: Option<u64>,
    /// Connections that were opened anew.
    pub reconnects: Option<u64>,
    /// Requests a second.
    pub rate: Option<Figure>,
    /// Bytes received, as the tool counts them.
    pub bytes: Option<Figure>,
    /// Bytes a second.
    pub bytes_rate: Option<Figure>,
    /// Seconds by phase; [`Phase::TOTAL`] is there always.
    pub phases: Vec<Phase>,
    /// Percentiles of the whole request, each (percent, seconds), ascending.
    pub percentiles: Vec<(f64, Figure)>,
    /// Mean number in flight, as siege prints it.
    pub in_flight: Option<Figure>,
    /// CPUs that the server kept busy.
    pub server_cpus_busy: Option<Figure>,
    /// CPUs that the server had.
    pub server_cpus: Option<f64>,
    /// The report, where a tool printed it.
    pub report: Option<Box<Report>>,
}

/// Where a row comes from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The report of a tool.
    Report(&'static str),
    /// A row of somebody's table.
    #[default]
    Table,
    /// A row of a published board, whose ways are known.
    League,
}

/// What a load is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadKind {
    /// Whether each connection sends its next request when the last one is answered; `None`: not known.
    pub closed: Option<bool>,
    /// Whether a connection may carry more requests at once than is printed.
    pub streams: bool,
    /// Whether connecting is known to be outside the latency, and happens often.
    pub reconnects: bool,
    /// Whether the load is meant to keep the server fully busy.
    pub full: bool,
}

impl Default for LoadKind {
    fn default() -> Self {
        Self { closed: None, streams: false, reconnects: false, full: true }
    }
}

/// Times of one phase of requests, in seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Its name ("connect", "waiting").
    pub name: &'static str,
    /// Arithmetic mean.
    pub mean: Option<Figure>,
    /// Standard deviation.
    pub sd: Option<Figure>,
    /// Median.
    pub median: Option<Figure>,
    /// Smallest.
    pub min: Option<Figure>,
    /// Largest.
    pub max: Option<Figure>,
}

impl Phase {
    /// The whole request.
    pub const TOTAL: &'static str = "total";
}

impl Row {
    /// Times of the whole request.
    pub fn total(&self) -> Phase {
        self.phase(Phase::TOTAL)
    }

    /// Times of a phase; empty where it was not printed.
    pub fn phase(&self, name: &str) -> Phase {
        self.phases.iter().find(|phase| phase.name == name).copied().unwrap_or_default()
    }

    /// One percentile, where it was printed.
    pub fn percentile(&self, percent: f64) -> Option<Figure> {
        let at = self.percentiles.iter().find(|(printed, _)| *printed == percent)?;
        Some(at.1)
    }

    /// Requests that may be in flight at once; `None` where that is not printed.
    pub fn may_be_in_flight(&self) -> Option<Figure> {
        let pipeline = self.pipeline.unwrap_or(Figure::exact(1.0));
        let product = self.connections?.times(pipeline);
        (product.value >= 1.0 && !self.load.streams).then_some(product)
    }

    /// The tool, where one printed it.
    pub fn tool(&self) -> Option<&'static str> {
        match self.origin {
            Origin::Report(tool) => Some(tool),
            Origin::Table | Origin::League => None,
        }
    }

    /// Whether two rows are of the same server and workload, whatever the number of connections.
    pub fn is_of_same_server(&self, other: &Self) -> bool {
        self.server.is_some()
            && self.server == other.server
            && self.workload == other.workload
            && self.pipeline == other.pipeline
    }

    /// Whether two rows differ in nothing but the server, or in nothing.
    pub fn is_same_load(&self, other: &Self) -> bool {
        self.workload == other.workload
            && self.connections == other.connections
            && self.pipeline == other.pipeline
    }
}

impl Printed {
    /// Each row with its index.
    pub fn indexed(&self) -> impl Iterator<Item = (usize, &Row)> {
        self.rows.iter().enumerate()
    }

    /// Indexes of rows in groups that are alike, in the order of their first.
    pub fn groups(&self, alike: impl Fn(&Row, &Row) -> bool) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (index, row) in self.indexed() {
            match groups.iter_mut().find(|group| alike(&self.rows[group[0]], row)) {
                Some(group) => group.push(index),
                None => groups.push(vec![index]),
            }
        }
        groups
    }

    /// Number of different servers that are named.
    pub fn servers(&self) -> usize {
        let mut names: Vec<&String> =
            self.rows.iter().filter_map(|row| row.server.as_ref()).collect();
        names.sort();
        names.dedup();
        names.len()
    }
}
