//! `joust run --fleet`: servers on this machine, their load from agents on others. Start reading at [`elsewhere`].

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fleet::broker::Broker;
use fleet::conductor::{OnLoss, Phase, RunTimes};
use fleet::config::ControllerConfig;
use fleet::controller::{self, AgentView, Setup, Watch};
use fleet::ids::Id;
use fleet::plan::KeyPair;
use lab::elsewhere::{Elsewhere, Generators, News};
use miette::{IntoDiagnostic as _, miette};
use record::{Interval, LoadPlan, LoadRecord};
use units::Nanos;

use crate::load::fleet::{
    DISCOVERY, connect, first, longest_silence, merged, new_run, trouble_of, usage,
};
use crate::run_file::quoted;
use crate::trouble::Trouble;

#[derive(clap::Args)]
#[command(next_help_heading = "Fleet")]
pub struct FleetFlags {
    /// Let the agents of a broker make the load: its URL, or the folder that `joust fleet init` wrote
    #[arg(long, value_name = "PLACE", requires = "address", conflicts_with = "check")]
    fleet: Option<String>,
    /// Address of this machine at which the agents reach its servers
    #[arg(long, value_name = "IPV4", requires = "fleet")]
    address: Option<Ipv4Addr>,
    /// Number of agents to use [default: all; in a cell with fewer connections, as many as those]
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(1..))]
    agents: Option<u32>,
    /// Time after which an agent that hears nothing ends its load
    #[arg(long, value_name = "TIME", value_parser = Nanos::from_flag, default_value = "15s", requires = "fleet")]
    dead_man: Nanos,
    /// Largest error of an agent's clock
    #[arg(long, value_name = "TIME", value_parser = Nanos::from_flag, default_value = "5ms", requires = "fleet")]
    clock_error: Nanos,
}

/// Who makes the load, if a fleet is asked for. From here on this thread, and those that it starts, keep off the CPUs
/// of the servers.
pub fn elsewhere(flags: &FleetFlags) -> Result<Option<Arc<Elsewhere>>, Trouble> {
    let (Some(place), Some(address)) = (&flags.fleet, flags.address) else { return Ok(None) };
    longest_silence(flags.dead_man)?;
    if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
        return Err(Trouble::usage(miette!(
            help = "`ip -4 address` lists those of this machine",
            "--address must be one address of this machine, by which agents reach it, got {address}"
        )));
    }
    TcpListener::bind((address, 0)).map_err(|error| {
        Trouble::usage(miette!(
            help = "`ip -4 address` lists those of this machine",
            "--address must be an address of this machine, where its servers can listen, got {address}: {error}"
        ))
    })?;
    let config = ControllerConfig::find(place).map_err(usage)?;
    let key = config.signing_key().map_err(usage)?;
    let layout = lab::cpus::without_generator().into_diagnostic().map_err(Trouble::failed)?;
    // The broker's threads inherit it.
    sys::affinity::pin(&layout.client).into_diagnostic().map_err(Trouble::failed)?;
    let broker = Arc::new(connect(&config)?);
    let found = broker.agents(DISCOVERY).map_err(|error| Trouble::failed(miette!("{error}")))?;
    let agents = first(&found, flags.agents)?;
    let names: Vec<&str> = agents.iter().map(Id::as_str).collect();
    let about = match names.len() {
        1 => format!("1 agent: {}", names[0]),
        count => format!("{count} agents: {}", names.join(", ")),
    };
    let times = RunTimes {
        dead_man: flags.dead_man,
        clock_error_max: flags.clock_error,
        ..RunTimes::default()
    };
    let generators = Box::new(Agents { broker, key, agents, times });
    Ok(Some(Arc::new(Elsewhere { address, layout, about, generators })))
}

impl FleetFlags {
    /// What a command that continues the run needs as well.
    pub fn again(&self) -> String {
        let (Some(place), Some(address)) = (&self.fleet, self.address) else {
            return String::new();
        };
        let agents = self.agents.map(|count| format!(" --agents {count}")).unwrap_or_default();
        format!(" --fleet {} --address {address}{agents}", quoted(place))
    }
}

/// The agents that make each load of a run.
struct Agents {
    broker: Arc<Broker>,
    key: Option<KeyPair>,
    agents: Vec<Id>,
    times: RunTimes,
}

impl Generators for Agents {
    fn load(
        &self,
        plan: &LoadPlan,
        interrupt: &AtomicBool,
        tell: &mut dyn FnMut(News<'_>),
    ) -> Result<LoadRecord, String> {
        // Each has a connection at least.
        let count = self.agents.len().min(plan.connections as usize);
        let setup = Setup {
            run: new_run(),
            controller: format!("joust-{}", std::process::id()),
            load: plan.clone(),
            agents: self.agents[..count].to_vec(),
            times: self.times,
            // A visit with a part of its load is no visit.
            on_loss: OnLoss::Abort,
        };
        let mut heard = Heard { tell, told: Vec::new() };
        let key = self.key.as_ref();
        let outcome = controller::conduct(&self.broker, &setup, key, interrupt, &mut heard);
        let outcome = outcome.map_err(|error| error.to_string())?;
        merged(outcome).map_err(|trouble| trouble.report.to_string())
    }
}

/// Passes on what a run's user is told.
struct Heard<'a> {
    tell: &'a mut dyn FnMut(News<'_>),
    told: Vec<String>,
}

impl Heard<'_> {
    /// Each line once in a load.
    fn note(&mut self, line: String) {
        if !self.told.contains(&line) {
            (self.tell)(News::Note(&line));
            self.told.push(line);
        }
    }
}

impl Watch for Heard<'_> {
    fn begins(&mut self, at: Nanos) {
        (self.tell)(News::Begins(at));
    }

    fn window(&mut self, _: &Interval) {}

    fn agents(&mut self, _: &Phase, agents: &[AgentView]) {
        for agent in agents {
            if let Some(trouble) = trouble_of(agent) {
                self.note(format!("agent {} {trouble}", agent.name));
            }
        }
    }

    fn notice(&mut self, line: &str) {
        self.note(line.to_owned());
    }
}
