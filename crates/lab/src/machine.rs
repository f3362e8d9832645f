//! Owns the stage of a real run: this machine, its installed servers, one visit after another. Start reading at
//! [`Machine`].

mod load_from_elsewhere;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use record::{
    Contender, ContenderFacts, CpuLayout, ExpectedBody, Finding, LoadPlan, LoadRecord, Plan,
    RunRecord, SearchPlan, UserSkip, Visit, VisitState, Workload,
};
use units::Nanos;

use crate::adapters::{Adapter, Found, Role};
use crate::clients::{self, Bench, Client, Order};
use crate::cpus;
use crate::elsewhere::Elsewhere;
use crate::error::LabError;
use crate::journal::Keeping;
use crate::oracle::{self, OracleError};
use crate::server::{self, Conditions, Running, ServerError, Start, Stopped};
use crate::session::{Failure, PlannedVisit, Stage};
use crate::settle::Settling;
use crate::surroundings::{Keeper, Place, Ready, no_namespaces};
use crate::tree::{Observe, Observed, Observer};
use crate::trial::{Counted, Window, condense, count, load_plan, requests_between};
use crate::{by_tool, capacity};

/// Longest time that a server may take for its first answer.
const START_MAX: Nanos = Nanos::from_secs(20);
/// How often a visit is made again because a part of its load is missing: an agent that is lost each time is the end of
/// the run, which can be resumed.
const INCOMPLETE_MAX: u32 = 2;
/// The same as a fraction of a short budget: a server that never answers must leave time for the others.
const START_OF_BUDGET: u64 = 4;
/// The minimum, because a JVM needs it.
const START_MIN: Nanos = Nanos::from_secs(5);

/// Makes one load of a search.
type MakeLoad<'a> = dyn FnMut(&LoadPlan) -> Result<LoadRecord, LabError> + 'a;

/// What a contender answered when it was asked alone.
type Asked = (ContenderFacts, Vec<(String, ExpectedBody)>);

/// A contender whose server is installed.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    /// How its server is run.
    pub(crate) adapter: &'static Adapter,
    /// Where it is.
    pub(crate) found: Found,
}

/// This machine, ready for a run: the site made, CPUs divided. Its files are removed when it
/// is dropped.
pub(crate) struct Machine<'a> {
    plan: &'a Plan,
    installed: &'a [Installed],
    interrupt: &'a AtomicBool,
    layout: CpuLayout,
    docroot: PathBuf,
    keeper: Keeper,
    /// Holds `docroot` and each server's own folder.
    scratch: server::Scratch,
    /// Instant of the monotonic clock at which this part of the run began.
    began: Nanos,
    /// Time that earlier parts of the run took.
    elapsed: Nanos,
    keeping: Option<Keeping>,
    so_far: Option<Box<RunRecord>>,
    tools: Tools,
    /// Who makes the load, if other machines do.
    elsewhere: Option<Arc<Elsewhere>>,
    /// What each contender answered when it was asked alone, by contender and path.
    bodies: BTreeMap<(usize, String), ExpectedBody>,
    /// Contenders that had to be killed; each is reported once.
    killed: BTreeSet<usize>,
    /// Messages for the user that have not been shown yet.
    notes: Vec<String>,
    /// What is missing of the load of the visit that was made last, which makes it no visit.
    incomplete: Option<String>,
}

/// Load tools other than ours, by name.
pub(crate) type Tools = BTreeMap<String, Tool>;

/// A load tool that is installed.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) client: &'static Client,
    pub(crate) found: Found,
}

/// What a machine needs in addition to its plan: earlier parts, the journal, load tools and the network.
#[derive(Debug, Default)]
pub(crate) struct GoingOn {
    /// Time that earlier parts of the run took.
    pub(crate) elapsed: Nanos,
    /// Where visits are kept while the run goes on.
    pub(crate) keeping: Option<Keeping>,
    /// The load tools that the plan names.
    pub(crate) tools: Tools,
    /// Where all visits are made.
    pub(crate) ground: MachineLayout,
    /// The run without a visit, for the doctor to look at what there is.
    pub(crate) so_far: Option<Box<RunRecord>>,
}

