//! Owns the roll of a server's processes over a load: who came, who went, how often they were switched, what
//! they had open.
//!
//! Who is there is one small file of the cgroup a reading; without a cgroup it is a walk over all
//! processes of the machine, which is made at both ends only. Context switches are
//! a file a thread, read at both ends. The CPU time of it all is in the result.
//! Start reading at [`Roll::call`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use record::ProcessesUse;
use sys::clock;
use units::Nanos;

use crate::proc_stat;
use crate::tree::{CpuMethod, Tree};

/// Readings of a tree's processes.
#[derive(Debug)]
pub(crate) struct Roll {
    /// Whether it is cheap enough to be done while the load runs.
    is_cheap: bool,
    tree: Tree,
    now: BTreeSet<u32>,
    before: BTreeMap<u32, ProcessCounters>,
    used: ProcessesUse,
}

/// Counters of one process.
#[derive(Debug, Default, Clone, Copy)]
struct ProcessCounters {
    voluntary: u64,
    forced: u64,
    faults_major: u64,
}

impl Roll {
    /// The first reading.
    pub(crate) fn call(tree: Tree) -> Self {
        let begun = clock::thread_cpu();
        let now: BTreeSet<u32> = tree.pids().into_iter().collect();
        let mut roll = Self {
            is_cheap: tree.method() != CpuMethod::Schedstat,
            before: now.iter().map(|&pid| (pid, counted(pid))).collect(),
            tree,
            now,
            used: ProcessesUse::default(),
        };
        roll.used.cost = clock::thread_cpu() - begun;
        roll
    }

    /// A reading while the load runs.
    pub(crate) fn look(&mut self) {
        let begun = clock::thread_cpu();
        if self.is_cheap {
            self.compare();
        }
        self.used.cost += clock::thread_cpu() - begun;
    }

    /// The last one, and the sums.
    pub(crate) fn finish(mut self) -> ProcessesUse {
        let begun = clock::thread_cpu();
        self.compare();
        for &pid in &self.now {
            let (after, before) =
                (counted(pid), self.before.get(&pid).copied().unwrap_or_default());
            // A thread that ended took its count along.
            let used = &mut self.used;
            used.switches_voluntary += after.voluntary.saturating_sub(before.voluntary);
            used.switches_forced += after.forced.saturating_sub(before.forced);
            used.faults_major += after.faults_major.saturating_sub(before.faults_major);
        }
        let cost: Nanos = clock::thread_cpu() - begun;
        self.used.cost += cost;
        self.used
    }

    fn compare(&mut self) {
        let now: BTreeSet<u32> = self.tree.pids().into_iter().collect();
        self.used.born += now.difference(&self.now).count() as u32;
        self.used.died += self.now.difference(&now).count() as u32;
        self.used.files = self.used.files.max(now.iter().map(|&pid| files(pid)).sum());
        self.now = now;
    }
}

fn counted(pid: u32) -> ProcessCounters {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let mut counted = ProcessCounters {
        faults_major: proc_stat::stat(pid).map_or(0, |stat| stat.faults_major),
        ..ProcessCounters::default()
    };
    for task in tasks.into_iter().flatten().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let count = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        counted.voluntary += count("voluntary_ctxt_switches:");
        counted.forced += count("nonvoluntary_ctxt_switches:");
    }
    counted
}

/// Descriptors that a process has open. Since Linux 6.2 the size of the folder is their number;
/// before that they are counted.
fn files(pid: u32) -> u32 {
    let dir = format!("/proc/{pid}/fd");
    match fs::metadata(&dir).map(|dir| dir.len()) {
        Ok(0) => fs::read_dir(&dir).map_or(0, |entries| entries.count() as u32),
        Ok(files) => files as u32,
        Err(_) => 0,
    }
}
