//! siege, as of 4.0.7 (seconds) and in the layout of 4.1.7 (milliseconds): its command line, its configuration file,
//! its users, its report, and parsing that report. Owns everything specific to it. Source of the facts: Debian's siege
//! 4.0.7, which decides, and JoeDog/siege, `src/`, where a run cannot tell. Start reading at [`command`]; what a user
//! does is in `users`.

mod auth;
mod conf;
mod cookies;
mod figures;
mod flags;
mod footnotes;
mod heads;
mod html;
mod lines;
mod log;
mod plan;
mod printer;
mod read;
mod request;
mod settings;
mod style;
#[cfg(test)]
mod tests;
mod text;
mod urls;
mod users;

use crate::Tool;
use crate::command::{Call, CommandOutcome, OwnFlag};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "siege",
    about: "siege: a closed loop of one thread a user",
    counts_differently: &[
        "transactions include redirects, repeated requests with credentials, and the parts of a page that its parser finds",
        "replies with 500 to 509 and 408 count as failed and not as transactions; other 4xx are transactions, neither successful nor failed",
        "availability is transactions / (transactions + failed), so 4xx leave it at 100 %",
        "bytes are those of bodies, as read",
        "times come in steps of 10 ms, so that fast replies take 0.00; the response time is a mean, and there are no percentiles",
        "the load ends at a whole second, up to one second from the time asked for",
        "after 1024 failed connections it gives up, and still ends with exit status 0",
    ],
    command: Some(command),
    own_flags: &[OwnFlag::version_style(&["4.0.7", "4.1.7"])],
    read: read::read_reports,
};

/// Handles a command line of siege.
fn command(call: &Call<'_>) -> CommandOutcome {
    let settings = match flags::parse(call) {
        Ok(settings) => settings,
        Err(said) => return CommandOutcome::Exit(said),
    };
    match plan::run(settings, call) {
        Ok(run) => CommandOutcome::Run(Box::new(run)),
        Err(said) => CommandOutcome::Exit(said),
    }
}