/// CPUs and network of all visits of a run.
#[derive(Debug, Default)]
pub(crate) struct MachineLayout {
    /// Which CPUs belong to the server and which to the generator.
    pub(crate) layout: CpuLayout,
    /// The network of all visits.
    pub(crate) place: Place,
    /// Who makes the load, if other machines do.
    pub(crate) elsewhere: Option<Arc<Elsewhere>>,
}

impl MachineLayout {
    /// For visits of these contenders.
    pub(crate) fn of(
        plan: &Plan,
        installed: &[Installed],
        elsewhere: Option<Arc<Elsewhere>>,
    ) -> Result<Self, LabError> {
        if let Some(elsewhere) = elsewhere {
            return Self::of_machines(plan, installed, elsewhere);
        }
        let layout = cpus::layout().map_err(failed("cannot see which CPUs there are"))?;
        let fixed = installed.iter().find(|one| !one.adapter.is_movable()).map(|one| {
            let name = one.adapter.name;
            format!("a contender (`server = \"{name}\"`) cannot be put in a network of its own")
        });
        let place = fixed.or_else(no_namespaces).map_or(Place::Fresh, Place::Loopback);
        Ok(Self { layout, place, elsewhere: None })
    }

    /// For visits whose load comes from other machines.
    fn of_machines(
        plan: &Plan,
        installed: &[Installed],
        elsewhere: Arc<Elsewhere>,
    ) -> Result<Self, LabError> {
        let place = Place::Machines(elsewhere.address);
        // A server that runs already may be anywhere, and its URL says where it is reached.
        let is_bound = |(one, contender): &(&Installed, &Contender)| match one.adapter.role {
            Role::Server => false,
            Role::AnyProgram => true,
            Role::RunsAlready => {
                !elsewhere.address.is_loopback() && one.adapter.is_on_loopback(&contender.settings)
            }
        };
        if let Some((_, bound)) = installed.iter().zip(&plan.contenders).find(is_bound) {
            return Err(LabError::OutOfReach { contender: bound.name.clone() });
        }
        Ok(Self { layout: elsewhere.layout.clone(), place, elsewhere: Some(elsewhere) })
    }
}

impl<'a> Machine<'a> {
    /// Makes the site and divides the CPUs; `installed` has one entry a contender.
    pub(crate) fn new(
        plan: &'a Plan,
        installed: &'a [Installed],
        interrupt: &'a AtomicBool,
        going_on: GoingOn,
    ) -> Result<Self, LabError> {
        let began = sys::clock::monotonic();
        let GoingOn { elapsed, keeping, tools, ground, so_far } = going_on;
        let MachineLayout { layout, place, elsewhere } = ground;
        let scratch = server::scratch().map_err(failed("cannot make a folder below /tmp"))?;
        let docroot = server::site(scratch.path(), &plan.pages())
            .map_err(failed("cannot make the site below /tmp"))?;
        for sleep in plan.sleeps() {
            server::sleeper(&docroot, sleep)
                .map_err(failed("cannot put a program into the site below /tmp"))?;
        }
        let keeper = Keeper::new(plan.seed, &layout, place)
            .map_err(failed("cannot time the calibration workload"))?;
        Ok(Self {
            plan,
            installed,
            interrupt,
            layout,
            docroot,
            keeper,
            scratch,
            began,
            elapsed,
            keeping,
            so_far,
            tools,
            elsewhere,
            bodies: BTreeMap::new(),
            killed: BTreeSet::new(),
            notes: Vec::new(),
            incomplete: None,
        })
    }

    /// Which CPUs belong to the server and which to the generator.
    pub(crate) fn layout(&self) -> &CpuLayout {
        &self.layout
    }

