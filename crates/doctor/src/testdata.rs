//! Owns made-up runs for the tests of checks: clean as they come, to be planted with one artifact. Start
//! reading at [`run`].

use std::collections::BTreeMap;

use record::{
    AtEnd, Blocks, ByteCounts, Carrier, Cell, ClientUse, Completions, Contender, ContenderFacts,
    Course, CpuLayout, Ending, Facts, Interval, Latencies, LatencyMillis, LoadPlan, LoadRecord,
    LoadStop, MachineSeries, Metric, Outcome, Plan, RequestCounts, RunRecord, Sample, ServerUse,
    SettingValue, Surroundings, TcpUse, ThreadUse, Visit, VisitPlan, VisitState, Workload,
};
use units::{Bytes, Nanos, Share};

const CONNECTIONS: u32 = 64;
const PAGE: Bytes = Bytes(3361);
/// Intervals of a visit; the first is before the cut.
const INTERVALS: u64 = 9;
const INTERVAL: Nanos = Nanos::from_millis(100);
/// Bytes of a reply, its head included.
const REPLY: u64 = 3500;
/// Good replies in an interval.
const OK: u64 = 5_000;
/// Of them, those whose times are in the histogram: enough for p99.
const TIMED: u64 = 100;

/// A clean run of `blocks` blocks: every visit alike but for a ripple of 1 %, the server the limit.
pub(crate) fn run(names: &[&str], blocks: u32) -> RunRecord {
    let contenders = names.len();
    let visits = (0..blocks).flat_map(|block| {
        (0..contenders).map(move |position| {
            let contender = (position + block as usize) % contenders;
            visit(contender, block, position as u32)
        })
    });
    let facts = ContenderFacts { body_sha256: "ab".repeat(32), ..ContenderFacts::default() };
    let mut run = RunRecord {
        format: RunRecord::FORMAT.to_owned(),
        joust: "0.1.0".to_owned(),
        started: "2026-11-21T12:00:00Z".to_owned(),
        seconds: 80.0,
        ending: Ending::Blocks,
        plan: plan(names, blocks),
        facts: Facts::default(),
        layout: CpuLayout { server: vec![1], client: vec![0], shared: false },
        contenders: vec![facts; contenders],
        skipped: Vec::new(),
        visits: visits.collect(),
        findings: Vec::new(),
        verdicts: Vec::new(),
        analysis: Default::default(),
        integrity: Default::default(),
    };
    (0..contenders).for_each(|contender| limit(&mut run, contender, 0.6, 0.98));
    run
}

/// Says by how much counters moved while a visit was loaded. A name is "server.TcpExt.ListenOverflows"; all
/// counters of TCP of both sides could be read.
pub(crate) fn count(visit: &mut Visit, moved: &[(&str, i64)]) {
    let around = visit.surroundings.get_or_insert_default();
    let series = &mut around.series;
    let read = ["client.TcpExt", "client.Tcp", "server.TcpExt", "server.Tcp"];
    series.sources.extend(read.map(str::to_owned));
    series.at = vec![Nanos::ZERO, Nanos(INTERVAL.0 * INTERVALS)];
    for &(name, change) in moved {
        let (source, _) = name.rsplit_once('.').expect("a counter has a source");
        series.sources.insert(source.to_owned());
        let course = record::Course { first: 0, steps: vec![change] };
        series.counters.insert(name.to_owned(), course);
    }
}

/// Where a request stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the first byte of its reply.
    FirstByte,
    /// Between the first byte and the last one.
    Body,
}

/// Further requests of a load, over all its intervals, that take a given number of milliseconds longer, and at most 1
/// ms more.
pub(crate) fn stall(load: &mut LoadRecord, requests: u64, millis: u64, phase: Phase) {
    for n in 0..requests {
        let fast = Nanos::from_micros(900 + n % TIMED);
        let late = Nanos::from_millis(millis) + Nanos::from_micros(n * 7919 % 1000);
        let slow = fast + late;
        load.latencies.first_byte.record(if phase == Phase::FirstByte { slow } else { fast });
        load.latencies.service.record(slow);
        let at = n as usize % load.intervals.len();
        load.intervals[at].service.record(slow);
    }
}

