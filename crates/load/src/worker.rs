//! One thread of the load: a loop over a driver, and a match over each completion. Owns the slots, their
//! deadlines and what the thread counts. It knows neither the engine (epoll, io_uring) nor other threads.
//! Start reading at [`Worker::run`]; what is done to one connection is in `connections`.
//!
//! # Stamps
//!
//! The clock is read once after each wake-up, and once just before each request is sent (25 ns each).
//!
//! - `first_byte` and `done` are the wake-up that reported the bytes. They had arrived by then, so the time
//!   that the generator spends on earlier replies of the batch is in no latency. If the driver has the
//!   kernel's own stamps, those are used, and no delay of this thread is in any latency.
//! - `sent` is read for each request. In a long batch it is later than the wake-up. That is the generator's delay,
//!   visible as the difference between response and service time.
//! - `due` of a closed loop is `done` of the previous request.
//! - `ClientUse::lag_max` says how wrong a stamp can be: the longest time from a wake-up to the last
//!   completion of its batch. The last part of a long reply that arrives in that time is stamped too early
//!   by at most this much.
//!
//! # Being on time
//!
//! A thread that sleeps until an instant wakes up late: by the timer's slack (50 us unless set) and by the time to
//! wake an idle CPU (50 us and more in a virtual machine). So before a request of an open loop is due, the thread
//! polls the driver without sleeping. It learns how long to poll from how late it wakes up
//! ([`crate::margin::Margin`]). No figure of CPU use includes that time.

mod connections;
mod destinations;
mod state;
mod users;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use record::{
    BodiesVerified, Interval, LoadPlan, Redirects, RequestPlan, Scenario, Seats, TlsUse, Wants,
};
use sys::driver::{Completion, Driver, Leave, Slot};
use units::Nanos;
use wire::tls::TlsClientConfig;

use self::destinations::{Destinations, begins, free_places};
use self::state::{Batch, Budget, Buffers, Places, Requests, Waiting};
use self::users::PlayedUsers;
use crate::backlog::{Backlog, BacklogCounts};
use crate::check::Checks;
use crate::conn::{
    Conn, ConnContext, ConnState, NextStep, PendingRequest, ReceiveResult, StartAction,
};
use crate::first_head::FirstHead;
use crate::free::FreePlace;
use crate::hashing::{HashCounts, HashTurns};
use crate::pacing::{self, Pace, Pauses};
use crate::recorder::{RawLog, Recorder, Time, Totals};
use crate::secure::Secure;
use crate::shares::ThreadShare;
use crate::timeouts::Timeouts;

/// Indices of the spans in the worker's [`Timeouts`]: the plan's timeout, the wait for `100 Continue`; then the
/// backoff's spans.
const TIMEOUT: usize = 0;
const CONTINUE: usize = 1;
const BACKOFF: usize = 2;

/// How long a body waits for `100 Continue` (RFC 9110, 10.1.1 leaves it open; curl waits this long).
const CONTINUE_WAIT: Nanos = Nanos::from_secs(1);

/// Pauses of a slot after its first, second, ... consecutive failure without a byte of a reply; the last one applies
/// to all further failures. A server that is down gets at most 10 attempts a second and slot after a quarter of a
/// second, instead of as many as the machine can make.
const BACKOFF_MS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 100];

/// Longest time after which a waiting thread checks whether it was interrupted.
const INTERRUPT_LOOK: Nanos = Nanos::from_millis(100);

/// One thread of the load.
pub(crate) struct Worker<'a, D: Driver> {
    driver: D,
    plan: &'a LoadPlan,
    share: ThreadShare,
    stops: Stops<'a>,
    requests: Requests,
    common: ConnContext,
    conns: Vec<Conn>,
    users: PlayedUsers<'a>,
    destinations: Destinations,
    budget: Budget,
    places: Places,
    request_loop: RequestLoop,
    secure: Option<Secure>,
    timeouts: Timeouts,
    recorder: Recorder,
    phase: LoadPhase,
    /// The wake-up whose time stamps the current batch.
    now: Nanos,
    waiting: Waiting,
    batch: Batch,
    buffers: Buffers,
}

