//! Computes http_load's figures from the samples of a load, counted as it counts. Owns what it treats as a fetch, a
//! wrong byte count and a wrong checksum, and its stderr message for each. Start reading at [`Figures::new`].

use std::collections::BTreeMap;

use record::{LatencyMillis, LoadRecord, Outcome, Sample};
use units::Nanos;

use super::checksum::Fetched;
use super::flags::{Start, Timer};
use super::plan::{SLOTS, Subject};
use crate::command::RequestAccount;

/// Most complaint lines that are kept; http_load prints all.
const COMPLAINTS_MAX: usize = 10_000;

/// What http_load counts and measures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) completed: u64,
    pub(super) parallel_max: u64,
    /// Bytes after the heads.
    pub(super) bytes: u64,
    /// Microseconds.
    pub(super) elapsed: u64,
    pub(super) connects: Spans,
    pub(super) responses: Spans,
    pub(super) timeouts: u64,
    /// Fetches whose byte count, or with -checksum whose checksum, differs from that of the URL's first fetch.
    pub(super) bad: u64,
    pub(super) codes: BTreeMap<u16, u64>,
    /// Lines on stderr, in order.
    pub(super) complaints: Vec<String>,
    /// Whether -rate ran out of connections, at which point http_load ends.
    pub(super) overflows: bool,
    /// For footnotes: fetches without a code; complete replies among the bad; replies other than 2xx; complaints that
    /// were left out; whether samples were thinned out, so that totals do not come from them.
    pub(super) lost: u64,
    pub(super) complete_but_bad: u64,
    pub(super) non_2xx: u64,
    pub(super) unsaid: u64,
    pub(super) is_thinned: bool,
    /// Unfinished fetches, and those after the end of -rate.
    pub(super) left_out: u64,
}

/// Spans of one kind, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spans {
    pub(super) n: u64,
    pub(super) total: u64,
    pub(super) max: u64,
    pub(super) min: u64,
}

impl Spans {
    fn add(&mut self, span: Nanos) {
        let micros = span.0 / 1000;
        self.min = if self.n == 0 { micros } else { self.min.min(micros) };
        self.max = self.max.max(micros);
        self.total = self.total.saturating_add(micros);
        self.n += 1;
    }
}

/// The result of the first fetch of each URL: its bytes, or its checksum.
type First = BTreeMap<u32, u64>;

impl Figures {
    /// What http_load would have counted for this load. With -checksum `checksums` holds the fetches.
    pub(super) fn new(
        subject: &Subject,
        checksums: Option<&[Fetched]>,
        record: &LoadRecord,
    ) -> Self {
        let mut figures =
            Self { elapsed: (record.seconds * 1e6).round() as u64, ..Self::default() };
        let (parallel_max, full_at) = parallel(&record.raw);
        figures.parallel_max = parallel_max;
        let ended = match subject.flags.start {
            Start::Rate(timer) => full_at.or_else(|| starved_at(timer, record)),
            Start::Parallel(_) => None,
        };
        let is_rate = matches!(subject.flags.start, Start::Rate(_));
        if let Some(at) = ended {
            figures.overflows = true;
            figures.elapsed = at.0 / 1000;
        }
        let mut first = First::new();
        for sample in &record.raw {
            let is_in_time = ended.is_none_or(|at| sample.done <= at);
            if sample.outcome != Outcome::Unanswered && is_in_time {
                figures.add(subject, checksums, sample, &mut first);
            } else {
                figures.left_out += 1;
            }
        }
        if ended.is_some() {
            // The fetches in progress at that time; the next one found no free slot.
            figures.parallel_max = u64::from(SLOTS);
            figures.complain(format!("{}: ran out of connection slots", subject.program));
        } else if is_rate && !subject.any_tls && record.connects > 0 {
            // Requests that started late count from their late start, and the delay is not part of connecting.
            figures.connects = spans(&record.connect_ms, record.connects);
        }
        if record.raw_stride > 1 {
            figures.take_totals(record);
        }
        figures
    }

    fn add(
        &mut self,
        subject: &Subject,
        checksums: Option<&[Fetched]>,
        sample: &Sample,
        first: &mut First,
    ) {
        let fetched =
            checksums.map(|all| all.get(sample.request as usize).copied().unwrap_or_default());
        let url = fetched.map_or(sample.request, |fetched| fetched.url);
        let name = subject.urls.get(url as usize).map_or("", String::as_str);
        self.completed += 1;
        let bytes = raw_body(sample);
        self.bytes += bytes;
        if is_timeout(sample.outcome) {
            self.timeouts += 1;
            self.complain(format!("{name}: timed out"));
        } else if sample.outcome == Outcome::Tls {
            self.complain(format!("{}: SSL connection failed - -1", subject.program));
        } else if let Some(reason) = reason(sample.outcome) {
            self.complain(format!("{name}: {reason}"));
        }
        if sample.sent > Nanos::ZERO {
            self.connects.add(sample.sent.saturating_sub(sample.due));
        }
        if sample.first_byte > Nanos::ZERO {
            self.responses.add(sample.first_byte.saturating_sub(sample.sent));
        } else if is_end_before_first_byte(sample.outcome) {
            // The end of a connection also makes it readable.
            self.responses.add(sample.done.saturating_sub(sample.sent));
        }
        match sample.status {
            0 => self.lost += 1,
            status => {
                *self.codes.entry(status).or_default() += 1;
                self.non_2xx += u64::from(status / 100 != 2);
            }
        }
        let value = fetched.map_or(bytes, |fetched| fetched.checksum.into());
        if *first.entry(url).or_insert(value) != value {
            self.bad += 1;
            self.complete_but_bad += u64::from(sample.outcome == Outcome::Ok);
            let what = if fetched.is_some() { "checksum" } else { "byte count" };
            self.complain(format!("{name}: {what} wrong"));
        }
    }

