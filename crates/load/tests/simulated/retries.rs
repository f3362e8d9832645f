//! Requests that met the close of a kept connection and are sent once more: which are, how often, and what
//! is measured of them (RFC 9112, 9.3.1 and 9.3.2).

use joust_load::LoadOptions;
use joust_load::sim::{Act, Connecting, Script};
use record::{AtEnd, Carrier, LoadRecord, Outcome, Pacing};
use sys::driver::Failure;
use units::{Nanos, PerSecond};

use super::common::{MS, ms, near, plan, run};

fn of(acts: Vec<(Act, u32)>, change: impl FnOnce(&mut LoadOptions)) -> LoadRecord {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests) = (1, Some(10));
        change(o);
    });
    run(&plan, &Script { acts, connect: ms(2), ..Script::new(ms(5)) })
}

/// The server closes after each reply: as the next request is under way, or when it comes.
#[test]
fn a_close_that_crosses_with_the_next_request_fails_nobody() {
    for act in [Act::ReplyThenClose(MS), Act::HalfClose(MS), Act::CloseOnNext] {
        let record = of(vec![(act, 1)], |_| ());
        assert_eq!((record.requests.ok, record.requests.failed), (10, 0), "{act:?}");
        assert_eq!((record.requests.started, record.requests.retried), (10, 9), "{act:?}");
        assert_eq!(record.connects, 10, "{act:?}");
    }
}

/// The client knows before it sends: there is nothing to send again.
#[test]
fn a_close_that_is_seen_before_the_next_request_is_no_retry() {
    let record = of(vec![(Act::ReplyThenClose(Nanos::ZERO), 1)], |_| ());
    assert_eq!((record.requests.ok, record.requests.retried, record.connects), (10, 0, 10));
    assert!(record.raw[1..].iter().all(|sample| sample.carrier == Carrier::Replacing));
}

#[test]
fn the_latency_of_a_retried_request_counts_from_the_first_try() {
    let record = of(vec![(Act::ReplyThenClose(MS), 1)], |_| ());
    let [first, second, ..] = record.raw[..] else { panic!("ten") };
    assert_eq!((first.carrier, first.done - first.sent), (Carrier::Fresh, ms(5)));
    // Closed a millisecond after it was sent; then two to connect, and five to be answered.
    assert_eq!((second.carrier, second.sent), (Carrier::Retried, first.done));
    assert_eq!(second.done - second.sent, ms(1 + 2 + 5));
    assert!(near(record.latencies.service.max(), ms(8)));
}

#[test]
fn a_plan_without_retries_loses_the_request_that_met_the_close() {
    let cases = [
        (Act::ReplyThenClose(MS), Outcome::ClosedBeforeFirstByte, AtEnd::Closed),
        (Act::CloseOnNext, Outcome::ClosedBeforeFirstByte, AtEnd::Closed),
    ];
    for (act, outcome, at_end) in cases {
        let record = of(vec![(act, 1)], |o| o.draft.retry = false);
        let outcomes: Vec<Outcome> = record.raw.iter().map(|sample| sample.outcome).collect();
        assert_eq!(outcomes, [Outcome::Ok, outcome].repeat(5), "{act:?}");
        assert_eq!(record.raw[1].at_end, at_end);
    }
}

#[test]
fn a_second_end_is_a_failure_and_so_is_one_of_a_connection_that_never_served() {
    for act in [Act::Close(0), Act::Reset(0)] {
        let record = of(vec![(act, 1)], |_| ());
        assert_eq!((record.requests.failed, record.requests.retried), (10, 0), "{act:?}");
    }
    // A reply, and then three connections in a row that are reset: the retry fails at the first of them.
    let acts = vec![(Act::CloseOnNext, 1), (Act::Reset(0), 3)];
    let record = of(acts, |o| o.draft.stop.requests = Some(1000));
    assert!(record.requests.retried > 100 && record.errors.reset_before_first_byte > 300);
    let retried = record.raw.iter().filter(|sample| sample.carrier == Carrier::Retried);
    assert!(retried.clone().any(|sample| sample.outcome == Outcome::ResetBeforeFirstByte));
    assert!(retried.clone().any(|sample| sample.outcome == Outcome::Ok));
}

#[test]
fn only_idempotent_requests_are_sent_twice() {
    let cases = [("GET", true), ("HEAD", true), ("OPTIONS", true), ("PUT", true), ("DELETE", true)];
    let never = [("POST", false), ("PATCH", false), ("get", false), ("PURGE", false)];
    for (method, is_sent_twice) in cases.into_iter().chain(never) {
        let record = of(vec![(Act::CloseOnNext, 1)], |o| o.method = method.to_owned());
        let expected = if is_sent_twice { (10, 9) } else { (5, 0) };
        assert_eq!((record.requests.ok, record.requests.retried), expected, "{method}");
    }
}

/// Part of a reply may be of a request that was carried out.
#[test]
fn a_reply_that_has_begun_is_not_asked_for_again() {
    let record =
        of(vec![(Act::Reply, 1), (Act::Close(9), 1)], |o| o.draft.stop.requests = Some(200));
    assert_eq!(record.requests.retried, 0);
    assert!(record.errors.closed_after_first_byte > 50);
}

#[test]
fn of_a_pipeline_that_is_cut_the_unanswered_go_once_more_one_at_a_time() {
    let record = of(vec![(Act::HalfClose(Nanos::ZERO), 1)], |o| {
        (o.draft.pipeline, o.draft.stop.requests) = (5, Some(10));
    });
    // Each connection answers one and is closed with it: none of the others is lost a second time.
    assert_eq!((record.requests.ok, record.requests.failed), (10, 0), "{:?}", record.errors);
    assert!(record.requests.retried >= 4, "{:?}", record.requests);
    // One that is closed a moment later loses the second of a pipeline, and then loses it again.
    let record = of(vec![(Act::CloseOnNext, 1)], |o| {
        (o.draft.pipeline, o.draft.stop.requests) = (2, Some(200))
    });
    let lost = record.errors.closed_before_first_byte;
    assert_eq!(record.requests.ok + lost, 200);
    assert!(lost > 0 && record.requests.retried >= 2 * lost, "{:?}", record.requests);
}

#[test]
fn an_open_loop_sends_once_more_and_keeps_its_instants() {
    let record = of(vec![(Act::ReplyThenClose(ms(7)), 1)], |o| {
        (o.draft.stop.requests, o.draft.connections) = (Some(100), 1);
        o.draft.pacing = Pacing::Constant { rate: PerSecond(100.0) };
    });
    assert_eq!((record.requests.ok, record.requests.failed), (100, 0), "{:?}", record.errors);
    assert!(record.requests.retried > 10, "{:?}", record.requests);
    assert!(record.raw.windows(2).all(|pair| pair[1].due - pair[0].due == ms(10)));
}

#[test]
fn a_retry_that_finds_no_server_is_the_failure_of_connecting() {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (1, Some(200)));
    let connects = vec![(Connecting::Well, 1), (Connecting::Fails(Failure::Refused), 1)];
    let acts = vec![(Act::CloseOnNext, 1)];
    let record = run(&plan, &Script { acts, connects, ..Script::new(MS) });
    let retried = record.raw.iter().filter(|sample| sample.carrier == Carrier::Retried);
    assert!(retried.clone().any(|sample| sample.outcome == Outcome::ConnectRefused));
    assert_eq!(record.requests.ok + record.errors.connect_refused, 200);
}