    fn start(
        &self,
        cell: usize,
        contender: usize,
        conditions: &Conditions,
    ) -> Result<Running, Failure> {
        let work = self.plan.work(cell, contender);
        // A program that sleeps would answer only after its sleep.
        let target = match work.sleep {
            Some(_) => Workload::PAGE.to_owned(),
            None => self.plan.target(cell, contender),
        };
        let Installed { adapter, found } = &self.installed[contender];
        let start = Start {
            adapter,
            found,
            settings: &self.contender(contender).settings,
            docroot: &self.docroot,
            cpus: &self.layout.server,
            connections: work.connections,
            scratch: self.scratch.path(),
            target: &target,
            timeout: Nanos(self.plan.budget.0 / START_OF_BUDGET).clamp(START_MIN, START_MAX),
            interrupt: self.interrupt,
        };
        Running::start_under(&start, conditions).map_err(|error| failure(&error))
    }

    /// Reports a contender that did not end when it was asked to: each of its visits takes that much longer.
    fn note_end(&mut self, contender: usize, stopped: &Stopped) {
        if !stopped.forced || !self.killed.insert(contender) {
            return;
        }
        let name = &self.contender(contender).name;
        let way_out = match self.installed[contender].adapter.takes_stop() {
            true => {
                ". The setting `stop` names another signal: stop = \"KILL\" ends it at once, \"INT\" as Ctrl-C \
                 does"
            }
            false => "",
        };
        self.notes.push(format!(
            "{name} did not end within {} of {} and was killed, so each visit takes that long{way_out}",
            stopped.took, stopped.signal
        ));
    }

    fn contender(&self, index: usize) -> &Contender {
        &self.plan.contenders[index]
    }

    /// Fetches every target of the contender alone: its facts, and the bodies by path.
    fn ask(&self, running: &Running, contender: usize) -> Result<Asked, OracleError> {
        // Its answers come first: observing its switches takes a thousand requests.
        let mut answers = ContenderFacts::default();
        let mut bodies = Vec::new();
        let takes_part = |&cell: &usize| self.contender(contender).takes_part(cell);
        for cell in (0..self.plan.cells.len()).filter(takes_part) {
            let target = self.plan.target(cell, contender);
            if answers.bodies.contains_key(&target) {
                continue;
            }
            let work = self.plan.work(cell, contender);
            let asked = running.target(&target);
            let mut reference = oracle::ask(running.address().clone(), asked, work.timeout)?;
            // A server that runs elsewhere may be asked for something else.
            if let Some(sleep) = work.sleep.filter(|_| asked == target) {
                reference = reference.expect(&target, &server::slept(sleep))?;
            }
            bodies.push((target.clone(), reference.body()));
            if answers.bodies.is_empty() {
                answers.body_sha256 = reference.sha256.clone();
                answers.head = reference.head;
            }
            answers.bodies.insert(target, reference.sha256);
        }
        let ContenderFacts { bodies: hashes, body_sha256, head, .. } = answers;
        let facts = ContenderFacts { bodies: hashes, body_sha256, head, ..running.facts() };
        Ok((facts, bodies))
    }

    /// Lets a load verify bodies against what the contender answered when it was asked alone, if it did answer.
    fn verify_bodies(&self, plan: &mut LoadPlan, visit: &Visit, work: &Workload, target: &str) {
        let body = self.bodies.get(&(visit.contender, target.to_owned()));
        if let (Some(body), Some(request)) = (body, plan.requests.first_mut()) {
            request.expected = Some(body.clone());
            plan.verify.bodies = work.verify;
        }
    }

    /// Loads a running server from the client's network, reads counters meanwhile, and fills in the visit.
    fn watch_load(
        &mut self,
        running: &mut Running,
        ready: Ready,
        visit: &mut Visit,
    ) -> Result<(), LabError> {
        let net = running.net().clone();
        // Before any counter is read: the readings must cover only the measured load.
        let settled = net.at_client(|| self.settle(running, visit));
        visit.logged = Some(settled.map_err(failed("cannot load from the client's network"))??);
        if let Some(elsewhere) = self.elsewhere.clone() {
            return self.watch_load_from(&elsewhere, (running, ready), visit);
        }
        let watching = self.keeper.watch(ready, running, Window::of(self.plan).until);
        let watching = watching.map_err(failed("cannot watch the machine"))?;
        let loaded = net.at_client(|| self.load(running, visit));
        let surroundings = self.keeper.after(watching, running);
        visit.surroundings = Some(Box::new(surroundings));
        loaded.map_err(failed("cannot load from the client's network"))?
    }