/// When requests are due.
enum RequestLoop {
    /// A free connection sends its next request, at once or after a pause.
    Closed(Pauses),
    /// Requests are due at given instants.
    Open(Backlog),
}

/// Flags that end the load early.
#[derive(Clone, Copy)]
pub(crate) struct Stops<'a> {
    /// Set from outside.
    pub(crate) interrupt: &'a AtomicBool,
    /// Set when another thread of the load has failed.
    pub(crate) abort: &'a AtomicBool,
    /// Requests of all threads for which the server was lost, if the plan bounds their number.
    pub(crate) lost: &'a AtomicU64,
}

impl Stops<'_> {
    fn any(self) -> bool {
        [self.interrupt, self.abort].iter().any(|flag| flag.load(Ordering::Relaxed))
    }

    fn has_lost(self, max: u64) -> bool {
        self.lost.load(Ordering::Relaxed) >= max
    }
}

/// The phase of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadPhase {
    /// Requests are started.
    Running,
    /// The window is over; waits for replies until `until`.
    Draining { window: Window, until: Nanos },
}

/// The time in which requests are started and replies count towards the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// It begins at zero.
    pub(crate) end: Nanos,
    /// The thread's CPU time in the window.
    pub(crate) cpu: Nanos,
    /// Whether it ended because of an interruption.
    pub(crate) interrupted: bool,
    /// Open loop: what happened to requests that were due.
    pub(crate) backlog: BacklogCounts,
}

/// What a thread measured, apart from the intervals that it handed on before.
pub(crate) struct Measured {
    pub(crate) engine: &'static str,
    pub(crate) window: Window,
    /// `None` if nothing is left since the last interval that was handed on.
    pub(crate) last_interval: Option<Interval>,
    pub(crate) totals: Totals,
    pub(crate) raw: RawLog,
    /// CPU time of the thread from start to end.
    pub(crate) cpu: Nanos,
    pub(crate) tls: Option<TlsUse>,
    pub(crate) first_head: Option<String>,
    pub(crate) n_bare_lf: u64,
    pub(crate) bodies: BodiesVerified,
    pub(crate) redirects: Redirects,
    pub(crate) proxy_failure: Option<String>,
}

impl<'a, D: Driver> Worker<'a, D> {
    /// A thread that does `share` of `plan`. Everything that it will need is allocated here.
    pub(crate) fn new(
        driver: D,
        plan: &'a LoadPlan,
        share: ThreadShare,
        stops: Stops<'a>,
        tls: Option<&TlsClientConfig>,
        scenario: Option<&'a dyn Scenario>,
    ) -> Self {
        let n_slots = share.connections;
        let seats = Seats { thread: share.thread, first: share.first_conn, n: n_slots };
        let mut users = PlayedUsers::new(plan, seats, scenario);
        let free = match &mut users.played {
            Some(_) => users.places(seats, &begins(plan, share)),
            None => free_places(plan, share),
        };
        let wants = users.played.as_ref().map(|users| users.wants()).unwrap_or_default();
        let is_played = users.played.is_some();
        let conn = |_| if is_played { Conn::of_user() } else { Conn::new(plan.pipeline) };
        let backoff = BACKOFF_MS.map(Nanos::from_millis);
        let spans = [plan.timeout, CONTINUE_WAIT].into_iter().chain(backoff).collect();
        Self {
            driver,
            plan,
            share,
            stops,
            requests: Requests::new(plan, share),
            common: common(plan, share.thread, wants),
            conns: (0..n_slots).map(conn).collect(),
            users,
            destinations: Destinations::new(plan),
            budget: Budget { quota: share.requests, n_out: 0 },
            places: Places { free, parked: vec![0; n_slots as usize] },
            request_loop: match pacing::pace(&plan.pacing, plan.seed, share.turn) {
                Pace::Closed(rest) => RequestLoop::Closed(rest),
                Pace::Open(arrivals) => RequestLoop::Open(Backlog::new(arrivals, share.queue_max)),
            },
            secure: tls.map(|config| Secure::new(config, plan.tls.resume, n_slots)),
            timeouts: Timeouts::new(n_slots, spans),
            recorder: Recorder::new(plan, share.raw_max),
            phase: LoadPhase::Running,
            now: Nanos::ZERO,
            waiting: Waiting::new(),
            batch: Batch::new(plan),
            buffers: Buffers::new(),
        }
    }

