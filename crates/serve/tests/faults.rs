//! Planted faults: exact to the nanosecond in simulated time, and the same under every real model. This proves what a
//! fault is worth as an oracle. How exact it is in a real server depends on the machine, and
//! `examples/fault_precision.rs` measures it. Start reading at [`a_delay_ends_to_the_nanosecond_for_every_response`].

mod support;

use std::time::{Duration, Instant};

use joust_serve::Config;
use joust_serve::service::Service;
use proptest::prelude::*;
use site::exchange::{Close, Want};
use site::fault::{Fault, HOLD_MAX};
use support::simulated::{BODY_BYTES, Client, REQUEST, START, ms, service, service_of};
use support::{FIXED, GET, Server, Setup, models as all_models};
use sys::process::Signal;
use units::Nanos;

fn holds(service: &Service, count: u64) -> Vec<Nanos> {
    let mut client = Client::new(service, START);
    (0..count).map(|n| client.held_at(START + ms(1000 * n))).collect()
}

#[test]
fn a_delay_ends_to_the_nanosecond_for_every_response() {
    assert_eq!(holds(&service(&["delay=5ms"]), 50), [ms(5); 50]);
    assert_eq!(holds(&service(&["delay=1234567ns"]), 3), [Nanos(1_234_567); 3]);
    assert_eq!(holds(&service(&["delay=5ms", "delay=2ms"]), 3), [ms(7); 3]);
}

#[test]
fn a_delay_counts_from_the_last_byte_of_the_request() {
    let service = service(&["delay=5ms"]);
    let mut client = Client::new(&service, START);
    client.send(&REQUEST[..20]);
    client.now = START + ms(300);
    client.send(&REQUEST[20..]);
    assert_eq!(client.pieces()[0].0, START + ms(305));
}

#[test]
fn pipelined_requests_that_came_together_leave_together_each_as_a_response_of_its_own() {
    let service = service(&["delay=5ms"]);
    let mut client = Client::new(&service, START);
    client.send(&REQUEST.repeat(3));
    let left: Vec<Nanos> = client.pieces().into_iter().map(|(at, _)| at).collect();
    assert_eq!(left, [START + ms(5); 3]);
}

#[test]
fn the_same_seed_holds_the_same_and_another_does_not() {
    for faults in [["delay=exp:2ms"], ["stall=30%,200ms"]] {
        let first = holds(&service(&faults), 200);
        assert_eq!(first, holds(&service(&faults), 200), "{faults:?}");
        let seeded = format!("{},seed=2", faults[0]);
        assert_ne!(first, holds(&service(&[&seeded]), 200), "{faults:?}");
    }
}

/// The n-th response of the server has the n-th hold, whichever connection carries it.
#[test]
fn connections_share_one_stream() {
    let alone = holds(&service(&["delay=exp:2ms"]), 60);
    let service = service(&["delay=exp:2ms"]);
    let mut clients = [(); 3].map(|()| Client::new(&service, START));
    let shared: Vec<Nanos> =
        (0..60).map(|n| clients[n as usize % 3].held_at(START + ms(1000 * n))).collect();
    assert_eq!(alone, shared);
}

#[test]
fn a_stall_in_the_head_phase_holds_all_of_its_share_and_nothing_else() {
    let held = holds(&service(&["stall=10%,200ms", "delay=1ms"]), 2000);
    assert!(held.iter().all(|hold| [ms(1), ms(201)].contains(hold)));
    let stalled = held.iter().filter(|hold| **hold == ms(201)).count();
    // Binomial: 200 with a standard deviation of 13.4; five of those on either side.
    assert!((133..267).contains(&stalled), "{stalled}");
}

#[test]
fn a_stall_in_the_body_phase_lets_the_head_leave() {
    let service = service(&["stall=100%,200ms,phase=body", "delay=1ms"]);
    let mut client = Client::new(&service, START);
    // A repeated page is sent in another way than a first one; the answer to HEAD is all head.
    for round in 0..4 {
        client.now = START + ms(1000 * round);
        let at = client.now;
        client.send(REQUEST);
        let pieces = client.pieces();
        let [(head_at, head), (body_at, body)] = &pieces[..] else { panic!("{}", pieces.len()) };
        assert!(head.ends_with(b"\r\n\r\n"));
        assert_eq!((*head_at - at, *body_at - at, body.len()), (ms(1), ms(201), BODY_BYTES));
        client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        let head_only = client.pieces();
        assert_eq!((head_only.len(), head_only[0].0 - at), (1, ms(202)));
    }
}

#[test]
fn a_recurring_pause_is_periodic_from_the_start_on() {
    let service = service(&["pause=every:2s,for:100ms"]);
    let mut client = Client::new(&service, START);
    let asked = [0, 1, 99, 1999, 2000, 2001, 2099, 2100, 3999, 4000, 200_050];
    let left: Vec<u64> =
        asked.map(|at| (at * 1_000_000 + client.held_at(START + ms(at)).0) / 1_000_000).into();
    assert_eq!(left, [0, 1, 99, 1999, 2100, 2100, 2100, 2100, 3999, 4100, 200_100]);
}

