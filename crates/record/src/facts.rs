//! Facts about the machine and its counters, as text that readers parse.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The facts of the machine. A fact that could not be read is absent, never zero.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the fact ("kernel", "cpu_model", "cpus", "memory", "clocksource", "governor",
    /// "virtualization", "os", "somaxconn", "port_range", "fd_limit") to its text.
    pub named: BTreeMap<String, String>,
}