    /// Runs the whole load, from `origin` on the monotonic clock. `over` takes each finished interval.
    ///
    /// # Errors
    /// The driver cannot wait.
    pub(crate) fn run(
        mut self,
        origin: Nanos,
        mut over: impl FnMut(Interval),
    ) -> io::Result<Measured> {
        self.driver.begin(origin);
        self.waiting.cpu_began = self.driver.cpu();
        self.recorder.begin(self.waiting.cpu_began);
        self.now = self.driver.now();
        self.start_due();
        self.queue_due(self.now);
        while !self.is_over() {
            self.wait()?;
            while self.recorder.is_interval_over(self.now) {
                let cpu = self.cpu();
                over(self.recorder.next_interval(cpu));
            }
            self.look_for_end();
            if self.places.free.first().is_none() {
                // No wake-up was planned for these requests: they are queued before a reply frees a place.
                self.queue_due(self.now.saturating_sub(Nanos(1)));
            }
            self.take_completions();
            self.expire();
            self.start_due();
            self.queue_due(self.now);
            let lag = self.driver.now().saturating_sub(self.now);
            self.recorder.lag(lag);
        }
        Ok(self.finish())
    }

    /// Waits until a completion arrives or something must be done, and reads the clock.
    fn wait(&mut self) -> io::Result<()> {
        let next = self.next_instant();
        let due = match &self.request_loop {
            // If no connection is free, a due request cannot be sent, so being awake gains nothing: the thread
            // sleeps, and all its activity is work.
            RequestLoop::Open(backlog)
                if self.may_start() && self.places.free.first().is_some() =>
            {
                backlog.next_due(self.budget.quota).unwrap_or(Nanos::MAX)
            }
            _ => Nanos::MAX,
        };
        let margin = self.waiting.margin.get();
        if due > next.saturating_add(margin) {
            self.driver.wait(next)?;
            self.now = self.driver.now();
            return Ok(());
        }
        let spin_from = due.saturating_sub(margin);
        if spin_from > self.now {
            let until = spin_from.min(next);
            self.driver.wait(until)?;
            self.now = self.driver.now();
            if self.now >= until {
                self.waiting.margin.overslept(self.now - until);
            }
            return Ok(());
        }
        let before = self.now;
        self.driver.poll(due.min(next))?;
        self.now = self.driver.now();
        if !std::mem::take(&mut self.waiting.was_busy) {
            self.waiting.spun += self.now.saturating_sub(before);
        }
        Ok(())
    }

    /// CPU time of this thread without spinning. Spinning is measured by the clock. A thread that lost its CPU
    /// meanwhile has used less than that, so the result is bounded.
    fn cpu(&mut self) -> Nanos {
        self.driver.cpu().saturating_sub(self.waiting.spun).max(self.waiting.cpu_began)
    }

    /// Processes the batch.
    fn take_completions(&mut self) {
        // The slot whose request ended last. Its next one starts only when a completion of another slot
        // shows that no more is known of this one. If the reply came together with the server's FIN, a
        // request sent in between would be lost through our own haste.
        let mut freed = None;
        while let Some(Completion { slot, what }) = self.driver.next() {
            self.waiting.was_busy = true;
            if freed.is_some() && freed != Some(slot) {
                self.send_held_back();
                self.start_due();
                freed = None;
            }
            self.take(slot, what);
            if self.end_requests(slot) {
                freed = Some(slot);
                if self.conns[slot.0 as usize].n_sent() == 0 {
                    self.driver.reply_complete(slot);
                }
            }
        }
        self.send_held_back();
    }

