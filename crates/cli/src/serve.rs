//! `joust serve`: makes a configuration from the command line, and a server from the configuration.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::path::PathBuf;

use miette::miette;
use serve::models::{ALL, Model};
use serve::supervisor::{Notify, Start};
use serve::{CommandLine, GatewayConfig, ServeError, Service, SiteError};
use units::Bytes;

use crate::output;
use crate::trouble::{Ended, Trouble};

/// Serve a directory, under a concurrency model of your choice
#[derive(clap::Args)]
#[command(
    after_help = "The command line overrides --config. `joust models` describes the models and their settings.

Signals: SIGTERM stops listening, finishes the requests in progress and exits. SIGINT exits at once. SIGHUP reads the configuration again and keeps every connection. SIGUSR1 reopens the logs.

Exit codes: 0 ended by a signal, 1 the server could not start or go on, 2 the command line or the configuration is wrong."
)]
pub struct Args {
    /// Directory to serve
    #[arg(conflicts_with = "fixed")]
    dir: Option<PathBuf>,
    /// Serve the history in this folder of results as a site: every run, the comparison of any two, figures over time
    #[cfg(feature = "history-database")]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dir", "fixed", "cgi", "config"])]
    reports: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free port [default: 127.0.0.1:8080]
    #[arg(short, long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Concurrency model [default: reactors]
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// Set an option of the model by its original name (`joust models` lists them), or another key of the
    /// configuration, as in limits.head_timeout=5s; repeatable
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Configuration file (TOML); --print-config shows the format
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Answer every request with a page of this size from memory, to measure the upper limit of a model
    #[arg(long, value_name = "BYTES")]
    fixed: Option<Bytes>,
    /// File that gets a line for each request, or off [default: off]
    #[arg(long, value_name = "FILE|off")]
    access_log: Option<String>,
    /// Format of the access log: common, combined, json, or Apache's directives [default: common]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// File that gets the server's own messages, or stderr, or off [default: stderr]
    #[arg(long, value_name = "FILE|stderr|off")]
    error_log: Option<String>,
    /// Minimum severity that is logged: emerg, alert, crit, error, warn, notice, info or debug [default:
    /// notice]
    #[arg(long, value_name = "LEVEL")]
    error_level: Option<String>,
    /// List directories that have no index file
    #[arg(long)]
    listing: bool,
    /// Switch from root to this user once the port and the logs are open
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Switch to this group [default: the user's own]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// CPUs to run on, as in 0 or 2,3
    #[arg(long, value_delimiter = ',', value_name = "CPU", value_parser = cpu)]
    cpus: Vec<u32>,
    #[arg(long, value_name = "SPEC", help = fault_help())]
    fault: Vec<String>,
    /// Check the configuration and the files that it names: print each fault, or ok; serve nothing
    #[arg(long, conflicts_with = "print_config")]
    check_config: bool,
    /// Path of a status page, for clients on this machine only [default: none]
    #[arg(long, value_name = "PATH")]
    status: Option<String>,
    /// Run the programs under this path of the directory as CGI, as in /cgi-bin/; repeatable
    #[arg(long, value_name = "PREFIX")]
    cgi: Vec<String>,
    /// Use TLS with this certificate chain (PEM); joust reads it again when it changes
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Private key (PEM) [default: the file of --tls-cert]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Use TLS with a self-signed certificate for localhost, made at the start; for trials only
    #[arg(long, conflicts_with = "tls_cert")]
    tls_self_signed: bool,
    /// Print the complete configuration as a file for --config; serve nothing
    #[arg(long)]
    print_config: bool,
}

fn fault_help() -> String {
    let examples: Vec<&str> = serve::Fault::examples().collect();
    format!(
        "Plant a fault, to prove that a measurement shows it; repeatable: {}",
        examples.join(", ")
    )
}

fn address(typed: &str) -> Result<SocketAddr, &'static str> {
    typed.parse().map_err(|_| {
        "write an address and its port, as in 127.0.0.1:8080, or 0.0.0.0:8080 or [::]:8080 for all addresses"
    })
}

fn cpu(typed: &str) -> Result<u32, &'static str> {
    typed.trim().parse().map_err(|_| "write the numbers of CPUs, as in 0 or 2,3")
}

