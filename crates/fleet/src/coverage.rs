//! How much of a run is known: a cell for each agent and window. Start reading at [`Coverage`].
//!
//! A run of which something is missing has no whole result. What is missing is said in time.

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

impl Coverage {
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

    /// What is missing of an agent: from and until when, since the start of the load, in order.
    pub fn gaps(&self, agent: &Id) -> Vec<(Nanos, Nanos)> {
        let (mut gaps, mut at) = (Vec::new(), 0);
        let cells = self.rows.get(agent).map_or(&[][..], Vec::as_slice);
        for run in cells.chunk_by(|a, b| (*a == Cell::Missing) == (*b == Cell::Missing)) {
            let (from, until) = (at, at + run.len() as u64);
            if run[0] == Cell::Missing {
                gaps.push((Nanos(from * WINDOW.0), Nanos(until * WINDOW.0)));
            }
            at = until;
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
        assert_eq!(coverage.counts(), (5, 8));
        assert!(!coverage.is_whole());
        let gaps = |id: &str| -> Vec<(u64, u64)> {
            let gaps = coverage.gaps(&id.parse().unwrap()).into_iter();
            gaps.map(|(from, until)| (from.0 / WINDOW.0, until.0 / WINDOW.0)).collect()
        };
        assert_eq!((gaps("a"), gaps("b"), gaps("c")), (vec![(1, 3)], vec![(3, 4)], vec![]));
        assert!(Coverage { rows: BTreeMap::new() }.is_whole());
    }
}