#[test]
fn a_pause_that_comes_once_does_not_come_again() {
    let service = service(&["pause=at:1s,for:1s", "pause=at:2s,for:500ms"]);
    let mut client = Client::new(&service, START);
    let held = [0, 999, 1000, 1999, 2000, 2500, 11_000, 1_001_000]
        .map(|at| client.held_at(START + ms(at)));
    assert_eq!(held, [0, 0, 1500, 501, 500, 0, 0, 0].map(ms));
}

#[test]
fn a_delay_runs_on_in_a_pause_and_a_pause_cuts_into_an_answer() {
    let service = service(&["delay=20ms", "pause=at:1s,for:1s"]);
    let mut client = Client::new(&service, START);
    assert_eq!(client.held_at(START + ms(990)), ms(1010));
    client.now = START + ms(3000);
    // The client takes half of an answer before a pause, and is ready for the rest within it.
    let service = service_of_pause_at(ms(500));
    let mut slow = Client::new(&service, START);
    slow.send(REQUEST);
    let Want::Write { head, .. } = slow.exchange.want(|| START) else { panic!("it writes") };
    let half = head.len() / 2;
    slow.exchange.wrote(half, START);
    slow.now = START + ms(600);
    assert_eq!(slow.pieces()[0].0, START + ms(1500));
}

fn service_of_pause_at(at: Nanos) -> Service {
    service(&[&format!("pause=at:{at},for:1s")])
}

#[test]
fn a_timeout_does_not_run_against_the_servers_own_hold() {
    let short = |config: &mut Config| {
        let mut settings = config.settings.clone();
        settings.set("TimeOut", "100ms").unwrap();
        settings.set("KeepAliveTimeout", "100ms").unwrap();
        config.apply(settings).unwrap();
    };
    for faults in [["delay=5s"], ["pause=at:1ms,for:5s"]] {
        let service = service_of(&faults, short);
        let mut client = Client::new(&service, START);
        client.now = START + ms(2);
        client.send(REQUEST);
        let until = client.exchange.deadline();
        assert!(until >= START + ms(5000 + 100), "{faults:?}: {until}");
        client.exchange.timed_out(START + ms(4000));
        assert_eq!(client.pieces().len(), 1, "{faults:?}");
    }
    // A pause that begins after the answer was sent in part.
    let service = service_of(&["pause=at:50ms,for:5s"], short);
    let mut client = Client::new(&service, START);
    client.send(REQUEST);
    client.exchange.wrote(10, START);
    let Want::Write { .. } = client.exchange.want(|| START) else { panic!("it writes") };
    client.exchange.timed_out(client.exchange.deadline());
    client.now = START + ms(200);
    assert_eq!(client.pieces()[0].0, START + ms(5050));
    // And one whose client is slow by itself is cut as ever.
    client.send(REQUEST);
    client.exchange.timed_out(client.exchange.deadline());
    assert!(matches!(client.exchange.want(|| START), Want::Close(Close::Reset)));
}

proptest! {
    /// Whatever is planted, an answer leaves in the end, and each stays within its bound.
    #[test]
    fn every_hold_is_bounded(
        delay_ms in 1u64..60_000, stall_ms in 1u64..60_000, pause_ms in 1u64..60_000,
        gap_ms in 1u64..1000, at_ms in 0u64..200_000
    ) {
        let faults = [
            format!("delay={delay_ms}ms"),
            "delay=exp:3s".to_owned(),
            format!("stall=100%,{stall_ms}ms,phase=body"),
            format!("pause=every:{}ms,for:{pause_ms}ms", pause_ms + gap_ms),
            format!("pause=at:{at_ms}ms,for:{pause_ms}ms"),
            format!("batch={gap_ms}ms"),
            "slots=1".to_owned(),
        ];
        let service = service(&faults.each_ref().map(String::as_str));
        let mut client = Client::new(&service, START);
        client.now = START + ms(at_ms);
        let at = client.now;
        client.send(REQUEST);
        let last = client.pieces().pop().unwrap().0;
        // The hold, the rest of a batch, and the two pauses and the gap that may follow it.
        let most = HOLD_MAX.0 + ms(gap_ms).0 + 3 * HOLD_MAX.0 + ms(gap_ms).0;
        prop_assert!(last.0 - at.0 <= most, "{}", last - at);
    }
}

#[test]
fn what_is_no_fault_is_refused_with_the_way_out() {
    let cases = [
        ("dealy=5ms", "did you mean `delay`?"),
        ("", "all: delay=5ms"),
        ("delay", "the time is missing"),
        ("delay=", "write it as delay=5ms"),
        ("delay=5", "write it with a unit"),
        ("delay=0s", "must be longer than 0"),
        ("delay=61s", "longer than 60s"),
        ("delay=exp:4s", "longer than 3s"),
        ("delay=exp:", "duration"),
        ("delay=5ms,7ms", "`7ms` has no meaning here"),
        ("delay=5ms,seed=x", "not a whole number"),
        ("stall=200ms", "a share"),
        ("stall=0%,200ms", "not above 0"),
        ("stall=101%,200ms", "a share"),
        ("stall=1%", "the time is missing"),
        ("stall=1%,200ms,phase=tail", "neither head nor body"),
        ("pause=every:2s", "for:TIME is missing"),
        ("pause=for:2s", "every:TIME and at:TIME"),
        ("pause=every:2s,at:1s,for:1s", "every:TIME and at:TIME"),
        ("pause=every:1s,for:1s", "never ends"),
        ("pause=every:300h,for:1s", "longer than"),
        ("pause=every:2s,for:1s,often", "no meaning"),
    ];
    for (typed, hint) in cases {
        let error = typed.parse::<Fault>().unwrap_err();
        assert!(error.contains(hint), "{typed}: {error}");
    }
}

