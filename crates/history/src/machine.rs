//! Owns which machine a run was measured on: figures of different machines are never compared.

use record::{HistoryMachine, RunRecord};
use rusqlite::Row;

/// The machine in a row of the database.
pub(crate) fn machine_of(row: &Row<'_>) -> rusqlite::Result<HistoryMachine> {
    Ok(HistoryMachine {
        cpu_model: row.get("cpu_model")?,
        cpus: row.get("cpus")?,
        kernel: row.get("kernel")?,
    })
}

/// What tells the machine of a run from others.
pub(crate) fn machine(run: &RunRecord) -> HistoryMachine {
    let fact = |name: &str| run.facts.named.get(name).cloned().unwrap_or_default();
    HistoryMachine { cpu_model: fact("cpu_model"), cpus: fact("cpus"), kernel: fact("kernel") }
}
