//! What a sample says of its connection, and what a plan may ask about the first request and about lost
//! servers: the classic tools' reports are made of it.

use joust_load::sim::{Act, Script};
use record::{AtEnd, Carrier, LoadRecord, Outcome};
use units::Nanos;

use super::common::{MS, ms, plan, run};

/// One connection, three requests, one kind of answer.
fn of_three(act: Act) -> LoadRecord {
    let plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (1, Some(3)));
    run(&plan, &Script { connect: ms(2), acts: vec![(act, 1)], ..Script::new(MS) })
}

#[test]
fn a_request_says_how_it_came_to_its_connection() {
    let carriers = |act| of_three(act).raw.iter().map(|s| s.carrier).collect::<Vec<_>>();
    use Carrier::{Fresh, Replacing, Reused};
    assert_eq!(carriers(Act::Reply), [Fresh, Reused, Reused]);
    assert_eq!(carriers(Act::ReplySayingClose), [Fresh, Fresh, Fresh]);
    assert_eq!(carriers(Act::ReplyThenClose(Nanos::ZERO)), [Fresh, Replacing, Replacing]);
    for sample in of_three(Act::ReplySayingClose).raw {
        assert_eq!(sample.sent - sample.due, ms(2), "the time to connect");
    }
}

#[test]
fn a_request_says_what_became_of_its_connection() {
    let ends = |act| of_three(act).raw[0].at_end;
    assert_eq!(ends(Act::Reply), AtEnd::Kept);
    assert_eq!(ends(Act::ReplySayingClose), AtEnd::Last);
    assert_eq!(ends(Act::UntilClose), AtEnd::Closed);
    assert_eq!(ends(Act::Close(9)), AtEnd::Closed);
    assert_eq!(ends(Act::Reset(9)), AtEnd::Lost);
    assert!(of_three(Act::Reset(0)).raw[0].is_lost() && !of_three(Act::Close(9)).raw[0].is_lost());
    let garbage = of_three(Act::Garbage).raw[0];
    assert!(garbage.outcome == Outcome::Protocol && !garbage.is_lost());
}

#[test]
fn the_head_is_told_apart_from_the_body_and_its_framing() {
    let plain = of_three(Act::Reply).raw[0];
    assert_eq!(u64::from(plain.bytes_head), plain.bytes_read - plain.bytes_body);
    let chunked = of_three(Act::Chunked).raw[0];
    assert!(u64::from(chunked.bytes_head) < chunked.bytes_read - chunked.bytes_body);
    assert_eq!(of_three(Act::Close(9)).raw[0].bytes_head, 0, "it was not complete");
}

#[test]
fn the_first_request_goes_out_alone_where_the_plan_says_so() {
    let mut plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (4, Some(40)));
    plan.first_alone = true;
    let pause = Act::Pause { bytes: 60, gap: ms(5) };
    let record = run(&plan, &Script { acts: vec![(pause, 1)], ..Script::new(ms(20)) });
    assert_eq!(record.requests.ok, 40);
    let mut sent: Vec<Nanos> = record.raw.iter().map(|sample| sample.sent).collect();
    sent.sort_unstable();
    assert!(sent[1] - sent[0] >= ms(20), "until the head of its reply has come: {:?}", &sent[..4]);
    assert_eq!(record.client.connections_open_max, 4, "and then all begin");
    let head = record.first_head.expect("it is kept");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head:?}");
}

#[test]
fn the_first_request_is_tried_again_alone_until_a_head_comes() {
    let mut plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (4, Some(3)));
    plan.first_alone = true;
    let record = run(&plan, &Script { acts: vec![(Act::Reset(9), 1)], ..Script::new(MS) });
    assert_eq!((record.requests.failed, record.client.connections_open_max), (3, 1));
    assert_eq!(record.first_head, None);
}

#[test]
fn a_lost_server_ends_the_load_where_the_plan_says_so() {
    let mut plan = plan(|o| (o.draft.connections, o.draft.stop.requests) = (2, Some(1000)));
    plan.lost_max = Some(3);
    plan.drain = Nanos::ZERO;
    let script = Script { acts: vec![(Act::Reset(0), 1)], ..Script::new(MS) };
    let record = run(&plan, &script);
    assert!((3..=5).contains(&record.requests.started), "{:?}", record.requests);
    assert!(!record.interrupted, "it ended as planned");
    let cut = run(&plan, &Script { acts: vec![(Act::Close(9), 1)], ..Script::new(MS) });
    assert_eq!(cut.requests.failed, 1000, "an orderly end is a reply, if a bad one");
}
