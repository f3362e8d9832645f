//! `joust load --fleet`: the same load, made by several agents together. Start reading at [`measure`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use fleet::broker::{Broker, Found};
use fleet::conductor::{OnLoss, Phase, RunTimes, Standing};
use fleet::config::{ConfigError, ControllerConfig};
use fleet::controller::{self, AgentView, FleetError, Outcome, Setup, Watch};
use fleet::ids::Id;
use fleet::order::Answer;
use fleet::plan::{KeyPair, PROTOCOL};
use load::MergeInput;
use miette::miette;
use record::{Finding, Interval, LoadPlan, LoadRecord, PartFinding, Severity};
use report::live::{AgentFigures, AgentState};
use units::Nanos;

use super::Shows;
use crate::trouble::Trouble;

/// How long agents have to answer to discovery.
pub const DISCOVERY: Duration = Duration::from_secs(1);
/// How long a broker that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// A controller beats once a second, and one beat may be lost.
const DEAD_MAN_MIN: Nanos = Nanos::from_secs(3);

#[derive(clap::Args)]
#[command(next_help_heading = "Fleet")]
pub struct Fleet {
    /// Let the agents of a broker make the load together: its URL, or the folder that `joust fleet init` wrote
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["cpus", "source", "cacert", "cert", "key", "merge"])]
    pub fleet: Option<String>,
    /// Number of agents to use [default: all]
    #[arg(long, value_name = "N", requires = "fleet", value_parser = clap::value_parser!(u32).range(1..))]
    pub agents: Option<u32>,
    /// What happens if an agent is lost: abort the load, or continue with the others
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Loss::Abort, requires = "fleet")]
    pub on_loss: Loss,
    /// Time after which an agent that hears nothing ends its load
    #[arg(long, value_name = "TIME", value_parser = Nanos::from_flag, default_value = "15s", requires = "fleet")]
    pub dead_man: Nanos,
    /// Largest error of an agent's clock
    #[arg(long, value_name = "TIME", value_parser = Nanos::from_flag, default_value = "5ms", requires = "fleet")]
    pub clock_error: Nanos,
    /// Exit with 0 although a part of the result is missing
    #[arg(long, requires = "fleet")]
    pub allow_incomplete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Loss {
    Abort,
    Continue,
}

/// A fleet that is there, for one load.
pub struct Gathered {
    broker: Arc<Broker>,
    key: Option<KeyPair>,
    agents: Vec<Id>,
    run: Id,
}

impl Fleet {
    /// Whether agents make the load.
    pub fn is_asked_for(&self) -> bool {
        self.fleet.is_some()
    }

    /// Whether a missing part changes the exit code.
    pub fn allows_incomplete(&self) -> bool {
        self.allow_incomplete
    }
}

/// Checks what can be checked before anything is sent.
pub fn check(args: &Fleet, plan: &LoadPlan) -> Result<(), Trouble> {
    let Some(place) = &args.fleet else { return Ok(()) };
    longest_silence(args.dead_man)?;
    controller::check(plan).map_err(fleet_failed)?;
    let config = ControllerConfig::find(place).map_err(usage)?;
    config.access().map_err(usage)?;
    config.signing_key().map_err(usage)?;
    Ok(())
}

/// Checks `--dead-man`.
pub fn longest_silence(dead_man: Nanos) -> Result<(), Trouble> {
    match dead_man < DEAD_MAN_MIN {
        false => Ok(()),
        true => Err(Trouble::usage(miette!(
            help = "a controller is heard once a second",
            "--dead-man must be at least {DEAD_MAN_MIN}, got {dead_man}"
        ))),
    }
}

/// What is wrong with the place of a fleet.
pub fn usage(error: ConfigError) -> Trouble {
    Trouble::usage(miette!("--fleet: {error}"))
}

/// Connects to the fleet's broker, and finds its agents; `None` if no fleet is asked for. Says the name of the run, by
/// which it can be taken over.
pub fn gather(
    plan: &LoadPlan,
    args: &Fleet,
    say: &dyn Fn(&str),
) -> Result<Option<Gathered>, Trouble> {
    let Some(place) = &args.fleet else { return Ok(None) };
    let config = ControllerConfig::find(place).map_err(usage)?;
    let key = config.signing_key().map_err(usage)?;
    let broker = Arc::new(connect(&config)?);
    let found = broker.agents(DISCOVERY).map_err(failed)?;
    let agents = first(&found, args.agents)?;
    if (plan.connections as usize) < agents.len() {
        return Err(Trouble::usage(miette!(
            help = "use fewer agents (--agents) or more connections (-c)",
            "{} connections cannot be divided among {} agents",
            plan.connections,
            agents.len()
        )));
    }
    let run = new_run();
    say(&format!("run {run}, {} agents", agents.len()));
    Ok(Some(Gathered { broker, key, agents, run }))
}

