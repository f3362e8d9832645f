//! Open loops in virtual time: requests are due whatever becomes of others, and what cannot begin on time
//! waits, is dropped, or is left, each as computed. Owns an oracle, a queue before some servers. Start
//! reading at [`Queue::replies`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use joust_load::LoadOptions;
use joust_load::sim::{Act, Script, Stall};
use record::{LoadRecord, Outcome, Pacing, Stage};
use units::{Nanos, PerSecond};

use crate::common::{MS, ms, near, plan, run};

/// Connections with a queue before them, first come, first served.
struct Queue {
    n_conns: usize,
    /// Time that each request takes on its connection, except the stall.
    delay: Nanos,
    stall: Option<Stall>,
    n_max: usize,
    duration: Nanos,
}

/// One request in the oracle.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Served {
    due: Nanos,
    sent: Nanos,
    done: Nanos,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    served: Vec<Served>,
    due: u64,
    dropped: u64,
    left: u64,
    queue_max: u64,
}

impl Queue {
    /// What becomes of requests that are due at those instants.
    fn replies(&self, instants: impl Iterator<Item = Nanos>) -> Expected {
        let mut expected = Expected::default();
        let mut busy: BinaryHeap<Reverse<Nanos>> = BinaryHeap::new();
        let mut waiting: VecDeque<Nanos> = VecDeque::new();
        for now in instants.take_while(|due| *due < self.duration) {
            self.free(now, &mut busy, &mut waiting, &mut expected);
            expected.due += 1;
            if busy.len() < self.n_conns {
                self.serve(now, now, &mut busy, &mut expected);
            } else if waiting.len() < self.n_max {
                waiting.push_back(now);
                expected.queue_max = expected.queue_max.max(waiting.len() as u64);
            } else {
                expected.dropped += 1;
            }
        }
        self.free(self.duration - Nanos(1), &mut busy, &mut waiting, &mut expected);
        expected.left = waiting.len() as u64;
        expected.served.sort_unstable();
        expected
    }

    /// Ends what is done by `now`, and begins what waits.
    fn free(
        &self,
        now: Nanos,
        busy: &mut BinaryHeap<Reverse<Nanos>>,
        waiting: &mut VecDeque<Nanos>,
        expected: &mut Expected,
    ) {
        while let Some(Reverse(done)) = busy.peek().copied().filter(|Reverse(done)| *done <= now) {
            if done >= self.duration {
                return;
            }
            busy.pop();
            if let Some(due) = waiting.pop_front() {
                self.serve(due, done, busy, expected);
            }
        }
    }

    fn serve(
        &self,
        due: Nanos,
        sent: Nanos,
        busy: &mut BinaryHeap<Reverse<Nanos>>,
        expected: &mut Expected,
    ) {
        let mut done = sent + self.delay;
        if let Some(Stall { at, length }) = self.stall
            && (at..at + length).contains(&done)
        {
            done = at + length;
        }
        busy.push(Reverse(done));
        expected.served.push(Served { due, sent, done });
    }
}

fn constant(rate: u64) -> impl Iterator<Item = Nanos> {
    (0..).map(move |number| Nanos((number * 1_000_000_000 + rate / 2) / rate))
}

