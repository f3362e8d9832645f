//! `joust agent`: makes parts of loads that a controller commands over a broker. Start reading at [`main`].

mod worker;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fleet::agent::Setup;
use fleet::broker::{Access, Broker};
use fleet::config::AgentConfig;
use fleet::ids::{ID_MAX, Id};
use fleet::permit::Permit;
use miette::{IntoDiagnostic as _, miette};

use crate::trouble::{Ended, Trouble};

/// Make parts of loads that `joust load --fleet` commands, until stopped
#[derive(clap::Args)]
#[command(
    after_help = "Without --config only servers on this machine may be loaded. docs/fleet.md shows how to set up a \
                  fleet.\nExit codes: 0 stopped (SIGINT, SIGTERM), 1 failed, 2 usage."
)]
pub struct Args {
    /// Broker to join, as in nats://broker.example:4222
    #[arg(long, value_name = "URL")]
    join: Option<String>,
    /// File that says whom this agent may load and whom it obeys (agent.toml)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of this agent, and of no other [default: the machine's, with the process number]
    #[arg(long)]
    name: Option<Id>,
    /// Folder for results that are not collected yet [default: below the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Work as the process of one load, which an agent starts
    #[arg(long, hide = true, exclusive = true)]
    worker: bool,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    if args.worker {
        return worker::main();
    }
    let config = args.config.as_deref().map(AgentConfig::read).transpose().map_err(usage)?;
    let is_configured = config.is_some();
    let config = config.unwrap_or_default();
    let url = args.join.clone().or_else(|| config.join.clone()).ok_or_else(|| {
        Trouble::usage(miette!(
            help = "`joust fleet up --local 2` starts a broker and two agents on this machine",
            "joust agent needs a broker: --join nats://HOST:PORT, or `join` in the file of --config"
        ))
    })?;
    let access = config.access(url.clone()).map_err(usage)?;
    let setup = setup(args, &config, is_configured)?;
    let interrupt = sys::interrupt::install().into_diagnostic().map_err(Trouble::failed)?;
    let say = |line: &str| crate::terminal::say(&format!("joust agent: {line}"));
    if setup.trust.is_empty() && is_configured {
        say("`trust` names nobody, so plans of anyone on the broker are carried out");
    }
    let broker = connect(&access, &setup.name, interrupt, &say)?;
    let Some(broker) = broker else { return Ok(Ended::Well) };
    fleet::agent::serve(&Arc::new(broker), &setup, interrupt, &say)
        .map_err(|error| Trouble::failed(miette!("{error}")))?;
    Ok(Ended::Well)
}

/// Waits for the broker; `None` if stopped meanwhile.
fn connect(
    access: &Access,
    name: &Id,
    interrupt: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<Option<Broker>, Trouble> {
    let is_stopped = || interrupt.load(Ordering::Relaxed);
    let mut is_told = false;
    let connected = Broker::connect(access, name.as_str(), |error| {
        if !std::mem::replace(&mut is_told, true) {
            say(&format!("{error}; trying again until it answers"));
        }
        !is_stopped()
    });
    match connected {
        Ok(broker) => Ok(Some(broker)),
        Err(_) if is_stopped() => Ok(None),
        Err(error) => Err(Trouble::failed(miette!("{error}"))),
    }
}

fn setup(args: &Args, config: &AgentConfig, is_configured: bool) -> Result<Setup, Trouble> {
    let uname = rustix::system::uname();
    let name = match args.name.clone().or_else(|| config.name.clone()) {
        Some(name) => name,
        None => default_name(&uname.nodename().to_string_lossy(), std::process::id()),
    };
    let spool = args.spool.clone().or_else(|| config.spool.clone());
    let joust = std::env::current_exe().into_diagnostic().map_err(Trouble::failed)?;
    Ok(Setup {
        name,
        permit: if is_configured { config.permit() } else { Permit::of_loopback() },
        trust: config.trust.clone(),
        spool: spool.unwrap_or_else(|| {
            // Of each user one: a folder belongs to who made it.
            let user = rustix::process::geteuid().as_raw();
            std::env::temp_dir().join(format!("joust-spool-{user}"))
        }),
        worker: [joust.into_os_string(), OsString::from("agent"), OsString::from("--worker")]
            .into(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cpus: sys::affinity::allowed().map_or(1, |cpus| cpus.len()),
        kernel: uname.release().to_string_lossy().into_owned(),
    })
}

/// The machine's name, as far as it can be part of a subject, with the process number: a restarted agent is another.
fn default_name(host: &str, pid: u32) -> Id {
    let pid = format!("-{pid}");
    let host: String = host
        .chars()
        .map(|letter| letter.to_ascii_lowercase())
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .skip_while(|letter| *letter == '-')
        .take(ID_MAX - pid.len())
        .collect();
    let host = if host.is_empty() { "agent".to_owned() } else { host };
    format!("{host}{pid}").parse().expect("all of its letters are allowed")
}

fn usage(error: fleet::config::ConfigError) -> Trouble {
    Trouble::usage(miette!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_machine_has_a_name() {
        assert_eq!(default_name("Load-1.Example.org", 7).as_str(), "load-1-example-org-7");
        assert_eq!(default_name("", 7).as_str(), "agent-7");
        assert_eq!(default_name("é", 7).as_str(), "agent-7");
        assert_eq!(default_name(&"x".repeat(200), u32::MAX).as_str().len(), ID_MAX);
    }
}
