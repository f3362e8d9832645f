//! Computes wrk's figures from a load, counted as wrk counts. Owns what it treats as an error and as a latency, and its
//! rate of each thread. Start reading at [`Figures::new`].

use record::{AtEnd, Carrier, LoadRecord, Outcome, Sample};
use units::Nanos;

use super::flags::Flags;
use super::script_counts::ScriptCounts;
use super::stats::Stats;

/// What wrk counts and measures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    /// Microseconds from sending to the end of the reply, including those that the correction added.
    pub(super) latency: Stats,
    /// Requests per second of each thread, for every 100 ms with at least one request.
    pub(super) rates: Stats,
    pub(super) complete: u64,
    pub(super) bytes: u64,
    pub(super) errors: Errors,
    /// Microseconds.
    pub(super) runtime: u64,
    /// For footnotes: number of measured latencies and of those that the correction added; the longest dropped one.
    pub(super) n_measured: u64,
    pub(super) n_added: u64,
    pub(super) dropped_max: Option<Nanos>,
    /// Of `errors.read`: those that are not failed requests here.
    pub(super) n_read_besides: u64,
    /// Good replies after the script had ended the load.
    pub(super) n_late: u64,
}

/// Errors by wrk's kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Errors {
    pub(super) connect: u64,
    pub(super) read: u64,
    pub(super) write: u64,
    pub(super) status: u64,
    pub(super) timeout: u64,
}

impl Figures {
    /// What wrk would have counted for this load. `counts`: what a script's users counted themselves.
    pub(super) fn new(flags: &Flags, record: &LoadRecord, counts: Option<&ScriptCounts>) -> Self {
        let asked = Nanos::from_secs(flags.duration).as_secs_f64();
        let seconds = match counts {
            // wrk waits for its time to pass, even if a script has stopped every thread.
            Some(counts) if counts.is_stopped && !record.interrupted => record.seconds.max(asked),
            _ => record.seconds,
        };
        let n_read_besides = n_read_besides(record);
        let mut figures = Self {
            complete: counts.map_or(record.requests.ok, |counts| counts.complete),
            bytes: record.bytes.read,
            errors: errors(record, n_read_besides),
            n_read_besides,
            n_late: counts.map_or(0, |counts| counts.late),
            // At least 1, because a load that ended at once took no time, and rates divide by it.
            runtime: ((seconds * 1e6) as u64).max(1),
            rates: rates(record),
            ..Self::default()
        };
        let latencies = match counts {
            Some(counts) => {
                figures.errors.status = counts.bad_status;
                &counts.latency
            }
            None => &record.latencies,
        };
        figures.take(flags, latencies.service.buckets());
        let each = figures.complete / u64::from(flags.connections);
        if let Some(interval) = figures.runtime.checked_div(each) {
            figures.n_added = figures.latency.correct(interval);
        }
        figures
    }

    /// Keeps the latencies below the timeout and counts the others.
    fn take(&mut self, flags: &Flags, spans: impl Iterator<Item = (Nanos, u64)>) {
        let timeout = flags.timeout.saturating_mul(1_000_000);
        let mut kept = Vec::new();
        for (span, count) in spans {
            let micros = span.0 / 1000;
            if micros < timeout {
                kept.push((micros, count));
            } else {
                self.errors.timeout += count;
                self.dropped_max = self.dropped_max.max(Some(span));
            }
        }
        self.latency = Stats::of(kept);
        self.n_measured = self.latency.count();
    }

    pub(super) fn seconds(&self) -> f64 {
        self.runtime as f64 / 1e6
    }

    pub(super) fn rate(&self) -> f64 {
        self.complete as f64 / self.seconds()
    }

    pub(super) fn bytes_rate(&self) -> f64 {
        self.bytes as f64 / self.seconds()
    }
}

