//! A whole load: starts the threads, takes their intervals as they end, joins what they measured.
//! Owns threads and pinning. Start reading at [`run_on`].

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use record::{
    BodiesVerified, ClientUse, Imbalance, Interval, Latencies, LatencyMillis, LoadPlan, LoadRecord,
    OpenLoop, Pacing, Redirects, RequestCounts, RequestFigures, Scenario, TcpUse, ThreadUse,
    TlsUse,
};
use sys::driver::Driver;
use sys::{affinity, clock};
use units::Nanos;
use wire::tls::TlsClientConfig;

use crate::backlog::BacklogCounts;
use crate::follow::Follow;
use crate::recorder::{RawLog, Totals};
use crate::secure::{self, TlsSetupError};
use crate::series::Series;
use crate::shares::{ThreadShare, thread_shares};
use crate::worker::{Measured, Stops, Worker};

/// Longest sleep while the start is waited for: an interruption is noticed after that.
const WAIT_STEP: Nanos = Nanos::from_millis(50);

/// How a caller watches and ends a load.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    pub(crate) interrupt: &'a AtomicBool,
    watch: Option<&'a dyn Fn(&Interval)>,
    notice: Option<&'a dyn Fn(&str)>,
    scenario: Option<&'a dyn Scenario>,
    start: Option<Nanos>,
    begun: Option<&'a dyn Fn(Nanos)>,
}

/// Why there is no record: the generator failed. A request that fails is in the record.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The limit of open files is too low.
    #[error(
        "-c {connections} needs {needed} open files, and the limit of this process is {limit}: raise it \
         (ulimit -n {needed}, or LimitNOFILE= of its service) or lower -c"
    )]
    Files {
        /// As planned.
        connections: u32,
        /// Files needed.
        needed: u64,
        /// RLIMIT_NOFILE, already raised to its hard limit.
        limit: u64,
    },
    /// A thread could not be pinned.
    #[error("cannot pin a thread to CPU {cpu}: {source}; this process may use CPUs {allowed:?}")]
    Pin {
        /// As planned.
        cpu: u32,
        /// CPUs that are allowed.
        allowed: Vec<u32>,
        /// EINVAL mostly.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start thread {thread} of the load: {source}; lower -t")]
    Thread {
        /// From 0.
        thread: usize,
        /// EAGAIN mostly: the limit of processes (ulimit -u) or memory.
        source: io::Error,
    },
    /// TLS cannot begin.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// The engine that was asked for cannot be used.
    #[error("io_uring cannot be used: {source}; {hint}, or use --engine epoll")]
    Engine {
        /// What the kernel said.
        source: io::Error,
        /// What helps.
        hint: &'static str,
    },
    /// Results were lost or counted twice: there is no record of such a load.
    #[error(transparent)]
    Imbalance(#[from] Imbalance),
    /// The driver failed.
    #[error(
        "the event loop of the load failed: {0}; if no file descriptor is left, raise `ulimit -n`"
    )]
    Driver(#[from] io::Error),
}

impl<'a> Control<'a> {
    /// A load that ends early, in order, once `interrupt` is true.
    pub fn new(interrupt: &'a AtomicBool) -> Self {
        Self { interrupt, watch: None, notice: None, scenario: None, start: None, begun: None }
    }

