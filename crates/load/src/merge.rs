//! Several loads as one: loads that agents on different machines measured at the same time, or one load after
//! another. Owns what is added up, and what may not be. Start reading at [`merge`].
//!
//! Records lie on one time axis by when each began. Time in which none ran is left out, so a rate is over the time in
//! which at least one of them ran. Counts and histograms add up exactly, in whatever order the records are given.

use std::collections::{BTreeMap, BTreeSet};

use record::{
    ClientUse, Imbalance, Interval, LatencyMillis, LoadPart, LoadPlan, LoadRecord, OpenLoop,
    Pacing, PartFinding, Pick, RATE_LAWS, RequestCounts, RequestFigures, Sample, Share, TlsUse,
};
use stats::Histogram;
use units::{Nanos, PerSecond};

use crate::secure;
use crate::series::INTERVALS_MAX;

/// A record that is to be merged.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeInput {
    /// Its file, for messages.
    pub name: String,
    /// What was measured.
    pub record: LoadRecord,
    /// What makes its figures unreliable, in sentences.
    pub findings: Vec<String>,
    /// Of them, what voids or bounds its figures and is confirmed by the counters of its machine.
    pub acting: Vec<PartFinding>,
}

/// Why records cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// No record.
    #[error("no record to merge: name the files that `joust load --json` wrote")]
    None,
    /// The same record twice.
    #[error("{first} and {second} hold the same load: name each load once")]
    Same {
        /// Its file.
        first: String,
        /// The other one.
        second: String,
    },
    /// Already merged.
    #[error(
        "{name} was itself merged from {n_parts} loads: merge the records of those loads instead"
    )]
    Merged {
        /// Its file.
        name: String,
        /// Number of its parts.
        n_parts: usize,
    },
    /// It has lost results, or was changed.
    #[error("{name} cannot be merged: {source}")]
    Unbalanced {
        /// Its file.
        name: String,
        /// Where it is inconsistent.
        source: Imbalance,
    },
    /// The figures would have two meanings.
    #[error("{first} and {second} cannot be merged: {what}")]
    Differ {
        /// Its file.
        first: String,
        /// The other one.
        second: String,
        /// How they differ.
        what: &'static str,
    },
}

/// One record of all inputs; a single input is returned as it is.
///
/// # Errors
/// [`MergeError`].
pub fn merge(mut inputs: Vec<MergeInput>) -> Result<LoadRecord, MergeError> {
    if inputs.len() < 2 {
        return inputs.pop().map(alone).ok_or(MergeError::None);
    }
    if let Some(MergeInput { name, record, .. }) =
        inputs.iter().find(|input| !input.record.parts.is_empty())
    {
        return Err(MergeError::Merged { name: name.clone(), n_parts: record.parts.len() });
    }
    for MergeInput { name, record, .. } in &inputs {
        record.balance().map_err(|source| MergeError::Unbalanced { name: name.clone(), source })?;
    }
    let knows_all = inputs.iter().all(|input| input.record.began_unix_ms.is_some());
    let began = |record: &LoadRecord| record.began_unix_ms.filter(|_| knows_all).unwrap_or(0);
    // Sorted by content, so that the order in which files are named does not matter.
    inputs.sort_by_cached_key(|input| (began(&input.record), input.record.to_json()));
    for pair in inputs.windows(2) {
        if pair[0].record == pair[1].record {
            let (first, second) = (pair[0].name.clone(), pair[1].name.clone());
            return Err(MergeError::Same { first, second });
        }
    }
    check(&inputs)?;
    note_what_differs(&mut inputs);
    let begins: Vec<Nanos> =
        inputs.iter().map(|input| Nanos::from_millis(began(&input.record))).collect();
    let whole = whole_plan(&inputs);
    let placed = place(inputs, &begins, whole.is_some());
    Ok(join(&placed, &begins, whole))
}

