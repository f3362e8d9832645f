//! `joust fleet`: what belongs to a fleet beside its loads. Start reading at [`main`].

mod local;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fleet::config::ControllerConfig;
use fleet::controller::{self, AgentView, RunState, Watch};
use fleet::ids::Id;
use fleet::message::Message;
use fleet::{spool, subject};
use miette::{IntoDiagnostic as _, miette};
use record::Interval;

use crate::load::fleet::{connect, fleet_failed, merged};
use crate::output::{self, Destination};
use crate::trouble::{Ended, Trouble};

/// How long agents have to answer.
const DISCOVERY: Duration = Duration::from_secs(1);

/// Set up a fleet of agents, look at it, and collect what runs left behind
#[derive(clap::Args)]
#[command(
    after_help = "docs/fleet.md shows how to set up a fleet, and what happens when a part of it dies."
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write the files of a new fleet: keys, certificates, configuration of broker, agents and controller
    Init(InitArgs),
    /// Start a broker and agents on this machine, for trying out, until Ctrl-C
    Up(local::Args),
    /// List the agents that answer
    Agents(Place),
    /// List the runs that the broker knows
    Status(Place),
    /// Take over a run whose controller is gone, and report what there is of it
    Collect(OneRun),
    /// End a run, and report what there is of it
    Stop(OneRun),
    /// Send the messages of a spool to the broker, if their agent cannot
    Import(Import),
}

#[derive(clap::Args)]
struct InitArgs {
    /// Folder to write, which must not exist
    folder: PathBuf,
    /// Name or address under which agents reach the broker; repeatable
    #[arg(long, required = true, value_name = "NAME")]
    host: Vec<String>,
    /// Port of the broker
    #[arg(long, default_value_t = 4222)]
    port: u16,
}

#[derive(clap::Args)]
struct Place {
    /// Broker's URL, or the folder that `joust fleet init` wrote
    #[arg(long, value_name = "PLACE")]
    fleet: String,
}

#[derive(clap::Args)]
struct OneRun {
    /// Name of the run
    run: Id,
    #[command(flatten)]
    place: Place,
    /// Write the record as one JSON object; - is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

#[derive(clap::Args)]
struct Import {
    /// Spools, as agents keep them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: Place,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    match &args.command {
        Command::Init(args) => init(args),
        Command::Up(args) => local::main(args),
        Command::Agents(place) => agents(place),
        Command::Status(place) => status(place),
        Command::Collect(args) => collect(args, &AtomicBool::new(false)),
        // A run that is interrupted from its start on is ended in order.
        Command::Stop(args) => collect(args, &AtomicBool::new(true)),
        Command::Import(args) => import(args),
    }
}

fn init(args: &InitArgs) -> Result<Ended, Trouble> {
    let written = fleet::init::write(&args.folder, &args.host, args.port)
        .map_err(|error| Trouble::failed(miette!("{error}")))?;
    output::stdout(written.as_bytes())?;
    Ok(Ended::Well)
}

fn broker(place: &Place) -> Result<Arc<fleet::broker::Broker>, Trouble> {
    let config =
        ControllerConfig::find(&place.fleet).map_err(|error| Trouble::usage(miette!("{error}")))?;
    Ok(Arc::new(connect(&config)?))
}

fn failed(error: impl std::fmt::Display) -> Trouble {
    Trouble::failed(miette!("{error}"))
}

fn agents(place: &Place) -> Result<Ended, Trouble> {
    let found = broker(place)?.agents(DISCOVERY).map_err(failed)?;
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|one| {
            vec![
                one.agent.to_string(),
                one.version.clone(),
                one.cpus.to_string(),
                one.kernel.clone(),
            ]
        })
        .collect();
    let titles = ["agent", "joust", "CPUs", "kernel"];
    let remark = format!("{} agents answered.", rows.len());
    let options = crate::terminal::report_options();
    output::stdout(report::rows_text(&titles, &rows, &remark, &options).as_bytes())?;
    Ok(Ended::Well)
}

fn status(place: &Place) -> Result<Ended, Trouble> {
    let broker = broker(place)?;
    broker.make_places().map_err(failed)?;
    let mut keys = broker.keys().map_err(failed)?;
    keys.sort();
    let runs = keys.iter().filter_map(|key| key.strip_suffix(".state")?.parse::<Id>().ok());
    let mut rows = Vec::new();
    for run in runs {
        if let Some((state, _)) = controller::state(&broker, &run).map_err(failed)? {
            rows.push(row(&run, &state));
        }
    }
    let titles = ["run", "agents", "duration", "state"];
    let remark = "`joust fleet collect RUN` takes over a run whose controller is gone.";
    let options = crate::terminal::report_options();
    output::stdout(report::rows_text(&titles, &rows, remark, &options).as_bytes())?;
    Ok(Ended::Well)
}

fn row(run: &Id, state: &RunState) -> Vec<String> {
    let said = match (&state.over, state.begins) {
        (Some(how), _) => format!("over: {how}"),
        (None, Some(_)) => format!("begun, commanded by {}", state.controller),
        (None, None) => format!("in preparation by {}", state.controller),
    };
    vec![run.to_string(), state.agents.len().to_string(), state.duration.to_string(), said]
}

fn collect(args: &OneRun, interrupt: &AtomicBool) -> Result<Ended, Trouble> {
    if let Some(place) = &args.json {
        output::can_write(place)?;
    }
    let broker = broker(&args.place)?;
    let name = format!("joust-{}", std::process::id());
    let outcome = controller::take_over(&broker, &args.run, &name, interrupt, &mut Quiet);
    let mut record = merged(outcome.map_err(fleet_failed)?)?;
    record.findings = doctor::examine_load(&record);
    if let Some(place) = &args.json {
        output::write(place, record.to_json().as_bytes())?;
    }
    if args.json != Some(Destination::Stdout) {
        let options = crate::terminal::report_options();
        output::stdout(report::load_text(&record, &options).as_bytes())?;
    }
    crate::load::ended(&record, false)
}

struct Quiet;

impl Watch for Quiet {
    fn window(&mut self, _: &Interval) {}

    fn agents(&mut self, _: &fleet::conductor::Phase, _: &[AgentView]) {}

    fn notice(&mut self, line: &str) {
        crate::terminal::say(&format!("joust: {line}"));
    }
}

fn import(args: &Import) -> Result<Ended, Trouble> {
    let broker = broker(&args.place)?;
    broker.make_places().map_err(failed)?;
    for file in &args.files {
        let spooled = spool::read(file)
            .into_diagnostic()
            .map_err(|error| Trouble::usage(miette!("cannot read {}: {error}", file.display())))?;
        let mut runs = Vec::new();
        for message in spooled.messages {
            let from = Message::decode(&message).map_err(failed)?.from;
            let id = format!("{}/{}/{}", from.run, from.agent, from.seq);
            let subject = subject::messages(&from.run, &from.agent);
            broker.store(&subject, &id, message).map_err(failed)?;
            if !runs.contains(&from.run) {
                runs.push(from.run);
            }
        }
        let cut = match spooled.dropped {
            0 => String::new(),
            bytes => format!("; {bytes} bytes at its end are no whole message"),
        };
        let names = runs.iter().map(Id::as_str).collect::<Vec<_>>().join(", ");
        let line = format!("{}: messages of run {names} are on the broker{cut}\n", file.display());
        output::stdout(line.as_bytes())?;
    }
    Ok(Ended::Well)
}
