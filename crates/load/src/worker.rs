//! One thread of the load: a loop over a driver, and a match over what came to pass. Owns the slots,
//! their deadlines and what the thread counts; must not know epoll, other threads or the end of the
//! process. Start reading at [`Worker::run`].
//!
//! # Stamps
//!
//! The clock is read once after each wake-up, and once for each request just before it is sent (25 ns
//! each). `first_byte` and `done` are the wake-up that reported the bytes: they had arrived by then,
//! so the time that the generator itself needs for the replies before it in the batch is in no
//! latency. `sent` is of the request itself: in a long batch it is later than the wake-up, and that
//! is the generator's delay, visible as the difference of response and service time. `due` of a
//! closed loop is `done` of the request before. How late a stamp can be is `ClientUse::lag_max`: the
//! longest time from a wake-up to the last completion of its batch; the last part of a long reply,
//! where it arrives while its batch is worked off, is stamped too early by so much.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use record::{Interval, LoadPlan};
use sys::driver::{Completion, Driver, Leave, Slot, What};
use units::Nanos;

use crate::conn::{Conn, Ending, Expectation, State, Step, Then};
use crate::pacing::{self, Law};
use crate::recorder::{RawLog, Recorder, Time, Totals};
use crate::request;
use crate::shares::ThreadShare;
use crate::timeouts::Timeouts;

/// The span of [`LoadPlan::timeout`] in the worker's [`Timeouts`]; those of the backoff follow it.
const TIMEOUT: usize = 0;

/// Pauses of a slot after its first, second, ... consecutive failure without a byte of a reply; the
/// last one for all that follow. A server that is not there gets at most 10 attempts a second and
/// slot after a quarter of a second, instead of as many as the machine can make.
const BACKOFF_MS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 100];

/// Longest time until a thread that waits looks whether it was interrupted.
const INTERRUPT_LOOK: Nanos = Nanos::from_millis(100);

/// One thread of the load.
pub(crate) struct Worker<'a, D: Driver> {
    driver: D,
    plan: &'a LoadPlan,
    stops: Stops<'a>,
    /// The request, as it is sent each time.
    request: Vec<u8>,
    expectation: Expectation,
    conns: Vec<Conn>,
    /// Index of the first slot in the whole load.
    first_conn: u32,
    /// Requests that may still be started.
    quota: u64,
    /// Requests that were started and have not ended; at most one a slot.
    n_out: u32,
    /// Slots without a request, in the order in which they became free, and since when.
    free: VecDeque<(Slot, Nanos)>,
    law: Box<dyn Law>,
    timeouts: Timeouts,
    recorder: Recorder,
    phase: Phase,
    /// The wake-up that the current batch is stamped with.
    now: Nanos,
    cpu_began: Nanos,
}

/// Flags that end the load early.
#[derive(Clone, Copy)]
pub(crate) struct Stops<'a> {
    /// Set from outside.
    pub(crate) interrupt: &'a AtomicBool,
    /// Set when another thread of the load has failed.
    pub(crate) abort: &'a AtomicBool,
}

impl Stops<'_> {
    fn any(self) -> bool {
        [self.interrupt, self.abort].iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Where the load stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Requests are started.
    Running,
    /// The window is over; replies are awaited until `until`.
    Draining { window: Window, until: Nanos },
}

/// The stretch in which requests are started and replies count in the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// It begins at zero.
    pub(crate) end: Nanos,
    /// CPU time of the thread in it.
    pub(crate) cpu: Nanos,
    /// Whether it ended because of an interruption.
    pub(crate) interrupted: bool,
}

/// What a thread measured, but for the intervals that it handed on before.
pub(crate) struct Measured {
    pub(crate) engine: &'static str,
    pub(crate) window: Window,
    /// `None` where nothing is left since the last one that was handed on.
    pub(crate) last_interval: Option<Interval>,
    pub(crate) totals: Totals,
    pub(crate) raw: RawLog,
    /// CPU time of the thread from start to end.
    pub(crate) cpu: Nanos,
}