/// The only record, with what is known of its machine.
fn alone(input: MergeInput) -> LoadRecord {
    if input.acting.is_empty() {
        return input.record;
    }
    let length = Nanos((input.record.rate_seconds() * 1e9) as u64);
    let placed = Placed { input, start: Nanos::ZERO, length, first_conn: 0, first_thread: 0 };
    let parts = vec![part(&placed)];
    LoadRecord { parts, ..placed.input.record }
}

/// A record on the common axis.
struct Placed {
    input: MergeInput,
    /// Its start.
    start: Nanos,
    /// The length that its rate is over.
    length: Nanos,
    /// Added to its indexes of connections.
    first_conn: u32,
    /// Added to its indexes of threads.
    first_thread: usize,
}

impl Placed {
    fn record(&self) -> &LoadRecord {
        &self.input.record
    }

    fn end(&self) -> Nanos {
        self.start.saturating_add(self.length)
    }
}

/// What must not differ: otherwise a figure would have two meanings.
fn check(inputs: &[MergeInput]) -> Result<(), MergeError> {
    let first = &inputs[0];
    let asked = |plan: &LoadPlan| {
        let mut requests = plan.requests.clone();
        // What the server answered before the load may differ.
        requests.iter_mut().for_each(|request| request.expected = None);
        (plan.n_requests, requests)
    };
    for other in &inputs[1..] {
        let (one, two) = (&first.record.plan, &other.record.plan);
        let what = if asked(one) != asked(two) {
            "they ask for different requests, so a percentile over both would describe neither; \
             report each file by itself"
        } else if one.pacing.is_open() != two.pacing.is_open() {
            "one is an open loop and the other a closed one, so response times do not mean the same"
        } else if one.verify != two.verify {
            "they do not expect the same of a reply (--expect-status, --expect-length, \
             --expect-header, --expect-body, --verify), so ok does not mean the same"
        } else {
            continue;
        };
        let (first, second) = (first.name.clone(), other.name.clone());
        return Err(MergeError::Differ { first, second, what });
    }
    Ok(())
}

/// Fields of a plan that may differ from machine to machine, or that the merged record sums up.
const OWN: [&str; 13] = [
    "url",
    "requests",
    "connections",
    "threads",
    "cpus",
    "sources",
    "stop",
    "goals",
    "interval",
    "raw_max",
    "seed",
    "share",
    "queue_max",
];

/// Notes for each record how its plan differs from the first one, and what it lacks.
fn note_what_differs(inputs: &mut [MergeInput]) {
    let fields = |plan: &LoadPlan| serde_json::to_value(plan).expect("plain data serialises");
    let (name, plan) = (inputs[0].name.clone(), inputs[0].record.plan.clone());
    let first = fields(&plan);
    let lacks_rows =
        plan.n_requests > 1 && inputs.iter().any(|one| one.record.by_request.is_empty());
    let has_raw = inputs.iter().any(|one| !one.record.raw.is_empty());
    for (at, input) in inputs.iter_mut().enumerate() {
        let own = fields(&input.record.plan);
        let differs = |field: &&String| {
            !OWN.contains(&field.as_str()) && first[field.as_str()] != own[field.as_str()]
        };
        let names: Vec<&str> = own
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys())
            .filter(differs)
            .map(String::as_str)
            .collect();
        let mut said = Vec::new();
        if !names.is_empty() {
            said.push(format!("its plan differs from the plan of {name} in {}", names.join(", ")));
        }
        if at > 0 && is_in_step(&plan, &input.record.plan) {
            said.push(format!(
                "it has the same seed as {name}, so both drew the same random numbers: give each agent its \
                 own --seed"
            ));
        }
        if lacks_rows && input.record.by_request.is_empty() {
            said.push("it has no figures by request, so the merged record has none".to_owned());
        }
        if has_raw && input.record.raw.is_empty() && input.record.requests.started > 0 {
            said.push(
                "it has no single requests (--raw 0), so the merged `raw` lacks those of this load"
                    .to_owned(),
            );
        }
        input.findings.extend(said);
    }
}

