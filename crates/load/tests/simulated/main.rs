//! The real workers in virtual time: what they measure has a known answer. Owns the facts about
//! latencies, outcomes and accounting; must not touch a socket. Start reading at the first test.

mod bodies;
mod carriers;
mod common;
mod ends;
mod faults;
mod merged;
mod open_loop;
mod retries;
mod search;
mod seeds;
mod shares;
mod users;

use std::sync::atomic::{AtomicBool, Ordering};

use joust_load::Control;
use joust_load::sim::{self, Act, Connecting, Script, Stall};
use record::Outcome;
use sys::driver::Failure;
use units::{Bytes, Nanos};

use common::{MS, check, ms, near, plan, run};

#[test]
fn a_known_delay_is_every_latency_exactly() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.threads, o.draft.stop.requests) = (7, 2, Some(7000))
    });
    let script = Script { connect: ms(3), ..Script::new(ms(20)) };
    let record = run(&plan, &script);
    assert_eq!(record.requests.ok, 7000);
    for sample in &record.raw {
        assert_eq!(sample.done - sample.sent, ms(20));
        assert_eq!(sample.first_byte - sample.sent, ms(20));
        let connects = sample.due == Nanos::ZERO;
        assert_eq!(sample.done - sample.due, if connects { ms(23) } else { ms(20) });
    }
    let latencies = &record.latencies;
    for histogram in [&latencies.service, &latencies.first_byte] {
        for q in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
            assert!(near(Some(histogram.quantile_unchecked(q)), ms(20)), "{q}");
        }
        assert!(near(histogram.mean(), ms(20)));
    }
    assert!(near(latencies.response.max(), ms(23)));
    assert!(near(latencies.connect.mean(), ms(3)));
    assert_eq!(latencies.connect.count(), 7);
    // 1000 replies one after the other on each connection: 3 ms + 1000 * 20 ms.
    assert_eq!(record.seconds, 20.003);
    assert!((record.rate_per_s - 7000.0 / 20.003).abs() < 1e-9);
}

/// The oracle: each connection on its own, worked out by hand.
fn stalled_latencies(n_conns: u64, delay: Nanos, stall: Stall, duration: Nanos) -> Vec<Nanos> {
    let mut latencies = Vec::new();
    for _ in 0..n_conns {
        let mut sent = Nanos::ZERO;
        while sent < duration {
            let mut leaves = sent + delay;
            if leaves >= stall.at && leaves < stall.at + stall.length {
                leaves = stall.at + stall.length;
            }
            latencies.push(leaves - sent);
            sent = leaves;
        }
    }
    latencies.sort_unstable();
    latencies
}

#[test]
fn a_stall_of_one_second_is_in_the_maximum_and_in_p999_as_theory_says() {
    // 50 requests meet the stall. Of the 9 s beside it 50 connections make 50 * 9 s / delay requests:
    // at 10 ms they are 45 050, 0.11 % of which are stalled (p99.9 is the stall); at 5 ms 90 050,
    // 0.056 % (p99.9 is the delay).
    let stall = Stall { at: Nanos(3_000_500_000), length: Nanos::from_secs(1) };
    for (delay, in_p999) in [(ms(10), true), (ms(5), false)] {
        let duration = Nanos::from_secs(10);
        let plan = plan(|o| (o.draft.connections, o.draft.stop.duration) = (50, Some(duration)));
        let script = Script { stall: Some(stall), ..Script::new(delay) };
        let record = run(&plan, &script);
        let expected = stalled_latencies(50, delay, stall, duration);
        let service = &record.latencies.service;
        assert_eq!(service.count(), expected.len() as u64);
        for q in [0.5, 0.99, 0.999, 1.0] {
            let rank = (q * expected.len() as f64).ceil() as usize - 1;
            assert!(near(Some(service.quantile_unchecked(q)), expected[rank]), "{delay} {q}");
        }
        let mean = expected.iter().map(|l| l.0).sum::<u64>() / expected.len() as u64;
        assert!(near(service.mean(), Nanos(mean)));
        assert_eq!(service.quantile(0.999).unwrap() > ms(900), in_p999);
        let mut measured: Vec<Nanos> = record.raw.iter().map(|s| s.done - s.sent).collect();
        measured.sort_unstable();
        assert_eq!(measured, expected, "to the nanosecond");
    }
}

