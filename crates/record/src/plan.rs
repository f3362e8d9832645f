//! A complete experiment: contenders, workload, repetitions and durations.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, PerSecond, Share};

use crate::goal::Goal;
use crate::load_plan::Bodies;
use crate::metric::Metric;

/// A whole experiment; made once from a study file or a built-in study.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Short name, used for the result's folder ("quick").
    pub name: String,
    /// The question of the study, in a sentence.
    pub question: String,
    /// The contenders, at least two after those that are not installed are left out.
    pub contenders: Vec<Contender>,
    /// The points of the workload at which they are compared, at least one. Contenders are compared
    /// within a cell, never across cells.
    pub cells: Vec<Cell>,
    /// Index of the contender that the others are compared with; `None`: all pairs are compared.
    #[serde(default)]
    pub reference: Option<usize>,
    /// Parity switches that differ between contenders on purpose ("workers").
    #[serde(default)]
    pub declared: Vec<String>,
    /// Figures of this experiment that were printed elsewhere.
    #[serde(default)]
    pub published: Option<Published>,
    /// How many blocks.
    pub blocks: Blocks,
    /// How long a visit is.
    pub visit: VisitPlan,
    /// Search for the highest rate that holds, in place of one load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
    /// Whether disturbed visits are used as they are, and not repeated.
    #[serde(default)]
    pub keep_disturbed: bool,
    /// Metrics that get a verdict for each pair; the first is the primary one.
    pub metrics: Vec<Metric>,
    /// Smaller differences do not matter (the equivalence margin).
    pub margin: Share,
    /// Longest time for the whole run; blocks that do not fit are not started.
    pub budget: Nanos,
    /// Seed of the order of visits and of the bootstrap.
    pub seed: u64,
}

impl Plan {
    /// The work of a contender in a cell.
    pub fn work(&self, cell: usize, contender: usize) -> Workload {
        self.contenders[contender].work.over(&self.cells[cell].workload)
    }

    /// The path that a contender is asked for in a cell. The site has one page per size: that of the first cell is
    /// [`Workload::PAGE`], and the others are beside it. It has one program per sleep time.
    pub fn target(&self, cell: usize, contender: usize) -> String {
        let work = self.work(cell, contender);
        if let Some(sleep) = work.sleep {
            return format!("/cgi-bin/sleep-{sleep}");
        }
        let is_first = || work.page == self.cells[0].workload.page;
        match work.target == Workload::PAGE && !is_first() {
            true => format!("/page-{}.html", work.page.0),
            false => work.target,
        }
    }

    /// Sizes of the site's pages; the first is that of [`Workload::PAGE`].
    pub fn pages(&self) -> Vec<Bytes> {
        let mut pages = vec![self.cells[0].workload.page];
        for cell in 0..self.cells.len() {
            for contender in self.in_cell(cell) {
                let page = self.work(cell, contender).page;
                if !pages.contains(&page) {
                    pages.push(page);
                }
            }
        }
        pages
    }

    /// The sleep times of the site's programs, each once: [`Workload::sleep`].
    pub fn sleeps(&self) -> Vec<Nanos> {
        let mut sleeps = Vec::new();
        for cell in 0..self.cells.len() {
            sleeps.extend(self.in_cell(cell).filter_map(|one| self.work(cell, one).sleep));
        }
        sleeps.sort_unstable();
        sleeps.dedup();
        sleeps
    }

    /// Leaves out the contenders for which `stays` is false, and everything that refers to them.
    pub fn keep(&mut self, stays: impl Fn(&Contender) -> bool) {
        let kept: Vec<usize> =
            (0..self.contenders.len()).filter(|&n| stays(&self.contenders[n])).collect();
        let anew = |contender: usize| kept.iter().position(|&one| one == contender);
        self.reference = self.reference.and_then(anew);
        if let Some(published) = &mut self.published {
            let figures = std::mem::take(&mut published.figures).into_iter();
            let moved = figures
                .filter_map(|one| Some(PublishedFigure { contender: anew(one.contender)?, ..one }));
            published.figures = moved.collect();
            let over = published.over;
            published.over = over.and_then(anew);
            if over.is_some() && published.over.is_none() {
                published.figures.clear();
            }
        }
        self.contenders = kept.iter().map(|&index| self.contenders[index].clone()).collect();
    }

