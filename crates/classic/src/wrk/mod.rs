//! wrk, of 4.0 to 4.2: its command line, its scripts, its report, and its report read back. Owns all that is particular
//! to it. Source of the facts: wg/wrk, `src/wrk.c`, `src/script.c`, `src/stats.c`, and Debian's wrk 4.1.0, which is
//! trusted where the two differ. Start reading at [`command`].
//!
//! What a script cannot change is asked by the plan, whose one request is wrk's byte for byte. What it
//! can change is asked by a scenario ([`lua::Users`]).

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
        "a reply that took longer than its timeout (2 s unless --timeout) counts as a request and as an error, and stands in no figure of latency; one that never comes is in no figure at all",
        "what is still out when the load ends is not counted",
        "requests on a connection that broke are sent again and counted once; the errors count beside them",
        "where replies took longer than twice the mean time between the requests of a connection, it adds latencies that nobody measured",
        "the rate is taken over the time that the threads ran, from before the connections stood",
        "bytes include heads",
        "a latency is taken from the sending: what a request waited to be sent is in none (closed loop)",
    ],
    #[cfg(feature = "lua")]
    command: Some(command),
    #[cfg(not(feature = "lua"))]
    command: None,
    own_flags: &[],
    read: read::read_reports,
};

/// What a command line of wrk asks for.
#[cfg(feature = "lua")]
fn command(call: &Call<'_>) -> CommandOutcome {
    let prepared = flags::parse(call).and_then(|flags| plan::prepare(flags, call.world));
    match prepared {
        Ok(run) => CommandOutcome::Run(Box::new(run)),
        Err(said) => CommandOutcome::Exit(said),
    }
}
