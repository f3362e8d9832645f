//! Owns how the memory of a server's processes was taken, and when two figures of it are of the same
//! kind. Must not know /proc. Start reading at [`MemoryAccount`].

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
    /// Proportional set size, summed: each page over the number of all processes of the machine that
    /// map it, so that processes outside the tree change it. Older files have it.
    #[default]
    Pss,
    /// Each page frame that a process of the tree maps, once.
    PagesOnce,
    /// Page frames could not be told apart (no CAP_SYS_ADMIN): pages of files and pages of one process
    /// once, and of those that processes share since a fork the largest set.
    Bound,
    /// Pages of a process could not be seen at all: its counters of resident memory instead.
    Resident,
}

impl MemoryMethod {
    /// As run files have it.
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

/// How the memory of a visit was taken, and what stands beside the figure.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryAccount {
    /// The method; where readings differ, the one that sees least.
    pub method: MemoryMethod,
    /// The most that it can have been; with [`MemoryMethod::PagesOnce`] the figure itself.
    pub at_most: Bytes,
    /// Swapped out at most; not in the figure.
    pub swapped: Bytes,
    /// Processes whose pages could not be seen, at most at one reading.
    pub unread: u32,
    /// Readings; the figure is the highest of them.
    pub readings: u32,
    /// CPU time of the readings, on the generator's CPUs.
    pub cost: Nanos,
    /// What the cgroup of the server counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupMemory>,
}

/// The highest that a cgroup counted since the server started. It has the page cache and the kernel's
/// own memory too: sockets, page tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupMemory {
    /// Which counter.
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

/// Why memory of two sides, each with its name and its methods, is not compared; `None` where it can be.
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
        "memory was taken in different ways: {one}, {other}; measure both with the same version of \
         joust and the same rights (CAP_SYS_ADMIN, CAP_SYS_PTRACE)"
    ))
}