    /// Loads a running server and fills in the visit.
    fn load(&self, running: &mut Running, visit: &mut Visit) -> Result<(), LabError> {
        let window = Window::of(self.plan);
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
        let plan = self.measured_load(running, visit);
        if let Some(search) = &self.plan.search {
            let mut measure = |plan: &LoadPlan| self.load_here(plan);
            return self.find_capacity(running, visit, search, (&plan, &mut measure));
        }
        let start = sys::clock::monotonic();
        let window_here = Observe {
            from: start + window.from,
            until: start + window.until,
            cpus: self.layout.client.clone(),
        };
        // A server that runs elsewhere has no processes to observe.
        let observer = running.tree().map(|tree| tree.observe(window_here)).transpose();
        let load = self.load_here(&plan);
        // A load that ended early ends the observation too.
        let observed = observer.and_then(|observer| observer.map(Observer::finish).transpose());
        let seen = observed.map(|observed| (start, observed)).map_err(|error| error.to_string());
        self.note_load(running, visit, load?, seen);
        Ok(())
    }

    /// The measured load of a visit.
    fn measured_load(&self, running: &Running, visit: &Visit) -> LoadPlan {
        let seed = self.plan.seed.wrapping_add(u64::from(visit.block));
        let work = self.plan.work(visit.cell, visit.contender);
        let target = self.plan.target(visit.cell, visit.contender);
        let (window, cpus) = (Window::of(self.plan), &self.layout.client);
        let mut plan = load_plan(window, &work, &target, running.addr(), cpus, seed);
        running.aim(&mut plan);
        self.verify_bodies(&mut plan, visit, &work, &target);
        plan
    }

    /// A load by the generator of this machine.
    fn load_here(&self, plan: &LoadPlan) -> Result<LoadRecord, LabError> {
        Ok(load::run(plan, &load::Control::new(self.interrupt))?)
    }

    /// Puts a load into its visit, with what was seen of the server since it began; `Err`: why that is not known.
    fn note_load(
        &self,
        running: &mut Running,
        visit: &mut Visit,
        mut load: LoadRecord,
        seen: Result<(Nanos, Option<Observed>), String>,
    ) {
        let died = died(running);
        match (died, seen) {
            (None, Ok((began, observed))) => {
                let work = self.plan.work(visit.cell, visit.contender);
                let counted = count(&load, Window::of(self.plan), &work);
                measure(visit, &load, counted, began, observed.as_ref());
            }
            (Some(reason), _) | (None, Err(reason)) => {
                visit.state = VisitState::Failed { reason, log_tail: running.log_tail() };
            }
        }
        condense(&mut load);
        visit.load = Some(load);
    }
}

