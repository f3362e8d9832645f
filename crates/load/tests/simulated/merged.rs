//! Records of several loads as one: counts and distributions add up, whatever the order and however the
//! loads lay in time. Start reading at the first test.

use joust_load::sim::{Connecting, Script};
use joust_load::source::ListedRequest;
use joust_load::{MergeError, MergeInput, merge};
use proptest::prelude::*;
use record::{LoadRecord, Pacing, Pick};
use stats::Histogram;
use sys::driver::Failure;
use units::{Nanos, PerSecond};

use crate::common::{check_by_request, check_intervals, ms, plan, run};

/// One agent's part.
#[derive(Debug, Clone, Copy)]
struct Agent {
    connections: u32,
    threads: u32,
    requests: u64,
    delay_ms: u64,
    is_up: bool,
    began_ms: Option<u64>,
    raw_max: u32,
}

const AGENT: Agent = Agent {
    connections: 4,
    threads: 1,
    requests: 400,
    delay_ms: 10,
    is_up: true,
    began_ms: Some(1_000_000),
    raw_max: 100,
};

fn asked(n_requests: u64) -> Vec<ListedRequest> {
    let one = |n| ListedRequest {
        url: format!("http://127.0.0.1:1/{n}"),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        weight: 1,
        at: None,
        templated: false,
    };
    (0..n_requests).map(one).collect()
}

impl Agent {
    fn record(&self, n_asked: u64) -> LoadRecord {
        let plan = plan(|options| {
            (options.draft.connections, options.draft.threads) = (self.connections, self.threads);
            (options.draft.stop.requests, options.draft.raw_max) =
                (Some(self.requests), self.raw_max);
            options.draft.pick = Pick::AtRandom;
            options.asked = asked(n_asked);
        });
        let mut script = Script::new(ms(self.delay_ms));
        if !self.is_up {
            script.connects = vec![(Connecting::Fails(Failure::Refused), 1)];
        }
        LoadRecord { began_unix_ms: self.began_ms, ..run(&plan, &script) }
    }

    fn input(&self, name: &str, n_asked: u64) -> MergeInput {
        MergeInput {
            name: name.to_owned(),
            record: self.record(n_asked),
            findings: Vec::new(),
            acting: Vec::new(),
        }
    }
}

fn agents() -> impl Strategy<Value = Vec<Agent>> {
    let agent = (1u32..9, 1u32..3, 1u64..600, 1u64..40, 0u64..20, 0u64..9_000, 1u32..300).prop_map(
        |(connections, threads, requests, delay_ms, up, began_ms, raw_max)| Agent {
            connections,
            threads: threads.min(connections),
            requests,
            delay_ms,
            is_up: up > 0,
            began_ms: Some(began_ms),
            raw_max,
        },
    );
    prop::collection::vec(agent, 2..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn merged_records_add_up_in_whatever_order(agents in agents(), n_asked in 1u64..4, turn in 0usize..5) {
        let inputs: Vec<MergeInput> = agents
            .iter()
            .enumerate()
            .map(|(at, agent)| agent.input(&format!("{at}.json"), n_asked))
            .collect();
        let records: Vec<LoadRecord> = inputs.iter().map(|input| input.record.clone()).collect();
        let is_same = |one: &LoadRecord| records.iter().filter(|other| *other == one).count() > 1;
        prop_assume!(!records.iter().any(is_same));
        let sum = merge(inputs.clone()).unwrap();
        let mut turned = inputs.clone();
        turned.rotate_left(turn % inputs.len());
        turned.swap(0, 1);
        prop_assert_eq!(&merge(turned).unwrap(), &sum);

        let total = |of: fn(&LoadRecord) -> u64| records.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum.requests.started, total(|one| one.requests.started));
        prop_assert_eq!(sum.requests.ok, total(|one| one.requests.ok));
        prop_assert_eq!(sum.requests.failed, total(|one| one.requests.failed));
        prop_assert_eq!(sum.errors.total(), sum.requests.failed);
        prop_assert_eq!(sum.status.values().sum::<u64>(), sum.requests.ok);
        prop_assert_eq!(sum.bytes.read, total(|one| one.bytes.read));
        prop_assert_eq!(sum.connects, total(|one| one.connects));
        let mut response = Histogram::new();
        records.iter().for_each(|one| response.merge(&one.latencies.response));
        prop_assert_eq!(&sum.latencies.response, &response);
        prop_assert_eq!(sum.response_ms.max, response.max().map(Nanos::as_millis_f64));
        prop_assert_eq!(sum.completions.total(), sum.requests.ok);
        prop_assert_eq!(sum.connection_ends.by_server, total(|one| one.connection_ends.by_server));
        prop_assert_eq!(sum.tcp.connections, sum.connects);
        check_intervals(&sum);
        check_by_request(&sum);
        let by_thread: u64 = sum.intervals.iter().flat_map(|it| &it.ok_by_thread).sum();
        prop_assert_eq!(by_thread, sum.requests.ok);
        let raw_max = records.iter().map(|one| one.plan.raw_max as usize).max().unwrap();
        prop_assert!(sum.raw.len() <= raw_max && !sum.raw.is_empty());
        prop_assert_eq!(sum.client.threads.len() as u64, total(|one| one.threads.into()));

        // The time of all is at least that of the longest, at most that of one after the other.
        let longest = records.iter().map(|one| one.seconds).fold(0.0, f64::max);
        let together: f64 = records.iter().map(|one| one.seconds).sum();
        prop_assert!(sum.seconds >= longest - 1e-6 && sum.seconds <= together + 1e-6);
        let good = sum.requests.ok - sum.requests.drained.min(sum.requests.ok);
        prop_assert!((sum.rate_per_s * sum.rate_seconds() - good as f64).abs() < 0.5);
        let back = LoadRecord::from_json(&sum.to_json()).unwrap();
        prop_assert_eq!(back, sum);
    }
}

