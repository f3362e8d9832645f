//! What one thread of the load counts: the current interval, histograms, a bounded log of requests. Owns every number
//! that ends up in the record. Start reading at [`Recorder::ended`].
//!
//! Cost of a request: three histogram entries (5 ns each) and a dozen additions on lines that stay in the cache. If a
//! plan has several requests, one byte says in which row a request counts, and its counters and one more histogram
//! entry are added (some 10 ns). If it has one request, this costs a test of a length. A finished interval is handed
//! on as a whole, ten times a second, and a fresh one is taken; nothing else is allocated. A good reply adds one more
//! addition, in the bin of its millisecond: a division and a line that earlier replies have fetched. The statuses of
//! an interval are the difference between two readings of the totals: 1,000 counters, ten times a second.

use record::{
    ByteCounts, Carrier, Completions, ConnectionEnds, ErrorCounts, Interval, LoadPlan, Outcome,
    RequestCounts, RequestFigures, RequestRows, Sample, TcpUse,
};
use stats::Histogram;
use sys::tcp_info::TcpInfo;
use units::Nanos;
use wire::tls::Handshake;

use crate::conn::ServerEnd;

/// Number of status codes that are counted separately: three digits.
const STATUSES: usize = 1000;

/// The first connections of a thread that are closed while the load runs: the kernel is asked about each of them, and
/// then about one in this many. If each request has its own connection, one more system call per request would be a
/// tenth of its cost.
const LOOKED_AT_FIRST: u64 = 1000;
const LOOKED_AT_ONE_OF: u64 = 16;

/// Counters of one thread.
pub(crate) struct Recorder {
    interval: Interval,
    /// CPU clock of the thread when the interval began.
    interval_cpu: Nanos,
    /// Whether requests are due regardless of others (open loop): only then is waiting for a connection counted
    /// separately.
    is_open_loop: bool,
    pub(crate) totals: Totals,
    /// `totals.status` when the interval began.
    status_before: Vec<u64>,
    /// Row of each request in `totals.by_request`; empty if the plan has one request.
    row_of: Vec<u8>,
    raw: RawLog,
}

/// What a thread counted from start to end; service and response times are in the intervals.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) requests: RequestCounts,
    pub(crate) errors: ErrorCounts,
    /// Complete replies, by status.
    pub(crate) status: Vec<u64>,
    /// Replies that broke off after their heads, by status.
    pub(crate) broken_status: Vec<u64>,
    pub(crate) bytes: ByteCounts,
    /// The part of `requests.ok` within the window.
    pub(crate) ok_in_window: u64,
    pub(crate) followed: u64,
    pub(crate) connects: u64,
    pub(crate) connect: Histogram,
    pub(crate) first_byte: Histogram,
    pub(crate) failed: Histogram,
    pub(crate) queue: Histogram,
    pub(crate) late: Histogram,
    pub(crate) handshake_full: Histogram,
    pub(crate) handshake_resumed: Histogram,
    pub(crate) by_request: Vec<RequestFigures>,
    pub(crate) completions: Completions,
    pub(crate) connection_ends: ConnectionEnds,
    /// Its `connections` come from `connects` alone.
    pub(crate) tcp: TcpUse,
    /// Connections that were closed while the load ran.
    n_closed: u64,
    pub(crate) lag_max: Nanos,
    pub(crate) open: u32,
    pub(crate) open_max: u32,
}

/// Whether a request ended while the load was on or after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Window,
    Drain,
}

impl Recorder {
    /// For a thread that does a part of `plan`, with at most `raw_max` requests in the log.
    pub(crate) fn new(plan: &LoadPlan, raw_max: u32) -> Self {
        let is_open_loop = plan.pacing.is_open();
        // These histograms are used by every kind of load: allocated now, so that no request waits for memory.
        let [connect, first_byte] = [Histogram::new(), Histogram::new()];
        let of_law = || if is_open_loop { Histogram::new() } else { Histogram::default() };
        let [status, broken_status] = [(); 2].map(|()| vec![0; STATUSES]);
        let (queue, late) = (of_law(), of_law());
        let RequestRows { names, row_of } = RequestRows::of(plan);
        let by_request =
            names.into_iter().map(|(name, n_names)| RequestFigures::new(name, n_names)).collect();
        Self {
            interval: Interval::new(Nanos::ZERO, plan.interval),
            interval_cpu: Nanos::ZERO,
            is_open_loop,
            status_before: status.clone(),
            totals: Totals {
                status,
                broken_status,
                connect,
                first_byte,
                queue,
                late,
                by_request,
                completions: Completions::new(),
                ..Totals::default()
            },
            row_of,
            raw: RawLog::new(raw_max),
        }
    }