pub fn main(args: Args) -> Result<Ended, Trouble> {
    let (print_config, check_config) = (args.print_config, args.check_config);
    let typed = typed(args)?;
    let config = typed.resolve().map_err(|error| Trouble::usage(miette!("{error}")))?;
    if print_config {
        output::stdout(config.print().as_bytes())?;
        return Ok(Ended::Well);
    }
    if check_config {
        return check(&config);
    }
    let opened = &mut |service: &Service| {
        let (model, url) = (service.server.model, service.url());
        // If nobody reads it, the server serves anyway.
        let _ = output::stdout(format!("{model} serves {url}\n").as_bytes());
    };
    serve::supervisor::supervise(Start {
        config,
        read: &|| typed.resolve().map_err(|error| error.to_string()),
        stderr: std::io::stderr().as_fd().try_clone_to_owned().ok().map(File::from),
        passed: passed_socket()?,
        notify: service_manager()?,
        opened,
    })
    .map_err(failed)?;
    Ok(Ended::Well)
}

/// Checks everything that can be checked without serving.
fn check(config: &serve::Config) -> Result<Ended, Trouble> {
    let wrong = Service::check(config);
    if wrong.is_empty() {
        output::stdout(b"ok\n")?;
        return Ok(Ended::Well);
    }
    wrong.iter().for_each(|error| crate::terminal::say(&error.to_string()));
    Ok(Ended::Usage)
}

/// The socket of systemd's socket activation (sd_listen_fds(3)), if there is one.
fn passed_socket() -> Result<Option<TcpListener>, Trouble> {
    let named = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    if named("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    match named("LISTEN_FDS") {
        None | Some(0) => Ok(None),
        Some(1) => sys::listener::passed().map(Some).map_err(|error| {
            Trouble::failed(miette!(
                help = "joust listens on one TCP socket: write ListenStream=PORT and Accept=no",
                "the socket that was passed as descriptor 3 (LISTEN_FDS) cannot be used: {error}"
            ))
        }),
        Some(n) => Err(Trouble::usage(miette!(
            help = "write one ListenStream= into the .socket unit",
            "{n} sockets were passed (LISTEN_FDS), and joust listens on one"
        ))),
    }
}

fn service_manager() -> Result<Notify, Trouble> {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return Ok(Notify::default());
    };
    Notify::to(&name).map_err(|error| {
        Trouble::usage(miette!("NOTIFY_SOCKET is {}: {error}", name.to_string_lossy()))
    })
}

/// The folder of reports is the directory, and the only gateway of `--reports` answers every address.
#[cfg(feature = "history-database")]
fn reports(args: &Args) -> Result<(Option<PathBuf>, Vec<GatewayConfig>), Trouble> {
    match &args.reports {
        Some(folder) => Ok((Some(folder.clone()), vec![crate::reports_site::gateway(folder)?])),
        None => Ok((args.dir.clone(), Vec::new())),
    }
}

#[cfg(not(feature = "history-database"))]
fn reports(args: &Args) -> Result<(Option<PathBuf>, Vec<GatewayConfig>), Trouble> {
    Ok((args.dir.clone(), Vec::new()))
}

fn typed(args: Args) -> Result<CommandLine, Trouble> {
    let (directory, gateways) = reports(&args)?;
    Ok(CommandLine {
        config: args.config,
        listen: args.listen,
        directory,
        gateways,
        fixed: args.fixed,
        model: args.model,
        set: args.set,
        access_log: args.access_log,
        log_format: args.log_format,
        error_log: args.error_log,
        error_level: args.error_level,
        listing: args.listing,
        cpus: args.cpus,
        user: args.user,
        group: args.group,
        fault: args.fault,
        status: args.status,
        cgi: args.cgi,
        tls_cert: args.tls_cert,
        tls_key: args.tls_key,
        tls_self_signed: args.tls_self_signed,
    })
}

/// The model of that name.
pub fn model(name: &str) -> Result<&'static Model, Trouble> {
    serve::models::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|model| model.name).collect();
        Trouble::usage(miette!(
            help = format!("the models are {}", names.join(", ")),
            "there is no concurrency model `{name}`"
        ))
    })
}

/// A usage error if the command line is wrong, else a failure.
fn failed(error: ServeError) -> Trouble {
    let report = miette!("{error}");
    match error {
        ServeError::Site(SiteError::NoDirectory { .. } | SiteError::NotADirectory { .. })
        | ServeError::NoSuchCpu { .. } => Trouble::usage(report),
        _ => Trouble::failed(report),
    }
}
