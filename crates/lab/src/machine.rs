//! Owns the stage of a real run: this machine, its installed servers, one visit after another. Must
//! not know the design of an experiment or what is concluded. Start reading at [`Machine`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use record::{
    Contender, ContenderFacts, CpuLayout, LoadPlan, LoadRecord, Plan, SearchPlan, Visit,
    VisitState, Workload,
};
use units::Nanos;

use crate::adapters::{Adapter, Found};
use crate::clients::{self, Bench, Client, Order};
use crate::error::LabError;
use crate::journal::Keeping;
use crate::oracle::{self, OracleError};
use crate::server::{self, Running, ServerError, Start};
use crate::session::{Failure, Place, Stage};
use crate::settle::Settling;
use crate::tree::{Observe, Observed, Observer};
use crate::trial::{Window, condense, count, load_plan, requests_between};
use crate::{by_tool, capacity};
use crate::{cpus, facts};

/// How long a server may take to give its first answer.
const START_MAX: Nanos = Nanos::from_secs(20);
/// Reads of the tree's memory over a visit. Each costs a walk of its page tables (about 0.1 ms a
/// process), which the load feels.
const MEMORY_SAMPLES: u32 = 3;

/// A contender whose server is installed.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    /// How its server is run.
    pub(crate) adapter: &'static Adapter,
    /// Where it is.
    pub(crate) found: Found,
}

/// This machine, ready for a run: the site made, CPUs divided. What it put on the disk goes when it
/// is dropped.
pub(crate) struct Machine<'a> {
    plan: &'a Plan,
    installed: &'a [Installed],
    interrupt: &'a AtomicBool,
    layout: CpuLayout,
    /// Counters that the checks of the doctor ask for.
    counters: Vec<&'static str>,
    docroot: PathBuf,
    /// Holds `docroot` and each server's own folder.
    scratch: server::Scratch,
    /// Instant of the monotonic clock at which this part of the run began.
    began: Nanos,
    /// Time that its earlier parts took.
    elapsed: Nanos,
    keeping: Option<Keeping>,
    tools: Tools,
}

/// Load tools other than ours, by name.
pub(crate) type Tools = BTreeMap<String, Tool>;

/// A load tool that is installed.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) client: &'static Client,
    pub(crate) found: Found,
}

/// What there was before, where it is kept, and who else makes load.
#[derive(Debug, Default)]
pub(crate) struct GoingOn {
    /// Time that earlier parts of the run took.
    pub(crate) elapsed: Nanos,
    /// Where visits are kept while the run goes on.
    pub(crate) keeping: Option<Keeping>,
    /// The load tools that the plan names.
    pub(crate) tools: Tools,
}

impl<'a> Machine<'a> {
    /// Makes the site and divides the CPUs; `installed` has one entry a contender.
    pub(crate) fn new(
        plan: &'a Plan,
        installed: &'a [Installed],
        interrupt: &'a AtomicBool,
        counters: Vec<&'static str>,
        going_on: GoingOn,
    ) -> Result<Self, LabError> {
        let began = sys::clock::monotonic();
        let GoingOn { elapsed, keeping, tools } = going_on;
        let failed = |what: &str| {
            let what = what.to_owned();
            move |cause| LabError::System { what, cause }
        };
        let scratch = server::scratch().map_err(failed("cannot make a folder below /tmp"))?;
        let docroot = server::site(scratch.path(), &plan.pages())
            .map_err(failed("cannot make the site below /tmp"))?;
        let layout = cpus::layout().map_err(failed("cannot see which CPUs there are"))?;
        Ok(Self {
            plan,
            installed,
            interrupt,
            layout,
            counters,
            docroot,
            scratch,
            began,
            elapsed,
            keeping,
            tools,
        })
    }

    /// Which CPUs are whose.
    pub(crate) fn layout(&self) -> &CpuLayout {
        &self.layout
    }