    /// Leaves out the cells for which `stays` is false, the contenders that take part only in those, and everything
    /// that refers to them.
    pub fn keep_cells(&mut self, stays: impl Fn(&Cell) -> bool) {
        let kept: Vec<usize> = (0..self.cells.len()).filter(|&n| stays(&self.cells[n])).collect();
        if kept.len() == self.cells.len() {
            return;
        }
        let anew = |cell: usize| kept.iter().position(|&one| one == cell);
        let remains = |one: &Contender| {
            one.cells.is_empty() || one.cells.iter().any(|&cell| anew(cell).is_some())
        };
        self.keep(remains);
        for contender in &mut self.contenders {
            contender.cells = contender.cells.iter().filter_map(|&cell| anew(cell)).collect();
        }
        if let Some(published) = &mut self.published {
            let figures = std::mem::take(&mut published.figures).into_iter();
            let moved =
                figures.filter_map(|one| Some(PublishedFigure { cell: anew(one.cell)?, ..one }));
            published.figures = moved.collect();
        }
        self.cells = kept.iter().map(|&index| self.cells[index].clone()).collect();
    }

    /// Indices of the contenders that take part in a cell.
    pub fn in_cell(&self, cell: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.contenders.len()).filter(move |&n| self.contenders[n].takes_part(cell))
    }

    /// The pairs of contenders that are compared in a cell, in the order of the contenders.
    pub fn pairs(&self, cell: usize) -> Vec<(usize, usize)> {
        let present: Vec<usize> = self.in_cell(cell).collect();
        let all = present.iter().flat_map(|&a| present.iter().map(move |&b| (a, b)));
        let is_wanted = |a, b| self.reference.is_none_or(|one| one == a || one == b);
        all.filter(|&(a, b)| a < b && is_wanted(a, b)).collect()
    }

    /// Number of visits in a block in which every cell is visited.
    pub fn visits_per_block(&self) -> usize {
        (0..self.cells.len()).map(|cell| self.in_cell(cell).count()).sum()
    }

    /// The load of such a block, without the time between its visits.
    pub fn load_of_block(&self) -> Nanos {
        Nanos(self.visit.load().0.saturating_mul(self.visits_per_block() as u64))
    }
}

/// One point of the workload.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its value on each axis ("connections=10, page=3 KB"), unique in the plan; empty if the plan has only one cell.
    pub name: String,
    /// The work of the contenders there.
    pub workload: Workload,
}

impl Cell {
    /// The only cell of a plan.
    pub fn only(workload: Workload) -> Self {
        Self { name: String::new(), workload }
    }
}

/// Figures that someone printed of the same experiment, to be shown beside today's.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Who, where, when.
    pub source: String,
    /// The machine and the versions.
    pub machine: String,
    /// Its conclusion, in a sentence.
    pub claim: String,
    /// Index of the contender that the figures are relative to; `None`: they are absolute.
    #[serde(default)]
    pub over: Option<usize>,
    /// The figures.
    pub figures: Vec<PublishedFigure>,
}

/// One printed figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Index of the contender that corresponds to what was measured then.
    pub contender: usize,
    /// Index of the cell.
    pub cell: usize,
    /// The metric.
    pub metric: Metric,
    /// As printed, in the metric's unit.
    pub value: f64,
    /// What exactly was measured, if several printed figures belong to one contender ("2.1.2").
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub of: String,
}

/// One of the compared servers.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// Name in reports, unique in the plan ("joust reactor", "apache event").
    pub name: String,
    /// The adapter that runs it ("joust", "apache", "nginx", "lighttpd").
    pub server: String,
    /// Settings that differ from the adapter's defaults.
    pub settings: Settings,
    /// Its changes to the workload.
    #[serde(default, skip_serializing_if = "Change::is_none")]
    pub work: Change,
    /// Indices of the cells in which it takes part; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<usize>,
}

impl Contender {
    /// Whether it is visited in that cell.
    pub fn takes_part(&self, cell: usize) -> bool {
        self.cells.is_empty() || self.cells.contains(&cell)
    }
}

