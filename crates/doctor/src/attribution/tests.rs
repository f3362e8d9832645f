//! The attribution on made-up runs of which the causes are known: sums, shares, and intervals that hold the truth.
//! Start reading at the first test.

use record::{Cell, Contender, Interval, LoadPlan, Workload};

use super::*;
use crate::noise::{Law, Noise};

/// What a contender's requests take, in microseconds, and what is planted.
#[derive(Clone, Copy)]
struct Planted {
    service_us: f64,
    /// Share of the requests that stall for 40 ms.
    stalled: f64,
    connect_us: u64,
    failed_us: u64,
}

const FAST: Planted = Planted { service_us: 1000.0, stalled: 0.0, connect_us: 0, failed_us: 0 };
const CONNECTIONS: u32 = 64;
const REQUESTS: u32 = 2000;

/// A closed loop without any other time than its requests'.
fn visit(contender: usize, block: u32, planted: Planted, noise: &mut Noise) -> Visit {
    let window = Nanos::from_secs(1);
    let mut interval = Interval::new(Nanos::ZERO, window);
    let moved = (0.02 * noise.of(Law::Normal)).exp();
    // By chance, as servers stall: the number is about Poisson's.
    let expected = planted.stalled * f64::from(REQUESTS);
    let stalls = (expected + expected.sqrt() * noise.of(Law::Normal)).round().max(0.0) as u32;
    let mut cycle = 0.0;
    for n in 0..REQUESTS {
        let body = planted.service_us * moved * (1.0 + 0.05 * noise.of(Law::Normal));
        let late = if n < stalls { 40_000.0 + f64::from(n % 10) * 20.0 } else { 0.0 };
        let micros = (body + late).max(1.0);
        interval.service.record(Nanos((micros * 1e3) as u64));
        cycle += micros;
    }
    interval.ok = u64::from(REQUESTS);
    interval.response = interval.service.clone();
    let mut load = LoadRecord::empty(LoadPlan {
        connections: CONNECTIONS,
        ..LoadPlan::get(([127, 0, 0, 1], 80).into(), "/")
    });
    load.seconds = 1.0;
    load.requests.ok = u64::from(REQUESTS);
    load.connects = u64::from(CONNECTIONS);
    if planted.connect_us > 0 {
        load.connects += u64::from(REQUESTS);
        (0..load.connects)
            .for_each(|_| load.latencies.connect.record(Nanos::from_micros(planted.connect_us)));
        cycle += f64::from(REQUESTS) * planted.connect_us as f64;
    }
    if planted.failed_us > 0 {
        (0..REQUESTS / 2)
            .for_each(|_| load.latencies.failed.record(Nanos::from_micros(planted.failed_us)));
        cycle += f64::from(REQUESTS / 2) * planted.failed_us as f64;
    }
    load.intervals.push(interval);
    let rate = f64::from(CONNECTIONS) / (cycle / f64::from(REQUESTS) * 1e-6);
    Visit { contender, block, load: Some(load), rate_per_s: Some(rate), ..Visit::default() }
}

fn plan() -> Plan {
    let contender = |name: &str| Contender { name: name.to_owned(), ..Contender::default() };
    Plan {
        contenders: vec![contender("a"), contender("b")],
        cells: vec![Cell::only(Workload::default())],
        seed: 1,
        ..Plan::default()
    }
}

fn visits(of: [Planted; 2], seed: u64) -> Vec<Visit> {
    let mut noise = Noise::new(seed);
    (0..12)
        .flat_map(|block| [0, 1].map(|contender| (block, contender)))
        .map(|(block, contender)| visit(contender, block, of[contender], &mut noise))
        .collect()
}

fn found(of: [Planted; 2], seed: u64, findings: &[Finding]) -> Attribution {
    attribute(&plan(), 0, &visits(of, seed), findings).pop().expect("the two differ clearly")
}

fn part(found: &Attribution, cause: Cause) -> AttributedPart {
    let sum: f64 = found.parts.iter().map(|part| part.share).sum();
    assert!((sum - 1.0).abs() < 1e-9, "shares add up to one: {found:?}");
    let ln: f64 = found.parts.iter().map(|part| part.ln).sum();
    assert!((ln - found.ln).abs() < 1e-9, "{found:?}");
    *found.parts.iter().find(|part| part.cause == cause).expect("the cause has a part")
}

/// Half a millisecond by 1.25 % of requests that stall for 40 ms, and half a millisecond by each.
const MIXED: Planted = Planted { service_us: 1500.0, stalled: 0.0125, ..FAST };

#[test]
fn half_by_stalls_and_half_by_service_time_is_said_so_and_intervals_hold_the_truth() {
    const SEEDS: u64 = 100;
    let mut held = 0;
    for seed in 0..SEEDS {
        let found = found([FAST, MIXED], seed, &[]);
        let stalls = part(&found, Cause::FixedHold);
        assert!((stalls.share - 0.5).abs() < 0.1, "seed {seed}: {found:?}");
        let band = stalls.interval.expect("twelve blocks have an interval");
        held += u32::from(band.low <= 0.5 && 0.5 <= band.high);
        assert!((found.ln - 2f64.ln()).abs() < 0.1, "{found:?}");
    }
    assert!((89..=100).contains(&held), "{held} of {SEEDS} intervals hold the truth");
}

#[test]
fn a_share_follows_its_dose() {
    let half = Planted { stalled: 0.00625, ..MIXED };
    let share = part(&found([FAST, half], 1, &[]), Cause::FixedHold).share;
    assert!((share / (0.25 / 0.75) - 1.0).abs() < 0.2, "{share}");
    let alone = Planted { stalled: 0.0125, ..FAST };
    let share = part(&found([FAST, alone], 1, &[]), Cause::FixedHold).share;
    assert!((share - 1.0).abs() < 0.1, "{share}");
    let none = Planted { service_us: 1500.0, ..FAST };
    let share = part(&found([FAST, none], 1, &[]), Cause::ServiceTime).share;
    assert!((share - 1.0).abs() < 1e-9, "{share}");
}