    /// Calls `watch` with each interval when it is over on all threads, merged; on the thread that
    /// called [`crate::run`], which does nothing else meanwhile.
    #[must_use]
    pub fn watching(self, watch: &'a dyn Fn(&Interval)) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Calls `notice` with a line for the user if something is not as expected.
    #[must_use]
    pub fn noticing(self, notice: &'a dyn Fn(&str)) -> Self {
        Self { notice: Some(notice), ..self }
    }

    /// Lets `scenario` play the users instead of the plan's requests; the plan must have one request that stands for
    /// them. The load is a closed loop without pipelining (a user may send several requests at once), and ends at the
    /// latest when all users have left.
    #[must_use]
    pub fn acting(self, scenario: &'a dyn Scenario) -> Self {
        Self { scenario: Some(scenario), ..self }
    }

    /// Begins at this instant of CLOCK_MONOTONIC, which is that of the first request's due time as well, whenever the
    /// threads are ready. One that has passed is not waited for, and requests that were due meanwhile are late.
    #[must_use]
    pub fn starting_at(self, start: Nanos) -> Self {
        Self { start: Some(start), ..self }
    }

    /// Calls `begun` when the threads may begin, with the instant of CLOCK_MONOTONIC at which that was.
    #[must_use]
    pub fn begun(self, begun: &'a dyn Fn(Nanos)) -> Self {
        Self { begun: Some(begun), ..self }
    }

    /// The start of the load, once it is there.
    fn origin(&self) -> Nanos {
        let Some(start) = self.start else { return clock::monotonic() };
        loop {
            let left = start.saturating_sub(clock::monotonic());
            if left == Nanos::ZERO || self.interrupt.load(Ordering::Relaxed) {
                return start;
            }
            thread::sleep(left.min(WAIT_STEP).into());
        }
    }

    pub(crate) fn say(&self, line: &str) {
        if let Some(notice) = self.notice {
            notice(line);
        }
    }
}

/// As [`crate::run`], over the caller's drivers: `make(thread, n_slots)` is called on each thread.
///
/// # Errors
/// As [`crate::run`].
pub fn run_on<D: Driver>(
    plan: &LoadPlan,
    control: &Control<'_>,
    make: impl Fn(usize, u32) -> io::Result<D> + Sync,
) -> Result<LoadRecord, LoadError> {
    let shares = thread_shares(plan);
    let follow = (plan.follow > 0).then(|| Follow::new(plan));
    let follow = follow.as_ref().map(|follow| follow as &dyn Scenario);
    let scenario = control.scenario.or(follow);
    let tls = secure::config(plan, scenario.is_some())?;
    let before = affinity::allowed().unwrap_or_default();
    if !plan.cpus.is_empty() {
        pin(&plan.cpus)?;
    }
    let (abort, lost) = (AtomicBool::new(false), AtomicU64::new(0));
    let result = thread::scope(|scope| {
        let (report, reports) = mpsc::channel();
        let mut gates = Vec::new();
        for (thread, share) in shares.iter().enumerate() {
            let (gate, opened) = mpsc::channel();
            gates.push(gate);
            let (report, make) = (report.clone(), &make);
            let stops = Stops { interrupt: control.interrupt, abort: &abort, lost: &lost };
            let tls = tls.as_ref();
            let seat = LoadThread { thread, share: *share, plan, stops, tls, scenario };
            thread::Builder::new()
                .name(format!("load-{thread}"))
                .spawn_scoped(scope, move || seat.work(make, &opened, &report))
                .map_err(|source| LoadError::Thread { thread, source })?;
        }
        drop(report);
        let result = gather(plan, control, gates, &reports);
        abort.store(true, Ordering::Relaxed);
        result
    });
    if !plan.cpus.is_empty() {
        // It was allowed before; if it no longer is, the caller stays on the CPUs of the load.
        affinity::pin(&before).ok();
    }
    result
}

/// What a thread reports to the gathering thread.
enum ThreadReport {
    /// It can begin, and waits for its gate.
    Ready,
    /// An interval is over.
    Over { thread: usize, interval: Box<Interval> },
    /// It has finished.
    Done { thread: usize, measured: Box<Measured> },
    /// It cannot work.
    Failed(LoadError),
    /// It panics; so will the scope that joins it.
    Panicked,
}

/// One thread's place in a load.
struct LoadThread<'a> {
    thread: usize,
    share: ThreadShare,
    plan: &'a LoadPlan,
    stops: Stops<'a>,
    tls: Option<&'a TlsClientConfig>,
    scenario: Option<&'a dyn Scenario>,
}