/// The same without loads, for checks that look at values of visits alone: hundreds of these are made in no time.
pub(crate) fn light(names: &[&str], blocks: u32) -> RunRecord {
    let mut run = run(names, 1);
    run.visits.iter_mut().for_each(|visit| visit.load = None);
    let first = run.visits.clone();
    let block = |block: u32| first.iter().map(move |visit| Visit { block, ..visit.clone() });
    run.visits = (0..blocks).flat_map(block).collect();
    run.plan.blocks.max = blocks;
    run
}

/// Sets how busy generator and server were in every visit of a contender, 0 to 1.
pub(crate) fn limit(run: &mut RunRecord, contender: usize, client: f64, server: f64) {
    let part = |whole: Nanos, share: f64| Nanos((whole.0 as f64 * share).round() as u64);
    for visit in run.visits.iter_mut().filter(|visit| visit.contender == contender) {
        let load = visit.load.as_mut().expect("made-up visits have a load");
        for interval in &mut load.intervals {
            interval.client_cpu = part(interval.length, client);
        }
        for thread in &mut load.client.threads {
            thread.cpu = part(thread.wall, client);
        }
        let used = visit.server.as_mut().expect("made-up visits know their server");
        used.cpu = part(used.wall, server);
    }
}

/// Gives every contender a setting of its own: without one they are the same server.
pub(crate) fn make_unlike(run: &mut RunRecord) {
    for (n, contender) in run.plan.contenders.iter_mut().enumerate() {
        contender.settings.insert("workers".to_owned(), SettingValue::Number(n as i64 + 1));
    }
}

/// Two unlike contenders, a and b, behind a link of a given number of bits a second: 99.6 % of it on the wire in every
/// visit, 95 % of that replies, requests that queue, and no CPU that is busy.
pub(crate) fn behind_a_link(bits_per_s: f64, blocks: u32) -> RunRecord {
    let mut run = run(&["a", "b"], blocks);
    make_unlike(&mut run);
    let second = 0.996 * bits_per_s / 8.0;
    for visit in &mut run.visits {
        let load = visit.load.as_mut().expect("made-up visits have a load");
        for interval in &mut load.intervals {
            interval.bytes_read = (0.95 * second * INTERVAL.as_secs_f64()) as u64;
            interval.ok = interval.bytes_read / REPLY;
        }
        load.latencies.service.record(Nanos::from_micros(300));
        let step = |part: f64| (second * 0.2 * part) as i64;
        let steps = vec![step(0.3), step(1.0), step(1.002), step(0.998), step(0.4)];
        load.bytes.read = (0.95 * steps.iter().sum::<i64>() as f64) as u64;
        let series = MachineSeries {
            at: (0..6).map(|n| Nanos::from_millis(200 * n)).collect(),
            sources: ["server.dev.server".to_owned()].into(),
            counters: BTreeMap::from([(
                "server.dev.server.tx_bytes".to_owned(),
                Course { first: 0, steps },
            )]),
            cost: Nanos::ZERO,
        };
        visit.surroundings = Some(Box::new(Surroundings { series, ..Surroundings::default() }));
    }
    (0..2).for_each(|contender| limit(&mut run, contender, 0.05, 0.1));
    run
}

fn plan(names: &[&str], blocks: u32) -> Plan {
    let contender = |name: &&str| Contender {
        name: (*name).to_owned(),
        server: "joust".to_owned(),
        // No two are copies of each other, which would have to be alike.
        settings: [("model".to_owned(), record::SettingValue::Text((*name).to_owned()))].into(),
        ..Contender::default()
    };
    Plan {
        name: "made up".to_owned(),
        question: "Does a check see what was planted, and nothing else?".to_owned(),
        contenders: names.iter().map(contender).collect(),
        cells: vec![Cell::only(Workload {
            page: PAGE,
            connections: CONNECTIONS,
            keep_alive: true,
            threads: 1,
            timeout: Nanos::from_secs(5),
            ..Workload::default()
        })],
        blocks: Blocks { min: 8, max: blocks, half_width: Share(0.02) },
        visit: VisitPlan {
            warm_up: INTERVAL,
            measure: Nanos(INTERVAL.0 * (INTERVALS - 1)),
            ..VisitPlan::default()
        },
        metrics: vec![
            Metric::Throughput,
            Metric::ServerCpu,
            Metric::P50,
            Metric::P99,
            Metric::Memory,
        ],
        margin: Share(0.02),
        budget: Nanos::from_secs(85),
        seed: 1,
        ..Plan::default()
    }
}