#[test]
fn every_model_answers_with_the_same_bytes_as_without_a_fault() {
    let head = GET.replace("GET", "HEAD");
    let requests = [GET, &head, GET, support::GET_CLOSE].concat();
    let answers = |server: &Server| {
        let mut conn = server.connect();
        let asked_alone = conn.ask(GET);
        conn.send(&requests);
        let text = asked_alone.head + &String::from_utf8(conn.rest()).unwrap();
        let dated = text.lines().filter(|line| !line.starts_with("Date: "));
        dated.collect::<Vec<_>>().join("\n")
    };
    // A fixed page is as old as its server, and says so.
    let site = tempfile::tempdir().unwrap();
    std::fs::write(site.path().join("index.html"), [b'x'; BODY_BYTES]).unwrap();
    let setup = Setup { content: site.path().to_str().unwrap(), ..FIXED };
    for model in all_models() {
        let plain = answers(&Server::start(model, setup));
        for fault in ["delay=1ms", "delay=exp:500us", "stall=50%,2ms,phase=body"] {
            let faults = &[fault, "pause=every:20ms,for:5ms"][..];
            let server = Server::start(model, Setup { faults, ..setup });
            assert!(answers(&server) == plain, "{model} with {fault}");
        }
    }
}

#[test]
fn no_model_answers_before_a_delay_is_over() {
    let delay = Duration::from_millis(30);
    for model in all_models() {
        let server = Server::start(model, Setup { faults: &["delay=30ms"], ..FIXED });
        let mut conn = server.connect();
        for _ in 0..3 {
            let sent = Instant::now();
            assert_eq!(conn.ask(GET).status(), 200, "{model}");
            assert!(sent.elapsed() >= delay, "{model}: {:?}", sent.elapsed());
        }
    }
}

#[test]
fn the_reactor_holds_fifty_connections_at_once() {
    const N: u32 = 50;
    let server = Server::start("reactor", Setup { faults: &["delay=1s"], ..FIXED });
    let mut conns: Vec<_> = (0..N).map(|_| server.connect()).collect();
    let sent = Instant::now();
    conns.iter_mut().for_each(|conn| conn.send(GET));
    assert!(conns.iter_mut().all(|conn| conn.response().status() == 200));
    let took = sent.elapsed();
    // One after another they would take 50 s.
    assert!((1..25).contains(&took.as_secs()), "{took:?}");
}

#[test]
fn a_pause_holds_everybody_until_its_end() {
    for model in all_models() {
        let faults = &["pause=every:1s,for:900ms"];
        let settings = &["MaxKeepAliveRequests=0"];
        let server = Server::start(model, Setup { settings, faults, ..FIXED });
        // A model with one connection at a time has that one held.
        let n_conns = support::two_at_once(model).map_or(1, |_| 4);
        let mut conns: Vec<_> = (0..n_conns).map(|_| server.connect()).collect();
        // In a gap of 100 ms nobody waits; two answers in a row that took 500 ms each cannot both be in one.
        let mut paused = 0;
        support::eventually("a pause held every connection", || {
            let sent = Instant::now();
            conns.iter_mut().for_each(|conn| conn.send(GET));
            assert!(conns.iter_mut().all(|conn| conn.response().status() == 200), "{model}");
            paused += usize::from(sent.elapsed() > Duration::from_millis(500));
            paused == 2
        });
    }
}

#[test]
fn a_drain_in_a_hold_still_answers_and_a_stop_does_not_wait_for_it() {
    for model in all_models() {
        let setup = Setup { faults: &["delay=1500ms"], ..FIXED };
        let mut server = Server::start(model, setup);
        let mut held = server.connect();
        assert_eq!(held.ask(GET).status(), 200, "{model}");
        held.send(GET);
        server.signal(Signal::TERM);
        assert_eq!(held.response().status(), 200, "{model}");
        assert!(server.ended().success(), "{model}");

        let settings = &["GracefulShutdownTimeout=100ms"];
        for signal in [Signal::TERM, Signal::INT] {
            let setup = Setup { settings, faults: &["stall=100%,50s,phase=body"], ..FIXED };
            let mut server = Server::start(model, setup);
            let mut held = server.connect();
            held.send(GET);
            assert!(held.head_end() > 0, "the hold has begun");
            let sent = Instant::now();
            server.signal(signal);
            assert!(server.ended().success(), "{model} {signal:?}");
            assert!(sent.elapsed() < Duration::from_secs(40), "{model} {signal:?}");
            drop(held);
        }
    }
}
