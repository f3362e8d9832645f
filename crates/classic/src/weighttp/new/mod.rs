//! weighttp 0.5, the rewrite of 2025: flags like ab's, a report in JSON, latency. Owns what differs from 0.4. Source of
//! the facts: lighttpd/weighttp, `src/weighttp.c` of 2025, and published reports of 0.5. Start reading at [`run`].

mod figures;
mod flags;
mod printer;
mod request;
#[cfg(test)]
mod tests;
mod text;

use record::Scenario;

use self::flags::Flags;
use super::workers::{Rules, Workers};
use crate::command::{Call, ExitMessage, Run};

/// Handles a command line of 0.5.
///
/// # Errors
/// What 0.5 prints instead of running.
pub(super) fn run(call: &Call<'_>) -> Result<Run, ExitMessage> {
    let flags = flags::parse(call)?;
    let (plan, request) =
        request::plan(&flags, call).map_err(|said| flags::behind_banner(flags.quiet, said))?;
    let Flags { requests, threads, pipeline, .. } = flags;
    let mut footnotes = super::of_https(plan.origin().tls_name.is_some());
    let workers = Workers::new(request, requests, threads, Rules::New);
    let shared = workers.shared();
    let mut scenario: Option<Box<dyn Scenario>> = Some(Box::new(workers));
    if pipeline > 1 {
        // A user waits for all replies before it sends again, which is not a pipeline.
        scenario = None;
        footnotes.push(
            "with -K weighttp sends more requests than -n and drops them at the end; here -n are sent"
                .to_owned(),
        );
    }
    let printer = Box::new(printer::Weighttp::new(flags, shared));
    Ok(Run { plan, footnotes, printer, scenario })
}