/// Whether two agents draw the same instants, or the same requests, and so load the server in step.
fn is_in_step(one: &LoadPlan, two: &LoadPlan) -> bool {
    let draws = |plan: &LoadPlan| {
        plan.pacing.rate_law().is_some_and(|(law, _)| law.is_random)
            || (plan.pick == Pick::AtRandom && plan.n_requests > 1)
    };
    one.seed == two.seed && one.share == two.share && draws(one) && draws(two)
}

/// Places the records on one axis; they are in the order of their beginnings.
/// `are_shares`: of one plan.
fn place(inputs: Vec<MergeInput>, begins: &[Nanos], are_shares: bool) -> Vec<Placed> {
    let lengths = lengths(&inputs, are_shares);
    let (starts, _) = lay_out(begins, &lengths);
    let mut placed: Vec<Placed> = Vec::new();
    let mut first_thread = 0;
    for ((input, start), length) in inputs.into_iter().zip(starts).zip(lengths) {
        let running = placed.iter().filter(|before| before.end() > start);
        let ends = running.map(|before| before.first_conn + before.record().connections);
        let first_conn = ends.max().unwrap_or(0);
        let n_threads = input.record.client.threads.len().max(1);
        placed.push(Placed { input, start, length, first_conn, first_thread });
        first_thread += n_threads;
    }
    placed
}

/// The time that each record's rate is over. The law of one plan has one time for all shares of it: until its next
/// request, whoever that belongs to.
fn lengths(inputs: &[MergeInput], are_shares: bool) -> Vec<Nanos> {
    let seconds = |input: &MergeInput| input.record.rate_seconds();
    let all = inputs.iter().filter(|_| are_shares);
    let next = all.map(seconds).fold(f64::INFINITY, f64::min);
    let length = |input: &MergeInput| next.max(input.record.seconds).min(seconds(input));
    inputs.iter().map(|input| Nanos::from_secs_f64(length(input))).collect()
}

/// Where each stretch starts if the gaps between them are left out, and their total length.
fn lay_out(begins: &[Nanos], lengths: &[Nanos]) -> (Vec<Nanos>, Nanos) {
    let origin = begins[0];
    let (mut end, mut gaps) = (origin, Nanos::ZERO);
    let mut starts = Vec::with_capacity(begins.len());
    for (begin, length) in begins.iter().zip(lengths) {
        gaps += begin.saturating_sub(end);
        starts.push(begin.saturating_sub(origin).saturating_sub(gaps));
        end = end.max(begin.saturating_add(*length));
    }
    (starts, end.saturating_sub(origin).saturating_sub(gaps))
}

/// The highest number of something at one time.
fn peak(placed: &[Placed], of: impl Fn(&LoadRecord) -> f64) -> f64 {
    let at = |instant: Nanos| {
        let runs =
            |one: &&Placed| one.start <= instant && (instant < one.end() || one.start == instant);
        placed.iter().filter(runs).map(|one| of(one.record())).sum::<f64>()
    };
    placed.iter().map(|one| at(one.start)).fold(0.0, f64::max)
}

