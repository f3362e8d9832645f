//! An agent: it waits for orders, prepares plans, watches over the process of its load, and reports. Owns the event
//! loop and what a run holds on this machine; [`Seat`] decides. Start reading at [`serve`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use record::{LoadPlan, Share};
use serde::{Deserialize, Serialize};
use sys::clock::{monotonic, wall};
use units::Nanos;

use crate::broker::{Broker, BrokerError, Found};
use crate::clock::{ClockEstimate, Converted, Probe};
use crate::ids::Id;
use crate::message::{AgentTotals, Content, Message, Part, Sender as FrameSender};
use crate::order::{Answer, Command, Order, SeatTimes};
use crate::outbox::Outbox;
use crate::permit::Permit;
use crate::plan::{self, FleetPlan};
use crate::seat::{Deed, Seat};
use crate::spool::{self, Spool};
use crate::subject;
use crate::worker::{Said, Told, WorkerProcess, WorkerTotals};

/// Time between two looks at the clock.
const TICK: Duration = Duration::from_millis(100);
/// Time between two reports.
const REPORT: Nanos = Nanos::from_secs(1);
/// Probes of the run clock before a load.
const PROBES: usize = 32;
/// Between two of them.
const PROBE_GAP: Duration = Duration::from_millis(10);
/// Probes at a time during a load, and how often.
const PROBES_AGAIN: usize = 2;
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// How often the broker is asked for a plan, and the time between two tries.
const PLAN_TRIES: u32 = 5;
const PLAN_AGAIN: Duration = Duration::from_secs(1);
/// Most events that wait: orders and beats are few, and the process of a load waits until its windows are taken.
const EVENTS_MAX: usize = 1_024;

/// What an agent is.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Its name, and that of no other agent.
    pub name: Id,
    /// Whom it may load.
    pub permit: Permit,
    /// Public keys of those whose plans it carries out; empty: anyone's.
    pub trust: Vec<String>,
    /// Folder of its spools.
    pub spool: PathBuf,
    /// How the process of a load is started.
    pub worker: Vec<OsString>,
    /// Version of joust.
    pub version: String,
    /// CPUs that it may use.
    pub cpus: usize,
    /// Of this machine.
    pub kernel: String,
}

/// What an agent tells its controller, once a second and at each order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Where it is.
    pub answer: Answer,
    /// Who commands it: the highest fencing number that it has heard.
    pub epoch: u64,
    /// Error of its run clock; `None` before the first probe.
    pub clock_error: Option<Nanos>,
    /// When its load began, on the run clock.
    pub begun: Option<Converted>,
    /// Messages that the broker has not acknowledged.
    pub waiting: u64,
    /// Why its spool cannot be written.
    pub spool_error: Option<String>,
    /// How late its own loop was at most since the last report: a machine that is too busy.
    pub lag: Nanos,
}

/// Why an agent cannot work.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The broker.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The folder of the spools.
    #[error("cannot write to the folder {}: {source}; name another one (--spool DIR)", path.display())]
    Spool {
        /// As given.
        path: PathBuf,
        /// Mostly permissions.
        source: std::io::Error,
    },
}

enum Event {
    Order(Command),
    Beat(Id, Beat),
    Prepared(Id, Result<Box<Prepared>, String>),
    Said(Id, Option<Said>),
}

/// What a controller says once a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Its fencing number.
    pub epoch: u64,
    /// When it was sent, on the run clock: one that was long on its way tells of then.
    pub at: Nanos,
}

/// A plan that was checked.
struct Prepared {
    plan: LoadPlan,
    epoch: u64,
}

