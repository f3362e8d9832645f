//! How much of a run is known: a cell for each agent and window. Start reading at [`Coverage`].
//!
//! A run of which something is missing has no whole result. What is missing is said in time: from when on nothing
//! came of an agent, and until when it may have gone on loading, which is known by its dead-man timer alone, since
//! nobody can tell an agent that is dead from one that cannot be reached.

use std::collections::BTreeMap;

use units::Nanos;

use crate::ids::Id;

/// Length of a window.
pub const WINDOW: Nanos = Nanos::from_secs(1);

/// What is there of one window of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Missing,
    /// It came in time.
    Received,
    /// It came from the agent's spool, after the load.
    Late,
}

/// What is there of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Of each agent one cell a window, in order.
    pub rows: BTreeMap<Id, Vec<Cell>>,
}

/// Windows of one agent that are missing, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The agent.
    pub agent: Id,
    /// Start, since the start of the load.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
}

impl Coverage {
    /// Share of the cells that are there, 0 to 1; 1 where none was expected.
    pub fn share(&self) -> f64 {
        let (known, all) = self.counts();
        if all == 0 { 1.0 } else { known as f64 / all as f64 }
    }

    /// Cells that are there, and all of them.
    pub fn counts(&self) -> (u64, u64) {
        let cells = || self.rows.values().flatten();
        let known = cells().filter(|cell| **cell != Cell::Missing).count();
        (known as u64, cells().count() as u64)
    }

    /// Whether nothing is missing.
    pub fn is_whole(&self) -> bool {
        let (known, all) = self.counts();
        known == all
    }

    /// Everything that is missing, by agent and time.
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for (agent, cells) in &self.rows {
            let mut at = 0;
            for run in cells.chunk_by(|a, b| (*a == Cell::Missing) == (*b == Cell::Missing)) {
                let (from, until) = (at, at + run.len() as u64);
                if run[0] == Cell::Missing {
                    let instant = |window: u64| Nanos(window * WINDOW.0);
                    let (from, until) = (instant(from), instant(until));
                    gaps.push(Gap { agent: agent.clone(), from, until });
                }
                at = until;
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_in_time() {
        use Cell::{Late, Missing, Received};
        let row = |id: &str, cells: &[Cell]| (id.parse().unwrap(), cells.to_vec());
        let coverage = Coverage {
            rows: [
                row("a", &[Received, Missing, Missing, Late]),
                row("b", &[Received, Received, Received, Missing]),
            ]
            .into(),
        };
        assert_eq!((coverage.counts(), coverage.share()), ((5, 8), 0.625));
        assert!(!coverage.is_whole());
        let gaps: Vec<(String, u64, u64)> = coverage
            .gaps()
            .iter()
            .map(|gap| (gap.agent.to_string(), gap.from.0 / WINDOW.0, gap.until.0 / WINDOW.0))
            .collect();
        assert_eq!(gaps, [("a".to_owned(), 1, 3), ("b".to_owned(), 3, 4)]);
        assert!(Coverage { rows: BTreeMap::new() }.is_whole());
    }
}