/// A load of a constant rate on one thread, beside what the oracle says of it.
fn both(queue: &Queue, rate: u64) -> (LoadRecord, Expected) {
    let plan = plan(|o: &mut LoadOptions| {
        o.draft.connections = queue.n_conns as u32;
        o.draft.stop.duration = Some(queue.duration);
        o.draft.drain = Nanos::from_secs(1);
        o.draft.queue_max = queue.n_max as u64;
        o.draft.pacing = Pacing::Constant { rate: PerSecond(rate as f64) };
    });
    let script = Script { stall: queue.stall, ..Script::new(queue.delay) };
    let record = run(&plan, &script);
    let expected = queue.replies(constant(rate));
    let mut served: Vec<Served> =
        record.raw.iter().map(|s| Served { due: s.due, sent: s.sent, done: s.done }).collect();
    served.sort_unstable();
    assert!(served == expected.served, "each request to the nanosecond");
    assert!(record.raw.iter().all(|sample| sample.outcome == Outcome::Ok));
    let open_loop = record.open_loop.unwrap();
    let counts = (open_loop.due, open_loop.dropped, open_loop.left, open_loop.queue_max);
    let Expected { due, dropped, left, queue_max, .. } = expected;
    assert_eq!(counts, (due, dropped, left, queue_max));
    // Zero is held as one nanosecond.
    assert_eq!(record.latencies.late.max(), Some(Nanos(1)), "virtual time makes nobody late");
    (record, expected)
}

#[test]
fn one_connection_and_a_stall_of_a_second_make_1000_late_responses_and_one_late_service() {
    // It begins between two requests; what waits at its end is processed before the next is due.
    let stall = Stall { at: Nanos(999_500_000), length: Nanos::from_secs(1) };
    let delay = Nanos(400);
    let (n_conns, n_max, duration) = (1, 1_000_000, Nanos::from_secs(3));
    let queue = Queue { n_conns, delay, stall: Some(stall), n_max, duration };
    let (record, _) = both(&queue, 1000);
    let late = |span: fn(&record::Sample) -> Nanos| {
        let is_late = |span: &Nanos| *span > delay;
        record.raw.iter().map(span).filter(is_late).collect::<Vec<Nanos>>()
    };
    assert_eq!(late(|sample| sample.done - sample.sent), [Nanos(999_500_000)]);
    // The kth of them is due k ms after the first, and k replies come before its own.
    let expected: Vec<Nanos> =
        (0..1000).map(|k| Nanos(999_500_000 - k * 1_000_000 + k * delay.0)).collect();
    assert_eq!(late(|sample| sample.done - sample.due), expected);
    let latencies = &record.latencies;
    let count = |histogram: &stats::Histogram| -> u64 {
        histogram.buckets().filter(|(span, _)| *span > Nanos(1000)).map(|(_, n)| n).sum()
    };
    assert_eq!((count(&latencies.service), count(&latencies.response)), (1, 1000));
    assert_eq!(count(&latencies.queue), 999, "between the two stands the queue");
    assert!(near(latencies.response.max(), Nanos(999_500_000)));
    assert_eq!(record.open_loop.unwrap().queue_max, 999);
    // A third of all requests is late; a closed loop has one late request, which its p99 does not show.
    assert!(latencies.response.quantile(0.9) > Some(ms(690)));
    let closed =
        plan(|o| (o.draft.connections, o.draft.stop.duration) = (1, Some(Nanos::from_secs(3))));
    let script = Script { stall: Some(stall), ..Script::new(MS) };
    let closed = run(&closed, &script);
    assert_eq!(closed.raw.iter().filter(|sample| sample.done - sample.due > MS).count(), 1);
    assert!(near(closed.latencies.response.quantile(0.99), MS));
}

#[test]
fn at_twice_the_capacity_the_queue_grows_as_computed() {
    // Four connections of 4 ms each serve 1000/s; 2000/s are asked for.
    let queue = Queue {
        n_conns: 4,
        delay: ms(4),
        stall: None,
        n_max: 1_000_000,
        duration: Nanos::from_secs(2),
    };
    let (record, expected) = both(&queue, 2000);
    let open_loop = record.open_loop.unwrap();
    assert_eq!((open_loop.asked_per_s, open_loop.begun_per_s), (2000.0, 1000.0));
    assert_eq!((expected.due, expected.dropped, expected.left), (4000, 0, 2000));
    // Waiting grows by half a second each second: the last that began was due a second before.
    let longest = record.raw.iter().map(|sample| sample.sent - sample.due).max().unwrap();
    assert!(longest.0.abs_diff(1_000_000_000) < 5_000_000, "{longest}");
    let service = &record.latencies.service;
    assert!(near(service.min(), ms(4)) && near(service.max(), ms(4)));
}