    /// Starts requests as long as one is due and a place is free.
    fn start_due(&mut self) {
        if !self.users.going_on.is_empty() {
            self.start_going_on();
        }
        if !self.may_start() {
            return;
        }
        loop {
            self.start_waiting();
            let is_full = self.places.free.first().is_none();
            let RequestLoop::Open(backlog) = &mut self.request_loop else { break };
            if is_full || !backlog.admit(self.now, self.budget.quota) {
                break;
            }
        }
        self.send_unsent();
    }

    /// Puts what is due by then into the queue. Requests that are due now are queued only after the batch is
    /// processed and everything that can start has started. After a late wake-up many requests are due and many
    /// places become free: a full queue must not drop a request while there is a place for it.
    fn queue_due(&mut self, by: Nanos) {
        if self.may_start()
            && let RequestLoop::Open(backlog) = &mut self.request_loop
        {
            while backlog.admit(by, self.budget.quota) {}
            backlog.settle(self.budget.quota);
        }
    }

    /// Starts waiting requests as long as a place is free.
    #[inline]
    fn start_waiting(&mut self) {
        while self.may_start()
            && let Some(free) = self.places.free.first()
            && let Some(due) = self.next_due(free)
        {
            self.places.free.take();
            if self.timeouts.is_resting(free.slot, BACKOFF) {
                self.places.parked[free.slot.0 as usize] += 1;
                self.put_back(due);
                continue;
            }
            self.start(free, due);
        }
    }

    /// When the request for that place was due, if one is; in an open loop it is taken from the queue.
    #[inline]
    fn next_due(&mut self, free: FreePlace) -> Option<Nanos> {
        match &mut self.request_loop {
            RequestLoop::Closed(_) => (free.from <= self.now).then_some(free.from),
            RequestLoop::Open(backlog) => backlog.take(self.now),
        }
    }

    /// A taken request has no connection after all.
    fn put_back(&mut self, due: Nanos) {
        if let RequestLoop::Open(backlog) = &mut self.request_loop {
            backlog.put_back(due, self.now);
        }
    }

    #[inline]
    fn start(&mut self, free: FreePlace, due: Nanos) {
        self.waiting.was_busy = true;
        if self.batch.unsent.is_some_and(|unsent| unsent != free.slot) {
            self.send_unsent();
        }
        if self.users.played.is_some() {
            return self.start_user(free, due);
        }
        self.budget.quota -= 1;
        self.budget.n_out += 1;
        self.recorder.started();
        let request = self.requests.picker.next();
        let prepared = &self.requests.prepared[request as usize];
        let mut out = PendingRequest::new(due, request, prepared.kind());
        out.may_retry = self.plan.retry && prepared.is_idempotent();
        let begun = self.conns[free.slot.0 as usize].begin(out, prepared.origin(), &self.common);
        self.follow(begun, free, due);
    }

    /// Does what a new request needs.
    #[inline]
    fn follow(&mut self, begun: StartAction, free: FreePlace, due: Nanos) {
        let FreePlace { slot, from } = free;
        if matches!(begun, StartAction::Send | StartAction::Connect) {
            self.recorder.late(self.now.saturating_sub(due.max(from)));
        }
        self.carry_on(begun, slot);
    }

    /// The same for a request that goes on.
    #[inline]
    fn carry_on(&mut self, begun: StartAction, slot: Slot) {
        match begun {
            StartAction::Waits => {}
            StartAction::Send => self.batch.unsent = Some(slot),
            StartAction::Connect => self.connect(slot),
            StartAction::Move => {
                self.close(slot, NextStep::Close);
                self.connect(slot);
            }
        }
    }

    fn may_start(&self) -> bool {
        self.budget.quota > 0 && self.phase == LoadPhase::Running && !self.is_first_out()
    }

