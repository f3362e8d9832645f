//! Owns how the memory of a server's processes was measured, and when two figures are comparable. Must not know /proc.
//! Start reading at [`MemoryAccount`].

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// How pages of a process tree were counted. Figures of different methods are not compared.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum MemoryMethod {
    /// Proportional set size, summed: each page divided by the number of all processes of the machine that map it, so
    /// that processes outside the tree change it. Older files use it.
    #[default]
    Pss,
    /// Each page frame that a process of the tree maps counts once.
    PagesOnce,
    /// Page frames could not be identified (no CAP_SYS_ADMIN). Pages of files and pages of a single process count once;
    /// of the pages that processes share since a fork only the largest set counts.
    Bound,
    /// The pages of a process were not readable at all, so its counters of resident memory are used.
    Resident,
}

impl MemoryMethod {
    /// Its name in run files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pss => "pss",
            Self::PagesOnce => "pages_once",
            Self::Bound => "bound",
            Self::Resident => "resident",
        }
    }
}

impl fmt::Display for MemoryMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pss => "PSS",
            Self::PagesOnce => "each page once",
            Self::Bound => "a lower bound",
            Self::Resident => "resident memory of some processes",
        })
    }
}

/// How the memory of a visit was measured, with related figures.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryAccount {
    /// The method; if readings differ, the one that sees least.
    pub method: MemoryMethod,
    /// Upper bound; with [`MemoryMethod::PagesOnce`] the figure itself.
    pub at_most: Bytes,
    /// Most memory that was swapped out; the figure does not include it.
    pub swapped: Bytes,
    /// Most processes at one reading whose pages were not readable.
    pub unread: u32,
    /// Readings; the figure is the highest of them.
    pub readings: u32,
    /// CPU time of the readings, on the generator's CPUs.
    pub cost: Nanos,
    /// The counter of the server's cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupMemory>,
}

/// The highest value that a cgroup counted since the server started. It includes the page cache and the kernel's own
/// memory: sockets, page tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupMemory {
    /// The counter.
    pub counter: CgroupCounter,
    /// Its value.
    pub peak: Bytes,
}

/// A counter of a cgroup's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupCounter {
    /// Version 1.
    #[serde(rename = "memory.max_usage_in_bytes")]
    MaxUsageInBytes,
    /// Version 2.
    #[serde(rename = "memory.peak")]
    Peak,
}

/// Why memory of two sides is not comparable, given each side's name and methods; `None` if it is.
pub fn unlike_memory(sides: [(&str, &BTreeSet<MemoryMethod>); 2]) -> Option<String> {
    let all: BTreeSet<_> = sides.iter().flat_map(|(_, methods)| methods.iter()).collect();
    if all.len() < 2 {
        return None;
    }
    let [one, other] = sides.map(|(name, methods)| {
        let methods: Vec<String> = methods.iter().map(ToString::to_string).collect();
        format!("{} for {name}", methods.join(" and "))
    });
    Some(format!(
        "memory was measured with different methods: {one}, {other}; measure both with the same version of \
         joust and the same permissions (CAP_SYS_ADMIN, CAP_SYS_PTRACE)"
    ))
}
