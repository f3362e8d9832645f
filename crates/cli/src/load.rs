//! `joust load`: flags become a plan, the plan a record, the record a report.

mod args;
#[cfg(test)]
mod explained;
#[cfg(feature = "fleet")]
pub mod fleet;
mod merge;
mod metrics;
#[cfg(not(feature = "fleet"))]
pub mod no_fleet;
mod plan;
mod search;
mod stream;
mod verify;

#[cfg(not(feature = "fleet"))]
use no_fleet as fleet;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use load::{Control, FetchError, Oracle};
use miette::{IntoDiagnostic as _, miette};
use record::{Interval, LoadPlan, LoadRecord, Outcome, Proxy, Redirects};
use report::live::AgentFigures;

pub use args::Args;

use crate::output::{self, Destination};
use crate::screen::{Screen, Wish};
use crate::trouble::{Ended, Trouble};
use metrics::Metrics;
use stream::Stream;

/// Longest wait between the requests before a load and the load.
const OUT_OF_STEP_MAX: Duration = Duration::from_millis(100);

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    if !args.output.merge.is_empty() {
        return merge::main(args);
    }
    let quiet = args.output.quiet;
    let say = |line: &str| {
        if !quiet {
            crate::terminal::say(&format!("joust: {line}"));
        }
    };
    check_places(&args.output)?;
    let mut plan = plan::plan(args, &say)?;
    let search = search::options(args, &plan)?;
    let verify = args.checks.verify.as_ref().map(|verify| verify.check(&plan)).transpose()?;
    for place in args.output.json.iter().chain(&args.output.stream) {
        output::can_write(place)?;
    }
    fleet::check(&args.fleet, &plan)?;
    let metrics = Metrics::begin(args.output.metrics_listen, &plan, &say)?;
    if !args.fleet.is_asked_for() {
        check_servers_listen(&plan)?;
    }
    let asked = Instant::now();
    let oracle = look_up_bodies(&mut plan)?;
    let each = asked.elapsed().div_f64(oracle.probes.max(1) as f64);
    match verify {
        Some(verify) => verify.enforce(&plan, &oracle, &say)?,
        None => verify::say_what_changes(&oracle, &say),
    }
    // Before this Ctrl-C ends the process at once, also while it waits for a dead server.
    let interrupt = sys::interrupt::install().into_diagnostic().map_err(Trouble::failed)?;
    let session = Session { args, interrupt, metrics: metrics.as_ref() };
    if let Some(options) = search {
        return search::main(session, options, &plan);
    }
    let stream = Stream::begin(&args.output)?;
    // A server that releases replies at multiples of a time has just released one. If the load began now, every request
    // would wait for that whole time, as if it took that long. So begin out of step.
    std::thread::sleep((each / 2).min(OUT_OF_STEP_MAX));
    let began = SystemTime::now().duration_since(UNIX_EPOCH);
    // Without a thread for it the machine is not observed, and checks that need this stay silent.
    // On a fleet each agent observes its own.
    let sampler =
        (!args.fleet.is_asked_for()).then(|| lab::sampler::Sampler::around(&plan).ok()).flatten();
    let (mut record, streamed) = streamed(&plan, session, stream)?;
    record.machine = sampler.map(|sampler| Box::new(sampler.finish().0));
    record.probes = oracle.probes;
    record.began_unix_ms = began.ok().map(|since| since.as_millis() as u64);
    record.findings = doctor::examine_load(&record);
    write_outputs(&record, args)?;
    streamed?;
    if args.fleet.allows_incomplete() {
        return judged(&record, args.checks.strict);
    }
    ended(&record, args.checks.strict)
}

/// The record comes last and would replace the lines of the stream.
fn check_places(typed: &args::Output) -> Result<(), Trouble> {
    let name = match typed.json.as_ref().filter(|json| typed.stream.as_ref() == Some(*json)) {
        Some(Destination::Stdout) => "stdout".to_owned(),
        Some(Destination::File(path)) if !output::is_device(path) => path.display().to_string(),
        Some(Destination::File(_)) | None => return Ok(()),
    };
    Err(Trouble::usage(miette!(
        help = "name another file for one of them",
        "--json and --stream cannot both be {name}"
    )))
}

