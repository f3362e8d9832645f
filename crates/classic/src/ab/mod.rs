//! ApacheBench (`ab`) of httpd 2.4: its command line, its requests, its report, and parsing that report. Owns
//! everything specific to ab. Source of the facts: httpd, `support/ab.c`, and Debian's ab 2.4.71, which decides if the
//! two differ. Start reading at [`command`].

mod figures;
mod files;
mod flags;
mod footnotes;
mod html;
mod plan;
mod printer;
mod read;
mod server;
#[cfg(test)]
mod tests;
mod text;

use crate::Tool;
use crate::command::{Call, CommandOutcome, Run};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "ab",
    about: "ApacheBench: a closed loop on one thread, HTTP/1.0",
    counts_differently: &[
        "a reply whose length differs from the first one's counts as failed, also where it is complete (unless -l)",
        "a reply with a status other than 2xx does not count as failed",
        "complete requests include the failed ones",
        "a kept-alive connection that the server closes is opened again and the request on it is not counted",
        "the first request goes out alone: the other connections start when its head has come",
        "times are whole milliseconds, and a reused connection counts with a connect time of 0",
        "no reply is decoded: with -k a chunked one counts as empty and ends with its head",
    ],
    command: Some(command),
    own_flags: &[],
    read: read::read_reports,
};

/// Handles a command line of ab.
fn command(call: &Call<'_>) -> CommandOutcome {
    let flags = match flags::parse(call) {
        Ok(flags) => flags,
        Err(said) => return CommandOutcome::Exit(said),
    };
    match plan::plan(&flags, call.world) {
        Ok((plan, footnotes)) => {
            let printer = Box::new(printer::Ab::new(flags));
            CommandOutcome::Run(Box::new(Run { plan, footnotes, printer, scenario: None }))
        }
        Err(said) => CommandOutcome::Exit(said),
    }
}
