//! Faults of servers one by one: what each makes of the request that meets it, and of those around it.
//! Owns the facts about outcomes on a connection that goes on; must not touch a socket.
//! Start reading at the first test.

use joust_load::LoadOptions;
use joust_load::sim::{Act, Script};
use record::{LoadPlan, Outcome};
use units::{Bytes, Nanos};

use crate::common::{MS, ms, plan, run};

/// Requests for bodies of those lengths in turn, each known beforehand.
fn with_bodies(plan: &mut LoadPlan, lengths: &[usize]) {
    let request = plan.requests[0].clone();
    plan.requests = lengths
        .iter()
        .map(|n_bytes| {
            let mut request = request.clone();
            request.target = format!("/{n_bytes}");
            let expected =
                record::ExpectedBody { length: Bytes(*n_bytes as u64), sha256: String::new() };
            request.expected = Some(expected);
            request
        })
        .collect();
    plan.verify.bodies = record::Bodies::Length;
}

fn outcomes(plan: &LoadPlan, acts: Vec<(Act, u32)>) -> Vec<Outcome> {
    let record = run(plan, &Script { acts, ..Script::new(MS) });
    record.raw.iter().map(|sample| sample.outcome).collect()
}

#[test]
fn a_request_that_is_never_answered_has_no_byte_of_the_reply_before_it() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests, o.draft.timeout) = (1, Some(200), ms(20))
    });
    let acts = vec![(Act::Reply, 1), (Act::Stop(0), 1)];
    let record = run(&plan, &Script { acts, ..Script::new(MS) });
    let unanswered = record.raw.iter().filter(|s| s.outcome == Outcome::TimeoutWaiting);
    assert!(unanswered.clone().count() > 50);
    assert!(unanswered.into_iter().all(|s| s.bytes_read == 0 && s.first_byte == Nanos::ZERO));
    assert_eq!(record.bytes.body, record.requests.ok * 100);
}

#[test]
fn replies_whose_heads_end_lines_in_lf_alone_succeed_and_are_counted() {
    for pipeline in [1, 4] {
        let plan = plan(|o| {
            (o.draft.connections, o.draft.stop.requests, o.draft.pipeline) =
                (3, Some(400), pipeline)
        });
        let acts = vec![(Act::Reply, 3), (Act::BareLf, 1)];
        let record = run(&plan, &Script { acts, ..Script::new(MS) });
        assert_eq!((record.requests.ok, record.requests.failed), (400, 0));
        let counted = record.bare_lf_replies;
        assert!(counted > 50 && counted < 150, "a quarter of 400, by chance: {counted}");
    }
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (3, Some(100)));
    let record = run(&plan, &Script::new(MS));
    assert_eq!((record.requests.ok, record.bare_lf_replies), (100, 0));
}

/// Where a chunk begins must not be open to two readings.
#[test]
fn a_chunk_size_that_ends_in_lf_alone_is_no_http() {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (1, Some(10)));
    let acts = vec![(Act::ChunkedBareLf, 1)];
    assert_eq!(outcomes(&plan, acts), [Outcome::Protocol; 10]);
}

#[test]
fn a_request_that_is_sent_late_in_a_batch_does_not_end_before_it_was_sent() {
    let plan = plan(|o: &mut LoadOptions| {
        (o.draft.connections, o.draft.stop.requests, o.draft.pipeline) = (8, Some(4000), 4);
        o.draft.retry = false;
    });
    let acts = vec![(Act::Reply, 9), (Act::Reset(0), 1)];
    let client = Nanos::from_micros(50);
    // That is among what `run` checks of every sample.
    let record = run(&plan, &Script { acts, client, ..Script::new(MS) });
    assert!(record.errors.reset_before_first_byte > 100);
}

#[test]
fn pipelined_replies_each_belong_to_their_request() {
    let mut plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests, o.draft.pipeline, o.draft.retry) =
            (3, Some(3000), 7, false);
    });
    with_bodies(&mut plan, &[0, 10, 200, 3000, 40_000]);
    let acts = vec![
        (Act::Reply, 5),
        (Act::Dribble { bytes: 700, gap: Nanos(900) }, 2),
        (Act::Pause { bytes: 1, gap: ms(3) }, 1),
        (Act::Chunked, 2),
        (Act::Interim, 1),
        (Act::HalfClose(Nanos::ZERO), 1),
        (Act::SayCloseGoOn, 1),
    ];
    let all = outcomes(&plan, acts);
    let n_ok = all.iter().filter(|outcome| **outcome == Outcome::Ok).count();
    let n_lost = all.iter().filter(|outcome| **outcome == Outcome::ClosedBeforeFirstByte).count();
    // Only those behind a close that the reply before it did not announce are lost.
    assert_eq!(n_ok + n_lost, 3000);
    assert!(n_ok > 1500 && n_lost > 0, "{n_ok} {n_lost}");
}

#[test]
fn requests_behind_a_reply_that_says_close_go_on_the_next_connection() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests, o.draft.pipeline) = (2, Some(1000), 8)
    });
    for act in [Act::ReplySayingClose, Act::SayCloseGoOn, Act::UntilClose] {
        assert_eq!(outcomes(&plan, vec![(act, 1)]), vec![Outcome::Ok; 1000], "{act:?}");
    }
}