/// Settings of a contender, by the name its own documentation uses.
pub type Settings = BTreeMap<String, SettingValue>;

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each holds the type of its name")]
pub enum SettingValue {
    Flag(bool),
    Number(i64),
    Text(String),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The work of the contenders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// What is requested: [`Workload::PAGE`], or a program's path.
    #[serde(default = "page_path")]
    pub target: String,
    /// Requests a CGI program of the site in place of `target`: it sleeps this long and then answers with a line. Its
    /// cost is waiting, as for a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Nanos>,
    /// Size of the requested page; the size of a program's answer is not known beforehand.
    pub page: Bytes,
    /// Concurrent connections.
    pub connections: u32,
    /// Whether connections are reused.
    pub keep_alive: bool,
    /// Threads of the generator.
    pub threads: u32,
    /// Longest wait for a reply.
    pub timeout: Nanos,
    /// Requests that are due a second, open loop; `None`: closed loop.
    #[serde(default)]
    pub rate: Option<PerSecond>,
    /// Who makes the load: [`Workload::OURS`], or another tool ("wrk").
    #[serde(default = "ours")]
    pub client: String,
    /// How far our generator compares bodies with those that were fetched alone before the run. Other tools cannot.
    /// [`Bodies::None`] in older files.
    #[serde(default)]
    pub verify: Bodies,
}

impl Workload {
    /// Path of the page that is made for a study.
    pub const PAGE: &'static str = "/index.html";
    /// Name of our own generator.
    pub const OURS: &'static str = "load";

    /// Whether the page is requested, and not a program.
    pub fn is_page(&self) -> bool {
        self.sleep.is_none() && self.target == Self::PAGE
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            target: page_path(),
            sleep: None,
            page: Bytes(3361),
            connections: 64,
            keep_alive: true,
            threads: 1,
            timeout: Nanos::from_secs(5),
            rate: None,
            client: ours(),
            verify: Bodies::Sample,
        }
    }
}

fn page_path() -> String {
    Workload::PAGE.to_owned()
}

fn ours() -> String {
    Workload::OURS.to_owned()
}

/// Changes to a workload, field by field as in [`Workload`]; `None`: unchanged.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "each is the field of its name")]
pub struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<Nanos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Nanos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<PerSecond>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Bodies>,
}

impl Change {
    /// Whether nothing changes.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// This change after that one: fields that neither changes stay unchanged.
    pub fn on_top_of(&self, before: &Self) -> Self {
        let one = self.clone();
        let other = before.clone();
        Self {
            target: one.target.or(other.target),
            sleep: one.sleep.or(other.sleep),
            page: one.page.or(other.page),
            connections: one.connections.or(other.connections),
            keep_alive: one.keep_alive.or(other.keep_alive),
            threads: one.threads.or(other.threads),
            timeout: one.timeout.or(other.timeout),
            rate: one.rate.or(other.rate),
            client: one.client.or(other.client),
            verify: one.verify.or(other.verify),
        }
    }

    /// That workload, with this change.
    pub fn over(&self, base: &Workload) -> Workload {
        Workload {
            target: self.target.clone().unwrap_or_else(|| base.target.clone()),
            sleep: self.sleep.or(base.sleep),
            page: self.page.unwrap_or(base.page),
            connections: self.connections.unwrap_or(base.connections),
            keep_alive: self.keep_alive.unwrap_or(base.keep_alive),
            threads: self.threads.unwrap_or(base.threads),
            timeout: self.timeout.unwrap_or(base.timeout),
            rate: self.rate.or(base.rate),
            client: self.client.clone().unwrap_or_else(|| base.client.clone()),
            verify: self.verify.unwrap_or(base.verify),
        }
    }
}

/// How many blocks. Stopping looks at the width of intervals, never at significance.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    /// At least; before that no interval is looked at.
    pub min: u32,
    /// At most.
    pub max: u32,
    /// Stop when every pair's interval of the primary metric is at most this far from its estimate
    /// on either side, as a share of it.
    pub half_width: Share,
}

/// How long a visit is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VisitPlan {
    /// Load before measuring, which is cut off whatever it shows.
    pub warm_up: Nanos,
    /// Longest further warm-up, until the rate no longer changes (a change-point test over its intervals); zero: none.
    #[serde(default)]
    pub settle: Nanos,
    /// Load that is measured; a further cut may be made inside it (MSER-5).
    pub measure: Nanos,
}

impl VisitPlan {
    /// How long a visit loads its server, without a further warm-up.
    pub fn load(&self) -> Nanos {
        self.warm_up.saturating_add(self.measure)
    }
}

/// A search in each visit, with loads as long as [`VisitPlan::measure`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// The goals that must hold, at least one.
    pub goals: Vec<Goal>,
    /// How wide its interval may be: high / low - 1.
    pub precision: Share,
    /// Most loads of a search.
    pub tries_max: u32,
}

/// The CPUs of the server and of the generator.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLayout {
    /// The server's; empty: not pinned.
    pub server: Vec<u32>,
    /// The generator's; empty: not pinned.
    pub client: Vec<u32>,
    /// Whether both share a CPU (a machine with only one).
    pub shared: bool,
}