    fn start(&self, cell: usize, contender: usize) -> Result<Running, Failure> {
        let Installed { adapter, found } = &self.installed[contender];
        let start = Start {
            adapter,
            found,
            settings: &self.contender(contender).settings,
            docroot: &self.docroot,
            cpus: &self.layout.server,
            connections: self.plan.work(cell, contender).connections,
            scratch: self.scratch.path(),
            target: &self.plan.target(cell, contender),
            timeout: START_MAX,
        };
        Running::start(&start).map_err(|error| failure(&error))
    }

    fn contender(&self, index: usize) -> &Contender {
        &self.plan.contenders[index]
    }

    /// Fetches all that the contender will be asked for, alone.
    fn ask(&self, running: &Running, contender: usize) -> Result<ContenderFacts, OracleError> {
        let mut facts = running.facts();
        let takes_part = |&cell: &usize| self.contender(contender).takes_part(cell);
        for cell in (0..self.plan.cells.len()).filter(takes_part) {
            let target = self.plan.target(cell, contender);
            if facts.bodies.contains_key(&target) {
                continue;
            }
            let timeout = self.plan.work(cell, contender).timeout;
            let reference =
                oracle::ask(running.address().clone(), running.target(&target), timeout)?;
            if facts.bodies.is_empty() {
                facts.body_sha256 = reference.sha256.clone();
                facts.head = reference.head;
            }
            facts.bodies.insert(target, reference.sha256);
        }
        Ok(facts)
    }

    /// Loads a running server and fills in the visit.
    fn load(&self, running: &mut Running, visit: &mut Visit) -> Result<(), LabError> {
        visit.logged = Some(self.settle(running, visit)?);
        let window = Window::of(self.plan);
        let seed = self.plan.seed.wrapping_add(u64::from(visit.block));
        let work = self.plan.work(visit.cell, visit.contender);
        let target = self.plan.target(visit.cell, visit.contender);
        if let Some(tool) = self.tools.get(&work.client) {
            return self.load_by_tool(
                running,
                visit,
                &by_tool::order(self.plan, &work, &target, running.addr()),
                tool,
            );
        }
        let mut plan = load_plan(window, &work, &target, running.addr(), &self.layout.client, seed);
        running.aim(&mut plan);
        if let Some(search) = &self.plan.search {
            return self.find_capacity(running, visit, search, &plan);
        }
        visit.before = facts::snapshot(self.counters.iter().copied());
        let start = sys::clock::monotonic();
        let window_here = Observe {
            from: start + window.from,
            until: start + window.until,
            memory_samples: MEMORY_SAMPLES,
            cpus: self.layout.client.clone(),
        };
        // A server that runs elsewhere has no processes to observe.
        let observer = running.tree().map(|tree| tree.observe(window_here)).transpose();
        let load = load::run(&plan, &load::Control::new(self.interrupt));
        // A load that ended early ends the observation too.
        let observed = observer.and_then(|observer| observer.map(Observer::finish).transpose());
        visit.after = facts::snapshot(self.counters.iter().copied());
        let mut load = load?;
        let died = died(running);
        match (died, observed) {
            (None, Ok(observed)) => measure(visit, &load, window, start, observed.as_ref()),
            (Some(reason), _) => {
                visit.state = VisitState::Failed { reason, log_tail: running.log_tail() };
            }
            (None, Err(error)) => {
                let reason = error.to_string();
                visit.state = VisitState::Failed { reason, log_tail: running.log_tail() };
            }
        }
        condense(&mut load);
        visit.load = Some(load);
        Ok(())
    }
}

