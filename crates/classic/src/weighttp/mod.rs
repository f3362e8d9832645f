//! weighttp: 0.4, the classic, and in [`new`] 0.5, a rewrite. Command lines, requests, reports, and parsing the
//! reports. Owns everything specific to it. Source of the facts: lighttpd/weighttp, `src/weighttp.c`, `src/worker.c`
//! and `src/client.c` of 0.4. Start reading at [`command`].

mod flags;
mod footnotes;
mod new;
mod printer;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod workers;

use record::{LoadPlan, LoadStop, Origin, RequestPlan, Scenario, ServerAddress, TlsPlan, Verify};
use units::Nanos;

use self::flags::Flags;
use self::workers::{Rules, Workers};
use crate::Tool;
use crate::command::{Call, CommandOutcome, ExitMessage, OwnFlag, Run};

/// The tool.
pub(crate) static TOOL: Tool = Tool {
    name: "weighttp",
    about: "a closed loop on several threads, for a number of requests",
    counts_differently: &[
        "succeeded are replies with 2xx and 3xx that were read whole; the others failed",
        "in 0.4 the count of errored requests is never summed over its threads: it is always 0",
        "in 0.4 there is no latency at all, and rates are cut to whole numbers",
        "the clock includes the start and the end of its threads",
        "requests and connections are divided among threads before the start: a thread that is done leaves its connections idle",
        "0.4 takes a reply that is not HTTP/1.1, or has a head above 32 KiB, as failed",
        "0.4 takes a reply without a length, as a 204 is, as failed",
    ],
    command: Some(command),
    own_flags: &[OwnFlag::version_style(&["0.4", NEW])],
    read: read::read_reports,
};

/// weighttp waits for ever; a load needs a limit.
const TIMEOUT: Nanos = Nanos::from_secs(3600);

/// The version that --version-style can choose instead of the classic.
const NEW: &str = "0.5";

/// Handles a command line of weighttp.
fn command(call: &Call<'_>) -> CommandOutcome {
    let run = match call.own.value("--version-style") {
        Some(NEW) => new::run(call),
        _ => old(call),
    };
    match run {
        Ok(run) => CommandOutcome::Run(Box::new(run)),
        Err(said) => CommandOutcome::Exit(said),
    }
}

fn old(call: &Call<'_>) -> Result<Run, ExitMessage> {
    let flags = flags::parse(call)?;
    let plan = plan(&flags, call)?;
    let rules = Rules::Old { keep_alive: flags.keep_alive };
    let workers = Workers::new(flags.request(), flags.requests, flags.threads, rules);
    let footnotes = of_https(flags.url.is_tls);
    let printer = Box::new(printer::Weighttp::new(flags, workers.shared()));
    let scenario: Box<dyn Scenario> = Box::new(workers);
    Ok(Run { plan, footnotes, printer, scenario: Some(scenario) })
}

/// Like the other tools, which do not verify certificates.
fn tls() -> TlsPlan {
    TlsPlan { insecure: true, resume: 0.0, ..TlsPlan::default() }
}

/// The footnote about an https URL.
fn of_https(is_tls: bool) -> Vec<String> {
    let text =
        "weighttp does not support TLS and would reject this URL; no certificate was verified";
    is_tls.then(|| text.to_owned()).into_iter().collect()
}

fn plan(flags: &Flags, call: &Call<'_>) -> Result<LoadPlan, ExitMessage> {
    let addr = flags.resolve(call)?;
    let url = &flags.url;
    let host = flags::host_field(url.is_tls, &url.host, url.port);
    let field = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let request = RequestPlan {
        headers: flags.headers.iter().filter_map(field).collect(),
        verbatim: Some(flags.request()),
        ..RequestPlan::get(&url.path)
    };
    Ok(LoadPlan {
        url: format!("{}://{host}{}", if url.is_tls { "https" } else { "http" }, url.path),
        origins: vec![Origin {
            place: ServerAddress::Inet(addr),
            host,
            tls_name: url.is_tls.then(|| url.host.clone()),
        }],
        tls: tls(),
        requests: vec![request],
        connections: flags.clients,
        threads: flags.threads,
        keep_alive: flags.keep_alive,
        stop: LoadStop { requests: Some(flags.requests), duration: None },
        timeout: TIMEOUT,
        drain: Nanos::ZERO,
        // The users count what is a success.
        verify: Verify { status_min: 0, status_max: 999, ..Verify::default() },
        ..LoadPlan::get(addr, &url.path)
    })
}
