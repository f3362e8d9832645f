//! A controller: it commands a run from its plan to its result. Owns the loop, the state that another controller can
//! take over, and what is made of all that came; [`Conductor`] decides. Start reading at [`conduct`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use nkeys::KeyPair;
use record::{FleetAgent, FleetGap, FleetUse, Interval, LoadPlan, LoadRecord, Share};
use serde::{Deserialize, Serialize};
use sys::clock::{monotonic, wall};
use units::Nanos;

use crate::agent::{Beat, Report};
use crate::broker::{Broker, BrokerError, Subscription};
use crate::clock::Converted;
use crate::conductor::{Conductor, OnLoss, Phase, RunTimes, Standing};
use crate::coverage::{Cell, Coverage, WINDOW};
use crate::ids::Id;
use crate::message::{AgentTotals, Content, Message};
use crate::order::Answer;
use crate::partial::{partial_record, without_samples};
use crate::plan::{self, FleetPlan, PROTOCOL, PlanRefused};
use crate::subject;
use crate::tally::{Expected, Latest, Tally};

/// Longest wait for the next message.
const TICK: Duration = Duration::from_millis(20);
/// Time between two rounds of orders, and two looks at what is missing.
const ORDERS: Nanos = Nanos::from_millis(200);
/// Time between two beats.
const BEAT: Nanos = Nanos::from_secs(1);
/// How long messages may still be on their way before they are read back from the stream.
const ON_THE_WAY: Nanos = Nanos::from_secs(2);
/// Messages that an agent is asked for again at a time.
const MISSING_MAX: usize = 1_000;
/// Most messages and reports that wait to be taken, some 50 MB.
const EVENTS_MAX: usize = 16_384;
/// How often what is stored is read back at the end.
const REPLAYS: u32 = 3;
/// Largest record of an agent.
const RECORD_MAX: u64 = 1 << 30;
/// How long a plan may be carried out.
const PLAN_FOR: Nanos = Nanos::from_secs(24 * 3600);
/// A window is shown although an agent's is missing once so many later ones have come.
const SHOWN_AFTER: u32 = 3;

/// What a run is to be.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Its name.
    pub run: Id,
    /// The name of who commands it, for people.
    pub controller: String,
    /// The whole load; it has an end in time.
    pub load: LoadPlan,
    /// Who makes it, each once.
    pub agents: Vec<Id>,
    /// Its times.
    pub times: RunTimes,
    /// What happens when an agent is lost.
    pub on_loss: OnLoss,
}

/// Where a run is, for a controller that takes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// The fencing number of who commands it.
    pub epoch: u64,
    /// Who commands it.
    pub controller: String,
    /// Digest of the plan.
    pub plan: String,
    /// Its agents, in the order of their shares.
    pub agents: Vec<Id>,
    /// How long the load takes.
    pub duration: Nanos,
    /// Its times.
    pub times: RunTimes,
    /// What happens when an agent is lost.
    pub on_loss: OnLoss,
    /// When the load began or will begin, since 1970 by the controller's clock; `None` before that is decided.
    pub begins: Option<Nanos>,
    /// Whether nothing more happens, and how it ended.
    pub over: Option<String>,
    /// Whether all of it was reported: its plan is deleted, and nothing is left to collect.
    pub is_whole: bool,
}

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The record of each agent's share, with its name.
    pub records: Vec<(Id, LoadRecord)>,
    /// What is known of the whole.
    pub fleet: FleetUse,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The broker.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// A load without an end.
    #[error(
        "a load on a fleet needs a duration, after which every agent ends by itself: add -d TIME"
    )]
    Endless,
    /// The key cannot sign.
    #[error("the plan cannot be signed: {0}")]
    Key(String),
    /// The plan that is stored cannot be read.
    #[error(transparent)]
    Plan(#[from] PlanRefused),
    /// No such run.
    #[error("there is no run {0} on this broker: `joust fleet status` lists them")]
    Unknown(Id),
    /// Nothing is left of it.
    #[error(
        "run {0} was whole, and whoever commanded it has its result: there is nothing to collect"
    )]
    Done(Id),
    /// Somebody else commands it.
    #[error(
        "run {0} is commanded by another controller now (joust fleet status names it), which has its result"
    )]
    Replaced(Id),
    /// The broker does not give back what it has.
    #[error(
        "the broker failed to send what run {0} has measured: once it works again, joust fleet collect {0}"
    )]
    Unread(Id),
    /// Nothing began.
    #[error("the load did not begin: {0}")]
    NotBegun(String),
}

