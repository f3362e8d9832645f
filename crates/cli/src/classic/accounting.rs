//! No replacement loses a request: over random counts of threads, connections, pipelines and requests, on the simulated
//! driver, each report adds up to what was measured. Start reading at [`every_request_is_in_each_report`].

use std::sync::atomic::AtomicBool;

use classic::command::{self, Closing, Finished, Stream};
use load::sim::{self, Act, Script};
use load::{Control, LoadOptions};
use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;
use record::LoadRecord;
use units::Nanos;

use super::testing::{asked, local_time, random};

const CASES: u64 = 20;

/// A server whose replies are good, have other statuses, or break off.
fn script(random: &mut Pcg64Mcg) -> Script {
    let mut script = Script::new(Nanos::from_micros(50));
    script.seed = random.random();
    if random.random_bool(0.5) {
        script.acts =
            vec![(Act::Reply, 8), (Act::Status(503), 1), (Act::Reset(60), 1), (Act::Close(60), 1)];
    }
    script
}

/// Runs a command line like the program does, but in virtual time.
fn carried_out(line: &str, script: &Script) -> (LoadRecord, Closing) {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let mut run = asked(&words).unwrap_or_else(|| panic!("{line} makes no load"));
    if run.scenario.is_some() {
        run.plan.stop.requests = None;
    }
    run.printer.opening();
    let interrupt = AtomicBool::new(false);
    let control = Control::new(&interrupt);
    let control = match &run.scenario {
        Some(scenario) => control.acting(&**scenario),
        None => control,
    };
    let record = sim::run(&run.plan, &control, script).unwrap_or_else(|e| panic!("{line}: {e}"));
    let dated = |_| local_time();
    let finished = Finished { record: &record, began: Nanos::ZERO, local_time: &dated };
    let closing = command::close(&mut *run.printer, &finished);
    let closing = closing.unwrap_or_else(|lost| panic!("{line}: {lost}"));
    (record, closing)
}

/// Counts of a closed loop: `threads <= connections <= requests`.
fn counts(random: &mut Pcg64Mcg) -> (u32, u32, u64, u32) {
    let threads = random.random_range(1..=5u32);
    let connections = threads + random.random_range(0..7u32);
    let requests = u64::from(connections) + random.random_range(0..400u64);
    (threads, connections, requests, random.random_range(1..=9u32))
}

#[test]
fn every_request_is_in_each_report() {
    for seed in 0..CASES {
        let random = &mut random(seed);
        let (t, c, n, k) = counts(random);
        let lines = [
            format!("weighttp --version-style 0.5 -q -n {n} -c {c} -t {t} -k -K {k} http://h/"),
            format!("weighttp --version-style 0.5 -q -n {n} -c {c} -t {t} http://h/"),
            format!("weighttp -n {n} -c {c} -t {t} -k h/"),
            format!("weighttp -n {n} -c {c} -t {t} h/"),
            format!("ab -r -q -n {n} -c {c} -k http://h/"),
            format!("ab -r -q -n {n} -c {c} http://h/"),
            format!("http_load -parallel {c} -fetches {n} urls"),
            format!("http_load -checksum -parallel {c} -fetches {n} urls"),
            "http_load -rate 200 -seconds 1 urls".to_owned(),
            format!("siege -c {c} -r {k} http://h/"),
            format!("wrk -c {c} -t {t} -d 1 http://h/"),
            format!("wrk -c {c} -t {t} -d 1 -s post.lua http://h/"),
        ];
        // wrk is an optional feature.
        let built_in = |line: &String| cfg!(feature = "lua") || !line.starts_with("wrk ");
        for line in lines.into_iter().filter(built_in) {
            let mut script = script(random);
            if line.contains("-d 1") {
                // A second of it should contain few requests.
                script.delay = Nanos::from_millis(20);
            }
            let (record, closing) = carried_out(&line, &script);
            let tally = closing.tally.unwrap_or_else(|| panic!("seed {seed}: {line}: no tally"));
            assert_eq!(tally.counted + tally.left_out, record.requests.started, "{seed}: {line}");
            let is_counted = !line.starts_with("siege") && !line.starts_with("wrk");
            if is_counted && !line.contains("-seconds") {
                let report = closing.texts.on(Stream::Out);
                let read = classic::read_any(&report).unwrap_or_else(|e| panic!("{line}: {e}"));
                assert_eq!(read[0].requests.complete, Some(n), "seed {seed}: {line}\n{report}");
            }
        }
    }
}

/// A past fault that lost half of the results: 3 connections on 2 threads have 20 and 10 requests, but the log for all
/// had room for 17 and 16.
#[test]
fn a_pipeline_on_threads_that_do_not_divide_its_connections_retires_all() {
    for (line, n) in [("-n 30 -c 3 -t 2 -k -K 2", 30), ("-n 10007 -c 10 -t 3 -K 8", 10_007)] {
        let line = format!("weighttp --version-style 0.5 -q {line} http://h/");
        let (record, closing) = carried_out(&line, &Script::new(Nanos::from_micros(50)));
        let out = closing.texts.on(Stream::Out);
        let counts = format!("\"started\":    {n},\n    \"retired\":    {n},");
        assert!(out.contains(&counts), "{line}: {out}");
        assert_eq!((record.raw.len(), record.raw_stride), (n, 1));
    }
}

/// A log with room for all requests of the load contains them all.
#[test]
fn a_load_keeps_every_sample_that_there_is_room_for() {
    for seed in 0..CASES {
        let random = &mut random(seed);
        let (threads, connections, requests, pipeline) = counts(random);
        let mut options = LoadOptions::new("http://127.0.0.1:1/");
        let draft = &mut options.draft;
        (draft.threads, draft.connections) = (threads, connections);
        (draft.stop.requests, draft.pipeline) = (Some(requests), pipeline);
        draft.raw_max = u32::try_from(requests).unwrap();
        let plan = options.plan().unwrap();
        let interrupt = AtomicBool::new(false);
        let record = sim::run(&plan, &Control::new(&interrupt), &script(random)).unwrap();
        let kept = (record.raw.len() as u64, record.raw_stride, record.requests.started);
        assert_eq!(kept, (requests, 1, requests), "seed {seed}: -t {threads} -c {connections}");
    }
}