#[test]
fn garbage_amid_pipelined_replies_fails_its_request_and_loses_those_behind() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests, o.draft.pipeline) = (1, Some(400), 4)
    });
    let all = outcomes(&plan, vec![(Act::Reply, 3), (Act::Garbage, 1)]);
    let count = |wanted| all.iter().filter(|outcome| **outcome == wanted).count();
    let (ok, protocol) = (count(Outcome::Ok), count(Outcome::Protocol));
    let behind = count(Outcome::ResetBeforeFirstByte);
    assert_eq!(ok + protocol + behind, 400);
    assert!(ok > 50 && protocol > 30 && behind > protocol, "{ok} {protocol} {behind}");
}

#[test]
fn bytes_that_are_no_http_were_read_all_the_same() {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (1, Some(3)));
    let head = "HTTP/1.1 200 Any\r\nContent-Length: 100\r\n\r\n".len() as u64;
    for (act, expected) in [(Act::Garbage, 30), (Act::Surplus, head + 101)] {
        let record = run(&plan, &Script { acts: vec![(act, 1)], ..Script::new(MS) });
        assert_eq!((record.errors.protocol, record.bytes.read), (3, 3 * expected), "{act:?}");
    }
}

#[test]
fn a_reply_that_is_shorter_than_it_says_swallows_the_next() {
    let mut plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests, o.draft.timeout) = (1, Some(2), ms(50))
    });
    with_bodies(&mut plan, &[10, 11]);
    // Alone it is awaited in vain.
    assert_eq!(outcomes(&plan, vec![(Act::Short, 1)]), vec![Outcome::TimeoutReading; 2]);
    // With another behind it, the first byte of that one ends it; the rest is no HTTP.
    plan.pipeline = 2;
    let all = outcomes(&plan, vec![(Act::Short, 1)]);
    assert_eq!(all, [Outcome::WrongLength, Outcome::Protocol]);
}

#[test]
fn interim_replies_are_borne_up_to_their_limit() {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (2, Some(20)));
    for (n, expected) in [(1, Outcome::Ok), (32, Outcome::Ok), (33, Outcome::Protocol)] {
        let all = outcomes(&plan, vec![(Act::InterimFlood(n), 1)]);
        assert_eq!(all, vec![expected; 20], "{n} interim replies");
    }
}

#[test]
fn a_body_waits_for_100_continue_and_not_for_ever() {
    let second = Nanos::from_secs(1);
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests, o.draft.expect_continue) = (1, Some(6), true);
        (o.method, o.body) = ("POST".to_owned(), b"hello".to_vec());
    });
    // 100 after half the delay, then the body, then the reply; or the final reply at once; or a
    // second of waiting for a 100 that never comes, whatever else came meanwhile.
    let cases = [
        (Act::Reply, ms(1) + ms(2)),
        (Act::FinalAtOnce, ms(2)),
        (Act::NoContinue, second + ms(2)),
        (Act::HintsNoContinue, second + ms(2)),
    ];
    for (act, service) in cases {
        let record = run(&plan, &Script { acts: vec![(act, 1)], ..Script::new(ms(2)) });
        assert_eq!(record.requests.ok, 6, "{act:?}: {:?}", record.errors);
        assert!(record.raw.iter().all(|sample| sample.done - sample.sent == service), "{act:?}");
        let n_connects = if act == Act::FinalAtOnce { 6 } else { 1 };
        assert_eq!(record.connects, n_connects, "{act:?}");
    }
}

#[test]
fn bytes_that_were_thrown_away_are_counted_like_those_that_were_read() {
    let mut plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (4, Some(200)));
    with_bodies(&mut plan, &[15_000, 100_000, 1_000_000]);
    let whole = Script { segment_bytes: 1448, ..Script::new(MS) };
    let expected = (67 * 15_000 + 67 * 100_000 + 66 * 1_000_000) as u64;
    let record = run(&plan, &whole);
    assert_eq!((record.requests.ok, record.bytes.body), (200, expected));
    // In the midst of that, RST and FIN.
    for (act, n_bytes) in [(Act::Reset(90_000), 90_000), (Act::Close(90_000), 90_000)] {
        let record = run(&plan, &Script { acts: vec![(act, 1)], ..whole.clone() });
        let cut = record.errors.reset_after_first_byte + record.errors.closed_after_first_byte;
        assert_eq!((record.requests.ok, cut), (67, 133), "{act:?}");
        assert!(record.raw.iter().all(|s| s.bytes_read == n_bytes || s.outcome == Outcome::Ok));
    }
}

#[test]
fn cookies_are_sent_back() {
    let n_written = |cookies, act| {
        let plan = plan(|o| {
            (o.draft.connections, o.draft.stop.requests, o.draft.cookies) = (2, Some(20), cookies)
        });
        let record = run(&plan, &Script { acts: vec![(act, 1)], ..Script::new(MS) });
        assert_eq!(record.requests.ok, 20);
        record.bytes.written
    };
    let without = n_written(false, Act::SetCookie);
    assert_eq!(n_written(true, Act::Reply), without);
    // Not with the first request of each connection slot.
    let field = "Cookie: session=0123456789\r\n".len() as u64;
    assert_eq!(n_written(true, Act::SetCookie), without + 18 * field);
}
