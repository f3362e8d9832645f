//! Tests of the check for stalls of a fixed time: planted in a modelled loop, and in made-up runs.

use record::{RunRecord, Sample};

use super::*;
use crate::simulated::Loop;
use crate::testdata::{self, Phase};

/// A load of some seconds with a given number of its replies held for 200 ms, and counters that did not move.
fn held(share: f64, seed: u64) -> RunRecord {
    let one = Loop { length: Nanos::from_secs(8), stalled: share, ..Loop::clean(20, 10_000.0) };
    counted(Loop::run(&[one], &["a"], 1, seed))
}

fn counted(mut run: RunRecord) -> RunRecord {
    for visit in &mut run.visits {
        let load = visit.load.as_mut().unwrap();
        load.latencies.first_byte = load.latencies.service.clone();
        testdata::count(visit, &[]);
    }
    run
}

#[test]
fn the_share_is_the_dose() {
    let mut shares = Vec::new();
    for (seed, dose) in [(1, 0.0025), (2, 0.005), (3, 0.01), (4, 0.05)] {
        let seen = look(&Evidence::of(&held(dose, seed)));
        assert_eq!(seen.len(), 1, "{dose}");
        assert_eq!(seen[0].certainty, Certainty::Confirmed, "{seen:?}");
        let share = seen[0].share.unwrap();
        assert!((share / dose - 1.0).abs() < 0.2, "{dose}: {seen:?}");
        shares.push(share);
    }
    let said = look(&Evidence::of(&held(0.01, 3)))[0].evidence.clone();
    assert!(
        said.contains("they waited before the first byte; TCP sent 0 segments again"),
        "{said}"
    );
    assert!(
        (shares[1] / shares[2] - 0.5).abs() < 0.1,
        "half the dose is half the share: {shares:?}"
    );
}

#[test]
fn visits_of_half_a_second_show_it_too() {
    let stalled = Loop { stalled: 0.01, ..Loop::clean(64, 20_000.0) };
    let run = counted(Loop::run(&[Loop::clean(64, 20_000.0), stalled], &["a", "b"], 12, 5));
    let seen = look(&Evidence::of(&run));
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].certainty, &seen[0].contenders[..]), (Certainty::Confirmed, &[1][..]));
}

#[test]
fn clean_loops_pauses_and_batches_are_silent() {
    let clean = |rate| Loop { hiccups_per_s: 20.0, ..Loop::clean(64, rate) };
    let (half, tenth) = (Nanos::from_millis(300), Nanos::from_millis(100));
    let loops = [
        clean(2_000.0),
        clean(20_000.0),
        clean(60_000.0),
        Loop { pause: (half, tenth), ..clean(20_000.0) },
        Loop { batch: Nanos::from_millis(50), ..clean(20_000.0) },
        Loop { delay: Nanos::from_millis(42), ..clean(20_000.0) },
    ];
    let names = ["a", "b", "c", "pauses", "batches", "delays"];
    for seed in 0..3 {
        let run = counted(Loop::run(&loops, &names, 8, seed));
        assert_eq!(look(&Evidence::of(&run)), [], "{seed}");
    }
}

/// In each visit of b a given number of requests stall for a given time.
fn planted(stalled: u64, millis: u64, phase: Phase, counters: &[(&str, i64)]) -> RunRecord {
    let mut run = testdata::run(&["a", "b"], 8);
    for visit in run.visits.iter_mut().filter(|visit| visit.contender == 1) {
        let load = visit.load.as_mut().unwrap();
        testdata::stall(load, stalled, millis, phase);
        load.completions.bin = Nanos::from_millis(1);
        load.completions.counts = vec![20; 900];
        testdata::count(visit, counters);
    }
    run
}

#[test]
fn stalls_of_any_length_are_seen_and_those_that_tcp_explains_are_silent() {
    for millis in [40, 100, 200, 777] {
        let seen = look(&Evidence::of(&planted(9, millis, Phase::FirstByte, &[])));
        assert_eq!(seen.len(), 1, "{millis} ms");
        assert_eq!(seen[0].certainty, Certainty::Confirmed, "{seen:?}");
    }
    let again = [("server.Tcp.RetransSegs", 2)];
    assert_eq!(look(&Evidence::of(&planted(9, 200, Phase::FirstByte, &again))), []);
    let acks = [("client.TcpExt.DelayedACKs", 9)];
    assert_eq!(look(&Evidence::of(&planted(9, 40, Phase::Body, &acks))), []);
    let seen = look(&Evidence::of(&planted(9, 200, Phase::Body, &[])));
    assert!(seen[0].evidence.contains("they waited behind the first byte"), "{seen:?}");
}