/// Reports that its thread panics, so that the others are not waited for for ever.
struct PanicReporter<'a>(&'a Sender<ThreadReport>);

impl Drop for PanicReporter<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.send(ThreadReport::Panicked).ok();
        }
    }
}

impl LoadThread<'_> {
    fn work<D: Driver>(
        self,
        make: &(impl Fn(usize, u32) -> io::Result<D> + Sync),
        opened: &Receiver<Nanos>,
        report: &Sender<ThreadReport>,
    ) {
        let _witness = PanicReporter(report);
        let last = match self.measure(make, opened, report) {
            Ok(Some(measured)) => {
                ThreadReport::Done { thread: self.thread, measured: Box::new(measured) }
            }
            Ok(None) => return,
            Err(error) => ThreadReport::Failed(error),
        };
        // Fails only if another thread has failed and the receiver has ended.
        report.send(last).ok();
    }

    /// Returns `None` if the load never began because another thread could not.
    fn measure<D: Driver>(
        &self,
        make: &(impl Fn(usize, u32) -> io::Result<D> + Sync),
        opened: &Receiver<Nanos>,
        report: &Sender<ThreadReport>,
    ) -> Result<Option<Measured>, LoadError> {
        if let Some(cpu) = cpu_of(self.plan, self.thread) {
            pin(&[cpu])?;
        }
        // If this is refused, a request of an open loop may be 50 us later; the delay is measured.
        clock::sharpen_timers().ok();
        let driver = make(self.thread, self.share.connections)?;
        let worker =
            Worker::new(driver, self.plan, self.share, self.stops, self.tls, self.scenario);
        report.send(ThreadReport::Ready).ok();
        let Ok(origin) = opened.recv() else { return Ok(None) };
        let over = |interval| {
            let interval = Box::new(interval);
            report.send(ThreadReport::Over { thread: self.thread, interval }).ok();
        };
        Ok(Some(worker.run(origin, over)?))
    }
}

fn cpu_of(plan: &LoadPlan, thread: usize) -> Option<u32> {
    (!plan.cpus.is_empty()).then(|| plan.cpus[thread % plan.cpus.len()])
}

fn pin(cpus: &[u32]) -> Result<(), LoadError> {
    affinity::pin(cpus).map_err(|source| {
        let allowed = affinity::allowed().unwrap_or_default();
        let cpu = cpus.iter().find(|cpu| !allowed.contains(cpu)).unwrap_or(&cpus[0]);
        LoadError::Pin { cpu: *cpu, allowed, source }
    })
}

/// Opens the gates when all threads are ready, and takes their reports until all have finished.
fn gather(
    plan: &LoadPlan,
    control: &Control<'_>,
    gates: Vec<Sender<Nanos>>,
    reports: &Receiver<ThreadReport>,
) -> Result<LoadRecord, LoadError> {
    let n_threads = gates.len();
    let mut n_ready = 0;
    let mut gathered = Gathered::new(n_threads);
    while gathered.measured.len() < n_threads {
        match reports.recv().expect("a thread reports its end before it ends") {
            ThreadReport::Ready => {
                n_ready += 1;
                if n_ready == n_threads {
                    let origin = control.origin();
                    if let Some(begun) = control.begun {
                        begun(clock::monotonic());
                    }
                    gates.iter().for_each(|gate| gate.send(origin).expect("it waits"));
                }
            }
            ThreadReport::Over { thread, interval } => gathered.take(thread, *interval),
            ThreadReport::Done { thread, mut measured } => {
                if let Some(last) = measured.last_interval.take() {
                    gathered.take(thread, last);
                }
                gathered.n_over[thread] = usize::MAX;
                gathered.measured.push((thread, measured));
            }
            ThreadReport::Failed(error) => return Err(error),
            // The caller does not see this error: the scope panics when it has joined the thread.
            ThreadReport::Panicked => return Err(LoadError::Driver(io::Error::other("a panic"))),
        }
        gathered.settle(control);
    }
    gathered.measured.sort_by_key(|(thread, _)| *thread);
    let measured: Vec<Measured> =
        gathered.measured.into_iter().map(|(_, measured)| *measured).collect();
    let intervals = gathered.series.into_intervals();
    check_threads(&measured, &intervals)?;
    let record = join(plan, measured, intervals);
    record.balance()?;
    Ok(record)
}

