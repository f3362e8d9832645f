//! What is known of a load that several machines made, and what is not. Start reading at [`FleetUse`].

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::load_plan::Share;

/// A load on a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetUse {
    /// Name of the run.
    pub run: String,
    /// Its agents, in the order of their shares.
    pub agents: Vec<FleetAgent>,
    /// Windows that were expected of all agents.
    pub windows: u64,
    /// Of them: received.
    pub windows_known: u64,
    /// Time from the first agent's start to the last one's, by the run clock; `None` if none said when it began.
    pub skew: Option<Nanos>,
    /// Why it ended before its time; `None` if it did not.
    pub ended_early: Option<String>,
    /// Messages with the number of another one.
    pub conflicts: u64,
}

/// One agent of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetAgent {
    /// Its name.
    pub name: String,
    /// Its part of the load.
    pub share: Share,
    /// Largest error of its run clock; `None` if it sent nothing.
    pub clock_error: Option<Nanos>,
    /// When it began, by the run clock.
    pub begun: Option<Nanos>,
    /// Whether all that it measured is here, and adds up.
    pub is_whole: bool,
    /// Windows that came from its spool, after the load.
    pub late_windows: u64,
    /// Windows that are missing.
    pub gaps: Vec<FleetGap>,
    /// What happened to it; `None` if nothing.
    pub trouble: Option<String>,
}

/// Time of which nothing is known of an agent, since the start of the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetGap {
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
    /// Until then it may have gone on loading: its dead-man timer ends it at the latest. `None`: it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_load_until: Option<Nanos>,
}

impl FleetUse {
    /// Whether the result is that of the whole load.
    pub fn is_whole(&self) -> bool {
        self.ended_early.is_none()
            && self.conflicts == 0
            && self.windows_known == self.windows
            && self.agents.iter().all(|agent| agent.is_whole)
    }

    /// What is missing of the whole load and of whom, in a sentence; `None` if nothing is.
    pub fn missing(&self) -> Option<String> {
        if self.is_whole() {
            return None;
        }
        let known = units::Share(self.coverage());
        let mut said =
            vec![format!("a part of the load is missing ({known} of its windows are known)")];
        said.extend(self.ended_early.iter().map(|why| format!("it ended early: {why}")));
        let of_agent = |agent: &FleetAgent| match &agent.trouble {
            Some(trouble) => Some(format!("agent {}: {trouble}", agent.name)),
            None => {
                (!agent.is_whole).then(|| format!("agent {} did not report all of it", agent.name))
            }
        };
        said.extend(self.agents.iter().filter_map(of_agent));
        Some(said.join("; "))
    }

    /// Share of the windows that are known, 0 to 1; 1 where none was expected.
    pub fn coverage(&self) -> f64 {
        if self.windows == 0 { 1.0 } else { self.windows_known as f64 / self.windows as f64 }
    }

    /// The largest error of an agent's clock.
    pub fn clock_error(&self) -> Option<Nanos> {
        self.agents.iter().filter_map(|agent| agent.clock_error).max()
    }
}