    /// Each fetch has a code, or ended without one.
    pub(super) fn tally(&self) -> RequestAccount {
        let by_outcome = self.lost + self.codes.values().sum::<u64>();
        RequestAccount { counted: self.completed, by_outcome, left_out: self.left_out }
    }

    fn complain(&mut self, line: String) {
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push(line);
        } else {
            self.unsaid += 1;
        }
    }

    /// If only every k-th fetch was kept, the totals cover all of them.
    fn take_totals(&mut self, record: &LoadRecord) {
        self.is_thinned = true;
        self.left_out = record.requests.unanswered;
        self.completed = record.requests.done;
        self.bytes = record.bytes.body;
        self.connects = spans(&record.connect_ms, record.connects);
        self.responses = spans(&record.first_byte_ms, record.requests.ok);
        let errors = &record.errors;
        self.timeouts = errors.connect_timeout
            + errors.tls_timeout
            + errors.timeout_waiting
            + errors.timeout_reading;
        self.codes = record.status.clone();
        for (status, n) in &record.broken_status {
            *self.codes.entry(*status).or_default() += n;
        }
        self.non_2xx =
            self.codes.iter().filter(|(code, _)| **code / 100 != 2).map(|(_, n)| n).sum();
        self.lost = self.completed.saturating_sub(self.codes.values().sum());
        self.parallel_max = record.client.connections_open_max.into();
    }
}

/// Spans of a histogram, accurate to 0.1 %, with the exact maximum.
fn spans(millis: &LatencyMillis, n: u64) -> Spans {
    let micros = |span: Option<f64>| (span.unwrap_or(0.0) * 1e3).round() as u64;
    let total = micros(millis.mean.map(|mean| mean * n as f64));
    Spans { n, total, max: micros(millis.max), min: micros(millis.min) }
}

/// The body as received, whatever its framing: http_load decodes nothing.
fn raw_body(sample: &Sample) -> u64 {
    match sample.bytes_head {
        0 => 0,
        head => sample.bytes_read - u64::from(head),
    }
}

fn is_timeout(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::ConnectTimeout
            | Outcome::TlsTimeout
            | Outcome::TimeoutWaiting
            | Outcome::TimeoutReading
    )
}

fn is_end_before_first_byte(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::ResetBeforeFirstByte | Outcome::ClosedBeforeFirstByte)
}

/// perror(3)'s text for a connection that could not be made. http_load prints nothing if a connection is lost later.
fn reason(outcome: Outcome) -> Option<&'static str> {
    Some(match outcome {
        Outcome::ConnectRefused => "Connection refused",
        Outcome::ConnectFailed => "Connection reset by peer",
        Outcome::FdExhausted => "Too many open files",
        Outcome::PortExhausted => "Cannot assign requested address",
        _ => return None,
    })
}

/// When a fetch found no free slot and never got one: one period after the last fetch that did.
fn starved_at(timer: Timer, record: &LoadRecord) -> Option<Nanos> {
    let waited = record.open_loop.is_some_and(|open| open.left + open.dropped > 0);
    let is_full = record.raw.len() as u64 >= u64::from(SLOTS);
    let last = record.raw.iter().map(|sample| sample.due).max()?;
    let period = Nanos::from_millis(timer.period_ms().into());
    (waited && is_full).then(|| last.saturating_add(period))
}

/// Most fetches that were in progress at once, and when they exceeded http_load's places.
fn parallel(samples: &[Sample]) -> (u64, Option<Nanos>) {
    let mut begins: Vec<Nanos> = samples.iter().map(|sample| sample.due).collect();
    let mut ends: Vec<Nanos> = samples.iter().map(|sample| sample.done).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let (mut n_ended, mut most, mut full_at) = (0, 0, None);
    for (n_before, begin) in begins.iter().enumerate() {
        // A fetch that ends as another begins has made room for it.
        while ends.get(n_ended).is_some_and(|end| end <= begin) {
            n_ended += 1;
        }
        let under_way = (n_before + 1).saturating_sub(n_ended) as u64;
        most = most.max(under_way);
        if under_way > u64::from(SLOTS) && full_at.is_none() {
            full_at = Some(*begin);
        }
    }
    (most, full_at)
}
