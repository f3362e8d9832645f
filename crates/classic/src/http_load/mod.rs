//! http_load (ACME Laboratories), whose command line and report are the same from 2006 to 2016: flags, requests,
//! report, and parsing the report. Owns everything specific to it. Source of the facts: `http_load.c`. Start reading at
//! [`command`].

mod checksum;
mod figures;
mod flags;
mod footnotes;
mod plan;
mod printer;
mod random;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod urls;

use crate::Tool;
use crate::command::{Call, CommandOutcome, Run};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "http_load",
    about: "URLs at random on one thread, a connection for each, HTTP/1.0",
    counts_differently: &[
        "a fetch that timed out, or whose connection failed, counts as a fetch; the latter without any line of its own",
        "a reply counts whatever its status is; the codes are listed",
        "bytes are those of bodies",
        "each fetch has a connection of its own: there is no keep-alive",
        "numbers have 6 digits, of a float: larger counts of bytes are rounded",
        "with -rate the interval is a whole number of milliseconds: 600 a second become 1000",
        "there are no percentiles: mean, largest and smallest only",
    ],
    command: Some(command),
    own_flags: &[],
    read: read::read_reports,
};

/// Handles a command line of http_load.
fn command(call: &Call<'_>) -> CommandOutcome {
    let planned = flags::parse(call).and_then(|flags| plan::plan(flags, call));
    match planned {
        Ok(plan::Planned { plan, footnotes, subject, scenario }) => {
            let checksums = scenario.as_ref().map(checksum::Checksums::found);
            let printer = Box::new(printer::HttpLoad::new(subject, checksums));
            let scenario = scenario.map(|scenario| Box::new(scenario) as Box<dyn record::Scenario>);
            CommandOutcome::Run(Box::new(Run { plan, footnotes, printer, scenario }))
        }
        Err(said) => CommandOutcome::Exit(said),
    }
}