/// Checks that each thread's totals equal the sums of its intervals.
fn check_threads(measured: &[Measured], intervals: &[Interval]) -> Result<(), Imbalance> {
    if measured.len() < 2 {
        return Ok(());
    }
    for (thread, one) in measured.iter().enumerate() {
        let of_thread = |interval: &Interval| interval.ok_by_thread.get(thread).copied();
        let in_intervals = intervals.iter().filter_map(of_thread).sum();
        let ok = one.totals.requests.ok;
        Imbalance::check("requests ok on a thread and in its intervals", ok, in_intervals)?;
    }
    Ok(())
}

/// What the threads have reported so far.
struct Gathered {
    series: Series,
    /// Intervals that are not yet over on every thread, merged over those on which they are.
    open: VecDeque<Interval>,
    /// Number of intervals that were over on every thread.
    n_settled: usize,
    /// Number of intervals that are over on each thread; `usize::MAX` when it has finished.
    n_over: Vec<usize>,
    /// Threads that have finished, and what they measured.
    measured: Vec<(usize, Box<Measured>)>,
}

impl Gathered {
    fn new(n_threads: usize) -> Self {
        Self {
            series: Series::default(),
            open: VecDeque::new(),
            n_settled: 0,
            n_over: vec![0; n_threads],
            measured: Vec::with_capacity(n_threads),
        }
    }

    fn take(&mut self, thread: usize, mut interval: Interval) {
        if self.n_over.len() > 1 {
            interval.assign(thread, self.n_over.len());
        }
        match self.open.get_mut(self.n_over[thread] - self.n_settled) {
            Some(open) => {
                open.merge(&interval);
                // The last interval of a thread that ended before the others is shorter.
                open.length = open.length.max(interval.length);
            }
            None => self.open.push_back(interval),
        }
        self.n_over[thread] += 1;
    }

    /// Hands on the intervals that are over on all threads.
    fn settle(&mut self, control: &Control<'_>) {
        let n_over = self.n_over.iter().min().copied().unwrap_or(0);
        while self.n_settled < n_over
            && let Some(interval) = self.open.pop_front()
        {
            if let Some(watch) = control.watch {
                watch(&interval);
            }
            self.series.add(interval);
            self.n_settled += 1;
        }
    }
}