    /// The start: the thread's CPU clock as it is now.
    pub(crate) fn begin(&mut self, cpu: Nanos) {
        self.interval_cpu = cpu;
    }

    /// A redirect was followed, within its request.
    pub(crate) fn followed(&mut self) {
        self.totals.followed += 1;
    }

    /// A request was begun.
    #[inline]
    pub(crate) fn started(&mut self) {
        self.interval.started += 1;
        self.totals.requests.started += 1;
    }

    /// A request of `n_bytes` was handed to the driver.
    #[inline]
    pub(crate) fn sent(&mut self, n_bytes: u64) {
        self.totals.bytes.written += n_bytes;
    }

    /// A connection was established after `span`.
    pub(crate) fn connected(&mut self, span: Nanos) {
        let totals = &mut self.totals;
        totals.connects += 1;
        totals.connect.record(span);
        totals.open += 1;
        totals.open_max = totals.open_max.max(totals.open);
    }

    /// A TLS handshake was done after `span`.
    pub(crate) fn handshaken(&mut self, handshake: Handshake, span: Nanos) {
        match handshake {
            Handshake::Full => self.totals.handshake_full.record(span),
            Handshake::Resumed => self.totals.handshake_resumed.record(span),
        }
    }

    /// A request that had a free connection was sent `span` after it should have been.
    #[inline]
    pub(crate) fn late(&mut self, span: Nanos) {
        if self.is_open_loop {
            self.totals.late.record(span);
        }
    }

    /// An established connection was given up or lost. Returns whether to ask the kernel about it.
    pub(crate) fn disconnected(&mut self) -> bool {
        let totals = &mut self.totals;
        totals.open -= 1;
        totals.n_closed += 1;
        totals.n_closed <= LOOKED_AT_FIRST || totals.n_closed.is_multiple_of(LOOKED_AT_ONE_OF)
    }

    /// What the kernel knew of a connection before it was closed; `None` if it is not TCP.
    pub(crate) fn looked_at(&mut self, info: Option<TcpInfo>) {
        let Some(info) = info else { return };
        self.totals.tcp.merge(&TcpUse {
            connections: 0,
            looked_at: 1,
            retransmitted: info.retransmitted.into(),
            timeouts: info.timeouts.map(u64::from),
            timeout_time: info.timeout_time,
        });
    }

    /// The server ended a connection in order.
    pub(crate) fn ended_by_server(&mut self, end: ServerEnd) {
        self.totals.connection_ends.record(end.n_replies, end.was_announced);
    }

    /// A batch of completions was processed `lag` after the wake-up that stamped it.
    #[inline]
    pub(crate) fn lag(&mut self, lag: Nanos) {
        self.totals.lag_max = self.totals.lag_max.max(lag);
    }

    /// A request ended, successfully or not.
    #[inline]
    pub(crate) fn ended(&mut self, sample: &Sample, time: Time) {
        let totals = &mut self.totals;
        totals.requests.done += 1;
        totals.requests.drained += u64::from(time == Time::Drain);
        totals.requests.retried += u64::from(sample.carrier == Carrier::Retried);
        totals.bytes.read += sample.bytes_read;
        totals.bytes.body += sample.bytes_body;
        self.interval.bytes_read += sample.bytes_read;
        if sample.outcome == Outcome::Ok {
            count_status(&mut totals.status, sample.status);
            totals.requests.ok += 1;
            totals.ok_in_window += u64::from(time == Time::Window);
            totals.completions.record(sample.done);
            totals.first_byte.record(sample.first_byte.saturating_sub(sample.sent));
            self.interval.ok += 1;
            self.interval.service.record(sample.done.saturating_sub(sample.sent));
            self.interval.response.record(sample.done.saturating_sub(sample.due));
            if self.is_open_loop {
                totals.queue.record(sample.sent.saturating_sub(sample.due));
            }
        } else {
            self.failed(sample);
        }
        if let Some(row) = self.row(sample) {
            row.done += 1;
            if sample.outcome == Outcome::Ok {
                row.ok += 1;
                row.response.record(sample.done.saturating_sub(sample.due));
            } else {
                row.failed += 1;
            }
        }
        self.raw.offer(sample);
    }