/// Writes the record and the report to their destinations.
fn write_outputs(record: &LoadRecord, args: &Args) -> Result<(), Trouble> {
    if let Some(place) = &args.output.json {
        output::write(place, record.to_json().as_bytes())?;
    }
    if args.output.quiet || args.output.json == Some(Destination::Stdout) {
        return Ok(());
    }
    if args.output.stream == Some(Destination::Stdout) {
        // Stdout belongs to the reader of the stream.
        let options = report::Options { colour: false, ..crate::terminal::report_options() };
        crate::terminal::say(report::load_text(record, &options).trim_end());
        return Ok(());
    }
    output::stdout(report::load_text(record, &crate::terminal::report_options()).as_bytes())
}

/// Connects once to each address before the load, and sends nothing, so the server's log does not show it.
pub fn check_servers_listen(plan: &LoadPlan) -> Result<(), Trouble> {
    if let Some(proxy) = &plan.proxy {
        TcpStream::connect_timeout(&proxy.addr, plan.timeout.into()).map_err(|error| {
            let Proxy { host, addr, .. } = proxy;
            let at = if *host == addr.to_string() { String::new() } else { format!(" ({addr})") };
            Trouble::failed(miette!(
                help = "start the proxy, or correct its address (--proxy)",
                "the proxy {host}{at} does not accept connections: {error}",
            ))
        })?;
        return Ok(());
    }
    for origin in &plan.origins {
        let connected = match &origin.place {
            record::ServerAddress::Inet(addr) => {
                TcpStream::connect_timeout(addr, plan.timeout.into()).map(drop)
            }
            record::ServerAddress::Unix(path) => UnixStream::connect(path).map(drop),
        };
        connected.map_err(|error| {
            Trouble::failed(miette!(
                help = "start the server, or correct the address; `ss -ltnx` lists the listening sockets",
                "cannot connect to {} ({}): {error}",
                origin.place,
                plan.url
            ))
        })?;
    }
    Ok(())
}

/// Fetches the bodies that those of the load are compared with.
fn look_up_bodies(plan: &mut LoadPlan) -> Result<Oracle, Trouble> {
    load::look_up_bodies(plan).map_err(|error| {
        let is_about_the_reply = matches!(
            error,
            FetchError::Cut { .. }
                | FetchError::Protocol { .. }
                | FetchError::Timeout { .. }
                | FetchError::TooLong { .. }
        );
        if let FetchError::Proxy { why, .. } = &error {
            return Trouble::failed(miette!(help = help_with_proxy(why), "{error}"));
        }
        Trouble::failed(if is_about_the_reply {
            miette!(
                help = "this request is made before the load, to know the body (`curl -v URL` shows it); \
                        --verify none leaves it out",
                "{error}"
            )
        } else {
            miette!("{error}")
        })
    })
}

/// A load, and the result of its stream.
fn streamed(
    plan: &LoadPlan,
    session: Session<'_>,
    stream: Option<Stream>,
) -> Result<(LoadRecord, Result<(), Trouble>), Trouble> {
    let Some(stream) = stream else { return Ok((measure(plan, session)?, Ok(()))) };
    let stream = Mutex::new(stream);
    let add = |interval: &Interval| stream.lock().expect("nobody panics with it").add(interval);
    let record = watched(plan, session, &add);
    let ended = stream.into_inner().expect("nobody panics with it").end();
    Ok((record?, ended))
}

fn measure(plan: &LoadPlan, session: Session<'_>) -> Result<LoadRecord, Trouble> {
    watched(plan, session, &|_| {})
}

/// What all loads of one command line have in common.
#[derive(Clone, Copy)]
struct Session<'a> {
    args: &'a Args,
    interrupt: &'static AtomicBool,
    metrics: Option<&'a Metrics>,
}

/// Who watches a load while it runs.
pub struct Shows<'a> {
    /// Gets each interval.
    pub interval: &'a dyn Fn(&Interval),
    /// Gets all agents of a fleet, once a second.
    pub agents: &'a dyn Fn(&[AgentFigures]),
}