/// The record of what all threads measured.
fn join(plan: &LoadPlan, measured: Vec<Measured>, intervals: Vec<Interval>) -> LoadRecord {
    let mut totals = Totals::default();
    measured.iter().for_each(|one| totals.merge(&one.totals));
    let engine = measured.first().map_or("", |one| one.engine);
    let window = measured.iter().map(|one| one.window.end).max().unwrap_or(Nanos::ZERO);
    let interrupted = measured.iter().any(|one| one.window.interrupted);
    let cpu: u64 = measured.iter().map(|one| one.cpu.0).sum();
    let client = client_use(plan, &measured, &totals);
    let span = law_span(plan, &measured, window);
    let open_loop = open_loop(plan, &measured, &totals, (span, window));
    // A scenario may meet TLS anywhere, but mostly does not.
    let is_planned = plan.origins.iter().any(|origin| origin.tls_name.is_some());
    let tls = tls_use(&measured).filter(|tls| is_planned || *tls != TlsUse::default());
    let mut redirects = Redirects { followed: totals.followed, first: None };
    measured.iter().for_each(|one| redirects.merge(&one.redirects));
    let proxy_failure = measured.iter().find_map(|one| one.proxy_failure.clone());
    let first_head = measured.iter().find_map(|one| one.first_head.clone());
    let bare_lf_replies = measured.iter().map(|one| one.n_bare_lf).sum();
    let bodies_verified = bodies(&measured);
    let logs = measured.into_iter().map(|one| one.raw).collect();
    let (raw, raw_stride) = RawLog::merge(logs, plan.raw_max);
    let latencies = latencies(&mut totals, &intervals);
    let by_request = std::mem::take(&mut totals.by_request);
    let tcp = TcpUse { connections: totals.connects, ..totals.tcp };
    let RequestCounts { done, .. } = totals.requests;
    LoadRecord {
        engine: engine.to_owned(),
        seconds: window.as_secs_f64(),
        requests: totals.requests,
        errors: totals.errors,
        status: statuses(&totals.status),
        broken_status: statuses(&totals.broken_status),
        bytes: totals.bytes,
        rate_per_s: per_s(totals.ok_in_window, window.max(span)),
        cpu_us_per_request: (done > 0).then(|| Nanos(cpu).as_micros_f64() / done as f64),
        connects: totals.connects,
        connect_ms: LatencyMillis::from(&latencies.connect),
        first_byte_ms: LatencyMillis::from(&latencies.first_byte),
        service_ms: LatencyMillis::from(&latencies.service),
        response_ms: LatencyMillis::from(&latencies.response),
        failed_ms: LatencyMillis::from(&latencies.failed),
        queue_ms: LatencyMillis::from(&latencies.queue),
        handshake_full_ms: LatencyMillis::from(&latencies.handshake_full),
        handshake_resumed_ms: LatencyMillis::from(&latencies.handshake_resumed),
        open_loop: plan.pacing.is_open().then_some(open_loop),
        tls,
        redirects,
        proxy_failure,
        first_head,
        bare_lf_replies,
        bodies_verified,
        interrupted,
        client,
        latencies,
        intervals,
        raw_names: plan.names_of(raw.iter().map(|sample| sample.request)),
        by_request: by_request.into_iter().map(RequestFigures::summed_up).collect(),
        raw,
        raw_stride,
        completions: totals.completions,
        tcp,
        connection_ends: totals.connection_ends,
        ..LoadRecord::empty(plan.for_record())
    }
}

/// What the generator itself used.
fn client_use(plan: &LoadPlan, measured: &[Measured], totals: &Totals) -> ClientUse {
    let thread_use = |(thread, one): (usize, &Measured)| ThreadUse {
        cpu: one.window.cpu,
        wall: one.window.end,
        pinned_to: cpu_of(plan, thread),
    };
    ClientUse {
        threads: measured.iter().enumerate().map(thread_use).collect(),
        lag_max: totals.lag_max,
        connections_open_max: totals.open_max,
    }
}

/// What all threads of an open loop were asked for in the `span` of its law, and how well they kept it.
fn open_loop(
    plan: &LoadPlan,
    measured: &[Measured],
    totals: &Totals,
    (span, window): (Nanos, Nanos),
) -> OpenLoop {
    let mut sum = OpenLoop { late_ms: LatencyMillis::from(&totals.late), ..OpenLoop::default() };
    for counts in measured.iter().map(|one| one.window.backlog) {
        sum.due += counts.due;
        sum.dropped += counts.dropped;
        sum.left += counts.left;
        sum.overdue += counts.overdue;
        sum.queue_max += counts.waiting_max;
    }
    // The instants of a log come in bursts, and may end in one: no rate was requested.
    let is_replay = matches!(plan.pacing, Pacing::Replay { .. });
    if is_replay {
        sum.overdue = 0;
    }
    let begun_span = if is_replay { window.max(span) } else { span };
    sum.seconds = span.as_secs_f64();
    sum.asked_per_s = asked_per_s(plan, measured, &sum, span);
    sum.begun_per_s = per_s(sum.begun_on_time(totals.requests.started), begun_span);
    sum
}

