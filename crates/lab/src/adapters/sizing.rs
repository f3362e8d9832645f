//! Owns how a process or thread model is sized to the connections of a load. Must not know whose
//! configuration the numbers go into: Apache's and our own models use the same names and rules.
//!
//! The servers' own defaults grow the pool while it is loaded, one, two, four processes a second: a
//! visit of a second would measure the growth. So by default every connection finds a worker from the
//! start and the spare rules find nothing to do. A study that asks about the rules sets them.

/// A pool of processes, each with one connection (Apache's prefork).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Processes {
    pub(super) start: u64,
    pub(super) spare_min: u64,
    pub(super) spare_max: u64,
    pub(super) workers_max: u64,
}

impl Processes {
    /// As many as there are connections, and Apache's least number of spare ones.
    pub(super) fn for_connections(connections: u32) -> Self {
        let (spare_min, least) = (5, 256);
        let start = u64::from(connections) + spare_min;
        Self { start, spare_min, spare_max: start.max(10), workers_max: start.max(least) }
    }
}

/// A pool of processes with threads (Apache's worker and event).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Threads {
    pub(super) start_processes: u64,
    pub(super) spare_min: u64,
    pub(super) spare_max: u64,
    pub(super) workers_max: u64,
    pub(super) processes_max: u64,
}

impl Threads {
    /// Whole processes for all connections and Apache's least number of spare threads, or for the
    /// ceiling that was set, whichever is less.
    pub(super) fn for_connections(
        connections: u32,
        threads_per_process: u64,
        ceiling: Option<u64>,
    ) -> Self {
        let spare_min = 75;
        let wanted = (u64::from(connections) + spare_min).div_ceil(threads_per_process);
        let wanted = wanted * threads_per_process;
        let threads = ceiling.map_or(wanted, |ceiling| wanted.min(ceiling));
        let start_processes = (threads / threads_per_process).max(1);
        let workers_max = wanted.max(400).div_ceil(threads_per_process) * threads_per_process;
        Self {
            start_processes,
            spare_min,
            spare_max: (start_processes * threads_per_process).max(250),
            workers_max,
            processes_max: (workers_max / threads_per_process).max(16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_finds_a_worker_and_nothing_is_reaped_or_spawned() {
        for connections in [1, 10, 64, 250, 1000] {
            let processes = Processes::for_connections(connections);
            assert!(processes.start >= u64::from(connections) + processes.spare_min);
            assert!(
                processes.start <= processes.spare_max && processes.start <= processes.workers_max
            );
            for per_process in [1, 25, 64, 100] {
                let threads = Threads::for_connections(connections, per_process, None);
                let started = threads.start_processes * per_process;
                assert!(started >= u64::from(connections) + threads.spare_min);
                assert!(started <= threads.spare_max && started <= threads.workers_max);
                assert_eq!(threads.workers_max % per_process, 0);
                assert!(threads.workers_max <= threads.processes_max * per_process);
            }
        }
    }

    #[test]
    fn a_ceiling_that_was_set_is_not_overrun() {
        assert_eq!(Threads::for_connections(1000, 25, Some(150)).start_processes, 6);
    }
}
