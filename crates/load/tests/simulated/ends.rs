//! When replies came, and how the server ended connections. Owns the facts about `completions` and
//! `connection_ends`. Start reading at the first test.

use joust_load::LoadOptions;
use joust_load::sim::{Act, Script};
use record::{ConnectionEnds, LoadRecord};
use units::Nanos;

use super::common::{ms, plan, run};

fn of(script: &Script, change: impl FnOnce(&mut LoadOptions)) -> LoadRecord {
    let plan = plan(|options| {
        (options.draft.connections, options.draft.stop.requests) = (4, Some(4_000));
        change(options);
    });
    run(&plan, script)
}

#[test]
fn a_server_that_closes_after_100_replies_is_told_by_that_number() {
    let closes = Script { replies_per_connection: Some(100), ..Script::new(ms(1)) };
    for threads in [1, 4] {
        let record = of(&closes, |options| options.draft.threads = threads);
        let ends = &record.connection_ends;
        assert_eq!((ends.by_server, ends.announced), (record.connects, 0));
        assert_eq!(ends.replies, [(100, record.connects)].into());
        assert_eq!(record.requests.ok, 4_000);
    }
}

#[test]
fn a_close_that_crosses_with_the_next_request_is_told_as_well() {
    // The FIN comes behind the reply: the next request is on its way by then.
    let script = Script { acts: vec![(Act::ReplyThenClose(Nanos(10)), 1)], ..Script::new(ms(1)) };
    let record = of(&script, |options| options.draft.retry = true);
    let ends = &record.connection_ends;
    assert_eq!(ends.replies, [(1, ends.by_server)].into());
    // Behind the last reply of each slot the load ends before the FIN comes.
    assert_eq!(record.connects - ends.by_server, 4);
}

#[test]
fn an_announced_end_is_told_apart() {
    for act in [Act::ReplySayingClose, Act::UntilClose] {
        let script = Script { acts: vec![(act, 1), (Act::Reply, 3)], ..Script::new(ms(1)) };
        let record = of(&script, |_| {});
        let ends = &record.connection_ends;
        assert!(ends.by_server > 500, "{act:?}: {ends:?}");
        assert_eq!(ends.announced, ends.by_server, "{act:?}");
        // The last connection of each slot need not have ended.
        assert!(record.connects - ends.by_server <= 4, "{act:?}: {ends:?}");
    }
}

#[test]
fn connections_that_the_plan_ends_and_those_that_break_are_not_told_as_ended_by_the_server() {
    let says_close = Script { acts: vec![(Act::ReplySayingClose, 1)], ..Script::new(ms(1)) };
    let plain = Script { replies_per_connection: Some(7), ..Script::new(ms(1)) };
    let resets = Script { acts: vec![(Act::Reset(20), 1), (Act::Reply, 9)], ..Script::new(ms(1)) };
    let breaks = Script { acts: vec![(Act::Close(20), 1), (Act::Reply, 9)], ..Script::new(ms(1)) };
    let none = ConnectionEnds::default();
    type Change = fn(&mut LoadOptions);
    let cases: [(&str, &Script, Change); 5] = [
        ("no keep-alive", &says_close, |options| options.draft.keep_alive = false),
        ("asked to", &says_close, |options| options.headers.push("Connection: close".to_owned())),
        ("as many as planned", &plain, |options| options.draft.requests_per_connection = Some(7)),
        ("reset", &resets, |_| {}),
        ("cut off", &breaks, |_| {}),
    ];
    for (name, script, change) in cases {
        let record = of(script, change);
        assert_eq!(record.connection_ends, none, "{name}");
        assert!(record.connects > 100, "{name}: connections did end");
    }
}

#[test]
fn a_stall_is_a_gap_in_the_completions() {
    let stall = joust_load::sim::Stall { at: ms(200), length: ms(100) };
    let script = Script { stall: Some(stall), ..Script::new(ms(2)) };
    let record = of(&script, |_| {});
    let gap = record.completions.between(ms(201), ms(300));
    assert!(gap.iter().all(|count| *count == 0), "{gap:?}");
    let before = record.completions.between(ms(100), ms(200));
    assert_eq!(before.iter().sum::<u32>(), 4 * 50);
}