impl Machine<'_> {
    /// Looks for the highest rate that a running server holds. What the server used is not read: a search
    /// asks at rates of its own for each contender.
    fn find_capacity(
        &self,
        running: &mut Running,
        visit: &mut Visit,
        search: &SearchPlan,
        closed: &LoadPlan,
    ) -> Result<(), LabError> {
        let warmed = self.warm_up(running, visit)?;
        visit.logged = Some(visit.logged.unwrap_or(0) + warmed);
        visit.before = facts::snapshot(self.counters.iter().copied());
        let mut measure = |plan: &LoadPlan| load::run(plan, &load::Control::new(self.interrupt));
        let found = capacity::find(search, closed, &mut measure)?;
        visit.after = facts::snapshot(self.counters.iter().copied());
        if let Some(reason) = died(running) {
            visit.state = VisitState::Failed { reason, log_tail: running.log_tail() };
        } else if found.highest_good.is_none() {
            let reason = "the goals hold at no rate that was tried".to_owned();
            visit.state = VisitState::Failed { reason, log_tail: String::new() };
        }
        visit.rate_per_s = found.highest_good.map(|rate| rate.0);
        visit.search = Some(found);
        Ok(())
    }

    /// Lets another tool load a running server. What it warms up with is made by ours, and not measured.
    fn load_by_tool(
        &self,
        running: &mut Running,
        visit: &mut Visit,
        order: &Order,
        tool: &Tool,
    ) -> Result<(), LabError> {
        let warmed = self.warm_up(running, visit)?;
        visit.logged = Some(visit.logged.unwrap_or(0) + warmed);
        visit.before = facts::snapshot(self.counters.iter().copied());
        let start = sys::clock::monotonic();
        let whole = Observe {
            from: start,
            // It ends with the tool.
            until: start + order.duration + order.timeout + clients::GRACE,
            memory_samples: MEMORY_SAMPLES,
            cpus: self.layout.client.clone(),
        };
        let observer = running.tree().map(|tree| tree.observe(whole)).transpose();
        let bench = Bench {
            cpus: &self.layout.client,
            scratch: self.scratch.path(),
            grace: clients::GRACE,
        };
        let ran = clients::run(tool.client, &tool.found, order, &bench);
        let observed = observer.and_then(|observer| observer.map(Observer::finish).transpose());
        visit.after = facts::snapshot(self.counters.iter().copied());
        let died = died(running);
        let failed = match (died, ran, observed) {
            (None, Ok(ran), Ok(observed)) => {
                by_tool::note(visit, &ran);
                let done = ran.report.claims().requests_done.unwrap_or(0);
                visit.server = observed.map(|observed| observed.server_use(done));
                return Ok(());
            }
            (Some(reason), _, _) => reason,
            (None, Err(error), _) => error.to_string(),
            (None, Ok(_), Err(error)) => error.to_string(),
        };
        visit.state = VisitState::Failed { reason: failed, log_tail: running.log_tail() };
        Ok(())
    }

    /// Loads a server until its rate changes no more, where the plan asks for that; how many requests
    /// it was.
    fn settle(&self, running: &Running, visit: &mut Visit) -> Result<u64, LabError> {
        if self.plan.visit.settle == Nanos::ZERO {
            return Ok(0);
        }
        let mut settling = Settling::new(self.plan.visit.settle, self.plan.margin);
        while let Some(window) = settling.next_load() {
            let load = self.unmeasured_load(running, visit, window)?;
            settling.add(&load);
            if load.interrupted {
                break;
            }
        }
        visit.settled = Some(settling.settled());
        Ok(settling.requests())
    }

    /// Loads a server for the planned warm-up and forgets what came of it; how many requests it was.
    fn warm_up(&self, running: &Running, visit: &Visit) -> Result<u64, LabError> {
        if self.plan.visit.warm_up == Nanos::ZERO {
            return Ok(0);
        }
        let load = self.unmeasured_load(running, visit, Window::warm_up(self.plan))?;
        Ok(load.requests.done)
    }

    /// A load by our generator as fast as the server answers, whatever will measure it.
    fn unmeasured_load(
        &self,
        running: &Running,
        visit: &Visit,
        window: Window,
    ) -> Result<LoadRecord, LabError> {
        let work = Workload {
            client: Workload::OURS.to_owned(),
            rate: None,
            ..self.plan.work(visit.cell, visit.contender)
        };
        let target = self.plan.target(visit.cell, visit.contender);
        let cpus = &self.layout.client;
        let mut plan = load_plan(window, &work, &target, running.addr(), cpus, self.plan.seed);
        running.aim(&mut plan);
        Ok(load::run(&plan, &load::Control::new(self.interrupt))?)
    }
}