    /// The row of a request whose bytes were read; `None` if the plan has only one request.
    #[inline]
    fn row(&mut self, sample: &Sample) -> Option<&mut RequestFigures> {
        let row = *self.row_of.get(sample.request as usize)?;
        let row = &mut self.totals.by_request[usize::from(row)];
        row.bytes_read += sample.bytes_read;
        row.bytes_body += sample.bytes_body;
        Some(row)
    }

    #[cold]
    fn failed(&mut self, sample: &Sample) {
        let totals = &mut self.totals;
        let statuses = match sample.outcome.is_complete() {
            true => &mut totals.status,
            false => &mut totals.broken_status,
        };
        count_status(statuses, sample.status);
        self.totals.requests.failed += 1;
        for errors in [&mut self.totals.errors, &mut self.interval.errors] {
            *errors.of(sample.outcome).expect("an unanswered request has not ended") += 1;
        }
        if was_sent(sample.outcome) || sample.carrier == Carrier::Retried {
            self.totals.failed.record(sample.done.saturating_sub(sample.sent));
        }
    }

    /// A request was still unanswered when the load ended.
    pub(crate) fn unanswered(&mut self, sample: &Sample) {
        self.totals.requests.unanswered += 1;
        self.totals.requests.retried += u64::from(sample.carrier == Carrier::Retried);
        self.totals.bytes.read += sample.bytes_read;
        self.totals.bytes.body += sample.bytes_body;
        self.interval.bytes_read += sample.bytes_read;
        if let Some(row) = self.row(sample) {
            row.unanswered += 1;
        }
        self.raw.offer(sample);
    }

    /// Whether the interval being filled is over at `now`.
    #[inline]
    pub(crate) fn is_interval_over(&self, now: Nanos) -> bool {
        now >= self.interval.end()
    }

    /// End of the interval being filled.
    pub(crate) fn interval_end(&self) -> Nanos {
        self.interval.end()
    }

    /// Takes the finished interval and begins the next one; `cpu` is the thread's CPU clock.
    pub(crate) fn next_interval(&mut self, cpu: Nanos) -> Interval {
        let next = Interval::new(self.interval.end(), self.interval.length);
        let mut over = std::mem::replace(&mut self.interval, next);
        let counts = self.totals.status.iter().zip(&mut self.status_before).enumerate().skip(1);
        for (status, (now, before)) in counts.filter(|(_, (now, before))| **now != **before) {
            over.status.insert(status as u16, now - std::mem::replace(before, *now));
        }
        over.client_cpu = cpu.saturating_sub(self.interval_cpu);
        self.interval_cpu = cpu;
        over
    }

    /// The end of the load at `now`: the last interval, cut off there, and the rest.
    pub(crate) fn finish(mut self, now: Nanos, cpu: Nanos) -> (Option<Interval>, Totals, RawLog) {
        let mut last = self.next_interval(cpu);
        last.length = now.saturating_sub(last.start);
        if last.length == Nanos::ZERO {
            let is_empty = last.started + last.ok + last.errors.total() + last.bytes_read == 0;
            // What ended exactly on the boundary belongs to the next interval, which must then exist.
            last.length = Nanos(1);
            return ((!is_empty).then_some(last), self.totals, self.raw);
        }
        (Some(last), self.totals, self.raw)
    }
}

/// Index 0 counts replies without a status; it is not shown.
#[inline]
fn count_status(counts: &mut [u64], status: u16) {
    if let Some(count) = counts.get_mut(usize::from(status)) {
        *count += 1;
    }
}

/// Whether a request with this failure was sent at all.
fn was_sent(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::ConnectRefused
            | Outcome::ConnectFailed
            | Outcome::ConnectTimeout
            | Outcome::TlsTimeout
            | Outcome::Proxy
            | Outcome::Tls
            | Outcome::FdExhausted
            | Outcome::PortExhausted
    )
}