/// `whole`: the plan that all have shares of.
fn join(placed: &[Placed], begins: &[Nanos], whole: Option<LoadPlan>) -> LoadRecord {
    let first = placed[0].record();
    let records = || placed.iter().map(Placed::record);
    let windows: Vec<Nanos> = records().map(|one| Nanos::from_secs_f64(one.seconds)).collect();
    let (_, window) = lay_out(begins, &windows);
    let span = placed.iter().map(Placed::end).max().unwrap_or(Nanos::ZERO);
    let mut sum = LoadRecord::empty(whole.unwrap_or_else(|| plan(placed, span)));
    for one in placed {
        add_counts(&mut sum, one.record());
        sum.bodies_verified.merge(&one.record().bodies_verified, one.start);
        sum.completions.merge_at(one.start, &one.record().completions);
    }
    let good: f64 = records().map(|one| (one.rate_per_s * one.rate_seconds()).round()).sum();
    let cpu_us =
        records().filter_map(|one| Some(one.cpu_us_per_request? * one.requests.done as f64));
    let cpu_us: f64 = cpu_us.sum();
    let done = sum.requests.done;
    let (raw, raw_stride) = raw(placed);
    sum.engine = engines(placed);
    sum.connections = peak(placed, |one| one.connections.into()) as u32;
    sum.threads = peak(placed, |one| one.threads.into()) as u32;
    sum.seconds = window.as_secs_f64();
    sum.rate_per_s = per_s(good, span);
    sum.cpu_us_per_request = (done > 0).then(|| cpu_us / done as f64);
    sum.open_loop = open_loop(placed, span, &sum.latencies.late);
    sum.tls = tls_use(placed);
    sum.proxy_failure = records().find_map(|one| one.proxy_failure.clone());
    sum.first_head = records().find_map(|one| one.first_head.clone());
    sum.interrupted = records().any(|one| one.interrupted);
    sum.client = ClientUse {
        threads: records().flat_map(|one| one.client.threads.iter().copied()).collect(),
        lag_max: records().map(|one| one.client.lag_max).max().unwrap_or(Nanos::ZERO),
        connections_open_max: peak(placed, |one| one.client.connections_open_max.into()) as u32,
    };
    sum.intervals = intervals(placed);
    sum.by_request = by_request(placed);
    sum.raw_names = records().flat_map(|one| one.raw_names.clone()).collect();
    (sum.raw, sum.raw_stride) = (raw, raw_stride);
    sum.began_unix_ms = first.began_unix_ms;
    sum.parts = placed.iter().map(part).collect();
    sum_up(sum)
}

/// Counts and distributions: what simply adds up.
fn add_counts(sum: &mut LoadRecord, one: &LoadRecord) {
    // Named one by one, so that a new count is not forgotten here.
    let RequestCounts { started, done, ok, failed, unanswered, drained, retried } = one.requests;
    let requests = &mut sum.requests;
    requests.started += started;
    requests.done += done;
    requests.ok += ok;
    requests.failed += failed;
    requests.unanswered += unanswered;
    requests.drained += drained;
    requests.retried += retried;
    sum.errors.merge(&one.errors);
    for (counts, more) in
        [(&mut sum.status, &one.status), (&mut sum.broken_status, &one.broken_status)]
    {
        more.iter().for_each(|(status, count)| *counts.entry(*status).or_default() += count);
    }
    sum.redirects.merge(&one.redirects);
    sum.bare_lf_replies += one.bare_lf_replies;
    sum.bytes.read += one.bytes.read;
    sum.bytes.body += one.bytes.body;
    sum.bytes.written += one.bytes.written;
    sum.connects += one.connects;
    sum.probes += one.probes;
    sum.tcp.merge(&one.tcp);
    sum.connection_ends.merge(&one.connection_ends);
    sum.latencies.merge(&one.latencies);
}

/// Computes the figures of the merged distributions.
fn sum_up(mut sum: LoadRecord) -> LoadRecord {
    let latencies = &sum.latencies;
    sum.connect_ms = LatencyMillis::from(&latencies.connect);
    sum.first_byte_ms = LatencyMillis::from(&latencies.first_byte);
    sum.service_ms = LatencyMillis::from(&latencies.service);
    sum.response_ms = LatencyMillis::from(&latencies.response);
    sum.failed_ms = LatencyMillis::from(&latencies.failed);
    sum.queue_ms = LatencyMillis::from(&latencies.queue);
    sum.handshake_full_ms = LatencyMillis::from(&latencies.handshake_full);
    sum.handshake_resumed_ms = LatencyMillis::from(&latencies.handshake_resumed);
    sum.latencies.each_mut().into_iter().for_each(Histogram::pack);
    sum
}

