//! What holds for every record, whatever happened. Owns the invariants of the accounting. Start reading at
//! [`check`].

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use joust_load::sim::{self, Script};
use joust_load::{Control, LoadOptions};
use record::{Carrier, LoadPlan, LoadRecord, Outcome, RequestFigures, Sample, TcpUse};
use stats::Histogram;
use units::Nanos;

pub(crate) const MS: Nanos = Nanos::from_millis(1);

pub(crate) fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

pub(crate) fn plan(change: impl FnOnce(&mut LoadOptions)) -> LoadPlan {
    let mut options = LoadOptions::new("http://127.0.0.1:1/");
    options.draft.timeout = Nanos::from_secs(2);
    options.draft.raw_max = 1_000_000;
    change(&mut options);
    options.plan().unwrap()
}

pub(crate) fn run(plan: &LoadPlan, script: &Script) -> LoadRecord {
    let interrupt = AtomicBool::new(false);
    let record = sim::run(plan, &Control::new(&interrupt), script).unwrap();
    check(&record);
    record
}

/// What holds for every record, whatever happened.
pub(crate) fn check(record: &LoadRecord) {
    check_counts(record);
    check_open_loop(record);
    check_intervals(record);
    check_by_request(record);
    if record.raw_stride == 1 {
        check_completions(record);
        check_raw(record);
    }
    for sample in &record.raw {
        check_sample(record, sample);
    }
}

fn check_counts(record: &LoadRecord) {
    let (requests, errors, plan) = (&record.requests, &record.errors, &record.plan);
    assert_eq!(requests.started, requests.done + requests.unanswered);
    assert_eq!(requests.done, requests.ok + requests.failed);
    assert_eq!(requests.failed, errors.total());
    assert!(requests.drained <= requests.done && requests.retried <= requests.started);
    assert!(plan.retry || requests.retried == 0);
    let redirects = errors.too_many_redirects + errors.bad_redirect;
    let wrong = errors.unexpected_status + errors.wrong_length + errors.wrong_header;
    let wrong = wrong + errors.wrong_body + redirects;
    assert_eq!(
        record.status.values().sum::<u64>(),
        requests.ok + wrong,
        "complete replies, and no others, are counted by status"
    );
    let broken = record.broken_status.values().sum::<u64>();
    assert!(broken <= requests.failed - wrong, "others broke off, and some before their heads");
    if let Some(planned) = plan.stop.requests {
        assert!(requests.started <= planned, "{requests:?}");
    }
    if plan.stop.duration.is_none() && !record.interrupted {
        assert_eq!(requests.unanswered, 0, "only time gives up what is out");
    }
    let latencies = &record.latencies;
    for histogram in [&latencies.service, &latencies.response, &latencies.first_byte] {
        assert_eq!(histogram.count(), requests.ok);
    }
    assert_eq!(latencies.queue.count(), if plan.pacing.is_open() { requests.ok } else { 0 });
    assert!(latencies.failed.count() <= requests.failed);
    assert_eq!(latencies.connect.count(), record.connects);
    assert!(record.client.connections_open_max <= record.connections);
    assert_eq!(record.client.threads.len(), record.threads as usize);
    assert!(record.bytes.body <= record.bytes.read);
    check_connections(record);
}

/// What is told of connections; a simulated network has no TCP that could be asked.
fn check_connections(record: &LoadRecord) {
    let (ends, tcp) = (&record.connection_ends, &record.tcp);
    assert_eq!(ends.replies.values().sum::<u64>() + ends.others, ends.by_server);
    assert!(ends.announced <= ends.by_server && ends.by_server <= record.connects);
    if !record.plan.keeps_connections() && record.plan.requests_per_connection.is_none() {
        assert_eq!(ends.by_server, 0, "the plan ends each connection");
    }
    let nothing_looked_at = TcpUse { connections: record.connects, ..TcpUse::default() };
    assert_eq!(*tcp, nothing_looked_at);
}

/// Good replies by instant are those of the whole log.
fn check_completions(record: &LoadRecord) {
    let completions = &record.completions;
    let mut expected = vec![0; completions.counts.len()];
    for sample in record.raw.iter().filter(|sample| sample.outcome == Outcome::Ok) {
        expected[(sample.done.0 / completions.bin.0) as usize] += 1;
    }
    assert_eq!(completions.counts, expected);
    assert_eq!(completions.total(), record.requests.ok);
}