/// How an agent stands, for people who watch.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentView {
    /// Its name.
    pub name: Id,
    /// Its part of the load.
    pub share: Share,
    /// Its last window; `None` before that.
    pub latest: Option<Latest>,
    /// What it reported last; `None` before that.
    pub report: Option<Report>,
    /// Whether it is heard.
    pub standing: Standing,
}

/// What a caller sees of a run while it goes on.
pub trait Watch {
    /// The load begins at this instant of the monotonic clock: all agents have agreed to it.
    fn begins(&mut self, at: Nanos) {
        let _ = at;
    }
    /// A window of all agents together.
    fn window(&mut self, sum: &Interval);
    /// The agents, once a second.
    fn agents(&mut self, phase: &Phase, agents: &[AgentView]);
    /// A line for the user.
    fn notice(&mut self, line: &str);
}

/// Commands a run to its end. A `true` in `interrupt` ends it in order.
///
/// # Errors
/// [`FleetError`]: nothing was loaded, or another controller has the run now.
pub fn conduct(
    broker: &Arc<Broker>,
    setup: &Setup,
    key: Option<&KeyPair>,
    interrupt: &AtomicBool,
    watch: &mut dyn Watch,
) -> Result<Outcome, FleetError> {
    let duration = check(&setup.load)?;
    broker.make_places()?;
    let plan = FleetPlan {
        protocol: PROTOCOL,
        run: setup.run.clone(),
        agents: setup.agents.clone(),
        load: setup.load.clone(),
        times: setup.times.of_agents(),
        expires: wall() + PLAN_FOR,
    };
    let (bytes, digest) =
        plan::seal(&plan, key).map_err(|error| FleetError::Key(error.to_string()))?;
    broker.put_plan(&digest, &bytes)?;
    let state = RunState {
        epoch: 1,
        controller: setup.controller.clone(),
        plan: digest,
        agents: setup.agents.clone(),
        duration,
        times: setup.times,
        on_loss: setup.on_loss,
        begins: None,
        over: None,
        is_whole: false,
    };
    let mut controller =
        Controller::new(broker, setup.run.clone(), state, None, setup.load.clone());
    controller.write_state()?;
    let _subscriptions = controller.listen()?;
    let _beat = controller.beat();
    controller.work(interrupt, watch)
}

/// The duration of a load that a fleet can make.
///
/// # Errors
/// [`FleetError::Endless`].
pub fn check(load: &LoadPlan) -> Result<Nanos, FleetError> {
    load.stop.duration.ok_or(FleetError::Endless)
}

/// Takes over a run whose controller is gone, commands it to its end, and collects what there is.
///
/// # Errors
/// As [`conduct`]; [`FleetError::Unknown`].
pub fn take_over(
    broker: &Arc<Broker>,
    run: &Id,
    controller: &str,
    interrupt: &AtomicBool,
    watch: &mut dyn Watch,
) -> Result<Outcome, FleetError> {
    let (state, revision) = state(broker, run)?.ok_or_else(|| FleetError::Unknown(run.clone()))?;
    if state.is_whole {
        return Err(FleetError::Done(run.clone()));
    }
    let bytes = broker.plan(&state.plan, plan::PLAN_MAX)?;
    let plan = plan::read(&bytes, &state.plan)?;
    let epoch = state.epoch + 1;
    let state = RunState { epoch, controller: controller.to_owned(), ..state };
    let begins = state.begins;
    let mut controller = Controller::new(broker, run.clone(), state, Some(revision), plan.load);
    controller.write_state()?;
    let _subscriptions = controller.listen()?;
    let _beat = controller.beat();
    for agent in controller.state.agents.clone() {
        // What came before is no later than what comes.
        controller.replay(&agent, false)?;
    }
    // When it began is known by another clock. Taken as now, agents have more time than they need, and end by themselves.
    controller.conductor = controller.conductor.taking_over(begins.map(|_| monotonic()));
    controller.work(interrupt, watch)
}

