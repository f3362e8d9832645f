//! What wrk counts of the replies of a script's load. The script's users fill it in; the figures of the
//! report take it.

use record::Latencies;

/// What wrk counts of replies, and joust's record not in the same way.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ScriptCounts {
    pub(crate) complete: u64,
    /// Good replies that came when the script had ended the load: in no figure.
    pub(crate) late: u64,
    pub(crate) bad_status: u64,
    /// From sending to the last of the replies that were awaited together, in `service`; the others are
    /// empty.
    pub(crate) latency: Latencies,
    /// Whether the script has stopped every thread.
    pub(crate) is_stopped: bool,
}
