//! Users that a scenario plays: each has its turns, hears of every request it asked, pauses, leaves, and is
//! told what it wants to see of replies.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use joust_load::Control;
use joust_load::sim::{self, Act, Script, body};
use proptest::prelude::*;
use record::{
    Answer, Asking, LoadPlan, LoadRecord, Origin, Outcome, Scenario, Seats, ServerAddress, Turn,
    Users, WantedBodies, Wants,
};
use units::Nanos;

use super::common::{MS, check, ms, plan};

/// Nothing but the users ends it.
fn of_users(connections: u32, threads: u32) -> LoadPlan {
    let mut plan = plan(|o| {
        (o.draft.connections, o.draft.threads, o.draft.stop.requests) =
            (connections, threads, Some(1))
    });
    plan.stop.requests = None;
    plan
}

/// Users who ask `n_turns` times, `at_once` requests each time, and note what they hear.
struct Party {
    n_turns: u32,
    at_once: u32,
    pause: Nanos,
    wants: Wants,
    /// By user, in order: outcome, number, head, body.
    heard: Mutex<BTreeMap<u32, Vec<Heard>>>,
}

type Heard = (Outcome, u32, Vec<u8>, Vec<u8>);

impl Party {
    fn new(n_turns: u32, at_once: u32) -> Self {
        let wants = Wants { heads: true, bodies: WantedBodies::All, bytes_max: None };
        Self { n_turns, at_once, pause: Nanos::ZERO, wants, heard: Mutex::default() }
    }

    fn run(&self, plan: &LoadPlan, script: &Script) -> LoadRecord {
        let interrupt = AtomicBool::new(false);
        sim::run(plan, &Control::new(&interrupt).acting(self), script).expect("a record")
    }

    fn of_user(&self, user: u32) -> Vec<Heard> {
        self.heard.lock().unwrap().get(&user).cloned().unwrap_or_default()
    }
}

impl Scenario for Party {
    fn users(&self, seats: Seats) -> Box<dyn Users + '_> {
        assert!(seats.n > 0);
        Box::new(Guests { party: self, turns: BTreeMap::new() })
    }
}

struct Guests<'a> {
    party: &'a Party,
    turns: BTreeMap<u32, u32>,
}

impl Users for Guests<'_> {
    fn wants(&self) -> Wants {
        self.party.wants
    }

    fn first(&mut self, user: u32) -> Turn {
        // Every third has no time.
        if user % 3 == 2 { Turn::Leaves } else { Turn::after(ms(u64::from(user))) }
    }

    fn ask(&mut self, user: u32, asking: &mut Asking) {
        let turn = self.turns.entry(user).or_default();
        for index in 0..self.party.at_once {
            asking.request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", *turn * 100 + index);
        }
        *turn += 1;
    }

    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn {
        let user = answer.sample.conn;
        let heard = (
            answer.sample.outcome,
            answer.sample.request,
            answer.head.to_vec(),
            answer.body.to_vec(),
        );
        self.party.heard.lock().unwrap().entry(user).or_default().push(heard);
        if self.turns[&user] < self.party.n_turns {
            Turn::after(self.party.pause)
        } else {
            Turn::Leaves
        }
    }
}

#[test]
fn users_hear_of_a_request_that_was_sent_once_more_once_and_only_where_the_plan_has_it() {
    let script = Script { acts: vec![(Act::CloseOnNext, 1)], ..Script::new(MS) };
    for retry in [true, false] {
        let plan = LoadPlan { retry, ..of_users(7, 2) };
        let party = Party::new(6, 1);
        let record = party.run(&plan, &script);
        let n_lost = if retry { 0 } else { 5 * 3 };
        assert_eq!((record.requests.started, record.requests.failed), (5 * 6, n_lost));
        assert_eq!(record.requests.retried, if retry { 5 * 5 } else { 0 });
        let heard: Vec<u32> = party.of_user(0).iter().map(|heard| heard.1).collect();
        assert_eq!(heard, [0, 100, 200, 300, 400, 500]);
    }
}

