//! Owns the list of a server's processes during a load: which ones began and ended, how often they were switched,
//! what they had open.
//!
//! With a cgroup, a reading of the list is one small file. Without one it is a walk over all processes of the
//! machine, made only at both ends. Context switches are one file per thread, read at both ends. The result contains
//! the CPU time of all readings.
//! Start reading at [`Roll::call`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use record::{Descriptors, ProcessesUse};
use sys::clock;
use units::Nanos;

use crate::proc_stat;
use crate::tree::{CpuMethod, Tree};

/// Readings of a tree's processes.
#[derive(Debug)]
pub(crate) struct Roll {
    /// Whether a reading is cheap enough to be made while the load runs.
    is_cheap: bool,
    tree: Tree,
    now: BTreeSet<u32>,
    before: BTreeMap<u32, ProcessCounters>,
    /// Limits of open files, by process; `None`: no limit.
    limits: BTreeMap<u32, Option<u32>>,
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
            limits: BTreeMap::new(),
            used: ProcessesUse::default(),
        };
        roll.used.cost = clock::thread_cpu() - begun;
        roll
    }

    /// CPU time that the readings took so far.
    pub(crate) fn cost(&self) -> Nanos {
        self.used.cost
    }

    /// A reading while the load runs.
    pub(crate) fn look(&mut self) {
        let begun = clock::thread_cpu();
        if self.is_cheap {
            self.compare();
        }
        self.used.cost += clock::thread_cpu() - begun;
    }

    /// Makes the last reading and returns the sums.
    pub(crate) fn finish(mut self) -> ProcessesUse {
        let begun = clock::thread_cpu();
        self.compare();
        for &pid in &self.now {
            let (after, before) =
                (counted(pid), self.before.get(&pid).copied().unwrap_or_default());
            // The count of a thread that ended is lost.
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
        for &pid in &now {
            let limit = *self.limits.entry(pid).or_insert_with(|| files_max(pid));
            let here = limit.map(|limit| Descriptors { open: files(pid), limit });
            // A process that opened its files before it lowered its limit (a sandbox) needs no more.
            let here = here.filter(|here| (1..=here.limit).contains(&here.open));
            let nearest = self.used.descriptors.into_iter().chain(here);
            self.used.descriptors = nearest.min_by_key(|one| one.left());
        }
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

/// How many files a process may open; `None` if that is not limited, or if the process has ended.
fn files_max(pid: u32) -> Option<u32> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Number of descriptors that a process has open. Since Linux 6.2 it is the size of the folder; before that the
/// entries are counted.
fn files(pid: u32) -> u32 {
    let dir = format!("/proc/{pid}/fd");
    match fs::metadata(&dir).map(|dir| dir.len()) {
        Ok(0) => fs::read_dir(&dir).map_or(0, |entries| entries.count() as u32),
        Ok(files) => files as u32,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_files_and_its_limit() {
        let own = std::process::id();
        let limit = files_max(own).expect("a limit, of a million or so");
        let before = files(own);
        let open: Vec<fs::File> =
            (0..50).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
        // Other tests open and close files meanwhile.
        assert!(files(own) >= before.saturating_sub(25) + open.len() as u32 / 2, "{before}");
        assert!(files(own) <= limit);
        assert_eq!(files_max(0), None);
    }
}
