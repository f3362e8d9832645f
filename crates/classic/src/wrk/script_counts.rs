//! What wrk counts of the replies of a script's load. The script's users fill it in; the figures of the
//! report take it.

use record::Latencies;

/// Counts of replies that wrk and joust's record define differently.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ScriptCounts {
    pub(crate) complete: u64,
    /// Good replies after the script had ended the load: no figure includes them.
    pub(crate) late: u64,
    pub(crate) bad_status: u64,
    /// Time from sending to the last of the replies that were awaited together, in `service`; the other distributions
    /// are empty.
    pub(crate) latency: Latencies,
    /// Whether the script has stopped every thread.
    pub(crate) is_stopped: bool,
}