#[test]
fn each_user_has_its_turns_and_the_load_ends_when_all_have_left() {
    let plan = of_users(7, 2);
    let mut party = Party::new(5, 1);
    party.pause = ms(30);
    let record = party.run(&plan, &Script::new(MS));
    assert_eq!((record.requests.started, record.requests.ok), (5 * 5, 5 * 5));
    for user in 0..7 {
        let numbers: Vec<u32> = party.of_user(user).iter().map(|heard| heard.1).collect();
        let expected: &[u32] = if user % 3 == 2 { &[] } else { &[0, 100, 200, 300, 400] };
        assert_eq!(numbers, expected, "user {user}");
        let mut samples: Vec<_> = record.raw.iter().filter(|s| s.conn == user).collect();
        samples.sort_by_key(|sample| sample.sent);
        for pair in samples.windows(2) {
            assert_eq!(pair[1].due - pair[0].done, ms(30), "a pause is in no latency");
            assert_eq!(pair[1].sent, pair[1].due);
        }
        if let Some(first) = samples.first() {
            assert_eq!(first.due, ms(u64::from(user)), "as the user begins");
        }
    }
}

#[test]
fn what_is_asked_at_once_is_sent_at_once_and_answered_in_order() {
    let plan = of_users(2, 1);
    let party = Party::new(4, 3);
    let record = party.run(&plan, &Script::new(ms(2)));
    assert_eq!(record.requests.ok, 2 * 4 * 3);
    assert_eq!(record.connects, 2);
    let numbers: Vec<u32> = party.of_user(0).iter().map(|heard| heard.1).collect();
    assert_eq!(numbers, [0, 1, 2, 100, 101, 102, 200, 201, 202, 300, 301, 302]);
    for turn in 0..4 {
        let of_turn = |s: &&record::Sample| s.conn == 0 && s.request / 100 == turn;
        let sent: Vec<Nanos> = record.raw.iter().filter(of_turn).map(|s| s.sent).collect();
        assert!(sent.len() == 3 && sent.iter().all(|at| *at == sent[0]), "{sent:?}");
    }
}

#[test]
fn heads_and_bodies_are_those_of_the_reply_without_interim_heads_and_framing() {
    let acts = [Act::Reply, Act::Interim, Act::Chunked, Act::UntilClose, Act::Status(404)];
    for act in acts.into_iter().chain([Act::Dribble { bytes: 1, gap: Nanos(10) }]) {
        let plan = of_users(1, 1);
        let party = Party::new(3, 1);
        party.run(&plan, &Script { acts: vec![(act, 1)], ..Script::new(MS) });
        let heard = party.of_user(0);
        assert_eq!(heard.len(), 3);
        for (_, _, head, content) in heard {
            let head = String::from_utf8(head).unwrap();
            assert!(head.starts_with("HTTP/1.1 ") && head.ends_with("\r\n\r\n"), "{act:?}: {head}");
            assert!(!head.starts_with("HTTP/1.1 1") && head.matches("HTTP/1.1").count() == 1);
            assert_eq!(content, body(content.len()), "{act:?}");
            assert!(!content.is_empty());
        }
    }
}

#[test]
fn what_nobody_wants_is_not_kept() {
    let cases = [
        (Wants::default(), false),
        (Wants { heads: true, bodies: WantedBodies::Html, bytes_max: None }, true),
        (Wants { heads: true, bodies: WantedBodies::None, bytes_max: None }, true),
    ];
    for (wants, has_head) in cases {
        let plan = of_users(1, 1);
        let party = Party { wants, ..Party::new(1, 1) };
        party.run(&plan, &Script::new(MS));
        let [(_, _, head, body)] = &party.of_user(0)[..] else { panic!("one") };
        assert_eq!((!head.is_empty(), body.len()), (has_head, 0), "its type is not HTML");
    }
}

#[test]
fn of_a_body_no_more_is_kept_than_is_wanted_and_all_of_it_is_counted() {
    for act in [Act::Reply, Act::Chunked, Act::Dribble { bytes: 1, gap: Nanos(10) }] {
        let wants = Wants { bodies: WantedBodies::All, bytes_max: Some(5), ..Wants::default() };
        let party = Party { wants, ..Party::new(2, 1) };
        let record =
            party.run(&of_users(1, 1), &Script { acts: vec![(act, 1)], ..Script::new(MS) });
        let kept: Vec<Vec<u8>> = party.of_user(0).into_iter().map(|heard| heard.3).collect();
        assert_eq!(kept, vec![body(5); 2], "{act:?}");
        assert!(record.raw.iter().all(|sample| sample.bytes_body > 5), "{act:?}");
    }
}

/// A user who has something to ask at its third turn only.
struct Hesitant {
    at_last_leaves: bool,
}

impl Scenario for Hesitant {
    fn users(&self, _: Seats) -> Box<dyn Users + '_> {
        Box::new(Turns { of: self, n: 0 })
    }
}

struct Turns<'a> {
    of: &'a Hesitant,
    n: u32,
}

