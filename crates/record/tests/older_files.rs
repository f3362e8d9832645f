//! Files that earlier versions of joust wrote stay readable, with the plans that were used then.
//! The fixtures were written by those versions; `run_1.json` is cut down to one short visit.

use joust_record::{
    Engine, HttpVersion, LoadPlan, LoadRecord, LoadStop, MemoryMethod, Pacing, Pick, RequestPlan,
    RunRecord, ServerAddress,
};
use units::Nanos;

const LOAD_1: &str = include_str!("fixtures/load_1.json");
const RUN_1: &str = include_str!("fixtures/run_1.json");

#[test]
fn a_load_of_version_1_has_one_request_of_one_origin() {
    let load = LoadRecord::from_json(LOAD_1).unwrap();
    let plan = &load.plan;
    let addr = "127.0.0.1:41895".parse().unwrap();
    assert_eq!(plan.origin().place, ServerAddress::Inet(addr));
    assert_eq!((plan.origin().host.as_str(), &plan.origin().tls_name), ("127.0.0.1:41895", &None));
    let headers = vec![("Accept".to_owned(), "text/html".to_owned())];
    assert_eq!(plan.requests, [RequestPlan { headers, ..RequestPlan::get("/index.html") }]);
    // The fields that version 1 did not have describe what version 1 did.
    let expected = LoadPlan {
        requests: plan.requests.clone(),
        engine: Engine::Epoll,
        connections: 2,
        stop: LoadStop { requests: Some(20), duration: None },
        queue_max: 0,
        ..LoadPlan::get(addr, "/index.html")
    };
    assert_eq!(*plan, expected);
    assert_eq!((plan.version, plan.pick), (HttpVersion::Http11, Pick::InOrder));
    assert_eq!(plan.pacing, Pacing::Closed);
}

#[test]
fn the_figures_of_a_load_of_version_1_are_as_they_were() {
    let load = LoadRecord::from_json(LOAD_1).unwrap();
    assert_eq!(load.format, LoadRecord::FORMAT);
    assert_eq!((load.requests.ok, load.requests.started, load.connects), (20, 20, 2));
    assert_eq!(load.service_ms.p50, Some(0.020463));
    assert_eq!(load.latencies.response.count(), 20);
    assert_eq!((load.open_loop, load.probes), (None, 0));
    assert!(load.latencies.queue.is_empty());
}

#[test]
fn what_was_read_from_an_old_file_is_written_as_a_new_one() {
    let load = LoadRecord::from_json(LOAD_1).unwrap();
    assert_eq!(LoadRecord::from_json(&load.to_json()).unwrap(), load);
    let run = RunRecord::from_json(RUN_1).unwrap();
    assert_eq!(RunRecord::from_json(&run.to_json()).unwrap(), run);
}

#[test]
fn memory_of_an_older_file_is_pss() {
    let run = RunRecord::from_json(RUN_1).unwrap();
    let methods: Vec<_> = run.visits.iter().map(|visit| visit.memory_method()).collect();
    assert_eq!(methods, [Some(MemoryMethod::Pss)]);
}

#[test]
fn a_run_of_version_1_keeps_its_loads() {
    let run = RunRecord::from_json(RUN_1).unwrap();
    assert_eq!((run.format.as_str(), run.visits.len()), (RunRecord::FORMAT, 1));
    let load = run.visits[0].load.as_ref().unwrap();
    assert_eq!(load.format, LoadRecord::FORMAT);
    assert_eq!(load.plan.requests, [RequestPlan::get("/index.html")]);
    assert_eq!((load.plan.connections, load.plan.timeout), (2, Nanos::from_secs(5)));
    assert!(load.requests.ok > 0 && !load.intervals.is_empty() && !load.raw.is_empty());
}