/// The state of a run, with its revision.
///
/// # Errors
/// The broker failed.
pub fn state(broker: &Broker, run: &Id) -> Result<Option<(RunState, u64)>, BrokerError> {
    let stored = broker.get(&subject::state(run))?;
    Ok(stored.and_then(|stored| {
        let state = serde_json::from_slice(&stored.value).ok()?;
        Some((state, stored.revision))
    }))
}

enum Event {
    Report(Id, Report),
    Message(Vec<u8>),
}

struct Controller<'a> {
    broker: &'a Arc<Broker>,
    run: Id,
    state: RunState,
    revision: Option<u64>,
    /// Whether the last write may or may not have been done: the broker did not answer.
    is_unsure: bool,
    load: LoadPlan,
    conductor: Conductor,
    tally: Tally,
    /// The last one of each.
    reports: BTreeMap<Id, Report>,
    /// When each began, on the run clock.
    began: BTreeMap<Id, Converted>,
    events: SyncSender<Event>,
    received: Option<Receiver<Event>>,
    /// When the load began, on the run clock.
    started: Option<Nanos>,
    /// When an agent was first seen to have ended.
    ended: BTreeMap<Id, Nanos>,
    shown: u32,
}

impl<'a> Controller<'a> {
    fn new(
        broker: &'a Arc<Broker>,
        run: Id,
        state: RunState,
        revision: Option<u64>,
        load: LoadPlan,
    ) -> Self {
        let conductor = Conductor::new(
            (run.clone(), state.epoch),
            (state.plan.clone(), state.duration),
            &state.agents,
            (state.times, state.on_loss),
            monotonic(),
        );
        let expected = Expected {
            run: run.clone(),
            agents: state.agents.iter().cloned().collect(),
            epochs: (1..=state.epoch).collect(),
            windows: state.duration.0.div_ceil(WINDOW.0) as u32,
        };
        let (events, received) = mpsc::sync_channel(EVENTS_MAX);
        Self {
            broker,
            run,
            state,
            revision,
            is_unsure: false,
            load,
            conductor,
            tally: Tally::new(expected),
            reports: BTreeMap::new(),
            began: BTreeMap::new(),
            events,
            received: Some(received),
            started: None,
            ended: BTreeMap::new(),
            shown: 0,
        }
    }

    fn write_state(&mut self) -> Result<(), FleetError> {
        if std::mem::take(&mut self.is_unsure) {
            self.reread_revision()?;
        }
        let bytes = serde_json::to_vec(&self.state).expect("plain data serialises");
        let written = self.broker.set(&subject::state(&self.run), bytes, self.revision);
        self.is_unsure = written.is_err();
        self.revision = Some(written?.ok_or_else(|| FleetError::Replaced(self.run.clone()))?);
        Ok(())
    }

    /// After a write of which nobody knows whether it was done: what is stored may be ours.
    fn reread_revision(&mut self) -> Result<(), FleetError> {
        let stored = state(self.broker, &self.run).inspect_err(|_| self.is_unsure = true)?;
        if let Some((stored, revision)) = stored
            && (stored.epoch, &stored.controller) == (self.state.epoch, &self.state.controller)
        {
            self.revision = Some(revision);
        }
        Ok(())
    }

    fn listen(&self) -> Result<[Subscription; 3], FleetError> {
        let clock = self.broker.answer(&subject::clock(&self.run), |_| {
            let received = monotonic();
            serde_json::to_vec(&(received, monotonic())).expect("plain data serialises")
        })?;
        let report = |subject: &str, bytes: &[u8]| {
            let agent = subject.rsplit('.').next()?.parse().ok()?;
            Some(Event::Report(agent, serde_json::from_slice(bytes).ok()?))
        };
        let reports =
            self.broker.subscribe(&subject::all_answers(&self.run), self.events.clone(), report)?;
        let message = |_: &str, bytes: &[u8]| Some(Event::Message(bytes.to_vec()));
        let messages = self.broker.subscribe(
            &subject::all_messages(&self.run),
            self.events.clone(),
            message,
        )?;
        Ok([clock, reports, messages])
    }

