//! Facts about the machine and its counters, as text: whoever reads them parses them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the machine is. A fact that could not be had is absent, never zero.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the fact ("kernel", "cpu_model", "cpus", "memory", "clocksource", "governor",
    /// "virtualization", "os", "somaxconn", "port_range", "fd_limit") to its text.
    pub named: BTreeMap<String, String>,
}