#[test]
fn every_act_of_a_server_has_its_outcome() {
    let slow = Act::Dribble { bytes: 1, gap: ms(100) };
    let cases = [
        (Act::Reply, Outcome::Ok),
        (Act::Dribble { bytes: 1, gap: Nanos(10) }, Outcome::Ok),
        (Act::Dribble { bytes: 7, gap: Nanos::ZERO }, Outcome::Ok),
        (slow, Outcome::TimeoutReading),
        (Act::ReplyThenClose(Nanos::ZERO), Outcome::Ok),
        (Act::ReplySayingClose, Outcome::Ok),
        (Act::Interim, Outcome::Ok),
        (Act::Chunked, Outcome::Ok),
        (Act::UntilClose, Outcome::Ok),
        (Act::Status(302), Outcome::Ok),
        (Act::Status(404), Outcome::UnexpectedStatus),
        (Act::Status(503), Outcome::UnexpectedStatus),
        (Act::Longer, Outcome::WrongLength),
        (Act::Surplus, Outcome::Protocol),
        (Act::Garbage, Outcome::Protocol),
        (Act::Reset(0), Outcome::ResetBeforeFirstByte),
        (Act::Close(0), Outcome::ClosedBeforeFirstByte),
        (Act::Reset(10), Outcome::ResetAfterFirstByte),
        (Act::Close(10), Outcome::ClosedAfterFirstByte),
        (Act::Close(60), Outcome::ClosedAfterFirstByte),
        (Act::Stop(0), Outcome::TimeoutWaiting),
        (Act::Stop(10), Outcome::TimeoutReading),
        (Act::Stop(60), Outcome::TimeoutReading),
    ];
    for (act, expected) in cases {
        for keep_alive in [true, false] {
            let mut plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (3, Some(20)));
            plan.verify.length = Some(Bytes(100));
            plan.keep_alive = keep_alive;
            let record = run(&plan, &Script { acts: vec![(act, 1)], ..Script::new(ms(5)) });
            let outcomes: Vec<Outcome> = record.raw.iter().map(|sample| sample.outcome).collect();
            assert_eq!(outcomes, vec![expected; 20], "{act:?}, keep-alive {keep_alive}");
            let once = keep_alive && matches!(act, Act::Reply | Act::Interim | Act::Chunked);
            assert!(record.connects == if once { 3 } else { 20 } || keep_alive, "{act:?}");
        }
    }
}

#[test]
fn every_end_of_connecting_has_its_outcome() {
    let cases = [
        (Connecting::Fails(Failure::Refused), Outcome::ConnectRefused),
        (Connecting::Fails(Failure::Reset), Outcome::ConnectFailed),
        (Connecting::Fails(Failure::Other(101)), Outcome::ConnectFailed),
        (Connecting::Fails(Failure::TimedOut), Outcome::ConnectTimeout),
        (Connecting::Never, Outcome::ConnectTimeout),
        (Connecting::FailsAtOnce(Failure::FdExhausted), Outcome::FdExhausted),
        (Connecting::FailsAtOnce(Failure::PortExhausted), Outcome::PortExhausted),
        (Connecting::FailsAtOnce(Failure::Refused), Outcome::ConnectRefused),
    ];
    for (connecting, expected) in cases {
        let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (3, Some(20)));
        let record = run(&plan, &Script { connects: vec![(connecting, 1)], ..Script::new(MS) });
        let outcomes: Vec<Outcome> = record.raw.iter().map(|sample| sample.outcome).collect();
        assert_eq!(outcomes, vec![expected; 20], "{connecting:?}");
        assert_eq!(record.connects, 0);
        assert_eq!(record.rate_per_s, 0.0);
        assert_eq!(record.latencies.failed.count(), 0, "nothing was sent");
    }
}