    /// Whether the first request, which goes out alone, is in flight.
    fn is_first_out(&self) -> bool {
        self.budget.n_out > 0 && self.common.first_head.as_ref().is_some_and(FirstHead::is_awaited)
    }

    /// Counts what the current completion ended, and frees its places; returns whether there was any.
    #[inline]
    fn end_requests(&mut self, slot: Slot) -> bool {
        if self.batch.ended.is_empty() {
            return false;
        }
        if self.users.played.is_some() {
            self.end_of_users(slot);
            return true;
        }
        let time = self.time();
        for mut sample in self.batch.ended.drain(..) {
            sample.conn = self.share.first_conn + slot.0;
            self.recorder.ended(&sample, time);
            if self.plan.lost_max.is_some() && sample.is_lost() {
                self.stops.lost.fetch_add(1, Ordering::Relaxed);
            }
            self.budget.n_out -= 1;
            let pause = match &mut self.request_loop {
                RequestLoop::Closed(rest) => rest.next(),
                RequestLoop::Open(_) => Nanos::ZERO,
            };
            if self.timeouts.is_resting(slot, BACKOFF) {
                self.places.parked[slot.0 as usize] += 1;
            } else {
                self.places.free.put(FreePlace { slot, from: self.now.saturating_add(pause) });
            }
        }
        true
    }

    fn time(&self) -> Time {
        if self.phase == LoadPhase::Running { Time::Window } else { Time::Drain }
    }

    /// Ends what timed out, sends bodies that waited long enough, and wakes slots whose backoff is over.
    fn expire(&mut self) {
        while let Some((slot, span)) = self.timeouts.expired(self.now) {
            match span {
                TIMEOUT => {
                    let conn = &mut self.conns[slot.0 as usize];
                    let then = conn.timed_out(self.now, &mut self.common, &mut self.batch.ended);
                    self.settle(slot, ReceiveResult { then, ..ReceiveResult::default() });
                    self.end_requests(slot);
                }
                CONTINUE => self.send_body(slot),
                _ => self.wake(slot),
            }
        }
    }

    /// The backoff of a slot is over.
    fn wake(&mut self, slot: Slot) {
        let index = slot.0 as usize;
        for _ in 0..std::mem::take(&mut self.places.parked[index]) {
            self.places.free.put(FreePlace { slot, from: self.now });
        }
        if self.conns[index].has_request() {
            self.connect(slot);
        }
    }

    /// Ends the window if its time has come.
    fn look_for_end(&mut self) {
        if self.phase != LoadPhase::Running {
            return;
        }
        let duration = self.plan.stop.duration.unwrap_or(Nanos::MAX);
        if self.now >= duration {
            self.end_window(duration, false);
        } else if self.stops.any() {
            self.end_window(self.now, true);
        } else if self.plan.lost_max.is_some_and(|max| self.stops.has_lost(max)) {
            self.end_window(self.now, false);
        }
    }

    fn end_window(&mut self, end: Nanos, interrupted: bool) {
        let cpu = self.cpu().saturating_sub(self.waiting.cpu_began);
        let backlog = match &mut self.request_loop {
            RequestLoop::Closed(_) => BacklogCounts::default(),
            RequestLoop::Open(backlog) => backlog.end(end, self.budget.quota),
        };
        let window = Window { end, cpu, interrupted, backlog };
        self.phase = LoadPhase::Draining { window, until: end.saturating_add(self.plan.drain) };
    }

    fn is_over(&self) -> bool {
        match self.phase {
            LoadPhase::Running => self.budget.n_out == 0 && !self.may_ever_start(),
            LoadPhase::Draining { until, .. } => self.budget.n_out == 0 || self.now >= until,
        }
    }

    /// Whether another request may become due. A replay ends with its last instant, and the load with
    /// it, unless a duration was asked for.
    fn may_ever_start(&self) -> bool {
        self.budget.quota > 0
            && match &self.request_loop {
                RequestLoop::Closed(_) => {
                    self.users.played.is_none() || self.users.n_left < self.share.connections
                }
                RequestLoop::Open(backlog) => {
                    !backlog.is_empty()
                        || backlog.next_due(self.budget.quota).is_some()
                        || self.plan.stop.duration.is_some()
                }
            }
    }

