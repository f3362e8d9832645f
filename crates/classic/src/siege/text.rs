//! What siege prints besides the lines of its users: banner, report, help, configuration. Owns labels, widths and both
//! layouts. Start reading at [`report`].

use std::fmt::Write as _;

use super::figures::Figures;
use super::settings::{FOR_EVER, Reps, Settings};
use super::style::Style;
use crate::command::{ExitMessage, Texts};

const WRITES: &str = "a string takes all that is written";

/// siege's copyright notice.
const COPYRIGHT: &str = "Copyright (C) 2018 by Jeffrey Fulmer, et al.\n\
    This is free software; see the source for copying conditions.\n\
    There is NO warranty; not even for MERCHANTABILITY or FITNESS\n\
    FOR A PARTICULAR PURPOSE.\n";

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotifyLevel {
    Debug,
    Alert,
    Error,
    Fatal,
}

/// A message line, in colour regardless of `color`.
pub(super) fn notify(level: NotifyLevel, text: &str) -> String {
    let (name, color) = match level {
        NotifyLevel::Debug => ("debug", 34),
        NotifyLevel::Alert => ("alert", 32),
        NotifyLevel::Error => ("error", 33),
        NotifyLevel::Fatal => ("fatal", 31),
    };
    format!("[\x1b[1;{color}m{name}\x1b[0m] {text}\n")
}

/// A message that ends siege at once.
pub(super) fn fatal(text: &str) -> ExitMessage {
    ExitMessage { texts: Texts::err(notify(NotifyLevel::Fatal, text)), code: 1 }
}

/// `SIEGE 4.0.7`, with details for -D.
fn name(settings: &Settings) -> String {
    let version = settings.style.version();
    match settings.debug {
        true => format!("SIEGE {version}: debugging enabled\n\n{COPYRIGHT}\n"),
        false => format!("SIEGE {version}\n"),
    }
}

/// The output of -V.
pub(super) fn version(settings: &Settings) -> String {
    match settings.debug {
        true => name(settings),
        false => format!("{}\n{COPYRIGHT}\n", name(settings)),
    }
}

/// The output of -h: the name on stderr, the rest on stdout.
pub(super) fn help(settings: &Settings) -> Texts {
    Texts::err(name(settings)).and_out(include_str!("help.txt"))
}

/// The banner before the first request.
pub(super) fn banner(settings: &Settings) -> String {
    let end = if settings.verbose { "\n" } else { "" };
    format!(
        "** {}** Preparing {} concurrent users for battle.\nThe server is now under siege...{end}",
        name(settings),
        settings.users
    )
}

/// siege's message, with a pause of 10 seconds, if more users are requested than it allows.
pub(super) fn capped(limit: i32) -> String {
    let line = "=".repeat(64);
    let gap = if limit > 999 { " " } else { "  " };
    format!(
        "\n{line}\nWARNING: The number of users is capped at {limit}.{gap}To increase this\n         \
         limit, search your .siegerc file for 'limit' and change\n         its value. Make sure you \
         read the instructions there...\n{line}\n"
    )
}

pub(super) const GAVE_UP: &str = "siege aborted due to excessive socket failure; you\n\
    can change the failure threshold in $HOME/.siegerc\n";

/// The report on stderr.
pub(super) fn report(settings: &Settings, figures: &Figures) -> String {
    let mut text = String::new();
    write_report(&mut text, settings, figures).expect(WRITES);
    text
}

fn write_report(text: &mut String, settings: &Settings, figures: &Figures) -> std::fmt::Result {
    let is_new = settings.style == Style::Millis;
    let width = if is_new { 9 } else { 12 };
    let (hits_gap, factor) = if is_new { ("   ", 1000.0) } else { ("", 1.0) };
    let (mean_unit, unit) = if is_new { (" ms", " ms") } else { (" secs", "") };
    let Figures { hits, succeeded, ok, failed, .. } = figures;
    writeln!(text, "\nTransactions:\t\t{hits:>width$}{hits_gap} hits")?;
    writeln!(text, "Availability:\t\t{:>12.2} %", figures.availability)?;
    writeln!(text, "Elapsed time:\t\t{:>12.2} secs", figures.elapsed)?;
    writeln!(text, "Data transferred:\t{:>12.2} MB", figures.megabytes)?;
    writeln!(text, "Response time:\t\t{:>12.2}{mean_unit}", figures.response * factor)?;
    writeln!(text, "Transaction rate:\t{:>12.2} trans/sec", figures.rate)?;
    writeln!(text, "Throughput:\t\t{:>12.2} MB/sec", figures.throughput)?;
    writeln!(text, "Concurrency:\t\t{:>12.2}", figures.concurrency)?;
    writeln!(text, "Successful transactions:{succeeded:>width$}")?;
    if settings.debug {
        writeln!(text, "HTTP OK received:\t{ok:>width$}")?;
    }
    writeln!(text, "Failed transactions:\t{failed:>width$}")?;
    writeln!(text, "Longest transaction:\t{:>12.2}{unit}", figures.longest * factor)?;
    writeln!(text, "Shortest transaction:\t{:>12.2}{unit}", figures.shortest * factor)?;
    text.write_str(" \n")
}