/// Works as an agent until `stop`: then what runs is ended.
///
/// # Errors
/// [`AgentError`] before it began; later nothing ends it but `stop`.
pub fn serve(
    broker: &Arc<Broker>,
    setup: &Setup,
    stop: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<(), AgentError> {
    let path = &setup.spool;
    std::fs::create_dir_all(path)
        .and_then(|()| std::fs::File::create(path.join(format!(".{}", setup.name))))
        .and_then(|_| std::fs::remove_file(path.join(format!(".{}", setup.name))))
        .map_err(|source| AgentError::Spool { path: path.clone(), source })?;
    let (events, received) = mpsc::sync_channel(EVENTS_MAX);
    let order = |_: &str, bytes: &[u8]| serde_json::from_slice(bytes).ok().map(Event::Order);
    let _orders = broker.subscribe(&subject::orders(&setup.name), events.clone(), order)?;
    let _beats = broker.subscribe(subject::BEATS, events.clone(), |subject, bytes| {
        let run = subject.rsplit('.').next()?.parse().ok()?;
        Some(Event::Beat(run, serde_json::from_slice(bytes).ok()?))
    })?;
    let _announced = broker.announce(&Found {
        agent: setup.name.clone(),
        version: setup.version.clone(),
        protocol: plan::PROTOCOL,
        cpus: setup.cpus,
        kernel: setup.kernel.clone(),
    })?;
    say(&format!("agent {} is ready", setup.name));
    let mut agent = Agent {
        broker: broker.clone(),
        setup,
        events,
        say,
        seat: Seat::default(),
        job: None,
        reported: Nanos::ZERO,
        lag: Nanos::ZERO,
    };
    agent.work(&received, stop);
    Ok(())
}

struct Agent<'a> {
    broker: Arc<Broker>,
    setup: &'a Setup,
    events: SyncSender<Event>,
    say: &'a dyn Fn(&str),
    seat: Seat,
    job: Option<Job>,
    reported: Nanos,
    lag: Nanos,
}

/// What a run holds on this machine.
struct Job {
    run: Id,
    epoch: u64,
    clock: Arc<Mutex<ClockEstimate>>,
    /// Of the controller whose clock that is.
    clock_epoch: u64,
    worker: Option<WorkerProcess>,
    spool: Option<(PathBuf, Spool)>,
    spool_error: Option<String>,
    outbox: Option<Outbox>,
    seq: u64,
    begun: Option<Converted>,
    over: Option<AgentTotals>,
    failed: Option<String>,
    until: Nanos,
}