#[test]
fn what_nobody_counted_is_a_suspicion() {
    let mut run = planted(9, 200, Phase::FirstByte, &[]);
    run.visits.iter_mut().for_each(|visit| visit.surroundings = None);
    let seen = look(&Evidence::of(&run));
    assert_eq!(seen[0].certainty, Certainty::Suspected);
    assert!(seen[0].evidence.contains("is not known"), "{seen:?}");
    // A quota stops requests for up to 100 ms.
    let throttled = [("quota.throttled", 3)];
    let seen = look(&Evidence::of(&planted(9, 100, Phase::FirstByte, &throttled)));
    assert_eq!(seen[0].certainty, Certainty::Suspected);
}

#[test]
fn busy_cpus_and_replies_whose_instants_nobody_kept_are_silent() {
    let mut run = planted(9, 200, Phase::FirstByte, &[]);
    for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
        load.completions = Default::default();
    }
    assert_eq!(look(&Evidence::of(&run)), []);
    // A wide tail beside the mode, and no idle time: a scheduler may have made either.
    let mut busy = planted(9, 60, Phase::FirstByte, &[]);
    testdata::limit(&mut busy, 1, 0.5, 0.98);
    for visit in busy.visits.iter_mut().filter(|visit| visit.contender == 1) {
        let load = visit.load.as_mut().unwrap();
        (4..40).for_each(|n| testdata::stall(load, 1, n, Phase::FirstByte));
    }
    assert_eq!(look(&Evidence::of(&busy)), []);
}

#[test]
fn one_connection_is_a_suspicion_on_idle_cpus_alone() {
    let mut run = planted(9, 200, Phase::FirstByte, &[]);
    run.visits
        .iter_mut()
        .filter_map(|visit| visit.load.as_mut())
        .for_each(|load| load.connections = 1);
    assert_eq!(look(&Evidence::of(&run)), [], "the server was busy for 98 % of the time");
    testdata::limit(&mut run, 1, 0.1, 0.1);
    assert_eq!(look(&Evidence::of(&run))[0].certainty, Certainty::Suspected);
}

#[test]
fn a_cold_start_is_silent() {
    let mut run = planted(0, 0, Phase::FirstByte, &[]);
    let visit = run.visits.iter_mut().find(|visit| visit.contender == 1).unwrap();
    let load = visit.load.as_mut().unwrap();
    for n in 0..64 {
        let span = Nanos::from_micros(120_000 + 10 * n);
        load.latencies.service.record(span);
        load.intervals[0].service.record(span);
    }
    assert_eq!(look(&Evidence::of(&run)), []);
}

#[test]
fn several_kinds_of_requests_and_shares_out_of_bounds_are_silent() {
    let mut run = planted(9, 200, Phase::FirstByte, &[]);
    for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
        load.plan.n_requests = 2;
    }
    assert_eq!(look(&Evidence::of(&run)), []);
    assert_eq!(look(&Evidence::of(&planted(400, 200, Phase::FirstByte, &[]))), [], "31 %");
}

/// A request of a connection that took a given time.
fn sample(conn: u32, sent_ms: u64, took_ms: u64) -> Sample {
    let (sent, done) = (Nanos::from_millis(sent_ms), Nanos::from_millis(sent_ms + took_ms));
    testdata::sample(conn, sent, done)
}

#[test]
fn stalls_that_are_bound_to_connections_and_those_of_all_at_once_are_silent() {
    let logged = |stalled_conn: fn(u64) -> u32, silent: bool| {
        let mut run = planted(9, 200, Phase::FirstByte, &[]);
        for load in run.visits.iter_mut().filter_map(|visit| visit.load.as_mut()) {
            load.raw = (0..200).map(|n| sample((n % 20) as u32 + 1, 4 * n, 1)).collect();
            load.raw.extend((0..8).map(|n| sample(stalled_conn(n), 80 * n, 201)));
            if silent {
                load.completions.counts.iter_mut().for_each(|count| *count = 0);
            }
        }
        look(&Evidence::of(&run))
    };
    let others: fn(u64) -> u32 = |n| n as u32 + 1;
    assert_eq!(logged(others, false).len(), 1);
    assert_eq!(logged(|_| 99, false), [], "one connection has all stalls, and nothing else");
    assert_eq!(logged(others, true), [], "nothing was answered meanwhile");
}