impl Totals {
    /// Adds what another thread counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        let (sum, more) = (&mut self.requests, &other.requests);
        sum.started += more.started;
        sum.done += more.done;
        sum.ok += more.ok;
        sum.failed += more.failed;
        sum.unanswered += more.unanswered;
        sum.drained += more.drained;
        sum.retried += more.retried;
        self.errors.merge(&other.errors);
        let statuses =
            [(&mut self.status, &other.status), (&mut self.broken_status, &other.broken_status)];
        for (sums, others) in statuses {
            sums.resize(STATUSES, 0);
            sums.iter_mut().zip(others).for_each(|(sum, more)| *sum += more);
        }
        self.bytes.read += other.bytes.read;
        self.bytes.body += other.bytes.body;
        self.bytes.written += other.bytes.written;
        self.ok_in_window += other.ok_in_window;
        self.followed += other.followed;
        self.connects += other.connects;
        self.connect.merge(&other.connect);
        self.first_byte.merge(&other.first_byte);
        self.failed.merge(&other.failed);
        self.queue.merge(&other.queue);
        self.late.merge(&other.late);
        self.handshake_full.merge(&other.handshake_full);
        self.handshake_resumed.merge(&other.handshake_resumed);
        if self.by_request.is_empty() {
            self.by_request.clone_from(&other.by_request);
        } else {
            let rows = self.by_request.iter_mut().zip(&other.by_request);
            rows.for_each(|(sum, more)| sum.merge(more));
        }
        self.completions.merge(&other.completions);
        self.connection_ends.merge(&other.connection_ends);
        self.tcp.merge(&other.tcp);
        self.lag_max = self.lag_max.max(other.lag_max);
        // Maxima of different threads may have been at different times: an upper bound.
        self.open_max += other.open_max;
    }
}

/// Keeps every k-th request, up to a bound; when it is full, drops every other one and doubles k.
pub(crate) struct RawLog {
    samples: Vec<Sample>,
    n_max: usize,
    stride: u64,
    /// Requests to skip before the next one is kept.
    skip: u64,
}

impl RawLog {
    fn new(n_max: u32) -> Self {
        // All memory is reserved now, because a growing log would allocate in the middle of the load.
        let n_max = n_max as usize;
        Self { samples: Vec::with_capacity(n_max), n_max, stride: 1, skip: 0 }
    }

