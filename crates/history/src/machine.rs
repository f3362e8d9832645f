//! Where and when a run was measured. Figures of different machines are never compared.

use record::{HistoryMachine, RunRecord};
#[cfg(feature = "database")]
use rusqlite::Row;

/// The machine in a row of the database.
#[cfg(feature = "database")]
pub(crate) fn machine_of(row: &Row<'_>) -> rusqlite::Result<HistoryMachine> {
    Ok(HistoryMachine {
        cpu_model: row.get("cpu_model")?,
        cpus: row.get("cpus")?,
        kernel: row.get("kernel")?,
    })
}

/// What identifies the machine of a run.
pub(crate) fn machine(run: &RunRecord) -> HistoryMachine {
    let fact = |name: &str| run.facts.named.get(name).cloned().unwrap_or_default();
    HistoryMachine { cpu_model: fact("cpu_model"), cpus: fact("cpus"), kernel: fact("kernel") }
}

/// When a run began, in seconds since 1970; 0 if its file has no RFC 3339 time.
pub(crate) fn instant(run: &RunRecord) -> i64 {
    run.started.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second)
}