#[test]
fn each_phase_has_the_whole_timeout() {
    let timeout = ms(100);
    let cases = [(Act::Stop(0), ms(5) + timeout), (Act::Stop(9), ms(5 + 20) + timeout)];
    for (act, expected) in cases {
        let mut plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (1, Some(1)));
        plan.timeout = timeout;
        let script = Script { connect: ms(5), acts: vec![(act, 1)], ..Script::new(ms(20)) };
        let record = run(&plan, &script);
        assert_eq!(record.raw[0].done, expected, "{act:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_asked_less_and_less_often() {
    let plan =
        plan(|o| (o.draft.connections, o.draft.stop.duration) = (4, Some(Nanos::from_secs(1))));
    let connects = vec![(Connecting::FailsAtOnce(Failure::Refused), 1)];
    let record = run(&plan, &Script { connects, ..Script::new(MS) });
    // At 0, 1, 3, 7, 15, 31, 63, 127 ms, and then each 100 ms until 927 ms.
    assert_eq!(record.errors.connect_refused, 4 * 16);
}

#[test]
fn a_server_that_comes_up_later_is_found() {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (2, Some(100)));
    let connects = vec![(Connecting::Fails(Failure::Refused), 3), (Connecting::Well, 1)];
    let record = run(&plan, &Script { connects, ..Script::new(MS) });
    assert!(record.requests.ok > 50 && record.errors.connect_refused > 0, "{:?}", record.requests);
}

#[test]
fn a_close_that_came_with_the_reply_is_nobodys_failure() {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (5, Some(1000)));
    let acts = vec![(Act::ReplyThenClose(Nanos::ZERO), 1), (Act::Reply, 1)];
    let record = run(&plan, &Script { acts, ..Script::new(MS) });
    assert_eq!(record.requests.ok, 1000);
    assert!(record.connects > 400);
}

#[test]
fn replies_after_the_window_are_drained_and_later_ones_unanswered() {
    let cases = [(ms(300), 5, 5, 0), (ms(700), 0, 5, 0), (ms(2000), 0, 0, 5)];
    for (delay, ok_in_window, drained, unanswered) in cases {
        let mut plan = plan(|o| (o.draft.connections, o.draft.stop.duration) = (5, Some(ms(500))));
        plan.drain = Nanos::from_secs(1);
        let record = run(&plan, &Script::new(delay));
        assert_eq!(record.seconds, 0.5);
        assert_eq!(record.rate_per_s, f64::from(ok_in_window) / 0.5, "{delay}");
        assert_eq!((record.requests.drained, record.requests.unanswered), (drained, unanswered));
    }
}

#[test]
fn requests_and_duration_end_the_load_whichever_is_first() {
    let ends = |requests, duration| {
        let plan = plan(|o| {
            (o.draft.connections, o.draft.stop.requests, o.draft.stop.duration) =
                (1, Some(requests), Some(ms(duration)));
        });
        let record = run(&plan, &Script::new(ms(10)));
        (record.requests.started, record.seconds)
    };
    assert_eq!(ends(10, 1000), (10, 0.1));
    assert_eq!(ends(1000, 95), (10, 0.095));
}

#[test]
fn exactly_as_many_requests_are_started_as_planned() {
    for (connections, threads, requests) in [(1, 1, 1), (3, 2, 100), (10, 4, 7), (64, 5, 12_345)] {
        let plan = plan(|o| {
            (o.draft.connections, o.draft.threads, o.draft.stop.requests) =
                (connections, threads, Some(requests));
        });
        let record = run(&plan, &Script::new(MS));
        assert_eq!(record.requests.started, requests);
        assert_eq!(record.requests.ok, requests);
        assert_eq!(record.client.threads.len(), threads as usize);
    }
}

#[test]
fn without_keep_alive_each_request_has_its_connection() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests, o.draft.keep_alive) = (4, Some(100), false)
    });
    let record = run(&plan, &Script { connect: ms(2), ..Script::new(ms(3)) });
    assert_eq!((record.requests.ok, record.connects), (100, 100));
    assert!(record.raw.iter().all(|s| s.done - s.due == ms(5) && s.done - s.sent == ms(3)));
}

#[test]
fn a_head_request_expects_no_body() {
    let mut plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (2, Some(10)));
    plan.requests[0].method = "HEAD".to_owned();
    plan.verify.length = Some(Bytes(100));
    let record = run(&plan, &Script { body_bytes: 0, ..Script::new(MS) });
    assert_eq!((record.requests.ok, record.bytes.body), (10, 0));
}