fn visit(contender: usize, block: u32, position: u32) -> Visit {
    let load = load();
    let ripple = 1.0 + 0.01 * (f64::from(block) * 2.4 + contender as f64).sin();
    let wall = Nanos(INTERVAL.0 * (INTERVALS - 1));
    Visit {
        contender,
        block,
        position,
        started: Nanos::from_secs(u64::from(block)),
        state: VisitState::Measured,
        ready_after: Nanos::from_millis(20),
        rate_per_s: Some(load.rate_per_s * ripple),
        server: Some(ServerUse {
            cpu: wall,
            wall,
            requests: OK * (INTERVALS - 1),
            memory: Bytes(8_000_000),
            memory_account: record::MemoryAccount::default(),
            processes: 1,
            threads: 1,
            born: 0,
            cpus: 1,
        }),
        load: Some(load),
        cut: INTERVAL,
        ..Visit::default()
    }
}

/// The load of a clean visit.
pub(crate) fn load() -> LoadRecord {
    let intervals: Vec<Interval> = (0..INTERVALS).map(interval).collect();
    let done = OK * INTERVALS;
    let wall = Nanos(INTERVAL.0 * INTERVALS);
    let mut latencies = Latencies::default();
    for interval in &intervals {
        latencies.service.merge(&interval.service);
        latencies.response.merge(&interval.response);
        latencies.first_byte.merge(&interval.service);
    }
    (0..CONNECTIONS.into()).for_each(|n| latencies.connect.record(Nanos::from_micros(80 + n)));
    LoadRecord {
        engine: "made up".to_owned(),
        seconds: wall.as_secs_f64(),
        requests: RequestCounts { started: done, done, ok: done, ..Default::default() },
        status: BTreeMap::from([(200, done)]),
        bytes: ByteCounts { read: done * REPLY, body: done * PAGE.0, written: done * 60 },
        rate_per_s: OK as f64 / INTERVAL.as_secs_f64(),
        cpu_us_per_request: Some(12.0),
        connects: u64::from(CONNECTIONS),
        service_ms: LatencyMillis::from(&latencies.service),
        response_ms: LatencyMillis::from(&latencies.response),
        first_byte_ms: LatencyMillis::from(&latencies.first_byte),
        completions: completions(),
        tcp: TcpUse {
            connections: u64::from(CONNECTIONS),
            looked_at: u64::from(CONNECTIONS),
            retransmitted: 0,
            timeouts: Some(0),
            timeout_time: Some(Nanos::ZERO),
        },
        client: ClientUse {
            threads: vec![ThreadUse { cpu: Nanos::ZERO, wall, pinned_to: Some(0) }],
            lag_max: Nanos::from_micros(300),
            connections_open_max: CONNECTIONS,
        },
        latencies,
        intervals,
        ..LoadRecord::empty(load_plan(wall))
    }
}

fn interval(index: u64) -> Interval {
    let mut interval = Interval::new(Nanos(INTERVAL.0 * index), INTERVAL);
    (interval.started, interval.ok) = (OK, OK);
    interval.bytes_read = OK * REPLY;
    for n in 0..TIMED {
        // Around 64 connections over 50,000 requests/s (Little's law).
        let span = Nanos::from_micros(1230 + n);
        interval.service.record(span);
        interval.response.record(span);
    }
    interval
}

/// As many replies in every millisecond.
fn completions() -> Completions {
    let bins = INTERVALS * INTERVAL.0 / Completions::BIN.0;
    let each = (OK * INTERVALS / bins) as u32;
    Completions { bin: Completions::BIN, counts: vec![each; bins as usize] }
}

fn load_plan(wall: Nanos) -> LoadPlan {
    LoadPlan {
        connections: CONNECTIONS,
        cpus: vec![0],
        stop: LoadStop { requests: None, duration: Some(wall) },
        timeout: Nanos::from_secs(5),
        drain: Nanos::from_millis(500),
        interval: INTERVAL,
        raw_max: 0,
        ..LoadPlan::get(([127, 0, 0, 1], 8080).into(), "/")
    }
}

/// A good request on a connection, sent when it was due and answered at once with its first byte.
pub(crate) fn sample(conn: u32, sent: Nanos, done: Nanos) -> Sample {
    Sample {
        due: sent,
        sent,
        first_byte: done,
        done,
        bytes_read: 3500,
        bytes_body: PAGE.0,
        status: 200,
        outcome: Outcome::Ok,
        conn,
        bytes_head: 139,
        carrier: Carrier::Reused,
        at_end: AtEnd::Kept,
        request: 0,
    }
}