/// One load of all agents, merged. `show` gets each window as it comes, and how the agents stand once a second.
pub fn measure(
    plan: &LoadPlan,
    args: &Fleet,
    gathered: Gathered,
    interrupt: &'static AtomicBool,
    show: &Shows<'_>,
    say: &dyn Fn(&str),
) -> Result<LoadRecord, Trouble> {
    let Gathered { broker, key, agents, run } = gathered;
    let setup = Setup {
        run,
        controller: format!("joust-{}", std::process::id()),
        load: plan.clone(),
        agents,
        times: RunTimes {
            dead_man: args.dead_man,
            clock_error_max: args.clock_error,
            ..RunTimes::default()
        },
        on_loss: match args.on_loss {
            Loss::Abort => OnLoss::Abort,
            Loss::Continue => OnLoss::Continue,
        },
    };
    let mut watch = Shown { show, say, told: Vec::new() };
    let outcome = controller::conduct(&broker, &setup, key.as_ref(), interrupt, &mut watch);
    merged(outcome.map_err(fleet_failed)?)
}

/// Connects to the broker of a fleet.
pub fn connect(config: &ControllerConfig) -> Result<Broker, Trouble> {
    let access = config.access().map_err(usage)?;
    let begun = Instant::now();
    Broker::connect(&access, "joust", |_| begun.elapsed() < PATIENCE).map_err(|error| {
        Trouble::failed(miette!(
            help = "`joust fleet up --local 2` starts a broker and two agents on this machine",
            "{error}"
        ))
    })
}

/// The agents that make the load, in the order of their names.
pub fn first(found: &[Found], wanted: Option<u32>) -> Result<Vec<Id>, Trouble> {
    let is_other = |agent: &&Found| agent.protocol != PROTOCOL;
    if let Some(other) = found.iter().find(is_other) {
        return Err(Trouble::failed(miette!(
            help = "use the same joust on every machine",
            "agent {} is joust {} and speaks version {} to controllers; this joust speaks {PROTOCOL}",
            other.agent,
            other.version,
            other.protocol
        )));
    }
    if let Some(pair) = found.windows(2).find(|pair| pair[0].agent == pair[1].agent) {
        return Err(Trouble::failed(miette!(
            help = "give each agent its own name: joust agent --name NAME",
            "two agents are named {}",
            pair[0].agent
        )));
    }
    let wanted = wanted.map_or(found.len(), |wanted| wanted as usize);
    if found.len() < wanted.max(1) {
        return Err(Trouble::failed(miette!(
            help = "start more of them: joust agent --join URL",
            "{} of {} agents answered",
            found.len(),
            wanted.max(1)
        )));
    }
    Ok(found[..wanted].iter().map(|one| one.agent.clone()).collect())
}

/// A name that no other run has: the time in milliseconds and the process, in base 36.
pub fn new_run() -> Id {
    let base36 = |mut number: u64| {
        let mut digits = Vec::new();
        while number > 0 || digits.is_empty() {
            digits.push(char::from_digit((number % 36) as u32, 36).expect("below 36"));
            number /= 36;
        }
        digits.iter().rev().collect::<String>()
    };
    let millis = sys::clock::wall().0 / 1_000_000;
    let run = format!("r{}-{}", base36(millis), base36(std::process::id().into()));
    run.parse().expect("all of its letters are allowed")
}

/// One record of all that came.
pub fn merged(outcome: Outcome) -> Result<LoadRecord, Trouble> {
    let Outcome { records, fleet } = outcome;
    let input = |(agent, record): (Id, LoadRecord)| {
        let found = doctor::examine_load(&record);
        let findings = found.iter().map(|one| one.seen().to_owned()).collect();
        let acting = found.iter().filter(|one| acts_on_share(one)).map(|one| PartFinding {
            check: one.check.clone(),
            severity: one.severity,
            evidence: one.seen().to_owned(),
        });
        MergeInput { name: agent.to_string(), acting: acting.collect(), record, findings }
    };
    let inputs = records.into_iter().map(input).collect();
    let mut record = load::merge(inputs).map_err(|error| Trouble::failed(miette!("{error}")))?;
    record.fleet = Some(Box::new(fleet));
    Ok(record)
}