impl<'a, D: Driver> Worker<'a, D> {
    /// A thread that does `share` of `plan`. Everything that it will need is allocated here.
    pub(crate) fn new(driver: D, plan: &'a LoadPlan, share: ThreadShare, stops: Stops<'a>) -> Self {
        let n_slots = share.connections;
        let backoff = BACKOFF_MS.map(Nanos::from_millis);
        let spans = [plan.timeout].into_iter().chain(backoff).collect();
        Self {
            driver,
            plan,
            stops,
            request: request::bytes(plan),
            expectation: request::expectation(plan),
            conns: (0..n_slots).map(|_| Conn::new()).collect(),
            first_conn: share.first_conn,
            quota: share.requests,
            n_out: 0,
            free: (0..n_slots).map(|index| (Slot(index), Nanos::ZERO)).collect(),
            law: pacing::law(plan.pacing),
            timeouts: Timeouts::new(n_slots, spans),
            recorder: Recorder::new(plan.interval, share.raw_max),
            phase: Phase::Running,
            now: Nanos::ZERO,
            cpu_began: Nanos::ZERO,
        }
    }

    /// The whole load, from `origin` on the monotonic clock. `over` takes each interval that is over.
    ///
    /// # Errors
    /// The driver cannot wait.
    pub(crate) fn run(
        mut self,
        origin: Nanos,
        mut over: impl FnMut(Interval),
    ) -> io::Result<Measured> {
        self.driver.begin(origin);
        self.cpu_began = self.driver.cpu();
        self.recorder.begin(self.cpu_began);
        self.now = self.driver.now();
        self.start_due();
        while !self.is_over() {
            self.driver.wait(self.next_instant())?;
            self.now = self.driver.now();
            while self.recorder.is_interval_over(self.now) {
                over(self.recorder.next_interval(self.driver.cpu()));
            }
            self.look_for_end();
            self.take_completions();
            self.expire();
            self.start_due();
            let lag = self.driver.now().saturating_sub(self.now);
            self.recorder.lag(lag);
        }
        Ok(self.finish())
    }

    /// Works off the batch.
    fn take_completions(&mut self) {
        // The slot whose request ended last. Its next one is started only when a completion of
        // another slot shows that nothing more is known of this one: where the reply came together
        // with the server's FIN, a request sent in between would be lost by our own haste.
        let mut freed = None;
        while let Some(Completion { slot, what }) = self.driver.next() {
            if freed.is_some() && freed != Some(slot) {
                self.start_due();
                freed = None;
            }
            let (now, conn) = (self.now, &mut self.conns[slot.0 as usize]);
            let step = match what {
                What::Connected => {
                    self.recorder.connected(now.saturating_sub(conn.connect_began));
                    conn.connected()
                }
                What::Received => conn.received(self.driver.received(), now, &self.expectation),
                What::Closed => conn.closed(&self.expectation),
                What::Failed(failure) => conn.failed(failure),
            };
            if matches!(step, Step::End(_)) {
                freed = Some(slot);
            }
            self.act(slot, step);
        }
    }

    /// Starts requests as long as one is due and a slot is free.
    fn start_due(&mut self) {
        while self.may_start()
            && let Some(&(slot, since)) = self.free.front()
            && self.law.due(since) <= self.now
        {
            self.free.pop_front();
            let due = self.law.take(since);
            self.quota -= 1;
            self.n_out += 1;
            self.recorder.started();
            let step = self.conns[slot.0 as usize].start(due, self.now);
            self.act(slot, step);
        }
    }

    fn may_start(&self) -> bool {
        self.quota > 0 && self.phase == Phase::Running
    }

    #[inline]
    fn act(&mut self, slot: Slot, step: Step) {
        match step {
            Step::Nothing => {}
            Step::Connect => {
                self.driver.connect(slot, self.plan.addr);
                self.timeouts.arm(slot, TIMEOUT, self.now);
            }
            Step::Send => {
                let sent = self.driver.now();
                self.conns[slot.0 as usize].sent(sent, &self.expectation);
                self.driver.send(slot, &self.request);
                self.recorder.sent(self.request.len() as u64);
                self.timeouts.arm(slot, TIMEOUT, sent);
            }
            Step::Read => self.timeouts.arm(slot, TIMEOUT, self.now),
            Step::Drop => self.drop_idle(slot),
            Step::End(ending) => self.end(slot, ending),
        }
    }

    #[inline]
    fn end(&mut self, slot: Slot, ending: Ending) {
        let conn = &mut self.conns[slot.0 as usize];
        let sample = conn.sample(ending, self.now, self.first_conn + slot.0);
        let was_up = conn.is_up();
        let backoff = conn.settle(ending);
        let time = if self.phase == Phase::Running { Time::Window } else { Time::Drain };
        self.recorder.ended(&sample, time);
        self.n_out -= 1;
        self.leave(slot, ending.then, was_up);
        match backoff {
            None => {
                self.timeouts.disarm(slot);
                self.free.push_back((slot, self.now));
            }
            Some(level) => {
                let level = usize::from(level).min(BACKOFF_MS.len() - 1);
                self.timeouts.arm(slot, TIMEOUT + 1 + level, self.now);
            }
        }
    }