#[test]
fn a_short_queue_drops_what_it_cannot_hold_and_says_how_many() {
    for n_max in [1, 10, 100] {
        let duration = Nanos::from_secs(1);
        let queue = Queue { n_conns: 3, delay: ms(3), stall: None, n_max, duration };
        let (_, expected) = both(&queue, 1700);
        assert!(expected.dropped > 500 && expected.queue_max == n_max as u64, "{n_max}");
    }
}

#[test]
fn below_capacity_nothing_waits() {
    let duration = Nanos::from_secs(1);
    let queue = Queue { n_conns: 4, delay: ms(4), stall: None, n_max: 1, duration };
    let (record, expected) = both(&queue, 999);
    assert_eq!((expected.dropped, expected.left, expected.queue_max), (0, 0, 0));
    assert_eq!(record.latencies.queue.max(), Some(Nanos(1)));
}

#[test]
fn a_burst_for_which_connections_are_free_is_not_dropped_however_short_the_queue() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.queue_max) = (10, 1);
        o.draft.pacing = Pacing::Replay { instants: vec![ms(5); 12] };
    });
    let open_loop = run(&plan, &Script::new(MS)).open_loop.unwrap();
    let counts = (open_loop.due, open_loop.dropped, open_loop.queue_max);
    assert_eq!(counts, (12, 1, 1), "ten begin, one waits");
}

#[test]
fn requests_that_are_due_as_their_connections_become_free_are_not_dropped() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.queue_max) = (10, 1);
        o.draft.pacing =
            Pacing::Replay { instants: [[Nanos::ZERO; 10], [MS; 10], [ms(2); 10]].concat() };
    });
    let record = run(&plan, &Script::new(MS));
    let open_loop = record.open_loop.unwrap();
    assert_eq!((open_loop.dropped, open_loop.queue_max, record.requests.ok), (0, 0, 30));
}

#[test]
fn the_last_of_n_requests_that_wait_do_not_keep_the_thread_awake() {
    // In virtual time a thread that never sleeps never gets on: this test would not end.
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests) = (1, Some(50));
        o.draft.pacing = Pacing::Constant { rate: PerSecond(1e6) };
    });
    let record = run(&plan, &Script::new(ms(100)));
    assert_eq!((record.requests.ok, record.seconds), (50, 5.0));
    assert_eq!(record.open_loop.unwrap().due, 50);
}

#[test]
fn where_requests_run_out_the_rate_asked_is_that_of_the_law_not_of_the_last_reply() {
    for (threads, n) in [(1, 10), (3, 10), (1, 1000)] {
        let law = |connections: u32| {
            plan(|o| {
                (o.draft.connections, o.draft.threads, o.draft.stop.requests) =
                    (connections, threads, Some(n));
                o.draft.pacing = Pacing::Constant { rate: PerSecond(10.0) };
            })
        };
        // The last of ten is due after 0.9 s and answered at once: the law has a second for them.
        let quick = run(&law(6), &Script::new(MS));
        let open_loop = quick.open_loop.unwrap();
        assert_eq!((open_loop.due, open_loop.overdue), (n, 0));
        for rate in [open_loop.asked_per_s, open_loop.begun_per_s, quick.rate_per_s] {
            assert!((rate - 10.0).abs() < 1e-6, "{rate} of {threads} threads, {n} requests");
        }
        assert!(quick.seconds < n as f64 / 10.0 && quick.rate_missed().is_none());
        // Slow replies on connections enough: begun as asked, and goodput is over the wait for them.
        let slow = run(&law(60), &Script::new(Nanos::from_secs(1)));
        let open_loop = slow.open_loop.unwrap();
        assert!((open_loop.begun_per_s - 10.0).abs() < 1e-6 && slow.rate_missed().is_none());
        assert!((slow.rate_per_s - n as f64 / slow.seconds).abs() < 1e-6);
    }
}