#[test]
fn the_generators_own_delay_is_in_the_lag_and_in_response_but_not_in_service() {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (10, Some(1000)));
    let script = Script { client: Nanos::from_micros(100), ..Script::new(ms(10)) };
    let record = run(&plan, &script);
    assert!(record.client.lag_max >= Nanos::from_micros(100));
    assert!(record.client.lag_max <= ms(1));
    for sample in &record.raw {
        assert!(sample.done - sample.sent >= ms(10), "no latency is measured too short");
        assert!(sample.done - sample.sent <= ms(10) + record.client.lag_max);
    }
}

#[test]
fn with_the_kernels_stamps_the_generators_own_delay_is_in_no_service_time() {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (10, Some(1000)));
    let client = Nanos::from_micros(100);
    let record = run(&plan, &Script { client, stamps: true, ..Script::new(ms(10)) });
    assert!(record.raw.iter().all(|sample| sample.done - sample.sent == ms(10)));
    assert!(record.client.lag_max >= client);
}

#[test]
fn an_interrupted_load_keeps_what_it_has() {
    let interrupt = AtomicBool::new(false);
    let seen = AtomicBool::new(false);
    let watch = |interval: &record::Interval| {
        seen.store(interval.ok > 0, Ordering::Relaxed);
        interrupt.store(true, Ordering::Relaxed);
    };
    let plan =
        plan(|o| (o.draft.connections, o.draft.stop.duration) = (4, Some(Nanos::from_secs(3600))));
    let control = Control::new(&interrupt).watching(&watch);
    let record = sim::run(&plan, &control, &Script::new(MS)).unwrap();
    check(&record);
    assert!(record.interrupted && seen.load(Ordering::Relaxed));
    assert!(record.requests.ok > 0 && record.seconds <= 3600.0);
}

#[test]
fn a_long_load_has_a_bounded_number_of_intervals() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.duration) = (2, Some(Nanos::from_secs(300)));
        o.draft.raw_max = 100;
    });
    let record = run(&plan, &Script::new(ms(50)));
    assert_eq!(record.intervals.len(), 751);
    assert!(record.intervals[..750].iter().all(|interval| interval.length == ms(400)));
    assert!(record.raw.len() <= 100 && record.raw_stride == 128);
}

#[test]
fn the_same_seed_makes_the_same_record_byte_for_byte() {
    let json = |seed: u64, threads: u32| {
        let plan = plan(|o| {
            (o.draft.connections, o.draft.threads, o.draft.stop.requests, o.draft.seed) =
                (12, threads, Some(3000), seed);
        });
        let acts = vec![(Act::Reply, 90), (Act::Reset(5), 5), (Act::Stop(0), 1)];
        let script = Script { acts, seed, ..Script::new(ms(2)) };
        serde_json::to_string(&run(&plan, &script)).unwrap()
    };
    for threads in [1, 3] {
        assert_eq!(json(7, threads), json(7, threads));
        assert_ne!(json(7, threads), json(8, threads));
    }
}

#[test]
fn a_thread_that_cannot_begin_ends_the_load() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.threads, o.draft.stop.requests) = (4, 4, Some(1_000_000))
    });
    let interrupt = AtomicBool::new(false);
    let control = Control::new(&interrupt);
    let make = |thread, n_slots| match thread {
        2 => Err(std::io::Error::from_raw_os_error(24)),
        _ => Ok(sim::SimDriver::new(&Script::new(MS), thread, n_slots)),
    };
    let error = joust_load::run_on(&plan, &control, make).unwrap_err();
    assert!(error.to_string().contains("ulimit -n"), "{error}");
}

#[test]
fn a_thread_that_panics_does_not_leave_the_others_waiting() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.threads, o.draft.stop.requests) = (4, 4, Some(1_000_000))
    });
    let interrupt = AtomicBool::new(false);
    let make = |thread, n_slots| {
        assert!(thread != 2, "planted");
        Ok(sim::SimDriver::new(&Script::new(MS), thread, n_slots))
    };
    let load = || joust_load::run_on(&plan, &Control::new(&interrupt), make).map(|_| ());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).is_err());
}