/// The scheduled duration of what was due, if it is longer than the window or if nothing more was requested. Ten
/// requests at 10/s have a second, whether the window ends when the last one is due, at its reply, or long after.
fn law_span(plan: &LoadPlan, measured: &[Measured], window: Nanos) -> Nanos {
    let each = || measured.iter().map(|one| one.window.backlog);
    let is_over = plan.stop.duration.is_none() && each().all(|counts| counts.next_due.is_none());
    if !is_over && !each().all(|counts| counts.is_spent) {
        return window.max(each().filter_map(|counts| counts.span).min().unwrap_or(window));
    }
    let (due, last) = each().fold((0, Nanos::ZERO), |(due, last), counts| {
        (due + counts.due, last.max(counts.last_due))
    });
    // One more gap, as long as the average of the others.
    let by_gaps =
        || (due > 1).then(|| Nanos((last.0 as f64 * due as f64 / (due - 1) as f64) as u64));
    let span = each().filter_map(|counts| until_next(plan, counts)).min().or_else(by_gaps);
    // A thread that drops requests goes on after the others have finished theirs.
    span.map(|span| span.max(last)).filter(|span| *span > Nanos::ZERO).unwrap_or(window)
}

/// The time that the law has for a thread's requests. If the instants are random, the next instant is the estimate,
/// because its gap is like any other; the next instant of a log may be at any distance.
fn until_next(plan: &LoadPlan, counts: BacklogCounts) -> Option<Nanos> {
    let is_chance = !matches!(plan.pacing, Pacing::Replay { .. });
    counts.span.or(counts.next_due.filter(|_| is_chance))
}

/// What the law asks for per second. Threads that drop requests draw further than others, each at its own part of the
/// rate.
fn asked_per_s(plan: &LoadPlan, measured: &[Measured], sum: &OpenLoop, span: Nanos) -> f64 {
    let each = || measured.iter().map(|one| one.window.backlog);
    if sum.dropped == 0 || !each().all(|counts| counts.is_spent) {
        return per_s(sum.due, span);
    }
    each().map(|counts| per_s(counts.due, until_next(plan, counts).unwrap_or(span))).sum()
}

fn per_s(count: u64, span: Nanos) -> f64 {
    let seconds = span.as_secs_f64();
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// What all threads verified.
fn bodies(measured: &[Measured]) -> BodiesVerified {
    let mut sum = BodiesVerified::default();
    measured.iter().for_each(|one| sum.merge(&one.bodies, Nanos::ZERO));
    sum
}

/// Use of TLS on all threads.
fn tls_use(measured: &[Measured]) -> Option<TlsUse> {
    let mut each = measured.iter().filter_map(|one| one.tls.as_ref());
    let mut sum = each.next()?.clone();
    each.for_each(|more| secure::merge(&mut sum, more));
    Some(sum)
}

fn latencies(totals: &mut Totals, intervals: &[Interval]) -> Latencies {
    let mut latencies = Latencies {
        connect: std::mem::take(&mut totals.connect),
        first_byte: std::mem::take(&mut totals.first_byte),
        failed: std::mem::take(&mut totals.failed),
        queue: std::mem::take(&mut totals.queue),
        late: std::mem::take(&mut totals.late),
        handshake_full: std::mem::take(&mut totals.handshake_full),
        handshake_resumed: std::mem::take(&mut totals.handshake_resumed),
        ..Latencies::default()
    };
    for interval in intervals {
        latencies.service.merge(&interval.service);
        latencies.response.merge(&interval.response);
    }
    latencies
}

/// Replies by status; index 0 counts requests without one.
fn statuses(counts: &[u64]) -> BTreeMap<u16, u64> {
    let counted = counts.iter().enumerate().skip(1).filter(|(_, count)| **count > 0);
    counted.map(|(status, count)| (status as u16, *count)).collect()
}