#[test]
fn a_random_law_lasts_until_its_next_instant() {
    let pacing = Pacing::Poisson { rate: PerSecond(100.0) };
    let law = |n| {
        let plan = plan(|o| (o.draft.pacing, o.draft.stop.requests) = (pacing.clone(), Some(n)));
        run(&plan, &Script::new(MS))
    };
    // Two of a hundred Poisson requests are due at the same instants as two of two.
    let third = law(100).raw.iter().map(|sample| sample.due).nth(2).unwrap();
    let record = law(2);
    let open_loop = record.open_loop.unwrap();
    assert_eq!(open_loop.seconds, third.as_secs_f64());
    assert_eq!((record.rate_per_s, open_loop.due), (open_loop.asked_per_s, 2));
}

#[test]
fn what_is_asked_by_second_is_the_law_s_rate_however_few_there_are_and_whatever_pauses_it_has() {
    let stages = |typed: &[(f64, u64)]| Pacing::Stages {
        stages: typed
            .iter()
            .map(|&(rate, length)| Stage { rate: PerSecond(rate), length: ms(length) })
            .collect(),
    };
    let rate = |rate| PerSecond(rate);
    let down = Pacing::Ramp { from: rate(100.0), to: rate(0.0), over: Nanos::from_secs(1) };
    let replay =
        |instants: &[u64]| Pacing::Replay { instants: instants.iter().map(|&n| ms(n)).collect() };
    let cases = [
        // What is asked for, until when, and what that is by second.
        (Pacing::Constant { rate: rate(2.0) }, Some(1), None, 2.0),
        (Pacing::Constant { rate: rate(5.0) }, None, Some(ms(100)), 5.0),
        (Pacing::Constant { rate: rate(5.0) }, None, Some(ms(300)), 5.0),
        (Pacing::Jitter { rate: rate(100.0) }, Some(10), None, 100.0),
        (stages(&[(100.0, 200), (0.0, 20_000), (9.0, 1)]), Some(20), None, 100.0),
        (stages(&[(0.0, 2000), (100.0, 1)]), Some(2), None, 2.0 / 2.02),
        (stages(&[(100.0, 1000), (0.0, 2000), (100.0, 1)]), Some(101), None, 101.0 / 3.01),
        (down.clone(), Some(5000), None, 50.0),
        (down, None, Some(ms(2000)), 25.0),
        (replay(&[0, 10, 20, 3_600_000]), Some(3), None, 100.0),
    ];
    for (pacing, requests, duration, expected) in cases {
        let plan = plan(|o| {
            (o.draft.pacing, o.draft.stop.requests, o.draft.stop.duration) =
                (pacing, requests, duration);
        });
        let record = run(&plan, &Script::new(MS));
        let open_loop = record.open_loop.unwrap();
        for rate in [open_loop.asked_per_s, open_loop.begun_per_s, record.rate_per_s] {
            assert!((rate / expected - 1.0).abs() < 1e-6, "{:?}: {rate}", record.plan.pacing);
        }
    }
}

#[test]
fn requests_that_are_dropped_before_a_pause_leave_the_rate_as_it_was() {
    let stage = |rate, length| Stage { rate: PerSecond(rate), length };
    let stages = vec![stage(100.0, ms(470)), stage(0.0, Nanos::from_secs(20)), stage(1.0, MS)];
    let instants = (0..47).map(|n| ms(10 * n)).chain([Nanos::from_secs(20)]).collect();
    for pacing in [Pacing::Stages { stages }, Pacing::Replay { instants }] {
        for threads in [1, 2] {
            let plan = plan(|o| {
                (o.draft.connections, o.draft.threads, o.draft.stop.requests) =
                    (threads, threads, Some(15));
                (o.draft.queue_max, o.draft.pacing) = (5, pacing.clone());
            });
            let open_loop = run(&plan, &Script::new(ms(50))).open_loop.unwrap();
            assert!(open_loop.dropped > 0, "{open_loop:?}");
            let asked = open_loop.asked_per_s;
            assert!((asked / 100.0 - 1.0).abs() < 0.05, "{threads} threads: {asked}");
        }
    }
}

