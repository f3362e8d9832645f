//! An experiment, complete: who, on what work, how often, for how long.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Share};

/// A whole experiment; made once from a study file or a built-in study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Short name, used for the result's folder ("quick").
    pub name: String,
    /// What the study asks, in a sentence.
    pub question: String,
    /// Those compared, at least two once what is not installed has been left out.
    pub contenders: Vec<Contender>,
    /// What they are asked to do.
    pub workload: Workload,
    /// How many blocks.
    pub blocks: Blocks,
    /// How long a visit is.
    pub visit: VisitPlan,
    /// Metrics that get a verdict a pair; the first is the primary one.
    pub metrics: Vec<Metric>,
    /// A difference smaller than this is of no interest (the equivalence margin).
    pub margin: Share,
    /// Longest time for the whole run; blocks that do not fit are not begun.
    pub budget: Nanos,
    /// Seed of the order of visits and of the bootstrap.
    pub seed: u64,
}

/// One of those compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// Name in reports, unique in the plan ("joust reactor", "apache event").
    pub name: String,
    /// The adapter that runs it ("joust", "apache", "nginx", "lighttpd").
    pub server: String,
    /// What differs from the adapter's defaults.
    pub settings: Settings,
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

/// What the contenders are asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Size of the page that is fetched.
    pub page: Bytes,
    /// Concurrent connections.
    pub connections: u32,
    /// Whether connections are used again.
    pub keep_alive: bool,
    /// Threads of the generator.
    pub threads: u32,
    /// Longest wait for a reply.
    pub timeout: Nanos,
}

/// How many blocks. Stopping looks at the width of intervals, never at significance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    /// At least; before that nothing is looked at.
    pub min: u32,
    /// At most.
    pub max: u32,
    /// Stop when every pair's interval of the primary metric is at most this far from its estimate
    /// on either side, as a share of it.
    pub half_width: Share,
}

/// How long a visit is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VisitPlan {
    /// Load before measuring, cut off without looking.
    pub warm_up: Nanos,
    /// Load that is measured; a further cut may be made inside it (MSER-5).
    pub measure: Nanos,
}

/// A quantity that contenders are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Goodput, requests/s: more is better.
    Throughput,
    /// CPU time of the server's whole process tree over requests: less is better.
    ServerCpu,
    /// Median service time: less is better.
    P50,
    /// 99th percentile of service time: less is better.
    P99,
    /// Peak memory (PSS) of the server's whole process tree: less is better.
    Memory,
}

/// Which CPUs are whose.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLayout {
    /// The server's; empty: not pinned.
    pub server: Vec<u32>,
    /// The generator's; empty: not pinned.
    pub client: Vec<u32>,
    /// Whether both share a CPU (a machine with only one).
    pub shared: bool,
}