impl Agent<'_> {
    fn work(&mut self, received: &Receiver<Event>, stop: &AtomicBool) {
        let mut due = monotonic();
        while !stop.load(Ordering::Relaxed) {
            match received.recv_timeout(TICK) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the agent has a sender"),
            }
            let now = monotonic();
            if now >= due {
                self.lag = self.lag.max(now.saturating_sub(due));
                due = now + Nanos::from_millis(100);
                self.tick(now);
            }
        }
        // Dropping the job ends its load.
        self.job = None;
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Order(command) => self.obey(&command),
            Event::Beat(run, beat) => {
                let job = self.job.as_mut().filter(|job| job.run == run);
                let sent = job.and_then(|job| job.sent(beat)).unwrap_or(Nanos::MAX);
                self.seat.heard(&run, beat.epoch, monotonic().min(sent));
            }
            Event::Prepared(run, result) => self.prepared(&run, result),
            Event::Said(run, said) => self.said(&run, said),
        }
    }

    fn obey(&mut self, command: &Command) {
        let is_held = self.job.as_ref().is_some_and(|job| job.run == command.run);
        if let (Order::Resend { seqs }, false) = (&command.order, is_held) {
            // Of a run that was here before: its spool may still be.
            self.send_again(&command.run, seqs);
        }
        let clock = self.job.as_ref().map(|job| job.clock.clone());
        let to_agent = |run: Nanos| {
            let clock = clock.as_ref()?.lock().expect("nobody panics with it");
            clock.to_agent(run).map(|converted| converted.at)
        };
        let (answer, deed) = self.seat.obey(command, monotonic(), to_agent);
        if let Some(deed) = deed {
            self.carry_out(command, deed);
        }
        self.report(&command.run, answer);
    }

    fn carry_out(&mut self, command: &Command, deed: Deed) {
        match deed {
            Deed::Prepare(Order::Prepare { plan, share, clock_error_max, duration, times }) => {
                self.prepare(command, (plan, share), (duration, times), clock_error_max);
            }
            Deed::Prepare(_) => unreachable!("only a plan is prepared"),
            Deed::Begin { at } => {
                let until = self.seat.deadline().unwrap_or(at);
                self.tell(&Told::Start(at, until));
            }
            Deed::End { at_once: false } => self.tell(&Told::End),
            Deed::End { at_once: true } => {
                if let Some(job) = &mut self.job
                    && let Some(worker) = &mut job.worker
                {
                    let late = "it did not end in time, and its agent ended it";
                    job.failed.get_or_insert_with(|| late.to_owned());
                    worker.kill();
                }
            }
            Deed::Resend(seqs) => self.send_again(&command.run, &seqs),
            Deed::Forget | Deed::Delete => self.forget(),
        }
    }

    /// Ends what is left of a run, and deletes its spool.
    fn forget(&mut self) {
        let Some(mut job) = self.job.take() else { return };
        drop(job.worker.take());
        if let Some((path, _)) = job.spool.take() {
            std::fs::remove_file(path).ok();
        }
        (self.say)(&format!("run {}: over", job.run));
    }

    fn tell(&mut self, told: &Told) {
        if let Some(worker) = self.job.as_mut().and_then(|job| job.worker.as_mut()) {
            worker.tell(told);
        }
    }

    /// Fetches a plan, checks it, and finds the run clock, on a thread: the agent goes on reporting.
    fn prepare(
        &mut self,
        command: &Command,
        (digest, share): (String, Share),
        times: (Nanos, SeatTimes),
        error_max: Nanos,
    ) {
        // What is left of a run before stays on disk.
        self.job = None;
        let (run, epoch) = (command.run.clone(), command.epoch);
        (self.say)(&format!("run {run}: share {} of {}", share.index + 1, share.of));
        let clock = Arc::<Mutex<ClockEstimate>>::default();
        self.job = Some(Job {
            run: run.clone(),
            epoch,
            clock: clock.clone(),
            clock_epoch: epoch,
            worker: None,
            spool: None,
            spool_error: None,
            outbox: None,
            seq: 0,
            begun: None,
            over: None,
            failed: None,
            until: Nanos::ZERO,
        });
        let (broker, setup, events) =
            (self.broker.clone(), self.setup.clone(), self.events.clone());
        let started = thread::Builder::new().name("prepare".to_owned()).spawn(move || {
            let checked = checked(&broker, &setup, &digest, (&run, share), times);
            let result = checked.and_then(|plan| {
                find_clock(&broker, &run, &clock, error_max)?;
                Ok(Box::new(Prepared { plan, epoch }))
            });
            events.send(Event::Prepared(run.clone(), result)).ok();
            keep_clock(&broker, &run, &Arc::downgrade(&clock), clock);
        });
        if let Err(error) = started {
            self.seat.prepared(&command.run, Err(format!("cannot start a thread: {error}")));
        }
    }

    fn prepared(&mut self, run: &Id, result: Result<Box<Prepared>, String>) {
        let Some(job) = self.job.as_mut().filter(|job| job.run == *run) else { return };
        let started = result.and_then(|prepared| {
            let path = spool_path(&self.setup.spool, run, &self.setup.name);
            let spool = Spool::create(&path)
                .map_err(|error| format!("cannot write the spool {}: {error}", path.display()))?;
            job.spool = Some((path, spool));
            job.epoch = prepared.epoch;
            let subject = subject::messages(run, &self.setup.name);
            let outbox = Outbox::begin(self.broker.clone(), subject)
                .map_err(|error| format!("cannot start a thread: {error}"))?;
            job.outbox = Some(outbox);
            let (events, run) = (self.events.clone(), run.clone());
            let take = move |said| {
                events.send(Event::Said(run.clone(), said)).ok();
            };
            let worker = WorkerProcess::start(&self.setup.worker, &prepared.plan, take);
            job.worker =
                Some(worker.map_err(|error| format!("cannot start the load's process: {error}"))?);
            Ok(())
        });
        if let Err(why) = started {
            (self.say)(&format!("run {run}: refused: {why}"));
            self.seat.prepared(run, Err(why));
        }
    }

    fn said(&mut self, run: &Id, said: Option<Said>) {
        let Some(job) = self.job.as_mut().filter(|job| job.run == *run) else { return };
        match said {
            Some(Said::Ready) => {
                (self.say)(&format!("run {run}: ready"));
                self.seat.prepared(run, Ok(()));
            }
            Some(Said::Begun(at)) => {
                job.begun = job.clock.lock().expect("nobody panics with it").to_run(at);
            }
            Some(Said::Content(content)) => job.add(&self.setup.name, &content),
            Some(Said::Ended) => self.seat.reporting(run),
            Some(Said::Over(totals)) => {
                let WorkerTotals { windows, started, done, interrupted } = totals;
                let messages = job.seq + 1;
                let totals = AgentTotals { messages, windows, started, done, interrupted };
                job.add(&self.setup.name, &Content::Totals(totals).encode());
                job.over = Some(totals);
            }
            Some(Said::Failed(why)) => job.failed = Some(why),
            None => {
                let why = job.worker.take().map(WorkerProcess::wait);
                if let Some((_, spool)) = &job.spool {
                    spool.sync().ok();
                }
                let cause = || job.failed.clone().or(why).unwrap_or_default();
                let result = job.over.ok_or_else(cause);
                match &result {
                    Ok(_) => (self.say)(&format!("run {run}: the load is over")),
                    Err(why) => (self.say)(&format!("run {run}: failed: {why}")),
                }
                // It may have failed before it was ready.
                if let Err(why) = &result {
                    self.seat.prepared(run, Err(why.clone()));
                }
                self.seat.finished(run, result, monotonic());
                // The next report is due at once.
                self.reported = Nanos::ZERO;
            }
        }
    }

    /// Sends messages of a spool again; all of them where no number is given.
    fn send_again(&mut self, run: &Id, seqs: &[u64]) {
        let path = spool_path(&self.setup.spool, run, &self.setup.name);
        let Ok(spooled) = spool::read(&path) else { return };
        let own =
            self.job.as_ref().filter(|job| job.run == *run).and_then(|job| job.outbox.as_ref());
        for message in spooled.messages {
            // One that could not be written is not among them.
            let Ok(Message { from: FrameSender { seq, .. }, .. }) = Message::decode(&message)
            else {
                continue;
            };
            if !(seqs.is_empty() || seqs.contains(&seq)) {
                continue;
            }
            let id = message_id(run, &self.setup.name, seq);
            match own {
                Some(outbox) => outbox.push(id, message),
                None => {
                    let subject = subject::messages(run, &self.setup.name);
                    if self.broker.store(&subject, &id, message).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn tick(&mut self, now: Nanos) {
        for notice in self.broker.notices() {
            (self.say)(&notice);
        }
        if let Some(deed) = self.seat.tick(now) {
            let Some(run) = self.seat_run() else {
                self.forget();
                return;
            };
            let order = Order::Cancel;
            let epoch = self.job.as_ref().map_or(0, |job| job.epoch);
            self.carry_out(&Command { run, epoch, order }, deed);
        }
        let until = self.seat.deadline();
        if let (Some(until), Some(job)) = (until, &mut self.job)
            && Nanos(until.0.abs_diff(job.until.0)) > Nanos::from_millis(500)
        {
            job.until = until;
            self.tell(&Told::Until(until));
        }
        if now.saturating_sub(self.reported) >= REPORT {
            self.reported = now;
            if let Some((run, answer)) = self.seat.standing() {
                let run = run.clone();
                self.report(&run, answer);
            }
            self.lag = Nanos::ZERO;
        }
    }

    fn seat_run(&self) -> Option<Id> {
        self.seat.standing().map(|(run, _)| run.clone())
    }

    fn report(&self, run: &Id, answer: Answer) {
        let job = self.job.as_ref().filter(|job| job.run == *run);
        let report = Report {
            answer,
            epoch: self.seat.epoch(run),
            clock_error: job.and_then(Job::clock_error),
            begun: job.and_then(|job| job.begun),
            waiting: job
                .and_then(|job| job.outbox.as_ref())
                .map_or(0, |outbox| outbox.len() as u64),
            spool_error: job.and_then(|job| job.spool_error.clone()),
            lag: self.lag,
        };
        let bytes = serde_json::to_vec(&report).expect("plain data serialises");
        // One that is lost is followed by another.
        self.broker.publish(&subject::answers(run, &self.setup.name), bytes).ok();
    }
}

impl Job {
    /// An instant of the run clock on this machine's.
    fn to_agent(&self, run: Nanos) -> Option<Nanos> {
        let clock = self.clock.lock().expect("nobody panics with it");
        clock.to_agent(run).map(|converted| converted.at)
    }

    /// When a beat was sent, on this machine's clock; `None` while the run clock is not known.
    fn sent(&mut self, beat: Beat) -> Option<Nanos> {
        if beat.epoch > self.clock_epoch {
            // Another controller has another clock. By the old one its beats would be of long ago, or of the future.
            self.clock_epoch = beat.epoch;
            self.clock.lock().expect("nobody panics with it").forget();
        }
        self.to_agent(beat.at)
    }

    fn clock_error(&self) -> Option<Nanos> {
        let clock = self.clock.lock().expect("nobody panics with it");
        clock.to_run(monotonic()).map(|converted| converted.error)
    }

    /// Keeps a message and sends it.
    fn add(&mut self, agent: &Id, content: &[u8]) {
        let from = FrameSender {
            run: self.run.clone(),
            agent: agent.clone(),
            epoch: self.epoch,
            seq: self.seq,
            clock_error: self.clock_error().unwrap_or(Nanos::MAX),
        };
        let message = from.frame(content);
        let id = message_id(&self.run, agent, self.seq);
        self.seq += 1;
        if let Some((_, spool)) = &mut self.spool
            && let Err(error) = spool.append(&message)
        {
            self.spool_error.get_or_insert_with(|| error.to_string());
        }
        if let Some(outbox) = &self.outbox {
            outbox.push(id, message);
        }
    }
}

/// The parts of a record, ready to be sent.
pub fn parts(record: &[u8]) -> Vec<Content> {
    use std::io::Write as _;
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(record).expect("a Vec takes all");
    let packed = packed.finish().expect("a Vec takes all");
    let chunks: Vec<&[u8]> = packed.chunks(crate::message::PART_MAX).collect();
    let of = chunks.len() as u32;
    let part =
        |(index, bytes): (u32, &&[u8])| Content::Part(Part { index, of, bytes: bytes.to_vec() });
    (0..).zip(&chunks).map(part).collect()
}

fn message_id(run: &Id, agent: &Id, seq: u64) -> String {
    format!("{run}/{agent}/{seq}")
}

/// The file of a run's messages.
pub fn spool_path(folder: &Path, run: &Id, agent: &Id) -> PathBuf {
    folder.join(format!("{run}.{agent}.spool"))
}

/// The plan of this agent's share.
fn checked(
    broker: &Broker,
    setup: &Setup,
    digest: &str,
    (run, share): (&Id, Share),
    (duration, times): (Nanos, SeatTimes),
) -> Result<LoadPlan, String> {
    let bytes = fetched(broker, digest)?;
    let opened = plan::open(&bytes, digest, &setup.trust, (run, &setup.name, share));
    let FleetPlan { load, times: planned, expires, .. } =
        opened.map_err(|error| error.to_string())?;
    if load.stop.duration != Some(duration) || planned != times {
        return Err("the order has other times than the plan".to_owned());
    }
    check_expiry(expires, wall())?;
    let load = LoadPlan { share, ..load };
    setup.permit.check(&load).map_err(|error| error.to_string())?;
    Ok(load)
}

/// The plan; a broker that fails is asked again, since it may be restarting.
fn fetched(broker: &Broker, digest: &str) -> Result<Vec<u8>, String> {
    let mut left = PLAN_TRIES;
    loop {
        left -= 1;
        match broker.plan(digest, plan::PLAN_MAX) {
            Ok(bytes) => return Ok(bytes),
            Err(error) if left == 0 => return Err(error.to_string()),
            Err(_) => thread::sleep(PLAN_AGAIN),
        }
    }
}

/// The only use of a wall clock: a plan is for a day, so one that is some hours off does no harm.
fn check_expiry(expires: Nanos, wall: Nanos) -> Result<(), String> {
    if wall <= expires {
        return Ok(());
    }
    let hours = (wall - expires).0 / 3_600_000_000_000;
    Err(format!(
        "the plan expired {hours} hours ago by this machine's clock: plans are for a day; is its clock right (date)?"
    ))
}

/// Asks for the run clock until its error is small enough.
fn find_clock(
    broker: &Broker,
    run: &Id,
    clock: &Mutex<ClockEstimate>,
    error_max: Nanos,
) -> Result<(), String> {
    for _ in 0..PROBES {
        probe(broker, run, clock);
        thread::sleep(PROBE_GAP);
    }
    let known = clock.lock().expect("nobody panics with it").to_run(monotonic());
    match known {
        Some(known) if known.error <= error_max => Ok(()),
        Some(known) => Err(format!(
            "the run clock is known to {} only, and {error_max} are allowed: use a broker that is nearer, or raise \
             --clock-error",
            known.error
        )),
        None => Err("the controller does not answer questions for the run clock".to_owned()),
    }
}

/// Asks again from time to time, as long as the run holds its clock.
fn keep_clock(
    broker: &Broker,
    run: &Id,
    held: &Weak<Mutex<ClockEstimate>>,
    own: Arc<Mutex<ClockEstimate>>,
) {
    drop(own);
    loop {
        thread::sleep(PROBE_EVERY);
        let Some(clock) = held.upgrade() else { return };
        for _ in 0..PROBES_AGAIN {
            probe(broker, run, &clock);
        }
    }
}

fn probe(broker: &Broker, run: &Id, clock: &Mutex<ClockEstimate>) {
    let sent = monotonic();
    let answer = broker.request(&subject::clock(run), Vec::new(), Duration::from_secs(1));
    let returned = monotonic();
    let stamps: Option<(Nanos, Nanos)> =
        answer.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some((received, answered)) = stamps {
        let probe = Probe { sent, received, answered, returned };
        clock.lock().expect("nobody panics with it").add(probe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_carried_out_though_the_wall_clock_is_an_hour_off_and_not_after_its_day() {
        let hours = |count: u64| Nanos::from_secs(3_600 * count);
        let made = Nanos::from_secs(1_800_000_000);
        let expires = made + hours(24);
        for wall in [made, made + hours(1), made.saturating_sub(hours(1))] {
            assert_eq!(check_expiry(expires, wall), Ok(()));
        }
        let refused = check_expiry(expires, expires + hours(3)).unwrap_err();
        assert!(refused.contains("expired 3 hours ago by this machine's clock"), "{refused}");
    }
}