#[test]
fn threads_that_drop_unequally_are_asked_for_no_more_than_the_law() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.threads, o.draft.stop.requests, o.draft.queue_max) =
            (2, 2, Some(100), 2);
        o.draft.pacing = Pacing::Constant { rate: PerSecond(100.0) };
    });
    let acts = vec![(Act::Reply, 1), (Act::Pause { bytes: 1, gap: ms(100) }, 1)];
    let record = run(&plan, &Script { acts, ..Script::new(MS) });
    let open_loop = record.open_loop.unwrap();
    assert!(open_loop.dropped > 0, "{open_loop:?}");
    assert!((open_loop.asked_per_s - 100.0).abs() < 5.0, "{open_loop:?}");
    assert!(
        open_loop.begun_per_s <= open_loop.asked_per_s && open_loop.seconds <= record.seconds + 0.1
    );
}

#[test]
fn a_replay_is_over_its_own_instants_and_has_no_rate_to_miss() {
    let replayed = |instants: Vec<Nanos>, n: Option<u64>| {
        let plan = plan(|o| {
            (o.draft.connections, o.draft.stop.requests) = (1, n);
            o.draft.pacing = Pacing::Replay { instants };
        });
        let record = run(&plan, &Script::new(ms(20)));
        assert_eq!((record.rate_missed(), record.requests.ok), (None, 50));
        let open_loop = record.open_loop.unwrap();
        assert_eq!(open_loop.overdue, 0);
        (open_loop.asked_per_s.round(), open_loop.begun_per_s.round())
    };
    for n in [None, Some(50)] {
        // 250/s on a connection that serves 50/s.
        let even = (0..50).map(|k| ms(4 * k)).collect();
        assert_eq!(replayed(even, n), (250.0, 50.0));
        // All at once ask for no rate: it is over the window.
        assert_eq!(replayed(vec![Nanos::ZERO; 50], n), (50.0, 50.0));
    }
}

#[test]
fn n_requests_that_were_begun_too_late_have_missed_their_rate() {
    // One connection of 100 ms serves ten in the second in which the law has 100.
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.requests) = (1, Some(100));
        o.draft.pacing = Pacing::Constant { rate: PerSecond(100.0) };
    });
    let record = run(&plan, &Script::new(ms(100)));
    let open_loop = record.open_loop.unwrap();
    assert_eq!((record.requests.ok, open_loop.due, open_loop.left), (100, 100, 0));
    assert_eq!((open_loop.asked_per_s, open_loop.begun_per_s), (100.0, 10.0));
    assert_eq!((record.seconds, record.rate_per_s), (10.0, 10.0));
    assert_eq!(record.rate_missed().map(|missed| (missed.due, missed.begun)), Some((100, 10)));
}

#[test]
fn requests_that_are_due_while_a_server_refuses_wait_for_it() {
    let plan = plan(|o| {
        (o.draft.connections, o.draft.stop.duration) = (2, Some(Nanos::from_secs(1)));
        o.draft.pacing = Pacing::Constant { rate: PerSecond(200.0) };
    });
    let acts = vec![(Act::Reset(0), 1), (Act::Reply, 4)];
    let record = run(&plan, &Script { acts, ..Script::new(MS) });
    let open_loop = record.open_loop.unwrap();
    assert_eq!((open_loop.due, open_loop.dropped), (200, 0));
    assert!(record.requests.started >= 199 && record.requests.failed > 10);
}