#[test]
fn a_pair_turned_round_has_the_same_shares() {
    let (one, other) = (found([FAST, MIXED], 3, &[]), found([MIXED, FAST], 3, &[]));
    let [a, b] = [&one, &other].map(|found| part(found, Cause::FixedHold).share);
    assert!((a - b).abs() < 0.05 && one.ln * other.ln < 0.0, "{a} {b}");
}

#[test]
fn a_confirmed_finding_names_the_kind_of_stall() {
    let finding = Finding {
        check: "delayed_ack".to_owned(),
        certainty: Certainty::Confirmed,
        contenders: vec![1],
        ..Finding::default()
    };
    let named = found([FAST, MIXED], 1, std::slice::from_ref(&finding));
    assert!((part(&named, Cause::DelayedAck).share - 0.5).abs() < 0.1, "{named:?}");
    let churn = Finding { check: "process_churn".to_owned(), ..finding.clone() };
    let named = found([FAST, MIXED], 1, &[churn]);
    assert!((part(&named, Cause::ProcessStarts).share - 0.5).abs() < 0.1, "{named:?}");
    let suspected = Finding { certainty: Certainty::Suspected, ..finding };
    let named = found([FAST, MIXED], 1, &[suspected]);
    assert!(part(&named, Cause::FixedHold).share > 0.4);
}

#[test]
fn reconnects_and_failures_have_their_parts() {
    let again = Planted { connect_us: 300, ..FAST };
    let found_one = found([FAST, again], 1, &[]);
    assert!((part(&found_one, Cause::Reconnects).b_ms - 0.3).abs() < 0.01, "{found_one:?}");
    assert!((part(&found_one, Cause::Reconnects).share - 1.0).abs() < 0.1, "{found_one:?}");
    let failing = Planted { failed_us: 600, ..FAST };
    let found_one = found([FAST, failing], 1, &[]);
    assert!((part(&found_one, Cause::Errors).b_ms - 0.3).abs() < 0.01, "{found_one:?}");
}

/// Every 50 ms no reply comes for the second half.
#[test]
fn silences_of_all_connections_are_pauses() {
    let mut visits = visits([FAST, Planted { service_us: 2000.0, ..FAST }], 1);
    for visit in &mut visits {
        let load = visit.load.as_mut().unwrap();
        load.completions.bin = record::Completions::BIN;
        let is_paused = visit.contender == 1;
        let count = |ms: u32| if is_paused && ms % 50 >= 25 { 0 } else { 64 };
        load.completions.counts = (0..1000).map(count).collect();
    }
    let found = attribute(&plan(), 0, &visits, &[]).pop().unwrap();
    let pauses = part(&found, Cause::Pauses);
    assert!((pauses.b_ms - 1.0).abs() < 0.1 && (pauses.share - 1.0).abs() < 0.1, "{found:?}");
}

#[test]
fn an_open_loop_is_divided_by_its_response_time() {
    let mut visits = visits([FAST, FAST], 1);
    for visit in &mut visits {
        let load = visit.load.as_mut().unwrap();
        load.open_loop = Some(record::OpenLoop::default());
        if visit.contender == 1 {
            let mut late = Histogram::new();
            for (span, count) in load.intervals[0].response.buckets() {
                (0..count).for_each(|_| late.record(span + Nanos::from_millis(1)));
            }
            load.intervals[0].response = late;
        }
    }
    let found = attribute(&plan(), 0, &visits, &[]).pop().unwrap();
    assert_eq!(found.of, Attributed::ResponseTime);
    assert!(found.ln < -0.6 && (part(&found, Cause::Waiting).share - 1.0).abs() < 0.1, "{found:?}");
}

#[test]
fn the_queue_for_the_generators_cpu_is_told_apart_where_it_was_busy() {
    let mut visits = visits([FAST, Planted { service_us: 2000.0, ..FAST }], 1);
    for visit in &mut visits {
        let load = visit.load.as_mut().unwrap();
        let busy = Nanos::from_millis(if visit.contender == 0 { 960 } else { 480 });
        load.intervals[0].client_cpu = busy;
        let wall = Nanos::from_secs(1);
        load.client.threads = vec![record::ThreadUse { cpu: busy, wall, pinned_to: Some(0) }];
        load.cpu_us_per_request = Some(15.0);
    }
    let found = attribute(&plan(), 0, &visits, &[]).pop().unwrap();
    let client = part(&found, Cause::ClientLimit);
    assert!(
        (client.a_ms - 0.96).abs() < 0.02 && client.b_ms < 0.05 && client.share < -0.5,
        "{found:?}"
    );
}

#[test]
fn what_may_be_chance_few_blocks_and_other_connections_are_not_divided() {
    let pair = visits([FAST, FAST], 1);
    assert_eq!(attribute(&plan(), 0, &pair, &[]), []);
    let few: Vec<Visit> =
        visits([FAST, MIXED], 1).into_iter().filter(|one| one.block < 3).collect();
    assert_eq!(attribute(&plan(), 0, &few, &[]), []);
    let mut other = visits([FAST, MIXED], 1);
    for visit in other.iter_mut().filter(|visit| visit.contender == 1) {
        visit.load.as_mut().unwrap().connections = 8;
    }
    assert_eq!(attribute(&plan(), 0, &other, &[]), []);
}

#[test]
fn causes_stand_in_their_order() {
    for (at, cause) in CAUSES.into_iter().enumerate() {
        assert_eq!(place(cause), at);
    }
}