    /// When to wake up if no completion comes, apart from the requests of an open loop: see `wait`.
    fn next_instant(&self) -> Nanos {
        let end = match self.phase {
            LoadPhase::Running => self.plan.stop.duration.unwrap_or(Nanos::MAX),
            LoadPhase::Draining { until, .. } => until,
        };
        let due = match (&self.request_loop, self.places.free.first()) {
            (RequestLoop::Closed(_), Some(free)) if self.may_start() => free.from,
            _ => Nanos::MAX,
        };
        let look = self.now.saturating_add(INTERRUPT_LOOK);
        self.timeouts.earliest().min(self.recorder.interval_end()).min(end).min(due).min(look)
    }

    /// Gives up requests in flight, closes all connections, and hands over the counts.
    fn finish(mut self) -> Measured {
        if self.phase == LoadPhase::Running {
            self.end_window(self.now, false);
        }
        let LoadPhase::Draining { window, .. } = self.phase else { unreachable!("ended above") };
        for index in 0..self.conns.len() {
            let slot = Slot(index as u32);
            let conn = &mut self.conns[index];
            let how = if conn.has_request() { Leave::Abrupt } else { Leave::Orderly };
            conn.unanswered(self.now, &mut self.batch.ended);
            for mut sample in self.batch.ended.drain(..) {
                sample.conn = self.share.first_conn + slot.0;
                if let Some(user) = &mut conn.user {
                    user.chain.close(&mut sample);
                }
                self.recorder.unanswered(&sample);
            }
            if self.conns[index].is_connected() {
                self.recorder.looked_at(self.driver.tcp_info(slot));
            }
            if self.conns[index].state() != ConnState::Down {
                self.driver.close(slot, how);
            }
        }
        let cpu = self.cpu();
        let (last_interval, totals, raw) = self.recorder.finish(self.now, cpu);
        check_accounting(&totals, self.budget.n_out);
        Measured {
            engine: self.driver.name(),
            window,
            last_interval,
            totals,
            raw,
            cpu: cpu.saturating_sub(self.waiting.cpu_began),
            tls: self.secure.map(Secure::counts),
            first_head: self.common.first_head.and_then(FirstHead::into_text),
            n_bare_lf: self.common.n_bare_lf,
            bodies: self.common.bodies.for_record(self.plan),
            redirects: Redirects { followed: 0, first: self.common.redirect },
            proxy_failure: self.common.proxy_failure,
        }
    }
}

/// The shared state of a thread's connections at the start; users want that of replies.
fn common(plan: &LoadPlan, thread: u32, wants: Wants) -> ConnContext {
    ConnContext {
        checks: Checks::new(plan),
        keep_alive: plan.keep_alive,
        asks_to_close: plan.requests.iter().any(RequestPlan::asks_to_close),
        cookies: plan.cookies,
        requests_per_connection: plan.requests_per_connection.unwrap_or(u64::MAX),
        n_replies: 0,
        turns: HashTurns::new(plan, thread),
        bodies: HashCounts::default(),
        n_bare_lf: 0,
        first_head: plan.first_alone.then(FirstHead::default),
        is_proxied: plan.proxy.is_some(),
        proxy_failure: None,
        redirect: None,
        wants,
        kept: Vec::new(),
    }
}

/// Checks that every started request is in exactly one place.
fn check_accounting(totals: &Totals, n_out: u64) {
    let requests = &totals.requests;
    assert_eq!(
        requests.started,
        requests.done + requests.unanswered,
        "a request that was started has ended or is unanswered"
    );
    assert_eq!(requests.done, requests.ok + requests.failed, "an ended request is ok or failed");
    assert_eq!(requests.failed, totals.errors.total(), "a failed request is of one kind");
    assert_eq!(requests.unanswered, n_out, "what is out at the end is unanswered");
}