    #[inline]
    fn leave(&mut self, slot: Slot, then: Then, was_up: bool) {
        let how = match then {
            Then::Keep => return,
            Then::Close => Leave::Orderly,
            Then::Abandon => Leave::Abrupt,
        };
        self.driver.close(slot, how);
        if was_up {
            self.recorder.disconnected();
        }
    }

    /// The peer ended a connection on which no request is out: nobody's failure.
    fn drop_idle(&mut self, slot: Slot) {
        let conn = &mut self.conns[slot.0 as usize];
        let was_up = conn.is_up();
        conn.dropped();
        self.leave(slot, Then::Close, was_up);
    }

    /// Ends what timed out and frees what has sat out its backoff.
    fn expire(&mut self) {
        while let Some(slot) = self.timeouts.expired(self.now) {
            let conn = &mut self.conns[slot.0 as usize];
            if conn.has_request() {
                let step = conn.timed_out();
                self.act(slot, step);
            } else {
                self.free.push_back((slot, self.now));
            }
        }
    }

    /// Ends the window where its time has come.
    fn look_for_end(&mut self) {
        if self.phase != Phase::Running {
            return;
        }
        let duration = self.plan.stop.duration.unwrap_or(Nanos::MAX);
        if self.now >= duration {
            self.end_window(duration, false);
        } else if self.stops.any() {
            self.end_window(self.now, true);
        }
    }

    fn end_window(&mut self, end: Nanos, interrupted: bool) {
        let cpu = self.driver.cpu().saturating_sub(self.cpu_began);
        let window = Window { end, cpu, interrupted };
        self.phase = Phase::Draining { window, until: end.saturating_add(self.plan.drain) };
    }

    fn is_over(&self) -> bool {
        match self.phase {
            Phase::Running => self.quota == 0 && self.n_out == 0,
            Phase::Draining { until, .. } => self.n_out == 0 || self.now >= until,
        }
    }

    /// When to wake up if nothing comes to pass.
    fn next_instant(&self) -> Nanos {
        let end = match self.phase {
            Phase::Running => self.plan.stop.duration.unwrap_or(Nanos::MAX),
            Phase::Draining { until, .. } => until,
        };
        let due = match self.free.front() {
            Some(&(_, since)) if self.may_start() => self.law.due(since),
            _ => Nanos::MAX,
        };
        let look = self.now.saturating_add(INTERRUPT_LOOK);
        self.timeouts.earliest().min(self.recorder.interval_end()).min(end).min(due).min(look)
    }

    /// Gives up what is out, closes all connections, and hands over what was counted.
    fn finish(mut self) -> Measured {
        if self.phase == Phase::Running {
            self.end_window(self.now, false);
        }
        let Phase::Draining { window, .. } = self.phase else { unreachable!("ended above") };
        for (index, conn) in self.conns.iter().enumerate() {
            let slot = Slot(index as u32);
            if conn.has_request() {
                let sample = conn.sample(conn.unanswered(), self.now, self.first_conn + slot.0);
                self.recorder.unanswered(&sample);
                self.driver.close(slot, Leave::Abrupt);
            } else if conn.state() == State::Idle {
                self.driver.close(slot, Leave::Orderly);
            }
        }
        let cpu = self.driver.cpu();
        let (last_interval, totals, raw) = self.recorder.finish(self.now, cpu);
        check_accounting(&totals, self.n_out);
        Measured {
            engine: self.driver.name(),
            window,
            last_interval,
            totals,
            raw,
            cpu: cpu.saturating_sub(self.cpu_began),
        }
    }
}

/// Every request that was started is in exactly one place.
fn check_accounting(totals: &Totals, n_out: u32) {
    let requests = &totals.requests;
    assert_eq!(
        requests.started,
        requests.done + requests.unanswered,
        "started = done + unanswered"
    );
    assert_eq!(requests.done, requests.ok + requests.failed, "done = ok + failed");
    assert_eq!(requests.failed, totals.errors.total(), "failed is the sum of the errors");
    assert_eq!(requests.unanswered, u64::from(n_out), "what is out at the end is unanswered");
}