/// Whether a finding on an agent's share is of that agent's machine, and voids or bounds the share.
fn acts_on_share(finding: &Finding) -> bool {
    doctor::ON_THE_GENERATOR.contains(&finding.check.as_str())
        && (finding.acts(Severity::Void) || finding.acts(Severity::Bound))
}

/// What went wrong, with the way out.
pub fn fleet_failed(error: FleetError) -> Trouble {
    match error {
        FleetError::Endless => Trouble::usage(miette!("{error}")),
        FleetError::NotBegun(why) => Trouble::failed(miette!(
            help = "no agent sent anything; `joust fleet agents` lists those that answer",
            "the load did not begin: {why}"
        )),
        other => Trouble::failed(miette!("{other}")),
    }
}

fn failed(error: fleet::broker::BrokerError) -> Trouble {
    Trouble::failed(miette!("{error}"))
}

/// What a person sees while it goes on.
struct Shown<'a> {
    show: &'a Shows<'a>,
    say: &'a dyn Fn(&str),
    /// What was said last of each agent.
    told: Vec<(Id, String)>,
}

impl Watch for Shown<'_> {
    fn window(&mut self, sum: &Interval) {
        (self.show.interval)(sum);
    }

    fn agents(&mut self, _: &Phase, agents: &[AgentView]) {
        let figures: Vec<AgentFigures> = agents.iter().map(figures).collect();
        (self.show.agents)(&figures);
        for agent in agents {
            let Some(now) = trouble_of(agent) else {
                self.told.retain(|(name, _)| *name != agent.name);
                continue;
            };
            if !self.told.iter().any(|(name, said)| *name == agent.name && *said == now) {
                (self.say)(&format!("agent {} {now}", agent.name));
                self.told.retain(|(name, _)| *name != agent.name);
                self.told.push((agent.name.clone(), now));
            }
        }
    }

    fn notice(&mut self, line: &str) {
        (self.say)(line);
    }
}

/// An agent as screens and metrics show it.
fn figures(agent: &AgentView) -> AgentFigures {
    AgentFigures {
        name: agent.name.to_string(),
        share: agent.share,
        state: state(agent),
        rate_per_s: agent.latest.map(|latest| latest.rate_per_s),
        lateness: agent.latest.and_then(|latest| latest.lateness),
        clock_error: agent.report.as_ref().and_then(|report| report.clock_error),
    }
}

fn state(agent: &AgentView) -> AgentState {
    let Some(report) = &agent.report else {
        return match agent.standing {
            Standing::Lost { .. } => AgentState::Lost,
            Standing::Heard | Standing::Suspect => AgentState::Silent,
        };
    };
    match (&report.answer, &agent.standing) {
        // Its part is over, and it need not be heard any more.
        (Answer::Finished(_), _) => AgentState::Finished,
        (Answer::Free, _) if agent.latest.is_some() => AgentState::Finished,
        (_, Standing::Lost { .. }) => AgentState::Lost,
        (_, Standing::Suspect) => AgentState::Suspect,
        (Answer::Preparing, _) => AgentState::Preparing,
        (Answer::Ready, _) => AgentState::Ready,
        (Answer::Armed { .. } | Answer::Committed, _) => AgentState::Committed,
        (Answer::Running, _) => AgentState::Running,
        (Answer::Reporting, _) => AgentState::Reporting,
        (
            Answer::Free
            | Answer::Busy(_)
            | Answer::Failed(_)
            | Answer::TooLate { .. }
            | Answer::Fenced { .. },
            _,
        ) => AgentState::Failed,
    }
}

/// What is not well with an agent.
pub fn trouble_of(agent: &AgentView) -> Option<String> {
    let report = agent.report.as_ref();
    let answer = report.map(|report| &report.answer);
    if matches!(answer, Some(Answer::Free | Answer::Finished(_))) {
        // Its part is over, and it need not be heard any more.
        return None;
    }
    match &agent.standing {
        Standing::Lost { .. } => {
            return Some("is lost: nothing was heard of it for too long".to_owned());
        }
        Standing::Suspect => return Some("was not heard for some seconds".to_owned()),
        Standing::Heard => {}
    }
    if let Some(Answer::Failed(why)) = answer {
        return Some(format!("failed: {why}"));
    }
    report
        .and_then(|report| report.spool_error.as_ref())
        .map(|why| format!("cannot keep its results: {why}"))
}
