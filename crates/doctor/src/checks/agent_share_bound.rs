//! Owns the check that an agent's own machine was the limit of its share of a fleet's load. Start reading at [`ITEM`].

use record::{Question, Severity};

use super::{Check, agent_share_void};

/// A share is a bound.
pub(crate) const ITEM: Check = Check {
    name: "agent_share_bound",
    severity: Severity::Bound,
    question: Question::WhyNotDouble,
    spares_like_pairs: false,
    title: "the machine of an agent was the limit of its share",
    meaning: "the server could have done more: the rate is a lower bound, and latencies hold the agent's own delays",
    remedy: "mend what the finding names on the machine of that agent, or use more agents",
    detection: "Each agent's record is examined with the counters of its own machine, by the checks of what happens on a \
                generator: CPU quota, swapping, late sends, no ports or descriptors left, and the like. One of them \
                confirms there what bounds a load",
    example: "`joust load --fleet` with one of the agents behind a link of 10 Mbit/s",
    source: "docs/fleet.md",
    needs: &[],
    look: |evidence| agent_share_void::look(evidence, Severity::Bound),
};