fn part(placed: &Placed) -> LoadPart {
    let record = placed.record();
    LoadPart {
        name: placed.input.name.clone(),
        began_unix_ms: record.began_unix_ms,
        start: placed.start,
        seconds: record.rate_seconds(),
        started: record.requests.started,
        ok: record.requests.ok,
        rate_per_s: record.rate_per_s,
        findings: placed.input.findings.clone(),
        acting: placed.input.acting.clone(),
    }
}

/// The plan that all records have shares of, if that is so.
fn whole_plan(inputs: &[MergeInput]) -> Option<LoadPlan> {
    let whole = |one: &MergeInput| LoadPlan { share: Share::WHOLE, ..one.record.plan.clone() };
    let share = |one: &MergeInput| one.record.plan.share;
    let (first, of) = (whole(&inputs[0]), share(&inputs[0]).of);
    let mut taken = BTreeSet::new();
    let mut is_share = |one: &MergeInput| {
        share(one).of == of && taken.insert(share(one).index) && whole(one) == first
    };
    (of > 1 && inputs.iter().all(&mut is_share)).then_some(first)
}

/// The plan of the first record, with the totals of all.
fn plan(placed: &[Placed], span: Nanos) -> LoadPlan {
    let plans = || placed.iter().map(|one| &one.record().plan);
    let mut sum = placed[0].record().plan.clone();
    sum.connections = peak(placed, |one| one.connections.into()) as u32;
    sum.threads = peak(placed, |one| one.threads.into()) as u32;
    sum.stop.requests = plans().map(|plan| plan.stop.requests).sum();
    let is_timed = sum.stop.requests.is_none() || plans().any(|plan| plan.stop.duration.is_some());
    sum.stop.duration = is_timed.then_some(span);
    sum.goals = Vec::new();
    for goal in plans().flat_map(|plan| &plan.goals) {
        if !sum.goals.contains(goal) {
            sum.goals.push(*goal);
        }
    }
    let summed = RATE_LAWS.iter().find_map(|law| {
        let rate = |pacing: &Pacing| {
            pacing.rate_law().filter(|(own, _)| own.name == law.name).map(|(_, rate)| rate.0)
        };
        let is_of_all = plans().all(|plan| rate(&plan.pacing).is_some());
        let peak = || peak(placed, |one| rate(&one.plan.pacing).unwrap_or(0.0));
        is_of_all.then(|| (law.at)(PerSecond(peak())))
    });
    sum.pacing = summed.unwrap_or(sum.pacing);
    sum
}