fn watched(
    plan: &LoadPlan,
    session: Session<'_>,
    also: &dyn Fn(&Interval),
) -> Result<LoadRecord, Trouble> {
    let Session { args, interrupt, metrics } = session;
    // Its name is said before the screen begins: whoever takes the run over needs it.
    let gathered = fleet::gather(plan, &args.fleet, &|line| say_unless_quiet(args, line))?;
    // A picture on the terminal and lines on stdout would overwrite each other.
    let is_streamed = args.output.stream == Some(Destination::Stdout);
    let wish = Wish { quiet: args.output.quiet || is_streamed, plain: args.output.plain };
    let screen = Mutex::new(Screen::new(plan, wish, interrupt));
    if let Some(metrics) = metrics {
        metrics.begins(plan);
    }
    let show = |interval: &Interval| {
        screen.lock().expect("nobody panics with it").show(interval);
        metrics.iter().for_each(|metrics| metrics.add(interval));
        also(interval);
    };
    let agents = |agents: &[AgentFigures]| {
        screen.lock().expect("nobody panics with it").set_agents(agents);
        metrics.iter().for_each(|metrics| metrics.set_agents(agents));
    };
    // Printed after the live screen has ended, because it would overwrite them.
    let notices = Mutex::new(Vec::new());
    let notice = |line: &str| notices.lock().expect("nobody panics with it").push(line.to_owned());
    let record = match gathered {
        Some(gathered) => {
            let shows = Shows { interval: &show, agents: &agents };
            fleet::measure(plan, &args.fleet, gathered, interrupt, &shows, &notice)
        }
        None => alone(plan, interrupt, &show, &notice),
    };
    drop(screen);
    for line in notices.into_inner().expect("nobody panics with it") {
        say_unless_quiet(args, &line);
    }
    record
}

fn say_unless_quiet(args: &Args, line: &str) {
    if !args.output.quiet {
        crate::terminal::say(&format!("joust: {line}"));
    }
}

/// The load of this process.
fn alone(
    plan: &LoadPlan,
    interrupt: &'static AtomicBool,
    show: &dyn Fn(&Interval),
    say: &dyn Fn(&str),
) -> Result<LoadRecord, Trouble> {
    let control = Control::new(interrupt).watching(show).noticing(say);
    load::run(plan, &control).map_err(|error| Trouble::failed(miette!("{error}")))
}

/// A load without any answer has failed, and reports the reason from its errors.
pub fn ended(record: &LoadRecord, strict: bool) -> Result<Ended, Trouble> {
    if record.interrupted || record.fleet.as_ref().is_some_and(|fleet| !fleet.is_whole()) {
        return Ok(Ended::Incomplete);
    }
    judged(record, strict)
}

/// How it ended, although a part of it may be missing.
fn judged(record: &LoadRecord, strict: bool) -> Result<Ended, Trouble> {
    if record.requests.ok > 0 {
        // The report has already said it, before any number.
        return Ok(if doctor::SILENT_AT_END.is_confirmed_in(&record.findings) {
            Ended::Failed
        } else if doctor::RATE_NOT_REACHED.is_confirmed_in(&record.findings)
            || (strict && !record.generator_limits().is_empty())
        {
            Ended::Unbelievable
        } else if record.plan.goals.iter().any(|goal| !goal.judge(record).is_met()) {
            Ended::GoalBroken
        } else {
            Ended::Well
        });
    }
    if let Some(failure) = record.tls.as_ref().and_then(|tls| tls.failure.as_ref()) {
        return Err(Trouble::failed(miette!("no request was answered: {failure}")));
    }
    if let (Some(why), Some(proxy)) = (&record.proxy_failure, &record.plan.proxy) {
        return Err(Trouble::failed(miette!(
            help = help_with_proxy(why),
            "no request was answered: the proxy {} {why}",
            proxy.host
        )));
    }
    let worst = record.errors.each().max_by_key(|(_, count)| *count);
    let (outcome, count) =
        worst.filter(|(_, count)| *count > 0).unwrap_or((Outcome::Unanswered, 0));
    let addr = &record.plan.origin().place;
    let good = record.plan.verify.status_min..=record.plan.verify.status_max;
    let unexpected = record.status.iter().filter(|(status, _)| !good.contains(*status));
    let status = unexpected.max_by_key(|(_, count)| **count).map(|(status, _)| *status);
    let (what, help) = why(outcome, status);
    let failed = record.requests.failed;
    let most = if count < failed { format!("mostly ({count}) ") } else { String::new() };
    let redirected = match &record.redirects {
        Redirects { followed: 1.., first: Some(first) } => {
            format!(", after a redirect to {}", first.location)
        }
        _ => String::new(),
    };
    Err(Trouble::failed(miette!(
        help = help,
        "no request to {addr} succeeded ({failed} failed, {} unanswered): {most}{what}{redirected}",
        record.requests.unanswered
    )))
}