/// The report of -j: seconds in every version.
pub(super) fn json(settings: &Settings, figures: &Figures) -> String {
    let mut text = String::from("{");
    if settings.style == Style::Millis {
        text.push('\n');
    }
    let Figures { hits, succeeded, ok, failed, .. } = figures;
    let count = |count: u64| format!("{count:>12}");
    let real = |real: f64| format!("{real:>12.2}");
    let mut rows = vec![
        ("transactions\":\t\t\t", count(*hits)),
        ("availability\":\t\t\t", real(figures.availability)),
        ("elapsed_time\":\t\t\t", real(figures.elapsed)),
        ("data_transferred\":\t\t", real(figures.megabytes)),
        ("response_time\":\t\t", real(figures.response)),
        ("transaction_rate\":\t\t", real(figures.rate)),
        ("throughput\":\t\t\t", real(figures.throughput)),
        ("concurrency\":\t\t\t", real(figures.concurrency)),
        ("successful_transactions\":\t", count(*succeeded)),
        ("http_ok_received\":\t\t", count(*ok)),
        ("failed_transactions\":\t\t", count(*failed)),
        ("longest_transaction\":\t\t", real(figures.longest)),
        ("shortest_transaction\":\t\t", real(figures.shortest)),
    ];
    if !settings.debug {
        rows.retain(|(name, _)| !name.starts_with("http_ok"));
    }
    let rows: Vec<String> = rows.iter().map(|(name, value)| format!("\t\"{name}{value}")).collect();
    text + &rows.join(",\n") + "\n}\n"
}

/// The output of -C.
pub(super) fn config(settings: &Settings) -> String {
    let mut text = String::new();
    write_config(&mut text, settings).expect(WRITES);
    text
}

fn write_config(text: &mut String, of: &Settings) -> std::fmt::Result {
    let truth = |is: bool| if is { "true" } else { "false" }.to_owned();
    let either = |is: bool, yes: &str, no: &str| if is { yes } else { no }.to_owned();
    let unless = |value: Option<String>| value.unwrap_or_else(|| "n/a".to_owned());
    writeln!(text, "CURRENT  SIEGE  CONFIGURATION\n{}", of.agent)?;
    writeln!(text, "Edit the resource file to change the settings.\n{}", "-".repeat(46))?;
    let mut row = |name: &str, value: String| writeln!(text, "{:<32}{value}", format!("{name}:"));
    row("version", of.style.version().to_owned())?;
    row("verbose", truth(of.verbose))?;
    row("color", truth(of.color))?;
    row("quiet", truth(of.quiet))?;
    row("debug", truth(of.debug))?;
    row("protocol", either(of.is_http11, "HTTP/1.1", "HTTP/1.0"))?;
    row("HTML parser", either(of.parser, "enabled", "disabled"))?;
    row("get method", either(of.get_is_head == Some(false), "GET", "HEAD"))?;
    if let Some(proxy) = &of.proxy {
        row("proxy-host", proxy.clone())?;
        row("proxy-port", of.proxy_port.to_string())?;
    }
    row("connection", either(of.keep_alive, "keep-alive", "close"))?;
    row("concurrent users", of.users.to_string())?;
    row("time to run", unless(of.duration().map(|seconds| format!("{seconds} seconds"))))?;
    let reps = match of.reps {
        Reps::Times(reps) if reps > 0 && reps != FOR_EVER => Some(reps.to_string()),
        _ => None,
    };
    row("repetitions", unless(reps))?;
    row("socket timeout", of.timeout.to_string())?;
    row("cache enabled", truth(of.cache))?;
    row("accept-encoding", of.encoding.clone())?;
    row("delay", format!("{:.3} sec{}", of.delay, if of.delay > 1.0 { "s" } else { "" }))?;
    row("internet simulation", truth(of.internet))?;
    row("benchmark mode", truth(of.bench))?;
    row("failures until abort", of.failures.to_string())?;
    let url = of.url.clone().filter(|url| url.len() > 1);
    row("named URL", url.unwrap_or_else(|| "none".to_owned()))?;
    row("URLs file", of.file.clone())?;
    row("thread limit", if of.users_max < 1 { 255 } else { of.users_max }.to_string())?;
    row("logging", truth(of.logging))?;
    row("log file", of.log_file.clone())?;
    row("resource file", of.rc.clone())?;
    row("timestamped output", truth(of.timestamp))?;
    row("comma separated output", truth(of.csv))?;
    row("allow redirects", truth(of.follow))?;
    row("allow zero byte data", truth(of.zero_ok))?;
    row("allow chunked encoding", truth(of.chunked))?;
    row("upload unique files", truth(of.unique))?;
    row("json output", truth(of.json))?;
    if of.parser && !of.no_follow.is_empty() {
        let hosts: String = of.no_follow.iter().map(|host| format!(" - {host}\n")).collect();
        write!(text, "no-follow:\n{hosts}")?;
    }
    let logins = |logins: &[super::auth::Login]| -> String {
        logins.iter().map(|login| format!("credentials:  {}\n", login.shown())).collect()
    };
    writeln!(text, "proxy auth:{}{}", " ".repeat(21), logins(&of.proxy_logins))?;
    writeln!(text, "www auth:{}{}", " ".repeat(23), logins(&of.logins))
}
