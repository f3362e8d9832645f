//! `joust load`: what is typed becomes a plan, a plan a record, a record a report.

use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use load::{Control, LoadOptions};
use miette::{IntoDiagnostic as _, miette};
use record::{Interval, LoadPlan, LoadRecord, Outcome};
use units::Nanos;

use crate::output::{self, Place};
use crate::screen::{Screen, Wish};
use crate::trouble::{Ended, Trouble};

/// How long a load lasts where neither -n nor -d says so.
const DURATION: Nanos = Nanos::from_secs(10);

/// Load a web server: closed loop, every request stamped, errors told apart
#[derive(clap::Args)]
#[command(
    after_help = "Without -n and -d the load lasts 10 seconds; with both, it ends by whichever comes first."
)]
pub struct Args {
    /// What to ask for, as in http://127.0.0.1:8080/index.html
    url: String,
    /// Concurrent connections over all threads
    #[arg(short, long, default_value_t = 10)]
    connections: u32,
    /// End after this many requests
    #[arg(short = 'n', long)]
    requests: Option<u64>,
    /// End after this time, as in 10s or 2m
    #[arg(short, long)]
    duration: Option<Nanos>,
    /// Threads; each has its own part of the connections
    #[arg(short, long, default_value_t = 1)]
    threads: u32,
    /// A new connection for each request, closed by the generator
    #[arg(long)]
    no_keepalive: bool,
    /// Spin instead of sleeping while waiting: latencies without the wake-up of an idle CPU, at the
    /// price of a whole CPU a thread
    #[arg(long)]
    busy_poll: bool,
    /// CPUs to pin the threads to, as in 1 or 2,3
    #[arg(long, value_delimiter = ',', value_name = "CPU")]
    cpus: Vec<u32>,
    /// A further header field, as in 'Accept: text/html'; repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Request method
    #[arg(short = 'X', long, default_value = "GET")]
    method: String,
    /// Request body: the text itself, or @FILE
    #[arg(long, value_name = "TEXT|@FILE")]
    body: Option<String>,
    /// Longest wait for connecting, for the first byte and for the rest, each
    #[arg(long, default_value = "10s")]
    timeout: Nanos,
    /// No live screen and no report; --json still writes
    #[arg(short, long)]
    quiet: bool,
    /// A progress line instead of the live screen
    #[arg(long)]
    plain: bool,
    /// Write the record of the load as one JSON object; - is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<Place>,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let plan = plan(args)?;
    somebody_listens(&plan)?;
    let interrupt = sys::interrupt::install().into_diagnostic().map_err(Trouble::failed)?;
    let record = measure(&plan, Wish { quiet: args.quiet, plain: args.plain }, interrupt)?;
    if let Some(place) = &args.json {
        output::write(place, record.to_json().as_bytes())?;
    }
    if !args.quiet && args.json != Some(Place::Stdout) {
        let text = report::load_text(&record, &crate::report::options());
        output::stdout(text.as_bytes())?;
    }
    ended(&record)
}

fn plan(args: &Args) -> Result<LoadPlan, Trouble> {
    let endless = args.requests.is_none() && args.duration.is_none();
    let options = LoadOptions {
        method: args.method.clone(),
        headers: args.headers.clone(),
        body: args.body.as_deref().map_or(Ok(Vec::new()), body)?,
        connections: args.connections,
        threads: args.threads,
        cpus: args.cpus.clone(),
        keep_alive: !args.no_keepalive,
        busy_poll: args.busy_poll,
        requests: args.requests,
        duration: if endless { Some(DURATION) } else { args.duration },
        timeout: args.timeout,
        ..LoadOptions::new(&args.url)
    };
    options.plan().map_err(|error| Trouble::usage(miette!("{error}")))
}

/// Asks before a whole load is spent on an address where nobody is. One connection, no request: the
/// server's log does not show it.
fn somebody_listens(plan: &LoadPlan) -> Result<(), Trouble> {
    let connected = TcpStream::connect_timeout(&plan.addr, plan.timeout.into());
    connected.map(drop).map_err(|error| {
        Trouble::failed(miette!(
            help = "start the server, or mend the address; `ss -ltn` lists who listens here",
            "nobody answers at {} ({}): {error}",
            plan.addr,
            plan.url
        ))
    })
}

fn body(typed: &str) -> Result<Vec<u8>, Trouble> {
    let Some(file) = typed.strip_prefix('@') else { return Ok(typed.as_bytes().to_vec()) };
    std::fs::read(file).map_err(|error| {
        Trouble::usage(miette!(
            help = "--body @FILE reads a file; without @ the text itself is the body",
            "cannot read {file}: {error}"
        ))
    })
}

fn measure(
    plan: &LoadPlan,
    wish: Wish,
    interrupt: &'static AtomicBool,
) -> Result<LoadRecord, Trouble> {
    let screen = Mutex::new(Screen::new(plan, wish, interrupt));
    let show = |interval: &Interval| screen.lock().expect("nobody panics with it").show(interval);
    let control = Control::new(interrupt).watching(&show);
    load::run(plan, &control).map_err(|error| Trouble::failed(miette!("{error}")))
}

/// A load in which nothing was answered has failed, and says why as the errors have it.
fn ended(record: &LoadRecord) -> Result<Ended, Trouble> {
    if record.interrupted {
        return Ok(Ended::Incomplete);
    }
    if record.requests.ok > 0 {
        // The report has said it already, before any number.
        return Ok(if record.silence_at_end().is_some() { Ended::Failed } else { Ended::Well });
    }
    let worst = record.errors.each().max_by_key(|(_, count)| *count);
    let (outcome, count) =
        worst.filter(|(_, count)| *count > 0).unwrap_or((Outcome::Unanswered, 0));
    let addr = record.plan.addr;
    let (what, help) = match outcome {
        Outcome::ConnectRefused => ("nobody listens there", "start the server, or mend the port"),
        Outcome::ConnectFailed => ("no connection could be made", "is the address reachable?"),
        Outcome::ConnectTimeout => ("connecting took too long", "is it up? raise --timeout"),
        Outcome::UnexpectedStatus => ("every status was unexpected", "mend the path of the URL"),
        Outcome::Protocol => ("what answers is not HTTP/1", "is it TLS, or another protocol?"),
        Outcome::TimeoutWaiting => ("no answer came in time", "raise --timeout"),
        Outcome::Unanswered => ("no answer came before the end", "raise -d"),
        _ => ("every request failed", "the counts by kind say how"),
    };
    Err(Trouble::failed(miette!(
        help = help,
        "no request to {addr} was answered well ({count} failed, {} unanswered): {what}",
        record.requests.unanswered
    )))
}