/// What wrk counts as a read error and joust does not. The log of a long load holds every k-th request.
fn n_read_besides(record: &LoadRecord) -> u64 {
    let n = record.raw.iter().filter(|sample| is_read_error_of_wrk(sample)).count();
    n as u64 * record.raw_stride
}

fn errors(record: &LoadRecord, n_read_besides: u64) -> Errors {
    let mut sum = Errors::default();
    for (outcome, count) in record.errors.each() {
        match outcome {
            Outcome::ConnectRefused
            | Outcome::ConnectFailed
            | Outcome::ConnectTimeout
            | Outcome::TlsTimeout
            | Outcome::Tls
            | Outcome::FdExhausted
            | Outcome::PortExhausted => sum.connect += count,
            _ => sum.read += count,
        }
    }
    sum.read += n_read_besides;
    sum.status = record.status.range(400..).map(|(_, count)| count).sum();
    sum
}

/// Whether wrk counts a read error with that request. It sends its next one at once, even on a connection that the
/// server is closing; here it went out on a new one. It also counts the end of a connection as an error if that is how
/// a reply without a length ends.
fn is_read_error_of_wrk(sample: &Sample) -> bool {
    let ended_reply = sample.outcome == Outcome::Ok && sample.at_end == AtEnd::Closed;
    sample.carrier == Carrier::Replacing || ended_reply
}

/// wrk checks each thread ten times a second. If nothing was answered since, it checks again later, and the time until
/// then counts.
fn rates(record: &LoadRecord) -> Stats {
    let intervals = &record.intervals;
    let threads = record.plan.threads;
    // Longer than planned if there were many. An interval that was cut short ended before wrk checks.
    let first = intervals.first().map_or(Nanos::ZERO, |interval| interval.length);
    let length = first.max(record.plan.interval);
    let mut rates = Vec::new();
    for thread in 0..threads as usize {
        let mut since = Nanos::ZERO;
        for interval in intervals.iter().filter(|interval| interval.length >= length) {
            let ok = interval.ok_by_thread.get(thread).copied();
            let n = ok.unwrap_or(if threads == 1 { interval.ok } else { 0 });
            since += interval.length;
            let millis = since.0 / 1_000_000;
            if n > 0 && millis > 0 {
                rates.push(((n as f64 / millis as f64 * 1000.0) as u64, 1));
                since = Nanos::ZERO;
            }
        }
    }
    Stats::of(rates)
}

#[cfg(test)]
mod tests {
    use record::{Interval, LoadPlan};

    use super::*;

    fn interval(start_ms: u64, ok: &[u64]) -> Interval {
        let mut interval = Interval::new(Nanos::from_millis(start_ms), Nanos::from_millis(100));
        interval.ok = ok.iter().sum();
        interval.ok_by_thread = if ok.len() > 1 { ok.to_vec() } else { Vec::new() };
        interval
    }

    fn seen(threads: u32, intervals: &[Interval]) -> Vec<(u64, u64)> {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        plan.threads = threads;
        let record = LoadRecord { intervals: intervals.to_vec(), ..LoadRecord::empty(plan) };
        let stats = rates(&record);
        (0..stats.n_values()).map(|n| stats.nth(n)).collect()
    }

    #[test]
    fn rates_are_each_thread_s_and_time_without_an_answer_counts_with_the_next() {
        let mut alone =
            [interval(0, &[7]), interval(100, &[0]), interval(200, &[0]), interval(300, &[2])];
        // 2 in 300 ms: 6.67, truncated.
        assert_eq!(seen(1, &alone), [(6, 1), (70, 1)]);
        let two = [interval(0, &[10, 20]), interval(100, &[10, 0])];
        assert_eq!(seen(2, &two), [(100, 2), (200, 1)]);
        alone[3].length = Nanos::from_millis(5);
        assert_eq!(seen(1, &alone), [(70, 1)]);
        assert_eq!(seen(1, &alone[3..]), [], "wrk looks for the first time after 100 ms");
        assert_eq!(seen(2, &[]), []);
    }
}