/// No instant of a law is lost in silence.
fn check_open_loop(record: &LoadRecord) {
    assert_eq!(record.open_loop.is_some(), record.plan.pacing.is_open());
    let Some(open_loop) = &record.open_loop else { return };
    let accounted = record.requests.started + open_loop.dropped + open_loop.left;
    assert_eq!(open_loop.due, accounted, "{open_loop:?} {:?}", record.requests);
    // Each thread may have one request waiting, however short the queue.
    let bound = record.plan.queue_max.max(record.threads.into());
    assert!(open_loop.queue_max <= bound, "{open_loop:?}");
}

/// The rows of the requests add up to the load.
pub(crate) fn check_by_request(record: &LoadRecord) {
    let (rows, requests) = (&record.by_request, &record.requests);
    assert_eq!(rows.is_empty(), record.plan.requests.len() == 1);
    if rows.is_empty() {
        return;
    }
    let sum = |of: fn(&RequestFigures) -> u64| rows.iter().map(of).sum::<u64>();
    assert_eq!(sum(|row| row.done), requests.done);
    assert_eq!(sum(|row| row.ok), requests.ok);
    assert_eq!(sum(|row| row.failed), requests.failed);
    assert_eq!(sum(|row| row.unanswered), requests.unanswered);
    assert_eq!(sum(|row| row.bytes_read), record.bytes.read);
    assert_eq!(sum(|row| row.bytes_body), record.bytes.body);
    let mut response = Histogram::new();
    rows.iter().for_each(|row| response.merge(&row.response));
    assert_eq!(response, record.latencies.response);
}

pub(crate) fn check_intervals(record: &LoadRecord) {
    let (requests, intervals) = (&record.requests, &record.intervals);
    let mut status = BTreeMap::new();
    for (code, count) in intervals.iter().flat_map(|interval| &interval.status) {
        *status.entry(*code).or_insert(0) += count;
    }
    assert_eq!(status, record.status);
    assert_eq!(intervals.iter().map(|i| i.ok).sum::<u64>(), requests.ok);
    assert_eq!(intervals.iter().map(|i| i.started).sum::<u64>(), requests.started);
    assert_eq!(intervals.iter().map(|i| i.errors.total()).sum::<u64>(), requests.failed);
    assert_eq!(intervals.iter().map(|i| i.bytes_read).sum::<u64>(), record.bytes.read);
    assert!(intervals.iter().all(|i| i.service.count() == i.ok && i.response.count() == i.ok));
    assert!(intervals.first().is_none_or(|first| first.start == Nanos::ZERO));
    assert!(intervals.windows(2).all(|pair| pair[0].end() == pair[1].start), "without gaps");
    let whole = &intervals[..intervals.len().saturating_sub(1)];
    assert!(whole.iter().all(|interval| interval.length == intervals[0].length));
}

/// The raw log, whole, tells the same story as the counters.
fn check_raw(record: &LoadRecord) {
    let raw = &record.raw;
    assert_eq!(raw.len() as u64, record.requests.started, "every request is there once");
    let broken =
        |s: &&Sample| s.status > 0 && !s.outcome.is_complete() && s.outcome != Outcome::Unanswered;
    let n_broken = raw.iter().filter(broken).count() as u64;
    assert_eq!(record.broken_status.values().sum::<u64>(), n_broken);
    let mut by_outcome: BTreeMap<Outcome, u64> = BTreeMap::new();
    raw.iter().for_each(|sample| *by_outcome.entry(sample.outcome).or_default() += 1);
    let count = |outcome| by_outcome.get(&outcome).copied().unwrap_or(0);
    assert_eq!(count(Outcome::Ok), record.requests.ok);
    assert_eq!(count(Outcome::Unanswered), record.requests.unanswered);
    let n_retried = raw.iter().filter(|sample| sample.carrier == Carrier::Retried).count();
    assert_eq!(n_retried as u64, record.requests.retried, "each is sent twice at most");
    for (outcome, counted) in record.errors.each() {
        assert_eq!(count(outcome), counted, "{outcome:?}");
    }
    assert_eq!(raw.iter().map(|sample| sample.bytes_read).sum::<u64>(), record.bytes.read);
    assert_eq!(raw.iter().map(|sample| sample.bytes_body).sum::<u64>(), record.bytes.body);
    let mut by_conn: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    raw.iter().for_each(|sample| by_conn.entry(sample.conn).or_default().push(sample));
    by_conn.into_values().for_each(|samples| check_conn(record, samples));
    if record.client.lag_max > Nanos::ZERO {
        // What was sent late in a batch may end after the wake-up that it is counted at.
        return;
    }
    let Some((last, whole)) = record.intervals.split_last() else { return };
    for interval in whole.iter().chain([last]) {
        let is_in = |at: Nanos| {
            at >= interval.start && (at < interval.end() || std::ptr::eq(interval, last))
        };
        let ok = raw.iter().filter(|s| s.outcome == Outcome::Ok && is_in(s.done)).count();
        assert_eq!(ok as u64, interval.ok, "of those that ended in the interval at {interval:?}");
    }
}

