//! wrk, of 4.0 to 4.2: its command line, its scripts, its report, and parsing that report. Owns everything specific to
//! it. Source of the facts: wg/wrk, `src/wrk.c`, `src/script.c`, `src/stats.c`, and Debian's wrk 4.1.0, which decides
//! if they differ. Start reading at [`command`].
//!
//! The plan sends what a script cannot change: its only request is wrk's byte for byte. A scenario ([`lua::Users`])
//! sends what a script can change.

#[cfg(feature = "lua")]
mod figures;
#[cfg(feature = "lua")]
mod flags;
#[cfg(feature = "lua")]
mod footnotes;
#[cfg(feature = "lua")]
mod lua;
#[cfg(feature = "lua")]
mod plan;
#[cfg(feature = "lua")]
mod printer;
pub(crate) mod read;
#[cfg(feature = "lua")]
mod script_counts;
#[cfg(feature = "lua")]
mod stats;
#[cfg(all(test, feature = "lua"))]
mod tests;
#[cfg(feature = "lua")]
mod text;
#[cfg(feature = "lua")]
mod units;
#[cfg(feature = "lua")]
mod url;

use crate::Tool;
#[cfg(feature = "lua")]
use crate::command::{Call, CommandOutcome};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "wrk",
    about: "wrk: a closed loop on several threads, HTTP/1.1, scripts in Lua",
    counts_differently: &[
        "replies with 4xx and 5xx count as requests like any other; its line of non-2xx or 3xx counts those of 400 and above",
        "a reply that took longer than its timeout (2 s unless --timeout) counts as a request and as an error, but not in latency; a reply that never comes is not counted anywhere",
        "requests in flight when the load ends are not counted",
        "requests on a connection that broke are sent again and counted once; the errors count beside them",
        "where replies took longer than twice the mean time between the requests of a connection, it adds latencies that nobody measured",
        "the rate covers the threads' run time, which includes connecting",
        "bytes include heads",
        "latency starts when a request is sent: waiting before that is not included (closed loop)",
    ],
    #[cfg(feature = "lua")]
    command: Some(command),
    #[cfg(not(feature = "lua"))]
    command: None,
    own_flags: &[],
    read: read::read_reports,
};

/// Handles a command line of wrk.
#[cfg(feature = "lua")]
fn command(call: &Call<'_>) -> CommandOutcome {
    let prepared = flags::parse(call).and_then(|flags| plan::prepare(flags, call.world));
    match prepared {
        Ok(run) => CommandOutcome::Run(Box::new(run)),
        Err(said) => CommandOutcome::Exit(said),
    }
}