impl Users for Turns<'_> {
    fn wants(&self) -> Wants {
        Wants::default()
    }

    fn ask(&mut self, _: u32, asking: &mut Asking) {
        self.n += 1;
        match self.n {
            1 | 2 => asking.again(ms(20)),
            _ if self.of.at_last_leaves => {}
            _ => asking.request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0),
        }
    }

    fn request_ended(&mut self, _: &Answer<'_>) -> Turn {
        Turn::Leaves
    }
}

#[test]
fn one_who_asks_nothing_may_have_another_turn_later() {
    for at_last_leaves in [false, true] {
        let interrupt = AtomicBool::new(false);
        let hesitant = Hesitant { at_last_leaves };
        let control = Control::new(&interrupt).acting(&hesitant);
        let record = sim::run(&of_users(1, 1), &control, &Script::new(MS)).unwrap();
        let sent: Vec<Nanos> = record.raw.iter().map(|sample| sample.due).collect();
        assert_eq!(sent, if at_last_leaves { vec![] } else { vec![ms(40)] });
    }
}

/// A user who goes to an origin that the plan does not name.
struct Wanderer;

impl Scenario for Wanderer {
    fn users(&self, _: Seats) -> Box<dyn Users + '_> {
        Box::new(Steps(0))
    }
}

struct Steps(u32);

impl Users for Steps {
    fn wants(&self) -> Wants {
        Wants::default()
    }

    fn ask(&mut self, _: u32, asking: &mut Asking) {
        if self.0 == 1 {
            let place = ServerAddress::Inet(([127, 0, 0, 2], 80).into());
            let origin = Origin { place, host: "b".to_owned(), tls_name: None };
            asking.origin = asking.add_origin(origin);
        }
        self.0 += 1;
        asking.request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", self.0);
    }

    fn request_ended(&mut self, _: &Answer<'_>) -> Turn {
        if self.0 < 3 { Turn::after(Nanos::ZERO) } else { Turn::Leaves }
    }
}

#[test]
fn a_user_may_go_to_an_origin_that_the_plan_does_not_name() {
    let plan = of_users(1, 1);
    let interrupt = AtomicBool::new(false);
    let control = Control::new(&interrupt).acting(&Wanderer);
    let record = sim::run(&plan, &control, &Script::new(MS)).unwrap();
    assert_eq!((record.requests.ok, record.connects), (3, 3), "there, and back");
}

/// Users whose every request goes on so many times, as long as it is answered, and fails every other
/// time at its end.
struct Pilgrims {
    n_legs: u32,
}

impl Scenario for Pilgrims {
    fn users(&self, seats: Seats) -> Box<dyn Users + '_> {
        let done = vec![(0, 0); seats.n as usize];
        Box::new(Legs { n_legs: self.n_legs, first: seats.first, done })
    }
}

struct Legs {
    n_legs: u32,
    first: u32,
    /// Legs of its request, and requests, of each user.
    done: Vec<(u32, u32)>,
}

impl Users for Legs {
    fn wants(&self) -> Wants {
        Wants::default()
    }

    fn ask(&mut self, _: u32, asking: &mut Asking) {
        asking.request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0);
    }

    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn {
        let (legs, requests) = &mut self.done[(answer.sample.conn - self.first) as usize];
        *legs += 1;
        if *legs <= self.n_legs && answer.sample.status > 0 {
            return Turn::GoesOn;
        }
        (*legs, *requests) = (0, *requests + 1);
        match answer.sample.outcome {
            Outcome::Ok if *requests % 2 == 0 => Turn::Fails(Outcome::TooManyRedirects),
            _ => Turn::after(Nanos::ZERO),
        }
    }
}

fn of_pilgrims(plan: &LoadPlan, n_legs: u32, script: &Script) -> LoadRecord {
    let (interrupt, pilgrims) = (AtomicBool::new(false), Pilgrims { n_legs });
    sim::run(plan, &Control::new(&interrupt).acting(&pilgrims), script).expect("a record")
}

#[test]
fn a_request_that_goes_on_is_one_request_with_the_time_of_all_its_legs() {
    let rate = record::Pacing::Constant { rate: units::PerSecond(100.0) };
    for pacing in [record::Pacing::Closed, rate] {
        let plan = plan(|o| {
            (o.draft.connections, o.draft.stop.requests, o.draft.pacing) = (2, Some(20), pacing)
        });
        let record = of_pilgrims(&plan, 3, &Script::new(ms(2)));
        check(&record);
        let requests = record.requests;
        assert_eq!((requests.started, requests.ok, requests.failed), (20, 10, 10));
        assert_eq!((record.errors.too_many_redirects, record.redirects.followed), (10, 60));
        assert_eq!(record.connects, 2);
        for sample in &record.raw {
            assert_eq!(sample.done - sample.sent, ms(4 * 2), "{sample:?}");
            assert_eq!(sample.first_byte, sample.done, "of the last reply");
        }
    }
}