/// Replies come in the order of the requests, except those that were sent once more, and no more
/// requests are in flight than may be.
fn check_conn(record: &LoadRecord, samples: Vec<&Sample>) {
    let was_sent = |s: &&&Sample| s.sent > Nanos::ZERO || s.first_byte > Nanos::ZERO;
    let mut sent: Vec<&Sample> = samples.iter().filter(was_sent).copied().collect();
    sent.sort_unstable_by_key(|sample| (sample.sent, sample.done));
    let once = sent.iter().filter(|sample| sample.carrier != Carrier::Retried);
    assert!(once.is_sorted_by_key(|sample| sample.done), "in the order of sending");
    let ends = sent.iter().flat_map(|sample| [(sample.sent, 1), (sample.done, -1)]);
    let mut ends: Vec<(Nanos, i64)> = ends.collect();
    // Where one ends as another begins, the end comes first.
    ends.sort_unstable();
    let mut n_out = 0;
    for (at, change) in ends {
        n_out += change;
        assert!(n_out <= i64::from(record.plan.pipeline), "{n_out} out on a connection at {at}");
    }
}

fn check_sample(record: &LoadRecord, sample: &Sample) {
    assert!(sample.conn < record.connections && sample.due <= sample.done, "{sample:?}");
    assert!(sample.sent == Nanos::ZERO || sample.due <= sample.sent, "{sample:?}");
    assert!(sample.sent <= sample.done && sample.first_byte <= sample.done, "{sample:?}");
    assert!(sample.first_byte == Nanos::ZERO || sample.sent <= sample.first_byte, "{sample:?}");
    assert!(sample.bytes_body <= sample.bytes_read, "{sample:?}");
    let is_complete = sample.outcome.is_complete();
    let has_head = sample.bytes_head > 0;
    assert!(has_head || !is_complete, "{sample:?}");
    assert_eq!(sample.status >= 200, has_head, "{sample:?}");
    let has_read = sample.first_byte > Nanos::ZERO;
    assert!(!is_complete || has_read, "{sample:?}");
    assert_eq!(sample.bytes_read > 0, has_read, "{sample:?}");
}

/// Within the histogram's three digits.
pub(crate) fn near(got: Option<Nanos>, expected: Nanos) -> bool {
    got.is_some_and(|got| got.0.abs_diff(expected.0) as f64 <= expected.0 as f64 * 0.001)
}

/// A canary for [`check`]: a record that is wrong in one figure does not pass.
#[test]
fn a_falsified_record_is_caught() {
    type Lie = fn(&mut LoadRecord);
    let lies: [Lie; 15] = [
        |record| record.requests.started += 1,
        |record| record.requests.ok -= 1,
        |record| record.errors.protocol += 1,
        |record| record.status.clear(),
        |record| *record.broken_status.entry(200).or_default() += 1,
        |record| record.bytes.read += 1,
        |record| record.raw.truncate(record.raw.len() - 1),
        |record| record.raw[0] = record.raw[1],
        |record| record.raw[7].sent = record.raw[7].done + Nanos(1),
        |record| record.raw[7].first_byte = record.raw[7].sent - Nanos(1),
        |record| record.raw[7].outcome = Outcome::Protocol,
        |record| record.intervals[1].start += Nanos(1),
        |record| record.intervals[1].ok += 1,
        |record| record.open_loop.as_mut().unwrap().dropped += 1,
        |record| record.client.connections_open_max += 1,
    ];
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.duration) = (3, Some(ms(500)));
        o.draft.pacing = record::Pacing::Constant { rate: units::PerSecond(1700.0) };
    });
    let truth = run(&plan, &Script::new(ms(1) + Nanos(1)));
    for (index, lie) in lies.into_iter().enumerate() {
        let mut record = truth.clone();
        lie(&mut record);
        let passes = std::panic::catch_unwind(|| check(&record)).is_ok();
        assert!(!passes, "lie {index}");
    }
}