fn engines(placed: &[Placed]) -> String {
    let mut names: Vec<&str> = placed.iter().map(|one| one.record().engine.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(" and ")
}

fn tls_use(placed: &[Placed]) -> Option<TlsUse> {
    let mut each = placed.iter().filter_map(|one| one.record().tls.as_ref());
    let mut sum = each.next()?.clone();
    each.for_each(|more| secure::merge(&mut sum, more));
    Some(sum)
}

/// Each rate is what was requested in the record's own time, over the time of all records.
fn open_loop(placed: &[Placed], span: Nanos, late: &Histogram) -> Option<OpenLoop> {
    let mut sum = OpenLoop { late_ms: LatencyMillis::from(late), ..OpenLoop::default() };
    for one in placed {
        let open = one.record().open_loop?;
        sum.due += open.due;
        sum.dropped += open.dropped;
        sum.left += open.left;
        sum.overdue += open.overdue;
        let own = one.record().rate_seconds();
        sum.asked_per_s += per_s(open.asked_per_s * own, span);
        sum.begun_per_s += per_s(open.begun_per_s * own, span);
    }
    let queue = |one: &LoadRecord| one.open_loop.map_or(0.0, |open| open.queue_max as f64);
    sum.queue_max = peak(placed, queue) as u64;
    sum.seconds = span.as_secs_f64();
    Some(sum)
}

fn per_s(count: f64, span: Nanos) -> f64 {
    let seconds = span.as_secs_f64();
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

/// Intervals of one length over the whole axis. What a record counted in an interval goes to the interval that
/// contains its middle: counts add up, and an instant is off by less than one interval.
fn intervals(placed: &[Placed]) -> Vec<Interval> {
    let each =
        || placed.iter().flat_map(|one| one.record().intervals.iter().map(move |it| (one, it)));
    let end_of = |(one, it): (&Placed, &Interval)| one.start.saturating_add(it.end());
    let Some(end) = each().map(end_of).max() else { return Vec::new() };
    let mut length = each().map(|(_, it)| it.length.0).max().unwrap_or(1).max(1);
    while end.0.div_ceil(length) > INTERVALS_MAX as u64 {
        length *= 2;
    }
    let mut within: BTreeMap<u64, Vec<(&Placed, &Interval)>> = BTreeMap::new();
    let last = end.0.div_ceil(length).max(1) - 1;
    for (one, it) in each() {
        let middle = one.start.0 + it.start.0 + it.length.0 / 2;
        within.entry((middle / length).min(last)).or_default().push((one, it));
    }
    let n_threads: usize = placed.iter().map(|one| one.record().client.threads.len().max(1)).sum();
    let stretch = |index: u64| {
        let start = Nanos(index * length);
        let mut sum = Interval::new(start, Nanos(length).min(end.saturating_sub(start)));
        sum.ok_by_thread = vec![0; n_threads];
        for (one, it) in within.get(&index).into_iter().flatten() {
            sum.merge(&Interval { ok_by_thread: Vec::new(), ..(*it).clone() });
            let alone = [it.ok];
            let own = if it.ok_by_thread.is_empty() { &alone[..] } else { &it.ok_by_thread };
            let places = sum.ok_by_thread.iter_mut().skip(one.first_thread);
            places.zip(own).for_each(|(sum, ok)| *sum += ok);
        }
        sum.service.pack();
        sum.response.pack();
        sum
    };
    (0..=last).map(stretch).collect()
}

/// By name; empty if any record has none, because the rows would not add up.
fn by_request(placed: &[Placed]) -> Vec<RequestFigures> {
    if placed.iter().any(|one| one.record().by_request.is_empty()) {
        return Vec::new();
    }
    let mut rows = placed[0].record().by_request.clone();
    for row in placed[1..].iter().flat_map(|one| &one.record().by_request) {
        match rows.iter_mut().find(|sum| sum.name == row.name) {
            Some(sum) => sum.merge(row),
            // Agents that reach the server under other names.
            None => rows.push(row.clone()),
        }
    }
    rows.into_iter().map(RequestFigures::summed_up).collect()
}

/// All logs on the common axis, with the widest stride and as many samples as one record may have.
fn raw(placed: &[Placed]) -> (Vec<Sample>, u64) {
    let records = || placed.iter().map(Placed::record).filter(|record| !record.raw.is_empty());
    let most = records().map(|record| u64::from(record.plan.raw_max)).max().unwrap_or(0);
    let mut stride = records().map(|record| record.raw_stride.max(1)).max().unwrap_or(1);
    let kept = |record: &LoadRecord, stride: u64| {
        (record.raw.len() as u64).div_ceil(stride / record.raw_stride.max(1))
    };
    while records().map(|record| kept(record, stride)).sum::<u64>() > most {
        stride *= 2;
    }
    let mut samples = Vec::new();
    for one in placed {
        let every = (stride / one.record().raw_stride.max(1)).max(1) as usize;
        let moved = one.record().raw.iter().step_by(every).map(|sample| moved(sample, one));
        samples.extend(moved);
    }
    samples.sort_by_key(|sample| (sample.done, sample.conn, sample.sent));
    (samples, stride)
}

/// A sample on the common axis. An instant that was never reached stays 0.
fn moved(sample: &Sample, to: &Placed) -> Sample {
    let reached = |at: Nanos| if at == Nanos::ZERO { at } else { at + to.start };
    Sample {
        due: sample.due + to.start,
        sent: reached(sample.sent),
        first_byte: reached(sample.first_byte),
        done: sample.done + to.start,
        conn: sample.conn + to.first_conn,
        ..*sample
    }
}