#[test]
fn one_who_asks_nothing_leaves() {
    let record = Party::new(5, 0).run(&of_users(7, 2), &Script::new(MS));
    assert_eq!((record.requests.started, record.connects), (0, 0));
}

#[test]
fn intervals_tell_what_each_thread_did() {
    let record = Party::new(5, 1).run(&of_users(6, 2), &Script::new(MS));
    let mut sum = [0, 0];
    for interval in &record.intervals {
        let [first, second] = interval.ok_by_thread[..] else {
            panic!("two threads: {interval:?}")
        };
        assert_eq!(first + second, interval.ok);
        sum = [sum[0] + first, sum[1] + second];
    }
    assert_eq!(sum.iter().sum::<u64>(), record.requests.ok);
    let of_first = record.raw.iter().filter(|sample| sample.conn < 3).count() as u64;
    assert_eq!(sum[0], of_first);
}

proptest! {
    /// Whatever the server does to the legs of a request, and whenever the load ends: each request is in
    /// one place.
    #[test]
    fn requests_that_go_on_are_each_in_one_place(
        seed in any::<u64>(),
        n_legs in 0u32..4,
        n_conns in 1u32..6,
        keep_alive in any::<bool>(),
        is_open in any::<bool>(),
        duration in prop::option::of(1u64..60),
        acts in prop::collection::vec(0usize..9, 1..4),
    ) {
        let all = [
            Act::Reply, Act::Chunked, Act::Status(503), Act::Reset(0), Act::Reset(10),
            Act::Close(10), Act::ReplySayingClose, Act::UntilClose, Act::Stop(10),
        ];
        let plan = plan(|o| {
            (o.draft.connections, o.draft.threads, o.draft.keep_alive) = (n_conns, 2.min(n_conns), keep_alive);
            (o.draft.stop.requests, o.draft.stop.duration) = (Some(40), duration.map(ms));
            (o.draft.timeout, o.draft.drain) = (ms(20), ms(3));
            if is_open {
                o.draft.pacing = record::Pacing::Poisson { rate: units::PerSecond(2000.0) };
            }
        });
        let acts = acts.into_iter().map(|index| (all[index], 1)).collect();
        let record = of_pilgrims(&plan, n_legs, &Script { acts, seed, ..Script::new(MS) });
        check(&record);
    }

    /// Whatever the server does: every request that was begun is heard of once, in order, or is
    /// unanswered at the end.
    #[test]
    fn every_request_is_heard_of_exactly_once(
        seed in any::<u64>(),
        n_turns in 1u32..8,
        at_once in 1u32..4,
        n_conns in 1u32..6,
        keep_alive in any::<bool>(),
        lost_max in prop::option::of(1u64..6),
        acts in prop::collection::vec(0usize..9, 1..4),
    ) {
        let all = [
            Act::Reply, Act::Chunked, Act::Status(503), Act::Reset(0), Act::Reset(10),
            Act::Close(10), Act::ReplySayingClose, Act::Garbage, Act::Stop(10),
        ];
        let mut plan = of_users(n_conns, 2.min(n_conns));
        (plan.keep_alive, plan.lost_max) = (keep_alive, lost_max);
        let acts = acts.into_iter().map(|index| (all[index], 1)).collect();
        let script = Script { acts, seed, ..Script::new(MS) };
        let party = Party::new(n_turns, at_once);
        let record = party.run(&plan, &script);
        let heard = party.heard.lock().unwrap();
        let n_heard: usize = heard.values().map(Vec::len).sum();
        prop_assert_eq!(n_heard as u64, record.requests.done);
        prop_assert_eq!(record.requests.started, record.requests.done + record.requests.unanswered);
        for of_user in heard.values() {
            let numbers: Vec<u32> = of_user.iter().map(|heard| heard.1).collect();
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert_eq!(&numbers, &sorted, "each once, in order");
        }
        if lost_max.is_none() {
            let n_users = (0..n_conns).filter(|user| user % 3 != 2).count() as u32;
            prop_assert_eq!(record.requests.done, u64::from(n_users * n_turns * at_once));
        }
    }
}