impl Machine<'_> {
    /// Looks for the highest rate that a running server holds. The server's CPU time and memory are not read: each
    /// search has its own rates.
    fn find_capacity(
        &self,
        running: &mut Running,
        visit: &mut Visit,
        search: &SearchPlan,
        (closed, measure): (&LoadPlan, &mut MakeLoad<'_>),
    ) -> Result<(), LabError> {
        let warmed = self.warm_up(running, visit)?;
        visit.logged = Some(visit.logged.unwrap_or(0) + warmed);
        let found = capacity::find(search, closed, measure)?;
        if let Some(reason) = died(running) {
            visit.state = VisitState::Failed { reason, log_tail: running.log_tail() };
        } else if found.highest_good.is_none() {
            let reason = format!("the goals were {}", found.none_held());
            visit.state = VisitState::Failed { reason, log_tail: String::new() };
        }
        visit.rate_per_s = found.highest_good.map(|rate| rate.0);
        visit.search = Some(found);
        Ok(())
    }

    /// Lets another tool load a running server, after an unmeasured warm-up by our generator.
    fn load_by_tool(
        &self,
        running: &mut Running,
        visit: &mut Visit,
        order: &Order,
        tool: &Tool,
    ) -> Result<(), LabError> {
        let warmed = self.warm_up(running, visit)?;
        visit.logged = Some(visit.logged.unwrap_or(0) + warmed);
        let start = sys::clock::monotonic();
        let whole = Observe {
            from: start,
            // The observation ends with the tool.
            until: start + order.duration + order.timeout + clients::GRACE,
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

    /// Loads a server until its rate is stable, if the plan asks for that; returns the number of
    /// requests.
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

    /// Loads a server for the planned warm-up, unmeasured; returns the number of requests.
    fn warm_up(&self, running: &Running, visit: &Visit) -> Result<u64, LabError> {
        if self.plan.visit.warm_up == Nanos::ZERO {
            return Ok(0);
        }
        let load = self.unmeasured_load(running, visit, Window::warm_up(self.plan))?;
        Ok(load.requests.done)
    }

    /// An unmeasured load by our generator, as fast as the server answers.
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
        self.load_here(&plan)
    }
}

/// Why a visit is void, if the server ended by itself.
fn died(running: &mut Running) -> Option<String> {
    running.died().map(|how| format!("the server ended while it was loaded ({how})"))
}

/// Puts the server's own count into a visit: the lines of its log, without those of the warm-up.
fn count_logged(visit: &mut Visit, logged: Option<u64>) {
    let warmed = visit.logged.unwrap_or(0);
    visit.logged = logged.map(|lines| lines.saturating_sub(warmed));
    // A tool may count something other than the server does.
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
        let net = self.keeper.net().map_err(failed("cannot make a network for a server"))?;
        let conditions = Conditions::over(net);
        let running = match self.start(cells.unwrap_or(0), contender, &conditions) {
            Ok(running) => running,
            Err(failure) => return Ok(Err(failure)),
        };
        let asked = conditions.net.at_client(|| self.ask(&running, contender));
        let discovered = asked
            .map_err(failed("cannot ask from the client's network"))?
            .map_err(|error| Failure {
                answered: !matches!(error, OracleError::NoReply { .. }),
                reason: error.to_string(),
                log_tail: running.log_tail(),
            })
            .map(|(facts, bodies)| {
                let bodies = bodies.into_iter();
                self.bodies.extend(bodies.map(|(target, body)| ((contender, target), body)));
                facts
            });
        Ok(match running.stop() {
            Ok(stopped) => {
                self.note_end(contender, &stopped);
                discovered
            }
            Err(error) => Err(failure(&error)),
        })
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn keep(&mut self, visit: &Visit) -> Result<(), LabError> {
        self.keeping.as_mut().map_or(Ok(()), |keeping| keeping.keep(visit))
    }

    fn keep_skip(&mut self, skip: UserSkip) -> Result<(), LabError> {
        self.keeping.as_mut().map_or(Ok(()), |keeping| keeping.keep_skip(skip))
    }

    fn examine(
        &mut self,
        contenders: &[ContenderFacts],
        visits: Vec<Visit>,
    ) -> (Vec<Visit>, Vec<Finding>) {
        let Some(run) = &mut self.so_far else { return (visits, Vec::new()) };
        (run.contenders, run.visits) = (contenders.to_vec(), visits);
        let findings = doctor::examine(run);
        (std::mem::take(&mut run.visits), findings)
    }

    fn visit(&mut self, planned: PlannedVisit) -> Result<Option<Visit>, LabError> {
        let mut repeats_left = INCOMPLETE_MAX;
        loop {
            let visit = self.visit_once(planned)?;
            let Some(why) = self.incomplete.take().filter(|_| visit.is_some()) else {
                return Ok(visit);
            };
            if repeats_left == 0 {
                return Err(LabError::Elsewhere(why));
            }
            repeats_left -= 1;
            let name = &self.contender(planned.contender).name;
            self.notes.push(format!("{name}: the visit is made again: {why}"));
        }
    }
}

impl Machine<'_> {
    /// Makes a visit whose load may turn out to be incomplete.
    fn visit_once(&mut self, planned: PlannedVisit) -> Result<Option<Visit>, LabError> {
        let mut visit = unmeasured(planned, self.now());
        let Installed { adapter, found } = &self.installed[planned.contender];
        let fixed = adapter.fixed_port(found, &self.contender(planned.contender).settings);
        let ready = self.keeper.before(&self.docroot, number(planned), fixed);
        let ready =
            ready.map_err(failed("cannot bring the machine to its state before a visit"))?;
        let mut running = match self.start(planned.cell, planned.contender, &ready.conditions) {
            Ok(running) => running,
            Err(Failure { reason, .. }) if self.interrupt.load(Ordering::Relaxed) => {
                self.notes.push(reason);
                return Ok(None);
            }
            Err(Failure { reason, log_tail, .. }) => {
                visit.state = VisitState::Failed { reason, log_tail };
                return Ok(Some(visit));
            }
        };
        visit.ready_after = running.ready_after();
        self.watch_load(&mut running, ready, &mut visit)?;
        match running.stop() {
            Ok(stopped) => {
                self.note_end(planned.contender, &stopped);
                count_logged(&mut visit, stopped.logged);
            }
            // A server that could not be ended would disturb the next visit.
            Err(error) => {
                let Failure { reason, log_tail, .. } = failure(&error);
                visit.state = VisitState::Failed { reason, log_tail };
                visit.logged = None;
            }
        }
        let by_user = self.interrupt.load(Ordering::Relaxed);
        // A load of other machines is also cut when one of them is lost.
        let is_cut = visit.load.as_ref().is_some_and(|load| load.interrupted)
            && (by_user || self.incomplete.is_none());
        // A tool is another process, which Ctrl-C at a terminal also ends; its report is then no measurement.
        let interrupted = is_cut || (visit.load.is_none() && by_user);
        Ok((!interrupted).then_some(visit))
    }
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> LabError + use<> {
    let what = what.to_owned();
    move |cause| LabError::System { what, cause }
}

/// A unique number for each visit of a run, the same in a resumed run.
fn number(planned: PlannedVisit) -> u64 {
    /// Above any count of cells, contenders or attempts, so that no two visits share a number.
    const RADIX: u64 = 100_003;
    let parts = [u64::from(planned.attempt), planned.cell as u64, planned.contender as u64];
    parts.into_iter().fold(u64::from(planned.block), |number, part| {
        number.wrapping_mul(RADIX).wrapping_add(part)
    })
}

/// A visit before its measurement.
fn unmeasured(planned: PlannedVisit, started: Nanos) -> Visit {
    Visit {
        cell: planned.cell,
        contender: planned.contender,
        block: planned.block,
        position: planned.position,
        attempt: planned.attempt,
        started,
        ..Visit::default()
    }
}

/// Puts the figures of a load into its visit. `start` is the instant from which the load counts.
fn measure(
    visit: &mut Visit,
    load: &LoadRecord,
    counted: Counted,
    start: Nanos,
    observed: Option<&Observed>,
) {
    visit.cut = counted.cut;
    visit.rate_per_s = Some(counted.rate_per_s);
    let Some(observed) = observed else { return };
    // A late watching thread has read another window, so the requests are counted in that window.
    let (from, until) = (observed.from.saturating_sub(start), observed.until.saturating_sub(start));
    visit.server = Some(observed.server_use(requests_between(load, from, until)));
}

fn failure(error: &ServerError) -> Failure {
    // The end of the log is a separate field.
    let text = error.to_string();
    let reason = text.split("; the end of its log").next().unwrap_or(&text);
    let reason = reason.replace("; the end of its log:", "").trim_end().to_owned();
    Failure { reason, log_tail: error.log_tail().to_owned(), answered: false }
}