fn help_with_proxy(why: &str) -> &'static str {
    if why.contains(" 407 ") {
        "give the proxy a user: --proxy http://USER:PASSWORD@HOST:PORT"
    } else if why.contains("CONNECT with") && !why.contains("not HTTP") {
        "the log of the proxy may say why: it must allow CONNECT to this host and port"
    } else {
        "check that it runs and is an HTTP proxy: `curl -v -x PROXY URL` shows what it does"
    }
}

/// Why most requests of a load failed, and the remedy.
fn why(outcome: Outcome, status: Option<u16>) -> (String, &'static str) {
    let (what, help) = match outcome {
        Outcome::ConnectRefused => {
            ("connection refused: nothing listens there", "start the server, or correct the port")
        }
        Outcome::ConnectFailed => {
            ("no connection could be made", "is the address reachable? try `ping HOST`")
        }
        Outcome::ConnectTimeout => {
            ("connecting took longer than --timeout", "is the server up? raise --timeout")
        }
        Outcome::TlsTimeout => (
            "connections were made, but TLS handshakes took longer than --timeout",
            "is it a port for https://? check `openssl s_client -connect HOST:PORT`, or raise --timeout",
        ),
        Outcome::Proxy => ("the proxy failed", "correct the address of the proxy (--proxy)"),
        Outcome::TooManyRedirects => (
            "a request met more redirects than --follow allows",
            "raise --follow; `curl -v URL` shows whether the redirects are a loop",
        ),
        Outcome::BadRedirect => (
            "the redirects lead to something other than an http URL, or to an unknown host",
            "`curl -v URL` shows their Location",
        ),
        Outcome::Tls => ("TLS failed", "is it a port for https://?"),
        Outcome::FdExhausted => ("no file descriptor was left", "raise `ulimit -n`, or lower -c"),
        Outcome::PortExhausted => ("no local port was left", "keep connections, or use --source"),
        Outcome::UnexpectedStatus => {
            let status = status.unwrap_or_default();
            return (format!("the status was unexpected, most often {status}"), way_out_of(status));
        }
        Outcome::WrongLength => (
            "the body did not have the expected length",
            "correct --expect-length; if no length is expected, the body changed since before the load (--verify)",
        ),
        Outcome::WrongHeader => (
            "the reply lacked the expected field",
            "correct --expect-header; `curl -i URL` shows the fields",
        ),
        Outcome::WrongBody => (
            "the body was not the expected one",
            "correct --expect-body or --verify; `curl URL` shows the body",
        ),
        Outcome::Protocol => (
            "the reply is not valid HTTP/1",
            "`curl -v URL` shows what it is: TLS, another protocol, or a malformed head",
        ),
        Outcome::ResetBeforeFirstByte | Outcome::ResetAfterFirstByte => (
            "the server reset the connection (RST) before the reply was complete",
            "the log of the server may say why; is it TLS (https://)?",
        ),
        Outcome::ClosedBeforeFirstByte | Outcome::ClosedAfterFirstByte => (
            "the server closed the connection (FIN) before the reply was complete",
            "the log of the server may say why; is it TLS (https://)?",
        ),
        Outcome::TimeoutWaiting => ("the reply did not begin within --timeout", "raise --timeout"),
        Outcome::TimeoutReading => {
            ("the reply was not complete within --timeout", "raise --timeout")
        }
        Outcome::Unanswered | Outcome::Ok => ("no reply came before the load ended", "raise -d"),
    };
    (what.to_owned(), help)
}

/// The remedy for an unexpected status.
fn way_out_of(status: u16) -> &'static str {
    match status {
        400 => "the server rejects the request: is it TLS (https://), or is a field wrong (-H)?",
        407 => "give the proxy a user: --proxy http://USER:PASSWORD@HOST:PORT",
        401 | 403 => "give a user (--user), or check the server's permissions on the file",
        405 | 501 => "name a method that the server allows (-X); --body without -X sends POST",
        408 | 429 | 503 => {
            "the server turns requests away: lower the load (-c, --rate), or its limit"
        }
        500..=599 => "the log of the server says why",
        404 | 410 => "correct the path of the URL",
        _ => "correct the request, or allow the status (--expect-status)",
    }
}