    #[inline]
    fn offer(&mut self, sample: &Sample) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.keep(sample);
    }

    fn keep(&mut self, sample: &Sample) {
        if self.samples.len() == self.n_max {
            if self.n_max == 0 {
                self.skip = u64::MAX;
                return;
            }
            let n_before = self.samples.len();
            self.thin();
            // The number of requests so far is n_before old strides; it is kept only if that is a
            // multiple of the new stride.
            if n_before % 2 == 1 {
                self.skip = self.stride / 2 - 1;
                return;
            }
        }
        self.samples.push(*sample);
        self.skip = self.stride - 1;
    }

    /// Keeps every other sample.
    fn thin(&mut self) {
        let mut index = 0usize;
        self.samples.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.stride *= 2;
    }

    /// Makes one log of several, of at most `n_max` samples: all brought to the widest stride, in the order of their
    /// ends.
    pub(crate) fn merge(mut logs: Vec<Self>, n_max: u32) -> (Vec<Sample>, u64) {
        let mut stride = logs.iter().map(|log| log.stride).max().unwrap_or(1);
        loop {
            for log in &mut logs {
                while log.stride < stride {
                    log.thin();
                }
            }
            let n_kept: usize = logs.iter().map(|log| log.samples.len()).sum();
            let is_at_least = logs.iter().all(|log| log.samples.len() <= 1);
            if n_kept <= n_max as usize || is_at_least {
                break;
            }
            stride *= 2;
        }
        let mut samples: Vec<Sample> = logs.into_iter().flat_map(|log| log.samples).collect();
        samples.sort_by_key(|sample| (sample.done, sample.conn, sample.sent));
        (samples, stride)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::AtEnd;

    use super::*;

    fn sample(done: u64) -> Sample {
        Sample {
            due: Nanos::ZERO,
            sent: Nanos::ZERO,
            first_byte: Nanos(done),
            done: Nanos(done),
            bytes_read: 0,
            bytes_body: 0,
            status: 200,
            outcome: Outcome::Ok,
            conn: 0,
            bytes_head: 0,
            carrier: Carrier::Reused,
            request: 0,
            at_end: AtEnd::Kept,
        }
    }

    proptest! {
        #[test]
        fn the_log_holds_every_kth_request(n_max in 1u32..40, n_requests in 0u64..500) {
            let mut log = RawLog::new(n_max);
            (0..n_requests).for_each(|n| log.offer(&sample(n)));
            let stride = log.stride;
            let kept: Vec<u64> = log.samples.iter().map(|sample| sample.done.0).collect();
            let expected: Vec<u64> = (0..n_requests).step_by(stride as usize).collect();
            prop_assert_eq!(kept, expected);
            prop_assert!(log.samples.len() <= n_max as usize);
            prop_assert!(stride == 1 || log.samples.len() >= n_max as usize / 2);
        }
    }

    #[test]
    fn a_log_of_none_keeps_none() {
        let mut log = RawLog::new(0);
        (0..10).for_each(|n| log.offer(&sample(n)));
        assert!(log.samples.is_empty());
    }

    #[test]
    fn merged_logs_have_one_stride() {
        let mut logs = vec![RawLog::new(8), RawLog::new(8)];
        (0..64).for_each(|n| logs[0].offer(&sample(n)));
        (0..8).for_each(|n| logs[1].offer(&sample(n)));
        let (samples, stride) = RawLog::merge(logs, 16);
        assert_eq!(stride, 8);
        let done: Vec<u64> = samples.iter().map(|sample| sample.done.0).collect();
        assert_eq!(done, [0, 0, 8, 16, 24, 32, 40, 48, 56]);
    }

    #[test]
    fn a_merged_log_has_no_more_samples_than_the_plan_allows() {
        let mut logs = vec![RawLog::new(8), RawLog::new(8)];
        logs.iter_mut().for_each(|log| (0..8).for_each(|n| log.offer(&sample(n))));
        let (samples, stride) = RawLog::merge(logs, 10);
        assert_eq!((samples.len(), stride), (8, 2));
        let logs: Vec<RawLog> = (0..3).map(|_| RawLog::new(1)).collect();
        assert_eq!(RawLog::merge(logs, 1).1, 1, "no samples, no wider stride");
    }

    #[test]
    fn all_of_the_first_1000_connections_are_looked_at_and_every_16th_behind_them() {
        let plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        let mut recorder = Recorder::new(&plan, 0);
        let mut n_looked_at = 0;
        for _ in 0..2600 {
            recorder.connected(Nanos(1));
            n_looked_at += u64::from(recorder.disconnected());
        }
        assert_eq!(n_looked_at, 1000 + 1600 / 16);
        let info = TcpInfo {
            retransmitted: 2,
            timeouts: Some(1),
            timeout_time: Some(Nanos(9)),
            ..TcpInfo::default()
        };
        recorder.looked_at(Some(info));
        recorder.looked_at(Some(info));
        recorder.looked_at(None);
        let expected = TcpUse {
            connections: 0,
            looked_at: 2,
            retransmitted: 4,
            timeouts: Some(2),
            timeout_time: Some(Nanos(18)),
        };
        assert_eq!(recorder.totals.tcp, expected);
    }

    #[test]
    fn intervals_follow_each_other_without_gaps() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        plan.interval = Nanos(100);
        let mut recorder = Recorder::new(&plan, 10);
        recorder.begin(Nanos(5));
        recorder.ended(&sample(99), Time::Window);
        assert!(!recorder.is_interval_over(Nanos(99)));
        assert!(recorder.is_interval_over(Nanos(100)));
        let first = recorder.next_interval(Nanos(12));
        assert_eq!((first.start, first.end(), first.ok), (Nanos(0), Nanos(100), 1));
        assert_eq!(first.client_cpu, Nanos(7));
        assert_eq!(first.status, [(200, 1)].into());
        recorder.ended(&sample(150), Time::Drain);
        let (last, totals, _) = recorder.finish(Nanos(150), Nanos(12));
        let last = last.unwrap();
        assert_eq!((last.start, last.end(), last.ok), (Nanos(100), Nanos(150), 1));
        assert_eq!((totals.requests.ok, totals.ok_in_window, totals.requests.drained), (2, 1, 1));
    }
}