#[test]
fn one_record_alone_is_itself() {
    let record = AGENT.record(2);
    let input = MergeInput {
        name: "a".to_owned(),
        record: record.clone(),
        findings: Vec::new(),
        acting: Vec::new(),
    };
    assert_eq!(merge(vec![input]).unwrap(), record);
    assert_eq!(merge(Vec::new()), Err(MergeError::None));
}

#[test]
fn rates_of_agents_that_ran_together_add_up_and_of_those_in_turn_do_not() {
    let of = |began_ms: [Option<u64>; 2], connections| {
        let one = Agent { began_ms: began_ms[0], ..AGENT };
        let two = Agent { began_ms: began_ms[1], connections, delay_ms: 20, ..AGENT };
        merge(vec![two.input("two", 1), one.input("one", 1)]).unwrap()
    };
    // 4 connections make 100 requests each: in 1 s at 10 ms; 8 make 50 each in 1 s at 20 ms.
    let together = of([Some(1_000), Some(1_000)], 8);
    assert!((together.rate_per_s - 800.0).abs() < 5.0, "{}", together.rate_per_s);
    assert_eq!((together.connections, together.threads), (12, 2));
    let in_turn = of([Some(1_000), Some(1_000_000)], 8);
    assert!((in_turn.rate_per_s - 400.0).abs() < 3.0, "{}", in_turn.rate_per_s);
    assert_eq!((in_turn.connections, in_turn.threads), (8, 1));
    assert!((in_turn.seconds - 2.0).abs() < 0.02, "the pause is left out: {}", in_turn.seconds);
    assert!(in_turn.parts[1].start > in_turn.parts[0].start);
    // Where one does not say when it began, all are taken to have begun together.
    let unknown = of([Some(1_000), None], 8);
    assert!((unknown.rate_per_s - together.rate_per_s).abs() < 1e-9);
    let late = in_turn.raw.iter().filter(|sample| sample.due > Nanos::from_millis(990)).count();
    assert!(late > 10, "samples of the second load lie in its time");
}

#[test]
fn the_rates_that_agents_ask_for_add_up() {
    let record = |rate: f64, seed| {
        let plan = plan(|options| {
            (options.draft.connections, options.draft.seed) = (8, seed);
            options.draft.stop.duration = Some(Nanos::from_secs(2));
            options.draft.pacing = Pacing::Poisson { rate: PerSecond(rate) };
        });
        let record = run(&plan, &Script::new(ms(5)));
        MergeInput {
            name: format!("{rate}"),
            record: LoadRecord { began_unix_ms: Some(1), ..record },
            findings: Vec::new(),
            acting: Vec::new(),
        }
    };
    let sum = merge(vec![record(100.0, 1), record(50.0, 2)]).unwrap();
    assert_eq!(sum.plan.pacing, Pacing::Poisson { rate: PerSecond(150.0) });
    let open = sum.open_loop.unwrap();
    assert_eq!(open.due, sum.requests.started);
    assert!((open.asked_per_s - open.due as f64 / open.seconds).abs() < 2.0, "{open:?}");
    assert!(sum.parts.iter().all(|part| !part.findings.join(" ").contains("seed")));
    let sum = merge(vec![record(100.0, 1), record(50.0, 1)]).unwrap();
    assert!(sum.parts[1].findings.join(" ").contains("--seed"), "{:?}", sum.parts);
}

#[test]
fn what_would_mean_two_things_is_refused_and_what_differs_is_said() {
    let one = AGENT.input("one", 2);
    let refused = |change: &dyn Fn(&mut LoadRecord), part: &str| {
        let mut two = Agent { requests: 300, ..AGENT }.input("two", 2);
        change(&mut two.record);
        let error = merge(vec![one.clone(), two]).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("two"), "{part}: {error}");
    };
    refused(&|two| two.plan.requests[1].method = "PUT".to_owned(), "different requests");
    refused(&|two| two.plan.pacing = Pacing::Constant { rate: PerSecond(1.0) }, "open loop");
    refused(&|two| two.plan.verify.status_max = 299, "expect the same");
    refused(&|two| *two = one.record.clone(), "the same load");
    let merged = merge(vec![one.clone(), Agent { requests: 300, ..AGENT }.input("x", 2)]).unwrap();
    refused(&|two| *two = merged.clone(), "itself merged from 2 loads");

    let mut two = Agent { requests: 300, ..AGENT }.input("two", 2);
    two.record.plan.timeout = ms(77);
    two.record.plan.raw_max = 0;
    two.record.raw.clear();
    two.record.by_request.clear();
    two.findings.push("the machine was on fire".to_owned());
    let merged = merge(vec![one.clone(), two]).unwrap();
    let said: Vec<String> = merged.parts.iter().flat_map(|part| part.findings.clone()).collect();
    let said = said.join("; ");
    for part in ["in timeout", "no figures by request", "--raw 0", "on fire"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(merged.by_request.is_empty() && !merged.raw.is_empty());
}