    /// Beats as long as the returned value lives, whatever this thread waits for.
    fn beat(&self) -> Subscription {
        let epoch = self.state.epoch;
        self.broker.repeat(&subject::beat(&self.run), BEAT.into(), move || {
            let beat = Beat { epoch, at: monotonic() };
            serde_json::to_vec(&beat).expect("plain data serialises")
        })
    }

    fn work(
        mut self,
        interrupt: &AtomicBool,
        watch: &mut dyn Watch,
    ) -> Result<Outcome, FleetError> {
        let received = self.received.take().expect("it works once");
        let (mut orders_due, mut beat_due) = (Nanos::ZERO, Nanos::ZERO);
        let mut told = self.started;
        loop {
            if let Ok(event) = received.recv_timeout(TICK) {
                self.take(event);
                // What has come is taken together.
                while let Ok(event) = received.try_recv() {
                    self.take(event);
                }
            }
            let now = monotonic();
            self.broker.notices().iter().for_each(|line| watch.notice(line));
            if interrupt.load(Ordering::Relaxed) {
                self.conductor.stop("interrupted", now);
            }
            if now >= orders_due {
                orders_due = now + ORDERS;
                self.collect(now);
                self.order(now)?;
                if let (Some(at), None) = (self.started, told) {
                    told = Some(at);
                    watch.begins(at);
                }
            }
            if now >= beat_due {
                beat_due = now + BEAT;
                watch.agents(self.conductor.phase(), &self.views(now));
            }
            let over = match self.conductor.phase() {
                Phase::Over { why } => Some(why.clone()),
                _ => None,
            };
            self.show(watch, over.is_some());
            if let Some(why) = over {
                return match self.conductor.is_replaced() {
                    true => Err(FleetError::Replaced(self.run)),
                    false => self.outcome(why),
                };
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Report(agent, report) => {
                let answer = match report.epoch > self.state.epoch {
                    true => Answer::Fenced { by: report.epoch },
                    false => report.answer.clone(),
                };
                self.conductor.answered(&agent, answer, monotonic());
                if let Some(begun) = report.begun {
                    self.began.insert(agent.clone(), begun);
                }
                self.reports.insert(agent, report);
            }
            // What cannot be read is missing, and asked for again.
            Event::Message(bytes) => {
                self.tally.take(&bytes, false).ok();
            }
        }
    }

    fn order(&mut self, now: Nanos) -> Result<(), FleetError> {
        let orders = self.conductor.orders(now);
        // Whoever takes over must know of a start before any agent does.
        if let Phase::Committing { at } = *self.conductor.phase()
            && self.state.begins.is_none()
        {
            self.state.begins = Some(wall() + at.saturating_sub(monotonic()));
            self.started = Some(at);
            match self.write_state() {
                Ok(()) => {}
                Err(replaced @ FleetError::Replaced(_)) => return Err(replaced),
                Err(error) => {
                    // No agent is told to begin.
                    (self.state.begins, self.started) = (None, None);
                    self.conductor.stop(&error.to_string(), now);
                    return Ok(());
                }
            }
        }
        for (agent, command) in orders {
            let bytes = serde_json::to_vec(&command).expect("plain data serialises");
            // It is sent again until it is answered.
            self.broker.publish(&subject::orders(&agent), bytes).ok();
        }
        Ok(())
    }

    /// Looks for what is missing of agents that have ended. What is stored is read back once nothing loads any more.
    fn collect(&mut self, now: Nanos) {
        let is_after = matches!(self.conductor.phase(), Phase::Collecting { .. });
        for agent in self.state.agents.clone() {
            let Some(totals) = self.totals(&agent) else {
                let has_failed = matches!(self.conductor.last(&agent), Some(Answer::Failed(_)));
                let is_sent = self.reports.get(&agent).is_some_and(|report| report.waiting == 0);
                let is_due = has_failed && is_sent && is_after && self.is_due(&agent, now);
                if is_due && self.replay(&agent, true).is_ok() {
                    self.conductor.collected(&agent);
                }
                continue;
            };
            // A load of a number of requests may end before its time; one that was stopped is not whole.
            if !totals.interrupted {
                self.tally.ended(&agent, totals.windows);
            }
            if self.tally.is_whole(&agent, totals) {
                self.conductor.collected(&agent);
            } else if is_after && self.is_due(&agent, now) {
                // If it fails, it is due again.
                self.replay(&agent, true).ok();
                let missing = self.tally.missing(&agent, totals, MISSING_MAX);
                self.conductor.lacks(&agent, missing);
            }
        }
    }

    /// Whether messages of an agent had their time to come by themselves; again after as long.
    fn is_due(&mut self, agent: &Id, now: Nanos) -> bool {
        let since = *self.ended.entry(agent.clone()).or_insert(now);
        let is_due = now.saturating_sub(since) >= ON_THE_WAY;
        if is_due {
            self.ended.insert(agent.clone(), now);
        }
        is_due
    }

    /// What an agent says that it sent, now or before it was released.
    fn totals(&self, agent: &Id) -> Option<AgentTotals> {
        self.conductor.totals(agent).or_else(|| self.tally.totals(agent))
    }

    /// Reads back what the stream has of an agent. `late`: its windows should have come by themselves.
    fn replay(&mut self, agent: &Id, late: bool) -> Result<Vec<Vec<u8>>, BrokerError> {
        let messages = self.broker.replay(&subject::messages(&self.run, agent))?;
        for message in &messages {
            self.tally.take(message, late).ok();
        }
        if let Some(totals) = self.tally.totals(agent).filter(|totals| !totals.interrupted) {
            self.tally.ended(agent, totals.windows);
        }
        Ok(messages)
    }

    fn views(&self, now: Nanos) -> Vec<AgentView> {
        let of = self.state.agents.len() as u32;
        let view = |(index, name): (u32, &Id)| AgentView {
            name: name.clone(),
            share: Share { index, of },
            latest: self.tally.latest(name),
            report: self.reports.get(name).cloned(),
            standing: self.conductor.standing(name, now).unwrap_or(Standing::Heard),
        };
        (0..).zip(&self.state.agents).map(view).collect()
    }

    /// Shows each window once it is whole, or late; all of them when the run is over.
    fn show(&mut self, watch: &mut dyn Watch, is_over: bool) {
        while self.tally.last_window().is_some_and(|last| self.shown <= last) {
            let is_late = is_over || self.tally.agents_of(self.shown + SHOWN_AFTER).is_some();
            let agents = self.tally.agents_of(self.shown);
            if agents != Some(self.state.agents.len()) && !is_late {
                return;
            }
            if let Some(sum) = self.tally.window(self.shown) {
                watch.window(sum);
            }
            self.shown += 1;
        }
    }

    fn outcome(mut self, why: Option<String>) -> Result<Outcome, FleetError> {
        if let Some(why) = why.as_ref().filter(|_| self.state.begins.is_none()) {
            self.state.over = Some(why.clone());
            self.write_state().ok();
            return Err(FleetError::NotBegun(why.clone()));
        }
        let mut records = Vec::new();
        let mut agents = Vec::new();
        for (share, agent) in (0..).zip(self.state.agents.clone()) {
            let share = Share { index: share, of: self.state.agents.len() as u32 };
            let plan = LoadPlan { share, ..self.load.clone() };
            let (mut record, is_whole) = match self.whole_record(&agent) {
                Some(record) => (record, true),
                None => self.what_came(&agent, &plan)?,
            };
            record.began_unix_ms = self.state.begins.map(|begins| begins.0 / 1_000_000);
            agents.push((agent.clone(), share, is_whole));
            records.push((agent, record));
        }
        let coverage = self.tally.coverage();
        let agents: Vec<FleetAgent> = agents
            .into_iter()
            .map(|(agent, share, is_whole)| self.fleet_agent(&agent, share, is_whole, &coverage))
            .collect();
        if !agents.iter().all(|agent| agent.is_whole) {
            records.iter_mut().for_each(|(_, record)| without_samples(record));
        }
        let (known, cells) = coverage.counts();
        let begun: Vec<_> = agents.iter().filter_map(|agent| agent.begun).collect();
        let skew = begun.iter().max().zip(begun.iter().min()).map(|(last, first)| *last - *first);
        let fleet = FleetUse {
            run: self.run.to_string(),
            agents,
            windows: cells,
            windows_known: known,
            skew,
            ended_early: why.clone(),
            conflicts: self.tally.conflicts(),
        };
        self.state.over = Some(why.unwrap_or_else(|| "as planned".to_owned()));
        self.state.is_whole = fleet.is_whole();
        match self.write_state() {
            Err(replaced @ FleetError::Replaced(_)) => return Err(replaced),
            // If it cannot be written, the run is listed as one whose controller was lost; nothing depends on it.
            _ if fleet.is_whole() => {
                // It may hold credentials, and nobody needs it any more.
                self.broker.delete_plan(&self.state.plan).ok();
            }
            _ => {}
        }
        Ok(Outcome { records, fleet })
    }

    /// The record of an agent of which not all is known to be here, and whether it is after all.
    fn what_came(&mut self, agent: &Id, plan: &LoadPlan) -> Result<(LoadRecord, bool), FleetError> {
        let read = (0..REPLAYS).find_map(|_| self.replay(agent, true).ok());
        let messages = read.ok_or_else(|| FleetError::Unread(self.run.clone()))?;
        if let Some(record) = self.whole_record(agent) {
            return Ok((record, true));
        }
        Ok((partial_record(plan, windows_of(&messages, &self.run, agent)), false))
    }

    /// The record that an agent sent, if all of its messages came and say the same.
    fn whole_record(&self, agent: &Id) -> Option<LoadRecord> {
        let totals = self.totals(agent)?;
        if !self.tally.is_whole(agent, totals) {
            return None;
        }
        let mut json = String::new();
        let packed = self.tally.record(agent)?;
        let unpacked = flate2::read::ZlibDecoder::new(packed.as_slice());
        unpacked.take(RECORD_MAX).read_to_string(&mut json).ok()?;
        let record = LoadRecord::from_json(&json).ok()?;
        let requests = &record.requests;
        ((requests.started, requests.done) == (totals.started, totals.done)).then_some(record)
    }

    fn fleet_agent(
        &self,
        agent: &Id,
        share: Share,
        is_whole: bool,
        coverage: &Coverage,
    ) -> FleetAgent {
        let cells = coverage.rows.get(agent).map_or(&[][..], Vec::as_slice);
        // One that said that its load is over has none; of another nobody knows until its dead-man timer has ended.
        let is_over = self.totals(agent).is_some()
            || matches!(self.conductor.last(agent), Some(Answer::Failed(_) | Answer::Free));
        let started = self.started.unwrap_or(Nanos::ZERO);
        let end = self.state.duration + self.state.times.grace;
        let heard = self.conductor.heard(agent).unwrap_or(started).saturating_sub(started);
        let doubt = (heard + self.state.times.dead_man + BEAT).min(end);
        let said = match self.conductor.last(agent) {
            Some(Answer::Failed(why)) => Some(why.clone()),
            Some(Answer::Free) if !is_whole => Some("it left the run".to_owned()),
            Some(Answer::Finished(_)) | Some(Answer::Free) => None,
            _ => Some("it was lost".to_owned()),
        };
        FleetAgent {
            name: agent.to_string(),
            share,
            clock_error: self.tally.clock_error(agent).filter(|error| *error < Nanos::MAX),
            begun: self.began.get(agent).map(|begun| begun.at),
            is_whole,
            late_windows: cells.iter().filter(|cell| **cell == Cell::Late).count() as u64,
            gaps: coverage
                .gaps(agent)
                .into_iter()
                .map(|(from, until)| FleetGap {
                    from,
                    until,
                    may_load_until: (!is_over && doubt > from).then_some(doubt),
                })
                .collect(),
            trouble: said,
        }
    }
}

/// The windows of messages that were read back, each once.
fn windows_of(messages: &[Vec<u8>], run: &Id, agent: &Id) -> Vec<crate::message::Window> {
    let mut known = BTreeSet::new();
    let windows = messages.iter().filter_map(|bytes| {
        let Message { from, content } = Message::decode(bytes).ok()?;
        let is_own = from.run == *run && from.agent == *agent && known.insert(from.seq);
        match content {
            Content::Window(window) if is_own => Some(*window),
            Content::Window(_) | Content::Part(_) | Content::Totals(_) => None,
        }
    });
    windows.collect()
}