/// Why a visit is void, where the server ended by itself.
fn died(running: &mut Running) -> Option<String> {
    running.died().map(|how| format!("the server ended while it was loaded ({how})"))
}

/// Puts the server's own count into a visit: all its log has but for what was not measured.
fn count_logged(visit: &mut Visit, logged: Option<u64>) {
    let warmed = visit.logged.unwrap_or(0);
    visit.logged = logged.map(|lines| lines.saturating_sub(warmed));
    // What a tool counts may be something else than what the server did.
    if let (Some(_), Some(count), Some(server)) = (&visit.tool, visit.logged, &mut visit.server) {
        server.requests = count;
    }
}

impl Stage for Machine<'_> {
    fn now(&mut self) -> Nanos {
        self.elapsed + (sys::clock::monotonic() - self.began)
    }

    fn discover(&mut self, contender: usize) -> Result<Result<ContenderFacts, Failure>, LabError> {
        let cells = self.plan.contenders[contender].cells.first().copied();
        let running = match self.start(cells.unwrap_or(0), contender) {
            Ok(running) => running,
            Err(failure) => return Ok(Err(failure)),
        };
        let discovered = self
            .ask(&running, contender)
            .map_err(|error| Failure { reason: error.to_string(), log_tail: running.log_tail() });
        Ok(match running.stop() {
            Ok(_) => discovered,
            Err(error) => Err(failure(&error)),
        })
    }

    fn keep(&mut self, visit: &Visit) -> Result<(), LabError> {
        self.keeping.as_mut().map_or(Ok(()), |keeping| keeping.keep(visit))
    }

    fn visit(&mut self, place: Place) -> Result<Option<Visit>, LabError> {
        let mut visit = unmeasured(place, self.now());
        let mut running = match self.start(place.cell, place.contender) {
            Ok(running) => running,
            Err(Failure { reason, log_tail }) => {
                visit.state = VisitState::Failed { reason, log_tail };
                return Ok(Some(visit));
            }
        };
        visit.ready_after = running.ready_after();
        self.load(&mut running, &mut visit)?;
        match running.stop() {
            Ok(stopped) => count_logged(&mut visit, stopped.logged),
            // A server that could not be ended would be there in the next visit.
            Err(error) => {
                let Failure { reason, log_tail } = failure(&error);
                visit.state = VisitState::Failed { reason, log_tail };
                visit.logged = None;
            }
        }
        let is_cut = visit.load.as_ref().is_some_and(|load| load.interrupted);
        // A tool is another process: Ctrl-C at a terminal ends it too, and its report is then no
        // measurement.
        let interrupted =
            is_cut || (visit.load.is_none() && self.interrupt.load(Ordering::Relaxed));
        Ok((!interrupted).then_some(visit))
    }
}

/// A visit of which nothing is known yet.
fn unmeasured(place: Place, started: Nanos) -> Visit {
    Visit {
        cell: place.cell,
        contender: place.contender,
        block: place.block,
        position: place.position,
        attempt: place.attempt,
        started,
        ..Visit::default()
    }
}

/// Puts the figures of a load into its visit. `start` is the instant from which the load counts.
fn measure(
    visit: &mut Visit,
    load: &LoadRecord,
    window: Window,
    start: Nanos,
    observed: Option<&Observed>,
) {
    let counted = count(load, window);
    visit.cut = counted.cut;
    visit.rate_per_s = Some(counted.rate_per_s);
    let Some(observed) = observed else { return };
    // A watching thread that came late has read another window: its requests are counted in that.
    let (from, until) = (observed.from.saturating_sub(start), observed.until.saturating_sub(start));
    visit.server = Some(observed.server_use(requests_between(load, from, until)));
}

fn failure(error: &ServerError) -> Failure {
    // The end of the log stands beside the reason, not in it.
    let text = error.to_string();
    let reason = text.split("; the end of its log").next().unwrap_or(&text);
    let reason = reason.replace("; the end of its log:", "").trim_end().to_owned();
    Failure { reason, log_tail: error.log_tail().to_owned() }
}
